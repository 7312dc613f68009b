//! Sends paced sections to a listener, and prints their fates.
//!
//! ```sh
//! cargo run -p comity --example send -- 127.0.0.1:5000 "correct horse battery"
//! ```
#![allow(clippy::print_stdout, reason = "an example that reports")]
#![allow(clippy::disallowed_methods, reason = "it plays in real time")]

use std::time::{Duration, Instant};

use comity::{Config, Importance, Section, connect};

type Failure = Box<dyn std::error::Error>;

/// A picture every 20 ms; each twelfth is larger and more important: 6 Mb/s.
const FRAMES: u32 = 500;
const INTERVAL: Duration = Duration::from_millis(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("expected ADDRESS:PORT")?.parse()?;
    let passphrase = arguments.next().ok_or("expected a passphrase")?;
    let options = Config::builder()
        .passphrase(passphrase)
        .latency(Duration::from_millis(200))
        .build()?;
    let connection = connect(address, options).await?;
    println!("connected to {}", connection.peer_address());

    let began = Instant::now();
    let mut last_key = None;
    for frame in 0..FRAMES {
        let due = began + INTERVAL * frame;
        tokio::time::sleep_until(due.into()).await;
        let is_key = frame % 12 == 0;
        let mut section = Section::new(vec![0; if is_key { 40_000 } else { 13_000 }])
            .source_time(due)
            .importance(Importance(if is_key { 200 } else { 100 }));
        if let (false, Some(key)) = (is_key, last_key) {
            section = section.needs(key);
        }
        let id = connection.send(section).await?;
        if is_key {
            last_key = Some(id);
        }
        if frame % 50 == 49 {
            let target = connection.target_bitrate().current();
            let rate = target.map_or("unknown".to_owned(), |rate| rate.to_string());
            println!("{} frames; the network would take {rate}", frame + 1);
        }
    }
    connection.finish().await?;
    let statistics = connection.stats();
    let sections = statistics.sent.sections;
    println!(
        "{} frames: {} arrived, {} expired, {} given up; {} bytes left after their deadline",
        sections.submitted,
        sections.acknowledged,
        sections.expired_unsent + sections.expired_in_network,
        sections.infeasible + sections.dependency,
        statistics.sent.counters.late_bytes
    );
    Ok(())
}
