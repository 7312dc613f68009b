//! What an own clock type is worth on the path of a packet across a link, against the same code
//! with [`core::time::Duration`] for both points and distances (`docs/adr/0002-time-and-span.md`).

use core::hint::black_box;
use core::time::Duration;

use comity_units::{DataSize, Rate, Span, Time};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PACKETS: u64 = 1_000;

/// Hands packets to a link's virtual clock: `departure = max(now, busy) + τ`,
/// `arrival = departure + delay`.
fn virtual_clock(c: &mut Criterion) {
    let mut group = c.benchmark_group("virtual_clock");
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function("time_and_span", |b| {
        b.iter(|| {
            let (gap, delay) = black_box((Span::from_micros(70), Span::from_millis(40)));
            let service = black_box(Rate::from_mbps(155)).transmission_time(DataSize::new(1_500));
            let (mut now, mut busy, mut last) = (Time::ZERO, Time::ZERO, Time::ZERO);
            for _ in 0..PACKETS {
                now += gap;
                busy = now.max(busy) + service;
                last = black_box(busy + delay);
            }
            last
        });
    });
    group.bench_function("duration", |b| {
        b.iter(|| {
            let (gap, delay) = black_box((Duration::from_micros(70), Duration::from_millis(40)));
            let service = black_box(Duration::from_nanos(77_420));
            let (mut now, mut busy, mut last) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
            for _ in 0..PACKETS {
                now = now.saturating_add(gap);
                busy = now.max(busy).saturating_add(service);
                last = black_box(busy.saturating_add(delay));
            }
            last
        });
    });
    group.finish();
}

/// Finds the earliest of 64 pending wake-ups, as an event queue does with its keys.
fn earliest(c: &mut Criterion) {
    let mut group = c.benchmark_group("earliest_of_64");
    let nanos = |index: u64| (index * 7_919) % 64 * 1_000_003;
    let times: Vec<Time> = (0..64)
        .map(|index| Time::from_nanos(nanos(index)))
        .collect();
    let durations: Vec<Duration> = (0..64)
        .map(|index| Duration::from_nanos(nanos(index)))
        .collect();
    group.bench_function("time_and_span", |b| {
        b.iter(|| black_box(&times).iter().min().copied());
    });
    group.bench_function("duration", |b| {
        b.iter(|| black_box(&durations).iter().min().copied());
    });
    group.finish();
}

criterion_group!(benches, virtual_clock, earliest);
criterion_main!(benches);
