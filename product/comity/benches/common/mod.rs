//! Code shared by the benches of the endpoint.

use std::net::SocketAddr;

use comity::credentials::PresharedKey;
use comity::{Config, ConfigBuilder, Deliver};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Both ends have a key, and deliver sections as soon as they are whole.
pub(crate) fn options() -> ConfigBuilder {
    Config::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .deliver(Deliver::Early)
}

pub(crate) fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Processor time of this process, user and system.
pub(crate) fn processor_seconds() -> f64 {
    seconds_of(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

/// The processor time in a file `stat` of a process or thread.
pub(crate) fn seconds_of(stat: &str) -> f64 {
    // utime and stime, in ticks of 10 ms: fine enough for runs of seconds.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let mut fields = after.split_whitespace().skip(11);
    let mut ticks = || -> f64 { fields.next().and_then(|t| t.parse().ok()).unwrap_or(0.0) };
    (ticks() + ticks()) / 100.0
}
