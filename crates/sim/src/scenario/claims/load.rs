//! Reading files of claims.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::document;
use super::super::problem::{Problem, ProblemKind};
use super::super::schema::{At, Context, NoFiles, Table as _, read_text};
use super::super::source::{MAX_TEXT, Place, Sources};
use super::super::{Problems, Reading, Run, Scenario};
use super::coordinate::Coordinate;
use super::expression::{Expression, Kind, Statement};
use super::fault::{Fault, Faulty};
use super::grid::{Grid, Names, Samples, unknown};
use super::interval::Weights;
use super::tables::{
    CheckTable, ClaimTable, ClaimsFile, Numbers, OnlyTable, PaperTable, PaperValue, QuickTable,
};
use super::{
    Book, Check, Claim, Expected, Form, LoadError, Measure, Pooled, Selection, judge, measure,
    parser,
};
use crate::results::AxisValue;

/// What a file of claims is called.
const FILE: &str = "claims.toml";

impl Book {
    /// Reads the claims of every folder in `folder`, and all scenarios that they need in this form.
    ///
    /// # Errors
    /// [`LoadError`], with everything that is wrong.
    pub fn load(folder: &Path, form: Form) -> Result<Self, LoadError> {
        let unreadable = |reason| LoadError::Unreadable {
            path: folder.to_owned(),
            reason,
        };
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.join(FILE).is_file() {
                folders.push(path);
            }
        }
        folders.sort();
        if folders.is_empty() {
            let path = folder.to_owned();
            return Err(LoadError::Nothing { path });
        }
        let mut book = Self {
            claims: Vec::new(),
            scenarios: Vec::new(),
            samples: Vec::new(),
        };
        let mut problems = Vec::new();
        for folder in folders {
            let path = folder.join(FILE);
            let text =
                read_text(&path, MAX_TEXT as u64).map_err(|reason| LoadError::Unreadable {
                    path: path.clone(),
                    reason,
                })?;
            let system = folder.file_name().unwrap_or_default().to_string_lossy();
            if let Err(found) = book.add(&system, &path, &text, form) {
                problems.extend(found);
            }
        }
        if problems.is_empty() {
            Ok(book)
        } else {
            Err(LoadError::Problems(problems))
        }
    }

    /// Reads one file of claims; its scenarios are meant from its folder.
    fn add(
        &mut self,
        system: &str,
        path: &Path,
        text: &str,
        form: Form,
    ) -> Result<(), Vec<Problems>> {
        let mut sources = Sources::default();
        let document = match document::parse(&mut sources, &path.display().to_string(), text) {
            Ok(document) => document,
            Err(problems) => return Err(vec![Problems::new(Arc::new(sources), problems)]),
        };
        let mut cx = Context::new(&NoFiles);
        let file = ClaimsFile::read_table(&document, &mut cx);
        let mut reader = Reader {
            book: self,
            folder: path.parent().unwrap_or(Path::new("")),
            text,
            form,
            cx,
            foreign: Vec::new(),
        };
        for table in file.iter().flat_map(|file| &file.claim) {
            reader.claim(
                system,
                file.as_ref().and_then(|file| file.source.as_deref()),
                table,
            );
        }
        let Reader {
            cx, mut foreign, ..
        } = reader;
        if !cx.problems.is_empty() {
            foreign.push(Problems::new(Arc::new(sources), cx.problems));
        }
        if foreign.is_empty() {
            Ok(())
        } else {
            Err(foreign)
        }
    }
}

/// The keys of a run, whether the claim has one or several.
struct RunKeys<'t> {
    name: &'t str,
    scenario: &'t (String, Place),
    set: Option<&'t Vec<String>>,
    only: Option<&'t Vec<OnlyTable>>,
    quick: Option<&'t QuickTable>,
}

struct Reader<'r, 'f> {
    book: &'r mut Book,
    folder: &'r Path,
    text: &'r str,
    form: Form,
    cx: Context<'f>,
    /// Problems of scenarios.
    foreign: Vec<Problems>,
}

impl Reader<'_, '_> {
    fn problem(&mut self, at: &At, key: &str, kind: ProblemKind) {
        self.cx.report_at(at, key, kind);
    }

    fn fault(&mut self, at: &At, key: &str, fault: Fault) {
        self.problem(at, key, ProblemKind::Expression { fault });
    }

    /// Reports what is wrong with an expression at the very words in its file.
    fn faulty(&mut self, at: &At, key: &str, (text, place): &(String, Place), faulty: Faulty) {
        let whole = place.range();
        // Quotation marks stand before the text; of a text with escapes the whole is shown.
        let start = self
            .text
            .get(whole.clone())
            .and_then(|written| written.find(text.as_str()));
        let part = |start: usize| -> Range<usize> {
            whole.start + start + faulty.range.start..whole.start + start + faulty.range.end
        };
        let place = start.map_or(*place, |start| {
            Place::new(place.source() as u32, part(start))
        });
        let path = at.path_of(key);
        let kind = ProblemKind::Expression {
            fault: faulty.fault,
        };
        self.cx
            .problems
            .push(Problem::new(Some(place), &path, kind));
    }

    fn claim(&mut self, system: &str, source: Option<&str>, table: &ClaimTable) {
        let before = self.cx.problems.len() + self.foreign.len();
        let (id, place) = &table.id;
        if self.book.claims.iter().any(|claim| claim.id == *id) {
            let kind = ProblemKind::Duplicate {
                what: "claim",
                name: id.clone(),
                first: None,
            };
            let path = table.written.path_of("id");
            self.cx
                .problems
                .push(Problem::new(Some(*place), &path, kind));
        }
        self.alternatives(table);
        let selections = self.selections(table);
        let mut claim = Claim {
            system: system.into(),
            id: id.clone(),
            says: table.says.clone(),
            source: match (source, &table.source) {
                (Some(paper), Some(part)) => Some(format!("{paper}, {part}")),
                (paper, part) => part.clone().or_else(|| paper.map(Into::into)),
            },
            missing: table.missing.clone(),
            tests: table
                .test
                .iter()
                .flatten()
                .map(|test| (test.file.clone(), test.name.clone()))
                .collect(),
            selections,
            measures: Vec::new(),
            values: Vec::new(),
            papers: Vec::new(),
            checks: Vec::new(),
        };
        // Each part refers to the parts before it; without this check, one error would be
        // reported again in each of them.
        if self.cx.problems.len() + self.foreign.len() == before {
            self.papers(table, &mut claim);
            self.measures(table, &mut claim);
        }
        if self.cx.problems.len() + self.foreign.len() == before {
            self.values(table, &mut claim);
        }
        if self.cx.problems.len() + self.foreign.len() == before {
            for check in table.check.iter().flatten() {
                self.check(check, &mut claim);
            }
        }
        self.book.claims.push(claim);
    }

    /// Checks which keys go together.
    fn alternatives(&mut self, table: &ClaimTable) {
        let at = &table.written;
        let needs = |other| ProblemKind::Needs { other };
        let excludes = |other| ProblemKind::Excludes { other };
        if table.check.is_none() && table.test.is_none() && table.missing.is_none() {
            self.problem(
                at,
                "check",
                ProblemKind::Missing {
                    expected: "`check`, or else `test` or `missing`".into(),
                },
            );
        }
        if table.check.is_some() && table.missing.is_some() {
            self.problem(at, "missing", excludes("check"));
        }
        if table.run.is_some() {
            for key in ["scenario", "set", "only", "quick"] {
                if at.has(key) {
                    self.problem(at, key, excludes("run"));
                }
            }
        }
        if table.check.is_some() && table.measure.is_none() {
            self.problem(at, "check", needs("measure"));
        }
        if table.measure.is_some() && table.run.is_none() && table.scenario.is_none() {
            self.problem(at, "measure", needs("scenario"));
        }
    }

    fn selections(&mut self, table: &ClaimTable) -> Vec<Selection> {
        let mut keys: Vec<(&At, RunKeys<'_>)> = Vec::new();
        if let Some(scenario) = &table.scenario {
            let one = RunKeys {
                name: "",
                scenario,
                set: table.set.as_ref(),
                only: table.only.as_ref(),
                quick: table.quick.as_ref(),
            };
            keys.push((&table.written, one));
        }
        for selection in table.run.iter().flatten() {
            let (name, place) = &selection.name;
            if keys.iter().any(|(_, other)| other.name == name) {
                let kind = ProblemKind::Duplicate {
                    what: "run",
                    name: name.clone(),
                    first: None,
                };
                let path = selection.written.path_of("name");
                self.cx
                    .problems
                    .push(Problem::new(Some(*place), &path, kind));
            }
            let one = RunKeys {
                name,
                scenario: &selection.scenario,
                set: selection.set.as_ref(),
                only: selection.only.as_ref(),
                quick: selection.quick.as_ref(),
            };
            keys.push((&selection.written, one));
        }
        keys.iter()
            .filter_map(|(at, keys)| self.selection(at, keys))
            .collect()
    }

    fn selection(&mut self, at: &At, keys: &RunKeys<'_>) -> Option<Selection> {
        let quick = keys.quick.filter(|_| self.form == Form::Quick);
        let set: Vec<String> = keys
            .set
            .into_iter()
            .chain(quick.and_then(|quick| quick.set.as_ref()))
            .flatten()
            .cloned()
            .collect();
        let scenario = self.pool(at, keys.scenario, set)?;
        let pooled = self.book.scenarios.get(scenario)?;
        let axes: Vec<String> = pooled.scenario.axes().into_iter().map(Into::into).collect();
        let seeds: BTreeSet<u64> = pooled
            .scenario
            .seeds()
            .iter()
            .take(
                quick
                    .and_then(|quick| quick.seeds)
                    .map_or(usize::MAX, |count| count as usize),
            )
            .copied()
            .collect();
        let mut runs = pooled.scenario.runs();
        runs.retain(|run| seeds.contains(&run.seed.get()));
        let only = keys
            .only
            .into_iter()
            .chain(quick.and_then(|quick| quick.only.as_ref()));
        for table in only.flatten() {
            self.only(table, &axes, &mut runs)?;
        }
        Some(Selection {
            name: keys.name.into(),
            scenario,
            runs: runs.iter().map(|run| run.number).collect(),
        })
    }

    /// Leaves some points.
    fn only(&mut self, table: &OnlyTable, axes: &[String], runs: &mut Vec<Run>) -> Option<()> {
        let (name, _) = &table.axis;
        let Some(at) = axes.iter().position(|axis| axis == name) else {
            let fault = unknown("axis", name, axes.iter().map(String::as_str));
            self.fault(&table.written, "axis", fault);
            return None;
        };
        let coordinate = |run: &Run| run.values.get(at).map(Coordinate::from);
        let mut wanted = Vec::new();
        for node in &table.values {
            let value = Coordinate::from(&AxisValue::from(node));
            if !runs
                .iter()
                .any(|run| coordinate(run).as_ref() == Some(&value))
            {
                let mut there: Vec<String> = runs
                    .iter()
                    .filter_map(coordinate)
                    .map(|c| c.to_string())
                    .collect();
                there.dedup();
                let fault = Fault::NoPoint {
                    there: there.join(", "),
                };
                let path = table.written.path_of("values");
                let kind = ProblemKind::Expression { fault };
                self.cx
                    .problems
                    .push(Problem::new(Some(node.place), &path, kind));
                return None;
            }
            wanted.push(value);
        }
        runs.retain(|run| coordinate(run).is_some_and(|value| wanted.contains(&value)));
        Some(())
    }

    /// The place of a scenario in the book, read when it is not there yet.
    fn pool(&mut self, at: &At, (file, _): &(String, Place), set: Vec<String>) -> Option<usize> {
        let path: PathBuf = self.folder.join(file);
        let known = self.book.scenarios.iter();
        if let Some(known) = known
            .clone()
            .position(|known| known.file == path && known.set == set)
        {
            return Some(known);
        }
        if let Err(error) = std::fs::metadata(&path).and_then(|found| {
            if found.is_file() {
                Ok(())
            } else {
                Err(io::ErrorKind::IsADirectory.into())
            }
        }) {
            self.problem(
                at,
                "scenario",
                ProblemKind::File {
                    file: path.display().to_string(),
                    reason: error.to_string(),
                },
            );
            return None;
        }
        let reading = Reading {
            set: set.clone(),
            ..Reading::default()
        };
        let scenario = match Scenario::load(&path, &reading) {
            Ok(scenario) => scenario,
            Err(problems) => {
                self.foreign.push(problems);
                return None;
            }
        };
        let mut there = measure::There::default();
        let seeds = scenario.seeds().len().max(1);
        for run in scenario.runs().iter().step_by(seeds) {
            let (network, settings) = scenario.prepare(run);
            there.add(&network, settings.bins.is_some());
        }
        self.book.scenarios.push(Pooled {
            file: path,
            set,
            scenario,
            there,
        });
        Some(self.book.scenarios.len() - 1)
    }

    fn papers(&mut self, table: &ClaimTable, claim: &mut Claim) {
        for paper in table.paper.iter().flatten() {
            let grid = match (&paper.is, &paper.over, &paper.at) {
                (Numbers::One(number), None, None) => Some(Grid::constant(*number)),
                (Numbers::Many(numbers), Some(axis), Some(at)) if numbers.len() == at.len() => {
                    let at = at
                        .iter()
                        .map(|node| Coordinate::from(&AxisValue::from(node)));
                    Some(Grid {
                        axes: vec![axis.clone()],
                        points: at.map(|at| vec![at]).zip(numbers.iter().copied()).collect(),
                    })
                }
                _ => None,
            };
            match grid {
                Some(grid) => claim.papers.push((paper.name.0.clone(), grid)),
                None => self.mismatch(paper),
            }
        }
    }

    fn mismatch(&mut self, paper: &PaperTable) {
        let kind = match (&paper.is, &paper.over, &paper.at) {
            (Numbers::Many(_), None, _) => ("is", ProblemKind::Needs { other: "over" }),
            (Numbers::Many(_), _, None) => ("is", ProblemKind::Needs { other: "at" }),
            (Numbers::One(_), Some(_), _) => ("over", ProblemKind::Needs { other: "is" }),
            (Numbers::One(_), ..) => ("at", ProblemKind::Needs { other: "over" }),
            (Numbers::Many(numbers), _, Some(at)) => {
                let (min, max) = (at.len(), at.len());
                let found = numbers.len();
                ("is", ProblemKind::Length { found, min, max })
            }
        };
        self.problem(&paper.written, kind.0, kind.1);
    }

    fn measures(&mut self, table: &ClaimTable, claim: &mut Claim) {
        for written in table.measure.iter().flatten() {
            let at = &written.written;
            let selection = match &written.run {
                None => 0,
                Some((name, _)) => match claim
                    .selections
                    .iter()
                    .position(|selection| selection.name == *name)
                {
                    Some(selection) => selection,
                    None => {
                        let names = claim
                            .selections
                            .iter()
                            .map(|selection| selection.name.as_str());
                        let fault = unknown("run", name, names);
                        self.fault(at, "run", fault);
                        continue;
                    }
                },
            };
            if claim
                .measures
                .iter()
                .any(|other| other.outline.name == written.name.0)
            {
                self.taken(at, &written.name);
                continue;
            }
            let Some(outline) = self.outline(&written.name.0, claim.selections.get(selection))
            else {
                continue;
            };
            let pooled = claim
                .selections
                .get(selection)
                .and_then(|selection| self.book.scenarios.get(selection.scenario));
            let Some(pooled) = pooled else { continue };
            let read = parser::expression(&written.is.0).and_then(|expression| {
                measure::check(&expression, &pooled.there).map(|()| expression)
            });
            match read {
                Ok(expression) => claim.measures.push(Measure {
                    expression,
                    selection,
                    outline,
                }),
                Err(faulty) => self.faulty(at, "is", &written.is, faulty),
            }
        }
    }

    fn taken(&mut self, at: &At, (name, place): &(String, Place)) {
        let kind = ProblemKind::Duplicate {
            what: "measure or value",
            name: name.clone(),
            first: None,
        };
        let path = at.path_of("name");
        self.cx
            .problems
            .push(Problem::new(Some(*place), &path, kind));
    }

    /// The points of a measure, with a value for every seed that stands for the one to come.
    fn outline(&mut self, name: &str, selection: Option<&Selection>) -> Option<Samples> {
        let selection = selection?;
        let scenario = &self.book.scenarios.get(selection.scenario)?.scenario;
        let mut seeds: Vec<u64> = Vec::new();
        let mut points: Vec<(usize, Vec<Coordinate>, usize)> = Vec::new();
        for run in scenario
            .runs()
            .iter()
            .filter(|run| selection.runs.contains(&run.number))
        {
            match points.last_mut().filter(|(point, ..)| *point == run.point) {
                Some((.., count)) => *count += 1,
                None => points.push((
                    run.point,
                    run.values.iter().map(Coordinate::from).collect(),
                    1,
                )),
            }
            if points.len() == 1 {
                seeds.push(run.seed.get());
            }
        }
        let axes = scenario.axes().into_iter().map(Into::into).collect();
        let sample = match self.book.samples.iter().position(|sample| *sample == seeds) {
            Some(sample) => sample,
            None => {
                self.book.samples.push(seeds);
                self.book.samples.len() - 1
            }
        };
        Some(Samples {
            name: name.into(),
            sample,
            axes,
            points: points
                .into_iter()
                .map(|(_, at, count)| (at, vec![1.0; count]))
                .collect(),
        })
    }

    fn values(&mut self, table: &ClaimTable, claim: &mut Claim) {
        for written in table.value.iter().flatten() {
            let (name, at) = (&written.name.0, &written.written);
            let is_taken = claim
                .measures
                .iter()
                .any(|measure| measure.outline.name == *name)
                || claim.values.iter().any(|(value, _)| value == name);
            if is_taken {
                self.taken(at, &written.name);
                continue;
            }
            let outlines = outlines(claim);
            let read = parser::expression(&written.is.0).and_then(|expression| {
                let names = names(claim, &outlines);
                super::grid::evaluate(&expression, names, &self.ones()).map(|_| expression)
            });
            match read {
                Ok(expression) => claim.values.push((name.clone(), expression)),
                Err(faulty) => self.faulty(at, "is", &written.is, faulty),
            }
        }
    }

    /// Weights under which every seed counts once.
    fn ones(&self) -> Weights {
        self.book
            .samples
            .iter()
            .map(|seeds| vec![1.0; seeds.len()])
            .collect()
    }

    fn check(&mut self, table: &CheckTable, claim: &mut Claim) {
        let at = &table.written;
        match (table.expected, &table.reason) {
            (Expected::Fails | Expected::Chance, None) => {
                self.problem(at, "expected", ProblemKind::Needs { other: "reason" });
            }
            (Expected::Holds, Some(_)) if table.shows.is_none() => {
                self.problem(at, "reason", ProblemKind::Needs { other: "expected" });
            }
            _ => {}
        }
        let (key, written) = match (&table.holds, &table.shows) {
            (Some(holds), None) => ("holds", holds),
            (None, Some(shows)) => ("shows", shows),
            (Some(_), Some(_)) => {
                return self.problem(at, "shows", ProblemKind::Excludes { other: "holds" });
            }
            (None, None) => {
                let expected = "`holds` with a statement, or `shows` with an expression".into();
                return self.problem(at, "holds", ProblemKind::Missing { expected });
            }
        };
        let paper = match &table.paper {
            None => None,
            Some(PaperValue::Number(number)) => Some(Ok(Expression {
                range: 0..0,
                kind: Kind::Number(*number),
            })),
            Some(PaperValue::Text(text)) => Some(parser::expression(&text.0)),
        };
        let paper = match (paper, &table.paper) {
            (Some(Err(faulty)), Some(PaperValue::Text(text))) => {
                return self.faulty(at, "paper", text, faulty);
            }
            (paper, _) => paper.and_then(Result::ok),
        };
        let statement = match parser::statement(&written.0) {
            Ok(statement) => statement,
            Err(faulty) => return self.faulty(at, key, written, faulty),
        };
        if statement.is_judged() != (key == "holds") {
            let fault = Fault::Unexpected {
                found: "this".into(),
                expected: if key == "holds" {
                    "a statement with <, <=, >, >=, =, <<, >>, within, falls or rises"
                } else {
                    "an expression without a comparison"
                },
            };
            let faulty = Faulty::new(&(0..written.0.len()), fault);
            return self.faulty(at, key, written, faulty);
        }
        let check = Check {
            says: table.says.clone(),
            text: written.0.clone(),
            statement,
            paper,
            form: table.form,
            expected: table.expected,
            reason: table.reason.clone(),
        };
        // A check that is not judged in this form may name points that the form does not have.
        if check.form.is_none_or(|form| form == self.form) {
            let outlines = outlines(claim);
            match judge::dry(&check, names(claim, &outlines), &self.ones()) {
                Ok(()) => {}
                Err(judge::DryFault::Statement(faulty)) => self.faulty(at, key, written, faulty),
                Err(judge::DryFault::Paper(faulty)) => match &table.paper {
                    Some(PaperValue::Text(text)) => self.faulty(at, "paper", text, faulty),
                    _ => self.fault(at, "paper", faulty.fault),
                },
            }
        }
        claim.checks.push(check);
    }
}

impl Statement {
    pub(super) fn is_judged(&self) -> bool {
        !matches!(self.claim, super::expression::Claimed::Nothing)
    }
}

fn outlines(claim: &Claim) -> Vec<Samples> {
    claim
        .measures
        .iter()
        .map(|measure| measure.outline.clone())
        .collect()
}

fn names<'a>(claim: &'a Claim, measures: &'a [Samples]) -> Names<'a> {
    Names {
        measures,
        values: &claim.values,
        papers: &claim.papers,
    }
}
