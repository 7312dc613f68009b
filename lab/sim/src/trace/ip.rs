//! IP and UDP headers for packets that exist only in a trace.
//!
//! Source: RFC 791 (IPv4), RFC 8200 (IPv6), RFC 768 (UDP).

use comity_tcp::checksum::{Checksum, PROTOCOL_UDP, PseudoHeader};
use comity_tcp::codec::Ports;

/// The length of a UDP header in bytes.
pub(super) const UDP_HEADER: usize = 8;
/// The initial value of hosts. The simulator counts no hops.
const HOP_LIMIT: u8 = 64;

/// The length of the IP header between two addresses, in bytes.
pub(super) const fn ip_header_length(addresses: &PseudoHeader) -> usize {
    match addresses {
        PseudoHeader::V4 { .. } => 20,
        PseudoHeader::V6 { .. } => 40,
    }
}

/// Appends an IP header.
///
/// IPv4 packets are marked as not to be fragmented and have the identification 0 (RFC 6864).
///
/// * `total`: bytes of the packet, this header included.
pub(super) fn push_ip(addresses: &PseudoHeader, protocol: u8, total: u16, out: &mut Vec<u8>) {
    match addresses {
        PseudoHeader::V4 {
            source,
            destination,
        } => {
            let [length_high, length_low] = total.to_be_bytes();
            let front = [
                0x45,
                0,
                length_high,
                length_low,
                0,
                0,
                0x40,
                0,
                HOP_LIMIT,
                protocol,
            ];
            let (source, destination) = (source.octets(), destination.octets());
            let checksum = Checksum::new()
                .then(&front)
                .then(&source)
                .then(&destination)
                .finish();
            out.extend_from_slice(&front);
            out.extend_from_slice(&checksum.to_be_bytes());
            out.extend_from_slice(&source);
            out.extend_from_slice(&destination);
        }
        PseudoHeader::V6 {
            source,
            destination,
        } => {
            let payload = total.saturating_sub(ip_header_length(addresses) as u16);
            let [length_high, length_low] = payload.to_be_bytes();
            out.extend_from_slice(&[0x60, 0, 0, 0, length_high, length_low, protocol, HOP_LIMIT]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
    }
}

/// Appends the UDP header of a datagram whose payload is all zeros.
///
/// * `length`: bytes of the datagram, this header included.
pub(super) fn push_udp(addresses: &PseudoHeader, ports: Ports, length: u16, out: &mut Vec<u8>) {
    let mut front = [0; UDP_HEADER - 2];
    front[0..2].copy_from_slice(&ports.source.to_be_bytes());
    front[2..4].copy_from_slice(&ports.destination.to_be_bytes());
    front[4..6].copy_from_slice(&length.to_be_bytes());
    // Zero would mean that there is no checksum. All ones is the same number.
    let checksum = match addresses.sum(PROTOCOL_UDP, length).then(&front).finish() {
        0 => 0xffff,
        checksum => checksum,
    };
    out.extend_from_slice(&front);
    out.extend_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn an_ipv4_header_by_hand() {
        let addresses = PseudoHeader::V4 {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
        };
        let mut out = Vec::new();
        push_ip(&addresses, 6, 40, &mut out);
        // 4500 + 0028 + 4000 + 4006 + 0a00 + 0001 + 0a00 + 0002 = d931, complement 26ce.
        let expected = [
            0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0x26, 0xce, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        assert_eq!(out, expected);
        assert_eq!(out.len(), ip_header_length(&addresses));
    }

    #[test]
    fn an_ipv6_header_by_hand() {
        let addresses = PseudoHeader::V6 {
            source: Ipv6Addr::LOCALHOST,
            destination: Ipv6Addr::UNSPECIFIED,
        };
        let mut out = Vec::new();
        push_ip(&addresses, 17, 1240, &mut out);
        let mut expected = [0; 40];
        expected[..8].copy_from_slice(&[0x60, 0, 0, 0, 0x04, 0xb0, 17, 64]);
        expected[23] = 1;
        assert_eq!(out, expected);
        assert_eq!(out.len(), ip_header_length(&addresses));
    }

    #[test]
    fn a_udp_checksum_of_zero_is_written_as_all_ones() {
        let addresses = PseudoHeader::V4 {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
        };
        let checksum = |source| {
            let mut out = Vec::new();
            push_udp(
                &addresses,
                Ports {
                    source,
                    destination: 0x0100,
                },
                12,
                &mut out,
            );
            assert_eq!(out[..6], [(source >> 8) as u8, source as u8, 1, 0, 0, 12]);
            u16::from_be_bytes([out[6], out[7]])
        };
        // 0a00 + 0001 + 0a00 + 0002 + 0011 + 000c + 0100 + 000c = 152c; with ead3 all ones.
        assert_eq!(checksum(0xead3), 0xffff);
        assert_eq!(checksum(0xead2), 0x0001);
        assert_eq!(checksum(0xead4), 0xfffe);
    }
}
