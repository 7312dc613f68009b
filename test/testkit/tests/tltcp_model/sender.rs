//! The sender of section 5: its time-line list, its window, its updates to the receiver, and its
//! timers.

mod acknowledgements;
mod new_reno;
mod scoreboard;

use std::collections::{BTreeSet, VecDeque};

use comity_congestion::{Controller, Event, Timeout};
use comity_units::{DataSize, Time};

use self::new_reno::FastRecovery;
use self::scoreboard::Recovery;
use super::{Packet, Update};

/// A node of the time-line list: `lowest_seqno`, the number after the section, and its deadline.
#[derive(Clone, Copy, Debug)]
struct Node {
    lowest: u32,
    end: u32,
    deadline: u64,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Fall and Floyd 1996, section 2.
    Tahoe,
    /// RFC 5681.
    Reno,
    /// RFC 6582.
    NewReno,
    /// RFC 6675.
    Sack,
}

/// The sender of section 5.
#[derive(Debug)]
pub(super) struct Sender {
    kind: Kind,
    /// Whether NewReno's first partial acknowledgement alone resets the retransmission timer.
    is_impatient: bool,
    /// Whether all obsolete data is reported to the receiver, not only answered losses.
    is_blind: bool,
    controller: Box<dyn Controller>,
    timeline_list: VecDeque<Node>,
    /// The logical send window: outstanding numbers that were not replaced.
    pub(super) window: BTreeSet<u32>,
    /// The numbers of the window to retransmit after a timeout, in order.
    again: VecDeque<u32>,
    /// All numbers ever sent.
    sent: BTreeSet<u32>,
    /// The next number that was never sent.
    next: u32,
    last_ack: u32,
    duplicates: usize,
    /// Selectively acknowledged numbers.
    sacked: BTreeSet<u32>,
    recovery: Option<Recovery>,
    fast_recovery: Option<FastRecovery>,
    /// RFC 6675, section 5.1: after a timeout no recovery begins before this is acknowledged. Until
    /// an acknowledgement advances, duplicates belong to the flight before the timeout.
    recovery_point: u32,
    is_after_timeout: bool,
    /// The last packet of this recovery that answered a loss of obsolete data.
    chosen: u32,
    /// Figure 1's `cur_node.lowest_seq`.
    lowest_current: u32,
    /// Everything below may be reported to the receiver, and these numbers once nothing else lies
    /// before them.
    answered: u32,
    given_up: BTreeSet<u32>,
    now: u64,
    /// The retransmission timeout, and when it expires (RFC 6298, section 5, without back-off).
    timeout: u64,
    timeout_at: Option<u64>,
    expiries: u32,
    /// How many packets the window has released since the last acknowledgement or timeout.
    burst: u32,
    pub(super) out: VecDeque<Packet>,
    pub(super) pseudo_retransmissions: u64,
    pub(super) replacements: u64,
    pub(super) timeouts: u64,
}

impl Sender {
    pub(super) fn new(
        sections: &[(u32, u64)],
        controller: Box<dyn Controller>,
        kind: Kind,
        (is_impatient, is_blind): (bool, bool),
        timeout: u64,
    ) -> Self {
        let mut lowest = 1;
        let timeline_list = sections
            .iter()
            .map(|&(length, deadline)| {
                let node = Node {
                    lowest,
                    end: lowest + length,
                    deadline,
                };
                lowest = node.end;
                node
            })
            .collect();
        let mut sender = Self {
            kind,
            is_impatient,
            is_blind,
            controller,
            timeline_list,
            window: BTreeSet::new(),
            again: VecDeque::new(),
            sent: BTreeSet::new(),
            next: 1,
            last_ack: 1,
            duplicates: 0,
            sacked: BTreeSet::new(),
            recovery: None,
            fast_recovery: None,
            recovery_point: 0,
            is_after_timeout: false,
            chosen: 0,
            lowest_current: 1,
            answered: 1,
            given_up: BTreeSet::new(),
            now: 0,
            timeout,
            timeout_at: None,
            expiries: 0,
            burst: 0,
            out: VecDeque::new(),
            pseudo_retransmissions: 0,
            replacements: 0,
            timeouts: 0,
        };
        sender.send();
        sender
    }

    fn congestion_window(&self) -> usize {
        self.controller.decision().window.get() as usize
    }

    /// The number after the last submitted one.
    fn given(&self) -> u32 {
        self.timeline_list.back().map_or(self.next, |node| node.end)
    }

    /// The lowest number sent and not acknowledged, obsolete or not.
    fn lowest_outstanding(&self) -> Option<u32> {
        self.sent.range(self.last_ack..).next().copied()
    }

    fn restart_timer(&mut self) {
        let is_needed = self.lowest_outstanding().is_some();
        self.timeout_at = is_needed.then_some(self.now + self.timeout);
    }

    // ---------------------------------------------------------------- updates to the receiver

    fn was_discarded(&self, number: u32) -> bool {
        number < self.next && !self.sent.contains(&number)
    }

    /// The number itself, or the next one that was sent or will be.
    fn not_discarded(&self, number: u32) -> u32 {
        (number..).find(|&it| !self.was_discarded(it)).unwrap()
    }

    /// The last hole of discarded numbers that begins at or below a number.
    fn hole_before(&self, number: u32) -> Option<(u32, u32)> {
        let last = (1..=number).rev().find(|&it| self.was_discarded(it))?;
        let before = (1..last).rev().find(|&it| !self.was_discarded(it));
        Some((before.map_or(1, |it| it + 1), self.not_discarded(last)))
    }

    /// Reports numbers as given up, in sequence.
    fn report_abandoned(&mut self) {
        loop {
            let lowest = self.not_discarded(self.answered.max(self.last_ack));
            if !self.given_up.contains(&lowest) {
                return;
            }
            self.answered = lowest + 1;
        }
    }

    fn update(&self, number: u32) -> Update {
        let reported = if self.is_blind {
            self.lowest_current
        } else {
            self.not_discarded(self.answered)
        };
        let landing = self.hole_before(self.last_ack).map_or(1, |hole| hole.1);
        let expected = reported.max(landing);
        let hole = self.hole_before(number);
        Update {
            expected,
            void: hole.filter(|hole| hole.1 > expected),
        }
    }

    fn transmit(&mut self, number: u32) {
        if self.lowest_outstanding().is_none() || self.timeout_at.is_none() {
            self.timeout_at = Some(self.now + self.timeout);
        }
        if self.again.front() == Some(&number) {
            self.again.pop_front();
        }
        self.sent.insert(number);
        self.next = self.next.max(number + 1);
        self.out.push_back((number, self.update(number)));
    }

    fn transmit_new(&mut self) {
        self.window.insert(self.next);
        self.transmit(self.next);
        self.discard_unsent();
    }

    // ---------------------------------------------------------------- sending

    /// Sends as a normal TCP sender would.
    fn send(&mut self) {
        self.lifetime_timer();
        self.discard_unsent();
        if self.recovery.is_some() {
            return self.send_by_pipe();
        }
        let inflation = match &self.fast_recovery {
            Some(recovery) => recovery.inflation,
            // After three duplicates, each one makes room for one packet more.
            None if self.kind == Kind::Reno && self.duplicates >= 3 => self.duplicates as i64,
            None => 0,
        };
        let limit = self
            .congestion_window()
            .saturating_add_signed(inflation as isize);
        while let Some(&number) = self.again.front() {
            if self.sacked.contains(&number) {
                self.again.pop_front();
                continue;
            }
            let below = self.window.range(..number);
            if below.filter(|it| !self.sacked.contains(it)).count() >= limit {
                return;
            }
            self.transmit(number);
        }
        // NewReno releases at most two new packets for an acknowledgement.
        while self.window.len() < limit
            && self.next < self.given()
            && (self.fast_recovery.is_none() || self.burst < 2)
        {
            self.burst += 1;
            self.transmit_new();
        }
    }

    /// Passes over expired unsent data, even while older data is current.
    fn discard_unsent(&mut self) {
        let next = self.next;
        if let Some(at) = self
            .timeline_list
            .iter()
            .position(|node| node.end > next && node.lowest <= next)
            && self.timeline_list[at].deadline <= self.now
        {
            self.next = self.timeline_list[at].end;
            self.timeline_list[at].end = next;
            if self.timeline_list[at].lowest == next {
                self.timeline_list.remove(at);
            }
            self.discard_unsent();
        }
    }

    // ---------------------------------------------------------------- timers

    /// Handles the timers due at `now`: first the lifetime timer, then the retransmission timer.
    pub(super) fn timers(&mut self, now: u64) {
        self.now = now;
        self.lifetime_timer();
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.retransmission_timer();
        }
        self.send();
    }

    /// Everything outstanding is marked lost. Current data is retransmitted, in order; obsolete
    /// data is not, and its places are free. "The TLTCP sender would then send the next
    /// unacknowledged packet" (section 5.5) applies to unsent packets too.
    fn retransmission_timer(&mut self) {
        self.timeouts += 1;
        self.expiries += 1;
        self.duplicates = 0;
        self.recovery = None;
        self.fast_recovery = None;
        self.burst = 0;
        self.recovery_point = self.next;
        self.is_after_timeout = true;
        let lost = self.lowest_outstanding().expect("the timer runs for it");
        if self.sacked.contains(&lost) {
            // The receiver reneged (RFC 2018, section 8).
            self.sacked.clear();
        }
        self.controller.on_event(Event::Timeout(&Timeout {
            now: Time::from_millis(self.now),
            in_flight: DataSize::new(self.window.len() as u64),
            window: DataSize::new(self.congestion_window() as u64),
            consecutive: self.expiries,
            duplicate_seen: false,
        }));
        self.go_back(lost);
        self.restart_timer();
    }

    /// Marks everything outstanding from `lost` on as lost.
    fn go_back(&mut self, lost: u32) {
        let lowest = self.lowest_current.max(self.last_ack);
        if lost < self.lowest_current {
            self.window = self.window.split_off(&lowest);
            self.answered = self.lowest_current;
            self.chosen = 0;
        }
        let missing = self.window.iter().filter(|it| !self.sacked.contains(it));
        self.again = missing.copied().collect();
        if lost < self.lowest_current && self.again.is_empty() {
            self.discard_unsent();
            if self.next < self.given() {
                self.replacements += 1;
                self.restart_timer();
                self.transmit_new();
            }
        }
    }

    /// Figure 1.
    fn lifetime_timer(&mut self) {
        // rem_expired_data(timeline_list, &buf)
        let now = self.now;
        let before = self.timeline_list.len();
        while self
            .timeline_list
            .front()
            .is_some_and(|node| node.deadline <= now)
        {
            self.timeline_list.pop_front();
        }
        // cur_node = get_cur_node(timeline_list)
        let has_expired = self.timeline_list.len() < before;
        if let Some(node) = self.timeline_list.front().copied().filter(|_| has_expired) {
            // store_unacked_seq(): outstanding numbers stay in the window.
            // move_window(cur_node.lowest_seq)
            self.lowest_current = node.lowest;
            // Data that a timeout marked lost and that is obsolete has no place.
            if let Some(&first) = self.again.front().filter(|&&first| first < node.lowest) {
                for number in first..node.lowest {
                    if self.window.remove(&number) {
                        self.given_up.insert(number);
                    }
                }
            }
            self.again.retain(|&number| number >= node.lowest);
            self.next = self.next.max(node.lowest);
            self.report_abandoned();
        }
    }
}
