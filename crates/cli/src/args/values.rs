//! Readers for the values of options.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PathBufValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use comity_congestion::table::{self, TABLE};
use comity_sim::results::Format;
use comity_units::{Bytes, ParseError, Span};

/// Reads a number with its unit.
pub(super) fn quantity<T: FromStr<Err = ParseError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseError| error.to_string())
}

/// The path of a file, where the standard streams cannot stand in for one.
pub(super) fn named_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err(
            "- is a standard stream; expected the path of a file, or ./- for a file with this name",
        ),
        false => Ok(path),
    })
}

/// The name of a congestion controller, which shells complete. A wrong one is refused with advice.
#[derive(Clone, Copy, Debug)]
pub(super) struct ControllerName;

impl TypedValueParser for ControllerName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let find = |text: &str| table::find(text).map(|row| row.name.to_owned());
        find.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(TABLE.iter().map(|row| row.name.into())))
    }
}

/// The name of a congestion controller that can drive TCP.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpControllerName;

impl TypedValueParser for TcpControllerName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let find = |text: &str| match table::find(text) {
            Ok(row) if row.drives_tcp() => Ok(row.name.to_owned()),
            Ok(row) => Err(format!(
                "{} cannot drive TCP; expected one of {}",
                row.name,
                drivers_of_tcp().collect::<Vec<_>>().join(", ")
            )),
            Err(error) => Err(error.to_string()),
        };
        find.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(drivers_of_tcp().map(PossibleValue::from)))
    }
}

fn drivers_of_tcp() -> impl Iterator<Item = &'static str> {
    let rows = TABLE.iter().filter(|row| row.drives_tcp());
    rows.map(|row| row.name)
}

/// Any text, for which shells offer these words.
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

/// An address of this host to answer at, the loopback one by default.
pub(super) fn own_address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':').unwrap_or(text) {
        port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    full.parse().map_err(|_| {
        "expected an address and a port, such as 127.0.0.1:9100, [::]:9100 or :9100".to_owned()
    })
}

/// A number of bytes, with or without their unit.
pub(super) fn packet_size(text: &str) -> Result<Bytes, String> {
    match text.trim().parse() {
        Ok(bytes) => Ok(Bytes::new(bytes)),
        Err(_) => quantity(text),
    }
}

/// A while in which nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// When it begins, after the start.
    pub(crate) at: Span,
    /// How long it lasts.
    pub(crate) lasts: Span,
}

/// Reads `5s+3s`.
pub(super) fn outage(text: &str) -> Result<Outage, String> {
    let (at, lasts) = text.split_once('+').ok_or_else(|| {
        format!(
            "{text:?} is not an outage; expected START+LENGTH, as in 5s+3s: 3 s of loss from 5 s on"
        )
    })?;
    let part = |name: &str, text: &str| {
        quantity::<Span>(text).map_err(|error| {
            format!("{name} {text:?}: {error}; expected START+LENGTH, as in 5s+3s: 3 s of loss from 5 s on")
        })
    };
    let outage = Outage {
        at: part("START", at)?,
        lasts: part("LENGTH", lasts)?,
    };
    if outage.lasts.is_zero() {
        return Err(format!(
            "{text:?} has a length of zero; expected a longer time, as in 5s+3s"
        ));
    }
    Ok(outage)
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

/// Where results are stored, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl Out {
    /// The ending says the format.
    pub(super) fn new(path: PathBuf) -> Result<Self, String> {
        let format = Format::of(&path).map_err(|error| error.to_string())?;
        Ok(Self { path, format })
    }
}

pub(super) fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "expected a whole number from 1".to_owned())
}

/// The largest seed: tables store seeds as signed numbers.
const MAX_SEED: u64 = i64::MAX as u64;

pub(super) fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse().ok().filter(|seed| *seed <= MAX_SEED);
    seed.ok_or_else(|| format!("expected a whole number from 0 to {MAX_SEED}"))
}

/// Seeds as written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Vec<u64>);

/// Reads `1-5`, `1,2,7` or both mixed.
pub(super) fn seeds(text: &str) -> Result<Seeds, String> {
    const MOST: u64 = 1_000_000;
    let number = |text: &str| {
        seed(text.trim())
            .map_err(|_| format!("{text:?} is not a seed; expected numbers such as 1-5 or 1,2,7"))
    };
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(format!(
                "{part:?} goes backwards; expected the smaller seed first, as in 1-5"
            ));
        }
        if last - first >= MOST {
            return Err(format!(
                "{part:?} has more than {MOST} seeds; expected fewer"
            ));
        }
        seeds.extend(first..=last);
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!(
            "seed {} is listed twice; list it once, because runs with the same seed are identical",
            pair[0]
        ));
    }
    Ok(Seeds(seeds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_have_a_beginning_and_a_length() {
        let expected = Outage {
            at: Span::from_millis(1_500),
            lasts: Span::from_secs(3),
        };
        assert_eq!(outage("1.5s+3s"), Ok(expected));
        for bad in ["", "5s", "+", "5s+", "+3s", "5+3", "5s+0s", "-1s+1s"] {
            let said = outage(bad).unwrap_err();
            assert!(said.contains("5s+3s"), "{bad:?}: {said}");
        }
    }

    #[test]
    fn only_controllers_that_drive_tcp_are_offered_for_it() {
        let offered: Vec<_> = drivers_of_tcp().collect();
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

    #[test]
    fn the_size_of_a_packet_needs_no_unit() {
        assert_eq!(packet_size("1400"), Ok(Bytes::new(1_400)));
        assert_eq!(packet_size("1.4kB"), Ok(Bytes::new(1_400)));
        for bad in ["", "-1", "1400b", "many"] {
            assert!(packet_size(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_port_alone_is_one_of_this_host() {
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

    #[test]
    fn the_ending_says_how_results_are_stored() {
        for (path, format) in [
            ("out", Format::Parquet),
            ("a.b/out", Format::Parquet),
            ("out.csv", Format::Csv),
            ("out.json", Format::Json),
        ] {
            assert_eq!(
                Out::new(path.into()).map(|out| out.format),
                Ok(format),
                "{path}"
            );
        }
        for bad in ["out.xml", "out.CSV", "out.1", "out.csv.gz"] {
            assert!(Out::new(bad.into()).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn seeds_are_lists_and_ranges() {
        assert_eq!(seeds("1-3,7"), Ok(Seeds(vec![1, 2, 3, 7])));
        assert_eq!(seeds("5"), Ok(Seeds(vec![5])));
        for bad in [
            "",
            "a",
            "3-1",
            "1-99999999999",
            "-1",
            "1,,2",
            "1,1",
            "1-3,2",
        ] {
            assert!(seeds(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
