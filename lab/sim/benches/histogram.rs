//! What recording one delay costs, here and in the published crate, for one distribution in the
//! cache and for as many as a large run has flows.

use std::hint::black_box;

use comity_sim::histogram::Distribution;
use comity_units::Span;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use hdrhistogram::Histogram;

const FLOWS: usize = 100_000;

/// Delays from 24 ms to 1.6 s with the flow that each belongs to.
fn delays() -> Vec<(usize, u64)> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..100_000)
        .map(|_| (next() as usize % FLOWS, 24_000_000 + next() % 1_600_000_000))
        .collect()
}

/// The published histogram at the same 1 %, in nanoseconds, growing as it needs to.
fn published() -> Histogram<u32> {
    Histogram::new(2).expect("two digits are within what it takes")
}

fn record(criterion: &mut Criterion) {
    let delays = delays();
    let mut group = criterion.benchmark_group("record");
    group.throughput(Throughput::Elements(delays.len() as u64));
    group.bench_function("one distribution", |bench| {
        let mut one = Distribution::new();
        bench.iter(|| {
            for &(_, delay) in &delays {
                one.record(Span::from_nanos(delay));
            }
        });
        black_box(one.count());
    });
    group.bench_function("one hdrhistogram", |bench| {
        let mut one = published();
        bench.iter(|| {
            for &(_, delay) in &delays {
                one.saturating_record(delay);
            }
        });
        black_box(one.len());
    });
    group.sample_size(20);
    group.bench_function("100,000 distributions", |bench| {
        let mut all: Vec<Distribution> = (0..FLOWS).map(|_| Distribution::new()).collect();
        bench.iter(|| {
            for &(flow, delay) in &delays {
                all[flow].record(Span::from_nanos(delay));
            }
        });
        black_box(&all);
    });
    group.bench_function("100,000 hdrhistograms", |bench| {
        let mut all: Vec<Histogram<u32>> = (0..FLOWS).map(|_| published()).collect();
        bench.iter(|| {
            for &(flow, delay) in &delays {
                all[flow].record(delay).expect("it grows");
            }
        });
        black_box(&all);
    });
    group.finish();
}

fn close(criterion: &mut Criterion) {
    let full: Distribution = delays()
        .into_iter()
        .map(|(_, delay)| Span::from_nanos(delay))
        .collect();
    criterion.bench_function("summary", |bench| bench.iter(|| black_box(&full).summary()));
    criterion.bench_function("merge", |bench| {
        bench.iter_batched_ref(
            || full.clone(),
            |into| into.merge(black_box(&full)),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, record, close);
criterion_main!(benches);
