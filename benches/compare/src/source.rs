//! The frames of a run: both ends derive the same list from the same parameters.

use comity_units::{Rate, Seed};

use crate::chunk::{self, Frame, Kind};

/// The standard deviation of the logarithm of frame sizes, for key frames and for other frames.
const KEY_SPREAD: f64 = 0.08;
const SPREAD: f64 = 0.25;
/// The size of a B frame relative to a P frame.
const B_OF_P: f64 = 0.5;
const B_BETWEEN: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Pattern {
    /// Groups of one second: a key frame, then P frames with two B frames between them.
    Key,
    /// All frames alike.
    Equal,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    pub rate: Rate,
    pub fps: u32,
    pub seconds: u32,
    pub pattern: Pattern,
    pub key_ratio: f64,
    pub seed: u64,
}

impl Source {
    /// The time from the first frame to this one, in nanoseconds.
    pub fn due_ns(&self, number: u32) -> u64 {
        u64::from(number) * 1_000_000_000 / u64::from(self.fps)
    }

    pub fn duration_ns(&self) -> u64 {
        u64::from(self.seconds) * 1_000_000_000
    }

    /// The frames of a run; fails if they are too small or too large for their chunks.
    pub fn frames(&self) -> Result<Vec<Frame>, String> {
        let count = self
            .seconds
            .checked_mul(self.fps)
            .filter(|count| *count > 0)
            .ok_or("--seconds times --fps must be from 1 to 4294967295; give smaller values")?;
        let group_bytes = self.rate.as_bps() as f64 / 8.0;
        let mut frames = Vec::with_capacity(count as usize);
        for group in 0..self.seconds {
            let sizes = match self.pattern {
                Pattern::Key => self.key_group(group, group_bytes),
                Pattern::Equal => {
                    vec![(Kind::Equal, group_bytes / f64::from(self.fps)); self.fps as usize]
                }
            };
            self.add_group(&mut frames, &sizes)?;
        }
        Ok(frames)
    }

    /// Kinds and sizes of one group, whose sum is exactly one second of the rate.
    fn key_group(&self, group: u32, group_bytes: f64) -> Vec<(Kind, f64)> {
        let seed = Seed::new(self.seed).derive("sizes");
        let kinds: Vec<_> = (0..self.fps).map(kind_at).collect();
        let weights = kinds.iter().enumerate().map(|(at, kind)| {
            let draw = seed.index(u64::from(group) * u64::from(self.fps) + at as u64);
            match kind {
                Kind::I => 0.0,
                Kind::B => B_OF_P * lognormal(draw, SPREAD),
                Kind::P | Kind::Equal => lognormal(draw, SPREAD),
            }
        });
        let weights: Vec<f64> = weights.collect();
        let total: f64 = weights.iter().sum();
        let mean = group_bytes / f64::from(self.fps);
        let key = match self.fps {
            1 => group_bytes,
            _ => {
                let draw = seed.derive("key").index(u64::from(group));
                (self.key_ratio * mean * lognormal(draw, KEY_SPREAD)).min(0.9 * group_bytes)
            }
        };
        let scale = (group_bytes - key) / total.max(f64::MIN_POSITIVE);
        let sizes = kinds.iter().zip(&weights);
        sizes
            .map(|(kind, weight)| match kind {
                Kind::I => (*kind, key),
                _ => (*kind, weight * scale),
            })
            .collect()
    }

    fn add_group(&self, frames: &mut Vec<Frame>, sizes: &[(Kind, f64)]) -> Result<(), String> {
        // The rounding error carries over to the next frame, so the rate is exact.
        let mut carried = 0.0;
        let (mut reference, mut next_p) = (None, 190);
        for (kind, size) in sizes {
            let wanted = size + carried;
            let whole = whole_size(wanted, *kind)?;
            carried = wanted - f64::from(whole);
            let number = frames.len() as u32;
            let needs = match kind {
                Kind::I | Kind::Equal => None,
                Kind::P | Kind::B => reference,
            };
            if matches!(kind, Kind::I | Kind::P) {
                reference = Some(number);
            }
            let importance = match kind {
                Kind::I => 200,
                Kind::P => {
                    next_p = (next_p - 1).max(100);
                    next_p
                }
                Kind::B => 20,
                Kind::Equal => 100,
            };
            frames.push(Frame {
                number,
                kind: *kind,
                size: whole,
                needs,
                importance,
            });
        }
        Ok(())
    }
}

/// In the order of coding: I, then P B B, P B B, ..
fn kind_at(position: u32) -> Kind {
    match position {
        0 => Kind::I,
        position if (position - 1).is_multiple_of(B_BETWEEN + 1) => Kind::P,
        _ => Kind::B,
    }
}

/// The nearest size whose last chunk has room for its header.
fn whole_size(size: f64, kind: Kind) -> Result<u32, String> {
    let most = f64::from(u16::MAX) * chunk::SIZE as f64;
    let rounded = libm::round(size);
    if !(rounded >= chunk::HEADER as f64 && rounded <= most) {
        return Err(format!(
            "a frame of kind {kind} would have {rounded} bytes, expected {} to {most}; change --rate, --fps or --key-ratio",
            chunk::HEADER
        ));
    }
    let rounded = rounded as u32;
    match rounded % chunk::SIZE as u32 {
        0 => Ok(rounded),
        rest if rest < chunk::HEADER as u32 => Ok(rounded - rest + chunk::HEADER as u32),
        _ => Ok(rounded),
    }
}

/// A lognormal factor with mean 1.
fn lognormal(seed: Seed, spread: f64) -> f64 {
    // Box and Muller; the first number is never 0.
    let uniform = |index| ((seed.index(index).get() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let radius = libm::sqrt(-2.0 * libm::log(uniform(0)));
    let normal = radius * libm::cos(2.0 * std::f64::consts::PI * uniform(1));
    libm::exp(spread * normal - spread * spread / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(fps: u32, key_ratio: f64, seed: u64) -> Source {
        Source {
            rate: "3Mbps".parse().expect("a rate"),
            fps,
            seconds: 60,
            pattern: Pattern::Key,
            key_ratio,
            seed,
        }
    }

    #[test]
    fn sizes_sum_to_the_rate_and_keys_have_their_ratio() {
        for (fps, ratio) in [(25, 5.0), (25, 9.0), (60, 7.0), (30, 7.0)] {
            let frames = source(fps, ratio, 3).frames().expect("frames");
            assert_eq!(frames.len(), 60 * fps as usize);
            let total: f64 = frames.iter().map(|frame| f64::from(frame.size)).sum();
            let expected = 3e6 / 8.0 * 60.0;
            assert!(
                (total / expected - 1.0).abs() < 0.001,
                "{total} of {expected}"
            );
            let mean = expected / frames.len() as f64;
            let keys: Vec<_> = frames
                .iter()
                .filter(|frame| frame.kind == Kind::I)
                .collect();
            assert_eq!(keys.len(), 60);
            let mean_key = keys.iter().map(|frame| f64::from(frame.size)).sum::<f64>() / 60.0;
            assert!((mean_key / mean / ratio - 1.0).abs() < 0.04, "{mean_key}");
            assert!(keys.iter().any(|frame| frame.size != keys[0].size));
        }
    }

    #[test]
    fn frames_depend_as_in_a_stream_with_two_b_frames() {
        let frames = source(7, 3.0, 1).frames().expect("frames");
        let first: Vec<_> = frames[..8]
            .iter()
            .map(|frame| (frame.kind, frame.needs, frame.importance))
            .collect();
        assert_eq!(
            first,
            [
                (Kind::I, None, 200),
                (Kind::P, Some(0), 189),
                (Kind::B, Some(1), 20),
                (Kind::B, Some(1), 20),
                (Kind::P, Some(1), 188),
                (Kind::B, Some(4), 20),
                (Kind::B, Some(4), 20),
                (Kind::I, None, 200),
            ]
        );
    }

    #[test]
    fn equal_frames_are_alike_and_sum_to_the_rate() {
        let source = Source {
            pattern: Pattern::Equal,
            ..source(25, 7.0, 1)
        };
        let frames = source.frames().expect("frames");
        assert!(
            frames
                .iter()
                .all(|frame| frame.size == 15_000 && frame.needs.is_none())
        );
        assert_eq!((frames.len(), frames[0].chunks()), (1_500, 12));
        assert_eq!(source.due_ns(25), 1_000_000_000);
    }

    #[test]
    fn the_seed_decides_the_sizes() {
        let sizes = |seed| -> Vec<u32> {
            let frames = source(25, 7.0, seed).frames().expect("frames");
            frames.iter().map(|frame| frame.size).collect()
        };
        assert_eq!(sizes(1), sizes(1));
        assert_ne!(sizes(1), sizes(2));
    }

    #[test]
    fn a_last_chunk_has_room_for_its_header() {
        assert_eq!(whole_size(1_316.0, Kind::P), Ok(1_316));
        assert_eq!(whole_size(1_317.4, Kind::P), Ok(1_316 + 32));
        assert_eq!(whole_size(1_400.0, Kind::P), Ok(1_400));
        let error = whole_size(10.0, Kind::P).expect_err("too small");
        assert!(error.contains("change --rate"), "{error}");
    }
}
