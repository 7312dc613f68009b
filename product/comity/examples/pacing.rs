//! How exactly paced packets leave: the distribution of actual minus planned departure.
//!
//! ```sh
//! cargo run --release -p comity --example pacing -- [SECONDS] [MEGABITS PER SECOND]
//! ```
//!
//! The controller `fixed` spreads packets at exactly one rate; both ends are on this host.
#![allow(clippy::print_stdout, reason = "an example that reports")]

use std::time::Duration;

use comity::credentials::PresharedKey;
use comity::{Config, Deliver, Endpoint, Reliability, Section, connect};
use comity_congestion::table;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let rate = arguments.next().unwrap_or_else(|| "10".to_owned()) + "Mbps";
    let row = table::find("fixed")?;
    let parameters = table::Parameters::new().with("rate", row.parse("rate", &rate)?);
    let options = Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .controller("fixed")
        .controller_parameters(parameters)
        .reliability(Reliability::Full)
        .deliver(Deliver::Early)
        .build()?;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, options.clone())?;
    let address = endpoint.local_address();
    let (sender, receiver) = tokio::join!(connect(address, options), endpoint.accept());
    let (sender, receiver) = (sender?, receiver.ok_or("the endpoint was closed")?);

    let bytes = rate.parse::<comity::Rate>()?.as_bps() / 8 * seconds;
    let section = 50_000;
    let send = async {
        for _ in 0..bytes / section {
            let given = Section::new(vec![0; section as usize]).deadline(Duration::MAX);
            sender.send(given).await?;
        }
        sender.finish().await?;
        Ok::<_, Failure>(())
    };
    let receive = async { while receiver.recv().await.is_some() {} };
    let (sent, ()) = tokio::join!(send, receive);
    sent?;
    let pacing = sender.stats().pacing;
    println!(
        "{} paced packets at {rate}: later than planned by {:.0} us on average, 50 % {:.0}, 99 % {:.0}, 99.9 % {:.0}, at most {:.0} us",
        pacing.packets, pacing.mean_us, pacing.p50_us, pacing.p99_us, pacing.p999_us, pacing.max_us
    );
    Ok(())
}
