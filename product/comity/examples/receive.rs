//! Answers one caller after the other, and prints what arrives.
//!
//! ```sh
//! cargo run -p comity --example receive -- 0.0.0.0:5000 "correct horse battery"
//! ```
#![allow(clippy::print_stdout, reason = "an example that reports")]

use comity::{Config, Endpoint, Item};

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("expected ADDRESS:PORT")?.parse()?;
    let passphrase = arguments.next().ok_or("expected a passphrase")?;
    let options = Config::builder().passphrase(passphrase).build()?;
    let endpoint = Endpoint::bind(address, options)?;
    println!("listening at {}", endpoint.local_address());
    while let Some(connection) = endpoint.accept().await {
        println!("{} has called", connection.peer_address());
        while let Some(item) = connection.recv().await {
            if let Item::Gap(gap) = item {
                println!("{}, {}: missing, {:?}", gap.stream, gap.id, gap.reason);
            }
        }
        let received = connection.stats().received;
        println!(
            "{} on time, {} late; {} bytes; {}",
            received.on_time_sections,
            received.late_sections,
            received.delivered_bytes,
            connection.closed().await
        );
    }
    Ok(())
}
