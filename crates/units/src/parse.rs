//! Reading a decimal number with a unit, exactly.

use core::fmt;

/// Why a text is not the quantity that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    kind: ParseErrorKind,
    expected: &'static str,
}

/// The part of a quantity that could not be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text is empty or does not begin with a digit.
    NoNumber,
    /// The number is negative, and the quantity cannot be.
    Negative,
    /// The number is not followed by a unit.
    NoUnit,
    /// The unit is not one of those that this quantity has.
    UnknownUnit,
    /// The number does not come out even in the smallest unit (a nanosecond, a byte, a bit per second).
    TooFine,
    /// The value is beyond the range of the type.
    TooLarge,
}

impl ParseError {
    /// The part that could not be understood.
    pub const fn kind(&self) -> ParseErrorKind {
        self.kind
    }

    /// What would have been understood, with an example.
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
        write!(f, "expected {}, but {reason}", self.expected)
    }
}

impl core::error::Error for ParseError {}

/// Reads `<digits>[.<digits>] <unit>` as a whole number of the smallest unit.
///
/// `units` lists each accepted spelling with its size in smallest units.
pub(crate) fn quantity(
    text: &str,
    units: &[(&str, u64)],
    expected: &'static str,
) -> Result<u64, ParseError> {
    let fail = |kind| ParseError { kind, expected };
    let text = text.trim();
    if text.starts_with('-') {
        return Err(fail(ParseErrorKind::Negative));
    }
    let number_end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !whole.bytes().any(|b| b.is_ascii_digit()) || fraction.contains('.') {
        return Err(fail(ParseErrorKind::NoNumber));
    }
    let unit = unit.trim();
    if unit.is_empty() {
        return Err(fail(ParseErrorKind::NoUnit));
    }
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(fail(ParseErrorKind::UnknownUnit));
    };

    let digits = |part: &str| {
        part.bytes()
            .filter(u8::is_ascii_digit)
            .try_fold((0u128, 1u128), |(value, power), digit| {
                Some((
                    value
                        .checked_mul(10)?
                        .checked_add(u128::from(digit - b'0'))?,
                    power.checked_mul(10)?,
                ))
            })
    };
    let too_large = || fail(ParseErrorKind::TooLarge);
    let (whole, _) = digits(whole).ok_or_else(too_large)?;
    let (fraction, power) = digits(fraction).ok_or_else(|| fail(ParseErrorKind::TooFine))?;
    let scale = u128::from(scale);
    let scaled_fraction = fraction.checked_mul(scale).ok_or_else(too_large)?;
    if !scaled_fraction.is_multiple_of(power) {
        return Err(fail(ParseErrorKind::TooFine));
    }
    whole
        .checked_mul(scale)
        .and_then(|value| value.checked_add(scaled_fraction / power))
        .and_then(|value| u64::try_from(value).ok())
        .ok_or_else(too_large)
}

/// Writes `whole.thousandths` without trailing zeros, then the unit.
pub(crate) fn write_decimal(
    f: &mut fmt::Formatter<'_>,
    whole: u64,
    thousandths: u64,
    unit: &str,
) -> fmt::Result {
    if thousandths == 0 {
        write!(f, "{whole}{unit}")
    } else if thousandths.is_multiple_of(100) {
        write!(f, "{whole}.{}{unit}", thousandths / 100)
    } else if thousandths.is_multiple_of(10) {
        write!(f, "{whole}.{:02}{unit}", thousandths / 10)
    } else {
        write!(f, "{whole}.{thousandths:03}{unit}")
    }
}
