//! The packet-spacing protocol (PSP): the spacing between packets, adjusted once per round trip by
//! counts.
//!
//! The sender measures the base round trip `RTT` with one packet, cuts time into rounds of that
//! length, and says on each packet which round it belongs to. The receiver answers with how many
//! packets of each round arrived:
//!
//! ```text
//! p_sent > p_rcvd:  ps = 50 µs             if ps = 0                (figure 4)
//!                   ps = min(2 · ps, RTT)  otherwise
//! otherwise:        ps = max(ps − 2 µs, 0)
//! ```
//!
//! Damped, a round that lost packets and whose spacing had been lowered on purpose returns to the
//! spacing before it was, instead of doubling. Packets leave `ps + t_x` apart from start to start,
//! where `t_x` is the time of a packet on the sender's own link. The plain agent of the paper,
//! without feedback, is the row `fixed` with a `gap` and `reliability=none`: by default sections
//! over `fixed` send lost packets again (`reliability=timeline`), which that agent does not.
//!
//! What the paper does not have stands in `rate_step`: [`Step::Rate`] moves the rate itself, for
//! networks where 2 µs are nothing or everything.
//!
//! # How two agents share
//! Nothing in the protocol pulls two agents together. Of two that see the same losses a decrease
//! takes the same time from both spacings, which leaves the difference between them and is worth
//! more to the faster one, and doubling doubles it: 50 and 200 µs are 50 and 350 µs when the faster
//! one has come back from a loss. Damped ones return each to where it was. With fixed amounts two
//! flows therefore share evenly from an equal start only. One that begins later begins without a
//! spacing, while the other, which loses as much, doubles the one that it has: where a packet takes
//! milliseconds, and 2 µs are nothing, the older flow may be left with the one packet in a round
//! trip that section 2.1 grants it.
//!
//! Two agents whose packets come exactly as often as the bottleneck carries one need `jitter`: with
//! none and a sender's link of the bottleneck's rate the older one's packets take each place in the
//! queue when it becomes free, and one that starts later gets nothing.
//!
//! Source: Feng, Feng and Belford, "Packet Spacing: An Enabling Mechanism for Delivering Multimedia
//! Content in Computational Grids", section 2.
//!
//! Differs from the paper in: 1. counts are compared with what was sent in the round that they
//! name, so late, lost, repeated and reordered reports do no harm; 2. rounds that were begun before
//! the last reaction to a loss took effect are not judged (`settle`), because their losses are
//! those that it answered; 3. a round in which the application sent less than it might does not
//! lower the spacing; 4. without any report for four round trips the spacing grows as after a
//! loss; 5. a round lasts a millisecond at least; 6. the round trip can be the smoothed one instead
//! of the base (`dynamic_rtt`), as the paper plans, and with steps of the rate it is else the least
//! so far; 7. intervals can vary at random (`jitter`): senders whose periods are exactly equal lock
//! phases at a full queue; 8. the receiver reports a round an eighth of a round trip after the next
//! one begins, or two round trips after it began, so that packets that overtake each other are
//! counted; 9. rounds without any arrival are reported with the first one after them; 10. the
//! transport's probe for a lost tail leaves when that silence is over, beside the calendar, and
//! counts in its round; 11. a spacing is never less than nothing, where figure 4 goes on
//! subtracting, and the first one no more than a round trip; 12. which decrease a loss is due to,
//! which the paper leaves open: the round began with less than the one before it, or the
//! spacing was lowered first while it lasted; 13. with steps of the rate, which the paper has not,
//! a damped loss does not return to the spacing before the increase but leaves 1 − d of the rate
//! that it was, so that the queue drains.

mod rate_step;
mod round_meter;

use alloc::collections::VecDeque;

use comity_units::{Bytes, Rate, Seed, Span, Time};

pub use self::round_meter::RoundMeter;
use super::departures::Departures;
use crate::{
    Ack, Controller, Decision, Event, Feedback, Pacing, Phase, Report, RttConfig, RttEstimator,
    Sent, Tag,
};

/// What the packet-spacing protocol is built from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PspConfig {
    /// The payload of a full packet.
    pub mss: Bytes,
    /// The most that may be in flight.
    pub max_window: Bytes,
    /// The speed of the sender's own link, by which `t_x` is a packet's size.
    pub link: Rate,
    /// Whether a loss after a deliberate decrease returns to the spacing before it.
    pub is_damped: bool,
    /// How the spacing moves.
    pub step: Step,
    /// Whether rounds that were begun before the last reaction are left out.
    pub settles: bool,
    /// Whether rounds last the smoothed round trip instead of the base or, with [`Step::Rate`], the
    /// least.
    pub is_dynamic: bool,
    /// By how much of an interval, from 0 to 1, it varies at random: half of it either way.
    pub jitter: f64,
    /// Where the random numbers come from.
    pub seed: Seed,
}

/// How the spacing moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// By fixed amounts: `first` where it was zero and doubling after a loss, `step` less
    /// otherwise.
    Fixed {
        /// What a spacing of zero becomes.
        first: Span,
        /// What is taken off.
        step: Span,
    },
    /// With the rate: half of it after a loss, or at most a quarter less if damped and the loss is
    /// due to an increase, less of a quarter the more packets a round trip holds; otherwise √n/4
    /// packets more per round trip, one increase after the other.
    Rate,
}

/// The sender's half of the packet-spacing protocol; see [the module](crate::controllers::psp) for
/// the controller.
#[derive(Clone, Debug)]
pub struct Psp {
    config: PspConfig,
    rtt: RttEstimator,
    /// The first measured round trip.
    base: Option<Span>,
    /// `ps`.
    spacing: Span,
    /// The calendar, and `t_x`.
    calendar: Departures,
    current: Option<Round>,
    /// The spacing with which the newest round began.
    began_with: Span,
    /// Rounds that are over and not reported yet, oldest first.
    sent: VecDeque<Round>,
    next_round: u32,
    /// How many losses were answered.
    generation: u64,
    /// How often the spacing was changed.
    changes: u64,
    /// With steps of the rate, the spacing before the last decrease, until a loss is answered.
    decreased_from: Option<Span>,
    /// Whether packets left since the last report.
    is_unanswered: bool,
    silent_at: Time,
    departures: u64,
    /// Whether the packet that leaves next carries a tag.
    is_tagged: bool,
}

/// The packets of one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    number: u32,
    began_at: Time,
    /// `p_sent`.
    packets: u32,
    /// The spacing before the deliberate decreases that this round was sent with.
    lowered_from: Option<Span>,
    generation: u64,
    changes: u64,
    is_app_limited: bool,
}

const TIMER: RttConfig = RttConfig::RFC6298;

impl Psp {
    /// The controller before its first packet, with no spacing.
    pub fn new(config: PspConfig) -> Self {
        Self {
            rtt: RttEstimator::new(&TIMER),
            base: None,
            spacing: Span::ZERO,
            calendar: Departures::new(config.link, config.mss),
            current: None,
            began_with: Span::ZERO,
            sent: VecDeque::new(),
            next_round: 0,
            generation: 0,
            changes: 0,
            decreased_from: None,
            is_unanswered: false,
            silent_at: Time::MAX,
            departures: 0,
            is_tagged: false,
            config: PspConfig {
                max_window: config.max_window.max(config.mss),
                ..config
            },
        }
    }

    /// `ps`: the spacing from the end of one packet to the start of the next.
    pub const fn spacing(&self) -> Span {
        self.spacing
    }

    /// How long rounds last; `None` before the first round trip was measured.
    pub fn round(&self) -> Option<Span> {
        let rtt = if self.config.is_dynamic {
            self.rtt.smoothed(&TIMER)
        } else if self.config.step == Step::Rate {
            self.rtt.min()
        } else {
            self.base
        };
        Some(rtt?.max(MIN_ROUND))
    }

    /// Figure 4 after a loss of all but this share of a round. `round` is a round trip.
    fn on_lost(&mut self, round: Span, lowered_from: Option<Span>, arrived: f64) {
        self.generation += 1;
        self.changes += 1;
        self.decreased_from = None;
        let lowered_from = lowered_from.filter(|_| self.config.is_damped);
        self.spacing = match (self.config.step, lowered_from) {
            (Step::Rate, _) => self.after_loss_by_rate(round, lowered_from, arrived),
            (Step::Fixed { .. }, Some(before)) => before,
            (Step::Fixed { first, .. }, None) if self.spacing.is_zero() => first.min(round),
            (Step::Fixed { .. }, None) => (self.spacing * 2).min(round),
        };
    }

    /// Figure 4 after a round without losses.
    fn lower(&mut self, round: Span) {
        let before = self.spacing;
        self.spacing = match self.config.step {
            Step::Fixed { step, .. } => before.saturating_sub(step),
            Step::Rate => self.after_round_by_rate(round),
        };
        if self.spacing >= before {
            return;
        }
        self.changes += 1;
        if self.config.step == Step::Rate {
            self.decreased_from = Some(before);
        }
        if let Some(current) = &mut self.current {
            current.lowered_from.get_or_insert(before);
        }
    }

    /// From start to start.
    fn period(&self) -> Span {
        self.spacing + self.calendar.transmission()
    }

    /// The period with its random part.
    fn interval(&self) -> Span {
        let period = self.period();
        if self.config.jitter == 0.0 {
            return period;
        }
        let bits = self.config.seed.index(self.departures).get() >> 11;
        let uniform = bits as f64 / (1_u64 << 53) as f64;
        period.mul_f64(1.0 + self.config.jitter * (uniform - 0.5))
    }

    /// After how long without a report the path counts as broken.
    fn patience(&self, round: Span) -> Span {
        let rtt = self.rtt.smoothed(&TIMER).unwrap_or(round);
        rtt.max(round).max(self.period()) * SILENT_ROUNDS
    }

    /// The round that a report names, taken off the record together with older ones.
    fn take(&mut self, now: Time, number: u32) -> Option<Round> {
        let at = self.sent.iter().position(|round| round.number == number);
        if let Some(at) = at {
            return self.sent.drain(..=at).next_back();
        }
        // A sender that has fallen silent has not begun the next round, which ends this one.
        let current = self.current?;
        let is_over = current.number == number && now >= current.began_at + self.round()?;
        if !is_over {
            return None;
        }
        self.sent.clear();
        self.current.take()
    }

    fn on_ack(&mut self, ack: &Ack) {
        let Some(rtt) = ack.rtt else {
            return;
        };
        let sent_at = Time::from_nanos(ack.now.as_nanos().saturating_sub(rtt.as_nanos()));
        self.rtt.on_sample(&TIMER, sent_at, ack.now);
        if self.base.is_none() {
            self.base = Some(rtt);
            self.calendar.set(ack.now);
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let (Report::Count { round, packets }, Some(length)) = (*feedback.report, self.round())
        else {
            return;
        };
        let Some(judged) = self.take(feedback.now, round) else {
            return;
        };
        self.is_unanswered = !self.sent.is_empty() || self.current.is_some();
        self.silent_at = feedback.now + self.patience(length);
        if self.config.settles && judged.generation < self.generation {
            return;
        }
        // An increase of the rate shows its effect before the next one. It answers no loss: those
        // are judged meanwhile.
        let is_early = self.config.step == Step::Rate && judged.changes < self.changes;
        if judged.packets > packets {
            let arrived = f64::from(packets) / f64::from(judged.packets);
            self.on_lost(length, judged.lowered_from, arrived);
        } else if !judged.is_app_limited && !is_early {
            self.lower(length);
        }
    }

    /// The receiver knows the rounds of the other path, and takes later ones only.
    fn on_path_change(&mut self, last: Tag) {
        if let Tag::Round { round, .. } = last {
            self.next_round = round;
        }
    }

    fn on_sent(&mut self, sent: &Sent) {
        if !core::mem::take(&mut self.is_tagged) {
            return;
        }
        self.calendar.measure(sent.wire);
        if let Some(current) = &mut self.current {
            current.is_app_limited |= sent.app_limited;
        }
        if self.base.is_none() {
            self.calendar.set(sent.now + PROBE_INTERVAL);
            return;
        }
        self.departures += 1;
        self.calendar.on_sent(sent.now, self.interval());
    }

    fn on_wakeup(&mut self, now: Time) {
        let Some(length) = self.round() else {
            return;
        };
        if !self.is_unanswered || now < self.silent_at {
            return;
        }
        // What was sent in the meantime is not answered either; the next packet asks again.
        self.sent.clear();
        self.current = None;
        self.is_unanswered = false;
        self.silent_at = Time::MAX;
        self.on_lost(length, None, 0.0);
    }
}

impl Controller for Psp {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Feedback(feedback) => self.on_feedback(feedback),
            Event::Wakeup(now) => self.on_wakeup(now),
            Event::PathChange(last) => self.on_path_change(last),
            _ => {}
        }
    }

    fn upcoming_tag(&self) -> Tag {
        Tag::Round {
            round: self.next_round,
            rtt: self.round().unwrap_or(Span::ZERO),
        }
    }

    fn tag(&mut self, now: Time) -> Tag {
        self.is_tagged = true;
        let Some(length) = self.round() else {
            // The packet that measures the round trip: the receiver answers it at once.
            return Tag::Round {
                round: self.next_round,
                rtt: Span::ZERO,
            };
        };
        let is_over = |round: &Round| now >= round.began_at + length;
        if self.current.as_ref().is_none_or(is_over) {
            if let Some(before) = self.current.take() {
                if self.sent.len() >= MAX_UNREPORTED {
                    self.sent.pop_front();
                }
                self.sent.push_back(before);
            }
            self.next_round = self.next_round.wrapping_add(1);
            let lowered_from = match self.config.step {
                Step::Fixed { .. } => Some(self.began_with).filter(|it| *it > self.spacing),
                Step::Rate => self.decreased_from,
            };
            self.current = Some(Round {
                number: self.next_round,
                began_at: now,
                packets: 0,
                lowered_from,
                generation: self.generation,
                changes: self.changes,
                is_app_limited: false,
            });
            self.began_with = self.spacing;
        }
        if !self.is_unanswered {
            self.is_unanswered = true;
            self.silent_at = now + self.patience(length);
        }
        match &mut self.current {
            Some(current) => {
                current.packets = current.packets.saturating_add(1);
                Tag::Round {
                    round: current.number,
                    rtt: length,
                }
            }
            None => Tag::None,
        }
    }

    fn decision(&self) -> Decision {
        let silence_over =
            (self.is_unanswered && !self.silent_at.is_never()).then_some(self.silent_at);
        Decision {
            window: self.config.max_window,
            pacing: Pacing::At(self.calendar.next_at()),
            phase: Phase::Steady,
            wakeup: silence_over,
            no_feedback_deadline: silence_over,
            ..Decision::default()
        }
    }
}

/// A probe that was lost is repeated after this (RFC 6298, section 2.1).
const PROBE_INTERVAL: Span = Span::from_secs(1);

/// Rounds are no shorter: a report for each would cost more than it tells.
const MIN_ROUND: Span = Span::from_millis(1);

/// So many round trips without a report are taken for a loss.
const SILENT_ROUNDS: u64 = 4;

/// Reports further behind than this compare nothing.
const MAX_UNREPORTED: usize = 256;
