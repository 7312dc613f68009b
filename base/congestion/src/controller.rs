//! The controller: events in, one decision out.

use core::fmt::Debug;

use comity_units::{DataSize, Rate, Span, Time};

use crate::{Event, Tag};

/// Decides how much and how fast one flow may send.
///
/// A controller is a pure state machine: the event carries the time, and the constructor takes the
/// seed, if any. The transport reports each [`Event`] and then reads [`Controller::decision`];
/// between two events the decision does not change, except that [`Pacing::At`] refers to the next
/// packet only.
///
/// All sizes are bytes on the scale of `mss` unless they are said to be on the wire: a window of
/// `n · mss` allows `n` full segments in flight, whatever the headers of lower layers.
pub trait Controller: Debug + Send {
    /// Something happened. A controller ignores the events that do not concern it.
    fn on_event(&mut self, event: Event<'_>);

    /// What the flow may do now.
    fn decision(&self) -> Decision;

    /// What the transport has to measure for this controller. Constant over its life, except
    /// [`Needs::in_order_acks`]: the packet-number transport reads that at each acknowledgement,
    /// the byte-sequence transport once at the start.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The tag that the next packet carries to the receiver's half, if any. The transport calls
    /// this once for each packet with data, right before its [`Event::Sent`].
    fn tag(&mut self, _now: Time) -> Tag {
        Tag::None
    }

    /// A tag of the same length as [`Controller::tag`] would return now, so that a packet can
    /// reserve space for it. Returns [`Tag::None`] exactly if `tag` would. The numbers in it have
    /// no meaning.
    fn upcoming_tag(&self) -> Tag {
        Tag::None
    }

    /// The capacity of the bottleneck, for reports. Returns `None` if the controller has no
    /// confirmed estimate.
    fn capacity(&self) -> Option<Rate> {
        None
    }
}

/// What a transport has to measure for a controller, because it costs a record for each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Delivery-rate samples ([`Ack::sample`](crate::Ack::sample)) and [`Event::PacketLost`].
    ///
    /// The transport then reports [`Event::Ack`] for every acknowledgement that delivers something
    /// or shows a loss, also for selective ones and in a recovery.
    /// [`Ack::acked`](crate::Ack::acked) may be zero. BBR, SCReAMv2.
    pub rate_samples: bool,
    /// [`Event::InOrderAck`]. Libra, and steady at the start of a flow.
    pub in_order_acks: bool,
    /// [`Event::PacketAcked`], for controllers that find losses by themselves or measure arrivals.
    /// GCC, IFTP, RAP, SCReAMv2.
    pub packet_numbers: bool,
    /// How the meter finds the loss events that it reports, so that the transport can check its
    /// reports. TFRC.
    pub losses: LossHistory,
}

/// How a meter finds loss events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossHistory {
    /// A missing packet is lost after this many later packets.
    pub threshold: usize,
    /// The number of loss intervals in the loss event rate; zero if the meter reports no rate.
    pub memory: usize,
}

/// What a flow may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// How much payload may be in flight; [`DataSize::MAX`] while only the pacing limits the flow.
    pub window: DataSize,
    /// How packets are spread in time.
    pub pacing: Pacing,
    /// The rate on the wire that the source should send at from now on. Window and pacing may allow
    /// bursts above it. `None` if the controller sets no target: the average rate is then that of
    /// the window or the pacing. GCC, SCReAMv2.
    pub target: Option<Rate>,
    /// The slow-start threshold, where the controller has one.
    pub ssthresh: Option<DataSize>,
    /// The phase, for traces and for the transport's own choices.
    pub phase: Phase,
    /// When the controller wants [`Event::Wakeup`], if ever: RAP's step, IFTP's round, TFRC's
    /// no-feedback timer.
    pub wakeup: Option<Time>,
    /// When the controller's own no-feedback timer expires, if it has one. The transport sends no
    /// probe (RFC 9002, section 6.2) before that time: the probe would break the controller's
    /// schedule, and its acknowledgement would restart the timer. At the expiry the transport may
    /// send a probe, and then reports [`Event::Wakeup`].
    pub no_feedback_deadline: Option<Time>,
    /// What a byte-sequence transport retransmits after the last reported timeout. Only a
    /// controller that keeps its window after a timeout can choose. A window of one or two segments
    /// has no room for outstanding data, so the transport must treat that data as lost.
    pub timeout_repair: TimeoutRepair,
}

impl Default for Decision {
    /// No limit.
    fn default() -> Self {
        Self {
            window: DataSize::MAX,
            pacing: Pacing::Unpaced,
            target: None,
            ssthresh: None,
            phase: Phase::SlowStart,
            wakeup: None,
            no_feedback_deadline: None,
            timeout_repair: TimeoutRepair::GoBackN,
        }
    }
}

/// What is retransmitted when the retransmission timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimeoutRepair {
    /// Everything from the first outstanding segment on, as the window allows. It counts as lost,
    /// except segments that are known to have arrived (RFC 5681, section 3.1; Tahoe and Reno).
    #[default]
    GoBackN,
    /// Only the first outstanding segment, at once and whatever the window (RFC 6298, section 5.4).
    /// The rest still counts as in flight.
    FirstSegment,
}

/// How packets are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Pacing {
    /// As fast as the window opens: the acknowledgements are the clock.
    #[default]
    Unpaced,
    /// At a rate: packets start `wire / rate` apart. RAP, TFRC.
    Rate(Rate),
    /// At a rate, with up to `size` bytes back to back and then a pause of `size / rate`. BBR's
    /// hosts hand bursts to the network interface. A transport that sends single packets treats it
    /// as [`Pacing::Rate`].
    Bursts {
        /// The average rate.
        rate: Rate,
        /// The bytes on the wire of a burst, at least one packet.
        size: DataSize,
    },
    /// A gap from the end of one packet to the start of the next: `G` of IFTP, `ps` of packet
    /// spacing.
    Gap(Span),
    /// A token bucket: at most `rate` on average, with packets spaced by at least `wire / peak`.
    /// The bucket holds up to `depth` tokens, and urgent data may borrow as many. A transport that
    /// does not know which data is urgent treats it as [`Pacing::Rate`] of `rate`.
    Bucket {
        /// The rate at which the bucket fills.
        rate: Rate,
        /// The rate at which it may be emptied. With [`Rate::MAX`] all tokens may be spent at once.
        peak: Rate,
        /// The most tokens that it holds, and its largest debt.
        depth: DataSize,
        /// The average rate that the losses and delays of the path allow; [`Rate::MAX`] before any.
        /// `rate` is lower at the start of a flow, after a silence, and while the source sends
        /// little. None of these limits is one of the path.
        fair: Rate,
        /// The upper bound of `rate` from the rate that the flow has used so far.
        proven: Rate,
    },
    /// The next packet leaves no earlier than this. The controller schedules each departure and
    /// advances the time with [`Event::Sent`]: Libra's pairs at random times.
    At(Time),
}

/// The phase of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Phase {
    /// Below the slow-start threshold: the window grows by the acknowledged data.
    #[default]
    SlowStart,
    /// Above it: the window grows by about one segment per round trip, or by the controller's own
    /// curve.
    CongestionAvoidance,
    /// The controller holds its rate.
    Steady,
    /// The controller drains the queue or probes the path (BBR's cycle, damped packet spacing after
    /// a loss).
    Probing,
}
