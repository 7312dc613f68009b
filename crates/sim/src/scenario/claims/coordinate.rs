//! Values of axes as places on a scale.

use std::fmt;
use std::sync::Arc;

use comity_units::{Bytes, Rate, Span};

use crate::results::AxisValue;

/// The value of an axis: what it is worth, and how it is written.
#[derive(Clone, Debug)]
pub(super) struct Coordinate {
    worth: Worth,
    written: Arc<str>,
}

#[derive(Clone, Debug, PartialEq)]
enum Worth {
    Number(f64, Unit),
    Text(Arc<str>),
    Truth(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    None,
    Second,
    BitPerSecond,
    Byte,
    Packet,
}

impl PartialEq for Coordinate {
    /// Whether both are worth the same: `"1ms"` and `"1000us"` are.
    fn eq(&self, other: &Self) -> bool {
        self.worth == other.worth
    }
}

impl Coordinate {
    pub(super) fn number(value: f64) -> Self {
        Self {
            worth: Worth::Number(value, Unit::None),
            written: value.to_string().into(),
        }
    }

    /// A text that may be a quantity.
    pub(super) fn text(text: &str) -> Self {
        let worth = quantity(text).map_or_else(
            || Worth::Text(text.into()),
            |(value, unit)| Worth::Number(value, unit),
        );
        Self {
            worth,
            written: text.into(),
        }
    }

    /// A text that has to be a quantity, such as `40ms`.
    pub(super) fn quantity(text: &str) -> Option<Self> {
        let (value, unit) = quantity(text)?;
        Some(Self {
            worth: Worth::Number(value, unit),
            written: text.into(),
        })
    }

    /// A plain number, or a quantity in seconds, bit/s, bytes or packets.
    pub(super) fn value(&self) -> Option<f64> {
        match self.worth {
            Worth::Number(value, _) => Some(value),
            Worth::Text(_) | Worth::Truth(_) => None,
        }
    }

    /// Which of the two is larger, where they can be compared.
    pub(super) fn compare(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (&self.worth, &other.worth) {
            (Worth::Number(left, a), Worth::Number(right, b)) if a == b => left.partial_cmp(right),
            _ => None,
        }
    }
}

fn quantity(text: &str) -> Option<(f64, Unit)> {
    let text = text.trim();
    if let Ok(span) = text.parse::<Span>() {
        return Some((span.as_nanos() as f64 / 1e9, Unit::Second));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((rate.as_bps() as f64, Unit::BitPerSecond));
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return Some((bytes.get() as f64, Unit::Byte));
    }
    let packets = text
        .strip_suffix("packets")
        .or_else(|| text.strip_suffix("packet"))?;
    let packets = packets.trim().parse::<u32>().ok()?;
    Some((packets.into(), Unit::Packet))
}

impl From<&AxisValue> for Coordinate {
    fn from(value: &AxisValue) -> Self {
        match value {
            AxisValue::Boolean(truth) => Self {
                worth: Worth::Truth(*truth),
                written: value.to_string().into(),
            },
            AxisValue::Integer(number) => Self::number(*number as f64),
            AxisValue::Number(number) => Self::number(*number),
            AxisValue::Text(text) => Self::text(text),
        }
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn quantities_are_equal_when_they_are_worth_the_same() {
        assert_eq!(Coordinate::text("1ms"), Coordinate::text("1000us"));
        assert_eq!(Coordinate::text("1ms").value(), Some(0.001));
        assert_eq!(Coordinate::text("1.5Mbps").value(), Some(1_500_000.0));
        assert_eq!(Coordinate::text("10 packets").value(), Some(10.0));
        assert_ne!(Coordinate::text("1s"), Coordinate::number(1.0));
        assert_eq!(Coordinate::text("reno").value(), None);
        let (short, long) = (Coordinate::text("200us"), Coordinate::text("1ms"));
        assert_eq!(short.compare(&long), Some(Ordering::Less));
        assert_eq!(short.compare(&Coordinate::number(1.0)), None);
        assert_eq!(
            Coordinate::from(&AxisValue::Integer(20)),
            Coordinate::number(20.0)
        );
        assert_eq!(
            Coordinate::from(&AxisValue::Boolean(true)).to_string(),
            "true"
        );
    }
}
