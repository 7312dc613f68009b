use alloc::boxed::Box;

use super::*;
use crate::table::{self, Parameters, Setup, Value};
use comity_units::PacketNumber;

const MSS: DataSize = DataSize::new(1_000);
const RTT: Span = Span::from_millis(100);

fn controller(parameters: &Parameters) -> Box<dyn Controller> {
    let setup = Setup::new(MSS);
    table::find("rap")
        .unwrap()
        .build(&setup, parameters)
        .unwrap()
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// The gap between packets of 1000 bytes, in milliseconds.
fn gap(controller: &dyn Controller) -> f64 {
    match controller.decision().pacing {
        Pacing::Rate(rate) => 8e6 / rate.as_bps() as f64,
        other => panic!("{other:?}"),
    }
}

fn near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-4,
        "{found}, expected {expected}"
    );
}

fn send(controller: &mut dyn Controller, now: Time) {
    send_numbered(controller, now, 0);
}

fn send_numbered(controller: &mut dyn Controller, now: Time, number: u64) {
    controller.on_event(Event::Sent(&Sent {
        now,
        payload: MSS,
        wire: MSS,
        number: PacketNumber::new(number),
        in_flight: MSS,
        app_limited: false,
    }));
}

/// If nothing is left in flight, the acknowledgement also covers the packet without a number of its
/// own.
fn acknowledge(controller: &mut dyn Controller, now: Time, rtt: Span, in_flight: u64) {
    if in_flight == 0 {
        controller.on_event(Event::PacketAcked {
            now,
            number: PacketNumber::new(0),
            arrived_at: None,
        });
    }
    controller.on_event(Event::Ack(&Ack {
        now,
        acked: MSS,
        rtt: Some(rtt),
        in_flight: MSS * in_flight,
        app_limited: false,
        in_recovery: false,
        marked: 0,
        packets: 1,
        sample: None,
    }));
}

fn loss(now: Time, sent_at: Time) -> Loss {
    Loss {
        now,
        sent_at,
        lost: MSS,
        in_flight: MSS * 5,
        window: DataSize::MAX,
        cause: LossCause::Reordering,
        restart: false,
    }
}

/// A packet that left at `sent_at` was marked.
fn mark(controller: &mut dyn Controller, now: Time, sent_at: Time) {
    controller.on_event(Event::Loss(&Loss {
        cause: LossCause::Mark,
        ..loss(now, sent_at)
    }));
}

/// A flow after its first acknowledgement, at 100 ms.
fn begun(parameters: &Parameters) -> Box<dyn Controller> {
    let mut controller = controller(parameters);
    send(&mut *controller, at(0));
    near(gap(&*controller), 1_000.0);
    assert_eq!(
        controller.decision().wakeup,
        Some(at(2_000)),
        "the initial timeout"
    );
    acknowledge(&mut *controller, at(100), RTT, 0);
    near(gap(&*controller), 100.0);
    controller
}

#[test]
fn each_round_trip_brings_one_packet_more() {
    let mut controller = begun(&Parameters::new());
    for packets in 2..=40 {
        let due = controller.decision().wakeup.unwrap();
        assert_eq!(due, at((packets - 1) * 100 + 100));
        for _ in 0..packets {
            send(&mut *controller, due.saturating_sub(Span::from_millis(50)));
            acknowledge(
                &mut *controller,
                due.saturating_sub(Span::from_millis(1)),
                RTT,
                0,
            );
        }
        controller.on_event(Event::Wakeup(due));
        near(gap(&*controller), 100.0 / packets as f64);
    }
}

#[test]
fn a_rate_that_is_not_used_does_not_grow() {
    let mut controller = begun(&Parameters::new().with("increase", Value::Number(9.0)));
    send(&mut *controller, at(110));
    acknowledge(&mut *controller, at(199), RTT, 0);
    controller.on_event(Event::Wakeup(at(200)));
    near(gap(&*controller), 10.0);
    for (packets, expected) in [(4, 10.0), (5, 100.0 / 19.0)] {
        let due = controller.decision().wakeup.unwrap();
        for _ in 0..packets {
            send(&mut *controller, due.saturating_sub(RTT / 2));
        }
        for _ in 0..packets {
            acknowledge(&mut *controller, due.saturating_sub(RTT / 4), RTT, 0);
        }
        controller.on_event(Event::Wakeup(due));
        near(gap(&*controller), expected);
    }
}

#[test]
fn a_cluster_of_marks_halves_the_rate_once() {
    let mut controller = begun(&Parameters::new());
    mark(&mut *controller, at(300), at(190));
    near(gap(&*controller), 200.0);
    // Packets that left before that reaction belong to it.
    mark(&mut *controller, at(350), at(300));
    near(gap(&*controller), 200.0);
    mark(&mut *controller, at(450), at(301));
    near(gap(&*controller), 400.0);
    // The next step is a round trip after the reaction.
    assert_eq!(controller.decision().wakeup, Some(at(550)));
}

#[test]
fn the_timeout_by_hand() {
    let mut controller = begun(&Parameters::new());
    for (number, millis) in [(1, 110), (2, 190)] {
        send_numbered(&mut *controller, at(millis), number);
    }
    controller.on_event(Event::PacketAcked {
        now: at(250),
        number: PacketNumber::new(1),
        arrived_at: None,
    });
    // δ = 1/2: SRTT = 100 + 20 = 120, Var = 1/2 · 40 = 20: 1.2 · 120 + 4 · 20 = 224 ms after 190.
    acknowledge(&mut *controller, at(250), Span::from_millis(140), 1);
    controller.on_event(Event::Wakeup(at(250)));
    let before = gap(&*controller);
    let timed_out = |controller: &mut dyn Controller, expected: Time| {
        let before = gap(controller);
        while controller.decision().wakeup.unwrap() < expected {
            controller.on_event(Event::Wakeup(controller.decision().wakeup.unwrap()));
            near(gap(controller), before);
        }
        assert_eq!(controller.decision().wakeup, Some(expected));
        controller.on_event(Event::Wakeup(expected));
        near(gap(controller), before * 2.0);
    };
    timed_out(&mut *controller, at(414));
    // Packets in flight belong to the same cluster.
    mark(&mut *controller, at(420), at(190));
    near(gap(&*controller), before * 2.0);
    controller.on_event(Event::Wakeup(at(534)));
    assert_eq!(
        controller.decision().wakeup,
        None,
        "nothing that counts is in flight"
    );
    send(&mut *controller, at(600));
    let due = at(600) + Span::from_millis(224);
    controller.on_event(Event::Wakeup(at(720)));
    assert_eq!(controller.decision().wakeup, Some(due));
}

/// The transport declares packets lost by rules of its own, sooner or later than RAP does.
#[test]
fn a_loss_waits_for_three_later_packets_or_the_timeout() {
    let begun_with_hole = || {
        let mut controller = begun(&Parameters::new());
        for number in 1..=4 {
            send_numbered(&mut *controller, at(100 + 10 * number), number);
        }
        controller.on_event(Event::Loss(&Loss {
            cause: LossCause::Delay,
            ..loss(at(150), at(110))
        }));
        controller.on_event(Event::Loss(&loss(at(150), at(110))));
        near(gap(&*controller), 100.0);
        controller
    };
    let mut controller = begun_with_hole();
    // The order does not matter, and a packet reported twice counts once.
    for (now, number, expected) in [
        (191, 4, 100.0),
        (192, 2, 100.0),
        (192, 4, 100.0),
        (193, 3, 200.0),
    ] {
        controller.on_event(Event::PacketAcked {
            now: at(now),
            number: PacketNumber::new(number),
            arrived_at: None,
        });
        acknowledge(&mut *controller, at(now), RTT, 0);
        near(gap(&*controller), expected);
    }
    // The timeout is 1.2 · 100 ms after the packet left, whatever arrived after it.
    let mut controller = begun_with_hole();
    for number in [2, 3] {
        controller.on_event(Event::PacketAcked {
            now: at(195),
            number: PacketNumber::new(number),
            arrived_at: None,
        });
        acknowledge(&mut *controller, at(195), RTT, 0);
    }
    controller.on_event(Event::Wakeup(at(200)));
    let before = gap(&*controller);
    assert_eq!(controller.decision().wakeup, Some(at(230)));
    controller.on_event(Event::Wakeup(at(230)));
    near(gap(&*controller), before * 2.0);
    // A packet that arrives late is not lost.
    let mut controller = begun_with_hole();
    for number in [2, 3, 1, 4] {
        controller.on_event(Event::PacketAcked {
            now: at(195),
            number: PacketNumber::new(number),
            arrived_at: None,
        });
        acknowledge(&mut *controller, at(195), RTT, 0);
    }
    controller.on_event(Event::Wakeup(at(200)));
    near(gap(&*controller), 50.0);
    assert_eq!(
        controller.decision().wakeup,
        Some(at(300)),
        "nothing is missing"
    );
}

/// The receiver's delay is subtracted from a sample: 250 − 50 is after both packets left, and the
/// second keeps its timeout.
#[test]
fn what_left_after_the_acknowledged_packet_keeps_its_timeout() {
    let mut controller = begun(&Parameters::new());
    for (number, millis) in [(1, 110), (2, 190)] {
        send_numbered(&mut *controller, at(millis), number);
    }
    controller.on_event(Event::PacketAcked {
        now: at(250),
        number: PacketNumber::new(1),
        arrived_at: None,
    });
    // SRTT = 100 - 25 = 75, Var = 1/2 · 50 = 25: 1.2 · 75 + 4 · 25 = 190 ms after 190.
    acknowledge(&mut *controller, at(250), Span::from_millis(50), 1);
    let mut due = controller.decision().wakeup.unwrap();
    while due < at(380) {
        controller.on_event(Event::Wakeup(due));
        due = controller.decision().wakeup.expect("a packet is in flight");
    }
    let before = gap(&*controller);
    controller.on_event(Event::Wakeup(at(380)));
    assert_eq!(due, at(380));
    near(gap(&*controller), before * 2.0);
}

#[test]
fn fine_grain_follows_the_short_term_round_trip() {
    let mut controller = begun(&Parameters::new().with("fine_grain", Value::Flag(true)));
    // Short: 0.1 · 100 + 0.9 · 200 = 190; long: 101.
    acknowledge(&mut *controller, at(300), Span::from_millis(200), 0);
    near(gap(&*controller), 100.0 * 190.0 / 101.0);
}

#[test]
fn a_flow_that_is_idle_is_not_woken() {
    let mut controller = begun(&Parameters::new());
    controller.on_event(Event::Wakeup(at(200)));
    assert_eq!(controller.decision().wakeup, None);
    near(gap(&*controller), 100.0);
    send(&mut *controller, at(5_000));
    assert_eq!(controller.decision().wakeup, Some(at(5_100)));
}
