//! One listener with thousands of authenticated peers, each with a small stream: how many are
//! served, what a peer takes of memory and processor, and whether both ends' counts agree.
//!
//! ```sh
//! cargo bench -p comity --bench load -- [peers .. [--sockets N] [--seconds S] [--bytes B] [--interval MS]]
//! cargo bench -p comity --bench load -- --simulated [peers ..]
//! ```
//!
//! Each peer sends a section of 1,250 bytes every 100 ms (100 kb/s) with a deadline of 400 ms. A
//! section is one packet, since packets and their acknowledgements cost more than bytes. The
//! listener is a process of its own; another one has the callers, which share sockets. With
//! `--simulated`, one listener and all callers run in virtual time, without sockets.
#![allow(clippy::print_stdout, reason = "a bench that reports")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

mod callers;
#[path = "../common/mod.rs"]
mod common;
mod listener;
mod measure;
mod simulated;

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use comity::ConfigBuilder;
use comity_testkit::memory::Counting;

use common::Failure;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What each peer sends, and how long.
#[derive(Clone, Copy, Debug)]
struct Plan {
    peers: usize,
    sockets: usize,
    bytes: usize,
    interval: Duration,
    seconds: u64,
}

impl Plan {
    fn options() -> ConfigBuilder {
        common::options()
            .latency(Duration::from_millis(400))
            .connect_timeout(Duration::from_secs(20))
            .max_connections(1 << 17)
            .max_waiting(1_000)
    }

    /// The arguments from which a process makes the same plan.
    fn arguments(&self) -> Vec<String> {
        let numbers = [
            ("--sockets", self.sockets as u64),
            ("--bytes", self.bytes as u64),
            ("--interval", self.interval.as_millis() as u64),
            ("--seconds", self.seconds),
        ];
        let pairs = numbers.map(|(name, number)| [name.to_owned(), number.to_string()]);
        let peers = std::iter::once(self.peers.to_string());
        peers.chain(pairs.into_iter().flatten()).collect()
    }
}

fn main() -> Result<(), Failure> {
    let mut plan = Plan {
        peers: 0,
        sockets: 1,
        bytes: 1_250,
        interval: Duration::from_millis(100),
        seconds: 10,
    };
    let (mut sizes, mut listener, mut is_simulated) = (Vec::new(), None, false);
    // Cargo passes `--bench` to every benchmark.
    let mut arguments = std::env::args().skip(1).filter(|given| given != "--bench");
    while let Some(argument) = arguments.next() {
        let mut next = || {
            arguments
                .next()
                .ok_or(format!("{argument}: expected a value"))
        };
        match argument.as_str() {
            "--sockets" => plan.sockets = next()?.parse()?,
            "--bytes" => plan.bytes = next()?.parse()?,
            "--interval" => plan.interval = Duration::from_millis(next()?.parse()?),
            "--seconds" => plan.seconds = next()?.parse()?,
            "--call" => listener = Some(next()?.parse::<SocketAddr>()?),
            "--simulated" => is_simulated = true,
            size => sizes.push(size.parse()?),
        }
    }
    if sizes.is_empty() {
        sizes = match is_simulated {
            true => vec![100, 1_000, 10_000, 50_000],
            false => vec![10_000],
        };
    }
    let is_one = sizes.len() == 1;
    for peers in sizes {
        let plan = Plan { peers, ..plan };
        match listener {
            Some(address) => callers::run(plan, address)?,
            None if is_simulated => simulated::run(plan)?,
            None if is_one => listener::run(plan)?,
            // A process that has served others holds memory that it need not ask for again.
            None => {
                let mut child = Command::new(std::env::current_exe()?);
                match child.args(plan.arguments()).status()? {
                    status if status.success() => {}
                    status => return Err(format!("{peers} peers: {status}").into()),
                }
            }
        }
    }
    Ok(())
}
