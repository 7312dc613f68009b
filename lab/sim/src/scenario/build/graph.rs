//! Nodes and links by name, and which nodes can be reached.

use std::collections::BTreeMap;

use comity_link::LinkConfig;
use comity_units::Span;

use super::super::source::SourceSpan;
use crate::network::{FlowSpec, LinkSpec, NodeId};

/// A network under construction.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<String>,
    pub(super) links: Vec<LinkSpec>,
    pub(super) flows: Vec<FlowSpec>,
    /// The base round trips that flows request.
    pub(super) rtts: Vec<Requested>,
    /// How many flows use a host of the topology so far.
    pub(super) hosted: u32,
    node_spans: BTreeMap<String, (NodeId, Option<SourceSpan>)>,
    pub(super) link_spans: BTreeMap<String, Option<SourceSpan>>,
    flow_spans: BTreeMap<String, Option<SourceSpan>>,
}

/// A base round trip that a flow requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested {
    pub(super) rtt: Span,
    /// The number of the flow.
    pub(super) flow: usize,
    /// The number of the link of its source's host, which has no delay yet; its reverse direction
    /// follows.
    pub(super) link: usize,
}

/// A used name, and the span of its first use.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) what: &'static str,
    pub(super) name: String,
    pub(super) first: Option<SourceSpan>,
}

impl Graph {
    pub(super) fn node(&self, name: &str) -> Option<NodeId> {
        self.node_spans.get(name).map(|(id, _)| *id)
    }

    pub(super) fn name(&self, node: NodeId) -> &str {
        self.nodes.get(node.0 as usize).map_or("", String::as_str)
    }

    pub(super) fn add_node(
        &mut self,
        name: &str,
        span: Option<SourceSpan>,
    ) -> Result<NodeId, Taken> {
        if let Some((_, first)) = self.node_spans.get(name) {
            return Err(Taken {
                what: "node",
                name: name.into(),
                first: *first,
            });
        }
        let id = NodeId(self.nodes.len() as u32);
        self.node_spans.insert(name.into(), (id, span));
        self.nodes.push(name.into());
        Ok(id)
    }

    pub(super) fn add_link(
        &mut self,
        name: &str,
        ends: (NodeId, NodeId),
        config: LinkConfig,
        span: Option<SourceSpan>,
    ) -> Result<(), Taken> {
        if let Some(first) = self.link_spans.get(name) {
            return Err(Taken {
                what: "link",
                name: name.into(),
                first: *first,
            });
        }
        self.link_spans.insert(name.into(), span);
        self.links.push(LinkSpec {
            name: name.into(),
            from: ends.0,
            to: ends.1,
            config,
        });
        Ok(())
    }

    /// Adds a link and its reverse direction, whose name has `.reverse` appended.
    pub(super) fn add_duplex(
        &mut self,
        name: &str,
        ends: (NodeId, NodeId),
        configs: &(LinkConfig, LinkConfig),
        span: Option<SourceSpan>,
    ) -> Result<(), Taken> {
        self.add_link(name, ends, configs.0.clone(), span)?;
        self.add_link(
            &format!("{name}.reverse"),
            (ends.1, ends.0),
            configs.1.clone(),
            span,
        )
    }

    pub(super) fn claim_flow(&mut self, name: &str, span: Option<SourceSpan>) -> Result<(), Taken> {
        if let Some(first) = self.flow_spans.get(name) {
            return Err(Taken {
                what: "flow",
                name: name.into(),
                first: *first,
            });
        }
        self.flow_spans.insert(name.into(), span);
        Ok(())
    }
}

/// Which nodes can be reached from which, over the links of the topology itself.
#[derive(Debug)]
pub(super) struct Reach {
    neighbours: Vec<Vec<u32>>,
    known: std::cell::RefCell<BTreeMap<u32, Vec<bool>>>,
}

impl Reach {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut neighbours = vec![Vec::new(); graph.nodes.len()];
        for link in &graph.links {
            if let Some(list) = neighbours.get_mut(link.from.0 as usize) {
                list.push(link.to.0);
            }
        }
        Self {
            neighbours,
            known: std::cell::RefCell::default(),
        }
    }

    pub(super) fn leads(&self, from: NodeId, to: NodeId) -> bool {
        let mut known = self.known.borrow_mut();
        let reached = known.entry(from.0).or_insert_with(|| self.search(from.0));
        reached.get(to.0 as usize).copied().unwrap_or(false)
    }

    fn search(&self, from: u32) -> Vec<bool> {
        let mut reached = vec![false; self.neighbours.len()];
        let mut waiting = vec![from];
        while let Some(node) = waiting.pop() {
            match reached.get_mut(node as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            waiting.extend(self.neighbours.get(node as usize).into_iter().flatten());
        }
        reached
    }
}
