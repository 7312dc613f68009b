//! Links against results known without a simulation.

use comity_link::{
    AnalyticLink, DelayProfile, DropCause, Limit, LinkConfig, Outcome, Packet, Passage, Queue,
    QueuedLink, Random, RateProfile,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};

const fn packet(bytes: u32) -> Packet {
    Packet {
        bytes,
        ecn_capable: false,
        flow: 0,
    }
}

fn carried(outcome: Outcome) -> Passage {
    match outcome {
        Outcome::Carried(passage) => passage,
        other => panic!("expected a passage, got {other:?}"),
    }
}

/// 1,000 B every 5 ms into 1 Mb/s (8 ms each) with room for three: per 40 ms eight packets arrive
/// and five leave. By hand: the link fills at 10 ms, and from 30 ms on the offers at 30, 45 and 55
/// ms (mod 40 ms) find three packets in it.
#[test]
fn constant_bit_rate_into_drop_tail() {
    let config = LinkConfig {
        queue: Queue::DropTail(Limit::Packets(3)),
        ..LinkConfig::new(Rate::from_mbps(1), Span::from_millis(20))
    };
    let mut link = AnalyticLink::new(&config, Seed::new(0)).unwrap();
    let (mut sent, mut dropped) = (0, 0);
    for offer in 0..8_000_u64 {
        let now = offer * 5;
        let outcome = link.offer(Time::from_millis(now), packet(1_000));
        let is_dropped = now >= 30 && [30, 5, 15].contains(&(now % 40));
        if is_dropped {
            assert_eq!(
                outcome,
                Outcome::Dropped(DropCause::QueueFull),
                "offer at {now} ms"
            );
            dropped += 1;
        } else {
            let passage = carried(outcome);
            assert_eq!(
                passage.start,
                Time::from_millis(8 * sent),
                "the link never idles"
            );
            assert_eq!(passage.departure, Time::from_millis(8 * (sent + 1)));
            assert_eq!(passage.arrival, Time::from_millis(8 * (sent + 1) + 20));
            sent += 1;
        }
    }
    // 1,000 periods, minus the drops at 5 and 15 ms before the queue is full.
    assert_eq!((sent, dropped), (5_002, 2_998));
}

/// The offers above with a limit in bytes and two sizes: 1,000 B fit beside 2,000 B under a limit
/// of 3,000 B, and at the boundary a packet fits exactly. 1 Mb/s: 1,000 bytes take 8 ms. Room for
/// three.
#[test]
fn another_packet_of_the_same_size_is_accepted_without_counting() {
    let mut link = AnalyticLink::new(
        &LinkConfig {
            queue: Queue::DropTail(Limit::Packets(3)),
            ..LinkConfig::new(Rate::from_mbps(1), Span::from_millis(1))
        },
        Seed::new(1),
    )
    .unwrap();
    let at = Time::from_millis;
    assert_eq!(link.offer_another(at(0), 1_000), None, "no earlier packet");
    assert_eq!(carried(link.offer(at(0), packet(1_000))).departure, at(8));
    assert_eq!(link.offer_another(at(0), 500), None, "another size");
    let second = link.offer_another(at(0), 1_000).unwrap();
    assert_eq!(
        [second.start, second.departure, second.arrival],
        [at(8), at(16), at(17)]
    );
    assert_eq!(link.offer_another(at(0), 1_000).unwrap().departure, at(24));
    assert_eq!(
        link.offer_another(at(7), 1_000),
        None,
        "three are in the link"
    );
    assert_eq!(
        link.offer(at(7), packet(1_000)),
        Outcome::Dropped(DropCause::QueueFull)
    );
    // Two waiting ones and the one that has just left.
    assert_eq!(link.offer_another(at(8), 1_000).unwrap().departure, at(32));
    // A second size among them starts the records, which then also refuse one packet too many.
    assert_eq!(carried(link.offer(at(16), packet(500))).departure, at(36));
    assert_eq!(link.offer_another(at(16), 500), None);
    assert_eq!(
        link.offer(at(23), packet(500)),
        Outcome::Dropped(DropCause::QueueFull)
    );
    assert_eq!(link.backlog(at(23)).packets, Some(3));
    assert_eq!(link.backlog(at(24)).bytes, DataSize::new(1_500));
}

/// The same link: a dropped packet of another size starts the records too.
#[test]
fn a_dropped_packet_of_another_size_leaves_no_gap_in_the_records() {
    let mut link = AnalyticLink::new(
        &LinkConfig {
            queue: Queue::DropTail(Limit::Packets(3)),
            ..LinkConfig::new(Rate::from_mbps(1), Span::from_millis(1))
        },
        Seed::new(1),
    )
    .unwrap();
    let at = Time::from_millis;
    for _ in 0..3 {
        carried(link.offer(at(0), packet(1_000)));
    }
    let full = Outcome::Dropped(DropCause::QueueFull);
    assert_eq!(link.offer(at(7), packet(500)), full);
    assert_eq!(link.offer_another(at(8), 1_000), None);
    assert_eq!(carried(link.offer(at(8), packet(1_000))).departure, at(32));
    assert_eq!(link.offer(at(15), packet(500)), full);
    assert_eq!(carried(link.offer(at(16), packet(500))).departure, at(36));
}

#[test]
fn a_limit_in_bytes_counts_the_packet_in_service() {
    let config = LinkConfig {
        queue: Queue::DropTail(Limit::Bytes(DataSize::new(3_000))),
        ..LinkConfig::new(Rate::from_mbps(1), Span::ZERO)
    };
    let mut link = AnalyticLink::new(&config, Seed::new(0)).unwrap();
    let now = Time::ZERO;
    assert_eq!(
        carried(link.offer(now, packet(2_000))).departure,
        Time::from_millis(16)
    );
    assert_eq!(
        link.offer(now, packet(1_001)),
        Outcome::Dropped(DropCause::QueueFull)
    );
    assert_eq!(
        carried(link.offer(now, packet(1_000))).departure,
        Time::from_millis(24)
    );
    assert_eq!(link.backlog(now).bytes, DataSize::new(3_000));
    assert_eq!(link.backlog(now).packets, Some(2));
    assert_eq!(
        link.offer(now, packet(1)),
        Outcome::Dropped(DropCause::QueueFull)
    );
    let freed = Time::from_millis(16);
    assert_eq!(link.backlog(freed).bytes, DataSize::new(1_000));
    assert_eq!(
        carried(link.offer(freed, packet(2_000))).departure,
        Time::from_millis(40)
    );
    let before = Time::from_nanos(23_999_999);
    assert_eq!(
        link.offer(before, packet(1)),
        Outcome::Dropped(DropCause::QueueFull)
    );
}

/// Poisson arrivals at a constant service time D and load ρ wait, on average,
///
/// ```text
/// W = ρ · D / (2 · (1 − ρ))           (Pollaczek and Khinchine)
/// ```
///
/// The mean of 40 batches of 50,000 packets must lie within four of its standard errors, and that
/// error must be below 1.5 % of the value for a meaningful bound.
#[test]
fn poisson_arrivals_wait_as_long_as_the_formula_predicts() {
    const BATCHES: u32 = 40;
    const BATCH: u32 = 50_000;
    let service = 1e6; // 125 B at 1 Mb/s take 1 ms.
    for (load, seed) in [(0.3, 11), (0.7, 12), (0.9, 13)] {
        let config = LinkConfig::new(Rate::from_mbps(1), Span::ZERO);
        let mut link = AnalyticLink::new(&config, Seed::new(seed)).unwrap();
        let mut random = Random::new(Seed::new(seed).derive("arrivals"));
        let mut now = 0.0;
        let mut means = Vec::new();
        for _ in 0..BATCHES {
            let mut sum = 0.0;
            for _ in 0..BATCH {
                now += random.exponential(service / load);
                let at = Time::from_nanos(now as u64);
                let passage = carried(link.offer(at, packet(125)));
                sum += passage.start.since(at).unwrap().as_nanos() as f64;
            }
            means.push(sum / f64::from(BATCH));
        }
        let n = f64::from(BATCHES);
        let mean = means.iter().sum::<f64>() / n;
        let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        let expected = load * service / (2.0 * (1.0 - load));
        assert!(
            (mean - expected).abs() < 4.0 * error,
            "load {load}: {mean} ns, not {expected}"
        );
        assert!(
            error < 0.015 * expected,
            "load {load}: the error {error} bounds nothing"
        );
    }
}

/// 1 Mb/s, then nothing from 4 ms to 10 ms, then 2 Mb/s: a packet of 1,000 B offered at zero has
/// done half its 8 ms when the link stalls, and needs 2 ms for the rest.
#[test]
fn a_packet_across_rate_steps_takes_the_right_time() {
    let steps = vec![
        (Time::ZERO, Rate::from_mbps(1)),
        (Time::from_millis(4), Rate::ZERO),
        (Time::from_millis(10), Rate::from_mbps(2)),
        (Time::from_millis(20), Rate::ZERO),
    ];
    let config = LinkConfig {
        rate: RateProfile::Steps(steps),
        ..LinkConfig::default()
    };
    let mut link = AnalyticLink::new(&config, Seed::new(0)).unwrap();
    let departures: Vec<Time> = (0..4)
        .map(|_| carried(link.offer(Time::ZERO, packet(1_000))).departure)
        .collect();
    assert_eq!(departures[..3], [12, 16, 20].map(Time::from_millis));
    assert!(departures[3].is_never(), "the rate stays zero");
    let never = carried(link.offer(Time::from_secs(1), packet(1)));
    assert!(never.start.is_never() && never.arrival.is_never());
}

#[test]
fn backlog_without_records_is_the_remaining_work_of_the_clock() {
    let mut link = AnalyticLink::new(
        &LinkConfig::new(Rate::from_mbps(1), Span::ZERO),
        Seed::new(0),
    )
    .unwrap();
    for _ in 0..3 {
        link.offer(Time::ZERO, packet(1_000));
    }
    for (millis, bytes) in [
        (0, 3_000),
        (1, 2_875),
        (8, 2_000),
        (23, 125),
        (24, 0),
        (30, 0),
    ] {
        let backlog = link.backlog(Time::from_millis(millis));
        assert_eq!(
            (backlog.packets, backlog.bytes),
            (None, DataSize::new(bytes)),
            "at {millis} ms"
        );
    }
    let steps = vec![
        (Time::ZERO, Rate::from_mbps(1)),
        (Time::from_millis(8), Rate::from_mbps(2)),
    ];
    let config = LinkConfig {
        rate: RateProfile::Steps(steps),
        ..LinkConfig::default()
    };
    let mut link = AnalyticLink::new(&config, Seed::new(0)).unwrap();
    for _ in 0..3 {
        link.offer(Time::ZERO, packet(1_000));
    }
    for (millis, bytes) in [
        (0, 3_000),
        (4, 2_500),
        (8, 2_000),
        (12, 1_000),
        (15, 250),
        (16, 0),
    ] {
        assert_eq!(
            link.backlog(Time::from_millis(millis)).bytes,
            DataSize::new(bytes),
            "{millis} ms"
        );
    }
}

/// A delay that falls from 50 ms to 10 ms at 100 ms: a packet that leaves at 99 ms arrives at 149
/// ms. One that leaves at 101 ms would overtake it, and arrives with it.
#[test]
fn a_delay_step_down_does_not_reorder() {
    let steps = vec![
        (Time::ZERO, Span::from_millis(50)),
        (Time::from_millis(100), Span::from_millis(10)),
    ];
    let config = LinkConfig {
        delay: DelayProfile::Steps(steps),
        ..LinkConfig::default()
    };
    let mut link = AnalyticLink::new(&config, Seed::new(0)).unwrap();
    assert!(link.keeps_order());
    for (offered, arrives) in [
        (10, 60),
        (99, 149),
        (101, 149),
        (138, 149),
        (140, 150),
        (200, 210),
    ] {
        let passage = carried(link.offer(Time::from_millis(offered), packet(100)));
        assert_eq!(
            passage.arrival,
            Time::from_millis(arrives),
            "offered at {offered} ms"
        );
    }
}

/// A queued link with a new rate while a packet of 1,000 B is in service: 1 Mb/s for 4 ms, nothing
/// for 6 ms, 2 Mb/s for the other half. The next packet uses only the new rate.
#[test]
fn setting_the_rate_rescales_the_remaining_work() {
    let config = LinkConfig::new(Rate::from_mbps(1), Span::from_millis(5));
    let mut link = QueuedLink::new(&config, Seed::new(0)).unwrap();
    for token in 0..2 {
        link.offer(Time::ZERO, packet(1_000), token).unwrap();
    }
    assert_eq!(link.next_wakeup(), Some(Time::from_millis(8)));
    link.set_rate(Time::from_millis(4), Rate::ZERO);
    assert_eq!(link.next_wakeup(), None, "a dead link wakes nobody");
    assert_eq!(link.backlog(Time::from_millis(9)).packets, Some(2));
    link.set_rate(Time::from_millis(10), Rate::from_mbps(2));
    assert_eq!(link.next_wakeup(), Some(Time::from_millis(12)));
    link.set_delay(Time::from_millis(13), Span::from_millis(7));
    let queued: Vec<(u32, Passage)> = core::iter::from_fn(|| link.poll(Time::from_millis(50)))
        .map(|decision| (decision.token, carried(decision.outcome)))
        .collect();
    let millis = |passage: &Passage| {
        [passage.start, passage.departure, passage.arrival].map(|t| t.as_nanos() / 1_000_000)
    };
    assert_eq!(queued.len(), 2);
    assert_eq!((queued[0].0, millis(&queued[0].1)), (0, [0, 12, 17]));
    assert_eq!((queued[1].0, millis(&queued[1].1)), (1, [12, 16, 23]));
}

#[test]
fn a_plain_link_fits_in_two_cache_lines() {
    assert!(
        size_of::<AnalyticLink>() <= 128,
        "{} bytes",
        size_of::<AnalyticLink>()
    );
}
