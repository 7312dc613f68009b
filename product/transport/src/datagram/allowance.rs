//! Whether a packet may leave now: window, pacer, credit and the estimate of the path.

use comity_units::{DataSize, Rate, Span, Time};

use super::bucket_pace::PacingGain;
use super::connection::Connection;
use super::events::Event;
use super::target::TargetBitrate;
use crate::timeline::{PathEstimate, Payload};

impl<P: Payload> Connection<P> {
    /// Fills the token bucket up to now, and sets the pace of a burst.
    ///
    /// The pace leaves a round trip and a quarter for repairs, and the gain is 1. A faster burst
    /// would only fill queues that delay the repairs. If no repair can be in time, the gain is 2,
    /// so that the last packet of the section is early enough. It stays 1 if the flow alone fills
    /// the queue.
    pub(super) fn find_pace(&mut self, now: Time) {
        self.congestion.fill(now);
        if !self.congestion.needs_pace(now) {
            return;
        }
        let packet = u64::from(self.size.current());
        let needed = self
            .outbox
            .needed_rate(now, self.one_way(now), self.repair(), packet);
        let needed = match self.congestion.bucket() {
            Some(bucket) if bucket.peak == Rate::MAX => Rate::MAX,
            _ => self.target.gross(needed),
        };
        let gain = self.gain(now);
        self.congestion.set_pace(now, needed, gain);
    }

    /// The gain for the next section: higher if the time from its source time to its deadline does
    /// not suffice for a repair. If this flow alone fills the queue of the path, a faster burst
    /// would not arrive any earlier, so the gain stays 1.
    fn gain(&self, now: Time) -> PacingGain {
        let repaired = self.one_way(now) + self.repair();
        match self.outbox.next_latency() {
            Some(latency) if latency < repaired && !self.target.is_alone() => PacingGain::OneTry,
            _ => PacingGain::Usual,
        }
    }

    /// The time from the loss of a packet to its retransmission: a round trip, and a quarter of one
    /// until later packets reveal the loss.
    fn repair(&self) -> Span {
        let rtt = self.loss.smoothed().unwrap_or(Span::ZERO);
        rtt + rtt / 4
    }

    /// When both the controller and the ceiling allow the next piece of a section to leave.
    pub(super) fn released_at(&self) -> Time {
        self.ceiling.release_at(self.controller_releases_at())
    }

    /// When the pacer and the token bucket allow the next piece of a section to leave.
    pub(super) fn controller_releases_at(&self) -> Time {
        let paced = self.congestion.released_at(self.loss.smoothed());
        let (Some(bucket), Some(tokens)) = (self.congestion.bucket(), self.congestion.tokens())
        else {
            return paced;
        };
        if tokens.level > 0 {
            return paced;
        }
        match self.outbox.max_available(&tokens, self.credit_left()) {
            Some(most) if most <= 0 => {
                let missing = DataSize::new(1_u64.saturating_add(most.unsigned_abs()));
                paced.max(self.congestion.filled_by(&bucket, missing))
            }
            _ => paced,
        }
    }

    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        self.congestion
            .pacing_rate(self.loss.smoothed(), self.full_packet())
    }

    /// Whether the window has room for one more full packet.
    pub(super) fn has_window(&self) -> bool {
        self.congestion
            .has_window(self.sent.in_flight(), u64::from(self.size.current()))
    }

    /// Marks samples of the delivery rate from now on if the application leaves room in the window.
    /// The backlog includes lost bytes, so an empty backlog means that nothing waits for
    /// retransmission. The application does not limit a sender that waits for the peer's credit or
    /// for its pacer.
    pub(super) fn check_app_limited(&mut self) {
        if self.outbox.backlog() == 0 && self.has_window() {
            self.sent.on_app_limited();
        }
    }

    /// Whether the peer has room for a waiting section.
    pub(super) fn has_credit(&self) -> bool {
        !self.credit.is_refused() && self.outbox.has_credit(self.credit_left())
    }

    /// The peer's credit, less the sections that have used it since the report.
    fn credit_left(&self) -> u64 {
        self.credit.left(self.outbox.answered())
    }

    /// Whether only the peer's lack of room holds sections back, and no packet is in flight whose
    /// acknowledgement could report more room.
    pub(super) fn waits_for_credit(&self) -> bool {
        self.outbox.backlog() > 0 && !self.has_credit() && self.sent.in_flight_packets() == 0
    }

    /// The one-way delay of packets to the peer, including the present queueing delay.
    ///
    /// The propagation delay counts as three quarters of the minimum round trip. A queue that is
    /// never empty adds to the minimum round trip, and this queue is on the path to the peer. With
    /// a half, sections that are planned for the last moment arrive some milliseconds late.
    fn one_way(&self, now: Time) -> Span {
        let least = self.loss.min().unwrap_or(Span::ZERO) / 4 * 3;
        least + self.path.queueing_at(now)
    }

    /// The part of the one-way delay that is caution: a symmetric path has half of the round trip
    /// in each direction. While nothing is in flight, the queue may be empty, so the queueing delay
    /// is caution, too. Otherwise an old queueing delay could prevent the packets that would
    /// correct it.
    fn caution(&self, now: Time) -> Span {
        let queueing = match self.sent.in_flight_packets() {
            0 => self.path.queueing_at(now),
            _ => Span::ZERO,
        };
        self.loss.min().unwrap_or(Span::ZERO) / 4 + queueing
    }

    /// The possible growth of the rate in a second by additive increase: in each round trip, one
    /// more packet per round trip. Zero for controllers without a window.
    fn growth(&self) -> Rate {
        if self.congestion.bucket().is_some() {
            return Rate::ZERO;
        }
        match (self.congestion.window(), self.loss.smoothed()) {
            (DataSize::MAX, _) | (_, None) => Rate::ZERO,
            (_, Some(rtt)) => {
                let per_round = Rate::of(DataSize::new(u64::from(self.config.payload)), rtt);
                let growth = per_round.mul_f64(1.0 / rtt.as_secs_f64().max(0.001));
                // Near the ceiling, headers aside, there is nothing to grow to.
                let has_room = match (self.ceiling.rate(), self.target.allowance()) {
                    (Some(most), Some(rate)) => rate < most.mul_f64(0.9),
                    (ceiling, _) => ceiling.is_none(),
                };
                if has_room { growth } else { Rate::ZERO }
            }
        }
    }

    pub(super) fn estimate(&self, now: Time) -> PathEstimate {
        let (rate, peak) = match self.congestion.bucket() {
            Some(bucket) => {
                let peak = self.gain(now).of(bucket.peak).max(bucket.fair);
                (Some(self.target.net(bucket.fair)), self.target.net(peak))
            }
            None => (self.target.allowance(), Rate::MAX),
        };
        PathEstimate {
            // In slow start nobody knows yet what the path carries, but what is the most that it is
            // given.
            rate: match self.congestion.is_slow_start() {
                true => self.ceiling.rate(),
                false => rate.map(|rate| rate.min(self.config.max_rate)),
            },
            growth: self.growth(),
            peak: peak.min(self.config.max_rate),
            tokens: self.congestion.tokens(),
            is_probe: self.departures.owes_probe(),
            one_way: self.one_way(now),
            caution: self.caution(now),
            repair: self.repair(),
            wait: self.path.wait_at(now),
            lost_permille: self.target.lost_permille(),
            credit: self.credit_left(),
        }
    }

    pub(super) fn update_target(&mut self, now: Time) {
        let pacing = match self.congestion.bucket() {
            Some(bucket) => {
                self.target.on_proven(bucket.proven);
                Some(bucket.fair)
            }
            None if self.congestion.is_paced() => self.pacing_rate(),
            None => None,
        };
        self.target.on_shortage(self.outbox.is_short(now));
        let set = self.congestion.target();
        // In slow start the window tells nothing yet of what the path carries.
        let is_slow_start = self.congestion.is_slow_start();
        let is_known = set.is_some()
            || !is_slow_start
            || self.congestion.has_lost()
            || self.target.is_alone()
            || (self.ceiling.rate().is_none() && self.target.allowance().is_some());
        // The window of a controller with a token bucket limits bursts, not the average.
        let window = match self.congestion.bucket() {
            Some(_) => DataSize::MAX,
            None => self.congestion.window(),
        };
        let rtt = self.loss.smoothed();
        let allowed = set
            .or_else(|| TargetBitrate::allowed(window, rtt, pacing))
            .filter(|_| is_known);
        let allowed = match (allowed, self.ceiling.rate()) {
            (Some(allowed), Some(ceiling)) => Some(allowed.min(ceiling)),
            (allowed, ceiling) => allowed.or(ceiling),
        };
        match allowed {
            Some(target) if set.is_some() => self.target.on_target(now, target),
            Some(allowed) => self.target.on_allowed(now, allowed, is_slow_start),
            None => {}
        }
        if let Some(target) = self.target.poll(now, is_slow_start) {
            self.notifications.on_event(Event::TargetBitrate(target));
        }
    }
}
