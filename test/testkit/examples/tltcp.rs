//! How much TLTCP gains if only the sender has it: docs/results/tltcp.md.
//!
//! The same video crosses the same bottleneck in virtual time in three ways: time-lined at both
//! ends, time-lined at the sender alone, and as plain TCP. It prints the page's table.
//!
//! ```console
//! $ cargo run --release -p comity-testkit --example tltcp
//! ```
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::collections::BTreeMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};

use comity_link::{
    AnalyticLink, Limit, LinkConfig, Loss, LossModel, LossPlace, Outcome, Packet, Queue,
};
use comity_tcp::timeline::{DeadlineClock, TimelineConfig};
use comity_tcp_host::framing::SectionReader;
use comity_tcp_host::{
    Config, ConnectionId, Event, Framing, Host, Piece, PieceKind, Section, StreamError,
};
use comity_units::{Rate, Seed, Span, Time};

/// 60 s of MPEG-1 at 1.16 Mb/s: time, bytes, type.
const FRAMES: &str = include_str!("../../../experiments/tltcp/mpeg1_frames.csv");
const PORT: u16 = 80;
const DELAY: Span = Span::from_millis(20);
const QUEUE: u64 = 30;
const LIFETIME: Span = Span::from_secs(2);
const START: Time = Time::from_secs(1);
const SEEDS: u64 = 5;
const RATES_KBPS: [u64; 5] = [1_500, 1_200, 1_000, 800, 500];
const LOSSES: [f64; 2] = [0.0, 0.02];

/// How the video is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Time-lined at both ends.
    Both,
    /// Time-lined at the sender; the receiver's TCP is as it is.
    Sender,
    /// Plain TCP: everything is sent.
    Plain,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    at: Time,
    bytes: usize,
    deadline: Time,
}

/// The frames with the deadlines of TLTCP, section 4: an I frame and the P frames up to the next
/// one are due a lifetime after the I frame, a B frame with the earlier of the two before it.
fn frames() -> Result<Vec<Frame>, Box<dyn Error>> {
    let mut references = [Time::MAX; 2];
    let mut frames = Vec::new();
    for line in FRAMES.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').collect();
        let [time, bytes, kind] = fields[..] else {
            return Err(format!("{line:?}, expected time, bytes and type").into());
        };
        let at = START + Span::from_secs_f64(time.parse()?);
        let own = at + LIFETIME;
        let deadline = match kind {
            "I" => own,
            "P" => references[1],
            _ => references[0],
        };
        if kind != "B" {
            references = [references[1], deadline];
        }
        frames.push(Frame {
            at,
            bytes: bytes.parse()?,
            deadline: deadline.min(own),
        });
    }
    Ok(frames)
}

/// What became of the frames.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    frames: u64,
    on_time: u64,
    late: u64,
}

struct World<'a> {
    frames: &'a [Frame],
    way: Way,
    hosts: [Host; 2],
    links: [AnalyticLink; 2],
    network: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    now: Time,
    sent: u64,
    source: ConnectionId,
    sink: Option<ConnectionId>,
    submitted: usize,
    has_ended: bool,
    reader: SectionReader,
    counts: Counts,
}

impl<'a> World<'a> {
    fn new(
        frames: &'a [Frame],
        way: Way,
        rate: Rate,
        loss: f64,
        seed: Seed,
    ) -> Result<Self, Box<dyn Error>> {
        let timeline = TimelineConfig {
            blind_spot: false,
            clock: DeadlineClock::Receiver,
            ..TimelineConfig::PAPER
        };
        let offers = match way {
            Way::Both => [true, true],
            Way::Sender => [true, false],
            Way::Plain => [false, false],
        };
        let addresses = [1, 2].map(|number| IpAddr::from([10, 0, 0, number]));
        let mut hosts = Vec::new();
        for (host, offers) in offers.into_iter().enumerate() {
            let mut config = Config::new([addresses[host]]);
            config.framing = Framing::Header;
            config.tcp.timeline = offers.then_some(timeline);
            hosts.push(Host::new(config, [host as u8; 32])?);
        }
        let [mut source, mut sink] = <[Host; 2]>::try_from(hosts).map_err(|_| "two hosts")?;
        let peer = SocketAddr::new(addresses[1], PORT);
        sink.listen(peer, 1)?;
        let id = source.connect(Time::ZERO, peer, None)?;
        let mut forward = LinkConfig {
            queue: Queue::DropTail(Limit::Packets(QUEUE as u32)),
            ..LinkConfig::new(rate, DELAY)
        };
        if loss > 0.0 {
            forward.losses.push(Loss {
                model: LossModel::Bernoulli(loss),
                place: LossPlace::AfterTransmission,
            });
        }
        let reverse = LinkConfig::new(Rate::from_mbps(100), DELAY);
        Ok(Self {
            frames,
            way,
            hosts: [source, sink],
            links: [
                AnalyticLink::new(&forward, seed.derive("forward"))?,
                AnalyticLink::new(&reverse, seed.derive("reverse"))?,
            ],
            network: BTreeMap::new(),
            now: Time::ZERO,
            sent: 0,
            source: id,
            sink: None,
            submitted: 0,
            has_ended: false,
            reader: SectionReader::new(1 << 24),
            counts: Counts {
                frames: frames.len() as u64,
                ..Counts::default()
            },
        })
    }

    /// Runs until the receiver has the end of the stream.
    fn run(mut self) -> Result<Counts, Box<dyn Error>> {
        while !self.has_ended {
            self.act()?;
            let timers = self.hosts.iter().map(Host::next_timer).min();
            let packet = self.network.first_key_value().map(|(&(at, _), _)| at);
            let frame = self.frames.get(self.submitted).map(|frame| frame.at);
            let frame = frame.filter(|at| *at > self.now);
            let next = [timers, packet, frame].into_iter().flatten().min();
            self.now = next
                .filter(|next| *next < Time::MAX)
                .ok_or("nothing happens")?;
            while let Some(first) = self.network.first_entry()
                && first.key().0 <= self.now
            {
                let (to, packet) = first.remove();
                self.hosts[to].handle_packet(self.now, &packet);
            }
            for host in &mut self.hosts {
                host.on_timer(self.now);
            }
        }
        Ok(self.counts)
    }

    fn act(&mut self) -> Result<(), Box<dyn Error>> {
        self.submit()?;
        self.carry()?;
        while let Some(event) = self.hosts[1].poll_event() {
            if let Event::Acceptable(listener) = event {
                self.sink = self.hosts[1].accept(listener);
            }
        }
        while self.hosts[0].poll_event().is_some() {}
        self.receive()?;
        self.carry()
    }

    fn submit(&mut self) -> Result<(), Box<dyn Error>> {
        while let Some(frame) = self.frames.get(self.submitted)
            && frame.at <= self.now
        {
            let bytes = vec![0; frame.bytes];
            let section = Section {
                bytes: &bytes,
                deadline: match self.way {
                    Way::Plain => Time::MAX,
                    Way::Both | Way::Sender => frame.deadline,
                },
            };
            match self.hosts[0].send(self.now, self.source, &[section]) {
                Ok(_) => self.submitted += 1,
                Err(StreamError::WouldBlock) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            if self.submitted == self.frames.len() {
                self.hosts[0].shutdown(self.now, self.source);
            }
        }
        Ok(())
    }

    fn carry(&mut self) -> Result<(), Box<dyn Error>> {
        let mut packet = Vec::new();
        for from in 0..2 {
            while self.hosts[from].poll_transmit(self.now, &mut packet) {
                let bytes = u32::try_from(packet.len())?;
                let offered = Packet {
                    bytes,
                    ecn_capable: false,
                    flow: 0,
                };
                if let Outcome::Carried(passage) = self.links[from].offer(self.now, offered) {
                    let key = (passage.arrival, self.sent);
                    self.network.insert(key, (1 - from, packet.clone()));
                    self.sent += 1;
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        let Some(sink) = self.sink else { return Ok(()) };
        let (mut buffer, mut pieces) = (vec![0; 64 << 10], [Piece::default(); 8]);
        loop {
            let count = match self.hosts[1].receive(sink, &mut buffer, &mut pieces) {
                Ok(0) => {
                    self.has_ended = true;
                    return Ok(());
                }
                Ok(count) => count,
                Err(StreamError::WouldBlock) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut used = 0;
            for piece in &pieces[..count] {
                let length = piece.length as usize;
                match piece.kind {
                    PieceKind::Gap => self.reader.gap(piece.length),
                    PieceKind::Data => {
                        self.reader.data(&buffer[used..used + length])?;
                        used += length;
                    }
                }
            }
            while let Some(section) = self.reader.poll() {
                let frame = self.frames.get(usize::try_from(section.number)?);
                let deadline = frame.map_or(Time::ZERO, |frame| frame.deadline);
                let is_on_time = section.is_complete && self.now <= deadline;
                self.counts.on_time += u64::from(is_on_time);
                self.counts.late += u64::from(section.is_complete && !is_on_time);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let frames = frames()?;
    println!("| rate, Mb/s | loss | TLTCP at both ends | to a plain receiver | plain TCP |");
    println!("|---:|---:|---:|---:|---:|");
    for loss in LOSSES {
        for kbps in RATES_KBPS {
            let mut row = format!("| {:.1} | {:.0} % |", kbps as f64 / 1_000.0, loss * 100.0);
            for way in [Way::Both, Way::Sender, Way::Plain] {
                let mut sum = Counts::default();
                for number in 0..SEEDS {
                    let rate = Rate::from_kbps(kbps);
                    let seed = Seed::new(1).index(number);
                    let counts = World::new(&frames, way, rate, loss, seed)?.run()?;
                    sum.frames += counts.frames;
                    sum.on_time += counts.on_time;
                    sum.late += counts.late;
                }
                let share = |count: u64| 100.0 * count as f64 / sum.frames as f64;
                let counts = [sum.on_time, sum.late, sum.frames - sum.on_time - sum.late];
                let [on_time, late, left_out] = counts.map(share);
                row += &format!(" {on_time:.1} / {late:.1} / {left_out:.1} |");
            }
            println!("{row}");
        }
    }
    Ok(())
}
