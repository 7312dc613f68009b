//! IFTP against a literal reading of the paper's four parts, over a path that delays each packet by
//! as much as it likes and drops packets and acknowledgements by name.

use std::collections::BTreeSet;

use comity_congestion::controllers::{EveryPacket, Iftp, IftpConfig, LateAcks};
use comity_congestion::{
    Ack, Arrival, Controller, Event, Loss, LossCause, Meter, Pacing, Phase, Report, Tag,
};
use comity_units::{DataSize, PacketNumber, Rate, Span, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::reference::{ack, loss, sent, timeout};

/// The round trip where a test does not say otherwise.
const R: Span = Span::from_millis(100);
const TAU: f64 = 0.001;
const THRESHOLD: usize = 3;
const PACKET: DataSize = DataSize::new(1_000);
/// Times of the controller are whole nanoseconds, those of the reading are not.
const CLOSE: f64 = 1e-6;
/// Below any distance between events, above the rounding of real numbers.
const INSTANT: f64 = 1e-9;

#[derive(Clone, Copy, Debug)]
struct Scene {
    ssthresh: u32,
    max_packets: u32,
    waits: bool,
    min_timeout: Span,
    horizon: f64,
}

/// What the path does to packets, by number.
#[derive(Clone, Debug, Default)]
struct Script {
    dropped: BTreeSet<usize>,
    /// Their acknowledgements do not come: the next one that does names them, too.
    unacknowledged: BTreeSet<usize>,
    /// From a packet's departure to the arrival of its acknowledgement; [`R`] behind the last.
    delays: Vec<Span>,
}

impl Script {
    fn dropping(dropped: impl IntoIterator<Item = usize>) -> Self {
        Self {
            dropped: dropped.into_iter().collect(),
            ..Self::default()
        }
    }

    fn delay(&self, packet: usize) -> Span {
        self.delays.get(packet).copied().unwrap_or(R)
    }
}

/// What left, when, and the n of its round.
type Departures = Vec<(f64, u32)>;

/// The protocol of section 4, with every number found again from the whole history at every event.
#[derive(Debug, Default)]
struct Literal {
    /// The departure of each packet.
    sent: Vec<f64>,
    /// When its acknowledgement came, if it did.
    acked: Vec<Option<f64>>,
    /// Every round trip that was measured.
    samples: Vec<f64>,
    departures: Departures,
    n: u32,
    ssthresh: u32,
    /// The sweeps so far: the first packet of each and its n; the last is under way.
    sweeps: Vec<(usize, u32)>,
    /// Which sweep has to be complete before n grows: the one before, the sweep itself, or none.
    judged: Option<usize>,
    /// Losses up to here are answered.
    answered: usize,
    /// The last packet sent before the loss phase.
    loss_phase: Option<usize>,
    due: f64,
    timer: Option<f64>,
    expiries: i32,
    timeouts: usize,
    /// Answers to packets that were abandoned before.
    late: usize,
    /// From this packet on nothing can be compared: two events were so close to each other that
    /// which of them comes first is a matter of nanoseconds.
    tied: Option<usize>,
}

impl Literal {
    /// What left as far as it can be compared, and whether that is all.
    fn run(scene: Scene, script: &Script) -> (Self, bool) {
        let mut this = Self {
            n: 1,
            ssthresh: scene.ssthresh,
            sweeps: vec![(0, 1)],
            judged: Some(0),
            ..Self::default()
        };
        let mut now = 0.0;
        while now <= scene.horizon && this.tied.is_none() {
            this.step(now, scene, script);
            let next = this.next_event(now, script);
            if next - now < CLOSE {
                this.tied.get_or_insert(this.sent.len());
            }
            now = next;
        }
        let comparable = this.tied.unwrap_or(this.departures.len());
        this.departures.truncate(comparable);
        let is_whole = this.tied.is_none();
        (this, is_whole)
    }

    /// SRTT and RTTVAR of RFC 6298, section 2, over all samples; `None` before the first.
    fn smoothed(&self) -> Option<(f64, f64)> {
        let (first, rest) = self.samples.split_first()?;
        Some(
            rest.iter()
                .fold((*first, first / 2.0), |(srtt, rttvar), sample| {
                    let rttvar = 0.75 * rttvar + 0.25 * (srtt - sample).abs();
                    (0.875 * srtt + 0.125 * sample, rttvar)
                }),
        )
    }

    /// How long a round lasts: one smoothed round trip, and no time before one was measured.
    fn round(&self) -> f64 {
        self.smoothed().map_or(0.0, |(srtt, _)| srtt)
    }

    /// G of equations 2, 4 and 6, in the form that has R.
    fn gap(&self) -> f64 {
        (self.round() / f64::from(self.n) - TAU).max(0.0)
    }

    /// RFC 6298, sections 2 and 5: with a floor, and doubled for each expiry in a row.
    fn timeout(&self, scene: Scene) -> f64 {
        let estimate = self
            .smoothed()
            .map_or(1.0, |(srtt, rttvar)| srtt + (4.0 * rttvar).max(0.001));
        let floored = estimate.max(scene.min_timeout.as_secs_f64());
        (floored * f64::from(1_u32 << self.expiries)).min(60.0)
    }

    fn is_swept(&self) -> bool {
        let (first, n) = self.sweeps[self.sweeps.len() - 1];
        self.sent.len() - first >= n as usize
    }

    fn round_ends(&self) -> f64 {
        let (first, _) = self.sweeps[self.sweeps.len() - 1];
        match (self.sent.get(first), self.smoothed()) {
            (Some(at), Some((srtt, _))) => at + srtt,
            _ => f64::INFINITY,
        }
    }

    /// When the acknowledgement of a packet comes, unless it is dropped.
    fn answer_at(&self, packet: usize, script: &Script) -> f64 {
        self.sent[packet] + script.delay(packet).as_secs_f64()
    }

    /// The packets that arrived and whose acknowledgement the sender does not have.
    fn arriving<'a>(&'a self, script: &'a Script) -> impl Iterator<Item = usize> + 'a {
        (0..self.sent.len()).filter(|at| self.acked[*at].is_none() && !script.dropped.contains(at))
    }

    fn step(&mut self, now: f64, scene: Scene, script: &Script) {
        let due: Vec<usize> = self
            .arriving(script)
            .filter(|at| self.answer_at(*at, script) <= now + INSTANT)
            .collect();
        if due.iter().any(|at| !script.unacknowledged.contains(at)) {
            self.on_ack(now, &due, scene);
        }
        if self.timer.is_some_and(|at| at <= now + INSTANT) {
            self.ssthresh = (self.n / 2).max(2);
            self.expiries += 1;
            self.timeouts += 1;
            self.loss_phase = None;
            self.answered = self.sent.len();
            self.timer = None;
            self.begin(1, now, now);
            self.judged = Some(self.sweeps.len() - 1);
        }
        self.try_end_round(now, scene);
        while !self.is_swept() && self.due <= now + INSTANT {
            self.sent.push(now);
            self.acked.push(None);
            self.departures.push((now, self.n));
            self.due = now + self.gap() + TAU;
            let expires = now + self.timeout(scene);
            self.timer.get_or_insert(expires);
            // The round trip may have become shorter than the sweep took.
            self.try_end_round(now, scene);
        }
    }

    fn try_end_round(&mut self, now: f64, scene: Scene) {
        if now + INSTANT >= self.round_ends() && self.is_swept() {
            self.end_round(now, scene);
        }
    }

    /// One acknowledgement, with all packets that it names. It measures with the newest of them, if
    /// no newer one was acknowledged before, and what it tells of losses is answered by what was
    /// measured up to it.
    fn on_ack(&mut self, now: f64, named: &[usize], scene: Scene) {
        let newest = named[named.len() - 1];
        let is_newest = self.acked[newest..].iter().all(Option::is_none);
        for &packet in named {
            self.on_named(now, packet);
        }
        if is_newest {
            self.samples.push(now - self.sent[newest]);
        }
        self.expiries = 0;
        let is_missing = self.acked[self.answered..].contains(&None);
        self.timer = is_missing.then(|| now + self.timeout(scene));
    }

    fn on_named(&mut self, now: f64, packet: usize) {
        self.acked[packet] = Some(now);
        self.late += usize::from(packet < self.answered);
        if self.loss_phase.is_some_and(|last| packet >= last) {
            self.answered = self.loss_phase.take().unwrap() + 1;
        }
        let missing = (self.answered..self.sent.len()).find(|&at| self.acked[at].is_none());
        let behind = missing.map_or(0, |missing| {
            self.acked[missing..]
                .iter()
                .filter(|acked| acked.is_some())
                .count()
        });
        if self.loss_phase.is_none() && behind >= THRESHOLD {
            if !self.is_swept() && (self.due - now).abs() < CLOSE {
                self.tied.get_or_insert(self.sent.len());
            }
            self.loss_phase = Some(self.sent.len() - 1);
            self.ssthresh = (self.ssthresh / 2).max(2);
            let half = (self.n / 2).max(1);
            let last = self.sent[self.sent.len() - 1];
            self.n = half;
            self.begin(half, now, last + self.gap() + TAU);
            self.judged = None;
        }
    }

    fn begin(&mut self, n: u32, now: f64, due: f64) {
        self.n = n;
        self.sweeps.push((self.sent.len(), n));
        self.due = due.max(now);
    }

    fn end_round(&mut self, now: f64, scene: Scene) {
        let current = self.sweeps.len() - 1;
        let is_acked = self.judged.is_none_or(|sweep| {
            let (first, n) = self.sweeps[sweep];
            self.acked[first..first + n as usize]
                .iter()
                .all(Option::is_some)
        });
        let is_alone = self.judged == Some(current);
        if !is_acked && (scene.waits || is_alone) && self.loss_phase.is_none() {
            return;
        }
        let n = if self.loss_phase.is_some() || !is_acked || self.judged.is_none() {
            self.n
        } else if self.n < self.ssthresh {
            (2 * self.n).min(self.ssthresh)
        } else {
            self.n + 1
        }
        .min(scene.max_packets);
        let last = self.sent[self.sent.len() - 1];
        self.n = n;
        self.begin(n, now, last + self.gap() + TAU);
        self.judged = self.loss_phase.is_none().then_some(current);
    }

    fn next_event(&self, now: f64, script: &Script) -> f64 {
        let acks = self
            .arriving(script)
            .filter(|at| !script.unacknowledged.contains(at))
            .map(|at| self.answer_at(at, script));
        let departure = (!self.is_swept()).then_some(self.due);
        acks.chain(departure)
            .chain(self.timer)
            .chain([self.round_ends()])
            .filter(|at| *at > now + INSTANT)
            .fold(f64::INFINITY, f64::min)
    }
}

/// The controller over the same path, driven by its own wake-ups and departures.
fn drive(scene: Scene, script: &Script) -> Departures {
    let mut controller = Iftp::new(IftpConfig {
        mss: PACKET,
        max_window: DataSize::MAX,
        link: Rate::from_mbps(8),
        ssthresh: scene.ssthresh,
        max_packets: scene.max_packets,
        missing_threshold: THRESHOLD as u32,
        min_timeout: scene.min_timeout,
        late_acks: if scene.waits {
            LateAcks::Wait
        } else {
            LateAcks::Hold
        },
    });
    let mut departures = Departures::new();
    let mut sent_at: Vec<Time> = Vec::new();
    // When the answer to which packet is there.
    let mut answers: BTreeSet<(Time, usize)> = BTreeSet::new();
    // What arrived and was not named yet.
    let mut unnamed: BTreeSet<usize> = BTreeSet::new();
    let mut newest = None;
    let mut now = Time::ZERO;
    let horizon = Time::ZERO + Span::from_secs_f64(scene.horizon);
    while now <= horizon {
        while let Some(&(at, number)) = answers.first()
            && at <= now
        {
            answers.pop_first();
            unnamed.insert(number);
            if script.unacknowledged.contains(&number) {
                continue;
            }
            for named in &unnamed {
                controller.on_event(Event::PacketAcked {
                    now,
                    number: PacketNumber::new(*named as u64),
                    arrived_at: None,
                });
            }
            let last = unnamed.last().copied();
            let rtt = last
                .filter(|_| last > newest)
                .map(|last| now.saturating_since(sent_at[last]));
            newest = newest.max(last);
            controller.on_event(Event::Ack(&Ack {
                rtt,
                ..ack(now, PACKET, R, DataSize::ZERO)
            }));
            unnamed.clear();
        }
        if controller.decision().wakeup.is_some_and(|at| at <= now) {
            controller.on_event(Event::Wakeup(now));
        }
        let Pacing::At(at) = controller.decision().pacing else {
            unreachable!("the controller schedules each departure");
        };
        if at <= now {
            let number = departures.len();
            controller.tag(now);
            controller.on_event(Event::Sent(&sent(now, PACKET, number as u64, PACKET)));
            departures.push((now.as_nanos() as f64 / 1e9, controller.packets()));
            sent_at.push(now);
            if !script.dropped.contains(&number) {
                answers.insert((now + script.delay(number), number));
            }
        }
        let Pacing::At(at) = controller.decision().pacing else {
            unreachable!("the controller schedules each departure");
        };
        let due = [
            answers.first().map(|(at, _)| *at),
            controller.decision().wakeup,
            Some(at),
        ];
        let next = due.into_iter().flatten().min().unwrap_or(Time::MAX);
        now = next.max(now);
    }
    departures
}

/// Whether every departure of the controller is one of the reading's.
fn compare(scene: Scene, script: &Script) -> Result<(), String> {
    let (controller, (paper, is_whole)) = (drive(scene, script), Literal::run(scene, script));
    // A packet on the horizon itself may be on either side of it.
    let difference = controller.len().abs_diff(paper.departures.len());
    if (is_whole && difference > 1) || paper.departures.is_empty() {
        return Err(format!(
            "{} packets, by the paper {}",
            controller.len(),
            paper.departures.len()
        ));
    }
    for (number, (one, other)) in controller.iter().zip(&paper.departures).enumerate() {
        let is_close = (one.0 - other.0).abs() < CLOSE * (number + 1) as f64;
        // The last packet of a sweep may end its round in the very event.
        if !is_close {
            return Err(format!("packet {number}: {one:?}, by the paper {other:?}"));
        }
    }
    Ok(())
}

const SCENE: Scene = Scene {
    ssthresh: 8,
    max_packets: 50,
    waits: true,
    // Far above what round trips of 100 ms give.
    min_timeout: Span::from_secs(1),
    horizon: 3.0,
};

/// Delays of every packet, odd ones so that no two events fall together: around [`R`], some of them
/// much longer, so that later packets overtake and the timeout comes first.
fn delays() -> impl Strategy<Value = Vec<Span>> {
    let delay = prop_oneof![
        8 => 70_000_000u64..130_000_000,
        2 => 20_000_000u64..300_000_000,
        1 => 300_000_000u64..1_500_000_000,
    ];
    prop::collection::vec(delay.prop_map(Span::from_nanos), 200)
}

fn moving() -> impl Strategy<Value = (Scene, Script)> {
    let numbers = |most| prop::collection::btree_set(0usize..200, 0..most);
    let scene = (
        2u32..40,
        1u32..60,
        any::<bool>(),
        prop::sample::select(vec![0u64, 150, 1_000]),
    )
        .prop_map(|(ssthresh, max_packets, waits, min_ms)| Scene {
            ssthresh,
            max_packets,
            waits,
            min_timeout: Span::from_millis(min_ms),
            horizon: 6.0,
        });
    let script =
        (numbers(12), numbers(40), delays()).prop_map(|(dropped, unacknowledged, delays)| Script {
            dropped,
            unacknowledged,
            delays,
        });
    (scene, script)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_departure_is_that_of_the_paper(
        dropped in prop::collection::btree_set(0usize..200, 0..12),
        ssthresh in 2u32..40,
        max_packets in 1u32..60,
        waits in any::<bool>(),
    ) {
        let scene = Scene { ssthresh, max_packets, waits, ..SCENE };
        compare(scene, &Script::dropping(dropped)).map_err(TestCaseError::fail)?;
    }

    /// The same where the round trip moves, so that rounds, gaps and the timeout follow its
    /// smoothed value, packets overtake each other, and acknowledgements are lost or come after the
    /// timeout.
    #[test]
    fn every_departure_is_that_of_the_paper_while_the_round_trip_moves((scene, script) in moving()) {
        compare(scene, &script).map_err(TestCaseError::fail)?;
    }
}

/// Of a hundred such scripts many have timeouts, and answers that come after one, and hardly any
/// ends in a tie.
#[test]
fn moving_round_trips_reach_timeouts_and_late_answers() {
    let mut runner = TestRunner::deterministic();
    let (mut timeouts, mut late, mut packets, mut ties) = (0, 0, 0, 0);
    for _ in 0..100 {
        let (scene, script) = moving().new_tree(&mut runner).unwrap().current();
        let (paper, is_whole) = Literal::run(scene, &script);
        timeouts += paper.timeouts;
        late += paper.late;
        packets += paper.departures.len();
        ties += usize::from(!is_whole);
    }
    assert!(timeouts >= 100 && late >= 100, "{timeouts} and {late}");
    assert!(packets >= 10_000 && ties <= 10, "{packets} and {ties}");
}

/// Packets leave at these times in milliseconds when R = 100 ms and nothing is lost; by hand from
/// equations 1 and 3.
#[test]
fn slow_start_and_avoidance_by_hand() {
    let scene = Scene {
        ssthresh: 4,
        horizon: 0.499,
        ..SCENE
    };
    let times: Vec<f64> = drive(scene, &Script::default())
        .iter()
        .map(|(at, _)| (at * 1e5).round() / 100.0)
        .collect();
    let expected = [
        0.0, 100.0, 150.0, 200.0, 225.0, 250.0, 275.0, 300.0, 320.0, 340.0, 360.0, 380.0, 400.0,
        416.67, 433.33, 450.0, 466.67, 483.33,
    ];
    assert_eq!(times, expected);
}

/// Packet 5 of the sweep 3..=6 is lost: the third acknowledgement behind it is that of packet 8, at
/// 420 ms. n was 5, the half is 2, and the next packet leaves 50 ms after the last.
#[test]
fn a_loss_halves_once_by_hand() {
    let scene = Scene {
        ssthresh: 4,
        horizon: 0.9,
        ..SCENE
    };
    let all = drive(scene, &Script::dropping([5]));
    let after: Vec<(f64, u32)> = all
        .iter()
        .filter(|(at, _)| *at > 0.3795)
        .map(|(at, n)| ((at * 1e4).round() / 10.0, *n))
        .collect();
    // Round of 5 from 300 ms; it lasts, for packet 5 does not come. Nothing leaves between 380 and
    // 430 ms.
    assert_eq!(after[..3], [(380.0, 5), (430.0, 2), (480.0, 2)]);
    // The round of the loss phase ends at 530 ms, the one after it is judged by it and grows at 630
    // ms.
    assert_eq!(after[3..6], [(530.0, 2), (580.0, 2), (630.0, 3)]);
    // With a second loss in the same sweep the reaction is the same one.
    let again = drive(scene, &Script::dropping([5, 6]));
    let halves = again
        .windows(2)
        .filter(|pair| pair[1].1 < pair[0].1)
        .count();
    assert_eq!(halves, 1, "{again:?}");
}

/// Everything from packet 7 on is lost until 12: no acknowledgement for a second after that of
/// packet 6.
#[test]
fn a_timeout_begins_again_with_one_packet_by_hand() {
    let scene = Scene {
        ssthresh: 4,
        horizon: 1.9,
        ..SCENE
    };
    let all = drive(scene, &Script::dropping(7..12));
    // Packets 7 to 11 are the round of 5 at 300 to 380 ms; the acknowledgements of 3..=6 came until
    // 375 ms, so the round of 6 went out at 400 ms: its acknowledgements tell the loss. Without
    // them there is silence.
    let silent = drive(scene, &Script::dropping(7..18));
    let tail: Vec<f64> = silent[18..]
        .iter()
        .map(|(at, _)| (at * 1e4).round() / 10.0)
        .collect();
    assert_eq!(
        tail[..4],
        [1_375.0, 1_475.0, 1_525.0, 1_575.0],
        "{silent:?}"
    );
    assert!(all.len() > silent.len());
}

/// A round trip of 100 ms, then two of 180 ms, whose answers come at 280 and 330 ms: SRTT is 100,
/// 110 and 118.75 ms, RTTVAR 50, 57.5 and 60.625 ms. The round of four, from 200 ms on, waits for
/// the second; the one of five has gaps of 23.75 ms. Nothing more is answered: the timeout is
/// 118.75 + 4 · 60.625 = 361.25 ms behind the last answer, and the next twice that behind the
/// packet that it lets out.
#[test]
fn rounds_and_the_timeout_follow_the_smoothed_round_trip_by_hand() {
    let scene = Scene {
        ssthresh: 4,
        min_timeout: Span::ZERO,
        horizon: 1.414,
        ..SCENE
    };
    let script = Script {
        delays: [100, 180, 180].map(Span::from_millis).to_vec(),
        ..Script::dropping(3..50)
    };
    let found = drive(scene, &script);
    let times: Vec<f64> = found
        .iter()
        .map(|(at, _)| (at * 1e5).round() / 100.0)
        .collect();
    let expected = [
        0.0, 100.0, 150.0, 200.0, 225.0, 250.0, 275.0, 330.0, 353.75, 377.5, 401.25, 425.0, 691.25,
        1_413.75,
    ];
    assert_eq!(times, expected);
    // With its answer late, at 725 ms, the fourth packet is one more measurement, and ends the
    // backing off: SRTT is 169.531 ms, RTTVAR 147.031 ms, so that the timeout is at 725 + 757.656
    // ms. It counts for nothing else.
    let mut script = script;
    script.dropped.remove(&3);
    script.delays.push(Span::from_millis(525));
    let late = drive(
        Scene {
            horizon: 1.49,
            ..scene
        },
        &script,
    );
    let times: Vec<f64> = late
        .iter()
        .map(|(at, _)| (at * 1e5).round() / 100.0)
        .collect();
    assert_eq!(times[..13], expected[..13]);
    assert_eq!(times[13..], [1_482.66]);
}

/// Both forms of equations 2, 4 and 6 are one, as long as R is.
#[test]
fn the_two_forms_of_the_gap_agree() {
    let direct = |packets: f64| R.as_secs_f64() / packets - TAU;
    for packets in [2.0, 3.0, 8.0, 17.0] {
        let gap = direct(packets);
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-15, "{one} {other}");
        close((gap - TAU) / 2.0, direct(2.0 * packets));
        close(
            (packets * gap - TAU) / (packets + 1.0),
            direct(packets + 1.0),
        );
        close(2.0 * gap + TAU, direct(packets / 2.0));
    }
}

/// The answer to a round's only packet comes long after the round trip was found to be shorter than
/// that: the round ends with it, not before.
#[test]
fn a_round_that_a_late_answer_ends_ends_with_it() {
    let mut controller = Iftp::new(IftpConfig {
        mss: PACKET,
        max_window: DataSize::MAX,
        link: Rate::from_mbps(8),
        ssthresh: 8,
        max_packets: 50,
        missing_threshold: THRESHOLD as u32,
        min_timeout: Span::from_secs(60),
        late_acks: LateAcks::Wait,
    });
    controller.tag(Time::ZERO);
    controller.on_event(Event::Sent(&sent(Time::ZERO, PACKET, 0, PACKET)));
    // A packet that is not known, and the measurement that comes with it.
    controller.on_event(Event::PacketAcked {
        now: Time::from_secs(1),
        number: PacketNumber::new(9),
        arrived_at: None,
    });
    controller.on_event(Event::Ack(&ack(
        Time::from_secs(1),
        PACKET,
        Span::from_millis(100),
        PACKET,
    )));
    assert_eq!(
        controller.decision().wakeup,
        Some(Time::from_secs(61)),
        "the timeout alone"
    );
    controller.on_event(Event::PacketAcked {
        now: Time::from_secs(5),
        number: PacketNumber::new(0),
        arrived_at: None,
    });
    assert_eq!(controller.decision().wakeup, Some(Time::from_secs(5)));
}

/// Rounds without a loss at one instant each; `named`: the transport names the packets.
fn grow(controller: &mut Iftp, now: &mut Time, rounds: u32, named: bool) {
    for _ in 0..rounds {
        let packets = controller.packets();
        let first = controller_number(controller);
        for number in first..first + u64::from(packets) {
            let _ = controller.tag(*now);
            controller.on_event(Event::Sent(&sent(*now, PACKET, number, PACKET)));
        }
        assert!(controller.decision().no_feedback_deadline > Some(*now));
        *now += R;
        for number in first..first + u64::from(packets) {
            if named {
                let number = PacketNumber::new(number);
                controller.on_event(Event::PacketAcked {
                    now: *now,
                    number,
                    arrived_at: None,
                });
            }
        }
        controller.on_event(Event::Ack(&Ack {
            packets,
            ..ack(*now, PACKET * u64::from(packets), R, DataSize::ZERO)
        }));
    }
}

/// The packets of all rounds before, in slow start from one packet.
fn controller_number(controller: &Iftp) -> u64 {
    u64::from(controller.packets()) - 1
}

fn slow_start() -> Iftp {
    Iftp::new(IftpConfig {
        mss: PACKET,
        max_window: DataSize::MAX,
        link: Rate::MAX,
        ssthresh: 8,
        max_packets: 100,
        missing_threshold: THRESHOLD as u32,
        min_timeout: Span::from_secs(1),
        late_acks: LateAcks::Hold,
    })
}

/// Figure 3 on a transport that names no packets: losses and timeouts are the transport's.
#[test]
fn without_packet_numbers_the_transport_finds_losses_and_timeouts() {
    let mut controller = slow_start();
    assert!(controller.needs().packet_numbers);
    let mut now = Time::from_secs(1);
    let state = |controller: &Iftp| {
        let decision = controller.decision();
        assert_eq!(
            decision.ssthresh,
            Some(PACKET * u64::from(controller.ssthresh()))
        );
        (controller.packets(), controller.ssthresh(), decision.phase)
    };
    assert_eq!(state(&controller), (1, 8, Phase::SlowStart));
    grow(&mut controller, &mut now, 2, false);
    assert_eq!(state(&controller), (4, 8, Phase::SlowStart));
    grow(&mut controller, &mut now, 1, false);
    assert_eq!(state(&controller), (8, 8, Phase::CongestionAvoidance));
    // An eighth of the round trip, less the nanosecond that a packet takes at the highest rate.
    assert_eq!(controller.gap(), Some(Span::from_nanos(12_499_999)));
    let mut other = controller.clone();
    other.on_event(Event::Timeout(&timeout(now, PACKET, PACKET, 1)));
    assert_eq!(state(&other), (1, 4, Phase::SlowStart));
    let lost = loss(now, DataSize::ZERO, DataSize::ZERO);
    controller.on_event(Event::Loss(&lost));
    assert_eq!(state(&controller), (4, 4, Phase::Steady));
    controller.on_event(Event::Loss(&lost));
    assert_eq!(state(&controller), (4, 4, Phase::Steady), "one reaction");
    controller.on_event(Event::Recovered);
    assert_eq!(state(&controller), (4, 4, Phase::CongestionAvoidance));
    controller.on_event(Event::Timeout(&timeout(now, PACKET, PACKET, 1)));
    assert_eq!(state(&controller), (1, 2, Phase::SlowStart));
}

#[test]
fn with_packet_numbers_the_transport_finds_nothing_but_marks() {
    let mut controller = slow_start();
    let mut now = Time::from_secs(1);
    assert_eq!(controller.decision().no_feedback_deadline, None);
    grow(&mut controller, &mut now, 3, true);
    let lost = loss(now, DataSize::ZERO, DataSize::ZERO);
    controller.on_event(Event::Loss(&lost));
    controller.on_event(Event::Timeout(&timeout(now, PACKET, PACKET, 1)));
    assert_eq!((controller.packets(), controller.ssthresh()), (8, 8));
    controller.on_event(Event::Loss(&Loss {
        cause: LossCause::Mark,
        ..lost
    }));
    assert_eq!((controller.packets(), controller.ssthresh()), (4, 4));
    // Nor does its end of a recovery end the loss phase.
    controller.on_event(Event::Recovered);
    assert_eq!(controller.decision().phase, Phase::Steady);
}

#[test]
fn the_receiver_acknowledges_every_packet_when_it_comes() {
    let mut meter = EveryPacket::default();
    assert_eq!(meter.wakeup(), None);
    let arrive = |meter: &mut EveryPacket, at_ms| {
        meter.on_arrival(&Arrival {
            now: Time::from_millis(at_ms),
            number: PacketNumber::ZERO,
            payload: PACKET,
            wire: PACKET,
            marked: false,
            tag: Tag::None,
        });
    };
    arrive(&mut meter, 5);
    arrive(&mut meter, 6);
    assert_eq!(meter.wakeup(), Some(Time::from_millis(5)));
    assert_eq!(meter.report(Time::from_millis(6)), Report::None);
    assert_eq!(meter.wakeup(), None);
    arrive(&mut meter, 7);
    meter.on_wakeup(Time::from_millis(7));
    assert_eq!(meter.wakeup(), None);
}
