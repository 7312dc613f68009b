//! Finds the faults and the content of a transport stream, in the terms of ETSI TR 101 290.
//!
//! `docs/reference/check.md` defines what is counted and measured.
//!
//! ```text
//! bytes ─► Sync ─► packets ─► [StoredClock] ─► packets with times ─► Analysis ─► Report
//! ```

mod analysis;
mod continuity;
mod indicator;
mod interval;
mod kind;
mod linear;
pub(crate) mod packet;
mod peaks;
mod pid;
mod report;
mod stored;
mod sync;
mod tables;

use comity_units::Time;

use analysis::Analysis;
pub use analysis::Timing;
pub use indicator::{ErrorCount, Errors, Indicator};
pub use interval::Intervals;
pub use kind::Kind;
pub use linear::Offsets;
pub use peaks::Peak;
use peaks::Peaks;
pub use report::{Clock, Jump, Jumped, Pid, Program, Report};
use stored::{Item, StoredClock};
use sync::{Found, Sync};

/// Whether a program map describes the private data on this PID as sound or other data, which need
/// no frame types.
pub(crate) fn names_private_data(map: &[u8], pid: u16) -> bool {
    const PRIVATE_DATA: u8 = 0x06;
    let is_named = |&(own, stream_type, kind): &(u16, u8, Kind)| {
        let is_it = (own, stream_type) == (pid, PRIVATE_DATA);
        is_it && kind != Kind::PRIVATE && !kind.is_video()
    };
    tables::program_map(map).is_some_and(|map| map.streams.iter().any(is_named))
}

/// Checks a transport stream: accepts its bytes in pieces of any size, and reports what it found.
///
/// Any bytes are accepted. Memory is bounded: 12 MiB of packets that wait for their time, and the
/// state of 8,192 PIDs, 1,024 programs and 512 clocks.
///
/// ```
/// use comity_media::check::{Checker, Indicator, Timing};
///
/// let mut file = include_bytes!("../../tests/vectors/h264.ts").to_vec();
/// // The 41st packet is missing.
/// file.drain(40 * 188..41 * 188);
/// let mut checker = Checker::new(Timing::Clock);
/// checker.push(&file);
/// checker.finish();
/// let report = checker.report();
/// assert_eq!(report.errors.of(Indicator::ContinuityCountError).count, 1);
/// assert_eq!(report.errors.of(Indicator::TransportError).count, 0);
/// ```
#[derive(Debug)]
pub struct Checker {
    sync: Sync,
    /// `None` for a live stream.
    stored: Option<StoredClock>,
    peaks: Peaks,
    analysis: Analysis,
}

impl Checker {
    /// Creates a checker of a stream whose packets have times of this kind.
    pub fn new(timing: Timing) -> Self {
        Self {
            sync: Sync::default(),
            stored: (timing == Timing::Clock).then(StoredClock::default),
            peaks: Peaks::default(),
            analysis: Analysis::new(timing),
        }
    }

    /// Adds bytes of a stored stream. In a live stream, they have the time of the previous bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_arrived(bytes, self.analysis.now().unwrap_or(Time::ZERO));
    }

    /// Adds bytes that arrived at `now`, no earlier than the previous bytes. A stored stream
    /// ignores the time.
    pub fn push_arrived(&mut self, bytes: &[u8], now: Time) {
        if self.stored.is_none() {
            self.peaks.arrive(now, bytes.len());
        }
        let Self {
            sync,
            stored,
            analysis,
            ..
        } = self;
        sync.push(bytes, &mut |found| locate(stored, analysis, now, found));
    }

    /// Records that nothing of a live stream arrived until `now`, so that missing packets count as
    /// late.
    pub fn wait(&mut self, now: Time) {
        if self.stored.is_none() {
            self.analysis.wait(now);
        }
    }

    /// Ends the stream, and processes the held packets. The last packets have the time of the
    /// previous bytes.
    pub fn finish(&mut self) {
        let now = self.analysis.now().unwrap_or(Time::ZERO);
        let Self {
            sync,
            stored,
            analysis,
            ..
        } = self;
        sync.finish(&mut |found| locate(stored, analysis, now, found));
        if let Some(stored) = stored {
            stored.finish(&mut |time, item| analysis.push(time, &item));
        }
    }

    /// Whether any packet was found.
    pub const fn has_packets(&self) -> bool {
        self.sync.packet_distance().is_some()
    }

    /// The results so far. An interval that is already too long counts as an error.
    pub fn report(&self) -> Report {
        Report {
            packet_bytes: self.sync.packet_distance(),
            peaks: match self.stored {
                None => self.peaks.peaks(),
                Some(_) => Vec::new(),
            },
            ..self.analysis.report()
        }
    }
}

/// Adds the time of a part of the stream.
fn locate(stored: &mut Option<StoredClock>, analysis: &mut Analysis, now: Time, found: Found<'_>) {
    let item = match found {
        Found::Packet(packet) => Item::Packet(*packet),
        Found::SyncByteError => Item::SyncByteError,
        Found::SyncLoss => Item::SyncLoss,
        Found::Skipped(bytes) => Item::Skipped(bytes),
    };
    match stored {
        None => analysis.push(Some(now), &item),
        Some(stored) => stored.push(item, &mut |time, item| analysis.push(time, &item)),
    }
}
