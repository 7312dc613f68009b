//! The estimate against a slow, literal reading of CapProbe. It keeps every pair, and searches the
//! minimum sum of delays among the pairs in memory. The pair is confirmed if two conditions hold.
//! First, the receiver reports arrival times, or the sum equals the sum of the minimum delays of
//! either packet, to within an eighth of the dispersion for each. Second, the mean dispersion of
//! four pairs or more is between seven eighths and twice the dispersion.

extern crate std;
use super::*;
use crate::Arrived;
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

const WIRE: DataSize = DataSize::new(1_500);
const MEMORY: Span = Span::from_secs(10);
/// The longest pause between pairs.
const PAUSE_MILLIS: u64 = 3_000;
/// The time from the first packet of a pair to that of the next, in nanoseconds: the flow itself is
/// fast enough.
const BETWEEN: u64 = 1_000_000;
/// The reverse path without a queue.
const BACK: Span = Span::from_millis(7);

/// A pair: the pause before it leaves, the delay of its first packet, the time until its second
/// packet arrives, and the delays of both ACKs.
#[derive(Clone, Copy, Debug)]
struct Sample {
    pause: Span,
    delay: Span,
    dispersion: Span,
    held_up: Span,
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let sample = (
        1..PAUSE_MILLIS,
        1_u64..400_000,
        100_u64..5_000,
        0_u64..50_000,
    );
    let sample = sample.prop_map(|(pause, delay, dispersion, held_up)| Sample {
        pause: Span::from_millis(pause),
        delay: Span::from_micros(delay),
        dispersion: Span::from_micros(dispersion),
        held_up: Span::from_micros(held_up),
    });
    vec(sample, 1..60)
}

/// A pair in the memory of CapProbe.
#[derive(Clone, Copy, Debug)]
struct Kept {
    at: Time,
    /// The delays of its packets.
    first: f64,
    second: f64,
}

fn rate(dispersion: f64) -> f64 {
    8.0 * WIRE.get() as f64 / dispersion
}

/// The rate of the pair with the minimum sum of delays among those up to `age` old, and whether it
/// is confirmed.
fn literal(kept: &[Kept], now: Time, age: Span, has_clock: bool) -> Option<(f64, bool)> {
    let young = |age| {
        let is_young = move |pair: &&Kept| now.saturating_since(pair.at) <= age;
        kept.iter().filter(is_young)
    };
    let best = young(age).min_by(|one, other| {
        let sum = |of: &Kept| of.first + of.second;
        sum(one).total_cmp(&sum(other))
    });
    let best = best.expect("there is one");
    let dispersion = best.second - best.first;
    let count = young(age).count();
    let mean = young(age).map(|pair| pair.second - pair.first).sum::<f64>() / count as f64;
    if count < 4 || mean < dispersion * 0.875 || mean > dispersion * 2.0 {
        return Some((rate(mean), false));
    }
    if has_clock {
        return Some((rate(dispersion), true));
    }
    let least = |delay: fn(&Kept) -> f64| young(age).map(delay).fold(f64::INFINITY, f64::min);
    let (first, second) = (least(|pair| pair.first), least(|pair| pair.second));
    // A nanosecond for rounding.
    let allowed = dispersion / 8.0 + 1e-9;
    let longest = second - first;
    let is_agreed = longest > 0.0 && (longest - dispersion).abs() <= dispersion / 8.0 + 1e-9;
    if is_agreed || best.first - first <= allowed && best.second - second <= allowed {
        return Some((rate(dispersion), true));
    }
    Some((rate(mean), false))
}

proptest! {
    /// The estimate is that of the best pair of the last one to two memories, or the mean. This
    /// holds with arrival times on the receiver's clock, whatever delays the acknowledgements, and
    /// with acknowledgements alone. (A memory ends when a pair arrives, so pauses lengthen it.)
    #[test]
    fn the_estimate_is_that_of_the_least_delayed_pair_in_memory(
        samples in samples(),
        clock in prop::option::of(0_u64..1_000_000),
    ) {
        let mut capacity = Capacity::new(MEMORY);
        let mut kept: Vec<Kept> = Vec::new();
        let mut sums: Vec<Span> = Vec::new();
        let mut sent_at = Time::from_secs(1);
        for (pair, sample) in samples.into_iter().enumerate() {
            sent_at += sample.pause + Span::from_secs(1);
            let sum = (sample.delay + BACK) * 2 + sample.dispersion;
            // Sums that differ by little count as equal, which another test covers.
            let is_close = |other: &Span| {
                other.as_nanos().abs_diff(sum.as_nanos()) < 400_000
            };
            if sums.iter().any(is_close) {
                continue;
            }
            sums.push(sum);
            let arrivals = [sample.delay, sample.delay + sample.dispersion];
            for position in 0..2 {
                let number = PacketNumber::new(BETWEEN * pair as u64 + position);
                let sent = Sent {
                    now: sent_at,
                    payload: WIRE,
                    wire: WIRE,
                    number,
                    in_flight: WIRE,
                    app_limited: false,
                };
                capacity.on_sent(&sent, position == 0);
            }
            let mut now = sent_at;
            for (position, arrival) in (0..).zip(arrivals) {
                let number = PacketNumber::new(BETWEEN * pair as u64 + position);
                let held_up = if clock.is_some() { sample.held_up } else { Span::ZERO };
                now = sent_at + arrival + BACK + held_up;
                let arrived_at = clock.map(|ahead| Arrived {
                    at: sent_at + arrival + Span::from_secs(ahead),
                    tick: Span::from_micros(1),
                });
                capacity.on_in_order_ack(&InOrderAck { now, number, arrived_at });
            }
            let first = (sample.delay + BACK).as_secs_f64();
            kept.push(Kept {
                at: now,
                first,
                second: first + sample.dispersion.as_secs_f64(),
            });
            let found = capacity.estimate();
            let longest = MEMORY * 2 + Span::from_millis(PAUSE_MILLIS + 2_000) * 2;
            // Every age at which another pair leaves the memory.
            let ages = kept.iter().map(|pair| now.saturating_since(pair.at));
            let mut ages: Vec<Span> = ages.filter(|age| (MEMORY..longest).contains(age)).collect();
            ages.push(MEMORY);
            let is_right = |age: &Span| {
                match (found, literal(&kept, now, *age, clock.is_some())) {
                    (Some(found), Some((expected, is_confirmed))) => {
                        let error = (found.rate.as_bps() as f64 - expected).abs();
                        found.is_confirmed == is_confirmed && error <= 1.0 + expected * 1e-5
                    }
                    (None, None) => true,
                    _ => false,
                }
            };
            prop_assert!(
                ages.iter().any(is_right),
                "{found:?} at {now}: {kept:?}"
            );
        }
    }
}

/// Both packets of a pair leave.
fn send_pair(capacity: &mut Capacity, pair: u64, now: Time) {
    for position in 0..2 {
        let sent = Sent {
            now,
            payload: WIRE,
            wire: WIRE,
            number: PacketNumber::new(2 * pair + position),
            in_flight: WIRE,
            app_limited: false,
        };
        capacity.on_sent(&sent, position == 0);
    }
}

/// The datagram transport reports arrivals modulo 2³² microseconds. The pairs cross a path of 10
/// Mb/s, one in 100 ms. From shortly before the wrap on, other traffic delays all of them,
/// compresses one half and expands the other half. So none of them is as good as the pairs before.
#[test]
fn stamps_that_wrap_make_no_pair_better() {
    let wrap = 1_u64 << 32;
    let mut capacity = Capacity::new(Span::from_secs(60));
    let mut megabits = Vec::new();
    for pair in 0..200_u64 {
        let sent_at = wrap - 10_000_000 + pair * 100_000;
        let (delay, apart) = if pair < 99 {
            (20_000, 1_200)
        } else {
            (70_000, if pair % 2 == 0 { 300 } else { 2_100 })
        };
        send_pair(&mut capacity, pair, Time::from_micros(sent_at));
        for position in 0..2 {
            let arrival = sent_at + delay + position * apart;
            capacity.on_in_order_ack(&InOrderAck {
                now: Time::from_micros(arrival + 20_000),
                number: PacketNumber::new(2 * pair + position),
                arrived_at: Some(Arrived {
                    at: Time::from_micros(arrival % wrap),
                    tick: Span::from_micros(1),
                }),
            });
        }
        let estimate = capacity.estimate().expect("a pair was answered");
        megabits.push(estimate.rate.as_mbps_f64());
    }
    let is_right = |rate: &f64| (rate - 10.0).abs() < 0.01;
    assert!(megabits.iter().all(is_right), "{megabits:?}");
}

/// Groups of packets cross a path of 50 Mb/s, and the receiver acknowledges every second packet.
/// The last packet of a group of three waits for the timer. The timer is no dispersion. If the ACK
/// comes at once, or if the group is even, the pairs count.
#[test]
fn the_timer_of_delayed_acks_is_no_pair() {
    let megabits = |timer: Span, packets: u64, tick: Option<Span>| {
        let mut capacity = Capacity::new(Span::from_secs(60));
        for group in 0..20 {
            let sent_at = Time::from_millis(100 + 200 * group);
            let number = |position| PacketNumber::new(packets * group + position);
            for position in 0..packets {
                let sent = Sent {
                    now: sent_at,
                    payload: WIRE,
                    wire: WIRE,
                    number: number(position),
                    in_flight: WIRE,
                    app_limited: false,
                };
                capacity.on_sent(&sent, position == 0);
            }
            let mut answer = |position, late| {
                let left_at = sent_at + BACK + Span::from_micros(240 * position) + late;
                capacity.on_in_order_ack(&InOrderAck {
                    now: left_at + BACK,
                    number: number(position),
                    // The receiver stamps the ACK when it leaves.
                    arrived_at: tick.map(|tick| Arrived { at: left_at, tick }),
                });
            };
            answer(1, Span::ZERO);
            if packets == 4 {
                answer(3, Span::ZERO);
            } else {
                answer(2, timer);
            }
        }
        capacity.estimate().map(|found| found.rate.as_mbps_f64())
    };
    for tick in [None, Some(Span::from_micros(1))] {
        for timer in [40, 200] {
            assert_eq!(megabits(Span::from_millis(timer), 3, tick), None);
        }
        for found in [megabits(Span::ZERO, 3, tick), megabits(Span::ZERO, 4, tick)] {
            assert!((found.unwrap() - 50.0).abs() < 0.01, "{found:?}");
        }
    }
}

/// A pause of an hour, during and after which the receiver's time stamps wrap. The delay of the
/// reverse path does not change.
#[test]
fn stamps_are_unwrapped_over_long_pauses() {
    let wrap = 1_u64 << 32;
    let mut capacity = Capacity::new(Span::MAX);
    for (at, late) in [
        (1_000, 0),
        (40, 60),
        (3_600_000_000, 0),
        (3_600_000_000, 500),
    ] {
        let (now, peer_time) =
            capacity
                .last_arrival
                .map_or((wrap - 500, wrap - 500), |(peer_time, now)| {
                    (
                        now.as_nanos() / 1_000 + at,
                        peer_time.as_nanos() / 1_000 + at - late,
                    )
                });
        capacity.on_in_order_ack(&InOrderAck {
            now: Time::from_micros(now),
            number: PacketNumber::new(0),
            arrived_at: Some(Arrived {
                at: Time::from_micros(peer_time % wrap),
                tick: Span::from_micros(1),
            }),
        });
        assert_eq!(
            capacity.last_arrival,
            Some((Time::from_micros(peer_time), Time::from_micros(now)))
        );
    }
}

/// The number of packets in each observed group, after these departures in order: microseconds
/// after the previous packet, size, and whether the sender began a group.
fn groups(departures: impl IntoIterator<Item = (u64, u64, bool)>) -> Vec<u64> {
    let mut capacity = Capacity::new(MEMORY);
    let mut now = Time::from_secs(1);
    for (number, (pause, size, begins)) in (0..).zip(departures) {
        now += Span::from_micros(pause);
        let sent = Sent {
            now,
            payload: DataSize::new(size),
            wire: DataSize::new(size),
            number: PacketNumber::new(number),
            in_flight: WIRE,
            app_limited: false,
        };
        capacity.on_sent(&sent, begins);
    }
    capacity.groups.iter().map(|of| of.packets).collect()
}

#[test]
fn packets_of_one_size_that_leave_together_are_a_group() {
    assert_eq!(groups([(0, 1_600, true), (0, 1_600, false)]), [2]);
    // Up to a 64th smaller or larger: 25 bytes.
    assert_eq!(groups([(0, 1_600, true), (0, 1_575, false)]), [2]);
    assert_eq!(groups([(0, 1_600, true), (0, 1_625, false)]), [2]);
    // A group of one is dropped as soon as another begins.
    assert_eq!(groups([(0, 1_600, true), (0, 1_574, false)]), [1]);
    assert_eq!(groups([(0, 1_600, true), (0, 1_626, false)]), [1]);
    // Up to a millisecond after the first.
    assert_eq!(groups([(0, 1_600, true), (1_000, 1_600, false)]), [2]);
    assert_eq!(groups([(0, 1_600, true), (1_001, 1_600, false)]), [1]);
    let pairs = [true, false, true, false].map(|begins| (0, 1_600, begins));
    assert_eq!(groups(pairs), [2, 2]);
}

#[test]
fn a_group_is_no_longer_than_the_longest() {
    let longest = MAX_GROUP;
    let all = |count| (0..count).map(|at| (0, 1_600, at == 0));
    assert_eq!(groups(all(longest)), [longest]);
    assert_eq!(groups(all(longest + 2)), [longest, 2]);
}

/// Pairs a second apart, each with the delay of its first packet and its dispersion, in
/// microseconds, with the receiver's stamps. Three pairs that queued are before them.
fn of_pairs(pairs: &[(u64, u64)]) -> Option<Estimate> {
    let mut capacity = Capacity::new(MEMORY);
    let queued = [(50_000, 1_200); 3];
    for (pair, &(delay, apart)) in (0..).zip(queued.iter().chain(pairs)) {
        let start = Time::from_secs(1 + pair);
        send_pair(&mut capacity, pair, start);
        for position in 0..2 {
            let at = start + Span::from_micros(delay + position * apart);
            capacity.on_in_order_ack(&InOrderAck {
                now: at + BACK,
                number: PacketNumber::new(2 * pair + position),
                arrived_at: Some(Arrived {
                    at,
                    tick: Span::from_micros(1),
                }),
            });
        }
    }
    capacity.estimate()
}

fn assert_rate(pairs: &[(u64, u64)], dispersion_us: f64) {
    let found = of_pairs(pairs).expect("there are pairs");
    assert!(found.is_confirmed, "{pairs:?}");
    let found = found.rate.as_bps() as f64;
    let expected = rate(dispersion_us / 1e6);
    assert!((found - expected).abs() < expected * 1e-5, "{pairs:?}");
}

/// Delays that differ by a 16th of the dispersion (here 75 us) are equal, and the dispersions of
/// pairs with equal delays are averaged.
#[test]
fn pairs_of_about_the_least_delay_are_averaged() {
    assert_rate(&[(20_000, 1_200), (20_000, 1_230)], 1_215.0);
    assert_rate(
        &[(20_000, 1_200), (20_000, 1_230), (20_000, 1_170)],
        1_200.0,
    );
    // The sum of the delays is 60 us more, and then 130 us more than the least.
    assert_rate(
        &[(20_000, 1_200), (20_030, 1_200), (20_060, 1_210)],
        1_200.0,
    );
    // A pair that is better by less than the tolerance counts in the mean, and the next pair is
    // compared with it.
    assert_rate(
        &[
            (20_060, 1_200),
            (20_030, 1_200),
            (20_000, 1_210),
            (20_060, 1_300),
        ],
        (1_200.0 + 1_200.0 + 1_210.0) / 3.0,
    );
}

#[test]
fn two_answers_to_one_packet_are_no_pair() {
    let mut capacity = Capacity::new(MEMORY);
    let sent = Sent {
        now: Time::from_secs(1),
        payload: WIRE,
        wire: WIRE,
        number: PacketNumber::ZERO,
        in_flight: WIRE,
        app_limited: false,
    };
    capacity.on_sent(&sent, true);
    capacity.on_sent(
        &Sent {
            number: PacketNumber::new(1),
            ..sent
        },
        false,
    );
    for late in [0, 1] {
        capacity.on_in_order_ack(&InOrderAck {
            now: Time::from_millis(1_020 + late),
            number: PacketNumber::ZERO,
            arrived_at: None,
        });
    }
    assert!(capacity.estimate().is_none());
}
