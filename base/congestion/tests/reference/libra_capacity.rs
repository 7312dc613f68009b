//! Libra's estimate of the capacity against a slow reading of its rules: every packet and every
//! pair is kept, and all of them are looked through again for each answer.

use comity_congestion::controllers::{Increase, Libra, LibraConfig};
use comity_congestion::{Arrived, Controller, Event, InOrderAck};
use comity_units::{DataSize, PacketNumber, Seed, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, sent};

const WIRE: DataSize = DataSize::new(1_000);
/// A and X of the controller, and the round trip reported to it.
const A: f64 = 1.0;
const X: f64 = 2.0;
const RTT: Span = Span::from_secs(2);

/// Two packets of one group are answered: their places, when each arrives after the group left, and
/// how long each answer then takes, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Group {
    positions: [u64; 2],
    arrivals: [u64; 2],
    backs: [u64; 2],
}

/// A path with a slowest link on which a packet takes `packet`, and traffic on it and on the
/// reverse path that delays a packet by up to `longest`.
fn group(packet: u64, longest: u64) -> impl Strategy<Value = Group> {
    let waiting = move || prop_oneof![3 => Just(0), 1 => 0..packet / 10, 1 => 0..longest];
    let positions = (0..14_u64, 1..3_u64);
    (positions, [waiting(), waiting()], [waiting(), waiting()]).prop_map(
        move |((position, apart), queues, backs)| {
            let positions = [position, position + apart];
            let mut arrivals = [0; 2];
            let mut answers = [0; 2];
            let mut least = [0; 2];
            for of in 0..2 {
                // One after the other, on either way.
                arrivals[of] =
                    (8_000_000 + (positions[of] + 1) * packet + queues[of]).max(least[0]);
                answers[of] = (arrivals[of] + 5_000_000 + backs[of]).max(least[1] + packet / 30);
                least = [arrivals[of] + packet / 20, answers[of]];
            }
            let backs = [answers[0] - arrivals[0], answers[1] - arrivals[1]];
            Group {
                positions,
                arrivals,
                backs,
            }
        },
    )
}

/// What is known of an answered packet: nanoseconds since its group left, and what the clock of the
/// receiver said.
#[derive(Clone, Copy, Debug)]
struct Known {
    position: f64,
    round_trip: f64,
    one_way: Option<f64>,
    back: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    packets: [Known; 2],
    by_stamps: bool,
    dispersion: f64,
    /// How far the stamps are apart.
    stamps: Option<f64>,
}

impl Pair {
    fn of(packets: [Known; 2], tick: f64) -> Self {
        let answers = packets[1].round_trip - packets[0].round_trip;
        let stamps = match packets {
            [
                Known {
                    one_way: Some(first),
                    ..
                },
                Known {
                    one_way: Some(second),
                    ..
                },
            ] => Some(second - first),
            _ => None,
        };
        let dispersion = match stamps {
            None => answers,
            Some(stamps) if stamps >= 50.0 * tick => stamps,
            Some(stamps) => answers.max(stamps - tick).min(stamps + tick),
        };
        let by_stamps = stamps.is_some_and(|stamps| stamps >= 8.0 * tick);
        Self {
            packets,
            by_stamps,
            dispersion,
            stamps,
        }
    }

    fn apart(&self) -> f64 {
        self.packets[1].position - self.packets[0].position
    }

    fn packet(&self) -> f64 {
        self.dispersion / self.apart()
    }

    fn delay(&self, packet: &Known) -> f64 {
        match packet.one_way {
            Some(one_way) if self.by_stamps => one_way,
            _ => packet.round_trip,
        }
    }

    /// The delays without a queue on the reverse path, so far as `back` tells, less what packets
    /// wait behind their own group.
    fn disturbed(&self, packet: f64, back: f64) -> f64 {
        let each = self.packets.map(|of| {
            let back = if self.by_stamps { back } else { 0.0 };
            self.delay(&of) + back - of.position * packet
        });
        each[0] + each[1]
    }
}

#[derive(Debug, Default)]
struct Reading {
    tick: f64,
    /// How many packets each acknowledgement covered.
    covered: Vec<u64>,
    packets: Vec<Known>,
    /// When each of them was acknowledged, in nanoseconds.
    acked: Vec<f64>,
    /// Those that count.
    pairs: Vec<Pair>,
    best: Option<Pair>,
}

impl Reading {
    fn slack(&self, pair: &Pair) -> f64 {
        if pair.by_stamps { 2.0 * self.tick } else { 0.0 }
    }

    /// How much later than the best pair this one is, and how much counts as nothing.
    fn behind_the_best(&self, pair: &Pair, packets: &[Known]) -> Option<(f64, f64)> {
        let best = self.best?;
        let both = self.packets.iter().chain(packets);
        let back = both.filter_map(|of| of.back).fold(f64::INFINITY, f64::min);
        let packet = best.packet().min(pair.packet());
        let behind = pair.disturbed(packet, back) - best.disturbed(packet, back);
        Some((behind, (pair.dispersion / 16.0).max(self.slack(pair))))
    }

    /// Whether the timer of delayed acknowledgements may have sent the last one, long after the one
    /// before: any of the eight before it covered more packets.
    fn is_late(&self, pair: &Pair) -> bool {
        let (last, before) = self.covered.split_last().expect("two were answered");
        let recent = &before[before.len().saturating_sub(8)..];
        recent.iter().any(|of| of > last) && pair.dispersion >= 20e6
    }

    fn take(&mut self, pair: Pair, numbers: [u64; 2]) {
        let before: u64 = self.covered.iter().sum();
        self.covered
            .extend([numbers[0] + 1 - before, numbers[1] - numbers[0]]);
        if self.is_late(&pair) {
            self.packets.extend(pair.packets);
            return;
        }
        self.pairs.push(pair);
        let behind = self.behind_the_best(&pair, &pair.packets);
        if behind.is_none_or(|(behind, _)| behind < 0.0) {
            self.best = Some(pair);
        }
        self.packets.extend(pair.packets);
    }

    /// The least steep line from the least delayed packet to one at a place behind it.
    fn longest(&self) -> Option<f64> {
        let front = self.packets.iter().min_by(|one, other| {
            let key = |of: &Known| (of.round_trip, of.position);
            key(one).partial_cmp(&key(other)).expect("numbers")
        })?;
        let behind = self
            .packets
            .iter()
            .filter(|of| of.position > front.position);
        let longest = behind
            .map(|of| (of.round_trip - front.round_trip) / (of.position - front.position))
            .fold(f64::INFINITY, f64::min);
        (1.0..f64::INFINITY).contains(&longest).then_some(longest)
    }

    fn is_confirmed(&self, best: &Pair, margin: f64) -> bool {
        let [first, _] = best.packets;
        let by_floors = self.packets.iter().all(|other| {
            let positions = first.position - other.position;
            let expected = other.round_trip + positions * best.packet();
            let allowed = best.packet() * positions.abs().max(best.apart()) / 8.0;
            first.round_trip - expected <= allowed + margin
        });
        let by_slope = self
            .longest()
            .is_some_and(|longest| (longest - best.packet()).abs() <= best.packet() / 8.0 + margin);
        best.by_stamps || by_floors || by_slope
    }

    /// The mean dispersion of a packet.
    fn mean(&self) -> f64 {
        let sum = |of: fn(&Pair) -> f64| self.pairs.iter().map(of).sum::<f64>();
        sum(|pair| pair.dispersion) / sum(Pair::apart)
    }

    /// Whether the means allow that a packet takes as long as in the best pair.
    fn is_near_the_means(&self, best: &Pair, margin: f64) -> bool {
        let packet = best.packet();
        let mean = self.mean();
        let is_near =
            mean * (1.0 + margin) >= packet * 0.875 && mean <= packet * 2.0 * (1.0 + margin);
        let stamped = self
            .pairs
            .iter()
            .filter_map(|pair| Some((pair.stamps?, pair.apart())));
        let (apart, packets) = stamped.fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let ticks = if self.tick > 0.0 {
            apart / self.tick
        } else {
            0.0
        };
        let allowed = 2.0 * packet * packets / self.tick.max(1.0);
        self.pairs.len() >= 4
            && is_near
            && ticks - 3.0 * ticks.sqrt() <= allowed * (1.0 + margin) + margin
    }

    /// The highest number of packets in a nanosecond, over intervals of a round trip or longer.
    fn delivered(&self) -> f64 {
        let mut highest = 0.0_f64;
        let mut began = 0;
        for end in 1..self.acked.len() {
            let left = |of: usize| self.acked[of] - self.packets[of].round_trip;
            let lasted = self.acked[end] - self.acked[began];
            if lasted > 0.0 && lasted >= self.packets[end].round_trip {
                let packets: u64 = self.covered[began + 1..=end].iter().sum();
                highest = highest.max(packets as f64 / lasted.max(left(end) - left(began)));
                began = end;
            }
        }
        highest
    }

    /// Whether the best pair is believed, with a margin in nanoseconds for the rules of the floors,
    /// and in billionths for the others.
    fn is_believed(&self, best: &Pair, margin: f64) -> bool {
        let is_fast_enough = 1.0 <= 24.0 * self.delivered() * best.packet() * (1.0 + margin / 1e9);
        self.is_confirmed(best, margin)
            && self.is_near_the_means(best, margin / 1e9)
            && (self.tick > 0.0 || is_fast_enough)
    }

    /// Whether a nanosecond for each place, as whole numbers lose it, decides.
    fn is_close_call(&self) -> bool {
        self.best
            .is_some_and(|best| self.is_believed(&best, -32.0) != self.is_believed(&best, 32.0))
    }

    /// Nanoseconds for a packet, and whether that is believed.
    fn packet(&self) -> Option<(f64, bool)> {
        let best = self.best?;
        let is_believed = self.is_believed(&best, 0.0);
        let packet = if is_believed {
            best.packet()
        } else {
            self.mean()
        };
        Some((packet, is_believed))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// The estimate, and the growth that it makes. If the estimate is not believed, the growth is
    /// that of the mean dispersion, but no more than a segment in a round trip. Without a pair it
    /// is a segment.
    #[test]
    fn the_estimate_and_its_growth_are_those_of_the_rules(
        groups in prop_oneof![Just(100_000_u64), Just(1_000_000), Just(20_000_000)]
            .prop_flat_map(|packet| (Just(packet), prop_oneof![Just(packet), Just(packet * 40)]))
            .prop_flat_map(|(packet, longest)| prop::collection::vec(group(packet, longest), 1..40)),
        between in prop_oneof![Just(2_u64), Just(2_000), Just(200_000)],
        tick in prop_oneof![Just(None), Just(Some(1_000_u64)), Just(Some(1_000_000))],
    ) {
        let mut controller = Libra::new(LibraConfig {
            mss: WIRE,
            initial_window: WIRE * 1_000,
            initial_ssthresh: WIRE,
            max_window: DataSize::MAX,
            a: A, b: 1.0, x: X, y: 2.0,
            capacity: None,
            increase: Increase::PerAck,
            pairs: false,
            memory: Span::MAX,
            seed: Seed::new(1),
        });
        let mut reading = Reading { tick: tick.unwrap_or(0) as f64, ..Reading::default() };
        let mut first = 0;
        for (at, group) in (1..).zip(groups) {
            let left = Time::from_secs(3 * at);
            // What the clock says, in whole ticks; it is an hour ahead.
            let stamp = |arrival: u64| tick.map(|tick| {
                let exact = left + Span::from_nanos(arrival) + Span::from_secs(3_600);
                Time::from_nanos(exact.as_nanos() / tick * tick)
            });
            let known = [0, 1].map(|of| {
                let said = stamp(group.arrivals[of]).map(|at| at.as_nanos() as f64);
                let answered = group.arrivals[of] + group.backs[of];
                Known {
                    position: group.positions[of] as f64,
                    round_trip: answered as f64,
                    one_way: said.map(|said| said - left.as_nanos() as f64),
                    back: said.map(|said| (left.as_nanos() + answered) as f64 - said),
                }
            });
            let pair = Pair::of(known, reading.tick);
            // Pairs that are as good as the best are averaged, which is another matter.
            let is_equal = reading
                .behind_the_best(&pair, &known)
                .is_some_and(|(behind, tolerance)| behind.abs() <= tolerance + 4.0);
            if is_equal || pair.dispersion < 1.0 {
                continue;
            }
            for position in 0..=group.positions[1] {
                controller.on_event(Event::Sent(&sent(left, WIRE, first + position, WIRE)));
            }
            for of in 0..2 {
                controller.on_event(Event::InOrderAck(&InOrderAck {
                    now: left + Span::from_nanos(group.arrivals[of] + group.backs[of]),
                    number: PacketNumber::new(first + group.positions[of]),
                    arrived_at: stamp(group.arrivals[of]).map(|at| Arrived {
                        at,
                        tick: Span::from_nanos(tick.unwrap_or(0)),
                    }),
                }));
            }
            let numbers = group.positions.map(|position| first + position);
            // The next ACK covers all packets between the groups too.
            first += group.positions[1] + between;
            let acked = [0, 1].map(|of| group.arrivals[of] + group.backs[of]);
            reading.acked.extend(acked.map(|after| (left.as_nanos() + after) as f64));
            reading.take(pair, numbers);

            if reading.is_close_call() {
                return Ok(());
            }
            let expected = reading.packet();
            let mbps_of = |packet: f64| 8e3 * WIRE.get() as f64 / packet;
            let mbps = expected.filter(|(_, is_believed)| *is_believed).map(|(packet, _)| mbps_of(packet));
            let found = controller.capacity().map(|rate| rate.as_mbps_f64());
            // Times for one packet are whole nanoseconds, rates whole bits in a second.
            let error = expected.map_or(1e-9, |(packet, _)| {
                let bit = packet / (8e9 * WIRE.get() as f64);
                1e-6 + 1.5 / packet + bit
            });
            let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < error;
            prop_assert!(
                match (found, mbps) {
                    (Some(found), Some(expected)) => is_near(found, expected),
                    (None, None) => true,
                    _ => false,
                },
                "{found:?} instead of {mbps:?}: {reading:?}"
            );
            let by_controller = |packet: f64| {
                let rtt = RTT.as_secs_f64();
                X * mbps_of(packet) * rtt * rtt / (rtt + A)
            };
            let growth = match expected {
                Some((packet, true)) => by_controller(packet),
                Some((packet, false)) => by_controller(packet).min(1.0),
                None => 1.0,
            };
            let before = controller.window();
            controller.on_event(Event::Ack(&ack(left + RTT, WIRE, RTT, WIRE)));
            let step = controller.window() - before;
            prop_assert!(is_near(step, (growth / before).min(1.0)), "{step}: {growth} {reading:?}");
        }
    }
}
