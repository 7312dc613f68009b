//! The results of a scenario's runs, per point and group, over all seeds.

use std::sync::Arc;

use comity_sim::report::{Lateness, RunReport};
use comity_sim::results::{AxisValue, Measures};
use comity_sim::scenario::{Run, Scenario};
use serde_json::{Map, Value, json};

use super::super::figures::{RateUnit, digits};
use super::super::tables::Table;
use super::columns::{GROUPS, LINKS, SECTIONS, Style, table};
use super::entry::Entry;
use crate::numbers::thousands;

/// The version of the JSON document. It increases when a key changes its meaning or is removed.
const FORMAT: &str = "comity-sim-run/2";

/// The complete summary of a scenario's runs.
#[derive(Debug, Default)]
pub(super) struct Summary {
    points: Vec<Point>,
    events: u64,
    packet_hops: u64,
    runs: u64,
    has_warmup: bool,
    /// The lateness of the lab's routers, for runs in a lab.
    routers: Option<Routers>,
}

/// The lateness of the lab's routers.
#[derive(Debug, Default)]
struct Routers {
    packets: u64,
    late: u64,
    p99: f64,
    max: f64,
    doubtful: u64,
}

impl Routers {
    fn add(&mut self, lateness: Lateness) {
        self.packets += lateness.packets;
        self.late += lateness.late_packets;
        self.p99 = self.p99.max(lateness.p99_s);
        self.max = self.max.max(lateness.max_s);
        self.doubtful += u64::from(!lateness.is_trusted);
    }

    fn text(&self, runs: u64) -> String {
        let trust = match self.doubtful {
            0 => "to be trusted".into(),
            _ if runs == 1 => "not to be trusted".to_owned(),
            doubtful => format!("{doubtful} of {runs} runs not to be trusted"),
        };
        format!(
            "the router was late by at most {} ms with 99 % of packets, by {} ms with the latest; \
             {} of {} by more than 1 ms: {trust}\n",
            digits(self.p99 * 1e3),
            digits(self.max * 1e3),
            thousands(self.late),
            thousands(self.packets),
        )
    }
}

/// The runs of one point of the sweep.
#[derive(Debug)]
struct Point {
    number: usize,
    values: Arc<[AxisValue]>,
    groups: Vec<Entry>,
    links: Vec<Entry>,
    runs: Vec<Value>,
}

/// The estimates of a group whose keys are the names of measures.
const ESTIMATES: [&str; 10] = [
    "jain",
    "loss_ratio",
    "data_loss_ratio",
    "retransmitted_ratio",
    "timeouts",
    "reads_satisfied_ratio",
    "startup_delay_s",
    "stalls",
    "stalled_s",
    "convergence_s",
];

fn group_json(group: &Entry) -> Value {
    let mut document = json!({
        "group": group.name,
        "flows": group.flows,
        "base_rtt_min_s": group.least("base_rtt_min_s"),
        "base_rtt_max_s": group.most("base_rtt_max_s"),
        "goodput_bps": group.estimate_json("mean_goodput_bps"),
        "goodput_min_bps": group.least("goodput_min_bps"),
        "goodput_max_bps": group.most("goodput_max_bps"),
        "throughput_bps": group.estimate_json("mean_throughput_bps"),
        "delay_s": group.estimate_json("mean_delay_s"),
        "completed_flows": group.completed,
        "unfinished_flows": group.unfinished,
        "completion_s": group.estimate_json("completion_mean_s"),
        "transfer_bps": group.estimate_json("transfer_bps"),
        "sections": sections_json(group),
    });
    for measure in ESTIMATES {
        document[measure] = group.estimate_json(measure);
    }
    document
}

/// The fates of the sections of a group; null if it has none.
fn sections_json(group: &Entry) -> Value {
    if !group.has("sections_submitted") {
        return Value::Null;
    }
    let of_sections = |measure: &'static str| {
        let key = measure.strip_prefix("sections_")?;
        Some((key.to_owned(), group.estimate_json(measure)))
    };
    let mut document: Map<String, Value> = group.measures().filter_map(of_sections).collect();
    for (key, measure) in [
        ("on_time_least_ratio", "sections_on_time_ratio"),
        (
            "decodable_of_share_least_ratio",
            "sections_decodable_of_share_ratio",
        ),
    ] {
        document.insert(key.to_owned(), json!(group.least(measure)));
    }
    document.into()
}

fn link_json(link: &Entry) -> Value {
    let mut document = json!({ "link": link.name });
    for measure in link.measures() {
        document[measure] = link.estimate_json(measure);
    }
    document
}

/// The value of an axis as JSON.
fn axis_json(value: &AxisValue) -> Value {
    match value {
        AxisValue::Integer(value) => json!(value),
        AxisValue::Number(value) => json!(value),
        AxisValue::Boolean(value) => json!(value),
        AxisValue::Text(text) => json!(text),
    }
}

impl Summary {
    /// Adds a run. The first `backbone` links are those of the topology itself.
    pub(super) fn add(&mut self, run: &Run, report: &RunReport, backbone: usize) {
        self.runs += 1;
        self.has_warmup |= !report.warmup.is_zero();
        self.events += report.cost.events;
        self.packet_hops += report.cost.packet_hops;
        if self
            .points
            .last()
            .is_none_or(|point| point.number != run.point)
        {
            self.points.push(Point {
                number: run.point,
                values: run.values.clone(),
                groups: Vec::new(),
                links: Vec::new(),
                runs: Vec::new(),
            });
        }
        let Some(point) = self.points.last_mut() else {
            return;
        };
        point.add(report, backbone);
        let lateness = report.world.lateness();
        if let Some(lateness) = lateness {
            self.routers.get_or_insert_default().add(lateness);
        }
        let fingerprint = format!("{:016x}", report.fingerprint);
        point.runs.push(json!({
            "run": run.number,
            "seed": run.seed.get(),
            "world": report.world.name(),
            "lateness": lateness.map(|lateness| json!({
                "packets": lateness.packets,
                "late_packets": lateness.late_packets,
                "p99_s": lateness.p99_s,
                "max_s": lateness.max_s,
                "is_trusted": lateness.is_trusted,
            })),
            "fingerprint": lateness.is_none().then_some(fingerprint),
            "events": report.cost.events,
            "packet_hops": report.cost.packet_hops,
            "peak_packets": report.cost.peak_packets,
            "memory_bytes": report.cost.memory_bytes,
        }));
    }

    /// The summary as one JSON document, described in `docs/reference/run-json.md`.
    pub(super) fn json(&self, scenario: &Scenario, wall_seconds: f64) -> Value {
        let axes = scenario.axes();
        let points: Vec<Value> = self
            .points
            .iter()
            .map(|point| {
                let values: Map<String, Value> = axes
                    .iter()
                    .zip(point.values.iter())
                    .map(|(axis, value)| ((*axis).to_owned(), axis_json(value)))
                    .collect();
                json!({
                    "axes": values,
                    "groups": point.groups.iter().map(group_json).collect::<Vec<_>>(),
                    "links": point.links.iter().map(link_json).collect::<Vec<_>>(),
                    "runs": point.runs,
                })
            })
            .collect();
        json!({
            "format": FORMAT,
            "version": env!("CARGO_PKG_VERSION"),
            "scenario": {
                "name": scenario.name(),
                "description": scenario.description(),
                "axes": axes,
                "seeds": scenario.seeds(),
            },
            "points": points,
            "totals": {
                "runs": self.runs,
                "events": self.events,
                "packet_hops": self.packet_hops,
                "wall_seconds": wall_seconds,
            },
        })
    }

    /// Tables for people. `wall_seconds` is the time of the runs, unless some were stored before.
    pub(super) fn text(&self, scenario: &Scenario, wall_seconds: Option<f64>) -> String {
        let mut text = scenario.name().to_owned();
        if let Some(description) = scenario.description() {
            text.push_str(": ");
            text.push_str(description);
        }
        text.push_str("\n\n");
        text.push_str(&self.groups(scenario).to_string());
        text.push_str("\n\n");
        if let Some(table) = self.sections(scenario) {
            text.push_str(&table.to_string());
            text.push_str("\n\n");
        }
        text.push_str(&self.links(scenario).to_string());
        text.push_str(
            "\n\nloss is of data packets: dropped or lost, as a share of those sent, without acknowledgements",
        );
        if self.has_warmup {
            text.push_str(
                "\nloss, retransmitted and timeouts count from the start of a run, all else from the end of its warm-up",
            );
        }
        let mut groups = self.points.iter().flat_map(|point| &point.groups);
        if groups.any(|group| group.completed > 0) {
            text.push_str(
                "\ngoodput is that of the whole run, also after a transfer has ended; \"done after\" and \
                 \"transfer\" are means of transfers that ended, from their start to their end",
            );
        }
        let runs = if self.runs == 1 { "run" } else { "runs" };
        if let Some(routers) = &self.routers {
            text.push_str(&format!(
                "\n\n{} {runs} on real packets, {} packet hops{}\n{}",
                thousands(self.runs),
                thousands(self.packet_hops),
                wall_seconds.map_or_else(String::new, |it| format!(" in {} s", digits(it))),
                routers.text(self.runs),
            ));
            return text;
        }
        text.push_str(&format!(
            "\n\n{} {runs}, {} packet hops, {} events",
            thousands(self.runs),
            thousands(self.packet_hops),
            thousands(self.events),
        ));
        if let Some(seconds) = wall_seconds {
            text.push_str(&format!(
                " in {} s ({} million packet hops per second)",
                digits(seconds),
                digits(self.packet_hops as f64 / seconds.max(1e-9) / 1e6),
            ));
        }
        text.push('\n');
        if let [point] = &self.points[..]
            && let [run] = &point.runs[..]
            && let Some(fingerprint) = run["fingerprint"].as_str()
        {
            text.push_str(&format!("fingerprint {fingerprint}\n"));
        }
        text
    }

    /// Whether means have confidence intervals, because there are several seeds.
    fn has_intervals(&self) -> bool {
        self.points.iter().any(|point| point.runs.len() > 1)
    }

    /// The groups, or the links, of each point with the values of its axes.
    fn rows<'a>(
        &'a self,
        of: impl Fn(&'a Point) -> &'a [Entry],
    ) -> Vec<(&'a [AxisValue], &'a Entry)> {
        let points = self.points.iter();
        let rows = points.flat_map(|point| of(point).iter().map(|entry| (&*point.values, entry)));
        rows.collect()
    }

    /// How the cells of a table are written, whose rates are near this measure.
    fn style(&self, rows: &[(&[AxisValue], &Entry)], rate: &str) -> Style {
        Style {
            unit: RateUnit::of(rows.iter().filter_map(|(_, entry)| entry.mean(rate))),
            has_intervals: self.has_intervals(),
        }
    }

    fn groups(&self, scenario: &Scenario) -> Table {
        let rows = self.rows(|point| &point.groups);
        let style = self.style(&rows, "mean_goodput_bps");
        table(&scenario.axes(), &rows, GROUPS, &style)
    }

    /// The outcomes of sections; `None` if there are no sections.
    fn sections(&self, scenario: &Scenario) -> Option<Table> {
        let mut rows = self.rows(|point| &point.groups);
        rows.retain(|(_, group)| group.has("sections_submitted"));
        let style = self.style(&rows, "sections_target_bitrate_bps");
        (!rows.is_empty()).then(|| table(&scenario.axes(), &rows, SECTIONS, &style))
    }

    fn links(&self, scenario: &Scenario) -> Table {
        let rows = self.rows(|point| &point.links);
        let style = self.style(&rows, "");
        table(&scenario.axes(), &rows, LINKS, &style)
    }
}

impl Point {
    fn add(&mut self, report: &RunReport, backbone: usize) {
        for group in Measures::of_groups(report) {
            named(&mut self.groups, group.name).add_group(report, &group);
        }
        for link in report.links.iter().take(backbone) {
            named(&mut self.links, &link.name).add_link(link);
        }
    }
}

/// The entry with this `name`, created if it does not exist.
fn named<'e>(entries: &'e mut Vec<Entry>, name: &str) -> &'e mut Entry {
    let index = match entries.iter().position(|entry| entry.name == name) {
        Some(index) => index,
        None => {
            entries.push(Entry::new(name));
            entries.len() - 1
        }
    };
    &mut entries[index]
}
