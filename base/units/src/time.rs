//! Points in time and distances between them.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul};
use core::str::FromStr;
use core::time::Duration;

use crate::nearest;
use crate::parse::{ParseError, pad, quantity, write_decimal};

/// A point on one clock: whole nanoseconds since that clock's epoch.
///
/// In the simulator the epoch is the start of the run; at a socket it is the creation of the
/// endpoint. The range is 584 years. It deliberately has no `-`: see [`Time::since`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(u64);

impl Time {
    /// The epoch of the clock.
    pub const ZERO: Self = Self(0);
    /// The last representable point, used as "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The point `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The point `micros` microseconds after the epoch; saturates at [`Time::MAX`].
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The point `millis` milliseconds after the epoch; saturates at [`Time::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// The point `secs` seconds after the epoch; saturates at [`Time::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, for display and for statistics: the nearest `f64` up to 2^53 ns
    /// (104 days).
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long after `earlier` this point lies, or `None` if it lies before it.
    ///
    /// ```
    /// # use comity_units::{Span, Time};
    /// let (a, b) = (Time::from_millis(3), Time::from_millis(5));
    /// assert_eq!(b.since(a), Some(Span::from_millis(2)));
    /// assert_eq!(a.since(b), None);
    /// ```
    pub const fn since(self, earlier: Self) -> Option<Span> {
        match self.0.checked_sub(earlier.0) {
            Some(nanos) => Some(Span(nanos)),
            None => None,
        }
    }

    /// How long after `earlier` this point lies, or zero if it lies before it.
    pub const fn saturating_since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This point moved later by `span`, or `None` beyond the end of the clock.
    pub const fn checked_add(self, span: Span) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// This point moved earlier by `span`, stopping at the epoch.
    pub const fn saturating_sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// Whether this is [`Time::MAX`], the conventional "never".
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

/// Moves a point later. Saturates at [`Time::MAX`], so that "never" plus anything stays "never".
impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Seconds with nine decimals, `never` for [`Time::MAX`].
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            return pad(f, format_args!("never"));
        }
        let (secs, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        pad(f, format_args!("{secs}.{nanos:09}s"))
    }
}

/// A distance between two points of one clock, in whole nanoseconds.
///
/// It is a separate type because [`core::time::Duration`] has two fields in sixteen bytes and
/// divides on every conversion. A packet that crosses a link costs several of these operations
/// (`docs/adr/0002-time-and-span.md`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest representable span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds; saturates at [`Span::MAX`].
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds; saturates at [`Span::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds; saturates at [`Span::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The span nearest to `secs` seconds; negative values and NaN give zero, overflow saturates.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(nearest(secs * 1e9))
    }

    /// Nanoseconds in the span.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds in the span, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole milliseconds in the span, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, or `None` if `other` is longer.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(nanos) => Some(Self(nanos)),
            None => None,
        }
    }

    /// `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The absolute difference of two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// `self * factor` to the nearest nanosecond; negative factors and NaN give zero, overflow
    /// saturates. Spans beyond 2^53 ns (104 days) lose their last digits to `f64`.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(nearest(self.0 as f64 * factor))
    }
}

/// Saturates at [`Span::MAX`].
impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Saturates at [`Span::MAX`].
impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// Rounds down; a zero divisor gives [`Span::MAX`].
impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

/// Saturates at [`Span::MAX`].
impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The largest unit that needs at most three decimals, as in `40ms` or `1.5s`; parses back exactly.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        if self.0 == 0 {
            return pad(f, format_args!("0s"));
        }
        for (unit, name) in UNITS {
            let thousandth = unit / 1_000;
            if self.0 >= unit && self.0.is_multiple_of(thousandth) {
                return write_decimal(f, self.0 / unit, self.0 % unit / thousandth, name);
            }
        }
        pad(f, format_args!("{}ns", self.0))
    }
}

/// Reads a number with one of the units `ns`, `us` (or `µs`), `ms`, `s`, `min`, `h`.
impl FromStr for Span {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u64)] = &[
            ("ns", 1),
            ("us", 1_000),
            ("\u{b5}s", 1_000),  // micro sign
            ("\u{3bc}s", 1_000), // Greek mu, which looks the same
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
            ("min", 60_000_000_000),
            ("h", 3_600_000_000_000),
        ];
        quantity(
            text,
            UNITS,
            "a duration such as \"40ms\", \"1.5s\" or \"250us\"",
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
    fn time_has_an_order_but_no_silent_subtraction() {
        let (early, late) = (Time::from_millis(10), Time::from_millis(25));
        assert_eq!(late.since(early), Some(Span::from_millis(15)));
        assert_eq!(early.since(late), None);
        assert_eq!(early.saturating_since(late), Span::ZERO);
        assert_eq!(Time::MAX + Span::from_secs(1), Time::MAX);
    }

    #[test]
    fn spans_read_back_what_they_print() {
        for (text, nanos) in [
            ("40ms", 40_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("0.1ms", 100_000),
            ("2min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("12ns", 12),
            ("0s", 0),
            (" 7 ms ", 7_000_000),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.as_nanos(), nanos, "{text}");
            assert_eq!(
                span.to_string().parse::<Span>().unwrap(),
                span,
                "{text} prints as {span}"
            );
        }
        assert_eq!(Span::from_nanos(1_234_567).to_string(), "1234.567us");
        assert_eq!(Span::from_millis(1_500).to_string(), "1.5s");
    }

    #[test]
    fn invalid_spans_are_refused() {
        for bad in [
            "",
            "40",
            "ms",
            "-1ms",
            "40 parsecs",
            "1.5ns",
            "1e3ms",
            "1..5s",
            "999999999h",
            "nan s",
        ] {
            assert!(bad.parse::<Span>().is_err(), "{bad:?} was accepted");
        }
    }
}
