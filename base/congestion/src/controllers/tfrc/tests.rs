use alloc::boxed::Box;

use super::*;
use crate::table::{self, Parameters, Setup, Value};
use crate::{Loss, LossCause};
use comity_units::PacketNumber;

const MSS: DataSize = DataSize::new(1_000);
const RTT: Span = Span::from_millis(100);

fn controller(parameters: &Parameters) -> Box<dyn Controller> {
    let setup = Setup::new(MSS);
    table::find("tfrc")
        .unwrap()
        .build(&setup, parameters)
        .unwrap()
}

fn usual() -> Box<dyn Controller> {
    controller(&Parameters::new())
}

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Bytes per second.
fn rate(controller: &dyn Controller) -> f64 {
    match controller.decision().pacing {
        Pacing::Rate(rate) => rate.as_bps() as f64 / 8.0,
        other => panic!("{other:?}"),
    }
}

fn send(controller: &mut dyn Controller, now: Time) {
    controller.tag(now);
    controller.on_event(Event::Sent(&Sent {
        now,
        payload: MSS,
        wire: MSS,
        number: PacketNumber::new(0),
        in_flight: MSS,
        app_limited: false,
    }));
}

fn acknowledge(controller: &mut dyn Controller, now: Time, rtt: Span, app_limited: bool) {
    controller.on_event(Event::Ack(&Ack {
        now,
        acked: MSS,
        rtt: Some(rtt),
        in_flight: MSS,
        app_limited,
        in_recovery: false,
        marked: 0,
        packets: 1,
        sample: None,
    }));
}

/// A report after `rtt` of `p` and these bytes per second, for packets that the controller did or
/// did not hold back.
fn report(
    controller: &mut dyn Controller,
    now: Time,
    rtt: Span,
    p: f64,
    received: u64,
    limited: bool,
) {
    acknowledge(controller, now, rtt, !limited);
    controller.on_event(Event::Feedback(&Feedback {
        now,
        report: &Report::LossEvents {
            rate: p,
            received: Rate::from_bps(received * 8),
        },
        rtt: Some(rtt),
    }));
}

fn near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-4,
        "{found}, expected {expected}"
    );
}

/// A flow after its first report, at 100 ms.
fn begun(parameters: &Parameters) -> Box<dyn Controller> {
    let mut controller = controller(parameters);
    send(&mut *controller, at(0));
    report(&mut *controller, at(100), RTT, 0.0, 0, true);
    controller
}

#[test]
fn slow_start_by_hand() {
    let mut controller = usual();
    near(rate(&*controller), 1_000.0);
    assert_eq!(controller.decision().wakeup, None, "nothing has been sent");
    send(&mut *controller, at(0));
    assert_eq!(controller.decision().wakeup, Some(at(2_000)));
    // W_init = min(4000, max(2000, 4380)) = 4000 bytes in 100 ms.
    report(&mut *controller, at(100), RTT, 0.0, 0, true);
    near(rate(&*controller), 40_000.0);
    assert_eq!(controller.decision().wakeup, Some(at(500)));
    // Half a round trip later there is no reason to double.
    report(&mut *controller, at(150), RTT, 0.0, 20_000, true);
    near(rate(&*controller), 40_000.0);
    report(&mut *controller, at(200), RTT, 0.0, 40_000, true);
    near(rate(&*controller), 80_000.0);
    // Infinity has left the set by now, so the limit is twice what arrives, 110,000.
    report(&mut *controller, at(310), RTT, 0.0, 55_000, true);
    near(rate(&*controller), 110_000.0);
    // At least the initial rate.
    for step in 0..5 {
        report(
            &mut *controller,
            at(510 + step * 200),
            RTT,
            0.0,
            1_000,
            true,
        );
    }
    near(rate(&*controller), 40_000.0);
}

/// The report of the first packet has a receive rate of zero, which is no data-limited interval in
/// section 4.3. Infinity stays in the set, and the rate of a flow that has little to send at first
/// doubles like any other.
#[test]
fn a_report_of_nothing_received_limits_nothing() {
    let mut controller = usual();
    send(&mut *controller, at(0));
    report(&mut *controller, at(100), RTT, 0.0, 0, false);
    near(rate(&*controller), 40_000.0);
    report(&mut *controller, at(200), RTT, 0.0, 10_000, true);
    near(rate(&*controller), 80_000.0);
    // Twice what arrives, once infinity is two round trips old, and at least the initial rate.
    report(&mut *controller, at(310), RTT, 0.0, 30_000, true);
    near(rate(&*controller), 60_000.0);
}

#[test]
fn losses_set_the_rate_by_the_equation() {
    let mut controller = begun(&Parameters::new());
    report(&mut *controller, at(200), RTT, 0.0, 500_000, true);
    // 11.2332 segments of 1000 bytes in 100 ms (see the equation's own test).
    report(&mut *controller, at(300), RTT, 0.01, 500_000, true);
    near(rate(&*controller), 112_332.0);
    assert_eq!(controller.decision().phase, Phase::CongestionAvoidance);
    // Twice what arrives is less, once the earlier rates are two round trips old.
    for step in 0..4 {
        report(
            &mut *controller,
            at(400 + step * 100),
            RTT,
            0.01,
            30_000,
            true,
        );
    }
    near(rate(&*controller), 60_000.0);
    // The minimum is a packet in 64 seconds.
    for step in 0..4 {
        report(&mut *controller, at(900 + step * 100), RTT, 0.01, 0, true);
    }
    near(rate(&*controller), 1_000.0 / 64.0);
}

/// A receiver that reports no losses gets the rate of a quarter of its true loss event rate.
#[test]
fn losses_that_acknowledgements_show_count_from_the_first_one_on() {
    // Small packets leave at most 100 times a second, which is 100 kB/s here.
    for (small_packets, every, expected) in [(false, 100, 1.8..2.5), (true, 10, 2.5..4.5)] {
        let parameters = Parameters::new().with("small_packets", Value::Flag(small_packets));
        let mut lying = begun(&parameters);
        let mut now = 100;
        let (mut early, mut late): (f64, f64) = (0.0, 0.0);
        for packet in 1..=6_000_u32 {
            now += 5;
            send(&mut *lying, at(now));
            acknowledge(&mut *lying, at(now), RTT, false);
            if packet % every == 0 {
                lying.on_event(Event::Loss(&Loss {
                    now: at(now),
                    sent_at: at(now - 100),
                    lost: MSS,
                    in_flight: MSS,
                    window: MSS,
                    cause: LossCause::Reordering,
                    restart: false,
                }));
            }
            if packet % 20 == 0 {
                report(&mut *lying, at(now), RTT, 0.0, 10_000_000, true);
            }
            match packet {
                121..1_200 => early = early.max(rate(&*lying)),
                1_200.. => late = late.max(rate(&*lying)),
                _ => {}
            }
        }
        // X(p) is about s / R · sqrt(3 / 2p) for a small p, so a quarter of p doubles it.
        let mut honest = begun(&parameters);
        report(
            &mut *honest,
            at(200),
            RTT,
            1.0 / f64::from(every),
            10_000_000,
            true,
        );
        // The first interval follows from the rate of acknowledgements, which is higher.
        let allowed = rate(&*honest);
        let found = [early, late].map(|rate| rate / allowed);
        assert!(
            found[0] < 5.0 && expected.contains(&found[1]),
            "{found:?}, {allowed}"
        );
    }
}

#[test]
fn an_interval_with_little_to_send_does_not_pull_the_rate_down() {
    let mut controller = begun(&Parameters::new());
    for step in 2..6 {
        report(&mut *controller, at(step * 100), RTT, 0.01, 100_000, true);
    }
    near(rate(&*controller), 112_332.0);
    // Almost nothing arrives because almost nothing was sent. 100,000 still counts, and twice that
    // is no limit.
    for step in 6..30 {
        report(&mut *controller, at(step * 100), RTT, 0.01, 1_000, false);
    }
    near(rate(&*controller), 112_332.0);
    // With a new loss in such an interval: max(100,000 / 2, 0.85 · 1,000), not doubled.
    report(&mut *controller, at(3_000), RTT, 0.010_001, 1_000, false);
    near(rate(&*controller), 50_000.0);
    // The next one without a new loss: twice that, below the equation.
    report(&mut *controller, at(3_100), RTT, 0.010_001, 1_000, false);
    near(rate(&*controller), 100_000.0);
}

#[test]
fn silence_before_any_report_halves_the_rate() {
    let mut controller = usual();
    send(&mut *controller, at(0));
    controller.on_event(Event::Wakeup(at(1_999)));
    near(rate(&*controller), 1_000.0);
    controller.on_event(Event::Wakeup(at(2_000)));
    near(rate(&*controller), 500.0);
    // Two packets at that rate take 4 s.
    assert_eq!(controller.decision().wakeup, Some(at(6_000)));
}

#[test]
fn silence_halves_what_ruled() {
    // The equation limited the rate: 112,332 / 2.
    let mut controller = begun(&Parameters::new());
    for step in 2..6 {
        report(&mut *controller, at(step * 100), RTT, 0.01, 100_000, true);
    }
    send(&mut *controller, at(550));
    assert_eq!(controller.decision().wakeup, Some(at(900)));
    controller.on_event(Event::Wakeup(at(900)));
    near(rate(&*controller), 56_166.0);
    // Twice what arrived limited the rate: 30,000 is half of 60,000.
    let mut controller = begun(&Parameters::new());
    for step in 2..8 {
        report(&mut *controller, at(step * 100), RTT, 0.01, 30_000, true);
    }
    near(rate(&*controller), 60_000.0);
    send(&mut *controller, at(750));
    controller.on_event(Event::Wakeup(at(1_100)));
    near(rate(&*controller), 30_000.0);
    // Slow start: half.
    let mut controller = begun(&Parameters::new());
    send(&mut *controller, at(150));
    controller.on_event(Event::Wakeup(at(500)));
    near(rate(&*controller), 20_000.0);
}

#[test]
fn an_idle_flow_falls_to_the_initial_rate_and_no_further() {
    let mut controller = begun(&Parameters::new());
    for step in 2..8 {
        report(&mut *controller, at(step * 100), RTT, 0.001, 100_000, true);
    }
    near(rate(&*controller), 200_000.0);
    // 100,000, 50,000. Then the receive rate, 25,000, is below the recover rate of 40,000.
    let mut now = at(700);
    let mut rates = alloc::vec::Vec::new();
    while let Some(due) = controller.decision().wakeup {
        now = due;
        controller.on_event(Event::Wakeup(now));
        rates.push(rate(&*controller));
    }
    assert_eq!(rates, [100_000.0, 50_000.0, 50_000.0]);
    // The next packet restarts the timer.
    send(&mut *controller, now + RTT);
    assert_eq!(controller.decision().wakeup, Some(now + RTT * 5));
}

/// The receiver does not report packets without a number. A flow that sends only keep-alives is
/// idle.
#[test]
fn signs_of_life_neither_end_an_idle_time_nor_count_as_packets() {
    for losses in [0.0, 0.001] {
        let mut quiet = begun(&Parameters::new());
        for step in 2..8 {
            report(&mut *quiet, at(step * 100), RTT, losses, 100_000, true);
        }
        let mut alive = begun(&Parameters::new());
        for step in 2..8 {
            report(&mut *alive, at(step * 100), RTT, losses, 100_000, true);
        }
        near(rate(&*quiet), 200_000.0);
        for second in 1..3_600 {
            let now = at(second * 1_000);
            for controller in [&mut quiet, &mut alive] {
                while let Some(due) = controller.decision().wakeup.filter(|due| *due <= now) {
                    controller.on_event(Event::Wakeup(due));
                }
            }
            alive.on_event(Event::Sent(&Sent {
                now,
                payload: DataSize::new(5),
                wire: DataSize::new(62),
                number: PacketNumber::new(second),
                in_flight: DataSize::new(5),
                app_limited: true,
            }));
        }
        // Halved until it is below twice the recover rate of 40,000, or until the receive rate is
        // below that rate.
        near(rate(&*quiet), 50_000.0);
        near(rate(&*alive), 50_000.0);
        assert_eq!(alive.decision().wakeup, None);
    }
}

#[test]
fn a_longer_round_trip_than_usual_slows_down_at_once() {
    let mut controller = begun(&Parameters::new());
    let mut plain = begun(&Parameters::new().with("damping", Value::Flag(false)));
    for controller in [&mut controller, &mut plain] {
        report(&mut **controller, at(200), RTT, 0.01, 500_000, true);
        // R = 0.9 · 100 + 0.1 · 400 = 130 ms: X = 86,409; the root of the mean is 0.9 · √0.1 + 0.1
        // · √0.4 = 0.347851, and √0.4 = 0.632456.
        report(&mut **controller, at(300), RTT * 4, 0.01, 500_000, true);
    }
    near(rate(&*plain), 86_409.0);
    near(rate(&*controller), 86_409.0 * 0.347_851 / 0.632_456);
}

#[test]
fn gradual_growth_is_a_packet_in_a_round_trip() {
    let mut controller = begun(&Parameters::new().with("gradual", Value::Flag(true)));
    report(&mut *controller, at(200), RTT, 0.04, 500_000, true);
    let before = rate(&*controller);
    report(&mut *controller, at(300), RTT, 0.001, 500_000, true);
    near(rate(&*controller), before + 10_000.0);
    // Half a packet after half a round trip, and two packets after four round trips.
    report(&mut *controller, at(350), RTT, 0.001, 500_000, true);
    near(rate(&*controller), before + 15_000.0);
    report(&mut *controller, at(750), RTT, 0.001, 500_000, true);
    near(rate(&*controller), before + 35_000.0);
}

#[test]
fn the_receive_rate_limits_to_no_less_than_a_packet_in_a_round_trip_if_configured() {
    let mut controller = begun(&Parameters::new().with("min_limit", Value::Number(1.0)));
    for step in 2..9 {
        report(&mut *controller, at(step * 100), RTT, 0.01, 100, true);
    }
    near(rate(&*controller), 10_000.0);
}

#[test]
fn headers_take_their_share_of_the_wire() {
    let mut controller = begun(&Parameters::new());
    controller.tag(at(110));
    controller.on_event(Event::Sent(&Sent {
        now: at(110),
        payload: MSS,
        wire: MSS + DataSize::new(57),
        number: PacketNumber::new(1),
        in_flight: MSS,
        app_limited: false,
    }));
    near(rate(&*controller), 40_000.0 * 1.057);
}

#[test]
fn small_packets_get_the_rate_of_large_ones_less_headers() {
    let parameters = Parameters::new().with("small_packets", Value::Flag(true));
    let mut controller = controller(&parameters);
    let packet = |now| Sent {
        now,
        payload: DataSize::new(160),
        wire: DataSize::new(200),
        number: PacketNumber::new(1),
        in_flight: MSS,
        app_limited: false,
    };
    for number in 0..200 {
        controller.tag(at(number));
        controller.on_event(Event::Sent(&packet(at(number))));
    }
    report(&mut *controller, at(300), RTT, 0.0, 0, true);
    for step in 4..8 {
        report(&mut *controller, at(step * 100), RTT, 0.2, 900_000, true);
    }
    // p = 0.2: √(0.4/3) = 0.365148; 12 · √0.075 · 0.2 · 2.28 = 1.498574; 1 / 1.863723 = 0.536561
    // segments of 1460 bytes in 100 ms are 7,833.8; headers leave 160 / 200 of it; the pacer counts
    // 200 bytes for 160.
    near(rate(&*controller), 7_833.8);
    // At most 100 packets of 200 bytes in a second on any path.
    for step in 8..12 {
        report(
            &mut *controller,
            at(step * 100),
            RTT,
            0.000_1,
            900_000,
            true,
        );
    }
    near(rate(&*controller), 20_000.0);
}

#[test]
fn packets_are_numbered_and_carry_the_round_trip() {
    let mut controller = usual();
    let first = controller.tag(at(0));
    assert_eq!(
        first,
        Tag::Numbered {
            number: 0,
            rtt: Span::ZERO
        }
    );
    acknowledge(&mut *controller, at(100), RTT, true);
    assert_eq!(
        controller.tag(at(100)),
        Tag::Numbered {
            number: 1,
            rtt: RTT
        }
    );
}
