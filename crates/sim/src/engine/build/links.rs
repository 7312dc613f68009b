//! Links from their descriptions.

use comity_link::{DelayProfile, Link, LinkConfig, RateProfile};
use comity_units::{Rate, Seed, Span};

use super::BuildError;
use crate::engine::host::link_stream;
use crate::engine::links::{LinkState, Watch};
use crate::network::Network;

pub(super) fn build_links(network: &Network, seed: Seed) -> Result<Vec<LinkState>, BuildError> {
    let build = |spec: &crate::network::LinkSpec| {
        let seed = link_stream(seed, &spec.name);
        let link = Link::new(&spec.config, seed).map_err(|error| BuildError::Link {
            name: spec.name.clone(),
            error,
        })?;
        let marks = spec.config.queue.marks();
        Ok(LinkState::new(link, spec.config.duplication > 0.0, marks))
    };
    network.links.iter().map(build).collect()
}

/// The propagation delay that routes are chosen by: the one at the start.
pub(in crate::engine) fn first_delay(config: &LinkConfig) -> Span {
    match &config.delay {
        DelayProfile::Constant(delay) => *delay,
        DelayProfile::Steps(steps) => steps.first().map_or(Span::ZERO, |&(_, delay)| delay),
    }
}

/// The mean rate of a link over the watched interval, for its utilisation.
pub(in crate::engine) fn mean_rate(config: &LinkConfig, watch: Watch) -> Option<Rate> {
    match &config.rate {
        RateProfile::Unlimited => None,
        RateProfile::Constant(rate) => Some(*rate),
        RateProfile::Deliveries(trace) => Some(trace.mean_rate()),
        RateProfile::Steps(steps) => {
            let mut bits = 0.0;
            for (at, &(from, rate)) in steps.iter().enumerate() {
                let to = steps
                    .get(at + 1)
                    .map_or(watch.end, |&(next, _)| next.min(watch.end));
                let share = to.saturating_since(from.max(watch.warmup)).as_secs_f64();
                bits += share * rate.as_bps() as f64;
            }
            let watched = watch.end.saturating_since(watch.warmup).as_secs_f64();
            Some(Rate::from_bps_f64(bits / watched))
        }
    }
}
