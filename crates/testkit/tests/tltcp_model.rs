//! The connection against a slow, literal reading of sections 5.1 to 5.5 of the TLTCP paper: packets of one
//! byte, the send window as the list of numbers that the paper writes it as, and the loop of figure 1.

use std::collections::{BTreeSet, VecDeque};

use comity_congestion::RttConfig;
use comity_congestion::recovery::RecoveryConfig;
use comity_testkit::tcp::{BORN, fixed, listener, opener};
use comity_transport::tcp::timeline::TimelineConfig;
use comity_transport::tcp::{Config, Connection, Segment};
use comity_units::{Bytes, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

/// A data packet: its number, and its `seq_update`.
type Packet = (u32, u32);

/// A node of the time-line list: `lowest_seqno`, the number after the section, and its deadline.
#[derive(Clone, Copy, Debug)]
struct Node {
    lowest: u32,
    end: u32,
    deadline: u64,
}

/// The sender of section 5.
#[derive(Debug)]
struct Sender {
    timeline_list: VecDeque<Node>,
    /// The logical send window: what is outstanding, in the order of its numbers.
    window: Vec<u32>,
    /// The most that it may hold.
    size: usize,
    /// What of the window is to be sent again after a timeout, in order.
    again: VecDeque<u32>,
    /// Everything that was ever sent.
    sent: BTreeSet<u32>,
    /// The next number that was never sent.
    next: u32,
    last_ack: u32,
    duplicates: usize,
    /// Figure 1's `cur_node.lowest_seq`.
    lowest_current: u32,
    now: u64,
    /// How long the retransmission timer takes, and when it expires (RFC 6298, section 5, without backing off).
    timeout: u64,
    timeout_at: Option<u64>,
    out: VecDeque<Packet>,
    pseudo_retransmissions: u64,
    replacements: u64,
    timeouts: u64,
}

impl Sender {
    fn new(sections: &[(u32, u64)], size: usize, timeout: u64) -> Self {
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
            timeline_list,
            window: Vec::new(),
            again: VecDeque::new(),
            sent: BTreeSet::new(),
            size,
            next: 1,
            last_ack: 1,
            duplicates: 0,
            lowest_current: 1,
            now: 0,
            timeout,
            timeout_at: None,
            out: VecDeque::new(),
            pseudo_retransmissions: 0,
            replacements: 0,
            timeouts: 0,
        };
        sender.send();
        sender
    }

    /// The lowest number that was sent and is not acknowledged, obsolete or not.
    fn lowest_outstanding(&self) -> Option<u32> {
        self.sent.range(self.last_ack..).next().copied()
    }

    fn restart_timer(&mut self) {
        let is_needed = self.lowest_outstanding().is_some();
        self.timeout_at = is_needed.then_some(self.now + self.timeout);
    }

    fn transmit(&mut self, number: u32) {
        if self.lowest_outstanding().is_none() || self.timeout_at.is_none() {
            self.timeout_at = Some(self.now + self.timeout);
        }
        if self.again.front() == Some(&number) {
            self.again.pop_front();
        }
        self.sent.insert(number);
        self.out.push_back((number, self.lowest_current));
    }

    /// Sends as a normal TCP sender would; after three duplicates each one makes room for one more.
    fn send(&mut self) {
        let inflation = if self.duplicates >= 3 {
            self.duplicates
        } else {
            0
        };
        let limit = self.size + inflation;
        while let Some(&number) = self.again.front() {
            let before = self.window.iter().filter(|&&it| it < number).count();
            if before >= limit {
                return;
            }
            self.transmit(number);
        }
        let given = self.timeline_list.back().map_or(0, |node| node.end);
        while self.window.len() < limit && self.next < given {
            self.window.push(self.next);
            self.transmit(self.next);
            self.next += 1;
        }
    }

    /// What is due at `now`: first the lifetime timer, then the retransmission timer.
    fn timers(&mut self, now: u64) {
        self.now = now;
        self.lifetime_timer(now);
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
        self.duplicates = 0;
        let was_obsolete = self
            .lowest_outstanding()
            .is_some_and(|number| number < self.lowest_current);
        let lowest = self.lowest_current.max(self.last_ack);
        self.window.retain(|&number| number >= lowest);
        self.again = self.window.iter().copied().collect();
        let given = self.timeline_list.back().map_or(0, |node| node.end);
        if was_obsolete && self.window.is_empty() && self.next < given {
            self.replacements += 1;
        }
        self.restart_timer();
    }

    /// Figure 1.
    fn lifetime_timer(&mut self, now: u64) {
        // rem_expired_data(timeline_list, &buf)
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
        if let Some(node) = self.timeline_list.front().filter(|_| has_expired) {
            // store_unacked_seq(): what is outstanding stays in the window.
            // move_window(cur_node.lowest_seq)
            self.lowest_current = node.lowest;
            // What a timeout took for lost and is not worth sending again holds no place.
            let given_up: Vec<u32> = self
                .again
                .iter()
                .copied()
                .filter(|&it| it < node.lowest)
                .collect();
            self.window.retain(|number| !given_up.contains(number));
            self.again.retain(|&number| number >= node.lowest);
            self.next = self.next.max(node.lowest);
        }
    }

    fn on_ack(&mut self, number: u32) {
        // "The sender's window is moved by the amount of data that is ACKed": one that only follows a jump
        // moves nothing.
        let mut acked = self.sent.range(self.last_ack..number.max(self.last_ack));
        let moves = acked.next().is_some();
        let is_old = number < self.last_ack;
        self.last_ack = self.last_ack.max(number);
        if moves {
            self.duplicates = 0;
            self.restart_timer();
            self.window.retain(|&outstanding| outstanding >= number);
            self.again.retain(|&outstanding| outstanding >= number);
            // A section of which everything is acknowledged is done.
            while self
                .timeline_list
                .front()
                .is_some_and(|node| node.end <= number)
            {
                self.timeline_list.pop_front();
            }
        } else if !is_old && !self.window.is_empty() {
            self.duplicates += 1;
            if self.duplicates == 3 {
                self.on_loss();
            }
        }
        self.send();
    }

    /// Section 5.5.
    fn on_loss(&mut self) {
        self.restart_timer();
        let lost = self.lowest_outstanding().expect("something is repeated");
        if lost >= self.lowest_current {
            return self.transmit(lost);
        }
        let current = self
            .window
            .iter()
            .copied()
            .find(|&number| number >= self.lowest_current);
        let given = self.timeline_list.back().map_or(0, |node| node.end);
        match current {
            Some(sent) => {
                self.pseudo_retransmissions += 1;
                self.transmit(sent);
            }
            None if self.next < given => {
                self.replacements += 1;
                // It takes the place of the lost one, where a timeout has not freed that.
                self.window.retain(|&number| number != lost);
                self.window.push(self.next);
                self.transmit(self.next);
                self.next += 1;
            }
            None => {}
        }
    }
}

/// The receiver of section 5.3.
#[derive(Debug)]
struct Receiver {
    expected: u32,
    arrived: BTreeSet<u32>,
    out: VecDeque<u32>,
}

impl Receiver {
    fn on_packet(&mut self, (number, update): Packet) {
        self.expected = self.expected.max(update);
        self.arrived.insert(number);
        while self.arrived.contains(&self.expected) {
            self.expected += 1;
        }
        self.out.push_back(self.expected);
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    DataArrives,
    DataIsLost,
    AckArrives,
    AckIsLost,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::DataArrives),
        2 => Just(Step::DataIsLost),
        6 => Just(Step::AckArrives),
        1 => Just(Step::AckIsLost),
        2 => (1_u64..15).prop_map(Step::Wait),
    ]
}

/// The connections under test, with what they sent that is under way.
struct Real {
    ends: [Connection; 2],
    data: VecDeque<Segment>,
    acks: VecDeque<Segment>,
}

impl Real {
    fn drain(&mut self, now: Time) {
        let [sender, receiver] = &mut self.ends;
        self.data
            .extend(core::iter::from_fn(|| sender.poll_transmit(now)).filter(|it| it.payload > 0));
        self.acks
            .extend(core::iter::from_fn(|| receiver.poll_transmit(now)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Step for step, both have the same packets and acknowledgements under way.
    #[test]
    fn the_connection_sends_what_the_paper_says(
        lengths in vec((1_u32..25, 1_u64..25), 1..8),
        size in 4_usize..14,
        steps in vec(step(), 0..150),
        timeout in prop_oneof![Just(1_000_000_u64), 20_u64..60],
    ) {
        // The paper's deadlines ascend; the last section has none to run out of, so that there is always
        // something current.
        let mut deadline = 0;
        let mut sections: Vec<_> = lengths
            .into_iter()
            .map(|(length, life)| {
                deadline += life;
                (length, deadline)
            })
            .collect();
        sections.push((1_000, 1_000_000));
        let config = Config {
            mss: 1,
            receive_buffer: Bytes::new(60_000),
            recovery: RecoveryConfig { careful: false, ..RecoveryConfig::RENO },
            timeline: Some(TimelineConfig::PAPER),
            // All timeouts are of one length, so that none depends on round trips and none backs off.
            rtt: RttConfig { initial_timeout: Span::from_millis(timeout), min_timeout: Span::from_millis(timeout),
                max_timeout: Span::from_millis(timeout), ..RttConfig::RFC6298 },
            ..BORN
        };
        let mut model = Sender::new(&sections, size, timeout);
        let mut receiver = Receiver { expected: 1, arrived: BTreeSet::new(), out: VecDeque::new() };
        let mut now = 0;
        let mut real = Real {
            ends: [opener(config, fixed(size as u64)), listener(config, fixed(1))],
            data: VecDeque::new(),
            acks: VecDeque::new(),
        };
        for &(length, deadline) in &sections {
            real.ends[0].write_section(length.into(), Time::from_millis(deadline)).unwrap();
        }
        real.drain(Time::ZERO);
        for step in steps {
            match step {
                Step::DataArrives => {
                    if let (Some(packet), Some(segment)) = (model.out.pop_front(), real.data.pop_front()) {
                        receiver.on_packet(packet);
                        real.ends[1].on_segment(Time::from_millis(now), &segment);
                        real.ends[1].read(u64::MAX);
                    }
                }
                Step::DataIsLost => {
                    model.out.pop_front();
                    real.data.pop_front();
                }
                Step::AckArrives => {
                    if let (Some(number), Some(segment)) = (receiver.out.pop_front(), real.acks.pop_front()) {
                        model.on_ack(number);
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
                        let at = Time::from_millis(now);
                        if real.ends[0].next_timer() <= at {
                            real.ends[0].on_timer(at);
                        }
                        real.drain(at);
                    }
                }
            }
            real.drain(Time::from_millis(now));
            let data: Vec<Packet> = real.data.iter().map(|segment| {
                let update = segment.options.seq_update.expect("every segment carries it");
                (segment.sequence.get(), update.expected.get())
            }).collect();
            let acks: Vec<u32> = real.acks.iter().map(|segment| segment.acknowledgement.get()).collect();
            prop_assert_eq!(&data, &Vec::from(model.out.clone()), "after {:?} at {}: in flight {}, {:?}", step, now, real.ends[0].in_flight(), model);
            prop_assert_eq!(&acks, &Vec::from(receiver.out.clone()), "after {:?} at {}", step, now);
            prop_assert_eq!(real.ends[0].in_flight(), model.window.len() as u64, "{:?}", model);
        }
        let statistics = real.ends[0].timeline_statistics().unwrap();
        prop_assert_eq!(statistics.pseudo_retransmissions, model.pseudo_retransmissions);
        prop_assert_eq!(statistics.replacements, model.replacements);
        prop_assert_eq!(u64::from(real.ends[0].statistics().timeouts), model.timeouts);
    }
}
