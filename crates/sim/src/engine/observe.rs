//! Looking on while a run goes.

use comity_link::DropCause;
use comity_units::Time;

use super::packet::Packet;

/// Sees what happens. A generic parameter of the engine, so that what is not looked at costs
/// nothing.
///
/// Events of one link or one endpoint come in the order of their times. Events of different ones
/// may not: the engine computes a packet's way ahead where nothing else can interfere. A run with
/// [`super::RunOptions::collapse`] off computes nothing ahead of the next event but a packet's own
/// arrival.
pub trait Observer {
    /// Whether the observer looks at all.
    const ACTIVE: bool = true;

    /// A packet was handed to a link.
    fn on_link(&mut self, _link: u32, _event: &LinkEvent<'_>) {}

    /// An endpoint sent or received a packet, or its timer expired.
    fn on_flow(&mut self, _flow: u32, _event: &FlowEvent<'_>) {}
}

/// Looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {
    const ACTIVE: bool = false;
}

/// A packet was handed to a link: when, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct LinkEvent<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// When it was handed over.
    pub offered_at: Time,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left the queue at `departure` and comes out at `arrival`.
    Carried {
        /// The end of its transmission.
        departure: Time,
        /// When it comes out.
        arrival: Time,
        /// Whether it was marked.
        marked: bool,
    },
    /// It used the link until `departure` and was lost behind it.
    Lost {
        /// The end of its transmission.
        departure: Time,
    },
    /// It was not taken.
    Dropped(DropCause),
}

/// Something happened at an endpoint of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowEvent<'a> {
    /// When.
    pub now: Time,
    /// At the destination instead of the source.
    pub at_destination: bool,
    /// What.
    pub kind: FlowEventKind<'a>,
    /// The sender's state after it, for transports that have one.
    pub state: Option<SenderState>,
}

/// What happened at an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum FlowEventKind<'a> {
    /// A packet left.
    Sent(&'a Packet),
    /// A packet came in and was dealt with.
    Received(&'a Packet),
    /// A timer expired and was dealt with.
    Timer,
    /// So many bytes were handed to the application in order.
    Delivered(u64),
}

/// A sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderState {
    /// The congestion window in bytes.
    pub window: u64,
    /// The slow-start threshold in bytes.
    pub ssthresh: u64,
    /// What is outstanding, in bytes.
    pub in_flight: u64,
    /// The smoothed round-trip time in nanoseconds; zero before the first sample.
    pub srtt_ns: u64,
    /// The mean deviation of the round-trip time in nanoseconds.
    pub rtt_variation_ns: u64,
    /// The least round-trip time in nanoseconds.
    pub min_rtt_ns: u64,
    /// The last round-trip time in nanoseconds.
    pub latest_rtt_ns: u64,
    /// Segments retransmitted so far.
    pub retransmitted: u64,
    /// Timer expiries so far.
    pub timeouts: u64,
    /// Fast retransmits so far.
    pub fast_retransmits: u64,
    /// Whether a fast recovery is under way.
    pub is_recovering: bool,
    /// The capacity of the bottleneck in bits per second, for controllers that know or estimate it;
    /// zero without.
    pub capacity_bps: u64,
}
