//! Time-lined TCP: a stream in sections with deadlines.
//!
//! The application submits its stream in sections, each with a deadline. Until then a section is
//! delivered as any TCP data. Afterwards its unsent data is discarded, its sent data is not
//! retransmitted, and the sender continues with the next section. Towards the network the flow does
//! not change: it has the same recovery and controller, and sends a packet whenever TCP would send
//! one.
//!
//! # Reading order
//! | file | content | section of the paper |
//! | --- | --- | --- |
//! | this one | the idea, the two numberings, the points that the paper leaves open | 3, 5 |
//! | `timeline/line.rs`, `Line` | the list of deadlines, the lifetime timer, the jumps | 5.1, 5.2, 5.4 |
//! | `sender/obsolete.rs` | an expiry, and the answer to a loss of obsolete data | figure 1, 5.5 |
//! | `sender/stream.rs`, `Stream` | the offsets of every sender, with a `Line` on a time-lined stream | 5.4 |
//! | `receiver.rs`, `Receiver::on_update` | the receiver follows `seq_update` | 5.3 |
//! | `timeline/gaps.rs`, `Gaps` | the gaps that the application reads | 4, 5.3 |
//! | `codec/options.rs` | `seq_update` on the wire | 5.3 |
//!
//! Start with `Line::on_lifetime` and its caller, `Transfer::on_lifetime`.
//!
//! # Two numberings
//! A sequence number on the wire counts all submitted bytes, discarded ones included, so the
//! receiver knows how much is missing and where. Windows count *stream offsets*: the bytes that
//! were sent or will be, without the discarded ones. The sender uses stream offsets throughout, and
//! its time-line translates them to and from *wire offsets* at the edge. The *logical window* of
//! the paper, in which obsolete data keeps its space, then equals the window: {10..14, 20..24} on
//! the wire are ten consecutive stream offsets.
//!
//! ```text
//! wire    1 ........ 14 |15 ... 19| 20 ...... 24      deadline of 10..19 passes when 14 was sent
//!         obsolete      |discarded| current
//! stream  1 ........ 14 |         | 15 ...... 19
//!                       ^ a jump: at offset 15, from 15 to 20
//! ```
//!
//! # State
//! * the time-line list: the sections that are not obsolete, each with its deadline (section 5.1);
//! * the lifetime timer: the deadline of the oldest data in the sending window, which is that of
//!   the list's first section (5.2);
//! * the jumps over which acknowledgements may still arrive. They are the paper's vector of the
//!   highest sequence sent for each obsolete section (5.4). The paper's last acknowledgement is
//!   that of the connection, because acknowledgements are cumulative: no bytes of the sections
//!   before it are outstanding, and all bytes of the sections after it are.
//!
//! The receiver jumps to the `seq_update` that every segment carries. It delivers data that arrived
//! beyond a hole, and records missing data as gaps ([`Piece`]).
//!
//! # Points that the paper leaves open
//! * *A deadline passes with nothing sent of its section*: the whole section is a gap. One jump
//!   passes over as many such sections as follow.
//! * *A section ends early*: the next one begins at once. A deadline ends a section, it does not
//!   begin one.
//! * *`seq_update` is lost, late or old*: each segment carries it, and an older one changes nothing
//!   at the receiver. If no data remains to carry it, a segment without payload does, at the pace
//!   of the persist timer until its number is acknowledged.
//! * *No section is left when a deadline passes*: figure 1 moves the window only if the list is not
//!   empty. Here the window moves to the end of the submitted data. A loss of obsolete data is
//!   therefore never answered with obsolete data.
//! * *Sequence numbers wrap*: a receiver distinguishes ahead from behind within half of the number
//!   space. A sender therefore refuses a section that would end more than 2³⁰ bytes beyond the
//!   acknowledgement. `seq_update` is never further behind the acknowledgement than that, however
//!   old the last jump, and a receiver follows no number further ahead.
//! * *Limits on the peer*: a jump or a void counts only if its segment lies within the window after
//!   the jump or the void is applied. Two voids may be unknown while the segments that name them
//!   are lost. Behind a void ahead of the expected number, the receiver therefore accepts the whole
//!   offered window, up to the buffer. It remembers a limited number of ranges; later segments name
//!   a forgotten void again.
//! * *A jump during a recovery*: it answers no retransmission, and behind it the packets in flight
//!   are acknowledged one by one, each below the recovery point. NewReno, and the counted pipe of
//!   ns-2's SACK, would take each for a partial acknowledgement and send more than the window. Once
//!   an acknowledgement has passed obsolete data, only data that was lost and retransmitted in this
//!   recovery counts as repaired. NewReno finds the next hole by three duplicates. This costs a
//!   timeout if fewer than three packets follow the hole, which TCP's NewReno would repair at once.
//!   Without the blind spot, the receiver jumps only over answered losses and stops at the next
//!   hole as TCP's does; every acknowledgement then counts as a repair.
//! * *A retransmission timeout*: the sender abandons all obsolete data, as TCP marks everything
//!   outstanding as lost. Sending restarts with the lowest current packet.
//! * *A deadline during the recovery from a timeout*: of the obsolete data, only retransmitted data
//!   keeps its window space. The timeout answered the rest, and the sender abandons it once all
//!   data before it is acknowledged.
//! * *Round-trip samples*: a pseudo-retransmission is never timed. An acknowledgement that passes
//!   from obsolete to current data is no sample of obsolete data, because a jump may have caused
//!   it. With timestamps, the echo identifies the transmission (RFC 7323, section 4), and counts
//!   unless it is older than the jump.
//! * *FIN*: it follows the last section and has no deadline. A FIN after an expiry carries
//!   `seq_update` as any segment does.
//! * *A closed window*: discarding needs no window, and the probe carries `seq_update`. A jump uses
//!   no window: the window offered for the missing data applies to its successors.
//! * *The window space of a lost packet*: a new packet that answers a loss of obsolete data takes
//!   over the space of the lost one, so as much is outstanding as with TCP. An acknowledgement that
//!   passes both counts one of them for the congestion controller and for NewReno's deflation, as
//!   the acknowledgement of TCP's retransmission does. It does not count data that a timeout
//!   abandoned.
//! * *The peer's window*: abandoned data that is missing makes room for as much. Abandoned data
//!   that the peer reports as arrived uses the room offered for it.
//! * *An acknowledgement from before a jump arrives after one that passes it*: both have the same
//!   stream offset, yet the first is an old acknowledgement and not a duplicate.
//! * *An acknowledgement from beyond a jump*: it releases the obsolete data before the jump, so
//!   that the second loss of figure 4 does not slow the sender down. By another reading it does not
//!   ([`TimelineConfig::holds_passed`]).
//! * *Deadlines out of order* (the B frames of section 4): expired unsent data is passed over even
//!   while older data is current. The lifetime timer follows the oldest data alone, so the segments
//!   behind such a hole name it (`void`), and the receiver abandons nothing else.
//!
//! # Source
//! Mukherjee and Brecht, "Time-lined TCP for the TCP-friendly Delivery of Streaming Media", ICNP
//! 2000, sections 3 and 5.
//!
//! Differs from the paper in: 1. any recovery and any controller can be time-lined, not Reno
//! alone; 2. deadlines relative to the receiver ([`DeadlineClock::Receiver`]): half of the smoothed
//! round-trip time is subtracted, which the paper only mentions; 3. [`TimelineConfig::blind_spot`]
//! off: the receiver jumps over an obsolete packet only after its loss was answered. The sender
//! then detects each loss as TCP does, and names the discarded bytes as a void meanwhile; 4. sent
//! data of a section that expired before an older section is retransmitted until the older one is
//! acknowledged or obsolete; 5. a segment ends with its section; 6. acknowledgements of an end
//! without sections carry no `seq_update`.

mod gaps;
mod line;

use comity_units::SeqNo;

pub(super) use gaps::Gaps;
pub(super) use line::{Line, Standing};

/// How a connection is time-lined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineConfig {
    /// Whether losses of obsolete data go undetected once the receiver has jumped, as in the paper
    /// (section 5.5, figure 4). Without it, the sender detects and answers each of them as TCP
    /// would.
    pub blind_spot: bool,
    /// With the blind spot, and without SACK: whether obsolete data that its own section's
    /// acknowledgements have not passed keeps its space in the window until a timeout. This is a
    /// reading of section 5.4 of the paper, where such acknowledgements move the window. By it,
    /// losses before a jump end in timeouts (section 6.2.4). A flow that ends or pauses then has
    /// one more timeout.
    pub holds_passed: bool,
    /// Whether acknowledgements of obsolete data give round-trip samples, as those of other data
    /// do. The paper does not say: in section 5.4 they only move the window.
    pub samples_obsolete: bool,
    /// Whether the lifetime timer expires on the ticks of the retransmission timer, at the first
    /// tick at or after the deadline. A reading of section 5.2 of the paper: it "counts down in the
    /// same fashion as the TCP timers". No effect with ticks of 1 ns.
    pub lifetime_on_tick: bool,
    /// Where deadlines apply.
    pub clock: DeadlineClock,
}

impl TimelineConfig {
    /// As in the paper: the blind spot, and deadlines at the sender.
    pub const PAPER: Self = Self {
        blind_spot: true,
        holds_passed: false,
        samples_obsolete: true,
        lifetime_on_tick: false,
        clock: DeadlineClock::Sender,
    };
}

/// Where a deadline applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineClock {
    /// The time after which data is not sent (section 3).
    Sender,
    /// The time after which data is useless on arrival: the sender stops half of its smoothed
    /// round-trip time earlier.
    Receiver,
}

/// The `seq_update` of a segment, and the hole before its section if one exists.
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

/// The next piece of a stream for the receiving application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// These bytes arrived.
    Data {
        /// The position in the stream, which begins at 0.
        offset: u64,
        /// The number of bytes, at least 1.
        length: u64,
    },
    /// These bytes will not arrive.
    Gap {
        /// The position in the stream, which begins at 0.
        offset: u64,
        /// The number of bytes, at least 1.
        length: u64,
    },
}

/// Counters of a time-lined sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineStatistics {
    /// Submitted sections.
    pub sections: u64,
    /// Sections not completely acknowledged at their deadline.
    pub expired: u64,
    /// Jumps: times that sending skipped unsent bytes.
    pub jumps: u64,
    /// Bytes discarded before they were sent.
    pub discarded_bytes: u64,
    /// Bytes sent but unacknowledged when they became obsolete.
    pub obsolete_bytes: u64,
    /// Bytes retransmitted after their deadline, because they lie behind an older section that is
    /// current.
    pub retransmitted_obsolete_bytes: u64,
    /// Losses of obsolete data answered with current data sent before.
    pub pseudo_retransmissions: u64,
    /// Losses of obsolete data answered with a new packet.
    pub replacements: u64,
    /// Segments that carried only `seq_update`.
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

/// Why a section was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionError {
    /// The stream is closed for sending, or the end only receives.
    Closed,
    /// The section would end further beyond the acknowledgement than sequence numbers can express.
    TooFarAhead {
        /// How far it would reach, in bytes.
        reach: u64,
    },
}

/// How far a time-lined stream may reach beyond the acknowledgement, in bytes.
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
                "section: it ends {reach} bytes beyond the acknowledgement, expected at most {MAX_REACH}"
            ),
        }
    }
}
