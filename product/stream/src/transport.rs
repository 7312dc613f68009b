//! The transport stream at one end of a relay: its statistics and errors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use comity::counter::counters;
use comity_media::check::{Checker, Indicator, Report, Timing};
use serde::Serialize;

use crate::lock::lock;

/// If this many bytes contain no packet, the media is not a transport stream.
const SEARCHED: u64 = 1 << 20;

/// Checks the media that a host's own source or sink reads or writes. Clones share the state.
#[derive(Clone, Debug)]
pub struct TransportMonitor(Arc<Mutex<Checked>>);

#[derive(Debug)]
struct Checked {
    /// `None` if the media is not a transport stream.
    checker: Option<Checker>,
    bytes: u64,
}

impl Default for TransportMonitor {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Checked {
            // Timed by the stream's own clock at both ends, so that the results can be compared.
            checker: Some(Checker::new(Timing::Clock)),
            bytes: 0,
        })))
    }
}

impl TransportMonitor {
    /// Checks the next bytes of the media.
    pub fn push(&self, bytes: &[u8]) {
        let mut checked = lock(&self.0);
        checked.bytes += bytes.len() as u64;
        let has_searched = checked.bytes > SEARCHED;
        if let Some(checker) = &mut checked.checker {
            checker.push(bytes);
            if has_searched && !checker.has_packets() {
                checked.checker = None;
            }
        }
    }

    /// Ends the media: no bytes follow.
    pub fn finish(&self) {
        if let Some(checker) = &mut lock(&self.0).checker {
            checker.finish();
        }
    }

    /// The statistics so far; `None` unless the media is a transport stream.
    pub fn statistics(&self) -> Option<TransportStatistics> {
        let report = lock(&self.0).checker.as_ref()?.report();
        (report.packets > 0).then(|| TransportStatistics::from(&report))
    }
}

counters! {
    /// A transport stream, measured by its own clock.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct TransportStatistics {
        /// Packets of 188 bytes. Those of a file count when they are read.
        pub packets: u64 = "packets" / "transport_packets", Counter, Count;
        /// Null packets.
        pub null_packets: u64 = "null_packets" / "transport_null_packets", Counter, Count;
        /// Scrambled packets.
        pub scrambled_packets: u64 = "scrambled_packets", Counter, Count;
        /// The lower bound of the number of missing packets, by the continuity counters.
        pub missing_packets: u64 = "missing_packets" / "transport_missing_packets", Counter, Count;
        /// Bytes outside of packets.
        pub skipped_bytes: u64 = "skipped_bytes", Counter, Bytes;
        /// The mean rate of the multiplex; unknown without a clock.
        pub rate_bps: Option<u64> = "rate_bps", Gauge, Bps;
        /// The longest time between two clock references; unknown without clock references.
        pub pcr_interval_max_s: Option<f64> = "pcr_interval_max_s", Gauge, Seconds;
        /// Jumps of clock references and time stamps.
        pub jumps: u64 = "jumps", Counter, Count;
        /// The errors of each indicator of TR 101 290.
        pub errors: BTreeMap<&'static str, u64>;
    }
}

impl From<&Report> for TransportStatistics {
    fn from(report: &Report) -> Self {
        let intervals = report.clocks.iter().map(|clock| clock.intervals);
        let intervals = intervals.filter(|intervals| intervals.count > 0);
        let errors =
            Indicator::ALL.map(|indicator| (indicator.name(), report.errors.of(indicator).count));
        Self {
            packets: report.packets,
            null_packets: report.null_packets,
            scrambled_packets: report.scrambled_packets,
            missing_packets: report.pids.iter().map(|pid| pid.missing_packets).sum(),
            skipped_bytes: report.skipped_bytes,
            rate_bps: report.rate.map(|rate| rate.as_bps()),
            pcr_interval_max_s: { intervals.map(|intervals| intervals.max).max() }
                .map(|longest| longest.as_secs_f64()),
            jumps: report.jump_count,
            errors: errors.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = include_bytes!("../../media/tests/vectors/h264.ts");

    #[test]
    fn a_transport_stream_is_counted_by_every_clone() {
        let monitor = TransportMonitor::default();
        let other = monitor.clone();
        assert_eq!(monitor.statistics(), None);
        let (start, end) = STREAM.split_at(50 * 188);
        monitor.push(start);
        // A packet is missing.
        other.push(&end[188..]);
        other.finish();
        let statistics = monitor.statistics().unwrap();
        assert_eq!(statistics.packets + 1, STREAM.len() as u64 / 188);
        assert_eq!(statistics.missing_packets, 1);
        assert_eq!(statistics.errors["Continuity_count_error"], 1);
        assert_eq!(statistics.errors["Transport_error"], 0);
        assert_eq!(statistics.errors.len(), Indicator::ALL.len());
        let longest = statistics.pcr_interval_max_s.unwrap();
        assert!((0.01..0.2).contains(&longest), "{longest}");
        let json = serde_json::to_value(&statistics).unwrap();
        assert_eq!(json["missing_packets"], 1);
    }

    #[test]
    fn other_media_is_given_up() {
        let monitor = TransportMonitor::default();
        for _ in 0..40 {
            monitor.push(&[7; 65_536]);
        }
        monitor.push(STREAM);
        monitor.finish();
        assert_eq!(monitor.statistics(), None);
        assert!(lock(&monitor.0).checker.is_none());
    }
}
