//! The parts that URIs of several schemes share, for programs with other schemes.

use core::fmt;

use super::address::{Written, read_port, split_port};
use super::{Host, Key, Kind, UriError};

pub use super::address::is_address;
pub use super::percent::{Encoded, decode};
pub use super::query::Query;
pub use super::secrets::{check_secrets, without_secrets, without_user};

/// The key of the local address.
pub const BIND: Key = Key::new(
    "bind",
    Kind::Local,
    "",
    "The local address, port or both from which packets leave; for a listener without a host, the \
     address to listen at; for multicast, the address of the interface.",
)
.or(&["adapter"]);

/// Splits the text after `scheme://` into the address and the settings.
///
/// # Errors
///
/// [`UriError::Fragment`] and [`UriError::Path`].
pub fn split(rest: &str) -> Result<(&str, &str), UriError> {
    if rest.contains('#') {
        return Err(UriError::Fragment);
    }
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let address = match address.split_once('/') {
        None | Some((_, "")) => address.trim_end_matches('/'),
        Some((_, path)) => return Err(UriError::Path(format!("/{path}"))),
    };
    Ok((address, query))
}

/// Reads the optional host and the port; `example` is a URI with both.
///
/// # Errors
///
/// [`UriError::Address`].
pub fn read_address(text: &str, example: &str) -> Result<(Option<Host>, u16), UriError> {
    let wrong = |expected: &str| UriError::Address {
        found: without_user(text),
        expected: expected.into(),
    };
    let (host, port) = split_port(text).ok_or_else(|| {
        wrong("host:port, with the brackets of an IPv6 address around it, as in [2001:db8::1]:9000")
    })?;
    let host = match host {
        Written::Absent => None,
        Written::Bare(host) => Some(Host::read(host, false).ok_or_else(|| {
            wrong("a host that is an address or a name of letters, digits, hyphens and dots")
        })?),
        Written::Bracketed(host) => Some(Host::read(host, true).ok_or_else(|| {
            wrong(
                "an IPv6 address between the brackets, a link-local one with its zone as in [fe80::1%25eth0]",
            )
        })?),
    };
    if host.as_ref().is_some_and(Host::lacks_zone) {
        return Err(wrong(
            "the zone of a link-local address, the name or number of the interface, as in [fe80::1%25eth0]",
        ));
    }
    let port = port.ok_or_else(|| wrong(&format!("a port, as in {example}")))?;
    let port = read_port(port).ok_or_else(|| wrong("a port from 0 to 65535"))?;
    Ok((host, port))
}

/// Writes `?key=value&key=value`. The mark that replaces a passphrase is not encoded.
///
/// # Errors
///
/// The formatter's errors.
pub fn write_settings(f: &mut fmt::Formatter<'_>, pairs: &[(String, String)]) -> fmt::Result {
    for (at, (name, text)) in pairs.iter().enumerate() {
        let before = if at == 0 { '?' } else { '&' };
        match (name.as_str(), text.strip_prefix('@')) {
            ("passphrase", Some(source)) => write!(f, "{before}{name}=@{}", Encoded(source))?,
            ("passphrase", None) => write!(f, "{before}{name}={text}")?,
            _ => write!(f, "{before}{}={}", Encoded(name), Encoded(text))?,
        }
    }
    Ok(())
}
