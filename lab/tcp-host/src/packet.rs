//! Reads the IP packets that arrive, and writes those that are sent.

use std::net::{IpAddr, SocketAddr};

use comity_congestion::Ecn;
use comity_tcp::Segment;
use comity_tcp::checksum::{Checksum, PROTOCOL_TCP, PseudoHeader};
use comity_tcp::codec::{self, EncodeError, Ports};
use etherparse::{IpNumber, IpSlice};

use crate::tuple::Tuple;

/// The IPv4 header without options, and the IPv6 header without extensions, in bytes.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// The TTL and hop limit of sent packets.
const HOP_LIMIT: u8 = 64;
/// The flag of IPv4 that forbids fragmentation, as path MTU discovery requires (RFC 1191).
const DONT_FRAGMENT: u8 = 0x40;

/// The length of the IP header before a segment to `address`.
pub(crate) const fn ip_header(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => IPV4_HEADER as u32,
        IpAddr::V6(_) => IPV6_HEADER as u32,
    }
}

/// The protocols that the host supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Icmp,
    Tcp,
    Other,
}

/// A packet that is not a fragment.
#[derive(Clone, Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) ecn: Ecn,
    pub(crate) protocol: Protocol,
    pub(crate) payload: &'a [u8],
}

/// Why a packet cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    Malformed,
    Fragment,
}

impl<'a> Packet<'a> {
    /// Reads the IP header. Padding after the packet is ignored.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let slice = IpSlice::from_slice(bytes).map_err(|_| Unreadable::Malformed)?;
        let ecn = match &slice {
            IpSlice::Ipv4(ip) => {
                if !Checksum::new().then(ip.header().slice()).is_intact() {
                    return Err(Unreadable::Malformed);
                }
                ip.header().ecn().value()
            }
            // The traffic class is in the first two bytes.
            IpSlice::Ipv6(ip) => ip.header().traffic_class() & 0b11,
        };
        if slice.is_fragmenting_payload() {
            return Err(Unreadable::Fragment);
        }
        let is_v4 = matches!(slice, IpSlice::Ipv4(_));
        let protocol = match slice.payload_ip_number() {
            IpNumber::TCP => Protocol::Tcp,
            IpNumber::ICMP if is_v4 => Protocol::Icmp,
            IpNumber::IPV6_ICMP if !is_v4 => Protocol::Icmp,
            _ => Protocol::Other,
        };
        Ok(Self {
            source: slice.source_addr(),
            destination: slice.destination_addr(),
            ecn: codepoint(ecn),
            protocol,
            payload: slice.payload().payload,
        })
    }
}

/// The codepoint in the two bits of ECN (RFC 3168, section 5).
const fn codepoint(bits: u8) -> Ecn {
    match bits & 0b11 {
        0b00 => Ecn::NotCapable,
        0b01 => Ecn::Capable1,
        0b10 => Ecn::Capable0,
        _ => Ecn::CongestionExperienced,
    }
}

const fn bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotCapable => 0b00,
        Ecn::Capable1 => 0b01,
        Ecn::Capable0 => 0b10,
        Ecn::CongestionExperienced => 0b11,
    }
}

/// Replaces `out` by the packet of a segment from the local end of `tuple`, with `payload` in two
/// pieces. `number` becomes the identification of IPv4.
///
/// # Errors
/// If the segment cannot be written: its options do not fit, or it is too long for IP.
pub(crate) fn write(
    tuple: &Tuple,
    segment: &Segment,
    number: u16,
    payload: [&[u8]; 2],
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let (source, destination) = (tuple.local.ip(), tuple.remote.ip());
    let header = codec::encoded_length(segment);
    let length = header + segment.payload as usize;
    out.clear();
    // A segment has fewer than 2^16 bytes; otherwise the codec refuses it.
    let whole = length as u16;
    let Some(addresses) = PseudoHeader::new(source, destination) else {
        debug_assert!(false, "both ends of a connection have one family");
        return Ok(());
    };
    match addresses {
        PseudoHeader::V4 {
            source,
            destination,
        } => {
            let [l0, l1] = whole.saturating_add(IPV4_HEADER as u16).to_be_bytes();
            let mut ip = [0_u8; IPV4_HEADER];
            ip[..4].copy_from_slice(&[0x45, bits(segment.ecn), l0, l1]);
            ip[4..6].copy_from_slice(&number.to_be_bytes());
            ip[6] = DONT_FRAGMENT;
            ip[8..10].copy_from_slice(&[HOP_LIMIT, PROTOCOL_TCP]);
            ip[12..16].copy_from_slice(&source.octets());
            ip[16..20].copy_from_slice(&destination.octets());
            let checksum = Checksum::new().then(&ip).finish();
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            out.extend(ip);
        }
        PseudoHeader::V6 {
            source,
            destination,
        } => {
            let [l0, l1] = whole.to_be_bytes();
            out.extend([0x60, bits(segment.ecn) << 4, 0, 0]);
            out.extend([l0, l1, PROTOCOL_TCP, HOP_LIMIT]);
            out.extend(source.octets());
            out.extend(destination.octets());
        }
    }
    let start = out.len();
    let sum = Checksum::new().then(payload[0]).then(payload[1]);
    out.resize(start + header, 0);
    out.extend_from_slice(payload[0]);
    out.extend_from_slice(payload[1]);
    let ports = Ports {
        source: tuple.local.port(),
        destination: tuple.remote.port(),
    };
    let space = out.get_mut(start..).unwrap_or_default();
    codec::encode(segment, ports, &addresses, sum, space)?;
    Ok(())
}

/// A segment with its payload, as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) tuple: Tuple,
    pub(crate) segment: Segment,
    pub(crate) payload: &'a [u8],
    /// The number of skipped options of unknown kinds.
    pub(crate) skipped_options: u8,
}

/// Reads the segment in a packet.
pub(crate) fn segment<'a>(packet: &Packet<'a>) -> Result<Arrived<'a>, codec::DecodeError> {
    let Some(addresses) = PseudoHeader::new(packet.source, packet.destination) else {
        // Both addresses come from one IP header.
        return Err(codec::DecodeError::HeaderTruncated { available: 0 });
    };
    let decoded = codec::decode(packet.payload, &addresses)?;
    let mut segment = decoded.segment;
    segment.ecn = packet.ecn;
    Ok(Arrived {
        tuple: Tuple {
            local: SocketAddr::new(packet.destination, decoded.ports.destination),
            remote: SocketAddr::new(packet.source, decoded.ports.source),
        },
        segment,
        payload: packet.payload.get(decoded.payload).unwrap_or_default(),
        skipped_options: decoded.skipped_options,
    })
}

#[cfg(test)]
mod tests {
    use comity_tcp::Flags;
    use comity_units::SeqNo;

    use super::*;

    fn tuple(local: &str, remote: &str) -> Tuple {
        Tuple {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        }
    }

    #[test]
    fn a_written_packet_is_read_as_the_same_segment() {
        for (local, remote, header) in [
            ("10.0.0.1:80", "10.0.0.2:50000", 20),
            ("[2001:db8::1]:80", "[2001:db8::2]:50000", 40),
        ] {
            for ecn in [
                Ecn::NotCapable,
                Ecn::Capable0,
                Ecn::Capable1,
                Ecn::CongestionExperienced,
            ] {
                let segment = Segment {
                    sequence: SeqNo::new(7),
                    acknowledgement: SeqNo::new(9),
                    payload: 5,
                    window: 100,
                    flags: Flags::ACK | Flags::PSH,
                    ecn,
                    ..Segment::default()
                };
                let sent = tuple(local, remote);
                let mut packet = vec![9; 3];
                write(&sent, &segment, 3, [b"abc", b"de"], &mut packet).unwrap();
                assert_eq!(packet.len(), header + 20 + 5);
                packet.extend([0; 6]);
                let read = Packet::read(&packet).unwrap();
                let arrived = super::segment(&read).unwrap();
                assert_eq!(arrived.segment, segment);
                assert_eq!(arrived.payload, b"abcde");
                assert_eq!(arrived.tuple, tuple(remote, local));
                packet[1] ^= 0x40;
                let is_v4 = header == 20;
                assert_eq!(Packet::read(&packet).is_err(), is_v4, "a header checksum");
            }
        }
    }

    #[test]
    fn fragments_and_truncated_packets_are_not_read() {
        let mut packet = Vec::new();
        let segment = Segment::default();
        let tuple = tuple("10.0.0.1:80", "10.0.0.2:50000");
        write(&tuple, &segment, 0, [&[], &[]], &mut packet).unwrap();
        assert!(Packet::read(&packet).is_ok());
        let truncated = packet.get(..packet.len() - 1).unwrap();
        assert_eq!(Packet::read(truncated).unwrap_err(), Unreadable::Malformed);
        // More fragments follow: the flag and the checksum of the header change equally.
        packet[6] = 0x20;
        packet[10..12].fill(0);
        let sum = Checksum::new().then(&packet[..20]).finish();
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(Packet::read(&packet).unwrap_err(), Unreadable::Fragment);
    }
}
