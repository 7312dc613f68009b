//! The options of `comity results`.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::runs::Out;

#[derive(Debug, Subcommand)]
pub enum Results {
    /// Merge the runs that several processes stored into one set of results
    Merge(Merge),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes:
  0    the results are stored
  1    runs are missing, or the results could not be stored
  2    the command line is wrong, or the runs are of different sweeps
  6    no runs are stored where the command line says

Examples:
  comity sim run sweep.toml --out results --shard 1/2
  comity sim run sweep.toml --out results --shard 2/2
  comity results merge results --out results
  comity results merge node-*/results --out all.csv")]
pub struct Merge {
    /// Where runs were stored: the PATH of `comity sim run --out PATH`, or its folder PATH.runs
    #[arg(required = true)]
    pub(crate) stores: Vec<PathBuf>,

    /// Store the results: a folder of Parquet files (NAME), a folder of CSV files (NAME.csv) or a
    /// JSON file (NAME.json)
    #[arg(long, short, value_name = "PATH", value_parser = PathBufValueParser::new().try_map(Out::new))]
    pub(crate) out: Out,

    /// Replace earlier results at the path of --out
    #[arg(long)]
    pub(crate) force: bool,

    /// Also store the results if runs are missing
    #[arg(long)]
    pub(crate) partial: bool,
}
