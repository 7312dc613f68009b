//! The names of random streams. Each entity has its own, independent of the rest of the network.

use comity_units::Seed;

/// The seed of a flow, from which all its streams derive.
pub fn flow_stream(seed: Seed, flow: &str) -> Seed {
    seed.derive("flow").derive(flow)
}

/// The seed of a link, from which all its streams derive.
pub fn link_stream(seed: Seed, link: &str) -> Seed {
    seed.derive("link").derive(link)
}
