//! Readers for the values of options.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PathBufValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
#[cfg(feature = "demo")]
use comity_congestion::table::{self, Row, TABLE};
use comity_units::ParseError;

/// Reads a number with its unit.
pub(super) fn quantity<T: FromStr<Err = ParseError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseError| error.to_string())
}

/// A path of a file that cannot be replaced by a standard stream.
pub(super) fn named_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err(
            "- is a standard stream; expected the path of a file, or ./- for a file with this name",
        ),
        false => Ok(path),
    })
}

/// The name of a suitable congestion controller, for shell completion. A wrong name is refused with
/// advice.
#[cfg(feature = "demo")]
#[derive(Clone, Copy, Debug)]
pub(super) struct ControllerName(fn(&Row) -> bool);

#[cfg(feature = "demo")]
impl ControllerName {
    pub(super) const ANY: Self = Self(|_| true);
    #[cfg(feature = "laboratory")]
    pub(super) const DRIVES_TCP: Self = Self(Row::drives_tcp);

    fn names(self) -> impl Iterator<Item = &'static str> {
        let rows = TABLE.iter().filter(move |row| (self.0)(row));
        rows.map(|row| row.name)
    }
}

#[cfg(feature = "demo")]
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

/// Any text; shells offer these words.
#[derive(Clone, Debug)]
pub(super) struct Offering(pub(super) Vec<&'static str>);

impl TypedValueParser for Offering {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::from)))
    }
}

/// A local address to listen on, by default the loopback address.
pub(super) fn own_address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':').unwrap_or(text) {
        port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    full.parse().map_err(|_| {
        "expected an address and a port, such as 127.0.0.1:9100, [::]:9100 or :9100".to_owned()
    })
}

/// Reads `1%` or `0.01`.
#[cfg(feature = "demo")]
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

    #[cfg(feature = "demo")]
    #[test]
    fn shares_are_numbers_or_percentages() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("100 %"), Ok(1.0));
        for bad in ["", "%", "101%", "1.1", "-1%", "nan", "inf%", "one"] {
            assert!(share(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_bare_port_is_on_the_loopback_address() {
        for (text, address) in [
            (":9100", "127.0.0.1:9100"),
            ("9100", "127.0.0.1:9100"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::]:1", "[::]:1"),
        ] {
            assert_eq!(own_address(text), Ok(address.parse().unwrap()));
        }
        for bad in ["", ":", "65536", "host:1", "::1"] {
            let said = own_address(bad).unwrap_err();
            assert!(said.contains(":9100"), "{bad:?}: {said}");
        }
    }
}
