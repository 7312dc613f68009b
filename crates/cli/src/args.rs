//! What can be written on the command line.

mod claims;
mod demo;
mod lab;
#[cfg(test)]
mod page;
mod stream;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use comity_sim::results::Format;
use comity_units::{Bytes, ParseError, Span};

pub(crate) use claims::Claims;
pub(crate) use demo::Demo;
pub(crate) use lab::{Lab, LabEndpoint, LabRun};
pub(crate) use stream::{Common, Reconnect, Recv, Relay, Send, Sending};

/// Deadline-aware media transport, and a simulator to try it in.
#[derive(Debug, Parser)]
#[command(
    name = "comity",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:
  comity demo
  comity recv 'comity://:9000?passphrase=correct horse battery' film.ts
  comity send clip.ts 'comity://host:9000?passphrase=correct horse battery'
  comity sim run experiments/demo/dumbbell.toml
  comity sim list experiments
  comity lab run experiments/lab/contended.toml
  comity list
  comity sim schema > scenario.md
  comity claims packet_spacing
  comity emulate --listen :9000 --to host:9001 --rate 8Mbps --delay 20ms
  comity keygen ~/.config/comity/key
  comity doctor
  comity completions bash > /etc/bash_completion.d/comity"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send video with deadlines beside greedy flows through an emulated bottleneck, and report
    /// what happened
    Demo(Demo),
    /// Send media to another host; every frame has a deadline
    #[command(arg_required_else_help = true)]
    Send(Send),
    /// Receive media and write it as a stream that every player can read
    #[command(arg_required_else_help = true)]
    Recv(Recv),
    /// Forward media from an input to an output without encoding it again
    #[command(arg_required_else_help = true)]
    Relay(Relay),
    /// Simulate networks that scenario files describe
    #[command(subcommand, arg_required_else_help = true)]
    Sim(Sim),
    /// Run scenarios on real packets, beside the TCP of the Linux kernel and other programs
    #[command(subcommand, arg_required_else_help = true)]
    Lab(Lab),
    /// Run the experiments of the papers and report which claims hold
    Claims(Claims),
    /// Emulate a network between real programs, as a UDP proxy that needs no privileges
    #[command(arg_required_else_help = true)]
    Emulate(Box<Emulate>),
    /// Make a secret key, or print the public key of one
    Keygen(Keygen),
    /// List controllers, systems and applications, with sources, parameters and defaults
    List(Catalogue),
    /// Check this host for whatever slows Comity down, and print the commands that fix it
    Doctor(Doctor),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages
    Man {
        /// The folder to write to; created if it does not exist
        dir: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "The command writes the secret key (comity-secret-..) to FILE, which only its
owner can read. It prints the public key (comity-public-..). A listener
accepts the public keys in a file, one per line (allow=FILE in its URI). A
caller names the listener's public key (peerkey=KEY in its URI).

Exit codes:
  0    done
  1    FILE exists, cannot be written or read, or is not a key
  2    the command line is wrong

Examples:
  comity keygen caller.key >> allowed
  comity keygen --public listener.key
  comity keygen listener.key --json | jq -r .public"
)]
pub(crate) struct Keygen {
    /// The file to write the secret key to
    #[arg(required_unless_present = "public", value_parser = named_file())]
    pub(crate) file: Option<PathBuf>,

    /// Print the public key of the secret key in this file instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "force"], value_parser = named_file())]
    pub(crate) public: Option<PathBuf>,

    /// Replace FILE; the secret key in it is lost
    #[arg(long)]
    pub(crate) force: bool,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Use the name of a controller in cc= of a URI, or in `controller` of a scenario. For each system and \
application, the list names the scenario keys that select it.

Exit codes:
  0    done
  2    the name is unknown

Examples:
  comity list
  comity list tfrc
  comity list --json | jq -r '.controllers[].name'"
)]
pub(crate) struct Catalogue {
    /// The controller, system or application to describe in detail
    pub(crate) name: Option<String>,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    no check is bad
  1    at least one check is bad
  2    the command line is wrong

Examples:
  comity doctor
  comity doctor --listen 9000
  comity doctor --json | jq '.checks[] | select(.verdict != \"good\")'")]
pub(crate) struct Doctor {
    /// Also check that this UDP port is free and reachable from this host; may be repeated
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) listen: Vec<u16>,

    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// Run a scenario and print per-group results
    Run(Run),
    /// List the scenarios below a folder
    List(List),
    /// Print the reference of all scenario keys
    Schema(Schema),
    /// Run one run of a scenario and write its packets and events to files
    Trace(Trace),
}

/// With which seeds a scenario is run, and what becomes of its results.
#[derive(Debug, Args)]
pub(crate) struct Printing {
    /// Store the results: a folder of Parquet files (NAME), a folder of CSV files (NAME.csv) or a
    /// JSON file (NAME.json)
    #[arg(long, short, value_name = "PATH", value_parser = PathBufValueParser::new().try_map(Out::new))]
    pub(crate) out: Option<Out>,

    /// Replace earlier results at the path of --out
    #[arg(long, requires = "out")]
    pub(crate) force: bool,

    /// Run every point with this seed instead of those of the file
    #[arg(long, value_name = "N", conflicts_with = "seeds", value_parser = seed)]
    pub(crate) seed: Option<u64>,

    /// Run every point with these seeds, such as 1-5 or 1,2,7
    #[arg(long, value_name = "LIST", value_parser = seeds)]
    pub(crate) seeds: Option<Seeds>,

    /// Print one JSON document (docs/reference/run-json.md) instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Print no tables and no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Printing {
    /// The seeds that were asked for instead of those of the file.
    pub(crate) fn seeds(&self) -> Option<Vec<u64>> {
        match (self.seed, &self.seeds) {
            (Some(seed), _) => Some(vec![seed]),
            (None, seeds) => seeds.as_ref().map(|seeds| seeds.0.clone()),
        }
    }
}

/// How a scenario is read.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    /// The scenario file
    pub(crate) file: PathBuf,

    /// Replace a value of the file, such as flow.tcp.count=4; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    all runs are done
  1    a run failed, or its results could not be stored
  2    the command line or the scenario is wrong
  130  interrupted; nothing was stored

Examples:
  comity sim run experiments/demo/dumbbell.toml
  comity sim run experiments/demo/dumbbell.toml --set flow.tcp.rwnd=20 --seeds 1-5
  comity sim run experiments/demo/dumbbell.toml --out results/demo --jobs 4
  comity sim run experiments/demo/dumbbell.toml --json | jq .totals")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) printing: Printing,

    /// How many runs to run in parallel [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  comity sim list
  comity sim list experiments/reference --json")]
pub(crate) struct List {
    /// The folder [default: experiments if it exists, otherwise the current folder]
    pub(crate) dir: Option<PathBuf>,

    /// Print one JSON document instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  comity sim schema | less
  comity sim schema --json > scenario.schema.json")]
pub(crate) struct Schema {
    /// Print a JSON Schema instead of the reference, for editors
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  comity sim trace experiments/demo/dumbbell.toml --link bottleneck --pcapng bottleneck.pcapng
  comity sim trace experiments/demo/dumbbell.toml --flow tcp-0 --csv - | head
  comity sim trace experiments/demo/dumbbell.toml --flow tcp-0 --qlog tcp-0.sqlog --csv events.csv")]
#[command(group = clap::ArgGroup::new("outputs").required(true).multiple(true).args(["pcapng", "qlog", "csv"]))]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) reading: Reading,

    /// The number of the run, from 0, in the order of `comity sim run`
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) run: usize,

    /// A link to trace; may be repeated [default: all except the links of hosts]
    #[arg(long, value_name = "NAME")]
    pub(crate) link: Vec<String>,

    /// A flow to trace; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Vec<String>,

    /// Write the packets on the links, for Wireshark; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) pcapng: Option<PathBuf>,

    /// Write a qlog trace of the sender of a flow, for qvis. With several flows, each flow has its
    /// own file, with the name of the flow before the extension
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,

    /// Write a table of all events; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

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
            pub(crate) mtu: Option<Bytes>,

            /// The size of the queue, such as 60 (packets), 90kB or "{ kind = 'fq_codel' }"
            /// [default: unlimited]
            #[arg(long = $queue, id = $queue, value_name = "SIZE")]
            pub(crate) queue: Option<String>,

            /// The share of packets lost on the wire, such as 1% or 0.01
            #[arg(long = $loss, id = $loss, value_name = "SHARE", value_parser = share)]
            pub(crate) loss: Option<f64>,

            /// Lose all packets for a time: 5s+3s begins 5 s after the start and lasts 3 s; may be
            /// repeated
            #[arg(long = $outage, id = $outage, value_name = "AT+TIME", value_parser = outage)]
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
pub(crate) struct Emulate {
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
    #[arg(long, value_name = "SIZE", value_parser = quantity::<Bytes>)]
    pub(crate) overhead: Option<Bytes>,

    /// Print one JSON document per line: at the start, every --statsfreq, and at the end
    #[arg(long)]
    pub(crate) json: bool,

    /// Print statistics at this interval, such as 1s
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
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = quantity::<Bytes>,
          help_heading = "Limits")]
    pub(crate) memory: Bytes,
}

/// Reads a number with its unit.
fn quantity<T: FromStr<Err = ParseError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseError| error.to_string())
}

/// The path of a file, where the standard streams cannot stand in for one.
fn named_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path.as_os_str() == "-" {
        true => Err(
            "- is a standard stream; expected the path of a file, or ./- for a file with this name",
        ),
        false => Ok(path),
    })
}

/// An address of this host to answer at, the loopback one unless another is given.
fn own_address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':').unwrap_or(text) {
        port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    full.parse().map_err(|_| {
        "expected an address and a port, such as 127.0.0.1:9100, [::]:9100 or :9100".to_owned()
    })
}

/// A number of bytes, with or without their unit.
fn packet_size(text: &str) -> Result<Bytes, String> {
    match text.trim().parse() {
        Ok(bytes) => Ok(Bytes::new(bytes)),
        Err(_) => quantity(text),
    }
}

/// A while in which nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// When it begins, after the start.
    pub(crate) at: Span,
    /// How long it lasts.
    pub(crate) lasts: Span,
}

/// Reads `5s+3s`.
fn outage(text: &str) -> Result<Outage, String> {
    let (at, lasts) = text.split_once('+').ok_or_else(|| {
        format!("{text:?} is not an outage; expected its start and its length, such as 5s+3s")
    })?;
    let outage = Outage {
        at: quantity(at)?,
        lasts: quantity(lasts)?,
    };
    if outage.lasts.is_zero() {
        return Err(format!(
            "{text:?} has a length of zero; expected a longer time, as in 5s+3s"
        ));
    }
    Ok(outage)
}

/// Reads `1%` or `0.01`.
fn share(text: &str) -> Result<f64, String> {
    let (number, whole) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    number
        .parse()
        .map(|number: f64| number / whole)
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("{text:?} is not a share; expected 0% to 100%, or 0 to 1"))
}

/// Where results are stored, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
}

impl Out {
    /// The ending says the format.
    fn new(path: PathBuf) -> Result<Self, String> {
        let format = match path.extension().map(OsStr::to_string_lossy).as_deref() {
            None => Format::Parquet,
            Some("parquet") => {
                return Err(
                    "Parquet results are a folder with a file for each table; expected a name \
                     without extension, or with .csv or .json"
                        .into(),
                );
            }
            Some("csv") => Format::Csv,
            Some("json") => Format::Json,
            Some(ending) => {
                return Err(format!(
                    "cannot store results as .{ending}; expected .csv, .json or no extension (Parquet)"
                ));
            }
        };
        Ok(Self { path, format })
    }
}

fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| "expected a whole number from 1".to_owned())
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

/// Seeds as written on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Vec<u64>);

/// Reads `1-5`, `1,2,7` or both mixed.
fn seeds(text: &str) -> Result<Seeds, String> {
    const MOST: u64 = 1_000_000;
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .map_err(|_| format!("{text:?} is not a seed; expected numbers such as 1-5 or 1,2,7"))
    };
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(format!(
                "{part:?} goes backwards; expected the smaller seed first, as in 1-5"
            ));
        }
        if last - first >= MOST {
            return Err(format!(
                "{part:?} has more than {MOST} seeds; expected fewer"
            ));
        }
        seeds.extend(first..=last);
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!(
            "seed {} is listed twice; list it once, because runs with the same seed are identical",
            pair[0]
        ));
    }
    Ok(Seeds(seeds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn outages_have_a_beginning_and_a_length() {
        let expected = Outage {
            at: Span::from_millis(1_500),
            lasts: Span::from_secs(3),
        };
        assert_eq!(outage("1.5s+3s"), Ok(expected));
        for bad in ["", "5s", "+", "5s+", "+3s", "5+3", "5s+0s", "-1s+1s"] {
            assert!(outage(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn shares_are_numbers_or_percentages() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        assert_eq!(share("100 %"), Ok(1.0));
        for bad in ["", "%", "101%", "1.1", "-1%", "nan", "inf%", "one"] {
            assert!(share(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn the_size_of_a_packet_needs_no_unit() {
        assert_eq!(packet_size("1400"), Ok(Bytes::new(1_400)));
        assert_eq!(packet_size("1.4kB"), Ok(Bytes::new(1_400)));
        for bad in ["", "-1", "1400b", "many"] {
            assert!(packet_size(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_standard_stream_is_no_file() {
        for words in [
            &["recv", "comity://:1", "out.ts", "--gaps"][..],
            &["recv", "comity://:1", "out.ts", "--qlog"],
            &["keygen"],
            &["keygen", "--public"],
        ] {
            let parse = |file| Cli::try_parse_from([&["comity"], words, &[file]].concat());
            let said = parse("-").unwrap_err().to_string();
            assert!(said.contains("expected the path of a file"), "{said}");
            assert!(parse("./-").is_ok() && parse("gaps.jsonl").is_ok());
        }
    }

    #[test]
    fn a_port_alone_is_one_of_this_host() {
        for (text, address) in [
            (":9100", "127.0.0.1:9100"),
            ("9100", "127.0.0.1:9100"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::]:1", "[::]:1"),
        ] {
            assert_eq!(own_address(text), Ok(address.parse().unwrap()));
        }
        for bad in ["", ":", "65536", "host:1", "::1"] {
            let said = own_address(bad).unwrap_err();
            assert!(said.contains(":9100"), "{bad:?}: {said}");
        }
    }

    #[test]
    fn the_ending_says_how_results_are_stored() {
        for (path, format) in [
            ("out", Format::Parquet),
            ("a.b/out", Format::Parquet),
            ("out.csv", Format::Csv),
            ("out.json", Format::Json),
        ] {
            assert_eq!(
                Out::new(path.into()).map(|out| out.format),
                Ok(format),
                "{path}"
            );
        }
        for bad in ["out.xml", "out.CSV", "out.1", "out.csv.gz"] {
            assert!(Out::new(bad.into()).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn seeds_are_lists_and_ranges() {
        assert_eq!(seeds("1-3,7"), Ok(Seeds(vec![1, 2, 3, 7])));
        assert_eq!(seeds("5"), Ok(Seeds(vec![5])));
        for bad in [
            "",
            "a",
            "3-1",
            "1-99999999999",
            "-1",
            "1,,2",
            "1,1",
            "1-3,2",
        ] {
            assert!(seeds(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
