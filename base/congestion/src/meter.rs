//! The receiver's half of an algorithm.

use core::fmt::Debug;

use comity_units::{DataSize, PacketNumber, Rate, Span, Time};

/// Measures arrivals at the receiver for the sender's controller.
///
/// The transport passes every arriving packet to the meter, in the order of arrival. It requests a
/// [`Report`] for each acknowledgement. A meter that has to report at certain times sets a wakeup
/// (TFRC once per round trip, packet spacing once per round). The transport then sends an
/// acknowledgement at that time.
pub trait Meter: Debug + Send {
    /// A packet arrived.
    fn on_arrival(&mut self, arrival: &Arrival);

    /// The report for the sender. A meter repeats a report of its current state, because
    /// acknowledgements get lost. It returns a report about an interval once, and [`Report::None`]
    /// until the next.
    fn report(&mut self, now: Time) -> Report;

    /// The next time at which the meter wants a report to be sent even if nothing arrives.
    fn wakeup(&self) -> Option<Time> {
        None
    }

    /// The time of [`Meter::wakeup`] has come. The transport sends [`Meter::report`] next.
    fn on_wakeup(&mut self, _now: Time) {}
}

/// A packet arrived at the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When it arrived.
    pub now: Time,
    /// Its number, where the transport has packet numbers; on the byte-sequence transport the
    /// sequence number of its first byte, unwrapped to 64 bits.
    pub number: PacketNumber,
    /// Its payload.
    pub payload: DataSize,
    /// Its size on the wire.
    pub wire: DataSize,
    /// Whether the network marked it (congestion experienced).
    pub marked: bool,
    /// The tag that the sender's controller put on it.
    pub tag: Tag,
}

/// What a packet carries from the sender's controller to the receiver's half.
///
/// Exhaustive, so that a new tag does not compile without an encoding on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tag {
    /// Nothing.
    #[default]
    None,
    /// TCP-Real: the packet belongs to this wave, which has this many segments in all.
    Wave {
        /// Counts the waves of a connection, wrapping.
        wave: u16,
        /// The segments in the wave, lost ones included.
        segments: u16,
        /// Which of them this is, from 1 to `segments`. The receiver has to recognise the last
        /// segment when it arrives. Counting fails if an earlier segment was lost.
        position: u16,
    },
    /// TFRC: the packet's sequence number, and the sender's round-trip time, by which losses are
    /// grouped (RFC 5348, section 3.2.1). The transport's packet numbers cannot be used: it skips
    /// some on purpose, and packets without data have numbers too.
    Numbered {
        /// Counts the packets, wrapping.
        number: u32,
        /// The round-trip time that the sender uses; zero while it has none.
        rtt: Span,
    },
    /// The sender's round-trip time: packet spacing counts per round of this length (its section
    /// 2.1).
    Round {
        /// Counts the sender's rounds, wrapping.
        round: u32,
        /// The round-trip time that the sender uses.
        rtt: Span,
    },
}

/// What the receiver reports to the sender.
///
/// Exhaustive like [`Tag`], and for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Report {
    /// Nothing.
    #[default]
    None,
    /// TCP-Real: the next wave's level, 1 to 24 (a window of two segments per level).
    Wave {
        /// The level.
        level: u16,
    },
    /// TFRC: RFC 5348, section 3.2.2.
    LossEvents {
        /// The loss event rate `p`, between 0 and 1.
        rate: f64,
        /// The receive rate `X_recv` over the last round trip.
        received: Rate,
    },
    /// Packet spacing: how many packets of a round arrived.
    Count {
        /// The round that was counted.
        round: u32,
        /// The packets of it that arrived.
        packets: u32,
    },
}
