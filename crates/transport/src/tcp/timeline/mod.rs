//! Time-lined TCP: a stream in sections with deadlines.
//!
//! The application gives its stream in sections, each with the time after which it is worth
//! nothing. Up to then a section is delivered as TCP delivers anything; from then on what was not
//! sent is discarded, what was sent is not repeated, and the sender goes on with the next section.
//! Towards the network the flow stays what it was: the same recovery, the same controller, a packet
//! whenever TCP would send one.
//!
//! # In which order to read
//! | file | what it has | section of the paper |
//! | --- | --- | --- |
//! | this one | the idea, the two numberings, what the paper leaves open | 3, 5 |
//! | `timeline/line.rs`, `Line` | the list of deadlines, the lifetime timer, the jumps | 5.1, 5.2, 5.4 |
//! | `sender/obsolete.rs` | an expiry, and what answers a loss of obsolete data | figure 1, 5.5 |
//! | `sender/stream.rs`, `Stream` | what every sender knows of its bytes; asks `Line` where it has one | 5.4 |
//! | `receiver.rs`, `Receiver::on_update` | the receiver follows `seq_update` | 5.3 |
//! | `timeline/gaps.rs`, `Gaps` | the gaps that the application reads | 4, 5.3 |
//! | `codec/options.rs` | `seq_update` on the wire | 5.3 |
//!
//! Start with `Line::on_lifetime` and its caller, `Transfer::on_lifetime`.
//!
//! # Two numberings
//! A sequence number on the wire counts the bytes that the application gave, discarded ones
//! included, so that the receiver knows how much is missing and where. Windows count places: the
//! bytes that were sent or will be, without what was discarded. The sender reckons in places
//! throughout, and its time-line translates at the edge. The *logical window* of the paper, in
//! which obsolete data keeps its places, is then nothing but the window: {10..14, 20..24} on the
//! wire are ten places in a row.
//!
//! ```text
//! wire    1 ........ 14 |15 ... 19| 20 ...... 24      deadline of 10..19 passes when 14 was sent
//!         obsolete      |discarded| current
//! places  1 ........ 14 |         | 15 ...... 19
//!                       ^ a jump: at place 15, from 15 to 20
//! ```
//!
//! # What is kept
//! * the time-line list: the sections that are not obsolete, each with its deadline (section 5.1);
//! * the lifetime timer: the deadline of the oldest data in the sending window, which is that of
//!   the list's first section (5.2);
//! * the jumps over which acknowledgements may still come. They are the paper's vector of the
//!   highest sequence sent for each obsolete section (5.4); the last acknowledgement beside it is
//!   the connection's, because acknowledgements are cumulative: all sections before have none
//!   outstanding, all after have all.
//!
//! The receiver jumps to the `seq_update` that every segment carries, hands over what had arrived
//! beyond a hole, and records what is missing as gaps ([`Piece`]).
//!
//! # What the paper leaves open
//! * *A deadline passes with nothing sent of its section*: the whole section is a gap; one jump
//!   leads over as many sections as that holds for.
//! * *A section ends early*: the next one begins at once. A deadline ends a section, it does not
//!   begin one.
//! * *`seq_update` is lost, late or old*: each segment carries it, and one that says less than the
//!   receiver knows changes nothing. When nothing is left to send that could carry it, a segment
//!   without payload does, again and again at the pace of the persist timer until its number is
//!   acknowledged.
//! * *No section is left when a deadline passes*: figure 1 moves the window only where the list is
//!   not empty. Here it is moved behind what was given, so that a loss of obsolete data is never
//!   answered with obsolete data.
//! * *Sequence numbers wrap*: a receiver tells ahead from behind within half of the number space,
//!   so a sender takes no section that would end more than 2³⁰ bytes beyond what was acknowledged,
//!   `seq_update` is never further behind that, however long ago the last jump was, and a receiver
//!   follows nothing further ahead.
//! * *What a peer may say*: jumps and voids count on segments that lie within the window as it is
//!   after them. Two voids may be unknown while the segments that name them are lost: behind a void
//!   ahead of the expected number all that was offered is accepted, up to the buffer. Voids beyond
//!   a number of ranges are not remembered, since what follows them names them again.
//! * *A jump during a recovery*: it answers no retransmission, and behind it the packets that were
//!   in flight are acknowledged one by one, each below the recovery point. NewReno, and the counted
//!   pipe of ns-2's SACK, would take every one of them for a partial acknowledgement, and send more
//!   than the window. Once an acknowledgement has led over obsolete data, only what was lost and
//!   retransmitted in this recovery counts as repaired; NewReno finds the next hole by three
//!   duplicates. This costs a timeout where fewer than three packets follow the hole, which TCP's
//!   NewReno would repair at once. Without the blind spot the receiver jumps over what was answered
//!   for alone, and stands at the next hole as TCP's does: there every acknowledgement counts as a
//!   repair.
//! * *A retransmission timeout*: all obsolete places are given up with it, as TCP takes everything
//!   outstanding for lost; sending begins again with the lowest current packet.
//! * *A deadline during the way back from a timeout*: of the obsolete data only what was
//!   retransmitted keeps its places. The rest was answered for with the timeout, and is given up
//!   once all before it is acknowledged.
//! * *Round-trip samples*: a pseudo-retransmission is never timed, and an acknowledgement that
//!   leads from obsolete to current data is no sample of obsolete data, because a jump may have
//!   caused it. With timestamps the echo tells one copy from the other (RFC 7323, section 4), and
//!   counts unless it is older than the jump.
//! * *FIN*: it stands behind the last section and has no deadline. A FIN after an expiry carries
//!   `seq_update` as any segment does.
//! * *A closed window*: discarding needs none, and the probe carries `seq_update`. A jump takes
//!   nothing of the window: what was offered for data that will never come holds for what comes in
//!   its place.
//! * *The place of the lost packet*: when a loss of obsolete data is answered with a packet that
//!   had not been sent before, that packet takes the place of the lost one, so that as many are
//!   outstanding as with TCP. An acknowledgement that passes both counts one of them for the growth
//!   controller and for NewReno's deflation, as that of TCP's repetition does. Nor does it count
//!   what a timeout gave up.
//! * *The peer's window*: what is given up and missing makes room for as much. What is reported to
//!   have arrived of it takes the room that was offered for it.
//! * *An acknowledgement from before a jump, behind one that leads over it*: both are at the same
//!   place, and yet the first is old and no duplicate.
//! * *Deadlines out of order* (the B frames of section 4): unsent data whose time is over is passed
//!   over even while older data is current. The lifetime timer follows the oldest data alone, so
//!   the segments behind such a hole name it (`void`), and the receiver gives up nothing else.
//!
//! # Source
//! Mukherjee and Brecht, "Time-lined TCP for the TCP-friendly Delivery of Streaming Media", ICNP
//! 2000, sections 3 and 5.
//!
//! Differs from the paper in: 1. any recovery and any controller can be time-lined, not Reno alone;
//! 2. deadlines relative to the receiver ([`DeadlineClock::Receiver`]): half of the smoothed
//!    round-trip time is taken off, which the paper only mentions; 3.
//!    [`TimelineConfig::blind_spot`] off: the receiver is told of an obsolete packet only once its
//!    loss was answered, so that each loss is seen as TCP sees it, and the discarded bytes are
//!    named as a void meanwhile; 4. sent data of a section that expired before an older section did
//!    is repeated until the older one is acknowledged or obsolete; 5. a segment ends where its
//!    section does; 6. acknowledgements of an end that gives no sections carry no `seq_update`.

mod gaps;
mod line;

use comity_units::SeqNo;

pub(super) use gaps::Gaps;
pub(super) use line::{Line, Standing};

/// How a connection is time-lined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineConfig {
    /// Whether losses of obsolete data go unseen once the receiver has jumped, as in the paper
    /// (section 5.5, figure 4). Without it each of them is found and answered as TCP would.
    pub blind_spot: bool,
    /// Where deadlines are meant.
    pub clock: DeadlineClock,
}

impl TimelineConfig {
    /// As in the paper: the blind spot, and deadlines at the sender.
    pub const PAPER: Self = Self {
        blind_spot: true,
        clock: DeadlineClock::Sender,
    };
}

/// Where a deadline is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineClock {
    /// The time after which data is not sent (section 3).
    Sender,
    /// The time after which data that arrives is worth nothing: the sender stops half of its
    /// smoothed round-trip time before.
    Receiver,
}

/// `seq_update` of a segment, and the hole in front of its section where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqUpdate {
    /// The lowest number that the sender may still send: the receiver expects nothing below.
    pub expected: SeqNo,
    /// Numbers from `void_start` up to `void_end` that were never sent and never will be; empty for
    /// none.
    pub void_start: SeqNo,
    /// The number after the void.
    pub void_end: SeqNo,
}

impl SeqUpdate {
    /// An update that names no void.
    pub const fn to(expected: SeqNo) -> Self {
        Self {
            expected,
            void_start: expected,
            void_end: expected,
        }
    }

    /// Whether it names a void.
    pub fn has_void(&self) -> bool {
        self.void_start != self.void_end
    }
}

/// What the application of a receiving end finds next in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes arrived.
    Data {
        /// The position in the stream, which begins at 0.
        offset: u64,
        /// How many there are, at least 1.
        length: u64,
    },
    /// These bytes will not come.
    Gap {
        /// The position in the stream, which begins at 0.
        offset: u64,
        /// How many there are, at least 1.
        length: u64,
    },
}

/// Counters of a time-lined sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineStatistics {
    /// Sections given.
    pub sections: u64,
    /// Sections of which something was not acknowledged at their deadline.
    pub expired: u64,
    /// Jumps: times that sending went on beyond bytes never sent.
    pub jumps: u64,
    /// Bytes that were discarded before they were sent.
    pub discarded_bytes: u64,
    /// Bytes that were sent and not acknowledged when they became obsolete.
    pub obsolete_bytes: u64,
    /// Bytes that were retransmitted after their deadline, because they lie behind an older section
    /// that is current.
    pub retransmitted_obsolete_bytes: u64,
    /// Losses of obsolete data that were answered with current data sent before.
    pub pseudo_retransmissions: u64,
    /// Losses of obsolete data that were answered with a packet not sent before.
    pub replacements: u64,
    /// Segments that carried nothing but `seq_update`.
    pub notices: u64,
}

/// Counters of the receiving end of a time-lined stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GapStatistics {
    /// How often the expected number jumped.
    pub jumps: u64,
    /// Gaps that lie below the expected number.
    pub gaps: u64,
    /// The bytes in them.
    pub bytes: u64,
}

/// Why a section is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionError {
    /// The sending half is closed, or the end only receives.
    Closed,
    /// The stream would reach further beyond what is acknowledged than sequence numbers can tell.
    TooFarAhead {
        /// How far it would reach, in bytes.
        reach: u64,
    },
}

/// How far a time-lined stream may reach beyond what is acknowledged, in bytes.
pub const MAX_REACH: u64 = 1 << 30;

impl core::error::Error for SectionError {}

impl core::fmt::Display for SectionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Closed => write!(
                f,
                "section: the stream is closed, expected it open for sending"
            ),
            Self::TooFarAhead { reach } => write!(
                f,
                "section: it ends {reach} bytes beyond what is acknowledged, expected at most {MAX_REACH}"
            ),
        }
    }
}
