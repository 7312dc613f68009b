//! TCP-Real: the numbers of section 2.2 and figure 1 by hand. `literal` has both halves against a
//! literal reading.

mod literal;

use comity_congestion::controllers::tcp_real::{
    LevelRounding, Opening, TcpReal, TcpRealConfig, TimeoutReduction, WaveMeter, Weights,
};
use comity_congestion::{
    Ack, Arrival, Controller, Event, Feedback, Meter, Pacing, Phase, Report, Tag, Timeout,
    TimeoutRepair,
};
use comity_units::{DataSize, PacketNumber, Span, Time};

use crate::reference::{ack, loss, timeout};

const MSS: DataSize = DataSize::new(1_000);

/// Figure 1 alone, with a first threshold of so many levels.
fn by_figure(threshold: f64) -> TcpRealConfig {
    TcpRealConfig {
        opening: Opening::Figure,
        threshold_share: threshold / 24.0,
        ..TcpRealConfig::new(MSS)
    }
}

/// An arrival of the wave's segment `position` at `at_ns`.
fn arrival(at_ns: u64, wave: u16, segments: u16, position: u16) -> Arrival {
    Arrival {
        now: Time::from_nanos(at_ns),
        number: PacketNumber::ZERO,
        payload: MSS,
        wire: MSS,
        marked: false,
        tag: Tag::Wave {
            wave,
            segments,
            position,
        },
    }
}

/// Segments `positions` of a wave arrive, `apart_ms` from each other as if none were lost.
fn arrive(
    meter: &mut WaveMeter,
    (wave, segments): (u16, u16),
    positions: impl IntoIterator<Item = u16>,
    start_ms: u64,
    apart_ms: u64,
) -> Report {
    for position in positions {
        let at = start_ms + u64::from(position - 1) * apart_ms;
        meter.on_arrival(&arrival(at * 1_000_000, wave, segments, position));
    }
    meter.report(Time::from_millis(start_ms))
}

fn level(level: u16) -> Report {
    Report::Wave { level }
}

/// Waves of 20 segments, level 10. At 10 ms apart the rate is 20 / 0.19 s; at 20 ms half of that,
/// at 5 ms twice. Falling by half above the threshold: 10 · (0.618 + 0.191) = 8.09; below: 10 ·
/// (0.382 + 0.309) = 6.91. Doubling above: 10 · (0.382 + 1.236) = 16.18; below: 10 · (0.5 + 1)
/// = 15.
#[test]
fn figure_1_by_hand() {
    for (threshold, apart_ms, by_hand) in [
        (5.0, 20, 8.09),
        (12.0, 20, 6.91),
        (5.0, 5, 16.18),
        (12.0, 5, 15.0),
        (5.0, 10, 10.0),
        (12.0, 10, 10.0),
    ] {
        let mut meter = WaveMeter::new(by_figure(threshold));
        assert_eq!(
            meter.report(Time::ZERO),
            Report::None,
            "nothing was measured"
        );
        assert_eq!(arrive(&mut meter, (1, 20), 1..=20, 1_000, 10), level(10));
        arrive(&mut meter, (2, 20), 1..=20, 2_000, apart_ms);
        let found = meter.level().unwrap();
        assert!(
            (found - by_hand).abs() < 1e-9,
            "threshold {threshold}, {apart_ms} ms: {found}"
        );
    }
    // Level 20 would become 32.36; there are 24.
    let mut meter = WaveMeter::new(by_figure(5.0));
    arrive(&mut meter, (1, 40), 1..=40, 1_000, 10);
    assert_eq!(arrive(&mut meter, (2, 40), 1..=40, 2_000, 5), level(24));
}

/// The text of section 2.2 against figure 1: "the congestion window decreases aggressively
/// (conservatively) when the window size is large (small)", and grows the other way round.
#[test]
fn the_weights_of_the_text_by_hand() {
    for (threshold, apart_ms, by_hand) in [
        (5.0, 20, 6.91),
        (12.0, 20, 8.09),
        (5.0, 5, 15.0),
        (12.0, 5, 16.18),
        (5.0, 10, 10.0),
    ] {
        let mut meter = WaveMeter::new(TcpRealConfig {
            weights: Weights::Text,
            ..by_figure(threshold)
        });
        arrive(&mut meter, (1, 20), 1..=20, 1_000, 10);
        arrive(&mut meter, (2, 20), 1..=20, 2_000, apart_ms);
        let found = meter.level().unwrap();
        assert!(
            (found - by_hand).abs() < 1e-9,
            "threshold {threshold}, {apart_ms} ms: {found}"
        );
    }
}

/// The sender's Slow Start: a segment more for each that is acknowledged, up to 24, the window of
/// the first threshold, or to a loss or timeout. The level is that of waves that grow, and the
/// reports decide from then on.
#[test]
fn the_sender_may_lead_the_opening() {
    let config = TcpRealConfig {
        opening: Opening::Sender,
        ..TcpRealConfig::new(MSS)
    };
    let acked = |sender: &mut TcpReal, count| {
        for _ in 0..count {
            sender.on_event(Event::Ack(&ack(
                Time::ZERO,
                MSS,
                Span::from_millis(10),
                MSS,
            )));
        }
        sender.decision().window
    };
    let mut sender = TcpReal::new(config);
    feedback(&mut sender, 3);
    assert_eq!(sender.decision().phase, Phase::SlowStart);
    assert_eq!(acked(&mut sender, 4), MSS * 6, "2 and 4 more, not level 3");
    sender.on_event(Event::Ack(&Ack {
        app_limited: true,
        ..ack(Time::ZERO, MSS, Span::from_millis(10), MSS)
    }));
    assert_eq!(sender.decision().window, MSS * 6, "it did not limit");
    feedback(&mut sender, 5);
    assert_eq!(acked(&mut sender, 17), MSS * 23);
    assert_eq!(acked(&mut sender, 1), MSS * 10, "at 24 the report decides");
    assert_eq!(sender.decision().phase, Phase::CongestionAvoidance);
    assert_eq!(acked(&mut sender, 9), MSS * 10);
    let now = Time::ZERO;
    for event in [
        Event::Loss(&loss(now, MSS, MSS)),
        Event::Timeout(&Timeout {
            duplicate_seen: true,
            ..timeout(now, MSS, MSS, 1)
        }),
    ] {
        let mut sender = TcpReal::new(config);
        acked(&mut sender, 4);
        feedback(&mut sender, 5);
        sender.on_event(event);
        assert_eq!(sender.decision().window, MSS * 6, "a loss is no growth");
        assert_eq!(acked(&mut sender, 1), MSS * 6);
        feedback(&mut sender, 5);
        assert_eq!(sender.decision().window, MSS * 10);
    }

    let mut meter = WaveMeter::new(config);
    for (wave, segments, decided) in [(1, 2, 1), (2, 4, 2), (3, 9, 5)] {
        let start = u64::from(wave) * 1_000;
        let found = arrive(&mut meter, (wave, segments), 1..=segments, start, 10);
        assert_eq!(found, level(decided), "wave {wave}");
    }
    // It was not larger: figure 1, on level 4.5 with a rate of (8/70) / (9/80), not above 12.
    arrive(&mut meter, (4, 8), 1..=8, 4_000, 10);
    let by_hand = 4.5 * (0.5 + 0.5 * (8.0 / 70.0) / (9.0 / 80.0));
    assert!((meter.level().unwrap() - by_hand).abs() < 1e-9);
    // Once over, it does not begin again.
    arrive(&mut meter, (5, 20), 1..=20, 5_000, 10);
    let by_hand = by_hand * (0.382 + 0.618 * (20.0 / 190.0) / (8.0 / 70.0));
    assert!((meter.level().unwrap() - by_hand).abs() < 1e-9);
}

/// "The wave size used in calculations is actually the expected wave size": random losses inside of
/// a wave change neither the rate nor the level. Counting arrivals would see 15 segments, and a
/// level of 8.
#[test]
fn losses_inside_a_wave_are_no_congestion() {
    let mut meter = WaveMeter::new(by_figure(5.0));
    arrive(&mut meter, (1, 20), 1..=20, 1_000, 10);
    let kept = (1..=20).filter(|position| position % 4 != 2);
    assert_eq!(arrive(&mut meter, (2, 20), kept, 2_000, 10), level(10));
    assert_eq!(meter.level(), Some(10.0));
}

/// The last segment of a wave is lost. The wave should take 20 / (20 / 0.19) = 190 ms, so the timer
/// expires 380 ms after its first segment. Segments of the next wave before that change nothing;
/// the one at 400 ms is the measurement: 20 / 0.4 s against 20 / 0.19 s is a ratio of 0.475. The
/// threshold became half of level 10, so 10 is above it: 10 · (0.618 + 0.382 · 0.475) = 7.9945. The
/// rate of that wave is the one before the next: 20 segments in 190 ms are 400/190 times as fast,
/// 7.9945 · (0.382 + 0.618 · 400 / 190) = 13.455.
#[test]
fn a_lost_last_segment_is_decided_by_the_timer() {
    let mut meter = WaveMeter::new(by_figure(12.0));
    arrive(&mut meter, (1, 20), 1..=20, 1_000, 10);
    assert_eq!(arrive(&mut meter, (2, 20), 1..=19, 2_000, 10), level(10));
    assert_eq!(arrive(&mut meter, (3, 20), 1..=1, 2_380, 10), level(10));
    assert_eq!(
        meter.threshold(),
        12.0,
        "not decided at the end of the timer, but behind it"
    );
    assert_eq!(arrive(&mut meter, (3, 20), 2..=2, 2_390, 10), level(8));
    assert_eq!(meter.threshold(), 5.0);
    assert!((meter.level().unwrap() - 7.9945).abs() < 1e-9);
    // The wave in which it was decided began while another was collected, and is not measured.
    arrive(&mut meter, (3, 20), 3..=20, 2_380, 10);
    assert!((meter.level().unwrap() - 7.9945).abs() < 1e-9);
    arrive(&mut meter, (4, 20), 1..=20, 3_000, 10);
    assert!((meter.level().unwrap() - 7.9945 * (0.382 + 0.618 * 400.0 / 190.0)).abs() < 1e-9);
}

/// The same without taking that rate for the next comparison: 190 ms again are a ratio of 1.
#[test]
fn a_rate_of_the_timer_need_not_be_compared_with() {
    let mut meter = WaveMeter::new(TcpRealConfig {
        compares_with_timeouts: false,
        ..by_figure(12.0)
    });
    arrive(&mut meter, (1, 20), 1..=20, 1_000, 10);
    arrive(&mut meter, (2, 20), 1..=19, 2_000, 10);
    arrive(&mut meter, (3, 20), 1..=20, 2_400, 10);
    assert!((meter.level().unwrap() - 7.9945).abs() < 1e-9);
}

/// Slow Start: 2, 4, 8 segments, and up to a threshold of 12 levels at most; from then on figure 1.
#[test]
fn the_opening_doubles_up_to_the_threshold() {
    let mut meter = WaveMeter::new(TcpRealConfig::new(MSS));
    for (wave, segments, decided) in [(1, 2, 2), (2, 4, 4), (3, 8, 8), (4, 16, 12)] {
        let start = u64::from(wave) * 1_000;
        let found = arrive(&mut meter, (wave, segments), 1..=segments, start, 10);
        assert_eq!(found, level(decided), "wave {wave}");
        // A wave of the old length that was on its way changes nothing.
        assert_eq!(meter.report(Time::ZERO), level(decided));
    }
    // 24/23 after 16/15 per interval: 12 · (0.382 + 0.618 · (24/23)/(16/15)), the level not being
    // above 12.
    arrive(&mut meter, (5, 24), 1..=24, 5_000, 10);
    let by_hand = 12.0 * (0.382 + 0.618 * (24.0 / 23.0) / (16.0 / 15.0));
    assert!((meter.level().unwrap() - by_hand).abs() < 1e-9);
}

/// The timer ends the opening: 4 segments after a rate of 2 / 10 ms should take 20 ms; the last is
/// lost, and at 100 ms, behind 40, level 2 has fallen to 2 · (0.618 + 0.382 · (4/100)/(2/10)) =
/// 1.3888, above half of it.
#[test]
fn the_timer_ends_the_opening() {
    let mut meter = WaveMeter::new(TcpRealConfig::new(MSS));
    arrive(&mut meter, (1, 2), 1..=2, 0, 10);
    arrive(&mut meter, (2, 4), 1..=3, 1_000, 10);
    arrive(&mut meter, (3, 4), 1..=1, 1_100, 10);
    assert!((meter.level().unwrap() - 1.3888).abs() < 1e-9);
    assert_eq!(meter.threshold(), 1.0);
    arrive(&mut meter, (3, 4), 2..=4, 1_100, 10);
    // Not 4 levels: (4/30)/(4/100) times as fast is 1.3888 · (0.382 + 0.618 · 100/30).
    assert!((meter.level().unwrap() - 1.3888 * (0.382 + 2.06)).abs() < 1e-9);
}

/// The readings of "the rate before the first": kept, or zero and an infinite ratio; and of
/// fractions.
#[test]
fn the_other_readings() {
    let mut meter = WaveMeter::new(TcpRealConfig {
        opening: Opening::Jump,
        ..by_figure(5.0)
    });
    assert_eq!(arrive(&mut meter, (1, 2), 1..=2, 0, 10), level(24));
    for (rounding, kept) in [
        (LevelRounding::Kept, 8.09),
        (LevelRounding::Nearest, 8.0),
        (LevelRounding::Up, 9.0),
        (LevelRounding::Down, 8.0),
    ] {
        let mut meter = WaveMeter::new(TcpRealConfig {
            rounding,
            ..by_figure(5.0)
        });
        arrive(&mut meter, (1, 20), 1..=20, 1_000, 10);
        arrive(&mut meter, (2, 20), 1..=20, 2_000, 20);
        assert!((meter.level().unwrap() - kept).abs() < 1e-9, "{rounding:?}");
    }
}

/// Waves of 20 segments at 10, 20 and 20 ms apart: the second halves the rate, and the third, which
/// left before its sender heard of that, keeps it. By the last decision 8.09 stays; by the level of
/// the wave it is 10 again.
#[test]
fn the_current_level_may_be_that_of_the_wave() {
    for (has_level_of_wave, by_hand) in [(false, 8.09), (true, 10.0)] {
        let mut meter = WaveMeter::new(TcpRealConfig {
            has_level_of_wave,
            ..by_figure(5.0)
        });
        for (wave, apart) in [(1, 10), (2, 20), (3, 20)] {
            let start = u64::from(wave) * 1_000;
            arrive(&mut meter, (wave, 20), 1..=20, start, apart);
            if wave == 2 {
                assert!((meter.level().unwrap() - 8.09).abs() < 1e-9);
            }
        }
        let found = meter.level().unwrap();
        assert!((found - by_hand).abs() < 1e-9, "{found}");
    }
}

/// Level 3 is reported after the first segment of a wave of two: that wave is of six then, or
/// stays, and the next is.
#[test]
fn a_wave_may_keep_its_length() {
    for (has_fixed_waves, second, third) in
        [(false, (1, 6, 2), (1, 6, 3)), (true, (1, 2, 2), (2, 6, 1))]
    {
        let mut sender = TcpReal::new(TcpRealConfig {
            has_fixed_waves,
            ..TcpRealConfig::new(MSS)
        });
        assert_eq!(tag(&mut sender), (1, 2, 1));
        feedback(&mut sender, 3);
        assert_eq!(tag(&mut sender), second);
        assert_eq!(tag(&mut sender), third);
    }
}

/// A rate that goes up by a tenth and back again: above the threshold 1.0618 · 0.96527 = 1.02493,
/// below 1.05 · 0.94382 = 0.99101. Noise carries levels away from the threshold, in both
/// directions.
#[test]
fn noise_moves_levels_away_from_the_threshold() {
    for (threshold, by_hand) in [(1.0, 1.02493), (23.0, 0.99101)] {
        let mut meter = WaveMeter::new(by_figure(threshold));
        arrive(&mut meter, (1, 20), 1..=20, 1_000, 11);
        arrive(&mut meter, (2, 20), 1..=20, 2_000, 10);
        arrive(&mut meter, (3, 20), 1..=20, 3_000, 11);
        let found = meter.level().unwrap() / 10.0;
        assert!(
            (found - by_hand).abs() < 1e-5,
            "threshold {threshold}: {found}"
        );
    }
}

/// A wave that became longer on its way ends with its new last segment.
#[test]
fn a_wave_may_grow_while_it_is_sent() {
    let mut meter = WaveMeter::new(by_figure(5.0));
    meter.on_arrival(&arrival(0, 1, 2, 1));
    meter.on_arrival(&arrival(10_000_000, 1, 4, 2));
    assert_eq!(meter.level(), None);
    meter.on_arrival(&arrival(20_000_000, 1, 4, 3));
    meter.on_arrival(&arrival(30_000_000, 1, 4, 4));
    assert_eq!(meter.level(), Some(2.0));
}

/// A source pauses for five seconds after 10 segments of a wave of 20. As long as the wave is open
/// the pause is in its rate, and the timer takes it for congestion: from level 10, above the new
/// threshold, to 10 · (0.618 + 0.382 · (20 / 5.09 s) / (20 / 0.19 s)) = 6.323. Where its last
/// segment ends it, its rate is that of 10 segments in 90 ms, 10 · (0.382 + 0.618 · (10 / 0.09 s) /
/// (20 / 0.19 s)) = 10.343, and the pause is in none.
#[test]
fn a_pause_of_the_source_is_no_congestion() {
    for (length, then, by_hand) in [(20, (3, 11), 6.322_593), (10, (4, 1), 10.343_333)] {
        let mut meter = WaveMeter::new(by_figure(5.0));
        arrive(&mut meter, (1, 20), 1..=20, 1_000, 10);
        arrive(&mut meter, (2, 20), 1..=20, 2_000, 10);
        assert_eq!(meter.level(), Some(10.0));
        arrive(&mut meter, (3, 20), 1..=9, 3_000, 10);
        arrive(&mut meter, (3, length), 10..=10, 3_000, 10);
        let (wave, position) = then;
        meter.on_arrival(&arrival(8_090_000_000, wave, 20, position));
        let found = meter.level().unwrap();
        assert!((found - by_hand).abs() < 1e-5, "{length}: {found}");
    }
}

/// Another path: the waves go on a quarter of all numbers ahead, and nothing measured holds: no
/// level, no rate, the opening again. What is still under way of the path before is none of its
/// business.
#[test]
fn a_sender_on_another_path_makes_the_meter_begin_again() {
    for before in [3, 100, 50_000, 65_530] {
        let mut meter = WaveMeter::new(TcpRealConfig::new(MSS));
        let mut sender = TcpReal::new(TcpRealConfig::new(MSS));
        for (count, segments, decided) in [(0, 2, 2), (1, 4, 4), (2, 8, 8)] {
            let wave = u16::wrapping_add(before, count);
            let start = 1_000 * u64::from(count);
            assert_eq!(
                arrive(&mut meter, (wave, segments), 1..=segments, start, 10),
                level(decided)
            );
        }
        let last = u16::wrapping_add(before, 2);
        sender.on_event(Event::PathChange(Tag::Wave {
            wave: last,
            segments: 8,
            position: 8,
        }));
        let (wave, segments, _) = tag(&mut sender);
        assert_eq!((wave, segments), (last.wrapping_add(16_385), 2));
        assert_eq!(
            arrive(&mut meter, (wave, 2), 1..=1, 5_000, 10),
            Report::None
        );
        // A straggler.
        meter.on_arrival(&arrival(5_005_000_000, last, 8, 8));
        assert_eq!(arrive(&mut meter, (wave, 2), 2..=2, 5_000, 10), level(2));
        // Many waves lost in a row are no such thing.
        let far = wave.wrapping_add(8_192);
        assert_eq!(arrive(&mut meter, (far, 4), 1..=4, 9_000, 1), level(4));
    }
}

fn feedback(sender: &mut TcpReal, level: u16) {
    sender.on_event(Event::Feedback(&Feedback {
        now: Time::ZERO,
        report: &Report::Wave { level },
        rtt: None,
    }));
}

fn tag(sender: &mut TcpReal) -> (u16, u16, u16) {
    match sender.tag(Time::ZERO) {
        Tag::Wave {
            wave,
            segments,
            position,
        } => (wave, segments, position),
        other => panic!("{other:?}"),
    }
}

/// A window of two segments per level; waves as long as the window, longer when it grows, not
/// shorter when it shrinks; "the window is reduced to two segments only if the bit is not set".
#[test]
fn the_sender_by_hand() {
    let mut sender = TcpReal::new(TcpRealConfig::new(MSS));
    assert_eq!(sender.decision().window, MSS * 2);
    assert_eq!(
        [tag(&mut sender), tag(&mut sender), tag(&mut sender)],
        [(1, 2, 1), (1, 2, 2), (2, 2, 1)]
    );
    feedback(&mut sender, 3);
    assert_eq!(sender.decision().window, MSS * 6);
    assert_eq!(tag(&mut sender), (2, 6, 2));
    feedback(&mut sender, 2);
    assert_eq!([tag(&mut sender), tag(&mut sender)], [(2, 6, 3), (2, 6, 4)]);
    let mut timeout = Timeout {
        now: Time::ZERO,
        in_flight: MSS * 4,
        window: MSS * 4,
        consecutive: 1,
        duplicate_seen: true,
    };
    sender.on_event(Event::Timeout(&timeout));
    assert_eq!(
        (sender.decision().window, tag(&mut sender)),
        (MSS * 4, (2, 6, 5))
    );
    timeout.duplicate_seen = false;
    sender.on_event(Event::Timeout(&timeout));
    assert_eq!(
        (sender.decision().window, tag(&mut sender)),
        (MSS * 2, (3, 2, 1))
    );
    // The repeated option brings the receiver's level back at once.
    feedback(&mut sender, 24);
    assert_eq!(sender.decision().window, MSS * 48);
    feedback(&mut sender, 0);
    assert_eq!(sender.level(), 1);
    feedback(&mut sender, 500);
    assert_eq!(sender.level(), 24);
}

/// Level 3 at a timeout, with and without the bit, under each reading of the timeouts that reduce
/// the window, and of what "the sender retransmits the packet" means. Where the window is kept its
/// wave goes on, and where it is not there is nothing to keep outstanding: everything is
/// retransmitted.
#[test]
fn a_timeout_by_hand_in_each_reading() {
    use TimeoutReduction::{Always, WithoutDuplicates};
    use TimeoutRepair::{FirstSegment, GoBackN};
    for (timeout_reduction, timeout_repair, duplicate_seen, window, expected_tag, repair) in [
        (WithoutDuplicates, GoBackN, true, 6, (1, 6, 2), GoBackN),
        (WithoutDuplicates, GoBackN, false, 2, (2, 2, 1), GoBackN),
        (
            WithoutDuplicates,
            FirstSegment,
            true,
            6,
            (1, 6, 2),
            FirstSegment,
        ),
        (
            WithoutDuplicates,
            FirstSegment,
            false,
            2,
            (2, 2, 1),
            GoBackN,
        ),
        (Always, GoBackN, true, 2, (2, 2, 1), GoBackN),
        (Always, GoBackN, false, 2, (2, 2, 1), GoBackN),
        (Always, FirstSegment, true, 2, (2, 2, 1), GoBackN),
        (Always, FirstSegment, false, 2, (2, 2, 1), GoBackN),
    ] {
        let mut sender = TcpReal::new(TcpRealConfig {
            timeout_reduction,
            timeout_repair,
            ..TcpRealConfig::new(MSS)
        });
        feedback(&mut sender, 3);
        assert_eq!(tag(&mut sender), (1, 6, 1));
        let timeout = Timeout {
            now: Time::ZERO,
            in_flight: MSS,
            window: MSS * 6,
            consecutive: 1,
            duplicate_seen,
        };
        sender.on_event(Event::Timeout(&timeout));
        let found = (
            sender.decision().timeout_repair,
            sender.decision().window,
            tag(&mut sender),
        );
        assert_eq!(
            found,
            (repair, MSS * window, expected_tag),
            "{timeout_reduction:?}, {timeout_repair:?}, {duplicate_seen}"
        );
    }
}

/// A transport that spreads unpaced windows would have the receiver measure the window.
#[test]
fn a_wave_leaves_at_once_and_the_first_report_ends_slow_start() {
    let mut controller = TcpReal::new(TcpRealConfig::new(MSS));
    assert_eq!(controller.decision().pacing, Pacing::At(Time::ZERO));
    assert_eq!(controller.decision().phase, Phase::SlowStart);
    let tag = controller.upcoming_tag();
    assert!(matches!(tag, Tag::Wave { .. }), "{tag:?}");
    controller.on_event(Event::Feedback(&Feedback {
        now: Time::from_millis(100),
        report: &level(4),
        rtt: None,
    }));
    assert_eq!(controller.decision().phase, Phase::CongestionAvoidance);
}
