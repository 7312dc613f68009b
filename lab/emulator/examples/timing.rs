//! Measures the timing error of an emulator at a rate:
//! `cargo run --release -p comity-emulator --example timing -- 8Mbps 10s`.
//!
//! One thread sends 1200-byte datagrams at the rate of the link and one receives them; both share
//! the machine with the emulator, as programs under test do.
#![allow(clippy::print_stdout, reason = "it is a program")]
#![allow(clippy::disallowed_methods, reason = "it runs on the real clock")]

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use comity_emulator::{Config, Emulator};
use comity_link::{Limit, LinkConfig, Queue};
use comity_units::{DataSize, Rate, Span};

const PAYLOAD: usize = 1_200;
const WIRE: u64 = PAYLOAD as u64 + 28;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let rate: Rate = words.next().unwrap_or("8Mbps".into()).parse()?;
    let duration: Span = words.next().unwrap_or("10s".into()).parse()?;
    let spin: Span = words.next().unwrap_or("60us".into()).parse()?;

    let target = UdpSocket::bind("127.0.0.1:0")?;
    target.set_read_timeout(Some(Duration::from_millis(100)))?;
    let config = Config {
        forward: LinkConfig {
            queue: Queue::DropTail(Limit::Packets(1_000)),
            ..LinkConfig::new(rate, Span::from_millis(20))
        },
        spin,
        ..Config::new("127.0.0.1:0".parse()?, target.local_addr()?)
    };
    let emulator = Emulator::bind(config)?.spawn()?;
    let address = emulator.local_address();

    let is_over = Arc::new(AtomicBool::new(false));
    let receiver = std::thread::spawn({
        let is_over = is_over.clone();
        move || {
            let mut received = 0_u64;
            let mut buffer = [0; 2_000];
            while !is_over.load(Ordering::Relaxed) {
                received += u64::from(target.recv(&mut buffer).is_ok());
            }
            received
        }
    });
    let caller = UdpSocket::bind("127.0.0.1:0")?;
    let gap = rate.transmission_time(DataSize::new(WIRE));
    let began = Instant::now();
    let mut sent = 0_u64;
    while Span::from(began.elapsed()) < duration {
        // Sends the packets that are due, then rests: the emulator needs the processor too.
        let due = Span::from(began.elapsed()).as_nanos() / gap.as_nanos().max(1);
        while sent < due {
            caller.send_to(&[0; PAYLOAD], address)?;
            sent += 1;
        }
        let rest = gap.as_nanos().clamp(50_000, 1_000_000);
        std::thread::sleep(Duration::from_nanos(rest));
    }
    std::thread::sleep(Duration::from_millis(100));
    let report = emulator.stop()?;
    is_over.store(true, Ordering::Relaxed);
    let received = receiver.join().map_err(|_| "the receiver panicked")?;

    let way = &report.statistics.forward;
    let timing = &way.timing;
    println!(
        "{rate} for {duration}, spin {spin}: sent {sent}, arrived {}, released {}, queue full {}, received {received}",
        way.counts.arrived.packets, way.counts.released.packets, way.counts.dropped_full.packets,
    );
    println!(
        "error: median {}, 99% {}, 99.9% {}, max {}, late {}; {:.0} packets handled per second",
        timing.p50,
        timing.p99,
        timing.p999,
        timing.max,
        timing.late,
        report.statistics.packets_per_second()
    );
    for sign in report.statistics.overload() {
        println!("OVERLOAD: {sign}");
    }
    Ok(())
}
