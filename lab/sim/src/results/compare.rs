//! Compares two sets of results.

use std::collections::BTreeMap;
use std::fmt;

use comity_units::Seed;

use super::column::{Cell, Table, Visitor};
use super::tables::Tables;
use super::{AxisValue, CompletedRun, ResultSet, ScenarioInfo, WriteError};

/// The key of a run in both sets.
#[derive(Clone, Debug, PartialEq)]
pub struct RunKey {
    /// The values of its axes, in the order of names.
    pub axes: Vec<(String, AxisValue)>,
    /// The seed.
    pub seed: Seed,
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, value) in &self.axes {
            write!(f, "{axis}={value} ")?;
        }
        write!(f, "seed={}", self.seed)
    }
}

/// One value that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The run.
    pub run: RunKey,
    /// The table.
    pub table: &'static str,
    /// The row of that run in the table, from 0.
    pub row: usize,
    /// The column.
    pub column: String,
    /// The value in the first set; empty if there is none.
    pub left: String,
    /// The value in the second set, likewise.
    pub right: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            run,
            table,
            row,
            column,
            left,
            right,
        } = self;
        write!(
            f,
            "{run}: {table}[{row}].{column} is `{left}` and `{right}`"
        )
    }
}

/// The differences of two sets of results.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Comparison {
    /// Runs that only the first set has.
    pub only_left: Vec<RunKey>,
    /// Runs that only the second set has.
    pub only_right: Vec<RunKey>,
    /// How many runs both have.
    pub matched: usize,
    /// The values that differ in these runs.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Whether the sets have the same runs with the same values.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.only_left.is_empty() && self.only_right.is_empty() && self.differences.is_empty()
    }
}

/// Compares all tables of two sets, run by run. Runs match by axes and seed, in any order.
///
/// ```text
/// x and y are the same  ⇔  |x − y| ≤ tolerance · max(|x|, |y|)     for numbers of any kind
/// ```
///
/// With a tolerance of 0 numbers have to be equal, and two NaN are equal. Texts have to be equal.
/// With a tolerance above 0 the fingerprint is not compared, because any change alters it.
/// Versions, the name and text of the scenario and the numbers of runs are never compared.
///
/// # Errors
/// [`WriteError::RepeatedAxis`] when a run has two values for one axis.
pub fn compare(
    left: &ResultSet,
    right: &ResultSet,
    tolerance: f64,
) -> Result<Comparison, WriteError> {
    let mut others: BTreeMap<String, Vec<&CompletedRun>> = BTreeMap::new();
    // In reverse order, so that `pop` returns runs with equal keys in order.
    for run in right.runs.iter().rev() {
        others.entry(key(run).to_string()).or_default().push(run);
    }
    let mut comparison = Comparison::default();
    for run in &left.runs {
        let key = key(run);
        let Some(other) = others.get_mut(&key.to_string()).and_then(Vec::pop) else {
            comparison.only_left.push(key);
            continue;
        };
        comparison.matched += 1;
        let (ours, theirs) = (sheets(run)?, sheets(other)?);
        for (table, _) in super::TABLES {
            let find = |sheets: &[Sheet]| sheets.iter().position(|sheet| sheet.table == table);
            let side = |sheets: &[Sheet]| find(sheets).map(|at| sheets[at].clone());
            let empty = || Sheet {
                table,
                columns: Vec::new(),
                rows: Vec::new(),
            };
            let (ours, theirs) = (
                side(&ours).unwrap_or_else(empty),
                side(&theirs).unwrap_or_else(empty),
            );
            ours.differences(&theirs, &key, tolerance, &mut comparison.differences);
        }
    }
    comparison.only_right = right
        .runs
        .iter()
        .filter(|run| {
            others
                .get(&key(run).to_string())
                .is_some_and(|rest| rest.iter().any(|other| std::ptr::eq(*other, *run)))
        })
        .map(key)
        .collect();
    Ok(comparison)
}

fn key(run: &CompletedRun) -> RunKey {
    let mut axes = run.axes.clone();
    axes.sort_by(|a, b| a.0.cmp(&b.0));
    RunKey {
        axes,
        seed: run.seed,
    }
}

/// The cells of one table of one run.
#[derive(Clone)]
struct Sheet {
    table: &'static str,
    columns: Vec<String>,
    rows: Vec<Vec<Cell<'static>>>,
}

/// The tables of one run.
fn sheets(run: &CompletedRun) -> Result<Vec<Sheet>, WriteError> {
    let nameless = ScenarioInfo {
        name: String::new(),
        text: String::new(),
        set: Vec::new(),
    };
    let tables = Tables::new(std::iter::once(run), &nameless)?;
    let mut collect = Collect(Vec::new());
    match tables.each(&mut collect) {
        Ok(()) => Ok(collect.0),
        Err(never) => match never {},
    }
}

struct Collect(Vec<Sheet>);

impl Visitor for Collect {
    type Error = std::convert::Infallible;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), Self::Error> {
        let owned = |cell: Cell<'_>| match cell {
            Cell::Boolean(value) => Cell::Boolean(value),
            Cell::Integer(value) => Cell::Integer(value),
            Cell::Missing => Cell::Missing,
            Cell::Number(value) => Cell::Number(value),
            Cell::Text(text) => Cell::Text(text.into_owned().into()),
            Cell::Unsigned(value) => Cell::Unsigned(value),
        };
        let columns = table.columns.0;
        self.0.push(Sheet {
            table: table.name,
            rows: table
                .rows
                .map(|row| {
                    columns
                        .iter()
                        .map(|column| owned(column.cell(&row)))
                        .collect()
                })
                .collect(),
            columns: columns
                .iter()
                .map(|column| column.name.to_string())
                .collect(),
        });
        Ok(())
    }
}

impl Sheet {
    fn differences(&self, other: &Self, run: &RunKey, tolerance: f64, into: &mut Vec<Difference>) {
        let names = self.columns.iter().chain(
            other
                .columns
                .iter()
                .filter(|&name| !self.columns.contains(name)),
        );
        for name in names {
            if tolerance > 0.0 && name == "fingerprint" {
                continue;
            }
            for row in 0..self.rows.len().max(other.rows.len()) {
                let (left, right) = (self.cell(name, row), other.cell(name, row));
                if !is_same(left, right, tolerance) {
                    into.push(Difference {
                        run: run.clone(),
                        table: self.table,
                        row,
                        column: name.clone(),
                        left: show(left),
                        right: show(right),
                    });
                }
            }
        }
    }

    fn cell(&self, name: &str, row: usize) -> &Cell<'static> {
        let column = self.columns.iter().position(|column| column == name);
        let cell = column.and_then(|column| self.rows.get(row)?.get(column));
        cell.unwrap_or(&Cell::Missing)
    }
}

fn is_same(left: &Cell<'_>, right: &Cell<'_>, tolerance: f64) -> bool {
    if left == right {
        return true;
    }
    let (Some(left), Some(right)) = (number(left), number(right)) else {
        return false;
    };
    // Infinities of one sign are equal by the check above. With any other infinity the difference
    // is infinite, and above every finite bound.
    let bound = tolerance * left.abs().max(right.abs());
    (left.is_nan() && right.is_nan()) || (bound.is_finite() && (left - right).abs() <= bound)
}

fn number(cell: &Cell<'_>) -> Option<f64> {
    match *cell {
        Cell::Integer(value) => Some(value as f64),
        Cell::Number(value) => Some(value),
        Cell::Unsigned(value) => Some(value as f64),
        Cell::Boolean(_) | Cell::Missing | Cell::Text(_) => None,
    }
}

fn show(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Boolean(value) => value.to_string(),
        Cell::Integer(value) => value.to_string(),
        Cell::Missing => String::new(),
        Cell::Number(value) => value.to_string(),
        Cell::Text(text) => text.to_string(),
        Cell::Unsigned(value) => value.to_string(),
    }
}
