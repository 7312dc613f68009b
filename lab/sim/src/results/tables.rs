//! The tables and their columns.

use comity_units::Span;

use super::column::{Columns, Filled, Table, Values, Visitor};
use super::error::WriteError;
use super::flows_and_links::{NumberedRun, Row, Things};
use super::set::{CompletedRun, ENGINE_VERSION, ScenarioInfo};
use super::variation::{Variation, variations};
use crate::histogram::{Distribution, Summary};
use crate::metrics;
use crate::report::{FlowReport, RunReport};

/// The runs, with values computed from the flows of each.
pub(super) struct Tables<'a> {
    scenario: &'a ScenarioInfo,
    things: Things<'a>,
    /// The sharing of the flows of each run.
    shares: Vec<Shares<'a>>,
}

/// The sharing of the flows of a run.
struct Shares<'a> {
    all: Sharing,
    groups: Vec<Group<'a>>,
}

/// A group of flows.
struct Group<'a> {
    name: &'a str,
    sharing: Sharing,
    friendliness: Option<f64>,
    convergence: Option<f64>,
    /// The minimum and maximum base round trip of its flows, in seconds.
    base_rtt: Option<[f64; 2]>,
    completion: Completion,
}

/// The flows of a group that have an end and started in measured time.
struct Completion {
    /// The completion times of the flows that ended.
    times: Summary,
    /// How many flows did not end; `None` if no flow has an end.
    unfinished: Option<u64>,
}

/// The sharing of a set of flows.
struct Sharing {
    flows: u64,
    goodput: f64,
    throughput: f64,
    jain: Option<f64>,
    baseline: Option<metrics::Baseline>,
    max_min_ratio: Option<f64>,
}

impl Sharing {
    fn of<'f>(flows: impl Iterator<Item = &'f FlowReport> + Clone) -> Self {
        let throughputs: Vec<f64> = flows.clone().map(|flow| flow.throughput_bps).collect();
        Self {
            flows: throughputs.len() as u64,
            goodput: flows.map(|flow| flow.goodput_bps).sum(),
            throughput: throughputs.iter().sum(),
            jain: metrics::jain(&throughputs).ok(),
            baseline: metrics::baseline(&throughputs).ok(),
            max_min_ratio: metrics::max_min_ratio(&throughputs).ok(),
        }
    }

    fn mean(&self, total: f64) -> Option<f64> {
        (self.flows > 0).then(|| total / self.flows as f64)
    }
}

impl<'a> Tables<'a> {
    /// The tables of these runs.
    ///
    /// # Errors
    /// [`WriteError::RepeatedAxis`] when a run has two values for one axis.
    pub(super) fn new(
        runs: impl Iterator<Item = &'a CompletedRun> + Clone,
        scenario: &'a ScenarioInfo,
    ) -> Result<Self, WriteError> {
        Ok(Self {
            scenario,
            things: Things::new(runs.clone())?,
            shares: runs.map(|run| Shares::of(&run.report)).collect(),
        })
    }

    /// Shows every table to the visitor, with the columns that some row fills. Tables of series
    /// appear only if some run has series.
    pub(super) fn each<V: Visitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
        self.each_whole(&mut Filled(visitor))
    }

    /// As [`Self::each`], with all columns.
    pub(super) fn each_whole<V: Visitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.table(|| self.runs())?;
        visitor.table(|| self.groups())?;
        self.things.each(visitor)?;
        if self.things.has_series() {
            visitor.table(|| self.flow_variation())?;
        }
        Ok(())
    }

    fn runs(&self) -> Table<'_, Row<'_, Sharing>> {
        let first = Columns::new()
            .unsigned("run", |row: &Row<'_, Sharing>| row.run.number)
            .text("scenario", |_| self.scenario.name.as_str().into())
            .text("scenario_hash", |row| {
                format!("{:016x}", row.run.scenario_hash).into()
            });
        let before = self
            .things
            .with_axes(first, |row| row.run)
            .unsigned("seed", |row| row.run.seed.get())
            .text("world", |row| row.run.report.world.name().into())
            .text("version", |_| env!("CARGO_PKG_VERSION").into())
            .unsigned("engine_version", |_| u64::from(ENGINE_VERSION))
            .maybe(
                "fingerprint".into(),
                Values::Text(Box::new(|row: &Row<'_, Sharing>| {
                    let report = row.run.report;
                    let fingerprint = format!("{:016x}", report.fingerprint);
                    report
                        .world
                        .lateness()
                        .is_none()
                        .then(|| fingerprint.into())
                })),
            )
            .unsigned("duration_ns", |row| row.run.report.duration.as_nanos())
            .unsigned("warmup_ns", |row| row.run.report.warmup.as_nanos());
        let columns = sharing(before, |row| row.of)
            .unsigned("links", |row| row.run.report.links.len() as u64)
            .unsigned("sent_packets", |row| total(row, |flow| flow.sent_packets))
            .unsigned("retransmitted_packets", |row| {
                total(row, |flow| flow.retransmitted_packets)
            })
            .unsigned("received_packets", |row| {
                total(row, |flow| flow.received_packets)
            })
            .unsigned("dropped_packets", |row| {
                total(row, |flow| flow.dropped_packets)
            })
            .unsigned("timeouts", |row| total(row, |flow| flow.timeouts))
            .maybe_number("loss_ratio", |row| loss_ratio(&row.run.report.flows))
            .maybe_number("mean_delay_s", |row| mean_delay(&row.run.report.flows))
            .maybe_number("max_delay_s", |row| {
                let measured = row
                    .run
                    .report
                    .flows
                    .iter()
                    .filter(|flow| flow.delay.count > 0);
                measured.map(|flow| flow.delay.max).reduce(f64::max)
            })
            .maybe_number("max_utilisation", |row| {
                row.run
                    .report
                    .links
                    .iter()
                    .filter_map(|link| link.utilisation)
                    .reduce(f64::max)
            })
            .unsigned("events", |row| row.run.report.cost.events)
            .unsigned("packet_hops", |row| row.run.report.cost.packet_hops)
            .unsigned("peak_packets", |row| row.run.report.cost.peak_packets)
            .maybe_unsigned("late_packets", |row| {
                row.run
                    .report
                    .world
                    .lateness()
                    .map(|late| late.late_packets)
            })
            .maybe_number("lateness_p99_s", |row| {
                row.run.report.world.lateness().map(|late| late.p99_s)
            })
            .maybe_number("lateness_max_s", |row| {
                row.run.report.world.lateness().map(|late| late.max_s)
            })
            .maybe(
                "trusted".into(),
                Values::Boolean(Box::new(|row: &Row<'_, Sharing>| {
                    row.run.report.world.lateness().map(|late| late.is_trusted)
                })),
            )
            .unsigned("memory_bytes", |row| row.run.report.cost.memory_bytes);
        let rows = self.things.runs.iter().zip(&self.shares);
        let rows = rows.map(|(run, shares)| Row {
            run,
            index: 0,
            of: &shares.all,
        });
        Table {
            name: "runs",
            columns,
            rows: Box::new(rows),
        }
    }

    fn groups(&self) -> Table<'_, Row<'_, Group<'_>>> {
        let first = self
            .things
            .leading("group", |row: &Row<'_, Group<'_>>| row.of.name);
        let columns = sharing(first, |row| &row.of.sharing)
            .maybe_number("base_rtt_min_s", |row| {
                row.of.base_rtt.map(|[least, _]| least)
            })
            .maybe_number("base_rtt_max_s", |row| {
                row.of.base_rtt.map(|[_, most]| most)
            })
            .maybe_number("friendliness", |row| row.of.friendliness)
            .maybe_number("convergence_s", |row| row.of.convergence)
            .summary("completion", |row| row.of.completion.times)
            .maybe_unsigned("unfinished_flows", |row| row.of.completion.unfinished);
        let rows = self.things.runs.iter().zip(&self.shares);
        let rows = rows.flat_map(|(run, shares)| {
            (0..)
                .zip(&shares.groups)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: "groups",
            columns,
            rows: Box::new(rows),
        }
    }

    fn flow_variation(&self) -> Table<'_, (&NumberedRun<'_>, &str, Variation)> {
        let columns = self
            .things
            .of_run(|row: &(&NumberedRun<'_>, &str, Variation)| row.0)
            .unsigned("index", |row| row.2.flow as u64)
            .text("flow", |row| row.1.into())
            .unsigned("scale_ns", |row| row.2.scale.as_nanos())
            .unsigned("intervals", |row| row.2.intervals)
            .maybe_number("goodput_variation", |row| row.2.coefficient);
        let rows = self.things.runs.iter().flat_map(|run| {
            let report = run.report;
            variations(report).into_iter().map(move |variation| {
                let name = report
                    .flows
                    .get(variation.flow)
                    .map_or("", |flow| &flow.name);
                (run, name, variation)
            })
        });
        Table {
            name: "flow_variation",
            columns,
            rows: Box::new(rows),
        }
    }
}

impl<'a> Shares<'a> {
    fn of(report: &'a RunReport) -> Self {
        let flows = &report.flows;
        let group = |name: &'a str| {
            let (inside, outside): (Vec<&FlowReport>, _) =
                flows.iter().partition(|flow| flow.is_in(name));
            let throughputs = |flows: &[&FlowReport]| -> Vec<f64> {
                flows.iter().map(|flow| flow.throughput_bps).collect()
            };
            Group {
                name,
                sharing: Sharing::of(inside.iter().copied()),
                friendliness: metrics::friendliness(&throughputs(&inside), &throughputs(&outside))
                    .ok(),
                convergence: report.convergence(name).map(Span::as_secs_f64),
                base_rtt: FlowReport::base_rtt_range(inside.iter().copied()),
                completion: Completion::of(&inside, report),
            }
        };
        Self {
            all: Sharing::of(flows.iter()),
            groups: report.groups().into_iter().map(group).collect(),
        }
    }
}

impl Completion {
    fn of(flows: &[&FlowReport], report: &RunReport) -> Self {
        let mut times = Distribution::new();
        let mut unfinished = None;
        for flow in flows
            .iter()
            .filter(|flow| report.is_measured_transfer(flow))
        {
            let unfinished = unfinished.get_or_insert(0);
            match flow.completion_time() {
                Some(time) => times.record(time),
                None => *unfinished += 1,
            }
        }
        Self {
            times: times.summary(),
            unfinished,
        }
    }
}

/// Adds how flows share: totals, means and the measures of [`metrics`].
fn sharing<'a, R: 'a>(
    columns: Columns<'a, R>,
    of: impl Fn(&R) -> &'a Sharing + Copy + 'a,
) -> Columns<'a, R> {
    columns
        .unsigned("flows", move |row| of(row).flows)
        .number("goodput_bps", move |row| of(row).goodput)
        .number("throughput_bps", move |row| of(row).throughput)
        .maybe_number("mean_goodput_bps", move |row| of(row).mean(of(row).goodput))
        .maybe_number("mean_throughput_bps", move |row| {
            of(row).mean(of(row).throughput)
        })
        .maybe_number("jain", move |row| of(row).jain)
        .maybe_number("f_best", move |row| {
            of(row).baseline.map(|halves| halves.best)
        })
        .maybe_number("f_worst", move |row| {
            of(row).baseline.map(|halves| halves.worst)
        })
        .maybe_number("max_min_ratio", move |row| of(row).max_min_ratio)
}

/// A count summed over the flows of a run.
fn total(row: &Row<'_, Sharing>, field: fn(&FlowReport) -> u64) -> u64 {
    row.run.report.flows.iter().map(field).sum()
}

/// The share of dropped packets among all packets in the network, duplicates and acknowledgements
/// included.
fn loss_ratio(flows: &[FlowReport]) -> Option<f64> {
    let dropped = flows.iter().map(|flow| flow.dropped_packets).sum();
    let offered = flows
        .iter()
        .map(|flow| flow.sent_packets + flow.acks + flow.duplicated_packets)
        .sum();
    metrics::loss_ratio(dropped, offered).ok()
}

/// The mean one-way delay over all measured packets of all flows.
fn mean_delay(flows: &[FlowReport]) -> Option<f64> {
    let count: u64 = flows.iter().map(|flow| flow.delay.count).sum();
    let sum: f64 = flows
        .iter()
        .map(|flow| flow.delay.mean * flow.delay.count as f64)
        .sum();
    (count > 0).then(|| sum / count as f64)
}
