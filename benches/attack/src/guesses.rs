//! Callers that guess passphrases, as many at a time as there are addresses.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use comity::Config;
use comity::session::{Caller, CallerConfig, CallerCredentials, Ecn, PassphraseKey, Randomness};
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

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let clock = Clock::start();
    let mut parameters = Vec::new();
    let config = Config::builder().insecure().build()?;
    config.parameters().encode(&mut parameters)?;
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
