//! Observers of a run.

use comity_link::DropCause;
use comity_units::Time;

use super::packet::Packet;

/// Receives the events of a run. It is a generic parameter of the engine, so a run without an
/// observer costs nothing.
///
/// Events of one link or one endpoint come in the order of their times. Events of different ones
/// may not, because the engine computes the path of a packet ahead where nothing can interfere.
/// With [`super::RunOptions::collapse`] off, the engine computes only a packet's own arrival ahead.
pub trait Observer {
    /// Whether the observer receives events at all.
    const ACTIVE: bool = true;

    /// A packet was offered to a link.
    fn on_link(&mut self, _link: u32, _event: &LinkEvent<'_>) {}

    /// An endpoint sent or received a packet, or its timer expired.
    fn on_flow(&mut self, _flow: u32, _event: &FlowEvent<'_>) {}
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {
    const ACTIVE: bool = false;
}

/// A packet that was offered to a link, with its fate.
#[derive(Clone, Copy, Debug)]
pub struct LinkEvent<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// When it was offered.
    pub offered_at: Time,
    /// Its fate.
    pub fate: Fate,
}

/// The fate of a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left the queue at `departure` and arrives at `arrival`.
    Carried {
        /// The end of its transmission.
        departure: Time,
        /// When it arrives.
        arrival: Time,
        /// Whether it was marked.
        marked: bool,
    },
    /// It used the link until `departure` and was lost behind it.
    Lost {
        /// The end of its transmission.
        departure: Time,
    },
    /// The link dropped it.
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
    /// A packet arrived and was handled.
    Received(&'a Packet),
    /// A timer expired and was handled.
    Timer,
    /// This many bytes were delivered to the application in order.
    Delivered(u64),
}

/// A sender's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderState {
    /// The congestion window in bytes.
    pub window: u64,
    /// The slow-start threshold in bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The smoothed round-trip time in nanoseconds; zero before the first sample.
    pub srtt_ns: u64,
    /// The mean deviation of the round-trip time (RTTVAR) in nanoseconds.
    pub rtt_variation_ns: u64,
    /// The minimum round-trip time in nanoseconds.
    pub min_rtt_ns: u64,
    /// The last round-trip time in nanoseconds.
    pub latest_rtt_ns: u64,
    /// Segments retransmitted so far.
    pub retransmitted: u64,
    /// Timer expiries so far.
    pub timeouts: u64,
    /// Fast retransmits so far.
    pub fast_retransmits: u64,
    /// Whether the sender is in fast recovery.
    pub is_recovering: bool,
    /// The capacity of the bottleneck in bits per second; zero if the controller neither knows nor
    /// estimates it.
    pub capacity_bps: u64,
}
