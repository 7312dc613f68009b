//! The fields of an IP packet that the router reads or changes: its destination and its ECN bits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The two bits of ECN (RFC 3168).
const ECN: u8 = 0b11;

/// The destination of a packet; `None` if it is not an IP packet.
pub(crate) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => {
            let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some(Ipv4Addr::from(address).into())
        }
        6 => {
            let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some(Ipv6Addr::from(address).into())
        }
        _ => None,
    }
}

/// Whether the sender supports congestion marks: ECT(0), ECT(1) or CE.
pub(crate) fn is_ecn_capable(packet: &[u8]) -> bool {
    match packet {
        [first, second, ..] if first >> 4 == 4 => second & ECN != 0,
        // The traffic class is in the first two bytes.
        [_, second, ..] => (second >> 4) & ECN != 0,
        _ => false,
    }
}

/// The flow of a packet: a hash (FNV-1a) of its addresses, its protocol, and the ports of TCP and
/// UDP. All packets without these are one flow.
pub(crate) fn flow(packet: &[u8]) -> u64 {
    let parts = match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let header = usize::from(packet[0] & 0xf) * 4;
            [
                packet.get(12..20),
                packet.get(9..10),
                packet.get(header..header + 4),
            ]
        }
        Some(6) => [packet.get(8..40), packet.get(6..7), packet.get(40..44)],
        _ => [None; 3],
    };
    let [addresses, protocol, ports] = parts;
    let ports = ports.filter(|_| matches!(protocol, Some([TCP | UDP])));
    let bytes = [addresses, protocol, ports].into_iter().flatten().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The numbers of the protocols that have ports.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Marks a packet with congestion experienced (CE), and corrects the checksum of its header (RFC
/// 1624).
pub(crate) fn mark(packet: &mut [u8]) {
    match packet {
        [first, ..] if *first >> 4 == 4 => {
            let Some(header) = packet.get_mut(..20) else {
                return;
            };
            let word = |header: &[u8], at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
            let before = word(header, 0);
            header[1] |= ECN;
            let after = word(header, 0);
            let sum = u32::from(!word(header, 10)) + u32::from(!before) + u32::from(after);
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            // After two foldings, the sum fits.
            header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        }
        [first, second, ..] if *first >> 4 == 6 => *second |= ECN << 4,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of 20 bytes with its checksum, computed over all its words.
    fn ipv4(ecn: u8) -> [u8; 20] {
        let mut header = [
            0x45, ecn, 0x05, 0xdc, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 19, 0, 1,
        ];
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header
    }

    fn checksum(header: &[u8; 20]) -> u16 {
        let words = header
            .chunks_exact(2)
            .enumerate()
            .filter(|(at, _)| *at != 5);
        let mut sum: u32 = words
            .map(|(_, word)| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn a_marked_header_has_the_checksum_of_all_its_words() {
        for ecn in 0..=3 {
            let mut packet = ipv4(ecn);
            assert_eq!(is_ecn_capable(&packet), ecn != 0);
            mark(&mut packet);
            assert_eq!(packet[1], 3);
            let expected = checksum(&packet).to_be_bytes();
            assert_eq!(packet[10..12], expected, "from {ecn}");
            assert_eq!(
                destination(&packet),
                Some(Ipv4Addr::new(198, 19, 0, 1).into())
            );
        }
    }

    #[test]
    fn packets_of_one_connection_and_direction_are_a_flow() {
        let packet = |ports: [u8; 4], rest: u8| {
            let mut packet = ipv4(0).to_vec();
            packet.extend(ports);
            packet.push(rest);
            packet
        };
        let one = packet([0, 80, 1, 2], 9);
        assert_eq!(flow(&one), flow(&packet([0, 80, 1, 2], 8)));
        assert_ne!(flow(&one), flow(&packet([0, 80, 1, 3], 9)), "another port");
        let mut icmp = one.clone();
        icmp[9] = 1;
        let mut other = packet([7, 7, 7, 7], 9);
        other[9] = 1;
        assert_eq!(flow(&icmp), flow(&other), "ICMP has no ports");
        assert_ne!(flow(&icmp), flow(&one));
        for short in [&[][..], &[0x4f, 0, 0], &[0x60; 39]] {
            flow(short);
        }
    }

    #[test]
    fn ipv6_has_its_traffic_class_across_two_bytes() {
        let mut packet = [0_u8; 40];
        packet[0] = 0x60;
        packet[39] = 9;
        assert!(!is_ecn_capable(&packet));
        packet[1] = 0x20;
        assert!(is_ecn_capable(&packet), "ECT(0) is 10 in bits 4 and 5");
        mark(&mut packet);
        assert_eq!(packet[..2], [0x60, 0x30]);
        assert_eq!(destination(&packet), Some(Ipv6Addr::from(9).into()));
    }

    #[test]
    fn what_is_no_packet_has_no_destination() {
        for short in [&[][..], &[0x45, 0, 0], &[0x60; 39], &[0x15; 60]] {
            assert_eq!(destination(short), None);
            let mut copy = short.to_vec();
            mark(&mut copy);
        }
    }
}
