//! The options of `comity sim`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use comity_sim::scenario::Shard;

use super::runs::{Out, Seeds, jobs, seed, seeds};

#[derive(Debug, Subcommand)]
pub enum Sim {
    /// Run a scenario and print per-group results
    Run(Run),
    /// List the scenarios below a folder
    List(List),
    /// Print the reference of all scenario keys
    Schema(Schema),
    /// Run one run of a scenario and write its packets and events to files
    Trace(Trace),
}

/// The seeds of a scenario, and the output of its results.
#[derive(Debug, Args)]
pub struct Printing {
    /// Store the results: a folder of Parquet files (NAME), a folder of CSV files (NAME.csv) or a
    /// JSON file (NAME.json)
    #[arg(long, short, value_name = "PATH", value_parser = PathBufValueParser::new().try_map(Out::new))]
    pub(crate) out: Option<Out>,

    /// Repeat all runs, and replace earlier results at the path of --out and stored runs of other
    /// sweeps
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
    /// The seeds from the command line instead of those of the file.
    pub(crate) fn seeds(&self) -> Option<Vec<u64>> {
        match (self.seed, &self.seeds) {
            (Some(seed), _) => Some(vec![seed]),
            (None, seeds) => seeds.as_ref().map(|seeds| seeds.0.clone()),
        }
    }
}

/// How a scenario is read.
#[derive(Clone, Debug, Args)]
pub struct Reading {
    /// The scenario file
    pub(crate) file: PathBuf,

    /// Replace a value of the file, such as flow.tcp.count=4; may be repeated. The value of a swept
    /// key replaces the values of its axis
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    all runs are done
  1    a run failed, or its results could not be stored; the other results are
  2    the command line or the scenario is wrong
  6    the scenario cannot be opened
  130  interrupted; with --out, the finished runs are stored, and the same command continues

With --out PATH, each run is stored in the folder PATH.runs as it ends. Runs that are stored are not
done again: a command that was interrupted continues, and more seeds add to those done before. The
results of a shard are only stored there; `comity results merge` makes tables of all of them.

Examples:
  comity sim run experiments/demo/dumbbell.toml
  comity sim run experiments/demo/dumbbell.toml --set flow.tcp.rwnd=20 --seeds 1-5
  comity sim run experiments/demo/dumbbell.toml --out demo --jobs 4
  comity sim run experiments/demo/dumbbell.toml --out demo --shard 3/16
  comity sim run experiments/demo/dumbbell.toml --json | jq .totals")]
pub struct Run {
    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) printing: Printing,

    /// How many runs to run in parallel [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Run only these points of the sweep: a value of an axis, such as queue=60; may be repeated.
    /// Several values of one axis are alternatives; an axis that is not named keeps all its values
    #[arg(long, value_name = "AXIS=VALUE")]
    pub(crate) point: Vec<String>,

    /// Run only one part of the runs, such as 3/16 for the third of sixteen, and store them for
    /// `comity results merge`
    #[arg(long, value_name = "K/N", requires = "out")]
    pub(crate) shard: Option<Shard>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  comity sim list
  comity sim list experiments/reference --json")]
pub struct List {
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
pub struct Schema {
    /// Print a JSON Schema instead of the reference, for editors
    #[arg(long)]
    pub(crate) json: bool,
}

/// The points of a link at which packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Capture {
    After,
    Before,
    Both,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  comity sim trace experiments/demo/dumbbell.toml --link bottleneck --pcapng bottleneck.pcapng
  comity sim trace experiments/demo/dumbbell.toml --flow tcp-0 --csv - | head
  comity sim trace experiments/demo/dumbbell.toml --flow tcp-0 --qlog tcp-0.sqlog --csv events.csv
  comity sim trace sweep.toml --point queue=60 --seed 7 --pcapng both.pcapng --capture both")]
#[command(group = clap::ArgGroup::new("outputs").required(true).multiple(true).args(["pcapng", "qlog", "csv"]))]
pub struct Trace {
    #[command(flatten)]
    pub(crate) reading: Reading,

    /// The number of the run, from 0, in the order of `comity sim run` [default: 0]
    #[arg(long, value_name = "K", conflicts_with_all = ["point", "seed"])]
    pub(crate) run: Option<usize>,

    /// The point of the sweep: the value of an axis, such as queue=60; may be repeated. An axis
    /// that is not named has its first value
    #[arg(long, value_name = "AXIS=VALUE")]
    pub(crate) point: Vec<String>,

    /// The seed of the run, which need not be in the file [default: the first seed of the file]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub(crate) seed: Option<u64>,

    /// A link to trace; may be repeated [default: all except the links of hosts]
    #[arg(long, value_name = "NAME")]
    pub(crate) link: Vec<String>,

    /// A flow to trace; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Vec<String>,

    /// Write the packets on the links, for Wireshark; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) pcapng: Option<PathBuf>,

    /// Where --pcapng captures: after a link, the packets that it delivers, at their arrival;
    /// before it, the packets offered to it, with a comment at each dropped packet. A file with
    /// both shows each packet twice: filter by frame.interface_name
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Capture::After, requires = "pcapng")]
    pub(crate) capture: Capture,

    /// Write a qlog trace of the sender of a flow, for qvis. With several flows, each flow has its
    /// own file, with the name of the flow before the extension
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,

    /// Write a table of all events; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}
