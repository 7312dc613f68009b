//! Single columns of a run's tables, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::LazyLock;

use comity_units::{Seed, Span};

use super::column::{Cell, Table, Values, Visitor};
use super::flows_and_links::Things;
use crate::report::{Cost, RunReport, Series};

/// Some columns of one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picked {
    /// For each row: the number of the flow or link, its name, and its group where it has one.
    pub(crate) rows: Vec<(u64, String, String)>,
    /// For each column a number for each row; one that does not exist is no number.
    pub(crate) columns: BTreeMap<String, Vec<f64>>,
}

/// The columns of a table of flows, links or their bins that hold numbers.
pub(crate) fn columns(table: &str) -> &'static [String] {
    static KNOWN: LazyLock<BTreeMap<&'static str, Vec<String>>> = LazyLock::new(|| {
        let series = Series::default();
        let report = RunReport {
            world: crate::report::World::default(),
            seed: Seed::new(0),
            fingerprint: 0,
            duration: Span::ZERO,
            warmup: Span::ZERO,
            flows: Vec::new(),
            links: Vec::new(),
            cost: Cost::default(),
            series: Some(series),
            packets: None,
        };
        let mut names = Names(BTreeMap::new());
        each_of_things(&report, &mut names);
        names.0
    });
    KNOWN.get(table).map_or(&[], Vec::as_slice)
}

/// Some columns of some tables, as far as the run has them.
pub(crate) fn pick(
    report: &RunReport,
    wanted: &BTreeMap<&'static str, BTreeSet<String>>,
) -> BTreeMap<&'static str, Picked> {
    let mut picker = Picker {
        report,
        wanted,
        picked: BTreeMap::new(),
    };
    each_of_things(report, &mut picker);
    picker.picked
}

fn each_of_things<V: Visitor<Error = Infallible>>(report: &RunReport, visitor: &mut V) {
    match Things::of(report).each(visitor) {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

struct Names(BTreeMap<&'static str, Vec<String>>);

impl Visitor for Names {
    type Error = Infallible;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), Infallible> {
        let numbers = table.columns.0.iter().filter(|column| {
            let is_number = matches!(
                column.values,
                Values::Integer(_) | Values::Number(_) | Values::Unsigned(_)
            );
            is_number && !["run", "seed", "index"].contains(&&*column.name)
        });
        let numbers = numbers.map(|column| column.name.to_string());
        self.0.insert(table.name, numbers.collect());
        Ok(())
    }
}

struct Picker<'a> {
    report: &'a RunReport,
    wanted: &'a BTreeMap<&'static str, BTreeSet<String>>,
    picked: BTreeMap<&'static str, Picked>,
}

impl Visitor for Picker<'_> {
    type Error = Infallible;

    fn visit<R>(&mut self, table: Table<'_, R>) -> Result<(), Infallible> {
        let Some(wanted) = self.wanted.get(table.name) else {
            return Ok(());
        };
        let mut picked = Picked::default();
        let find = |name: &str| table.columns.0.iter().find(|column| column.name == name);
        let (index, name) = (find("index"), find("flow").or_else(|| find("link")));
        let is_flow = find("flow").is_some();
        let wanted: Vec<_> = wanted
            .iter()
            .filter_map(|name| Some((name, find(name)?)))
            .collect();
        for (name, _) in &wanted {
            picked.columns.insert((*name).clone(), Vec::new());
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
            let group = group
                .and_then(|at| self.report.flows.get(at))
                .map(|flow| flow.group.clone());
            picked.rows.push((number, label, group.unwrap_or_default()));
            for (name, column) in &wanted {
                let value = match column.cell(&row) {
                    Cell::Integer(value) => value as f64,
                    Cell::Number(value) => value,
                    Cell::Unsigned(value) => value as f64,
                    Cell::Boolean(_) | Cell::Missing | Cell::Text(_) => f64::NAN,
                };
                if let Some(values) = picked.columns.get_mut(*name) {
                    values.push(value);
                }
            }
        }
        self.picked.insert(table.name, picked);
        Ok(())
    }
}
