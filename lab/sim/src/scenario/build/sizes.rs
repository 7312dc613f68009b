//! Sizes as they are written, in bytes.

use comity_units::Bytes;

use super::super::kinds::Extent;

pub(super) fn size(extent: Extent, payload: Bytes) -> Bytes {
    match extent {
        Extent::Packets(packets) => payload * packets.into(),
        Extent::Bytes(bytes) => bytes,
        Extent::Unlimited => Bytes::MAX,
    }
}

/// Sizes below 2³² whose bounds the schema has checked.
pub(super) fn narrow(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}
