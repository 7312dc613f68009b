//! Looking ahead: which sections cannot arrive in time, and how fast the others have to leave.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use comity_units::{DataSize, Rate, Span, Time};

use super::entry::Key;
use super::{Outbox, PathEstimate};
use crate::timeline::feasible::{self, Forecast, Work};
use crate::timeline::section::{Importance, Payload, Reason, StreamId};
use crate::timeline::tokens::{Borrowing, Tokens};

impl<P: Payload> Outbox<P> {
    /// The time by which one of the most important sections of a stream should arrive: early enough
    /// before its deadline to repair its losses. If half of the time suffices for two repairs,
    /// losses of the first repair can be repaired as well.
    ///
    /// ```text
    /// time       = deadline − now − one_way
    /// head start = max( min( repair, 2/3 · time ), min( 2 · repair, 1/2 · time ) )
    /// due        = deadline − head start
    /// ```
    ///
    /// A large section fills the queue, so some of its repairs are lost as well.
    pub(super) fn due(&self, now: Time, deadline: Time) -> Time {
        if deadline.is_never() {
            return deadline;
        }
        let time = deadline.saturating_since(now);
        let time = time.saturating_sub(self.look.latest.one_way);
        let (once, twice) = (self.look.repair, self.look.repair * 2);
        deadline.saturating_sub(once.min(time / 3 * 2).max(twice.min(time / 2)))
    }

    /// Expires sections. With `drop = infeasible`, also gives up sections that cannot arrive in
    /// time if all leave in order at the predicted rate ([`feasible::plan`]).
    ///
    /// The outbox checks the queue only in three cases: something was submitted or lost; the
    /// predicted rate has changed by more than
    /// [`Config::rate_change_percent`](super::Config::rate_change_percent), or the one-way delay by
    /// more than an eighth; or a section would be late by now if nothing had left since.
    /// [`next_chunk`](Self::next_chunk) does all this too.
    pub fn look_ahead(&mut self, now: Time, estimate: &PathEstimate) {
        self.expire(now);
        let rate = estimate.rate.unwrap_or(Rate::ZERO);
        self.look.repair = estimate.repair;
        self.look.latest = Forecast {
            rate,
            growth: estimate.growth,
            peak: estimate.peak,
            tokens: estimate.tokens,
            one_way: estimate.one_way,
            caution: estimate.caution,
            tolerance_percent: self.config.tolerance_percent,
        };
        if rate == Rate::ZERO || !self.drops_infeasible() {
            return;
        }
        let change = u128::from(rate.as_bps().abs_diff(self.look.rate.as_bps())) * 100;
        let threshold =
            u128::from(self.look.rate.as_bps()) * u128::from(self.config.rate_change_percent);
        let looked = self.look.one_way;
        let one_way_changed =
            estimate.one_way.abs_diff(looked) > (looked / 8).max(Span::from_millis(1));
        if !self.look.is_due && change <= threshold && !one_way_changed && now < self.look.again {
            return;
        }
        self.look.rate = rate;
        self.look.one_way = estimate.one_way;
        self.look.is_due = false;
        let forecast = self.look.latest;
        let live = self.order.iter().filter_map(|(_, key)| {
            let entry = self.entries.get(key)?;
            (entry.left() > 0).then_some((*key, entry))
        });
        let reserve = if self.look.is_overloaded(now) {
            estimate.repair
        } else {
            Span::ZERO
        };
        let works = live
            .clone()
            .map(|(_, entry)| entry.work(reserve, estimate.one_way));
        if let Some(slack) = forecast.slack(now, works) {
            self.look.again = now + slack.max(LOOK_AGAIN_AFTER);
            return;
        }
        let places: BTreeMap<Key, usize> = live
            .clone()
            .enumerate()
            .map(|(at, (key, _))| (key, at))
            .collect();
        let keys: Vec<Key> = live.clone().map(|(key, _)| key).collect();
        let queue: Vec<Work> = live
            .map(|(key, entry)| Work {
                needs: entry
                    .meta
                    .needs
                    .and_then(|needs| places.get(&(key.0, needs)).copied()),
                ..entry.work(reserve, estimate.one_way)
            })
            .collect();
        let plan = feasible::plan(&queue, now, &forecast);
        let mut dropped: Vec<Key> = plan
            .dropped
            .iter()
            .filter_map(|&at| keys.get(at).copied())
            .collect();
        // The most important section of each stream is exempt from the prediction in two cases. If
        // it stands out, the rest of the stream is worth little without it. If nothing is in
        // flight, nothing else could correct a prediction by which nothing is sent. While
        // acknowledgements of other packets are due anyway, a try would only keep a full queue
        // full.
        let mut tried: BTreeMap<StreamId, (Importance, Time, Key)> = BTreeMap::new();
        let is_idle = self.counters.bytes.in_flight == 0;
        for (key, work) in keys.iter().zip(&queue) {
            let stands_out = { self.entries.get(key) }.is_some_and(|entry| entry.stands_out);
            if is_idle || stands_out {
                let candidate = (work.importance, work.deadline, *key);
                let best = tried.entry(key.0).or_insert(candidate);
                *best = candidate.max(*best);
            }
        }
        dropped.retain(|key| tried.get(&key.0).is_none_or(|(_, _, kept)| kept != key));
        // In the order of numbers, a section comes before those that need it, and these are dropped
        // with it as dependents.
        dropped.sort_unstable();
        if !dropped.is_empty() {
            self.look.on_left_out(now);
            self.look.short_at = Some(now);
        }
        for key in dropped {
            self.give_up(key, Reason::Infeasible);
        }
        self.look.again = now + plan.slack.max(LOOK_AGAIN_AFTER);
    }

    /// Whether the rate was too low in the last seconds: sections were late with bytes that had
    /// never left.
    pub(crate) fn is_short(&self, now: Time) -> bool {
        self.look.short_at.is_some_and(|at| now < at + SHORT_MEMORY)
    }

    /// The latency of the section that leaves next: the time from its source time to its deadline.
    pub(crate) fn next_latency(&self) -> Option<Span> {
        let mut waiting = { self.order.iter() }.filter_map(|(_, key)| self.entries.get(key));
        let next = waiting.find(|entry| entry.left() > 0)?;
        Some(next.meta.deadline.saturating_since(next.meta.source_time))
    }

    pub(super) fn is_out_of_reach(&self, now: Time, deadline: Time) -> bool {
        self.drops_infeasible() && !self.look.latest.is_within_reach(now, deadline)
    }

    /// The maximum number of bytes that one of the waiting sections could spend at once, among
    /// those that the peer has room for; `None` if there is none.
    pub(crate) fn max_available(&self, tokens: &Tokens, credit: u64) -> Option<i64> {
        let mut most = None;
        let begun = self.begun.iter().chain(&self.repeats).copied();
        for (_, key) in begun.chain(self.to_begin(credit)) {
            let Some(entry) = self.entries.get(&key) else {
                continue;
            };
            most = most.max(Some(tokens.available(entry.borrowing())));
            if entry.borrowing() == Borrowing::ALL {
                break;
            }
        }
        most
    }

    /// The minimum constant rate at which the whole queue would arrive in time, with a margin of
    /// `reserve` or of two thirds of the remaining time, whichever is less. [`Rate::MAX`] if no
    /// rate suffices. Sections with a head start are due earlier by it, so that a second repair is
    /// possible if there is time.
    ///
    /// ```text
    /// rate = max over sections of (bytes up to its end, in whole packets) / (due − now − one_way − reserve)
    /// ```
    ///
    /// Every packet counts as full, `packet` bytes: a short packet waits for the full one before
    /// it. Only the first sections count, because the end of a long queue is not urgent.
    pub(crate) fn needed_rate(&self, now: Time, one_way: Span, reserve: Span, packet: u64) -> Rate {
        let (mut before, mut needed) = (0_u64, Rate::ZERO);
        let waiting = self.order.iter().filter_map(|(urgency, key)| {
            let left = self.entries.get(key)?.left();
            (left > 0).then_some((left, urgency.due))
        });
        for (left, due) in waiting.take(NEAR_SECTIONS) {
            before = before.saturating_add(u64::from(left));
            let time = due.saturating_since(now).saturating_sub(one_way);
            let reserve = reserve.min(time / 3 * 2);
            let sending = time.saturating_sub(reserve);
            let whole = before.div_ceil(packet.max(1)).saturating_mul(packet);
            needed = needed.max(Rate::of(DataSize::new(whole), sending));
        }
        needed
    }
}

/// The minimum time between two checks of the queue if only time has passed.
const LOOK_AGAIN_AFTER: Span = Span::from_millis(2);

/// How long a shortage counts. After that, a sender that sheds sections because of it tries to send
/// more.
const SHORT_MEMORY: Span = Span::from_secs(10);

/// How many sections of the queue count for the rate that it needs.
const NEAR_SECTIONS: usize = 64;
