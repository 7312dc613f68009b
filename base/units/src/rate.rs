//! Speeds of data.

use core::fmt;
use core::str::FromStr;

use crate::parse::{ParseError, pad, quantity, write_decimal};
use crate::{DataSize, Span, nearest};

/// A speed in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Rate(u64);

impl Rate {
    /// Nothing moves.
    pub const ZERO: Self = Self(0);
    /// The largest rate, used as "without limit".
    pub const MAX: Self = Self(u64::MAX);

    /// A rate of `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `kilobits` · 10³ bits per second, saturating.
    pub const fn from_kbps(kilobits: u64) -> Self {
        Self(kilobits.saturating_mul(1_000))
    }

    /// A rate of `megabits` · 10⁶ bits per second, saturating.
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// The rate nearest to `bits` bits per second; negative values and NaN give zero, overflow
    /// saturates.
    pub fn from_bps_f64(bits: f64) -> Self {
        Self(nearest(bits))
    }

    /// The average rate of moving `amount` in `span`, rounded down and saturating; [`Rate::MAX`] if
    /// the span is zero.
    pub fn of(amount: DataSize, span: Span) -> Self {
        if span.is_zero() {
            return Self::MAX;
        }
        Self(scaled(amount.get(), NANOBITS, span.as_nanos()))
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Megabits (10⁶ bits) per second.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time to transmit `amount` at this rate, rounded up to a whole nanosecond.
    ///
    /// ```text
    /// τ = 8 · amount / rate
    /// ```
    ///
    /// A zero rate gives [`Span::MAX`].
    pub fn transmission_time(self, amount: DataSize) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let nanos = match amount.get().checked_mul(NANOBITS) {
            Some(nanobits) => nanobits.div_ceil(self.0),
            None => {
                let nanobits = u128::from(amount.get()) * u128::from(NANOBITS);
                u64::try_from(nanobits.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)
            }
        };
        Span::from_nanos(nanos)
    }

    /// The amount transmitted in `span` at this rate, rounded down and saturating.
    pub fn amount_in(self, span: Span) -> DataSize {
        DataSize::new(scaled(self.0, span.as_nanos(), NANOBITS))
    }

    /// `self * factor` to the nearest bit per second; negative factors and NaN give zero, overflow
    /// saturates. Rates beyond 2^53 bit/s (9 Pb/s) lose their last digits to `f64`.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(nearest(self.0 as f64 * factor))
    }
}

/// Bits in a byte and nanoseconds in a second.
const NANOBITS: u64 = 8_000_000_000;

/// `a · b / c`, rounded down and saturating. Most products fit 64 bits, whose division is faster.
fn scaled(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => {
            let quotient = u128::from(a) * u128::from(b) / u128::from(c);
            u64::try_from(quotient).unwrap_or(u64::MAX)
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The largest unit that needs at most three decimals, as in `1.5Mbps`; parses back exactly.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [
            (1_000_000_000, "Gbps"),
            (1_000_000, "Mbps"),
            (1_000, "kbps"),
        ] {
            let thousandth = unit / 1_000;
            if self.0 >= unit && self.0.is_multiple_of(thousandth) {
                return write_decimal(f, self.0 / unit, self.0 % unit / thousandth, name);
            }
        }
        pad(f, format_args!("{}bps", self.0))
    }
}

/// Reads a number with one of the units `bps`, `kbps`, `Mbps`, `Gbps`, also spelt `bit/s`, `kbit/s`
/// and so on or `b/s`, `kb/s` and so on.
impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u64)] = &[
            ("bps", 1),
            ("bit/s", 1),
            ("b/s", 1),
            ("kbps", 1_000),
            ("kbit/s", 1_000),
            ("kb/s", 1_000),
            ("Mbps", 1_000_000),
            ("Mbit/s", 1_000_000),
            ("Mb/s", 1_000_000),
            ("Gbps", 1_000_000_000),
            ("Gbit/s", 1_000_000_000),
            ("Gb/s", 1_000_000_000),
        ];
        quantity(
            text,
            UNITS,
            "a rate such as \"1.5Mbps\", \"800kbps\" or \"10Gbps\"",
        )
        .map(Self)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn transmission_time_of_an_ethernet_frame() {
        // 1500 B = 12,000 bit; at 1.5 Mb/s exactly 8 ms, at 155 Mb/s 77.419... us.
        assert_eq!(
            Rate::from_kbps(1_500).transmission_time(DataSize::new(1_500)),
            Span::from_millis(8)
        );
        assert_eq!(
            Rate::from_mbps(155).transmission_time(DataSize::new(1_500)),
            Span::from_nanos(77_420)
        );
        assert_eq!(Rate::ZERO.transmission_time(DataSize::new(1)), Span::MAX);
    }

    #[test]
    fn a_byte_in_a_nanosecond_whether_or_not_the_product_fits_64_bits() {
        let rate = Rate::from_mbps(8_000);
        for count in [1, 2_305_843_009, 2_305_843_010, u64::MAX] {
            let (bytes, span) = (DataSize::new(count), Span::from_nanos(count));
            assert_eq!(rate.transmission_time(bytes), span);
            assert_eq!(rate.amount_in(span), bytes);
            assert_eq!(Rate::of(bytes, span), rate);
        }
        // 1/7 ns a byte: the transmission time is rounded up, the rate down.
        let rate = Rate::from_mbps(56_000);
        for (bytes, nanos) in [(8, 2), (2_305_843_010, 329_406_145)] {
            assert_eq!(
                rate.transmission_time(DataSize::new(bytes)),
                Span::from_nanos(nanos)
            );
        }
        assert_eq!(
            Rate::of(DataSize::new(1), Span::from_nanos(7)),
            Rate::from_bps(1_142_857_142)
        );
    }

    #[test]
    fn rate_reads_back_what_it_prints() {
        for (text, bps) in [
            ("1.5Mbps", 1_500_000),
            ("800 kb/s", 800_000),
            ("10Gbps", 10_000_000_000),
            ("56bps", 56),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.as_bps(), bps, "{text}");
            assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
        }
        assert!("5MB".parse::<Rate>().is_err(), "bytes are no rate");
        assert!("5MB/s".parse::<Rate>().is_err(), "rates are in bits");
    }

    #[test]
    fn amount_and_span_invert_the_rate() {
        let rate = Rate::from_mbps(8);
        assert_eq!(rate.amount_in(Span::from_millis(1)), DataSize::new(1_000));
        assert_eq!(Rate::of(DataSize::new(1_000), Span::from_millis(1)), rate);
    }
}
