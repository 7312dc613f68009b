//! Links from their descriptions.

use comity_link::Link;
use comity_units::Seed;

use crate::engine::links::LinkState;
use crate::engine::streams::link_stream;
use crate::network::{Network, NetworkError};

pub(super) fn build_links(network: &Network, seed: Seed) -> Result<Vec<LinkState>, NetworkError> {
    let build = |spec: &crate::network::LinkSpec| {
        let seed = link_stream(seed, &spec.name);
        let link = Link::new(&spec.config, seed).map_err(|error| NetworkError::Link {
            name: spec.name.clone(),
            error,
        })?;
        let marks = spec.config.queue.marks();
        Ok(LinkState::new(link, spec.config.duplication > 0.0, marks))
    };
    network.links.iter().map(build).collect()
}
