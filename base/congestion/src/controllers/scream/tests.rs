use super::*;

const MSS: DataSize = DataSize::new(1_000);
const CONFIG: ScreamConfig = ScreamConfig {
    mss: MSS,
    max_window: DataSize::MAX,
    min_rate: Rate::from_kbps(30),
    max_rate: Rate::from_mbps(4),
    is_l4s: false,
    delay_target: Span::from_millis(60),
    adapts_target: true,
};
const RTT: Span = Span::from_millis(50);

const fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A packet leaves and is acknowledged a round trip later. It spends the time `queued` in a queue.
fn exchange(scream: &mut Scream, number: u64, now: Time, queued: Span) {
    let number = PacketNumber::new(number);
    scream.on_event(Event::Sent(&Sent {
        now,
        payload: MSS,
        wire: MSS,
        number,
        in_flight: MSS * 10,
        app_limited: false,
    }));
    let later = now + RTT + queued;
    scream.on_event(Event::PacketAcked {
        now: later,
        number,
        arrived_at: Some(Arrived {
            at: now + RTT / 2 + queued,
            tick: Span::from_micros(1),
        }),
    });
    scream.on_event(Event::Ack(&Ack {
        now: later,
        acked: MSS,
        rtt: Some(RTT + queued),
        in_flight: DataSize::ZERO,
        app_limited: false,
        in_recovery: false,
        marked: 0,
        packets: 1,
        sample: None,
    }));
}

/// By hand: the window of 3,000 bytes opens by 1000 · 1/3 · (1 + 0.02 · 3) = 353.333. A segment is
/// 0.298 of 3353.333 bytes, so the target is 8 · 3353.333 / 0.05 · (1 − 0.198) / 1.2 = 358,489.
#[test]
fn the_first_acknowledgement_gives_a_target() {
    let mut scream = Scream::new(CONFIG);
    let first = scream.decision();
    assert_eq!(first.window, DataSize::new(9_000));
    assert_eq!(first.pacing, Pacing::Rate(Rate::from_mbps(1)));
    assert_eq!(first.target, None);
    exchange(&mut scream, 0, at(1_000), Span::ZERO);
    let second = scream.decision();
    assert_eq!(scream.reference_window(), DataSize::new(3_353));
    assert_eq!(second.window, DataSize::new(10_060));
    let target = 8.0 * (3_000.0 + 1_060.0 / 3.0) / 0.05 * (1.1 - 3_000.0 / 10_060.0) / 1.2;
    let found = second.target.unwrap().as_bps() as f64;
    assert!((found - target).abs() < 1.0, "{found}, not {target}");
    assert!((found - 358_489.0).abs() < 2.0, "{found}");
    let Pacing::Rate(pace) = second.pacing else {
        panic!("{second:?}")
    };
    assert!((pace.as_bps() as f64 / found - 1.5).abs() < 1e-5, "{pace}");
}

/// Above 0.8 of the maximum rate pacing is relaxed: at 0.9 by half, at the maximum by three
/// quarters.
#[test]
fn pacing_is_relaxed_near_the_maximum_rate() {
    let mut scream = Scream::new(CONFIG);
    for (rate, pace) in [
        (20e3, 75e3),
        (1e6, 1.5e6),
        (3.2e6, 4.8e6),
        (3.6e6, 10.8e6),
        (3.9e6, 23.4e6),
        (4e6, 24e6),
    ] {
        scream.rate = Some(rate);
        let found = scream.pace();
        assert!((found / pace - 1.0).abs() < 1e-9, "{rate}: {found}");
    }
}

/// The window stops growing at the maximum target, at the maximum window, and at 1,000 + 1.5 ·
/// 10,000 bytes with 10,000 bytes in flight.
#[test]
fn growth_ends_at_the_maximum() {
    for (max_rate, max_window, expected) in [
        (500, u64::MAX, 4_000..4_600),
        (100_000, 12_000, 12_000..12_200),
        (100_000, u64::MAX, 15_800..16_001),
    ] {
        let mut scream = Scream::new(ScreamConfig {
            max_rate: Rate::from_kbps(max_rate),
            max_window: DataSize::new(max_window),
            ..CONFIG
        });
        for number in 0..500 {
            exchange(&mut scream, number, at(1_000 + 10 * number), Span::ZERO);
        }
        let decision = scream.decision();
        assert!(decision.target.unwrap() <= Rate::from_kbps(max_rate));
        assert!(decision.window <= DataSize::new(max_window));
        let window = scream.reference_window().get();
        assert!(expected.contains(&window), "{window}");
    }
}

/// A flow of 10 packets in flight and no queue for 3 s.
fn opened() -> Scream {
    let mut scream = Scream::new(CONFIG);
    for number in 0..300 {
        exchange(&mut scream, number, at(1_000 + 10 * number), Span::ZERO);
    }
    let window = scream.reference_window().get();
    assert!((13_000..16_001).contains(&window), "{window}");
    scream
}

/// With a queue of 60 ms the window loses a ninth in 30 ms, until the growth by three acknowledged
/// segments balances that.
#[test]
fn a_queue_closes_the_window() {
    let mut scream = opened();
    for number in 300..500 {
        exchange(
            &mut scream,
            number,
            at(1_000 + 10 * number),
            Span::from_millis(60),
        );
    }
    let window = scream.reference_window().get();
    assert!((3_000..8_000).contains(&window), "{window}");
}

/// The window falls to 0.7, and then grows by at most a segment's share.
#[test]
fn losses_and_persistent_congestion_count_once_in_a_round_trip() {
    let loss = crate::PacketLoss {
        size: MSS,
        sent_in_flight: MSS * 10,
        lost: MSS,
        app_limited: false,
        total_delivered: DataSize::ZERO,
    };
    let timeout = crate::Timeout {
        now: at(4_000),
        in_flight: MSS,
        window: MSS,
        consecutive: 1,
        duplicate_seen: false,
    };
    let lost = Event::PacketLost {
        now: at(4_000),
        loss: &loss,
    };
    for event in [lost, Event::Timeout(&timeout)] {
        let mut scream = opened();
        let before = scream.window.get();
        for _ in 0..5 {
            scream.on_event(event);
        }
        exchange(&mut scream, 300, at(4_000), Span::ZERO);
        let share = scream.window.get() / before;
        assert!((0.7..0.71).contains(&share), "{share}");
    }
}
