//! Streams of other multiplexers, and any bytes.

use std::process::Command;

use comity_media::check::Indicator;
use proptest::prelude::*;

use crate::tools::run;

use super::{check, check_in, check_live, found, is_near};

const H264: &[u8] = include_bytes!("../vectors/h264.ts");
const H265: &[u8] = include_bytes!("../vectors/h265.ts");
const MPEG2: &[u8] = include_bytes!("../vectors/mpeg2.ts");

/// A stream that ffmpeg makes with these options of its muxer; `None` if ffmpeg is absent.
fn ffmpeg(options: &[&str]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder for the stream");
    let file = folder.path().join("stream.ts");
    let mut command = Command::new("ffmpeg");
    command
        .args(["-hide_banner", "-nostdin", "-loglevel", "error"])
        .args(["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"])
        .args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"])
        .args([
            "-t",
            "8",
            "-c:v",
            "mpeg2video",
            "-b:v",
            "600k",
            "-maxrate",
            "600k",
        ])
        .args([
            "-bufsize", "600k", "-g", "25", "-c:a", "mp2", "-b:a", "128k",
        ])
        .args(options)
        .args(["-f", "mpegts"])
        .arg(&file);
    run(&mut command)?;
    Some(std::fs::read(&file).expect("ffmpeg's file"))
}

#[test]
fn a_constant_rate_of_ffmpeg_is_found() {
    for (rate, period_ms) in [(1_500_000, 20), (3_000_000, 35)] {
        let muxrate = rate.to_string();
        let period = period_ms.to_string();
        let options = [
            "-muxrate",
            &muxrate,
            "-pcr_period",
            &period,
            "-pat_period",
            "0.2",
        ];
        let Some(bytes) = ffmpeg(&options) else {
            return;
        };
        let report = check(&bytes);
        assert_eq!(found(&report.errors), []);
        assert_eq!(report.packets, bytes.len() as u64 / 188);
        let measured = report.rate.unwrap().as_bps();
        assert!(measured.abs_diff(rate) < 100, "{measured}");
        assert_eq!(report.is_constant_rate, Some(true));
        let nulls = bytes
            .chunks(188)
            .filter(|packet| packet[1] & 0x1f == 0x1f && packet[2] == 0xff);
        assert_eq!(report.null_packets, nulls.count() as u64);
        assert!(report.null_packets > report.packets / 4);
        // ffmpeg's clock is that of the bytes, in whole ticks.
        let accuracy = report.clocks[0].accuracy.as_ref().unwrap();
        assert!(accuracy.max_ns.max(-accuracy.min_ns) <= 40, "{accuracy:?}");
        let intervals = report.clocks[0].intervals;
        assert!(
            is_near(intervals.mean(), period_ms * 1_000, 3_000),
            "{intervals:?}"
        );
        assert!(
            is_near(report.pat.mean(), 200_000, 15_000),
            "{:?}",
            report.pat
        );
        let kinds: Vec<_> = report.pids.iter().map(|pid| pid.kind.name).collect();
        let expected = [
            "PAT",
            "SDT, BAT",
            "MPEG-2 video",
            "MPEG audio",
            "PMT",
            "null packets",
        ];
        assert_eq!(kinds, expected);
    }
}

#[test]
fn clock_references_of_ffmpeg_that_are_too_rare_are_found() {
    let options = ["-muxrate", "1500k", "-pcr_period", "150"];
    let Some(bytes) = ffmpeg(&options) else {
        return;
    };
    let report = check(&bytes);
    // The references of the program, read here.
    let packets = bytes.chunks(188);
    let with_clock = packets.filter(|packet| {
        (packet[1] & 0x1f, packet[2]) == (1, 0)
            && packet[3] & 0x20 != 0
            && packet[4] > 6
            && packet[5] & 0x10 != 0
    });
    let ticks: Vec<u64> = with_clock
        .map(|packet| {
            let word = u32::from_be_bytes([packet[6], packet[7], packet[8], packet[9]]);
            let base = u64::from(word) << 1 | u64::from(packet[10] >> 7);
            base * 300 + u64::from(packet[10] & 1) * 256 + u64::from(packet[11])
        })
        .collect();
    let steps = ticks.windows(2).map(|pair| pair[1] - pair[0]);
    let late = steps.clone().filter(|step| *step > 2_700_000).count() as u64;
    let expected = [
        (Indicator::PcrRepetitionError, late),
        (Indicator::PcrDiscontinuityIndicatorError, late),
    ];
    assert_eq!(found(&report.errors), expected);
    let intervals = report.clocks[0].intervals;
    let longest = steps.max().unwrap() * 1_000 / 27;
    assert!(
        intervals.max.as_nanos().abs_diff(longest) < 10,
        "{intervals:?}"
    );
    assert!(late > 40 && intervals.count == ticks.len() as u64 - 1);
    assert_eq!(report.jump_count, 0);
}

#[test]
fn a_variable_rate_of_ffmpeg_has_no_null_packets_and_no_accuracy() {
    let Some(bytes) = ffmpeg(&[]) else { return };
    let report = check(&bytes);
    assert_eq!(report.null_packets, 0);
    assert_eq!(report.is_constant_rate, Some(false));
    assert_eq!(report.errors.sum(1), 0, "{:?}", found(&report.errors));
}

#[test]
fn the_vectors_have_no_errors_of_packets() {
    for vector in [H264, H265, MPEG2] {
        let report = check(vector);
        assert_eq!(report.packets, vector.len() as u64 / 188);
        assert_eq!(report.errors.sum(1), 0, "{:?}", found(&report.errors));
        assert!(report.rate.is_some());
    }
}

/// A stream with bytes changed, inserted and removed.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let vector = prop_oneof![Just(H264), Just(H265), Just(MPEG2)];
    let change = (
        any::<prop::sample::Index>(),
        any::<u8>(),
        0_usize..400,
        0..6_u8,
    );
    (vector, prop::collection::vec(change, 0..40)).prop_map(|(vector, changes)| {
        let mut bytes = vector.to_vec();
        for (at, byte, length, what) in changes {
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            match what {
                0 => drop(bytes.drain(at..end)),
                1 => drop(bytes.splice(at..at, vec![byte; length])),
                // A header, whose bytes say the most.
                2..=4 => {
                    let at = at / 188 * 188 + usize::from(what) - 1;
                    bytes
                        .iter_mut()
                        .skip(at)
                        .take(1)
                        .for_each(|changed| *changed = byte);
                }
                _ => bytes[at] = byte,
            }
            if bytes.is_empty() {
                bytes.push(byte);
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_have_a_report_that_no_split_changes(
        bytes in prop_oneof![
            4 => mutated(),
            1 => prop::collection::vec(any::<u8>(), 0..4_000),
        ],
        length in 1_usize..3_000,
    ) {
        let whole = check_in([&bytes[..]]);
        prop_assert_eq!(&check_in(bytes.chunks(length)), &whole);
        // Each byte is in a packet or skipped.
        if whole.packet_bytes == Some(188) {
            prop_assert_eq!(whole.packets * 188 + whole.skipped_bytes, bytes.len() as u64);
        }
        let in_pids: u64 = whole.pids.iter().map(|pid| pid.packets).sum();
        prop_assert!(in_pids <= whole.packets);
        prop_assert!(whole.errors.of(Indicator::ContinuityCountError).count <= in_pids);
        prop_assert!(whole.jumps.len() as u64 <= whole.jump_count);
        let live = check_live(&bytes, |number| number * number % 7_000_000);
        prop_assert_eq!(live.packets, whole.packets);
        let count = |errors: &comity_media::check::Errors| {
            [Indicator::ContinuityCountError, Indicator::TransportError, Indicator::CrcError]
                .map(|indicator| errors.of(indicator).count)
        };
        prop_assert_eq!(count(&live.errors), count(&whole.errors));
    }
}
