//! The options of `comity claims`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "A claim is something that a paper says in numbers about its system. For each check of a claim the paper's \
value is printed, the value here with its 95 % interval over the seeds, what it has to be, and whether it is: \
`holds` and `fails` where the interval lies on one side of the bound, `holds?` and `fails?` where it reaches \
across. A check that is known to fail is printed as failing, with the reason. A claim of which a part is not judged \
or fails holds in part. docs/reference/claims.md explains more.

Exit codes:
  0    every check that is expected to hold does
  1    one does not, or a run failed
  2    the command line, a file of claims or a scenario is wrong
  130  interrupted; what was judged by then is printed

Examples:
  comity claims
  comity claims packet_spacing libra-fig7-utilisation
  comity claims --list
  comity claims --full --jobs 8 --json > claims.json"
)]
pub(crate) struct Claims {
    /// The claims, or systems with all their claims [default: all]
    #[arg(value_name = "ID or SYSTEM")]
    pub(crate) names: Vec<String>,

    /// The full form, with all seeds and points and runs of full length, instead of the quick one
    #[arg(long)]
    pub(crate) full: bool,

    /// The folder with a folder for each system, in which claims.toml and the scenarios are
    #[arg(long, value_name = "FOLDER", default_value = "experiments")]
    pub(crate) dir: PathBuf,

    /// List the claims without running anything
    #[arg(long)]
    pub(crate) list: bool,

    /// How many runs to run at a time [default: one on each processor]
    #[arg(long, short, value_name = "N", value_parser = super::jobs)]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Print one JSON document (docs/reference/claims.md) instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}
