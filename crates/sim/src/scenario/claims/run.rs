//! Runs what claims need.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::super::{Execution, Interrupted, Run, RunSettings, execute, simulate};
use super::grid::Samples;
use super::measure::{Needed, Results, measure};
use super::{Book, Claim, Measure, Pooled};
use crate::network::Network;
use crate::network::NetworkError;

/// The numbers of all measures of some claims.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// By claim and measure: for each point the seeds in their order.
    samples: BTreeMap<(String, String), Vec<Vec<f64>>>,
}

/// The progress of claims.
#[derive(Debug)]
pub enum Told<'m> {
    /// So many runs are done.
    Runs(usize),
    /// All runs of the claim at this place of those that are run are done: it can be judged.
    Claim(usize, &'m Measured),
}

/// Why claims could not be run.
#[derive(Debug)]
pub enum RunError {
    /// The execution was cancelled.
    Interrupted,
    /// The engine refused a run.
    Run {
        /// The scenario.
        file: PathBuf,
        /// The number of the run.
        run: usize,
        /// What the engine says.
        error: Box<NetworkError>,
    },
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Run { file, run, error } => {
                write!(f, "run {run} of {}: {error}", file.display())
            }
        }
    }
}

impl std::error::Error for RunError {}

impl Measured {
    /// What was measured for one claim.
    #[must_use]
    pub fn of(&self, claim: &Claim) -> Self {
        let samples = self.samples.iter();
        let own = samples.filter(|((id, _), _)| *id == claim.id);
        Self {
            samples: own
                .map(|(key, points)| (key.clone(), points.clone()))
                .collect(),
        }
    }

    /// What seeds gave for a measure of a claim; where it was not run, no numbers.
    pub(super) fn sample(&self, claim: &str, outline: &Samples) -> Samples {
        let key = (claim.to_owned(), outline.name.clone());
        let measured = self.samples.get(&key);
        let points = outline
            .points
            .iter()
            .enumerate()
            .map(|(at, (coordinates, stand_ins))| {
                let values = measured.and_then(|points| points.get(at)).cloned();
                (
                    coordinates.clone(),
                    values.unwrap_or_else(|| vec![f64::NAN; stand_ins.len()]),
                )
            });
        Samples {
            points: points.collect(),
            ..outline.clone()
        }
    }
}

/// A measure, and the runs of a scenario that it needs.
struct Demand<'b> {
    claim: &'b str,
    measure: &'b Measure,
    runs: &'b BTreeSet<usize>,
}

impl Book {
    /// How many runs these claims need; those that several need are run once.
    pub fn run_count(&self, claims: &[&Claim]) -> usize {
        (0..self.scenarios.len())
            .map(|scenario| runs_of(&demands(scenario, claims)).len())
            .sum()
    }

    /// Runs what these claims need.
    ///
    /// `jobs` runs are run at a time, `None` for one on each processor; what comes out does not
    /// depend on it. `tell` is called after every run, and for every claim once, when all of its
    /// runs are done.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] when `cancel` was set.
    pub fn run(
        &self,
        claims: &[&Claim],
        jobs: Option<NonZeroUsize>,
        cancel: Option<&AtomicBool>,
        mut tell: impl FnMut(Told<'_>),
    ) -> Result<Measured, RunError> {
        let mut measured = Measured::default();
        let mut done = 0;
        let mut left: Vec<usize> = (0..claims.len()).collect();
        tell_whole(claims, &mut left, 0, &measured, &mut tell);
        for (index, pooled) in self.scenarios.iter().enumerate() {
            let demands = demands(index, claims);
            let wanted = runs_of(&demands);
            if wanted.is_empty() {
                continue;
            }
            let mut runs = pooled.scenario.runs();
            runs.retain(|run| wanted.contains(&run.number));
            pooled.run(
                &runs,
                &demands,
                jobs,
                cancel,
                &mut measured,
                &mut |finished| {
                    tell(Told::Runs(done + finished));
                },
            )?;
            done += runs.len();
            tell_whole(claims, &mut left, index + 1, &measured, &mut tell);
        }
        Ok(measured)
    }
}

/// Tells of the claims among `left` that need none of the scenarios from `next` on, and takes them
/// out.
fn tell_whole(
    claims: &[&Claim],
    left: &mut Vec<usize>,
    next: usize,
    measured: &Measured,
    tell: &mut impl FnMut(Told<'_>),
) {
    left.retain(|&place| {
        let waits = claims.get(place).is_some_and(|claim| {
            claim
                .selections
                .iter()
                .any(|selection| selection.scenario >= next)
        });
        if !waits {
            tell(Told::Claim(place, measured));
        }
        waits
    });
}

fn demands<'b>(scenario: usize, claims: &[&'b Claim]) -> Vec<Demand<'b>> {
    claims
        .iter()
        .flat_map(|claim| {
            claim.measures.iter().filter_map(move |measure| {
                let selection = claim.selections.get(measure.selection)?;
                (selection.scenario == scenario).then_some(Demand {
                    claim: &claim.id,
                    measure,
                    runs: &selection.runs,
                })
            })
        })
        .collect()
}

fn runs_of(demands: &[Demand<'_>]) -> BTreeSet<usize> {
    demands
        .iter()
        .flat_map(|demand| demand.runs.iter().copied())
        .collect()
}

impl Pooled {
    fn run(
        &self,
        runs: &[Run],
        demands: &[Demand<'_>],
        jobs: Option<NonZeroUsize>,
        cancel: Option<&AtomicBool>,
        measured: &mut Measured,
        on_finished: &mut dyn FnMut(usize),
    ) -> Result<(), RunError> {
        let mut needed = Needed::default();
        for demand in demands {
            needed.add(&demand.measure.expression);
        }
        // All measures of a run are taken where it was run, so that nothing else of it is kept.
        let measure_run = |network: &Network, run: &Run, settings: &RunSettings| {
            let results = Results::of(&simulate(network, run, settings)?, &needed);
            let asked = demands.iter().enumerate();
            Ok(asked
                .filter(|(_, demand)| demand.runs.contains(&run.number))
                .map(|(at, demand)| (at, measure(&demand.measure.expression, &results)))
                .collect::<Vec<_>>())
        };
        let execution = Execution {
            jobs,
            longest_first: true,
            cancel,
        };
        let mut error = None;
        // For each demand the points in their order, each with the values of its seeds.
        let mut taken: Vec<Vec<(usize, Vec<f64>)>> = demands.iter().map(|_| Vec::new()).collect();
        let end = execute(
            &self.scenario,
            runs,
            &execution,
            measure_run,
            on_finished,
            |outcome| match outcome.report {
                Err(reason) => error = error.take().or(Some((outcome.run.number, reason))),
                Ok(values) => {
                    for (at, value) in values {
                        let Some(points) = taken.get_mut(at) else {
                            continue;
                        };
                        match points
                            .last_mut()
                            .filter(|(point, _)| *point == outcome.run.point)
                        {
                            Some((_, seeds)) => seeds.push(value),
                            None => points.push((outcome.run.point, vec![value])),
                        }
                    }
                }
            },
        );
        if let Some((run, error)) = error {
            let file = self.file.clone();
            let error = Box::new(error);
            return Err(RunError::Run { file, run, error });
        }
        end.map_err(|Interrupted { .. }| RunError::Interrupted)?;
        for (demand, points) in demands.iter().zip(taken) {
            let key = (demand.claim.to_owned(), demand.measure.outline.name.clone());
            let points = points.into_iter().map(|(_, seeds)| seeds).collect();
            measured.samples.insert(key, points);
        }
        Ok(())
    }
}
