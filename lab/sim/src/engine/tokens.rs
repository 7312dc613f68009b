//! Token buckets at sources, and how many tokens a source consumes in a round trip.

use comity_tcp::Connection;
use comity_units::{DataSize, Span, Time};

/// A token bucket: every interval adds bytes, and tokens beyond its depth are lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    pub(super) depth: u64,
    pub(super) refill: u64,
    pub(super) interval: Span,
    pub(super) tokens: u64,
    pub(super) next_refill: Time,
}

impl Bucket {
    pub(super) fn new(depth: DataSize, refill: DataSize, interval: Span, start: Time) -> Self {
        Self {
            depth: depth.get(),
            refill: refill.get(),
            interval,
            tokens: depth.get(),
            next_refill: start + interval,
        }
    }

    pub(super) fn refill(&mut self) {
        self.tokens = (self.tokens + self.refill).min(self.depth);
        self.next_refill += self.interval;
    }
}

/// A bucket between an endless source and a TCP connection.
///
/// The source offers the connection as many whole segments as the tokens cover. A token is consumed
/// when its byte leaves for the first time. If the window blocks, the tokens stay and the bucket
/// overflows.
///
/// # Source
/// Zhang and Tsaoussidis, "TCP-Real: Improving Real-time Capabilities of TCP over Heterogeneous
/// Networks", NOSSDAV 2001, sections 3 and 4.4: a depth of 20 KB, 20 tokens of 1 KB every 30 ms,
/// and the tokens consumed in each round trip.
///
/// Differs from the paper in: 1. a token is a byte, and the connection sends whole segments of its
/// own size; the paper's token is a packet of 1 KB. 2. the bucket is full at the start. 3. a
/// retransmitted byte takes no second token; the paper leaves this open, with its bucket in front
/// of the source. 4. the limits of a round trip ([`Rounds`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenSource {
    pub(super) bucket: Bucket,
    /// The bytes of a full segment.
    chunk: u64,
    /// The offered and unsent bytes at the last call.
    offered: u64,
    pub(super) rounds: Rounds,
}

impl TokenSource {
    pub(super) const fn new(bucket: Bucket, chunk: u32) -> Self {
        Self {
            bucket,
            chunk: chunk as u64,
            offered: 0,
            rounds: Rounds::new(),
        }
    }

    /// Consumes the tokens of bytes that left since the last call. Returns their number.
    pub(super) fn consume(&mut self, connection: &Connection) -> u64 {
        let left = connection.unsent().min(self.offered);
        let consumed = self.offered - left;
        self.offered = left;
        self.bucket.tokens = self.bucket.tokens.saturating_sub(consumed);
        consumed
    }

    /// Offers as much as the tokens cover. Returns whether that is more than before.
    pub(super) fn offer(&mut self, connection: &mut Connection) -> bool {
        if !connection.is_synchronized() {
            return false;
        }
        let covered = self.bucket.tokens - self.bucket.tokens % self.chunk.max(1);
        let more = covered.saturating_sub(self.offered);
        connection.write(more);
        self.offered += more;
        more > 0
    }

    /// Ends the source.
    pub(super) const fn stop(&mut self) {
        self.bucket.tokens = 0;
        self.offered = 0;
    }
}

/// Adds up amounts in intervals of one round trip. An interval has the length of the last round
/// trip measured before it begins.
///
/// Source: TCP-Real, section 3 ("the token consumption rate every RTT is measured") and figure 10.
/// The paper does not say where a round trip ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// When the interval ends, once a round trip was measured.
    end: Time,
    current: u64,
    count: u64,
    sum: u64,
    sum_of_squares: u128,
}

impl Rounds {
    pub(super) const fn new() -> Self {
        Self {
            end: Time::MAX,
            current: 0,
            count: 0,
            sum: 0,
            sum_of_squares: 0,
        }
    }

    /// Ends the intervals that are over at `now`; new ones have the length `rtt`.
    pub(super) fn advance(&mut self, now: Time, rtt: Span) {
        let rtt = rtt.max(Span::from_nanos(1));
        if self.end.is_never() {
            self.current = 0;
            self.end = now + rtt;
        }
        let Some(over) = now.since(self.end) else {
            return;
        };
        self.count += 1;
        self.sum += self.current;
        self.sum_of_squares += u128::from(self.current).pow(2);
        self.current = 0;
        // No tokens were consumed in between: every consumption calls this function.
        let empty = over.as_nanos() / rtt.as_nanos();
        self.count += empty;
        self.end += rtt * (empty + 1);
    }

    /// Adds an amount consumed in the current interval.
    pub(super) fn add(&mut self, amount: u64) {
        self.current += amount;
    }

    /// The mean and standard deviation over all past intervals; `None` before the first.
    pub(super) fn mean_and_stddev(&self) -> Option<(f64, f64)> {
        if self.count == 0 {
            return None;
        }
        let count = self.count as f64;
        let mean = self.sum as f64 / count;
        let variance = self.sum_of_squares as f64 / count - mean * mean;
        Some((mean, variance.max(0.0).sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of 10 ms from 5 ms on: [5, 15) has 3, [15, 25) has 1, [25, 35) and [35, 45)
    /// nothing, [45, 55) has 4. Five intervals, mean 8 / 5, mean of squares 26 / 5.
    #[test]
    fn amounts_per_round_by_hand() {
        let at = Time::from_millis;
        let short = Span::from_millis(10);
        let mut rounds = Rounds::new();
        rounds.add(100);
        assert_eq!(rounds.mean_and_stddev(), None);
        rounds.advance(at(5), short);
        rounds.add(1);
        rounds.advance(at(14), short);
        rounds.add(2);
        rounds.advance(at(15), short);
        rounds.add(1);
        rounds.advance(at(45), short);
        rounds.advance(at(45), Span::from_millis(20));
        rounds.add(4);
        // The interval that began at 45 ms is as long as the round trip of that moment.
        rounds.advance(at(55), Span::from_millis(20));
        let (mean, stddev) = rounds.mean_and_stddev().unwrap();
        assert_eq!(mean, 8.0 / 5.0);
        assert!((stddev - (26.0_f64 / 5.0 - 2.56).sqrt()).abs() < 1e-12);
    }
}
