//! The packet-spacing protocol (PSP): the spacing between packets, adjusted once per round trip by
//! counts.
//!
//! The sender measures the base round trip `RTT` with one packet, divides time into rounds of that
//! length, and marks each packet with its round. The receiver reports how many packets of each
//! round arrived:
//!
//! ```text
//! p_sent > p_rcvd:  ps = 50 µs             if ps = 0                (figure 4)
//!                   ps = min(2 · ps, RTT)  otherwise
//! otherwise:        ps = max(ps − 2 µs, 0)
//! ```
//!
//! Damped, a round with losses returns to the spacing before the last deliberate decrease, instead
//! of doubling. Packets leave `ps + t_x` apart from start to start, where `t_x` is the transmission
//! time of a packet on the sender's own link.
//!
//! The paper's plain agent, without feedback, is the row `fixed` with a `gap` and
//! `reliability=none`. By default, sections over `fixed` retransmit lost packets
//! (`reliability=timeline`), which that agent does not do.
//!
//! Module `rate_step` has [`Step::Rate`], which changes the rate itself, for networks where steps
//! of 2 µs are negligible or too large. The paper does not have it.
//!
//! # How two agents share
//! The protocol does not make two agents converge. If both see the same losses, a decrease takes
//! the same time from both spacings. The difference remains, and is worth more to the faster agent.
//! Doubling doubles the difference: 50 and 200 µs become 50 and 350 µs once the faster agent has
//! recovered from a loss. Damped agents each return to their spacing before it. So with fixed
//! amounts, two flows share evenly only from an equal start. A late flow begins without a spacing,
//! while the older one, with as many losses, doubles its own. If a packet takes milliseconds, and 2
//! µs are negligible, the older flow may keep only the one packet per round trip that section 2.1
//! guarantees.
//!
//! Two agents that send exactly at the bottleneck's rate need `jitter`. Without it, and with a
//! sender's link of the bottleneck's rate, the older agent's packets fill each slot of the queue as
//! it becomes free, and a late agent gets nothing.
//!
//! Source: Feng, Feng and Belford, "Packet Spacing: An Enabling Mechanism for Delivering Multimedia
//! Content in Computational Grids", section 2.
//!
//! Differs from the paper in: 1. a report is compared with the packets sent in the round that it
//! names, so late, lost, duplicate and reordered reports have no effect; 2. rounds that began
//! before the last reaction to a loss took effect are not judged (`settle`), because that reaction
//! answered their losses; 3. an application-limited round does not lower the spacing; 4. after four
//! round trips without a report the spacing grows as after a loss; 5. a round lasts at least a
//! millisecond; 6. rounds can last the smoothed round trip instead of the base (`dynamic_rtt`), as
//! the paper plans; with steps of the rate they otherwise last the minimum round trip so far; 7.
//! intervals can vary at random (`jitter`), because senders with exactly equal periods lock phases
//! at a full queue; 8. the receiver reports a round an eighth of a round trip after the next one
//! begins, or two round trips after its own beginning, so that reordered packets count; 9. rounds
//! without an arrival are reported with the first round after them; 10. the transport's tail-loss
//! probe leaves when the no-feedback time is over, outside of the calendar, and counts in its
//! round; 11. a spacing is never negative, where figure 4 continues to subtract, and the first
//! spacing is at most a round trip; 12. the paper does not say which decrease caused a loss: here
//! it did if the round began with a lower spacing than the one before it, or if the spacing was
//! lowered during the round; 13. with steps of the rate, a damped loss does not return to the
//! spacing before the increase, but to 1 − d of that rate, so that the queue drains.

mod rate_step;
mod round_meter;

use alloc::collections::VecDeque;

use comity_units::{DataSize, Rate, Seed, Span, Time};

pub use self::round_meter::RoundMeter;
use super::departures::Departures;
use crate::{
    Ack, Controller, Decision, Event, Feedback, Pacing, Phase, Report, RttConfig, RttEstimator,
    Sent, Tag,
};

/// The configuration of [`Psp`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PspConfig {
    /// The payload of a full packet.
    pub mss: DataSize,
    /// The most that may be in flight.
    pub max_window: DataSize,
    /// The rate of the sender's own link, which gives `t_x`.
    pub link: Rate,
    /// Whether a loss after a deliberate decrease restores the spacing before the decrease.
    pub is_damped: bool,
    /// How the spacing changes.
    pub step: Step,
    /// Whether rounds that began before the last reaction are ignored.
    pub settles: bool,
    /// Whether rounds last the smoothed round trip instead of the base or, with [`Step::Rate`], the
    /// minimum.
    pub is_dynamic: bool,
    /// The random variation of an interval, from 0 to 1 of it: half of that either way.
    pub jitter: f64,
    /// The seed of the random numbers.
    pub seed: Seed,
}

/// How the spacing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// By fixed amounts: after a loss it doubles, or becomes `first` if it was zero; otherwise it
    /// falls by `step`.
    Fixed {
        /// The spacing after a loss without a spacing.
        first: Span,
        /// The decrease after a round without losses.
        step: Span,
    },
    /// In proportion to the rate. A loss halves it; if damped and caused by an increase, a loss
    /// takes at most a quarter, less with more packets per round trip. Otherwise the rate grows by
    /// √n/4 packets per round trip.
    Rate,
}

/// The sender of the packet-spacing protocol, described in [the module](crate::controllers::psp).
#[derive(Clone, Debug)]
pub struct Psp {
    config: PspConfig,
    rtt: RttEstimator,
    /// The first measured round trip.
    base: Option<Span>,
    /// `ps`: from the end of one packet to the start of the next.
    spacing: Span,
    /// When packets leave, and `t_x`.
    calendar: Departures,
    current: Option<Round>,
    /// The spacing at the beginning of the newest round.
    began_with: Span,
    /// Completed rounds without a report, oldest first.
    sent: VecDeque<Round>,
    next_round: u32,
    /// The number of reactions to losses.
    generation: u64,
    /// The number of changes of the spacing.
    changes: u64,
    /// With steps of the rate, the spacing before the last decrease, until a reaction to a loss.
    decreased_from: Option<Span>,
    /// Whether packets left since the last report.
    is_unanswered: bool,
    /// When the absence of reports counts as a loss.
    no_feedback_at: Time,
    departures: u64,
    /// Whether the next packet carries a tag.
    is_tagged: bool,
}

/// The packets of one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    number: u32,
    began_at: Time,
    /// `p_sent`.
    packets: u32,
    /// The spacing before the deliberate decreases that affected this round.
    lowered_from: Option<Span>,
    generation: u64,
    changes: u64,
    is_app_limited: bool,
}

const TIMER: RttConfig = RttConfig::RFC6298;

impl Psp {
    /// Creates the controller of a flow that has sent nothing yet, without a spacing.
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
            no_feedback_at: Time::MAX,
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

    /// The length of a round; `None` before the first measured round trip.
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

    /// Figure 4 after a loss. The share `arrived` of the round arrived.
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

    /// The time from start to start of packets.
    fn period(&self) -> Span {
        self.spacing + self.calendar.transmission()
    }

    /// The period with its random variation.
    fn interval(&self) -> Span {
        let period = self.period();
        if self.config.jitter == 0.0 {
            return period;
        }
        let bits = self.config.seed.index(self.departures).get() >> 11;
        let uniform = bits as f64 / (1_u64 << 53) as f64;
        period.mul_f64(1.0 + self.config.jitter * (uniform - 0.5))
    }

    /// The time without a report after which the path counts as broken.
    fn no_feedback_time(&self, round: Span) -> Span {
        let rtt = self.rtt.smoothed(&TIMER).unwrap_or(round);
        rtt.max(round).max(self.period()) * NO_FEEDBACK_ROUNDS
    }

    /// Removes the round that a report names, and all older ones.
    fn take(&mut self, now: Time, number: u32) -> Option<Round> {
        let at = self.sent.iter().position(|round| round.number == number);
        if let Some(at) = at {
            return self.sent.drain(..=at).next_back();
        }
        // Without packets to send, the next round has not begun, and this one is still current.
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
        self.no_feedback_at = feedback.now + self.no_feedback_time(length);
        if self.config.settles && judged.generation < self.generation {
            return;
        }
        // An increase waits for the effect of the one before it. Losses are judged meanwhile.
        let is_early = self.config.step == Step::Rate && judged.changes < self.changes;
        if judged.packets > packets {
            let arrived = f64::from(packets) / f64::from(judged.packets);
            self.on_lost(length, judged.lowered_from, arrived);
        } else if !judged.is_app_limited && !is_early {
            self.lower(length);
        }
    }

    /// Continues the round numbers of the old path, because the receiver accepts only later ones.
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
        if !self.is_unanswered || now < self.no_feedback_at {
            return;
        }
        // Packets sent meanwhile have no report either. The next packet begins a new round.
        self.sent.clear();
        self.current = None;
        self.is_unanswered = false;
        self.no_feedback_at = Time::MAX;
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
            // The receiver acknowledges this packet at once, to measure the round trip.
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
            self.no_feedback_at = now + self.no_feedback_time(length);
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
        let no_feedback_at =
            (self.is_unanswered && !self.no_feedback_at.is_never()).then_some(self.no_feedback_at);
        Decision {
            window: self.config.max_window,
            pacing: Pacing::At(self.calendar.next_at()),
            phase: Phase::Steady,
            wakeup: no_feedback_at,
            no_feedback_deadline: no_feedback_at,
            ..Decision::default()
        }
    }
}

/// A lost probe is retransmitted after this time (RFC 6298, section 2.1).
const PROBE_INTERVAL: Span = Span::from_secs(1);

/// The shortest round, which bounds the cost of reports.
const MIN_ROUND: Span = Span::from_millis(1);

/// This many round trips without a report count as a loss.
const NO_FEEDBACK_ROUNDS: u64 = 4;

/// The most completed rounds that await a report.
const MAX_UNREPORTED: usize = 256;
