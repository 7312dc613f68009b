//! Scenarios: experiments as text.
//!
//! A scenario file describes a network, its flows, and the parameters that vary. [`Scenario::load`]
//! reads it and checks every point of its sweep. It reports all problems at once, each with file,
//! line, column, key, value and the expected form. [`Scenario::runs`] lists the runs,
//! [`Scenario::prepare`] builds the network of one, and [`execute()`] executes them all.
//!
//! The tables of the file are declared once, in `tables`. The reader, the checks, the paths of
//! sweeps, the reference in `docs/reference/scenario.md` and the JSON Schema ([`mod@reference`])
//! all come from these lines.
//!
//! ```
//! use comity_sim::scenario::{NoFiles, Reading, Scenario};
//!
//! let text = r#"
//!     [scenario]
//!     name = "two-flows"
//!     duration = "10s"
//!     seeds = { first = 1, count = 3 }
//!
//!     [topology]
//!     kind = "dumbbell"
//!     bottleneck = { rate = "1.5Mbps", delay = "20ms", queue = 20 }
//!     access = { rate = "10Mbps", delay = "2ms" }
//!
//!     [[flow]]
//!     group = "tcp"
//!     count = 2
//!     rwnd = 10
//!
//!     [[sweep]]
//!     parameter = "flow.tcp.rwnd"
//!     values = [5, 10]
//! "#;
//! let scenario = Scenario::parse("two.toml", text, NoFiles, &Reading::default())?;
//! assert_eq!(scenario.runs().len(), 2 * 3);
//! let (network, _) = scenario.prepare(&scenario.runs()[0]);
//! assert_eq!(network.flows[1].name, "tcp-1");
//!
//! let mistake = text.replace("rwnd = 10", "rwdn = 10");
//! let problems = Scenario::parse("two.toml", &mistake, NoFiles, &Reading::default()).unwrap_err();
//! assert!(problems.to_string().contains("did you mean `rwnd`?"));
//! # Ok::<(), comity_sim::scenario::Problems>(())
//! ```

pub mod applications;
mod build;
mod choose;
mod document;
mod duplex;
mod execute;
mod identity;
mod kinds;
mod papers;
mod parameters;
mod path;
mod portable;
mod problem;
mod problems;
pub mod reference;
mod schema;
mod settings;
mod simulation;
mod source;
mod sweep;
mod tables;

use std::path::Path;
use std::sync::Arc;

use comity_congestion::table::find;
use comity_units::Seed;
use rayon::prelude::*;

pub use build::{Limits, linux_parameters};
pub use choose::{ChoiceError, Shard};
pub use duplex::{Setting, read_duplex};
pub use execute::{
    Execution, Interrupted, Outcome, Stopped, execute, simulate, simulate_stoppable,
};
pub use portable::Portable;
pub use problem::{Problem, ProblemKind, RangeFault, Unfit};
pub use problems::Problems;
pub use schema::{Files, Folder, NoFiles};
pub use settings::RunSettings;
pub use simulation::Simulation;
pub use source::{MAX_TEXT, Source, SourceSpan, Sources};

use crate::network::Network;
use crate::results::{AxisValue, CompletedRun, ResultSet, ScenarioInfo};
use build::Library;
use document::{Entry, Node, Value};
use schema::{Context, Kind, Nested, Shape, Table, read_text};
use sweep::{Group, Override};
use tables::{ScenarioFile, ScenarioTable, SweepTable};

/// Options for reading a scenario.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Values that replace those of the file, as `path=value`. A value that is not TOML is a text.
    pub set: Vec<String>,
    /// Seeds that replace those of the file.
    pub seeds: Option<Vec<u64>>,
    /// The names of the [custom controllers](crate::CustomControllers) that flows may have.
    pub controllers: Vec<String>,
    /// The maximum size of the scenario.
    pub limits: Limits,
}

/// One run of a scenario: a point of its sweep, with a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The number of the run, from 0. Points follow the order of the axes, the last one fastest;
    /// the runs of a point follow the order of the seeds.
    pub number: usize,
    /// The number of the point, from 0.
    pub point: usize,
    /// The seed.
    pub seed: Seed,
    /// The value of each axis, in the order of [`Scenario::axes`].
    pub values: Arc<[AxisValue]>,
}

/// A scenario whose points have all been read and are valid.
pub struct Scenario {
    name: String,
    description: Option<String>,
    seeds: Vec<u64>,
    overrides: Vec<String>,
    sources: Arc<Sources>,
    document: Node,
    groups: Vec<Group>,
    notes: Vec<String>,
    files: Box<dyn Files + Send + Sync>,
    custom: Vec<String>,
    library: Library,
    limits: Limits,
    shape: Shape,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scenario")
            .field("name", &self.name)
            .field("points", &self.points())
            .field("seeds", &self.seeds)
            .finish_non_exhaustive()
    }
}

impl Scenario {
    /// Reads a file and checks every point.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path, reading: &Reading) -> Result<Self, Problems> {
        Self::outline(path, reading)?.checked()
    }

    /// Reads only as much of a file as its name and its number of runs need.
    ///
    /// # Errors
    /// The problems of its grammar, its `[scenario]` or its axes.
    pub fn outline(path: &Path, reading: &Reading) -> Result<Self, Problems> {
        let name = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        match read_text(path, MAX_TEXT as u64) {
            Ok(text) => Self::read(&name, &text, Box::new(Folder(folder)), reading),
            Err(error) => {
                let kind = ProblemKind::Unreadable {
                    reason: error.to_string(),
                };
                let problem = Problem::new(None, &name, kind);
                Err(Problems::new(Arc::default(), vec![problem]))
            }
        }
    }

    /// Reads a text and checks every point. `files` holds the traces that the text names.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(
        name: &str,
        text: &str,
        files: impl Files + Send + Sync + 'static,
        reading: &Reading,
    ) -> Result<Self, Problems> {
        Self::read(name, text, Box::new(files), reading)?.checked()
    }

    fn read(
        name: &str,
        text: &str,
        files: Box<dyn Files + Send + Sync>,
        reading: &Reading,
    ) -> Result<Self, Problems> {
        let mut sources = Sources::default();
        let mut document = match document::parse(&mut sources, name, text) {
            Ok(document) => document,
            Err(problems) => return Err(Problems::new(Arc::new(sources), problems)),
        };
        let shape = Nested::<ScenarioFile>::KIND.shape();
        let taken = |name: &&String| find(name).is_ok();
        let mut problems: Vec<Problem> = reading
            .controllers
            .iter()
            .filter(taken)
            .map(|name| Problem::new(None, name, ProblemKind::ControllerTaken))
            .collect();
        let mut overrides = Vec::new();
        for text in &reading.set {
            match set(&mut document, &shape, text, &mut sources) {
                Ok(value) => overrides.push(value),
                Err(found) => problems.extend(found),
            }
        }
        let outlined = if problems.is_empty() {
            let mut cx = Context::new(&*files, &reading.controllers);
            let is_swept = document.get("sweep").is_some();
            sweep::report_set_again(&overrides, &mut cx);
            let outlined = outline(&mut document, &shape, reading, &overrides, &mut cx);
            // Without axes, further problems do not depend on them: report these as well.
            if outlined.is_none()
                && !is_swept
                && let Some(file) = ScenarioFile::read_table(&document, &mut cx)
            {
                build::build(&file, &Library::default(), &reading.limits, &mut cx);
            }
            problems.append(&mut cx.problems);
            outlined
        } else {
            None
        };
        let sources = Arc::new(sources);
        match outlined {
            Some(outline) if problems.is_empty() => Ok(Self {
                name: outline.table.name,
                description: outline.table.description,
                seeds: outline.seeds,
                overrides: reading.set.clone(),
                sources,
                document,
                groups: outline.groups,
                notes: outline.notes,
                files,
                custom: reading.controllers.clone(),
                library: Library::default(),
                limits: reading.limits,
                shape,
            }),
            _ => Err(Problems::new(sources, problems)),
        }
    }

    /// The name of the scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text that it was read from, without overrides.
    pub fn text(&self) -> &str {
        self.sources
            .first()
            .map_or("", |source| source.text.as_str())
    }

    /// The values that replaced those of the text, as `path=value`.
    pub fn overrides(&self) -> &[String] {
        &self.overrides
    }

    /// Notes on the overrides: the axes whose values they replace.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The description of what it shows.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Whether it has flows of programs (`transport = "command"`), which only the lab can run.
    pub fn is_for_lab(&self) -> bool {
        let flows = self.document.get("flow").and_then(Node::items);
        let transports = flows
            .into_iter()
            .flatten()
            .map(|flow| flow.get("transport"));
        transports
            .flatten()
            .any(|transport| transport.text() == Some("command"))
    }

    /// Why the simulator cannot run it, if only the lab can.
    pub fn needs_lab(&self) -> Option<&'static str> {
        self.is_for_lab().then_some(
            "has flows with transport = \"command\", and the simulator runs no programs; \
             expected `comity lab run`, or other transports",
        )
    }

    /// The results of these runs, which `command` has executed.
    pub fn results(&self, command: String, runs: Vec<CompletedRun>) -> ResultSet {
        ResultSet {
            scenario: ScenarioInfo {
                name: self.name.clone(),
                text: self.text().to_owned(),
                set: self.overrides.clone(),
            },
            command,
            runs,
        }
    }

    /// The seeds. Every point runs once with each.
    pub fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// The names of the axes.
    pub fn axes(&self) -> Vec<&str> {
        self.groups
            .iter()
            .flat_map(|group| group.axes.iter().map(|axis| axis.name.as_str()))
            .collect()
    }

    /// The number of points of the sweep; 1 without axes.
    pub fn points(&self) -> usize {
        self.groups.iter().map(Group::len).product()
    }

    /// The number of runs: points times seeds.
    pub fn run_count(&self) -> usize {
        self.points() * self.seeds.len()
    }

    /// The runs, in order.
    pub fn runs(&self) -> Vec<Run> {
        (0..self.points())
            .flat_map(|point| {
                let values: Arc<[AxisValue]> = self
                    .indices(point)
                    .flat_map(|(group, index)| {
                        group
                            .axes
                            .iter()
                            .filter_map(move |axis| axis.values.get(index).map(AxisValue::from))
                    })
                    .collect();
                self.seeds
                    .iter()
                    .enumerate()
                    .map(move |(replication, seed)| Run {
                        number: point * self.seeds.len() + replication,
                        point,
                        seed: Seed::new(*seed),
                        values: values.clone(),
                    })
            })
            .collect()
    }

    /// The network and the settings of a run.
    ///
    /// # Panics
    /// If the run belongs to another scenario.
    pub fn prepare(&self, run: &Run) -> (Network, RunSettings) {
        match self.read_point(run.point) {
            Ok((prepared, _)) => prepared,
            Err(problems) => panic!(
                "point {} is not one of this scenario, whose points all read: {problems:?}",
                run.point
            ),
        }
    }

    /// The groups of axes, each with the number of its value at a point.
    fn indices(&self, point: usize) -> impl Iterator<Item = (&Group, usize)> {
        let mut rest = self.points();
        let mut left = point;
        self.groups.iter().map(move |group| {
            rest /= group.len().max(1);
            let index = left / rest.max(1);
            left %= rest.max(1);
            (group, index)
        })
    }

    /// The network and the settings of a point, and its keys without effect.
    fn read_point(&self, point: usize) -> Result<(Prepared, Vec<Problem>), Vec<Problem>> {
        let mut cx = Context::new(&*self.files, &self.custom);
        let document = self.document_of(point, &mut cx);
        let built = ScenarioFile::read_table(&document, &mut cx)
            .and_then(|file| build::build(&file, &self.library, &self.limits, &mut cx));
        match built {
            Some(prepared) if cx.problems.is_empty() => Ok((prepared, cx.idle)),
            _ => Err(cx.problems),
        }
    }

    /// The document with the values of a point.
    fn document_of(&self, point: usize, cx: &mut Context<'_>) -> Node {
        let mut document = self.document.clone();
        for (group, index) in self.indices(point) {
            for axis in &group.axes {
                let Some(value) = axis.values.get(index) else {
                    continue;
                };
                for path in &axis.paths {
                    if let Err(kind) = path::assign(&mut document, &self.shape, path, value) {
                        cx.problems.push(Problem::new(axis.span, path, kind));
                    }
                }
            }
        }
        document
    }

    fn checked(self) -> Result<Self, Problems> {
        const AT_ONCE: usize = 1_024;
        let points = self.points();
        let mut found: Vec<(Problem, usize)> = Vec::new();
        let mut idle: Option<Vec<Problem>> = None;
        let mut checked = 0;
        while checked < points && found.len() < Problems::MOST {
            let end = (checked + AT_ONCE).min(points);
            let read: Vec<Result<Vec<Problem>, Vec<Problem>>> = (checked..end)
                .into_par_iter()
                .map(|point| self.read_point(point).map(|(_, idle)| idle))
                .collect();
            for (point, read) in (checked..).zip(read) {
                let problems = match read {
                    Ok(here) => {
                        idle.get_or_insert_with(|| here.clone())
                            .retain(|problem| here.contains(problem));
                        continue;
                    }
                    Err(problems) => problems,
                };
                for problem in problems {
                    match found.iter_mut().find(|(known, _)| {
                        known.span == problem.span
                            && known.path == problem.path
                            && known.kind == problem.kind
                    }) {
                        Some((_, count)) => *count += 1,
                        None => {
                            let point = Some(self.describe_point(point));
                            found.push((Problem { point, ..problem }, 1));
                        }
                    }
                }
            }
            checked = end;
        }
        if found.is_empty() {
            return match idle {
                Some(idle) if !idle.is_empty() => Err(Problems::new(self.sources, idle)),
                _ => Ok(self),
            };
        }
        let problems = found
            .into_iter()
            .map(|(mut problem, count)| {
                // A problem of every point does not belong to one.
                if count >= checked {
                    problem.point = None;
                }
                problem
            })
            .collect();
        Err(Problems::new(self.sources, problems))
    }

    fn describe_point(&self, point: usize) -> String {
        self.indices(point)
            .flat_map(|(group, index)| {
                group.axes.iter().filter_map(move |axis| {
                    Some(format!(
                        "{} = {}",
                        axis.name,
                        axis.values.get(index)?.show()
                    ))
                })
            })
            .collect::<Vec<_>>()
            .join(", ")
    }
}

type Prepared = (Network, RunSettings);

/// Applies an override.
fn set(
    document: &mut Node,
    shape: &Shape,
    text: &str,
    sources: &mut Sources,
) -> Result<Override, Vec<Problem>> {
    let Some((path, value)) = text.split_once('=') else {
        let kind = ProblemKind::BadOverride { text: text.into() };
        return Err(vec![Problem::new(None, "", kind)]);
    };
    let path = path.trim();
    let value = value_of(sources, &format!("--set {path}"), value.trim())?;
    let keys = path::assign(document, shape, path, &value)
        .map_err(|kind| vec![Problem::new(Some(value.span), path, kind)])?;
    let path = path.to_owned();
    Ok(Override { path, value, keys })
}

/// Reads a value of the command line, reported under `name`.
fn value_of(sources: &mut Sources, name: &str, value: &str) -> Result<Node, Vec<Problem>> {
    document::parse_value(sources, name, value).or_else(|problems| {
        // `rate=1.5Mbps`, without the quotes that a shell would remove.
        let span = problems.first().and_then(|problem| problem.span);
        let span = span.ok_or(problems)?;
        Ok(Node {
            span: SourceSpan::new(span.source() as u32, 0..value.len()),
            value: Value::Text(value.into()),
        })
    })
}

/// The parts that are known before any point is read.
struct Outline {
    table: ScenarioTable,
    seeds: Vec<u64>,
    groups: Vec<Group>,
    /// The effects of overrides on axes.
    notes: Vec<String>,
}

/// Reads the settings of all runs, and removes the axes from the document.
fn outline(
    document: &mut Node,
    shape: &Shape,
    reading: &Reading,
    overrides: &[Override],
    cx: &mut Context<'_>,
) -> Option<Outline> {
    let span = document.span;
    let Value::Table(entries) = &mut document.value else {
        return None;
    };
    let axes: Vec<Entry> = entries
        .extract_if(.., |entry| entry.key == "sweep")
        .collect();
    let table = match entries.iter().find(|entry| entry.key == "scenario") {
        Some(entry) => cx.within("scenario", |cx| ScenarioTable::read_table(&entry.node, cx)),
        None => {
            let expected = Nested::<ScenarioTable>::KIND.shape().expected();
            cx.within("scenario", |cx| {
                cx.report(span, ProblemKind::Missing { expected });
            });
            None
        }
    };
    let groups = match axes.first() {
        None => Some(Vec::new()),
        Some(entry) => {
            let list = kinds::List {
                item: Nested::<SweepTable>::KIND,
                min: 0,
                max: 64,
            };
            cx.within("sweep", |cx| list.read(&entry.node, cx))
                .and_then(|tables| sweep::groups(&tables, cx))
        }
    };
    let (table, mut groups) = (table?, groups?);
    let reported = cx.problems.len();
    let notes = sweep::overrule(&mut groups, document, shape, overrides, cx);
    let sets_seeds = overrides.iter().rfind(|it| it.path == "scenario.seeds");
    if let (Some(seeds), Some(set)) = (&reading.seeds, sets_seeds)
        && *seeds != table.seeds.0
    {
        let kind = ProblemKind::SeedsTwice;
        let problem = Problem::new(Some(set.value.span), &set.path, kind);
        cx.problems.push(problem);
    }
    if cx.problems.len() > reported {
        return None;
    }
    let seeds = reading
        .seeds
        .clone()
        .unwrap_or_else(|| table.seeds.0.clone());
    if is_any_repeated(&seeds) {
        let kind = ProblemKind::Unfit {
            reason: Unfit::RepeatedSeed,
        };
        cx.within("scenario", |cx| {
            cx.report_at(&table.written, "seeds", kind);
        });
        return None;
    }
    let runs = groups
        .iter()
        .map(|group| group.len() as u128)
        .fold(seeds.len() as u128, u128::saturating_mul);
    let limit = table.max_runs.min(reading.limits.runs);
    if runs > limit.into() {
        let mut product: Vec<String> = groups
            .iter()
            .map(|group| {
                let names: Vec<_> = group.axes.iter().map(|axis| axis.name.as_str()).collect();
                format!("{} ({})", group.len(), names.join(", "))
            })
            .collect();
        product.push(format!("{} seeds", seeds.len()));
        let kind = ProblemKind::TooManyRuns {
            product: product.join(" * "),
            runs,
            limit,
        };
        let span = axes.first().map_or(span, |entry| entry.key_span);
        cx.problems.push(Problem::new(Some(span), "sweep", kind));
        return None;
    }
    Some(Outline {
        table,
        seeds,
        groups,
        notes,
    })
}

fn is_any_repeated(seeds: &[u64]) -> bool {
    let mut sorted = seeds.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}
