//! `bpf/libra.h` against the simulator's Libra.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use comity_congestion::controllers::Increase;
use comity_congestion::controllers::libra::{Libra, LibraConfig};
use comity_congestion::{Ack, Controller, Event, Loss, LossCause};
use comity_kernel::libra::Parameters;
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

use super::compiled;

const MSS: DataSize = DataSize::new(1_000);
/// The size of a packet on the wire.
const WIRE: u64 = 1_250;
/// The relative error of a window after any number of events.
const TOLERANCE: f64 = 1e-3;
const ONE_Q32: f64 = 4_294_967_296.0;

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| compiled("libra"));

/// The state after an event.
#[derive(Clone, Copy, Debug)]
struct State {
    window: f64,
    kbps: f64,
    is_exact: bool,
    beta: f64,
    group: u32,
}

fn answers(parameters: &Parameters, window: f64, events: &str) -> Vec<String> {
    let bytes = parameters.to_bytes().unwrap();
    let longs = bytes[..24].chunks_exact(8);
    let shorts = bytes[24..].chunks_exact(4);
    let mut numbers: Vec<u64> = longs
        .map(|long| u64::from_ne_bytes(long.try_into().unwrap()))
        .chain(shorts.map(|short| u32::from_ne_bytes(short.try_into().unwrap()).into()))
        .collect();
    numbers.push((window * ONE_Q32) as u64);
    super::answers(&PROGRAM, &numbers, events)
}

fn states(parameters: &Parameters, window: f64, events: &str) -> Vec<State> {
    answers(parameters, window, events)
        .iter()
        .map(|line| {
            let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
            State {
                window: numbers[0] as f64 / ONE_Q32,
                kbps: numbers[1] as f64,
                is_exact: numbers[2] == 1,
                beta: numbers[3] as f64 / 65_536.0,
                group: numbers[4] as u32,
            }
        })
        .collect()
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// An ACK after so many microseconds, with a round trip and packets.
    Ack(u64, u64, u32),
    Loss,
}

/// The simulator's Libra after each step.
fn oracle(parameters: &Parameters, window: u64, steps: &[Step]) -> Vec<f64> {
    let mut libra = Libra::new(LibraConfig {
        mss: MSS,
        initial_window: MSS * window,
        initial_ssthresh: MSS,
        max_window: DataSize::MAX,
        a: parameters.a.as_secs_f64(),
        b: parameters.b.as_secs_f64(),
        x: parameters.x,
        y: parameters.y,
        capacity: parameters.capacity,
        increase: Increase::PerSegment,
        pairs: false,
        memory: parameters.memory.unwrap_or(Span::MAX),
        seed: Seed::new(1),
    });
    let mut now = Time::from_secs(1_000);
    steps
        .iter()
        .map(|step| {
            match *step {
                Step::Ack(after, rtt, packets) => {
                    now += Span::from_micros(after);
                    libra.on_event(Event::Ack(&Ack {
                        now,
                        acked: MSS * u64::from(packets),
                        rtt: Some(Span::from_micros(rtt)),
                        in_flight: MSS,
                        app_limited: false,
                        in_recovery: false,
                        marked: 0,
                        packets,
                        sample: None,
                    }));
                }
                Step::Loss => {
                    libra.on_event(Event::Loss(&Loss {
                        now,
                        sent_at: now,
                        lost: MSS,
                        in_flight: MSS,
                        window: MSS,
                        cause: LossCause::Reordering,
                        restart: false,
                    }));
                    libra.on_event(Event::Recovered);
                }
            }
            libra.window()
        })
        .collect()
}

fn script(steps: &[Step]) -> String {
    let mut now = 1_000_000_000;
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Ack(after, rtt, packets) => {
                now += after;
                writeln!(text, "a {now} {rtt} {packets} {WIRE}").unwrap();
            }
            Step::Loss => text.push_str("l\n"),
        }
    }
    text
}

fn parameters() -> impl Strategy<Value = Parameters> {
    (
        (1_000_u64..=20_000_000, 0_u64..=1_500_000),
        (0.01_f64..20.0, 0.0_f64..20.0),
        1_000_u64..=400_000_000,
        prop::option::of(1_000_000_u64..=60_000_000),
    )
        .prop_map(|((a, b), (x, y), kbps, memory)| Parameters {
            a: Span::from_micros(a),
            b: Span::from_micros(b),
            // What the fixed point holds, so that only the arithmetic differs.
            x: (x * 65_536.0).round() / 65_536.0,
            y: (y * 65_536.0).round() / 65_536.0,
            capacity: Some(Rate::from_kbps(kbps)),
            memory: memory.map(Span::from_micros),
            pairs: true,
        })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rtt = prop_oneof![50_u64..2_000, 2_000_u64..400_000, 400_000_u64..3_000_000];
    let ack = (0_u64..2_000_000, rtt, 1_u32..4)
        .prop_map(|(after, rtt, packets)| Step::Ack(after, rtt, packets));
    prop::collection::vec(prop_oneof![12 => ack, 1 => Just(Step::Loss)], 1..200)
}

proptest! {
    /// Losses of a window below four segments differ by design: the kernel's window stays at two.
    #[test]
    fn the_window_is_the_simulators(parameters in parameters(), window in 40_u64..20_000, steps in steps()) {
        let expected = oracle(&parameters, window, &steps);
        let found = states(&parameters, window as f64, &script(&steps));
        prop_assert_eq!(expected.len(), found.len());
        for ((step, expected), found) in steps.iter().zip(&expected).zip(&found) {
            if *expected < 4.0 {
                break;
            }
            let error = (found.window - expected).abs() / expected;
            prop_assert!(error < TOLERANCE, "{step:?}: {} is not {expected}", found.window);
        }
    }
}

/// C = 100 Mb/s and the paper's A = B = 1 s, X = Y = 2: the numbers of the simulator's own tests.
#[test]
fn one_ack_at_the_round_trips_of_the_paper() {
    let parameters = Parameters {
        capacity: Some(Rate::from_mbps(100)),
        ..Parameters::default()
    };
    for (rtt_ms, grown) in [(30, 10.017_476), (90, 10.148_624), (180, 10.549_153)] {
        let events = script(&[Step::Ack(0, rtt_ms * 1_000, 1)]);
        let found = states(&parameters, 10.0, &events)[0].window;
        assert!((found - grown).abs() < 1e-5, "{rtt_ms} ms: {found}");
    }
    let found = states(
        &parameters,
        10.0,
        &script(&[Step::Ack(0, 250_000, 1), Step::Loss]),
    );
    // 1 − 1 / (2 · 1.25) = 0.6 of the window.
    assert!(
        (found[1].window / found[0].window - 0.6).abs() < 1e-6,
        "{found:?}"
    );
}

#[test]
fn the_exponential_is_right_to_six_digits() {
    let exponents: Vec<u64> = (0..2_000).map(|step| step * 700 + step % 7).collect();
    let events: String = exponents.iter().map(|x| format!("e {x}\n")).collect();
    let found = answers(&Parameters::default(), 10.0, &events);
    for (x, found) in exponents.iter().zip(found) {
        let expected = libm::exp(-(*x as f64) / 65_536.0);
        let found = found.parse::<f64>().unwrap() / ONE_Q32;
        assert!(
            (found - expected).abs() < 1e-6 * expected + 1e-9,
            "e^-{x}/65536: {found}"
        );
    }
}

#[test]
fn the_extremes_expire_after_the_memory() {
    let parameters = Parameters {
        capacity: Some(Rate::from_mbps(100)),
        memory: Some(Span::from_secs(10)),
        ..Parameters::default()
    };
    let ms = |at: u64, rtt: u64| {
        format!(
            "a {} {} 1 {WIRE}\n",
            1_000_000_000 + at * 1_000,
            rtt * 1_000
        )
    };
    // 20 to 120 ms, then for three memories between 60 and 80.
    let mut events = ms(0, 20) + &ms(1, 120) + &ms(2, 70);
    for second in 1..31 {
        events +=
            &(ms(second * 1_000, 60) + &ms(second * 1_000 + 1, 80) + &ms(second * 1_000 + 2, 70));
    }
    let found = states(&parameters, 10.0, &events);
    assert!((found[2].beta - 0.5).abs() < 1e-3, "{:?}", found[2]);
    assert!((found[5].beta - 0.5).abs() < 1e-3, "{:?}", found[5]);
    // 60 of 20 to 120.
    assert!((found[3].beta - 0.4).abs() < 1e-3, "{:?}", found[3]);
    // 60 of 60 to 80.
    assert!(
        found[found.len() - 3].beta < 1e-3,
        "{:?}",
        found[found.len() - 3]
    );
}

/// A path of 50 ms on which 1250 bytes take 1 ms, so 10 Mb/s: round trips of pairs, and the time in
/// which the flow delivered one packet.
fn estimated(pairs: &[(u64, u64)], delivered_us: u64) -> State {
    let mut events = String::new();
    let mut left = 1_000_000_000;
    for (first, second) in pairs {
        left += 200_000;
        for rtt in [first, second] {
            writeln!(events, "a {} {rtt} 1 {WIRE}", left + rtt).unwrap();
        }
    }
    writeln!(events, "d 1 {WIRE} {delivered_us}").unwrap();
    *states(&Parameters::default(), 10.0, &events)
        .last()
        .unwrap()
}

const CLEAN: (u64, u64) = (51_000, 52_000);
/// 8 Mb/s.
const DELIVERED_US: u64 = 1_250;

#[test]
fn of_pairs_that_other_traffic_disturbed_the_least_delayed_counts() {
    for pairs in [
        [CLEAN; 4],
        // Longer by traffic between the packets, and shorter by traffic in front of the first.
        [(51_000, 53_500), CLEAN, CLEAN, (52_700, 53_000)],
        [(52_700, 53_000), CLEAN, CLEAN, (51_000, 53_500)],
    ] {
        let found = estimated(&pairs, DELIVERED_US);
        assert!(
            (found.kbps - 10_000.0).abs() < 20.0 && found.is_exact,
            "{found:?}"
        );
    }
}

/// The first pair is clean. The others waited, so the mean alone counts them.
#[test]
fn pairs_are_confirmed_by_a_mean_of_seven_eighths_to_twice_their_dispersion() {
    for (dispersions, is_exact) in [
        (&[1_000, 1_000, 1_000][..], true),
        (&[1_000, 1_000], false),
        (&[834, 833, 833], true),
        (&[833, 833, 833], false),
        (&[1_000, 1_000, 5_000], true),
        (&[1_000, 1_000, 5_001], false),
        // Most packets of a time slot arrive at once.
        (&[0, 0, 0, 0, 0, 0, 0, 0, 1_000, 0], false),
    ] {
        let waited = dispersions.iter().map(|apart| (55_000, 55_000 + apart));
        let pairs: Vec<_> = [CLEAN].into_iter().chain(waited).collect();
        let found = estimated(&pairs, DELIVERED_US);
        let expected = if is_exact { 10_000.0 } else { 8_000.0 };
        assert_eq!(found.is_exact, is_exact, "{dispersions:?}");
        assert!((found.kbps - expected).abs() < 20.0, "{found:?}");
    }
}

/// 10 Mb/s are 24 times the rate of a packet of 1250 bytes in 24 ms.
#[test]
fn pairs_are_confirmed_by_the_flows_own_rate() {
    assert!(estimated(&[CLEAN; 4], 23_900).is_exact);
    let found = estimated(&[CLEAN; 4], 24_100);
    assert_eq!((found.kbps, found.is_exact), (414.0, false));
    assert!(!estimated(&[CLEAN; 4], 0).is_exact, "nothing was delivered");
}

/// The last packet of a group of three waits for the timer of the receiver, which acknowledges
/// every second packet. Behind an ACK of as few packets, or below 20 ms, the second ACK makes a
/// pair.
#[test]
fn the_timer_of_delayed_acks_is_no_pair() {
    let found = |first: u64, late: u64| {
        let mut events = String::new();
        for group in 0..4 {
            for (rtt, packets) in [(51_000, first), (51_000 + late, 1)] {
                let at = 1_000_000_000 + group * 200_000 + rtt;
                writeln!(events, "a {at} {rtt} {packets} {WIRE}").unwrap();
            }
        }
        // 200 kb/s.
        writeln!(events, "d 1 {WIRE} 50000").unwrap();
        let state = *states(&Parameters::default(), 10.0, &events)
            .last()
            .unwrap();
        (state.kbps, state.is_exact)
    };
    assert_eq!(found(2, 40_000), (200.0, false));
    assert_eq!(found(2, 20_000), (200.0, false));
    assert_eq!(found(2, 19_900), (502.0, true));
    assert_eq!(found(1, 40_000), (250.0, true));
}

#[test]
fn packets_that_left_apart_are_no_pair() {
    // The second left 600 µs after the first and arrived 1 ms after it.
    let events = format!("a 1000051000 51000 1 {WIRE}\na 1000052000 51400 1 {WIRE}\n");
    let found = states(&Parameters::default(), 10.0, &events);
    assert_eq!((found[1].kbps, found[1].is_exact), (0.0, false));
}

#[test]
fn a_delivery_sample_is_a_lower_bound_and_growth_is_that_of_tcp_below_it() {
    // 100 packets of 1250 bytes in 10 ms are 100 Mb/s. The ACK of one packet at RTT 180 ms.
    let events = format!("d 100 {WIRE} 10000\na 1000180000 180000 1 {WIRE}\n");
    let found = states(
        &Parameters {
            memory: None,
            ..Parameters::default()
        },
        10.0,
        &events,
    );
    assert_eq!((found[1].kbps, found[1].is_exact), (100_000.0, false));
    assert!(
        (found[1].window - 10.1).abs() < 1e-6,
        "one segment in a round trip: {found:?}"
    );
    // Pairs that say 10 Mb/s are wrong where more arrived.
    let found = estimated(&[CLEAN; 4], 500);
    assert_eq!((found.kbps, found.is_exact), (20_000.0, true));
}

/// Two pairs of 10 Mb/s in 180 ms, where the flow delivered 100 kb/s: C is unknown. At 10 Mb/s the
/// window would grow by half a segment, and with X = 20 by 5.
#[test]
fn while_the_capacity_is_unknown_growth_is_that_of_the_mean_and_at_most_that_of_tcp() {
    let grown = |x: f64| {
        let mut events = String::new();
        for group in 0..2 {
            for rtt in [180_000, 181_000] {
                let at = 1_000_000_000 + group * 500_000 + rtt;
                writeln!(events, "a {at} {rtt} 1 {WIRE}").unwrap();
                writeln!(events, "d 1 {WIRE} 100000").unwrap();
            }
        }
        let parameters = Parameters {
            x,
            y: 0.0,
            ..Parameters::default()
        };
        let found = states(&parameters, 10.0, &events);
        let (before, last) = (found[found.len() - 3], found[found.len() - 1]);
        assert_eq!((last.kbps, last.is_exact), (100.0, false));
        (last.window - before.window) * before.window
    };
    let rtt = 0.181_f64;
    let expected = 2.0 * 10.0 * rtt * rtt / (rtt + 1.0);
    assert!((grown(2.0) - expected).abs() < 1e-3, "{}", grown(2.0));
    assert!((grown(20.0) - 1.0).abs() < 1e-3, "{}", grown(20.0));
}

#[test]
fn a_group_has_one_packet_more_than_an_ack_covers_and_fits_twice_into_the_window() {
    let acks = |packets: u64| {
        let line = |at: u64| format!("a {} 50000 {packets} {WIRE}\n", 1_000_000_000 + at * 1_000);
        format!("d 1 {WIRE} 10000\n") + &(0..60).map(line).collect::<String>()
    };
    let group = |parameters: &Parameters, window: f64, packets: u64| {
        states(parameters, window, &acks(packets))
            .last()
            .unwrap()
            .group
    };
    // Without growth, so that the window stays.
    let estimating = Parameters {
        x: 0.0,
        memory: None,
        ..Parameters::default()
    };
    let known = Parameters {
        capacity: Some(Rate::from_mbps(1)),
        ..estimating
    };
    assert_eq!(group(&estimating, 100.0, 1), 2);
    assert_eq!(group(&estimating, 100.0, 2), 3);
    assert_eq!(group(&estimating, 100.0, 4), 5);
    assert_eq!(group(&known, 100.0, 4), 2);
    assert_eq!(
        group(&estimating, 4.0, 4),
        2,
        "half the window of 4 to 6 segments is fewer"
    );
}

/// The gaps between groups are random, and on average those of the mean rate.
#[test]
fn the_gaps_are_random_and_their_mean_is_that_of_the_rate() {
    let mean = 1_250_000_u64;
    let mut random = 12_345_u32;
    let mut events = String::new();
    for _ in 0..20_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        writeln!(events, "p {mean} {}", random >> 16).unwrap();
    }
    let gaps: Vec<f64> = answers(&Parameters::default(), 10.0, &events)
        .iter()
        .map(|rate| mean as f64 / rate.parse::<f64>().unwrap())
        .collect();
    let average = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((average - 1.0).abs() < 0.005, "{average}");
    assert!(gaps.iter().all(|gap| (0.49..=1.51).contains(gap)));
    let variance = gaps
        .iter()
        .map(|gap| (gap - 1.0) * (gap - 1.0))
        .sum::<f64>()
        / gaps.len() as f64;
    // Half of the difference of two numbers uniform in [0, 1): 2 / 12 / 4.
    assert!((variance - 1.0 / 24.0).abs() < 0.002, "{variance}");
}
