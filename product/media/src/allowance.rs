//! Bounds the output of a writer by its input.

/// A token bucket without time: input earns tokens, and additional output costs tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    tokens: u64,
    most: u64,
    factor: u64,
}

impl Allowance {
    /// For bytes that repeat earlier output, such as tables and clock references: 1 MiB, and
    /// sixteen bytes for each byte of input. A radio programme of 32 kb/s needs six.
    pub(crate) const REPEATS: Self = Self::new(16, 1 << 20);

    /// For null packets: 64 MiB, and 256 bytes for each byte of input. A multiplex of 38 Mb/s with
    /// programmes of 0.2 Mb/s needs 190.
    pub(crate) const NULLS: Self = Self::new(256, 64 << 20);

    const fn new(factor: u64, most: u64) -> Self {
        Self {
            tokens: most,
            most,
            factor,
        }
    }

    /// Earns the tokens for this many bytes of input.
    pub(crate) fn earn(&mut self, bytes: usize) {
        let more = self.factor.saturating_mul(bytes as u64);
        self.tokens = self.tokens.saturating_add(more).min(self.most.max(more));
    }

    /// Spends tokens for this many bytes, if there are enough. Returns whether there were.
    pub(crate) const fn spend(&mut self, bytes: usize) -> bool {
        match self.tokens.checked_sub(bytes as u64) {
            Some(rest) => {
                self.tokens = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_bounded_by_what_came_in() {
        let mut allowance = Allowance::REPEATS;
        assert!(allowance.spend(1 << 20));
        assert!(!allowance.spend(1));
        allowance.earn(10);
        assert!(!allowance.spend(161));
        assert!(allowance.spend(160) && !allowance.spend(1));
        // Tokens beyond the maximum are lost.
        allowance.earn(1 << 16);
        allowance.earn(1 << 16);
        assert!(allowance.spend(1 << 20) && !allowance.spend(1));
    }
}
