//! The paths of flows through the links, and the parts of them that can be computed ahead.

use std::collections::BTreeMap;

use super::flow::{Agent, DatagramSource, Flow, ReaderState};
use super::links::LinkState;
use super::path::{ACTS_AHEAD, AHEAD, DRAW, END, LINK, Path};
use super::route::Router;
use crate::network::{FlowError, NodeId};

/// All paths, and the order of links on them.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) entries: Vec<u32>,
    /// Flows between the same nodes share a path. A mark on it holds for all of them; a mark about
    /// one flow requires a link that no other flow uses.
    known: BTreeMap<(NodeId, NodeId, Use), Path>,
}

/// The use of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Answers,
    Datagrams,
    Nothing,
    Reports,
    Sections,
    Segments,
}

impl Paths {
    pub(super) fn find(
        &mut self,
        router: &mut Router<'_>,
        key: (NodeId, NodeId, Use),
    ) -> Result<Path, FlowError> {
        if let Some(&path) = self.known.get(&key) {
            return Ok(path);
        }
        let (from, to, _) = key;
        let links = router.route(from, to)?;
        let start = self.entries.len() as u32;
        self.entries.extend(links);
        self.entries.push(END);
        let path = Path { start };
        self.known.insert(key, path);
        Ok(path)
    }

    pub(super) fn links(&self, path: Path) -> &[u32] {
        let from_start = &self.entries[path.start as usize..];
        let end = from_start.iter().position(|&entry| entry & END != 0);
        &from_start[..end.unwrap_or(from_start.len())]
    }

    /// Counts for each link how many paths lead over it.
    pub(super) fn count_users(&self, flows: &[Flow], links: &mut [LinkState]) {
        for path in flows.iter().flat_map(|flow| [flow.forward, flow.backward]) {
            for &entry in self.links(path) {
                links[entry as usize].users += 1;
            }
        }
    }

    /// Marks the entries that can be computed ahead without changing a result.
    pub(super) fn mark_ahead(&mut self, flows: &mut [Flow], links: &[LinkState]) {
        self.mark_links(flows, links);
        for flow in flows {
            self.mark_draw(flow, links);
            // An endpoint may act ahead if only packets and timers make it act, and if its packets
            // meet no other flow on their first link.
            let (source_may, sink_may) = match &flow.agent {
                Agent::Datagram(_) => (false, true),
                Agent::Sections(_) => (false, false),
                Agent::Tcp(tcp) => (
                    tcp.workload.acts_on_packets_alone()
                        && self.has_own_way_out(flow.forward, links),
                    matches!(tcp.reader, ReaderState::Immediate)
                        && tcp.workload.is_blind_to_its_reader()
                        && self.has_own_way_out(flow.backward, links),
                ),
            };
            if sink_may {
                self.mark_end(flow.forward, links);
            }
            if source_may {
                self.mark_end(flow.backward, links);
            }
        }
    }

    /// Marks each entry whose link has one feeder, the link before it, which keeps order.
    fn mark_links(&mut self, flows: &[Flow], links: &[LinkState]) {
        /// The feeder of a link.
        #[derive(Clone, Copy, PartialEq)]
        enum Feeder {
            Nobody,
            Only(u32),
            Several,
        }
        const AN_ENDPOINT: u32 = u32::MAX;
        let mut feeders = vec![Feeder::Nobody; links.len()];
        for path in flows.iter().flat_map(|flow| [flow.forward, flow.backward]) {
            let mut before = AN_ENDPOINT;
            for &link in self.links(path) {
                let feeder = &mut feeders[link as usize];
                *feeder = match *feeder {
                    Feeder::Nobody if before != AN_ENDPOINT => Feeder::Only(before),
                    Feeder::Only(only) if only == before => Feeder::Only(only),
                    _ => Feeder::Several,
                };
                before = link;
            }
        }
        for path in flows.iter().flat_map(|flow| [flow.forward, flow.backward]) {
            let start = path.start as usize;
            for at in start + 1..start + self.links(path).len() {
                let (before, link) = (self.entries[at - 1] & LINK, self.entries[at] & LINK);
                if feeders[link as usize] == Feeder::Only(before)
                    && links[before as usize].is_predictable()
                    && links[link as usize].decides_at_once()
                {
                    self.entries[at] |= AHEAD;
                }
            }
        }
    }

    /// Marks the entry at which a flow's packets first meet other flows, if its source can be drawn
    /// from there. That requires that its first link carries nothing else, and that no link up to
    /// the entry reorders or duplicates.
    fn mark_draw(&mut self, flow: &mut Flow, links: &[LinkState]) {
        let has_calendar = matches!(
            &flow.agent,
            Agent::Datagram(datagram) if matches!(datagram.source, DatagramSource::Schedule(_))
        );
        if !has_calendar || !self.has_own_way_out(flow.forward, links) {
            return;
        }
        let path = self.links(flow.forward);
        let stretch = 1 + path
            .iter()
            .skip(1)
            .take_while(|&&entry| entry & AHEAD != 0)
            .count();
        let mut on_stretch = path.iter().take(stretch);
        if on_stretch.all(|&entry| links[(entry & LINK) as usize].is_predictable()) {
            let at = flow.forward.start as usize + stretch;
            self.entries[at] |= DRAW;
            if let Agent::Datagram(datagram) = &mut flow.agent {
                datagram.is_drawn = true;
            }
        }
    }

    /// Whether the first link of a path carries nothing else and can be computed ahead.
    fn has_own_way_out(&self, path: Path, links: &[LinkState]) -> bool {
        let Some(&entry) = self.links(path).first() else {
            return false;
        };
        let link = &links[(entry & LINK) as usize];
        link.users == 1 && link.decides_at_once()
    }

    /// Marks the end of a path whose last link keeps order.
    fn mark_end(&mut self, path: Path, links: &[LinkState]) {
        let Some(&last) = self.links(path).last() else {
            return;
        };
        if links[(last & LINK) as usize].is_predictable() {
            let end = path.start as usize + self.links(path).len();
            self.entries[end] |= ACTS_AHEAD;
        }
    }
}
