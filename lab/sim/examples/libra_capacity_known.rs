//! How many Libra flows know the capacity at the end of their runs, as a table.
//!
//! ```text
//! cargo run --release -p comity-sim --example libra_capacity_known experiments/libra/capacity.toml \
//!   --by timestamps,tick,tcp,back scenario.seeds.count=100
//! ```
//!
//! A row for each combination of values of the axes in `--by`, or for each point of the sweep. It
//! counts the flows of the group `libra` that know the rate of the link `bottleneck` to within 10
//! %, that say that they do not know it, and that are wrong. Then it has the highest share of wrong
//! flows in a single point, the farthest of their estimates as a multiple of the rate, and the
//! goodput of the flow with the least, as a share of the mean of its run.

#![allow(clippy::print_stdout, reason = "the table is what this is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use comity_link::RateProfile;
use comity_sim::network::NetworkError;
use comity_sim::report::RunReport;
use comity_sim::scenario::{Execution, Outcome, Reading, Scenario, execute, simulate};

#[derive(Default)]
struct Row {
    name: String,
    within: usize,
    unknown: usize,
    /// The estimates of wrong flows, as multiples of the rate.
    wrong: Vec<f64>,
    /// Wrong flows and all flows of each point.
    points: BTreeMap<usize, (usize, usize)>,
    min_goodput: f64,
}

impl Row {
    fn add(
        &mut self,
        scenario: &Scenario,
        outcome: &Outcome<'_, RunReport, NetworkError>,
    ) -> Result<(), String> {
        let (network, _) = scenario.prepare(outcome.run);
        let link = network.links.iter().find(|link| link.name == "bottleneck");
        let rate = match link.map(|link| &link.config.rate) {
            Some(RateProfile::Constant(rate)) => *rate,
            Some(RateProfile::Deliveries(trace)) => trace.mean_rate(),
            _ => return Err("expected a link \"bottleneck\" with a rate or a trace".into()),
        };
        let report = outcome.report.as_ref().map_err(ToString::to_string)?;
        let flows: Vec<_> = report
            .flows
            .iter()
            .filter(|of| of.group == "libra")
            .collect();
        let mean = flows.iter().map(|of| of.goodput_bps).sum::<f64>() / flows.len() as f64;
        let point = self.points.entry(outcome.run.point).or_default();
        for flow in flows {
            self.min_goodput = self.min_goodput.min(flow.goodput_bps / mean);
            point.1 += 1;
            let found = flow.capacity_bps.map(|found| found as f64);
            match found.map(|found| found / rate.as_bps() as f64) {
                None => self.unknown += 1,
                Some(ratio) if (0.9..=1.1).contains(&ratio) => self.within += 1,
                Some(ratio) => {
                    self.wrong.push(ratio);
                    point.0 += 1;
                }
            }
        }
        Ok(())
    }

    fn print(&self) {
        let far = |ratio: &&f64| ratio.max(ratio.recip());
        let farthest = self.wrong.iter().max_by(|a, b| far(a).total_cmp(&far(b)));
        let shares = self.points.values();
        let shares = shares.map(|(wrong, all)| 100.0 * *wrong as f64 / *all as f64);
        println!(
            "| {} | {} | {} | {} | {:.1} % | {} | {:.2} |",
            self.name,
            self.within,
            self.unknown,
            self.wrong.len(),
            shares.fold(0.0, f64::max),
            farthest.map_or("-".into(), |ratio| format!("{ratio:.3}")),
            self.min_goodput
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let path = arguments.next().map(PathBuf::from);
    let path = path.ok_or("expected the path of a scenario")?;
    let by = arguments.next_if(|argument| argument == "--by");
    let by = by.map(|_| arguments.next().ok_or("expected names of axes behind --by"));
    let by = by.transpose()?;
    let reading = Reading {
        set: arguments.collect(),
        ..Reading::default()
    };
    let scenario = Scenario::load(&path, &reading)?;
    let axes = scenario.axes();
    let is_shown = |axis: &str| {
        by.as_ref()
            .is_none_or(|by| by.split(',').any(|of| of == axis))
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut problem = None;
    execute(
        &scenario,
        &scenario.runs(),
        &Execution::default(),
        |network: &_, run: &_, settings: &_| simulate(network, run, settings),
        |_| {},
        |outcome| {
            let values = axes.iter().zip(outcome.run.values.iter());
            let values = values.filter(|(axis, _)| is_shown(axis));
            let values: Vec<_> = values
                .map(|(axis, value)| format!("{axis} {value}"))
                .collect();
            let name = values.join(", ");
            let known = rows.iter().position(|row| row.name == name);
            let row = known.unwrap_or_else(|| {
                rows.push(Row {
                    name,
                    min_goodput: f64::INFINITY,
                    ..Row::default()
                });
                rows.len() - 1
            });
            if let Err(found) = rows[row].add(&scenario, &outcome) {
                problem.get_or_insert(found);
            }
        },
    )?;
    if let Some(problem) = problem {
        return Err(problem.into());
    }
    println!(
        "| runs | within 10 % | unknown | wrong | wrong in the worst point | farthest \
         | least goodput over the mean |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    rows.iter().for_each(Row::print);
    Ok(())
}
