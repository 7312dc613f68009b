//! Bounds the output of a writer by its input.

use crate::header::PACKET;

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

    const fn halved(self) -> Self {
        Self::new(self.factor / 2, self.most / 2)
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

/// The allowances for packets that layouts describe.
#[derive(Debug)]
pub(crate) struct Allowances {
    repeats: Allowance,
    nulls: Allowance,
}

impl Default for Allowances {
    fn default() -> Self {
        Self {
            repeats: Allowance::REPEATS,
            nulls: Allowance::NULLS,
        }
    }
}

impl Allowances {
    /// Earns the tokens for this many bytes of sections and layouts.
    pub(crate) fn earn(&mut self, bytes: usize) {
        self.repeats.earn(bytes);
        self.nulls.earn(bytes);
    }

    /// Spends tokens for a packet without new bytes, if there are enough.
    pub(crate) const fn spend_repeat(&mut self) -> bool {
        self.repeats.spend(PACKET)
    }

    /// Spends tokens for a null packet, if there are enough.
    pub(crate) const fn spend_null(&mut self) -> bool {
        self.nulls.spend(PACKET)
    }
}

/// The allowances of a receiver, as its sender expects them: half of them, because a receiver earns
/// nothing for sections that it misses.
#[derive(Debug)]
pub(crate) struct Expected(pub(crate) Allowances);

impl Default for Expected {
    fn default() -> Self {
        let Allowances { repeats, nulls } = Allowances::default();
        Self(Allowances {
            repeats: repeats.halved(),
            nulls: nulls.halved(),
        })
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
