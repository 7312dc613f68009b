//! Capacities for some destinations.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use comity_units::Rate;
use ipnet::IpNet;

use super::parameters::kbps;

/// The number of bits before an IPv4 address in its IPv6 form (::ffff:0:0/96).
const MAPPED_BITS: u32 = 96;

/// C for the destinations of a prefix. The longest matching prefix counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The addresses. `::/0` includes those of IPv4.
    pub prefix: IpNet,
    /// C of equation 1.
    pub capacity: Rate,
}

impl Destination {
    /// The bytes of `struct libra_destination` (bpf/libra.bpf.c).
    #[cfg_attr(
        not(has_program),
        expect(dead_code, reason = "only the loader writes keys")
    )]
    pub(crate) fn key(&self) -> [u8; 20] {
        let (address, length) = match self.prefix {
            IpNet::V4(net) => (
                net.addr().to_ipv6_mapped(),
                MAPPED_BITS + u32::from(net.prefix_len()),
            ),
            IpNet::V6(net) => (net.addr(), u32::from(net.prefix_len())),
        };
        let mut key = [0; 20];
        let (front, back) = key.split_at_mut(4);
        front.copy_from_slice(&length.to_ne_bytes());
        back.copy_from_slice(&address.octets());
        key
    }

    /// The capacity in the form that the programs use.
    ///
    /// # Errors
    /// If it is out of range.
    pub(crate) fn value(&self) -> Result<[u8; 8], String> {
        let kbps = kbps(self.capacity).map_err(|error| format!("{}: {error}", self.prefix))?;
        Ok(kbps.to_ne_bytes())
    }
}

/// `PREFIX=RATE`
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.prefix, self.capacity)
    }
}

/// Reads `PREFIX=RATE`. An address without a length is a prefix of one address.
impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (prefix, capacity) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} has no `=`, expected such as 10.0.0.0/8=50Mbps"))?;
        let address = || prefix.parse::<IpAddr>().map(IpNet::from);
        let net: IpNet = prefix.parse().or_else(|_| address()).map_err(|_| {
            format!("{prefix:?} is no prefix, expected such as 10.0.0.0/8 or 2001:db8::/32")
        })?;
        Ok(Self {
            prefix: net.trunc(),
            capacity: capacity
                .parse()
                .map_err(|error| format!("{capacity:?}: {error}"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str) -> Destination {
        text.parse().unwrap()
    }

    #[test]
    fn a_text_gives_the_prefix_and_back() {
        for (text, canonical) in [
            ("10.1.2.3/8=50Mbps", "10.0.0.0/8=50Mbps"),
            ("192.0.2.1=1500kbps", "192.0.2.1/32=1500kbps"),
            ("2001:db8::7/32=2Gbps", "2001:db8::/32=2Gbps"),
            ("::/0=1Mbps", "::/0=1Mbps"),
        ] {
            let read = destination(text);
            assert_eq!(read, destination(canonical));
            assert_eq!(read, destination(&read.to_string()), "{read}");
        }
        for (text, expected) in [
            ("10.0.0.0/8", "has no `=`"),
            ("10.0.0.0/33=1Mbps", "is no prefix"),
            ("video=1Mbps", "is no prefix"),
            ("10.0.0.0/8=fast", "\"fast\""),
        ] {
            let error = text.parse::<Destination>().unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    #[cfg(has_program)]
    fn a_key_has_the_layout_of_the_program() {
        let key = destination("10.0.0.0/8=50Mbps").key();
        assert_eq!(key[..4], 104_u32.to_ne_bytes());
        assert_eq!(
            key[4..],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 0]
        );
        let key = destination("2001:db8::/32=50Mbps").key();
        assert_eq!(key[..4], 32_u32.to_ne_bytes());
        assert_eq!(key[4..9], [0x20, 0x01, 0x0d, 0xb8, 0]);
        assert_eq!(
            destination("::1=50Mbps").value().unwrap(),
            50_000_u64.to_ne_bytes()
        );
        assert_eq!(
            destination("::1=999bps").value().unwrap_err(),
            "::1/128: capacity is 999bps, expected 1kbps to 10000Gbps"
        );
    }
}
