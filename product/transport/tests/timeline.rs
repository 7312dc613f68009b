//! An outbox and an inbox with a path that loses, delays, reorders and duplicates packets.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use comity_transport::timeline::inbox::{self, GapReason};
use comity_transport::timeline::outbox::{self, Fate, Notice};
use comity_transport::timeline::{
    Chunk, ClockMap, Deliver, Delivery, DropPolicy, Importance, Inbox, Meta, Outbox, Outgoing,
    PathEstimate, Reason, Reliability, SectionId, StreamId, Tokens,
};
use comity_units::{Rate, Span, Time};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Setting {
    reliability: Reliability,
    drop: DropPolicy,
    deliver: Deliver,
    /// In hundredths.
    loss: u64,
    duplication: u64,
    /// Declared losses of packets that arrive.
    spurious: u64,
    jitter_millis: u64,
    packets_per_tick: u64,
    sections: Vec<Planned>,
    seed: u64,
}

#[derive(Clone, Debug)]
struct Planned {
    at_millis: u64,
    stream: u16,
    length: usize,
    importance: u8,
    deadline_millis: Option<u64>,
    needs_back: Option<u64>,
    cancel: bool,
}

fn planned() -> impl Strategy<Value = Planned> {
    (
        0_u64..400,
        0_u16..3,
        1_usize..8_000,
        0_u8..4,
        prop::option::weighted(0.9, 0_u64..200),
        prop::option::of(1_u64..3),
        prop::bool::weighted(0.05),
    )
        .prop_map(
            |(at_millis, stream, length, importance, deadline_millis, needs_back, cancel)| {
                Planned {
                    at_millis,
                    stream,
                    length,
                    importance,
                    deadline_millis,
                    needs_back,
                    cancel,
                }
            },
        )
}

fn setting() -> impl Strategy<Value = Setting> {
    let modes = (
        prop::sample::select(vec![
            Reliability::Timeline,
            Reliability::Timeline,
            Reliability::None,
            Reliability::Full,
        ]),
        prop::sample::select(vec![
            DropPolicy::Expired,
            DropPolicy::Infeasible,
            DropPolicy::Never,
        ]),
        prop::sample::select(vec![Deliver::Early, Deliver::Paced]),
    );
    let path = (0_u64..40, 0_u64..20, 0_u64..10, 0_u64..40, 1_u64..6);
    let sections = prop::collection::vec(planned(), 0..60);
    (modes, path, sections, 1_u64..u64::MAX).prop_map(|(modes, path, sections, seed)| Setting {
        reliability: modes.0,
        drop: modes.1,
        deliver: modes.2,
        loss: path.0,
        duplication: path.1,
        spurious: path.2,
        jitter_millis: path.3,
        packets_per_tick: path.4,
        sections,
        seed,
    })
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// The events of a tick, besides sending.
#[derive(Clone, Debug)]
enum Event {
    Arrival {
        departure: u32,
        floor: SectionId,
        meta: Meta,
        chunk: Chunk,
        bytes: Vec<u8>,
    },
    Notice(Notice),
    NoticeLost(Notice),
    Acked(Chunk),
    Lost(Chunk),
}

const DELAY: u64 = 20;

/// The byte at a position of a section.
fn content(stream: StreamId, section: SectionId, length: usize) -> Bytes {
    let seed = u64::from(stream.0) * 31 + section.0 * 7;
    (0..length)
        .map(|at| (seed + at as u64 * 13) as u8)
        .collect()
}

struct World {
    setting: Setting,
    outbox: Outbox<Bytes>,
    inbox: Inbox<Bytes>,
    clock: ClockMap,
    random: Random,
    events: BTreeMap<u64, Vec<Event>>,
    lengths: BTreeMap<(StreamId, SectionId), usize>,
    deadlines: BTreeMap<(StreamId, SectionId), Time>,
    needs: BTreeMap<(StreamId, SectionId), Option<SectionId>>,
    /// The earliest deadline of each section and of all its direct and indirect dependents.
    needed_by: BTreeMap<(StreamId, SectionId), Time>,
    fates: BTreeMap<(StreamId, SectionId), Fate>,
    reported: BTreeSet<(StreamId, SectionId)>,
    whole: u64,
}

impl World {
    fn new(setting: Setting) -> Self {
        let config = outbox::Config {
            reliability: setting.reliability,
            drop: setting.drop,
            ..outbox::Config::default()
        };
        let receiver = inbox::Config {
            deliver: setting.deliver,
            enforce_deadlines: setting.reliability != Reliability::Full
                && setting.drop != DropPolicy::Never,
            ..inbox::Config::default()
        };
        let mut clock = ClockMap::default();
        clock.set_base_one_way(Span::from_millis(DELAY));
        // A packet without sections starts the map.
        clock.on_arrival(Time::from_millis(DELAY), 0);
        Self {
            outbox: Outbox::new(config),
            inbox: Inbox::new(receiver),
            clock,
            random: Random(setting.seed),
            events: BTreeMap::new(),
            lengths: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            needs: BTreeMap::new(),
            needed_by: BTreeMap::new(),
            fates: BTreeMap::new(),
            reported: BTreeSet::new(),
            whole: 0,
            setting,
        }
    }

    fn enforces(&self) -> bool {
        self.setting.reliability != Reliability::Full && self.setting.drop != DropPolicy::Never
    }

    fn at(&mut self, tick: u64, event: Event) {
        self.events.entry(tick).or_default().push(event);
    }

    fn submit(&mut self, tick: u64) {
        let now = Time::from_millis(tick);
        let due: Vec<Planned> = self
            .setting
            .sections
            .iter()
            .filter(|planned| planned.at_millis == tick)
            .cloned()
            .collect();
        for planned in due {
            let stream = StreamId(planned.stream);
            let next = self
                .lengths
                .range((stream, SectionId(0))..=(stream, SectionId(u64::MAX)))
                .count() as u64;
            let needs = planned
                .needs_back
                .and_then(|back| next.checked_sub(back))
                .map(SectionId);
            let deadline = planned
                .deadline_millis
                .map_or(Time::MAX, |millis| now + Span::from_millis(millis));
            let section = self
                .outbox
                .submit(
                    now,
                    Outgoing {
                        stream,
                        importance: Importance(planned.importance),
                        source_time: now,
                        deadline,
                        needs,
                        payload: content(stream, SectionId(next), planned.length),
                    },
                )
                .unwrap();
            assert_eq!(section.0, next);
            self.lengths.insert((stream, section), planned.length);
            self.deadlines.insert((stream, section), deadline);
            self.needed_by.insert((stream, section), deadline);
            self.needs.insert((stream, section), needs);
            let mut at = needs;
            while let Some(needed) = at {
                let by = self.needed_by.get_mut(&(stream, needed)).unwrap();
                *by = deadline.min(*by);
                at = self.needs[&(stream, needed)];
            }
            if planned.cancel {
                self.outbox.cancel(stream, section);
            }
        }
    }

    fn send(&mut self, tick: u64) {
        let now = Time::from_millis(tick);
        let estimate = PathEstimate {
            rate: Some(Rate::from_kbps(8_000 * self.setting.packets_per_tick)),
            one_way: Span::from_millis(DELAY),
            repair: Span::from_millis(60),
            lost_permille: self.setting.loss as u32 * 10,
            // Borrows for three milliseconds in seven.
            tokens: Some(Tokens {
                level: (tick % 7) as i64 * 1_000 - 2_000,
                depth: 1_500,
            }),
            ..PathEstimate::UNKNOWN
        };
        while let Some(notice) = self.outbox.notice_to_tell() {
            self.outbox.on_notice_told();
            if self.random.below(100) < self.setting.loss {
                self.at(tick + 60, Event::NoticeLost(notice));
            } else {
                self.at(tick + DELAY, Event::Notice(notice));
            }
        }
        for _ in 0..self.setting.packets_per_tick {
            let Some(chunk) = self.outbox.next_chunk(now, 1_000, &estimate) else {
                break;
            };
            let meta = self.outbox.meta(&chunk).unwrap();
            if self.enforces() {
                assert!(
                    meta.deadline > now,
                    "a byte left at {now}, due {}",
                    meta.deadline
                );
            }
            let mut bytes = Vec::new();
            assert!(self.outbox.write(&chunk, &mut bytes));
            assert_eq!(bytes.len(), chunk.length as usize);
            if self.random.below(100) < self.setting.loss {
                self.at(tick + 60, Event::Lost(chunk));
                continue;
            }
            let arrival = Event::Arrival {
                departure: (now.as_nanos() / 1_000) as u32,
                floor: self.outbox.floor(chunk.stream),
                meta,
                chunk,
                bytes,
            };
            if self.random.below(100) < self.setting.duplication {
                let again = tick + DELAY + self.random.below(100);
                self.at(again, arrival.clone());
            }
            let there = tick + DELAY + self.random.below(self.setting.jitter_millis + 1);
            self.at(there, arrival);
            if self.random.below(100) < self.setting.spurious {
                self.at(tick + 30, Event::Lost(chunk));
            }
            self.at(there + DELAY, Event::Acked(chunk));
        }
    }

    fn react(&mut self, tick: u64) {
        let now = Time::from_millis(tick);
        for event in self.events.remove(&tick).unwrap_or_default() {
            match event {
                Event::Arrival {
                    departure,
                    floor,
                    meta,
                    chunk,
                    bytes,
                } => {
                    self.clock.on_arrival(now, departure);
                    self.inbox.on_floor(meta.stream, floor).unwrap();
                    self.inbox
                        .on_chunk(now, &self.clock, &meta, chunk.offset, chunk.length, &bytes)
                        .unwrap();
                }
                Event::Notice(notice) => {
                    self.inbox
                        .on_drop(notice.stream, notice.section, notice.reason)
                        .unwrap();
                }
                Event::NoticeLost(notice) => self.outbox.on_notice_lost(notice),
                Event::Acked(chunk) => self.outbox.on_acked(&chunk),
                Event::Lost(chunk) => self.outbox.on_lost(now, &chunk),
            }
            self.balance();
        }
    }

    /// The counters of both ends add up at every step.
    fn balance(&self) {
        let sent = self.outbox.counters();
        assert_eq!(sent.bytes.sum(), sent.bytes.submitted, "{sent:?}");
        assert_eq!(sent.sections.sum(), sent.sections.submitted, "{sent:?}");
        // Bytes outside of the queue await a duplicate transmission and are not acknowledged yet.
        let copies = self.outbox.backlog() - sent.bytes.queued;
        assert!(copies <= sent.bytes.submitted - sent.bytes.acknowledged);
        if self.enforces() {
            assert_eq!(sent.sent_late, 0);
        }
        let received = self.inbox.counters();
        assert_eq!(received.sum(), received.received, "{received:?}");
    }

    fn collect(&mut self, tick: u64) {
        let now = Time::from_millis(tick);
        while let Some(outcome) = self.outbox.poll_outcome() {
            let key = (outcome.stream, outcome.section);
            assert_eq!(outcome.length as usize, self.lengths[&key]);
            let before = self.fates.insert(key, outcome.fate);
            assert_eq!(before, None, "{key:?} has two outcomes");
        }
        let polled: Vec<_> = std::iter::from_fn(|| self.inbox.poll(now, &self.clock)).collect();
        for delivery in polled.into_iter().flat_map(Delivery::each) {
            let (key, meta) = match &delivery {
                Delivery::Section(received) => {
                    let meta = received.meta;
                    let length = self.lengths[&(meta.stream, meta.section)];
                    assert_eq!(received.payload, content(meta.stream, meta.section, length));
                    self.whole += 1;
                    ((meta.stream, meta.section), Some(meta))
                }
                Delivery::Gap(gap) => {
                    assert!(
                        self.setting.reliability != Reliability::Full
                            || matches!(
                                gap.reason,
                                GapReason::Dropped(Reason::Cancelled | Reason::Dependency)
                                    | GapReason::Obsolete
                            ),
                        "{gap:?}"
                    );
                    if let Some(partial) = &gap.partial {
                        let whole = content(gap.stream, gap.section, partial.meta.length as usize);
                        assert!(!partial.missing.is_empty());
                        for (at, byte) in partial.payload.iter().enumerate() {
                            let missing = partial
                                .missing
                                .iter()
                                .any(|range| range.contains(&(at as u32)));
                            assert_eq!(*byte, if missing { 0 } else { whole[at] });
                        }
                    }
                    (
                        (gap.stream, gap.section),
                        gap.partial.as_ref().map(|partial| partial.meta),
                    )
                }
            };
            assert!(self.lengths.contains_key(&key), "{key:?} never existed");
            assert!(self.reported.insert(key), "{key:?} is reported twice");
            let is_all_sent = self.setting.sections.iter().all(|section| !section.cancel);
            if self.setting.reliability == Reliability::Full && is_all_sent {
                // In order, unless deadlines are not.
                let due = self.deadlines[&key];
                let mut before = self.deadlines.range((key.0, SectionId(0))..key);
                assert!(
                    before
                        .all(|(before, deadline)| self.reported.contains(before)
                            || *deadline > due),
                    "{key:?} overtook another one"
                );
            }
            if let Some(meta) = meta
                && !meta.deadline.is_never()
                && self.setting.deliver == Deliver::Paced
            {
                // A section is delivered before its dependents.
                let by = self.needed_by[&key].min(meta.deadline);
                assert!(self.clock.to_local(by) <= now, "{key:?} is early");
            }
        }
        // Nothing waits longer than necessary.
        assert!(self.inbox.next_wakeup(&self.clock) > now);
        self.balance();
    }

    fn tick(&mut self, tick: u64) {
        self.submit(tick);
        self.outbox.expire(Time::from_millis(tick));
        self.react(tick);
        self.send(tick);
        self.balance();
        self.collect(tick);
    }

    /// Runs until both ends are settled.
    fn run(&mut self) {
        let mut tick = 0;
        while tick <= 400 || !self.outbox.is_settled() || !self.events.is_empty() {
            self.tick(tick);
            tick += 1;
            assert!(tick < 60_000, "no end: {:?}", self.outbox.counters());
        }
        for stream in (0..3).map(StreamId) {
            let sections = self.outbox.end(stream).expect("it goes on until now");
            assert_eq!(self.outbox.floor(stream), SectionId(sections));
            self.inbox.on_floor(stream, SectionId(sections)).unwrap();
            self.inbox.on_end(stream, sections).unwrap();
        }
        // All of them are known before their turn.
        let all: BTreeSet<_> = self.lengths.keys().copied().collect();
        let (on_time, late) = self.inbox.complete();
        assert_eq!(on_time + late + self.inbox.gaps(), all.len() as u64);
        for later in 0..2_000 {
            self.collect(tick + later);
        }
        assert_eq!(self.inbox.complete(), (on_time, late));
        assert_eq!(self.inbox.gaps(), self.inbox.counters().gaps.sum());
        assert_eq!(self.reported, all);
        assert_eq!(self.fates.keys().copied().collect::<BTreeSet<_>>(), all);
        for stream in (0..3).map(StreamId) {
            assert!(self.inbox.is_finished(stream), "{stream}");
        }
        assert_eq!(self.inbox.free_bytes(), inbox::Config::default().max_bytes);
        assert_eq!(self.outbox.earliest_deadline(), Time::MAX);
        let sent = self.outbox.counters();
        assert_eq!(
            (sent.bytes.queued, sent.bytes.in_flight, sent.sections.open),
            (0, 0, 0)
        );
        let received = self.inbox.counters();
        assert_eq!(received.on_time + received.complete_late, self.whole);
        assert_eq!(received.gaps.sum() + self.whole, all.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_section_has_one_outcome_at_both_ends(setting in setting()) {
        World::new(setting).run();
    }
}

/// A stream of 20 sections of 4,000 bytes, 20 ms apart, with 100 ms each, over a path of 1 MB/s.
fn easy(loss: u64, drop: DropPolicy, packets_per_tick: u64) -> World {
    let sections = (0..20)
        .map(|number| Planned {
            at_millis: number * 20,
            stream: 0,
            length: 4_000,
            importance: if number % 5 == 0 { 3 } else { 1 },
            deadline_millis: Some(100),
            needs_back: None,
            cancel: false,
        })
        .collect();
    let mut world = World::new(Setting {
        reliability: Reliability::Timeline,
        drop,
        deliver: Deliver::Early,
        loss,
        duplication: 0,
        spurious: 0,
        jitter_millis: 0,
        packets_per_tick,
        sections,
        seed: 7,
    });
    world.run();
    world
}

#[test]
fn on_a_clean_path_everything_is_on_time() {
    for drop in [
        DropPolicy::Expired,
        DropPolicy::Infeasible,
        DropPolicy::Never,
    ] {
        let world = easy(0, drop, 1);
        assert_eq!(world.inbox.counters().on_time, 20);
        assert_eq!(world.outbox.counters().sections.acknowledged, 20);
        assert_eq!(world.outbox.counters().sent_again, 0);
    }
}

#[test]
fn single_losses_are_repaired_before_the_deadline() {
    let world = easy(3, DropPolicy::Infeasible, 1);
    assert_eq!(world.inbox.counters().on_time, 20);
    let again = world.outbox.counters().sent_again;
    assert!((1_000..8_000).contains(&again), "{again}");
}
