//! The timers of a sender; a host sees the earliest.

use comity_congestion::recovery::Recovery;
use comity_congestion::{Event, Timeout, TimeoutRepair};
use comity_units::{Bytes, Time};

use super::super::config::Config;
use super::acknowledgement::goes_by_scoreboard;
use super::flight::Episode;
use super::stream::Stream;
use super::transfer::Transfer;

impl Transfer {
    pub(super) fn restart_timer(&mut self, stream: &mut Stream, now: Time) {
        stream.restart_timer(now, self.clock.timeout);
    }

    /// When [`Sender::on_timer`] is next due.
    pub(super) fn next_timer(&self, stream: &Stream) -> Time {
        let mut next = stream.rto_at.min(self.persistence.at);
        if let Some(flight) = &self.flight {
            next = next.min(flight.reorder_at).min(flight.probe.at);
        }
        if let Some(line) = &stream.line
            && stream.una > 0
        {
            next = next.min(line.lifetime());
        }
        match &self.pace {
            None => next,
            // A packet that only the pacer holds back leaves when the pacer allows.
            Some(pace) if self.held_by_pacer => next.min(pace.wakeup).min(pace.release_at()),
            Some(pace) => next.min(pace.wakeup),
        }
    }

    pub(super) fn on_timer(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        if self.pace.as_ref().is_some_and(|pace| pace.wakeup <= now) {
            self.controller.on_event(Event::Wakeup(now));
            self.obey();
        }
        if let Some(line) = &stream.line
            && stream.una > 0
            && line.lifetime() <= now
        {
            self.on_lifetime(stream, now, config);
        }
        if stream.rto_at <= now {
            self.on_timeout(stream, now, config);
        } else if let Some(mut flight) = self.flight.take() {
            self.on_recovery_timer(&mut flight, stream, now, config);
            self.flight = Some(flight);
        }
        if self.persistence.at <= now {
            // RFC 9293, 3.8.6.1: probe a closed window at growing intervals.
            self.burst = 0;
            stream.expiries += 1;
            self.persistence.on_expiry();
            self.persist(stream, now, config);
        }
    }

    pub(super) fn on_timeout(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        self.burst = 0;
        self.statistics.timeouts += 1;
        stream.expiries += 1;
        // A lost SYN says nothing about a window that is still unused.
        let repair = if stream.una > 0 {
            let timeout = Timeout {
                now,
                in_flight: Bytes::new(stream.in_flight()),
                // The timeout removes the inflation of a recovery.
                window: Bytes::new(self.window.min(stream.peer_window)),
                consecutive: stream.expiries,
                duplicate_seen: self.duplicate_seen,
            };
            self.lose_everything(stream, now);
            self.controller.on_event(Event::Timeout(&timeout));
            self.obey();
            self.controller.decision().timeout_repair
        } else {
            TimeoutRepair::GoBackN
        };
        let resend = self.recovery.on_timeout(stream.max, repair);
        self.is_quiet = self.recovery.is_quiet();
        if let Some(board) = &mut self.scoreboard {
            if goes_by_scoreboard(config) {
                board.on_timeout(stream.una);
            } else {
                board.clear();
            }
        }
        self.duplicate_seen = false;
        self.told_level = 0;
        self.resend_first = false;
        self.reduced_until = stream.max;
        match &mut self.flight {
            Some(flight) if stream.una > 0 => {
                flight.on_timeout(now);
                flight.episode.get_or_insert(Episode {
                    began_at: stream.una,
                    resent_at: None,
                    unexplained: 0,
                });
            }
            // A SYN is retransmitted before anything else.
            Some(_) => self.go_back(stream),
            None => self.resend(stream, resend),
        }
        self.may_release = false;
        self.clock.back_off(config);
        self.restart_timer(stream, now);
    }
}
