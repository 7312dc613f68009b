//! From topology tables to nodes and links.

use std::collections::BTreeMap;

use comity_congestion::table::nearest;
use comity_link::LinkConfig;

use super::super::problem::ProblemKind;
use super::super::schema::{At, Context};
use super::super::source::SourceSpan;
use super::super::tables::link::LossDirection;
use super::super::tables::topology::{
    Access, DumbbellTable, GraphTable, ParkingLotTable, TopologyTable,
};
use super::graph::{Graph, Reach, Taken};
use super::library::{Library, Limits};
use super::link::duplex;
use crate::network::NodeId;

/// The links of a host in both directions, first the one in the direction of the data; `None` if
/// there is no host.
pub(super) type AccessLink = Option<(LinkConfig, LinkConfig)>;

/// The properties of a topology that flows need.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) reach: Reach,
    /// The number of links without those of hosts.
    pub(super) backbone: usize,
    /// Where flows go that do not say it.
    pub(super) ends: Ends,
    pub(super) access: AccessLink,
    pub(super) access_to: AccessLink,
    /// Whether the topology writes `access_to`.
    pub(super) has_access_to: bool,
}

/// Where flows go that do not say it.
#[derive(Debug)]
pub(super) enum Ends {
    /// There is no default.
    Unknown,
    /// From one router to another, each between its own hosts.
    Routers(NodeId, NodeId),
    /// From a host to another, in turn.
    Pairs(Vec<(NodeId, NodeId)>),
}

/// The nodes and links of the topology itself; `None` only after a report.
pub(super) fn build(
    table: &TopologyTable,
    graph: &mut Graph,
    library: &Library,
    limits: &Limits,
    cx: &mut Context<'_>,
) -> Option<Core> {
    let (written, key, what, found) = match table {
        TopologyTable::Dumbbell(table) => (
            &table.written,
            "pairs",
            "pairs",
            u64::from(table.pairs.unwrap_or(0)),
        ),
        TopologyTable::ParkingLot(table) => {
            (&table.written, "links", "links", u64::from(table.links))
        }
        TopologyTable::Graph(table) => (&table.written, "link", "links", table.link.len() as u64),
    };
    if found > u64::from(limits.links) {
        let limit = limits.links.into();
        cx.report_at(
            written,
            key,
            ProblemKind::TooManyThings { what, found, limit },
        );
        return None;
    }
    match table {
        TopologyTable::Dumbbell(table) => dumbbell(table, graph, library, cx),
        TopologyTable::ParkingLot(table) => parking_lot(table, graph, library, cx),
        TopologyTable::Graph(table) => general(table, graph, library, cx),
    }
}

pub(super) fn report_taken(cx: &mut Context<'_>, written: &At, key: &str, taken: Taken) {
    let kind = ProblemKind::Duplicate {
        what: taken.what,
        name: taken.name,
        first: taken.first,
    };
    cx.report_at(written, key, kind);
}

/// The link of a host as written; `Some(None)` if there is no host.
pub(super) fn access_link(
    access: &Access,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<AccessLink> {
    match access {
        Access::None => Some(None),
        Access::Link(table) => duplex(table, library, cx).map(Some),
    }
}

fn accesses(
    access: &Access,
    access_to: Option<&Access>,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<(AccessLink, AccessLink)> {
    let from = access_link(access, library, cx);
    let to = match access_to {
        None => from.clone(),
        Some(access) => access_link(access, library, cx),
    };
    Some((from?, to?))
}

fn dumbbell(
    table: &DumbbellTable,
    graph: &mut Graph,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<Core> {
    let bottleneck = duplex(&table.bottleneck, library, cx);
    let accesses = accesses(&table.access, table.access_to.as_ref(), library, cx);
    let (bottleneck, (access, access_to)) = (bottleneck?, accesses?);
    let make = |graph: &mut Graph| -> Result<Ends, Taken> {
        let left = graph.add_node("left", None)?;
        let right = graph.add_node("right", None)?;
        graph.add_duplex("bottleneck", (left, right), &bottleneck, None)?;
        let Some(pairs) = table.pairs else {
            return Ok(Ends::Routers(left, right));
        };
        let mut ends = Vec::new();
        for number in 0..pairs {
            let (source, destination) = (format!("s{number}"), format!("d{number}"));
            let from = match &access {
                None => left,
                Some(configs) => {
                    let host = graph.add_node(&source, None)?;
                    graph.add_duplex(&source, (host, left), configs, None)?;
                    host
                }
            };
            let to = match &access_to {
                None => right,
                Some(configs) => {
                    let host = graph.add_node(&destination, None)?;
                    graph.add_duplex(&destination, (right, host), configs, None)?;
                    host
                }
            };
            ends.push((from, to));
        }
        Ok(Ends::Pairs(ends))
    };
    match make(graph) {
        Ok(ends) => Some(Core {
            reach: Reach::new(graph),
            backbone: 2,
            // Flows on shared hosts have no links of their own.
            access: access.filter(|_| table.pairs.is_none()),
            access_to: access_to.filter(|_| table.pairs.is_none()),
            has_access_to: table.access_to.is_some(),
            ends,
        }),
        Err(taken) => {
            report_taken(cx, &table.written, "", taken);
            None
        }
    }
}

fn parking_lot(
    table: &ParkingLotTable,
    graph: &mut Graph,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<Core> {
    let link = duplex(&table.link, library, cx);
    let accesses = accesses(&table.access, table.access_to.as_ref(), library, cx);
    let mut configs = vec![link?; table.links as usize];
    let mut complete = true;
    let mut changed: BTreeMap<u32, Option<SourceSpan>> = BTreeMap::new();
    for different in table.different.iter().flatten() {
        let span = different.written.span_of("number");
        if let Some(first) = changed.insert(different.number, span) {
            complete = false;
            let kind = ProblemKind::Duplicate {
                what: "different link",
                name: different.number.to_string(),
                first,
            };
            cx.report_at(&different.written, "number", kind);
        }
        let index = (different.number as usize).wrapping_sub(1);
        match (configs.get_mut(index), duplex(&different.link, library, cx)) {
            (Some(config), Some(link)) => *config = link,
            (None, _) => {
                complete = false;
                cx.report_at(
                    &different.written,
                    "number",
                    ProblemKind::OutOfBounds {
                        value: different.number.to_string(),
                        min: "1".into(),
                        max: table.links.to_string(),
                    },
                );
            }
            (_, None) => complete = false,
        }
    }
    let (access, access_to) = accesses.filter(|_| complete)?;
    let make = |graph: &mut Graph| -> Result<(), Taken> {
        let mut before = graph.add_node("n0", None)?;
        for (config, number) in configs.iter().zip(1..) {
            let node = graph.add_node(&format!("n{number}"), None)?;
            graph.add_duplex(&format!("link-{number}"), (before, node), config, None)?;
            before = node;
        }
        Ok(())
    };
    if let Err(taken) = make(graph) {
        report_taken(cx, &table.written, "", taken);
        return None;
    }
    Some(Core {
        reach: Reach::new(graph),
        backbone: graph.links.len(),
        ends: Ends::Unknown,
        access,
        access_to,
        has_access_to: table.access_to.is_some(),
    })
}

fn general(
    table: &GraphTable,
    graph: &mut Graph,
    library: &Library,
    cx: &mut Context<'_>,
) -> Option<Core> {
    let reported = cx.problems.len();
    let accesses = accesses(&table.access, table.access_to.as_ref(), library, cx);
    for (index, (name, span)) in table.nodes.iter().enumerate() {
        if let Err(taken) = graph.add_node(name, Some(*span)) {
            let path = table.written.path_of(&format!("nodes.{index}"));
            cx.within_path(&[&path], |cx| {
                cx.report(
                    *span,
                    ProblemKind::Duplicate {
                        what: taken.what,
                        name: taken.name,
                        first: taken.first,
                    },
                );
            });
        }
    }
    for link in &table.link {
        let from = find_node(graph, &link.from, &link.written, "from", cx);
        let to = find_node(graph, &link.to, &link.written, "to", cx);
        let configs = duplex(&link.link, library, cx);
        if !link.duplex && link.link.reverse.is_some() {
            cx.report_at(
                &link.written,
                "reverse",
                ProblemKind::Excludes {
                    other: "duplex = false",
                },
            );
        }
        for loss in link.link.forward.losses.iter().flatten() {
            if !link.duplex && loss.direction != LossDirection::Forward {
                cx.report_at(
                    &loss.written,
                    "direction",
                    ProblemKind::Excludes {
                        other: "duplex = false",
                    },
                );
            }
        }
        let (Some(from), Some(to), Some(configs)) = (from, to, configs) else {
            continue;
        };
        let name = link
            .name
            .clone()
            .unwrap_or_else(|| format!("{}-{}", link.from, link.to));
        let key = if link.name.is_some() { "name" } else { "" };
        let span = link.written.span_of(key);
        let added = if link.duplex {
            graph.add_duplex(&name, (from, to), &configs, span)
        } else {
            graph.add_link(&name, (from, to), configs.0, span)
        };
        if let Err(taken) = added {
            report_taken(cx, &link.written, key, taken);
        }
    }
    let (access, access_to) = accesses.filter(|_| cx.problems.len() == reported)?;
    Some(Core {
        reach: Reach::new(graph),
        backbone: graph.links.len(),
        ends: Ends::Unknown,
        access,
        access_to,
        has_access_to: table.access_to.is_some(),
    })
}

/// The node called `name`. Reports if there is none.
pub(super) fn find_node(
    graph: &Graph,
    name: &str,
    written: &At,
    key: &str,
    cx: &mut Context<'_>,
) -> Option<NodeId> {
    let found = graph.node(name);
    if found.is_none() {
        let names = || graph.nodes.iter().map(String::as_str);
        let kind = ProblemKind::UnknownNode {
            name: name.into(),
            known: names().take(100).map(Into::into).collect(),
            nearest: nearest(name, names()).map(Into::into),
        };
        cx.report_at(written, key, kind);
    }
    found
}
