//! From values to places, and where to put the ticks.

/// Maps the values of an axis to places in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// `least` is drawn at `from`, and `most` at `to`.
    pub(crate) fn new(least: f64, most: f64, from: f64, to: f64) -> Self {
        Self {
            least,
            // An axis without extent shows its only value at its beginning.
            most: if most > least { most } else { least + 1.0 },
            from,
            to,
        }
    }

    /// Where a value is; values beyond the ends of the axis are at its ends.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = (value.clamp(self.least, self.most) - self.least) / (self.most - self.least);
        self.from + share * (self.to - self.from)
    }
}

/// Round values from `least` to `most`: multiples of 1, 2 or 5 times a power of ten, about `count`
/// of them.
pub(crate) fn ticks(least: f64, most: f64, count: u32) -> Vec<f64> {
    if !(least.is_finite() && most.is_finite() && most > least) {
        return Vec::new();
    }
    let step = step((most - least) / f64::from(count.max(1)));
    let first = (least / step - 1e-9).ceil() as i64;
    let last = (most / step + 1e-9).floor() as i64;
    (first..=last).map(|tick| tick as f64 * step).collect()
}

/// The least of 1, 2, 5, 10, .. that is not below `raw`.
fn step(raw: f64) -> f64 {
    if !(raw.is_finite() && raw > 0.0) {
        return 1.0;
    }
    let mut unit = 1.0;
    while unit > raw {
        unit /= 10.0;
    }
    while unit * 10.0 <= raw {
        unit *= 10.0;
    }
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|step| *step >= raw * (1.0 - 1e-9))
        .unwrap_or(10.0 * unit)
}

/// The end of an axis that shows values up to `most`: the next tick.
pub(crate) fn end(most: f64) -> f64 {
    if most > 0.0 {
        let step = step(most / 5.0);
        (most / step - 1e-9).ceil() * step
    } else {
        1.0
    }
}

/// A tick as text, with a minus sign and without needless decimals.
pub(crate) fn label(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    // No "-0".
    let text = format!("{}", rounded + 0.0);
    text.replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lie_between_the_ends() {
        let scale = Scale::new(-100.0, 300.0, 200.0, 0.0);
        assert_eq!(scale.at(-100.0), 200.0);
        assert_eq!(scale.at(0.0), 150.0);
        assert_eq!(scale.at(300.0), 0.0);
        assert_eq!(scale.at(1e9), 0.0, "beyond the axis is at its end");
        assert_eq!(Scale::new(5.0, 5.0, 10.0, 20.0).at(5.0), 10.0);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 20.0, 5), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(ticks(-120.0, 400.0, 5), [0.0, 200.0, 400.0]);
        assert_eq!(
            ticks(-250.0, 420.0, 7),
            [-200.0, -100.0, 0.0, 100.0, 200.0, 300.0, 400.0]
        );
        let small: Vec<String> = ticks(0.0, 0.3, 3).into_iter().map(label).collect();
        assert_eq!(small, ["0", "0.1", "0.2", "0.3"]);
        assert!(ticks(1.0, 1.0, 5).is_empty() && ticks(0.0, f64::NAN, 5).is_empty());
    }

    #[test]
    fn axes_end_at_ticks() {
        assert_eq!(end(8.9), 10.0);
        assert_eq!(end(4.0), 4.0);
        assert_eq!(end(0.0), 1.0);
        assert_eq!(end(61.0), 80.0);
        assert_eq!(label(-200.0), "\u{2212}200");
        assert_eq!(label(-0.0), "0");
    }
}
