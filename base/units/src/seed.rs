//! Names for independent random streams.

use core::fmt;

/// The seed of one random stream.
///
/// A run has one seed. Every entity derives its own from that seed and its **name**, never from the
/// order of creation. Two runs that differ in one link or flow therefore use the same random
/// numbers for all others (common random numbers), on every machine and thread count.
///
/// [`Seed::derive`] is FNV-1a over the name, started from the parent, and finished with the mixer
/// of SplitMix64, so that similar names have unrelated seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Seed(u64);

impl Seed {
    /// The seed with this value.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value that starts a generator.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The seed of the child entity called `name`.
    ///
    /// ```
    /// # use comity_units::Seed;
    /// let run = Seed::new(7);
    /// assert_eq!(run.derive("link/loss"), run.derive("link/loss"));
    /// assert_ne!(run.derive("link/loss"), run.derive("link/jitter"));
    /// ```
    #[must_use]
    pub const fn derive(self, name: &str) -> Self {
        const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
        const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        let mut hash = mix(self.0) ^ FNV_OFFSET;
        let bytes = name.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(FNV_PRIME);
            at += 1;
        }
        Self(mix(hash))
    }

    /// The seed of the `index`-th of several entities with one name.
    #[must_use]
    pub const fn index(self, index: u64) -> Self {
        Self(mix(self.0 ^ mix(index.wrapping_add(1))))
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): a bijection that spreads every bit.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixer_agrees_with_the_published_generator() {
        // The first two outputs of SplitMix64 started at zero.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn names_and_indices_give_distinct_seeds() {
        let run = Seed::new(1);
        let seeds = [
            run.derive("a"),
            run.derive("b"),
            run.derive("ab"),
            run.derive("a").derive("b"),
            run.index(0),
            run.index(1),
            Seed::new(2).derive("a"),
        ];
        for (at, seed) in seeds.iter().enumerate() {
            assert!(!seeds[at + 1..].contains(seed));
        }
    }
}
