//! Random sizes: a Pareto distribution, or the distribution of a file.

use std::sync::Arc;

use comity_link::Random;
use comity_units::DataSize;

use super::{LARGEST, TransfersError, last_line, lines};

/// A distribution of sizes of transfers.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes(Distribution);

#[derive(Clone, Debug, PartialEq)]
enum Distribution {
    /// A Pareto distribution between two sizes.
    Pareto {
        /// The minimum size L, in bytes.
        min: f64,
        /// The shape α.
        shape: f64,
        /// The probability that a size of the unlimited distribution is above the limit.
        above: f64,
    },
    /// The points of a distribution function.
    Empirical(Arc<[Point]>),
}

/// A point of a distribution function.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    bytes: f64,
    /// The share of transfers that are no larger.
    share: f64,
}

impl Sizes {
    /// The Pareto distribution of this mean and shape, limited to `max`: few transfers carry most
    /// of the bytes.
    ///
    /// ```text
    /// size = L · (1 − u · (1 − (L/H)^α))^(−1/α)                       u uniform in [0, 1)
    /// mean = α / (α − 1) · L · (1 − (L/H)^(α−1)) / (1 − (L/H)^α)
    /// ```
    ///
    /// H is `max`, at most 1 PiB. L is the root of the second equation, so the limit does not lower
    /// the mean. A size takes one word of the random stream. Sizes are rounded to whole bytes, and
    /// are at least one.
    ///
    /// Returns `None` unless α > 1 and 0 < mean < max.
    ///
    /// # Source
    /// The bounded Pareto distribution B(L, H, α) of Crovella, Harchol-Balter and Murta, Task
    /// Assignment in a Distributed System, SIGMETRICS 1998, with the density
    /// α L^α x^(−α−1) / (1 − (L/H)^α) between L and H.
    #[must_use]
    pub fn pareto(mean: DataSize, shape: f64, max: DataSize) -> Option<Self> {
        let max = max.min(DataSize::new(LARGEST));
        let is_possible = shape > 1.0 && shape.is_finite() && DataSize::ZERO < mean && mean < max;
        if !is_possible {
            return None;
        }
        let (mean, max) = (mean.get() as f64, max.get() as f64);
        let tail = |min: f64, power: f64| 1.0 - libm::pow(min / max, power);
        let mean_of =
            |min: f64| shape / (shape - 1.0) * min * tail(min, shape - 1.0) / tail(min, shape);
        // The mean exceeds the minimum size and grows with it. The limit lowers the mean.
        let (mut low, mut high) = (mean * (shape - 1.0) / shape, mean);
        // Halves the interval until it is below the precision of the numbers.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if mean_of(middle) < mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(Self(Distribution::Pareto {
            min: low,
            shape,
            above: libm::pow(low / max, shape),
        }))
    }

    /// Reads a distribution function: `bytes,share` in each line, a size and the share of transfers
    /// that are no larger. Both rise, the share to 1.
    ///
    /// ```text
    /// size = B_i + (u − S_i) / (S_{i+1} − S_i) · (B_{i+1} − B_i)       S_i ≤ u < S_{i+1}
    ///        B_1                                                     u < S_1
    /// ```
    ///
    /// u is uniform in [0, 1), from one word of the random stream. Empty lines, lines that begin
    /// with `#` and a heading `bytes,...` are skipped.
    ///
    /// # Errors
    /// [`TransfersError`] for the first invalid line.
    pub fn parse(text: &str) -> Result<Self, TransfersError> {
        let mut points: Vec<Point> = Vec::new();
        for (line, content) in lines(text) {
            if content.starts_with("bytes") {
                continue;
            }
            let fail = |found: String, expected| TransfersError {
                line,
                found,
                expected,
            };
            let Some((bytes, share)) = content.split_once(',') else {
                return Err(fail(format!("{content:?}"), "bytes,share"));
            };
            let (bytes, share) = (bytes.trim(), share.trim());
            let bytes = bytes
                .parse::<u64>()
                .ok()
                .filter(|bytes| (1..=LARGEST).contains(bytes))
                .ok_or_else(|| {
                    let found = format!("the size is {bytes:?}");
                    fail(found, "a whole number of bytes from 1 to 2^50")
                })?;
            let share = share
                .parse::<f64>()
                .ok()
                .filter(|share| (0.0..=1.0).contains(share))
                .ok_or_else(|| {
                    let found = format!("the share is {share:?}");
                    fail(found, "a number from 0 to 1")
                })?;
            let bytes = bytes as f64;
            if let Some(above) = points.last() {
                if bytes <= above.bytes {
                    let found = format!("the size {bytes} follows {}", above.bytes);
                    return Err(fail(found, "a larger size than in the line above"));
                }
                if share < above.share {
                    let found = format!("the share falls from {} to {share}", above.share);
                    return Err(fail(found, "no less than in the line above"));
                }
            }
            points.push(Point { bytes, share });
        }
        let found = match points.last() {
            Some(last) if last.share >= 1.0 => {
                return Ok(Self(Distribution::Empirical(points.into())));
            }
            Some(last) => format!("the shares end at {}", last.share),
            None => "the file has no sizes".into(),
        };
        Err(TransfersError {
            line: last_line(text),
            found,
            expected: "a last line with the share 1",
        })
    }

    /// A random size.
    pub fn draw(&self, random: &mut Random) -> DataSize {
        self.quantile(random.uniform())
    }

    /// The minimum size, at least one byte.
    pub fn min(&self) -> DataSize {
        self.quantile(0.0)
    }

    /// The size at which the distribution function reaches `share`, below 1.
    fn quantile(&self, share: f64) -> DataSize {
        let size = match &self.0 {
            Distribution::Pareto { min, shape, above } => {
                min * libm::pow(1.0 - share + share * above, -1.0 / shape)
            }
            Distribution::Empirical(points) => {
                let at = points.partition_point(|point| point.share <= share);
                let before = at.checked_sub(1).and_then(|before| points.get(before));
                match (before, points.get(at)) {
                    (Some(before), Some(next)) => {
                        let part = (share - before.share) / (next.share - before.share);
                        before.bytes + part * (next.bytes - before.bytes)
                    }
                    (None, Some(only)) | (Some(only), None) => only.bytes,
                    (None, None) => 1.0,
                }
            }
        };
        DataSize::new((size.round() as u64).clamp(1, LARGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::Seed;

    fn draws(sizes: &Sizes, count: u32) -> Vec<f64> {
        let mut random = Random::new(Seed::new(3));
        (0..count)
            .map(|_| sizes.draw(&mut random).get() as f64)
            .collect()
    }

    fn pareto(mean: u64, shape: f64, max: u64) -> Option<Sizes> {
        Sizes::pareto(DataSize::new(mean), shape, DataSize::new(max))
    }

    #[test]
    fn pareto_sizes_have_their_mean_and_tail() {
        // A shape above 2, so that the mean has a standard error also without a limit.
        let sizes = pareto(30_000, 2.5, u64::MAX).unwrap();
        let n = 100_000.0;
        let of = draws(&sizes, 100_000);
        let mean = of.iter().sum::<f64>() / n;
        // L = 18,000. Variance: L² · α / ((α − 1)² · (α − 2)).
        let stddev = 18_000.0 * f64::sqrt(2.5 / (1.5 * 1.5 * 0.5));
        assert!(
            (mean - 30_000.0).abs() < 5.0 * stddev / f64::sqrt(n),
            "{mean}"
        );
        assert!(of.iter().all(|size| *size >= 18_000.0));
        // P(size > 4 · L) = 4^(−2.5) = 1/32.
        let share = of.iter().filter(|size| **size > 72_000.0).count() as f64 / n;
        let error = f64::sqrt(1.0 / 32.0 * 31.0 / 32.0 / n);
        assert!((share - 1.0 / 32.0).abs() < 5.0 * error, "{share}");
    }

    #[test]
    fn a_limit_keeps_the_mean() {
        for (shape, max) in [
            (1.2, 10_000_000),
            (1.2, 100_000),
            (2.0, 40_000),
            (1.001, 1 << 40),
        ] {
            let sizes = pareto(30_000, shape, max).unwrap();
            // The integral of the quantile over [0, 1], by the midpoint rule in (1 − u)^(1/k), with
            // most of the points in the tail.
            let (k, steps) = (40.0, 200_000);
            let mean: f64 = (0..steps)
                .map(|step| {
                    let rest = 1.0 - (f64::from(step) + 0.5) / f64::from(steps);
                    let size = sizes.quantile(1.0 - libm::pow(rest, k)).get() as f64;
                    size * k * libm::pow(rest, k - 1.0) / f64::from(steps)
                })
                .sum();
            assert!((mean / 30_000.0 - 1.0).abs() < 0.002, "{shape}: {mean}");
            assert!(sizes.quantile(1.0 - f64::EPSILON) <= DataSize::new(max));
        }
    }

    #[test]
    fn an_impossible_pareto_distribution_is_none() {
        for (mean, shape, max) in [
            (0, 2.0, 9),
            (9, 1.0, 99),
            (9, f64::NAN, 99),
            (9, f64::INFINITY, 99),
            (9, 2.0, 9),
            (9, 2.0, 8),
        ] {
            assert_eq!(pareto(mean, shape, max), None, "{mean} {shape} {max}");
        }
        assert!(pareto(9, 2.0, 10).is_some());
    }

    #[test]
    fn sizes_of_a_file_have_its_distribution() {
        let sizes = Sizes::parse("bytes,share\n# mice\n1000,0.5\n2000,0.5\n\n10000,1\n").unwrap();
        for (share, bytes) in [(0.0, 1_000), (0.499, 1_000), (0.5, 2_000), (0.75, 6_000)] {
            assert_eq!(sizes.quantile(share), DataSize::new(bytes), "{share}");
        }
        let of = draws(&sizes, 40_000);
        let small = of.iter().filter(|size| **size <= 1_000.0).count() as f64 / 40_000.0;
        assert!((small - 0.5).abs() < 5.0 * 0.0025, "{small}");
        let large = of.iter().filter(|size| **size > 6_000.0).count() as f64 / 40_000.0;
        assert!((large - 0.25).abs() < 5.0 * 0.0022, "{large}");
        assert!(of.iter().all(|size| *size <= 10_000.0));
    }

    #[test]
    fn an_invalid_file_says_where_and_why() {
        for (text, expected) in [
            ("1,0\n2", "line 2: \"2\"; expected bytes,share"),
            (
                "-1,1",
                "line 1: the size is \"-1\"; expected a whole number",
            ),
            ("0,1", "line 1: the size is \"0\""),
            (
                "1,1.5",
                "line 1: the share is \"1.5\"; expected a number from 0 to 1",
            ),
            ("1,NaN", "line 1: the share is \"NaN\""),
            ("1,0,1", "line 1: the share is \"0,1\""),
            (
                "2,0\n2,1",
                "line 2: the size 2 follows 2; expected a larger size",
            ),
            (
                "1,0.5\n2,0.4\n3,1",
                "line 2: the share falls from 0.5 to 0.4; expected no less than in the line above",
            ),
            (
                "1,0.5\n\n2,0.9\n",
                "line 3: the shares end at 0.9; expected a last line with the share 1",
            ),
            ("# nothing\n", "line 1: the file has no sizes"),
            ("", "line 1: the file has no sizes"),
        ] {
            let error = Sizes::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
