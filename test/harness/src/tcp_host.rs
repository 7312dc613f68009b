//! A whole TCP host; the input controls the network, the applications and the clock.
//!
//! Checks after each step: every packet was counted once, connections stay within the limit, timers
//! do not loop, and every packet that leaves can be read by another library and is not larger than
//! the interface allows.

use std::net::{IpAddr, SocketAddr};

use comity_tcp::timeline::TimelineConfig;
use comity_tcp_host::{Config, ConnectionId, Event, Framing, Host, ListenerId, Piece, Section};
use comity_units::{Span, Time};
use etherparse::{PacketBuilder, SlicedPacket, TcpHeader};

use crate::source::Source;

/// The maximum number of steps, so that every input ends.
const MAX_STEPS: usize = 200;
/// The maximum number of packets that leave at one instant: more than all windows of these inputs.
const MAX_AT_ONCE: usize = 20_000;
const MAX_CONNECTIONS: usize = 8;
const OWN: [u8; 4] = [10, 0, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 2];
const PORT: u16 = 80;

/// One input.
pub fn check(input: &[u8]) {
    let mut source = Source::new(input);
    let mut world = World::new(&mut source);
    for _ in 0..MAX_STEPS {
        if source.is_empty() {
            break;
        }
        world.step(&mut source);
        world.check();
    }
    world.pass(Span::from_secs(86_400));
    world.check();
}

struct World {
    host: Host,
    now: Time,
    listener: ListenerId,
    connections: Vec<ConnectionId>,
    /// The last segments that left: answers are built from them.
    sent: Vec<TcpHeader>,
    mtu: usize,
}

impl World {
    fn new(source: &mut Source<'_>) -> Self {
        let bits = source.u8();
        let mut config = Config::new([IpAddr::from(OWN)]);
        config.mtu = if bits & 1 == 0 { 1_500 } else { 576 };
        config.tcp.sack = bits & 2 == 0;
        config.tcp.timestamps = bits & 4 == 0;
        config.tcp.window_scaling = bits & 8 == 0;
        config.tcp.ecn = bits & 16 != 0;
        config.tcp.timeline = (bits & 32 != 0).then_some(TimelineConfig {
            blind_spot: bits & 128 == 0,
            ..TimelineConfig::PAPER
        });
        if bits & 64 != 0 {
            config.framing = Framing::Header;
        }
        config.max_connections = MAX_CONNECTIONS;
        config.send_buffer = 20_000;
        let mtu = config.mtu as usize;
        let mut host = Host::new(config, [bits; 32]).expect("the settings are valid");
        let local = SocketAddr::from((OWN, PORT));
        let listener = host.listen(local, 4).expect("the address is the host's");
        Self {
            host,
            now: Time::from_secs(1),
            listener,
            connections: Vec::new(),
            sent: Vec::new(),
            mtu,
        }
    }

    fn step(&mut self, source: &mut Source<'_>) {
        match source.u8() {
            0..=29 => {
                let noise = source.counted();
                self.host.handle_packet(self.now, noise);
            }
            30..=119 => self.answer(source),
            120..=149 => self.request(source),
            150..=169 => self.pass(Span::from_millis(u64::from(source.u8()))),
            170..=179 => self.pass(Span::from_secs(u64::from(source.u8()))),
            180..=189 => {
                let port = 1 + u16::from(source.u8());
                let peer = SocketAddr::from((PEER, port));
                if let Ok(id) = self.host.connect(self.now, peer, None) {
                    self.connections.push(id);
                }
            }
            _ => self.call(source),
        }
        self.transmit();
    }

    /// A segment that resembles an answer to one that left.
    fn answer(&mut self, source: &mut Source<'_>) {
        let count = self.sent.len();
        let Some(last) = count.checked_sub(1 + usize::from(source.u8() % 8)) else {
            return;
        };
        let sent = &self.sent[last];
        let mut header = TcpHeader::new(
            sent.destination_port,
            sent.source_port,
            sent.acknowledgment_number.wrapping_add_signed(near(source)),
            source.u16(),
        );
        let length = source.u16() % 1_000;
        let consumed = 1 + u32::from(source.u16() % 3_000);
        header.acknowledgment_number = match source.u8() {
            0..=63 => sent.sequence_number.wrapping_add(consumed),
            64..=127 => sent.sequence_number.wrapping_add(1),
            _ => sent.sequence_number.wrapping_add_signed(near(source)),
        };
        flags(source.u8(), &mut header);
        if sent.syn && source.u8() < 200 {
            (header.syn, header.ack) = (!sent.ack, true);
            header.acknowledgment_number = sent.sequence_number.wrapping_add(1);
        }
        if source.u8() < 100 {
            return self.arrive_with(&seq_update(source, &header), source, header, length.into());
        }
        self.arrive(source, header, usize::from(length));
    }

    fn request(&mut self, source: &mut Source<'_>) {
        let port = 1_000 + u16::from(source.u8() % 16);
        let mut header = TcpHeader::new(port, PORT, u32::from(source.u16()), source.u16());
        header.syn = true;
        self.arrive(source, header, 0);
    }

    fn arrive(&mut self, source: &mut Source<'_>, header: TcpHeader, length: usize) {
        let options = source.counted();
        let options = &options[..options.len().min(40)];
        self.arrive_with(options, source, header, length);
    }

    fn arrive_with(
        &mut self,
        options: &[u8],
        source: &mut Source<'_>,
        mut header: TcpHeader,
        length: usize,
    ) {
        if header.set_options_raw(options).is_err() {
            return;
        }
        let mut packet = Vec::new();
        PacketBuilder::ipv4(PEER, OWN, 64)
            .tcp_header(header)
            .write(&mut packet, &vec![7; length])
            .expect("a vector takes it");
        if source.u8() == 0 {
            let index = usize::from(source.u16()) % packet.len();
            packet[index] ^= source.u8();
        }
        self.host.handle_packet(self.now, &packet);
    }

    fn call(&mut self, source: &mut Source<'_>) {
        let choice = usize::from(source.u8());
        let Some(&id) = self.connections.get(choice % self.connections.len().max(1)) else {
            return;
        };
        match source.u8() % 12 {
            0..=2 => drop(self.host.write(id, &vec![9; usize::from(source.u16())])),
            3 => drop(self.host.read(id, &mut vec![0; usize::from(source.u16())])),
            4 => self.receive(id, usize::from(source.u16())),
            8..=11 => self.send(id, source),
            5 => self.host.shutdown(self.now, id),
            6 => self.host.abort(self.now, id),
            _ => {
                self.host.release(self.now, id);
                self.connections.retain(|kept| *kept != id);
            }
        }
    }

    /// Submits two sections.
    fn send(&mut self, id: ConnectionId, source: &mut Source<'_>) {
        let bytes = vec![5; usize::from(source.u16())];
        let mut section = || Section {
            bytes: &bytes,
            deadline: self.now + Span::from_millis(u64::from(source.u16() % 2_000)),
        };
        let sections = [section(), section()];
        let _ = self.host.send(self.now, id, &sections);
        let counters = self.host.section_statistics(id).unwrap_or_default();
        let settled = counters.on_time + counters.late + counters.cut + counters.left_out;
        assert_eq!(settled + counters.open, counters.submitted, "{counters:?}");
    }

    /// Reads pieces: they follow each other, and the data fits into the buffer.
    fn receive(&mut self, id: ConnectionId, length: usize) {
        let mut pieces = [Piece::default(); 4];
        let count = self.host.receive(id, &mut vec![0; length], &mut pieces);
        let mut read = pieces.iter().take(count.unwrap_or(0));
        let Some(first) = read.next() else { return };
        let mut end = first.offset + first.length;
        for piece in read {
            assert_eq!(piece.offset, end);
            end += piece.length;
        }
    }

    /// Lets time pass, and serves timers as they expire, up to a limit.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..256 {
            let next = self.host.next_timer();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            self.host.on_timer(self.now);
            self.transmit();
            assert!(self.host.next_timer() > self.now, "a timer that loops");
        }
        self.now = until;
        self.host.on_timer(self.now);
        self.transmit();
    }

    fn transmit(&mut self) {
        let mut packet = Vec::new();
        for count in 0.. {
            assert!(count < MAX_AT_ONCE, "packets without end");
            if !self.host.poll_transmit(self.now, &mut packet) {
                break;
            }
            assert!(packet.len() <= self.mtu, "{} bytes", packet.len());
            let sliced = SlicedPacket::from_ip(&packet).expect("the host writes packets of IP");
            match sliced.transport {
                Some(etherparse::TransportSlice::Tcp(tcp)) => self.sent.push(tcp.to_header()),
                other => panic!("the host sends TCP alone: {other:?}"),
            }
        }
        while let Some(event) = self.host.poll_event() {
            if event == Event::Acceptable(self.listener) {
                self.connections.extend(self.host.accept(self.listener));
            }
        }
    }

    fn check(&self) {
        let statistics = self.host.statistics();
        let counted = statistics.accepted + statistics.icmp + statistics.dropped();
        assert_eq!(statistics.received, counted, "{statistics:?}");
        assert!(self.host.connections() <= MAX_CONNECTIONS);
    }
}

/// The option of a time-lined stream near the number of a segment.
fn seq_update(source: &mut Source<'_>, header: &TcpHeader) -> Vec<u8> {
    let number = header.sequence_number;
    let expected = number.wrapping_add_signed(near(source));
    let mut option = vec![253, 8, 0x54, 0x4c];
    option.extend(expected.to_be_bytes());
    if source.u8() < 128 {
        option[1] = 16;
        let end = number.wrapping_add_signed(near(source));
        let length = (source.number() as u32).max(1);
        option.extend(end.wrapping_sub(length).to_be_bytes());
        option.extend(end.to_be_bytes());
    }
    option
}

/// A small distance, most often none.
fn near(source: &mut Source<'_>) -> i32 {
    match source.u8() {
        0..=159 => 0,
        small @ 160..=239 => i32::from(small) - 200,
        _ => source.number() as i32,
    }
}

fn flags(bits: u8, header: &mut TcpHeader) {
    header.ack = bits & 15 != 15;
    header.psh = bits & 16 != 0;
    header.fin = bits & 0b1110_0000 == 0b0010_0000;
    header.rst = bits & 0b1111_0000 == 0b0100_0000;
    header.syn = bits & 0b1111_0000 == 0b0110_0000;
    header.ece = bits & 0b1110_0000 == 0b1000_0000;
}
