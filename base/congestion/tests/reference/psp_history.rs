//! The packet-spacing protocol against a reading of the paper that keeps nothing but what happened:
//! when each packet left and arrived, when the spacing changed and what to. Rounds, counts, which
//! loss a decrease is to blame for and when the path is silent are found again from that whole
//! history at every event. Controller and meter run over a path that loses, delays, reorders and
//! repeats packets and reports.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use comity_congestion::controllers::{Psp, PspConfig, RoundMeter, Step};
use comity_congestion::{Arrival, Controller, Event, Feedback, Meter, Pacing, Report, Tag};
use comity_units::{DataSize, PacketNumber, Rate, Seed, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, sent};

const PACKET: DataSize = DataSize::new(1_000);

/// By how much a change of the spacing may differ, in nanoseconds: the controller rounds two times
/// to whole ones on the way, and the first result is divided by three quarters at the least; the
/// history rounds once.
const ROUNDING: f64 = 2.0;

/// What happened to one packet of the sender.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// The place of its departure among all events of the sender.
    position: usize,
    left: Time,
    arrived: Option<Time>,
    is_last_for_now: bool,
}

/// The spacing from some event of the sender on.
#[derive(Clone, Copy, Debug)]
struct Change {
    position: usize,
    /// In nanoseconds.
    spacing: f64,
    /// Whether it answered a loss; otherwise it was lowered on purpose.
    is_for_loss: bool,
}

/// The packets `first..end` that left within one round trip.
#[derive(Clone, Copy, Debug)]
struct Round {
    first: usize,
    end: usize,
}

/// All that happened, and what the text makes of it.
#[derive(Debug)]
struct History {
    rtt: Span,
    /// `t_x`.
    transmission: Span,
    step: Step,
    is_damped: bool,
    settles: bool,
    /// Counts what the sender did or heard.
    positions: usize,
    packets: Vec<Packet>,
    changes: Vec<Change>,
    /// When the path was abandoned: what left before is not judged any more, and begins no round
    /// with what leaves after.
    silences: Vec<usize>,
    /// The reports that were compared, each with when that was.
    judged: Vec<(usize, Time, f64)>,
}

impl History {
    fn spacing_at(&self, position: usize) -> f64 {
        let before = self.changes.iter().rev().find(|it| it.position < position);
        before.map_or(0.0, |change| change.spacing)
    }

    fn spacing(&self) -> f64 {
        self.spacing_at(usize::MAX)
    }

    /// Time is cut into round trips. Each begins with a packet.
    fn rounds(&self) -> Vec<Round> {
        let mut rounds: Vec<Round> = Vec::new();
        for (at, packet) in self.packets.iter().enumerate() {
            match rounds.last_mut() {
                Some(round) if self.is_within(round, packet) => round.end = at + 1,
                _ => rounds.push(Round {
                    first: at,
                    end: at + 1,
                }),
            }
        }
        rounds
    }

    fn is_within(&self, round: &Round, packet: &Packet) -> bool {
        let first = &self.packets[round.first];
        let between = first.position..packet.position;
        packet.left < first.left + self.rtt && !self.silences.iter().any(|it| between.contains(it))
    }

    /// The newest round that was compared or given up, from 1.
    fn newest_settled(&self, rounds: &[Round]) -> usize {
        let judged = self.judged.iter().map(|it| it.0).max().unwrap_or(0);
        let silence = self.silences.last().copied().unwrap_or(0);
        let given_up = rounds
            .iter()
            .filter(|round| self.packets[round.first].position < silence)
            .count();
        judged.max(given_up)
    }

    fn on_departure(&mut self, now: Time, is_last_for_now: bool) {
        self.positions += 1;
        self.packets.push(Packet {
            position: self.positions,
            left: now,
            arrived: None,
            is_last_for_now,
        });
    }

    /// "Each acknowledgment contains the number of packets that were received": of the round that
    /// was over last at the receiver, the packets that are there by now.
    fn expected_report(&self, now: Time) -> Option<(usize, usize)> {
        let rounds = self.rounds();
        let newest = (1..=rounds.len())
            .rev()
            .find(|number| self.over_at(&rounds, *number).is_some_and(|at| at <= now))?;
        let Round { first, end } = rounds[newest - 1];
        let is_there = |packet: &&Packet| packet.arrived.is_some_and(|at| at <= now);
        Some((
            newest,
            self.packets[first..end].iter().filter(is_there).count(),
        ))
    }

    /// When the receiver takes a round for over: an eighth of a round trip after a later one began
    /// there, or two round trips after this one did. If nothing of a round had arrived then, its
    /// neighbours tell, eight back at the most.
    fn over_at(&self, rounds: &[Round], number: usize) -> Option<Time> {
        let first_of = |number: usize| {
            let Round { first, end } = rounds[number - 1];
            let arrivals = self.packets[first..end].iter();
            arrivals.filter_map(|packet| packet.arrived).min()
        };
        let later = (number + 1..=rounds.len())
            .filter_map(|other| Some((first_of(other)?, other)))
            .min();
        let own = first_of(number);
        let by_later = later.map(|(at, _)| at + self.rtt / 8);
        let is_overtaken = |own: Time| later.is_some_and(|(at, _)| at < own);
        match own {
            Some(own) if !is_overtaken(own) => {
                let by_time = own + self.rtt * 2;
                Some(by_later.map_or(by_time, |at| at.min(by_time)))
            }
            _ => {
                let (at, by) = later?;
                let is_after_some = (1..number).any(|it| first_of(it).is_some_and(|it| it < at));
                (is_after_some && by - number <= 8).then_some(at + self.rtt / 8)
            }
        }
    }

    /// Figure 4, at the sender.
    fn on_report(&mut self, now: Time, number: usize, received: usize) {
        self.positions += 1;
        let rounds = self.rounds();
        if number <= self.newest_settled(&rounds) || number > rounds.len() {
            return;
        }
        let Round { first, end } = rounds[number - 1];
        let began = self.packets[first];
        if number == rounds.len() && now < began.left + self.rtt {
            return;
        }
        self.judged.push((number, now, self.spacing()));
        let is_answered_for = |it: &Change| it.is_for_loss && it.position > began.position;
        if self.settles && self.changes.iter().any(is_answered_for) {
            return;
        }
        let changed = self.changes.iter().any(|it| it.position > began.position);
        let must_wait = self.step == Step::Rate && changed;
        let sent = end - first;
        if sent > received {
            let lowered_from = self.lowered_from(&rounds, number);
            self.grow(lowered_from, received as f64 / sent as f64);
        } else if !must_wait
            && self.packets[first..end]
                .iter()
                .all(|it| !it.is_last_for_now)
        {
            self.shrink();
        }
    }

    /// "If a loss occurs due to a deliberate decrease in the packet spacing": the spacing when the
    /// round before this one began where this one began with less, or else that before the first
    /// decrease while it lasted. With steps of the rate, that before the decrease that nothing
    /// followed when this round began.
    fn lowered_from(&self, rounds: &[Round], number: usize) -> Option<f64> {
        let began = |number: usize| self.packets[rounds[number - 1].first].position;
        let spacing = self.spacing_at(began(number));
        if self.step == Step::Rate {
            let mut newest_first = self.changes.iter().rev();
            let last = newest_first.find(|it| it.position < began(number));
            if let Some(decrease) = last.filter(|it| !it.is_for_loss) {
                return Some(self.spacing_at(decrease.position));
            }
        } else if number > 1 {
            let before = self.spacing_at(began(number - 1));
            if before > spacing {
                return Some(before);
            }
        }
        let end = if number < rounds.len() {
            began(number + 1)
        } else {
            usize::MAX
        };
        let mut within = self
            .changes
            .iter()
            .filter(|it| began(number) < it.position && it.position < end && !it.is_for_loss);
        within.next().map(|it| self.spacing_at(it.position))
    }

    fn grow(&mut self, lowered_from: Option<f64>, arrived: f64) {
        let rtt = self.rtt.as_nanos() as f64;
        let transmission = self.transmission.as_nanos() as f64;
        let spacing = match (lowered_from, self.step) {
            (Some(before), Step::Rate) if self.is_damped => {
                let period = self.spacing() + transmission;
                let least = (before + transmission).max(period / arrived);
                // The round trip is measured once, so that it is never longer than the least one.
                let decrease = libm::pow(rtt / period, -0.25).min(0.25);
                (least / (1.0 - decrease)).min(2.0 * period).min(64.0 * rtt) - transmission
            }
            (Some(before), _) if self.is_damped => before,
            (_, Step::Fixed { first, .. }) if self.spacing() == 0.0 => {
                (first.as_nanos() as f64).min(rtt)
            }
            (_, Step::Fixed { .. }) => (2.0 * self.spacing()).min(rtt),
            (_, Step::Rate) => {
                (2.0 * (self.spacing() + transmission)).min(64.0 * rtt) - transmission
            }
        };
        self.change(spacing, true);
    }

    fn shrink(&mut self) {
        let spacing = match self.step {
            Step::Fixed { step, .. } => self.spacing() - step.as_nanos() as f64,
            Step::Rate => {
                let transmission = self.transmission.as_nanos() as f64;
                let rtt = self.rtt.as_nanos() as f64;
                let packets = rtt / (self.spacing() + transmission);
                rtt / (packets + packets.sqrt().min(packets) / 4.0) - transmission
            }
        };
        if spacing.max(0.0) < self.spacing() {
            self.change(spacing, false);
        }
    }

    fn change(&mut self, spacing: f64, is_for_loss: bool) {
        self.positions += 1;
        self.changes.push(Change {
            position: self.positions,
            // The controller keeps whole nanoseconds.
            spacing: spacing.max(0.0).round(),
            is_for_loss,
        });
    }

    /// When four round trips, or four packets if these are further apart, will have passed without
    /// an answer to what left.
    fn silent_at(&self) -> Option<Time> {
        let rounds = self.rounds();
        let oldest = rounds.get(self.newest_settled(&rounds))?;
        let oldest = self.packets[oldest.first];
        let left = (oldest.left, self.spacing_at(oldest.position));
        // A report counts from then on if anything was under way.
        let (since, spacing) = match self.judged.last() {
            Some(&(_, at, spacing)) if at > oldest.left => (at, spacing),
            _ => left,
        };
        let period = Span::from_nanos(spacing.round() as u64) + self.transmission;
        Some(since + self.rtt.max(period) * 4)
    }

    fn on_silence(&mut self) {
        self.positions += 1;
        self.silences.push(self.positions);
        self.grow(None, 0.0);
    }
}

/// What a script is made of. Shares are of 65,536.
#[derive(Clone, Copy, Debug)]
struct Scene {
    seed: Seed,
    rtt: Span,
    /// Packets on the sender's link in one round trip.
    packets: u64,
    step: Step,
    is_damped: bool,
    settles: bool,
    lost: u64,
    late: u64,
    repeated: u64,
    pauses: u64,
    /// Every so many round trips nothing arrives for three of them.
    outages: Option<u64>,
    stray: u64,
    departures: u64,
}

fn scenes() -> impl Strategy<Value = Scene> {
    let fixed = prop_oneof![
        Just((50, 2)),
        (100u64..20_000, 1u64..5_000).prop_map(|(first, step)| (first, step)),
    ];
    let step = prop_oneof![
        2 => fixed.prop_map(|(first, step)| Step::Fixed {
            first: Span::from_micros(first),
            step: Span::from_micros(step),
        }),
        1 => Just(Step::Rate),
    ];
    let shares = (
        prop_oneof![Just(0), 0u64..2_500, 0u64..30_000],
        prop_oneof![Just(0), 0u64..15_000],
        0u64..15_000,
        prop_oneof![Just(0), 0u64..7_500],
        prop_oneof![Just(0), 0u64..5_000],
    );
    (
        any::<u64>(),
        20u64..200,
        3u64..24,
        step,
        any::<[bool; 2]>(),
        shares,
        prop::option::of(6u64..20),
    )
        .prop_map(
            |(seed, rtt, packets, step, switches, shares, outages)| Scene {
                seed: Seed::new(seed),
                rtt: Span::from_millis(rtt),
                packets,
                step,
                is_damped: switches[0],
                settles: switches[1],
                lost: shares.0,
                late: shares.1,
                repeated: shares.2,
                pauses: shares.3,
                stray: shares.4,
                outages,
                departures: 400,
            },
        )
}

/// Steps of the rate where a round trip holds so many packets, and so few are lost, that a decrease
/// is less than a quarter: a loss in a few round trips, while more than 256 packets are in each.
fn scenes_of_many_packets() -> impl Strategy<Value = Scene> {
    (scenes(), 700u64..1_200, 5u64..40).prop_map(|(scene, packets, lost)| Scene {
        packets,
        step: Step::Rate,
        is_damped: true,
        lost,
        late: scene.late / 1_000,
        repeated: scene.repeated / 1_000,
        pauses: 0,
        stray: scene.stray / 1_000,
        outages: None,
        departures: 5_000,
        ..scene
    })
}

/// What the path still holds, in the order of time; equal times in that of their making.
type Agenda = BinaryHeap<Reverse<(Time, u64, What)>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The sender's own time has come.
    Send,
    /// The packet of this place arrives.
    Packet(usize),
    /// A report of a round and a count arrives.
    Report(u32, u32),
}

/// Both ends, their path, and the history beside them.
struct World {
    scene: Scene,
    controller: Psp,
    meter: RoundMeter,
    history: History,
    tags: Vec<Tag>,
    agenda: Agenda,
    draws: u64,
    made: u64,
    due: Time,
}

impl World {
    fn new(scene: Scene) -> Self {
        let link = Rate::of(PACKET, scene.rtt / scene.packets);
        let transmission = link.transmission_time(PACKET);
        let controller = Psp::new(PspConfig {
            mss: PACKET,
            max_window: DataSize::MAX,
            link,
            is_damped: scene.is_damped,
            step: scene.step,
            settles: scene.settles,
            is_dynamic: false,
            jitter: 0.0,
            seed: Seed::new(1),
        });
        let history = History {
            rtt: scene.rtt,
            transmission,
            step: scene.step,
            is_damped: scene.is_damped,
            settles: scene.settles,
            positions: 0,
            packets: Vec::new(),
            changes: Vec::new(),
            silences: Vec::new(),
            judged: Vec::new(),
        };
        Self {
            scene,
            controller,
            meter: RoundMeter::default(),
            history,
            tags: Vec::new(),
            agenda: Agenda::new(),
            draws: 0,
            made: 0,
            due: Time::ZERO,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.draws += 1;
        self.scene.seed.index(self.draws).get() % below
    }

    fn happens(&mut self, share: u64) -> bool {
        self.draw(65_536) < share
    }

    fn plan(&mut self, at: Time, what: What) {
        self.made += 1;
        self.agenda.push(Reverse((at, self.made, what)));
    }

    /// Half a round trip, as a rule with less than an eighth more, at times with up to three round
    /// trips.
    fn travel(&mut self, what: What, now: Time) {
        let rtt = self.scene.rtt.as_nanos();
        let trip = (now.as_nanos() / rtt).checked_rem(self.scene.outages.unwrap_or(u64::MAX));
        let is_out = self.scene.outages.is_some() && trip.is_some_and(|trip| trip < 3);
        if self.happens(self.scene.lost) || is_out {
            return;
        }
        let copies = if self.happens(self.scene.repeated) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let most = if self.happens(self.scene.late) {
                3 * rtt
            } else {
                rtt / 9
            };
            let delay = rtt / 2 + self.draw(most);
            self.plan(now + Span::from_nanos(delay), what);
        }
    }

    fn run(&mut self) -> Result<(), TestCaseError> {
        self.controller.tag(Time::ZERO);
        self.controller
            .on_event(Event::Sent(&sent(Time::ZERO, PACKET, 0, PACKET)));
        let began = Time::ZERO + self.scene.rtt;
        self.controller.on_event(Event::Ack(&ack(
            began,
            PACKET,
            self.scene.rtt,
            DataSize::ZERO,
        )));
        self.due = began;
        self.plan(began, What::Send);
        let mut left = self.scene.departures;
        while let Some(&Reverse((at, ..))) = self.agenda.peek() {
            let silent_at = self.controller.decision().wakeup.unwrap_or(Time::MAX);
            let wakeup_at = self.meter.wakeup().unwrap_or(Time::MAX);
            if wakeup_at <= at.min(silent_at) {
                self.meter.on_wakeup(wakeup_at);
                self.answer(wakeup_at)?;
                continue;
            }
            if silent_at < at {
                self.controller.on_event(Event::Wakeup(silent_at));
                self.history.on_silence();
                self.compare()?;
                continue;
            }
            let Some(Reverse((now, _, what))) = self.agenda.pop() else {
                break;
            };
            match what {
                What::Send if left == 0 => {}
                What::Send => {
                    left -= 1;
                    self.send(now)?;
                }
                What::Packet(at) => self.arrive(now, at)?,
                What::Report(round, packets) => {
                    let report = Report::Count { round, packets };
                    let feedback = Feedback {
                        now,
                        report: &report,
                        rtt: None,
                    };
                    self.controller.on_event(Event::Feedback(&feedback));
                    self.history
                        .on_report(now, round as usize, packets as usize);
                    self.compare()?;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, now: Time) -> Result<(), TestCaseError> {
        let pauses = self.happens(self.scene.pauses);
        let tag = self.controller.tag(now);
        let mut departure = sent(now, PACKET, 0, PACKET);
        departure.app_limited = pauses;
        self.controller.on_event(Event::Sent(&departure));
        self.history.on_departure(now, pauses);
        let round = self.history.rounds().len() as u32;
        let rtt = self.scene.rtt;
        prop_assert_eq!(tag, Tag::Round { round, rtt });
        self.tags.push(tag);
        let Pacing::At(next) = self.controller.decision().pacing else {
            return Err(TestCaseError::fail(
                "the controller schedules each departure",
            ));
        };
        // "The delay introduced between two consecutive packets", from the end of one to the start
        // of the next.
        let period = self.history.spacing() + self.history.transmission.as_nanos() as f64;
        let late = now.saturating_since(self.due);
        let found = next.saturating_since(now).as_nanos() as f64;
        let is_held_up =
            !late.is_zero() && late < Span::from_millis(1).max(Span::from_nanos(period as u64));
        if is_held_up {
            prop_assert!(next >= now + self.history.transmission);
        } else {
            prop_assert!(
                (found - period).abs() < ROUNDING,
                "{} for {}",
                found,
                period
            );
        }
        self.due = next;
        let pause = if pauses {
            self.draw(6 * rtt.as_nanos())
        } else {
            0
        };
        self.plan(next + Span::from_nanos(pause), What::Send);
        self.travel(What::Packet(self.tags.len() - 1), now);
        if self.happens(self.scene.stray) {
            let back = self.draw(7) as u32;
            let packets = self.draw(2 * self.scene.packets) as u32;
            let when = now + Span::from_nanos(self.draw(rtt.as_nanos()));
            self.plan(when, What::Report(round.saturating_sub(back), packets));
        }
        self.compare()
    }

    fn arrive(&mut self, now: Time, at: usize) -> Result<(), TestCaseError> {
        let packet = &mut self.history.packets[at];
        // The transport takes a packet once.
        if packet.arrived.is_some() {
            return Ok(());
        }
        packet.arrived = Some(now);
        self.meter.on_arrival(&Arrival {
            now,
            number: PacketNumber::new(at as u64),
            payload: PACKET,
            wire: PACKET,
            marked: false,
            tag: self.tags[at],
        });
        if self.happens(20_000) {
            self.answer(now)?;
        }
        Ok(())
    }

    fn answer(&mut self, now: Time) -> Result<(), TestCaseError> {
        let report = self.meter.report(now);
        let expected_report = self.history.expected_report(now);
        // Of several rounds that are over at one moment each is reported by itself.
        let is_next_due = self.meter.wakeup().is_some_and(|at| at <= now);
        match (report, expected_report) {
            (Report::Count { round, packets }, Some((newest, count))) => {
                if is_next_due {
                    prop_assert!((round as usize) < newest);
                } else {
                    prop_assert_eq!((round as usize, packets as usize), (newest, count));
                }
                self.travel(What::Report(round, packets), now);
            }
            (Report::None, None) => {}
            other => return Err(TestCaseError::fail(format!("{other:?} at {now}"))),
        }
        Ok(())
    }

    /// Each change is judged by itself: the next begins with what the controller made of it, in
    /// whole nanoseconds. What rounding adds would otherwise grow with every decrease and increase
    /// behind it.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let spacing = self.controller.spacing().as_nanos() as f64;
        let expected = self.history.spacing();
        prop_assert!(
            (spacing - expected).abs() < ROUNDING,
            "{} for {}",
            spacing,
            expected
        );
        if let Some(last) = self.history.changes.last_mut() {
            last.spacing = spacing;
        }
        match (self.controller.decision().wakeup, self.history.silent_at()) {
            (None, None) => {}
            (Some(found), Some(expected)) => prop_assert_eq!(found, expected),
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn controller_and_meter_do_what_the_history_says(scene in scenes()) {
        World::new(scene).run()?;
    }
}

proptest! {
    // Each looks through thousands of packets at every event.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn controller_and_meter_do_what_the_history_says_with_many_packets(scene in scenes_of_many_packets()) {
        World::new(scene).run()?;
    }
}
