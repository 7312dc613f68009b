//! The controller: events in, one decision out.

use core::fmt::Debug;

use comity_units::{Bytes, PacketNumber, Rate, Span, Time};

use crate::{PacketLoss, RateSample, Report, Tag};

/// Decides how much and how fast one flow may send.
///
/// Pure: the time arrives in the event, the seed (if any) at construction. The transport calls the
/// `on_*` method of what happened and then reads [`Controller::decision`]; between two events the
/// decision does not change, except that [`Pacing::At`] refers to the next packet only.
///
/// All sizes are bytes on the byte-sequence transport's payload scale: a window of `n · mss` lets
/// `n` full segments be outstanding, whatever their headers.
pub trait Controller: Debug + Send {
    /// New data was acknowledged.
    fn on_ack(&mut self, ack: &Ack);

    /// Losses were declared, together, outside of any earlier loss episode.
    ///
    /// The transport calls this once per episode: once per fast recovery on the byte-sequence
    /// transport, and once per congestion event on the packet-number transport (losses of packets
    /// sent before the last reaction belong to the same event).
    fn on_loss(&mut self, loss: &Loss);

    /// The retransmission timer expired (byte sequence) or persistent congestion was found
    /// (packets).
    fn on_timeout(&mut self, timeout: &Timeout);

    /// What the [recovery](crate::Recovery::on_timeout) of a byte-sequence transport is to send
    /// again after this timeout. Called right after [`Controller::on_timeout`], with the same
    /// event. Only a controller that keeps its window has a choice: what is outstanding has no room
    /// in a window of a segment or two, unless it is taken for lost.
    fn timeout_repair(&self, _timeout: &Timeout) -> TimeoutRepair {
        TimeoutRepair::GoBackN
    }

    /// The arrival of one packet was acknowledged, at once and in order. Called right before
    /// [`Controller::on_ack`], for controllers that [ask](Controller::needs_in_order_acks).
    fn on_in_order_ack(&mut self, _answered: &Answered) {}

    /// The packet `number` arrived, by an acknowledgement that names packets one by one. Called
    /// before the [`Controller::on_ack`] of the same acknowledgement, once for each number, only
    /// for controllers that [ask](Controller::needs_packet_numbers) and only where the transport
    /// has packet numbers.
    fn on_packet_acked(&mut self, _now: Time, _number: PacketNumber) {}

    /// One packet was declared lost, in an episode or outside of one. Called before the
    /// [`Controller::on_ack`] of the acknowledgement that showed it, for controllers that
    /// [need](Controller::needs_rate_samples) rate samples.
    fn on_packet_lost(&mut self, _now: Time, _loss: &PacketLoss) {}

    /// A packet left. Called for every packet that counts against the window.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// The receiver's half reported: the one door for TCP-Real's wave level, TFRC's loss-event rate
    /// and receive rate, and packet spacing's counts.
    fn on_feedback(&mut self, _feedback: &Feedback<'_>) {}

    /// The fast recovery that the last [`Loss`] began is over and everything sent before it is
    /// acknowledged. Only called where the transport has such a phase.
    fn on_recovered(&mut self, _now: Time) {}

    /// The losses that the last [`Loss`] or [`Timeout`] spoke of did not happen: what was declared
    /// lost arrived late. Controllers that can go back to the state before do so (RFC 9438, section
    /// 4.9.2). Only called where the transport can tell: an acknowledgement of a packet declared
    /// lost, D-SACK (RFC 3708) or timestamps (RFC 3522).
    fn on_spurious_loss(&mut self, _now: Time) {}

    /// The flow sends again after it was idle for longer than its retransmission timeout:
    /// controllers whose window says nothing of the path any more reduce it (RFC 5681, section
    /// 4.1). Called right before the first packet leaves.
    fn on_restart(&mut self, _restart: &Restart) {}

    /// A partial acknowledgement covered `amount` more than fast recovery had inflated the window
    /// by, and the flow's recovery takes the difference from the congestion window for good. Only
    /// ns-2's NewReno does; controllers that need not reproduce it ignore it, as RFC 6582 does.
    fn on_deflate(&mut self, _amount: Bytes) {}

    /// The next time at which [`Controller::on_wakeup`] wants to be called, if any: RAP's step,
    /// IFTP's round, TFRC's no-feedback timer, BBR's probe timers.
    fn wakeup(&self) -> Option<Time> {
        None
    }

    /// The time asked for by [`Controller::wakeup`] has come.
    fn on_wakeup(&mut self, _now: Time) {}

    /// When the controller itself takes the silence of the path for a timeout, where it has a timer
    /// of its own for that and something runs it. The transport's probe (RFC 9002, section 6.2)
    /// comes no sooner: it would leave beside the controller's calendar, and its acknowledgement
    /// would end a silence that the controller counts. It may come with the expiry, of which the
    /// controller is told right after by [`Controller::on_wakeup`].
    fn no_feedback_deadline(&self) -> Option<Time> {
        None
    }

    /// What the next packet should tell the receiver's half, if anything. Called once for each
    /// packet with data, right before [`Controller::on_sent`]; on the packet-number transport not
    /// for those that carry none.
    fn tag(&mut self, _now: Time) -> Tag {
        Tag::None
    }

    /// A tag that takes as much room as the one that [`Controller::tag`] would return at `now`, and
    /// is [`Tag::None`] exactly if that is: how much room a packet must keep for it. Its numbers
    /// mean nothing.
    fn upcoming_tag(&self, _now: Time) -> Tag {
        Tag::None
    }

    /// The packet that leaves next is the last one for now: the source has no more, or the peer no
    /// room. Called right before the [`Controller::tag`] of that packet, for controllers whose
    /// receivers measure trains of packets (TCP-Real).
    fn on_app_limited(&mut self, _now: Time) {}

    /// This controller takes the place of another one of the same controller, which drove the flow
    /// on another path and whose last tag was `last`. The receiver's half is that of the other
    /// still, and learns from the tags that all that it measured is void. Called before anything
    /// else, where the transport can change its path.
    fn on_path_change(&mut self, _last: Tag) {}

    /// What the flow may do now.
    fn decision(&self) -> Decision;

    /// The capacity of the bottleneck, for controllers that know or estimate it: for reports.
    fn capacity(&self) -> Option<Rate> {
        None
    }

    /// Whether [`Ack::sample`] is needed. Delivery-rate samples cost the transport a record per
    /// packet, so it keeps them only for controllers that ask (BBR does).
    ///
    /// These hear of every acknowledgement that delivers something or shows a loss, also of
    /// selective ones and in a recovery; [`Ack::acked`] may then be zero.
    fn needs_rate_samples(&self) -> bool {
        false
    }

    /// Whether [`Controller::on_in_order_ack`] is needed, from the beginning on. The byte-sequence
    /// transport has no packet numbers in its acknowledgements and keeps a record for each packet
    /// in flight to give them (Libra).
    fn needs_in_order_acks(&self) -> bool {
        false
    }

    /// Whether [`Controller::on_packet_acked`] is needed: controllers that find losses by
    /// themselves (IFTP) ask.
    fn needs_packet_numbers(&self) -> bool {
        false
    }
}

/// The arrival of one packet brought an acknowledgement about: it is the newest of those that the
/// acknowledgement covers for the first time, which lie without a gap behind those acknowledged
/// before, and none of them was sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// The packet, as [`Sent::number`] named it.
    pub number: PacketNumber,
    /// When it arrived, where the receiver says so.
    pub arrived_at: Option<Arrived>,
}

/// When a packet arrived, on the clock of the receiver: only differences mean something, and they
/// are right within one tick either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The time, in whole ticks.
    pub at: Time,
    /// How finely that clock tells: a microsecond on the packet-number transport.
    pub tick: Span,
}

/// New data was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Payload newly acknowledged, cumulatively or selectively.
    pub acked: Bytes,
    /// The round-trip time measured with this acknowledgement, when Karn's rule allows one.
    pub rtt: Option<Span>,
    /// Payload still in flight after this acknowledgement.
    pub in_flight: Bytes,
    /// Whether the flow had less to send than it was allowed: growing then is not justified by
    /// evidence.
    pub app_limited: bool,
    /// Whether the flow is in a fast recovery (the acknowledgement repairs, it does not clock new
    /// data).
    pub in_recovery: bool,
    /// How many of the newly acknowledged packets arrived with a congestion-experienced mark.
    pub marked: u32,
    /// How many packets this acknowledgement newly covers; 1 when the receiver answers every
    /// packet.
    pub packets: u32,
    /// The delivery rate over the flight of the newest acknowledged packet, and the account of
    /// losses, for controllers that [ask](Controller::needs_rate_samples).
    pub sample: Option<RateSample>,
}

/// Losses were declared together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// When the loss was declared.
    pub now: Time,
    /// When the newest lost packet had been sent; tells a new episode from an old one.
    pub sent_at: Time,
    /// Payload declared lost.
    pub lost: Bytes,
    /// Payload in flight when the loss was found, the lost part included: RFC 5681's FlightSize.
    pub in_flight: Bytes,
    /// The window that was in force: the smaller of congestion window (with any fast-recovery
    /// inflation) and receiver window. ns-2 and the papers of its time halve this, not the flight.
    pub window: Bytes,
    /// How the loss was found.
    pub cause: LossCause,
    /// Whether the recovery begins again from one segment instead of half a window: Tahoe.
    pub restart: bool,
}

/// How a loss was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// Later packets were acknowledged: duplicate or selective acknowledgements, or packet
    /// threshold.
    Reordering,
    /// A packet was outstanding for too long while later ones were acknowledged (RFC 9002, 6.1.2).
    Delay,
    /// The network marked a packet instead of dropping it (RFC 3168).
    Mark,
}

/// The retransmission timer expired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeout {
    /// When the timer expired.
    pub now: Time,
    /// Payload that was in flight.
    pub in_flight: Bytes,
    /// The window that was in force, as in [`Loss::window`].
    pub window: Bytes,
    /// How many times in a row the timer has now expired; 1 for the first.
    pub consecutive: u32,
    /// Whether any duplicate acknowledgement arrived since the acknowledgement last advanced or the
    /// timer last expired. TCP-Real keeps its window on a timeout when one did (its section 2.2:
    /// the bit beside the retransmission timer).
    pub duplicate_seen: bool,
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

/// The flow sends again after a pause in which everything was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Restart {
    /// When the pause ends.
    pub now: Time,
    /// How long nothing was sent.
    pub idle: Span,
    /// The retransmission timeout; shorter than `idle`.
    pub timeout: Span,
    /// The window before the first acknowledgement, below which no restart goes.
    pub initial_window: Bytes,
}

impl Restart {
    /// How often a window halves that halves with every timeout of the pause, the first of them
    /// left out, as in Linux.
    pub fn halvings(&self) -> u32 {
        let timeout = self.timeout.as_nanos().max(1);
        u32::try_from(self.idle.as_nanos().saturating_sub(1) / timeout).unwrap_or(u32::MAX)
    }
}

/// A packet left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// When it left.
    pub now: Time,
    /// Its payload.
    pub payload: Bytes,
    /// Its size on the wire, for controllers that speak of transmission times (IFTP's τ).
    pub wire: Bytes,
    /// Its number: counts packets of this flow, retransmissions included.
    pub number: PacketNumber,
    /// Payload in flight, this packet included.
    pub in_flight: Bytes,
    /// Whether the flow has nothing more to send right now.
    pub app_limited: bool,
}

/// The receiver's half reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback<'a> {
    /// When the report arrived.
    pub now: Time,
    /// What it says.
    pub report: &'a Report,
    /// The round-trip time measured with the packet that carried it, if one was.
    pub rtt: Option<Span>,
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
    /// The phase, for traces and for the transport's own choices (Libra and BBR pace per phase).
    pub phase: Phase,
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
    /// What is not used is saved up to `depth`, and what cannot wait may overdraw the bucket by as
    /// much; a transport that cannot tell what can wait takes it for [`Pacing::Rate`] of `rate`.
    Bucket {
        /// How fast the bucket fills.
        rate: Rate,
        /// How fast it may be emptied.
        peak: Rate,
        /// How much it holds, and by how much it may be overdrawn.
        depth: Bytes,
    },
    /// The next packet leaves no earlier than this. The controller schedules each departure by
    /// itself and moves the time on in [`Controller::on_sent`]: Libra's randomly placed pairs.
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
