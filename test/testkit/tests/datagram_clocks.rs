//! Paced delivery between ends with different clocks, over a path with varying delay:
//! `docs/protocol/core.md`, "How far paced delivery is from its time".

use bytes::Bytes;
use comity_link::{Jitter, LinkConfig};
use comity_testkit::datagram::{Clock, Pair, ends_opened};
use comity_transport::datagram::Config;
use comity_transport::timeline::{Deliver, Delivery, Importance, Outgoing, StreamId};
use comity_units::{Rate, Seed, Span, Time};
use proptest::prelude::*;

/// The parameters of a case. The first of two values belongs to the sender, or to the direction
/// from it.
#[derive(Clone, Copy, Debug)]
struct Case {
    drifts_ppm: [i32; 2],
    /// Each clock's reading when its end was opened, and how long that was before the other one
    /// existed.
    opened_ms: [u64; 2],
    ages_ms: [u64; 2],
    /// The minimum delay in each direction, before the change and after it.
    before_ms: [u64; 2],
    after_ms: [u64; 2],
    jitter_ms: u64,
    latency_ms: u64,
    seed: u64,
}

/// A section each 40 ms.
const SECTIONS: u64 = 2_500;
const INTERVAL_MS: u64 = 40;
const CHANGE_MS: u64 = 50_000;

/// When each section was due by the true time, and how late it was delivered, in milliseconds.
struct Handed {
    due: f64,
    error: f64,
}

fn run(case: &Case) -> Vec<Handed> {
    let config = Config {
        deliver: Deliver::Paced,
        expect_deadlines: true,
        ..Config::default()
    };
    let other = Config {
        seed: Seed::new(1),
        ..config
    };
    let clocks = [0, 1].map(|end| Clock {
        at_zero: Time::from_millis(case.opened_ms[end] + case.ages_ms[end]),
        drift_ppm: case.drifts_ppm[end],
    });
    let ends = ends_opened(
        "steady",
        config,
        other,
        case.opened_ms.map(Time::from_millis),
    );
    let link = LinkConfig {
        jitter: Jitter::Uniform {
            max: Span::from_millis(case.jitter_ms),
            reorder: true,
        },
        ..LinkConfig::new(Rate::from_mbps(100), Span::ZERO)
    };
    let mut pair = Pair::new(ends, [&link, &link], Seed::new(case.seed)).with_clocks(clocks);
    let set = |pair: &mut Pair<Bytes>, delays: [u64; 2]| {
        for (end, delay) in delays.into_iter().enumerate() {
            pair.set_extra_delay(end, Span::from_millis(delay));
        }
    };
    set(&mut pair, case.before_ms);
    let mut due = Vec::new();
    for number in 1..=SECTIONS {
        let at = INTERVAL_MS * number;
        pair.run_until(Time::from_millis(at));
        if at == CHANGE_MS {
            set(&mut pair, case.after_ms);
        }
        let now = pair.reading(0);
        let deadline = now + Span::from_millis(case.latency_ms);
        due.push(clocks[0].first_showing(deadline));
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(100),
            source_time: now,
            deadline,
            needs: None,
            payload: Bytes::from_static(&[7; 2_000]),
        };
        pair.ends[0].submit(now, section).expect("room");
    }
    pair.run_until(pair.now() + Span::from_secs(2));
    let handed = pair.deliveries[1].iter().map(|(at, delivery)| {
        let Delivery::Section(section) = delivery else {
            panic!("{delivery:?}")
        };
        let due = due[section.meta.section.0 as usize].as_secs_f64() * 1e3;
        Handed {
            due,
            error: at.as_secs_f64() * 1e3 - due,
        }
    });
    handed.collect()
}

fn cases() -> impl Strategy<Value = Case> {
    let each_way = |least, most| [least..most, least..most];
    (
        [-100..=100_i32, -100..=100_i32],
        each_way(0, 5_000_000_u64),
        each_way(0, 4_000_u64),
        each_way(1, 60_u64),
        each_way(1, 60_u64),
        0..=10_u64,
        300..600_u64,
        any::<u64>(),
    )
        .prop_map(
            |(drifts_ppm, opened_ms, ages_ms, before_ms, after_ms, jitter_ms, latency_ms, seed)| {
                Case {
                    drifts_ppm,
                    opened_ms,
                    ages_ms,
                    before_ms,
                    after_ms,
                    jitter_ms,
                    latency_ms,
                    seed,
                }
            },
        )
}

/// The Ping of a receiver is answered together with its later packets. On this path, the
/// acknowledgements arrive when a later packet, which is not ack-eliciting, is their largest.
#[test]
fn a_round_trip_is_measured_by_an_answer_that_names_more_than_the_ping() {
    let case = Case {
        drifts_ppm: [0, 0],
        opened_ms: [0, 0],
        ages_ms: [960, 10],
        before_ms: [50, 1],
        after_ms: [1, 1],
        jitter_ms: 1,
        latency_ms: 300,
        seed: 9_010_014_343_948_545_353,
    };
    let handed = run(&case);
    let between = |least: f64, most: f64| {
        let errors = handed
            .iter()
            .filter(move |handed| least <= handed.due && handed.due < most);
        errors.map(|handed| handed.error)
    };
    // 50 ms forward and 1 ms reverse: an offset of 24.5 ms, early by up to jitter and
    // acknowledgement delay, late by jitter.
    assert!(between(1_000.0, 50_000.0).count() > 1_200);
    assert!(between(1_000.0, 50_000.0).all(|error| (18.0..=26.0).contains(&error)));
    assert!(
        between(0.0, 400.0).all(|error| (49.5..=51.5).contains(&error)),
        "nothing is measured yet"
    );
}

/// A Ping that is on its way while the path changes measures the old delay of one direction and the
/// new one of the other: 37 ms here, which no path has.
#[test]
fn a_round_trip_of_two_paths_can_stay_the_least_one() {
    let case = Case {
        drifts_ppm: [0, 0],
        opened_ms: [0, 0],
        ages_ms: [0, 999],
        before_ms: [49, 36],
        after_ms: [1, 58],
        jitter_ms: 4,
        latency_ms: 300,
        seed: 11_458_707_686_265_857_339,
    };
    let handed = run(&case);
    let last = handed.iter().rev().take(500).map(|handed| handed.error);
    // Its half is 18.5 ms, plus jitter. Sections are 1 ms on their way: early by 17.5 ms and more,
    // instead of by half of 59 ms less 1 ms.
    assert!(last.clone().all(|error| (-28.0..=-17.5).contains(&error)));
    assert_eq!(last.len(), 500);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every section is delivered completely, and as close to its due time as the page states:
    /// before the change, while the map moves, and after it settles. In units of the page: `f` and
    /// `b` in milliseconds, positive errors are late.
    #[test]
    fn paced_delivery_stays_within_its_bounds(case in cases()) {
        let handed = run(&case);
        prop_assert_eq!(handed.len() as u64, SECTIONS);
        let [forward, backward] = case.before_ms.map(|delay| delay as f64);
        let [forward_after, backward_after] = case.after_ms.map(|delay| delay as f64);
        let base = (forward + backward) / 2.0;
        let base_after = base.min((forward_after + backward_after) / 2.0);
        let (before, after) = (forward - base, forward_after - base_after);
        let jitter = case.jitter_ms as f64;
        let relative = f64::from(case.drifts_ppm[0] - case.drifts_ppm[1]).abs() / 1e6;
        // Transmission and the rounding of stamps cost less than half a millisecond.
        let early = jitter + 5.0 + relative * 18_000.0 + 0.5;
        let late = jitter + 0.5;
        // Until a round trip is measured, the whole delay counts as the difference of the clocks.
        let started = 2_000.0;
        let change = CHANGE_MS as f64;
        // A Ping on its way during the change takes the old path, and its answer the new one. Their
        // round trip can stay the least one.
        let base_mixed = base_after.min((backward + forward_after) / 2.0);
        let after_mixed = forward_after - base_mixed;
        // The window, a bucket, and at 10 ms per second the whole delay and the earlier lead of the
        // base.
        let moved = (forward_after - forward).abs() + base - base_mixed;
        let settled = change + 18_000.0 + 100.0 * moved + 2_000.0;
        for Handed { due, error } in handed {
            let (least, most) = if due < started {
                (before - early, before + base + late)
            } else if due < change {
                (before - early, before + late)
            } else if due < settled {
                // Slewing until a round trip is measured, for at most two seconds.
                let lowest = before.min(after) - 20.0;
                (lowest - early, before.max(after_mixed) + late)
            } else {
                (after - early, after_mixed + late)
            };
            prop_assert!(
                least <= error && error <= most,
                "{error:.2} ms at {due:.0} ms, expected {least:.2} to {most:.2}"
            );
        }
    }
}
