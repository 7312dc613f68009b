//! Flows of sections from their descriptions.

use std::sync::Arc;

use comity_congestion::table::{self, Setup};
use comity_link::Random;
use comity_transport::datagram;
use comity_units::{Bytes, Seed, Time};

use super::BuildError;
use super::flow::calendar;
use crate::engine::producer::Producer;
use crate::engine::sections::SectionFlow;
use crate::frames::{Encoder, LARGEST_FRAME};
use crate::network::{CbrSpacing, FlowSpec, SectionsSpec, Workload};

/// Two ends that begin at `started_at`.
pub(super) fn build_sections(
    spec: &FlowSpec,
    sections: &SectionsSpec,
    producer: Producer,
    seed: Seed,
    (started_at, warmup): (Time, Time),
) -> Result<SectionFlow, BuildError> {
    let flow = || spec.name.clone();
    let unknown = |error| BuildError::Controller {
        flow: flow(),
        error,
    };
    let refused = |error| BuildError::Parameter {
        flow: flow(),
        error,
    };
    let row = table::find(&sections.controller).map_err(unknown)?;
    let setup = Setup {
        initial_window: sections.initial_window,
        seed: seed.derive("controller"),
        ..Setup::new(Bytes::new(u64::from(sections.config.payload)))
    };
    let controller = row.build(&setup, &sections.parameters).map_err(refused)?;
    let meter = row
        .build_meter(&setup, &sections.parameters)
        .transpose()
        .map_err(refused)?;
    // The destination sends nothing that a window would hold back.
    let silent = table::find("fixed").map_err(unknown)?;
    let silent = silent
        .build(&setup, &table::Parameters::new())
        .map_err(refused)?;
    let end = |name, controller, meter| {
        let config = datagram::Config {
            seed: seed.derive(name),
            expect_deadlines: sections.config.enforces_deadlines(),
            ..sections.config
        };
        datagram::Connection::new(config, config.ack_delay, controller, meter, started_at).map_err(
            |error| BuildError::Sections {
                flow: flow(),
                error,
            },
        )
    };
    let source = end("source", controller, None)?;
    let sink = end("sink", silent, meter)?;
    Ok(SectionFlow::new(source, sink, producer, sections, warmup))
}

pub(in crate::engine) fn section_producer(
    spec: &FlowSpec,
    section: Bytes,
    start: Time,
    random: Random,
) -> Result<Producer, BuildError> {
    let fail = |reason| BuildError::Flow {
        flow: spec.name.clone(),
        reason,
    };
    let bytes = u32::try_from(section.get())
        .ok()
        .filter(|bytes| (1..=LARGEST_FRAME).contains(bytes))
        .ok_or_else(|| fail("its sections are empty or larger than 16 MiB"))?;
    match &spec.workload {
        Workload::Greedy => Ok(Producer::Greedy(bytes)),
        Workload::Video(video) => match video.fault() {
            Some(fault) => Err(fail(fault)),
            None => Ok(Producer::Encoder(Encoder::new(*video, start, random))),
        },
        Workload::Frames(frames) => Ok(Producer::List {
            frames: Arc::clone(frames),
            next: 0,
            start,
        }),
        Workload::Cbr {
            spacing: CbrSpacing::Gap(_),
            ..
        }
        | Workload::File(_)
        | Workload::TokenBucket { .. } => Err(fail(
            "sections have no such source; expected the workload greedy, cbr with a rate or an \
             interval, on_off, poisson, video or frames",
        )),
        Workload::Cbr { .. } | Workload::OnOff { .. } | Workload::Poisson { .. } => {
            calendar(spec, u64::from(bytes), None, start, random)
                .map(|schedule| Producer::Schedule(schedule, bytes))
        }
    }
}
