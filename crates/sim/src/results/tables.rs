//! Which tables there are and what their columns mean.

use std::borrow::Cow;

use comity_units::{Span, Time};

use super::column::{AXIS, Columns, Table, Values, Visitor};
use super::variation::{Variation, variations};
use super::{AxisValue, CompletedRun, ENGINE_VERSION, ScenarioInfo, WriteError, hash};
use crate::metrics;
use crate::report::{
    FlowReport, FlowSeries, LinkReport, LinkSeries, SectionsReport, TimelineReport,
};

/// The names of all tables, in their order.
pub(super) const NAMES: [&str; 7] = [
    "runs",
    "groups",
    "flows",
    "links",
    "flow_series",
    "link_series",
    "flow_variation",
];

/// The runs with what is computed over the flows of each.
pub(super) struct Tables<'a> {
    scenario: &'a ScenarioInfo,
    scenario_hash: String,
    axes: Vec<Axis<'a>>,
    runs: Vec<Run<'a>>,
}

/// An axis and the type that fits all its values.
#[derive(Clone, Copy)]
struct Axis<'a> {
    name: &'a str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    Integer,
    Number,
    Text,
}

struct Run<'a> {
    number: u64,
    completed: &'a CompletedRun,
    all: Sharing,
    groups: Vec<Group<'a>>,
}

/// A group of flows.
struct Group<'a> {
    name: &'a str,
    sharing: Sharing,
    friendliness: Option<f64>,
    convergence: Option<f64>,
}

/// How a set of flows shares.
struct Sharing {
    flows: u64,
    goodput: f64,
    throughput: f64,
    jain: Option<f64>,
    baseline: Option<metrics::Baseline>,
    separation: Option<f64>,
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
            separation: metrics::separation(&throughputs).ok(),
        }
    }

    fn mean(&self, total: f64) -> Option<f64> {
        (self.flows > 0).then(|| total / self.flows as f64)
    }
}

/// One thing of one run; `of` is the thing.
struct Row<'a, T> {
    run: &'a Run<'a>,
    index: u64,
    of: &'a T,
}

/// One bin of one flow or link.
struct Bin<'a, T> {
    run: u64,
    index: u64,
    name: &'a str,
    of: &'a T,
    start: Span,
    at: usize,
}

impl<T> Bin<'_, T> {
    /// The value of this bin in a column of the series.
    fn value<N: Copy + Into<u64>>(&self, column: &[N]) -> Option<u64> {
        column.get(self.at).copied().map(Into::into)
    }
}

impl<'a> Tables<'a> {
    /// The tables of these runs, each under its number.
    ///
    /// # Errors
    /// [`WriteError::RepeatedAxis`] when a run has two values for one axis.
    pub(super) fn new(
        runs: impl Iterator<Item = (usize, &'a CompletedRun)> + Clone,
        scenario: &'a ScenarioInfo,
    ) -> Result<Self, WriteError> {
        Ok(Self {
            scenario,
            scenario_hash: hash(&scenario.text),
            axes: axes(runs.clone().map(|(_, run)| run))?,
            runs: runs
                .map(|(number, run)| Run::new(number as u64, run))
                .collect(),
        })
    }

    /// Shows every table to the visitor; those of series only when some run has series.
    pub(super) fn each<V: Visitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(self.runs())?;
        visitor.visit(self.groups())?;
        visitor.visit(self.flows())?;
        visitor.visit(self.links())?;
        if self
            .runs
            .iter()
            .any(|run| run.completed.report.series.is_some())
        {
            visitor.visit(self.flow_series())?;
            visitor.visit(self.link_series())?;
            visitor.visit(self.flow_variation())?;
        }
        Ok(())
    }

    fn runs(&self) -> Table<'_, Row<'_, CompletedRun>> {
        let first = Columns::new()
            .unsigned("run", |row: &Row<'_, CompletedRun>| row.run.number)
            .text("scenario", |_| self.scenario.name.as_str().into())
            .text("scenario_hash", |_| self.scenario_hash.as_str().into());
        let before = self
            .with_axes(first, |row| row.run)
            .unsigned("seed", |row| row.of.seed.get())
            .text("version", |_| env!("CARGO_PKG_VERSION").into())
            .unsigned("engine_version", |_| u64::from(ENGINE_VERSION))
            .text("fingerprint", |row| {
                format!("{:016x}", row.of.report.fingerprint).into()
            })
            .unsigned("duration_ns", |row| row.of.report.duration.as_nanos())
            .unsigned("warmup_ns", |row| row.of.report.warmup.as_nanos());
        let columns = sharing(before, |row| &row.run.all)
            .unsigned("links", |row| row.of.report.links.len() as u64)
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
            .maybe_number("loss_ratio", |row| loss_ratio(&row.of.report.flows))
            .maybe_number("mean_delay_s", |row| mean_delay(&row.of.report.flows))
            .maybe_number("max_delay_s", |row| {
                let measured = row
                    .of
                    .report
                    .flows
                    .iter()
                    .filter(|flow| flow.delay.count > 0);
                measured.map(|flow| flow.delay.max).reduce(f64::max)
            })
            .maybe_number("max_utilisation", |row| {
                row.of
                    .report
                    .links
                    .iter()
                    .filter_map(|link| link.utilisation)
                    .reduce(f64::max)
            })
            .unsigned("events", |row| row.of.report.cost.events)
            .unsigned("packet_hops", |row| row.of.report.cost.packet_hops)
            .unsigned("peak_packets", |row| row.of.report.cost.peak_packets)
            .unsigned("memory_bytes", |row| row.of.report.cost.memory_bytes);
        let rows = self.runs.iter().map(|run| Row {
            run,
            index: 0,
            of: run.completed,
        });
        Table {
            name: NAMES[0],
            columns,
            rows: Box::new(rows),
        }
    }

    fn groups(&self) -> Table<'_, Row<'_, Group<'_>>> {
        let first = self.leading("group", |row: &Row<'_, Group<'_>>| row.of.name);
        let columns = sharing(first, |row| &row.of.sharing)
            .maybe_number("friendliness", |row| row.of.friendliness)
            .maybe_number("convergence_s", |row| row.of.convergence);
        let rows = self.runs.iter().flat_map(|run| {
            (0..)
                .zip(&run.groups)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: NAMES[1],
            columns,
            rows: Box::new(rows),
        }
    }

    fn flows(&self) -> Table<'_, Row<'_, FlowReport>> {
        let columns = self
            .leading("flow", |row: &Row<'_, FlowReport>| row.of.name.as_str())
            .text("group", |row| row.of.group.as_str().into())
            .text("kind", |row| row.of.kind.as_str().into())
            .unsigned("started_ns", |row| row.of.started.as_nanos())
            .maybe_unsigned("finished_ns", |row| row.of.finished.map(Time::as_nanos))
            .unsigned("delivered_bytes", |row| row.of.delivered_bytes)
            .unsigned("delivered_total_bytes", |row| row.of.delivered_bytes_total)
            .unsigned("delivered_wire_bytes", |row| row.of.delivered_wire_bytes)
            .number("goodput_bps", |row| row.of.goodput_bps)
            .number("throughput_bps", |row| row.of.throughput_bps)
            .unsigned("sent_packets", |row| row.of.sent_packets)
            .unsigned("sent_wire_bytes", |row| row.of.sent_wire_bytes)
            .unsigned("retransmitted_packets", |row| row.of.retransmitted_packets)
            .unsigned("timeouts", |row| row.of.timeouts)
            .unsigned("fast_retransmits", |row| row.of.fast_retransmits)
            .unsigned("received_packets", |row| row.of.received_packets)
            .unsigned("dropped_packets", |row| row.of.dropped_packets)
            .unsigned("dropped_data_packets", |row| {
                row.of
                    .dropped_packets
                    .saturating_sub(row.of.dropped_returned)
            })
            .unsigned("dropped_returned_packets", |row| row.of.dropped_returned)
            .unsigned("in_flight_at_end_packets", |row| row.of.in_flight_at_end)
            .unsigned("duplicated_packets", |row| row.of.duplicated_packets)
            .unsigned("returned_packets", |row| row.of.returned_packets)
            .summary("delay", |row| row.of.delay)
            .summary("arrival_spacing", |row| row.of.arrival_spacing)
            .maybe_number("srtt_s", |row| row.of.srtt_s)
            .maybe_number("mean_rtt_s", |row| row.of.mean_rtt_s)
            .maybe_number("min_rtt_s", |row| row.of.min_rtt_s)
            .maybe_unsigned("window_bytes", |row| row.of.window_bytes)
            .maybe_number("mean_window_bytes", |row| row.of.mean_window_bytes)
            .maybe_unsigned("ssthresh_bytes", |row| {
                row.of.ssthresh_bytes.filter(is_limited)
            })
            .maybe_unsigned("capacity_bps", |row| row.of.capacity_bps)
            .unsigned("reads", |row| row.of.reads)
            .unsigned("reads_satisfied", |row| row.of.reads_satisfied)
            .unsigned("tokens_used_bytes", |row| row.of.tokens_used_bytes)
            .maybe_number("tokens_per_rtt_bytes", |row| row.of.tokens_per_rtt_bytes)
            .maybe_number("tokens_per_rtt_deviation_bytes", |row| {
                row.of.tokens_per_rtt_deviation_bytes
            });
        let columns = timeline(sections(columns));
        let rows = self.runs.iter().flat_map(|run| {
            (0..)
                .zip(&run.completed.report.flows)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: NAMES[2],
            columns,
            rows: Box::new(rows),
        }
    }

    fn links(&self) -> Table<'_, Row<'_, LinkReport>> {
        let columns = self
            .leading("link", |row: &Row<'_, LinkReport>| row.of.name.as_str())
            .unsigned("offered_packets", |row| row.of.offered_packets)
            .unsigned("delivered_packets", |row| row.of.delivered_packets)
            .unsigned("dropped_full_packets", |row| row.of.dropped_full)
            .unsigned("dropped_early_packets", |row| row.of.dropped_early)
            .unsigned("lost_packets", |row| row.of.lost)
            .unsigned("dropped_measured_packets", |row| row.of.dropped_measured)
            .unsigned("dropped_data_packets", |row| {
                let LinkReport {
                    dropped_full,
                    dropped_early,
                    lost,
                    dropped_returned,
                    ..
                } = row.of;
                (dropped_full + dropped_early + lost).saturating_sub(*dropped_returned)
            })
            .unsigned("dropped_returned_packets", |row| row.of.dropped_returned)
            .unsigned("marked_packets", |row| row.of.marked)
            .unsigned("duplicated_packets", |row| row.of.duplicated)
            .unsigned("queued_at_end_packets", |row| row.of.queued_at_end)
            .unsigned("in_flight_at_end_packets", |row| row.of.in_flight_at_end)
            .unsigned("carried_bytes", |row| row.of.carried_bytes)
            .maybe_number("utilisation", |row| row.of.utilisation)
            .number("mean_queue_packets", |row| row.of.mean_queue_packets)
            .summary("wait", |row| row.of.wait);
        let rows = self.runs.iter().flat_map(|run| {
            (0..)
                .zip(&run.completed.report.links)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: NAMES[3],
            columns,
            rows: Box::new(rows),
        }
    }

    fn flow_series(&self) -> Table<'_, Bin<'_, FlowSeries>> {
        let columns = bin_columns("flow")
            .maybe_unsigned("delivered_bytes", |bin: &Bin<'_, FlowSeries>| {
                bin.value(&bin.of.delivered_bytes)
            })
            .maybe_unsigned("sent_packets", |bin| bin.value(&bin.of.sent_packets))
            .maybe_unsigned("retransmitted_packets", |bin| {
                bin.value(&bin.of.retransmitted_packets)
            })
            .maybe_unsigned("window_bytes", |bin| bin.value(&bin.of.window_bytes))
            .maybe_unsigned("ssthresh_bytes", |bin| {
                bin.value(&bin.of.ssthresh_bytes).filter(is_limited)
            })
            .maybe_unsigned("srtt_ns", |bin| bin.value(&bin.of.srtt_ns));
        let length = |of: &FlowSeries| {
            [
                of.delivered_bytes.len(),
                of.sent_packets.len(),
                of.retransmitted_packets.len(),
                of.window_bytes.len(),
                of.ssthresh_bytes.len(),
                of.srtt_ns.len(),
            ]
            .into_iter()
            .fold(0, usize::max)
        };
        let rows = self.runs.iter().flat_map(move |run| {
            let report = &run.completed.report;
            report.series.iter().flat_map(move |series| {
                let names = report.flows.iter().map(|flow| flow.name.as_str());
                bins(run.number, series.bin, &series.flows, names, length)
            })
        });
        Table {
            name: NAMES[4],
            columns,
            rows: Box::new(rows),
        }
    }

    fn link_series(&self) -> Table<'_, Bin<'_, LinkSeries>> {
        let columns = bin_columns("link")
            .maybe_unsigned("carried_bytes", |bin: &Bin<'_, LinkSeries>| {
                bin.value(&bin.of.carried_bytes)
            })
            .maybe_unsigned("dropped_packets", |bin| bin.value(&bin.of.dropped_packets))
            .maybe_unsigned("max_queue_packets", |bin| {
                bin.value(&bin.of.max_queue_packets)
            });
        let length = |of: &LinkSeries| {
            [
                of.carried_bytes.len(),
                of.dropped_packets.len(),
                of.max_queue_packets.len(),
            ]
            .into_iter()
            .fold(0, usize::max)
        };
        let rows = self.runs.iter().flat_map(move |run| {
            let report = &run.completed.report;
            report.series.iter().flat_map(move |series| {
                let names = report.links.iter().map(|link| link.name.as_str());
                bins(run.number, series.bin, &series.links, names, length)
            })
        });
        Table {
            name: NAMES[5],
            columns,
            rows: Box::new(rows),
        }
    }

    fn flow_variation(&self) -> Table<'_, (u64, &str, Variation)> {
        let columns = Columns::new()
            .unsigned("run", |row: &(u64, &str, Variation)| row.0)
            .unsigned("index", |row| row.2.flow as u64)
            .text("flow", |row| row.1.into())
            .unsigned("scale_ns", |row| row.2.scale.as_nanos())
            .unsigned("intervals", |row| row.2.intervals)
            .maybe_number("goodput_variation", |row| row.2.coefficient);
        let rows = self.runs.iter().flat_map(|run| {
            let report = &run.completed.report;
            variations(report).into_iter().map(move |variation| {
                let name = report
                    .flows
                    .get(variation.flow)
                    .map_or("", |flow| &flow.name);
                (run.number, name, variation)
            })
        });
        Table {
            name: NAMES[6],
            columns,
            rows: Box::new(rows),
        }
    }

    /// The columns that every row of a thing within a run begins with; the thing is called `name`.
    fn leading<'s, T: 's>(
        &'s self,
        name: &'static str,
        read: impl Fn(&Row<'s, T>) -> &'s str + 's,
    ) -> Columns<'s, Row<'s, T>> {
        let first = Columns::new().unsigned("run", |row: &Row<'s, T>| row.run.number);
        self.with_axes(first, |row| row.run)
            .unsigned("seed", |row| row.run.completed.seed.get())
            .unsigned("index", |row| row.index)
            .text(name, move |row| Cow::Borrowed(read(row)))
    }

    /// Adds a column for each axis.
    fn with_axes<'s, R: 's>(
        &'s self,
        columns: Columns<'s, R>,
        run: fn(&R) -> &'s Run<'s>,
    ) -> Columns<'s, R> {
        self.axes
            .iter()
            .fold(columns, move |columns, &Axis { name, kind }| {
                let value = move |row: &R| {
                    let mut axes = run(row).completed.axes.iter();
                    axes.find(|(axis, _)| axis == name).map(|(_, value)| value)
                };
                let values = match kind {
                    Kind::Boolean => Values::Boolean(Box::new(move |row| match value(row)? {
                        AxisValue::Boolean(value) => Some(*value),
                        _ => None,
                    })),
                    Kind::Integer => Values::Integer(Box::new(move |row| match value(row)? {
                        AxisValue::Integer(value) => Some(*value),
                        _ => None,
                    })),
                    Kind::Number => Values::Number(Box::new(move |row| match value(row)? {
                        AxisValue::Integer(value) => Some(*value as f64),
                        AxisValue::Number(value) => Some(*value),
                        _ => None,
                    })),
                    Kind::Text => Values::Text(Box::new(move |row| match value(row)? {
                        AxisValue::Text(text) => Some(Cow::Borrowed(text.as_str())),
                        other => Some(other.to_string().into()),
                    })),
                };
                columns.maybe(format!("{AXIS}{name}").into(), values)
            })
    }
}

impl<'a> Run<'a> {
    fn new(number: u64, completed: &'a CompletedRun) -> Self {
        let flows = &completed.report.flows;
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
                convergence: completed.report.convergence(name).map(Span::as_secs_f64),
            }
        };
        Self {
            number,
            completed,
            all: Sharing::of(flows.iter()),
            groups: completed.report.groups().into_iter().map(group).collect(),
        }
    }
}

/// The axes in the order in which the runs first name them.
fn axes<'a>(runs: impl Iterator<Item = &'a CompletedRun>) -> Result<Vec<Axis<'a>>, WriteError> {
    let mut axes: Vec<Axis<'a>> = Vec::new();
    for run in runs {
        for (at, (name, value)) in run.axes.iter().enumerate() {
            if run.axes.iter().take(at).any(|(earlier, _)| earlier == name) {
                return Err(WriteError::RepeatedAxis { axis: name.clone() });
            }
            let kind = match value {
                AxisValue::Boolean(_) => Kind::Boolean,
                AxisValue::Integer(_) => Kind::Integer,
                AxisValue::Number(_) => Kind::Number,
                AxisValue::Text(_) => Kind::Text,
            };
            match axes.iter_mut().find(|axis| axis.name == name) {
                Some(axis) => {
                    axis.kind = match (axis.kind, kind) {
                        (a, b) if a == b => a,
                        (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => {
                            Kind::Number
                        }
                        _ => Kind::Text,
                    }
                }
                None => axes.push(Axis { name, kind }),
            }
        }
    }
    Ok(axes)
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
        .maybe_number("separation", move |row| of(row).separation)
}

/// Adds what became of the sections of a flow; empty for other flows.
fn sections<'a>(columns: Columns<'a, Row<'a, FlowReport>>) -> Columns<'a, Row<'a, FlowReport>> {
    type Count = fn(&SectionsReport) -> u64;
    const COUNTS: [(&str, Count); 30] = [
        ("sections_submitted", |of| of.submitted),
        ("sections_refused", |of| of.refused),
        ("sections_on_time", |of| of.on_time),
        ("sections_late", |of| of.late),
        ("sections_open", |of| of.open),
        ("sections_decodable", |of| of.decodable),
        ("gaps_closed", |of| of.gaps.closed),
        ("gaps_obsolete", |of| of.gaps.obsolete),
        ("gaps_overdue", |of| of.gaps.overdue),
        ("gaps_dependency", |of| of.gaps.dependency),
        ("gaps_expired", |of| of.gaps.expired),
        ("gaps_infeasible", |of| of.gaps.infeasible),
        ("gaps_withdrawn", |of| of.gaps.withdrawn),
        ("intra_submitted", |of| of.intra.submitted),
        ("intra_on_time", |of| of.intra.on_time),
        ("intra_decodable", |of| of.intra.decodable),
        ("intra_open", |of| of.intra.open),
        ("predicted_submitted", |of| of.predicted.submitted),
        ("predicted_on_time", |of| of.predicted.on_time),
        ("predicted_decodable", |of| of.predicted.decodable),
        ("predicted_open", |of| of.predicted.open),
        ("bidirectional_submitted", |of| of.bidirectional.submitted),
        ("bidirectional_on_time", |of| of.bidirectional.on_time),
        ("bidirectional_decodable", |of| of.bidirectional.decodable),
        ("bidirectional_open", |of| of.bidirectional.open),
        ("sent_late_bytes", |of| of.late_bytes),
        ("repeated_bytes", |of| of.repeated_bytes),
        ("lost_packets", |of| of.lost_packets),
        ("spurious_loss_packets", |of| of.spurious_losses),
        ("marked_packets", |of| of.marked_packets),
    ];
    let counts = COUNTS.iter().fold(columns, |columns, &(name, count)| {
        columns.maybe_unsigned(name, move |row| row.of.sections.as_ref().map(count))
    });
    let of = |row: &Row<'a, FlowReport>| row.of.sections.as_ref();
    counts
        .maybe_number("target_bitrate_bps", move |row| of(row)?.target_bitrate_bps)
        .maybe_number("section_age_mean_s", move |row| {
            let age = of(row)?.age;
            (age.count > 0).then_some(age.mean)
        })
        .maybe_number("slack_p1_s", move |row| of(row)?.slack_p1_s)
        .maybe_number("slack_p50_s", move |row| of(row)?.slack_median_s)
        .maybe_unsigned("closed_ns", move |row| of(row)?.closed.map(Time::as_nanos))
}

/// Adds what became of the sections of time-lined TCP; empty for other flows.
fn timeline<'a>(columns: Columns<'a, Row<'a, FlowReport>>) -> Columns<'a, Row<'a, FlowReport>> {
    type Count = fn(&TimelineReport) -> u64;
    const COUNTS: [(&str, Count); 19] = [
        ("timeline_sections", |of| of.given),
        ("timeline_refused", |of| of.refused),
        ("timeline_left_out", |of| of.left_out),
        ("timeline_in_time", |of| of.in_time),
        ("timeline_intra_in_time", |of| of.intra_in_time),
        ("timeline_predicted_in_time", |of| of.predicted_in_time),
        ("timeline_bidirectional_in_time", |of| {
            of.bidirectional_in_time
        }),
        ("timeline_other_in_time", |of| of.other_in_time),
        ("timeline_late", |of| of.late),
        ("timeline_broken", |of| of.broken),
        ("timeline_expired", |of| of.expired),
        ("timeline_jumps", |of| of.jumps),
        ("timeline_gaps", |of| of.gaps),
        ("timeline_gap_bytes", |of| of.gap_bytes),
        ("timeline_discarded_bytes", |of| of.discarded_bytes),
        ("timeline_obsolete_bytes", |of| of.obsolete_bytes),
        ("timeline_pseudo_retransmissions", |of| {
            of.pseudo_retransmissions
        }),
        ("timeline_replacements", |of| of.replacements),
        ("timeline_notices", |of| of.notices),
    ];
    COUNTS.iter().fold(columns, |columns, &(name, count)| {
        columns.maybe_unsigned(name, move |row| row.of.timeline.as_ref().map(count))
    })
}

/// A count summed over the flows of a run.
fn total(row: &Row<'_, CompletedRun>, field: fn(&FlowReport) -> u64) -> u64 {
    row.of.report.flows.iter().map(field).sum()
}

/// The share of all packets put into the network, copies and acknowledgements included, that it dropped.
fn loss_ratio(flows: &[FlowReport]) -> Option<f64> {
    let dropped = flows.iter().map(|flow| flow.dropped_packets).sum();
    let offered = flows
        .iter()
        .map(|flow| flow.sent_packets + flow.returned_packets + flow.duplicated_packets)
        .sum();
    metrics::loss_ratio(dropped, offered).ok()
}

/// Whether a threshold is one at all; without a limit it is the largest number.
fn is_limited(bytes: &u64) -> bool {
    *bytes < u64::MAX
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

/// The columns that a bin begins with; `name` is what it is a bin of.
fn bin_columns<'a, T: 'a>(name: &'static str) -> Columns<'a, Bin<'a, T>> {
    Columns::new()
        .unsigned("run", |bin: &Bin<'a, T>| bin.run)
        .unsigned("index", |bin| bin.index)
        .text(name, |bin| bin.name.into())
        .unsigned("bin_start_ns", |bin| bin.start.as_nanos())
}

/// The bins of each of several things, thing by thing.
fn bins<'a, T: 'a>(
    run: u64,
    bin: Span,
    things: &'a [T],
    names: impl Iterator<Item = &'a str> + 'a,
    length: fn(&T) -> usize,
) -> impl Iterator<Item = Bin<'a, T>> + 'a {
    let names = names.chain(std::iter::repeat(""));
    (0..)
        .zip(things)
        .zip(names)
        .flat_map(move |((index, of), name)| {
            (0..length(of)).map(move |at| Bin {
                run,
                index,
                name,
                of,
                start: bin * at as u64,
                at,
            })
        })
}
