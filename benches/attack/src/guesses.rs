//! Who guesses passphrases: callers, as many at a time as there are addresses, and a listener.

use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

use comity::Config;
use comity::session::{
    Caller, CallerConfig, CallerCredentials, Ecn, Listener, ListenerConfig, ListenerCredentials,
    PassphraseKey, Randomness,
};
use comity_transport::wire::header::{self, Packet};
use serde_json::json;

use crate::peer::{Clock, Scripted, opener};
use crate::result::Result;
use crate::scripts::Script;
use crate::strangers::Strangers;

const PAUSE: Duration = Duration::from_micros(200);
/// Guesses whose answers are awaited, and of those that are not answered.
const AT_A_TIME: usize = 64;
const UNANSWERED: usize = 512;
/// Shares with which the listener answers a packet.
const SHARES: usize = 200;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    to: SocketAddr,
    #[arg(long)]
    seconds: u64,
    /// The first address to guess from
    #[arg(long, default_value_t = Ipv4Addr::new(127, 16, 0, 1))]
    from: Ipv4Addr,
    /// How many addresses
    #[arg(long, default_value_t = 254)]
    hosts: u32,
    /// Guesses in a second; without, as many as are answered
    #[arg(long)]
    rate: Option<f64>,
}

/// One guess and the address that it is from.
struct Guess {
    from: Ipv4Addr,
    caller: Caller<Scripted>,
}

#[derive(clap::Args)]
pub(crate) struct Listening {
    #[arg(long)]
    seconds: u64,
}

fn parameters() -> Result<Vec<u8>> {
    let mut parameters = Vec::new();
    let config = Config::builder().insecure().build()?;
    config.parameters().encode(&mut parameters)?;
    Ok(parameters)
}

/// Each share, made with a guess, lets the listener test it by message 3 of the caller.
pub(crate) fn listen(arguments: &Listening) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(1)))?;
    let address = socket.local_addr()?.to_string();
    println!("{}", json!({"event": "listening", "address": address}));
    let clock = Clock::start();
    let mut randomness = Randomness::system();
    let key = PassphraseKey::new(randomness.bytes());
    let config = ListenerConfig::new(ListenerCredentials::Passphrase(key), parameters()?);
    let opener = opener(Script::silent());
    let mut listener = Listener::new(clock.now(), config, opener, randomness.split())?;
    let (mut buffer, mut out) = (vec![0; 65_535], Vec::new());
    let (mut tested, mut answers) = (BTreeSet::new(), 0_u64);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(arguments.seconds) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let packet = &buffer[..length];
        let times = match header::decode(packet) {
            Ok(Packet::Confirm(confirm)) => {
                tested.insert(confirm.message.to_vec());
                continue;
            }
            Ok(Packet::Initial(initial)) if !initial.message.is_empty() => SHARES,
            _ => 1,
        };
        for _ in 0..times {
            let mut packet = packet.to_vec();
            listener.handle_datagram(clock.now(), from, Ecn::NotCapable, &mut packet);
            while listener.poll_reply(&mut out).is_some() {
                answers += u64::from(times > 1);
                socket.send_to(&out, from)?;
                out.clear();
            }
        }
    }
    println!(
        "{}",
        json!({"event": "end", "answers": answers, "tested": tested.len()})
    );
    Ok(())
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let clock = Clock::start();
    let parameters = parameters()?;
    let mut randomness = Randomness::system();
    let mut strangers = Strangers::bind()?;
    let mut guesses: VecDeque<Guess> = VecDeque::new();
    let most = arguments.rate.map_or(AT_A_TIME, |_| UNANSWERED);
    let (mut begun, mut answered, mut refused) = (0_u32, 0_u64, 0_u64);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(arguments.seconds) {
        let now = clock.now();
        guesses.retain(|guess| !guess.caller.is_over());
        let due = arguments.rate.map_or(u32::MAX, |rate| {
            (began.elapsed().as_secs_f64() * rate) as u32
        });
        while guesses.len() < most && begun < due {
            let credentials = CallerCredentials::Passphrase(PassphraseKey::new(randomness.bytes()));
            let calling = CallerConfig::new(credentials, parameters.clone());
            let opener = opener(Script::silent());
            guesses.push_back(Guess {
                from: Ipv4Addr::from_bits(arguments.from.to_bits() + begun % arguments.hosts),
                caller: Caller::new(now, arguments.to, calling, opener, randomness.split())?,
            });
            begun += 1;
        }
        let mut out = Vec::new();
        for guess in &mut guesses {
            guess.caller.on_timer(now);
            while guess.caller.poll_transmit(now, &mut out).is_some() {
                strangers.send(guess.from, arguments.to, &out)?;
                out.clear();
            }
        }
        strangers.receive(|to, packet| {
            match header::decode(packet) {
                Ok(Packet::Answer(answer)) if answer.ticket.is_empty() => {
                    refused += 1;
                    // It has learnt what it could, and need not wait until it believes it.
                    let own = answer.destination;
                    guesses.retain(|guess| guess.from != to || guess.caller.id() != own);
                    return;
                }
                Ok(Packet::Answer(_)) => answered += 1,
                _ => {}
            }
            for guess in guesses.iter_mut().filter(|guess| guess.from == to) {
                guess
                    .caller
                    .handle_datagram(now, arguments.to, Ecn::NotCapable, packet);
            }
        })?;
        sleep(PAUSE);
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "event": "end", "seconds": seconds, "begun": begun,
            "answered": answered, "refused": refused,
        })
    );
    Ok(())
}
