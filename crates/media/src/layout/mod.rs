//! Layouts: what a receiver needs beside the sections to write the transport stream that came in,
//! byte for byte.
//!
//! A layout describes a run of packets in their order. Where the bytes of a packet stand in a
//! section, it names the section; the rest it says itself, as far as it does not follow from the
//! packets before. `docs/protocol/media.md` has the format.
//!
//! ```text
//! packets + sections -> Arranger -> layouts ..> Restorer + sections -> packets
//! ```

mod arrange;
mod coder;
mod format;
mod lane;
mod model;
mod models;
mod packet;
mod part;
mod restore;

pub(crate) use arrange::{Arranger, DroppedUnit, Usage};
pub(crate) use format::decode;
pub(crate) use model::{CARRIED, DAMAGED, LAYOUTS, Layout, Null, SCRAMBLED, TABLES};
pub(crate) use packet::{null_packet, read_clock_of, without_payload};
pub(crate) use restore::{Action, Arrived, Restorer, Resume};

use crate::header::Header;

/// The bit by which a receiver says in its transport parameters that it takes layouts.
pub const LAYOUT_FEATURE: u64 = 1;

/// Whether only a receiver that takes layouts gets the sections of this stream.
pub const fn needs_layouts(stream: u16) -> bool {
    stream == LAYOUTS || is_restored_alone(stream)
}

/// Whether this is the announcement of layouts, for receivers that take them.
pub fn is_announcement(stream: u16, payload: &[u8]) -> bool {
    let mut announcement = Vec::new();
    Header::Layout.encode(&mut announcement);
    stream == TABLES
        && payload
            .strip_prefix(&announcement[..])
            .is_some_and(|layout| layout.len() < 8 && decode(layout) == Some(Layout::default()))
}

/// Whether the sections of this stream are for restored packets alone: a new stream of pictures and
/// sound has no place for them.
pub(crate) const fn is_restored_alone(stream: u16) -> bool {
    matches!(stream, CARRIED | DAMAGED)
}
