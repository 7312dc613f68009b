//! How accurate Libra's estimate of the capacity is, as a table.
//!
//! ```text
//! cargo run --release -p comity-sim --example libra_capacity experiments/libra/capacity.toml
//! ```
//!
//! A row for each capacity and kind of cross traffic; for each time after the start the median and the worst ratio
//! of the estimate to the capacity over round trips and seeds, and how many of the runs came within 10 %. A dash
//! counts runs without any estimate yet.

#![allow(clippy::print_stdout, reason = "the table is what this is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use comity_sim::results::AxisValue;
use comity_sim::scenario::{Reading, Run, Scenario, play};
use comity_units::Rate;

/// The ratios of one cell; `None` where there was no estimate.
#[derive(Default)]
struct Cell(Vec<Option<f64>>);

impl Cell {
    fn text(&self) -> String {
        let mut known: Vec<f64> = self.0.iter().copied().flatten().collect();
        known.sort_by(f64::total_cmp);
        let close = known.iter().filter(|ratio| (0.9..=1.1).contains(*ratio));
        let close = format!("{} of {}", close.count(), self.0.len());
        let farthest = known
            .iter()
            .copied()
            .max_by(|a, b| a.max(a.recip()).total_cmp(&b.max(b.recip())));
        match (known.get(known.len() / 2), farthest) {
            (Some(median), Some(farthest)) => format!("{median:.3}, {farthest:.3}, {close}"),
            _ => format!("-, -, {close}"),
        }
    }
}

fn axis(scenario: &Scenario, run: &Run, name: &str) -> String {
    let at = scenario.axes().iter().position(|axis| *axis == name);
    at.and_then(|at| run.values.get(at))
        .map_or_else(String::new, AxisValue::to_string)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).map(PathBuf::from);
    let path = path.ok_or("expected the path of experiments/libra/capacity.toml")?;
    let scenario = Scenario::load(&path, &Reading::default())?;
    let mut cells: BTreeMap<(u64, String), BTreeMap<String, Cell>> = BTreeMap::new();
    let mut times: Vec<String> = Vec::new();
    for run in scenario.runs() {
        let (network, settings) = scenario.prepare(&run);
        let report = play(&network, &run, &settings)?;
        let capacity: Rate = axis(&scenario, &run, "capacity").parse()?;
        let present = ["cbr", "tcp", "back"]
            .into_iter()
            .filter(|kind| axis(&scenario, &run, kind) != "0");
        let cross = present.collect::<Vec<_>>().join(", ");
        let after = axis(&scenario, &run, "after");
        if !times.contains(&after) {
            times.push(after.clone());
        }
        let flow = report.flows.iter().find(|flow| flow.group == "libra");
        let found = flow.and_then(|flow| flow.capacity_bps);
        let ratio = found.map(|found| found as f64 / capacity.as_bps() as f64);
        let row = cells.entry((capacity.as_bps(), cross)).or_default();
        row.entry(after).or_default().0.push(ratio);
    }
    println!("| capacity | cross traffic | {} |", times.join(" | "));
    println!("| --- | --- |{}", " --- |".repeat(times.len()));
    for ((capacity, cross), row) in &cells {
        let cross = if cross.is_empty() { "none" } else { cross };
        let texts: Vec<String> = times
            .iter()
            .map(|time| row.get(time).map_or_else(String::new, Cell::text))
            .collect();
        println!(
            "| {} | {cross} | {} |",
            Rate::from_bps(*capacity),
            texts.join(" | ")
        );
    }
    Ok(())
}
