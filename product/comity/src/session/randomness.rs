//! The source of keys, connection ids and challenges.

use core::fmt;

use comity_transport::wire::header::ConnectionId;
use comity_units::Seed;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use ring::rand::{SecureRandom, SystemRandom};

/// A source of random bytes: the operating system, or a seed in tests.
pub struct Randomness(Source);

enum Source {
    System(SystemRandom),
    Seeded(Seed, Xoshiro256PlusPlus),
}

impl Randomness {
    /// The operating system's generator: the only safe one on a network.
    pub fn system() -> Self {
        Self(Source::System(SystemRandom::new()))
    }

    /// A generator whose bytes follow from `seed`, for repeatable tests and simulations. The seed
    /// reveals every key.
    #[doc(hidden)]
    pub fn seeded(seed: Seed) -> Self {
        let generator = Xoshiro256PlusPlus::seed_from_u64(seed.get());
        Self(Source::Seeded(seed, generator))
    }

    /// A source of the same kind for another owner. Split seeded sources return unrelated bytes.
    #[must_use]
    pub fn split(&mut self) -> Self {
        match &mut self.0 {
            Source::System(_) => Self::system(),
            Source::Seeded(seed, generator) => Self::seeded(seed.index(generator.next_u64())),
        }
    }

    /// Fills `out`.
    ///
    /// # Panics
    ///
    /// If the operating system has no random bytes, since no safe fallback exists. No current
    /// system fails in this way.
    pub fn fill(&mut self, out: &mut [u8]) {
        match &mut self.0 {
            Source::System(system) => system
                .fill(out)
                .expect("the operating system gives random bytes"),
            Source::Seeded(_, generator) => generator.fill_bytes(out),
        }
    }

    /// An index below `count`, or zero without any.
    pub(super) fn index(&mut self, count: usize) -> usize {
        (u64::from_be_bytes(self.bytes()) % count.max(1) as u64) as usize
    }

    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        self.fill(&mut out);
        out
    }

    /// A random connection id.
    pub(super) fn connection_id(&mut self) -> ConnectionId {
        ConnectionId::new(u64::from_be_bytes(self.bytes()))
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System(_) => "Randomness::System",
            Source::Seeded(..) => "Randomness::Seeded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeded_bytes_repeat_and_split_ones_differ() {
        let first = |seed| Randomness::seeded(Seed::new(seed)).bytes::<16>();
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
        let mut source = Randomness::seeded(Seed::new(1));
        let (mut left, mut right) = (source.split(), source.split());
        assert_ne!(left.bytes::<16>(), right.bytes::<16>());
    }

    #[test]
    fn system_randomness_does_not_repeat() {
        let mut system = Randomness::system();
        assert_ne!(system.bytes::<16>(), system.split().bytes::<16>());
    }
}
