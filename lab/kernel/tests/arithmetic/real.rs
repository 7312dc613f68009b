//! `bpf/real.h` against the simulator's TCP-Real, and its options against the codec.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use comity_congestion::controllers::tcp_real::{
    LevelRounding, Opening as SimulatedOpening, TcpReal, TcpRealConfig, TimeoutReduction,
    WaveMeter, Weights,
};
use comity_congestion::{
    Ack, Arrival, Controller as _, Event, Feedback, Loss, LossCause, Meter as _, Report, Tag,
    Timeout,
};
use comity_kernel::real::{Fractions, Opening, Parameters};
use comity_tcp::codec;
use comity_units::{DataSize, PacketNumber, Time};
use proptest::prelude::*;

use super::compiled;

const MSS: DataSize = DataSize::new(1_000);
/// The relative error of a level after any number of waves.
const TOLERANCE: f64 = 1e-3;
const ONE_Q32: f64 = 4_294_967_296.0;

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| compiled("real"));

fn answers(parameters: &Parameters, events: &str) -> Vec<Vec<u64>> {
    let bytes = parameters.to_bytes().unwrap();
    let numbers: Vec<u64> = bytes
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes(word.try_into().unwrap()).into())
        .collect();
    super::answers(&PROGRAM, &numbers, events)
        .iter()
        .map(|line| line.split(' ').map(|word| word.parse().unwrap()).collect())
        .collect()
}

/// The simulator's form of the same parameters.
fn simulated(parameters: &Parameters) -> TcpRealConfig {
    TcpRealConfig {
        max_level: parameters.max_level as u16,
        opening: match parameters.opening {
            Opening::SlowStart => SimulatedOpening::SlowStart,
            Opening::Figure => SimulatedOpening::Figure,
            Opening::Jump => SimulatedOpening::Jump,
            Opening::Sender => SimulatedOpening::Sender,
        },
        weights: if parameters.text_weights {
            Weights::Text
        } else {
            Weights::Figure
        },
        threshold_share: parameters.threshold_share,
        rounding: match parameters.fractions {
            Fractions::Kept => LevelRounding::Kept,
            Fractions::Nearest => LevelRounding::Nearest,
            Fractions::Up => LevelRounding::Up,
            Fractions::Down => LevelRounding::Down,
        },
        compares_with_timeouts: parameters.compare_with_timeouts,
        has_level_of_wave: parameters.level_of_wave,
        has_fixed_waves: parameters.fixed_waves,
        timeout_reduction: if parameters.always_reduce {
            TimeoutReduction::Always
        } else {
            TimeoutReduction::WithoutDuplicates
        },
        ..TcpRealConfig::new(MSS)
    }
}

/// An arrival: its time in nanoseconds, its wave, the wave's segments and its position.
#[derive(Clone, Copy, Debug)]
struct Step(u64, u16, u16, u16);

/// The level and the threshold of the simulator's meter after each arrival; 0 before the first
/// measured wave.
fn oracle(parameters: &Parameters, steps: &[Step]) -> Vec<(f64, f64)> {
    let mut meter = WaveMeter::new(simulated(parameters));
    steps
        .iter()
        .map(|&Step(now, wave, segments, position)| {
            meter.on_arrival(&Arrival {
                now: Time::from_nanos(now),
                number: PacketNumber::new(0),
                payload: MSS,
                wire: MSS,
                marked: false,
                tag: Tag::Wave {
                    wave,
                    segments,
                    position,
                },
            });
            (meter.level().unwrap_or(0.0), meter.threshold())
        })
        .collect()
}

fn script(steps: &[Step]) -> String {
    let mut text = String::new();
    for Step(now, wave, segments, position) in steps {
        writeln!(text, "a {now} {wave} {segments} {position} 1").unwrap();
    }
    text
}

fn levels(parameters: &Parameters, events: &str) -> Vec<(f64, f64, u64)> {
    answers(parameters, events)
        .iter()
        .map(|words| {
            let fixed = |at: usize| words[at] as f64 / ONE_Q32;
            (fixed(0), fixed(1), words[2])
        })
        .collect()
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let opening = prop_oneof![
        Just(Opening::SlowStart),
        Just(Opening::Figure),
        Just(Opening::Jump),
        Just(Opening::Sender)
    ];
    (1_u32..=200, 0_u32..=64, opening, any::<[bool; 5]>()).prop_map(
        |(max_level, share, opening, flags)| Parameters {
            max_level,
            threshold_share: f64::from(share) / 64.0,
            opening,
            fractions: Fractions::Kept,
            compare_with_timeouts: flags[0],
            level_of_wave: flags[1],
            fixed_waves: flags[2],
            always_reduce: flags[3],
            text_weights: flags[4],
        },
    )
}

/// Waves with lost segments, late segments of the wave before, pauses, skipped waves and restarts.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wave = (
        prop_oneof![20 => Just(1_u16), 2 => 2_u16..4, 1 => Just(16_384_u16)],
        1_u16..50,
        any::<u64>(),
        prop_oneof![8 => 1_000_u64..1_000_000, 1 => 1_000_000_u64..2_000_000_000],
    );
    prop::collection::vec(wave, 1..40).prop_map(|waves| {
        let (mut now, mut number) = (1_000_000_000, 65_500_u16);
        let (mut steps, mut late) = (Vec::new(), None);
        for (skipped, segments, lost, gap) in waves {
            number = number.wrapping_add(skipped);
            for position in 1..=segments {
                // Each gap differs, so that no two rates are equal.
                now += gap + u64::from(position) * 37;
                let step = Step(now, number, segments, position);
                if position == segments && lost % 5 == 0 {
                    // Arrives in the next wave.
                    late = Some(step);
                } else if lost >> (position % 64) & 0b11 != 0b11 {
                    steps.push(step);
                    if let Some(Step(_, wave, of, last)) = late.take() {
                        now += 17;
                        steps.push(Step(now, wave, of, last));
                    }
                }
            }
        }
        steps
    })
}

/// An acknowledgement of new data.
fn ack(bytes: u64, app_limited: bool) -> Ack {
    Ack {
        now: Time::ZERO,
        acked: DataSize::new(bytes),
        rtt: None,
        in_flight: MSS,
        app_limited,
        in_recovery: false,
        marked: 0,
        packets: 1,
        sample: None,
    }
}

/// A fast retransmit.
fn loss() -> Loss {
    Loss {
        now: Time::ZERO,
        sent_at: Time::ZERO,
        lost: MSS,
        in_flight: MSS,
        window: MSS,
        cause: LossCause::Reordering,
        restart: false,
    }
}

proptest! {
    #[test]
    fn the_level_is_the_simulators(parameters in parameters(), steps in steps()) {
        let expected = oracle(&parameters, &steps);
        let found = levels(&parameters, &script(&steps));
        prop_assert_eq!(expected.len(), found.len());
        for ((step, expected), found) in steps.iter().zip(&expected).zip(&found) {
            // The next step decides by which is greater, and the last digit may tell.
            let gap = (expected.0 - expected.1).abs();
            if gap > 0.0 && gap < TOLERANCE * expected.1 {
                break;
            }
            let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * b;
            prop_assert!(
                close(found.0, expected.0) && close(found.1, expected.1),
                "{step:?}: {found:?} is not {expected:?}"
            );
        }
    }

    #[test]
    fn the_tags_and_windows_are_the_simulators(
        parameters in parameters(),
        events in prop::collection::vec((0_u32..12, 1_u16..=200, any::<bool>()), 1..200),
    ) {
        let mut sender = TcpReal::new(simulated(&parameters));
        let first = sender.level();
        let window = |sender: &TcpReal| sender.decision().window.get() / MSS.get();
        let (mut script, mut expected) = (format!("b {}\n", 2 * first), vec![vec![window(&sender)]]);
        for (kind, level, flag) in events {
            match kind {
                0 => {
                    let level = u64::from(level).min(u64::from(parameters.max_level)) as u16;
                    sender.on_event(Event::Feedback(&Feedback {
                        now: Time::ZERO,
                        report: &Report::Wave { level },
                        rtt: None,
                    }));
                    writeln!(script, "r {level}").unwrap();
                    expected.push(vec![window(&sender)]);
                }
                1 => {
                    let window_before = sender.decision().window;
                    sender.on_event(Event::Timeout(&Timeout {
                        now: Time::ZERO,
                        in_flight: MSS,
                        window: window_before,
                        consecutive: 1,
                        duplicate_seen: flag,
                    }));
                    writeln!(script, "x {}", u8::from(flag)).unwrap();
                    expected.push(vec![window(&sender)]);
                }
                2 => {
                    let bytes = u64::from(level) * 311;
                    sender.on_event(Event::Ack(&ack(bytes, flag)));
                    // The kernel's half hears only of growth that the window limited.
                    if !flag {
                        writeln!(script, "g {bytes}").unwrap();
                        expected.push(vec![window(&sender)]);
                    }
                }
                3 if flag => {
                    sender.on_event(Event::Loss(&loss()));
                    writeln!(script, "l").unwrap();
                    expected.push(vec![window(&sender)]);
                }
                _ => {
                    if kind == 4 {
                        sender.on_event(Event::AppLimited);
                    }
                    writeln!(script, "t {} 1 {}", window(&sender), u8::from(kind == 4)).unwrap();
                    let Tag::Wave { wave, segments, position } = sender.tag(Time::ZERO) else {
                        panic!("a tag without a wave");
                    };
                    expected.push([wave, segments, position].map(u64::from).to_vec());
                }
            }
        }
        prop_assert_eq!(answers(&parameters, &script), expected);
    }

    /// A header that the codec accepts has the same options here; one that it refuses for an option
    /// of TCP-Real is malformed here.
    #[test]
    fn the_options_are_the_codecs(
        options in prop::collection::vec(
            prop_oneof![
                4 => (0_u16..3, 0_u16..5).prop_map(|(high, low)| {
                    vec![254, 4, high as u8, low as u8]
                }),
                4 => (any::<u16>(), 0_u16..5, 0_u16..6).prop_map(|(wave, segments, position)| {
                    let mut bytes = vec![254, 8];
                    bytes.extend([wave, segments, position].map(u16::to_be_bytes).concat());
                    bytes
                }),
                3 => Just(vec![1]),
                1 => Just(vec![0]),
                1 => Just(vec![254, 2]),
                1 => Just(vec![254, 6, 0, 0, 0, 1]),
                3 => Just(vec![1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7]),
                1 => prop::collection::vec(any::<u8>(), 1..9),
            ],
            0..7,
        ),
    ) {
        let mut bytes: Vec<u8> = options.concat();
        bytes.truncate(40);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let mut script = format!("o {}", bytes.len());
        for byte in &bytes {
            write!(script, " {byte}").unwrap();
        }
        script.push('\n');
        let found = answers(&Parameters::default(), &script).remove(0);
        let mut header = [0; 20];
        header[3] = 80;
        header[1] = 90;
        header[12] = ((5 + bytes.len() / 4) as u8) << 4;
        // An acknowledgement.
        header[13] = 0x10;
        let segment = [&header[..], &bytes].concat();
        match codec::decode_unverified(&segment) {
            Ok(decoded) => {
                let options = decoded.segment.options;
                let level = options.level.map_or(0, |level| u64::from(level.get()));
                let wave = options.wave.map_or([0; 4], |wave| {
                    [1, wave.wave, wave.segments.get(), wave.position].map(u64::from)
                });
                prop_assert_eq!(found, [&[0, level], &wave[..]].concat());
            }
            Err(error) => {
                let error = error.to_string();
                let is_of_real = ["wave", "kind 254"].iter().any(|word| error.contains(word));
                prop_assert!(!is_of_real || found[0] == 1, "{error}: {found:?}");
            }
        }
    }
}

/// Waves of `segments` that begin at `at` and take `gap` for each further segment.
fn wave(at: u64, number: u16, segments: u16, gap: u64) -> Vec<Step> {
    (1..=segments)
        .map(|position| {
            Step(
                at + u64::from(position - 1) * gap,
                number,
                segments,
                position,
            )
        })
        .collect()
}

/// The numbers of figure 1 by hand: the second wave takes half and twice the time of the first.
#[test]
fn figure_1_by_hand() {
    for (text_weights, share, gap, factor) in [
        // Below the threshold: 0.5 + 0.5 · 2 and 0.382 + 0.618 · 0.5.
        (false, 1.0, 500_000, 1.5),
        (false, 1.0, 2_000_000, 0.691),
        // Above it: 0.382 + 0.618 · 2 and 0.618 + 0.382 · 0.5.
        (false, 0.0, 500_000, 1.618),
        (false, 0.0, 2_000_000, 0.809),
        // The text of section 2.2 exchanges the two.
        (true, 0.0, 500_000, 1.5),
        (true, 1.0, 2_000_000, 0.809),
    ] {
        let parameters = Parameters {
            opening: Opening::Figure,
            threshold_share: share,
            text_weights,
            ..Parameters::default()
        };
        let mut steps = wave(0, 1, 20, 1_000_000);
        steps.extend(wave(100_000_000, 2, 20, gap));
        let found = levels(&parameters, &script(&steps)).pop().unwrap().0;
        assert!(
            (found - 10.0 * factor).abs() < 1e-4,
            "{share} {gap}: {found}"
        );
    }
}

/// Waves of a quarter of an hour, the longest that count in full.
#[test]
fn a_very_slow_path_does_not_overflow() {
    let mut steps = wave(0, 1, 48, 20_000_000_000);
    steps.extend(wave(2_000_000_000_000, 2, 48, 23_000_000_000));
    let parameters = Parameters {
        opening: Opening::Figure,
        ..Parameters::default()
    };
    let expected = oracle(&parameters, &steps).last().unwrap().0;
    let found = levels(&parameters, &script(&steps)).last().unwrap().0;
    assert!(
        (found - expected).abs() < TOLERANCE * expected,
        "{found} is not {expected}"
    );
}

#[test]
fn fractions_are_rounded_as_the_simulator_rounds_them() {
    let mut steps = wave(0, 1, 20, 1_000_000);
    // Ratios of 0.9, 1.2 and 0.7, between whole levels.
    for (number, gap) in [(2, 1_111_111), (3, 925_925), (4, 1_322_751)] {
        steps.extend(wave(u64::from(number) * 100_000_000, number, 20, gap));
    }
    for fractions in [Fractions::Nearest, Fractions::Up, Fractions::Down] {
        let parameters = Parameters {
            opening: Opening::Figure,
            fractions,
            ..Parameters::default()
        };
        let expected: Vec<f64> = oracle(&parameters, &steps).iter().map(|of| of.0).collect();
        let found: Vec<f64> = levels(&parameters, &script(&steps))
            .iter()
            .map(|of| of.0)
            .collect();
        assert_eq!(found, expected, "{fractions:?}");
    }
}

/// The receiver of packets that hold several segments: what arrives at one time takes no time, so a
/// wave in packets of six shows the rate of the path as one in segments does.
#[test]
fn merged_segments_take_no_time_of_their_own() {
    let parameters = Parameters {
        opening: Opening::Figure,
        threshold_share: 1.0,
        ..Parameters::default()
    };
    // 24 segments, 1 ms each: one by one, and in four packets that arrive with their last segment.
    let mut events = script(&wave(0, 1, 24, 1_000_000));
    for packet in 1..=4_u64 {
        let (now, position) = (100_000_000 + packet * 6_000_000, packet * 6);
        writeln!(events, "a {now} 2 24 {position} 6").unwrap();
    }
    let found = levels(&parameters, &events);
    // 24 segments in 23 ms, and 24 − 5 in 18 ms: a ratio of 1.0116.
    let expected = 12.0 * (0.5 + 0.5 * (19.0 / 18.0) / (24.0 / 23.0));
    assert!(
        (found.last().unwrap().0 - expected).abs() < 1e-3,
        "{found:?}"
    );
    // Another such wave keeps the level.
    for packet in 1..=4_u64 {
        let (now, position) = (200_000_000 + packet * 6_000_000, packet * 6);
        writeln!(events, "a {now} 3 24 {position} 6").unwrap();
    }
    let found = levels(&parameters, &events);
    assert!(
        (found.last().unwrap().0 - expected).abs() < 1e-3,
        "{found:?}"
    );
    // The same where nothing merged them: the last packet ends the wave with its last segment.
    let mut events = script(&wave(0, 1, 24, 1_000_000));
    for segment in 0..24_u64 {
        let (now, position) = (100_000_000 + segment * 1_000_000, (segment / 6 + 1) * 6);
        writeln!(events, "a {now} 2 24 {position} 1").unwrap();
    }
    let found = levels(&parameters, &events);
    assert!((found.last().unwrap().0 - 12.0).abs() < 1e-3, "{found:?}");
    // A copy of it that comes much later does not.
    events += "a 900000000 2 24 24 1\n";
    assert_eq!(found.last(), levels(&parameters, &events).last());
    // Nor does a copy of a wave of one segment, which has no duration.
    let found = levels(&parameters, "a 1000 1 1 1 1\na 2000 1 1 1 1\n");
    assert_eq!(found.last().unwrap().0, 0.0);
    // A whole wave at one time has no rate, and still ends.
    let found = levels(&Parameters::default(), "a 1000 1 10 10 10\n");
    assert_eq!(found, [(10.0, 12.0, 10)]);
}

#[test]
fn a_packet_of_several_segments_has_the_position_of_its_last() {
    // A window of 10 in packets of four; the last is cut by the kernel, and a longer one fits.
    let events = "t 10 4 0\nt 10 4 0\nt 10 2 0\nt 10 4 0\nt 6 4 0\nt 6 4 0\nt 6 1 1\nt 6 1 0\n";
    let found = answers(&Parameters::default(), events);
    let expected: [[u64; 3]; 8] = [
        [1, 10, 4],
        [1, 10, 8],
        [1, 10, 10],
        [2, 10, 4],
        [2, 10, 8],
        [2, 12, 12],
        // Nothing follows: a wave of one.
        [3, 1, 1],
        [4, 6, 1],
    ];
    assert_eq!(found, expected);
}
