//! Flows that would never let time go on.
//!
//! A source that always has more sends upon an acknowledgement. Where neither its packets nor the
//! acknowledgements take any time, one calls for the other for ever at one instant.

use std::collections::BTreeMap;

use comity_link::{DelayProfile, Jitter, LinkConfig, RateProfile};
use comity_units::Span;

use super::route::Router;
use crate::network::{
    FlowError, FlowSpec, Headers, Network, NetworkError, TransportSpec, Workload,
};

/// Whether time goes on with every flow of the network.
///
/// Routes are looked for only where a link takes no time.
pub(super) fn check(network: &Network) -> Result<(), NetworkError> {
    if network.links.iter().all(|link| takes_time(&link.config)) {
        return Ok(());
    }
    let mut router = Router::new(network);
    let mut known = BTreeMap::new();
    for flow in &network.flows {
        let (from, to) = (flow.source, flow.destination);
        if !never_ends(flow) || from == to {
            continue;
        }
        let stands_still = *known
            .entry((from, to, acknowledges_for_nothing(flow)))
            .or_insert_with(|| {
                let ways = router.path(from, to).zip(router.path(to, from));
                ways.is_some_and(|(forward, back)| takes_no_time(network, flow, &forward, &back))
            });
        if stands_still {
            return Err(FlowError::Standstill.of(flow));
        }
    }
    Ok(())
}

/// Whether packets and acknowledgements of a flow take no time on these links there and back.
fn takes_no_time(network: &Network, flow: &FlowSpec, forward: &[u32], backward: &[u32]) -> bool {
    let config = |&link: &u32| network.links.get(link as usize).map(|link| &link.config);
    let for_nothing = acknowledges_for_nothing(flow);
    !forward.iter().filter_map(config).any(takes_time)
        && !backward
            .iter()
            .filter_map(config)
            .any(|link| delays(link) || !for_nothing && has_rate(link))
}

/// Whether acknowledgements alone decide how much a source sends.
fn never_ends(flow: &FlowSpec) -> bool {
    let is_clocked = matches!(
        flow.transport,
        TransportSpec::Tcp(_) | TransportSpec::Sections(_)
    );
    is_clocked && matches!(flow.workload, Workload::Greedy)
}

/// Whether acknowledgements have no size, so that no rate holds them up.
fn acknowledges_for_nothing(flow: &FlowSpec) -> bool {
    match &flow.transport {
        TransportSpec::Tcp(tcp) => matches!(tcp.headers, Headers::Fixed { bytes: 0, .. }),
        TransportSpec::Sections(sections) => sections
            .acknowledgement
            .is_some_and(|bytes| bytes.get() == 0),
        TransportSpec::Datagram(_) | TransportSpec::Command(_) => false,
    }
}

/// Whether a packet with a size is sure to come out of a link later than it went in.
fn takes_time(link: &LinkConfig) -> bool {
    has_rate(link) || delays(link)
}

/// Any rate will do: a transmission takes a nanosecond at least, and for ever at rate zero.
fn has_rate(link: &LinkConfig) -> bool {
    !matches!(link.rate, RateProfile::Unlimited)
}

/// Whether packets travel for some time at any moment of the run. Jitter counts, as few draws are
/// zero.
fn delays(link: &LinkConfig) -> bool {
    let least = match &link.delay {
        DelayProfile::Constant(delay) => *delay,
        DelayProfile::Steps(steps) => steps
            .iter()
            .map(|&(_, delay)| delay)
            .min()
            .unwrap_or(Span::ZERO),
    };
    let has_jitter = match link.jitter {
        Jitter::None => false,
        Jitter::Exponential { mean, .. } => !mean.is_zero(),
        Jitter::Uniform { max, .. } => !max.is_zero(),
        Jitter::Normal { mean, stddev, .. } => !(mean.is_zero() && stddev.is_zero()),
    };
    !least.is_zero() || has_jitter
}
