//! What applications exchange with a connection in sections: plain data, ready for other languages.

use comity_units::Time;

/// A range of bytes with a deadline (TLTCP, section 4: `sendmsg`).
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The content, at least one byte.
    pub bytes: &'a [u8],
    /// The time after which it is not sent; [`Time::MAX`] for never.
    pub deadline: Time,
}

/// Whether a connection delivers sections by their deadlines at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Delivery {
    /// Both ends are time-lined: obsolete data is passed over, and the receiver learns of gaps.
    Timelined = 1,
    /// The peer is an ordinary TCP: whatever has a sequence number arrives. The host numbers data
    /// as late as it can, and sections that expire before are left out.
    Plain = 2,
}

/// What a piece of a stream is (TLTCP, section 4: `TL_DATA` and `TL_GAP`).
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
    /// The position in the stream, which begins at 0.
    pub offset: u64,
    /// The number of bytes, at least 1.
    pub length: u64,
}

/// How the host marks sections in the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Not at all: the stream is the content of the sections. A section is sent to its end once it
    /// has a sequence number. This suits media in which a decoder finds its place again.
    #[default]
    None,
    /// By the header of [`crate::framing`] before each section, or each part of one.
    Header,
}

/// Counters of the sections that an application submitted to one connection.
///
/// ```text
/// submitted = on_time + late + cut + left_out + open
/// ```
///
/// To a time-lined peer a section is on time if all of it was acknowledged at its deadline. It is
/// cut if only a part was sent or acknowledged, and never late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SectionStatistics {
    /// Submitted sections.
    pub submitted: u64,
    /// Their bytes, without headers.
    pub submitted_bytes: u64,
    /// Sections that were acknowledged completely before their deadline.
    pub on_time: u64,
    /// Sections that were acknowledged completely, but after their deadline.
    pub late: u64,
    /// Sections with sequence numbers for a part at the deadline; the rest was left out.
    pub cut: u64,
    /// Sections that had no sequence number at the deadline.
    pub left_out: u64,
    /// Sections that are waiting or in flight.
    pub open: u64,
    /// Bytes that wait to be sent for the first time, headers included as far as they exist.
    pub unsent_bytes: u64,
    /// Bytes that were never sent.
    pub left_out_bytes: u64,
    /// Bytes that were first sent after their deadline. Zero to a time-lined peer.
    pub sent_late_bytes: u64,
    /// Bytes that were acknowledged after their deadline. Zero to a time-lined peer, which does not
    /// wait for them.
    pub acknowledged_late_bytes: u64,
    /// Bytes of headers that were sent.
    pub header_bytes: u64,
}
