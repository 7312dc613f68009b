//! Packets of one kind from many addresses, at a rate.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use comity::session::{ConnectionId, Pattern};
use comity_transport::wire::header::{self, Confirm, Data, Initial, Packet};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::result::Result;
use crate::strangers::{Strangers, Traffic};

/// A listener accepts a cookie or a ticket for at least 8 s.
const FRESH: Duration = Duration::from_millis(6_500);
/// How long the flood waits for cookies and tickets.
const PATIENCE: Duration = Duration::from_secs(2);
const BATCH: u64 = 32;
const PAUSE: Duration = Duration::from_micros(100);

/// The packets of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Random bytes, 1 to 1,200
    Garbage,
    /// Initial packets without a cookie
    Initial,
    /// Initial packets with the cookie of another address
    BadCookie,
    /// Initial packets with a cookie of their address, and a recorded message 1
    Replay,
    /// Confirm packets with a ticket of their address, and a message 3 that proves nothing
    Confirm,
    /// Data packets of no connection
    Data,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    to: SocketAddr,
    #[arg(long)]
    kind: Kind,
    /// Packets per second; 0 for as many as possible
    #[arg(long)]
    rate: u64,
    #[arg(long)]
    seconds: u64,
    /// Networks of 256 addresses to send from
    #[arg(long, default_value_t = 1)]
    networks: u32,
    /// Addresses of each network
    #[arg(long, default_value_t = 254)]
    hosts: u32,
    /// The first network [default: one without other programs]
    #[arg(long)]
    network: Option<Ipv4Addr>,
    /// How long cookies and tickets wait until they are used, in milliseconds
    #[arg(long, default_value_t = 0)]
    age_ms: u64,
    /// A recorded Initial packet with its message 1, in hexadecimal
    #[arg(long)]
    recorded: Option<String>,
}

/// What an address has from the listener.
#[derive(Clone, Default)]
struct Held {
    cookie: Vec<u8>,
    ticket: Vec<u8>,
    since: Option<Instant>,
}

struct Flood<'a> {
    arguments: &'a Arguments,
    sources: Sources,
    strangers: Strangers,
    held: Vec<Held>,
    message: Vec<u8>,
    random: Xoshiro256PlusPlus,
    packet: Vec<u8>,
}

/// The strangers by their numbers. Up to 256 networks lie in 127.16.0.0/16, and up to 65,280 in all
/// of 127.0.0.0/8 behind its first 65,536 addresses. Honest programs have the first address of a
/// network.
#[derive(Clone, Copy)]
struct Sources {
    network: Option<Ipv4Addr>,
    networks: u32,
    hosts: u32,
}

impl Sources {
    fn count(self) -> u32 {
        self.networks * self.hosts
    }

    fn first_network(self) -> u32 {
        match (self.network, self.networks) {
            (Some(network), _) => network.to_bits() >> 8,
            (None, 0..=256) => 127 << 16 | 16 << 8,
            (None, _) => 127 << 16 | 1 << 8,
        }
    }

    fn first_host(self) -> u32 {
        2_u32.min(256 - self.hosts)
    }

    fn address(self, at: u32) -> Ipv4Addr {
        let network = self.first_network() + at % self.networks;
        let host = self.first_host() + at / self.networks;
        Ipv4Addr::from_bits(network << 8 | host)
    }

    /// The number of the stranger at this address, which has to be one of them.
    fn number(self, address: Ipv4Addr) -> usize {
        let network = (address.to_bits() >> 8) - self.first_network();
        let host = u32::from(address.octets()[3]) - self.first_host();
        (network + host * self.networks) as usize
    }
}

impl Flood<'_> {
    /// An Initial packet. Its source says which of the strangers it is from.
    fn initial(&mut self, at: u32, cookie: &[u8]) -> Result<()> {
        self.packet.clear();
        let message = if cookie.is_empty() {
            &[]
        } else {
            self.message.as_slice()
        };
        Initial {
            source: ConnectionId::new(u64::from(at) + 1),
            pattern: Pattern::CPace,
            cookie,
            message,
        }
        .encode(&mut self.packet)?;
        Ok(())
    }

    fn send(&mut self, at: u32) -> Result<()> {
        let from = self.sources.address(at);
        let packet = std::mem::take(&mut self.packet);
        self.strangers.send(from, self.arguments.to, &packet)?;
        self.packet = packet;
        Ok(())
    }

    /// Asks for a cookie, and with it for a ticket where the kind needs one.
    fn ask(&mut self, at: u32) -> Result<()> {
        let held = &self.held[at as usize];
        let cookie = match self.arguments.kind {
            Kind::Confirm => held.cookie.clone(),
            _ => Vec::new(),
        };
        self.initial(at, &cookie)?;
        self.send(at)
    }

    /// Takes cookies and tickets out of what has come.
    fn receive(&mut self) -> Result<()> {
        let (arguments, sources, held) = (self.arguments, self.sources, &mut self.held);
        self.strangers.receive(|to, packet| {
            let Some(held) = held.get_mut(sources.number(to)) else {
                return;
            };
            match header::decode(packet) {
                Ok(Packet::Retry(retry)) => {
                    held.cookie = retry.cookie.to_vec();
                    if arguments.kind != Kind::Confirm {
                        held.since = Some(Instant::now());
                    }
                }
                Ok(Packet::Answer(answer))
                    if arguments.kind == Kind::Confirm && !answer.ticket.is_empty() =>
                {
                    held.ticket = answer.ticket.to_vec();
                    held.since = Some(Instant::now());
                }
                _ => {}
            }
        })?;
        Ok(())
    }

    /// Whether an address has what its packets need.
    fn is_ready(&self, at: u32) -> bool {
        let held = &self.held[at as usize];
        match self.arguments.kind {
            Kind::Replay | Kind::Confirm => held.since.is_some_and(|since| since.elapsed() < FRESH),
            Kind::Garbage | Kind::Initial | Kind::BadCookie | Kind::Data => true,
        }
    }

    /// The next packet from an address; `false` if it had to ask for a cookie instead.
    fn strike(&mut self, at: u32) -> Result<bool> {
        if !self.is_ready(at) {
            self.ask(at)?;
            return Ok(false);
        }
        self.packet.clear();
        match self.arguments.kind {
            Kind::Garbage => {
                let length = 1 + self.random.next_u64() as usize % 1_200;
                self.packet.resize(length, 0);
                self.random.fill_bytes(&mut self.packet);
            }
            Kind::Initial => self.initial(at, &[])?,
            Kind::BadCookie => {
                let cookie = self.held[0].cookie.clone();
                self.initial(at, &cookie)?;
            }
            Kind::Replay => {
                let cookie = std::mem::take(&mut self.held[at as usize].cookie);
                self.initial(at, &cookie)?;
                self.held[at as usize].cookie = cookie;
            }
            Kind::Confirm => {
                let mut message = [0; 60];
                self.random.fill_bytes(&mut message);
                let ticket = &self.held[at as usize].ticket;
                Confirm {
                    ticket,
                    message: &message,
                }
                .encode(&mut self.packet)?;
            }
            Kind::Data => {
                let [destination, payload] = [self.random.next_u64(), self.random.next_u64()];
                let header = Data {
                    key_phase: false,
                    destination: ConnectionId::new(destination),
                    number: payload as u32,
                };
                self.packet.extend(header.encode());
                self.packet.resize(1_200, payload as u8);
            }
        }
        self.send(at)?;
        Ok(true)
    }

    /// Before the flood: cookies and tickets for as many as get one within [`PATIENCE`].
    fn prepare(&mut self) -> Result<()> {
        match self.arguments.kind {
            Kind::Garbage | Kind::Initial | Kind::Data => return Ok(()),
            // One cookie, of the first address, which is none of another's.
            Kind::BadCookie => {
                let until = Instant::now() + PATIENCE;
                while self.held[0].cookie.is_empty() {
                    if Instant::now() > until {
                        return Err("no Retry came".into());
                    }
                    self.initial(0, &[])?;
                    self.send(0)?;
                    sleep(Duration::from_millis(20));
                    self.receive()?;
                }
                return Ok(());
            }
            Kind::Replay | Kind::Confirm => {}
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let mut asked = 0;
            for at in 0..self.sources.count() {
                if !self.is_ready(at) {
                    self.ask(at)?;
                    asked += 1;
                    if asked % BATCH == 0 {
                        sleep(PAUSE);
                        self.receive()?;
                    }
                }
            }
            sleep(Duration::from_millis(5));
            self.receive()?;
            if asked == 0 {
                return Ok(());
            }
        }
        let ready = (0..self.sources.count())
            .filter(|&at| self.is_ready(at))
            .count();
        match ready {
            0 => Err("no address has what its packets need".into()),
            _ => Ok(()),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let message = match &arguments.recorded {
        Some(text) => recorded_message(text)?,
        None => vec![7; 38],
    };
    if !(1..=65_280).contains(&arguments.networks) || !(1..=256).contains(&arguments.hosts) {
        return Err("expected --networks from 1 to 65280, and --hosts from 1 to 256".into());
    }
    let sources = Sources {
        network: arguments.network,
        networks: arguments.networks,
        hosts: arguments.hosts,
    };
    let mut flood = Flood {
        arguments,
        sources,
        strangers: Strangers::bind()?,
        held: vec![Held::default(); sources.count() as usize],
        message,
        random: Xoshiro256PlusPlus::seed_from_u64(1),
        packet: Vec::new(),
    };
    flood.prepare()?;
    sleep(Duration::from_millis(arguments.age_ms));
    let has_part = |&at: &u32| match arguments.kind {
        // The budget gives tickets to some of the callers of one network.
        Kind::Confirm => flood.is_ready(at),
        // The cookie is good for the first address.
        Kind::BadCookie => at > 0,
        _ => true,
    };
    let senders: Vec<u32> = (0..sources.count()).filter(has_part).collect();
    println!("{}", json!({"event": "begins", "addresses": senders.len()}));
    flood.strangers.traffic = Traffic::default();
    let began = Instant::now();
    let span = Duration::from_secs(arguments.seconds);
    let (mut sent, mut asked, mut next) = (0_u64, 0_u64, 0_usize);
    while began.elapsed() < span {
        let due = match arguments.rate {
            0 => u64::MAX,
            rate => (began.elapsed().as_secs_f64() * rate as f64) as u64,
        };
        let batch = due.saturating_sub(sent).min(BATCH);
        let mut tries = 0;
        while tries < batch {
            tries += 1;
            let at = senders[next];
            next = (next + 1) % senders.len();
            match flood.strike(at)? {
                true => sent += 1,
                false => asked += 1,
            }
        }
        flood.receive()?;
        if batch == 0 {
            sleep(PAUSE);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    sleep(Duration::from_millis(50));
    flood.receive()?;
    let traffic = flood.strangers.traffic;
    println!(
        "{}",
        json!({
            "event": "end", "seconds": seconds, "packets": sent, "asked": asked,
            "sent": traffic.sent, "sent_bytes": traffic.sent_bytes,
            "received": traffic.received, "received_bytes": traffic.received_bytes,
        })
    );
    Ok(())
}

/// Message 1 of a recorded Initial packet.
fn recorded_message(text: &str) -> Result<Vec<u8>> {
    let bytes = crate::relay::from_hex(text).ok_or("--recorded: expected hexadecimal digits")?;
    match header::decode(&bytes) {
        Ok(Packet::Initial(initial)) if !initial.message.is_empty() => Ok(initial.message.to_vec()),
        _ => Err("--recorded: expected an Initial packet with a message 1".into()),
    }
}
