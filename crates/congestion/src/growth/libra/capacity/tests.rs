//! The estimate against a slow, literal reading of CapProbe: every pair is kept, and the one with the least sum of delays
//! is looked for among those that are young enough.

extern crate std;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

const WIRE: Bytes = Bytes::new(1_500);
const MEMORY: Span = Span::from_secs(10);
/// Between pairs, at the most.
const PAUSE_MILLIS: u64 = 3_000;
/// The way back without a queue.
const BACK: Span = Span::from_millis(7);

/// A pair on its way: how long after the one before it leaves, how long the first takes to arrive, how long after that the
/// second arrives, and how long the answers to both are held up.
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

/// A pair as CapProbe keeps it.
#[derive(Clone, Copy, Debug)]
struct Kept {
    at: Time,
    sum: Span,
    dispersion: Span,
}

/// The rate by the pair with the least sum of delays of those that are no older than `age`.
fn literal(kept: &[Kept], now: Time, age: Span) -> f64 {
    let young = kept
        .iter()
        .filter(|pair| now.saturating_since(pair.at) <= age);
    let best = young.min_by_key(|pair| pair.sum).expect("there is one");
    8.0 * WIRE.get() as f64 / best.dispersion.as_secs_f64()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whether the receiver says when packets arrived, on a clock of its own, or acknowledgements alone tell, and whatever
    /// holds these up in the first case: the estimate is that of the best pair of the last one to two memories. (A memory is
    /// turned when a pair comes, so that pauses lengthen it.)
    #[test]
    fn the_estimate_is_that_of_the_least_delayed_pair_in_memory(
        samples in samples(),
        clock in prop::option::of(0_u64..1_000_000),
    ) {
        let mut capacity = Capacity::new(MEMORY);
        let mut kept: Vec<Kept> = Vec::new();
        let mut sent_at = Time::from_secs(1);
        for (pair, sample) in samples.into_iter().enumerate() {
            sent_at += sample.pause + Span::from_secs(1);
            let sum = (sample.delay + BACK) * 2 + sample.dispersion;
            // Sums that differ by little are taken for equal, which is another matter.
            let is_close = |other: &Kept| {
                other.sum.as_nanos().abs_diff(sum.as_nanos()) < 400_000
            };
            if kept.iter().any(is_close) {
                continue;
            }
            let arrivals = [sample.delay, sample.delay + sample.dispersion];
            for place in 0..2 {
                let number = PacketNumber::new(2 * pair as u64 + place);
                let sent = Sent {
                    now: sent_at,
                    payload: WIRE,
                    wire: WIRE,
                    number,
                    in_flight: WIRE,
                    app_limited: false,
                };
                capacity.on_sent(&sent, place == 0);
            }
            let mut now = sent_at;
            for (place, arrival) in (0..).zip(arrivals) {
                let number = PacketNumber::new(2 * pair as u64 + place);
                let held_up = if clock.is_some() { sample.held_up } else { Span::ZERO };
                now = sent_at + arrival + BACK + held_up;
                let arrived_at = clock.map(|ahead| sent_at + arrival + Span::from_secs(ahead));
                capacity.on_answered(&Answered { now, number, arrived_at });
            }
            kept.push(Kept { at: now, sum, dispersion: sample.dispersion });
            let found = capacity.rate().expect("a pair was answered").as_bps() as f64;
            let longest = MEMORY * 2 + Span::from_millis(PAUSE_MILLIS + 2_000) * 2;
            // Every age at which another pair falls out of memory.
            let ages = kept.iter().map(|pair| now.saturating_since(pair.at));
            let mut ages: Vec<Span> = ages.filter(|age| (MEMORY..longest).contains(age)).collect();
            ages.push(MEMORY);
            let is_right = |age: &Span| {
                let expected = literal(&kept, now, *age);
                (found - expected).abs() <= 1.0 + expected * 1e-9
            };
            prop_assert!(ages.iter().any(is_right), "{found} at {now}: {kept:?}");
        }
    }
}
