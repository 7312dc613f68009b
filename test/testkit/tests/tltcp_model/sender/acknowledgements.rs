//! The processing of an acknowledgement, and the answer to a loss.

use comity_congestion::{Ack, Event, Loss, LossCause};
use comity_units::{DataSize, Time};

use super::{Kind, Sender};

impl Sender {
    pub(in super::super) fn on_ack(&mut self, number: u32, blocks: &[(u32, u32)]) {
        self.burst = 0;
        let has_news = self.update_scoreboard(number, blocks);
        // "The sender's window is moved by the amount of data that is ACKed": an acknowledgement
        // that only follows a jump moves nothing.
        let mut acked = self.sent.range(self.last_ack..number.max(self.last_ack));
        let moves = acked.next().is_some();
        let is_old = number < self.last_ack;
        let from = self.last_ack;
        let is_partial = moves && self.is_partial_for_new_reno(number);
        let is_repair = is_partial && self.is_repair(from);
        let acked = if moves { self.on_advance(number) } else { 0 };
        self.last_ack = self.last_ack.max(number);
        if moves {
            if !is_partial {
                self.restart_timer();
            }
            self.report_abandoned();
        }
        // A section is complete when all of it is acknowledged or discarded.
        let reached = self.not_discarded(self.last_ack);
        while moves
            && self
                .timeline_list
                .front()
                .is_some_and(|node| node.end <= reached)
        {
            self.timeline_list.pop_front();
        }
        if is_partial {
            self.on_partial(acked as i64, is_repair);
        }
        if !moves && !is_old && self.lowest_outstanding().is_some() {
            match self.kind {
                Kind::Tahoe => self.on_tahoe_duplicate(),
                Kind::Reno => {
                    self.duplicates += 1;
                    if self.duplicates == 3 {
                        self.on_loss();
                    }
                }
                Kind::NewReno => self.on_new_reno_duplicate(),
                Kind::Sack if has_news => self.on_duplicate(),
                Kind::Sack => {}
            }
        }
        self.send();
    }

    /// Returns how many packets left the window.
    fn on_advance(&mut self, number: u32) -> u64 {
        let app_limited = self.window.len() < self.congestion_window();
        let is_partial = self.recovery.is_some_and(|recovery| {
            let mut left = self.sent.range(number..);
            left.next().is_some_and(|&it| it < recovery.point)
        });
        let is_partial = is_partial || self.is_partial_for_new_reno(number);
        let holds_growth = self.recovery.is_some() || self.fast_recovery.is_some() && is_partial;
        if !is_partial {
            self.duplicates = 0;
            self.recovery = None;
            self.fast_recovery = None;
        }
        self.is_after_timeout = false;
        self.expiries = 0;
        let acked = self.window.range(..number).count() as u64;
        self.window = self.window.split_off(&number);
        self.sacked = self.sacked.split_off(&number);
        self.again.retain(|&outstanding| outstanding >= number);
        if acked > 0 {
            self.controller.on_event(Event::Ack(&Ack {
                now: Time::from_millis(self.now),
                acked: DataSize::new(acked),
                rtt: None,
                in_flight: DataSize::new(self.window.len() as u64),
                app_limited,
                in_recovery: holds_growth,
                marked: 0,
                packets: acked as u32,
                sample: None,
            }));
        }
        acked
    }

    /// The third duplicate in a row closes the window to one packet and sets the slow start
    /// threshold to half of the packets in flight (both by the controller). Everything is
    /// retransmitted. This happens once in a window: a packet sent after the previous loss must
    /// have been acknowledged.
    fn on_tahoe_duplicate(&mut self) {
        if !self.is_third_duplicate() {
            return;
        }
        self.recovery_point = self.next;
        self.report_loss();
        self.restart_timer();
        self.lifetime_timer();
        self.discard_unsent();
        let lost = self.lowest_outstanding().expect("something is repeated");
        self.go_back(lost);
    }

    /// Counts a duplicate; returns whether it is the third in a row, for a packet sent after the
    /// previous loss.
    pub(super) fn is_third_duplicate(&mut self) -> bool {
        self.duplicates += 1;
        // Before the first recovery, only the SYN, with the number 0, is covered.
        let is_first = self.recovery_point == 0;
        let mut beyond = self.sent.range(self.recovery_point..);
        let covers_more = beyond.next().is_some_and(|&it| it < self.last_ack);
        self.duplicates == 3 && (is_first || covers_more)
    }

    pub(super) fn report_loss(&mut self) {
        let in_flight = DataSize::new(self.window.len() as u64);
        self.controller.on_event(Event::Loss(&Loss {
            now: Time::from_millis(self.now),
            sent_at: Time::ZERO,
            lost: DataSize::new(1),
            in_flight,
            window: DataSize::new(self.congestion_window() as u64),
            cause: LossCause::Reordering,
            restart: self.kind == Kind::Tahoe,
        }));
    }

    /// Three duplicates (RFC 5681, section 3.2).
    fn on_loss(&mut self) {
        self.report_loss();
        self.restart_timer();
        let lost = self.lowest_outstanding().expect("something is repeated");
        self.answer(lost);
    }

    /// Section 5.5: retransmits a current packet. An obsolete one is replaced by the lowest current
    /// packet that is not acknowledged. A recovery that knows of several losses never chooses the
    /// same packet twice.
    pub(super) fn answer(&mut self, lost: u32) {
        if let Some(recovery) = &mut self.recovery {
            recovery.high_rxt = recovery.high_rxt.max(lost);
        }
        if lost >= self.lowest_current {
            return self.transmit(lost);
        }
        self.answered = self.answered.max(lost + 1);
        self.report_abandoned();
        let mut lowest = self.lowest_current;
        if self.kind == Kind::Sack {
            lowest = lowest.max(self.chosen + 1);
        }
        let mut current = self.sent.range(lowest..);
        let current = current.find(|it| !self.sacked.contains(it)).copied();
        match current {
            Some(sent) => {
                self.pseudo_retransmissions += 1;
                self.chosen = sent;
                self.transmit(sent);
            }
            None if self.next < self.given() => {
                self.replacements += 1;
                self.chosen = self.next;
                // It takes the place of the lost one, unless a timeout has freed that.
                self.window.remove(&lost);
                self.transmit_new();
            }
            None => {}
        }
    }
}
