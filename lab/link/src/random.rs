//! The random numbers of one stream.

use comity_units::Seed;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The seeds of a link's random streams. A single [`Seed`] converts into the seeds of a link that
/// shares no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSeed {
    /// The seed below which the link names its own streams.
    pub own: Seed,
    /// The seed below which the link names the streams that it shares with the link of the other
    /// direction.
    pub pair: Seed,
}

impl From<Seed> for LinkSeed {
    fn from(seed: Seed) -> Self {
        Self {
            own: seed,
            pair: seed,
        }
    }
}

/// A stream of random numbers that is the same on every machine.
///
/// xoshiro256++ (Blackman and Vigna 2021), seeded from a [`Seed`] through SplitMix64. Every draw
/// below states how many words of the stream it uses, so that two runs that differ in one place
/// stay in step elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: Seed) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed.get()))
    }

    /// 64 random bits: one word.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1), uniform on the multiples of 2⁻⁵³: one word.
    pub fn uniform(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.bits() >> 11) as f64 * SCALE
    }

    /// A whole number in [0, `bound`), exactly uniform; zero if `bound` is zero.
    ///
    /// Uses one word, and with probability below `bound` / 2⁶⁴ more (Lemire 2019, rejection).
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// An exponentially distributed number with this mean, by inversion: one word.
    ///
    /// ```text
    /// x = −mean · ln(1 − u)
    /// ```
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// A number of the standard normal distribution (Box and Muller 1958): two words.
    ///
    /// ```text
    /// z = √(−2 · ln(1 − u)) · cos(2π · v)
    /// ```
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// A number of the Laplace distribution of mean zero and this scale: two words.
    ///
    /// ```text
    /// x = ±e, each sign with probability 1/2      e exponentially distributed, mean = scale
    /// ```
    pub fn laplace(&mut self, scale: f64) -> f64 {
        let magnitude = self.exponential(scale);
        if self.bernoulli(0.5) {
            magnitude
        } else {
            -magnitude
        }
    }

    /// `true` with this probability: one word. Never for 0 and always for 1, exactly.
    pub fn bernoulli(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        // xoshiro256++ from SplitMix64 of zero, by the reference recurrences: s =
        // (e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec), first output
        // rotl(s0 + s3, 23) + s0.
        let (s0, s3) = (0xe220_a839_7b1d_cdaf_u64, 0xf88b_b8a8_724c_81ec_u64);
        let first = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        assert_eq!(Random::new(Seed::new(0)).bits(), first);
    }

    #[test]
    fn certain_and_impossible_are_exact() {
        let mut random = Random::new(Seed::new(1));
        assert!((0..10_000).all(|_| !random.bernoulli(0.0)));
        assert!((0..10_000).all(|_| random.bernoulli(1.0)));
        assert!((0..10_000).all(|_| (0.0..1.0).contains(&random.uniform())));
        assert_eq!(random.below(0), 0);
        assert!((0..100).all(|_| random.below(1) == 0));
    }

    /// Means and variances within five standard errors; a wrong formula misses by hundreds.
    #[test]
    #[cfg_attr(miri, ignore = "too many draws for an interpreter")]
    fn moments_are_those_of_the_distributions() {
        const COUNT: u32 = 200_000;
        let n = f64::from(COUNT);
        let mut random = Random::new(Seed::new(2));
        let moments = |draw: &mut dyn FnMut() -> f64| {
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..COUNT {
                let x = draw();
                sum += x;
                squares += x * x;
            }
            let mean = sum / n;
            (mean, squares / n - mean * mean)
        };
        // Standard error of a mean: σ/√n. Of a variance: √((κ − 1)/n)·σ², κ = 9 for the
        // exponential, 6 for the Laplace, 3 for the normal, 1.8 for the uniform distribution.
        let root = libm::sqrt(n);
        let (mean, variance) = moments(&mut || random.exponential(3.0));
        assert!((mean - 3.0).abs() < 5.0 * 3.0 / root, "{mean}");
        assert!(
            (variance - 9.0).abs() < 5.0 * libm::sqrt(8.0) * 9.0 / root,
            "{variance}"
        );
        let (mean, variance) = moments(&mut || random.normal());
        assert!(mean.abs() < 5.0 / root, "{mean}");
        assert!(
            (variance - 1.0).abs() < 5.0 * libm::sqrt(2.0) / root,
            "{variance}"
        );
        // Laplace of scale 3: variance 2 · 3².
        let (mean, variance) = moments(&mut || random.laplace(3.0));
        assert!(mean.abs() < 5.0 * libm::sqrt(18.0) / root, "{mean}");
        assert!(
            (variance - 18.0).abs() < 5.0 * libm::sqrt(5.0) * 18.0 / root,
            "{variance}"
        );
        // Uniform on 0..7: mean 3, variance (49 − 1)/12 = 4.
        let (mean, variance) = moments(&mut || random.below(7) as f64);
        assert!((mean - 3.0).abs() < 5.0 * 2.0 / root, "{mean}");
        assert!(
            (variance - 4.0).abs() < 5.0 * 4.0 * libm::sqrt(0.8) / root,
            "{variance}"
        );
    }
}
