//! Captures before and after links, in the order of time.
//!
//! Before a link, a packet is captured when it is offered. `bottleneck:before` shows every packet,
//! and a comment that begins with `dropped:` marks those that never arrive. After a link, a packet
//! is captured when it arrives at the far end. `bottleneck:after` shows the packets that a receiver
//! could see, and each has the number of drops since the packet before it.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::IpAddr;

use comity_link::{DropCause, RateProfile};
use comity_transport::wire::limits::UDP_IPV4;
use comity_units::Time;

use super::error::TraceError;
use super::pcapng::{InterfaceDescription, PacketKind, PacketRecord, PcapngWriter};
use super::{flow_ports, node_address};
use crate::engine::{Body, Fate, LinkEvent, Packet};
use crate::network::Network;

/// Where on a link packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapturePoints {
    /// Before its queue.
    Before,
    /// At its far end.
    After,
    /// At both. Readers see each packet twice.
    Both,
}

/// The interfaces of a link in the file.
#[derive(Clone, Copy, Debug, Default)]
struct Interfaces {
    before: Option<u32>,
    after: Option<u32>,
    /// The drops since the last offered packet that arrives.
    dropped: u64,
}

/// A packet that is not written yet.
#[derive(Debug)]
struct Pending {
    interface: u32,
    packet: Packet,
    comment: Option<&'static str>,
    dropped_before: u64,
    /// Whether its fate is known.
    is_settled: bool,
}

/// The position of a packet in the file: its time, and its order among packets of that time.
type Place = (Time, u64);

/// Writes the packets of some links.
///
/// Arrivals and the fates of queued packets become known out of order. So packets wait until no
/// earlier packet can follow.
pub(super) struct LinkCapture<'n, W: Write> {
    network: &'n Network,
    out: PcapngWriter<W>,
    links: Vec<Interfaces>,
    pending: BTreeMap<Place, Pending>,
    /// Packets in queues, by link and token.
    queued: BTreeMap<(u32, u32), Place>,
    count: u64,
    now: Time,
}

impl<'n, W: Write> LinkCapture<'n, W> {
    /// Begins a file for the links with these indices.
    pub(super) fn new(
        network: &'n Network,
        chosen: &[usize],
        points: CapturePoints,
        out: W,
    ) -> Result<Self, TraceError> {
        let reachable = u32::try_from(network.nodes.len())
            .ok()
            .and_then(node_address)
            .and(u32::try_from(network.flows.len()).ok())
            .and_then(flow_ports);
        if reachable.is_none() {
            return Err(TraceError::TooLarge);
        }
        let mut links = vec![Interfaces::default(); network.links.len()];
        let mut described = Vec::new();
        for &index in chosen {
            let (Some(link), Some(spec)) = (links.get_mut(index), network.links.get(index)) else {
                continue;
            };
            let rate = match &spec.config.rate {
                RateProfile::Constant(rate) => Some(*rate),
                _ => None,
            };
            if points != CapturePoints::After {
                link.before = Some(described.len() as u32);
                described.push((format!("{}:before", spec.name), BEFORE, rate));
            }
            if points != CapturePoints::Before {
                link.after = Some(described.len() as u32);
                described.push((format!("{}:after", spec.name), AFTER, rate));
            }
        }
        let interfaces: Vec<_> = described
            .iter()
            .map(|(name, description, rate)| InterfaceDescription {
                name,
                description,
                rate: *rate,
            })
            .collect();
        Ok(Self {
            network,
            out: PcapngWriter::new(out, &interfaces)?,
            links,
            pending: BTreeMap::new(),
            queued: BTreeMap::new(),
            count: 0,
            now: Time::ZERO,
        })
    }

    /// Takes a packet that a link queued.
    pub(super) fn on_queued(&mut self, link: u32, token: u32, now: Time, packet: &Packet) {
        let interface = self.links.get(link as usize).and_then(|link| link.before);
        if let Some(interface) = interface {
            let entry = self.add(now, interface, packet, None);
            self.queued.insert((link, token), entry);
            if let Some(pending) = self.pending.get_mut(&entry) {
                pending.is_settled = false;
            }
        }
    }

    /// Takes the fate of a packet.
    pub(super) fn on_link(&mut self, index: u32, event: &LinkEvent<'_>) {
        let Some(link) = self.links.get_mut(index as usize) else {
            return;
        };
        let (comment, arrivals) = match event.fate {
            Fate::Carried {
                arrival,
                marked,
                duplicate,
                ..
            } => (marked.then_some("marked"), [Some(arrival), duplicate]),
            Fate::Lost { .. } => (Some("dropped: lost on the wire"), [None; 2]),
            Fate::Dropped(cause) => (Some(because_of(cause)), [None; 2]),
        };
        let (before, after) = (link.before, link.after);
        let dropped = if arrivals[0].is_none() {
            link.dropped += 1;
            0
        } else {
            std::mem::take(&mut link.dropped)
        };
        if let Some(entry) = self.queued.remove(&(index, event.token)) {
            if let Some(pending) = self.pending.get_mut(&entry) {
                pending.comment = comment;
                pending.is_settled = true;
            }
        } else if let Some(interface) = before {
            self.add(event.offered_at, interface, event.packet, comment);
        }
        let Some(interface) = after else { return };
        let end = Time::ZERO + self.network.duration;
        for (arrival, comment) in arrivals.into_iter().zip([comment, Some("duplicate")]) {
            if let Some(arrival) = arrival.filter(|arrival| *arrival <= end) {
                let entry = self.add(arrival, interface, event.packet, comment);
                if let Some(pending) = self.pending.get_mut(&entry)
                    && comment != Some("duplicate")
                {
                    pending.dropped_before = dropped;
                }
            }
        }
    }

    fn add(
        &mut self,
        time: Time,
        interface: u32,
        packet: &Packet,
        comment: Option<&'static str>,
    ) -> Place {
        let entry = (time, self.count);
        self.count += 1;
        self.pending.insert(
            entry,
            Pending {
                interface,
                packet: *packet,
                comment,
                dropped_before: 0,
                is_settled: true,
            },
        );
        entry
    }

    /// Writes the packets that are certain: no packet from before `now` will be added.
    pub(super) fn advance(&mut self, now: Time) -> Result<(), TraceError> {
        self.now = self.now.max(now);
        while let Some(first) = self.pending.first_entry() {
            if first.key().0 > self.now || !first.get().is_settled {
                break;
            }
            let (time, _) = *first.key();
            let pending = first.remove();
            self.write(time, &pending)?;
        }
        Ok(())
    }

    fn write(&mut self, time: Time, pending: &Pending) -> Result<(), TraceError> {
        let packet = &pending.packet;
        let Some(flow) = self.network.flows.get(packet.flow as usize) else {
            return Ok(());
        };
        let addressed = || {
            Some((
                node_address(flow.source.0)?,
                node_address(flow.destination.0)?,
                flow_ports(packet.flow)?,
            ))
        };
        let (source, destination, ports) = addressed().ok_or(TraceError::TooLarge)?;
        let (source, destination, ports) = if packet.is_return {
            (destination, source, ports.reversed())
        } else {
            (source, destination, ports)
        };
        let kind = match &packet.body {
            Body::Tcp(segment) => PacketKind::Tcp(segment),
            Body::Datagram(_) | Body::Sections(_) => PacketKind::Udp {
                payload: packet.wire.saturating_sub(UDP_IPV4),
            },
        };
        let record = PacketRecord {
            source: IpAddr::V4(source),
            destination: IpAddr::V4(destination),
            ports,
            kind,
            wire_bytes: packet.wire,
            comment: pending.comment,
            dropped_before: pending.dropped_before,
        };
        self.out.packet(pending.interface, time, &record)?;
        Ok(())
    }

    /// Writes the rest, packets that queues still hold included, and returns the file.
    pub(super) fn finish(mut self) -> Result<W, TraceError> {
        for ((time, _), pending) in std::mem::take(&mut self.pending) {
            self.write(time, &pending)?;
        }
        Ok(self.out.finish()?)
    }
}

const BEFORE: &str = "packets offered to the link, at the time of the offer";
const AFTER: &str = "packets that the link delivered, at the time of their arrival";

const fn because_of(cause: DropCause) -> &'static str {
    match cause {
        DropCause::QueueFull => "dropped: queue full",
        DropCause::EarlyDrop => "dropped: early, by queue management",
        DropCause::Loss => "dropped: lost before the queue",
        DropCause::TooLarge => "dropped: larger than the MTU",
    }
}
