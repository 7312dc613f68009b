//! A controller for media: TCP's rate on the average, spent when it is needed.

mod climb;
mod delivered;
mod drain;
mod evidence;
mod recession;
mod rise;
mod shadow;

use comity_units::{Bytes, Rate, Span, Time};

use crate::equation::{loss_event_rate, throughput};
use crate::{
    Ack, Controller, Decision, Event, Loss, LossCause, LossIntervals, Pacing, Phase, Sent, Timeout,
};
use climb::Climb;
use delivered::Delivered;
use drain::Drain;
use evidence::Evidence;
use recession::Recession;
use rise::Rise;
use shadow::{DECREASE, Shadow};

/// How a [`Steady`] is set up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyConfig {
    /// The payload of a full segment.
    pub mss: Bytes,
    /// What may leave in the first round trips: in each, or in each 100 ms before one was measured.
    pub initial_window: Bytes,
    /// What may be in flight at the most.
    pub max_window: Bytes,
    /// Loss intervals that the mean is taken over.
    pub memory: usize,
    /// How many times the share a burst may go.
    pub peak: f64,
    /// The depth of the token bucket, and its largest debt, as time at the share.
    pub depth: Span,
    /// Losses within so many round trips of the last that counted belong to the same event.
    pub grouping: f64,
    /// Whether losses that no queue explains are repaired without slowing down.
    pub spare_random: bool,
}

/// Sends at the rate that TCP would have under the same losses, averaged over a second or two.
///
/// ```text
/// share  = min( max( 9/10 · max( X(p, srtt), shadow ), climb ), proved, ramp ),
///          a segment a second at least
/// proved = max( 2 · most delivered of the last seconds, initial window / srtt )
/// climb  : TCP's window over srtt, as long as fewer than `memory` loss intervals are known, at most
///          proved (`Climb`)
/// shadow : what TCP flows have on the average that react once to each congestion episode (`Shadow`)
/// ramp   : initial window / srtt; doubled each round trip; halved when nothing is heard for
///          max(4 · srtt, two packets' time, 100 ms), and again after each such time;
///          two segments per srtt after a persistent congestion, and at least that when a silence ends
/// bucket : filled at the share, holds ± depth · share, in silence ± initial window; bursts at up to
///          min( peak · share, proved )
/// ```
///
/// `X` is [`throughput`] and `p` the mean rate of loss events ([`LossIntervals`]). A window that
/// halves and climbs back carries the same on the average but cannot carry a stream of nearly that
/// rate on time; and a source whose pictures differ in size by a factor of five needs more than its
/// share for a moment and less for the rest of the second. The bucket evens that out, and the
/// transport says which sections may put it into debt.
///
/// Losses within `grouping` round trips of the last event are its echo: a flow that does not halve
/// finds the queue full until its rivals have reacted, and one that backs off by three tenths
/// (CUBIC) leaves it nearly so. While the queue has not drained by a quarter (`Drain`), they are
/// for half of the shadow window in round trips, a second at most. Where more than 0.08 of the
/// packets is lost they are for less, and from 0.16 on for one round trip.
///
/// Suppose that a queue fills to the level at which this flow lost packets, and then recedes by a
/// quarter without a loss or a pause of this flow. This counts as a loss event too, because others
/// have lost packets and backed off (`Drain`). It counts for the part of the flows that has backed
/// off (`Recession`).
///
/// Neither the climb nor an interval grows beyond the rate in use. While `X` or the climb is twice
/// the delivered rate, or the initial window in a round trip, arriving packets lengthen no
/// interval. Otherwise minutes of little data would outweigh the losses of the seconds after them.
///
/// In the round trip after a loss that counts, "2 · most delivered" is "1 · most delivered": the
/// tokens of some seconds must not be spent on a full queue.
///
/// A loss event counts only if a queue explains it (`Evidence`), unless configured otherwise; an
/// ECN mark always counts.
///
/// Source: TFRC (RFC 5348) for the equation, the history and the timer. Differs from it in: 1. the
/// history is kept by the sender, from acknowledgements; 2. the share is an average with tokens and
/// debt, not a ceiling of each instant; 3. losses that no queue explains are left out; 4. the least
/// rate is a segment a second, not one in 64 seconds; 5. no damping of oscillations (section 4.5)
/// and no history discounting; 6. an interval does not grow while the source uses less than half of
/// the rate that it allows, in place of the rules for a loss after such a time (section 4.3); 7.
/// episodes of others count.
#[derive(Clone, Debug)]
pub struct Steady {
    config: SteadyConfig,
    srtt: Option<Span>,
    latest: Option<Span>,
    intervals: LossIntervals,
    climb: Climb,
    shadow: Shadow,
    rise: Rise,
    recession: Recession,
    evidence: Evidence,
    drain: Drain,
    delivered: Delivered,
    /// An event without round-trip times of its neighbours so far, and the last round trip before
    /// it.
    unjudged: Option<Episode>,
    /// When the last event that counts was found.
    counted_at: Option<Time>,
    /// What that was before it, and the queue since.
    counted_before: (Option<Time>, Drain),
    /// Until a round trip behind the last loss that counts, or would without its event; and whether
    /// that lies ahead.
    lossy_until: Time,
    is_lossy: bool,
    /// How many losses the last counted event has, without spurious ones; zero once the event is
    /// final.
    counted_losses: u32,
    /// The average rate of the last decision. It is kept because it depends on the whole history of
    /// losses.
    share: Rate,
    ramp: Rate,
    ramp_grows_at: Time,
    sent: u64,
    acked: u64,
    /// When the timer of silence expires. It runs only while something is in flight.
    silent_at: Option<Time>,
    /// How often it has expired in a row.
    silences: u32,
    decision: Decision,
}

/// Losses until it is known whether a queue explains them.
#[derive(Clone, Copy, Debug)]
struct Episode {
    at: Time,
    /// The round trip that was measured before it.
    rtt: Option<Span>,
    /// What was in flight.
    flight: Bytes,
}

impl Steady {
    /// A flow that has sent nothing yet.
    pub fn new(config: SteadyConfig) -> Self {
        let mut controller = Self {
            config,
            srtt: None,
            latest: None,
            intervals: LossIntervals::new(config.memory),
            climb: Climb::default(),
            shadow: Shadow::default(),
            rise: Rise::new(),
            recession: Recession::default(),
            evidence: Evidence::new(),
            drain: Drain::default(),
            delivered: Delivered::default(),
            unjudged: None,
            counted_at: None,
            counted_before: (None, Drain::default()),
            lossy_until: Time::ZERO,
            is_lossy: false,
            counted_losses: 0,
            share: Rate::ZERO,
            ramp: Rate::of(config.initial_window, INITIAL_ROUND_TRIP),
            ramp_grows_at: Time::ZERO,
            sent: 0,
            acked: 0,
            silent_at: None,
            silences: 0,
            decision: Decision {
                window: config.max_window,
                ..Decision::default()
            },
        };
        controller.decide();
        controller
    }

    fn round_trip(&self) -> Span {
        self.srtt.unwrap_or(INITIAL_ROUND_TRIP)
    }

    /// The least rate: a segment in a round trip or a second, whichever is longer.
    fn least(&self) -> Rate {
        let spacing = self.round_trip().max(LONGEST_SPACING);
        Rate::of(self.config.mss, spacing).max(Rate::from_bps(1))
    }

    /// Two segments in a round trip: the rate after a persistent congestion.
    fn restart(&self) -> Rate {
        Rate::of(self.config.mss, self.round_trip()).mul_f64(2.0)
    }

    fn initial(&self) -> Rate {
        Rate::of(self.config.initial_window, self.round_trip())
    }

    /// The rate that TCP would have.
    fn tcp(&self) -> Rate {
        let Some(p) = self.intervals.rate() else {
            return Rate::MAX;
        };
        let (mss, rtt) = (self.config.mss, self.round_trip());
        let shadow = self.shadow.rate(rtt).unwrap_or(Rate::ZERO);
        let share = throughput(mss, rtt, p).max(shadow).mul_f64(MODESTY);
        if self.intervals.is_full() {
            share
        } else {
            share.max(self.climb.rate(mss, rtt))
        }
    }

    /// Twice as fast as data has arrived of late, and as fast as a flow may begin. Faster than this
    /// a burst would only fill a queue.
    ///
    /// The sender learns of a delivery two round trips later than it sent at that rate. A young
    /// flow doubles in each round trip, as TCP does, so it may send at four times the delivered
    /// rate, and from the first acknowledgement on at twice its first rate.
    fn proved(&self) -> Rate {
        let young = self.config.initial_window * YOUTH;
        let is_young = self.acked < young.get();
        let (times, beginning) = match is_young && self.acked > 0 {
            true => (4.0, 2.0),
            false if self.is_lossy => (1.0, 1.0),
            false => (2.0, 1.0),
        };
        let least = self.initial().mul_f64(beginning);
        self.delivered.most().mul_f64(times).max(least)
    }

    fn decide(&mut self) {
        let share = self.tcp().min(self.proved()).min(self.ramp);
        let share = share.max(self.least());
        self.share = share;
        // Nobody knows what a debt would do to a path that does not answer.
        let depth = if self.silences > 0 {
            Bytes::ZERO
        } else {
            share.amount_in(self.config.depth)
        };
        self.decision.pacing = Pacing::Bucket {
            rate: share,
            peak: share
                .mul_f64(self.config.peak)
                .min(self.proved().max(self.least())),
            depth: depth.max(self.config.initial_window),
        };
        self.decision.phase = match self.intervals.rate() {
            None => Phase::SlowStart,
            Some(_) => Phase::CongestionAvoidance,
        };
    }

    fn grow(&mut self, now: Time) {
        if now < self.ramp_grows_at {
            return;
        }
        self.ramp_grows_at = now + self.round_trip();
        let ceiling = self.tcp().min(self.proved());
        // Beyond what holds it back anyhow the ramp has nothing to say.
        self.ramp = self.ramp.mul_f64(2.0).min(ceiling.max(self.ramp));
    }

    /// How long losses belong to the last counted event.
    fn together(&self) -> Span {
        let rtt = self.round_trip();
        let grouped = rtt.mul_f64(self.config.grouping);
        if !self.drain.goes_on(self.evidence.min()) {
            return grouped;
        }
        let cycle = rtt.mul_f64(self.shadow.segments() / 2.0);
        let patient = cycle.min(LONGEST_EPISODE).max(grouped);
        // Flows of this controller would else wait for one another in front of a queue that stays
        // full.
        rtt + patient
            .saturating_sub(rtt)
            .mul_f64(self.evidence.patience())
    }

    /// Counts a loss event with so much in flight, unless it is an echo of the last one.
    fn count(&mut self, now: Time, flight: Bytes) {
        self.lossy_until = now + self.round_trip();
        self.is_lossy = true;
        if self.is_echo(now) {
            self.counted_losses += u32::from(self.counted_losses > 0);
            return;
        }
        // What has arrived lags behind a rate that doubles. A flow keeps of its first flight what
        // CUBIC does.
        let doubling = match self.intervals.has_events() {
            true => Rate::ZERO,
            false => Rate::of(flight, self.round_trip()).mul_f64(DECREASE),
        };
        self.react(now, doubling);
        self.recession.end();
        self.drain.begin(self.latest);
        self.counted_losses = 1;
    }

    /// Whether a loss found now belongs to the event that counted last.
    fn is_echo(&self, now: Time) -> bool {
        self.counted_at.is_some_and(|at| now < at + self.together())
    }

    /// A congestion episode began. Before it the path carried `carried` or more.
    fn react(&mut self, now: Time, carried: Rate) {
        self.counted_before = (self.counted_at.replace(now), self.drain);
        let (mss, rtt) = (self.config.mss, self.round_trip());
        let latest = self.delivered.latest();
        let arrived = latest.max(self.delivered.most().mul_f64(0.5));
        let arrived = arrived.max(self.least());
        self.intervals
            .on_event(|| 1.0 / loss_event_rate(mss, rtt, arrived));
        let carried = arrived.max(carried).amount_in(rtt);
        let segments = carried.get() as f64 / mss.get().max(1) as f64;
        self.climb.on_event(now, segments);
        self.shadow.on_episode(now, carried);
        self.rise.on_episode();
    }

    /// Observes in the smoothed round trip how the flows behave that share the queue.
    fn on_smoothed(&mut self, now: Time) {
        let rtt = self.round_trip();
        self.rise.on_round_trip(now, rtt);
        let min = self.evidence.min().unwrap_or(rtt);
        if let Some((cubic, reno)) = self.recession.on_round_trip(rtt, min) {
            self.shadow.soften(cubic, reno);
        }
    }

    /// Judges the event that waits for its neighbours.
    fn judge(&mut self, after: Option<Span>) {
        let Some(episode) = self.unjudged.take() else {
            return;
        };
        let is_random = self.evidence.is_random(episode.rtt, after);
        if !(self.config.spare_random && is_random) {
            self.count(episode.at, episode.flight);
        }
    }

    fn arm(&mut self, now: Time, in_flight: Bytes) {
        let packets = self.share.transmission_time(self.config.mss) * 2;
        let patience = (self.round_trip() * 4).max(packets).max(MIN_PATIENCE);
        self.silent_at = (in_flight > Bytes::ZERO).then(|| now + patience);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.acked = self.acked.saturating_add(ack.acked.get());
        // What left before this controller took over is acknowledged too.
        self.sent = self.sent.max(self.acked);
        let rtt = ack.rtt.map(|rtt| rtt.max(MIN_ROUND_TRIP));
        if let Some(rtt) = rtt {
            self.srtt = Some(match self.srtt {
                None => {
                    self.ramp = Rate::of(self.config.initial_window, rtt);
                    rtt
                }
                Some(srtt) => srtt.saturating_sub(srtt / 8) + rtt / 8,
            });
            self.evidence.on_round_trip(ack.now, rtt);
            self.on_smoothed(ack.now);
            let others_gave_way = self
                .drain
                .on_round_trip(rtt, self.evidence.min(), ack.in_flight);
            if others_gave_way && !self.is_echo(ack.now) {
                self.react(ack.now, Rate::ZERO);
                self.recession.begin(self.round_trip());
                self.counted_losses = 0;
            }
        }
        self.is_lossy = ack.now < self.lossy_until;
        self.judge(rtt);
        self.latest = rtt.or(self.latest);
        let segments = ack.acked.get() as f64 / self.config.mss.get().max(1) as f64;
        // Packets without a loss tell nothing of a rate at which none was sent.
        if self.tcp() < self.proved() {
            self.intervals.on_acked(segments);
        }
        self.delivered
            .on_acked(ack.now, ack.acked, self.round_trip());
        self.evidence
            .on_progress(self.sent, self.acked, ack.in_flight.get());
        if core::mem::take(&mut self.silences) > 0 {
            self.ramp = self.ramp.max(self.restart());
        }
        self.climb.grow(ack.now, self.round_trip());
        let has_drained = !self.drain.is_full(self.evidence.min());
        let cubic_share = self.rise.cubic_share();
        self.shadow
            .grow(ack.now, self.round_trip(), cubic_share, has_drained);
        let used = self.proved().amount_in(self.round_trip());
        self.climb
            .cap(used.get() as f64 / self.config.mss.get().max(1) as f64);
        self.shadow.cap(ack.now, used);
        self.grow(ack.now);
        self.decide();
        self.arm(ack.now, ack.in_flight);
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.cause == LossCause::Mark {
            self.count(loss.now, loss.in_flight);
            // What turns up late was not what the mark spoke of.
            self.counted_losses = 0;
        } else {
            self.judge(None);
            self.unjudged = Some(Episode {
                at: loss.now,
                rtt: self.latest,
                flight: loss.in_flight,
            });
        }
        if loss.lost >= loss.in_flight {
            self.silent_at = None;
        }
        self.decide();
    }

    fn on_spurious_loss(&mut self, now: Time) {
        // What is late by more than that belongs to a loss that was found later, and did not count.
        let recent = self.round_trip() * 2;
        let is_counted =
            self.counted_losses > 0 && self.counted_at.is_some_and(|at| now < at + recent);
        if self.unjudged.take().is_none() && is_counted {
            self.counted_losses -= 1;
            // Only when all that it was made of has arrived did it not happen.
            if self.counted_losses == 0 {
                self.intervals.undo_event();
                self.climb.undo_event();
                self.shadow.undo_episode();
                (self.counted_at, self.drain) = self.counted_before;
            }
        }
        self.decide();
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        self.ramp = self.restart().min(self.ramp);
        self.ramp_grows_at = timeout.now + self.round_trip();
        self.decide();
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.sent = self.sent.saturating_add(sent.payload.get());
        if sent.app_limited {
            self.rise.on_pause();
        }
        let is_first = sent.in_flight <= sent.payload;
        if is_first && self.delivered.is_old(sent.now) {
            self.delivered.restart(sent.now);
            self.decide();
        }
        if is_first || self.silent_at.is_none() {
            self.arm(sent.now, sent.in_flight);
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.silent_at.is_some_and(|at| at <= now) {
            self.silences = self.silences.saturating_add(1);
            self.ramp = self.share.mul_f64(0.5).max(self.least());
            self.ramp_grows_at = now + self.round_trip();
            self.decide();
            self.arm(now, self.config.mss);
        }
    }
}

impl Controller for Steady {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Sent(sent) => self.on_sent(sent),
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Timeout(timeout) => self.on_timeout(timeout),
            Event::SpuriousLoss { now } => self.on_spurious_loss(now),
            Event::Wakeup(now) => self.on_wakeup(now),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            wakeup: self.silent_at,
            ..self.decision
        }
    }
}

/// The least rate is a segment in this time, or in a round trip where that is longer.
const LONGEST_SPACING: Span = Span::from_secs(1);

/// An episode goes on for no longer while the queue does not drain, nor for longer than half of the
/// window in round trips, which is when a Reno flow has its next one. Beside BBR, which never gives
/// way, longer ones leave TCP less and media more; flows of this controller among themselves take
/// longer to share a deep queue.
const LONGEST_EPISODE: Span = Span::from_secs(1);

/// A flow is young until so many initial windows have arrived.
const YOUTH: u64 = 32;

/// The part of the rate of the equation and the shadow windows that is used. The whole rate would
/// leave two greedy Reno flows four fifths of an equal share, because evenly sent packets meet a
/// full queue less often.
const MODESTY: f64 = 0.9;

/// A peer may hold acknowledgements back for some tens of milliseconds.
const MIN_PATIENCE: Span = Span::from_millis(100);

/// The shortest round trip that counts.
const MIN_ROUND_TRIP: Span = Span::from_micros(1);

/// The round trip before the first measurement.
const INITIAL_ROUND_TRIP: Span = Span::from_millis(100);

#[cfg(test)]
mod tests;
