//! Several streams at once over arbitrary paths: dependent pictures, audio, and data without a
//! deadline, with an outage in the middle.

use std::collections::BTreeMap;

use bytes::Bytes;
use comity_link::LinkConfig;
use comity_testkit::datagram::{Pair, controllers, ends};
use comity_testkit::paths::random_path;
use comity_transport::datagram::{Config, Connection, Event};
use comity_transport::timeline::outbox::Outcome;
use comity_transport::timeline::{
    Deliver, Delivery, DropPolicy, Importance, Outgoing, Reliability, SectionId, StreamId,
};
use comity_units::{Rate, Seed, Span, Time};
use proptest::prelude::*;

const PICTURES: StreamId = StreamId(1);
const SOUND: StreamId = StreamId(2);
const DATA: StreamId = StreamId(9);

/// One picture time: a picture of this length. Every twelfth is independent, and the others depend
/// on the previous picture or on the last independent one.
#[derive(Clone, Copy, Debug)]
struct Turn {
    picture: u32,
    needs_key: bool,
    importance: u8,
    sound: u32,
    data: Option<u32>,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (
        1_u32..20_000,
        any::<bool>(),
        any::<u8>(),
        1_u32..500,
        prop::option::weighted(0.1, 1_u32..20_000),
    )
        .prop_map(|(picture, needs_key, importance, sound, data)| Turn {
            picture,
            needs_key,
            importance,
            sound,
            data,
        });
    prop::collection::vec(turn, 40..80)
}

/// The accepted sections of each stream, by number.
type Taken = BTreeMap<StreamId, Vec<Outgoing<Bytes>>>;

struct Play {
    pair: Pair<Bytes>,
    taken: Taken,
    sender: Config,
    receiver: Config,
}

impl Play {
    /// Submits a section, unless the outbox is full. Its first bytes are its number and its stream.
    fn submit(&mut self, stream: StreamId, length: u32, about: impl FnOnce(&mut Outgoing<Bytes>)) {
        let now = self.pair.now();
        let number = self.taken.get(&stream).map_or(0, Vec::len);
        let mut section = Outgoing {
            stream,
            importance: Importance(100),
            source_time: now,
            deadline: Time::MAX,
            needs: None,
            payload: (0..length)
                .map(|at| (at as usize * 7 + number * 31 + usize::from(stream.0)) as u8)
                .collect(),
        };
        about(&mut section);
        if self.pair.ends[0].submit(now, section.clone()).is_ok() {
            self.taken.entry(stream).or_default().push(section);
        }
    }

    fn check_memory(&self) -> Result<(), TestCaseError> {
        // The sender's unsettled data has a second reference.
        let waiting: usize = self
            .taken
            .values()
            .flatten()
            .filter(|given| !given.payload.is_unique())
            .map(|given| given.payload.len())
            .sum();
        let most = self.sender.send_buffer as usize;
        prop_assert!(waiting <= most, "{waiting} bytes wait");
        let receiver = self.pair.ends[1].statistics();
        let held = receiver.inbox.held;
        prop_assert!(held <= self.receiver.receive_buffer, "{held} bytes held");
        Ok(())
    }

    fn turn(&mut self, number: usize, turn: Turn, latency: Span) {
        let deadline = self.pair.now() + latency;
        let pictures = self.taken.get(&PICTURES).map_or(0, Vec::len) as u64;
        let is_key = number.is_multiple_of(12);
        self.submit(PICTURES, turn.picture, |section| {
            section.deadline = deadline;
            section.importance = Importance(if is_key { 250 } else { turn.importance });
            let needed = match turn.needs_key {
                true => pictures.saturating_sub(number as u64 % 12),
                false => pictures.saturating_sub(1),
            };
            section.needs = (!is_key && needed < pictures).then_some(SectionId(needed));
        });
        self.submit(SOUND, turn.sound, |section| {
            section.deadline = deadline;
            section.importance = Importance(200);
        });
        if let Some(length) = turn.data {
            self.submit(DATA, length, |section| section.importance = Importance(0));
        }
    }

    /// Every accepted section is reported once at each end, complete sections have the right bytes,
    /// and counters are consistent.
    fn check_the_end(&self) -> Result<(), TestCaseError> {
        let pair = &self.pair;
        prop_assert!(pair.violations.is_empty(), "{:?}", pair.violations);
        let mut reported: BTreeMap<StreamId, Vec<u64>> = BTreeMap::new();
        let is_paced = self.receiver.deliver == Deliver::Paced;
        let mut whole = 0;
        for (at, delivery) in &pair.deliveries[1] {
            let (stream, number) = match delivery {
                Delivery::Section(section) => (section.meta.stream, section.meta.section),
                Delivery::Gap(gap) => (gap.stream, gap.section),
            };
            reported.entry(stream).or_default().push(number.0);
            let given = &self.taken[&stream][number.0 as usize];
            if let Delivery::Section(section) = delivery {
                whole += 1;
                prop_assert!(section.payload == given.payload, "other bytes");
                prop_assert_eq!(section.meta.importance, given.importance);
                prop_assert_eq!(section.meta.needs, given.needs);
                prop_assert!(*at >= given.source_time);
            } else if self.sender.reliability == Reliability::Full {
                prop_assert!(false, "a gap at {at} though nothing may be left out");
            }
        }
        for (stream, given) in &self.taken {
            let numbers = reported.entry(*stream).or_default();
            if is_paced {
                // Each at its own time: one retransmitted after its deadline comes after the next.
                numbers.sort_unstable();
            }
            let is_each = numbers.iter().copied().eq(0..given.len() as u64);
            prop_assert!(is_each, "{stream}: {numbers:?} of {}", given.len());
        }
        prop_assert_eq!(reported.len(), self.taken.len());
        let mut outcomes = BTreeMap::new();
        let mut polled: Vec<&Outcome> = Vec::new();
        for (_, event) in &pair.events[0] {
            if let Event::Outcome(outcome) = event {
                let before = outcomes.insert((outcome.stream, outcome.section), outcome.fate);
                prop_assert_eq!(before, None, "each once");
                polled.push(outcome);
            }
        }
        let taken: usize = self.taken.values().map(Vec::len).sum();
        prop_assert_eq!(polled.len(), taken);
        for outcome in polled {
            let given = &self.taken[&outcome.stream][outcome.section.0 as usize];
            prop_assert_eq!(outcome.length as usize, given.payload.len());
        }
        let bytes: u64 = self
            .taken
            .values()
            .flatten()
            .map(|given| given.payload.len() as u64)
            .sum();
        let [sender, receiver] = pair.ends.each_ref().map(Connection::statistics);
        if self.sender.reliability != Reliability::Full {
            prop_assert_eq!(sender.sent.late_bytes, 0);
        }
        prop_assert_eq!(sender.outbox.bytes.submitted, bytes);
        prop_assert_eq!(sender.outbox.bytes.sum(), bytes);
        prop_assert_eq!(
            sender.outbox.bytes.queued + sender.outbox.bytes.in_flight,
            0
        );
        prop_assert_eq!(receiver.inbox.received, receiver.inbox.sum());
        prop_assert_eq!(receiver.inbox.held, 0);
        prop_assert_eq!(receiver.inbox.on_time + receiver.inbox.complete_late, whole);
        Ok(())
    }
}

/// A lost section that may not be retransmitted is a gap at the receiver too, although it has no
/// deadline there and nothing follows it.
#[test]
fn the_last_section_is_reported_lost_without_retransmission() {
    let config = Config {
        reliability: Reliability::None,
        ..Config::default()
    };
    let receiver = Config {
        seed: Seed::new(1),
        ..config
    };
    let path = LinkConfig::new(Rate::from_mbps(8), Span::from_millis(20));
    let mut play = Play {
        pair: Pair::new(ends("reno", config, receiver), [&path, &path], Seed::new(1)),
        taken: Taken::new(),
        sender: config,
        receiver,
    };
    play.pair
        .set_outage(Time::from_millis(1_000), Time::from_millis(1_100));
    // Two arrive, three do not, including the last one of each stream but the first.
    for (at, stream) in [
        (500, PICTURES),
        (600, SOUND),
        (1_010, DATA),
        (1_020, SOUND),
        (1_030, SOUND),
    ] {
        play.pair.run_until(Time::from_millis(at));
        play.submit(stream, 1_000, |_| {});
    }
    assert!(play.pair.run_until_settled(Span::from_secs(10)));
    let mut whole = Vec::new();
    let mut gaps = Vec::new();
    for (_, delivery) in &play.pair.deliveries[1] {
        match delivery {
            Delivery::Section(section) => whole.push((section.meta.stream, section.meta.section.0)),
            Delivery::Gap(gap) => gaps.push((gap.stream, gap.section.0)),
        }
    }
    gaps.sort_unstable();
    assert_eq!(whole, [(PICTURES, 0), (SOUND, 0)]);
    assert_eq!(gaps, [(SOUND, 1), (SOUND, 2), (DATA, 0)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the path and the delivery mode: no byte leaves after its deadline, every section is
    /// reported exactly once at both ends, counters are consistent, neither end holds more than its
    /// buffer, and both become idle.
    #[test]
    fn streams_are_accounted_for_and_come_to_rest(
        forward in random_path(1..20, 1..80, 0.0..0.2),
        backward in random_path(1..20, 1..80, 0.0..0.2),
        controller in prop::sample::select(controllers()),
        deliver in prop::sample::select(vec![Deliver::Early, Deliver::Paced]),
        (drop, reliability) in prop::sample::select(vec![
            (DropPolicy::Expired, Reliability::Timeline),
            (DropPolicy::Infeasible, Reliability::Timeline),
            (DropPolicy::Infeasible, Reliability::None),
            (DropPolicy::Never, Reliability::Full),
        ]),
        turns in turns(),
        latency in 30_u64..600,
        outage in (200_u64..1_500, 1_u64..2_500),
        buffers in (60_000_u64..400_000, 60_000_u64..400_000),
        seed in any::<u64>(),
    ) {
        let latency = Span::from_millis(latency);
        let sender = Config {
            drop,
            reliability,
            deliver,
            send_buffer: buffers.0,
            idle_timeout: Span::from_secs(30),
            ..Config::default()
        };
        let sender = Config { expect_deadlines: sender.enforces_deadlines(), ..sender };
        let receiver = Config { receive_buffer: buffers.1, seed: Seed::new(1), ..sender };
        let mut play = Play {
            pair: Pair::new(ends(controller, sender, receiver), [&forward, &backward], Seed::new(seed)),
            taken: Taken::new(),
            sender,
            receiver,
        };
        play.pair.set_outage(Time::from_millis(outage.0), Time::from_millis(outage.0 + outage.1));
        for (number, turn) in turns.iter().enumerate() {
            play.pair.run_until(Time::from_millis(40 * (number as u64 + 1)));
            play.turn(number, *turn, latency);
            play.check_memory()?;
        }
        for stream in [PICTURES, SOUND, DATA] {
            play.pair.ends[0].end(stream).unwrap();
        }
        let is_at_rest = play.pair.run_until_settled(Span::from_secs(300));
        prop_assert!(is_at_rest, "{controller} does not become idle");
        prop_assert!(play.pair.ends.iter().all(Connection::is_open));
        play.pair.run_until(play.pair.now() + latency + Span::from_secs(1));
        play.check_memory()?;
        play.check_the_end()?;
        let mut given = play.taken.values().flatten();
        prop_assert!(given.all(|given| given.payload.is_unique()), "no reference remains");
        // When idle, each end sends a keep-alive a second, its acknowledgement, and runs their
        // timers.
        let (steps, counts) = (play.pair.steps(), play.pair.deliveries.each_ref().map(Vec::len));
        play.pair.run_until(play.pair.now() + Span::from_secs(20));
        let steps = play.pair.steps() - steps;
        prop_assert!(steps <= 20 * 2 * 8, "{controller}: {steps} steps in 20 s of idle time");
        prop_assert_eq!(play.pair.deliveries.each_ref().map(Vec::len), counts);
    }
}
