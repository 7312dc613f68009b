//! A token bucket for a flow's average rate, with borrowing.

use comity_units::{DataSize, Rate, Time};

/// A token bucket that may borrow.
///
/// ```text
/// level = level · depth / depth before             when the depth changes
/// level = min(depth, level + rate · elapsed / 8)   after `elapsed` seconds
/// level = level − size                             when a packet leaves
/// ```
///
/// It begins full. The sender decides how far below zero it may go. Tokens and debts keep their
/// proportion to the depth. A debt made at a high rate therefore takes no longer to repay at a low
/// one, and a varying rate does not cancel a debt.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    /// Bytes, with fractions so that frequent refills lose nothing.
    level: f64,
    depth: f64,
    /// The last refill; `None` before the first.
    filled_at: Option<Time>,
}

impl TokenBucket {
    /// Fills the bucket up to now.
    pub fn fill(&mut self, now: Time, rate: Rate, depth: DataSize) {
        let depth = depth.get() as f64;
        let Some(filled_at) = self.filled_at else {
            (self.level, self.depth, self.filled_at) = (depth, depth, Some(now));
            return;
        };
        if depth == self.depth && now <= filled_at {
            return;
        }
        if self.depth > 0.0 {
            self.level *= depth / self.depth;
        }
        self.depth = depth;
        let elapsed = now.saturating_since(filled_at).as_secs_f64();
        self.level = (self.level + rate.as_bps() as f64 / 8.0 * elapsed).min(depth);
        self.filled_at = Some(filled_at.max(now));
    }

    /// Takes the tokens for a packet of `size` bytes that leaves.
    pub fn take(&mut self, size: DataSize) {
        self.level -= size.get() as f64;
    }

    /// When it was filled last.
    pub fn filled_at(&self) -> Time {
        self.filled_at.unwrap_or(Time::ZERO)
    }

    /// Whole bytes in the bucket; negative after borrowing.
    pub fn level(&self) -> i64 {
        libm::floor(self.level) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_at_its_rate_up_to_its_depth_and_may_borrow() {
        let (rate, depth) = (Rate::from_mbps(8), DataSize::new(5_000));
        let mut bucket = TokenBucket::default();
        bucket.fill(Time::from_secs(9), rate, depth);
        assert_eq!(bucket.level(), 5_000, "it begins full");
        bucket.take(DataSize::new(7_500));
        assert_eq!(bucket.level(), -2_500);
        // A byte per microsecond, in halves.
        for half in 1..=2_000_u64 {
            let now = Time::from_secs(9) + comity_units::Span::from_nanos(half * 500);
            bucket.fill(now, rate, depth);
        }
        assert_eq!(bucket.level(), -1_500);
        bucket.fill(Time::from_secs(10), rate, depth);
        assert_eq!(bucket.level(), 5_000);
    }

    #[test]
    fn debts_and_tokens_follow_the_depth() {
        let now = Time::from_secs(9);
        let (rate, depth) = (Rate::from_mbps(4), DataSize::new(1_000_000));
        let mut bucket = TokenBucket::default();
        bucket.fill(now, rate, depth);
        bucket.take(DataSize::new(2_000_000));
        assert_eq!(bucket.level(), -1_000_000);
        // At a quarter of the rate, the debt is still worth two seconds, not eight.
        bucket.fill(now, Rate::from_mbps(1), DataSize::new(250_000));
        assert_eq!(bucket.level(), -250_000);
        bucket.fill(now, rate, depth);
        assert_eq!(bucket.level(), -1_000_000);
    }
}
