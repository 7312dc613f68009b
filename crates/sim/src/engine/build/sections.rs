//! The ends of flows of sections, from their descriptions.

use comity_congestion::table::{self, Setup};
use comity_transport::datagram;
use comity_transport::timeline::Elided;
use comity_units::{Bytes, Seed, Time};

use crate::network::{FlowError, SectionsSpec};

/// Two ends that begin at `started_at`: the source and the destination.
pub(in crate::engine) fn section_ends(
    sections: &SectionsSpec,
    seed: Seed,
    started_at: Time,
) -> Result<[datagram::Connection<Elided>; 2], FlowError> {
    if sections.section.get() > sections.config.send_buffer {
        return Err(FlowError::BufferBelowSection);
    }
    let row = table::find(&sections.controller).map_err(FlowError::Controller)?;
    let setup = Setup {
        initial_window: sections.initial_window,
        seed: seed.derive("controller"),
        ..Setup::new(Bytes::new(u64::from(sections.config.payload)))
    };
    let controller = row
        .build(&setup, &sections.parameters)
        .map_err(FlowError::Parameter)?;
    let meter = row
        .build_meter(&setup, &sections.parameters)
        .transpose()
        .map_err(FlowError::Parameter)?;
    // No window limits the destination.
    let silent = table::find("fixed").map_err(FlowError::Controller)?;
    let silent = silent
        .build(&setup, &table::Parameters::new())
        .map_err(FlowError::Parameter)?;
    let end = |name, controller, meter| {
        let config = datagram::Config {
            seed: seed.derive(name),
            expect_deadlines: sections.config.enforces_deadlines(),
            ..sections.config
        };
        datagram::Connection::new(config, config.ack_delay, controller, meter, started_at)
            .map_err(FlowError::Sections)
    };
    Ok([
        end("source", controller, None)?,
        end("sink", silent, meter)?,
    ])
}
