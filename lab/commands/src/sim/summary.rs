//! The results of a scenario's runs, per point and group, over all seeds.

use std::sync::Arc;

use comity_sim::metrics;
use comity_sim::report::{FlowReport, Lateness, PlaybackReport, RunReport};
use comity_sim::results::AxisValue;
use comity_sim::scenario::{Run, Scenario};
use comity_units::Span;
use serde_json::{Map, Value, json};

use super::super::figures::{RateUnit, digits, or_dash, percent};
use super::super::tables::Table;
use super::sections::{self, Sections};
use super::statistics::{estimate, least, mean, most};
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
    groups: Vec<Group>,
    links: Vec<Link>,
    runs: Vec<Value>,
}

/// A group of flows at one point. Each list has one value per run.
#[derive(Debug, Default)]
struct Group {
    name: String,
    flows: usize,
    /// The minimum and maximum base round-trip time of its flows, in seconds.
    base_rtt: Option<[f64; 2]>,
    goodput: Vec<f64>,
    throughput: Vec<f64>,
    least: Vec<f64>,
    most: Vec<f64>,
    jain: Vec<f64>,
    loss: Vec<f64>,
    data_loss: Vec<f64>,
    retransmitted: Vec<f64>,
    timeouts: Vec<f64>,
    delay: Vec<f64>,
    /// The time from the last start until equal shares, for runs that reached them.
    convergence: Vec<f64>,
    /// The number of runs in which this time was measured.
    sought: usize,
    /// The share of reads, by playback readers, that found their data.
    reads: Vec<f64>,
    /// Means over the players: start-up delay, number of stalls, seconds of stalls.
    startup: Vec<f64>,
    stalls: Vec<f64>,
    stalled: Vec<f64>,
    /// The mean completion time of flows that started in measured time and ended.
    completion: Vec<f64>,
    /// The mean rate of these flows until completion, in bit/s.
    transfer: Vec<f64>,
    completed: usize,
    /// The number of flows, over all runs, that started in measured time, have an end and did not
    /// reach it.
    unfinished: usize,
    sections: Sections,
}

/// A link at one point. Each list has one value per run.
#[derive(Debug, Default)]
struct Link {
    name: String,
    utilisation: Vec<f64>,
    queue: Vec<f64>,
    drops: Vec<f64>,
    queueing_delay: Vec<f64>,
}

impl Group {
    fn add(&mut self, report: &RunReport, flows: &[&FlowReport]) {
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
        let throughputs: Vec<f64> = flows.iter().map(|flow| flow.throughput_bps).collect();
        let sum = |of: fn(&FlowReport) -> u64| flows.iter().map(|flow| of(flow)).sum::<u64>();
        let sent = sum(|flow| flow.sent_packets);
        let offered = sent + sum(|flow| flow.acks);
        self.flows = self.flows.max(flows.len());
        // All runs of a point have the same network.
        self.base_rtt = FlowReport::base_rtt_range(flows.iter().copied());
        self.goodput.extend(mean(&goodputs));
        self.throughput.extend(mean(&throughputs));
        self.least.extend(least(&goodputs));
        self.most.extend(most(&goodputs));
        self.jain.extend(metrics::jain(&throughputs));
        self.loss.extend(metrics::loss_ratio(
            sum(|flow| flow.dropped_packets),
            offered,
        ));
        self.data_loss.extend(metrics::loss_ratio(
            sum(|flow| flow.dropped_packets.saturating_sub(flow.dropped_acks)),
            sent,
        ));
        if sent > 0 {
            let again = sum(|flow| flow.retransmitted_packets);
            self.retransmitted.push(again as f64 / sent as f64);
        }
        self.timeouts.push(sum(|flow| flow.timeouts) as f64);
        let delays: u64 = sum(|flow| flow.delay.count);
        if delays > 0 {
            let total: f64 = flows
                .iter()
                .map(|flow| flow.delay.mean * flow.delay.count as f64)
                .sum();
            self.delay.push(total / delays as f64);
        }
        let is_sought = report
            .series
            .as_ref()
            .is_some_and(|series| series.convergence.is_some());
        if is_sought && flows.len() > 1 {
            self.sought += 1;
            let time = report.convergence(&self.name);
            self.convergence.extend(time.map(Span::as_secs_f64));
        }
        self.add_playback(flows);
        self.add_completion(report, flows);
        self.sections.add(flows);
    }

    /// The mean time to equal shares, and the number of runs that reached them, unless all did.
    fn convergence_text(&self) -> String {
        match (mean(&self.convergence), self.sought) {
            (_, 0) => "-".into(),
            (None, _) => "never".into(),
            (Some(mean), sought) if self.convergence.len() == sought => digits(mean),
            (Some(mean), sought) => {
                format!("{} in {} of {sought}", digits(mean), self.convergence.len())
            }
        }
    }

    /// The base round-trip time in milliseconds, or its minimum and maximum.
    fn base_rtt_text(&self) -> String {
        let Some([least, most]) = self.base_rtt else {
            return "-".into();
        };
        let [least, most] = [least, most].map(|rtt| {
            let text = digits(rtt * 1e3);
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        });
        match least == most {
            true => least,
            false => format!("{least}-{most}"),
        }
    }

    /// Adds the results of the players among the flows.
    fn add_playback(&mut self, flows: &[&FlowReport]) {
        let players: Vec<_> = flows.iter().filter_map(|flow| flow.playback).collect();
        let sum = |of: fn(&PlaybackReport) -> u64| players.iter().map(of).sum::<u64>() as f64;
        let reads = sum(|of| of.reads);
        if reads > 0.0 {
            self.reads.push(sum(|of| of.satisfied) / reads);
        }
        let of_each = |of: fn(&PlaybackReport) -> Option<f64>| {
            let values: Vec<f64> = players.iter().filter_map(of).collect();
            mean(&values)
        };
        self.startup.extend(of_each(|of| of.startup_delay_s));
        self.stalls.extend(of_each(|of| Some(of.stalls as f64)));
        self.stalled.extend(of_each(|of| Some(of.stalled_s)));
    }

    /// Adds the completion times of the flows that ended, and counts those that did not end.
    fn add_completion(&mut self, report: &RunReport, flows: &[&FlowReport]) {
        let (mut times, mut rates) = (Vec::new(), Vec::new());
        for flow in flows
            .iter()
            .filter(|flow| report.is_measured_transfer(flow))
        {
            if let Some(time) = flow.completion_time() {
                times.push(time.as_secs_f64());
                rates.push(flow.delivered_bytes_total as f64 * 8.0 / time.as_secs_f64());
            } else {
                self.unfinished += 1;
            }
        }
        self.completed += times.len();
        self.completion.extend(mean(&times));
        rates.retain(|rate: &f64| rate.is_finite());
        self.transfer.extend(mean(&rates));
    }

    fn json(&self) -> Value {
        json!({
            "group": self.name,
            "flows": self.flows,
            "base_rtt_min_s": self.base_rtt.map(|[least, _]| least),
            "base_rtt_max_s": self.base_rtt.map(|[_, most]| most),
            "goodput_bps": estimate(&self.goodput),
            "goodput_min_bps": least(&self.least),
            "goodput_max_bps": most(&self.most),
            "throughput_bps": estimate(&self.throughput),
            "jain": estimate(&self.jain),
            "loss_ratio": estimate(&self.loss),
            "data_loss_ratio": estimate(&self.data_loss),
            "retransmitted_ratio": estimate(&self.retransmitted),
            "timeouts": estimate(&self.timeouts),
            "delay_s": estimate(&self.delay),
            "reads_satisfied_ratio": estimate(&self.reads),
            "startup_delay_s": estimate(&self.startup),
            "stalls": estimate(&self.stalls),
            "stalled_s": estimate(&self.stalled),
            "convergence_s": estimate(&self.convergence),
            "completed_flows": self.completed,
            "unfinished_flows": self.unfinished,
            "completion_s": estimate(&self.completion),
            "transfer_bps": estimate(&self.transfer),
            "sections": self.sections.json(),
        })
    }
}

impl Link {
    fn json(&self) -> Value {
        json!({
            "link": self.name,
            "utilisation": estimate(&self.utilisation),
            "mean_queue_packets": estimate(&self.queue),
            "dropped_packets": estimate(&self.drops),
            "queueing_delay_s": estimate(&self.queueing_delay),
        })
    }
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
                    "groups": point.groups.iter().map(Group::json).collect::<Vec<_>>(),
                    "links": point.links.iter().map(Link::json).collect::<Vec<_>>(),
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

    fn groups(&self, scenario: &Scenario) -> Table {
        let groups = || self.points.iter().flat_map(|point| &point.groups);
        let unit = RateUnit::of(groups().filter_map(|group| mean(&group.goodput)));
        let intervals = self.has_intervals();
        let axes = scenario.axes();
        let mut header: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
        header.extend(["group", "flows", "base RTT ms"].map(Into::into));
        header.push(format!("goodput {}", unit.name));
        if intervals {
            header.push("±95%".into());
        }
        header.extend(
            [
                "min",
                "max",
                "Jain",
                "loss",
                "retransmitted",
                "timeouts",
                "delay ms",
            ]
            .map(Into::into),
        );
        let is_convergence_sought = groups().any(|group| group.sought > 0);
        if is_convergence_sought {
            header.push("fair after s".into());
        }
        let has_readers = groups().any(|group| !group.reads.is_empty());
        if has_readers {
            header
                .extend(["reads in time", "begins after s", "stalls", "stalled s"].map(Into::into));
        }
        let has_ends = groups().any(|group| group.completed > 0);
        if has_ends {
            header.push("done after s".into());
            header.push(format!("transfer {}", unit.name));
        }
        let has_unfinished = groups().any(|group| group.unfinished > 0);
        if has_unfinished {
            header.push("unfinished".into());
        }
        let columns = header.len();
        let mut table = Table::new(header);
        for column in axes.len() + 1..columns {
            table.right(column);
        }
        for point in &self.points {
            for group in &point.groups {
                let mut row: Vec<String> = point.values.iter().map(AxisValue::to_string).collect();
                row.extend([
                    group.name.clone(),
                    group.flows.to_string(),
                    group.base_rtt_text(),
                ]);
                let rate = |value: Option<f64>| or_dash(value, |value| unit.show(value));
                row.push(rate(mean(&group.goodput)));
                if intervals {
                    let half = metrics::mean_with_interval(&group.goodput)
                        .ok()
                        .and_then(|estimate| estimate.half_width);
                    row.push(rate(half));
                }
                row.extend([
                    rate(least(&group.least)),
                    rate(most(&group.most)),
                    // The index of a single flow is always 1.
                    or_dash(mean(&group.jain).filter(|_| group.flows > 1), |jain| {
                        format!("{jain:.4}")
                    }),
                    or_dash(mean(&group.data_loss), percent),
                    or_dash(mean(&group.retransmitted), percent),
                    or_dash(mean(&group.timeouts), |timeouts| {
                        if intervals {
                            format!("{timeouts:.1}")
                        } else {
                            format!("{timeouts:.0}")
                        }
                    }),
                    or_dash(mean(&group.delay), |delay| digits(delay * 1e3)),
                ]);
                if is_convergence_sought {
                    row.push(group.convergence_text());
                }
                if has_readers {
                    row.push(or_dash(mean(&group.reads), percent));
                    for values in [&group.startup, &group.stalls, &group.stalled] {
                        row.push(or_dash(mean(values), digits));
                    }
                }
                if has_ends {
                    row.push(or_dash(mean(&group.completion), digits));
                    row.push(rate(mean(&group.transfer)));
                }
                if has_unfinished {
                    row.push(thousands(group.unfinished as u64));
                }
                table.row(row);
            }
        }
        table
    }

    /// The outcomes of sections; `None` if there are no sections.
    fn sections(&self, scenario: &Scenario) -> Option<Table> {
        let groups = || {
            let all = self.points.iter().flat_map(|point| &point.groups);
            all.filter(|group| !group.sections.is_empty())
        };
        groups().next()?;
        let unit = RateUnit::of(groups().filter_map(|group| group.sections.target()));
        let axes = scenario.axes();
        let mut header: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
        header.push("group".into());
        header.extend(sections::header(unit));
        let columns = header.len();
        let mut table = Table::new(header);
        for column in axes.len() + 1..columns {
            table.right(column);
        }
        for point in &self.points {
            for group in &point.groups {
                if group.sections.is_empty() {
                    continue;
                }
                let mut row: Vec<String> = point.values.iter().map(AxisValue::to_string).collect();
                row.push(group.name.clone());
                row.extend(group.sections.row(unit));
                table.row(row);
            }
        }
        Some(table)
    }

    fn links(&self, scenario: &Scenario) -> Table {
        let axes = scenario.axes();
        let mut header: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
        header.extend(
            [
                "link",
                "utilisation",
                "mean queue",
                "dropped",
                "queueing delay ms",
            ]
            .map(Into::into),
        );
        let columns = header.len();
        let mut table = Table::new(header);
        for column in axes.len() + 1..columns {
            table.right(column);
        }
        for point in &self.points {
            for link in &point.links {
                let mut row: Vec<String> = point.values.iter().map(AxisValue::to_string).collect();
                row.extend([
                    link.name.clone(),
                    or_dash(mean(&link.utilisation), percent),
                    or_dash(mean(&link.queue), digits),
                    or_dash(mean(&link.drops), |drops| thousands(drops.round() as u64)),
                    or_dash(mean(&link.queueing_delay), |delay| digits(delay * 1e3)),
                ]);
                table.row(row);
            }
        }
        table
    }
}

impl Point {
    fn add(&mut self, report: &RunReport, backbone: usize) {
        for name in report.groups() {
            let flows: Vec<_> = report
                .flows
                .iter()
                .filter(|flow| flow.is_in(name))
                .collect();
            named(
                &mut self.groups,
                name,
                |group| &group.name,
                |name| Group {
                    name,
                    ..Group::default()
                },
            )
            .add(report, &flows);
        }
        for link in report.links.iter().take(backbone) {
            let entry = named(
                &mut self.links,
                &link.name,
                |link| &link.name,
                |name| Link {
                    name,
                    ..Link::default()
                },
            );
            entry.utilisation.extend(link.utilisation);
            entry.queue.push(link.mean_queue_packets);
            entry.drops.push(link.dropped_measured as f64);
            if link.queueing_delay.count > 0 {
                entry.queueing_delay.push(link.queueing_delay.mean);
            }
        }
    }
}

/// The entry with this `name`, created if it does not exist.
fn named<'e, T>(
    entries: &'e mut Vec<T>,
    name: &str,
    name_of: impl Fn(&T) -> &String,
    make: impl Fn(String) -> T,
) -> &'e mut T {
    let index = match entries.iter().position(|entry| name_of(entry) == name) {
        Some(index) => index,
        None => {
            entries.push(make(name.to_owned()));
            entries.len() - 1
        }
    };
    &mut entries[index]
}
