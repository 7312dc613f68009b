//! The names of random streams. Each entity has its own, independent of the rest of the network.

use comity_link::LinkSeed;
use comity_units::Seed;

/// The seed of a flow, from which all its streams derive.
pub fn flow_stream(seed: Seed, flow: &str) -> Seed {
    seed.derive("flow").derive(flow)
}

/// The seeds of a link, from which all its streams derive. Its reverse direction, whose name ends
/// in `.reverse`, has the link's seed as the shared one.
pub fn link_stream(seed: Seed, link: &str) -> LinkSeed {
    let links = seed.derive("link");
    LinkSeed {
        own: links.derive(link),
        pair: links.derive(link.trim_end_matches(".reverse")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_and_its_reverse_direction_share_a_seed() {
        let run = Seed::new(3);
        let of = |link| link_stream(run, link);
        assert_eq!(of("a").pair, of("a").own);
        assert_eq!(of("a.reverse").pair, of("a").own);
        assert_ne!(of("a.reverse").own, of("a").own);
        assert_ne!(of("b").pair, of("a").pair);
        // The name of a link may end in `.reverse`.
        assert_eq!(of("a.reverse.reverse").pair, of("a.reverse").pair);
    }
}
