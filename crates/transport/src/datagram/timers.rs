//! What a connection does when time has come, and what it may do at this moment.

use comity_congestion::{Pacing, Phase, Timeout};
use comity_units::{Bytes, Rate, Span, Time};

use super::connection::Connection;
use super::events::{CloseReason, Event};
use super::parts::{Contents, State};
use super::target::TargetBitrate;
use crate::timeline::{Outlook, Payload};

impl<P: Payload> Connection<P> {
    /// When [`Connection::on_timer`] is next due; [`Time::MAX`] for never.
    ///
    /// A time that has come already means: poll again.
    pub fn next_timer(&self) -> Time {
        let next = self.next_protocol_timer();
        if self.state == State::Open {
            next.min(self.inbox.next_wakeup(&self.clock))
        } else {
            next
        }
    }

    /// As [`Connection::next_timer`], for a host whose application takes no sections at present: without the
    /// times at which sections become ready.
    pub fn next_protocol_timer(&self) -> Time {
        match &self.state {
            State::Closed => return Time::MAX,
            State::Closing { until, .. } | State::Draining { until } => return *until,
            State::Open => {}
        }
        let mut next = self
            .received
            .due_at()
            .min(self.loss.due_at)
            .min(self.outbox.earliest_deadline())
            .min(self.last_received_at + self.config.idle_timeout)
            .min(self.last_sent_at + self.config.keep_alive)
            .min(self.controller.wakeup().unwrap_or(Time::MAX))
            .min(
                self.meter
                    .as_ref()
                    .and_then(|meter| meter.wakeup())
                    .unwrap_or(Time::MAX),
            );
        if self.sent.in_flight_packets() > 0 {
            next = next.min(self.loss.probe_at());
        }
        if self.has_report() {
            next = next.min(self.control.report_at);
        }
        if self.waits_for_credit() {
            next = next.min(self.last_sent_at + self.loss.base_timeout());
        }
        if self.outbox.backlog() > 0 && self.has_window() && self.has_credit() {
            next = next.min(self.pacer.release_at(self.pacing()));
        }
        next
    }

    /// The time given by [`Connection::next_timer`] has come. Calling it early does no harm.
    pub fn on_timer(&mut self, now: Time) {
        match &self.state {
            State::Closed => return,
            State::Closing { until, .. } | State::Draining { until } => {
                if *until <= now {
                    self.state = State::Closed;
                }
                return;
            }
            State::Open => {}
        }
        let is_silent = now >= self.last_received_at + self.config.idle_timeout;
        if is_silent || self.loss.expiries >= MOST_PROBES {
            self.settle();
            self.events.push_back(Event::Closed(CloseReason::Idle));
            self.state = State::Closed;
            return;
        }
        if self.outbox.earliest_deadline() <= now {
            self.outbox.expire(now);
        }
        if self.loss.due_at <= now {
            self.detect_losses(now);
        }
        if self.sent.in_flight_packets() > 0 && self.loss.probe_at() <= now {
            self.on_probe_timeout(now);
        }
        if self.controller.wakeup().is_some_and(|due| due <= now) {
            self.controller.on_wakeup(now);
            self.obey();
        }
        if let Some(meter) = &mut self.meter
            && meter.wakeup().is_some_and(|due| due <= now)
        {
            meter.on_wakeup(now);
            self.received.demand(now);
        }
        if now >= self.last_sent_at + self.config.keep_alive {
            self.control.ping = true;
        }
        if self.waits_for_credit() && now >= self.last_sent_at + self.loss.base_timeout() {
            // The peer may have room only for what fills its holes, and its last word may be lost.
            self.probes = 1;
        }
        self.update_target(now);
        self.collect_outcomes();
    }

    fn on_probe_timeout(&mut self, now: Time) {
        self.loss.on_probe(now);
        self.statistics.sent.probes += 1;
        self.probes = 1;
        // What the oldest packet carried is sent again with the probe: when the tail of a flight was lost,
        // that saves the round trip until loss detection finds it. The packet itself stays in flight.
        if let Some(contents) = self.sent.take_oldest_contents() {
            self.requeue(now, contents);
        }
    }

    /// What a lost packet carried has to be sent again, if it still matters.
    pub(super) fn requeue(&mut self, now: Time, contents: Contents) {
        for chunk in contents.chunks() {
            self.outbox.on_lost(now, chunk);
        }
        if contents.tells_room() {
            self.credit.unanswered = self.credit.unanswered.saturating_sub(1);
        }
        if let Some(control) = contents.control {
            for notice in control.notices {
                self.outbox.on_notice_lost(notice);
            }
            self.control.ends.extend(control.ends);
            for stream in control.floors {
                if !self.control.floors.contains(&stream) {
                    self.control.floors.push(stream);
                }
            }
            self.control.credit |= control.credit;
        }
    }

    // ---------------------------------------------------------------- what is allowed

    /// Reads the controller's decision.
    pub(super) fn obey(&mut self) {
        self.decision = self.controller.decision();
    }

    /// How packets are spread: as the controller says, or its window over the round trip.
    pub(super) fn pacing(&self) -> Pacing {
        match (self.decision.pacing, self.loss.smoothed()) {
            (Pacing::Unpaced, Some(rtt))
                if self.config.pace_windows && self.decision.window != Bytes::MAX =>
            {
                let gain = match self.decision.phase {
                    Phase::SlowStart => 2.0,
                    _ => 1.25,
                };
                Pacing::Rate(Rate::of(self.decision.window, rtt).mul_f64(gain))
            }
            (pacing, _) => pacing,
        }
    }

    pub(super) fn pacing_rate(&self) -> Option<Rate> {
        match self.pacing() {
            Pacing::Rate(rate) => Some(rate),
            Pacing::Gap(gap) => {
                let wire = u64::from(self.config.payload + self.config.overhead);
                Some(Rate::of(Bytes::new(wire), gap))
            }
            _ => None,
        }
    }

    /// Whether the window lets one more full packet leave.
    pub(super) fn has_window(&self) -> bool {
        let in_flight = self.sent.in_flight();
        in_flight == 0
            || in_flight.saturating_add(u64::from(self.config.payload))
                <= self.decision.window.get()
    }

    /// Whether the peer has room for more.
    pub(super) fn has_credit(&self) -> bool {
        self.outbox.accounts().bytes.in_flight < self.credit.bytes
    }

    /// Whether nothing but the peer's lack of room holds sections back, and nothing is on its way whose
    /// answer could tell of more.
    fn waits_for_credit(&self) -> bool {
        self.outbox.backlog() > 0 && !self.has_credit() && self.sent.in_flight_packets() == 0
    }

    /// The delay of packets to the peer, with what they wait for on the way now.
    fn one_way(&self, now: Time) -> Span {
        let least = self.loss.min().unwrap_or(Span::ZERO) / 2;
        least + self.path.queueing_at(now)
    }

    /// By how much the rate may grow in a second: additive increase, one packet for each round trip in each
    /// round trip. Laws without a window say nothing of it.
    fn growth(&self) -> Rate {
        match (self.decision.window, self.loss.smoothed()) {
            (Bytes::MAX, _) | (_, None) => Rate::ZERO,
            (_, Some(rtt)) => {
                let per_round = Rate::of(Bytes::new(u64::from(self.config.payload)), rtt);
                per_round.mul_f64(1.0 / rtt.as_secs_f64().max(0.001))
            }
        }
    }

    pub(super) fn outlook(&self, now: Time) -> Outlook {
        let in_flight = self.outbox.accounts().bytes.in_flight;
        Outlook {
            // In slow start nobody knows yet what the path carries.
            rate: match self.decision.phase {
                Phase::SlowStart => None,
                _ => self.target.current(),
            },
            growth: self.growth(),
            one_way: self.one_way(now),
            fresh_bytes: if self.probes > 0 {
                u64::from(self.config.payload)
            } else {
                self.credit.bytes.saturating_sub(in_flight)
            },
            fresh_sections: self.credit.sections,
        }
    }

    /// How many bytes this end has room for, beside those that it holds. A quarter is kept back for what is under
    /// way when the peer learns of it. The rest of sections that are not whole counts as room: the peer may
    /// always go on with what it has begun.
    pub(super) fn room(&self) -> u64 {
        (self.config.receive_buffer / 4 * 3).saturating_sub(self.inbox.accounts().held)
    }

    /// Whether the peer should hear how its sections fared.
    pub(super) fn has_report(&self) -> bool {
        self.statistics.received.packets > 0
            && self.last_received_at + REPORT_INTERVAL * 2 > self.control.report_at
    }

    pub(super) fn update_target(&mut self, now: Time) {
        // Before the first slow start is over nobody knows what the path carries: nothing to shed for.
        if self.decision.phase == Phase::SlowStart && self.target.current().is_none() {
            return;
        }
        let pacing = match self.decision.pacing {
            Pacing::Unpaced => None,
            _ => self.pacing_rate(),
        };
        let allowed = TargetBitrate::allowed(self.decision.window, self.loss.smoothed(), pacing);
        if let Some(allowed) = allowed {
            self.target.on_allowed(now, allowed);
        }
        if let Some(rate) = self.target.poll(now) {
            self.events.push_back(Event::TargetBitrate(rate));
        }
    }

    /// Moves what the outbox has to tell to where it is told.
    pub(super) fn collect_outcomes(&mut self) {
        while let Some(outcome) = self.outbox.poll_outcome() {
            self.events.push_back(Event::Outcome(outcome));
        }
        while let Some(notice) = self.outbox.poll_notice() {
            self.control.notices.push(notice);
        }
        while let Some((stream, _)) = self.outbox.poll_floor() {
            if !self.control.floors.contains(&stream) {
                self.control.floors.push(stream);
            }
        }
    }

    /// The path stopped carrying anything for so long that what is known of it is stale (RFC 9002, section
    /// 7.6).
    pub(super) fn on_persistent_congestion(&mut self, now: Time, in_flight: u64) {
        self.statistics.sent.persistent_congestions += 1;
        self.controller.on_timeout(&Timeout {
            now,
            in_flight: Bytes::new(in_flight),
            window: self.decision.window,
            consecutive: 1,
            duplicate_seen: false,
        });
        self.obey();
    }
}

/// A peer that has acknowledged nothing although so many probes in a row asked it to, over two minutes or so, is gone
/// as one that says nothing: whatever it says, what is sent to it does not arrive.
const MOST_PROBES: u32 = 64;

/// How often the peer hears how its sections fared while they come.
pub(super) const REPORT_INTERVAL: Span = Span::from_millis(100);
