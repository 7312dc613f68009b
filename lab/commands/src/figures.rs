//! Figures of runs for people.

/// The unit that suits a set of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateUnit {
    pub(crate) name: &'static str,
    bps: f64,
}

impl RateUnit {
    /// The unit in which the largest rate has one to three digits before the point.
    pub(crate) fn of(rates: impl Iterator<Item = f64>) -> Self {
        let largest = rates.fold(0.0, f64::max);
        [("Gb/s", 1e9), ("Mb/s", 1e6), ("kb/s", 1e3)]
            .into_iter()
            .find(|(_, bps)| largest >= *bps)
            .map_or(
                Self {
                    name: "b/s",
                    bps: 1.0,
                },
                |(name, bps)| Self { name, bps },
            )
    }

    pub(crate) fn show(self, rate: f64) -> String {
        digits(rate / self.bps)
    }
}

/// Four digits, at most three of them after the point.
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// The value, or a dash for `None`.
pub(super) fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or("-".into(), show)
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 9.995 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.2}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(digits(1234.4), "1234");
        assert_eq!(digits(123.44), "123.4");
        assert_eq!(digits(12.3), "12.30");
        assert_eq!(digits(0.0), "0.000");
        assert_eq!(percent(0.5), "50.0%");
        assert_eq!(percent(0.0123), "1.23%");
        assert_eq!(percent(0.0), "0.0%");
    }

    #[test]
    fn the_unit_suits_the_largest() {
        let unit = RateUnit::of([48_533.0, 1_500_000.0].into_iter());
        assert_eq!(unit.name, "Mb/s");
        assert_eq!(unit.show(48_533.0), "0.049");
        assert_eq!(RateUnit::of(std::iter::empty()).name, "b/s");
    }
}
