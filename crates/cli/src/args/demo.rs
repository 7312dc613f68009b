//! The options of `comity demo`.

use std::path::PathBuf;

use clap::Args;
use comity::DEFAULT_CONTROLLER;
use comity_congestion::table;
use comity_units::{Rate, Span};

use super::{quantity, share};

#[derive(Debug, Args)]
#[command(
    after_help = "It needs no privileges, no network and no media tools: a small clip is part of the program. Several copies \
of it are sent side by side over encrypted UDP, on this host, through an emulated bottleneck, which greedy \
flows of the same library fill as well. By default the bottleneck is as fast as it has to be for the video to \
need three quarters of an equal share. With --clip the video is your own: one copy of it, as the encoder's bursts are.

Exit codes:
  0    done
  1    it could not be done, or the report could not be written
  2    the command line is wrong
  3    done, but this machine was too busy to emulate the bottleneck exactly: the numbers are not to be trusted
  130  interrupted; the account is of what was sent until then

Examples:
  comity demo
  comity demo --flows 4 --duration 60s --report four.html
  comity demo --rate 4Mbps --latency 150ms --cc cubic --rivals cubic
  comity demo --flows 0 --loss 5%
  comity demo --clip film.ts --rivals cubic --rate 8Mbps --no-shed
  comity demo --json --no-report | jq .pictures"
)]
pub(crate) struct Demo {
    /// How fast the bottleneck is, such as 8Mbps [default: the video needs 75% of an equal share]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Rate>,

    /// How long packets travel, each way
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = quantity::<Span>)]
    pub(crate) delay: Span,

    /// How many packets wait at the bottleneck at most
    #[arg(long, value_name = "PACKETS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) queue: u32,

    /// The share of packets lost on the wire each way, such as 1% or 0.01
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = share)]
    pub(crate) loss: f64,

    /// How many greedy flows compete
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=32))]
    pub(crate) flows: u16,

    /// The congestion controller of the greedy flows
    #[arg(long, value_name = "NAME", default_value = "reno", value_parser = controller)]
    pub(crate) rivals: String,

    /// A video of yours instead of the clip that is part of the program: a transport stream, or
    /// MPEG-1 or MPEG-2 video
    #[arg(long, value_name = "FILE")]
    pub(crate) clip: Option<PathBuf>,

    /// How many copies of the clip make up the video [default: 4, of about half a megabit per
    /// second each; 1 with --clip]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) copies: Option<u16>,

    /// How long each section of the video may take from its source time to its arrival
    #[arg(long, value_name = "TIME", default_value = "400ms", value_parser = quantity::<Span>)]
    pub(crate) latency: Span,

    /// How long the video is; the clip is repeated as often as it takes
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration)]
    pub(crate) duration: Span,

    /// The congestion controller of the video
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CONTROLLER, value_parser = controller)]
    pub(crate) cc: String,

    /// Never drop pictures to fit the path
    #[arg(long)]
    pub(crate) no_shed: bool,

    /// The seed of the losses
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Where the report is written
    #[arg(long, value_name = "FILE", default_value = "comity-demo.html")]
    pub(crate) report: PathBuf,

    /// Write no report
    #[arg(long, conflicts_with = "report")]
    pub(crate) no_report: bool,

    /// Also write the report's first chart, as an SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,

    /// Print one JSON document instead of the account in words
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a rate at which something arrives.
fn rate(text: &str) -> Result<Rate, String> {
    match quantity(text)? {
        Rate::ZERO => Err(format!(
            "at {text} nothing ever arrives; expected a rate above zero"
        )),
        rate => Ok(rate),
    }
}

/// Reads the name of a controller, so that a wrong one is refused before any file is made.
fn controller(text: &str) -> Result<String, String> {
    table::find(text)
        .map(|row| row.name.to_owned())
        .map_err(|error| error.to_string())
}

/// Reads the length of the video.
fn duration(text: &str) -> Result<Span, String> {
    let span: Span = quantity(text)?;
    if (Span::from_secs(1)..=Span::from_secs(600)).contains(&span) {
        Ok(span)
    } else {
        Err(format!("{span} is not between 1s and 600s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_video_has_a_length_that_can_be_played() {
        assert_eq!(duration("3s"), Ok(Span::from_secs(3)));
        assert_eq!(duration("600s"), Ok(Span::from_secs(600)));
        for bad in ["0s", "999ms", "601s", "3", "-1s", ""] {
            assert!(duration(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
