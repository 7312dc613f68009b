//! A peer that has the passphrase, and sends what a script says.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use comity::Config;
use comity::session::{
    BadParameters, Caller, CallerConfig, CallerCredentials, Ecn, Opener, Passphrase, PathFrame,
    Protocol, Randomness, Transmit,
};
use comity_congestion::Tag;
use comity_transport::wire::frame::{self, Content, Frame};
use comity_units::{PacketNumber, Span, Time};
use serde_json::json;

use crate::result::Result;
use crate::scripts::{Name, Script};

const PAUSE: Duration = Duration::from_micros(100);
const PING: [u8; 5] = [0, 0, 0, 0, 1];
/// Between two packets that keep the connection.
const KEEP: Span = Span::from_millis(500);
/// Packets that leave without a look at what has come.
const BATCH: usize = 8;

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
                _ => {}
            }
        }
    }

    fn on_duplicate(&mut self) {}

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.closed.is_some() {
            return None;
        }
        if self.has_received
            && let Some(payload) = self.script.next(self.largest)
        {
            out.extend([0; 4]);
            out.extend(payload);
            self.sent += 1;
            return self.transmit();
        }
        if now >= self.kept_at + KEEP {
            self.kept_at = now;
            out.extend(PING);
            return self.transmit();
        }
        None
    }

    fn write_path_frame(
        &mut self,
        _now: Time,
        _frame: PathFrame,
        _length: usize,
        _out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        None
    }

    fn poll_path_frame(&mut self) -> Option<PathFrame> {
        None
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

/// One connection and its end.
fn connect(
    arguments: &Arguments,
    calling: CallerConfig,
    script: Script,
    randomness: &mut Randomness,
) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(arguments.to)?;
    socket.set_nonblocking(true)?;
    let clock = Clock::start();
    let opener = opener(script);
    let randomness = randomness.split();
    let mut caller = Caller::new(clock.now(), arguments.to, calling, opener, randomness)?;
    let mut buffer = vec![0; 65_535];
    let mut out = Vec::new();
    let mut done_at = None;
    let mut opened_at = None;
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
            // A buffer that is full, or a listener that has ended, loses packets.
            let _ = socket.send(&out);
        }
        while let Ok(length) = socket.recv(&mut buffer) {
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
                println!("{}", json!({"event": "connected"}));
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
            if is_over || took > 60.0 {
                let closed = peer.closed.as_ref();
                println!(
                    "{}",
                    json!({
                        "event": "end", "packets": peer.sent, "received": peer.received,
                        "seconds": took, "frames": peer.script.frames(),
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
    own.proofs = arguments.script != Name::AllAcked;
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
