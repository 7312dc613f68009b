//! Errors of the network about segments that the host sent: ICMP and ICMPv6.

use std::net::{IpAddr, SocketAddr};

use comity_tcp::checksum::{Checksum, PROTOCOL_TCP};
use comity_units::SeqNo;
use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type, IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice,
};

use crate::packet::Packet;
use crate::tuple::Tuple;

/// The minimum MTU that the host accepts in a report. A forged report of less would make it send
/// tiny segments. No IPv6 path has a smaller MTU (RFC 8200, section 5); for IPv4, this is the limit
/// of Linux.
const MIN_MTU_V4: u32 = 552;
const MIN_MTU_V6: u32 = 1_280;
/// MTUs of common links, for routers that do not report one (RFC 1191, section 7.1).
const PLATEAUS: [u32; 6] = [4_352, 2_002, 1_492, 1_280, 1_006, MIN_MTU_V4];

/// The problem with a packet that the network reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It is too large for a path with this MTU.
    TooBig { mtu: u32 },
    /// It cannot be delivered.
    Unreachable {
        /// Whether it will never be delivered. Only reports of the destination or of a filter mean
        /// this (RFC 1122, section 4.2.3.9).
        is_final: bool,
    },
}

/// The minimum MTU of a path to `peer`.
pub(crate) const fn min_mtu(peer: IpAddr) -> u32 {
    match peer {
        IpAddr::V4(_) => MIN_MTU_V4,
        IpAddr::V6(_) => MIN_MTU_V6,
    }
}

/// An error about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpError {
    pub(crate) problem: Problem,
    /// The connection of the segment.
    pub(crate) tuple: Tuple,
    /// The segment's sequence number, which is evidence that the error is not forged (RFC 5927,
    /// section 4.1).
    pub(crate) sequence: SeqNo,
}

/// Reads an error about a segment; `None` for every other message.
pub(crate) fn read(packet: &Packet<'_>) -> Option<IcmpError> {
    match (packet.source, packet.destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => read_v4(packet.payload),
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let message = Icmpv6Slice::from_slice(packet.payload).ok()?;
            let is_valid = message.is_checksum_valid(source.octets(), destination.octets());
            is_valid.then(|| read_v6(&message))?
        }
        _ => None,
    }
}

fn read_v4(bytes: &[u8]) -> Option<IcmpError> {
    if !Checksum::new().then(bytes).is_intact() {
        return None;
    }
    let message = Icmpv4Slice::from_slice(bytes).ok()?;
    let Icmpv4Type::DestinationUnreachable(reason) = message.icmp_type() else {
        return None;
    };
    let original = Ipv4HeaderSlice::from_slice(message.payload()).ok()?;
    let problem = match reason {
        DestUnreachableHeader::FragmentationNeeded { next_hop_mtu } => {
            let reported = match next_hop_mtu {
                0 => plateau_below(u32::from(original.total_len())),
                mtu => u32::from(mtu),
            };
            Problem::TooBig {
                mtu: reported.max(MIN_MTU_V4),
            }
        }
        reason => Problem::Unreachable {
            is_final: matches!(
                reason,
                DestUnreachableHeader::Protocol
                    | DestUnreachableHeader::Port
                    | DestUnreachableHeader::NetworkProhibited
                    | DestUnreachableHeader::HostProhibited
                    | DestUnreachableHeader::FilterProhibited
            ),
        },
    };
    let rest = message.payload().get(original.slice().len()..)?;
    if original.protocol() != IpNumber::TCP || original.is_fragmenting_payload() {
        return None;
    }
    about(
        problem,
        original.source_addr().into(),
        original.destination_addr().into(),
        rest,
    )
}

fn read_v6(message: &Icmpv6Slice<'_>) -> Option<IcmpError> {
    let problem = match message.icmp_type() {
        Icmpv6Type::PacketTooBig { mtu } => Problem::TooBig {
            mtu: mtu.max(MIN_MTU_V6),
        },
        Icmpv6Type::DestinationUnreachable(code) => Problem::Unreachable {
            is_final: matches!(
                code,
                DestUnreachableCode::Prohibited
                    | DestUnreachableCode::Port
                    | DestUnreachableCode::SourceAddressFailedPolicy
                    | DestUnreachableCode::RejectRoute
            ),
        },
        _ => return None,
    };
    let original = Ipv6HeaderSlice::from_slice(message.payload()).ok()?;
    // The host sends no extension headers.
    if original.next_header().0 != PROTOCOL_TCP {
        return None;
    }
    let rest = message.payload().get(original.slice().len()..)?;
    about(
        problem,
        original.source_addr().into(),
        original.destination_addr().into(),
        rest,
    )
}

/// The error about the segment that begins with `segment`, from `source` to `destination`. At least
/// its first eight bytes are present (RFC 792), with its ports and its sequence number.
fn about(
    problem: Problem,
    source: IpAddr,
    destination: IpAddr,
    segment: &[u8],
) -> Option<IcmpError> {
    let [s0, s1, d0, d1, q0, q1, q2, q3] = *segment.first_chunk()?;
    Some(IcmpError {
        problem,
        tuple: Tuple {
            local: SocketAddr::new(source, u16::from_be_bytes([s0, s1])),
            remote: SocketAddr::new(destination, u16::from_be_bytes([d0, d1])),
        },
        sequence: SeqNo::new(u32::from_be_bytes([q0, q1, q2, q3])),
    })
}

/// The largest common MTU below the length of a packet that was too large.
fn plateau_below(length: u32) -> u32 {
    let below = PLATEAUS.into_iter().find(|plateau| *plateau < length);
    below.unwrap_or(MIN_MTU_V4)
}
