//! What is handed to a link, and what comes of it.

use comity_units::{Bytes, Time};

/// What a link has to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Size on the wire in bytes, headers included.
    pub bytes: u32,
    /// Whether the sender understands congestion marks (ECT): a queue that marks drops the others.
    pub ecn_capable: bool,
    /// Which flow it belongs to. The two directions of a connection are two flows. Only FQ-CoDel
    /// looks at it.
    pub flow: u64,
}

/// What became of a packet.
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
    /// When its last bit left, rounded up to a whole nanosecond; [`Time::MAX`] when the link stays
    /// at rate zero for good.
    pub departure: Time,
    /// When it arrives at the other end; [`Time::MAX`] when it never departs.
    pub arrival: Time,
    /// Whether the queue marked it (CE) instead of dropping it.
    pub marked: bool,
    /// When a duplicate transmission arrives, never before the first.
    pub duplicate: Option<Time>,
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCause {
    /// Active queue management (RED, CoDel, FQ-CoDel, PIE) dropped it before the queue was full.
    EarlyDrop,
    /// A loss model hit it.
    Loss,
    /// The queue had no room for it, or (FQ-CoDel) gave its place to another when the limit was
    /// met.
    QueueFull,
    /// It is larger than the link takes.
    TooLarge,
}

/// What a link still has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Packets queued or in service, or `None` where the link keeps no record of single packets
    /// (an analytic link with an unlimited drop-tail queue).
    pub packets: Option<u32>,
    /// Bytes queued or in service. A packet in service counts whole; only where `packets` is `None`
    /// it counts with what is still to be sent, rounded up, and a link that has come to rest for
    /// good with a packet in it answers [`Bytes::MAX`].
    pub bytes: Bytes,
}
