//! Layouts: what a receiver needs in addition to sections to write the original transport stream,
//! byte for byte.
//!
//! A layout describes a run of consecutive packets. For bytes that a section contains, it names the
//! section. The layout itself contains the other bytes, unless they follow from the previous
//! packets. `docs/protocol/media.md` has the format.
//!
//! ```text
//! packets + sections -> Arranger -> layouts ..> Restorer + sections -> packets
//! ```

mod action;
mod arrange;
mod carried;
mod coder;
mod followers;
mod format;
mod lane;
mod model;
mod models;
mod packet;
mod part;
mod restore;
mod waiting;

pub(crate) use action::{Action, Resume};
pub(crate) use arrange::{Arranger, DroppedUnit, Usage};
pub(crate) use format::decode;
pub(crate) use model::{CARRIED, DAMAGED, LAYOUTS, Layout, Null, SCRAMBLED, TABLES};
pub(crate) use packet::{null_packet, read_clock_of, without_payload};
pub(crate) use restore::{Arrived, Restorer};

use std::collections::BTreeSet;

use crate::header::Header;
use model::{Packet, SectionRef};

/// The bit of the transport parameters with which a receiver announces that it accepts layouts.
pub const LAYOUT_FEATURE: u64 = 1;

/// Whether the sections of this stream are sent only to receivers that accept layouts.
pub const fn needs_layouts(stream: u16) -> bool {
    stream == LAYOUTS || is_restored_alone(stream)
}

/// Whether this is the announcement of layouts, which is sent only to receivers that accept them.
pub fn is_announcement(stream: u16, payload: &[u8]) -> bool {
    let mut announcement = Vec::new();
    Header::Layout.encode(&mut announcement);
    stream == TABLES
        && payload
            .strip_prefix(&announcement[..])
            .is_some_and(|layout| layout.len() < 8 && decode(layout) == Some(Layout::default()))
}

/// Whether this is the stream of the layouts.
pub const fn is_layouts(stream: u16) -> bool {
    stream == LAYOUTS
}

/// How layouts name a section, without its number: by its stream, its length and a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SectionName(SectionRef);

/// How layouts name the section of `stream` with this payload; `None` if the payload has no media
/// header.
pub fn section_name(stream: u16, payload: &[u8]) -> Option<SectionName> {
    let (_, rest) = Header::decode(payload).ok()?;
    let name = SectionRef::new(stream, 0, payload, rest.len());
    Some(SectionName(name))
}

/// The sections that the layout with this payload names; none if the payload is no layout.
pub fn named_sections(layout: &[u8]) -> BTreeSet<SectionName> {
    let Ok((Header::Layout, coded)) = Header::decode(layout) else {
        return BTreeSet::new();
    };
    let layout = decode(coded).unwrap_or_default();
    let runs = layout.packets.iter().flat_map(Packet::runs);
    let names = runs.map(|run| SectionRef {
        number: 0,
        ..run.section
    });
    names.map(SectionName).collect()
}

/// Whether the sections of this stream serve only restored packets: a new stream of pictures and
/// sound does not contain them.
pub(crate) const fn is_restored_alone(stream: u16) -> bool {
    matches!(stream, CARRIED | DAMAGED)
}
