//! RAP against a slow reading of its rules: a list of everything that ever left, searched anew
//! after each event.

use comity_congestion::table::{self, Parameters, Setup, Value};
use comity_congestion::{Controller, Event, Pacing};
use comity_units::{DataSize, PacketNumber, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, sent};

const PACKET: DataSize = DataSize::new(1_000);

/// A packet in the list.
struct Packet {
    number: u64,
    left_at: Time,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Sent,
    Arrived,
    /// Lost itself, or of the cluster of one that was.
    Settled,
}

struct Literal {
    fine_grain: bool,
    list: Vec<Packet>,
    /// SRTT, Var, FRTT, XRTT.
    round_trip: Option<[f64; 4]>,
    ipg: f64,
    step_at: Option<Time>,
    sent_since_step: u32,
    acked_at: Time,
    loss_events: u32,
}

impl Literal {
    fn new(fine_grain: bool) -> Self {
        Self {
            fine_grain,
            list: Vec::new(),
            round_trip: None,
            ipg: 1.0,
            step_at: None,
            sent_since_step: 0,
            acked_at: Time::ZERO,
            loss_events: 0,
        }
    }

    fn gap(&self) -> f64 {
        match self.round_trip {
            Some([_, _, short, long]) if self.fine_grain => self.ipg * short / long,
            _ => self.ipg,
        }
    }

    fn timeout(&self) -> Span {
        Span::from_secs_f64(match self.round_trip {
            None => 2.0,
            Some([smoothed, variation, _, _]) => 1.2 * smoothed + 4.0 * variation,
        })
    }

    fn restart_clock(&mut self, now: Time) {
        let [smoothed, ..] = self.round_trip.unwrap();
        self.step_at = Some(now + Span::from_secs_f64(smoothed));
        self.sent_since_step = 0;
    }

    fn send(&mut self, now: Time, number: u64) {
        self.list.push(Packet {
            number,
            left_at: now,
            fate: Fate::Sent,
        });
        self.sent_since_step += 1;
        if self.round_trip.is_some() && self.step_at.is_none() {
            self.restart_clock(now);
            self.sent_since_step = 1;
        }
    }

    fn arrive(&mut self, now: Time, number: u64) {
        self.acked_at = now;
        let mut left_at = Time::ZERO;
        for packet in &mut self.list {
            if packet.number == number {
                left_at = packet.left_at;
                if packet.fate == Fate::Sent {
                    packet.fate = Fate::Arrived;
                }
            }
        }
        let sample = now.saturating_since(left_at).as_secs_f64();
        match &mut self.round_trip {
            None => {
                self.round_trip = Some([sample, 0.0, sample, sample]);
                self.ipg = sample;
                self.restart_clock(now);
            }
            Some([smoothed, variation, short, long]) => {
                let difference = sample - *smoothed;
                *smoothed += difference / 2.0;
                *variation += (difference.abs() - *variation) / 2.0;
                *short = 0.1 * *short + 0.9 * sample;
                *long = 0.99 * *long + 0.01 * sample;
            }
        }
        // A packet that three later ones outran is lost.
        let is_outrun = self.list.iter().any(|packet| {
            let later = self
                .list
                .iter()
                .filter(|other| other.number > packet.number && other.fate == Fate::Arrived);
            packet.fate == Fate::Sent && later.count() >= 3
        });
        if is_outrun {
            self.lose(now);
        }
    }

    fn lose(&mut self, now: Time) {
        self.ipg *= 2.0;
        for packet in &mut self.list {
            packet.fate = Fate::Settled;
        }
        self.loss_events += 1;
        if self.round_trip.is_some() {
            self.restart_clock(now);
        } else {
            self.step_at = Some(now + Span::from_secs(2));
            self.sent_since_step = 0;
        }
    }

    fn expires_at(&self) -> Option<Time> {
        let outstanding = self.list.iter().filter(|packet| packet.fate == Fate::Sent);
        let left_at = outstanding.map(|packet| packet.left_at).min()?;
        Some((left_at + self.timeout()).max(self.acked_at))
    }

    fn due(&self) -> Option<Time> {
        [self.expires_at(), self.step_at]
            .into_iter()
            .flatten()
            .min()
    }

    fn wake(&mut self, now: Time) {
        if self.expires_at().is_some_and(|at| at <= now) {
            self.lose(now);
        }
        if self.step_at.is_none_or(|at| at > now) {
            return;
        }
        let Some([smoothed, ..]) = self.round_trip else {
            if self.sent_since_step == 0 {
                self.step_at = None;
            } else {
                self.step_at = Some(now + Span::from_secs(2));
                self.sent_since_step = 0;
            }
            return;
        };
        // One packet more in a round trip, where the rate was used.
        if f64::from(self.sent_since_step) * self.ipg >= 0.5 * smoothed {
            self.ipg = smoothed / (smoothed / self.ipg + 1.0);
        }
        if self.sent_since_step == 0 {
            self.step_at = None;
        } else {
            self.restart_clock(now);
        }
    }
}

fn controller(fine_grain: bool) -> Box<dyn Controller> {
    let parameters = Parameters::new().with("fine_grain", Value::Flag(fine_grain));
    let row = table::find("rap").unwrap();
    row.build(&Setup::new(PACKET), &parameters).unwrap()
}

/// One packet: how long after it is due it leaves, in microseconds, how long its acknowledgement
/// takes, and whether it is lost.
type Story = (u64, u64, bool);

/// Both read one story; what they say is compared after each event.
fn compare(stories: &[Story], fine_grain: bool) -> Result<u32, TestCaseError> {
    let mut controller = controller(fine_grain);
    let mut literal = Literal::new(fine_grain);
    let mut now = Time::ZERO;
    let mut send_at = Time::ZERO;
    let mut answers: Vec<(Time, u64)> = Vec::new();
    let mut stories = stories.iter().enumerate();
    let mut next_story = stories.next();
    loop {
        let Pacing::Rate(rate) = controller.decision().pacing else {
            panic!("{:?}", controller.decision().pacing);
        };
        let found = 8e3 / rate.as_bps() as f64;
        let expected = literal.gap();
        let step = 2.0 * expected * expected / 8e3;
        prop_assert!(
            (found - expected).abs() <= 1e-6 * expected + step,
            "at {now:?}: a gap of {found} s, expected {expected}"
        );
        let (wakeup, due) = (controller.decision().wakeup, literal.due());
        let apart = match (wakeup, due) {
            (Some(found), Some(expected)) => {
                found.max(expected).saturating_since(found.min(expected))
            }
            (None, None) => Span::ZERO,
            _ => Span::MAX,
        };
        prop_assert!(
            apart <= Span::from_nanos(2),
            "at {now:?}: wakes at {wakeup:?}, expected {due:?}"
        );
        let wake = wakeup.max(due);
        let answer = answers.iter().copied().min();
        let send = next_story.map(|_| send_at);
        let first = [wake, answer.map(|(at, _)| at), send];
        let Some(first) = first.into_iter().flatten().min() else {
            return Ok(literal.loss_events);
        };
        now = now.max(first);
        if wake.is_some_and(|at| at <= first) {
            controller.on_event(Event::Wakeup(now));
            literal.wake(now);
        } else if let Some((at, number)) = answer.filter(|(at, _)| *at <= first) {
            answers.retain(|answer| *answer != (at, number));
            let left_at = literal.list[number as usize].left_at;
            controller.on_event(Event::PacketAcked {
                now,
                number: PacketNumber::new(number),
                arrived_at: None,
            });
            controller.on_event(Event::Ack(&ack(
                now,
                PACKET,
                now.saturating_since(left_at),
                PACKET * answers.len() as u64,
            )));
            literal.arrive(now, number);
        } else if let Some((number, (pause, delay, is_lost))) = next_story {
            controller.on_event(Event::Sent(&sent(now, PACKET, number as u64, PACKET)));
            literal.send(now, number as u64);
            if !is_lost {
                answers.push((now + Span::from_micros(*delay), number as u64));
            }
            next_story = stories.next();
            send_at = now + Span::from_secs_f64(literal.gap()) + Span::from_micros(*pause);
        }
    }
}

/// Mostly a path of 100 ms; at times packets overtake each other or the application pauses.
fn story() -> impl Strategy<Value = Story> {
    let pause = prop_oneof![20 => Just(0), 2 => 0_u64..300_000, 1 => 0_u64..3_000_000];
    let delay = prop_oneof![8 => 99_000_u64..130_000, 1 => 50_000_u64..600_000];
    (pause, delay, prop::bool::weighted(0.06))
}

proptest! {
    #[test]
    fn any_losses_and_delays(stories in prop::collection::vec(story(), 1..250), fine_grain in any::<bool>()) {
        compare(&stories, fine_grain)?;
    }
}

#[test]
fn a_regular_path_without_losses_and_with_them() {
    let quiet = [(0, 100_000, false); 200];
    assert_eq!(compare(&quiet, false).unwrap(), 0);
    let mut lossy = quiet;
    for number in [60, 61, 63, 120, 180, 198] {
        lossy[number].2 = true;
    }
    // Two close together are one cluster, and the last has too few packets behind it: its timeout.
    assert_eq!(compare(&lossy, false).unwrap(), 4);
}

/// What a sender decides: when, in microseconds, and how many packets leave in a round trip from
/// then on.
type Step = (u64, f64);

/// The round trip of the vector's network, whose queue stays empty, in nanoseconds.
const ROUND_TRIP: f64 = 211_684_000.0;

/// The controller hears of the packets and acknowledgements of ns-2's sender, at their times, and
/// has to raise and halve the rate when that does, by as much. Three losses are events; two more
/// are of the cluster of the second. Until the first event the two are a packet in a round trip
/// apart, for ns-2's clock of round trips runs from the start of the flow and this one from the
/// first acknowledgement; from then on every halving halves what is left of that.
#[test]
fn what_ns2_decides_on_the_same_packets() {
    let mut controller = controller(false);
    let mut sent_at = Vec::new();
    let (mut theirs, mut ours) = (Vec::<Step>::new(), Vec::<Step>::new());
    let packets = |controller: &dyn Controller| match controller.decision().pacing {
        Pacing::Rate(rate) => ROUND_TRIP * rate.as_bps() as f64 / 8e12,
        other => panic!("{other:?}"),
    };
    let vector = include_str!("../../../../vectors/ns2/rap.txt");
    for line in vector.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [micros, number] = [0, 2].map(|column: usize| words[column].parse::<u64>().unwrap());
        let now = Time::from_micros(micros);
        let mut before = packets(&*controller);
        let mut note = |controller: &dyn Controller, at: Time| {
            let after = packets(controller);
            if (after - before).abs() > 1e-3 {
                ours.push((at.as_nanos() / 1_000, after));
            }
            before = after;
        };
        while let Some(due) = controller.decision().wakeup.filter(|due| *due < now) {
            controller.on_event(Event::Wakeup(due));
            note(&*controller, due);
        }
        match words[1] {
            "send" => {
                sent_at.push(now);
                controller.on_event(Event::Sent(&sent(now, PACKET, number, PACKET)));
            }
            "ack" => {
                let rtt = now.saturating_since(sent_at[number as usize - 1]);
                controller.on_event(Event::PacketAcked {
                    now,
                    number: PacketNumber::new(number),
                    arrived_at: None,
                });
                controller.on_event(Event::Ack(&ack(now, PACKET, rtt, PACKET)));
            }
            _ => theirs.push((micros, ROUND_TRIP / number as f64)),
        }
        note(&*controller, now);
    }
    let from_first_event = |steps: Vec<Step>| {
        let first = steps.windows(2).position(|pair| pair[1].1 < pair[0].1);
        steps[first.unwrap() + 1..].to_vec()
    };
    let (theirs, ours) = (from_first_event(theirs), from_first_event(ours));
    assert!(theirs.len() > 25, "{}", theirs.len());
    assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
    let (mut apart, mut events, mut last) = (1.0, 0, f64::MAX);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if theirs.1 < last {
            apart /= 2.0;
            events += 1;
        }
        last = theirs.1;
        // The vector's times are rounded, and the controller's steps follow one another by measured
        // round trips.
        assert!(ours.0.abs_diff(theirs.0) <= 25, "{ours:?} {theirs:?}");
        let difference = theirs.1 - ours.1;
        assert!(
            (difference - apart).abs() < 0.01,
            "{ours:?} {theirs:?} {apart}"
        );
    }
    assert_eq!(events, 3);
}
