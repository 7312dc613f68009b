//! The options of `comity emulate`.

use std::path::PathBuf;

use clap::Args;
use comity_units::{DataSize, Span};

use super::values::{quantity, share};

/// Declares the options for the link of one way, or of both.
macro_rules! link_options {
    ($(#[$doc:meta])* $name:ident, $heading:literal,
     $rate:literal $delay:literal $mtu:literal $queue:literal $loss:literal $outage:literal $jitter:literal $duplication:literal $trace:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Args)]
        #[command(next_help_heading = $heading)]
        pub(crate) struct $name {
            /// The rate of the link, such as 8Mbps [default: unlimited]
            #[arg(long = $rate, id = $rate, value_name = "RATE", conflicts_with = $trace)]
            pub(crate) rate: Option<String>,

            /// The one-way propagation delay, such as 20ms [default: 0s]
            #[arg(long = $delay, id = $delay, value_name = "TIME")]
            pub(crate) delay: Option<String>,

            /// The maximum packet size in bytes, with the headers of IP and UDP, such as 1400. The
            /// link drops larger packets, as a router that must not fragment [default: any size]
            #[arg(long = $mtu, id = $mtu, value_name = "BYTES", value_parser = packet_size)]
            pub(crate) mtu: Option<DataSize>,

            /// The size of the queue, such as 60 (packets), 90kB or "{ kind = 'fq_codel' }"
            /// [default: unlimited]
            #[arg(long = $queue, id = $queue, value_name = "SIZE")]
            pub(crate) queue: Option<String>,

            /// The share of packets lost on the wire, such as 1% or 0.01
            #[arg(long = $loss, id = $loss, value_name = "SHARE", value_parser = share)]
            pub(crate) loss: Option<f64>,

            /// Lose all packets for a time: 5s+3s begins 5 s after the start and lasts 3 s; may be
            /// repeated
            #[arg(long = $outage, id = $outage, value_name = "START+LENGTH", value_parser = outage)]
            pub(crate) outages: Vec<Outage>,

            /// A random extra delay of each packet, up to a maximum such as 2ms; packets stay in
            /// order. With "{ kind = 'uniform', max = '20ms', reorder = true }" they overtake
            /// each other
            #[arg(long = $jitter, id = $jitter, value_name = "TIME")]
            pub(crate) jitter: Option<String>,

            /// The share of packets that arrive twice, such as 0.1%
            #[arg(long = $duplication, id = $duplication, value_name = "SHARE", value_parser = share)]
            pub(crate) duplication: Option<f64>,

            /// A file with the rate over time, in mahimahi's format. If its name ends in .csv or
            /// .steps, it has lines such as "20s, 1.5Mbps"
            #[arg(long = $trace, id = $trace, value_name = "FILE")]
            pub(crate) trace: Option<PathBuf>,
        }
    };
}

link_options!(
    /// The link of both ways.
    BothWays, "Both ways",
    "rate" "delay" "mtu" "queue" "loss" "outage" "jitter" "duplication" "trace"
);
link_options!(
    /// The link to the target.
    WayUp, "To the target only",
    "up-rate" "up-delay" "up-mtu" "up-queue" "up-loss" "up-outage" "up-jitter" "up-duplication" "up-trace"
);
link_options!(
    /// The link back.
    WayDown, "Back to the callers only",
    "down-rate" "down-delay" "down-mtu" "down-queue" "down-loss" "down-outage" "down-jitter" "down-duplication" "down-trace"
);

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    the emulator ran and kept up
  1    the emulator failed while it ran
  2    the command line or the file is invalid, or the target is unreachable
  3    the emulator could not keep up: discard measurements made through it
  5    the address to listen on is in use, or does not belong to this host
  6    the file of --config cannot be opened

The emulator runs until it is interrupted, or for --duration. All callers
share the two links. A packet's size on the wire is its payload plus
--overhead, so that rates mean the same as in the simulator.

Examples:
  comity emulate --listen :9000 --to host:9001 --rate 8Mbps --delay 20ms
  comity emulate --listen :9000 --to host:9001 --delay 50ms --loss 1%
  comity emulate --listen :9000 --to host:9001 --up-rate 2Mbps --down-rate 20Mbps
  comity emulate --listen :9000 --to host:9001 --config lte.toml --duration 60s

where lte.toml has the keys of a link in a scenario (comity sim schema):
  trace = \"lte.trace\"
  delay = \"30ms\"
  queue = { kind = \"codel\" }
  losses = [{ model = \"gilbert_elliott\", good_to_bad = 0.001, bad_to_good = 0.3 }]
  [reverse]
  rate = \"5Mbps\"
  queue = \"64kB\"")]
pub struct Emulate {
    /// The address to listen on; :9000 is 127.0.0.1:9000, port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: String,

    /// The target to forward packets to, as host:port
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: String,

    /// A TOML file with the keys of a scenario's link. Its table `reverse` has the keys of the
    /// reverse link. Options replace its values
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The seed of losses, jitter and duplication
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stop after this time, such as 60s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) duration: Option<Span>,

    /// The size of each packet's headers on the wire [default: those of IP and UDP, 28B or 48B]
    #[arg(long, value_name = "SIZE", value_parser = quantity::<DataSize>)]
    pub(crate) overhead: Option<DataSize>,

    /// Print one JSON document per line: at the start, every --statsfreq, and at the end
    #[arg(long)]
    pub(crate) json: bool,

    /// Print statistics at this interval, such as 1s [default: 10s where there is no terminal]
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) statsfreq: Option<Span>,

    #[command(flatten)]
    pub(crate) both: BothWays,

    #[command(flatten)]
    pub(crate) up: WayUp,

    #[command(flatten)]
    pub(crate) down: WayDown,

    /// How long the emulator busy-waits before it forwards a packet
    #[arg(long, value_name = "TIME", default_value = "60us", value_parser = quantity::<Span>,
          help_heading = "Limits")]
    pub(crate) spin: Span,

    /// A packet forwarded this long after its time is late; more than 1% late is an overload
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = quantity::<Span>,
          help_heading = "Limits")]
    pub(crate) late: Span,

    /// The maximum number of callers at a time
    #[arg(long, value_name = "N", default_value_t = 512, help_heading = "Limits")]
    pub(crate) callers: usize,

    /// Forget a caller after this time without packets
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::<Span>,
          help_heading = "Limits")]
    pub(crate) idle: Span,

    /// The maximum memory for the packets of each direction
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = quantity::<DataSize>,
          help_heading = "Limits")]
    pub(crate) memory: DataSize,
}

/// A number of bytes, with or without their unit.
pub(super) fn packet_size(text: &str) -> Result<DataSize, String> {
    match text.trim().parse() {
        Ok(bytes) => Ok(DataSize::new(bytes)),
        Err(_) => quantity(text),
    }
}

/// An interval in which no packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it begins, after the start.
    pub(crate) at: Span,
    /// How long it lasts.
    pub(crate) lasts: Span,
}

/// Reads `5s+3s`.
pub(super) fn outage(text: &str) -> Result<Outage, String> {
    let (at, lasts) = text.split_once('+').ok_or_else(|| {
        format!(
            "{text:?} is not an outage; expected START+LENGTH, as in 5s+3s: 3 s of loss from 5 s on"
        )
    })?;
    let part = |name: &str, text: &str| {
        quantity::<Span>(text).map_err(|error| {
            format!("{name} {text:?}: {error}; expected START+LENGTH, as in 5s+3s: 3 s of loss from 5 s on")
        })
    };
    let outage = Outage {
        at: part("START", at)?,
        lasts: part("LENGTH", lasts)?,
    };
    if outage.lasts.is_zero() {
        return Err(format!(
            "{text:?} has a length of zero; expected a longer time, as in 5s+3s"
        ));
    }
    Ok(outage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_are_a_start_and_a_duration() {
        let expected = Outage {
            at: Span::from_millis(1_500),
            lasts: Span::from_secs(3),
        };
        assert_eq!(outage("1.5s+3s"), Ok(expected));
        for bad in ["", "5s", "+", "5s+", "+3s", "5+3", "5s+0s", "-1s+1s"] {
            let said = outage(bad).unwrap_err();
            assert!(said.contains("5s+3s"), "{bad:?}: {said}");
        }
    }

    #[test]
    fn the_size_of_a_packet_needs_no_unit() {
        assert_eq!(packet_size("1400"), Ok(DataSize::new(1_400)));
        assert_eq!(packet_size("1.4kB"), Ok(DataSize::new(1_400)));
        for bad in ["", "-1", "1400b", "many"] {
            assert!(packet_size(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
