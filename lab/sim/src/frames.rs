//! Frames of a video: a synthetic encoder, and files of frames.
//!
//! Frames come in decoding order, one at a time, at equal intervals. The encoder holds a frame back
//! until it has the frames that it is predicted from.
//!
//! ```text
//! displayed  I  B  B  P  B  B  P        group = 7, b_frames = 2
//! decoded    I  P  B  B  P  B  B
//! ```
//!
//! Groups are closed: the last frame of a group is a reference, so no frame needs another group. A
//! predicted frame needs the reference before it. A bidirectional frame needs the reference decoded
//! last, which needs the one before it, and so on to the first frame of the group.

mod adaptive;

use std::fmt;

use comity_frames::FrameType;
use comity_link::Random;
use comity_units::{Rate, Span, Time};

pub(crate) use adaptive::AdaptiveEncoder;
pub use adaptive::{AdaptiveVideo, AdaptiveVideoError, Pause};

/// A P frame that other frames need.
const PREDICTED: FrameType = FrameType::Predicted { referenced: true };
/// A B frame that no other frame needs.
const BIDIRECTIONAL: FrameType = FrameType::Bidirectional { referenced: false };

/// A frame of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its source time, from the start of the flow.
    pub at: Span,
    /// Its size, at least one byte.
    pub bytes: u32,
    /// Its type: key, referenced P, unreferenced B, or a slice of other data.
    pub frame_type: FrameType,
}

/// A synthetic encoder.
///
/// ```text
/// frame k leaves at k / fps
/// mean size of a type = its ratio · (group · rate / 8 / fps) / (sum of the ratios over a group)
/// size    = mean · e^(σ·z − σ²/2)      z standard normal,  σ² = ln(1 + variation²)
/// ```
///
/// Differs from a real encoder in: 1. sizes of successive frames are independent. 2. no rate
/// control compensates for large frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Video {
    /// Frames per second, above zero.
    pub fps: f64,
    /// The mean rate.
    pub rate: Rate,
    /// Frames in a group, at least 1.
    pub group: u32,
    /// Bidirectional frames between two references.
    pub b_frames: u32,
    /// How large intra, predicted and bidirectional frames are on average, in any one unit; above
    /// zero.
    pub ratio: [f64; 3],
    /// The standard deviation of sizes of one type as a share of their mean; 0 for equal sizes.
    pub variation: f64,
}

impl Video {
    /// The type of the frame with this number in decoding order.
    pub fn frame_type(&self, number: u64) -> FrameType {
        let position = number % u64::from(self.group.max(1));
        if position == 0 {
            FrameType::Key
        } else if (position - 1).is_multiple_of(u64::from(self.b_frames) + 1) {
            PREDICTED
        } else {
            BIDIRECTIONAL
        }
    }

    /// When the frame with this number leaves, counted from the start.
    pub fn time(&self, number: u64) -> Span {
        Span::from_nanos((number as f64 * 1e9 / self.fps).round() as u64)
    }

    /// The mean size of frames of a type, in bytes.
    pub fn mean_bytes(&self, frame_type: FrameType) -> f64 {
        let [intra, predicted, bidirectional] = self.ratio;
        let others = self.group.max(1) - 1;
        let references = others.div_ceil(self.b_frames.saturating_add(1));
        let between = others - references;
        let whole = intra + predicted * f64::from(references) + bidirectional * f64::from(between);
        let of_group = f64::from(self.group.max(1)) * self.rate.as_bps() as f64 / 8.0 / self.fps;
        let ratio = match frame_type {
            FrameType::Predicted { .. } => predicted,
            FrameType::Bidirectional { .. } => bidirectional,
            _ => intra,
        };
        of_group * ratio / whole
    }

    /// Checks the fields.
    pub(crate) fn validate(&self) -> Result<(), VideoError> {
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        if !is_positive(self.fps) || self.rate == Rate::ZERO || self.group == 0 {
            return Err(VideoError::NoFrames);
        }
        if !self.ratio.into_iter().all(is_positive) {
            return Err(VideoError::Ratio);
        }
        // Written so that NaN fails.
        if !(self.variation.is_finite() && self.variation >= 0.0) {
            return Err(VideoError::Variation);
        }
        Ok(())
    }
}

/// Why a [`Video`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VideoError {
    /// Frames per second, rate or group are not above zero.
    NoFrames,
    /// A ratio of the sizes of frames is not above zero.
    Ratio,
    /// The variation of the sizes of frames is below zero.
    Variation,
}

impl fmt::Display for VideoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoFrames => "the video has no frames: fps, rate and group have to be above zero",
            Self::Ratio => "the ratios of the frames' sizes have to be above zero",
            Self::Variation => "the variation of the frames' sizes has to be zero or more",
        })
    }
}

impl std::error::Error for VideoError {}

/// Generates the frames of a [`Video`], one after the other.
#[derive(Debug)]
pub(crate) struct Encoder {
    video: Video,
    start: Time,
    number: u64,
    random: Random,
}

impl Encoder {
    pub(crate) fn new(video: Video, start: Time, random: Random) -> Self {
        Self {
            video,
            start,
            number: 0,
            random,
        }
    }

    /// When the next frame leaves.
    pub(crate) fn peek(&self) -> Time {
        self.start + self.video.time(self.number)
    }

    pub(crate) fn next(&mut self) -> (u32, FrameType) {
        let frame_type = self.video.frame_type(self.number);
        self.number += 1;
        let mut bytes = self.video.mean_bytes(frame_type);
        let variation = self.video.variation;
        if variation > 0.0 {
            let square = libm::log(1.0 + variation * variation);
            bytes *= libm::exp(libm::sqrt(square) * self.random.normal() - square / 2.0);
        }
        (
            bytes.round().clamp(1.0, f64::from(LARGEST_FRAME)) as u32,
            frame_type,
        )
    }
}

/// The largest frame, in bytes.
pub const LARGEST_FRAME: u32 = 16 << 20;

/// What is wrong with a file of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramesError {
    /// The line, from 1.
    pub line: usize,
    /// The invalid field and the expected form.
    pub fault: FramesFault,
}

/// What is wrong with a line of a file of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramesFault {
    /// The line does not have three fields.
    Fields {
        /// How many there are.
        found: usize,
    },
    /// The time is invalid.
    Time {
        /// The field.
        found: String,
    },
    /// The time is before the time of the line above.
    Order,
    /// The size is invalid.
    Bytes {
        /// The field.
        found: String,
    },
    /// The type is invalid.
    Kind {
        /// The field.
        found: String,
    },
    /// There is no frame in the file.
    Empty,
}

impl fmt::Display for FramesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.fault {
            FramesFault::Fields { found } => write!(
                f,
                "{found} {}, expected time_s,bytes,type",
                if *found == 1 { "field" } else { "fields" }
            ),
            FramesFault::Time { found } => write!(
                f,
                "the time is {found:?}, expected seconds from 0 to {LATEST}"
            ),
            FramesFault::Order => f.write_str("the time lies before that of the frame above"),
            FramesFault::Bytes { found } => write!(
                f,
                "the size is {found:?}, expected a whole number of bytes from 1 to {LARGEST_FRAME}"
            ),
            FramesFault::Kind { found } => {
                write!(f, "the type is {found:?}, expected I, P, B or -")
            }
            FramesFault::Empty => f.write_str("no frames, expected at least one"),
        }
    }
}

impl std::error::Error for FramesError {}

/// The latest time in a file, in seconds: a year.
const LATEST: u32 = 365 * 24 * 3600;

/// Reads a file of frames: `time_s,bytes,type` in each line, in decoding order.
///
/// The type is `I`, `P`, `B`, or `-` for other data. Empty lines, lines that begin with `#` and a
/// heading `time_s,...` are skipped.
///
/// # Errors
/// [`FramesError`] for the first invalid line.
pub fn parse_frames(text: &str) -> Result<Vec<Frame>, FramesError> {
    let mut frames: Vec<Frame> = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') || content.starts_with("time_s") {
            continue;
        }
        let fail = |fault| FramesError {
            line: index + 1,
            fault,
        };
        let fields: Vec<&str> = content.split(',').map(str::trim).collect();
        let &[time, bytes, kind] = &fields[..] else {
            let found = fields.len();
            return Err(fail(FramesFault::Fields { found }));
        };
        let at = time
            .parse::<f64>()
            .ok()
            .filter(|seconds| (0.0..=f64::from(LATEST)).contains(seconds))
            .map(Span::from_secs_f64)
            .ok_or_else(|| fail(FramesFault::Time { found: time.into() }))?;
        if frames.last().is_some_and(|last| at < last.at) {
            return Err(fail(FramesFault::Order));
        }
        let bytes = bytes
            .parse::<u32>()
            .ok()
            .filter(|size| (1..=LARGEST_FRAME).contains(size))
            .ok_or_else(|| {
                fail(FramesFault::Bytes {
                    found: bytes.into(),
                })
            })?;
        let frame_type = match kind {
            "I" | "i" => FrameType::Key,
            "P" | "p" => PREDICTED,
            "B" | "b" => BIDIRECTIONAL,
            "-" | "" => FrameType::Slice,
            other => {
                return Err(fail(FramesFault::Kind {
                    found: other.into(),
                }));
            }
        };
        frames.push(Frame {
            at,
            bytes,
            frame_type,
        });
    }
    if frames.is_empty() {
        return Err(FramesError {
            line: text.lines().count().max(1),
            fault: FramesFault::Empty,
        });
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::Seed;

    fn video() -> Video {
        Video {
            fps: 25.0,
            rate: Rate::from_kbps(1_000),
            group: 9,
            b_frames: 2,
            ratio: [8.0, 3.0, 1.0],
            variation: 0.0,
        }
    }

    fn letters(video: &Video, count: u64) -> String {
        let letter = |number| match video.frame_type(number) {
            FrameType::Predicted { .. } => 'P',
            FrameType::Bidirectional { .. } => 'B',
            _ => 'I',
        };
        (0..count).map(letter).collect()
    }

    #[test]
    fn groups_are_closed() {
        // Displayed: I BB P BB P B P. The last run of B frames is shorter.
        assert_eq!(letters(&video(), 11), "IPBBPBBPBIP");
        let plain = Video {
            b_frames: 0,
            group: 3,
            ..video()
        };
        assert_eq!(letters(&plain, 7), "IPPIPPI");
        let intra = Video {
            group: 1,
            ..video()
        };
        assert_eq!(letters(&intra, 3), "III");
    }

    #[test]
    fn sizes_have_their_ratio_and_make_the_rate() {
        // 9 frames in 0.36 s at 1 Mb/s are 45,000 bytes; a group is 8 + 3·3 + 5·1 = 22 parts.
        let mut encoder = Encoder::new(video(), Time::ZERO, Random::new(Seed::new(1)));
        let sizes: Vec<u32> = (0..4).map(|_| encoder.next().0).collect();
        assert_eq!(sizes, [16_364, 6_136, 2_045, 2_045]);
        assert_eq!(encoder.peek(), Time::from_millis(160));
        let total: u64 = (4..9).map(|_| u64::from(encoder.next().0)).sum();
        assert!((44_990..=45_010).contains(&(total + 26_590)), "{total}");
    }

    #[test]
    fn sizes_vary_as_asked_and_keep_their_mean() {
        let varied = Video {
            group: 1,
            variation: 0.5,
            ..video()
        };
        let mut encoder = Encoder::new(varied, Time::ZERO, Random::new(Seed::new(7)));
        let sizes: Vec<f64> = (0..40_000).map(|_| f64::from(encoder.next().0)).collect();
        let mean = sizes.iter().sum::<f64>() / 40_000.0;
        let variance = sizes
            .iter()
            .map(|size| (size - mean) * (size - mean))
            .sum::<f64>()
            / 40_000.0;
        // 5,000 bytes; four standard errors of the mean are 1 %.
        assert!((4_950.0..5_050.0).contains(&mean), "{mean}");
        let variation = variance.sqrt() / mean;
        assert!((0.48..0.52).contains(&variation), "{variation}");
    }

    #[test]
    fn a_file_gives_its_frames() {
        let text = "time_s,bytes,type\n# a note\n0,9000,I\n\n0.04, 1000 ,P\n0.04,20,-\n";
        let frame = |millis, bytes, frame_type| Frame {
            at: Span::from_millis(millis),
            bytes,
            frame_type,
        };
        assert_eq!(
            parse_frames(text).unwrap(),
            [
                frame(0, 9_000, FrameType::Key),
                frame(40, 1_000, PREDICTED),
                frame(40, 20, FrameType::Slice),
            ]
        );
    }

    #[test]
    fn a_file_that_is_none_says_where_and_why() {
        for (text, expected) in [
            ("0,1,I\n1,2", "line 2: 2 fields, expected time_s,bytes,type"),
            ("-1,1,I", "line 1: the time is \"-1\""),
            ("2,1,I\n1,1,P", "line 2: the time lies before"),
            ("0,0,I", "line 1: the size is \"0\""),
            ("0,1,X", "line 1: the type is \"X\", expected I, P, B or -"),
            ("# nothing\n", "line 1: no frames"),
        ] {
            let error = parse_frames(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
