//! Hosts and ports.

use core::fmt;
use std::net::{IpAddr, Ipv6Addr};

use super::percent::{Encoded, decode};

/// The maximum length of the name of an interface, in bytes.
const ZONE: usize = 15;

/// The zone of an IPv6 address (RFC 4007): the name or the number of an interface.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Zone {
    name: [u8; ZONE],
    length: usize,
}

impl Zone {
    fn read(text: &str) -> Option<Self> {
        let is_name = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b'%';
        let mut name = [0; ZONE];
        name.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        let zone = Self {
            name,
            length: text.len(),
        };
        (!text.is_empty() && text.bytes().all(is_name)).then_some(zone)
    }

    /// The name or the number.
    pub fn as_str(&self) -> &str {
        let name = self.name.get(..self.length).unwrap_or_default();
        core::str::from_utf8(name).unwrap_or_default()
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({:?})", self.as_str())
    }
}

/// Reads an IPv6 address with its zone. The zone follows `%25` (RFC 6874) or `%`.
fn read_zoned(text: &str) -> Option<(Ipv6Addr, Zone)> {
    let (ip, zone) = text.split_once('%')?;
    let ip: Ipv6Addr = ip.parse().ok()?;
    let encoded = zone.strip_prefix("25").filter(|rest| !rest.is_empty());
    let zone = match encoded {
        Some(zone) => Zone::read(&decode(zone).ok()?)?,
        None => Zone::read(zone)?,
    };
    (ip.is_unicast_link_local() || ip.is_multicast()).then_some((ip, zone))
}

/// A host as a user writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// An address.
    Ip(IpAddr),
    /// A link-local address or a multicast group, with its zone: several interfaces may have the
    /// same one.
    Zoned(Ipv6Addr, Zone),
    /// A name to look up: letters, digits, hyphens, dots and underscores.
    Name(String),
}

impl Host {
    /// Reads a host. `text` is without the brackets of an IPv6 address, and `bracketed` says
    /// whether it had them.
    pub(super) fn read(text: &str, bracketed: bool) -> Option<Self> {
        if bracketed {
            let zoned = || read_zoned(text).map(|(ip, zone)| Self::Zoned(ip, zone));
            let ip = text.parse::<Ipv6Addr>().ok();
            return ip.map(|ip| Self::Ip(ip.into())).or_else(zoned);
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
        // A host that ends with a number is an IPv4 address (WHATWG URL, section 3.5). This one is
        // invalid.
        let is_number = labels
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        (is_name && !is_number).then(|| Self::Name(text.to_ascii_lowercase()))
    }

    /// Whether the address is ambiguous without its zone.
    pub(super) const fn lacks_zone(&self) -> bool {
        matches!(self, Self::Ip(IpAddr::V6(ip)) if ip.is_unicast_link_local())
    }

    /// The address, if it is one.
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Ip(ip) => Some(*ip),
            Self::Zoned(ip, _) => Some(IpAddr::V6(*ip)),
            Self::Name(_) => None,
        }
    }

    /// Whether this is `0.0.0.0` or `::`: no address to call, but all local addresses to listen on.
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
            Self::Zoned(ip, zone) => write!(f, "[{ip}%25{}]", Encoded(zone.as_str())),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The source address and port of packets. The system chooses what is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// The address of one of the host's interfaces.
    pub address: Option<IpAddr>,
    /// The zone of a link-local address.
    pub zone: Option<Zone>,
    /// The port; 0 for any.
    pub port: u16,
}

impl Local {
    /// Reads `192.0.2.1`, `192.0.2.1:5000`, `2001:db8::1`, `[2001:db8::1]:5000`, `fe80::1%eth0` or
    /// `:5000`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Some(Self {
                address: Some(ip),
                zone: None,
                port: 0,
            });
        }
        if let Some((ip, zone)) = read_zoned(text) {
            return Some(Self {
                address: Some(ip.into()),
                zone: Some(zone),
                port: 0,
            });
        }
        let (host, port) = split_port(text).filter(|_| !text.is_empty())?;
        let (address, zone) = match host {
            Written::Absent => (None, None),
            Written::Bare(text) => (Some(IpAddr::V4(text.parse().ok()?)), None),
            Written::Bracketed(text) => match Host::read(text, true)? {
                Host::Zoned(ip, zone) => (Some(IpAddr::V6(ip)), Some(zone)),
                host => (host.ip(), None),
            },
        };
        Some(Self {
            address,
            zone,
            port: port.map_or(Some(0), read_port)?,
        })
    }
}

impl Local {
    /// The host with this address.
    pub const fn host(&self) -> Option<Host> {
        match (self.address, self.zone) {
            (Some(IpAddr::V6(ip)), Some(zone)) => Some(Host::Zoned(ip, zone)),
            (Some(ip), _) => Some(Host::Ip(ip)),
            (None, _) => None,
        }
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(ip), Some(zone)) = (self.address, self.zone) {
            return match self.port {
                0 => write!(f, "{ip}%{}", zone.as_str()),
                port => write!(f, "[{ip}%{}]:{port}", zone.as_str()),
            };
        }
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
        for (text, zone, printed) in [
            ("fe80::1%25eth0", "eth0", "[fe80::1%25eth0]"),
            ("fe80::1%eth0", "eth0", "[fe80::1%25eth0]"),
            ("fe80::1%3", "3", "[fe80::1%253]"),
            ("fe80::1%253", "3", "[fe80::1%253]"),
            ("fe80::1%25", "25", "[fe80::1%2525]"),
            ("ff02::1%25eth0.100", "eth0.100", "[ff02::1%25eth0.100]"),
            ("fe80::1%25br%2Dlan", "br-lan", "[fe80::1%25br-lan]"),
        ] {
            let host = Host::read(text, true).unwrap();
            let Host::Zoned(_, found) = host else {
                panic!("{text}: {host:?}");
            };
            assert_eq!(found.as_str(), zone);
            assert_eq!(host.to_string(), printed);
            assert_eq!(Host::read(&printed[1..printed.len() - 1], true), Some(host));
        }
        // A global address has no zone, and the others have invalid names of interfaces.
        for bad in [
            "2001:db8::1%25eth0",
            "fe80::1%",
            "fe80::1%a/b",
            "fe80::1%a b",
            "fe80::1%25a%2fb",
        ] {
            assert_eq!(Host::read(bad, true), None, "{bad}");
        }
        assert_eq!(
            Host::read(&format!("fe80::1%{}", "e".repeat(16)), true),
            None
        );
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
            "fe80::1%eth0",
            "[fe80::1%eth0]:5000",
            "fe80::1%7",
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
