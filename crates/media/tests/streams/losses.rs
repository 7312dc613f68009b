//! A multiplex of constant rate over a lossy path, judged by the checker of transport streams.

use comity_media::check::{Checker, Indicator, Report, Timing};
use comity_media::{Event, ReaderConfig, TsWriter, WriterConfig};
use proptest::prelude::*;

use crate::layouts::at_constant_rate;
use crate::{CLIP, H264, MPEG2, events_of};

const LAYOUTS: u16 = 0x3fff;
/// How long a packet takes at 1.5 Mb/s.
const PACKET_NS: i64 = 1_002_700;

fn check(stream: &[u8]) -> Report {
    let mut checker = Checker::new(Timing::Clock);
    checker.push(stream);
    checker.finish();
    checker.report()
}

/// How far clock references are off, in nanoseconds, at most.
fn inexact(report: &Report) -> i64 {
    let accuracy = report.clocks[0].accuracy.as_ref().expect("a constant rate");
    accuracy.max_ns.max(-accuracy.min_ns)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// One of twenty sections is missing: clock references stay in their places, and no counter
    /// jumps unannounced. Behind a missing layout, announcements may come before the null packet
    /// that they replace.
    #[test]
    fn clocks_and_counters_are_right_whatever_is_missing(
        which in 0_usize..3,
        loses_layouts in any::<bool>(),
        lost in prop::collection::vec(0_u32..20, 1_500),
    ) {
        let source = at_constant_rate([H264, MPEG2, CLIP][which], 1);
        let config = ReaderConfig { layouts: true, ..ReaderConfig::default() };
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut out = Vec::new();
        // The first sections say what the stream is.
        for (at, event) in events_of(config, [&source[..]]).into_iter().enumerate() {
            if let Event::Section(section) = event {
                let may_be_lost = at > 40 && (loses_layouts || section.stream != LAYOUTS);
                let is_lost = may_be_lost && lost[at % lost.len()] == 0;
                let (stream, number) = (section.stream, section.number);
                match is_lost {
                    true => writer.miss(stream, number, 1, &mut out),
                    false => writer
                        .write_section(stream, number, &section.payload, &mut out)
                        .expect("a section of the reader"),
                }
            }
        }
        writer.finish(&mut out);
        let (before, after) = (check(&source), check(&out));
        prop_assert!(before.pids.iter().all(|pid| pid.continuity_errors == 0));
        for pid in &after.pids {
            prop_assert_eq!(pid.continuity_errors, 0, "PID {}", pid.pid);
        }
        prop_assert_eq!(after.errors.of(Indicator::ContinuityCountError).count, 0);
        let more = if loses_layouts { 3 * PACKET_NS } else { 0 };
        prop_assert!(inexact(&after) <= inexact(&before) + 500 + more, "{} ns", inexact(&after));
    }
}
