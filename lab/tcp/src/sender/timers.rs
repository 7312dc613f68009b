//! The timers of a sender. The host sets one timer, for the earliest.

use comity_congestion::{Event, Timeout, TimeoutRepair};
use comity_units::{DataSize, Time};

use super::super::config::Config;
use super::acknowledgement::goes_by_scoreboard;
use super::flight::Episode;
use super::stream::Stream;
use super::transfer::Transfer;

impl Transfer {
    pub(super) fn restart_timer(&mut self, stream: &mut Stream, now: Time) {
        stream.restart_timer(now, self.clock.timeout);
    }

    /// When [`Transfer::on_timer`] is next due.
    pub(super) fn next_timer(&self, stream: &Stream) -> Time {
        let mut next = stream.rto_at.min(self.persistence.at());
        if let Some(flight) = &self.flight {
            next = next.min(flight.reorder_at).min(flight.probe.at);
        }
        if let Some(line) = &stream.line
            && stream.una > 0
        {
            next = next.min(line.lifetime());
        }
        // A packet that only the pacer holds back leaves when the pacer allows.
        next.min(self.control.next_timer(self.burst.is_held_by_pacer()))
    }

    pub(super) fn on_timer(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        self.control.wake_up(now);
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
        if self.persistence.at() <= now {
            // RFC 9293, 3.8.6.1: probe a closed window at growing intervals.
            self.burst.on_expiry();
            stream.expiries += 1;
            self.persistence.on_expiry();
            self.persist(stream, now, config);
        }
    }

    pub(super) fn on_timeout(&mut self, stream: &mut Stream, now: Time, config: &Config) {
        self.burst.on_expiry();
        self.statistics.timeouts += 1;
        stream.expiries += 1;
        // A lost SYN is no evidence about a window that is still unused.
        let repair = if stream.una > 0 {
            let timeout = Timeout {
                now,
                in_flight: DataSize::new(stream.in_flight()),
                // The timeout removes the inflation of a recovery.
                window: DataSize::new(self.control.window().min(stream.peer_window)),
                consecutive: stream.expiries,
                duplicate_seen: self.repair.duplicate_seen(),
            };
            self.lose_everything(stream, now);
            if let Some(line) = &mut stream.line {
                line.release_held();
            }
            self.control.report(Event::Timeout(&timeout));
            self.control.decision().timeout_repair
        } else {
            TimeoutRepair::GoBackN
        };
        let resend = self.repair.on_timeout(stream.max, repair);
        if let Some(board) = &mut self.scoreboard {
            if goes_by_scoreboard(config) {
                board.on_timeout(stream.una);
            } else {
                board.clear();
            }
        }
        self.waves.on_timeout();
        self.marks.on_reduction(stream.max);
        match &mut self.flight {
            Some(flight) if stream.una > 0 => {
                flight.on_timeout(now);
                flight.episode.get_or_insert(Episode {
                    began_at: stream.una,
                    retransmitted_at: None,
                    unexplained: 0,
                });
            }
            // A SYN is retransmitted before anything else.
            Some(_) => self.go_back(stream),
            None => self.resend(stream, resend),
        }
        self.limited_transmit.end();
        if let Some(skips) = &mut self.skips {
            skips.forget_duplicates();
        }
        self.clock.back_off(config);
        self.restart_timer(stream, now);
    }
}
