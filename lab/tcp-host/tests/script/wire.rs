//! Between the segments of a script and packets, written and read by another library than the
//! host's.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use etherparse::icmpv6::DestUnreachableCode;
use etherparse::{
    Icmpv4Type, Icmpv6Type, IpDscp, IpEcn, IpFragOffset, IpHeaders, IpNumber, Ipv4Header,
    Ipv6FlowLabel, Ipv6Header, NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TcpOptions,
    TransportSlice, icmpv4,
};

use super::language::{Family, Flags, Icmp, Problem, Segment, TcpOption};

/// The port of the side that is connected to.
pub(super) const SERVICE: u16 = 8_080;
/// The peer's port where the peer connects.
const PEER_PORT: u16 = 50_000;
/// The peer's first sequence number: its numbers soon begin anew at 0.
const PEER_INITIAL: u32 = 0u32.wrapping_sub(700);

pub(super) const fn local(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 0, 1)),
        Family::V6 => IpAddr::V6(std::net::Ipv6Addr::new(0xfd3d, 0, 0, 0, 0, 0, 0, 1)),
    }
}

pub(super) const fn peer(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        Family::V6 => IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    }
}

/// The MTU at which segments of 1,460 bytes fill a packet.
pub(super) const fn mtu(family: Family) -> u16 {
    match family {
        Family::V4 => 1_500,
        Family::V6 => 1_520,
    }
}

/// The byte of a stream at `position`; the first one is at 1.
const fn byte(position: u32) -> u8 {
    (position.wrapping_mul(2_654_435_761) >> 24) as u8
}

/// The bytes of a stream from `start` on.
pub(super) fn stream(start: u32, length: u32) -> Vec<u8> {
    (start..start + length).map(byte).collect()
}

/// Translates one connection.
pub(super) struct Wire {
    family: Family,
    local: SocketAddr,
    peer: SocketAddr,
    /// The stack's first sequence number, once it was seen.
    local_initial: Option<u32>,
    /// What the stack's timestamps in the script are on the wire.
    timestamps: BTreeMap<u32, u32>,
}

impl Wire {
    pub(super) const fn new(family: Family) -> Self {
        Self {
            family,
            local: SocketAddr::new(local(family), SERVICE),
            peer: SocketAddr::new(peer(family), PEER_PORT),
            local_initial: None,
            timestamps: BTreeMap::new(),
        }
    }

    /// The stack opens the connection. Its port shows in its first packet.
    pub(super) fn connects(&mut self) {
        self.local.set_port(0);
        self.peer.set_port(SERVICE);
    }

    // ------------------------------------------------------------------- writing

    /// The packet of a segment from the peer.
    pub(super) fn write(&self, segment: &Segment) -> Result<Vec<u8>, String> {
        let mut header = TcpHeader::new(self.peer.port(), self.local.port(), 0, 0);
        header.sequence_number = PEER_INITIAL.wrapping_add(segment.start);
        header.window_size = segment.window.unwrap_or_default();
        let base = self.local_initial.unwrap_or_default();
        if segment.flags.ack {
            header.acknowledgment_number = base.wrapping_add(segment.acknowledgement);
        }
        let Flags {
            fin,
            syn,
            rst,
            psh,
            ack,
            ece,
            cwr,
        } = segment.flags;
        (header.fin, header.syn, header.rst, header.psh) = (fin, syn, rst, psh);
        (header.ack, header.ece, header.cwr) = (ack, ece, cwr);
        let options = self.options(segment)?;
        header
            .set_options_raw(&options)
            .map_err(|_| format!("options of {} bytes, expected at most 40", options.len()))?;
        let payload = stream(segment.start, segment.length);
        let ip = self.ip(self.peer, self.local, segment.ecn.unwrap_or_default());
        let mut packet = Vec::new();
        PacketBuilder::ip(ip)
            .tcp_header(header)
            .write(&mut packet, &payload)
            .map_err(|problem| problem.to_string())?;
        Ok(packet)
    }

    fn options(&self, segment: &Segment) -> Result<Vec<u8>, String> {
        let base = self.local_initial.unwrap_or_default();
        let mut bytes = Vec::new();
        for option in segment.options.iter().flatten() {
            match option {
                TcpOption::EndOfList => bytes.push(0),
                TcpOption::Nop => bytes.push(1),
                TcpOption::MaxSegmentSize(size) => {
                    bytes.extend([2, 4]);
                    bytes.extend(size.to_be_bytes());
                }
                TcpOption::WindowScale(shift) => bytes.extend([3, 3, *shift]),
                TcpOption::SackPermitted => bytes.extend([4, 2]),
                TcpOption::Sack(blocks) => {
                    bytes.extend([5, 2 + 8 * blocks.len() as u8]);
                    for (start, end) in blocks {
                        bytes.extend(base.wrapping_add(*start).to_be_bytes());
                        bytes.extend(base.wrapping_add(*end).to_be_bytes());
                    }
                }
                TcpOption::Timestamps { value, echo } => {
                    let echo = match self.timestamps.get(echo) {
                        Some(live) => *live,
                        None if *echo == 0 || !segment.flags.ack => *echo,
                        None => return Err(format!("ecr {echo} is no timestamp of the stack")),
                    };
                    bytes.extend([8, 10]);
                    bytes.extend(value.to_be_bytes());
                    bytes.extend(echo.to_be_bytes());
                }
            }
        }
        // The list ends where the header does.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Ok(bytes)
    }

    fn ip(&self, from: SocketAddr, to: SocketAddr, ecn: u8) -> IpHeaders {
        match (from.ip(), to.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => IpHeaders::Ipv4(
                Ipv4Header {
                    dscp: IpDscp::ZERO,
                    ecn: IpEcn::try_new(ecn & 3).unwrap_or_default(),
                    dont_fragment: true,
                    fragment_offset: IpFragOffset::ZERO,
                    time_to_live: 64,
                    protocol: IpNumber::TCP,
                    source: source.octets(),
                    destination: destination.octets(),
                    ..Ipv4Header::default()
                },
                Default::default(),
            ),
            (IpAddr::V6(source), IpAddr::V6(destination)) => IpHeaders::Ipv6(
                Ipv6Header {
                    traffic_class: ecn & 3,
                    flow_label: Ipv6FlowLabel::ZERO,
                    payload_length: 0,
                    next_header: IpNumber::TCP,
                    hop_limit: 64,
                    source: source.octets(),
                    destination: destination.octets(),
                },
                Default::default(),
            ),
            _ => unreachable!("one family"),
        }
    }

    /// The packet of an error about a segment of the stack.
    pub(super) fn write_icmp(&self, icmp: &Icmp) -> Result<Vec<u8>, String> {
        let base = self
            .local_initial
            .ok_or("an error before the first packet")?;
        let sequence = base.wrapping_add(icmp.start);
        let mut quoted = Vec::new();
        PacketBuilder::ip(self.ip(self.local, self.peer, 0))
            .tcp(self.local.port(), self.peer.port(), sequence, 0)
            .write(&mut quoted, &stream(icmp.start, icmp.length))
            .map_err(|problem| problem.to_string())?;
        let mut packet = Vec::new();
        let result = match (peer(self.family), local(self.family)) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                // The header of IP and eight bytes (RFC 792).
                quoted.truncate(28);
                let reason = match icmp.problem {
                    Problem::TooBig { mtu } => {
                        let next_hop_mtu = mtu as u16;
                        icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu }
                    }
                    Problem::PortUnreachable => icmpv4::DestUnreachableHeader::Port,
                    Problem::HostUnreachable => icmpv4::DestUnreachableHeader::Host,
                };
                PacketBuilder::ipv4(from.octets(), to.octets(), 64)
                    .icmpv4(Icmpv4Type::DestinationUnreachable(reason))
                    .write(&mut packet, &quoted)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let reason = match icmp.problem {
                    Problem::TooBig { mtu } => Icmpv6Type::PacketTooBig { mtu },
                    Problem::PortUnreachable => {
                        Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Port)
                    }
                    Problem::HostUnreachable => {
                        Icmpv6Type::DestinationUnreachable(DestUnreachableCode::Address)
                    }
                };
                quoted.truncate(1_200);
                PacketBuilder::ipv6(from.octets(), to.octets(), 64)
                    .icmpv6(reason)
                    .write(&mut packet, &quoted)
            }
            _ => unreachable!("one family"),
        };
        result.map_err(|problem| problem.to_string())?;
        Ok(packet)
    }

    // ------------------------------------------------------------------- reading

    /// Whether a packet is one of TCP. The kernel also sends others, such as MLD.
    pub(super) fn is_tcp(packet: &[u8]) -> bool {
        let sliced = SlicedPacket::from_ip(packet);
        sliced.is_ok_and(|sliced| matches!(sliced.transport, Some(TransportSlice::Tcp(_))))
    }

    /// Reads a packet of the stack. What the `expected` segment leaves open is left open.
    pub(super) fn read(&mut self, packet: &[u8], expected: &Segment) -> Result<Segment, String> {
        let sliced = SlicedPacket::from_ip(packet).map_err(|problem| problem.to_string())?;
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
            return Err(format!("not TCP: {packet:?}"));
        };
        let (source, destination, ecn, checksum) = match sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let (source, destination) = (header.source(), header.destination());
                let own = header.to_header();
                if own.calc_header_checksum() != own.header_checksum {
                    return Err("a wrong checksum of the header".into());
                }
                let checksum = tcp.calc_checksum_ipv4(source, destination);
                let ecn = header.ecn().value();
                (
                    IpAddr::from(source),
                    IpAddr::from(destination),
                    ecn,
                    checksum,
                )
            }
            Some(NetSlice::Ipv6(ip)) => {
                let header = ip.header().to_header();
                let checksum = tcp.calc_checksum_ipv6(header.source, header.destination);
                let ecn = header.traffic_class & 3;
                (
                    header.source.into(),
                    header.destination.into(),
                    ecn,
                    checksum,
                )
            }
            _ => return Err(format!("not IP: {packet:?}")),
        };
        let header = tcp.to_header();
        let checksum = checksum.map_err(|problem| problem.to_string())?;
        // Linux writes the sum of zero as 0xffff, which is the same in one's complement.
        let is_zero = |sum| sum == 0 || sum == 0xffff;
        if checksum != header.checksum && !(is_zero(checksum) && is_zero(header.checksum)) {
            return Err(format!(
                "checksum {:#06x}, expected {checksum:#06x}",
                header.checksum
            ));
        }
        let from = SocketAddr::new(source, header.source_port);
        let to = SocketAddr::new(destination, header.destination_port);
        if self.local.port() == 0 {
            self.local.set_port(from.port());
        }
        if (from, to) != (self.local, self.peer) {
            return Err(format!("a packet from {from} to {to}"));
        }
        if header.syn && self.local_initial.is_none() {
            self.local_initial = Some(header.sequence_number);
        }
        let base = self.local_initial.unwrap_or_default();
        let start = header.sequence_number.wrapping_sub(base);
        let length = tcp.payload().len() as u32;
        if tcp.payload() != stream(start, length) {
            return Err(format!("the payload of {start} is not what was written"));
        }
        let acknowledgement = match header.ack {
            true => header.acknowledgment_number.wrapping_sub(PEER_INITIAL),
            false => 0,
        };
        Ok(Segment {
            ecn: expected.ecn.map(|_| ecn),
            flags: Flags {
                fin: header.fin,
                syn: header.syn,
                rst: header.rst,
                psh: header.psh,
                ack: header.ack,
                ece: header.ece,
                cwr: header.cwr,
            },
            start,
            length,
            acknowledgement,
            window: expected.window.map(|_| header.window_size),
            options: match &expected.options {
                Some(expected) => Some(self.read_options(&header.options, expected)?),
                None => None,
            },
        })
    }

    fn read_options(
        &mut self,
        options: &TcpOptions,
        expected: &[TcpOption],
    ) -> Result<Vec<TcpOption>, String> {
        let mut found = Vec::new();
        let mut rest = options.as_slice();
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, it| sum << 8 | u32::from(*it));
        while let [kind, tail @ ..] = rest {
            let (length, option) = match (kind, tail) {
                (0, _) => (1, TcpOption::EndOfList),
                (1, _) => (1, TcpOption::Nop),
                (2, [4, size @ ..]) => (4, TcpOption::MaxSegmentSize(number(&size[..2]) as u16)),
                (3, [3, shift, ..]) => (3, TcpOption::WindowScale(*shift)),
                (4, [2, ..]) => (2, TcpOption::SackPermitted),
                (5, [length, blocks @ ..]) => {
                    let length = usize::from(*length);
                    let edge = |bytes: &[u8]| number(bytes).wrapping_sub(PEER_INITIAL);
                    let blocks = blocks[..length - 2].chunks(8);
                    let blocks = blocks.map(|it| (edge(&it[..4]), edge(&it[4..])));
                    (length, TcpOption::Sack(blocks.collect()))
                }
                (8, [10, values @ ..]) => {
                    let (live, echo) = (number(&values[..4]), number(&values[4..8]));
                    let value = self.timestamp(live, expected);
                    (10, TcpOption::Timestamps { value, echo })
                }
                _ => return Err(format!("an option that scripts do not know: {rest:?}")),
            };
            found.push(option);
            rest = &rest[length..];
        }
        Ok(found)
    }

    /// The timestamp of the script: the first time it appears, it may be any number.
    fn timestamp(&mut self, live: u32, expected: &[TcpOption]) -> u32 {
        let value = expected.iter().find_map(|option| match option {
            TcpOption::Timestamps { value, .. } => Some(*value),
            _ => None,
        });
        let Some(value) = value else {
            return live;
        };
        self.timestamps.insert(value, live);
        value
    }
}
