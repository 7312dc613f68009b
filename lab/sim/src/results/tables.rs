//! The tables and their columns.

use super::column::{Columns, Filled, Table, Values, Visitor};
use super::error::WriteError;
use super::flows_and_links::{NumberedRun, Row, Things};
use super::measures::{COUNTS, Measures, NUMBERS, SHARING, loss_ratio, mean_delay};
use super::set::{CompletedRun, ENGINE_VERSION, ScenarioInfo};
use super::variation::{Variation, variations};
use crate::report::FlowReport;

/// The runs, with values computed from the flows of each.
pub(super) struct Tables<'a> {
    scenario: &'a ScenarioInfo,
    things: Things<'a>,
    /// The measures of each run: of all flows, and of each group.
    measures: Vec<(Measures<'a>, Vec<Measures<'a>>)>,
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
            measures: runs
                .map(|run| &run.report)
                .map(|report| (Measures::of_run(report), Measures::of_groups(report)))
                .collect(),
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

    fn runs(&self) -> Table<'_, Row<'_, Measures<'_>>> {
        let first = Columns::new()
            .unsigned("run", |row: &Row<'_, Measures<'_>>| row.run.number)
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
                Values::Text(Box::new(|row: &Row<'_, Measures<'_>>| {
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
            .maybe_number("loss_ratio", |row| loss_ratio(row.run.report.flows.iter()))
            .maybe_number("mean_delay_s", |row| {
                mean_delay(row.run.report.flows.iter())
            })
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
                Values::Boolean(Box::new(|row: &Row<'_, Measures<'_>>| {
                    row.run.report.world.lateness().map(|late| late.is_trusted)
                })),
            )
            .unsigned("memory_bytes", |row| row.run.report.cost.memory_bytes);
        let rows = self.things.runs.iter().zip(&self.measures);
        let rows = rows.map(|(run, (of, _))| Row { run, index: 0, of });
        Table {
            name: "runs",
            columns,
            rows: Box::new(rows),
        }
    }

    fn groups(&self) -> Table<'_, Row<'_, Measures<'_>>> {
        let first = self
            .things
            .leading("group", |row: &Row<'_, Measures<'_>>| row.of.name);
        let columns = sharing(first, |row| row.of)
            .summary("completion", |row| row.of.completion)
            .maybe_unsigned("unfinished_flows", |row| row.of.unfinished);
        let columns = (0..).zip(COUNTS).fold(columns, |columns, (at, (name, _))| {
            columns.maybe_unsigned(name, move |row| value(&row.of.counts, at))
        });
        let columns = (0..)
            .zip(NUMBERS)
            .fold(columns, |columns, (at, (name, _))| {
                columns.maybe_number(*name, move |row| value(&row.of.numbers, at))
            });
        let rows = self.things.runs.iter().zip(&self.measures);
        let rows = rows.flat_map(|(run, (_, groups))| {
            (0..)
                .zip(groups)
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

/// Adds how flows share: totals, and the measures of [`SHARING`].
fn sharing<'a, R: 'a>(
    columns: Columns<'a, R>,
    of: impl Fn(&R) -> &'a Measures<'a> + Copy + 'a,
) -> Columns<'a, R> {
    let totals = columns
        .unsigned("flows", move |row| of(row).flows)
        .number("goodput_bps", move |row| of(row).goodput)
        .number("throughput_bps", move |row| of(row).throughput);
    (0..).zip(SHARING).fold(totals, |columns, (at, (name, _))| {
        columns.maybe_number(*name, move |row| value(&of(row).sharing, at))
    })
}

fn value<T: Copy>(values: &[Option<T>], at: usize) -> Option<T> {
    values.get(at).copied().flatten()
}

/// A count summed over the flows of a run.
fn total(row: &Row<'_, Measures<'_>>, field: fn(&FlowReport) -> u64) -> u64 {
    row.run.report.flows.iter().map(field).sum()
}
