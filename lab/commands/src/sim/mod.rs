//! The simulator's verbs.

mod columns;
mod entry;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod run;
pub(crate) mod schema;
mod summary;
pub(crate) mod trace;

use super::Failure;
use crate::args;

/// `comity sim`.
///
/// # Errors
/// If the command fails. The message is printed.
pub fn sim(args: args::Sim) -> Result<(), Failure> {
    match args {
        args::Sim::Run(args) => run::run(&args),
        args::Sim::List(args) => list::list(&args),
        args::Sim::Schema(args) => schema::schema(&args),
        args::Sim::Trace(args) => trace::trace(&args),
    }
}
