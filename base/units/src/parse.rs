//! Exact parsing of decimal numbers with a unit.

use core::fmt;

/// Why a text is not the expected quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    kind: ParseErrorKind,
    expected: &'static str,
    nearest: Option<&'static str>,
}

/// The invalid part of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text is empty or does not begin with a digit.
    NoNumber,
    /// The number is negative, but the quantity cannot be.
    Negative,
    /// The number is not followed by a unit.
    NoUnit,
    /// The unit does not belong to this quantity.
    UnknownUnit,
    /// The number is not a whole number of the smallest unit (a nanosecond, a byte, a bit per
    /// second).
    TooFine,
    /// The value is beyond the range of the type.
    TooLarge,
}

impl ParseError {
    /// The invalid part.
    pub const fn kind(&self) -> ParseErrorKind {
        self.kind
    }

    /// The expected form, with an example.
    pub const fn expected(&self) -> &'static str {
        self.expected
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.kind {
            ParseErrorKind::NoNumber => "it does not begin with a number",
            ParseErrorKind::Negative => "it is negative",
            ParseErrorKind::NoUnit => "its unit is missing",
            ParseErrorKind::UnknownUnit => "its unit is not known",
            ParseErrorKind::TooFine => "it is finer than the smallest unit",
            ParseErrorKind::TooLarge => "it is too large",
        };
        write!(f, "expected {}, but {reason}", self.expected)?;
        match self.nearest {
            Some(unit) => write!(f, "; did you mean {unit}?"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for ParseError {}

/// Reads a number and its unit as a whole number of the smallest unit.
///
/// ```text
/// quantity = digits [ "." digits ] unit      with space allowed before, between and after
/// digits   = digit { [ "_" ] digit }
/// ```
///
/// `units` lists each accepted spelling with its size in smallest units.
pub(crate) fn quantity(
    text: &str,
    units: &[(&'static str, u64)],
    expected: &'static str,
) -> Result<u64, ParseError> {
    let fail = |kind| ParseError {
        kind,
        expected,
        nearest: None,
    };
    let text = text.trim();
    if text.starts_with('-') {
        return Err(fail(ParseErrorKind::Negative));
    }
    let number_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    // A number without a point has the fraction zero.
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if !are_digits(whole) || !are_digits(fraction) {
        return Err(fail(ParseErrorKind::NoNumber));
    }
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(fail(ParseErrorKind::NoUnit));
    }
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        let names = || units.iter().map(|(name, _)| *name);
        let same = names().find(|name| name.eq_ignore_ascii_case(unit));
        // Suggests a unit per second for one that lacks it, as in `8Mbit` or `8M`. Times have no
        // such units. A unit that ends in `B` means bytes, not bits.
        let is_part = |name: &&str| {
            let of_a_second = name.ends_with("bps") || name.ends_with("/s");
            let begins = name
                .get(..unit.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(unit));
            of_a_second && begins && !unit.ends_with('B')
        };
        return Err(ParseError {
            nearest: same.or_else(|| names().find(is_part)),
            ..fail(ParseErrorKind::UnknownUnit)
        });
    };
    let scale = u128::from(scale);
    let part = fraction_of(scale, fraction).ok_or_else(|| fail(ParseErrorKind::TooFine))?;
    value_of(whole)
        .and_then(|whole| whole.checked_mul(scale))
        .and_then(|value| value.checked_add(part))
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(|| fail(ParseErrorKind::TooLarge))
}

/// Whether `text` is digits with at most single underscores between them.
fn are_digits(text: &str) -> bool {
    text.split('_')
        .all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The value of digits, or `None` beyond 128 bits.
fn value_of(digits: &str) -> Option<u128> {
    let mut digits = digits.bytes().filter(u8::is_ascii_digit);
    digits.try_fold(0u128, |value, digit| {
        value.checked_mul(10)?.checked_add(u128::from(digit - b'0'))
    })
}

/// `0.digits · scale`, or `None` if that is not a whole number.
fn fraction_of(scale: u128, digits: &str) -> Option<u128> {
    let digits = digits.trim_end_matches(['0', '_']);
    let decimals = digits.bytes().filter(u8::is_ascii_digit).count();
    // Without trailing zeros, a fraction of n decimals is exact only if the scale has n factors of
    // 2 or n of 5. The largest scale here, 2^30, stays far below the 38 decimals of 128 bits.
    let denominator = 10u128.checked_pow(u32::try_from(decimals).ok()?)?;
    let numerator = value_of(digits)?;
    // In lowest terms, so that the product below stays under `scale`.
    let common = greatest_common_divisor(scale, denominator);
    let denominator = denominator / common;
    numerator
        .is_multiple_of(denominator)
        .then(|| numerator / denominator * (scale / common))
}

const fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Writes `whole.thousandths` without trailing zeros, then the unit, in the requested width.
pub(crate) fn write_decimal(
    f: &mut fmt::Formatter<'_>,
    whole: u64,
    thousandths: u64,
    unit: &str,
) -> fmt::Result {
    if thousandths == 0 {
        pad(f, format_args!("{whole}{unit}"))
    } else if thousandths.is_multiple_of(100) {
        pad(f, format_args!("{whole}.{}{unit}", thousandths / 100))
    } else if thousandths.is_multiple_of(10) {
        pad(f, format_args!("{whole}.{:02}{unit}", thousandths / 10))
    } else {
        pad(f, format_args!("{whole}.{thousandths:03}{unit}"))
    }
}

/// Writes a quantity right-aligned in the requested width, like a number.
pub(crate) fn pad(f: &mut fmt::Formatter<'_>, quantity: fmt::Arguments<'_>) -> fmt::Result {
    let mut line = Line::default();
    fmt::Write::write_fmt(&mut line, quantity)?;
    // Unlike `Formatter::pad`, this does not truncate to a precision.
    f.pad_integral(true, "", line.text())
}

/// A buffer for the longest quantity: twenty digits, a point and a unit.
#[derive(Default)]
struct Line {
    bytes: [u8; 32],
    length: usize,
}

impl Line {
    fn text(&self) -> &str {
        let written = self.bytes.get(..self.length).unwrap_or_default();
        // Only valid UTF-8 was written.
        core::str::from_utf8(written).unwrap_or_default()
    }
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
