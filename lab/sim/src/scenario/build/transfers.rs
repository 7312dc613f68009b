//! From tables of files and traces to the sizes and starts of flows.

use comity_units::{DataSize, Span};

use super::super::problem::{ProblemKind, Unfit};
use super::super::schema::Context;
use super::super::tables::ScenarioTable;
use super::super::tables::flow::FlowTable;
use super::super::tables::transfers::{FileSize, FileTable, Side, SizesTable, TmixTable};
use super::library::Library;
use crate::network::Workload;
use crate::transfers::Sizes;

/// The workload of a file; `None` only after a report.
pub(super) fn file(table: &FileTable, library: &Library, cx: &mut Context<'_>) -> Option<Workload> {
    let sizes = match &table.size {
        FileSize::Fixed(size) => return Some(Workload::File(*size)),
        FileSize::Drawn(SizesTable::Pareto(table)) => {
            let max = table.max.unwrap_or(DataSize::MAX);
            let sizes = Sizes::pareto(table.mean, table.shape, max);
            if sizes.is_none() {
                cx.report_at(&table.written, "mean", Unfit::MeanBeyondMax.into());
            }
            sizes?
        }
        FileSize::Drawn(SizesTable::Empirical(table)) => {
            let sizes = library.sizes(cx.files, &table.file);
            sizes
                .map_err(|kind| cx.report_at(&table.written, "file", kind))
                .ok()?
        }
    };
    Some(Workload::RandomFile(sizes))
}

/// A transfer: how long after the start of its group it starts, and its bytes.
pub(super) type Transfer = (Span, DataSize);

/// The transfers of the flows of a group; `None` only after a report.
pub(super) fn of_trace(
    table: &TmixTable,
    flow: &FlowTable,
    scenario: &ScenarioTable,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<Vec<Transfer>> {
    if flow.start.arrivals.is_some() {
        let kind = ProblemKind::Excludes {
            other: "kind = \"tmix\"",
        };
        cx.report_at(&flow.start.written, "arrivals", kind);
    }
    let connections = match library.connections(cx.files, &table.file) {
        Ok(connections) => connections,
        Err(kind) => {
            cx.report_at(&table.written, "file", kind);
            return None;
        }
    };
    let end = flow.stop.unwrap_or(Span::MAX).min(scenario.duration);
    let rest = end.saturating_sub(flow.start.at);
    let mut transfers: Vec<Transfer> = connections
        .iter()
        .map(|connection| {
            let bytes = match table.sender {
                Side::Acceptor => connection.acceptor,
                Side::Initiator => connection.initiator,
            };
            let start = connection.start.as_secs_f64() * table.scale;
            (Span::from_secs_f64(start), bytes)
        })
        .filter(|(start, bytes)| *start < rest && *bytes > DataSize::ZERO)
        .collect();
    let found = transfers.len() as u64;
    let (needed, at, key) = if flow.written.has("count") {
        (u64::from(flow.count), &flow.written, "count")
    } else {
        (1, &table.written, "file")
    };
    if found < needed {
        cx.report_at(at, key, ProblemKind::FewConnections { found, needed });
        return None;
    }
    if flow.written.has("count") {
        transfers.truncate(flow.count as usize);
    }
    Some(transfers)
}
