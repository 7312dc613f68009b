//! The input of a link, and its result.

use comity_units::{DataSize, Time};

/// The relevant properties of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Size on the wire in bytes, headers included.
    pub bytes: u32,
    /// Whether the sender is ECN-capable (ECT): a queue with ECN marks such packets instead of
    /// dropping them.
    pub ecn_capable: bool,
    /// The flow of the packet. The two directions of a connection are two flows. Only FQ-CoDel uses
    /// it.
    pub flow: u64,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It crosses the link.
    Carried(Passage),
    /// It used the link and never arrives.
    Lost {
        /// When its service began.
        start: Time,
        /// When its last bit left the sender's side.
        departure: Time,
        /// Why it does not arrive.
        cause: DropCause,
    },
    /// It never used the link.
    Dropped(DropCause),
}

/// The passage of a packet over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When its service began: it was first in line and the link was free.
    pub start: Time,
    /// When its last bit left, rounded up to a whole nanosecond; [`Time::MAX`] if the link stays at
    /// rate zero for good.
    pub departure: Time,
    /// When it arrives at the other end; [`Time::MAX`] if it never departs.
    pub arrival: Time,
    /// Whether the queue marked it (CE) instead of dropping it.
    pub marked: bool,
    /// When a duplicate arrives, never before the first.
    pub duplicate: Option<Time>,
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// Active queue management (RED, CoDel, FQ-CoDel, PIE) dropped it before the queue was full.
    EarlyDrop,
    /// A loss model hit it.
    Loss,
    /// The queue had no room for it, or (FQ-CoDel) dropped it for another at the limit.
    QueueFull,
    /// It exceeds the size limit of the link.
    TooLarge,
}

/// The unsent backlog of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Packets queued or in service, or `None` if the link keeps no record of single packets (an
    /// analytic link with an unlimited drop-tail queue).
    pub packets: Option<u32>,
    /// Bytes queued or in service. A packet in service counts whole. If `packets` is `None`, only
    /// its unsent part counts, rounded up. A link that has stopped for good with a packet in
    /// service returns [`DataSize::MAX`].
    pub bytes: DataSize,
}
