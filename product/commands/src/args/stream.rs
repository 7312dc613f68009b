//! The arguments of the verbs that carry media.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use comity_media::DeadlineRule;
use comity_units::{DataSize, Rate, Span};

use crate::values::{named_file, own_address, quantity};

/// The common part of the help of the three verbs.
macro_rules! endings {
    ($examples:literal) => {
        concat!(
            "Inputs and outputs:
  -                      standard input or output
  clip.ts                a file; an input file is read at its own pace
  udp://:5000            receives from every sender to this port
  udp://@239.1.1.1:5000  receives from a multicast group
  udp://host:5000        sends to a host or a group
  rtp://..               the same as udp://, with RTP
  comity://host:9000?..  calls; comity://:9000?.. listens
                         Keys: latency, passphrase, cc, ..

Exit codes:
  0    the input ended, or you stopped it; everything due was delivered
  1    reading or writing failed, such as on a full disk; the data written
       so far is kept
  2    the command line, a URI or a key file is invalid
  3    no connection, or nobody called; a lost connection that was not re-established; or
       the receiver did not confirm the end, or confirmed no section
  4    the other end refused: wrong passphrase, unknown key, a
       different kind of protection, or another stream
  5    an address to listen on is in use, or does not belong to this host
  6    a file cannot be opened, the input is empty, or the output, --gaps,
       --qlog or --keylog exists
  130  interrupted again, a second or more later, and stopped at once; or
       not done within linger of the interrupt

",
            $examples
        )
    };
}

#[derive(Debug, Args)]
#[command(after_help = endings!("Examples:
  comity send clip.ts 'comity://media.example:9000?latency=400ms&passphrase=@secret'
  export COMITY_PASSPHRASE=$(cat secret)
  ffmpeg -re -i film.mkv -c copy -f mpegts - | comity send - comity://host:9000
  comity send clip.ts 'comity://media.example:9000?key=me&peerkey=..'
  comity send udp://:5000 comity://:9000 --all
  comity send film.m1v 'comity://host:9000?latency=2s' --deadlines group
  comity send clip.ts comity://127.0.0.1:9000 --insecure --json
  comity send udp://:5000 'comity://host:9000?encmax=6Mbps' --on-target-bitrate ./set-bitrate"))]
pub struct Send {
    /// The input: -, a file, udp:// or rtp://
    #[arg(value_name = "INPUT")]
    pub(crate) input: String,

    /// The output: comity://host:port calls, comity://:port waits for callers
    #[arg(value_name = "URI")]
    pub(crate) output: String,

    #[command(flatten)]
    pub(crate) sending: Sending,

    #[command(flatten)]
    pub(crate) encoder: Encoder,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = endings!("Examples:
  export COMITY_PASSPHRASE=$(cat secret)
  comity recv comity://:9000 film.ts --gaps gaps.jsonl
  comity recv comity://:9000 - | ffplay -
  comity recv comity://camera.example:9000 udp://239.1.1.1:5000"))]
pub struct Recv {
    /// The input: comity://:port waits for a caller, comity://host:port calls
    #[arg(value_name = "URI")]
    pub(crate) input: String,

    /// The output: -, a file, udp:// or rtp://
    #[arg(value_name = "OUTPUT")]
    pub(crate) output: String,

    /// Write a new transport stream of whole pictures and sound, with clock references and
    /// continuity counters of its own. By default, the stream of the source comes out byte for byte
    #[arg(long)]
    pub(crate) remux: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = endings!("From comity:// to comity://, sections keep their importance, their
dependencies and their deadlines. The first sender's latency covers all hops,
unless --add-latency adds to it. While the output has no connection, a section
waits until its deadline.

Examples:
  export COMITY_PASSPHRASE=$(cat secret)
  comity relay comity://:9000 comity://next.example:9000
  comity relay rtp://@239.1.1.1:5000 film.ts --overwrite
  comity relay udp://:5000 comity://:9000 --all"))]
pub struct Relay {
    /// The input: -, a file, udp://, rtp:// or comity://
    #[arg(value_name = "IN")]
    pub(crate) input: String,

    /// The output: -, a file, udp://, rtp:// or comity://
    #[arg(value_name = "OUT")]
    pub(crate) output: String,

    /// From comity:// to comity://, add this time to every deadline, such as 200ms, for the hops
    /// after this relay
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) add_latency: Option<Span>,

    #[command(flatten)]
    pub(crate) sending: Sending,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// The options for reading and sending media, which `recv` does not have.
#[derive(Debug, Args)]
pub struct Sending {
    /// How pictures get their deadlines: one deadline per picture, or one per group of pictures, as
    /// in time-lined TCP. `group` needs an input file
    #[arg(long, value_name = "RULE", value_enum, default_value_t = Deadlines::Each)]
    pub(crate) deadlines: Deadlines,

    /// Send a copy to every caller, instead of serving one caller at a time. The output must
    /// listen. With reliability=full, a caller is disconnected if it is more than sndbuf behind the
    /// fastest caller
    #[arg(long)]
    pub(crate) all: bool,

    /// Never drop pictures to fit the path. By default, if the path carries less than the source
    /// produces, the sender drops pictures that no other picture needs, then P pictures
    #[arg(long)]
    pub(crate) no_shed: bool,

    /// Read an input file at this multiple of its own pace [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub(crate) speed: Option<f64>,

    /// How to treat pictures and sound that are incomplete at the source
    #[arg(long, value_name = "RULE", value_enum, default_value_t = Damaged::Pass)]
    pub(crate) damaged: Damaged,

    /// Carry the input as bytes, without looking for pictures: each datagram has one deadline
    #[arg(long)]
    pub(crate) opaque: bool,

    /// The rate to read an input file at if its container is unknown [default: 4Mbps]
    #[arg(long, value_name = "RATE", value_parser = assumed_rate)]
    pub(crate) input_rate: Option<Rate>,
}

/// The options for an encoder that follows the target bitrate.
#[derive(Clone, Debug, Default, Args)]
pub struct Encoder {
    /// Run this program, without a shell, when the encoder should change its bitrate. Its argument
    /// is the bitrate in bit/s; COMITY_ENCODER_KBPS in its environment has kbit/s. Needs encmax in
    /// the URI; encmin, enchead and encupdates also apply
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) on_target_bitrate: Option<PathBuf>,

    /// Create a Unix socket that writes these bitrates to its readers, one JSON object per line
    #[arg(long, value_name = "PATH", value_parser = named_file())]
    pub(crate) target_bitrate_socket: Option<PathBuf>,
}

impl Encoder {
    /// Whether one of the options is set.
    pub(crate) const fn is_used(&self) -> bool {
        self.on_target_bitrate.is_some() || self.target_bitrate_socket.is_some()
    }

    /// The option that messages name.
    pub(crate) const fn first_option(&self) -> &'static str {
        match self.on_target_bitrate {
            Some(_) => "--on-target-bitrate",
            None => "--target-bitrate-socket",
        }
    }
}

/// The common options of the three verbs.
#[derive(Debug, Args)]
pub struct Common {
    /// Use comity:// without a passphrase or a key: anybody on the path can read, change and
    /// forge packets
    #[arg(long)]
    pub(crate) insecure: bool,

    /// When a caller reconnects (with backoff). In the same cases, a listener waits for the
    /// next caller
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Reconnect::Lost)]
    pub(crate) reconnect: Reconnect,

    /// Stop after this time, such as 60s
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) duration: Option<Span>,

    /// Write a list of the sections that did not arrive complete, one JSON object per line. A
    /// sender lists those that it knows of
    #[arg(long, value_name = "FILE", value_parser = named_file())]
    pub(crate) gaps: Option<PathBuf>,

    /// Replace files that exist: the output, --gaps, --qlog and --keylog. Symbolic links are never
    /// followed
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Print JSON, one object per line: events, statistics every --statsfreq, and a summary at the
    /// end. It goes to standard error if the media goes to standard output
    #[arg(long)]
    pub(crate) json: bool,

    /// The interval between statistics [default: 1s with --json, 10s without a terminal]
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    pub(crate) statsfreq: Option<Span>,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics; :9100 is 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS", value_parser = own_address)]
    pub(crate) metrics_bind: Option<SocketAddr>,

    /// Answer only scrapers that send the first line of this file as Authorization: Bearer. Without
    /// it, requests must name an address or localhost as their host
    #[arg(long, value_name = "FILE", requires = "metrics_bind", value_parser = named_file())]
    pub(crate) metrics_token: Option<PathBuf>,

    /// Write a qlog trace of each connection, for qvis. The first goes to FILE (end its name in
    /// .sqlog), the next to FILE-2, and so on
    #[arg(long, value_name = "FILE", value_parser = named_file())]
    pub(crate) qlog: Option<PathBuf>,

    /// The maximum size of a --qlog file; all of them take eight times as much
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "qlog", value_parser = quantity::<DataSize>)]
    pub(crate) qlog_limit: DataSize,

    /// Write the secrets of the connections to FILE, from which Wireshark decrypts their packets.
    /// Whoever reads FILE can do the same
    #[arg(long, value_name = "FILE", value_parser = named_file())]
    pub(crate) keylog: Option<PathBuf>,

    /// Print no status, only warnings and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The deadlines of the pictures of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deadlines {
    /// Each picture is due when it is to be decoded
    Each,
    /// All pictures of a group are due when the first one is to be shown. The sender sends them
    /// together, from the time of the first one
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

/// The treatment of units that are damaged at the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Damaged {
    /// Send them as they are, with half the importance of whole ones
    Pass,
    /// Do not send them
    Drop,
}

impl From<Damaged> for comity_media::Damaged {
    fn from(damaged: Damaged) -> Self {
        match damaged {
            Damaged::Pass => Self::Pass,
            Damaged::Drop => Self::Drop,
        }
    }
}

/// When a connection is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reconnect {
    /// When the first call fails or the connection is lost. A receiver also reconnects when the
    /// sender is done
    Always,
    /// When the connection is lost
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
        .ok_or_else(|| format!("{text:?} is not a factor; expected 0.01 to 1000"))
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
