//! The account of what a flow has not used of its average rate, or has used in advance.

use comity_units::{Bytes, Rate, Time};

/// A token bucket that may be overdrawn.
///
/// ```text
/// level = level · depth / depth before             when the depth changes
/// level = min(depth, level + rate · elapsed / 8)   after `elapsed` seconds
/// level = level − size                             when a packet leaves
/// ```
///
/// It begins full. Whoever sends decides how far below zero it may go. Tokens and debts are kept
/// in proportion to the depth: a debt made at a high rate is not one of minutes at a low one, and a
/// rate that swings forgives none.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenBucket {
    /// Bytes, with fractions so that frequent refills lose nothing.
    level: f64,
    depth: f64,
    /// When it was filled last; `None` before the first time.
    filled_at: Option<Time>,
}

impl TokenBucket {
    /// Fills the bucket up to now.
    pub fn fill(&mut self, now: Time, rate: Rate, depth: Bytes) {
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

    /// A packet of `size` bytes left.
    pub fn take(&mut self, size: Bytes) {
        self.level -= size.get() as f64;
    }

    /// When it was filled last.
    pub fn filled_at(&self) -> Time {
        self.filled_at.unwrap_or(Time::ZERO)
    }

    /// Whole bytes in the bucket; below zero when it is overdrawn.
    pub fn level(&self) -> i64 {
        libm::floor(self.level) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_at_its_rate_up_to_its_depth_and_may_be_overdrawn() {
        let (rate, depth) = (Rate::from_mbps(8), Bytes::new(5_000));
        let mut bucket = TokenBucket::default();
        bucket.fill(Time::from_secs(9), rate, depth);
        assert_eq!(bucket.level(), 5_000, "it begins full");
        bucket.take(Bytes::new(7_500));
        assert_eq!(bucket.level(), -2_500);
        // A byte in a microsecond, by halves.
        for half in 1..=2_000_u64 {
            let now = Time::from_secs(9) + comity_units::Span::from_nanos(half * 500);
            bucket.fill(now, rate, depth);
        }
        assert_eq!(bucket.level(), -1_500);
        bucket.fill(Time::from_secs(10), rate, depth);
        assert_eq!(bucket.level(), 5_000);
    }

    #[test]
    fn debts_and_savings_follow_the_depth() {
        let now = Time::from_secs(9);
        let (rate, depth) = (Rate::from_mbps(4), Bytes::new(1_000_000));
        let mut bucket = TokenBucket::default();
        bucket.fill(now, rate, depth);
        bucket.take(Bytes::new(2_000_000));
        assert_eq!(bucket.level(), -1_000_000);
        // At a quarter of the rate the debt is still two seconds of it, not eight.
        bucket.fill(now, Rate::from_mbps(1), Bytes::new(250_000));
        assert_eq!(bucket.level(), -250_000);
        bucket.fill(now, rate, depth);
        assert_eq!(bucket.level(), -1_000_000);
    }
}
