//! The connection against slow, literal readings: of sections 5.1 to 5.5 of the TLTCP paper, over the fast retransmit of
//! RFC 5681 or the loss recovery of RFC 6675 with its words (`HighRxt`, `SetPipe()`, `NextSeg()`). Packets are of one
//! byte, the send window is the list of numbers that the paper writes it as, and the lifetime timer is the loop of figure 1.
//!
//! The growth law is not under test here: both sides ask the same one.

use std::collections::{BTreeSet, VecDeque};

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::{Ack, Controller, Loss, LossCause, RttConfig, Timeout};
use comity_testkit::tcp::{BORN, fixed, listener, opener, reno};
use comity_transport::tcp::timeline::TimelineConfig;
use comity_transport::tcp::{Config, Connection, Options, Segment};
use comity_units::{Bytes, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

/// What a packet says of numbers that will not come: `seq_update`, and the hole in front of its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Update {
    expected: u32,
    void: Option<(u32, u32)>,
}

/// A data packet.
type Packet = (u32, Update);

/// A node of the time-line list: `lowest_seqno`, the number after the section, and its deadline.
#[derive(Clone, Copy, Debug)]
struct Node {
    lowest: u32,
    end: u32,
    deadline: u64,
}

/// What an RFC 6675 recovery remembers.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    /// The number after the highest that was sent when it began.
    point: u32,
    high_rxt: u32,
    /// `None` once the rescue is done.
    rescue_rxt: Option<u32>,
}

/// The sender of section 5.
#[derive(Debug)]
struct Sender {
    is_sack: bool,
    /// Whether the receiver is told of all obsolete data, and not only of what was answered.
    is_blind: bool,
    law: Box<dyn Controller>,
    timeline_list: VecDeque<Node>,
    /// The logical send window: what is outstanding and was not replaced.
    window: BTreeSet<u32>,
    /// What of the window is to be sent again after a timeout, in order.
    again: VecDeque<u32>,
    /// Everything that was ever sent.
    sent: BTreeSet<u32>,
    /// The next number that was never sent.
    next: u32,
    last_ack: u32,
    duplicates: usize,
    /// What was acknowledged selectively.
    sacked: BTreeSet<u32>,
    recovery: Option<Recovery>,
    /// RFC 6675, section 5.1: after a timeout no recovery begins before this is acknowledged, and until something is,
    /// duplicates tell of the flight before.
    recovery_point: u32,
    is_after_timeout: bool,
    /// The last packet with which this recovery answered a loss of obsolete data.
    chosen: u32,
    /// Figure 1's `cur_node.lowest_seq`.
    lowest_current: u32,
    /// The receiver may be told of everything below, and of these once nothing else lies before them.
    answered: u32,
    given_up: BTreeSet<u32>,
    now: u64,
    /// How long the retransmission timer takes, and when it expires (RFC 6298, section 5, without backing off).
    timeout: u64,
    timeout_at: Option<u64>,
    expiries: u32,
    out: VecDeque<Packet>,
    pseudo_retransmissions: u64,
    replacements: u64,
    timeouts: u64,
}

impl Sender {
    fn new(
        sections: &[(u32, u64)],
        law: Box<dyn Controller>,
        (is_sack, is_blind): (bool, bool),
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
            is_sack,
            is_blind,
            law,
            timeline_list,
            window: BTreeSet::new(),
            again: VecDeque::new(),
            sent: BTreeSet::new(),
            next: 1,
            last_ack: 1,
            duplicates: 0,
            sacked: BTreeSet::new(),
            recovery: None,
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
            out: VecDeque::new(),
            pseudo_retransmissions: 0,
            replacements: 0,
            timeouts: 0,
        };
        sender.send();
        sender
    }

    fn congestion_window(&self) -> usize {
        self.law.decision().window.get() as usize
    }

    /// The number after the last that was given.
    fn given(&self) -> u32 {
        self.timeline_list.back().map_or(self.next, |node| node.end)
    }

    /// The lowest number that was sent and is not acknowledged, obsolete or not.
    fn lowest_outstanding(&self) -> Option<u32> {
        self.sent.range(self.last_ack..).next().copied()
    }

    fn restart_timer(&mut self) {
        let is_needed = self.lowest_outstanding().is_some();
        self.timeout_at = is_needed.then_some(self.now + self.timeout);
    }

    // ---------------------------------------------------------------- what the receiver is told

    fn was_discarded(&self, number: u32) -> bool {
        number < self.next && !self.sent.contains(&number)
    }

    /// The number itself, or the next that was sent or will be.
    fn not_discarded(&self, number: u32) -> u32 {
        (number..).find(|&it| !self.was_discarded(it)).unwrap()
    }

    /// The last hole of discarded numbers that begins at or below a number.
    fn hole_before(&self, number: u32) -> Option<(u32, u32)> {
        let last = (1..=number).rev().find(|&it| self.was_discarded(it))?;
        let before = (1..last).rev().find(|&it| !self.was_discarded(it));
        Some((before.map_or(1, |it| it + 1), self.not_discarded(last)))
    }

    /// What numbers were given up one after the other may be told.
    fn tell_given_up(&mut self) {
        loop {
            let lowest = self.not_discarded(self.answered.max(self.last_ack));
            if !self.given_up.contains(&lowest) {
                return;
            }
            self.answered = lowest + 1;
        }
    }

    fn update(&self, number: u32) -> Update {
        let told = if self.is_blind {
            self.lowest_current
        } else {
            self.not_discarded(self.answered)
        };
        let landing = self.hole_before(self.last_ack).map_or(1, |hole| hole.1);
        let expected = told.max(landing);
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
        // After three duplicates each one makes room for one more.
        let is_inflated = !self.is_sack && self.duplicates >= 3;
        let inflation = if is_inflated { self.duplicates } else { 0 };
        let limit = self.congestion_window() + inflation;
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
        while self.window.len() < limit && self.next < self.given() {
            self.transmit_new();
        }
    }

    /// Unsent data whose time is over is passed over, whatever is older.
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

    /// What is due at `now`: first the lifetime timer, then the retransmission timer.
    fn timers(&mut self, now: u64) {
        self.now = now;
        self.lifetime_timer();
        if self.timeout_at.is_some_and(|at| at <= now) {
            self.retransmission_timer();
        }
        self.send();
    }

    /// Everything outstanding is taken for lost. What is current is sent again, in order; obsolete data is not, and its
    /// places are free. "The TLTCP sender would then send the next unacknowledged packet" (section 5.5) also where that was
    /// never sent.
    fn retransmission_timer(&mut self) {
        self.timeouts += 1;
        self.expiries += 1;
        self.duplicates = 0;
        self.recovery = None;
        self.recovery_point = self.next;
        self.is_after_timeout = true;
        let lost = self.lowest_outstanding().expect("the timer runs for it");
        if self.sacked.contains(&lost) {
            // The receiver reneged (RFC 2018, section 8).
            self.sacked.clear();
        }
        self.law.on_timeout(&Timeout {
            now: Time::from_millis(self.now),
            in_flight: Bytes::new(self.window.len() as u64),
            window: Bytes::new(self.congestion_window() as u64),
            consecutive: self.expiries,
            duplicate_seen: false,
        });
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
        self.restart_timer();
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
            // store_unacked_seq(): what is outstanding stays in the window.
            // move_window(cur_node.lowest_seq)
            self.lowest_current = node.lowest;
            // What a timeout took for lost and is not worth sending again holds no place.
            if let Some(&first) = self.again.front().filter(|&&first| first < node.lowest) {
                for number in first..node.lowest {
                    if self.window.remove(&number) {
                        self.given_up.insert(number);
                    }
                }
            }
            self.again.retain(|&number| number >= node.lowest);
            self.next = self.next.max(node.lowest);
            self.tell_given_up();
        }
    }

    // ---------------------------------------------------------------- acknowledgements

    fn on_ack(&mut self, number: u32, blocks: &[(u32, u32)]) {
        let has_news = self.update_scoreboard(number, blocks);
        // "The sender's window is moved by the amount of data that is ACKed": one that only follows a jump
        // moves nothing.
        let mut acked = self.sent.range(self.last_ack..number.max(self.last_ack));
        let moves = acked.next().is_some();
        let is_old = number < self.last_ack;
        if moves {
            self.on_advance(number);
        }
        self.last_ack = self.last_ack.max(number);
        if moves {
            self.restart_timer();
            self.tell_given_up();
        }
        // A section of which everything is acknowledged is done, also where the rest of it was discarded.
        let reached = self.not_discarded(self.last_ack);
        while moves
            && self
                .timeline_list
                .front()
                .is_some_and(|node| node.end <= reached)
        {
            self.timeline_list.pop_front();
        }
        if !moves && !is_old && self.lowest_outstanding().is_some() {
            if !self.is_sack {
                self.duplicates += 1;
                if self.duplicates == 3 {
                    self.on_loss();
                }
            } else if has_news {
                self.on_duplicate();
            }
        }
        self.send();
    }

    fn on_advance(&mut self, number: u32) {
        let app_limited = self.window.len() < self.congestion_window();
        let is_partial = self.recovery.is_some_and(|recovery| {
            let mut left = self.sent.range(number..);
            left.next().is_some_and(|&it| it < recovery.point)
        });
        let was_recovering = self.recovery.is_some();
        if !is_partial {
            self.duplicates = 0;
            self.recovery = None;
        }
        self.is_after_timeout = false;
        self.expiries = 0;
        let acked = self.window.range(..number).count() as u64;
        self.window = self.window.split_off(&number);
        self.sacked = self.sacked.split_off(&number);
        self.again.retain(|&outstanding| outstanding >= number);
        if acked > 0 {
            self.law.on_ack(&Ack {
                now: Time::from_millis(self.now),
                acked: Bytes::new(acked),
                rtt: None,
                in_flight: Bytes::new(self.window.len() as u64),
                app_limited,
                in_recovery: was_recovering,
                marked: 0,
                packets: acked as u32,
                sample: None,
            });
        }
    }

    fn tell_law_of_loss(&mut self) {
        let in_flight = Bytes::new(self.window.len() as u64);
        self.law.on_loss(&Loss {
            now: Time::from_millis(self.now),
            sent_at: Time::ZERO,
            lost: Bytes::new(1),
            in_flight,
            window: Bytes::new(self.congestion_window() as u64),
            cause: LossCause::Reordering,
            restart: false,
        });
    }

    /// Three duplicates (RFC 5681, section 3.2).
    fn on_loss(&mut self) {
        self.tell_law_of_loss();
        self.restart_timer();
        let lost = self.lowest_outstanding().expect("something is repeated");
        self.answer(lost);
    }

    /// Section 5.5: what is current is sent again, and in the place of what is obsolete the lowest packet that is
    /// current and not acknowledged, which is not the same twice in one recovery that knows of several losses.
    fn answer(&mut self, lost: u32) {
        if let Some(recovery) = &mut self.recovery {
            recovery.high_rxt = recovery.high_rxt.max(lost);
        }
        if lost >= self.lowest_current {
            return self.transmit(lost);
        }
        self.answered = self.answered.max(lost + 1);
        self.tell_given_up();
        let mut lowest = self.lowest_current;
        if self.is_sack {
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
                // It takes the place of the lost one, where a timeout has not freed that.
                self.window.remove(&lost);
                self.transmit_new();
            }
            None => {}
        }
    }

    // ---------------------------------------------------------------- RFC 6675

    /// `Update()`; whether it said anything new.
    fn update_scoreboard(&mut self, number: u32, blocks: &[(u32, u32)]) -> bool {
        let mut has_news = false;
        for &(start, end) in blocks {
            for number in start.max(self.last_ack).max(number)..end {
                has_news |= self.sent.contains(&number) && self.sacked.insert(number);
            }
        }
        has_news
    }

    /// `IsLost()` with packets of one byte: more than two above it arrived.
    fn is_lost(&self, number: u32) -> bool {
        self.sacked.range(number + 1..).count() > 2
    }

    /// Section 5 for an acknowledgement that moves nothing and says something new.
    fn on_duplicate(&mut self) {
        if self.is_after_timeout || self.recovery.is_some() {
            return;
        }
        self.duplicates += 1;
        let lost = self.lowest_outstanding().expect("something is missing");
        // The lowest may have arrived, where the receiver does not know of the hole in front of it.
        let mut missing = self.sent.range(lost..);
        let missing = missing.find(|it| !self.sacked.contains(it));
        let is_told = self.duplicates >= 3 || missing.is_some_and(|&it| self.is_lost(it));
        if !is_told || lost < self.recovery_point {
            return;
        }
        self.recovery_point = self.next;
        self.recovery = Some(Recovery {
            point: self.next,
            high_rxt: lost,
            rescue_rxt: Some(lost),
        });
        self.chosen = 0;
        self.tell_law_of_loss();
        self.restart_timer();
        self.lifetime_timer();
        self.discard_unsent();
        self.answer(lost);
    }

    /// `SetPipe()`. What another packet took the place of was sent again as that one, which counts for itself.
    fn pipe(&self, high_rxt: u32) -> usize {
        let outstanding = self.sent.range(self.last_ack..);
        let missing = outstanding.filter(|it| !self.sacked.contains(it));
        missing
            .map(|it| {
                let is_sent_again = *it <= high_rxt && self.window.contains(it);
                usize::from(!self.is_lost(*it)) + usize::from(is_sent_again)
            })
            .sum()
    }

    /// Step C of section 5, with the rules of `NextSeg()`.
    fn send_by_pipe(&mut self) {
        while let Some(recovery) = self.recovery
            && self.pipe(recovery.high_rxt) < self.congestion_window()
        {
            let mut behind = self.sent.range(self.last_ack.max(recovery.high_rxt + 1)..);
            let highest = self.sacked.last().copied().unwrap_or(0);
            let hole = behind
                .find(|it| !self.sacked.contains(it))
                .copied()
                .filter(|&it| it < highest);
            if let Some(lost) = hole.filter(|&it| self.is_lost(it)) {
                self.answer(lost);
            } else if self.next < self.given() {
                self.transmit_new();
            } else if let Some(missing) = hole {
                self.answer(missing);
            } else if !self.rescue(recovery) {
                return;
            }
        }
    }

    /// Rule 4, where the last packet did not arrive and is worth something.
    fn rescue(&mut self, recovery: Recovery) -> bool {
        let last = *self.sent.last().expect("a recovery is of something");
        let high_ack = self.sent.range(..self.last_ack).next_back().copied();
        let is_due = recovery
            .rescue_rxt
            .is_some_and(|rescue_rxt| high_ack > Some(rescue_rxt));
        if !is_due || self.sacked.contains(&last) || last < self.lowest_current {
            return false;
        }
        self.recovery = Some(Recovery {
            rescue_rxt: None,
            ..recovery
        });
        self.transmit(last);
        true
    }
}

/// The receiver of section 5.3.
#[derive(Debug)]
struct Receiver {
    expected: u32,
    /// What arrived, and what was named as a void.
    known: BTreeSet<u32>,
    out: VecDeque<u32>,
    /// The number that arrived last.
    latest: u32,
}

impl Receiver {
    fn on_packet(&mut self, number: u32, update: Option<Update>) {
        if let Some(update) = update {
            self.expected = self.expected.max(update.expected);
            if let Some((start, end)) = update.void {
                self.known.extend(start..end);
            }
        }
        self.known.insert(number);
        self.latest = number;
        while self.known.contains(&self.expected) {
            self.expected += 1;
        }
        self.out.push_back(self.expected);
    }

    /// What RFC 2018, section 4, asks of the blocks of an acknowledgement that leaves now.
    fn check_blocks(&self, blocks: &[(u32, u32)]) {
        for (at, &(start, end)) in blocks.iter().enumerate() {
            assert!(self.expected < start && start < end, "{blocks:?}");
            assert!(
                (start..end).all(|it| self.known.contains(&it)),
                "{blocks:?}"
            );
            let is_whole = !self.known.contains(&(start - 1)) && !self.known.contains(&end);
            assert!(
                is_whole && !blocks[..at].contains(&(start, end)),
                "{blocks:?}"
            );
        }
        let first = blocks.first();
        let is_latest = |&(start, end): &(u32, u32)| (start..end).contains(&self.latest);
        assert!(
            self.latest <= self.expected || first.is_some_and(is_latest),
            "{self:?} says {blocks:?}"
        );
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The packet that was sent so many after the oldest arrives, with its options or without.
    DataArrives(usize, bool),
    DataIsLost,
    AckArrives(usize, bool),
    AckIsLost,
    Wait(u64),
}

/// Which one arrives, and whether with its options.
fn arrival() -> impl Strategy<Value = (usize, bool)> {
    (
        prop_oneof![8 => Just(0), 1 => 1_usize..6],
        prop::bool::weighted(0.95),
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => arrival().prop_map(|(which, is_whole)| Step::DataArrives(which, is_whole)),
        2 => Just(Step::DataIsLost),
        6 => arrival().prop_map(|(which, is_whole)| Step::AckArrives(which, is_whole)),
        1 => Just(Step::AckIsLost),
        2 => (1_u64..15).prop_map(Step::Wait),
    ]
}

/// Takes out the one so many behind the first, or the last.
fn take<T>(queue: &mut VecDeque<T>, which: usize) -> Option<T> {
    queue.remove(which.min(queue.len().saturating_sub(1)))
}

/// The connections under test, with what they sent that is under way.
struct Real {
    ends: [Connection; 2],
    data: VecDeque<Segment>,
    acks: VecDeque<Segment>,
}

impl Real {
    /// Takes out what leaves, once the sender's timers have had their turn.
    fn drain(&mut self, now: Time) {
        let [sender, receiver] = &mut self.ends;
        if sender.next_timer() <= now {
            sender.on_timer(now);
        }
        self.data
            .extend(core::iter::from_fn(|| sender.poll_transmit(now)).filter(|it| it.payload > 0));
        self.acks
            .extend(core::iter::from_fn(|| receiver.poll_transmit(now)));
    }
}

fn packet(segment: &Segment) -> Packet {
    let update = segment.options.seq_update;
    let update = update.expect("every segment carries it");
    let void = (update.void_start.get(), update.void_end.get());
    let update = Update {
        expected: update.expected.get(),
        void: update.has_void().then_some(void),
    };
    (segment.sequence.get(), update)
}

fn blocks(segment: &Segment) -> Vec<(u32, u32)> {
    let blocks = segment.options.sack.as_slice().iter();
    blocks
        .map(|block| (block.start.get(), block.end.get()))
        .collect()
}

fn without_options(segment: Segment) -> Segment {
    Segment {
        options: Options::default(),
        ..segment
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Step for step, both have the same packets and acknowledgements under way, and the same logical window.
    #[test]
    fn the_connection_sends_what_the_paper_says(
        lengths in vec((1_u32..25, 0_u64..25), 1..8),
        is_in_order in any::<bool>(),
        last in prop_oneof![Just(1_000_u32), 1_u32..30],
        (is_sack, is_blind) in any::<(bool, bool)>(),
        size in 4_usize..14,
        is_fixed in any::<bool>(),
        steps in vec(step(), 0..150),
        timeout in prop_oneof![Just(1_000_000_u64), 20_u64..60],
    ) {
        // The paper's deadlines ascend; the last section has none to run out of, so that there is always
        // something current.
        let mut deadline = 0;
        let mut sections: Vec<_> = lengths
            .into_iter()
            .map(|(length, life)| {
                deadline = if is_in_order { deadline + life.max(1) } else { 1 + life * 4 };
                (length, deadline)
            })
            .collect();
        sections.push((last, 1_000_000));
        let config = Config {
            mss: 1,
            receive_buffer: Bytes::new(60_000),
            recovery: if is_sack { RecoveryConfig::SACK } else { RecoveryConfig { careful: false, ..RecoveryConfig::RENO } },
            sack: is_sack,
            timeline: Some(TimelineConfig { blind_spot: is_blind, ..TimelineConfig::PAPER }),
            // All timeouts are of one length, so that none depends on round trips and none backs off.
            rtt: RttConfig { initial_timeout: Span::from_millis(timeout), min_timeout: Span::from_millis(timeout),
                max_timeout: Span::from_millis(timeout), ..RttConfig::RFC6298 },
            ..BORN
        };
        let law = || if is_fixed { fixed(size as u64) } else { reno(1, size as u64, size as u64 * 2) };
        let mut model = Sender::new(&sections, law(), (is_sack, is_blind), timeout);
        let mut receiver = Receiver { expected: 1, known: BTreeSet::new(), out: VecDeque::new(), latest: 0 };
        let mut now = 0;
        let mut real = Real {
            ends: [opener(config, law()), listener(config, fixed(1))],
            data: VecDeque::new(),
            acks: VecDeque::new(),
        };
        for &(length, deadline) in &sections {
            real.ends[0].write_section(length.into(), Time::from_millis(deadline)).unwrap();
        }
        real.drain(Time::ZERO);
        for step in steps {
            match step {
                Step::DataArrives(which, is_whole) => {
                    if let (Some((number, update)), Some(segment)) = (take(&mut model.out, which), take(&mut real.data, which)) {
                        receiver.on_packet(number, is_whole.then_some(update));
                        let segment = if is_whole { segment } else { without_options(segment) };
                        real.ends[1].on_segment(Time::from_millis(now), &segment);
                        real.ends[1].read(u64::MAX);
                        real.drain(Time::from_millis(now));
                        if is_sack && let Some(answer) = real.acks.back() {
                            receiver.check_blocks(&blocks(answer));
                        }
                    }
                }
                Step::DataIsLost => {
                    model.out.pop_front();
                    real.data.pop_front();
                }
                Step::AckArrives(which, is_whole) => {
                    if let (Some(number), Some(segment)) = (take(&mut receiver.out, which), take(&mut real.acks, which)) {
                        let segment = if is_whole { segment } else { without_options(segment) };
                        model.on_ack(number, &blocks(&segment));
                        real.ends[0].on_segment(Time::from_millis(now), &segment);
                    }
                }
                Step::AckIsLost => {
                    receiver.out.pop_front();
                    real.acks.pop_front();
                }
                Step::Wait(time) => {
                    // Each deadline is met at its own moment.
                    for _ in 0..time {
                        now += 1;
                        model.timers(now);
                        real.drain(Time::from_millis(now));
                    }
                }
            }
            real.drain(Time::from_millis(now));
            let data: Vec<Packet> = real.data.iter().map(packet).collect();
            let acks: Vec<u32> = real.acks.iter().map(|segment| segment.acknowledgement.get()).collect();
            prop_assert_eq!(&data, &Vec::from(model.out.clone()), "after {:?} at {}: in flight {}, {:?}", step, now, real.ends[0].in_flight(), model);
            prop_assert_eq!(&acks, &Vec::from(receiver.out.clone()), "after {:?} at {}", step, now);
            prop_assert_eq!(real.ends[0].in_flight(), model.window.len() as u64, "after {:?} at {}: {:?}", step, now, model);
        }
        let statistics = real.ends[0].timeline_statistics().unwrap();
        prop_assert_eq!(statistics.pseudo_retransmissions, model.pseudo_retransmissions);
        prop_assert_eq!(statistics.replacements, model.replacements);
        prop_assert_eq!(u64::from(real.ends[0].statistics().timeouts), model.timeouts);
    }
}
