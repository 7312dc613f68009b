//! The ends of flows of sections, from their descriptions.

use comity_congestion::table::{Parameters, Setup};
use comity_transport::datagram;
use comity_transport::timeline::Elided;
use comity_units::{DataSize, Seed, Time};

use super::controller::halves;
use crate::custom::{CustomControllers, NoControllers};
use crate::network::{FlowError, SectionsSpec};

/// Two ends that begin at `started_at`: the source and the destination.
pub(in crate::engine) fn section_ends(
    sections: &SectionsSpec,
    seed: Seed,
    started_at: Time,
    custom: &dyn CustomControllers,
) -> Result<[datagram::Connection<Elided>; 2], FlowError> {
    if sections.section.get() > sections.config.send_buffer {
        return Err(FlowError::BufferBelowSection);
    }
    let setup = Setup {
        initial_window: sections.initial_window,
        seed: seed.derive("controller"),
        ..Setup::new(DataSize::new(u64::from(sections.config.payload)))
    };
    let (controller, meter) = halves(custom, &sections.controller, &setup, &sections.parameters)?;
    // No window limits the destination.
    let (silent, _) = halves(&NoControllers, "fixed", &setup, &Parameters::new())?;
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
