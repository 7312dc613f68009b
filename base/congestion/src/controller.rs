//! The controller: events in, one decision out.

use core::fmt::Debug;

use comity_units::{Bytes, Rate, Span, Time};

use crate::{Event, Tag};

/// Decides how much and how fast one flow may send.
///
/// Pure: the time arrives in the event, the seed (if any) at construction. The transport reports
/// each [`Event`] and then reads [`Controller::decision`]; between two events the decision does not
/// change, except that [`Pacing::At`] refers to the next packet only.
///
/// All sizes are bytes on the byte-sequence transport's payload scale: a window of `n · mss` lets
/// `n` full segments be outstanding, whatever their headers.
pub trait Controller: Debug + Send {
    /// Something happened. A controller ignores the events that do not concern it.
    fn on_event(&mut self, event: Event<'_>);

    /// What the flow may do now.
    fn decision(&self) -> Decision;

    /// What the transport has to measure for this controller. Constant over its life.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The tag of the next packet for the receiver's half, if any. The transport calls it once for
    /// each packet with data, right before its [`Event::Sent`]. The packet-number transport does
    /// not call it for packets without data.
    fn tag(&mut self, _now: Time) -> Tag {
        Tag::None
    }

    /// A tag of the same length as [`Controller::tag`] would return now, so that a packet can
    /// reserve its room. Returns [`Tag::None`] exactly if `tag` would. The numbers in it have no
    /// meaning.
    fn upcoming_tag(&self) -> Tag {
        Tag::None
    }

    /// The capacity of the bottleneck, for reports. Returns `None` if the controller neither knows
    /// it nor believes an estimate.
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
    /// [`Ack::acked`](crate::Ack::acked) may be zero. BBR.
    pub rate_samples: bool,
    /// [`Event::InOrderAck`]. Libra.
    pub in_order_acks: bool,
    /// [`Event::PacketAcked`], for controllers that find losses by themselves or measure arrivals.
    /// GCC, IFTP, RAP, SCReAMv2.
    pub packet_numbers: bool,
    /// How the meter finds the loss events that it reports, so that its reports can be checked.
    /// TFRC.
    pub losses: LossHistory,
}

/// How a meter finds loss events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossHistory {
    /// So many later packets make a missing one lost.
    pub threshold: usize,
    /// The loss event rate is that of so many intervals; zero if the meter reports none.
    pub memory: usize,
}

/// What a flow may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// How much payload may be in flight; [`Bytes::MAX`] while only the pacing limits the flow.
    pub window: Bytes,
    /// How packets are spread in time.
    pub pacing: Pacing,
    /// The rate on the wire that the controller sets for its source, which follows it at once.
    /// Window and pacing may have room for bursts above it. `None` if they are the rate, the window
    /// per round trip or the pacing rate, on the average. GCC, SCReAMv2.
    pub target: Option<Rate>,
    /// The slow-start threshold, where the controller has one.
    pub ssthresh: Option<Bytes>,
    /// The phase, for traces and for the transport's own choices.
    pub phase: Phase,
    /// When the controller wants [`Event::Wakeup`], if ever: RAP's step, IFTP's round, TFRC's
    /// no-feedback timer.
    pub wakeup: Option<Time>,
    /// When the controller's own timer, if it has one, declares silence a timeout. The transport
    /// probes no sooner (RFC 9002, section 6.2): the probe would break the controller's calendar,
    /// and its acknowledgement would end the silence that the controller counts. The probe may
    /// leave at the expiry itself. [`Event::Wakeup`] reports the expiry right after.
    pub no_feedback_deadline: Option<Time>,
    /// What a byte-sequence transport retransmits after the last reported timeout. Only a
    /// controller that keeps its window has a choice. A window of a segment or two has no room for
    /// outstanding data, so the transport must take it for lost.
    pub timeout_repair: TimeoutRepair,
}

impl Default for Decision {
    /// No limit.
    fn default() -> Self {
        Self {
            window: Bytes::MAX,
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
    /// Everything from the first outstanding segment on counts as lost, except segments that are
    /// known to have arrived. It is retransmitted as the window allows (RFC 5681, section 3.1;
    /// Tahoe and Reno).
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
    /// At a rate; the pacer spaces starts by `wire / rate`. RAP, TFRC.
    Rate(Rate),
    /// At a rate, with up to `size` bytes back to back and then a pause of `size / rate`. BBR's
    /// hosts hand bursts to the network interface. A transport that sends single packets treats it
    /// as [`Pacing::Rate`].
    Bursts {
        /// The average rate.
        rate: Rate,
        /// The bytes on the wire of a burst, at least one packet.
        size: Bytes,
    },
    /// A gap from the end of one packet to the start of the next. IFTP's G, packet spacing's `ps`.
    Gap(Span),
    /// A token bucket: at most `rate` on average, with packets spaced by at least `wire / peak`.
    /// The bucket holds up to `depth` tokens, and urgent data may borrow as many. A transport that
    /// does not know which data is urgent treats it as [`Pacing::Rate`] of `rate`.
    Bucket {
        /// The rate at which the bucket fills.
        rate: Rate,
        /// How fast it may be emptied; with [`Rate::MAX`] at once, however much time there is.
        peak: Rate,
        /// The most tokens that it holds, and its largest debt.
        depth: Bytes,
        /// The average rate that the losses and delays of the path allow; [`Rate::MAX`] before any.
        /// `rate` is lower at the start of a flow, after a silence, and where the source uses
        /// little: nothing of that says what the path carries.
        fair: Rate,
        /// The most that `rate` may be after what the flow has used so far.
        proven: Rate,
    },
    /// The next packet leaves no earlier than this. The controller schedules each departure and
    /// advances the time with [`Event::Sent`]: Libra's randomly placed pairs.
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
    /// The controller holds its rate: no evidence for growing, none for shrinking.
    Steady,
    /// The controller drains or probes on purpose (BBR's cycles, damped packet spacing's return).
    Probing,
}
