//! A keyed hash: numbers that cannot be predicted without the key.

use core::hash::Hasher;

use crate::Seed;

/// SipHash-2-4 of numbers.
#[derive(Clone, Copy)]
pub struct KeyedHash {
    keys: (u64, u64),
}

impl KeyedHash {
    /// The hash with the key of a seed.
    pub const fn new(seed: Seed) -> Self {
        Self {
            keys: (seed.index(0).get(), seed.index(1).get()),
        }
    }

    /// The hash of a number.
    pub fn of(&self, number: u64) -> u64 {
        #[expect(
            deprecated,
            reason = "it stays SipHash-2-4, which the protocol is defined by"
        )]
        let mut hasher = core::hash::SipHasher::new_with_keys(self.keys.0, self.keys.1);
        hasher.write(&number.to_le_bytes());
        hasher.finish()
    }
}

/// Omits the key.
impl core::fmt::Debug for KeyedHash {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeyedHash").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of the paper's appendix and of the reference implementation: keys 00 to 0f.
    #[test]
    fn the_hash_is_siphash_2_4() {
        let hash = KeyedHash {
            keys: (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908),
        };
        // The message 00 01 .. 07.
        assert_eq!(hash.of(0x0706_0504_0302_0100), 0x93f5_f579_9a93_2462);
    }
}
