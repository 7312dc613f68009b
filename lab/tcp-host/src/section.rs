//! The types for exchanging sections with a connection: plain data, ready for other languages.

use comity_units::Time;

/// A range of bytes with a deadline (TLTCP, section 4: `sendmsg`).
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The content, at least one byte.
    pub bytes: &'a [u8],
    /// The time after which it is no longer sent; [`Time::MAX`] for never.
    pub deadline: Time,
}

/// Whether a connection delivers sections by their deadlines at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Delivery {
    /// Both ends are time-lined: obsolete data is skipped, and the receiver reads gaps.
    Timelined = 1,
    /// The peer is an ordinary TCP: every byte with a sequence number arrives. The host numbers
    /// data as late as possible, and omits sections that expire before.
    Plain = 2,
}

/// The kind of a piece of a stream (TLTCP, section 4: `TL_DATA` and `TL_GAP`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum PieceKind {
    /// Bytes that arrived.
    #[default]
    Data = 1,
    /// Bytes that will not arrive.
    Gap = 2,
}

/// The next piece of a stream (TLTCP, section 4: `recvmsg`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    /// Data or a gap.
    pub kind: PieceKind,
    /// The offset in the stream, which begins at 0.
    pub offset: u64,
    /// The number of bytes, at least 1.
    pub length: u64,
}

/// How the host marks sections in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Not at all: the stream consists of the content of the sections. Once a section has a
    /// sequence number, it is sent completely. This suits media in which a decoder can
    /// resynchronise.
    #[default]
    None,
    /// By the header of [`crate::framing`] before each section, or before each part of one.
    Header,
}

/// Counters of the sections that an application submitted to one connection.
///
/// ```text
/// submitted = on_time + late + cut + left_out + open
/// ```
///
/// To a time-lined peer, a section is on time if all of it was acknowledged at its deadline. A
/// section is cut if only a part was sent or acknowledged. No section is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SectionStatistics {
    /// The number of submitted sections.
    pub submitted: u64,
    /// Their bytes, without headers.
    pub submitted_bytes: u64,
    /// Sections that were completely acknowledged before their deadline.
    pub on_time: u64,
    /// Sections that were completely acknowledged after their deadline.
    pub late: u64,
    /// Sections with sequence numbers for only a part at the deadline. The rest was omitted.
    pub cut: u64,
    /// Sections that had no sequence number at the deadline.
    pub left_out: u64,
    /// Sections that are waiting or in flight.
    pub open: u64,
    /// Bytes that wait to be sent for the first time, including headers that already exist.
    pub unsent_bytes: u64,
    /// Bytes that were never sent.
    pub left_out_bytes: u64,
    /// Bytes that were first sent after their deadline. Always zero for a time-lined peer.
    pub sent_late_bytes: u64,
    /// Bytes that were acknowledged after their deadline. Always zero for a time-lined peer,
    /// because the host does not wait for these acknowledgements.
    pub acknowledged_late_bytes: u64,
    /// Bytes of headers that were sent.
    pub header_bytes: u64,
}
