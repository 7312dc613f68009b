//! Playback of a stream: a reader takes bytes at fixed times, and waits when they are missing.

use std::sync::Arc;

use comity_units::{Span, Time};

use crate::frames::Frame;
use crate::network::{ReadSizes, Reader};
use crate::report::PlaybackReport;

/// A reader that takes bytes at equal intervals: the playback of a stream.
///
/// ```text
/// startup delay = time of the first satisfied read - start of the flow
/// stall         = from a failed read after a satisfied one to the next satisfied one
/// ```
///
/// # Source
/// Zhang and Tsaoussidis, "TCP-Real: Improving Real-time Capabilities of TCP over Heterogeneous
/// Networks", NOSSDAV 2001, section 3 (VREAL): 1 Mb/s, 5 KB every 40 ms, or the same rate every
/// 100 ms (12.5 KB; the paper names no amount, and its 5 KB would be 0.4 Mb/s). The result is the
/// share of reads that find their data.
///
/// Differs from the paper in: 1. playback begins `delay` after the first byte; the paper mentions
/// no such delay. At zero the first read is due at once. 2. a failed read takes nothing and is
/// tried again when the next read is due. Playback then falls behind by one interval, and no data
/// is too late. The paper does not say whether its player waits or skips missing data. 3. with a
/// `buffer`, the first read and a read after a failed one wait for that many bytes, as players of
/// stored video do.
#[derive(Clone, Debug)]
pub(super) struct Playback {
    sizes: Sizes,
    interval: Span,
    pub(super) delay: Span,
    /// When the next read is due; never before the first byte.
    pub(super) next_read: Time,
    /// The bytes that must be readable before playback begins or continues.
    buffer: u64,
    /// The bytes of the file that the reader has not taken; `None` for a stream without an end.
    left: Option<u64>,
    is_waiting: bool,
    started_at: Option<Time>,
    stalled_since: Option<Time>,
    reads: u64,
    satisfied: u64,
    stalls: u64,
    stalled: Span,
    longest_stall: Span,
}

/// The sizes of the remaining reads.
#[derive(Clone, Debug)]
enum Sizes {
    Equal(u64),
    Frames(Arc<[Frame]>, usize),
}

impl Sizes {
    fn next(&self) -> Option<u64> {
        match self {
            Self::Equal(bytes) => Some(*bytes),
            Self::Frames(frames, next) => frames.get(*next).map(|frame| frame.bytes.into()),
        }
    }

    fn advance(&mut self) {
        if let Self::Frames(_, next) = self {
            *next += 1;
        }
    }
}

impl Playback {
    /// Creates the player of a stream of `file` bytes, or of a stream without an end.
    pub(super) fn new(reader: &Reader, file: Option<u64>) -> Option<Self> {
        let Reader::Playback {
            sizes,
            interval,
            delay,
            buffer,
        } = reader
        else {
            return None;
        };
        Some(Self {
            sizes: match sizes {
                ReadSizes::Equal(bytes) => Sizes::Equal(bytes.get()),
                ReadSizes::Frames(frames) => Sizes::Frames(Arc::clone(frames), 0),
            },
            interval: *interval,
            delay: *delay,
            next_read: Time::MAX,
            buffer: buffer.get(),
            left: file,
            is_waiting: true,
            started_at: None,
            stalled_since: None,
            reads: 0,
            satisfied: 0,
            stalls: 0,
            stalled: Span::ZERO,
            longest_stall: Span::ZERO,
        })
    }

    /// Whether the last read was made: the stream has ended, or its last frame was taken.
    pub(super) fn is_over(&self) -> bool {
        self.left == Some(0) || self.sizes.next().is_none()
    }

    /// Tries a read, with `readable` bytes available. Returns how many of them it takes.
    ///
    /// The last read of a file takes the rest of it. Reads from `warmup` on are counted, and the
    /// part of a stall after it.
    pub(super) fn read(&mut self, now: Time, readable: u64, warmup: Time) -> u64 {
        self.next_read = now + self.interval;
        let is_whole = self.left == Some(readable);
        let Some(due) = self.sizes.next().filter(|_| !self.is_over()) else {
            return 0;
        };
        let wanted = if self.is_waiting {
            due.max(self.buffer)
        } else {
            due
        };
        let is_satisfied = readable >= wanted || is_whole;
        if now >= warmup {
            self.reads += 1;
            self.satisfied += u64::from(is_satisfied);
        }
        self.is_waiting = !is_satisfied;
        if !is_satisfied {
            if self.started_at.is_some() {
                self.stalled_since.get_or_insert(now);
            }
            return 0;
        }
        self.end_stall(now, warmup);
        self.started_at.get_or_insert(now);
        self.sizes.advance();
        let taken = due.min(readable);
        self.left = self.left.map(|left| left - taken);
        taken
    }

    fn end_stall(&mut self, now: Time, warmup: Time) {
        let Some(since) = self.stalled_since.take() else {
            return;
        };
        let length = now.saturating_since(since.max(warmup));
        if !length.is_zero() {
            self.stalls += 1;
            self.stalled += length;
            self.longest_stall = self.longest_stall.max(length);
        }
    }

    /// What it measured until `end`, for a flow that started at `start`.
    pub(super) fn report(&mut self, start: Time, warmup: Time, end: Time) -> PlaybackReport {
        self.end_stall(end, warmup);
        PlaybackReport {
            reads: self.reads,
            satisfied: self.satisfied,
            startup_delay_s: self
                .started_at
                .map(|at| at.saturating_since(start).as_secs_f64()),
            stalls: self.stalls,
            stalled_s: self.stalled.as_secs_f64(),
            longest_stall_s: self.longest_stall.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::DataSize;
    use proptest::prelude::*;

    fn player(bytes: u64, buffer: u64, file: Option<u64>) -> Playback {
        let reader = Reader::Playback {
            sizes: ReadSizes::Equal(DataSize::new(bytes)),
            interval: Span::from_millis(40),
            delay: Span::ZERO,
            buffer: DataSize::new(buffer),
        };
        Playback::new(&reader, file).unwrap()
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_player_waits_for_its_buffer_before_it_begins_and_after_a_stall() {
        let mut player = player(10, 30, None);
        // Reads are due every 40 ms. The list has the readable bytes.
        let taken = [29, 30, 20, 10, 9, 29, 30].map({
            let mut now = 0;
            let player = &mut player;
            move |readable| {
                now += 40;
                player.read(at(now), readable, Time::ZERO)
            }
        });
        assert_eq!(taken, [0, 10, 10, 10, 0, 0, 10]);
        let report = player.report(at(10), Time::ZERO, at(300));
        assert_eq!((report.reads, report.satisfied), (7, 4));
        assert_eq!(report.startup_delay_s, Some(0.07));
        assert_eq!((report.stalls, report.stalled_s), (1, 0.08));
        assert_eq!(report.longest_stall_s, 0.08);
    }

    #[test]
    fn the_rest_of_a_file_ends_a_wait_and_the_playback() {
        let mut player = player(10, 30, Some(25));
        assert_eq!(player.read(at(0), 24, Time::ZERO), 0);
        assert_eq!(player.read(at(40), 25, Time::ZERO), 10);
        assert_eq!(player.read(at(80), 15, Time::ZERO), 10);
        assert!(!player.is_over());
        assert_eq!(player.read(at(120), 5, Time::ZERO), 5);
        assert!(player.is_over());
        let report = player.report(at(0), Time::ZERO, at(500));
        assert_eq!((report.reads, report.satisfied, report.stalls), (4, 3, 0));
    }

    #[test]
    fn frames_have_their_own_sizes_and_an_end() {
        let frame = |bytes| Frame {
            at: Span::ZERO,
            bytes,
            frame_type: comity_frames::FrameType::Key,
        };
        let reader = Reader::Playback {
            sizes: ReadSizes::Frames([frame(7), frame(3)].into()),
            interval: Span::from_millis(40),
            delay: Span::ZERO,
            buffer: DataSize::ZERO,
        };
        let mut player = Playback::new(&reader, Some(100)).unwrap();
        let taken = [6, 7, 3, 90].map(|readable| player.read(at(0), readable, Time::ZERO));
        assert_eq!(taken, [0, 7, 3, 0]);
        assert!(player.is_over());
    }

    proptest! {
        /// Each failed read after the first satisfied one is an interval of a stall.
        #[test]
        fn failed_reads_are_the_time_of_stalls(
            arrivals in proptest::collection::vec(0u64..40, 1..200),
            buffer in 0u64..60,
            warmup in 0u64..1_000,
        ) {
            let (mut player, mut readable, mut failed) = (player(10, buffer, None), 0, 0);
            let (mut began, warmup) = (false, warmup / 40 * 40);
            let mut now = 0;
            for arrived in arrivals {
                readable += arrived;
                let taken = player.read(at(now), readable, at(warmup));
                readable -= taken;
                began |= taken > 0;
                failed += u64::from(began && taken == 0 && now >= warmup);
                now += 40;
            }
            let report = player.report(at(0), at(warmup), at(now.max(warmup)));
            prop_assert!((report.stalled_s - failed as f64 * 0.04).abs() < 1e-9);
            prop_assert_eq!(report.stalls > 0, failed > 0);
            prop_assert!(report.longest_stall_s <= report.stalled_s);
            prop_assert_eq!(report.startup_delay_s.is_some(), began);
        }
    }
}
