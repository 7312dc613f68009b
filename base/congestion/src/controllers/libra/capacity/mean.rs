//! The mean dispersion, and whether an estimate agrees with it.

use comity_units::{DataSize, Span};

/// The dispersions of all pairs of a window of time, and of those with time stamps.
///
/// Let T be the time of one packet at the bottleneck. Behind a FIFO link, other traffic adds to the
/// dispersion of some pairs and shortens none, so the mean is T or more. If most pairs of a flow
/// have other packets between them, the shortest may too. So an estimate is believed only if
///
/// ```text
/// 7/8 · T  ≤  mean  ≤  2 · T        from at least 4 pairs
/// ```
///
/// Links that deliver in time slots fail this test: most packets of a slot arrive at once, and the
/// next slot is far away. So do flows whose pairs never stay together.
///
/// The time stamps of the receiver have a mean of their own. Their tick may be longer than a
/// dispersion, but their mean has the sum of the dispersions without the reverse path. So it shows
/// that ACKs were compressed:
///
/// ```text
/// K − 3 · √K  ≤  2 · T / tick · pairs        K: the sum of the differences of time stamps in ticks
/// ```
///
/// K is counted, so its standard deviation is at most about √K.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    dispersion: Span,
    bytes: DataSize,
    pairs: u64,
    stamps: Stamps,
}

/// The differences of the time stamps of pairs.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    apart: Span,
    bytes: DataSize,
    tick: Span,
}

impl Mean {
    /// Takes a pair: its dispersion, the difference of its time stamps with their tick, and the
    /// bytes from the end of the first packet to the end of the second.
    pub(super) fn add(&mut self, dispersion: Span, stamps: Option<(Span, Span)>, bytes: DataSize) {
        let stamps = stamps.map(|(apart, tick)| Stamps { apart, bytes, tick });
        *self = self.and(Self {
            dispersion,
            bytes,
            pairs: 1,
            stamps: stamps.unwrap_or_default(),
        });
    }

    /// The mean of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            dispersion: self.dispersion + other.dispersion,
            bytes: self.bytes + other.bytes,
            pairs: self.pairs + other.pairs,
            stamps: Stamps {
                apart: self.stamps.apart + other.stamps.apart,
                bytes: self.stamps.bytes + other.stamps.bytes,
                tick: self.stamps.tick.max(other.stamps.tick),
            },
        }
    }

    /// The mean time for one byte; 0 before the first pair.
    pub(super) fn seconds_per_byte(&self) -> f64 {
        self.dispersion.as_secs_f64() / self.bytes.get().max(1) as f64
    }

    /// Whether any pair had time stamps.
    pub(super) const fn has_stamps(&self) -> bool {
        !self.stamps.tick.is_zero()
    }

    /// Whether one link can have both this time for one byte without other traffic and these means.
    pub(super) fn agrees(&self, seconds_per_byte: f64) -> bool {
        let mean = self.seconds_per_byte();
        let longest = seconds_per_byte * MAX_EXPANSION;
        self.pairs >= MIN_PAIRS
            && (seconds_per_byte * MIN_EXPANSION..=longest).contains(&mean)
            && self.stamps.allow(longest)
    }
}

impl Stamps {
    /// Whether the mean for one byte may be as low as this.
    fn allow(&self, seconds_per_byte: f64) -> bool {
        let tick = self.tick.as_secs_f64();
        let found = self.apart.as_secs_f64();
        let longest = seconds_per_byte * self.bytes.get() as f64;
        // Both sides times the tick.
        found - 3.0 * libm::sqrt(found * tick) <= longest
    }
}

/// With fewer pairs, all may have other packets between them.
const MIN_PAIRS: u64 = 4;

/// The shortest mean dispersion, as a multiple of that without other traffic. Below 1, because
/// time stamps and processing have errors.
const MIN_EXPANSION: f64 = 7.0 / 8.0;

/// The longest mean dispersion, as a multiple of that without other traffic.
const MAX_EXPANSION: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of two packets of 500 bytes with these dispersions in microseconds, and whether they
    /// agree with 1000 for 500 bytes.
    fn agree(dispersions: &[u64], stamps: Option<(u64, u64)>) -> bool {
        let mut mean = Mean::default();
        let stamps =
            stamps.map(|(apart, tick)| (Span::from_micros(apart), Span::from_micros(tick)));
        for dispersion in dispersions {
            mean.add(Span::from_micros(*dispersion), stamps, DataSize::new(500));
        }
        mean.agrees(1e-3 / 500.0)
    }

    #[test]
    fn the_mean_is_between_seven_eighths_and_twice_the_dispersion() {
        for (dispersions, is_near) in [
            ([1_000; 4], true),
            ([875; 4], true),
            ([874; 4], false),
            ([500, 1_000, 1_000, 1_000], true),
            ([500, 1_000, 1_000, 999], false),
            ([1_000, 1_000, 1_000, 5_000], true),
            ([1_000, 1_000, 1_000, 5_001], false),
        ] {
            assert_eq!(agree(&dispersions, None), is_near, "{dispersions:?}");
        }
    }

    #[test]
    fn three_pairs_agree_with_nothing() {
        assert!(agree(&[1_000; 4], None));
        assert!(!agree(&[1_000; 3], None));
    }

    /// A link with slots of a millisecond and five packets in each: four pairs of five arrive at
    /// once, and the fifth a millisecond apart.
    #[test]
    fn time_slots_agree_with_no_dispersion() {
        let mut mean = Mean::default();
        for pair in 0..100 {
            let dispersion = if pair % 5 == 0 { 1_000 } else { 12 };
            mean.add(Span::from_micros(dispersion), None, DataSize::new(1_500));
        }
        for dispersion in [12e-6, 1e-3] {
            assert!(!mean.agrees(dispersion / 1_500.0), "{dispersion}");
        }
    }

    /// The ACKs say 1 ms. With ticks of a microsecond the stamps may say up to 2 ms; with ticks of
    /// 4 ms, the noise of the count counts too: 16 pairs of 2 ms make 8 ticks, and 8 + 3 · √K are
    /// allowed, which are K = 23.
    #[test]
    fn stamps_show_compressed_acks() {
        assert!(agree(&[1_000; 16], Some((1_990, 1))));
        assert!(!agree(&[1_000; 16], Some((2_100, 1))));
        assert!(agree(&[1_000; 16], Some((4_000, 4_000))));
        assert!(agree(&[1_000; 16], Some((4_000 * 22 / 16, 4_000))));
        assert!(!agree(&[1_000; 16], Some((4_000 * 24 / 16, 4_000))));
    }

    #[test]
    fn the_mean_of_two_windows_has_the_pairs_of_both() {
        let mut one = Mean::default();
        one.add(Span::from_micros(1_000), None, DataSize::new(500));
        let mut other = Mean::default();
        let stamps = Some((Span::from_micros(2_000), Span::from_micros(1)));
        other.add(Span::from_micros(2_000), stamps, DataSize::new(500));
        assert!(!one.has_stamps());
        assert!(one.and(other).has_stamps());
        assert!((one.and(other).seconds_per_byte() - 3e-6).abs() < 1e-12);
        assert!(Mean::default().seconds_per_byte().abs() < f64::EPSILON);
    }
}
