//! The events that a transport reports to a controller.

use comity_units::{DataSize, PacketNumber, Span, Time};

use crate::{PacketLoss, RateSample, Report, Tag};

/// What happened to a flow. A transport reports each event when it happens and then reads the
/// [decision](crate::Controller::decision).
///
/// One acknowledgement can cause several events. They come in this order: [`Event::PacketLost`],
/// [`Event::Loss`], [`Event::PacketAcked`], [`Event::InOrderAck`], [`Event::Recovered`],
/// [`Event::Ack`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// A packet left. Reported for every packet that counts against the window.
    Sent(&'a Sent),
    /// New data was acknowledged.
    Ack(&'a Ack),
    /// An acknowledgement covered the next packets in order.
    ///
    /// Only for controllers with [`Needs::in_order_acks`](crate::Needs::in_order_acks).
    InOrderAck(&'a InOrderAck),
    /// An acknowledgement lists the packet `number`. The packets of one acknowledgement are
    /// reported in ascending order.
    ///
    /// Only for controllers with [`Needs::packet_numbers`](crate::Needs::packet_numbers), and only
    /// where the transport has packet numbers.
    PacketAcked {
        /// When the acknowledgement arrived.
        now: Time,
        /// The packet, as [`Sent::number`] named it.
        number: PacketNumber,
        /// When it arrived, if known: an acknowledgement carries the arrival time of its largest
        /// packet only.
        arrived_at: Option<Arrived>,
    },
    /// One packet was declared lost, in an episode or outside of one.
    ///
    /// Only for controllers with [`Needs::rate_samples`](crate::Needs::rate_samples).
    PacketLost {
        /// When the loss was declared.
        now: Time,
        /// What is known of the packet.
        loss: &'a PacketLoss,
    },
    /// Losses were declared, together, outside of any earlier loss episode.
    ///
    /// Reported once per episode: once per fast recovery on the byte-sequence transport, and once
    /// per congestion event on the packet-number transport (losses of packets sent before the last
    /// reaction belong to the same event).
    Loss(&'a Loss),
    /// The fast recovery that the last [`Loss`] began is over, and everything sent before it is
    /// acknowledged. Only where the transport has such a phase.
    Recovered,
    /// A partial acknowledgement covered this many bytes beyond the inflation of fast recovery, and
    /// the congestion window loses them for good. Only ns-2's variant of NewReno reports this; RFC
    /// 6582 restores the window. Controllers other than Reno and Libra ignore it.
    Deflated(DataSize),
    /// The retransmission timer expired (byte sequence) or persistent congestion was found
    /// (packets).
    Timeout(&'a Timeout),
    /// The last [`Loss`] or [`Timeout`] was spurious: the packets declared lost arrived late.
    /// Controllers that can undo their reaction do so (RFC 9438, section 4.9.2).
    ///
    /// Only if the transport detects it: by an acknowledgement of a packet declared lost, by D-SACK
    /// (RFC 3708) or by timestamps (RFC 3522).
    SpuriousLoss {
        /// When this was detected.
        now: Time,
    },
    /// The receiver's half reported: TCP-Real's wave level, TFRC's loss-event rate and receive
    /// rate, packet spacing's counts.
    Feedback(&'a Feedback<'a>),
    /// The time of [`Decision::wakeup`](crate::Decision::wakeup) has come.
    Wakeup(Time),
    /// The flow sends again after it was idle for longer than its retransmission timeout. Reno and
    /// CUBIC reduce the window, which is out of date (RFC 5681, section 4.1). Reported right before
    /// the first packet leaves.
    Idle(&'a Idle),
    /// The next packet is the last one for now: the source has no more data, or the peer's window
    /// is full. Reported right before the [tag](crate::Controller::tag) of that packet.
    AppLimited,
    /// The flow changed its path. This controller replaces one of the same kind, whose last tag
    /// this is. The receiver's half stays. The next tags show it that its measurements are void.
    /// This is the first event of such a controller.
    PathChange(Tag),
}

/// An acknowledgement of the next packets in order, which the arrival of the packet `number`
/// caused. That is the newest packet that it newly covers. The newly covered packets follow the
/// earlier acknowledged ones without a gap, and none of them was sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InOrderAck {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// The packet, as [`Sent::number`] named it.
    pub number: PacketNumber,
    /// When it arrived, if the receiver says so.
    pub arrived_at: Option<Arrived>,
}

/// When a packet arrived, on the clock of the receiver. Only differences have a meaning. They are
/// exact to one tick, also across a wrap of the peer's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The time, in whole ticks.
    pub at: Time,
    /// The tick of that clock: a microsecond on the packet-number transport.
    pub tick: Span,
}

/// New data was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Payload newly acknowledged, cumulatively or selectively.
    pub acked: DataSize,
    /// The round-trip time measured with this acknowledgement, when Karn's rule allows one.
    pub rtt: Option<Span>,
    /// Payload still in flight after this acknowledgement.
    pub in_flight: DataSize,
    /// Whether the flow had less to send than it was allowed. The acknowledgement then does not
    /// show that the path can carry more.
    pub app_limited: bool,
    /// Whether the flow is in a fast recovery. The window does not grow then.
    pub in_recovery: bool,
    /// How many of the newly acknowledged packets arrived with a congestion-experienced mark.
    pub marked: u32,
    /// How many packets this acknowledgement newly covers; 1 if the receiver acknowledges every
    /// packet.
    pub packets: u32,
    /// The delivery rate over the flight of the newest acknowledged packet, and the counts of
    /// losses, for controllers that [need](crate::Needs::rate_samples) it.
    pub sample: Option<RateSample>,
}

/// Losses were declared together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// When the loss was declared.
    pub now: Time,
    /// When the newest lost packet was sent. It distinguishes a new episode from an old one.
    pub sent_at: Time,
    /// Payload declared lost.
    pub lost: DataSize,
    /// Payload in flight when the loss was found, the lost part included: RFC 5681's FlightSize.
    pub in_flight: DataSize,
    /// The window in force: the minimum of the congestion window (with the inflation of a fast
    /// recovery) and the receiver's window. ns-2 and the papers of its time halve it instead of the
    /// flight.
    pub window: DataSize,
    /// How the loss was found.
    pub cause: LossCause,
    /// Whether the flow restarts with one segment instead of a reduced window, as Tahoe does.
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
    pub in_flight: DataSize,
    /// The window that was in force, as in [`Loss::window`].
    pub window: DataSize,
    /// How many times in a row the timer has expired, this time included.
    pub consecutive: u32,
    /// Whether a duplicate acknowledgement arrived since the acknowledgement last advanced or the
    /// timer last expired. TCP-Real then keeps its window on a timeout (its section 2.2: the bit
    /// beside the retransmission timer).
    pub duplicate_seen: bool,
}

/// The flow sends again after a pause in which everything was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    /// When the pause ends.
    pub now: Time,
    /// How long nothing was sent.
    pub pause: Span,
    /// The retransmission timeout; shorter than `pause`.
    pub timeout: Span,
    /// The initial window, which is the minimum window of a restart.
    pub initial_window: DataSize,
}

impl Idle {
    /// How often the window halves, as in Linux: once for every timeout of the pause after the
    /// first.
    pub fn halvings(&self) -> u32 {
        let timeout = self.timeout.as_nanos().max(1);
        u32::try_from(self.pause.as_nanos().saturating_sub(1) / timeout).unwrap_or(u32::MAX)
    }
}

/// A packet left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// When it left.
    pub now: Time,
    /// Its payload.
    pub payload: DataSize,
    /// Its size on the wire, for controllers that use transmission times (`τ` of IFTP).
    pub wire: DataSize,
    /// Its number: counts packets of this flow, retransmissions included.
    pub number: PacketNumber,
    /// Payload in flight, this packet included.
    pub in_flight: DataSize,
    /// Whether the flow has nothing more to send now.
    pub app_limited: bool,
}

/// The receiver's half reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback<'a> {
    /// When the report arrived.
    pub now: Time,
    /// What it says.
    pub report: &'a Report,
    /// The round-trip time measured with the packet that carried the report, if any.
    pub rtt: Option<Span>,
}
