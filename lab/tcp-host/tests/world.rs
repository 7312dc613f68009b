//! Two hosts, a path in each direction, and a clock that jumps from event to event.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use comity_tcp_host::{
    Config, ConnectionId, Event, Host, ListenerId, Piece, PieceKind, Section, StreamError,
};
use comity_units::{Span, Time};
use etherparse::{
    Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TcpHeader, TransportSlice,
    icmpv4,
};

/// The path's treatment of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// It arrives this much later: later packets overtake it.
    Late(Span),
    /// A duplicate follows this much later.
    Twice(Span),
    /// One bit of the byte at this place, counted from the end, is inverted.
    Damaged(usize),
}

/// The port at which every host listens.
pub(crate) const PORT: u16 = 80;
/// The backlog of its listeners.
pub(crate) const BACKLOG: usize = 16;
/// The one-way delay.
pub(crate) const DELAY: Span = Span::from_millis(10);

pub(crate) fn v4(host: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, host as u8 + 1])
}

pub(crate) fn v6(host: usize) -> IpAddr {
    IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, host as u16 + 1])
}

pub(crate) fn config(host: usize) -> Config {
    Config::new([v4(host), v6(host)])
}

/// What the application of one end of a connection does, and what it saw.
#[derive(Debug, Default)]
pub(crate) struct App {
    pub(crate) to_send: Vec<u8>,
    pub(crate) written: usize,
    /// Half close after everything was written.
    pub(crate) shuts_down: bool,
    pub(crate) has_shut_down: bool,
    /// The maximum length of a read; 0 for an application that does not read.
    pub(crate) read: usize,
    /// Reset the connection after this many bytes arrived.
    pub(crate) aborts_at: Option<usize>,
    pub(crate) received: Vec<u8>,
    /// Sections to submit, with their deadlines, and the number of accepted ones.
    pub(crate) sections: Vec<(Vec<u8>, Time)>,
    pub(crate) submitted: usize,
    /// The pieces of a stream that is read in pieces.
    pub(crate) pieces: Option<Vec<Piece>>,
    pub(crate) has_finished: bool,
    pub(crate) error: Option<StreamError>,
}

impl App {
    pub(crate) fn sending(data: &[u8]) -> Self {
        Self {
            to_send: data.to_vec(),
            shuts_down: true,
            read: 1 << 20,
            ..Self::default()
        }
    }
}

pub(crate) struct World {
    pub(crate) hosts: [Host; 2],
    pub(crate) now: Time,
    network: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    sent: u64,
    /// The fates of the first packets of each host.
    pub(crate) fates: [Vec<Fate>; 2],
    counts: [usize; 2],
    /// The largest packet that the path carries, and whether its router reports larger ones.
    pub(crate) path_mtu: usize,
    pub(crate) is_black_hole: bool,
    pub(crate) apps: [BTreeMap<ConnectionId, App>; 2],
    /// The applications of connections that peers will open, by the peer's port.
    pub(crate) expected: [BTreeMap<SocketAddr, App>; 2],
    pub(crate) events: [Vec<Event>; 2],
    /// All packets: who sent them, and whether they arrived.
    pub(crate) records: Vec<(Time, usize, Vec<u8>)>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with([config(0), config(1)])
    }

    pub(crate) fn with(configs: [Config; 2]) -> Self {
        let [a, b] = configs;
        let mut hosts = [
            Host::new(a, [1; 32]).unwrap(),
            Host::new(b, [2; 32]).unwrap(),
        ];
        for (number, host) in hosts.iter_mut().enumerate() {
            for address in [v4(number), v6(number)] {
                host.listen(SocketAddr::new(address, PORT), BACKLOG)
                    .unwrap();
            }
        }
        Self {
            hosts,
            now: Time::from_secs(1),
            network: BTreeMap::new(),
            sent: 0,
            fates: [Vec::new(), Vec::new()],
            counts: [0; 2],
            path_mtu: usize::MAX,
            is_black_hole: false,
            apps: [BTreeMap::new(), BTreeMap::new()],
            expected: [BTreeMap::new(), BTreeMap::new()],
            events: [Vec::new(), Vec::new()],
            records: Vec::new(),
        }
    }

    /// Opens a connection from `host` to the other one, with the applications of both ends.
    pub(crate) fn open(&mut self, host: usize, is_v4: bool, own: App, other: App) -> ConnectionId {
        let peer = if is_v4 { v4(1 - host) } else { v6(1 - host) };
        let id = self.hosts[host]
            .connect(self.now, SocketAddr::new(peer, PORT), None)
            .unwrap();
        let (local, _) = self.hosts[host].addresses(id).unwrap();
        self.expected[1 - host].insert(local, other);
        self.apps[host].insert(id, own);
        id
    }

    /// Packets that are in the network.
    pub(crate) fn in_network(&self) -> usize {
        self.network.len()
    }

    /// A packet reaches a host now.
    pub(crate) fn inject(&mut self, host: usize, packet: &[u8]) {
        self.hosts[host].handle_packet(self.now, packet);
    }

    /// Runs until nothing can happen before `until`, or until nothing happens any more.
    pub(crate) fn run(&mut self, until: Time) {
        let mut at_once = 0;
        loop {
            self.settle();
            let timers = self.hosts.iter().map(Host::next_timer).min();
            let packet = self.network.first_key_value().map(|(&(at, _), _)| at);
            let next = timers.unwrap_or(Time::MAX).min(packet.unwrap_or(Time::MAX));
            if next > until {
                self.now = self.now.max(until.min(next));
                return;
            }
            at_once = if next > self.now { 0 } else { at_once + 1 };
            assert!(at_once < 10_000, "a loop at {}", self.now);
            self.now = self.now.max(next);
            while let Some(entry) = self.network.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, packet) = entry.remove();
                self.hosts[to].handle_packet(self.now, &packet);
            }
            for host in &mut self.hosts {
                host.on_timer(self.now);
            }
        }
    }

    /// Runs for a while.
    pub(crate) fn run_for(&mut self, span: Span) {
        self.run(self.now + span);
    }

    /// Lets packets leave and applications act until both are done.
    fn settle(&mut self) {
        let mut packet = Vec::new();
        loop {
            let mut is_done = true;
            for host in 0..2 {
                while self.hosts[host].poll_transmit(self.now, &mut packet) {
                    self.carry(host, packet.clone());
                }
                while let Some(event) = self.hosts[host].poll_event() {
                    is_done = false;
                    self.events[host].push(event);
                    if let Event::Acceptable(listener) = event {
                        self.accept(host, listener);
                    }
                }
                let ids: Vec<ConnectionId> = self.apps[host].keys().copied().collect();
                for id in ids {
                    is_done &= !self.act(host, id);
                }
            }
            if is_done {
                return;
            }
        }
    }

    fn accept(&mut self, host: usize, listener: ListenerId) {
        while let Some(id) = self.hosts[host].accept(listener) {
            let (_, remote) = self.hosts[host].addresses(id).unwrap();
            let app = self.expected[host].remove(&remote);
            self.apps[host].insert(id, app.unwrap_or_default());
        }
    }

    /// One step of an application; whether it did something.
    fn act(&mut self, side: usize, id: ConnectionId) -> bool {
        let (host, now) = (&mut self.hosts[side], self.now);
        let app = self.apps[side].get_mut(&id).unwrap();
        let mut acted = false;
        while app.written < app.to_send.len() && app.error.is_none() {
            match host.write(id, &app.to_send[app.written..]) {
                Ok(length) => {
                    app.written += length;
                    acted = true;
                }
                Err(StreamError::WouldBlock) => break,
                Err(error) => app.error = Some(error),
            }
        }
        while let Some((bytes, deadline)) = app.sections.get(app.submitted)
            && app.error.is_none()
        {
            let deadline = *deadline;
            match host.send(now, id, &[Section { bytes, deadline }]) {
                Ok(count) => {
                    app.submitted += count;
                    acted = true;
                }
                Err(StreamError::WouldBlock) => break,
                Err(error) => app.error = Some(error),
            }
        }
        let is_all_submitted =
            app.written == app.to_send.len() && app.submitted == app.sections.len();
        if app.shuts_down && !app.has_shut_down && is_all_submitted {
            host.shutdown(now, id);
            app.has_shut_down = true;
            acted = true;
        }
        let mut buffer = vec![0; app.read];
        while !app.has_finished && app.read > 0 {
            let read = match &mut app.pieces {
                None => host.read(id, &mut buffer),
                Some(pieces) => {
                    let mut next = [Piece::default(); 3];
                    let count = host.receive(id, &mut buffer, &mut next);
                    let next = &next[..count.unwrap_or(0)];
                    pieces.extend(next);
                    let data = next.iter().filter(|piece| piece.kind == PieceKind::Data);
                    let length = data.map(|piece| piece.length as usize).sum();
                    app.received.extend(&buffer[..length]);
                    if count.is_ok_and(|count| count > 0) {
                        acted = true;
                        continue;
                    }
                    count
                }
            };
            match read {
                Ok(0) => {
                    app.has_finished = true;
                    acted = true;
                }
                Ok(length) => {
                    app.received.extend(&buffer[..length]);
                    acted = true;
                }
                Err(StreamError::WouldBlock) => break,
                Err(error) => {
                    app.error.get_or_insert(error);
                    break;
                }
            }
        }
        if app.aborts_at.is_some_and(|at| app.received.len() >= at) {
            app.aborts_at = None;
            host.abort(now, id);
            acted = true;
        }
        acted
    }

    /// A packet leaves `from`.
    fn carry(&mut self, from: usize, mut packet: Vec<u8>) {
        self.records.push((self.now, from, packet.clone()));
        if packet.len() > self.path_mtu {
            if !self.is_black_hole {
                let report = too_big(&packet, self.path_mtu);
                self.put(self.now + DELAY, from, report);
            }
            return;
        }
        let fate = self.fates[from].get(self.counts[from]).copied();
        self.counts[from] += 1;
        let at = self.now + DELAY;
        match fate.unwrap_or(Fate::Arrives) {
            Fate::Arrives => self.put(at, 1 - from, packet),
            Fate::Lost => {}
            Fate::Late(more) => self.put(at + more, 1 - from, packet),
            Fate::Twice(more) => {
                self.put(at, 1 - from, packet.clone());
                self.put(at + more, 1 - from, packet);
            }
            Fate::Damaged(offset) => {
                let length = packet.len();
                packet[length - 1 - offset % length] ^= 1 << (offset % 8);
                self.put(at, 1 - from, packet);
            }
        }
    }

    fn put(&mut self, at: Time, to: usize, packet: Vec<u8>) {
        self.network.insert((at, self.sent), (to, packet));
        self.sent += 1;
    }
}

/// A TCP packet, written by another library than the host's.
pub(crate) fn forge(
    source: SocketAddr,
    destination: SocketAddr,
    header: impl FnOnce(&mut TcpHeader),
    payload: &[u8],
) -> Vec<u8> {
    let mut tcp = TcpHeader::new(source.port(), destination.port(), 0, 1_000);
    header(&mut tcp);
    let builder = match (source.ip(), destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            PacketBuilder::ipv4(source.octets(), destination.octets(), 64)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            PacketBuilder::ipv6(source.octets(), destination.octets(), 64)
        }
        _ => unreachable!("one family"),
    };
    let mut packet = Vec::new();
    builder.tcp_header(tcp).write(&mut packet, payload).unwrap();
    packet
}

/// The TCP header and the payload of a packet, read and checked by another library than the host's.
pub(crate) fn read(packet: &[u8]) -> (TcpHeader, Vec<u8>) {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        panic!("not TCP: {packet:?}");
    };
    let header = tcp.to_header();
    let checksum = match sliced.net.unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            tcp.calc_checksum_ipv4(header.source, header.destination)
                .unwrap()
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            tcp.calc_checksum_ipv6(header.source, header.destination)
                .unwrap()
        }
        NetSlice::Arp(_) => unreachable!("a packet of IP"),
    };
    assert_eq!(header.checksum, checksum);
    (header, tcp.payload().to_vec())
}

/// A router's report that `packet` is too big for a link with this MTU.
fn too_big(packet: &[u8], mtu: usize) -> Vec<u8> {
    let mut report = Vec::new();
    let quoted = &packet[..packet.len().min(512)];
    if packet[0] >> 4 == 4 {
        let source = packet[12..16].try_into().unwrap();
        let next_hop_mtu = mtu as u16;
        let reason = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu };
        PacketBuilder::ipv4([192, 0, 2, 1], source, 64)
            .icmpv4(Icmpv4Type::DestinationUnreachable(reason))
            .write(&mut report, quoted)
            .unwrap();
    } else {
        let source = packet[8..24].try_into().unwrap();
        let router = [0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        PacketBuilder::ipv6(router, source, 64)
            .icmpv6(Icmpv6Type::PacketTooBig { mtu: mtu as u32 })
            .write(&mut report, quoted)
            .unwrap();
    }
    report
}

/// `length` bytes that differ from place to place and from `seed` to seed.
pub(crate) fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed)
        .collect()
}
