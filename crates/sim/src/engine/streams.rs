//! The names of random streams: each entity has its own, whatever else the network has.

use comity_units::Seed;

/// The seed that everything of a flow is derived from.
pub fn flow_stream(seed: Seed, flow: &str) -> Seed {
    seed.derive("flow").derive(flow)
}

/// The seed that everything of a link is derived from.
pub fn link_stream(seed: Seed, link: &str) -> Seed {
    seed.derive("link").derive(link)
}
