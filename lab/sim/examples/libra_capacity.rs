//! How accurate Libra's estimate of the capacity is, and how soon, as a table.
//!
//! ```text
//! cargo run --release -p comity-sim --example libra_capacity experiments/libra/capacity.toml
//! ```
//!
//! A row for each clock of the peer's timestamps, capacity and kind of cross traffic. For each time
//! after the start of the flow: the median and the farthest ratio of the estimate to the capacity
//! over round trips and seeds, and how many of the runs were within 10 %. Then for each round trip
//! how long after its start a flow's estimate came within 10 % for good: the latest of the seeds,
//! or a dash if one of them never did. An unknown capacity is not within 10 %.

#![allow(clippy::print_stdout, reason = "the table is what this is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use comity_sim::network::Network;
use comity_sim::results::AxisValue;
use comity_sim::scenario::{Reading, Run, Scenario};
use comity_sim::{FlowEvent, Observer, RunOptions, run_observed};
use comity_units::{Rate, Span, Time};

/// When the estimate is looked at.
const TIMES: [Span; 3] = [
    Span::from_millis(300),
    Span::from_secs(1),
    Span::from_secs(10),
];

/// What the flow at `flow` made of the capacity, change by change.
struct Estimates {
    flow: u32,
    started_at: Option<Time>,
    changes: Vec<(Span, u64)>,
}

impl Observer for Estimates {
    fn on_flow(&mut self, flow: u32, event: &FlowEvent<'_>) {
        let Some(state) = event.state.filter(|_| flow == self.flow) else {
            return;
        };
        let started_at = *self.started_at.get_or_insert(event.now);
        let found = state.capacity_bps;
        if self.changes.last().map_or(0, |(_, last)| *last) != found {
            self.changes
                .push((event.now.saturating_since(started_at), found));
        }
    }
}

impl Estimates {
    fn of(network: &Network, run: &Run) -> Result<Self, Box<dyn Error>> {
        let flow = network.flows.iter().position(|flow| flow.group == "libra");
        let mut estimates = Self {
            flow: u32::try_from(flow.ok_or("expected a flow of the group \"libra\"")?)?,
            started_at: None,
            changes: Vec::new(),
        };
        run_observed(network, run.seed, &RunOptions::default(), &mut estimates)?;
        Ok(estimates)
    }

    /// The ratio to `capacity` at the time `after` the start of the flow, if the flow knows one.
    fn ratio(&self, after: Span, capacity: Rate) -> Option<f64> {
        let until = self.changes.partition_point(|(at, _)| *at <= after);
        let (_, found) = self.changes.get(until.checked_sub(1)?)?;
        (*found > 0).then(|| *found as f64 / capacity.as_bps() as f64)
    }

    /// How long after its start the estimate came within 10 % for good.
    fn settled(&self, capacity: Rate) -> Option<Span> {
        let is_close = |found: u64| is_close(found as f64 / capacity.as_bps() as f64);
        let last_far = self
            .changes
            .iter()
            .rposition(|(_, found)| !is_close(*found));
        let settled = last_far.map_or(0, |at| at + 1);
        self.changes.get(settled).map(|(at, _)| *at)
    }
}

fn is_close(ratio: f64) -> bool {
    (0.9..=1.1).contains(&ratio)
}

/// The runs of one clock, one capacity and one kind of cross traffic.
#[derive(Default)]
struct Row {
    /// The ratios at each of [`TIMES`]; `None` where there was no estimate.
    ratios: [Vec<Option<f64>>; TIMES.len()],
    /// The latest time by which a run had settled, for each round trip; `None` if one never did.
    settled: BTreeMap<Span, Option<Span>>,
}

fn accuracy(ratios: &[Option<f64>]) -> String {
    let mut known: Vec<f64> = ratios.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    let close = known.iter().filter(|ratio| is_close(**ratio)).count();
    let farthest = known
        .iter()
        .copied()
        .max_by(|a, b| a.max(a.recip()).total_cmp(&b.max(b.recip())));
    match (known.get(known.len() / 2), farthest) {
        (Some(median), Some(farthest)) => {
            format!("{median:.3}, {farthest:.3}, {close} of {}", ratios.len())
        }
        _ => format!("-, -, {close} of {}", ratios.len()),
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
    let mut rows: BTreeMap<(String, u64, String), Row> = BTreeMap::new();
    for run in scenario.runs() {
        let (network, _) = scenario.prepare(&run);
        let capacity: Rate = axis(&scenario, &run, "capacity").parse()?;
        let round_trip = axis(&scenario, &run, "rtt").parse::<Span>()? * 2;
        let count = |kind: &str| axis(&scenario, &run, kind).parse::<u32>();
        let cross = match (count("cbr")?, count("tcp")?, count("back")?) {
            (0, 0, 0) => "none".to_owned(),
            (0, _, 0) => "tcp".to_owned(),
            (0, 0, _) => "back".to_owned(),
            (quarters, _, _) => format!("{} %", quarters * 25),
        };
        let stamps = match axis(&scenario, &run, "timestamps").as_str() {
            "true" => axis(&scenario, &run, "tick"),
            _ => "none".to_owned(),
        };
        let estimates = Estimates::of(&network, &run)?;
        let row = rows.entry((stamps, capacity.as_bps(), cross)).or_default();
        for (ratios, after) in row.ratios.iter_mut().zip(TIMES) {
            ratios.push(estimates.ratio(after, capacity));
        }
        let settled = estimates.settled(capacity);
        row.settled
            .entry(round_trip)
            .and_modify(|latest| *latest = latest.zip(settled).map(|(one, other)| one.max(other)))
            .or_insert(settled);
    }
    let round_trips: Vec<Span> = rows
        .values()
        .next()
        .map_or_else(Vec::new, |row| row.settled.keys().copied().collect());
    let mut titles: Vec<String> = TIMES.iter().map(Span::to_string).collect();
    titles.extend(round_trips.iter().map(|rtt| format!("settled, {rtt}")));
    println!(
        "| stamps | capacity | cross traffic | {} |",
        titles.join(" | ")
    );
    println!("| --- | --- | --- |{}", " --- |".repeat(titles.len()));
    for ((stamps, capacity, cross), row) in &rows {
        let mut texts: Vec<String> = row.ratios.iter().map(|of| accuracy(of)).collect();
        texts.extend(row.settled.values().map(|latest| {
            latest.map_or_else(
                || "-".to_owned(),
                |latest| format!("{:.3} s", latest.as_secs_f64()),
            )
        }));
        println!(
            "| {stamps} | {} | {cross} | {} |",
            Rate::from_bps(*capacity),
            texts.join(" | ")
        );
    }
    Ok(())
}
