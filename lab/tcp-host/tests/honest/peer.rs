//! A peer that is no host: it answers each packet as its manner has it, over a narrow path.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use comity_tcp::SenderStatistics;
use comity_tcp_host::{Config, ConnectionId, End, Host};
use comity_units::{Span, Time};
use etherparse::TcpOptionElement;

use crate::world::{PORT, forge, read, v4};

/// The payload of a full segment.
const MSS: u64 = 1_460;
/// The first sequence number of the peer.
const FIRST: u32 = 7_000;
const SCALE: u8 = 7;

/// Random numbers (xorshift64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// What a peer says of what arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    Honest,
    /// It says of one in so many holes that nothing is missing.
    HidesLosses {
        one_in: u64,
    },
    /// The same of each hole of more than one segment.
    HidesRuns,
    /// It reports what is missing in SACK blocks, and acknowledges it later.
    HidesByBlocks,
    /// It acknowledges so many bytes more, except at the end of a burst.
    Ahead {
        bytes: u32,
    },
    /// It acknowledges what arrived in so many parts.
    Splits {
        parts: u64,
    },
    /// It repeats each acknowledgement behind a hole so often.
    Repeats {
        times: u64,
    },
}

/// What a peer offers in its SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub(crate) sack: bool,
    /// It acknowledges every second segment.
    pub(crate) delays: bool,
    pub(crate) window: u32,
}

impl Default for Offer {
    fn default() -> Self {
        Self {
            sack: true,
            delays: false,
            window: 1 << 22,
        }
    }
}

pub(crate) struct Peer {
    manner: Manner,
    offer: Offer,
    random: Random,
    /// The first number of the host's data.
    first: u32,
    host: SocketAddr,
    /// The ranges of offsets that it has, or says so: from the start to the end.
    ranges: BTreeMap<u64, u64>,
    /// Where its acknowledgement stays for so many packets.
    stays: Option<(u64, u32)>,
    is_second: bool,
    /// The segments that it acknowledged and did not have.
    pub(crate) lies: u64,
    pub(crate) was_reset: bool,
}

impl Peer {
    fn new(manner: Manner, offer: Offer, seed: u64) -> Self {
        Self {
            manner,
            offer,
            random: Random::new(seed + 100),
            first: 0,
            host: SocketAddr::new(v4(0), 0),
            ranges: BTreeMap::from([(0, 0)]),
            stays: None,
            is_second: false,
            lies: 0,
            was_reset: false,
        }
    }

    /// Where the first hole begins.
    fn next(&self) -> u64 {
        self.ranges.first_key_value().map_or(0, |(_, end)| *end)
    }

    fn highest(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, end)| *end)
    }

    fn insert(&mut self, mut start: u64, mut end: u64) {
        let touching = self.ranges.range(..=end);
        let touching: Vec<(u64, u64)> = touching
            .map(|(from, to)| (*from, *to))
            .filter(|(_, to)| *to >= start)
            .collect();
        for (from, to) in touching {
            self.ranges.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.ranges.insert(start, end);
    }

    fn answer(&mut self, packet: &[u8]) -> Vec<Vec<u8>> {
        let (tcp, payload) = read(packet);
        self.was_reset |= tcp.rst;
        if tcp.syn {
            self.first = tcp.sequence_number.wrapping_add(1);
            self.host.set_port(tcp.source_port);
            return vec![self.agree()];
        }
        if tcp.rst || payload.is_empty() {
            return Vec::new();
        }
        let start = u64::from(tcp.sequence_number.wrapping_sub(self.first));
        let end = start + payload.len() as u64;
        let before = self.next();
        let is_next = start == before && self.ranges.len() == 1;
        // A retransmission, and the end of a burst, are acknowledged as they are.
        let is_last = tcp.psh || end <= self.highest();
        self.judge_hole(start);
        self.insert(start, end);
        self.is_second = is_next && !self.is_second;
        if self.offer.delays && self.is_second && !tcp.psh {
            return Vec::new();
        }
        match self.manner {
            Manner::Splits { parts } if self.next() > before => {
                let length = self.next() - before;
                let steps = (1..=parts).map(|part| before + length * part / parts);
                steps
                    .map(|next| self.acknowledge_up_to(next, &[]))
                    .collect()
            }
            Manner::Repeats { times } if self.ranges.len() > 1 => {
                vec![self.acknowledge(start, is_last); times as usize]
            }
            _ => vec![self.acknowledge(start, is_last)],
        }
    }

    /// Decides about what is missing between the highest byte and a packet.
    fn judge_hole(&mut self, start: u64) {
        let highest = self.highest();
        if start <= highest {
            return;
        }
        let segments = (start - highest).div_ceil(MSS);
        let hides = match self.manner {
            Manner::HidesLosses { one_in } => self.random.below(one_in) == 0,
            Manner::HidesRuns => segments > 1,
            Manner::HidesByBlocks => {
                if self.ranges.len() == 1 {
                    self.stays = Some((highest, 10));
                }
                true
            }
            _ => false,
        };
        if hides {
            self.lies += segments;
            self.insert(highest, start);
        }
    }

    fn acknowledge(&mut self, latest: u64, is_last: bool) -> Vec<u8> {
        let mut next = self.next();
        if let Some((at, left)) = &mut self.stays {
            next = next.min(*at);
            *left -= 1;
            if *left == 0 {
                self.stays = None;
            }
        }
        // The latest block first, and then the highest ones.
        let mut blocks: Vec<(u64, u64)> = self
            .ranges
            .iter()
            .map(|(start, end)| ((*start).max(next), *end))
            .filter(|(start, end)| start < end)
            .collect();
        blocks.reverse();
        blocks.sort_by_key(|(start, end)| !(*start <= latest && latest < *end));
        let number = |offset: u64| self.first.wrapping_add(offset as u32);
        let mut blocks = blocks
            .iter()
            .map(|(start, end)| (number(*start), number(*end)));
        let mut options = Vec::new();
        if let Some(first) = blocks.next()
            && self.offer.sack
        {
            let rest = [(); 3].map(|()| blocks.next());
            options.extend([TcpOptionElement::Noop, TcpOptionElement::Noop]);
            options.push(TcpOptionElement::SelectiveAcknowledgement(first, rest));
        }
        if let Manner::Ahead { bytes } = self.manner
            && !is_last
        {
            self.lies += 1;
            next = self.highest() + u64::from(bytes);
        }
        self.acknowledge_up_to(next, &options)
    }

    fn acknowledge_up_to(&self, next: u64, options: &[TcpOptionElement]) -> Vec<u8> {
        let acknowledgement = self.first.wrapping_add(next as u32);
        self.packet(FIRST + 1, acknowledgement, false, options)
    }

    /// The answer to a SYN.
    fn agree(&self) -> Vec<u8> {
        let mut options = vec![TcpOptionElement::MaximumSegmentSize(MSS as u16)];
        if self.scale() > 0 {
            options.extend([TcpOptionElement::Noop, TcpOptionElement::WindowScale(SCALE)]);
        }
        if self.offer.sack {
            options.push(TcpOptionElement::SelectiveAcknowledgementPermitted);
        }
        self.packet(FIRST, self.first, true, &options)
    }

    fn scale(&self) -> u8 {
        if self.offer.window > 65_535 { SCALE } else { 0 }
    }

    fn packet(
        &self,
        sequence: u32,
        acknowledgement: u32,
        is_syn: bool,
        options: &[TcpOptionElement],
    ) -> Vec<u8> {
        let scale = if is_syn { 0 } else { self.scale() };
        let window = (self.offer.window >> scale).min(65_535) as u16;
        let header = |tcp: &mut etherparse::TcpHeader| {
            (tcp.sequence_number, tcp.acknowledgment_number) = (sequence, acknowledgement);
            (tcp.ack, tcp.syn, tcp.window_size) = (true, is_syn, window);
            tcp.set_options(options).unwrap();
        };
        forge(SocketAddr::new(v4(1), PORT), self.host, header, b"")
    }
}

/// The path to the peer. The reverse path has the same delay and loses nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) bits_per_second: u64,
    /// Packets that would wait longer are lost.
    pub(crate) queue: Span,
    pub(crate) delay: Span,
    /// Out of 1,000 packets so many are lost beside.
    pub(crate) lost: u64,
    /// With the one behind each of them.
    pub(crate) in_pairs: bool,
}

/// A host that sends to a peer.
pub(crate) struct Run {
    pub(crate) host: Host,
    id: ConnectionId,
    pub(crate) peer: Peer,
    link: Link,
    random: Random,
    loses_next: bool,
    now: Time,
    began: Time,
    ended: Option<Time>,
    /// When the path is free again.
    free_at: Time,
    network: BTreeMap<(Time, u64), (bool, Vec<u8>)>,
    count: u64,
    /// What the application has to write.
    pending: usize,
    /// The first packets of the host.
    pub(crate) sent: Vec<Vec<u8>>,
    /// The bytes of the host, and those of the peer.
    pub(crate) bytes: [u64; 2],
    /// The largest number of windows in flight during a recovery.
    pub(crate) windows: u64,
}

impl Run {
    pub(crate) fn new(config: Config, link: Link, manner: Manner, offer: Offer, seed: u64) -> Self {
        let mut host = Host::new(config, [seed as u8; 32]).unwrap();
        let now = Time::from_secs(1);
        let id = host
            .connect(now, SocketAddr::new(v4(1), PORT), None)
            .unwrap();
        Self {
            host,
            id,
            peer: Peer::new(manner, offer, seed),
            link,
            random: Random::new(seed),
            loses_next: false,
            now,
            began: now,
            ended: None,
            free_at: now,
            network: BTreeMap::new(),
            count: 0,
            pending: 0,
            sent: Vec::new(),
            bytes: [0; 2],
            windows: 0,
        }
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.host.end(self.id)
    }

    pub(crate) fn sender(&self) -> SenderStatistics {
        self.host.connection(self.id).unwrap().statistics()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.host.connection(self.id).unwrap().acknowledged()
    }

    /// How long it took until everything was acknowledged, or the connection ended.
    pub(crate) fn took(&self) -> Span {
        self.ended.unwrap_or(self.now).saturating_since(self.began)
    }

    /// Writes `burst` bytes at times that are `every` apart, until `limit` or the end.
    pub(crate) fn drip(&mut self, burst: usize, every: Span, limit: Span) {
        while self.end().is_none() && self.took() < limit {
            self.pending = burst;
            self.run_for(every, u64::MAX);
        }
        self.finish();
    }

    /// Writes whatever the host takes, until `limit` or the end.
    pub(crate) fn fill(&mut self, limit: Span) {
        while self.end().is_none() && self.took() < limit {
            self.pending = usize::MAX;
            self.run_for(Span::from_millis(10), u64::MAX);
        }
        if self.end().is_some() {
            self.finish();
        }
    }

    /// Writes so many bytes, and waits until all are acknowledged.
    pub(crate) fn send(&mut self, total: usize) {
        self.pending = total;
        self.run_for(Span::from_secs(1_000), total as u64);
        assert_eq!(self.acknowledged(), total as u64);
    }

    /// Lets a reset arrive.
    fn finish(&mut self) {
        self.ended = Some(self.now);
        self.pending = 0;
        self.run_for(Span::from_secs(1), u64::MAX);
    }

    /// Runs for a while, or until so many bytes are acknowledged.
    fn run_for(&mut self, span: Span, enough: u64) {
        let until = self.now + span;
        loop {
            self.settle();
            if self.acknowledged() >= enough {
                return;
            }
            let packet = self.network.first_key_value().map(|(&(at, _), _)| at);
            let next = self.host.next_timer().min(packet.unwrap_or(Time::MAX));
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            while let Some(entry) = self.network.first_entry()
                && entry.key().0 <= self.now
            {
                let (to_host, packet) = entry.remove();
                if to_host {
                    self.host.handle_packet(self.now, &packet);
                    self.note_flight();
                } else {
                    for answer in self.peer.answer(&packet) {
                        self.bytes[1] += answer.len() as u64;
                        self.put(self.now + self.link.delay, true, answer);
                    }
                }
            }
            self.host.on_timer(self.now);
        }
    }

    fn note_flight(&mut self) {
        let connection = self.host.connection(self.id).unwrap();
        if connection.is_recovering() {
            let windows = connection.in_flight() / connection.congestion_window().max(1);
            self.windows = self.windows.max(windows);
        }
    }

    /// Lets the application write and packets leave until both are done.
    fn settle(&mut self) {
        let zeros = [0; 1 << 16];
        let mut packet = Vec::new();
        loop {
            let mut is_done = true;
            while self.pending > 0 {
                let length = self.pending.min(zeros.len());
                let Ok(length) = self.host.write(self.id, &zeros[..length]) else {
                    break;
                };
                self.pending -= length;
                is_done = false;
            }
            while self.host.poll_transmit(self.now, &mut packet) {
                self.carry(&packet);
            }
            while self.host.poll_event().is_some() {}
            if is_done {
                return;
            }
        }
    }

    /// A packet leaves the host.
    fn carry(&mut self, packet: &[u8]) {
        self.bytes[0] += packet.len() as u64;
        if self.sent.len() < 10_000 {
            self.sent.push(packet.to_vec());
        }
        let is_drawn = self.random.below(1_000) < self.link.lost;
        let is_lost = is_drawn || self.loses_next;
        self.loses_next = is_drawn && self.link.in_pairs;
        let begins = self.free_at.max(self.now);
        if is_lost || begins.saturating_since(self.now) > self.link.queue {
            return;
        }
        let nanos = packet.len() as u64 * 8 * 1_000_000_000 / self.link.bits_per_second;
        self.free_at = begins + Span::from_nanos(nanos);
        self.put(self.free_at + self.link.delay, false, packet.to_vec());
    }

    fn put(&mut self, at: Time, to_host: bool, packet: Vec<u8>) {
        self.network.insert((at, self.count), (to_host, packet));
        self.count += 1;
    }
}
