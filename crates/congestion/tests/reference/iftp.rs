//! IFTP against a literal reading of the paper's four parts, over a path of fixed delay that drops named packets.

use std::collections::BTreeSet;

use comity_congestion::growth::{Iftp, IftpConfig, LateAcks};
use comity_congestion::{Controller, Pacing};
use comity_units::{Bytes, PacketNumber, Rate, Span, Time};
use proptest::prelude::*;

use crate::{ack, sent};

const R: f64 = 0.1;
const TAU: f64 = 0.001;
/// The floor of the timeout, far above what round trips of 100 ms give.
const RTO: f64 = 1.0;
const THRESHOLD: usize = 3;
const PACKET: Bytes = Bytes::new(1_000);
/// Times of the law are whole nanoseconds, those of the reading are not.
const CLOSE: f64 = 1e-6;

#[derive(Clone, Copy, Debug)]
struct Scene {
    ssthresh: u32,
    max_packets: u32,
    waits: bool,
    horizon: f64,
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
    last_ack: f64,
    timer: Option<f64>,
    expiries: i32,
    /// From this packet on nothing can be compared: it was due at the very moment at which a loss was found, and which of
    /// the two comes first is a matter of nanoseconds.
    tied: Option<usize>,
}

impl Literal {
    /// What left as far as it can be compared, and whether that is all.
    fn run(scene: Scene, drops: &BTreeSet<usize>) -> (Departures, bool) {
        let mut this = Self {
            n: 1,
            ssthresh: scene.ssthresh,
            sweeps: vec![(0, 1)],
            judged: Some(0),
            ..Self::default()
        };
        let mut now = 0.0;
        while now <= scene.horizon {
            this.step(now, scene, drops);
            now = this.next_event(now, drops);
        }
        let comparable = this.tied.unwrap_or(this.departures.len());
        this.departures.truncate(comparable);
        (this.departures, this.tied.is_none())
    }

    /// G of equations 2, 4 and 6, in the form that has R.
    fn gap(&self) -> f64 {
        (R / f64::from(self.n) - TAU).max(0.0)
    }

    fn is_swept(&self) -> bool {
        let (first, n) = self.sweeps[self.sweeps.len() - 1];
        self.sent.len() - first >= n as usize
    }

    fn round_ends(&self) -> f64 {
        let (first, _) = self.sweeps[self.sweeps.len() - 1];
        self.sent.get(first).map_or(f64::INFINITY, |at| at + R)
    }

    fn step(&mut self, now: f64, scene: Scene, drops: &BTreeSet<usize>) {
        for packet in 0..self.sent.len() {
            let is_due = self.acked[packet].is_none()
                && !drops.contains(&packet)
                && self.sent[packet] + R <= now + 1e-9;
            if is_due {
                self.on_ack(now, packet);
            }
        }
        if self.timer.is_some_and(|at| at <= now + 1e-9) {
            self.ssthresh = (self.n / 2).max(2);
            self.expiries += 1;
            self.loss_phase = None;
            self.answered = self.sent.len();
            self.timer = None;
            self.begin(1, now, now);
            self.judged = Some(self.sweeps.len() - 1);
        }
        if now + 1e-9 >= self.round_ends() && self.is_swept() {
            self.end_round(now, scene);
        }
        while !self.is_swept() && self.due <= now + 1e-9 {
            self.sent.push(now);
            self.acked.push(None);
            self.departures.push((now, self.n));
            self.due = now + self.gap() + TAU;
            self.timer
                .get_or_insert(now + RTO * f64::from(1_u32 << self.expiries));
        }
    }

    fn on_ack(&mut self, now: f64, packet: usize) {
        self.acked[packet] = Some(now);
        self.expiries = 0;
        self.last_ack = now;
        if self.loss_phase.is_some_and(|last| packet >= last) {
            self.answered = self.loss_phase.take().unwrap() + 1;
        }
        let missing = (self.answered..self.sent.len()).find(|&at| self.acked[at].is_none());
        self.timer = missing.map(|_| now + RTO);
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

    fn next_event(&self, now: f64, drops: &BTreeSet<usize>) -> f64 {
        let acks = (0..self.sent.len())
            .filter(|at| self.acked[*at].is_none() && !drops.contains(at))
            .map(|at| self.sent[at] + R);
        let departure = (!self.is_swept()).then_some(self.due);
        acks.chain(departure)
            .chain(self.timer)
            .chain([self.round_ends()])
            .filter(|at| *at > now + 1e-9)
            .fold(f64::INFINITY, f64::min)
    }
}

/// The law over the same path, driven by its own wake-ups and departures.
fn drive(scene: Scene, drops: &BTreeSet<usize>) -> Departures {
    let mut law = Iftp::new(IftpConfig {
        mss: PACKET,
        max_window: Bytes::MAX,
        link: Rate::from_mbps(8),
        ssthresh: scene.ssthresh,
        max_packets: scene.max_packets,
        missing_threshold: THRESHOLD as u32,
        min_timeout: Span::from_secs(1),
        late_acks: if scene.waits {
            LateAcks::Wait
        } else {
            LateAcks::Hold
        },
    });
    let round = Span::from_secs_f64(R);
    let mut departures = Departures::new();
    let mut acks: Vec<(Time, u64)> = Vec::new();
    let mut now = Time::ZERO;
    let horizon = Time::ZERO + Span::from_secs_f64(scene.horizon);
    while now <= horizon {
        while acks.first().is_some_and(|(at, _)| *at <= now) {
            let (_, number) = acks.remove(0);
            law.on_packet_acked(now, PacketNumber::new(number));
            law.on_ack(&ack(now, PACKET, round, Bytes::ZERO));
        }
        if law.wakeup().is_some_and(|at| at <= now) {
            law.on_wakeup(now);
        }
        let Pacing::At(at) = law.decision().pacing else {
            unreachable!("the law schedules each departure");
        };
        if at <= now {
            let number = departures.len();
            law.tag(now);
            law.on_sent(&sent(now, PACKET, number as u64, PACKET));
            departures.push((now.as_nanos() as f64 / 1e9, law.packets()));
            if !drops.contains(&number) {
                acks.push((now + round, number as u64));
            }
        }
        let Pacing::At(at) = law.decision().pacing else {
            unreachable!("the law schedules each departure");
        };
        let due = [acks.first().map(|(at, _)| *at), law.wakeup(), Some(at)];
        let next = due.into_iter().flatten().min().unwrap_or(Time::MAX);
        now = next.max(now);
    }
    departures
}

fn compare(scene: Scene, drops: &BTreeSet<usize>) -> Result<(), String> {
    let (law, (paper, is_whole)) = (drive(scene, drops), Literal::run(scene, drops));
    // A packet on the horizon itself may be on either side of it.
    let difference = law.len().abs_diff(paper.len());
    if (is_whole && difference > 1) || paper.is_empty() {
        return Err(format!(
            "{} packets, by the paper {}",
            law.len(),
            paper.len()
        ));
    }
    for (number, (one, other)) in law.iter().zip(&paper).enumerate() {
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
    horizon: 3.0,
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_departure_is_that_of_the_paper(
        drops in prop::collection::btree_set(0usize..200, 0..12),
        ssthresh in 2u32..40,
        max_packets in 1u32..60,
        waits in any::<bool>(),
    ) {
        let scene = Scene { ssthresh, max_packets, waits, ..SCENE };
        compare(scene, &drops).map_err(TestCaseError::fail)?;
    }
}

/// Packets leave at these times in milliseconds when R = 100 ms and nothing is lost; by hand from equations 1 and 3.
#[test]
fn slow_start_and_avoidance_by_hand() {
    let scene = Scene {
        ssthresh: 4,
        horizon: 0.499,
        ..SCENE
    };
    let times: Vec<f64> = drive(scene, &BTreeSet::new())
        .iter()
        .map(|(at, _)| (at * 1e5).round() / 100.0)
        .collect();
    let expected = [
        0.0, 100.0, 150.0, 200.0, 225.0, 250.0, 275.0, 300.0, 320.0, 340.0, 360.0, 380.0, 400.0,
        416.67, 433.33, 450.0, 466.67, 483.33,
    ];
    assert_eq!(times, expected);
}

/// Packet 5 of the sweep 3..=6 is lost: the third acknowledgement behind it is that of packet 8, at 420 ms. n was 5, the
/// half is 2, and the next packet leaves 50 ms after the last.
#[test]
fn a_loss_halves_once_by_hand() {
    let scene = Scene {
        ssthresh: 4,
        horizon: 0.9,
        ..SCENE
    };
    let all = drive(scene, &BTreeSet::from([5]));
    let after: Vec<(f64, u32)> = all
        .iter()
        .filter(|(at, _)| *at > 0.3795)
        .map(|(at, n)| ((at * 1e4).round() / 10.0, *n))
        .collect();
    // Round of 5 from 300 ms; it lasts, for packet 5 does not come. Nothing leaves between 380 and 430 ms.
    assert_eq!(after[..3], [(380.0, 5), (430.0, 2), (480.0, 2)]);
    // The round of the loss phase ends at 530 ms, the one after it is judged by it and grows at 630 ms.
    assert_eq!(after[3..6], [(530.0, 2), (580.0, 2), (630.0, 3)]);
    // With a second loss in the same sweep the reaction is the same one.
    let again = drive(scene, &BTreeSet::from([5, 6]));
    let halves = again
        .windows(2)
        .filter(|pair| pair[1].1 < pair[0].1)
        .count();
    assert_eq!(halves, 1, "{again:?}");
}

/// Everything from packet 7 on is lost until 12: no acknowledgement for a second after that of packet 6.
#[test]
fn a_timeout_begins_again_with_one_packet_by_hand() {
    let scene = Scene {
        ssthresh: 4,
        horizon: 1.9,
        ..SCENE
    };
    let drops: BTreeSet<usize> = (7..12).collect();
    let all = drive(scene, &drops);
    // Packets 7 to 11 are the round of 5 at 300 to 380 ms; the acknowledgements of 3..=6 came until 375 ms, so the
    // round of 6 went out at 400 ms: its acknowledgements tell the loss. Without them there is silence.
    let lost: BTreeSet<usize> = (7..18).collect();
    let silent = drive(scene, &lost);
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

/// Both forms of equations 2, 4 and 6 are one, as long as R is.
#[test]
fn the_two_forms_of_the_gap_agree() {
    let direct = |packets: f64| R / packets - TAU;
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

/// The answer to a round's only packet comes long after the round trip was found to be shorter than that: the round ends with
/// it, not before.
#[test]
fn a_round_that_a_late_answer_ends_ends_with_it() {
    let mut law = Iftp::new(IftpConfig {
        mss: PACKET,
        max_window: Bytes::MAX,
        link: Rate::from_mbps(8),
        ssthresh: 8,
        max_packets: 50,
        missing_threshold: THRESHOLD as u32,
        min_timeout: Span::from_secs(60),
        late_acks: LateAcks::Wait,
    });
    law.tag(Time::ZERO);
    law.on_sent(&sent(Time::ZERO, PACKET, 0, PACKET));
    // A packet that is not known, and the measurement that comes with it.
    law.on_packet_acked(Time::from_secs(1), PacketNumber::new(9));
    law.on_ack(&ack(
        Time::from_secs(1),
        PACKET,
        Span::from_millis(100),
        PACKET,
    ));
    assert_eq!(law.wakeup(), Some(Time::from_secs(61)), "the timeout alone");
    law.on_packet_acked(Time::from_secs(5), PacketNumber::new(0));
    assert_eq!(law.wakeup(), Some(Time::from_secs(5)));
}
