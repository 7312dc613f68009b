//! Flows in which time would never advance.
//!
//! A greedy source sends a packet for each ACK. If neither packets nor ACKs take any time, they
//! cause each other for ever at one instant.

use std::collections::BTreeMap;

use comity_link::{DelayProfile, Jitter, LinkConfig, RateProfile};
use comity_units::Span;

use super::route::Router;
use crate::network::{
    FlowError, FlowSpec, Headers, Network, NetworkError, TransportSpec, Workload,
};

/// Checks that time advances with every flow of the network.
///
/// It computes routes only if a link takes no time.
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

/// Whether packets and ACKs of a flow take no time on these links in both directions.
fn takes_no_time(network: &Network, flow: &FlowSpec, forward: &[u32], backward: &[u32]) -> bool {
    let config = |&link: &u32| network.links.get(link as usize).map(|link| &link.config);
    let for_nothing = acknowledges_for_nothing(flow);
    !forward.iter().filter_map(config).any(takes_time)
        && !backward
            .iter()
            .filter_map(config)
            .any(|link| delays(link) || !for_nothing && has_rate(link))
}

/// Whether ACKs alone limit the source.
fn never_ends(flow: &FlowSpec) -> bool {
    let is_clocked = matches!(
        flow.transport,
        TransportSpec::Tcp(_) | TransportSpec::Sections(_)
    );
    is_clocked && matches!(flow.workload, Workload::Greedy)
}

/// Whether ACKs have no size, so that no rate delays them.
fn acknowledges_for_nothing(flow: &FlowSpec) -> bool {
    match &flow.transport {
        TransportSpec::Tcp(tcp) => matches!(tcp.headers, Headers::Fixed { bytes: 0, .. }),
        TransportSpec::Sections(sections) => sections
            .acknowledgement
            .is_some_and(|bytes| bytes.get() == 0),
        TransportSpec::Datagram(_) | TransportSpec::Command(_) => false,
    }
}

/// Whether a packet with a size certainly arrives later than it is offered.
fn takes_time(link: &LinkConfig) -> bool {
    has_rate(link) || delays(link)
}

/// Any rate suffices: a transmission takes at least a nanosecond, and at rate zero it never ends.
fn has_rate(link: &LinkConfig) -> bool {
    !matches!(link.rate, RateProfile::Unlimited)
}

/// Whether the link has a delay at every time of the run. Jitter counts, because few draws are
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
        Jitter::HalfNormal { stddev, max, .. } => !(stddev.is_zero() || max.is_zero()),
        Jitter::Normal { mean, stddev, .. } => !(mean.is_zero() && stddev.is_zero()),
    };
    !least.is_zero() || has_jitter
}
