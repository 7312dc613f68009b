//! Readers for the values of options.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use comity_congestion::table::{self, Row, TABLE};

pub(super) use comity_commands::values::quantity;
#[cfg(feature = "laboratory")]
pub(super) use comity_commands::values::{Offering, named_file, own_address};

/// The name of a suitable congestion controller, for shell completion. A wrong name is refused with
/// advice.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControllerName(fn(&Row) -> bool);

impl ControllerName {
    pub(super) const ANY: Self = Self(|_| true);
    #[cfg(feature = "laboratory")]
    pub(super) const DRIVES_TCP: Self = Self(|row| row.drives_tcp);

    fn names(self) -> impl Iterator<Item = &'static str> {
        let rows = TABLE.iter().filter(move |row| (self.0)(row));
        rows.map(|row| row.name)
    }
}

impl TypedValueParser for ControllerName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let own = *self;
        let find = move |text: &str| match table::find(text) {
            Ok(row) if (own.0)(row) => Ok(row.name.to_owned()),
            Ok(row) => Err(format!(
                "{} cannot drive TCP; expected one of {}",
                row.name,
                own.names().collect::<Vec<_>>().join(", ")
            )),
            Err(error) => Err(error.to_string()),
        };
        find.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names().map(PossibleValue::from)))
    }
}

/// Reads `1%` or `0.01`.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    number
        .parse()
        .map(|number: f64| number / whole)
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("{text:?} is not a share; expected 0% to 100%, or 0 to 1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "laboratory")]
    #[test]
    fn only_controllers_that_drive_tcp_are_offered_for_it() {
        let offered: Vec<_> = ControllerName::DRIVES_TCP.names().collect();
        assert!(offered.contains(&"cubic") && offered.contains(&"libra"));
        assert!(!offered.contains(&"iftp") && !offered.contains(&"psp"));
    }

    #[test]
    fn shares_are_numbers_or_percentages() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("100 %"), Ok(1.0));
        for bad in ["", "%", "101%", "1.1", "-1%", "nan", "inf%", "one"] {
            assert!(share(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
