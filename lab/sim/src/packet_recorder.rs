//! Records every packet at every link, and every section.

use std::collections::BTreeSet;

use comity_tcp::{Flags, Segment};
use comity_units::{SeqNo, Time};

use crate::engine::{Body, FlowEvent, FlowEventKind, LinkEvent, Observer, Packet, SectionEvent};
use crate::network::Network;
use crate::packets::{PacketLog, PacketRecord, SectionRecord};

/// An [`Observer`] that records every packet at every link, 120 bytes for each.
#[derive(Debug)]
pub struct PacketRecorder {
    log: PacketLog,
    flows: Vec<Offsets>,
    /// Flow, direction, time of sending and sequence number of each retransmission.
    retransmissions: BTreeSet<(u32, bool, Time, u32)>,
}

/// The offsets of one flow, by direction of the payload: to the destination, to the source.
#[derive(Clone, Debug, Default)]
struct Offsets([Option<Highest>; 2]);

/// The highest sequence number so far, with its offset.
#[derive(Clone, Copy, Debug)]
struct Highest {
    sequence: SeqNo,
    offset: u64,
}

impl Offsets {
    /// The stream offset of a sequence number: the one nearest to the highest so far. The first
    /// number is that of a SYN or of the first payload.
    fn of(&mut self, is_return: bool, sequence: SeqNo) -> u64 {
        let highest = self.0[usize::from(is_return)].get_or_insert(Highest {
            sequence,
            offset: 0,
        });
        let distance = i64::from(sequence.distance_from(highest.sequence));
        let offset = highest.offset.saturating_add_signed(distance);
        if distance > 0 {
            *highest = Highest { sequence, offset };
        }
        offset
    }
}

impl PacketRecorder {
    /// A recorder for one run of `network`.
    pub fn new(network: &Network) -> Self {
        Self {
            log: PacketLog::default(),
            flows: vec![Offsets::default(); network.flows.len()],
            retransmissions: BTreeSet::new(),
        }
    }

    /// What was recorded.
    pub fn finish(mut self) -> PacketLog {
        // The packets of each link are in order already, but the engine computes some links ahead
        // of others.
        self.log.records.sort_by_key(|record| record.offered);
        self.log
            .sections
            .sort_by_key(|record| (record.flow, record.settled));
        self.log
    }

    /// The offsets of the payload and of the acknowledgement of a segment.
    fn offsets(&mut self, packet: &Packet, segment: &Segment) -> Option<(u64, Option<u64>)> {
        let offsets = self.flows.get_mut(packet.flow as usize)?;
        let sequence = offsets.of(packet.is_return, segment.sequence);
        let is_ack = segment.flags.contains(Flags::ACK);
        let acknowledgement =
            is_ack.then(|| offsets.of(!packet.is_return, segment.acknowledgement));
        Some((sequence, acknowledgement))
    }
}

/// What distinguishes a transmission from all others of its flow.
fn key(packet: &Packet, segment: &Segment) -> (u32, bool, Time, u32) {
    let sequence = segment.sequence.get();
    (packet.flow, packet.is_return, packet.sent_at, sequence)
}

impl Observer for PacketRecorder {
    fn on_flow(&mut self, _: u32, event: &FlowEvent<'_>) {
        let FlowEventKind::Sent(packet) = event.kind else {
            return;
        };
        let Body::Tcp(segment) = &packet.body else {
            return;
        };
        let end = segment.sequence + segment.sequence_length();
        let Some(offsets) = self.flows.get_mut(packet.flow as usize) else {
            return;
        };
        let before = offsets.0[usize::from(packet.is_return)].map(|highest| highest.offset);
        offsets.of(packet.is_return, segment.sequence);
        let end = offsets.of(packet.is_return, end);
        if segment.payload > 0 && before.is_some_and(|before| end <= before) {
            self.retransmissions.insert(key(packet, segment));
        }
    }

    fn on_section(&mut self, flow: u32, event: &SectionEvent) {
        let SectionEvent {
            now: settled,
            frame_type,
            bytes,
            deadline,
            completed,
        } = *event;
        self.log.sections.push(SectionRecord {
            flow,
            settled,
            frame_type,
            bytes,
            deadline,
            completed,
        });
    }

    fn on_link(&mut self, link: u32, event: &LinkEvent<'_>) {
        let packet = event.packet;
        let mut record = PacketRecord {
            offered: event.offered_at,
            departure: event.fate.departure(),
            arrival: event.fate.arrival(),
            fate: event.fate.name(),
            link,
            flow: packet.flow,
            is_return: packet.is_return,
            wire_bytes: packet.wire,
            sequence: 0,
            payload_bytes: None,
            acknowledgement: None,
            is_retransmission: None,
        };
        match &packet.body {
            Body::Datagram(number) => record.sequence = *number,
            Body::Sections(packet) => record.sequence = packet.number.get(),
            Body::Tcp(segment) => {
                let Some((sequence, acknowledgement)) = self.offsets(packet, segment) else {
                    return;
                };
                let is_retransmission = self.retransmissions.contains(&key(packet, segment));
                record.sequence = sequence;
                record.acknowledgement = acknowledgement;
                record.payload_bytes = Some(segment.payload);
                record.is_retransmission = Some(is_retransmission);
            }
        }
        self.log.records.push(record);
    }
}
