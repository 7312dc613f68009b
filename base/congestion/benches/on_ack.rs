//! What one acknowledgement costs, for each controller of the table.
//!
//! The flow is in congestion avoidance with 64 segments in flight; each acknowledgement covers one
//! segment, carries a round-trip time, and is followed by the packet that it lets go, as in a
//! transport. `on_ack` is the acknowledgement and the decision after it alone.

use std::hint::black_box;

use comity_congestion::table::{Parameters, Setup, TABLE};
use comity_congestion::{Ack, Event, Loss, LossCause, Sent};
use comity_units::{DataSize, PacketNumber, Span, Time};
use criterion::{Criterion, criterion_group, criterion_main};

const MSS: DataSize = DataSize::new(1_200);

fn acknowledgement(now: Time) -> Ack {
    Ack {
        now,
        acked: MSS,
        rtt: Some(Span::from_millis(40)),
        in_flight: MSS * 63,
        app_limited: false,
        in_recovery: false,
        marked: 0,
        packets: 1,
        sample: None,
    }
}

fn sent(now: Time, number: u64) -> Sent {
    Sent {
        now,
        payload: MSS,
        wire: MSS + DataSize::new(40),
        number: PacketNumber::new(number),
        in_flight: MSS * 64,
        app_limited: false,
    }
}

fn on_ack(criterion: &mut Criterion) {
    let setup = Setup {
        initial_window: MSS * 128,
        max_window: MSS * 10_000,
        ..Setup::new(MSS)
    };
    for (name, sends) in [("on_ack", false), ("on_ack and on_sent", true)] {
        let mut group = criterion.benchmark_group(name);
        for row in TABLE {
            group.bench_function(row.name, |bencher| {
                let Ok(mut controller) = row.build(&setup, &Parameters::new()) else {
                    return;
                };
                let mut now = Time::from_secs(1);
                let flight = MSS * 128;
                controller.on_event(Event::Loss(&Loss {
                    now,
                    sent_at: now,
                    lost: MSS,
                    in_flight: flight,
                    window: flight,
                    cause: LossCause::Reordering,
                    restart: false,
                }));
                let mut number = 0;
                bencher.iter(|| {
                    now += Span::from_nanos(625_000);
                    controller.on_event(Event::Ack(black_box(&acknowledgement(now))));
                    if sends {
                        number += 1;
                        black_box(controller.tag(now));
                        controller.on_event(Event::Sent(black_box(&sent(now, number))));
                    }
                    controller.decision()
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, on_ack);
criterion_main!(benches);
