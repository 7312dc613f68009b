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
mod coder;
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

use crate::header::Header;
use model::{Packet, Run, SectionRef};

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

/// Whether the layout with this payload names the section of `stream` with the payload `section`.
pub fn names_section(layout: &[u8], stream: u16, section: &[u8]) -> bool {
    let (Ok((Header::Layout, coded)), Ok((_, rest))) =
        (Header::decode(layout), Header::decode(section))
    else {
        return false;
    };
    let named = SectionRef::new(stream, 0, section, rest.len());
    let is_it = |run: &Run| {
        SectionRef {
            number: 0,
            ..run.section
        } == named
    };
    decode(coded).is_some_and(|layout| {
        let packets = layout.packets.iter();
        packets.flat_map(Packet::runs).any(is_it)
    })
}

/// Whether the sections of this stream serve only restored packets: a new stream of pictures and
/// sound does not contain them.
pub(crate) const fn is_restored_alone(stream: u16) -> bool {
    matches!(stream, CARRIED | DAMAGED)
}
