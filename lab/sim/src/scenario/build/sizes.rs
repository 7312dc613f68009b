//! Sizes as they are written, in bytes.

use comity_units::DataSize;

use super::super::kinds::Extent;

pub(super) fn size(extent: Extent, payload: DataSize) -> DataSize {
    match extent {
        Extent::Packets(packets) => payload * packets.into(),
        Extent::Bytes(bytes) => bytes,
        Extent::Unlimited => DataSize::MAX,
    }
}

/// Sizes below 2³² whose bounds the schema has checked.
pub(super) fn narrow(bytes: DataSize) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}
