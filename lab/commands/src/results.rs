//! `comity results`

use comity_sim::results;
use comity_sim::results::store::{StoreError, has_something, merge};

use super::progress::timed;
use super::{Failure, complain, say};
use crate::args;

/// The maximum number of missing runs to list.
const MOST: usize = 12;

/// `comity results`.
///
/// # Errors
/// If the command fails. The message is printed.
pub fn results(args: &args::Results) -> Result<(), Failure> {
    let args::Results::Merge(args) = args;
    let path = &args.out.path;
    if !args.force && has_something(path) {
        return Err(refused(&StoreError::Exists { path: path.clone() }));
    }
    let merged = timed("reading", || merge(&args.stores)).map_err(|error| refused(&error))?;
    let (there, missing) = (merged.set.runs.len(), merged.missing.len());
    if missing > 0 {
        let numbers: Vec<_> = merged
            .missing
            .iter()
            .take(MOST)
            .map(usize::to_string)
            .collect();
        let more = if missing > MOST { ", ..." } else { "" };
        let message = format!(
            "{missing} of {} runs are missing: {}{more}",
            there + missing,
            numbers.join(", ")
        );
        if !args.partial {
            return Err(complain(&format!(
                "{message}; expected all, or --partial to do without them"
            )));
        }
        say(&format!("warning: {message}"));
    }
    timed("writing", || {
        results::write(&merged.set, args.out.format, path)
    })
    .map_err(|error| complain(&error))?;
    say(&format!("merged {there} runs into {}", path.display()));
    Ok(())
}

/// Reports why runs cannot be stored or read: the disk failed, or the command line is wrong.
pub(super) fn refused(error: &StoreError) -> Failure {
    let failed = match error.is_refusal_to_replace() {
        true => complain(&format!("{error}, or --force to replace the results there")),
        false => complain(error),
    };
    match error {
        StoreError::Write(_) => failed,
        StoreError::NoStore { .. } => Failure::Unopened,
        _ => Failure::Usage,
    }
}
