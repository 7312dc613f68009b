//! The options of `comity claims`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "A claim is a statement with numbers that a paper makes about its system. A claim has one or more checks. For \
each check, the output shows the paper's value, the measured value with its 95 % interval over the seeds, the \
bound, and the verdict.

The verdict is `holds` or `fails` if the interval lies on one side of the bound, and `holds?` or `fails?` if the \
interval includes the bound. A check that is known to fail is printed as failing, with the reason. A claim holds in \
part if one of its checks fails or is not judged. docs/reference/claims.md explains more.

Exit codes:
  0    every check that is expected to hold holds
  1    one of them does not hold, or a run failed
  2    the command line, a file of claims or a scenario is wrong
  130  interrupted; the checks that were judged by then are printed

Examples:
  comity claims
  comity claims packet_spacing libra-fig7-utilisation
  comity claims --list
  comity claims --full --jobs 8 --json > claims.json"
)]
pub(crate) struct Claims {
    /// The claims to check; a system stands for all of its claims [default: all]
    #[arg(value_name = "ID or SYSTEM")]
    pub(crate) names: Vec<String>,

    /// Run all seeds and points at full length, instead of the quick form
    #[arg(long)]
    pub(crate) full: bool,

    /// The folder with one subfolder per system, which holds claims.toml and the scenarios
    #[arg(long, value_name = "FOLDER", default_value = "experiments")]
    pub(crate) dir: PathBuf,

    /// List the claims without running anything
    #[arg(long)]
    pub(crate) list: bool,

    /// How many runs to run in parallel [default: one per processor]
    #[arg(long, short, value_name = "N", value_parser = super::values::jobs)]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Print one JSON document (docs/reference/claims.md) instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}
