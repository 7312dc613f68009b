//! The tables of flows, links and their bins.

use std::borrow::Cow;

use comity_frames::FrameType;
use comity_units::{Seed, Span, Time};

use super::column::{AXIS, Columns, Table, Values, Visitor};
use super::error::WriteError;
use super::set::{AxisValue, CompletedRun};
use crate::histogram::{self, Distribution};
use crate::packets::{PacketRecord, SectionRecord};
use crate::report::{
    FlowReport, FlowSeries, LinkReport, LinkSeries, PlaybackReport, RunReport, SectionsReport,
    TimelineReport,
};

/// Runs with the axes of their sweep.
pub(super) struct Things<'a> {
    axes: Vec<Axis<'a>>,
    pub(super) runs: Vec<NumberedRun<'a>>,
}

/// A run with its number.
pub(super) struct NumberedRun<'a> {
    pub(super) number: u64,
    axes: &'a [(String, AxisValue)],
    pub(super) seed: Seed,
    pub(super) scenario_hash: u64,
    pub(super) report: &'a RunReport,
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

/// One object of one run, such as a flow or a link.
pub(super) struct Row<'a, T> {
    pub(super) run: &'a NumberedRun<'a>,
    pub(super) index: u64,
    pub(super) of: &'a T,
}

/// One bin of one flow or link.
pub(super) struct Bin<'a, T> {
    run: &'a NumberedRun<'a>,
    index: u64,
    name: &'a str,
    of: &'a T,
    start: Span,
    at: usize,
}

/// One bin of the distribution of a flow or link.
pub(super) struct HistogramBin<'a> {
    run: &'a NumberedRun<'a>,
    index: u64,
    name: &'a str,
    bin: histogram::Bin,
    /// The share of all values up to the end of this bin.
    cumulative_share: f64,
}

impl<T> Bin<'_, T> {
    /// The value of this bin in a column of the series.
    fn value<N: Copy + Into<u64>>(&self, column: &[N]) -> Option<u64> {
        column.get(self.at).copied().map(Into::into)
    }
}

impl<'a> Things<'a> {
    /// These runs with their numbers.
    ///
    /// # Errors
    /// [`WriteError::RepeatedAxis`] when a run has two values for one axis.
    pub(super) fn new(
        runs: impl Iterator<Item = &'a CompletedRun> + Clone,
    ) -> Result<Self, WriteError> {
        let numbered = |run: &'a CompletedRun| NumberedRun {
            number: run.number as u64,
            axes: &run.axes,
            seed: run.seed,
            scenario_hash: run.scenario_hash,
            report: &run.report,
        };
        Ok(Self {
            axes: axes(runs.clone())?,
            runs: runs.map(numbered).collect(),
        })
    }

    /// Whether some run has values over time.
    pub(super) fn has_series(&self) -> bool {
        self.runs.iter().any(|run| run.report.series.is_some())
    }

    /// Shows every table to the visitor, and those of series only if some run has series.
    pub(super) fn each<V: Visitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.table(|| self.flows())?;
        visitor.table(|| self.links())?;
        if self.has_series() {
            visitor.table(|| self.flow_series())?;
            visitor.table(|| self.link_series())?;
        }
        visitor.table(|| self.delay_histogram())?;
        visitor.table(|| self.queueing_delay_histogram())?;
        let mut logs = self
            .runs
            .iter()
            .filter_map(|run| run.report.packets.as_ref());
        if logs.clone().next().is_some() {
            visitor.table(|| self.packets())?;
        }
        if logs.any(|log| !log.sections.is_empty()) {
            visitor.table(|| self.sections())?;
        }
        Ok(())
    }

    fn flows(&self) -> Table<'_, Row<'_, FlowReport>> {
        let columns = self
            .leading("flow", |row: &Row<'_, FlowReport>| row.of.name.as_str())
            .text("group", |row| row.of.group.as_str().into())
            .text("kind", |row| row.of.kind.as_str().into())
            .maybe_number("base_rtt_s", |row| row.of.base_rtt.map(Span::as_secs_f64))
            .unsigned("started_ns", |row| row.of.started.as_nanos())
            .maybe_unsigned("finished_ns", |row| row.of.finished.map(Time::as_nanos))
            .maybe_unsigned("size_bytes", |row| row.of.size_bytes)
            .maybe_number("completion_s", |row| {
                row.of.completion_time().map(Span::as_secs_f64)
            })
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
                row.of.dropped_packets.saturating_sub(row.of.dropped_acks)
            })
            .unsigned("dropped_acks", |row| row.of.dropped_acks)
            .unsigned("in_flight_at_end_packets", |row| row.of.in_flight_at_end)
            .unsigned("duplicated_packets", |row| row.of.duplicated_packets)
            .unsigned("acks", |row| row.of.acks)
            .summary("delay", |row| row.of.delay)
            .summary("arrival_spacing", |row| row.of.arrival_spacing)
            .maybe_number("srtt_s", |row| row.of.srtt_s)
            .maybe_number("mean_rtt_s", |row| row.of.mean_rtt_s)
            .maybe_number("min_rtt_s", |row| row.of.min_rtt_s)
            .maybe_unsigned("cwnd_bytes", |row| row.of.cwnd_bytes.filter(is_limited))
            .maybe_number("mean_cwnd_bytes", |row| row.of.mean_cwnd_bytes)
            .maybe_unsigned("ssthresh_bytes", |row| {
                row.of.ssthresh_bytes.filter(is_limited)
            })
            .maybe_unsigned("capacity_bps", |row| row.of.capacity_bps)
            .maybe_unsigned("reads", playback(|of| of.reads))
            .maybe_unsigned("reads_satisfied", playback(|of| of.satisfied))
            .maybe_number("startup_delay_s", |row| row.of.playback?.startup_delay_s)
            .maybe_unsigned("stalls", playback(|of| of.stalls))
            .maybe_number("stalled_s", |row| Some(row.of.playback?.stalled_s))
            .maybe_number("longest_stall_s", |row| {
                Some(row.of.playback?.longest_stall_s)
            })
            .count_of_some("tokens_used_bytes", |row| row.of.tokens_used_bytes)
            .maybe_number("tokens_per_rtt_bytes", |row| row.of.tokens_per_rtt_bytes)
            .maybe_number("tokens_per_rtt_stddev_bytes", |row| {
                row.of.tokens_per_rtt_stddev_bytes
            });
        let columns = timeline(sections(columns));
        let rows = self.runs.iter().flat_map(|run| {
            (0..)
                .zip(&run.report.flows)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: "flows",
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
                    dropped_acks,
                    ..
                } = row.of;
                (dropped_full + dropped_early + lost).saturating_sub(*dropped_acks)
            })
            .unsigned("dropped_acks", |row| row.of.dropped_acks)
            .unsigned("marked_packets", |row| row.of.marked)
            .unsigned("duplicated_packets", |row| row.of.duplicated)
            .unsigned("queued_at_end_packets", |row| row.of.queued_at_end)
            .unsigned("in_flight_at_end_packets", |row| row.of.in_flight_at_end)
            .unsigned("carried_bytes", |row| row.of.carried_bytes)
            .maybe_number("utilisation", |row| row.of.utilisation)
            .number("mean_queue_packets", |row| row.of.mean_queue_packets)
            .summary("queueing_delay", |row| row.of.queueing_delay);
        let rows = self.runs.iter().flat_map(|run| {
            (0..)
                .zip(&run.report.links)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: "links",
            columns,
            rows: Box::new(rows),
        }
    }

    fn flow_series(&self) -> Table<'_, Bin<'_, FlowSeries>> {
        let columns = self
            .bin_columns("flow")
            .maybe_unsigned("delivered_bytes", |bin: &Bin<'_, FlowSeries>| {
                bin.value(&bin.of.delivered_bytes)
            })
            .maybe_unsigned("sent_packets", |bin| bin.value(&bin.of.sent_packets))
            .maybe_unsigned("sent_wire_bytes", |bin| bin.value(&bin.of.sent_wire_bytes))
            .maybe_unsigned("retransmitted_packets", |bin| {
                bin.value(&bin.of.retransmitted_packets)
            })
            .maybe_unsigned("cwnd_bytes", |bin| {
                bin.value(&bin.of.cwnd_bytes).filter(is_limited)
            })
            .maybe_unsigned("ssthresh_bytes", |bin| {
                bin.value(&bin.of.ssthresh_bytes).filter(is_limited)
            })
            .maybe_unsigned("srtt_ns", |bin| bin.value(&bin.of.srtt_ns));
        let length = |of: &FlowSeries| {
            [
                of.delivered_bytes.len(),
                of.sent_packets.len(),
                of.sent_wire_bytes.len(),
                of.retransmitted_packets.len(),
                of.cwnd_bytes.len(),
                of.ssthresh_bytes.len(),
                of.srtt_ns.len(),
            ]
            .into_iter()
            .fold(0, usize::max)
        };
        let rows = self.runs.iter().flat_map(move |run| {
            let report = run.report;
            report.series.iter().flat_map(move |series| {
                let names = report.flows.iter().map(|flow| flow.name.as_str());
                bins(run, series.bin, &series.flows, names, length)
            })
        });
        Table {
            name: "flow_series",
            columns,
            rows: Box::new(rows),
        }
    }

    fn link_series(&self) -> Table<'_, Bin<'_, LinkSeries>> {
        let columns = self
            .bin_columns("link")
            .maybe_unsigned("carried_bytes", |bin: &Bin<'_, LinkSeries>| {
                bin.value(&bin.of.carried_bytes)
            })
            .maybe_unsigned("dropped_packets", |bin| bin.value(&bin.of.dropped_packets))
            .maybe_unsigned("max_queue_packets", |bin| {
                bin.value(&bin.of.max_queue_packets)
            })
            .maybe_unsigned("max_queueing_delay_ns", |bin| {
                bin.value(&bin.of.max_queueing_delay_ns)
            });
        let length = |of: &LinkSeries| {
            [
                of.carried_bytes.len(),
                of.dropped_packets.len(),
                of.max_queue_packets.len(),
                of.max_queueing_delay_ns.len(),
            ]
            .into_iter()
            .fold(0, usize::max)
        };
        let rows = self.runs.iter().flat_map(move |run| {
            let report = run.report;
            report.series.iter().flat_map(move |series| {
                let names = report.links.iter().map(|link| link.name.as_str());
                bins(run, series.bin, &series.links, names, length)
            })
        });
        Table {
            name: "link_series",
            columns,
            rows: Box::new(rows),
        }
    }

    /// The first columns of a table of objects of a run. `name` is the column of the object's name.
    pub(super) fn leading<'s, T: 's>(
        &'s self,
        name: &'static str,
        read: impl Fn(&Row<'s, T>) -> &'s str + 's,
    ) -> Columns<'s, Row<'s, T>> {
        self.of_run(|row: &Row<'s, T>| row.run)
            .unsigned("index", |row| row.index)
            .text(name, move |row| Cow::Borrowed(read(row)))
    }

    /// The first columns of a bin; `name` is the column of its flow or link.
    fn bin_columns<'s, T: 's>(&'s self, name: &'static str) -> Columns<'s, Bin<'s, T>> {
        self.of_run(|bin: &Bin<'s, T>| bin.run)
            .unsigned("index", |bin| bin.index)
            .text(name, |bin| bin.name.into())
            .unsigned("bin_start_ns", |bin| bin.start.as_nanos())
    }

    fn delay_histogram(&self) -> Table<'_, HistogramBin<'_>> {
        let rows = self.runs.iter().flat_map(|run| {
            (0..).zip(&run.report.flows).flat_map(move |(index, flow)| {
                histogram_bins(run, index, &flow.name, &flow.delay_distribution)
            })
        });
        Table {
            name: "delay_histogram",
            columns: self.histogram_columns("flow"),
            rows: Box::new(rows),
        }
    }

    fn queueing_delay_histogram(&self) -> Table<'_, HistogramBin<'_>> {
        let rows = self.runs.iter().flat_map(|run| {
            (0..).zip(&run.report.links).flat_map(move |(index, link)| {
                histogram_bins(run, index, &link.name, &link.queueing_delay_distribution)
            })
        });
        Table {
            name: "queueing_delay_histogram",
            columns: self.histogram_columns("link"),
            rows: Box::new(rows),
        }
    }

    fn histogram_columns<'s>(&'s self, name: &'static str) -> Columns<'s, HistogramBin<'s>> {
        self.of_run(|row: &HistogramBin<'s>| row.run)
            .unsigned("index", |row| row.index)
            .text(name, |row| row.name.into())
            .number("from_s", |row| row.bin.from.as_secs_f64())
            .number("to_s", |row| row.bin.to.as_secs_f64())
            .unsigned("count", |row| row.bin.count)
            .number("cumulative_share", |row| row.cumulative_share)
    }

    fn packets(&self) -> Table<'_, Row<'_, PacketRecord>> {
        let columns = self
            .of_run(|row: &Row<'_, PacketRecord>| row.run)
            .unsigned("index", |row| row.index)
            .text("link", |row| link_name(row).into())
            .text("flow", |row| flow_name(row).into())
            .text("direction", |row| {
                let is_return = row.of.is_return;
                if is_return { "reverse" } else { "forward" }.into()
            })
            .unsigned("offered_ns", |row| row.of.offered.as_nanos())
            .maybe_unsigned("departure_ns", |row| row.of.departure.map(Time::as_nanos))
            .maybe_unsigned("arrival_ns", |row| row.of.arrival.map(Time::as_nanos))
            .text("fate", |row| row.of.fate.into())
            .unsigned("wire_bytes", |row| row.of.wire_bytes.into())
            .unsigned("sequence", |row| row.of.sequence)
            .maybe_unsigned("payload_bytes", |row| row.of.payload_bytes.map(Into::into))
            .maybe_unsigned("acknowledgement", |row| row.of.acknowledgement)
            .maybe(
                "is_retransmission".into(),
                Values::Boolean(Box::new(|row: &Row<'_, PacketRecord>| {
                    row.of.is_retransmission
                })),
            );
        let rows = self.runs.iter().flat_map(|run| {
            let log = run.report.packets.iter();
            let records = log.flat_map(|log| &log.records);
            (0..)
                .zip(records)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: "packets",
            columns,
            rows: Box::new(rows),
        }
    }

    fn sections(&self) -> Table<'_, Row<'_, SectionRecord>> {
        let columns = self
            .of_run(|row: &Row<'_, SectionRecord>| row.run)
            .unsigned("index", |row| row.index)
            .text("flow", |row| {
                let flows = &row.run.report.flows;
                let flow = flows.get(row.of.flow as usize);
                flow.map_or("", |flow| &flow.name).into()
            })
            .text("frame", |row| frame_name(row.of.frame_type).into())
            .unsigned("section_bytes", |row| row.of.bytes)
            .text("outcome", |row| outcome(row.of).into())
            .unsigned("settled_ns", |row| row.of.settled.as_nanos())
            .maybe_unsigned("deadline_ns", |row| {
                let deadline = row.of.deadline;
                (!deadline.is_never()).then(|| deadline.as_nanos())
            })
            .maybe_unsigned("completed_ns", |row| row.of.completed.map(Time::as_nanos))
            .maybe_number("slack_s", |row| {
                let SectionRecord {
                    deadline,
                    completed,
                    ..
                } = *row.of;
                let completed = completed.filter(|_| !deadline.is_never())?;
                let left = deadline.saturating_since(completed).as_secs_f64();
                Some(left - completed.saturating_since(deadline).as_secs_f64())
            });
        let rows = self.runs.iter().flat_map(|run| {
            let log = run.report.packets.iter();
            let records = log.flat_map(|log| &log.sections);
            (0..)
                .zip(records)
                .map(move |(index, of)| Row { run, index, of })
        });
        Table {
            name: "sections",
            columns,
            rows: Box::new(rows),
        }
    }

    /// The first columns of every table.
    pub(super) fn of_run<'s, R: 's>(
        &'s self,
        run: fn(&R) -> &'s NumberedRun<'s>,
    ) -> Columns<'s, R> {
        let first = Columns::new().unsigned("run", move |row: &R| run(row).number);
        self.with_axes(first, run)
            .unsigned("seed", move |row| run(row).seed.get())
    }

    /// Adds a column for each axis.
    pub(super) fn with_axes<'s, R: 's>(
        &'s self,
        columns: Columns<'s, R>,
        run: fn(&R) -> &'s NumberedRun<'s>,
    ) -> Columns<'s, R> {
        self.axes
            .iter()
            .fold(columns, move |columns, &Axis { name, kind }| {
                let value = move |row: &R| {
                    let mut axes = run(row).axes.iter();
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

/// The axes, in the order of their first use in the runs.
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

/// Adds the fates of the sections of a flow; empty for other flows.
fn sections<'a>(columns: Columns<'a, Row<'a, FlowReport>>) -> Columns<'a, Row<'a, FlowReport>> {
    type Count = fn(&SectionsReport) -> u64;
    const COUNTS: [(&str, Count); 37] = [
        ("sections_submitted", |of| of.submitted),
        ("sections_refused", |of| of.refused),
        ("sections_shed", |of| of.shed),
        ("sections_on_time", |of| of.on_time),
        ("sections_late", |of| of.late),
        ("sections_open", |of| of.open),
        ("sections_decodable", |of| of.decodable),
        ("sections_submitted_bytes", |of| of.bytes.submitted),
        ("sections_refused_bytes", |of| of.bytes.refused),
        ("sections_shed_bytes", |of| of.bytes.shed),
        ("sections_on_time_bytes", |of| of.bytes.on_time),
        ("sections_decodable_bytes", |of| of.bytes.decodable),
        ("sections_open_bytes", |of| of.bytes.open),
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
        ("retransmitted_bytes", |of| of.retransmitted_bytes),
        ("lost_packets", |of| of.lost_packets),
        ("spurious_loss_packets", |of| of.spurious_losses),
        ("marked_packets", |of| of.marked_packets),
    ];
    let counts = COUNTS.iter().fold(columns, |columns, &(name, count)| {
        columns.maybe_unsigned(name, move |row| row.of.sections.as_ref().map(count))
    });
    let of = |row: &Row<'a, FlowReport>| row.of.sections.as_ref();
    counts
        .maybe_unsigned("equal_share_bytes", move |row| of(row)?.equal_share_bytes)
        .maybe_number("target_bitrate_bps", move |row| of(row)?.target_bitrate_bps)
        .maybe_number("section_age_mean_s", move |row| {
            let age = of(row)?.age;
            (age.count > 0).then_some(age.mean)
        })
        .maybe_number("slack_p1_s", move |row| of(row)?.slack_p1_s)
        .maybe_number("slack_p50_s", move |row| of(row)?.slack_median_s)
        .maybe_unsigned("closed_ns", move |row| of(row)?.closed.map(Time::as_nanos))
}

/// Reads a count of the playback of a flow.
fn playback(of: fn(&PlaybackReport) -> u64) -> impl Fn(&Row<'_, FlowReport>) -> Option<u64> {
    move |row| row.of.playback.as_ref().map(of)
}

/// Adds the fates of the sections of time-lined TCP; empty for other flows.
fn timeline<'a>(columns: Columns<'a, Row<'a, FlowReport>>) -> Columns<'a, Row<'a, FlowReport>> {
    type Count = fn(&TimelineReport) -> u64;
    const COUNTS: [(&str, Count); 21] = [
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
        ("timeline_interruptions", |of| of.interruptions),
        ("timeline_longest_interruption", |of| {
            of.longest_interruption
        }),
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

/// Whether a window or threshold has a limit; the largest number stands for none.
fn is_limited(bytes: &u64) -> bool {
    *bytes < u64::MAX
}

const fn frame_name(frame: FrameType) -> &'static str {
    match frame {
        FrameType::Key => "key",
        FrameType::Intra => "intra",
        FrameType::Predicted { .. } => "predicted",
        FrameType::Bidirectional { .. } => "bidirectional",
        _ => "other",
    }
}

fn outcome(section: &SectionRecord) -> &'static str {
    match section.completed {
        None => "gap",
        Some(completed) if completed <= section.deadline => "on_time",
        Some(_) => "late",
    }
}

fn link_name<'a>(row: &Row<'a, PacketRecord>) -> &'a str {
    let links = &row.run.report.links;
    links
        .get(row.of.link as usize)
        .map_or("", |link| &link.name)
}

fn flow_name<'a>(row: &Row<'a, PacketRecord>) -> &'a str {
    let flows = &row.run.report.flows;
    flows
        .get(row.of.flow as usize)
        .map_or("", |flow| &flow.name)
}

/// The bins of one distribution.
fn histogram_bins<'a>(
    run: &'a NumberedRun<'a>,
    index: u64,
    name: &'a str,
    of: &'a Distribution,
) -> impl Iterator<Item = HistogramBin<'a>> {
    let total = of.count();
    let mut seen = 0;
    of.bins().map(move |bin| {
        seen += bin.count;
        HistogramBin {
            run,
            index,
            name,
            bin,
            cumulative_share: seen as f64 / total as f64,
        }
    })
}

/// The bins of several objects, one object after another.
fn bins<'a, T: 'a>(
    run: &'a NumberedRun<'a>,
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
