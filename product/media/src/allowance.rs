//! How much may be written for what came in.

/// A token bucket without time: what comes in earns tokens, and what is written beyond it costs
/// them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    tokens: u64,
    most: u64,
    factor: u64,
}

impl Allowance {
    /// Bytes that repeat what was written before, such as tables and clock references: 1 MiB, and
    /// sixteen for each byte that comes in. A radio programme of 32 kb/s takes six.
    pub(crate) const REPEATS: Self = Self::new(16, 1 << 20);

    /// Bytes of null packets: 64 MiB, and 256 for each byte that comes in. A multiplex of 38 Mb/s
    /// with programmes of 0.2 Mb/s takes 190.
    pub(crate) const NULLS: Self = Self::new(256, 64 << 20);

    const fn new(factor: u64, most: u64) -> Self {
        Self {
            tokens: most,
            most,
            factor,
        }
    }

    /// So many bytes came in.
    pub(crate) fn earn(&mut self, bytes: usize) {
        let more = self.factor.saturating_mul(bytes as u64);
        self.tokens = self.tokens.saturating_add(more).min(self.most.max(more));
    }

    /// Whether so many bytes may be written; then they are.
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
        // Nothing is saved beyond the most.
        allowance.earn(1 << 16);
        allowance.earn(1 << 16);
        assert!(allowance.spend(1 << 20) && !allowance.spend(1));
    }
}
