//! Somebody on the path: forwards, records, changes and replays packets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use comity::session::{ConnectionId, Pattern};
use comity_transport::wire::header::{self, Accept, Answer, Initial, Packet, Reset, Retry};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::json;

use crate::result::Result;

const PAUSE: Duration = Duration::from_micros(100);
const LONGEST: usize = 65_535;
/// Where copies leave from.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
/// How long what comes back to a copy is handed on.
const HANDED_ON: Duration = Duration::from_secs(1);

/// What the relay sends on its own, from its address toward the listener, or to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Repeat {
    /// The recorded Initial packet with its cookie and its message 1
    Initial,
    /// The recorded Confirm packet
    Confirm,
    /// The first Data packet to the listener
    Data,
    /// Reset packets of the connection with made-up tokens, to the caller
    ForgedReset,
    /// The first Reset packet that came by, to the caller
    OldReset,
    /// The Reset packet by which another listener answers a Data packet of this connection
    OtherReset,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    to: SocketAddr,
    #[arg(long)]
    seconds: u64,
    /// The share of packets in which a bit is changed
    #[arg(long, default_value_t = 0.0)]
    mangle: f64,
    /// Answers the first packet of a caller with forged packets of every kind, before the listener
    #[arg(long)]
    forge: bool,
    /// Sends them before each first packet of a caller, and behind each answer of the listener
    #[arg(long)]
    inject: bool,
    /// Sends only a refusal behind each answer of the listener
    #[arg(long, conflicts_with = "inject")]
    refuse: bool,
    /// Sends Retry packets with so many cookies in turn, at the rate, to each caller that is not in
    #[arg(long)]
    cookies: Option<u16>,
    /// Sends a copy of each Data packet to the listener first, from an address of its own; what
    /// comes back to that is handed on for a second
    #[arg(long)]
    divert: bool,
    /// The other listener, for `other-reset`
    #[arg(long)]
    other: Option<SocketAddr>,
    /// What is repeated
    #[arg(long)]
    repeat: Option<Repeat>,
    /// How many in a second
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// When the repeating begins, after what is repeated was recorded
    #[arg(long, default_value_t = 1)]
    after: u64,
    /// How long it lasts
    #[arg(long, default_value_t = 3)]
    lasts: u64,
}

/// A caller, and the socket that speaks for it to the listener.
struct Flow {
    caller: SocketAddr,
    socket: UdpSocket,
    /// The socket that copies leave from, and since when something comes back to it.
    copies: UdpSocket,
    copied_since: Option<Instant>,
    /// Whether forged packets have answered its first packet.
    is_forged: bool,
    /// The caller's identifier, until it is in.
    calls: Option<ConnectionId>,
}

/// The packets that are worth something later.
#[derive(Default)]
struct Recorded {
    initial: Option<Vec<u8>>,
    confirm: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
    reset: Option<Vec<u8>>,
    /// The destination of the packets to the listener: whom a Reset would be from.
    listener: Option<ConnectionId>,
}

impl Recorded {
    fn note(&mut self, packet: &[u8]) {
        let slot = match header::decode(packet) {
            Ok(Packet::Initial(initial)) if !initial.message.is_empty() => &mut self.initial,
            Ok(Packet::Confirm(_)) => &mut self.confirm,
            Ok(Packet::Reset(_)) => &mut self.reset,
            Ok(Packet::Data { header, .. }) => {
                self.listener.get_or_insert(header.destination);
                &mut self.data
            }
            _ => return,
        };
        if slot.is_none() {
            *slot = Some(packet.to_vec());
        }
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digits = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    rest.is_empty()
        .then(|| pairs.iter().map(digits).collect())?
}

fn refusal(source: ConnectionId) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    Answer {
        destination: source,
        ticket: &[],
        message: &[1],
    }
    .encode(&mut out)?;
    Ok(out)
}

/// What somebody without a key can make up in answer to an Initial packet.
fn forged(source: ConnectionId, random: &mut Xoshiro256PlusPlus) -> Result<Vec<Vec<u8>>> {
    let mut noise = [0; 96];
    random.fill_bytes(&mut noise);
    let mut packets = Vec::new();
    let mut out = Vec::new();
    let cookie = &noise[..36];
    Retry {
        destination: source,
        cookie,
    }
    .encode(&mut out)?;
    packets.push(std::mem::take(&mut out));
    Answer {
        destination: source,
        ticket: &noise[..80],
        message: &noise[..33],
    }
    .encode(&mut out)?;
    packets.push(std::mem::take(&mut out));
    packets.push(refusal(source)?);
    header::encode_version_negotiation(source, &[77], &mut out)?;
    packets.push(std::mem::take(&mut out));
    Accept {
        destination: source,
        message: &noise[..60],
    }
    .encode(&mut out)?;
    packets.push(out);
    let token = *noise.last_chunk().ok_or("16 bytes")?;
    packets.push(Reset { source, token }.encode());
    Ok(packets)
}

struct Relay<'a> {
    arguments: &'a Arguments,
    front: UdpSocket,
    flows: Vec<Flow>,
    recorded: Recorded,
    random: Xoshiro256PlusPlus,
    forwarded: u64,
    mangled: u64,
    forged: u64,
    /// Retry packets with cookies in turn, each to all callers.
    retries: u64,
    /// Bytes to the listener, and from it.
    sent_bytes: u64,
    received_bytes: u64,
    handed_on: u64,
    diverted: u64,
}

/// A socket that speaks to the listener.
fn toward(to: SocketAddr, from: Ipv4Addr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Relay<'_> {
    fn mangle(&mut self, packet: &mut [u8]) {
        self.forwarded += 1;
        let share = self.random.next_u64() as f64 / u64::MAX as f64;
        if share < self.arguments.mangle && !packet.is_empty() {
            let at = self.random.next_u64() as usize % packet.len();
            packet[at] ^= 1 << (self.random.next_u64() % 8);
            self.mangled += 1;
        }
    }

    fn flow(&mut self, caller: SocketAddr) -> Result<usize> {
        if let Some(at) = self.flows.iter().position(|flow| flow.caller == caller) {
            return Ok(at);
        }
        self.flows.push(Flow {
            caller,
            socket: toward(self.arguments.to, Ipv4Addr::LOCALHOST)?,
            copies: toward(self.arguments.to, STRANGER)?,
            copied_since: None,
            is_forged: false,
            calls: None,
        });
        Ok(self.flows.len() - 1)
    }

    /// Whether anything came from a caller.
    fn forward(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let Ok((length, caller)) = self.front.recv_from(buffer) else {
            return Ok(false);
        };
        let packet = &mut buffer[..length];
        let at = self.flow(caller)?;
        self.recorded.note(packet);
        self.sent_bytes += length as u64;
        match header::decode(packet) {
            Ok(Packet::Initial(initial)) => self.flows[at].calls = Some(initial.source),
            Ok(Packet::Data { .. }) => self.flows[at].calls = None,
            _ => {}
        }
        let is_forging = self.arguments.forge && !self.flows[at].is_forged;
        if (is_forging || self.arguments.inject)
            && let Ok(Packet::Initial(Initial {
                source,
                pattern: Pattern::CPace,
                ..
            })) = header::decode(packet)
        {
            self.flows[at].is_forged = true;
            self.forge(source, caller)?;
        }
        if self.arguments.divert && matches!(header::decode(packet), Ok(Packet::Data { .. })) {
            let _ = self.flows[at].copies.send(packet);
        }
        self.mangle(packet);
        // A listener that was killed makes the system report that nobody is there.
        let _ = self.flows[at].socket.send(packet);
        Ok(true)
    }

    fn forge(&mut self, source: ConnectionId, caller: SocketAddr) -> Result<()> {
        for forged in forged(source, &mut self.random)? {
            self.front.send_to(&forged, caller)?;
            self.forged += 1;
        }
        Ok(())
    }

    /// Sends the Retry packets that are due.
    fn retry(&mut self, elapsed: Duration) -> Result<()> {
        let Some(cookies) = self.arguments.cookies else {
            return Ok(());
        };
        let due = (elapsed.as_secs_f64() * self.arguments.rate as f64) as u64;
        while self.retries < due {
            self.retries += 1;
            let cookie = ((self.retries % u64::from(cookies)) as u16).to_be_bytes();
            for flow in &self.flows {
                let Some(destination) = flow.calls else {
                    continue;
                };
                let mut out = Vec::new();
                Retry {
                    destination,
                    cookie: &cookie,
                }
                .encode(&mut out)?;
                // A buffer that is full loses packets.
                let _ = self.front.send_to(&out, flow.caller);
                self.forged += 1;
            }
        }
        Ok(())
    }

    fn reverse(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let mut is_any = false;
        for at in 0..self.flows.len() {
            let caller = self.flows[at].caller;
            while let Ok(length) = self.flows[at].socket.recv(buffer) {
                is_any = true;
                self.received_bytes += length as u64;
                let packet = &mut buffer[..length];
                self.recorded.note_reply(packet);
                let answered = match header::decode(packet) {
                    Ok(Packet::Retry(retry)) => Some(retry.destination),
                    Ok(Packet::Answer(answer)) => Some(answer.destination),
                    Ok(Packet::Accept(accept)) => Some(accept.destination),
                    _ => None,
                };
                self.mangle(packet);
                let _ = self.front.send_to(packet, caller);
                let Some(source) = answered else {
                    continue;
                };
                if self.arguments.inject {
                    self.forge(source, caller)?;
                } else if self.arguments.refuse {
                    self.front.send_to(&refusal(source)?, caller)?;
                    self.forged += 1;
                }
            }
            while let Ok(length) = self.flows[at].copies.recv(buffer) {
                is_any = true;
                let since = *self.flows[at].copied_since.get_or_insert_with(Instant::now);
                if since.elapsed() < HANDED_ON {
                    let _ = self.front.send_to(&buffer[..length], caller);
                    self.handed_on += 1;
                } else {
                    self.diverted += 1;
                }
            }
        }
        Ok(is_any)
    }

    /// What another listener answers to the Data packet that was recorded.
    fn ask_other(&mut self) -> Option<()> {
        let data = self.recorded.data.as_ref()?;
        let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
        other
            .set_read_timeout(Some(Duration::from_millis(200)))
            .ok()?;
        other.send_to(data, self.arguments.other?).ok()?;
        let mut answer = [0; 64];
        let length = other.recv(&mut answer).ok()?;
        self.recorded.note_reply(&answer[..length]);
        Some(())
    }

    /// The packet to repeat, once it is known.
    fn repeated(&mut self) -> Option<Vec<u8>> {
        match self.arguments.repeat? {
            Repeat::Initial => self.recorded.initial.clone(),
            Repeat::Confirm => self.recorded.confirm.clone(),
            Repeat::Data => self.recorded.data.clone(),
            Repeat::OldReset => self.recorded.reset.clone(),
            Repeat::OtherReset => {
                if self.recorded.reset.is_none() {
                    self.ask_other();
                }
                self.recorded.reset.clone()
            }
            Repeat::ForgedReset => {
                let mut token = [0; 16];
                self.random.fill_bytes(&mut token);
                let source = self.recorded.listener?;
                Some(Reset { source, token }.encode())
            }
        }
    }

    fn repeat(&mut self, packet: &[u8]) -> io::Result<()> {
        let Some(flow) = self.flows.last() else {
            return Ok(());
        };
        let sent = match self.arguments.repeat {
            Some(Repeat::ForgedReset | Repeat::OldReset | Repeat::OtherReset) => {
                self.front.send_to(packet, flow.caller)
            }
            _ => {
                self.sent_bytes += packet.len() as u64;
                self.flows[0].socket.send(packet)
            }
        };
        match sent {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

impl Recorded {
    /// Of the packets to a caller only a Reset is kept.
    fn note_reply(&mut self, packet: &[u8]) {
        if self.reset.is_none() && matches!(header::decode(packet), Ok(Packet::Reset(_))) {
            self.reset = Some(packet.to_vec());
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    front.set_nonblocking(true)?;
    println!(
        "{}",
        json!({"event": "listening", "address": front.local_addr()?.to_string()})
    );
    let mut relay = Relay {
        arguments,
        front,
        flows: Vec::new(),
        recorded: Recorded::default(),
        random: Xoshiro256PlusPlus::seed_from_u64(1),
        forwarded: 0,
        mangled: 0,
        forged: 0,
        retries: 0,
        sent_bytes: 0,
        received_bytes: 0,
        handed_on: 0,
        diverted: 0,
    };
    let mut buffer = vec![0; LONGEST];
    let began = Instant::now();
    let (mut recorded_at, mut repeated, mut is_reported) = (None, 0_u64, false);
    let (mut repeats_at, mut repeats_for) = (None, 0.0);
    while began.elapsed() < Duration::from_secs(arguments.seconds) {
        let mut is_busy = relay.forward(&mut buffer)?;
        is_busy |= relay.reverse(&mut buffer)?;
        relay.retry(began.elapsed())?;
        if !is_reported
            && let (Some(initial), Some(_)) = (&relay.recorded.initial, &relay.recorded.confirm)
        {
            let initial = to_hex(initial);
            println!("{}", json!({"event": "recorded", "initial": initial}));
            is_reported = true;
        }
        if let Some(packet) = relay.repeated() {
            let now = Instant::now();
            let recorded_at = *recorded_at.get_or_insert(now);
            let since = now.duration_since(recorded_at).as_secs_f64() - arguments.after as f64;
            if (0.0..arguments.lasts as f64).contains(&since) {
                if repeats_at.is_none() {
                    repeats_at = Some(now);
                    println!("{}", json!({"event": "repeating"}));
                }
                repeats_for = since;
                let due = (since * arguments.rate as f64) as u64;
                for _ in 0..due.saturating_sub(repeated).min(32) {
                    relay.repeat(&packet)?;
                    repeated += 1;
                }
                is_busy |= due > repeated;
            } else if since > 0.0 && repeats_for > 0.0 {
                println!(
                    "{}",
                    json!({"event": "repeated", "packets": repeated, "seconds": repeats_for})
                );
                repeats_for = 0.0;
            }
        }
        if !is_busy {
            sleep(PAUSE);
        }
    }
    println!(
        "{}",
        json!({
            "event": "end", "forwarded": relay.forwarded, "mangled": relay.mangled,
            "forged": relay.forged, "handed_on": relay.handed_on, "diverted": relay.diverted,
            "repeated": repeated, "callers": relay.flows.len(),
            "sent_bytes": relay.sent_bytes, "received_bytes": relay.received_bytes,
        })
    );
    Ok(())
}
