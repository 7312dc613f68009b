//! The packet-spacing protocol against figure 4 by hand, and what its rounds are.

use comity_congestion::controllers::{Psp, PspConfig, RoundMeter, Step};
use comity_congestion::{Arrival, Controller, Event, Feedback, Meter, Pacing, Phase, Report, Tag};
use comity_units::{DataSize, PacketNumber, Rate, Seed, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, sent};

const RTT: Span = Span::from_millis(84);
const PACKET: DataSize = DataSize::new(1_428);

fn controller(is_damped: bool, settles: bool) -> Psp {
    Psp::new(PspConfig {
        mss: PACKET,
        max_window: DataSize::MAX,
        link: Rate::from_mbps(100),
        is_damped,
        step: Step::Fixed {
            first: Span::from_micros(50),
            step: Span::from_micros(2),
        },
        settles,
        is_dynamic: false,
        jitter: 0.0,
        seed: Seed::new(1),
    })
}

fn send(controller: &mut Psp, now: Time) -> Tag {
    let tag = controller.tag(now);
    controller.on_event(Event::Sent(&sent(now, PACKET, 0, PACKET)));
    tag
}

fn report(controller: &mut Psp, now: Time, round: u32, packets: u32) {
    controller.on_event(Event::Feedback(&Feedback {
        now,
        report: &Report::Count { round, packets },
        rtt: None,
    }));
}

/// The controller with its base round trip, 84 ms, measured.
fn started(is_damped: bool, settles: bool) -> Psp {
    let mut controller = controller(is_damped, settles);
    assert_eq!(
        send(&mut controller, Time::ZERO),
        Tag::Round {
            round: 0,
            rtt: Span::ZERO
        }
    );
    // One packet measures; the next waits for its answer, a second at the most.
    assert_eq!(controller.decision().pacing, Pacing::At(Time::from_secs(1)));
    controller.on_event(Event::Ack(&ack(
        Time::ZERO + RTT,
        PACKET,
        RTT,
        DataSize::ZERO,
    )));
    assert_eq!(controller.decision().pacing, Pacing::At(Time::ZERO + RTT));
    controller
}

fn at_round(round: u32) -> Time {
    Time::ZERO + RTT * u64::from(round)
}

/// Sends `packets` in the round of this number.
fn send_round(controller: &mut Psp, round: u32, packets: u32) {
    for at in 0..packets {
        let tag = send(
            controller,
            at_round(round) + Span::from_micros(u64::from(at)),
        );
        assert_eq!(tag, Tag::Round { round, rtt: RTT });
    }
}

fn micros(controller: &Psp) -> u64 {
    controller.spacing().as_nanos() / 1_000
}

#[test]
fn figure_4_by_hand() {
    let mut controller = started(false, false);
    let mut step = |round, received, expected| {
        send_round(&mut controller, round, 10);
        // The report comes in the course of the next round.
        send_round(&mut controller, round + 1, 1);
        report(
            &mut controller,
            at_round(round + 1) + RTT / 2,
            round,
            received,
        );
        assert_eq!(micros(&controller), expected, "round {round}");
    };
    step(1, 10, 0);
    step(3, 9, 50);
    step(5, 10, 48);
    step(7, 10, 46);
    step(9, 0, 92);
    for (round, expected) in [
        184, 368, 736, 1_472, 2_944, 5_888, 11_776, 23_552, 47_104, 84_000, 84_000,
    ]
    .into_iter()
    .enumerate()
    {
        step(11 + 2 * round as u32, 3, expected);
    }
}

#[test]
fn packets_leave_a_spacing_and_a_transmission_time_apart() {
    let mut controller = started(false, true);
    send_round(&mut controller, 1, 1);
    // 1428 B at 100 Mb/s are 114.24 us.
    let first = at_round(1);
    assert_eq!(
        controller.decision().pacing,
        Pacing::At(first + Span::from_nanos(114_240))
    );
    send_round(&mut controller, 2, 2);
    report(&mut controller, at_round(2) + RTT / 2, 1, 0);
    assert_eq!(micros(&controller), 50);
    let now = at_round(3);
    send(&mut controller, now);
    let Pacing::At(next) = controller.decision().pacing else {
        panic!("the controller schedules each departure");
    };
    assert_eq!(next.saturating_since(now), Span::from_nanos(164_240));
}

#[test]
fn damping_returns_to_the_spacing_before_a_deliberate_decrease() {
    let mut controller = started(true, true);
    send_round(&mut controller, 1, 10);
    send_round(&mut controller, 2, 10);
    report(&mut controller, at_round(2) + RTT / 2, 1, 9);
    assert_eq!(micros(&controller), 50, "nothing was lowered before it");
    // Round 2 was sent before the reaction and is not judged; round 3 is.
    send_round(&mut controller, 3, 10);
    report(&mut controller, at_round(3) + RTT / 2, 2, 5);
    assert_eq!(micros(&controller), 50);
    send_round(&mut controller, 4, 10);
    report(&mut controller, at_round(4) + RTT / 2, 3, 10);
    assert_eq!(micros(&controller), 48);
    send_round(&mut controller, 5, 10);
    report(&mut controller, at_round(5) + RTT / 2, 4, 10);
    assert_eq!(micros(&controller), 46);
    // Round 5 began with 48 us, after 50: a loss in it returns to 50.
    send_round(&mut controller, 6, 10);
    report(&mut controller, at_round(6) + RTT / 2, 5, 9);
    assert_eq!(micros(&controller), 50);
    // Another loss with that spacing was no fault of a decrease: it doubles.
    for round in 7..=8 {
        send_round(&mut controller, round, 10);
    }
    report(&mut controller, at_round(8) + RTT / 2, 7, 9);
    assert_eq!(micros(&controller), 100);
}

/// A sender that pauses hears of its last round before it begins another one, and lowers the
/// spacing meanwhile: the round after the pause is the first with it, and a loss in that round is
/// the fault of the decrease.
#[test]
fn damping_knows_of_a_decrease_while_nothing_was_sent() {
    let mut controller = started(true, true);
    answer(&mut controller, 1, true);
    assert_eq!(micros(&controller), 50);
    send_round(&mut controller, 3, 10);
    report(&mut controller, at_round(5), 3, 10);
    assert_eq!(micros(&controller), 48);
    for at in 0..10 {
        let tag = send(&mut controller, at_round(6) + Span::from_micros(at));
        assert_eq!(tag, Tag::Round { round: 4, rtt: RTT });
    }
    report(&mut controller, at_round(8), 4, 9);
    assert_eq!(micros(&controller), 50, "and not 96");
}

#[test]
fn silence_counts_as_a_loss_once_per_four_round_trips_of_sending() {
    let mut controller = started(true, true);
    send_round(&mut controller, 1, 10);
    let due = controller.decision().wakeup.unwrap();
    assert_eq!(due, at_round(1) + RTT * 4);
    controller.on_event(Event::Wakeup(due));
    assert_eq!(micros(&controller), 50);
    assert_eq!(controller.decision().wakeup, None, "nothing was sent since");
    report(&mut controller, due, 1, 10);
    assert_eq!(
        micros(&controller),
        50,
        "a report of a round given up changes nothing"
    );
}

#[test]
fn with_steps_of_the_rate_a_window_grows_by_a_quarter_of_its_root() {
    let mut controller = Psp::new(PspConfig {
        link: Rate::from_bps(1_000_000_000_000),
        step: Step::Rate,
        ..config()
    });
    send(&mut controller, Time::ZERO);
    controller.on_event(Event::Ack(&ack(
        Time::ZERO + RTT,
        PACKET,
        RTT,
        DataSize::ZERO,
    )));
    // Losses double the period until a round trip holds about 100 packets.
    let mut round = 0;
    while controller.spacing() < Span::from_micros(700) {
        round += 3;
        send_round_of(&mut controller, round);
        let number = last_round(&mut controller, round + 1);
        report(
            &mut controller,
            at_round(round + 1) + RTT / 2,
            number - 1,
            0,
        );
    }
    let transmission = 0.011424e-6;
    let before = 0.084 / (controller.spacing().as_secs_f64() + transmission);
    let number = last_round(&mut controller, round + 3);
    last_round(&mut controller, round + 4);
    report(&mut controller, at_round(round + 4) + RTT / 2, number, 1);
    let after = 0.084 / (controller.spacing().as_secs_f64() + transmission);
    assert!(
        (after - before - before.sqrt() / 4.0).abs() < 0.0025,
        "{before} {after}"
    );
}

/// A sender with steps of the rate after three losses: eight packets of its link pass from start to
/// start.
struct Known {
    controller: Psp,
    rtt: Span,
    /// Of a packet on its link.
    transmission: Span,
    round: u32,
}

impl Known {
    /// 114.24 us on the link, 913.92 us from start to start: a round trip of 91.392 ms holds a
    /// hundred packets.
    fn hundred(is_damped: bool) -> Self {
        let transmission = Span::from_nanos(114_240);
        Self::new(transmission, Span::from_nanos(91_392_000), is_damped)
    }

    fn new(transmission: Span, rtt: Span, is_damped: bool) -> Self {
        let mut controller = Psp::new(PspConfig {
            link: Rate::of(PACKET, transmission),
            is_damped,
            settles: true,
            ..config()
        });
        send(&mut controller, Time::ZERO);
        controller.on_event(Event::Ack(&ack(
            Time::ZERO + rtt,
            PACKET,
            rtt,
            DataSize::ZERO,
        )));
        let mut known = Self {
            controller,
            rtt,
            transmission,
            round: 0,
        };
        for lost in [1, 3, 5] {
            known.rounds(2);
            known.report(lost, 9);
        }
        assert_eq!(known.period(), 8 * transmission.as_nanos());
        known
    }

    /// The next rounds, of ten packets each.
    fn rounds(&mut self, count: u32) {
        for _ in 0..count {
            self.round += 1;
            let began = Time::ZERO + self.rtt * u64::from(self.round);
            for packet in 0..10 {
                let tag = send(&mut self.controller, began + Span::from_micros(packet));
                let (round, rtt) = (self.round, self.rtt);
                assert_eq!(tag, Tag::Round { round, rtt });
            }
        }
    }

    /// So many packets of a round arrived, it is said in the middle of the newest.
    fn report(&mut self, round: u32, packets: u32) {
        let now = Time::ZERO + self.rtt * u64::from(self.round) + self.rtt / 2;
        report(&mut self.controller, now, round, packets);
    }

    /// From start to start, in nanoseconds.
    fn period(&self) -> u64 {
        (self.controller.spacing() + self.transmission).as_nanos()
    }
}

/// n = 100 and √100 / 4 = 2.5: 91.392 / 102.5 = 0.891629 ms. √102.5 / 4 = 2.531056: 91.392 /
/// 105.031056 = 0.870142 ms. Round 6 began before the third loss was answered. Round 7 raises the
/// rate in the course of round 9: rounds 8 and 9 began before that and wait, round 10 raises it
/// again.
#[test]
fn an_increase_of_the_rate_waits_for_a_round_that_was_sent_with_the_one_before() {
    for is_damped in [false, true] {
        let mut hundred = Known::hundred(is_damped);
        hundred.rounds(2);
        let mut step = |round, expected| {
            hundred.report(round, 10);
            assert_eq!(hundred.period(), expected, "round {round}");
            hundred.rounds(1);
        };
        step(6, 913_920);
        step(7, 891_629);
        step(8, 891_629);
        step(9, 891_629);
        step(10, 870_142);
        step(11, 870_142);
    }
}

/// After the increase to 891.629 us, at 102.5 packets in a round trip, a loss takes off a quarter,
/// since 102.5^(−1/4) = 0.314 is more: of the rate before it, 4/3 · 913.92 = 1218.56 us, or of what
/// arrived if that is less: with 9 of 10 packets 4/3 · 10/9 · 891.629 = 1320.932 us, and never more
/// than half. Undamped it takes half of the rate of now: 1783.258 us.
#[test]
fn a_loss_of_an_increase_takes_a_quarter_off_what_the_path_carried() {
    for (is_damped, arrived, expected) in [
        (true, 9, 1_320_932),
        (true, 7, 1_698_341),
        (true, 6, 1_783_258),
        (true, 0, 1_783_258),
        (false, 9, 1_783_258),
    ] {
        // In a round that it was made in, in the next one, or in one long after it: nothing was
        // lost in between.
        for lost in [9, 10, 11, 14] {
            let mut hundred = Known::hundred(is_damped);
            hundred.rounds(3);
            hundred.report(7, 10);
            hundred.rounds(lost + 2 - hundred.round);
            hundred.report(lost, arrived);
            let found = hundred.period();
            assert!(found.abs_diff(expected) <= 1, "{lost}: {found} {expected}");
            // What was sent before that was known is answered for; a loss after it is of no
            // increase, and doubles.
            hundred.report(lost + 1, 0);
            assert_eq!(hundred.period(), found);
            hundred.rounds(2);
            hundred.report(lost + 3, 9);
            assert_eq!(hundred.period(), 2 * found);
        }
    }
}

/// One of 20 packets is less than what the increase added: 20/19 · 891.629 = 938.557 us, 4/3 of
/// them 1251.409 us. Of 50, 50/49 · 891.629 = 909.826 us are less than the 913.92 us before the
/// increase.
#[test]
fn a_small_loss_of_an_increase_goes_by_the_rate_before_it() {
    for (packets, expected) in [(20, 1_251_409), (50, 1_218_560)] {
        let mut hundred = Known::hundred(true);
        hundred.rounds(3);
        hundred.report(7, 10);
        hundred.rounds(1);
        let began = Time::ZERO + hundred.rtt * 10;
        for packet in 10..packets {
            send(&mut hundred.controller, began + Span::from_micros(packet));
        }
        hundred.rounds(1);
        hundred.report(10, packets as u32 - 1);
        let found = hundred.period();
        assert!(found.abs_diff(expected) <= 1, "{packets}: {found}");
    }
}

/// Round trips of 100 ms with n packets after three losses and n + √n/4 after an increase; a loss
/// takes d of them. Where one of a thousand is lost, d of the rate before the increase, where a
/// tenth is, d of what arrived; never more than half:
///
/// ```text
/// n             n + √n/4   d         100 ms / n / (1 − d)   100 ms / (n + √n/4) / 0.9 / (1 − d)   2 · 100 ms / (n + √n/4)
/// 10,000       10,025      0.099938       11.110 us              12.314 us                             19.950 us
///    400          405      0.222913      321.714 us             353.047 us                            493.827 us
///    250          253.953  0.25          533.333 us             583.369 us                            787.548 us
/// ```
#[test]
fn the_more_packets_a_round_trip_holds_the_smaller_the_share_that_a_loss_takes() {
    let rtt = Span::from_millis(100);
    for (transmission, expected) in [
        (1_250, [11_110, 12_314, 19_950]),
        (31_250, [321_714, 353_047, 493_827]),
        (50_000, [533_333, 583_369, 787_548]),
    ] {
        for (arrived, expected) in [999, 900, 500].into_iter().zip(expected) {
            let mut known = Known::new(Span::from_nanos(transmission), rtt, true);
            known.rounds(3);
            known.report(7, 10);
            known.rounds(1);
            let began = Time::ZERO + rtt * 10;
            for packet in 10..1_000 {
                send(&mut known.controller, began + Span::from_micros(packet));
            }
            known.rounds(1);
            known.report(10, arrived);
            let found = known.period();
            assert!(
                found.abs_diff(expected) <= 1,
                "{transmission} {arrived}: {found}"
            );
        }
    }
}

/// Of 10,025 packets in a round trip a loss takes 0.0999376 while a round trip lasts as long as the
/// least one, 100 ms, and more by as much as it lasts longer. One of 180 ms makes the smoothed one
/// 7/8 · 100 + 1/8 · 180 = 110 ms: 10 us / (1 − 0.1099314) = 11.2351 us. One of 900 ms makes it 200
/// ms: 10 us / (1 − 0.1998752) = 12.4980 us. Another one makes it 287.5 ms: 0.2873206 is more than
/// a quarter, 13.3333 us.
#[test]
fn a_queue_makes_the_share_that_a_loss_takes_larger() {
    let rtt = Span::from_millis(100);
    for (waits, expected) in [
        (&[][..], 11_110),
        (&[180], 11_235),
        (&[900], 12_498),
        (&[900, 900], 13_333),
    ] {
        let mut known = Known::new(Span::from_nanos(1_250), rtt, true);
        known.rounds(3);
        known.report(7, 10);
        known.rounds(1);
        let began = Time::ZERO + rtt * 10;
        for packet in 10..1_000 {
            send(&mut known.controller, began + Span::from_micros(packet));
        }
        known.rounds(1);
        for &millis in waits {
            let later = Span::from_millis(millis);
            known
                .controller
                .on_event(Event::Ack(&ack(began + rtt, PACKET, later, DataSize::ZERO)));
        }
        known.report(10, 999);
        let found = known.period();
        assert!(found.abs_diff(expected) <= 1, "{waits:?}: {found}");
    }
}

/// At a packet in 64 round trips √n would be eight times n: a round without losses adds a quarter,
/// 64 / 1.25 = 51.2.
#[test]
fn a_slow_sender_grows_by_a_quarter() {
    let mut hundred = Known::hundred(true);
    for _ in 0..20 {
        hundred.rounds(2);
        hundred.report(hundred.round - 1, 9);
    }
    assert_eq!(hundred.period(), 64 * 91_392_000);
    hundred.rounds(2);
    hundred.report(hundred.round - 1, 10);
    let found = hundred.period();
    assert!(found.abs_diff(4_679_270_400) <= 64, "{found}");
}

/// Section 2.1 leaves it for later: rounds of the round trip of now. After 84 ms and a packet that
/// took 164 ms the smoothed one is 7/8 · 84 + 1/8 · 164 = 94 ms; the base stays at 84. Tags, rounds
/// and the most that a spacing may be follow the one or the other.
#[test]
fn with_dynamic_rtt_rounds_last_the_smoothed_round_trip() {
    for (is_dynamic, millis) in [(true, 94), (false, 84)] {
        let length = Span::from_millis(millis);
        let mut controller = Psp::new(PspConfig {
            is_dynamic,
            step: Step::Fixed {
                first: Span::from_micros(50),
                step: Span::from_micros(2),
            },
            ..config()
        });
        let at = Time::from_millis;
        let tag = |round, rtt| Tag::Round { round, rtt };
        send(&mut controller, at(0));
        controller.on_event(Event::Ack(&ack(at(84), PACKET, RTT, DataSize::ZERO)));
        assert_eq!(send(&mut controller, at(84)), tag(1, RTT));
        let late = Span::from_millis(164);
        controller.on_event(Event::Ack(&ack(at(248), PACKET, late, DataSize::ZERO)));
        assert_eq!(controller.round(), Some(length));
        assert_eq!(send(&mut controller, at(248)), tag(2, length));
        // 90 ms on the longer round still lasts; 94 ms on it is over.
        let still = if is_dynamic { 2 } else { 3 };
        assert_eq!(send(&mut controller, at(338)), tag(still, length));
        assert_eq!(send(&mut controller, at(342)), tag(3, length));
        // 50 us doubled eleven times are 102.4 ms: more than either.
        let mut now = at(342);
        for round in 3..15 {
            now += length;
            assert_eq!(send(&mut controller, now), tag(round + 1, length));
            report(&mut controller, now + length / 2, round, 0);
        }
        assert_eq!(controller.spacing(), length);
    }
}

/// A first round trip of 164 ms had 80 ms of waiting in it, which the next of 84 ms has not: with
/// steps of the rate rounds are as long as the shorter from then on, and a later one of 124 ms
/// changes nothing. The paper's stay at the first.
#[test]
fn rounds_with_steps_of_the_rate_last_the_least_round_trip() {
    let first = Span::from_millis(164);
    let fixed = Step::Fixed {
        first: Span::from_micros(50),
        step: Span::from_micros(2),
    };
    for (step, expected) in [(Step::Rate, RTT), (fixed, first)] {
        let mut controller = Psp::new(PspConfig { step, ..config() });
        let at = Time::from_millis;
        send(&mut controller, at(0));
        controller.on_event(Event::Ack(&ack(at(164), PACKET, first, DataSize::ZERO)));
        assert_eq!(controller.round(), Some(first));
        send(&mut controller, at(164));
        controller.on_event(Event::Ack(&ack(at(248), PACKET, RTT, DataSize::ZERO)));
        assert_eq!(controller.round(), Some(expected));
        controller.on_event(Event::Ack(&ack(
            at(300),
            PACKET,
            Span::from_millis(124),
            DataSize::ZERO,
        )));
        assert_eq!(controller.round(), Some(expected));
        let Tag::Round { rtt, .. } = send(&mut controller, at(328)) else {
            panic!("packets say which round they are of");
        };
        assert_eq!(rtt, expected);
    }
}

/// One round of ten packets, and the packet of the next that the report meets. Nine or all of the
/// ten arrive.
fn answer(controller: &mut Psp, round: u32, is_lost: bool) {
    send_round(controller, round, 10);
    send_round(controller, round + 1, 1);
    let received = if is_lost { 9 } else { 10 };
    report(controller, at_round(round + 1) + RTT / 2, round, received);
}

/// Two agents at 50 and 200 us that see the same losses. Decreases take the same from both, so that
/// they stay 150 us apart; doubling doubles that. A loss and the 25 rounds in which the faster one
/// comes back leave the slower one at 2 · 200 − 25 · 2 = 350 us. Damped, each returns to where it
/// was.
#[test]
fn the_same_losses_do_not_bring_two_fixed_spacings_together() {
    let at_first = |is_damped| {
        [1, 3].map(|losses| {
            let mut controller = started(is_damped, false);
            for loss in 0..losses {
                answer(&mut controller, 1 + 2 * loss, true);
            }
            controller
        })
    };
    let [mut fast, mut slow] = at_first(false);
    assert_eq!([micros(&fast), micros(&slow)], [50, 200]);
    for step in 0..26 {
        answer(&mut fast, 3 + 2 * step, step == 0);
        answer(&mut slow, 7 + 2 * step, step == 0);
    }
    assert_eq!([micros(&fast), micros(&slow)], [50, 350]);

    let [mut fast, mut slow] = at_first(true);
    for step in 0..20 {
        answer(&mut fast, 3 + 2 * step, step % 2 == 1);
        answer(&mut slow, 7 + 2 * step, step % 2 == 1);
        let lowered = if step % 2 == 0 { 2 } else { 0 };
        assert_eq!(
            [micros(&fast), micros(&slow)],
            [50 - lowered, 200 - lowered]
        );
    }
}

fn config() -> PspConfig {
    PspConfig {
        mss: PACKET,
        max_window: DataSize::MAX,
        link: Rate::from_mbps(100),
        is_damped: false,
        step: Step::Rate,
        settles: false,
        is_dynamic: false,
        jitter: 0.0,
        seed: Seed::new(1),
    }
}

fn send_round_of(controller: &mut Psp, round: u32) {
    last_round(controller, round);
}

/// Sends one packet at this round's time; the round that the controller says it is of.
fn last_round(controller: &mut Psp, round: u32) -> u32 {
    match send(controller, at_round(round)) {
        Tag::Round { round, .. } => round,
        tag => panic!("{tag:?}"),
    }
}

proptest! {
    /// Sender and meter over a path that loses and delays: a round in which nothing was lost never
    /// counts as a loss, however its packets and reports overtake each other by less than an eighth
    /// of a round trip.
    #[test]
    fn a_path_without_losses_never_spaces(
        delays in prop::collection::vec(0u64..10_000, 400),
    ) {
        let mut controller = started(true, true);
        let mut meter = RoundMeter::default();
        let mut arrivals: Vec<(Time, Tag)> = (0..400)
            .map(|at| {
                let now = Time::ZERO + RTT + Span::from_millis(4) * at as u64;
                (now + Span::from_micros(delays[at]), send(&mut controller, now))
            })
            .collect();
        arrivals.sort_by_key(|(at, _)| *at);
        for (now, tag) in arrivals {
            while let Some(due) = meter.wakeup().filter(|due| *due <= now) {
                meter.on_wakeup(due);
                let report = meter.report(due);
                controller.on_event(Event::Feedback(&Feedback { now: due, report: &report, rtt: None }));
                prop_assert_eq!(controller.spacing(), Span::ZERO);
            }
            meter.on_arrival(&Arrival {
                now,
                number: PacketNumber::ZERO,
                payload: PACKET,
                wire: PACKET,
                marked: false,
                tag,
            });
        }
    }
}

/// A controller that takes over on a new path numbers its rounds after those of the other, twice if
/// need be: the receiver takes none that it has had.
#[test]
fn rounds_go_on_where_the_path_changes() {
    let mut controller = started(false, true);
    send_round(&mut controller, 1, 2);
    let last = send(&mut controller, at_round(2));
    assert_eq!(last, Tag::Round { round: 2, rtt: RTT });
    for _ in 0..2 {
        controller = self::controller(false, true);
        controller.on_event(Event::PathChange(last));
        let asks = Tag::Round {
            round: 2,
            rtt: Span::ZERO,
        };
        assert_eq!(send(&mut controller, Time::ZERO), asks);
    }
    controller.on_event(Event::Ack(&ack(
        Time::ZERO + RTT,
        PACKET,
        RTT,
        DataSize::ZERO,
    )));
    let next = send(&mut controller, at_round(3));
    assert_eq!(next, Tag::Round { round: 3, rtt: RTT });
}

/// A period of 50 us, and no transmission time: a jitter of 0.2 spreads it evenly from 0.9 to 1.1
/// of that.
#[test]
fn jitter_spreads_the_period_evenly_about_itself() {
    let mut controller = Psp::new(PspConfig {
        link: Rate::MAX,
        jitter: 0.2,
        step: Step::Fixed {
            first: Span::from_micros(50),
            step: Span::from_micros(2),
        },
        ..config()
    });
    send(&mut controller, Time::ZERO);
    let mut now = Time::ZERO + RTT;
    controller.on_event(Event::Ack(&ack(now, PACKET, RTT, DataSize::ZERO)));
    send(&mut controller, now);
    // No report comes: the spacing begins.
    now = controller.decision().wakeup.expect("a report is due");
    controller.on_event(Event::Wakeup(now));
    assert_eq!(micros(&controller), 50);
    let mut periods = Vec::new();
    for _ in 0..2_000 {
        send(&mut controller, now);
        let Pacing::At(next) = controller.decision().pacing else {
            panic!("it has a calendar");
        };
        periods.push(next.saturating_since(now).as_secs_f64() / 50e-6);
        now = next;
    }
    periods.sort_by(f64::total_cmp);
    let deciles = [0, 200, 1_000, 1_800, 1_999].map(|at| periods[at]);
    for (found, expected) in deciles.iter().zip([0.9, 0.92, 1.0, 1.08, 1.1]) {
        assert!((found - expected).abs() < 0.01, "{deciles:?}");
    }
}

#[test]
fn a_wakeup_before_the_silence_is_over_changes_nothing() {
    let mut controller = started(false, false);
    assert_eq!(controller.decision().phase, Phase::Steady);
    let tag = controller.upcoming_tag();
    assert!(matches!(tag, Tag::Round { rtt: RTT, .. }), "{tag:?}");
    send_round(&mut controller, 1, 10);
    send_round(&mut controller, 2, 10);
    let silent_at = controller.decision().wakeup.expect("a report is due");
    assert_eq!(controller.decision().no_feedback_deadline, Some(silent_at));
    let before = micros(&controller);
    controller.on_event(Event::Wakeup(silent_at.saturating_sub(Span::from_nanos(1))));
    assert_eq!(micros(&controller), before);
    assert_eq!(controller.decision().wakeup, Some(silent_at));
    controller.on_event(Event::Wakeup(silent_at));
    assert!(micros(&controller) > before);
    assert_eq!(controller.decision().wakeup, None);
}
