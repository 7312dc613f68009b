//! IFTP, the Internet-friendly transport protocol: a gap between packets that emulates TCP's
//! window.
//!
//! Time is divided into rounds of one smoothed round trip `R`. In each round the sender sends one
//! sweep of `n` packets, a gap `G` apart. From round to round `n` changes as TCP's window would: it
//! doubles below a threshold, grows by one above it, halves after a loss, and is one after a
//! timeout. Nothing is retransmitted.
//!
//! ```text
//!  start ─▶ n = 1, its acknowledgement gives R
//!             │
//!             ▼          all ACKs of the round before have arrived, and R is over
//!        slow start ──────────────────────────────▶ n = min(2n, ssthresh)      (2)
//!             │ n = ssthresh
//!             ▼
//!   congestion avoidance ─────────────────────────▶ n = min(n + 1, Wmax)       (4)
//!
//!   loss     `aftermissing_thresh` ACKs after a missing one:
//!            ssthresh = max(ssthresh / 2, 2), n = max(n / 2, 1)                (6)
//!            the next loss counts after an ACK of the last packet sent before, or of a later one
//!   timeout  no ACK for RTO: ssthresh = max(n / 2, 2), n = 1, G = R − τ
//! ```
//!
//! Source: ElAarag and Bassiouni, "A TCP-friendly Protocol for Media Streams over Best Effort
//! Networks", sections 3 and 4. The paper gives each gap in two forms, one from the gap before it
//! and one from `R`. While `R` is constant, both forms of equations 2, 4 and 6 are equal in the
//! available copy (a test derives them). This code uses the second form: when `R` changes, only the
//! second keeps `n · (G + τ) = R`, which equations 1, 3 and 5 demand.
//!
//! Differs from the paper in: 1. the paper does not say what happens if acknowledgements of a round
//! are missing at its end: here the round lasts until they arrive, and the sender pauses after its
//! sweep ([`LateAcks::Wait`]), or the next round begins with the same `n` ([`LateAcks::Hold`]); 2.
//! the doubling stops at `ssthresh`, and does not exceed it; 3. half of an odd `n` is rounded down,
//! and the gap is that of the whole number; 4. the halved round begins when the loss is detected,
//! as in TCP, not at the end of the round; 5. in the loss phase `n` does not change, and the round
//! after it is the first one judged; 6. an incomplete sweep of an application-limited flow does not
//! change `n`; 7. the timeout is that of RFC 6298 with a configurable minimum, doubled for each
//! consecutive expiry; 8. module `cumulative` adapts it to transports without packet numbers; 9.
//! the paper's acknowledgement names one packet, so a lost acknowledgement leaves a gap as a lost
//! packet does; the transport's acknowledgement names all recent arrivals, so the next one closes
//! the gap; 10. the transport's own packets (a ping, a window update) do not count in a sweep, and
//! its tail-loss probe leaves with the timeout, as the one packet of the round that begins then;
//! 11. `Wmax`, the receiver's maximum, is known to the controller from the start
//! ([`IftpConfig::max_packets`]): a later window of the receiver limits the transport, and `n`
//! grows only while sweeps are complete (6.); 12. section 3.1 lets `ssthresh` be chosen by
//! bandwidth times delay; it is a parameter here, to be set so ([`IftpConfig::ssthresh`]).

mod cumulative;
mod outstanding;

use comity_units::{DataSize, PacketNumber, Rate, Span, Time};

use self::outstanding::Outstanding;
use super::departures::Departures;
use crate::{
    Ack, Arrival, Controller, Decision, Event, Loss, LossCause, Meter, Needs, Pacing, Phase,
    Report, RttConfig, RttEstimator, Sent, Tag,
};

/// The configuration of [`Iftp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IftpConfig {
    /// The payload of a full packet.
    pub mss: DataSize,
    /// The most that may be in flight.
    pub max_window: DataSize,
    /// The rate of the sender's own link, which gives `τ`; [`Rate::MAX`] for `τ = 0`.
    pub link: Rate,
    /// The first `ssthresh`, in packets, at least 2.
    pub ssthresh: u32,
    /// `Wmax`: the most packets in a round, at least 1.
    pub max_packets: u32,
    /// `aftermissing_thresh`: the acknowledgements after a missing one that prove a loss, at least
    /// 1.
    pub missing_threshold: u32,
    /// The minimum timeout.
    pub min_timeout: Span,
    /// What happens at the end of a round if acknowledgements of the round before are missing.
    pub late_acks: LateAcks,
}

/// What happens at the end of a round if acknowledgements of the round before are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateAcks {
    /// The next round begins with the same number of packets.
    Hold,
    /// The round lasts until they arrive, or until a loss or a timeout. Nothing is sent after its
    /// sweep.
    Wait,
}

/// The sender of IFTP, described in [the module](crate::controllers::iftp).
#[derive(Clone, Debug)]
pub struct Iftp {
    config: IftpConfig,
    timer: RttConfig,
    rtt: RttEstimator,
    departures: Departures,
    ssthresh: u32,
    /// The current round; its target is `n`.
    current: Sweep,
    /// The round before it, whose acknowledgements decide about the next.
    previous: Option<Sweep>,
    /// Whether the current sweep is the first, or the first after a timeout. It is then judged
    /// itself.
    is_alone: bool,
    outstanding: Outstanding,
    /// In the loss phase, the last number sent before it.
    recover: Option<u64>,
    next_number: u64,
    departed_at: Option<Time>,
    timeout_at: Option<Time>,
    is_app_limited: bool,
    /// Whether the next packet carries data.
    is_tagged: bool,
    /// Whether the transport's acknowledgements name packets; see [`cumulative`].
    has_packet_numbers: bool,
    /// When the last packet was acknowledged by number. A round cannot end before that time.
    named_at: Time,
}

/// The packets of one round.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// The number of packets planned.
    target: u32,
    /// The lowest packet number of the sweep.
    first: u64,
    /// When the first packet left and the round began.
    began_at: Option<Time>,
    sent: u32,
    /// `ack_count`.
    acked: u32,
}

impl Sweep {
    const fn new(target: u32, first: u64) -> Self {
        Self {
            target,
            first,
            began_at: None,
            sent: 0,
            acked: 0,
        }
    }

    const fn is_complete(&self) -> bool {
        self.sent >= self.target
    }

    const fn is_acked(&self) -> bool {
        self.acked >= self.sent
    }
}

impl Iftp {
    /// Creates the controller of a flow that has sent nothing yet. Raises values to their minimum.
    pub fn new(config: IftpConfig) -> Self {
        let config = IftpConfig {
            ssthresh: config.ssthresh.max(2),
            max_packets: config.max_packets.max(1),
            missing_threshold: config.missing_threshold.max(1),
            max_window: config.max_window.max(config.mss),
            ..config
        };
        let timer = RttConfig {
            min_timeout: config.min_timeout,
            ..RttConfig::RFC6298
        };
        Self {
            timer,
            rtt: RttEstimator::new(&timer),
            departures: Departures::new(config.link, config.mss),
            ssthresh: config.ssthresh,
            current: Sweep::new(1, 0),
            previous: None,
            is_alone: true,
            outstanding: Outstanding::default(),
            recover: None,
            next_number: 0,
            departed_at: None,
            timeout_at: None,
            is_app_limited: false,
            is_tagged: false,
            has_packet_numbers: false,
            named_at: Time::ZERO,
            config,
        }
    }

    /// `n`: the number of packets in the current round.
    pub const fn packets(&self) -> u32 {
        self.current.target
    }

    /// `ssthresh`, in packets.
    pub const fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// `G = R / n − τ`, at least zero; `None` before the first round trip.
    pub fn gap(&self) -> Option<Span> {
        Some(self.share()?.saturating_sub(self.departures.transmission()))
    }

    /// `R / n`.
    fn share(&self) -> Option<Span> {
        let packets = u64::from(self.current.target.max(1));
        Some(Span::from_nanos(self.round()?.as_nanos().div_ceil(packets)))
    }

    /// `R`, at least a microsecond.
    fn round(&self) -> Option<Span> {
        Some(self.rtt.smoothed(&self.timer)?.max(Span::from_micros(1)))
    }

    /// `G + τ`: the time from start to start of packets.
    fn period(&self) -> Span {
        let share = self.share().unwrap_or(Span::ZERO);
        share.max(self.departures.transmission())
    }

    fn begin_round(&mut self, now: Time, packets: u32) {
        self.current = Sweep::new(packets.clamp(1, self.config.max_packets), self.next_number);
        let gap_over = self.departed_at.map_or(Time::ZERO, |at| at + self.period());
        self.departures.set(now.max(gap_over));
    }

    /// The sweep whose acknowledgements decide about the next one.
    fn judged(&self) -> Option<Sweep> {
        if self.is_alone {
            Some(self.current)
        } else {
            self.previous
        }
    }

    /// When the current round has lasted `R`; `None` before it began.
    fn round_over_at(&self) -> Option<Time> {
        Some(self.current.began_at? + self.round()?)
    }

    /// When the current round ends. `None` during its sweep, and while acknowledgements are
    /// missing.
    fn ends_at(&self) -> Option<Time> {
        let is_swept = self.current.is_complete() || self.is_app_limited;
        let is_acked = self.judged().is_none_or(|sweep| sweep.is_acked());
        let must_wait = self.config.late_acks == LateAcks::Wait || self.is_alone;
        let is_held = !is_acked && must_wait && self.recover.is_none();
        self.round_over_at().filter(|_| is_swept && !is_held)
    }

    /// Begins the next round if this one is over.
    fn try_end_round(&mut self, now: Time) {
        if self.ends_at().is_none_or(|at| now < at) {
            return;
        }
        let judged = self.judged();
        let is_acked = judged.is_none_or(|sweep| sweep.is_acked());
        let packets = self.packets();
        let may_grow = self.recover.is_none()
            && is_acked
            && judged.is_some_and(|sweep| sweep.is_complete())
            && self.current.is_complete();
        let next = if !may_grow {
            packets
        } else if packets < self.ssthresh {
            packets.saturating_mul(2).min(self.ssthresh)
        } else {
            packets.saturating_add(1)
        };
        // A sweep of the loss phase is not judged.
        self.previous = self.recover.is_none().then_some(self.current);
        self.is_alone = false;
        self.begin_round(now, next);
    }

    fn react_to_loss(&mut self, now: Time) {
        self.recover = Some(self.next_number.saturating_sub(1));
        self.ssthresh = (self.ssthresh / 2).max(2);
        self.previous = None;
        self.is_alone = false;
        let half = self.packets() / 2;
        self.begin_round(now, half);
    }

    fn react_to_timeout(&mut self, now: Time) {
        self.ssthresh = (self.packets() / 2).max(2);
        self.recover = None;
        self.previous = None;
        self.is_alone = true;
        self.outstanding.clear();
        self.timeout_at = None;
        self.departed_at = None;
        self.begin_round(now, 1);
    }

    /// Counts the acknowledgement of a packet.
    fn count(&mut self, now: Time, number: u64) {
        if !self.outstanding.on_acked(number) {
            return;
        }
        if number >= self.current.first {
            self.current.acked += 1;
        } else if let Some(previous) = &mut self.previous
            && number >= previous.first
        {
            previous.acked += 1;
        }
        if let Some(recover) = self.recover
            && number >= recover
        {
            self.recover = None;
            self.outstanding.forget_through(recover);
        }
        let behind = self.outstanding.acked_behind_missing();
        if self.recover.is_none() && behind >= self.config.missing_threshold as usize {
            self.react_to_loss(now);
        }
    }

    fn on_packet_acked(&mut self, now: Time, number: PacketNumber) {
        self.has_packet_numbers = true;
        self.named_at = now;
        self.count(now, number.get());
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            let sent_at = Time::from_nanos(ack.now.as_nanos().saturating_sub(rtt.as_nanos()));
            self.rtt.on_sample(&self.timer, sent_at, ack.now);
        }
        self.rtt.end_backoff();
        if !self.has_packet_numbers {
            self.count_oldest(ack);
        }
        self.timeout_at = self
            .outstanding
            .is_waiting()
            .then(|| ack.now + self.rtt.timeout(&self.timer));
        self.try_end_round(ack.now);
    }

    /// Reacts to a mark of the transport. This controller detects losses by its own threshold.
    fn on_mark(&mut self, loss: &Loss) {
        if self.recover.is_none() && loss.cause == LossCause::Mark {
            self.react_to_loss(loss.now);
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        if !core::mem::take(&mut self.is_tagged) {
            return;
        }
        let number = sent.number.get();
        self.departures.measure(sent.wire);
        self.next_number = number.saturating_add(1);
        self.outstanding.on_sent(number);
        self.is_app_limited = sent.app_limited;
        self.current.sent = self.current.sent.saturating_add(1);
        self.current.began_at.get_or_insert(sent.now);
        self.departed_at = Some(sent.now);
        self.timeout_at
            .get_or_insert(sent.now + self.rtt.timeout(&self.timer));
        self.departures.on_sent(sent.now, self.period());
        self.try_end_round(sent.now);
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.rtt.back_off(&self.timer);
            self.react_to_timeout(now);
        } else {
            self.try_end_round(now);
        }
    }
}

impl Controller for Iftp {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::PacketAcked { now, number, .. } => self.on_packet_acked(now, number),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) if self.has_packet_numbers => self.on_mark(loss),
            Event::Wakeup(now) => self.on_wakeup(now),
            event if !self.has_packet_numbers => self.on_cumulative(event),
            _ => {}
        }
    }

    fn tag(&mut self, _now: Time) -> Tag {
        self.is_tagged = true;
        Tag::None
    }

    fn decision(&self) -> Decision {
        let due = self.departures.next_at();
        let next = if self.current.is_complete() {
            let rest = self.timeout_at.or(self.round_over_at());
            rest.map_or(due, |until| due.max(until))
        } else {
            due
        };
        let ends_at = self.ends_at().map(|at| at.max(self.named_at));
        Decision {
            window: self.config.max_window,
            pacing: Pacing::At(next),
            ssthresh: Some(self.config.mss * u64::from(self.ssthresh)),
            phase: match self.recover {
                Some(_) => Phase::Steady,
                None if self.packets() < self.ssthresh => Phase::SlowStart,
                None => Phase::CongestionAvoidance,
            },
            wakeup: self.timeout_at.into_iter().chain(ends_at).min(),
            no_feedback_deadline: self.timeout_at,
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            packet_numbers: true,
            ..Needs::default()
        }
    }
}

/// The receiver of IFTP and RAP: it acknowledges every packet at once.
///
/// The transport's acknowledgement names the packets that arrived, so this meter reports nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct EveryPacket {
    due_at: Option<Time>,
}

impl Meter for EveryPacket {
    fn on_arrival(&mut self, arrival: &Arrival) {
        self.due_at.get_or_insert(arrival.now);
    }

    fn report(&mut self, _now: Time) -> Report {
        self.due_at = None;
        Report::None
    }

    fn wakeup(&self) -> Option<Time> {
        self.due_at
    }

    fn on_wakeup(&mut self, _now: Time) {
        self.due_at = None;
    }
}
