//! A peer that has the passphrase, and sends what a script says.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use comity::Config;
use comity::session::{
    BadParameters, Caller, CallerConfig, CallerCredentials, Ecn, Opener, Passphrase, PathFrame,
    Protocol, Randomness, Transmit,
};
use comity_congestion::Tag;
use comity_transport::wire::frame::{self, Content, Frame, encode_departure};
use comity_units::{PacketNumber, Span, Time};
use serde_json::json;

use crate::result::Result;
use crate::scripts::{Name, Script};
use crate::strangers::Traffic;

const PAUSE: Duration = Duration::from_micros(100);
const PING: u8 = 0x01;
const PATH_RESPONSE: u8 = 0x0f;
/// Between two packets that keep the connection.
const KEEP: Span = Span::from_millis(500);
/// Packets that leave without a look at what has come.
const BATCH: usize = 8;
/// The longest that a peer may state.
const LONGEST_ACK_DELAY: Span = Span::from_secs(16);
/// Packets that show that the other end has followed to an address.
const FOLLOWED: u64 = 5;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    to: SocketAddr,
    #[arg(long, env = "COMITY_PASSPHRASE", hide_env_values = true)]
    passphrase: String,
    #[arg(long)]
    script: Name,
    /// For how many seconds the connection is kept after the script
    #[arg(long, default_value_t = 0.0)]
    hold: f64,
    /// How many connections, one after the other
    #[arg(long, default_value_t = 1)]
    connections: u64,
    /// The number of the first one, for scripts that differ by connection
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// The longest time for a script, in seconds
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// Moves to a new port and back, each time after so many milliseconds
    #[arg(long)]
    move_ms: Option<u64>,
    /// The latency that it requests, in seconds
    #[arg(long)]
    latency: Option<u64>,
}

/// Maps the monotonic clock to the times of the session.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Time {
        Time::from_secs(1) + Span::from(self.0.elapsed())
    }
}

/// A transport without congestion control and without any other decency.
pub(crate) struct Scripted {
    script: Script,
    next: u64,
    next_at: Time,
    path_frames: VecDeque<PathFrame>,
    has_received: bool,
    kept_at: Time,
    largest: Option<u64>,
    received: u64,
    sent: u64,
    closed: Option<(u64, String)>,
}

pub(crate) fn opener(script: Script) -> Opener<Scripted> {
    let mut script = Some(script);
    Box::new(move |_, _, _, _| {
        Ok(Scripted {
            script: script.take().ok_or(BadParameters::Unfit)?,
            next: 0,
            next_at: Time::ZERO,
            path_frames: VecDeque::new(),
            has_received: false,
            kept_at: Time::ZERO,
            largest: None,
            received: 0,
            sent: 0,
            closed: None,
        })
    })
}

impl Scripted {
    fn transmit(&mut self) -> Option<Transmit> {
        let number = PacketNumber::new(self.next);
        self.next += 1;
        Some(Transmit {
            number,
            ecn: Ecn::NotCapable,
            leave_by: Time::MAX,
        })
    }
}

impl Protocol for Scripted {
    fn on_established(&mut self, _now: Time, _round_trip: Option<Span>) {}

    fn on_packet(&mut self, _now: Time, number: PacketNumber, _ecn: Ecn, payload: &[u8]) {
        self.has_received = true;
        self.received += 1;
        self.largest = self.largest.max(Some(number.get()));
        let Ok(payload) = frame::decode(payload, Content::Present) else {
            return;
        };
        let token = payload.departure.as_micros() as u8;
        self.script.on_packet(number.get(), token);
        for frame in payload.frames.flatten() {
            match frame {
                Frame::Close(close) => {
                    self.closed = Some((close.code.get(), close.reason.to_owned()));
                }
                Frame::Tag(Tag::Round { round, .. }) => self.script.on_round(round),
                Frame::PathChallenge(bytes) => {
                    self.path_frames.push_back(PathFrame::Challenge(bytes));
                }
                _ => {}
            }
        }
    }

    fn on_duplicate(&mut self) {}

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.closed.is_some() {
            return None;
        }
        let departure = self.script.departure(now);
        if self.has_received
            && now >= self.next_at
            && let Some(payload) = self.script.next(self.largest)
        {
            self.next_at = now + self.script.interval();
            encode_departure(departure, out);
            out.extend(payload);
            self.sent += 1;
            return self.transmit();
        }
        if now >= self.kept_at + KEEP {
            self.kept_at = now;
            encode_departure(departure, out);
            out.push(PING);
            return self.transmit();
        }
        None
    }

    fn write_path_frame(
        &mut self,
        now: Time,
        frame: PathFrame,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        // It calls, so it asks no address for anything.
        let PathFrame::Response(bytes) = frame else {
            return None;
        };
        let end = out.len() + length;
        encode_departure(self.script.departure(now), out);
        out.push(PATH_RESPONSE);
        out.extend(bytes);
        out.resize(end.max(out.len()), 0);
        self.transmit()
    }

    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.path_frames.pop_front()
    }

    fn on_path_changed(&mut self, _now: Time, _from: SocketAddr, _to: SocketAddr) {}

    fn probe_timeout(&self) -> Span {
        Span::from_millis(100)
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn next_timer(&self) -> Time {
        self.kept_at + KEEP
    }

    fn on_timer(&mut self, _now: Time) {}
}

/// The ports of a peer: its own, and new ones if it moves.
struct Ports {
    to: SocketAddr,
    /// Each with the number of packets that came to it.
    sockets: Vec<(UdpSocket, u64)>,
    at: usize,
    traffic: Traffic,
}

impl Ports {
    fn bind(to: SocketAddr) -> Result<Self> {
        let mut ports = Self {
            to,
            sockets: Vec::new(),
            at: 0,
            traffic: Traffic::default(),
        };
        ports.add()?;
        Ok(ports)
    }

    fn add(&mut self) -> Result<()> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(self.to)?;
        socket.set_nonblocking(true)?;
        self.sockets.push((socket, 0));
        Ok(())
    }

    /// From its own port to a new one, or back.
    fn step(&mut self) -> Result<()> {
        if self.at == 0 {
            self.add()?;
            self.at = self.sockets.len() - 1;
        } else {
            self.at = 0;
        }
        Ok(())
    }

    fn send(&mut self, packet: &[u8]) {
        // A buffer that is full, or a listener that has ended, loses packets.
        let _ = self.sockets[self.at].0.send(packet);
        self.traffic.sent += 1;
        self.traffic.sent_bytes += packet.len() as u64;
    }

    /// The length of the next packet that came to any port.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        for (socket, packets) in &mut self.sockets {
            if let Ok(length) = socket.recv(buffer) {
                *packets += 1;
                self.traffic.received += 1;
                self.traffic.received_bytes += length as u64;
                return Some(length);
            }
        }
        None
    }

    /// How many new ports the other end has sent to.
    fn followed(&self) -> usize {
        { self.sockets.iter().skip(1) }
            .filter(|(_, packets)| *packets >= FOLLOWED)
            .count()
    }
}

/// One connection and its end.
fn connect(
    arguments: &Arguments,
    calling: CallerConfig,
    script: Script,
    randomness: &mut Randomness,
) -> Result<()> {
    let mut ports = Ports::bind(arguments.to)?;
    let clock = Clock::start();
    let opener = opener(script);
    let randomness = randomness.split();
    let mut caller = Caller::new(clock.now(), arguments.to, calling, opener, randomness)?;
    let mut buffer = vec![0; 65_535];
    let mut out = Vec::new();
    let mut done_at = None;
    let mut opened_at = None;
    let mut moved_at = None;
    let hold = Duration::from_secs_f64(arguments.hold);
    loop {
        let now = clock.now();
        caller.on_timer(now);
        let mut is_busy = false;
        for _ in 0..BATCH {
            out.clear();
            if caller.poll_transmit(now, &mut out).is_none() {
                break;
            }
            is_busy = true;
            ports.send(&out);
        }
        while let Some(length) = ports.receive(&mut buffer) {
            is_busy = true;
            let packet = &mut buffer[..length];
            caller.handle_datagram(now, arguments.to, Ecn::NotCapable, packet);
        }
        if caller.is_over() && caller.session().is_none() {
            return Err("the call failed".into());
        }
        if let Some(session) = caller.session_mut() {
            let peer = session.protocol_mut();
            if opened_at.is_none() {
                opened_at = Some(Instant::now());
                ports.traffic = Traffic::default();
                println!("{}", json!({"event": "connected"}));
            }
            if let Some(every) = arguments.move_ms
                && moved_at
                    .or(opened_at)
                    .is_some_and(|at: Instant| at.elapsed() >= Duration::from_millis(every))
            {
                moved_at = Some(Instant::now());
                ports.step()?;
            }
            if peer.closed.is_none()
                && peer.has_received
                && peer.script.is_done()
                && done_at.is_none()
            {
                done_at = Some(Instant::now());
                println!("{}", json!({"event": "sent", "packets": peer.sent}));
            }
            let is_over = match (&peer.closed, done_at) {
                (Some(_), _) => true,
                (None, Some(at)) => at.elapsed() >= hold,
                (None, None) => false,
            };
            let took = opened_at.map_or(0.0, |at| at.elapsed().as_secs_f64());
            if is_over || took > arguments.seconds {
                let closed = peer.closed.as_ref();
                println!(
                    "{}",
                    json!({
                        "event": "end", "packets": peer.sent, "received": peer.received,
                        "seconds": took, "frames": peer.script.frames(),
                        "sent_bytes": ports.traffic.sent_bytes,
                        "received_bytes": ports.traffic.received_bytes,
                        "moves": ports.followed(),
                        "code": closed.map(|(code, _)| *code),
                        "reason": closed.map(|(_, reason)| reason.clone()),
                    })
                );
                return Ok(());
            }
        }
        let is_paced = caller
            .session()
            .is_some_and(|session| session.protocol().script.is_paced());
        if !is_busy || is_paced {
            sleep(PAUSE);
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let key = Passphrase::stretch(&arguments.passphrase)?;
    let mut parameters = Vec::new();
    let config = Config::builder().insecure().build()?;
    let mut own = config.parameters();
    // An older peer proves nothing, and meets the numbers that are left out.
    own.proofs = !matches!(arguments.script, Name::AllAcked | Name::ManyAcks);
    if arguments.script == Name::ManyAcks {
        // Lost packets are remembered for so long.
        own.max_ack_delay = LONGEST_ACK_DELAY;
    }
    if let Some(seconds) = arguments.latency {
        own.latency = Span::from_secs(seconds);
    }
    own.encode(&mut parameters)?;
    let mut randomness = Randomness::system();
    for connection in arguments.first..arguments.first + arguments.connections {
        let credentials = CallerCredentials::Passphrase(key.clone());
        let calling = CallerConfig::new(credentials, parameters.clone());
        let script = Script::named(arguments.script, connection);
        connect(arguments, calling, script, &mut randomness)?;
    }
    Ok(())
}
