//! The timers of a connection, and the actions at their expiry.

use comity_units::Time;

use super::connection::Connection;
use super::parts::Contents;
use crate::timeline::Payload;

impl<P: Payload> Connection<P> {
    /// When [`Connection::on_timer`] is next due; [`Time::MAX`] for never.
    ///
    /// A time in the past means that the host should poll again at once.
    pub fn next_timer(&self) -> Time {
        let next = self.next_protocol_timer();
        if self.is_open() || self.inbox.is_playing_out() {
            next.min(self.inbox.next_wakeup(&self.clock))
        } else {
            next
        }
    }

    /// Like [`Connection::next_timer`], but without the times at which sections become ready: for a
    /// host whose application accepts no sections at present.
    pub fn next_protocol_timer(&self) -> Time {
        if let Some(at) = self.lifecycle.next_timer() {
            return at;
        }
        let mut next = self
            .reception
            .ack_due_at()
            .min(self.loss.due_at)
            .min(self.outbox.earliest_deadline())
            .min(self.reception.last_at() + self.config.idle_timeout)
            .min(self.keep_alive_at())
            .min(self.congestion.next_timer())
            .min(self.reports.next_timer());
        if self.sent.in_flight_packets() > 0 {
            next = next.min(self.probe_at());
        }
        next = next.min(self.size.due_at(self.loss.base_timeout()));
        next = next.min(self.report_at());
        if self.waits_for_credit() {
            next = next.min(self.asks_for_room_at());
        }
        if self.outbox.backlog() > 0 && self.has_window() && self.has_credit() {
            next = next.min(self.released_at());
        }
        if self.outbox.has_news() {
            next = next.min(self.news_leave_at());
        }
        next
    }

    /// Handles the expiry of [`Connection::next_timer`]. An early call is harmless.
    pub fn on_timer(&mut self, now: Time) {
        if !self.is_open() {
            self.lifecycle.on_timer(now, self.loss.base_timeout());
            return;
        }
        let is_silent = now >= self.reception.last_at() + self.config.idle_timeout;
        if is_silent || self.loss.expiries >= MAX_PROBES {
            self.play_out(now);
            self.lifecycle.on_idle();
            return;
        }
        if self.outbox.earliest_deadline() <= now {
            self.outbox.expire(now);
        }
        if self.loss.due_at <= now {
            self.detect_losses(now);
        }
        if self.sent.in_flight_packets() > 0 && self.probe_at() <= now {
            self.on_probe_timeout(now);
        }
        if self.size.due_at(self.loss.base_timeout()) <= now {
            self.size.on_failure(now, self.sent.largest_acknowledged());
            self.tell_size();
        }
        self.congestion.on_timer(now);
        if self.reports.on_timer(now) {
            self.reception.demand_ack(now);
        }
        if now >= self.keep_alive_at() {
            self.control.ping = true;
        }
        if self.waits_for_credit() && now >= self.asks_for_room_at() {
            self.credit.request();
        }
        self.update_target(now);
    }

    /// When a keep-alive packet is due. An end that only waits for its last acknowledgements sends
    /// none. Otherwise, if a round trip took longer than the interval, a packet would always be in
    /// flight, and the connection would never be settled.
    fn keep_alive_at(&self) -> Time {
        match self.loss.is_finishing() && self.outbox.is_settled() {
            true => Time::MAX,
            false => self.departures.last_at() + self.config.keep_alive,
        }
    }

    /// When a sender that only the peer's lack of room holds back requests credit.
    fn asks_for_room_at(&self) -> Time {
        self.departures.last_at() + self.credit.patience(self.loss.base_timeout())
    }

    /// When to probe a silent peer: not before the controller's own timer, if it has one.
    fn probe_at(&self) -> Time {
        self.congestion.probe_at(self.loss.probe_at())
    }

    fn on_probe_timeout(&mut self, now: Time) {
        self.loss.on_probe(now);
        self.statistics.sent.probes += 1;
        self.departures.on_probe_timeout();
        // The probe retransmits the contents of the oldest packet. If the tail of a flight was
        // lost, that saves the round trip until loss detection finds it. The packet itself stays in
        // flight.
        if let Some(contents) = self.sent.repeat_oldest() {
            for chunk in contents.chunks() {
                self.outbox.on_doubted(now, chunk);
            }
            self.requeue_control(contents);
        }
    }

    /// Retransmits the contents of a lost packet, if they still matter.
    pub(super) fn requeue(&mut self, now: Time, contents: Contents) {
        for chunk in contents.chunks() {
            self.outbox.on_lost(now, chunk);
        }
        self.requeue_control(contents);
    }

    fn requeue_control(&mut self, contents: Contents) {
        if contents.tells_room() {
            self.advertised.on_lost();
        }
        if let Some(control) = contents.control {
            for notice in control.notices {
                self.outbox.on_notice_lost(notice);
            }
            self.control.ends.extend(control.ends);
            for stream in control.floors {
                self.outbox.on_floor_lost(stream);
            }
        }
    }

    /// The credit to report: the unreserved bytes of this end's receive buffer. Zero would mean
    /// that the application accepts no more sections, so the result is at least one while it does.
    pub(super) fn room(&self) -> u64 {
        if self.reception.refuses_sections() {
            return 0;
        }
        self.inbox.free_bytes().max(1)
    }

    /// When the next receiver report is due; [`Time::MAX`] for never. A peer that sends no sections
    /// gets no report.
    pub(super) fn report_at(&self) -> Time {
        let counters = self.inbox.counters();
        let has_sections = counters.received > 0 || counters.gaps.sum() > 0;
        match has_sections {
            true => {
                let (received_at, news) = (self.reception.last_at(), self.reception.has_news());
                self.reports.report_at(received_at, news)
            }
            false => Time::MAX,
        }
    }
}

/// The maximum number of consecutive probes without an acknowledgement, over about two minutes. The
/// connection then counts as lost. Even if packets of the peer arrive, the packets of this end do
/// not.
pub(super) const MAX_PROBES: u32 = 64;
