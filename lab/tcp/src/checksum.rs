//! The Internet checksum, and the pseudo headers of TCP and UDP.
//!
//! The sum is computed part by part, so that a header, a payload in several pieces and the
//! addresses need not be contiguous in memory. Source: RFC 1071; RFC 9293, section 3.1; RFC 8200,
//! section 8.1.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol number of TCP in an IP header.
pub const PROTOCOL_TCP: u8 = 6;
/// The protocol number of UDP in an IP header.
pub const PROTOCOL_UDP: u8 = 17;

/// A running one's complement sum over 16-bit words in network byte order.
///
/// ```text
/// sum = word₁ +' word₂ +' …        +' adds the carry back in at the low end
/// checksum = ¬sum
/// ```
///
/// A part may have any length. If it ends in the middle of a word, the next part completes the
/// word. Source: RFC 1071, sections 1 and 2 (which also justifies summing 64 bits at a time).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    /// Congruent to the sum modulo 2¹⁶ − 1; zero only if every byte was zero.
    sum: u64,
    /// Whether the next byte is the low half of a word.
    odd: bool,
}

impl Checksum {
    /// The sum of no bytes, which is also the sum of any even number of zero bytes.
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Adds the bytes of the next part.
    #[must_use]
    pub fn then(mut self, mut bytes: &[u8]) -> Self {
        if self.odd
            && let Some((low, rest)) = bytes.split_first()
        {
            self.carry_in(u64::from(*low));
            self.odd = false;
            bytes = rest;
        }
        let (blocks, rest) = bytes.as_chunks::<8>();
        for block in blocks {
            self.carry_in(u64::from_be_bytes(*block));
        }
        let (words, last) = rest.as_chunks::<2>();
        for word in words {
            self.carry_in(u64::from(u16::from_be_bytes(*word)));
        }
        if let [high] = last {
            self.carry_in(u64::from(*high) << 8);
            self.odd = true;
        }
        self
    }

    /// Adds the separately computed sum of the next part.
    #[must_use]
    pub fn followed_by(mut self, part: Self) -> Self {
        // After an odd number of bytes, the halves of all later words are swapped. So are the
        // halves of their sum, because a rotation is a multiplication modulo 2¹⁶ − 1.
        self.carry_in(if self.odd {
            part.sum.rotate_left(8)
        } else {
            part.sum
        });
        self.odd ^= part.odd;
        self
    }

    /// The sum folded to 16 bits.
    pub const fn folded(self) -> u16 {
        let by_32 = (self.sum >> 32) + (self.sum & 0xffff_ffff);
        let by_16 = (by_32 >> 16) + (by_32 & 0xffff);
        let by_16 = (by_16 >> 16) + (by_16 & 0xffff);
        ((by_16 >> 16) + (by_16 & 0xffff)) as u16
    }

    /// The checksum for the header: the complement of the sum.
    pub const fn finish(self) -> u16 {
        !self.folded()
    }

    /// Whether the summed data, its checksum field included, is intact.
    pub const fn is_intact(self) -> bool {
        self.folded() == 0xffff
    }

    /// One's complement addition. The carry cannot overflow again, because the overflowed sum is at
    /// most 2⁶⁴ − 2.
    fn carry_in(&mut self, value: u64) {
        let (sum, carry) = self.sum.overflowing_add(value);
        self.sum = sum + u64::from(carry);
    }
}

/// The addresses that a TCP or UDP checksum covers besides the bytes themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PseudoHeader {
    /// Between two IPv4 addresses (RFC 9293, section 3.1).
    V4 {
        /// The source address.
        source: Ipv4Addr,
        /// The destination address.
        destination: Ipv4Addr,
    },
    /// Between two IPv6 addresses (RFC 8200, section 8.1).
    V6 {
        /// The source address.
        source: Ipv6Addr,
        /// The destination address; the final one with a routing header.
        destination: Ipv6Addr,
    },
}

impl PseudoHeader {
    /// The pseudo header between two addresses, or `None` if their families differ.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Self::V4 {
                source,
                destination,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6 {
                source,
                destination,
            }),
            _ => None,
        }
    }

    /// The sum over the pseudo header of an upper-layer packet.
    ///
    /// * `protocol`: the number of the upper-layer protocol, such as [`PROTOCOL_TCP`].
    /// * `length`: bytes of the upper-layer packet, its own header included.
    pub fn sum(&self, protocol: u8, length: u16) -> Checksum {
        let addresses = match self {
            Self::V4 {
                source,
                destination,
            } => Checksum::new()
                .then(&source.octets())
                .then(&destination.octets()),
            Self::V6 {
                source,
                destination,
            } => Checksum::new()
                .then(&source.octets())
                .then(&destination.octets()),
        };
        // The two layouts differ only in the order of length and protocol, which does not affect a
        // sum.
        addresses.then(&[0, protocol]).then(&length.to_be_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071, section 3: 0001 +' f203 +' f4f5 +' f6f7 = ddf2.
    const EXAMPLE: [u8; 8] = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];

    #[test]
    fn the_sum_of_the_example_in_the_rfc() {
        let sum = Checksum::new().then(&EXAMPLE);
        assert_eq!(sum.folded(), 0xddf2);
        assert_eq!(sum.finish(), 0x220d);
        assert!(!sum.is_intact());
        assert!(sum.then(&[0x22, 0x0d]).is_intact());
    }

    #[test]
    fn a_sum_does_not_depend_on_the_split() {
        let long: [u8; 37] = core::array::from_fn(|index| (index * 151 + 13) as u8);
        let whole = Checksum::new().then(&long);
        for cut in 0..=long.len() {
            let (front, back) = long.split_at(cut);
            assert_eq!(
                Checksum::new().then(front).then(back).folded(),
                whole.folded(),
                "{cut}"
            );
            let apart = Checksum::new()
                .then(front)
                .followed_by(Checksum::new().then(back));
            assert_eq!(
                (apart.folded(), apart.odd),
                (whole.folded(), whole.odd),
                "{cut}"
            );
        }
    }

    #[test]
    fn an_odd_last_byte_is_padded_with_a_zero() {
        assert_eq!(
            Checksum::new().then(&[0x12, 0x34, 0x56]).folded(),
            0x1234 + 0x5600
        );
    }

    #[test]
    fn nothing_and_zeros_sum_to_zero_and_all_ones_to_all_ones() {
        assert_eq!(Checksum::new().finish(), 0xffff);
        assert_eq!(Checksum::new().then(&[0; 40]).finish(), 0xffff);
        assert_eq!(Checksum::new().then(&[0xff; 40]).folded(), 0xffff);
        assert_eq!(Checksum::new().then(&[0xff; 7]).folded(), 0xff00);
    }

    #[test]
    fn the_pseudo_headers_by_hand() {
        // c0a8 + 0001 + c0a8 + 00c7 + 0006 + 0014 = 18232, folded 8233.
        let v4 = PseudoHeader::V4 {
            source: Ipv4Addr::new(192, 168, 0, 1),
            destination: Ipv4Addr::new(192, 168, 0, 199),
        };
        assert_eq!(v4.sum(PROTOCOL_TCP, 20).folded(), 0x8233);
        // 2·(2001 + 0db8) + 0001 + 0002 + 0011 + 0008 = 5b72 + 1c = 5b8e.
        let v6 = PseudoHeader::V6 {
            source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
            destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
        };
        assert_eq!(v6.sum(PROTOCOL_UDP, 8).folded(), 0x5b8e);
    }

    #[test]
    fn families_do_not_mix() {
        let (v4, v6) = (
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        );
        assert_eq!(PseudoHeader::new(v4, v6), None);
        assert_eq!(PseudoHeader::new(v6, v4), None);
        assert!(PseudoHeader::new(v4, v4).is_some() && PseudoHeader::new(v6, v6).is_some());
    }
}
