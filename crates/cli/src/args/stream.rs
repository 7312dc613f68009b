//! The arguments of the verbs that carry media.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use comity_media::DeadlineRule;
use comity_units::{Bytes, Rate, Span};

use super::{named_file, own_address, quantity};

/// The part of the help that the three verbs have in common.
macro_rules! endings {
    ($examples:literal) => {
        concat!(
            "Places:
  -                        standard input or output
  clip.ts                  a file; inputs are read at their own pace
  udp://:5000              from everybody who sends to the port; udp://@239.1.1.1:5000 joins a group
  udp://host:5000          to a host, or to a group; rtp:// alike, with RTP (RFC 3550, RFC 2250)
  comity://host:9000?..    calls; comity://:9000?.. listens. Keys: latency, passphrase, cc, ..

Exit codes:
  0    done: the input ended, or it was interrupted, and what was to be delivered was
  1    something could not be read or written on, such as a full disk; what had been written is kept
  2    the command line, a URI or a key file is wrong
  3    no connection was made, or it was lost and not made again
  4    the other end refused: another passphrase, an unknown key, or another kind of protection
  5    an address to listen on is taken, or not one of this host
  6    a file cannot be opened, or the input is empty
  130  interrupted a second time: ended at once

",
            $examples
        )
    };
}

#[derive(Debug, Args)]
#[command(after_help = endings!("Examples:
  comity send clip.ts 'comity://media.example:9000?latency=400ms&passphrase=correct horse battery'
  ffmpeg -re -i film.mkv -c copy -f mpegts - | comity send - 'comity://media.example:9000?latency=400ms&key=me&peerkey=..'
  comity send udp://:5000 'comity://:9000?passphrase=correct horse battery' --all
  comity send film.m1v 'comity://media.example:9000?latency=2s&passphrase=correct horse battery' --deadlines group
  comity send clip.ts comity://127.0.0.1:9000 --insecure --json --statsfreq 1s"))]
pub(crate) struct Send {
    /// Where the media comes from: -, a file, udp:// or rtp://
    #[arg(value_name = "INPUT")]
    pub(crate) input: String,

    /// Where it goes: comity://host:port calls, comity://:port waits for callers
    #[arg(value_name = "URI")]
    pub(crate) output: String,

    #[command(flatten)]
    pub(crate) sending: Sending,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = endings!("Examples:
  comity recv 'comity://:9000?passphrase=correct horse battery' film.ts --gaps gaps.jsonl
  comity recv 'comity://:9000?passphrase=correct horse battery' - | ffplay -
  comity recv 'comity://camera.example:9000?passphrase=correct horse battery' udp://239.1.1.1:5000"))]
pub(crate) struct Recv {
    /// Where the media comes from: comity://:port waits for a caller, comity://host:port calls
    #[arg(value_name = "URI")]
    pub(crate) input: String,

    /// Where it goes: -, a file, udp:// or rtp://
    #[arg(value_name = "OUTPUT")]
    pub(crate) output: String,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = endings!("From comity:// to comity://, sections keep their importance, their needs and their deadlines: what the \
first sender gives as latency is for the whole way, unless --add-latency gives it more. What comes while there is \
no connection to pass it on to waits for one until its deadline.

Examples:
  comity relay 'comity://:9000?key=me' 'comity://next.example:9000?key=me&peerkey=..'
  comity relay rtp://@239.1.1.1:5000 film.ts
  comity relay udp://:5000 'comity://:9000?passphrase=correct horse battery' --all"))]
pub(crate) struct Relay {
    /// Where the media comes from: -, a file, udp://, rtp:// or comity://
    #[arg(value_name = "IN")]
    pub(crate) input: String,

    /// Where it goes
    #[arg(value_name = "OUT")]
    pub(crate) output: String,

    /// From comity:// to comity://, put the deadlines off by this time, such as 200ms: for the way
    /// from here on
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) add_latency: Option<Span>,

    #[command(flatten)]
    pub(crate) sending: Sending,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// What is said of reading media and of sending it: of no use to `recv`.
#[derive(Debug, Args)]
pub(crate) struct Sending {
    /// By when pictures have to arrive: each in time for itself, or all of a group in time for its
    /// first one, as time-lined TCP has it; group is for files
    #[arg(long, value_name = "RULE", value_enum, default_value_t = Deadlines::Each)]
    pub(crate) deadlines: Deadlines,

    /// Serve every caller a copy instead of one after the other, where the output is a comity://
    /// that listens; with reliability=full one that is more than sndbuf behind the fastest is left
    #[arg(long)]
    pub(crate) all: bool,

    /// Never drop pictures to fit the path. By default, while a path carries less than the source,
    /// the sender drops pictures that no other needs, then P pictures
    #[arg(long)]
    pub(crate) no_shed: bool,

    /// Read an input file this many times as fast as it runs [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub(crate) speed: Option<f64>,

    /// How fast an input file of an unknown container is taken to be
    #[arg(long, value_name = "RATE", default_value = "4Mbps", value_parser = assumed_rate)]
    pub(crate) input_rate: Rate,
}

/// What the three verbs have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Accept comity:// without a passphrase or a key: everybody on the way can read, change and
    /// forge packets
    #[arg(long)]
    pub(crate) insecure: bool,

    /// Whether a caller calls again, with growing pauses: when the connection is lost, also when
    /// the first call fails, or never; with `no` a listener ends as well when its connection is
    /// lost
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Reconnect::Lost)]
    pub(crate) reconnect: Reconnect,

    /// Stop after this time, such as 60s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) duration: Option<Span>,

    /// List the sections that did not arrive whole, as a JSON object a line; a sender lists what it
    /// knows of
    #[arg(long, value_name = "FILE", value_parser = named_file())]
    pub(crate) gaps: Option<PathBuf>,

    /// Print one JSON object a line: what happens, every --statsfreq, and at the end; on the
    /// standard error where the media goes to the standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// Tell how it is doing every so often [default: 1s with --json, 10s where there is no
    /// terminal]
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) statsfreq: Option<Span>,

    /// Answer Prometheus at http://ADDRESS/metrics; :9100 is 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS", value_parser = own_address)]
    pub(crate) metrics_bind: Option<SocketAddr>,

    /// Write what each connection sees and decides as qlog, for qvis: the first into FILE (end it
    /// in .sqlog), the next into FILE-2 and so on
    #[arg(long, value_name = "FILE", value_parser = named_file())]
    pub(crate) qlog: Option<PathBuf>,

    /// The most that --qlog writes into one file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "qlog", value_parser = quantity::<Bytes>)]
    pub(crate) qlog_limit: Bytes,

    /// Print no status, only warnings and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Which deadline the pictures of a group get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Deadlines {
    /// Each picture when it is to be decoded
    Each,
    /// All that an intra picture begins when that is to be shown; they are sent together, from its
    /// time on
    Group,
}

impl From<Deadlines> for DeadlineRule {
    fn from(deadlines: Deadlines) -> Self {
        match deadlines {
            Deadlines::Each => Self::Each,
            Deadlines::Group => Self::Group,
        }
    }
}

/// Whether a connection is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reconnect {
    /// Also when the first call fails
    Always,
    /// When it is lost
    Lost,
    /// Never
    No,
}

fn assumed_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = quantity(text)?;
    match rate >= Rate::from_kbps(1) {
        true => Ok(rate),
        false => Err(format!("{text:?} is too slow; expected 1kbps or more")),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('x').unwrap_or(text).parse().ok();
    number
        .filter(|factor| (0.01..=1_000.0).contains(factor))
        .ok_or_else(|| format!("{text:?} is no factor; expected 0.01 to 1000"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_factors() {
        assert_eq!(speed("10"), Ok(10.0));
        assert_eq!(speed("0.5x"), Ok(0.5));
        for bad in ["", "0", "-1", "nan", "inf", "1001", "fast"] {
            assert!(speed(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
