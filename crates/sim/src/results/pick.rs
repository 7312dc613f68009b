//! Single columns of a run's tables, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use comity_units::{Seed, Span};

use super::column::{Cell, Table, Values, Visitor};
use super::tables::Tables;
use super::{CompletedRun, ScenarioInfo};
use crate::report::{Cost, FlowReport, LinkReport, RunReport, Series};

/// Some columns of one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picked {
    /// For each row: the number of the flow or link, its name, and its group where it has one.
    pub(crate) rows: Vec<(u64, String, String)>,
    /// For each column a number for each row; one that does not exist is no number.
    pub(crate) columns: BTreeMap<String, Vec<f64>>,
}

/// The columns of a table that hold numbers.
pub(crate) fn columns(table: &str) -> Vec<String> {
    let report = RunReport {
        seed: Seed::new(0),
        fingerprint: 0,
        duration: Span::ZERO,
        warmup: Span::ZERO,
        flows: vec![FlowReport::default()],
        links: vec![LinkReport::default()],
        cost: Cost::default(),
        series: Some(Series::default()),
    };
    let mut names = Names {
        table,
        found: Vec::new(),
    };
    each(report, &mut names);
    names.found
}

/// Some columns of a table, as far as it has them.
pub(crate) fn pick(report: &RunReport, table: &str, columns: &BTreeSet<String>) -> Picked {
    let mut picker = Picker {
        table,
        wanted: columns,
        groups: report.flows.iter().map(|flow| flow.group.clone()).collect(),
        picked: Picked::default(),
    };
    each(report.clone(), &mut picker);
    picker.picked
}

fn each<V: Visitor<Error = Infallible>>(report: RunReport, visitor: &mut V) {
    let run = CompletedRun {
        axes: Vec::new(),
        seed: report.seed,
        report,
    };
    let nameless = ScenarioInfo {
        name: String::new(),
        text: String::new(),
    };
    // Without axes none is repeated.
    if let Ok(tables) = Tables::new(std::iter::once((0, &run)), &nameless) {
        match tables.each(visitor) {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }
}

struct Names<'a> {
    table: &'a str,
    found: Vec<String>,
}

impl Visitor for Names<'_> {
    type Error = Infallible;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), Infallible> {
        if table.name == self.table {
            let numbers = table.columns.0.iter().filter(|column| {
                let is_number = matches!(
                    column.values,
                    Values::Integer(_) | Values::Number(_) | Values::Unsigned(_)
                );
                is_number && !["run", "seed", "index"].contains(&&*column.name)
            });
            self.found = numbers.map(|column| column.name.to_string()).collect();
        }
        Ok(())
    }
}

struct Picker<'a> {
    table: &'a str,
    wanted: &'a BTreeSet<String>,
    groups: Vec<String>,
    picked: Picked,
}

impl Visitor for Picker<'_> {
    type Error = Infallible;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), Infallible> {
        if table.name != self.table {
            return Ok(());
        }
        let find = |name: &str| table.columns.0.iter().find(|column| column.name == name);
        let (index, name) = (find("index"), find("flow").or_else(|| find("link")));
        let is_flow = find("flow").is_some();
        let wanted: Vec<_> = self
            .wanted
            .iter()
            .filter_map(|name| Some((name, find(name)?)))
            .collect();
        for (name, _) in &wanted {
            self.picked.columns.insert((*name).clone(), Vec::new());
        }
        for row in table.rows {
            let number = match index.map(|column| column.cell(&row)) {
                Some(Cell::Unsigned(number)) => number,
                _ => 0,
            };
            let label = match name.map(|column| column.cell(&row)) {
                Some(Cell::Text(text)) => text.into_owned(),
                _ => String::new(),
            };
            let group = usize::try_from(number).ok().filter(|_| is_flow);
            let group = group.and_then(|at| self.groups.get(at)).cloned();
            self.picked
                .rows
                .push((number, label, group.unwrap_or_default()));
            for (name, column) in &wanted {
                let value = match column.cell(&row) {
                    Cell::Integer(value) => value as f64,
                    Cell::Number(value) => value,
                    Cell::Unsigned(value) => value as f64,
                    Cell::Boolean(_) | Cell::Missing | Cell::Text(_) => f64::NAN,
                };
                if let Some(values) = self.picked.columns.get_mut(*name) {
                    values.push(value);
                }
            }
        }
        Ok(())
    }
}
