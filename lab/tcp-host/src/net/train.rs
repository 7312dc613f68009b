//! Combines consecutive segments of a connection into one packet, which the kernel divides again
//! (generic segmentation offload).

use std::io;

use comity_tcp::checksum::{Checksum, PROTOCOL_TCP};
use tun_rs::{
    VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_LEN, VirtioNetHdr,
};

/// The flag of a `virtio_net_hdr`: the checksum field contains only the sum of the pseudo header.
const NEEDS_CHECKSUM: u8 = 1;
/// The maximum packet length that the length field of IPv4 and of IPv6 can state.
const LONGEST: usize = 65_535;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// The maximum length of the headers of IPv6 and TCP.
const HEADERS: usize = 100;
/// Offsets in a TCP header.
const SEQUENCE: usize = 4;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// A packet for the kernel, and the segments that have been appended to it.
#[derive(Debug)]
pub(super) struct Train {
    /// A `virtio_net_hdr`, the packet, and the payload of the appended segments. Empty without a
    /// packet.
    bytes: Vec<u8>,
    /// The first segment, if it has data.
    first: Option<Shape>,
    /// The sequence number of the next segment; `None` if no segment may follow.
    next: Option<u32>,
}

/// A data segment, with headers as the host writes them: IP without options or extensions.
#[derive(Clone, Copy, Debug)]
struct Shape {
    is_v4: bool,
    /// The length of the IP header.
    ip: usize,
    /// The length of both headers.
    headers: usize,
    payload: usize,
    sequence: u32,
    pushes: bool,
}

impl Shape {
    /// `None` unless the packet is a data segment with no flags but ACK and perhaps PSH.
    fn read(packet: &[u8]) -> Option<Self> {
        let (is_v4, ip, protocol) = match packet.first()? >> 4 {
            4 => (true, IPV4_HEADER, packet.get(9)?),
            _ => (false, IPV6_HEADER, packet.get(6)?),
        };
        let tcp = packet.get(ip..)?;
        let headers = ip + usize::from(tcp.get(FLAGS - 1)? >> 4) * 4;
        let flags = *tcp.get(FLAGS)?;
        if *protocol != PROTOCOL_TCP || flags & !PSH != ACK || packet.len() <= headers {
            return None;
        }
        let sequence = tcp.get(SEQUENCE..)?.first_chunk()?;
        Some(Self {
            is_v4,
            ip,
            headers,
            payload: packet.len() - headers,
            sequence: u32::from_be_bytes(*sequence),
            pushes: flags & PSH != 0,
        })
    }

    /// The sequence number of the segment after this one; `None` if no segment may follow. The
    /// kernel divides a train by the payload of its first segment, and sets PSH only in the last
    /// one.
    fn next(&self, first_payload: usize) -> Option<u32> {
        let may_follow = self.payload == first_payload && !self.pushes;
        may_follow.then(|| self.sequence.wrapping_add(self.payload as u32))
    }

    /// The headers of a packet of this shape, without the fields that may differ between the
    /// segments of a train: lengths, the identification of IPv4, sequence number, PSH and
    /// checksums.
    fn constant(&self, packet: &[u8]) -> Option<[u8; HEADERS]> {
        let mut constant = [0; HEADERS];
        let headers = constant.get_mut(..self.headers)?;
        headers.copy_from_slice(packet.get(..self.headers)?);
        let (ip, tcp) = headers.split_at_mut_checked(self.ip)?;
        let varying = if self.is_v4 {
            [2..6, 10..12]
        } else {
            [4..6, 4..6]
        };
        for position in varying {
            ip.get_mut(position)?.fill(0);
        }
        tcp.get_mut(SEQUENCE..SEQUENCE + 4)?.fill(0);
        tcp.get_mut(CHECKSUM..CHECKSUM + 2)?.fill(0);
        *tcp.get_mut(FLAGS)? |= PSH;
        Some(constant)
    }
}

impl Train {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(VIRTIO_NET_HDR_LEN + LONGEST),
            first: None,
            next: None,
        }
    }

    /// Appends a packet. Returns `false` if it cannot follow; the train must then be sent first.
    pub(super) fn append(&mut self, packet: &[u8]) -> bool {
        let shape = Shape::read(packet);
        if !self.bytes.is_empty() {
            return shape.is_some_and(|shape| self.follow(packet, shape).is_some());
        }
        self.bytes.resize(VIRTIO_NET_HDR_LEN, 0);
        self.bytes.extend_from_slice(packet);
        self.first = shape;
        self.next = shape.and_then(|shape| shape.next(shape.payload));
        true
    }

    /// Appends the payload of a packet that continues the train.
    fn follow(&mut self, packet: &[u8], shape: Shape) -> Option<()> {
        let first = self.first?;
        let train = self.bytes.get(VIRTIO_NET_HDR_LEN..)?;
        if shape.sequence != self.next?
            || shape.payload > first.payload
            || train.len() + shape.payload > LONGEST
            || first.headers != shape.headers
            || first.constant(train)? != shape.constant(packet)?
        {
            return None;
        }
        self.bytes.extend_from_slice(packet.get(shape.headers..)?);
        if shape.pushes {
            let flags = VIRTIO_NET_HDR_LEN + first.ip + FLAGS;
            *self.bytes.get_mut(flags)? |= PSH;
        }
        self.next = shape.next(first.payload);
        Some(())
    }

    /// Passes the train to `send`, if there is one, after a `virtio_net_hdr`.
    pub(super) fn leave(&mut self, send: impl FnOnce(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        if let Some(first) = self.first
            && self.bytes.len() > VIRTIO_NET_HDR_LEN + first.headers + first.payload
        {
            self.finish(first)?;
        }
        let sent = send(&self.bytes);
        self.bytes.clear();
        sent
    }

    /// Completes the headers of a train of more than one segment.
    fn finish(&mut self, first: Shape) -> io::Result<()> {
        let Some((header, packet)) = self.bytes.split_at_mut_checked(VIRTIO_NET_HDR_LEN) else {
            return Ok(());
        };
        let (gso_type, length) = if first.is_v4 {
            (VIRTIO_NET_HDR_GSO_TCPV4, packet.len())
        } else {
            (VIRTIO_NET_HDR_GSO_TCPV6, packet.len() - IPV6_HEADER)
        };
        VirtioNetHdr {
            flags: NEEDS_CHECKSUM,
            gso_type,
            hdr_len: first.headers as u16,
            gso_size: first.payload as u16,
            csum_start: first.ip as u16,
            csum_offset: CHECKSUM as u16,
        }
        .encode(header)?;
        let (ip, tcp) = packet.split_at_mut(first.ip);
        let covered = if first.is_v4 {
            put(ip, 2, length as u16);
            put(ip, 10, 0);
            let checksum = Checksum::new().then(ip).finish();
            put(ip, 10, checksum);
            &ip[12..20]
        } else {
            put(ip, 4, length as u16);
            &ip[8..40]
        };
        // The sum of the pseudo header, which the kernel completes.
        let sum = Checksum::new()
            .then(covered)
            .then(&[0, PROTOCOL_TCP])
            .then(&(tcp.len() as u16).to_be_bytes());
        put(tcp, CHECKSUM, sum.folded());
        Ok(())
    }
}

fn put(header: &mut [u8], position: usize, value: u16) {
    if let Some(field) = header.get_mut(position..position + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tun_rs::gso_split;

    use super::*;
    use crate::packet;
    use crate::tuple::Tuple;
    use comity_tcp::{Flags, Segment};
    use comity_units::SeqNo;

    fn written(is_v4: bool, number: u16, segment: &Segment) -> Vec<u8> {
        let end = |last: u8| {
            let ip = if is_v4 {
                std::net::IpAddr::from([10, 77, 0, last])
            } else {
                std::net::IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, u16::from(last)])
            };
            std::net::SocketAddr::new(ip, 9_000)
        };
        let tuple = Tuple {
            local: end(1),
            remote: end(2),
        };
        let payload: Vec<u8> = (0..segment.payload)
            .map(|offset| (segment.sequence.get().wrapping_add(offset) % 251) as u8)
            .collect();
        let mut packet = Vec::new();
        packet::write(&tuple, segment, number, [&payload, &[]], &mut packet).unwrap();
        packet
    }

    /// The packets that the kernel makes of a train, by an independent implementation.
    fn divided(sent: &[u8]) -> Vec<Vec<u8>> {
        let header = VirtioNetHdr::decode(sent).unwrap();
        let mut packet = sent[VIRTIO_NET_HDR_LEN..].to_vec();
        if header.gso_type == 0 {
            assert_eq!(sent[..VIRTIO_NET_HDR_LEN], [0; VIRTIO_NET_HDR_LEN]);
            return vec![packet];
        }
        let is_v6 = packet[0] >> 4 == 6;
        let mut packets = vec![vec![0; 2_000]; 128];
        let mut lengths = [0; 128];
        let count = gso_split(&mut packet, header, &mut packets, &mut lengths, 0, is_v6).unwrap();
        assert!(count > 1, "{count}");
        packets.truncate(count);
        for (packet, length) in packets.iter_mut().zip(lengths) {
            packet.truncate(length);
        }
        packets
    }

    fn sent_as(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut train, mut trains) = (Train::new(), Vec::new());
        let mut keep = |bytes: &[u8]| {
            trains.push(bytes.to_vec());
            Ok(())
        };
        for packet in packets {
            if !train.append(packet) {
                train.leave(&mut keep).unwrap();
                assert!(train.append(packet));
            }
        }
        train.leave(&mut keep).unwrap();
        trains
    }

    proptest! {
        #[test]
        fn the_kernel_divides_a_train_into_the_packets_it_was_made_of(
            is_v4: bool,
            // The payload, the gap before it, and the flags in addition to ACK.
            steps in prop::collection::vec(
                (prop_oneof![4 => Just(1_448_u32), 1 => 0..1_448_u32], prop_oneof![9 => Just(0_u32), 1 => 1..9_u32],
                 prop_oneof![8 => Just(Flags::ACK), 1 => Just(Flags::ACK | Flags::PSH), 1 => Just(Flags::ACK | Flags::FIN)]),
                1..100,
            ),
        ) {
            let mut sequence = u32::MAX - 20_000;
            let numbers = (0_u16..).map(|number| number.wrapping_sub(20));
            let packets: Vec<_> = steps.iter().zip(numbers).map(|((payload, gap, flags), number)| {
                sequence = sequence.wrapping_add(*gap);
                let segment = Segment { sequence: SeqNo::new(sequence), payload: *payload, flags: *flags, ..Segment::default() };
                sequence = sequence.wrapping_add(*payload);
                written(is_v4, number, &segment)
            }).collect();
            let divided: Vec<_> = sent_as(&packets).iter().flat_map(|sent| divided(sent)).collect();
            prop_assert_eq!(divided, packets);
        }
    }

    #[test]
    fn forty_full_segments_are_one_train() {
        let segment = |index: u32| Segment {
            sequence: SeqNo::new(index * 1_448),
            payload: 1_448,
            flags: Flags::ACK,
            ..Segment::default()
        };
        let packets: Vec<_> = (0..40)
            .map(|index| written(true, index as u16, &segment(index)))
            .collect();
        let trains = sent_as(&packets);
        assert_eq!(trains.len(), 1);
        assert_eq!(trains[0].len(), VIRTIO_NET_HDR_LEN + 40 + 40 * 1_448);
    }
}
