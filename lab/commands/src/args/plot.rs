//! The options of `comity plot`.

use std::path::PathBuf;

use clap::Args;

use super::values::{Offering, named_file};

/// The kinds of pictures, which Python draws.
const KINDS: [&str; 11] = [
    "cwnd",
    "throughput",
    "queue",
    "delay",
    "completion",
    "sequence",
    "shares",
    "fairness",
    "jain",
    "slack",
    "heatmap",
];

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Pictures are drawn in Python. The command of the Python package draws them; the program that
cargo builds says how to install it. docs/guide/python.md shows every kind.
`sequence` and `slack` need the results of `comity.run(..., packets=True)` in Python, which
`Results.write` stored.

Kinds:
  cwnd           congestion window and slow-start threshold over time
  throughput     throughput of each flow over time
  queue          longest queue of each link over time
  delay          distribution function of the one-way delay
  completion     completion time of each flow over its size
  sequence       packets, drops and retransmissions of a flow over time
  shares         throughput of a flow of each group, with confidence intervals
  fairness       Jain's fairness index over the sweep, with confidence intervals
  jain           Jain's fairness index of one run over time scales
  slack          time left until the deadline of each frame
  heatmap        a number of each group over two axes of the sweep

Exit codes:
  0    the picture is drawn
  1    the picture cannot be written
  2    the results lack what the kind needs, or the command line is wrong
  6    the results cannot be opened

Examples:
  comity sim run experiments/demo/dumbbell.toml --out demo --set scenario.bins=1s
  comity plot demo --kind throughput --out throughput.png
  comity plot demo --kind delay --dark --out delay.svg"
)]
pub struct Plot {
    /// Results that `comity sim run --out` or `Results.write` stored
    #[arg(value_name = "RESULT")]
    pub(crate) results: PathBuf,

    /// What to draw
    #[arg(long, value_parser = Offering(KINDS.to_vec()), hide_possible_values = true)]
    pub(crate) kind: String,

    /// The picture: NAME.png, NAME.svg or NAME.pdf
    #[arg(long, short, value_name = "FILE", value_parser = named_file())]
    pub(crate) out: PathBuf,

    /// Draw on a dark background
    #[arg(long)]
    pub(crate) dark: bool,

    /// The number of the run to draw, for kinds that draw one run [default: 0]
    #[arg(long, value_name = "K")]
    pub(crate) run: Option<u64>,

    /// Draw only this flow, group or link; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
}
