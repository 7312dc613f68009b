//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use comity_units::{Rate, Span};

use crate::source::{Pattern, Source};

/// Send the same frames through Comity, SRT, TCP, QUIC or bare UDP, and measure them with one
/// meter.
///
/// Start `receive` in one network namespace and `send` in the other one, with the same parameters
/// of the source, and on the same host: both ends read the same clock. Each prints one JSON
/// document.
#[derive(Debug, Parser)]
#[command(name = "compare", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Submit the frames of the source to a transport.
    Send(Send),
    /// Measure the deliveries of the transport.
    Receive(Receive),
}

#[derive(Clone, Debug, Args)]
pub struct Send {
    /// Where the receiver listens
    #[arg(long, value_name = "ADDR:PORT")]
    pub connect: SocketAddr,
    #[command(flatten)]
    pub common: Common,
    /// How Comity sends a frame: as one section, or as sections of 1,316 bytes
    #[arg(long = "as", value_enum, default_value = "frames")]
    pub shape: Shape,
    /// Pass the importance of frames (Comity, QUIC) and their dependencies (Comity) to the
    /// transport
    #[arg(long)]
    pub importance: bool,
    /// TCP: drop a frame whose deadline has passed before its first byte is written
    #[arg(long)]
    pub tcp_drop: bool,
    /// TCP: unsent bytes allowed in the kernel (TCP_NOTSENT_LOWAT) [default: 16384 with --tcp-drop,
    /// else unlimited]
    #[arg(long, value_name = "BYTES")]
    pub tcp_notsent: Option<u32>,
    /// TCP: congestion controller [default: that of the system]
    #[arg(long, value_name = "NAME")]
    pub tcp_cc: Option<String>,
    /// QUIC: congestion controller
    #[arg(long, value_enum, default_value = "cubic")]
    pub quic_cc: QuicController,
    /// QUIC: which waiting frame to send first
    #[arg(long, value_enum, default_value = "newest")]
    pub quic_order: QuicOrder,
}

#[derive(Clone, Debug, Args)]
pub struct Receive {
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub common: Common,
    /// Write a table of all frames to this file, in CSV
    #[arg(long, value_name = "FILE")]
    pub per_frame: Option<PathBuf>,
}

/// The parameters of both ends.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// The transport of the frames
    #[arg(long, value_enum)]
    pub transport: Transport,
    /// Mean rate of the source, with the headers of its chunks and without those of the transport
    #[arg(long, default_value = "3Mbps")]
    pub rate: Rate,
    /// Frames a second
    #[arg(long, default_value = "25", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub fps: u32,
    /// How long the source runs
    #[arg(long, default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,
    /// Groups of one second with a key frame each, or equal frames
    #[arg(long, value_enum, default_value = "key")]
    pub frames: Pattern,
    /// Mean size of key frames over the mean size of all frames
    #[arg(long, default_value = "7", value_parser = at_least_one)]
    pub key_ratio: f64,
    /// Of the sizes of frames
    #[arg(long, default_value = "1")]
    pub seed: u64,
    /// The time within which a frame must be complete; also the latency of Comity's sections, and
    /// when QUIC resets streams
    #[arg(long, default_value = "400ms", value_parser = duration)]
    pub latency: Duration,
    /// SRT: its own latency, which does not include the delay of the path
    #[arg(long, default_value = "280ms", value_parser = duration)]
    pub srt_latency: Duration,
    /// Comity: the congestion controller
    #[arg(long, default_value = "steady", value_name = "NAME")]
    pub cc: String,
    /// Comity: when the receiver delivers a section
    #[arg(long, value_enum, default_value = "early")]
    pub deliver: Deliver,
    /// Comity and SRT: a key of the transport's URI; may be repeated
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub options: Vec<(String, String)>,
    /// Comity: write the fate of each section (sender), or each gap (receiver), to this file, in
    /// CSV
    #[arg(long, value_name = "FILE")]
    pub gap_log: Option<PathBuf>,
    /// Comity: write a qlog trace to this file
    #[arg(long, value_name = "FILE")]
    pub qlog: Option<PathBuf>,
    /// How long to wait for the other end
    #[arg(long, default_value = "15s", value_parser = duration)]
    pub wait: Duration,
}

impl Common {
    pub fn source(&self) -> Source {
        Source {
            rate: self.rate,
            fps: self.fps,
            seconds: self.seconds,
            pattern: self.frames,
            key_ratio: self.key_ratio,
            seed: self.seed,
        }
    }

    /// How long after the last frame both ends wait for data in flight.
    pub fn linger(&self) -> Duration {
        self.latency.max(self.srt_latency) + Duration::from_secs(2)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// The library of this repository, encrypted
    Comity,
    /// srt-live-transmit, encrypted
    Srt,
    /// TCP of the kernel with TCP_NODELAY, not encrypted
    Tcp,
    /// quinn: each frame is one stream, reset at its deadline; encrypted
    Quic,
    /// Bare datagrams: the effect of the network without any reaction
    Udp,
}

impl Transport {
    pub fn name(self) -> &'static str {
        match self {
            Self::Comity => "comity",
            Self::Srt => "srt",
            Self::Tcp => "tcp",
            Self::Quic => "quic",
            Self::Udp => "udp",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    Frames,
    Packets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Deliver {
    Early,
    Paced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QuicController {
    Cubic,
    Newreno,
    Bbr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QuicOrder {
    /// All in turn, as quinn does by default
    Turns,
    /// The oldest one, or with --importance the oldest of the most important ones
    Oldest,
    /// The newest one, or with --importance the newest of the most important ones
    Newest,
}

fn duration(text: &str) -> Result<Duration, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    match span {
        Span::ZERO => Err("expected more than 0, as in 400ms".into()),
        span => Ok(span.into()),
    }
}

fn at_least_one(text: &str) -> Result<f64, String> {
    let ratio: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match (1.0..=1_000.0).contains(&ratio) {
        true => Ok(ratio),
        false => Err("expected a number from 1 to 1000, as in 7".into()),
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("expected KEY=VALUE, as in ecn=false")?;
    match key.is_empty() || text.contains('&') {
        true => Err("expected one KEY=VALUE, as in ecn=false; repeat --option for more".into()),
        false => Ok((key.into(), value.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::try_parse_from(line.split(' ')).map_err(|error| error.to_string())
    }

    #[test]
    fn the_documented_command_line_is_read() {
        let line = "compare send --transport comity --connect 10.0.0.2:5000 --rate 3Mbps --fps 60 --seconds 20 --latency 200ms \
                    --frames key --key-ratio 9 --as packets --importance --cc cubic --option ecn=false --deliver paced --seed 4";
        let Command::Send(send) = parse(line).expect("valid").command else {
            panic!("it sends");
        };
        assert_eq!(
            (send.shape, send.importance, send.common.fps),
            (Shape::Packets, true, 60)
        );
        assert_eq!(
            send.common.options,
            [("ecn".to_owned(), "false".to_owned())]
        );
        assert_eq!(send.common.latency, Duration::from_millis(200));
        assert_eq!(send.common.source().rate.as_bps(), 3_000_000);
    }

    #[test]
    fn errors_state_the_expectation() {
        let base = "compare receive --listen 10.0.0.2:5000";
        for (rest, expected) in [
            ("--transport rtp", "comity, srt, tcp, quic, udp"),
            ("--transport tcp --rate 3", "3"),
            ("--transport tcp --latency 0ms", "as in 400ms"),
            ("--transport tcp --key-ratio 0.5", "as in 7"),
            ("--transport tcp --option ecn", "as in ecn=false"),
            ("--transport tcp --fps 0", "1..=1000"),
            ("", "--transport"),
        ] {
            let line = format!("{base} {rest}");
            let error = parse(line.trim_end()).expect_err(rest);
            assert!(error.contains(expected), "{rest}: {error}");
        }
    }
}
