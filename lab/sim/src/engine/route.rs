//! Static shortest paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use comity_units::Span;

use crate::network::{FlowError, FlowSpec, Network, NodeId};

impl Network {
    /// The base round-trip time of each flow: the propagation delays of the links of its path and
    /// of the reverse path, at the start of the run. Transmission, queues and jitter add to it.
    /// `None` if there is no path.
    pub fn base_rtts(&self) -> Vec<Option<Span>> {
        let mut router = Router::new(self);
        let mut base_rtt = |flow: &FlowSpec| {
            let forward = router.path(flow.source, flow.destination)?;
            let back = router.path(flow.destination, flow.source)?;
            let links = forward.iter().chain(&back);
            let delays = links.filter_map(|link| router.delays.get(*link as usize));
            Some(delays.fold(Span::ZERO, |sum, delay| sum + *delay))
        };
        self.flows.iter().map(&mut base_rtt).collect()
    }
}

/// Finds paths of minimum propagation delay. Of equal paths it prefers fewer links, then links
/// named earlier.
///
/// A node with one outgoing link has no choice. So the search starts at the first node with a
/// choice, and its result holds for all leaves at that node.
#[derive(Debug)]
pub(super) struct Router<'a> {
    network: &'a Network,
    delays: Vec<Span>,
    outgoing: Vec<Vec<u32>>,
    /// For each start of a search, the last link of the path to each node.
    trees: Vec<Option<Vec<u32>>>,
}

const NO_LINK: u32 = u32::MAX;

impl<'a> Router<'a> {
    pub(super) fn new(network: &'a Network) -> Self {
        // A changing delay does not change the routes.
        let delays = network
            .links
            .iter()
            .map(|link| link.config.delay.at_start());
        let mut outgoing = vec![Vec::new(); network.nodes.len()];
        for (index, link) in network.links.iter().enumerate() {
            if let Some(links) = outgoing.get_mut(link.from.0 as usize) {
                links.push(index as u32);
            }
        }
        Self {
            network,
            delays: delays.collect(),
            outgoing,
            trees: vec![None; network.nodes.len()],
        }
    }

    /// The links from one end of a flow to the other.
    pub(super) fn route(&mut self, from: NodeId, to: NodeId) -> Result<Vec<u32>, FlowError> {
        let network = self.network;
        let name = |node: NodeId| network.nodes[node.0 as usize].clone();
        if from == to {
            return Err(FlowError::ToItself { node: name(from) });
        }
        let unreachable = || FlowError::Unreachable {
            from: name(from),
            to: name(to),
        };
        self.path(from, to).ok_or_else(unreachable)
    }

    /// The links from `source` to `destination`, or `None` without a path.
    pub(super) fn path(&mut self, source: NodeId, destination: NodeId) -> Option<Vec<u32>> {
        let mut path = Vec::new();
        let mut at = source;
        // A chain of single outgoing links that is longer than the network is a cycle.
        while at != destination && path.len() <= self.network.nodes.len() {
            let [only] = self.outgoing.get(at.0 as usize)?.as_slice() else {
                break;
            };
            path.push(*only);
            at = self.network.links[*only as usize].to;
        }
        if at == destination {
            return Some(path);
        }
        if path.len() > self.network.nodes.len() {
            return None;
        }
        if self.trees[at.0 as usize].is_none() {
            self.trees[at.0 as usize] = Some(self.search(at));
        }
        let tree = self.trees[at.0 as usize].as_ref()?;
        let mut tail = Vec::new();
        let mut back = destination;
        while back != at {
            let link = *tree.get(back.0 as usize)?;
            if link == NO_LINK {
                return None;
            }
            tail.push(link);
            back = self.network.links[link as usize].from;
        }
        path.extend(tail.into_iter().rev());
        Some(path)
    }

    /// Dijkstra's algorithm from `source`.
    fn search(&self, source: NodeId) -> Vec<u32> {
        let nodes = self.network.nodes.len();
        let mut best = vec![(u64::MAX, u32::MAX); nodes];
        let mut reached_by = vec![NO_LINK; nodes];
        let mut queue = BinaryHeap::new();
        best[source.0 as usize] = (0, 0);
        queue.push(Reverse((0u64, 0u32, source.0)));
        while let Some(Reverse((delay, hops, node))) = queue.pop() {
            if best[node as usize] < (delay, hops) {
                continue;
            }
            for &link in &self.outgoing[node as usize] {
                let to = self.network.links[link as usize].to.0 as usize;
                let candidate = (
                    delay.saturating_add(self.delays[link as usize].as_nanos()),
                    hops + 1,
                );
                let is_earlier_tie = candidate == best[to] && link < reached_by[to];
                if candidate < best[to] || is_earlier_tie {
                    best[to] = candidate;
                    reached_by[to] = link;
                    queue.push(Reverse((candidate.0, candidate.1, to as u32)));
                }
            }
        }
        reached_by
    }
}

/// The total delay of links in a row, at the start of a run.
pub(super) fn initial_delay(network: &Network, links: impl Iterator<Item = usize>) -> Span {
    links
        .map(|link| network.links[link].config.delay.at_start())
        .fold(Span::ZERO, |sum, delay| sum + delay)
}
