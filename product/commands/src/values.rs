//! Readers for the values of options.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PathBufValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use comity_units::ParseError;

/// Reads a number with its unit.
pub fn quantity<T: FromStr<Err = ParseError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseError| error.to_string())
}

/// A path of a file that cannot be replaced by a standard stream.
pub fn named_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err(
            "- is a standard stream; expected the path of a file, or ./- for a file with this name",
        ),
        false => Ok(path),
    })
}

/// Any text; shells offer these words.
#[derive(Clone, Debug)]
pub struct Offering(pub Vec<&'static str>);

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
pub fn own_address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':').unwrap_or(text) {
        port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    full.parse().map_err(|_| {
        "expected an address and a port, such as 127.0.0.1:9100, [::]:9100 or :9100".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
