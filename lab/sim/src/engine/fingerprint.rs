//! A running hash over the events of a run, for comparing runs.

/// Hashes pairs of a time and a small number, in order.
///
/// It costs one multiplication for each pair, which is negligible beside the rest of a packet's
/// handling. It detects accidental differences, and does not resist deliberate collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    #[inline]
    pub(super) fn add(&mut self, time: u64, number: u32) {
        let word = time ^ (u64::from(number) << 40);
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }

    /// Adds another hash as one number.
    pub(super) fn merge(&mut self, other: Self) {
        self.add(other.0, 0);
        self.add(other.0.rotate_right(24), 1);
    }

    /// The hash, mixed once more so that similar histories differ in many bits.
    pub(super) fn finish(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ (mixed >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_values_matter() {
        let hash = |pairs: &[(u64, u32)]| {
            let mut fingerprint = Fingerprint::default();
            for &(time, number) in pairs {
                fingerprint.add(time, number);
            }
            fingerprint.finish()
        };
        assert_ne!(hash(&[(1, 2), (3, 4)]), hash(&[(3, 4), (1, 2)]));
        assert_ne!(hash(&[(1, 2)]), hash(&[(1, 3)]));
        assert_ne!(hash(&[(1, 2)]), hash(&[(2, 2)]));
        assert_eq!(hash(&[(1, 2), (3, 4)]), hash(&[(1, 2), (3, 4)]));
    }
}
