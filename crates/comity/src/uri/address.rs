//! Hosts and ports.

use core::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// A host in the form in which a person writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Ip(IpAddr),
    /// A name to look up: letters, digits, hyphens, dots and underscores.
    Name(String),
}

impl Host {
    /// Reads a host. `text` is without the brackets of an IPv6 address, and `bracketed` says
    /// whether it had them.
    pub(super) fn read(text: &str, bracketed: bool) -> Option<Self> {
        if bracketed {
            return text.parse::<Ipv6Addr>().ok().map(|ip| Self::Ip(ip.into()));
        }
        if let Ok(ip) = text.parse() {
            return Some(Self::Ip(IpAddr::V4(ip)));
        }
        let labels = text.strip_suffix('.').unwrap_or(text);
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let is_name = text.len() <= 253 && labels.split('.').all(is_label);
        // A text that ends with a number is an address (WHATWG URL, section 3.5); here an invalid
        // one.
        let is_number = labels
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        (is_name && !is_number).then(|| Self::Name(text.to_ascii_lowercase()))
    }

    /// Whether this is `0.0.0.0` or `::`: nothing to call, but all local addresses to listen on.
    pub fn is_unspecified(&self) -> bool {
        matches!(self, Self::Ip(ip) if ip.is_unspecified())
    }
}

/// As in a URI: IPv6 addresses in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The source address and port of packets. The system chooses what is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// The address of one of the host's interfaces.
    pub address: Option<IpAddr>,
    /// The port; 0 for any.
    pub port: u16,
}

impl Local {
    /// Reads `192.0.2.1`, `192.0.2.1:5000`, `2001:db8::1`, `[2001:db8::1]:5000` or `:5000`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Self {
                address: Some(ip),
                port: 0,
            });
        }
        let (host, port) = split_port(text).filter(|_| !text.is_empty())?;
        let address = match host {
            Written::Absent => None,
            Written::Bare(text) => Some(IpAddr::V4(text.parse().ok()?)),
            Written::Bracketed(text) => Some(IpAddr::V6(text.parse().ok()?)),
        };
        Some(Self {
            address,
            port: port.map_or(Some(0), read_port)?,
        })
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.port) {
            (Some(ip), 0) => ip.fmt(f),
            (Some(ip), port) => write!(f, "{}:{port}", Host::Ip(ip)),
            (None, port) => write!(f, ":{port}"),
        }
    }
}

/// A host that is not parsed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written<'a> {
    Absent,
    Bare(&'a str),
    Bracketed(&'a str),
}

/// Whether a text is a host and a port, or a port alone as in `:9000`.
pub fn is_address(text: &str) -> bool {
    let Some((host, Some(port))) = split_port(text) else {
        return false;
    };
    let is_host = match host {
        Written::Absent => true,
        Written::Bare(host) => Host::read(host, false).is_some(),
        Written::Bracketed(host) => Host::read(host, true).is_some(),
    };
    is_host && read_port(port).is_some()
}

/// Splits `host:port`, `[host]:port`, `:port`, and each without its port. Returns `None` for
/// unmatched brackets or extra colons.
pub(super) fn split_port(text: &str) -> Option<(Written<'_>, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return None,
        };
        return Some((Written::Bracketed(host), port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    if port.is_some_and(|port| port.contains(':')) {
        return None;
    }
    Some(match host {
        "" => (Written::Absent, port),
        host => (Written::Bare(host), port),
    })
}

/// Reads a port of digits alone: `u16::from_str` accepts a sign too.
pub(super) fn read_port(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_or_names() {
        let ip = |text: &str| Some(Host::Ip(text.parse().unwrap()));
        assert_eq!(Host::read("192.0.2.1", false), ip("192.0.2.1"));
        assert_eq!(Host::read("2001:db8::1", true), ip("2001:db8::1"));
        let name = |text: &str| Some(Host::Name(text.into()));
        assert_eq!(Host::read("Media.Example", false), name("media.example"));
        assert_eq!(Host::read("a_b-c.", false), name("a_b-c."));
        assert_eq!(Host::read("4k.example", false), name("4k.example"));
        for bad in [
            "",
            ".",
            "a..b",
            "192.0.2.256",
            "127.1",
            "häuser",
            "a b",
            "a%20b",
        ] {
            assert_eq!(Host::read(bad, false), None, "{bad}");
        }
        assert_eq!(Host::read("192.0.2.1", true), None);
        assert_eq!(Host::read("2001:db8::1", false), None);
        assert_eq!(Host::read(&"a".repeat(64), false), None);
    }

    #[test]
    fn local_addresses_read_back_what_they_print() {
        for text in [
            "192.0.2.1",
            "192.0.2.1:5000",
            "2001:db8::1",
            "[2001:db8::1]:5000",
            ":5000",
        ] {
            assert_eq!(Local::read(text).unwrap().to_string(), text);
        }
        for bad in [
            "",
            "localhost",
            "192.0.2.1:",
            "192.0.2.1:65536",
            "192.0.2.1:+5",
            "[::1",
            "[::1]5",
        ] {
            assert_eq!(Local::read(bad), None, "{bad}");
        }
    }
}
