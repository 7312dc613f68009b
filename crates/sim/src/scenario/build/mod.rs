//! From tables to a network.

mod flow;
mod graph;
mod link;
mod preset;
mod sections;
mod topology;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::RunSettings;
use super::problem::{Problem, ProblemKind, Unfit};
use super::schema::{Context, Files};
use super::source::Place;
use super::tables::{MAX_FLOWS, MAX_LINKS, ScenarioFile, TraceFormat};
use crate::engine::{Misfit, misfit, standstill};
use crate::frames::{Frame, parse_frames};
use crate::metrics::Convergence;
use crate::network::Network;
use comity_link::{RateProfile, parse_mahimahi, parse_steps};
use graph::Graph;
pub(super) use link::duplex;
pub use preset::linux_parameters;

/// What may be kept of values over time in one run: bins times flows and links.
const MAX_SERIES: u64 = 100_000_000;

/// How large a scenario may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most runs, below what the scenario itself allows.
    pub runs: u64,
    /// The most flows of one run.
    pub flows: u32,
    /// The most links of one run that the topology itself asks for.
    pub links: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            runs: u64::MAX,
            flows: MAX_FLOWS,
            links: MAX_LINKS,
        }
    }
}

/// What a file of frames turned out to hold.
type FrameList = Result<Arc<[Frame]>, ProblemKind>;

/// The trace files and files of frames that were read so far: a sweep reads each once.
#[derive(Debug, Default)]
pub(super) struct Library {
    read: Mutex<BTreeMap<(String, TraceFormat), Result<RateProfile, ProblemKind>>>,
    frames: Mutex<BTreeMap<String, FrameList>>,
}

impl Library {
    fn trace(
        &self,
        files: &dyn Files,
        file: &str,
        format: TraceFormat,
    ) -> Result<RateProfile, ProblemKind> {
        let key = (file.to_owned(), format);
        // A thread that panicked while it held the lock left the map as it was before.
        let mut read = self
            .read
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        read.entry(key)
            .or_insert_with(|| read_trace(files, file, format))
            .clone()
    }

    fn frames(&self, files: &dyn Files, file: &str) -> Result<Arc<[Frame]>, ProblemKind> {
        let mut read = self
            .frames
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        read.entry(file.to_owned())
            .or_insert_with(|| {
                let text = read_file(files, file)?;
                parse_frames(&text)
                    .map(Into::into)
                    .map_err(|error| ProblemKind::Frames {
                        file: file.into(),
                        error,
                    })
            })
            .clone()
    }
}

fn read_file(files: &dyn Files, file: &str) -> Result<String, ProblemKind> {
    files
        .read(Path::new(file))
        .map_err(|error| ProblemKind::File {
            file: file.into(),
            reason: error.to_string(),
        })
}

fn read_trace(
    files: &dyn Files,
    file: &str,
    format: TraceFormat,
) -> Result<RateProfile, ProblemKind> {
    let text = read_file(files, file)?;
    let as_steps = match format {
        TraceFormat::Steps => true,
        TraceFormat::Mahimahi => false,
        TraceFormat::Guess => Path::new(file)
            .extension()
            .is_some_and(|extension| extension == "csv" || extension == "steps"),
    };
    let read = if as_steps {
        parse_steps(&text).map(RateProfile::Steps)
    } else {
        parse_mahimahi(&text).map(RateProfile::Deliveries)
    };
    read.map_err(|error| ProblemKind::Trace {
        file: file.into(),
        error,
    })
}

/// Reports a queue that is too small for the packets of a flow.
fn report_misfit(
    file: &ScenarioFile,
    network: &Network,
    misfit: Misfit,
    link_places: &BTreeMap<String, Option<Place>>,
    cx: &mut Context<'_>,
) {
    let (Some(link), Some(flow)) = (
        network.links.get(misfit.link),
        network.flows.get(misfit.flow),
    ) else {
        return;
    };
    let written = file.topology.written();
    let key = link.name.strip_suffix(".reverse").unwrap_or(&link.name);
    let key = if written.has(key) { key } else { "" };
    let place = link_places.get(&link.name).copied().flatten();
    let kind = ProblemKind::NoPacketFits {
        link: link.name.clone(),
        limit: misfit.limit,
        flow: flow.name.clone(),
        packet: misfit.packet,
    };
    cx.problems.push(Problem::new(
        place.or(written.place_of(key)),
        &written.path_of(key),
        kind,
    ));
}

/// The network that the tables describe, and what is asked of it; `None` only after a report.
pub(super) fn build(
    file: &ScenarioFile,
    library: &Library,
    limits: &Limits,
    cx: &mut Context<'_>,
) -> Option<(Network, RunSettings)> {
    debug_assert!(
        file.sweep.is_none(),
        "the axes are taken out before a point is read"
    );
    let reported = cx.problems.len();
    let scenario = &file.scenario;
    if scenario.warmup >= scenario.duration {
        cx.report_at(
            &scenario.written,
            "warmup",
            ProblemKind::Unfit {
                reason: Unfit::WarmupCoversRun,
            },
        );
    }
    let mut graph = Graph::default();
    let mut first_flows = Vec::with_capacity(file.flow.len());
    let core = topology::build(&file.topology, &mut graph, library, limits, cx);
    if let Some(core) = &core {
        for table in &file.flow {
            first_flows.push(graph.flows.len());
            flow::build(table, scenario, core, &mut graph, library, limits, cx);
        }
    }
    if let Some(bins) = scenario.bins {
        let things = (graph.flows.len() + graph.links.len()) as u64;
        let count = scenario.duration.as_nanos().div_ceil(bins.as_nanos());
        if count.saturating_mul(things) > MAX_SERIES {
            cx.report_at(
                &scenario.written,
                "bins",
                ProblemKind::Unfit {
                    reason: Unfit::BinsTooShort,
                },
            );
        }
    }
    if scenario.convergence.is_some() && scenario.bins.is_none() {
        cx.report_at(
            &scenario.written,
            "convergence",
            ProblemKind::Needs { other: "bins" },
        );
    }
    if cx.problems.len() > reported {
        return None;
    }
    let link_places = graph.link_places;
    let network = Network {
        nodes: graph.nodes,
        links: graph.links,
        flows: graph.flows,
        duration: scenario.duration,
        warmup: scenario.warmup,
    };
    if let Some(misfit) = misfit(&network) {
        report_misfit(file, &network, misfit, &link_places, cx);
        return None;
    }
    if let Some(flow) = standstill(&network) {
        let table = first_flows.partition_point(|&first| first <= flow) - 1;
        cx.report_at(
            &file.flow[table].written,
            "",
            ProblemKind::Unfit {
                reason: Unfit::Standstill,
            },
        );
        return None;
    }
    let settings = RunSettings {
        bins: scenario.bins,
        convergence: scenario.convergence.as_ref().map(|table| Convergence {
            tolerance: table.tolerance,
            hold: table.hold,
        }),
        backbone: core?.backbone,
    };
    Some((network, settings))
}
