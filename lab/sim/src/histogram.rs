//! Distributions of delays, recorded once per packet.
//!
//! A [`Distribution`] has exact integer moments and a log-linear histogram. So bins cause no error
//! of means and standard deviations, and distributions merge to the same bits in any order. Every
//! octave of nanoseconds has 64 bins, as in Tene's HdrHistogram with half its precision. Only the
//! bins between the smallest and the largest recorded value are stored, because the delays of most
//! flows span one or two octaves. `docs/adr/0006-histograms.md` says why this is not the published
//! crate.

use comity_units::Span;
use serde::{Deserialize, Serialize};

/// The bins of an octave, as a power of two. A value and the middle of its bin differ by at most
/// `2^-(BITS + 1)` of the value: 0.78 %.
const BITS: u32 = 6;

/// The number of bins that are allocated together: their 32-bit counters fill one cache line.
const RUN: usize = 16;

const NANOS_PER_SECOND: f64 = 1e9;

/// The distribution of a delay.
///
/// Recording costs a few nanoseconds, and allocates only if the range of values grows. An empty
/// distribution has 64 bytes and no heap. Each of the 64 bins of every octave between its extremes
/// adds 4 bytes.
///
/// ```text
/// bin(v) = v                                 for v < 128 ns
///        = 64 k + floor(v / 2^k)             otherwise, k = floor(log2 v) - 6
/// mean   = Σ v / n
/// stddev² = Σ v² / n − mean²                 (of these values, not of a larger population)
/// ```
///
/// Counts, sums and extremes are exact. A quantile q is the middle of the bin of the value with
/// rank ⌈q n⌉ (nearest rank), limited to the extremes. The error is at most 0.78 % of that value,
/// and zero at either end.
///
/// ```
/// # use comity_sim::histogram::Distribution;
/// # use comity_units::Span;
/// let mut delay = Distribution::new();
/// for millis in 1..=100 {
///     delay.record(Span::from_millis(millis));
/// }
/// let summary = delay.summary();
/// assert_eq!((summary.count, summary.max), (100, 0.1));
/// assert!((summary.mean - 0.0505).abs() < 1e-12);
/// assert!((summary.p95 / 0.095 - 1.0).abs() < 0.0079);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    sum: u128,
    squares: u128,
    /// `u64::MAX` while empty.
    min: u64,
    max: u64,
    /// Whole runs of bins, from the run of `min` to the run of `max`. The index of the first bin
    /// follows from `min`, and the number of values is the sum of the bins.
    bins: Box<[u32]>,
}

impl Distribution {
    /// A distribution without values.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
            bins: Box::default(),
        }
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// Records one value.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let value = span.as_nanos();
        let at = bin(value).wrapping_sub(self.first());
        match self.bins.get_mut(at) {
            Some(count) if *count < u32::MAX => *count += 1,
            _ => self.add(value, 1),
        }
        self.sum += u128::from(value);
        self.squares = self
            .squares
            .saturating_add(u128::from(value) * u128::from(value));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Records one value `count` times.
    pub fn record_repeatedly(&mut self, span: Span, count: u64) {
        if count == 0 {
            return;
        }
        let value = span.as_nanos();
        let (wide, times) = (u128::from(value), u128::from(count));
        self.add(value, count);
        self.sum = self.sum.saturating_add(wide * times);
        self.squares = self
            .squares
            .saturating_add((wide * wide).saturating_mul(times));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.cover(other.min);
        self.min = self.min.min(other.min);
        self.cover(other.max);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        let start = other.first() - self.first();
        for (at, &count) in other.bins.iter().enumerate() {
            self.pour(start + at, u64::from(count));
        }
    }

    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|&count| u64::from(count)).sum()
    }

    /// The mean in seconds; `None` when empty.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64 / NANOS_PER_SECOND)
    }

    /// The standard deviation in seconds; `None` when empty.
    #[must_use]
    pub fn stddev(&self) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        // Σ(v − m)² about the integer part m of the mean, in integers, so that nothing cancels.
        // With Σv = n m + r it is Σv² − m Σv − m r, and no term exceeds Σv². The mean is r/n above
        // m.
        let whole = self.sum / u128::from(count);
        let rest = self.sum % u128::from(count);
        let about_whole = self
            .squares
            .saturating_sub(whole.saturating_mul(self.sum))
            .saturating_sub(whole.saturating_mul(rest));
        let count = count as f64;
        let above = rest as f64 / count;
        let variance = about_whole as f64 / count - above * above;
        Some(variance.max(0.0).sqrt() / NANOS_PER_SECOND)
    }

    /// The quantile `share` in seconds, within 0.78 %; `None` when empty. A share outside 0..=1
    /// counts as the nearer end.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        if rank == 1 {
            return Some(seconds(self.min));
        }
        if rank == count {
            return Some(seconds(self.max));
        }
        let mut seen = 0;
        for (at, &held) in self.bins.iter().enumerate() {
            seen += u64::from(held);
            if seen >= rank {
                let middle = middle(self.first() + at).clamp(self.min as f64, self.max as f64);
                return Some(middle / NANOS_PER_SECOND);
            }
        }
        Some(seconds(self.max))
    }

    /// A summary of the distribution; zeros if it is empty.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let (Some(mean), Some(stddev)) = (self.mean(), self.stddev()) else {
            return Summary::default();
        };
        Summary {
            count: self.count(),
            mean,
            stddev,
            min: seconds(self.min),
            max: seconds(self.max),
            median: self.quantile(0.5).unwrap_or(mean),
            p95: self.quantile(0.95).unwrap_or(mean),
            p99: self.quantile(0.99).unwrap_or(mean),
        }
    }

    /// The summary of these values and of as many zeros as make `total` values. Adds none if there
    /// are `total` values already. For callers that record only queueing delays above zero.
    #[must_use]
    pub fn summary_with_zeros(&self, total: u64) -> Summary {
        self.clone().with_zeros(total).summary()
    }

    /// The bins that hold values, from the smallest.
    pub fn bins(&self) -> impl Iterator<Item = Bin> {
        let first = if self.is_empty() { 0 } else { self.first() };
        (first..).zip(&self.bins).filter_map(|(at, &count)| {
            let (from, width) = edge(at);
            (count > 0).then(|| Bin {
                from: Span::from_nanos(from),
                to: Span::from_nanos(from.saturating_add(width)),
                count: count.into(),
            })
        })
    }

    /// The same distribution with as many zeros as make `total` values; see
    /// [`Self::summary_with_zeros`].
    #[must_use]
    pub fn with_zeros(mut self, total: u64) -> Self {
        self.record_repeatedly(Span::ZERO, total.saturating_sub(self.count()));
        self
    }

    /// The bytes of heap in use.
    #[must_use]
    pub fn memory(&self) -> usize {
        size_of_val(&*self.bins)
    }

    /// The index of the first bin held.
    #[inline]
    fn first(&self) -> usize {
        bin(self.min) & !(RUN - 1)
    }

    /// Records `count` values whose bin does not exist or is full.
    #[cold]
    #[inline(never)]
    fn add(&mut self, value: u64, count: u64) {
        self.cover(value);
        let first = self.first().min(bin(value) & !(RUN - 1));
        self.pour(bin(value) - first, count);
    }

    /// Extends the bins to those of `value`. The caller then lowers `min` or raises `max` to it.
    fn cover(&mut self, value: u64) {
        let start = bin(value) & !(RUN - 1);
        if self.bins.is_empty() {
            self.bins = vec![0; RUN].into();
            return;
        }
        let first = self.first().min(start);
        let end = (self.first() + self.bins.len()).max(start + RUN);
        if end - first > self.bins.len() {
            let mut bins = vec![0; end - first];
            let at = self.first() - first;
            bins[at..at + self.bins.len()].copy_from_slice(&self.bins);
            self.bins = bins.into();
        }
    }

    /// Adds to the bin at `at`. If it is full, the rest goes to the next bin with room, upwards
    /// first, so the sum of the bins stays the number of values. The error of a quantile then grows
    /// by a bin.
    fn pour(&mut self, at: usize, mut count: u64) {
        let upward = at..self.bins.len();
        for slot in upward.chain((0..at).rev()) {
            if count == 0 {
                return;
            }
            let held = &mut self.bins[slot];
            let taken = count.min(u64::from(u32::MAX - *held));
            *held += taken as u32;
            count -= taken;
        }
    }
}

/// The summary of a distribution. All values but `count` are in seconds. All are zero for an empty
/// distribution.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The number of values.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub stddev: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The median, within the histogram's resolution (about 1 %).
    pub median: f64,
    /// The 95th percentile, likewise.
    pub p95: f64,
    /// The 99th percentile, likewise.
    pub p99: f64,
}

/// A bin of a [`Distribution`]: `from <= value < to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The minimum value of the bin.
    pub from: Span,
    /// The minimum value of the next bin.
    pub to: Span,
    /// The number of values in the bin.
    pub count: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Extend<Span> for Distribution {
    fn extend<I: IntoIterator<Item = Span>>(&mut self, spans: I) {
        for span in spans {
            self.record(span);
        }
    }
}

impl FromIterator<Span> for Distribution {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut distribution = Self::new();
        distribution.extend(spans);
        distribution
    }
}

/// The bin of a value in nanoseconds.
#[inline]
const fn bin(value: u64) -> usize {
    let shift = (u64::BITS - 1 - BITS).saturating_sub(value.leading_zeros());
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// The minimum value of a bin and its width, in nanoseconds.
const fn edge(bin: usize) -> (u64, u64) {
    let shift = (bin >> BITS).saturating_sub(1);
    (((bin - (shift << BITS)) as u64) << shift, 1 << shift)
}

/// The middle of a bin, in nanoseconds: the mean of its integers.
fn middle(bin: usize) -> f64 {
    let (low, width) = edge(bin);
    low as f64 + (width as f64 - 1.0) / 2.0
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / NANOS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(nanos: &[u64]) -> Distribution {
        nanos.iter().copied().map(Span::from_nanos).collect()
    }

    /// The summary from the sorted values, by definition.
    fn literal(nanos: &[u64]) -> Summary {
        let mut sorted: Vec<f64> = nanos.iter().map(|&v| v as f64 / 1e9).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let variance = sorted.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        let rank = |q: f64| sorted[((q * n).ceil() as usize).max(1) - 1];
        Summary {
            count: sorted.len() as u64,
            mean,
            stddev: variance.sqrt(),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            median: rank(0.5),
            p95: rank(0.95),
            p99: rank(0.99),
        }
    }

    #[test]
    fn bins_are_exact_below_128_and_then_64_to_the_octave() {
        for value in 0..128 {
            assert_eq!(bin(value), value as usize);
            assert_eq!(middle(value as usize), value as f64);
        }
        // By hand: 128 and 129 share the first bin of width 2; 130 opens the next.
        assert_eq!([bin(128), bin(129), bin(130)], [128, 128, 129]);
        // 1 us = 1000 ns: k = 9 - 6 = 3, so 64 * 3 + 125.
        assert_eq!(bin(1000), 317);
        assert_eq!(middle(317), 1003.5);
        assert_eq!(bin(u64::MAX), 3775);
    }

    #[test]
    fn an_empty_one_is_one_cache_line_without_heap() {
        let empty = Distribution::new();
        assert_eq!(size_of::<Distribution>(), 64);
        assert_eq!(
            (empty.memory(), empty.count(), empty.is_empty()),
            (0, 0, true)
        );
        assert_eq!(empty.summary(), Summary::default());
        assert_eq!(
            (empty.mean(), empty.stddev(), empty.quantile(0.5)),
            (None, None, None)
        );
    }

    #[test]
    fn four_values_by_hand() {
        // 2, 4, 4, 6 us: mean 4, variance (4 + 0 + 0 + 4) / 4 = 2.
        let four = of(&[4_000, 2_000, 6_000, 4_000]);
        let summary = four.summary();
        assert_eq!((summary.count, summary.min, summary.max), (4, 2e-6, 6e-6));
        assert!((summary.mean - 4e-6).abs() < 1e-18);
        assert!((summary.stddev - 2e-6 / 2_f64.sqrt()).abs() < 1e-18);
        assert!((summary.median / 4e-6 - 1.0).abs() < 0.0079);
        // The rank of the 95th percentile of four values is 4.
        assert_eq!((summary.p95, summary.p99), (6e-6, 6e-6));
        assert_eq!(four.quantile(0.0), Some(2e-6));
        assert_eq!(four.quantile(f64::NAN).map(f64::is_finite), Some(true));
    }

    #[test]
    fn equal_values_have_no_stddev_and_exact_quantiles() {
        let equal = of(&[123_456_789; 1000]);
        let summary = equal.summary();
        assert_eq!(summary.stddev, 0.0);
        assert_eq!(
            [summary.median, summary.p99, summary.max],
            [0.123_456_789; 3]
        );
    }

    #[test]
    fn a_small_jitter_on_a_long_delay_does_not_cancel() {
        // Values of 1000 s that differ by 2 ns: in doubles, Σv² − n mean² would lose all of that.
        let base = 1_000_000_000_000;
        let values: Vec<u64> = (0..10_000).map(|i| base + 2 * (i % 2)).collect();
        assert!((of(&values).stddev().unwrap() - 1e-9).abs() < 1e-18);
    }

    #[test]
    fn zeros_that_were_not_recorded_count() {
        // 0 0 0 4 us: mean 1, variance (3 · 1 + 9) / 4 = 3.
        let summary = of(&[4_000]).summary_with_zeros(4);
        assert_eq!((summary.count, summary.min, summary.max), (4, 0.0, 4e-6));
        assert_eq!((summary.mean, summary.median), (1e-6, 0.0));
        assert!((summary.stddev - 3_f64.sqrt() * 1e-6).abs() < 1e-18);
        assert_eq!(Distribution::new().summary_with_zeros(7).count, 7);
        assert_eq!(
            Distribution::new().summary_with_zeros(0),
            Summary::default()
        );
        let three = of(&[1, 2, 3]);
        assert_eq!(three.summary_with_zeros(2), three.summary());
    }

    #[test]
    fn memory_follows_the_range() {
        // One octave from 2^24 to 2^25 ns (17 to 34 ms): 64 bins of 4 bytes.
        let octave: Distribution = (0..64)
            .map(|i| Span::from_nanos((1 << 24) + (i << 18)))
            .collect();
        assert_eq!(octave.memory(), 256);
        assert_eq!(of(&[5_000_000]).memory(), 64);
        // From 1 us to 1000 s: bins 317 to 64 * 33 + 116 = 2228, in runs of 16.
        assert_eq!(of(&[1_000, 1_000_000_000_000]).memory(), 4 * (2240 - 304));
        assert_eq!(of(&[0, u64::MAX]).memory(), 4 * 3776);
    }

    #[test]
    fn a_full_bin_spills_and_no_value_is_forgotten() {
        let mut full = of(&[200]);
        let at = bin(200) - full.first();
        full.bins[at] = u32::MAX - 1;
        full.record(Span::from_nanos(200));
        full.record(Span::from_nanos(200));
        assert_eq!((full.bins[at], full.bins[at + 1]), (u32::MAX, 1));
        assert_eq!(full.count(), u64::from(u32::MAX) + 1);
        let twin = full.clone();
        full.merge(&twin);
        assert_eq!(full.count(), 2 * (u64::from(u32::MAX) + 1));
        // No bin is stored above the last one.
        let mut edge = of(&[(1 << 24) - 1]);
        let last = edge.bins.len() - 1;
        edge.bins[last] = u32::MAX;
        edge.record(Span::from_nanos((1 << 24) - 1));
        assert_eq!(edge.count(), u64::from(u32::MAX) + 1);
    }

    fn delays() -> impl Strategy<Value = Vec<u64>> {
        let magnitude = 0_u32..41;
        prop::collection::vec(
            (magnitude, any::<u64>()).prop_map(|(bits, v)| v & ((1 << bits) - 1)),
            1..200,
        )
    }

    proptest! {
        #[test]
        fn repeating_is_recording_again_and_again(
            values in prop::collection::vec((any::<u32>(), 0_u64..5), 1..30),
        ) {
            let (mut fast, mut slow) = (Distribution::new(), Distribution::new());
            for (value, count) in values {
                let span = Span::from_nanos(u64::from(value));
                fast.record_repeatedly(span, count);
                slow.extend((0..count).map(|_| span));
            }
            prop_assert_eq!(fast, slow);
        }

        #[test]
        fn every_value_is_near_the_middle_of_its_bin(bits in 0_u32..64, any in any::<u64>()) {
            let value = any >> bits;
            let error = (middle(bin(value)) - value as f64).abs();
            prop_assert!(error <= value as f64 / 128.0 + 0.5, "{value}: off by {error}");
        }

        #[test]
        fn bins_are_in_the_order_of_values(a in any::<u64>(), shift in 0_u32..64) {
            let a = a >> shift;
            prop_assert!(bin(a) <= bin(a.saturating_add(1)));
            prop_assert!(bin(a.saturating_add(1)) <= bin(a) + 1);
        }

        #[test]
        fn summaries_agree_with_the_definitions(values in delays()) {
            let (got, expected) = (of(&values).summary(), literal(&values));
            prop_assert_eq!((got.count, got.min, got.max), (expected.count, expected.min, expected.max));
            let near = |a: f64, b: f64, share: f64| (a - b).abs() <= share * b.abs() + 1e-9;
            prop_assert!(near(got.mean, expected.mean, 1e-12), "{got:?} {expected:?}");
            prop_assert!(near(got.stddev, expected.stddev, 1e-9), "{got:?} {expected:?}");
            prop_assert!(near(got.median, expected.median, 0.0079), "{got:?} {expected:?}");
            prop_assert!(near(got.p95, expected.p95, 0.0079), "{got:?} {expected:?}");
            prop_assert!(near(got.p99, expected.p99, 0.0079), "{got:?} {expected:?}");
        }

        #[test]
        fn merging_is_recording_in_any_order(a in delays(), b in delays()) {
            let together = of(&[&a[..], &b[..]].concat());
            let mut forward = of(&a);
            forward.merge(&of(&b));
            let mut backward = of(&b);
            backward.merge(&of(&a));
            backward.merge(&Distribution::new());
            let mut into_empty = Distribution::new();
            into_empty.merge(&together);
            prop_assert_eq!(&forward, &together);
            prop_assert_eq!(&backward, &together);
            prop_assert_eq!(&into_empty, &together);
        }
    }
}
