//! Honest callers: whether they get in, and how long it takes.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use comity::{CloseCode, CloseReason, Config, Endpoint, connect};
use serde_json::json;

use crate::result::Result;

/// For the last packets of the connections.
const LINGER: Duration = Duration::from_millis(100);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    to: SocketAddr,
    #[arg(long, env = "COMITY_PASSPHRASE", hide_env_values = true)]
    passphrase: String,
    #[arg(long)]
    count: u32,
    /// Between two calls
    #[arg(long)]
    interval_ms: u64,
    /// The address to call from, with one port for all
    #[arg(long)]
    from: Option<IpAddr>,
    /// For how many seconds the connections stay after the last call
    #[arg(long, default_value_t = 0.0)]
    hold: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let config = Config::builder()
        .passphrase(arguments.passphrase.as_str())
        .build()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    println!("{}", json!({"event": "begins"}));
    runtime.block_on(async {
        let began = Instant::now();
        let interval = Duration::from_millis(arguments.interval_ms);
        let endpoint = { arguments.from }
            .map(|from| Endpoint::for_calls((from, 0).into(), config.clone()))
            .transpose()?;
        let mut calls = Vec::new();
        for _ in 0..arguments.count {
            let (to, config, endpoint) = (arguments.to, config.clone(), endpoint.clone());
            calls.push(tokio::spawn(async move {
                let called_at = began.elapsed().as_secs_f64();
                let connected = match endpoint {
                    Some(endpoint) => endpoint.connect(to).await,
                    None => connect(to, config).await,
                };
                let seconds = began.elapsed().as_secs_f64() - called_at;
                let error = connected.as_ref().err().map(ToString::to_string);
                // It stays until the end: connections that come and go are another matter.
                (connected.ok(), called_at, seconds, error)
            }));
            tokio::time::sleep(interval).await;
        }
        let mut open = Vec::new();
        for call in calls {
            let (connection, called_at, seconds, error) = call.await?;
            println!(
                "{}",
                json!({"event": "call", "at": called_at, "seconds": seconds, "error": error})
            );
            open.extend(connection);
        }
        println!("{}", json!({"event": "called", "open": open.len()}));
        tokio::time::sleep(Duration::from_secs_f64(arguments.hold)).await;
        let code = |reason| match reason {
            CloseReason::Peer { code, .. } => Some(code.get()),
            _ => None,
        };
        let ends = { open.iter() }.filter_map(|connection| connection.close_reason());
        let codes: Vec<_> = ends.map(code).collect();
        println!("{}", json!({"event": "held", "codes": codes}));
        for connection in &open {
            connection.close(CloseCode::DONE, "");
        }
        tokio::time::sleep(LINGER).await;
        Ok(())
    })
}
