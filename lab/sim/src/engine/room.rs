//! Queues that some packets can never enter.

use std::collections::BTreeSet;

use comity_link::{Limit, LinkConfig};
use comity_units::DataSize;

use super::route::Router;
use crate::network::{FlowSpec, Network, NetworkError, TransportSpec, Workload};

/// Checks that every queue has room for the packets on its paths: full packets towards the
/// destination, and plain ACKs in the reverse direction.
///
/// It computes routes only if a queue is smaller than the largest packet of all.
pub(super) fn check(network: &Network) -> Result<(), NetworkError> {
    let limits: Vec<Option<u64>> = network
        .links
        .iter()
        .map(|link| byte_limit(&link.config))
        .collect();
    let Some(least) = limits.iter().flatten().min() else {
        return Ok(());
    };
    if network.flows.iter().all(|flow| full_packet(flow) <= *least) {
        return Ok(());
    }
    let mut router = Router::new(network);
    let mut seen = BTreeSet::new();
    for spec in &network.flows {
        let (there, back) = (full_packet(spec), acknowledgement(spec));
        for (from, to, packet) in [
            (spec.source, spec.destination, there),
            (spec.destination, spec.source, back),
        ] {
            if packet <= *least || from == to || !seen.insert((from.0, to.0, packet)) {
                continue;
            }
            for link in router.path(from, to).into_iter().flatten() {
                let link = link as usize;
                let limit = limits.get(link).copied().flatten();
                if let Some(limit) = limit.filter(|&limit| limit < packet) {
                    return Err(NetworkError::NoPacketFits {
                        link: network.links[link].name.clone(),
                        limit: DataSize::new(limit),
                        flow: spec.name.clone(),
                        packet: DataSize::new(packet),
                    });
                }
            }
        }
    }
    Ok(())
}

fn byte_limit(config: &LinkConfig) -> Option<u64> {
    match config.queue.limit() {
        Limit::Bytes(bytes) => Some(bytes.get()),
        Limit::Packets(_) | Limit::Unlimited => None,
    }
}

/// The size on the wire of the largest packet that a source is certain to send, unless it stops
/// before.
fn full_packet(flow: &FlowSpec) -> u64 {
    match &flow.transport {
        TransportSpec::Datagram(datagram) => datagram.wire.get(),
        // The packets of programs are unknown.
        TransportSpec::Command(_) => 0,
        TransportSpec::Sections(sections) => {
            let piece = sections.section.get().min(sections.config.payload.into());
            piece + u64::from(sections.config.overhead)
        }
        TransportSpec::Tcp(tcp) => {
            let payload = match &flow.workload {
                Workload::File(size) => size.get().min(tcp.config.mss.into()),
                Workload::RandomFile(sizes) => sizes.min().get().min(tcp.config.mss.into()),
                _ => tcp.config.mss.into(),
            };
            payload + u64::from(tcp.data_headers())
        }
    }
}

/// The size of a segment without payload, SACK blocks and a level; zero without a reverse
/// direction.
fn acknowledgement(flow: &FlowSpec) -> u64 {
    match &flow.transport {
        TransportSpec::Datagram(_) | TransportSpec::Command(_) => 0,
        // The fields of a departure and of an ACK of one range, with the smallest numbers.
        TransportSpec::Sections(sections) => sections
            .acknowledgement
            .map_or(u64::from(sections.config.overhead) + 13, DataSize::get),
        TransportSpec::Tcp(tcp) => {
            let headers = tcp.headers.of_data(tcp.config.timestamps, false, false);
            headers.into()
        }
    }
}
