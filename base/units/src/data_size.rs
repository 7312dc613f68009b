//! Amounts of data.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::parse::{ParseError, pad, quantity, write_decimal};

/// An amount of data in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct DataSize(u64);

impl DataSize {
    /// No data.
    pub const ZERO: Self = Self(0);
    /// The largest amount, used as "without limit".
    pub const MAX: Self = Self(u64::MAX);

    /// An amount of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits, saturating.
    pub const fn bits(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// `self - other`, or zero if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self - other`, or `None` if `other` is larger.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(bytes) => Some(Self(bytes)),
            None => None,
        }
    }
}

/// Saturates at [`DataSize::MAX`].
impl Add for DataSize {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for DataSize {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// # Panics
/// If `other` is larger, in every build: a negative amount is a bug, which a wrapped amount would
/// hide. Use [`DataSize::saturating_sub`] and [`DataSize::checked_sub`] for amounts from outside.
impl Sub for DataSize {
    type Output = Self;
    #[track_caller]
    fn sub(self, other: Self) -> Self {
        match self.checked_sub(other) {
            Some(rest) => rest,
            None => panic!("subtracted {other} from {self}"),
        }
    }
}

impl SubAssign for DataSize {
    #[track_caller]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

/// Saturates at [`DataSize::MAX`].
impl Mul<u64> for DataSize {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Sum for DataSize {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for DataSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Decimal units if they are exact to three decimals, as in `1.5MB`; parses back exactly.
impl fmt::Display for DataSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(1_000_000_000, "GB"), (1_000_000, "MB")] {
            let thousandth = unit / 1_000;
            if self.0 >= unit && self.0.is_multiple_of(thousandth) {
                return write_decimal(f, self.0 / unit, self.0 % unit / thousandth, name);
            }
        }
        pad(f, format_args!("{}B", self.0))
    }
}

/// Reads a number with one of the units `B`, `kB` (or `KB`), `MB`, `GB`, `KiB`, `MiB`, `GiB`.
impl FromStr for DataSize {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u64)] = &[
            ("B", 1),
            ("kB", 1_000),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ];
        quantity(
            text,
            UNITS,
            "an amount of data such as \"1500B\", \"64KiB\" or \"5MB\"",
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
    fn decimal_and_binary_units_differ() {
        assert_eq!("5MB".parse::<DataSize>().unwrap().get(), 5_000_000);
        assert_eq!("5MiB".parse::<DataSize>().unwrap().get(), 5_242_880);
        assert_eq!("1.5kB".parse::<DataSize>().unwrap().get(), 1_500);
        assert_eq!(DataSize::new(1_500).to_string(), "1500B");
        assert_eq!(DataSize::new(1_500_000).to_string(), "1.5MB");
    }

    #[test]
    fn a_fraction_of_a_byte_is_refused() {
        assert!("1.5B".parse::<DataSize>().is_err());
        assert!("1500".parse::<DataSize>().is_err());
        assert!("12Mb".parse::<DataSize>().is_err(), "bits are not bytes");
    }
}
