use alloc::boxed::Box;

use super::*;
use crate::table::{self, Parameters, Setup, Value};
use comity_units::PacketNumber;

const MSS: Bytes = Bytes::new(1_000);
const RTT: Span = Span::from_millis(100);

fn law(parameters: &Parameters) -> Box<dyn Controller> {
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
fn gap(law: &dyn Controller) -> f64 {
    match law.decision().pacing {
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

fn send(law: &mut dyn Controller, now: Time) {
    send_numbered(law, now, 0);
}

fn send_numbered(law: &mut dyn Controller, now: Time, number: u64) {
    law.on_event(Event::Sent(&Sent {
        now,
        payload: MSS,
        wire: MSS,
        number: PacketNumber::new(number),
        in_flight: MSS,
        app_limited: false,
    }));
}

/// With nothing left in flight, that of the packet without a number of its own.
fn acknowledge(law: &mut dyn Controller, now: Time, rtt: Span, in_flight: u64) {
    if in_flight == 0 {
        law.on_event(Event::PacketAcked {
            now,
            number: PacketNumber::new(0),
        });
    }
    law.on_event(Event::Ack(&Ack {
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
        window: Bytes::MAX,
        cause: LossCause::Reordering,
        restart: false,
    }
}

/// A packet that left then was marked.
fn mark(law: &mut dyn Controller, now: Time, sent_at: Time) {
    law.on_event(Event::Loss(&Loss {
        cause: LossCause::Mark,
        ..loss(now, sent_at)
    }));
}

/// A flow after its first acknowledgement, at 100 ms.
fn begun(parameters: &Parameters) -> Box<dyn Controller> {
    let mut law = law(parameters);
    send(&mut *law, at(0));
    near(gap(&*law), 1_000.0);
    assert_eq!(
        law.decision().wakeup,
        Some(at(2_000)),
        "the initial timeout"
    );
    acknowledge(&mut *law, at(100), RTT, 0);
    near(gap(&*law), 100.0);
    law
}

#[test]
fn each_round_trip_brings_one_packet_more() {
    let mut law = begun(&Parameters::new());
    for packets in 2..=40 {
        let due = law.decision().wakeup.unwrap();
        assert_eq!(due, at((packets - 1) * 100 + 100));
        for _ in 0..packets {
            send(&mut *law, due.saturating_sub(Span::from_millis(50)));
            acknowledge(&mut *law, due.saturating_sub(Span::from_millis(1)), RTT, 0);
        }
        law.on_event(Event::Wakeup(due));
        near(gap(&*law), 100.0 / packets as f64);
    }
}

#[test]
fn a_rate_that_is_not_used_does_not_grow() {
    let mut law = begun(&Parameters::new().with("increase", Value::Number(9.0)));
    send(&mut *law, at(110));
    acknowledge(&mut *law, at(199), RTT, 0);
    law.on_event(Event::Wakeup(at(200)));
    near(gap(&*law), 10.0);
    for (packets, expected) in [(4, 10.0), (5, 100.0 / 19.0)] {
        let due = law.decision().wakeup.unwrap();
        for _ in 0..packets {
            send(&mut *law, due.saturating_sub(RTT / 2));
        }
        for _ in 0..packets {
            acknowledge(&mut *law, due.saturating_sub(RTT / 4), RTT, 0);
        }
        law.on_event(Event::Wakeup(due));
        near(gap(&*law), expected);
    }
}

#[test]
fn a_cluster_of_marks_halves_the_rate_once() {
    let mut law = begun(&Parameters::new());
    mark(&mut *law, at(300), at(190));
    near(gap(&*law), 200.0);
    // What left before that reaction belongs to it.
    mark(&mut *law, at(350), at(300));
    near(gap(&*law), 200.0);
    mark(&mut *law, at(450), at(301));
    near(gap(&*law), 400.0);
    // The next step is a round trip after the reaction.
    assert_eq!(law.decision().wakeup, Some(at(550)));
}

#[test]
fn the_timeout_by_hand() {
    let mut law = begun(&Parameters::new());
    for (number, millis) in [(1, 110), (2, 190)] {
        send_numbered(&mut *law, at(millis), number);
    }
    law.on_event(Event::PacketAcked {
        now: at(250),
        number: PacketNumber::new(1),
    });
    // δ = 1/2: SRTT = 100 + 20 = 120, Var = 1/2 · 40 = 20: 1.2 · 120 + 4 · 20 = 224 ms after 190.
    acknowledge(&mut *law, at(250), Span::from_millis(140), 1);
    law.on_event(Event::Wakeup(at(250)));
    let before = gap(&*law);
    let timed_out = |law: &mut dyn Controller, expected: Time| {
        let before = gap(law);
        while law.decision().wakeup.unwrap() < expected {
            law.on_event(Event::Wakeup(law.decision().wakeup.unwrap()));
            near(gap(law), before);
        }
        assert_eq!(law.decision().wakeup, Some(expected));
        law.on_event(Event::Wakeup(expected));
        near(gap(law), before * 2.0);
    };
    timed_out(&mut *law, at(414));
    // What is in flight is of the same cluster.
    mark(&mut *law, at(420), at(190));
    near(gap(&*law), before * 2.0);
    law.on_event(Event::Wakeup(at(534)));
    assert_eq!(
        law.decision().wakeup,
        None,
        "nothing that counts is in flight"
    );
    send(&mut *law, at(600));
    let due = at(600) + Span::from_millis(224);
    law.on_event(Event::Wakeup(at(720)));
    assert_eq!(law.decision().wakeup, Some(due));
}

/// The transport gives packets up by rules of its own, sooner or later than these.
#[test]
fn a_loss_waits_for_three_later_packets_or_the_timeout() {
    let begun_with_hole = || {
        let mut law = begun(&Parameters::new());
        for number in 1..=4 {
            send_numbered(&mut *law, at(100 + 10 * number), number);
        }
        law.on_event(Event::Loss(&Loss {
            cause: LossCause::Delay,
            ..loss(at(150), at(110))
        }));
        law.on_event(Event::Loss(&loss(at(150), at(110))));
        near(gap(&*law), 100.0);
        law
    };
    let mut law = begun_with_hole();
    // In any order, and a packet told twice is one.
    for (now, number, expected) in [
        (191, 4, 100.0),
        (192, 2, 100.0),
        (192, 4, 100.0),
        (193, 3, 200.0),
    ] {
        law.on_event(Event::PacketAcked {
            now: at(now),
            number: PacketNumber::new(number),
        });
        acknowledge(&mut *law, at(now), RTT, 0);
        near(gap(&*law), expected);
    }
    // The timeout is 1.2 · 100 ms after it left, whatever arrived behind it.
    let mut law = begun_with_hole();
    for number in [2, 3] {
        law.on_event(Event::PacketAcked {
            now: at(195),
            number: PacketNumber::new(number),
        });
        acknowledge(&mut *law, at(195), RTT, 0);
    }
    law.on_event(Event::Wakeup(at(200)));
    let before = gap(&*law);
    assert_eq!(law.decision().wakeup, Some(at(230)));
    law.on_event(Event::Wakeup(at(230)));
    near(gap(&*law), before * 2.0);
    // Unless it comes after all.
    let mut law = begun_with_hole();
    for number in [2, 3, 1, 4] {
        law.on_event(Event::PacketAcked {
            now: at(195),
            number: PacketNumber::new(number),
        });
        acknowledge(&mut *law, at(195), RTT, 0);
    }
    law.on_event(Event::Wakeup(at(200)));
    near(gap(&*law), 50.0);
    assert_eq!(law.decision().wakeup, Some(at(300)), "nothing is missing");
}

/// A sample is shorter than the acknowledgement took by the delay that the receiver tells: 250 - 50
/// is after both packets left, and the second keeps its timeout.
#[test]
fn what_left_after_the_acknowledged_packet_keeps_its_timeout() {
    let mut law = begun(&Parameters::new());
    for (number, millis) in [(1, 110), (2, 190)] {
        send_numbered(&mut *law, at(millis), number);
    }
    law.on_event(Event::PacketAcked {
        now: at(250),
        number: PacketNumber::new(1),
    });
    // SRTT = 100 - 25 = 75, Var = 1/2 · 50 = 25: 1.2 · 75 + 4 · 25 = 190 ms after 190.
    acknowledge(&mut *law, at(250), Span::from_millis(50), 1);
    let mut due = law.decision().wakeup.unwrap();
    while due < at(380) {
        law.on_event(Event::Wakeup(due));
        due = law.decision().wakeup.expect("a packet is in flight");
    }
    let before = gap(&*law);
    law.on_event(Event::Wakeup(at(380)));
    assert_eq!(due, at(380));
    near(gap(&*law), before * 2.0);
}

#[test]
fn fine_grain_follows_the_short_term_round_trip() {
    let mut law = begun(&Parameters::new().with("fine_grain", Value::Flag(true)));
    // Short: 0.1 · 100 + 0.9 · 200 = 190; long: 101.
    acknowledge(&mut *law, at(300), Span::from_millis(200), 0);
    near(gap(&*law), 100.0 * 190.0 / 101.0);
}

#[test]
fn a_flow_that_is_idle_is_not_woken() {
    let mut law = begun(&Parameters::new());
    law.on_event(Event::Wakeup(at(200)));
    assert_eq!(law.decision().wakeup, None);
    near(gap(&*law), 100.0);
    send(&mut *law, at(5_000));
    assert_eq!(law.decision().wakeup, Some(at(5_100)));
}
