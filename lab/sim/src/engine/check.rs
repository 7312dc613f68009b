//! Checks whether a network can run. Each rule is here, in a function called from here, or in the
//! constructor of a part.

use comity_link::{LinkConfig, Random};
use comity_units::{Rate, Seed, Span, Time};

use super::build::{datagram_source, section_ends, section_producer, tcp_ends, tcp_workload};
use super::consistency::{names, times};
use super::route::Router;
use super::{room, standstill};
use crate::custom::{CustomControllers, NoControllers};
use crate::network::{FlowError, FlowSpec, Network, NetworkError, TransportSpec};

impl Network {
    /// Checks that the simulator can run the network, or the lab if it has flows of programs.
    /// Knows no custom controllers.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn validate(&self) -> Result<(), NetworkError> {
        names(self)?;
        times(self)?;
        for link in &self.links {
            let invalid = |error| NetworkError::Link {
                name: link.name.clone(),
                error,
            };
            link.config.validate().map_err(invalid)?;
        }
        let mut router = Router::new(self);
        for spec in &self.flows {
            let (source, destination) = (spec.source, spec.destination);
            let check = |router: &mut Router<'_>| {
                let forward = router.route(source, destination)?;
                router.route(destination, source)?;
                let first = forward.first().map(|&link| &self.links[link as usize]);
                let faults = flow(spec, first.map(|link| &link.config), &NoControllers);
                faults.into_iter().next().map_or(Ok(()), Err)
            };
            check(&mut router).map_err(|error: FlowError| error.of(spec))?;
        }
        ways(self)
    }
}

/// The errors of a flow, whatever its path. Without `first_link`, any link is assumed.
pub(crate) fn flow(
    spec: &FlowSpec,
    first_link: Option<&LinkConfig>,
    custom: &dyn CustomControllers,
) -> Vec<FlowError> {
    let (start, seed) = (Time::ZERO, Seed::new(0));
    let random = Random::new(seed);
    let any = LinkConfig::new(Rate::from_bps(1), Span::ZERO);
    let first_link = Some(first_link.unwrap_or(&any));
    let parts = match &spec.transport {
        TransportSpec::Tcp(tcp) => [
            tcp_workload(spec, tcp, (first_link, Span::ZERO), start, random).map(drop),
            tcp_ends(tcp, &spec.reader, seed, custom, &mut Vec::new()).map(drop),
        ],
        TransportSpec::Datagram(datagram) => [
            datagram_source(spec, datagram, first_link, start, random).map(drop),
            Ok(()),
        ],
        TransportSpec::Sections(sections) => [
            section_producer(spec, sections.section, start, random).map(drop),
            section_ends(sections, seed, start, custom).map(drop),
        ],
        TransportSpec::Command(_) => [Ok(()), Ok(())],
    };
    parts.into_iter().filter_map(Result::err).collect()
}

/// Checks that every queue admits the packets on its paths, and that no path takes zero time.
pub(crate) fn ways(network: &Network) -> Result<(), NetworkError> {
    room::check(network)?;
    standstill::check(network)
}
