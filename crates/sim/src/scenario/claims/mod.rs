//! Claims: what a paper says in numbers, and whether it holds here.
//!
//! A folder of experiments has a folder for each system, and in it scenarios and a `claims.toml`:
//! for each claim the scenarios to run, the numbers to take from every run (measures), what to
//! calculate from their means over the seeds (values), and what has to hold (checks).
//! [`Book::load`] reads them all and finds every mistake before anything is run, [`Book::run`] runs
//! what some claims need, and [`Book::judge`] says what came out. `docs/reference/claims.md`
//! explains the format to those who write in it.
//!
//! ```text
//! claims.toml --load--> Book --run--> Measured --judge--> ClaimReport
//! ```
//!
//! Nothing here knows a paper: facts are in the files alone. A check that does not hold stays in
//! its file with what is behind it, and is reported as failing every time.

mod coordinate;
mod expression;
mod fault;
mod grid;
mod interval;
mod judge;
mod load;
mod measure;
mod parser;
pub mod reference;
mod run;
mod tables;

use std::collections::BTreeSet;
use std::path::PathBuf;

use comity_congestion::table::nearest;

use super::{Problems, Scenario};
use expression::{Expression, Statement};
use grid::{Grid, Samples};

pub use expression::Stage;
pub use fault::Fault;
pub use interval::Interval;
pub use judge::{Bound, CheckReport, ClaimReport, Outcome, Row};
pub use run::{Measured, RunError, Told};

/// How thoroughly claims are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// With fewer seeds and points and shorter runs, as each claim has it.
    Quick,
    /// As the scenarios are.
    Full,
}

/// What is known to come out of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It holds.
    Holds,
    /// It does not, and the file says why.
    Fails,
    /// What is compared is the same but for chance, and the file says why: it holds in one run and
    /// not in another.
    Chance,
}

/// All claims of a folder, in one form, with the scenarios that they need.
#[derive(Debug)]
pub struct Book {
    claims: Vec<Claim>,
    scenarios: Vec<Pooled>,
    /// The seeds of each sample: measures of one sample were run with the same seeds.
    samples: Vec<Vec<u64>>,
}

/// A scenario with its overrides, which several claims may need.
#[derive(Debug)]
struct Pooled {
    file: PathBuf,
    set: Vec<String>,
    scenario: Scenario,
    there: measure::There,
}

/// One claim.
#[derive(Debug)]
pub struct Claim {
    /// The name of the folder that it is in.
    pub system: String,
    /// Its name.
    pub id: String,
    /// What the paper says.
    pub says: String,
    /// Where it says so.
    pub source: Option<String>,
    /// Why it is not reproduced.
    pub missing: Option<String>,
    /// The tests that hold it or a part of it: file and function.
    pub tests: Vec<(String, String)>,
    selections: Vec<Selection>,
    measures: Vec<Measure>,
    values: Vec<(String, Expression)>,
    papers: Vec<(String, Grid)>,
    checks: Vec<Check>,
}

/// Some runs of a scenario.
#[derive(Debug)]
struct Selection {
    name: String,
    /// Which of the book's scenarios.
    scenario: usize,
    /// The numbers of the runs.
    runs: BTreeSet<usize>,
}

#[derive(Debug)]
struct Measure {
    expression: Expression,
    /// Which of the claim's runs.
    selection: usize,
    /// Its points, with values that stand for those to come.
    outline: Samples,
}

#[derive(Debug)]
struct Check {
    says: String,
    text: String,
    statement: Statement,
    paper: Option<Expression>,
    form: Option<Form>,
    expected: Expected,
    reason: Option<String>,
}

impl Claim {
    /// How many checks it has.
    pub fn check_count(&self) -> usize {
        self.checks.len()
    }

    /// How many checks are known not to hold.
    pub fn failing_count(&self) -> usize {
        let checks = self.checks.iter();
        checks
            .filter(|check| check.expected == Expected::Fails)
            .count()
    }
}

impl Book {
    /// The claims, system by system, in the order of their files.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The claim or system that is spelled most like `name`.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let claims = self.claims.iter();
        nearest(
            name,
            claims.flat_map(|claim| [claim.system.as_str(), &claim.id]),
        )
    }

    /// The files of a claim's scenarios, and how many runs of them it looks at.
    pub fn needs(&self, claim: &Claim) -> (BTreeSet<PathBuf>, usize) {
        let runs = claim
            .selections
            .iter()
            .map(|selection| selection.runs.len())
            .sum();
        let pooled = claim
            .selections
            .iter()
            .filter_map(|selection| self.scenarios.get(selection.scenario));
        (pooled.map(|pooled| pooled.file.clone()).collect(), runs)
    }
}

/// Why a folder gives no book.
#[derive(Debug)]
pub enum LoadError {
    /// The folder, or a file in it, cannot be read.
    Unreadable {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// No folder in it has a file of claims.
    Nothing {
        /// The folder.
        path: PathBuf,
    },
    /// Files of claims or their scenarios have mistakes.
    Problems(Vec<Problems>),
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreadable { path, reason } => {
                write!(f, "{} cannot be read: {reason}", path.display())
            }
            Self::Nothing { path } => write!(
                f,
                "no folder in {} has a claims.toml; expected one in the folder of each system",
                path.display()
            ),
            Self::Problems(files) => {
                let texts: Vec<_> = files.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join("\n\n"))
            }
        }
    }
}

impl std::error::Error for LoadError {}
