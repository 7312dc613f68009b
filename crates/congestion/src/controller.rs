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

    /// What the next packet should tell the receiver's half, if anything. Called once for each
    /// packet with data, right before its [`Event::Sent`]; on the packet-number transport not for
    /// packets that carry none.
    fn tag(&mut self, _now: Time) -> Tag {
        Tag::None
    }

    /// A tag as long as the one that [`Controller::tag`] would return now, and [`Tag::None`]
    /// exactly if that is: how much room a packet must keep for it. Its numbers mean nothing.
    fn upcoming_tag(&self) -> Tag {
        Tag::None
    }

    /// The capacity of the bottleneck, for controllers that know or estimate it: for reports.
    fn capacity(&self) -> Option<Rate> {
        None
    }
}

/// What a transport has to measure for a controller, because it costs a record for each packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Delivery-rate samples ([`Ack::sample`](crate::Ack::sample)) and [`Event::PacketLost`].
    ///
    /// [`Event::Ack`] is then reported for every acknowledgement that delivers something or shows a
    /// loss, also for selective ones and in a recovery; [`Ack::acked`](crate::Ack::acked) may be
    /// zero. BBR.
    pub rate_samples: bool,
    /// [`Event::InOrderAck`]. Libra.
    pub in_order_acks: bool,
    /// [`Event::PacketAcked`], for controllers that find losses by themselves. IFTP, RAP.
    pub packet_numbers: bool,
}

/// What a flow may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// How much payload may be in flight; [`Bytes::MAX`] for controllers that only pace.
    pub window: Bytes,
    /// How packets are spread in time.
    pub pacing: Pacing,
    /// The slow-start threshold, where the controller has one.
    pub ssthresh: Option<Bytes>,
    /// The phase, for traces and for the transport's own choices.
    pub phase: Phase,
    /// When the controller wants [`Event::Wakeup`], if ever: RAP's step, IFTP's round, TFRC's
    /// no-feedback timer.
    pub wakeup: Option<Time>,
    /// When the controller itself takes the silence of the path for a timeout, if it has a timer
    /// for that. The transport's probe (RFC 9002, section 6.2) comes no sooner: it would leave
    /// beside the controller's calendar, and its acknowledgement would end a silence that the
    /// controller counts. The probe may come with the expiry, which [`Event::Wakeup`] reports right
    /// after.
    pub no_feedback_deadline: Option<Time>,
    /// What a byte-sequence transport retransmits after the timeout that was reported last. Only a
    /// controller that keeps its window has a choice: outstanding data has no room in a window of a
    /// segment or two, unless it is taken for lost.
    pub timeout_repair: TimeoutRepair,
}

impl Default for Decision {
    /// No limit.
    fn default() -> Self {
        Self {
            window: Bytes::MAX,
            pacing: Pacing::Unpaced,
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
    /// Everything from the first segment outstanding on is taken for lost but for what is known to
    /// have arrived, and retransmitted as the window allows: RFC 5681, section 3.1, and what Tahoe
    /// and Reno do.
    #[default]
    GoBackN,
    /// The first segment outstanding alone, at once and whatever the window (RFC 6298, section
    /// 5.4); the rest goes on counting as in flight.
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
    /// At a rate, with up to `size` bytes back to back before the pause that they are worth: what a
    /// host hands to its network interface at once (BBR). A transport that sends packets one by one
    /// takes it for [`Pacing::Rate`].
    Bursts {
        /// How fast packets leave on the average.
        rate: Rate,
        /// How much leaves at once on the wire, at least a packet.
        size: Bytes,
    },
    /// A gap from the end of one packet to the start of the next. IFTP's G, packet spacing's `ps`.
    Gap(Span),
    /// A token bucket: no more than `rate` on the average, spaced by no less than `wire / peak`.
    /// The bucket holds up to `depth` tokens, and data that cannot wait may put it into debt by as
    /// much. A transport that cannot tell what can wait takes it for [`Pacing::Rate`] of `rate`.
    Bucket {
        /// How fast the bucket fills.
        rate: Rate,
        /// How fast it may be emptied.
        peak: Rate,
        /// The most tokens that it holds, and its largest debt.
        depth: Bytes,
    },
    /// The next packet leaves no earlier than this. The controller schedules each departure by
    /// itself and moves the time on with [`Event::Sent`]: Libra's randomly placed pairs.
    At(Time),
}

/// Where in its cycle a controller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Phase {
    /// Below the slow-start threshold: the window grows by what is acknowledged.
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
