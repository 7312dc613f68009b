//! Observers of a run.

use std::sync::atomic::{AtomicBool, Ordering};

use comity_frames::FrameType;
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

    /// Whether the run ends now, early. The engine calls this before every event. The report of
    /// such a run has no meaning.
    fn is_stopped(&self) -> bool {
        false
    }

    /// A queued link took a packet into its queue. Its fate follows in [`Observer::on_link`],
    /// unless the run ends before.
    fn on_queued(&mut self, _link: u32, _token: u32, _now: Time, _packet: &Packet) {}

    /// The fate of a packet that was offered to a link.
    fn on_link(&mut self, _link: u32, _event: &LinkEvent<'_>) {}

    /// An endpoint sent or received a packet, or its timer expired.
    fn on_flow(&mut self, _flow: u32, _event: &FlowEvent<'_>) {}

    /// The receiver of a flow of sections, or of time-lined TCP, has a section or a gap.
    fn on_section(&mut self, _flow: u32, _event: &SectionEvent) {}
}

/// Both observe.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const ACTIVE: bool = A::ACTIVE || B::ACTIVE;

    fn is_stopped(&self) -> bool {
        self.0.is_stopped() || self.1.is_stopped()
    }

    fn on_queued(&mut self, link: u32, token: u32, now: Time, packet: &Packet) {
        self.0.on_queued(link, token, now, packet);
        self.1.on_queued(link, token, now, packet);
    }

    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        self.0.on_link(link, event);
        self.1.on_link(link, event);
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        self.0.on_flow(flow, event);
        self.1.on_flow(flow, event);
    }

    fn on_section(&mut self, flow: u32, event: &SectionEvent) {
        self.0.on_section(flow, event);
        self.1.on_section(flow, event);
    }
}

/// A borrowed observer observes.
impl<A: Observer> Observer for &mut A {
    const ACTIVE: bool = A::ACTIVE;

    fn is_stopped(&self) -> bool {
        (**self).is_stopped()
    }

    fn on_queued(&mut self, link: u32, token: u32, now: Time, packet: &Packet) {
        (**self).on_queued(link, token, now, packet);
    }

    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        (**self).on_link(link, event);
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        (**self).on_flow(flow, event);
    }

    fn on_section(&mut self, flow: u32, event: &SectionEvent) {
        (**self).on_section(flow, event);
    }
}

/// It observes, if it is there.
impl<A: Observer> Observer for Option<A> {
    fn is_stopped(&self) -> bool {
        self.as_ref().is_some_and(Observer::is_stopped)
    }

    fn on_queued(&mut self, link: u32, token: u32, now: Time, packet: &Packet) {
        if let Some(observer) = self {
            observer.on_queued(link, token, now, packet);
        }
    }

    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        if let Some(observer) = self {
            observer.on_link(link, event);
        }
    }

    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        if let Some(observer) = self {
            observer.on_flow(flow, event);
        }
    }

    fn on_section(&mut self, flow: u32, event: &SectionEvent) {
        if let Some(observer) = self {
            observer.on_section(flow, event);
        }
    }
}

/// Ends the run when the flag is set, and observes nothing.
impl Observer for &AtomicBool {
    const ACTIVE: bool = false;

    fn is_stopped(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
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
    /// Identifies the packet while a link holds it.
    pub token: u32,
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
        /// The start of its transmission.
        start: Time,
        /// The end of its transmission.
        departure: Time,
        /// When it arrives.
        arrival: Time,
        /// Whether it was marked.
        marked: bool,
        /// When the duplicate arrives that the link made, if any.
        duplicate: Option<Time>,
    },
    /// It used the link until `departure`, and was then lost.
    Lost {
        /// The start of its transmission.
        start: Time,
        /// The end of its transmission.
        departure: Time,
    },
    /// The link dropped it.
    Dropped(DropCause),
}

impl Fate {
    /// Its name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Carried { marked: true, .. } => "marked",
            Self::Carried { .. } => "carried",
            Self::Lost { .. } => "lost",
            Self::Dropped(DropCause::QueueFull) => "dropped_full",
            Self::Dropped(DropCause::EarlyDrop) => "dropped_early",
            Self::Dropped(DropCause::Loss) => "lost_before",
            Self::Dropped(DropCause::TooLarge) => "dropped_large",
        }
    }

    /// The end of its transmission, if the link transmitted it.
    pub const fn departure(&self) -> Option<Time> {
        match *self {
            Self::Carried { departure, .. } | Self::Lost { departure, .. } => Some(departure),
            Self::Dropped(_) => None,
        }
    }

    /// When it arrives, if it does.
    pub const fn arrival(&self) -> Option<Time> {
        match *self {
            Self::Carried { arrival, .. } => Some(arrival),
            Self::Lost { .. } | Self::Dropped(_) => None,
        }
    }
}

/// The fate of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionEvent {
    /// When the receiver knew the fate.
    pub now: Time,
    /// The type of its frame.
    pub frame_type: FrameType,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its deadline; [`Time::MAX`] without one.
    pub deadline: Time,
    /// When it was complete; `None` if bytes of it never arrive.
    pub completed: Option<Time>,
}

/// Something happened at an endpoint of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowEvent<'a> {
    /// When it happened.
    pub now: Time,
    /// Whether it happened at the destination, not at the source.
    pub at_destination: bool,
    /// What happened.
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
    /// The capacity of the bottleneck in bits per second; zero if the controller has none.
    pub capacity_bps: u64,
}
