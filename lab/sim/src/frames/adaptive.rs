//! A synthetic encoder that follows a target bitrate.

use std::fmt;

use comity_frames::FrameType;
use comity_link::Random;
use comity_units::{Rate, Span, Time};

use super::{LARGEST_FRAME, PREDICTED};

/// An encoder that follows the target bitrate of its transport.
///
/// ```text
/// goal     = min( max( target, R_min ), R_max )         before the first target: the initial rate
/// rate     = goal, at a frame no earlier than τ_v after the last change of the rate
/// interval = ( 1 + x ) / fps                            x: Laplace distribution of scale SCALE_t
/// size     = rate / 8 / fps · weight · ( 1 + y )        y: Laplace distribution of scale SCALE_B
/// weight   = κ                         for a key frame
///            (n − κ) / (n − 1)         for the n − 1 frames after it, n = min( K_B, group )
///            1                         for other frames
/// ```
///
/// x and y are limited to [−1, 1], so that their means stay zero. Weights of a group average 1. A
/// key frame begins each group. A new group begins early if the rate changes abruptly, and at the
/// first frame after a pause. All other frames are predicted from the frame before.
///
/// # Source
/// RFC 8593, section 5: reaction time τ_v (5.1), burst of K_B frames (5.2), random intervals and
/// sizes (5.3), range of rates (5.4). A pause is a test case of RFC 8867.
///
/// Differs from the RFC in: 1. the RFC gives the size of a key frame in bytes (B_0, 13.5 kB); here
/// it is a multiple κ of the mean size, so that the burst has the target rate at every rate. 13.5
/// kB are 3.24 mean sizes at 1 Mb/s and 30 frames a second. 2. after τ_v the encoder uses the
/// newest target, also if that arrived before, because the transport announces a target only
/// once. 3. key frames are also periodic, and receivers cannot request one.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptiveVideo {
    /// The minimum rate R_min, above zero.
    pub min_rate: Rate,
    /// The maximum rate R_max.
    pub max_rate: Rate,
    /// The rate before the first target, between the two.
    pub initial_rate: Rate,
    /// The minimum time between two changes of the rate, τ_v.
    pub reaction: Span,
    /// Frames per second, above zero.
    pub fps: f64,
    /// Frames from one key frame to the next, at least 1.
    pub group: u32,
    /// The mean size κ of key frames in mean sizes of all frames, from 1 to `burst` and `group`.
    pub key_size: f64,
    /// The number K_B of frames, the key frame included, whose sizes average the mean size.
    pub burst: u32,
    /// A change of the rate by at least this share is abrupt.
    pub abrupt: f64,
    /// The scale SCALE_B of the variation of sizes, as a share of their mean.
    pub size_scale: f64,
    /// The scale SCALE_t of the variation of intervals, as a share of their mean.
    pub interval_scale: f64,
    /// When the encoder produces no frames.
    pub pauses: Vec<Pause>,
}

/// A time without frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it begins.
    pub at: Time,
    /// How long it lasts.
    pub lasts: Span,
}

impl Pause {
    /// The end of the pause if `time` lies in it.
    fn end(self, time: Time) -> Option<Time> {
        let end = self.at + self.lasts;
        (self.at..end).contains(&time).then_some(end)
    }
}

impl AdaptiveVideo {
    fn of_burst(&self) -> u32 {
        self.burst.min(self.group)
    }

    /// The mean size of the frame at this position in its group, in mean sizes of all frames.
    fn weight(&self, position: u32) -> f64 {
        let burst = self.of_burst();
        match position {
            0 => self.key_size,
            position if position < burst => {
                (f64::from(burst) - self.key_size) / f64::from(burst.saturating_sub(1))
            }
            _ => 1.0,
        }
    }

    /// Checks the fields.
    pub(crate) fn validate(&self) -> Result<(), AdaptiveVideoError> {
        let is_share = |value: f64| value.is_finite() && value >= 0.0;
        if !(self.fps.is_finite() && self.fps > 0.0) || self.group == 0 {
            return Err(AdaptiveVideoError::NoFrames);
        }
        if self.min_rate == Rate::ZERO || self.min_rate > self.max_rate {
            return Err(AdaptiveVideoError::Rates {
                min: self.min_rate,
                max: self.max_rate,
            });
        }
        if !(self.min_rate..=self.max_rate).contains(&self.initial_rate) {
            return Err(AdaptiveVideoError::InitialRate {
                min: self.min_rate,
                max: self.max_rate,
            });
        }
        if !(1.0..=f64::from(self.of_burst())).contains(&self.key_size) {
            return Err(AdaptiveVideoError::KeySize {
                max: self.of_burst(),
            });
        }
        if ![self.abrupt, self.size_scale, self.interval_scale]
            .into_iter()
            .all(is_share)
        {
            return Err(AdaptiveVideoError::Share);
        }
        Ok(())
    }
}

/// Why an [`AdaptiveVideo`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdaptiveVideoError {
    /// Frames per second or the group are not above zero.
    NoFrames,
    /// The minimum rate is zero or above the maximum.
    Rates {
        /// The minimum.
        min: Rate,
        /// The maximum.
        max: Rate,
    },
    /// The initial rate is out of range.
    InitialRate {
        /// The minimum.
        min: Rate,
        /// The maximum.
        max: Rate,
    },
    /// The size of key frames is out of range.
    KeySize {
        /// The frames of a burst.
        max: u32,
    },
    /// A share is below zero.
    Share,
}

impl fmt::Display for AdaptiveVideoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFrames => {
                f.write_str("the encoder has no frames: fps and group have to be above zero")
            }
            Self::Rates { min, max } => write!(
                f,
                "the minimum rate is {min} and the maximum {max}; expected a minimum above zero, and \
                 no larger than the maximum"
            ),
            Self::InitialRate { min, max } => {
                write!(f, "the initial rate has to lie between {min} and {max}")
            }
            Self::KeySize { max } => write!(
                f,
                "the frames after a key frame make up for its size, so it has 1 to {max} mean sizes; \
                 expected a smaller key frame, or a longer burst and group"
            ),
            Self::Share => f.write_str("the shares of an encoder have to be zero or more"),
        }
    }
}

impl std::error::Error for AdaptiveVideoError {}

/// Generates the frames of an [`AdaptiveVideo`], one after the other.
#[derive(Debug)]
pub(crate) struct AdaptiveEncoder {
    video: AdaptiveVideo,
    rate: Rate,
    /// The earliest time of the next change of the rate.
    may_change_at: Time,
    next_at: Time,
    /// The position of the next frame in its group.
    position: u32,
    random: Random,
}

impl AdaptiveEncoder {
    pub(crate) fn new(video: AdaptiveVideo, start: Time, random: Random) -> Self {
        let mut encoder = Self {
            rate: video.initial_rate,
            may_change_at: start,
            next_at: start,
            position: 0,
            video,
            random,
        };
        encoder.skip_pauses();
        encoder
    }

    /// When the next frame leaves.
    pub(crate) const fn peek(&self) -> Time {
        self.next_at
    }

    /// The next frame. `target` is the current target bitrate.
    pub(crate) fn next(&mut self, target: Option<Rate>) -> (u32, FrameType) {
        self.adapt(target);
        let frame_type = if self.position == 0 {
            FrameType::Key
        } else {
            PREDICTED
        };
        let mean = self.rate.as_bps() as f64 / 8.0 / self.video.fps;
        let size = mean * self.video.weight(self.position) * self.around_one(self.video.size_scale);
        let interval = self.around_one(self.video.interval_scale) / self.video.fps;
        self.position = (self.position + 1) % self.video.group.max(1);
        self.next_at += Span::from_secs_f64(interval);
        self.skip_pauses();
        (
            size.round().clamp(1.0, f64::from(LARGEST_FRAME)) as u32,
            frame_type,
        )
    }

    fn adapt(&mut self, target: Option<Rate>) {
        let video = &self.video;
        let goal = target
            .unwrap_or(video.initial_rate)
            .clamp(video.min_rate, video.max_rate);
        if goal == self.rate || self.next_at < self.may_change_at {
            return;
        }
        let (old, new) = (self.rate.as_bps() as f64, goal.as_bps() as f64);
        if (new - old).abs() >= video.abrupt * old {
            self.position = 0;
        }
        self.rate = goal;
        self.may_change_at = self.next_at + video.reaction;
    }

    /// Moves the next frame to the end of the pauses that it lies in.
    fn skip_pauses(&mut self) {
        let end_at = |time| self.video.pauses.iter().find_map(|pause| pause.end(time));
        let mut next = self.next_at;
        while let Some(end) = end_at(next) {
            next = end;
        }
        if next > self.next_at {
            self.next_at = next;
            self.position = 0;
        }
    }

    /// A factor of mean 1 that varies by a Laplace distribution.
    fn around_one(&mut self, scale: f64) -> f64 {
        1.0 + self.random.laplace(scale).clamp(-1.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::Seed;

    const KEY: FrameType = FrameType::Key;

    /// 25 frames a second, 2,000 bytes each at first, without variation.
    fn video() -> AdaptiveVideo {
        AdaptiveVideo {
            min_rate: Rate::from_kbps(200),
            max_rate: Rate::from_kbps(1_000),
            initial_rate: Rate::from_kbps(400),
            reaction: Span::from_millis(100),
            fps: 25.0,
            group: 1_000,
            key_size: 1.0,
            burst: 1,
            abrupt: 10.0,
            size_scale: 0.0,
            interval_scale: 0.0,
            pauses: Vec::new(),
        }
    }

    fn encoder(video: AdaptiveVideo) -> AdaptiveEncoder {
        video.validate().unwrap();
        AdaptiveEncoder::new(video, Time::ZERO, Random::new(Seed::new(1)))
    }

    /// The times in ms, the sizes, and which frames are key frames, for these targets in kb/s.
    fn frames(video: AdaptiveVideo, targets: &[Option<u64>]) -> (Vec<u64>, Vec<u32>, Vec<usize>) {
        let mut encoder = encoder(video);
        let (mut times, mut sizes, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for (number, target) in targets.iter().enumerate() {
            times.push(encoder.peek().as_nanos() / 1_000_000);
            let (bytes, frame_type) = encoder.next(target.map(Rate::from_kbps));
            sizes.push(bytes);
            if frame_type == KEY {
                keys.push(number);
            }
        }
        (times, sizes, keys)
    }

    #[test]
    fn the_rate_follows_the_target_after_the_reaction_time_and_within_its_range() {
        let targets = [
            None,
            Some(500), // at 40 ms; the next change no earlier than 140 ms
            Some(600),
            Some(700), // 120 ms
            Some(800), // 160 ms; the next change no earlier than 260 ms
            Some(100),
            Some(100), // 240 ms
            Some(100), // 280 ms; below the minimum
            Some(9_000),
            Some(9_000),
            Some(9_000), // 400 ms; above the maximum
        ];
        let (times, sizes, keys) = frames(video(), &targets);
        assert_eq!(times, [0, 40, 80, 120, 160, 200, 240, 280, 320, 360, 400]);
        // kb/s are 5 bytes of a frame.
        assert_eq!(
            sizes,
            [
                2_000, 2_500, 2_500, 2_500, 4_000, 4_000, 4_000, 1_000, 1_000, 1_000, 5_000
            ]
        );
        assert_eq!(keys, [0]);
    }

    #[test]
    fn frames_after_a_key_frame_make_up_for_its_size() {
        let bursts = AdaptiveVideo {
            group: 6,
            key_size: 2.5,
            burst: 4,
            ..video()
        };
        let (_, sizes, keys) = frames(bursts, &[None; 8]);
        assert_eq!(
            sizes,
            [5_000, 1_000, 1_000, 1_000, 2_000, 2_000, 5_000, 1_000]
        );
        assert_eq!(sizes[..4].iter().sum::<u32>(), 4 * 2_000);
        assert_eq!(keys, [0, 6]);
    }

    #[test]
    fn only_an_abrupt_change_begins_a_group() {
        let abrupt = AdaptiveVideo {
            abrupt: 0.5,
            reaction: Span::ZERO,
            ..video()
        };
        // Up by 0.475 and 0.508, down by 0.494 and 0.511.
        let targets = [400, 590, 890, 450, 220].map(Some);
        assert_eq!(frames(abrupt, &targets).2, [0, 2, 4]);
    }

    #[test]
    fn a_pause_has_no_frames_and_ends_with_a_key_frame() {
        let pause = |at, lasts| Pause {
            at: Time::from_millis(at),
            lasts: Span::from_millis(lasts),
        };
        let paused = AdaptiveVideo {
            // The second pause begins in the first one. The last one meets no frame.
            pauses: vec![pause(80, 100), pause(170, 50), pause(221, 30)],
            ..video()
        };
        let (times, _, keys) = frames(paused, &[None; 5]);
        assert_eq!(times, [0, 40, 220, 260, 300]);
        assert_eq!(keys, [0, 2]);
    }

    #[test]
    fn sizes_and_intervals_vary_by_their_scales_and_keep_their_means() {
        const COUNT: u32 = 40_000;
        let mut encoder = encoder(AdaptiveVideo {
            size_scale: 0.15,
            interval_scale: 0.1,
            ..video()
        });
        let (mut sizes, mut intervals) = (Vec::new(), Vec::new());
        for _ in 0..COUNT {
            let at = encoder.peek();
            sizes.push(f64::from(encoder.next(None).0) / 2_000.0);
            intervals.push(encoder.peek().saturating_since(at).as_secs_f64() * 25.0);
        }
        for (values, scale) in [(sizes, 0.15), (intervals, 0.1)] {
            let n = f64::from(COUNT);
            let mean = values.iter().sum::<f64>() / n;
            let squares = values.iter().map(|value| (value - mean) * (value - mean));
            let stddev = (squares.sum::<f64>() / n).sqrt();
            // A Laplace distribution has the standard deviation √2 · scale. Five standard errors:
            // of the mean σ/√n, of σ (kurtosis 6) σ · √(5/n)/2. The limits reduce σ by less than
            // 1 %.
            let expected = f64::sqrt(2.0) * scale;
            assert!((mean - 1.0).abs() < 5.0 * expected / n.sqrt(), "{mean}");
            let error = (stddev / expected - 1.0).abs();
            assert!(error < 2.5 * (5.0 / n).sqrt() + 0.01, "{stddev}");
        }
    }

    #[test]
    fn a_rate_out_of_range_and_a_burst_without_room_are_refused() {
        let faults = [
            AdaptiveVideo {
                fps: f64::NAN,
                ..video()
            },
            AdaptiveVideo {
                group: 0,
                ..video()
            },
            AdaptiveVideo {
                min_rate: Rate::from_kbps(1_001),
                ..video()
            },
            AdaptiveVideo {
                min_rate: Rate::ZERO,
                ..video()
            },
            AdaptiveVideo {
                initial_rate: Rate::from_kbps(199),
                ..video()
            },
            AdaptiveVideo {
                initial_rate: Rate::from_kbps(1_001),
                ..video()
            },
            AdaptiveVideo {
                key_size: 1.01,
                ..video()
            },
            AdaptiveVideo {
                key_size: 0.99,
                ..video()
            },
            AdaptiveVideo {
                size_scale: -0.1,
                ..video()
            },
            AdaptiveVideo {
                abrupt: f64::INFINITY,
                ..video()
            },
        ];
        for fault in faults {
            assert!(fault.validate().is_err(), "{fault:?}");
        }
        let only = AdaptiveVideo {
            min_rate: Rate::from_kbps(400),
            max_rate: Rate::from_kbps(400),
            ..video()
        };
        assert_eq!(only.validate(), Ok(()));
    }
}
