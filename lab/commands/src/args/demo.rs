//! The options of `comity demo`.

use std::path::PathBuf;

use clap::Args;
use comity::parts::DEFAULT_CONTROLLER;
use comity_units::{Rate, Span};

use super::values::{ControllerName, quantity, share};

#[derive(Debug, Args)]
#[command(
    after_help = "The demo needs no privileges, no network and no media tools: the program contains a small clip. It sends \
several copies of the clip side by side over encrypted UDP, on this host, through an emulated bottleneck. Greedy flows \
of the same library compete for the bottleneck. By default, the rate of the bottleneck is such that the video needs \
three quarters of an equal share. With --clip, the video is one copy of your own file, with the bursts of its encoder.

At the same time, the same video goes over SRT through an equal bottleneck, if srt-live-transmit is installed (Debian: \
srt-tools). Then it goes over TCP in the simulator. The results say why one of them did not run.

Ctrl-C ends the demo early: it prints the results until then, and writes no file. A second one ends it at once.

Exit codes:
  0    done
  1    the demo failed, or the report could not be written
  2    the command line is wrong
  3    done, but this machine was too busy to emulate the bottleneck exactly: do not trust the numbers
  6    the file of --clip cannot be opened
  130  interrupted; the results cover the time until then, and no file was written

Examples:
  comity demo
  comity demo --flows 4 --duration 60s --report four.html
  comity demo --rate 4Mbps --latency 150ms --cc cubic --rivals cubic
  comity demo --flows 0 --loss 5%
  comity demo --clip film.ts --rivals cubic --rate 8Mbps --no-shed
  comity demo --json --no-report | jq .pictures"
)]
pub struct Demo {
    /// The rate of the bottleneck, such as 8Mbps [default: the video needs 75% of an equal share]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Rate>,

    /// The propagation delay of each direction
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = quantity::<Span>)]
    pub(crate) delay: Span,

    /// The size of the bottleneck's queue, in packets
    #[arg(long, value_name = "PACKETS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) queue: u32,

    /// The share of packets lost on the wire each way, such as 1% or 0.01
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) loss: f64,

    /// The number of competing greedy flows
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=32))]
    pub(crate) flows: u16,

    /// The congestion controller of the greedy flows
    #[arg(long, value_name = "NAME", default_value = "reno", value_parser = ControllerName::ANY)]
    pub(crate) rivals: String,

    /// A video file to send instead of the built-in clip: a transport stream, or MPEG-1 or MPEG-2
    /// video
    #[arg(long, value_name = "FILE")]
    pub(crate) clip: Option<PathBuf>,

    /// How many copies of the clip make up the video [default: 4, about 0.5 Mb/s each; 1 with
    /// --clip]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) copies: Option<u16>,

    /// The time from a section's source time to its deadline at the receiver
    #[arg(long, value_name = "TIME", default_value = "400ms", value_parser = quantity::<Span>)]
    pub(crate) latency: Span,

    /// The length of the video; the clip repeats as often as needed
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub(crate) duration: Span,

    /// The congestion controller of the video
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CONTROLLER, value_parser = ControllerName::ANY)]
    pub(crate) cc: String,

    /// Never drop pictures to fit the path
    #[arg(long)]
    pub(crate) no_shed: bool,

    /// Send the video over Comity only, not over SRT, and do not simulate it over TCP
    #[arg(long)]
    pub(crate) only_comity: bool,

    /// The seed of the losses
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The file to write the report to
    #[arg(long, value_name = "FILE", default_value = "comity-demo.html")]
    pub(crate) report: PathBuf,

    /// Write no report
    #[arg(long, conflicts_with = "report")]
    pub(crate) no_report: bool,

    /// Also write the report's first chart, as an SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a rate at which something arrives.
fn rate(text: &str) -> Result<Rate, String> {
    match quantity(text)? {
        Rate::ZERO => Err(format!(
            "{text} carries no packets; expected a rate above zero"
        )),
        rate => Ok(rate),
    }
}

/// Reads the length of the video.
fn duration(text: &str) -> Result<Span, String> {
    let span: Span = quantity(text)?;
    if (Span::from_secs(1)..=Span::from_secs(600)).contains(&span) {
        Ok(span)
    } else {
        Err(format!("{span} is out of range; expected 1s to 600s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_the_video_is_limited() {
        assert_eq!(duration("3s"), Ok(Span::from_secs(3)));
        assert_eq!(duration("600s"), Ok(Span::from_secs(600)));
        for bad in ["0s", "999ms", "601s", "3", "-1s", ""] {
            assert!(duration(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
