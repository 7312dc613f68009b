//! The tables of topologies.

use super::super::kinds::{Either, Flag, List, Name, Word};
use super::super::schema::{At, Default, Keys, Nested, Optional, Required, table, tagged};
use super::link::{DuplexTable, LINKS, MAX_LINKS};

tagged! {
    /// The network.
    enum TopologyTable ("[topology]") by kind {
        "dumbbell" => Dumbbell(DumbbellTable);
        "parking_lot" => ParkingLot(ParkingLotTable);
        "graph" => Graph(GraphTable);
    }
}

impl TopologyTable {
    /// Where the table and its keys were written.
    pub(in crate::scenario) const fn written(&self) -> &At {
        match self {
            Self::Dumbbell(table) => &table.written,
            Self::ParkingLot(table) => &table.written,
            Self::Graph(table) => &table.written,
        }
    }
}

/// The link of a host, or none: the host is the node itself.
#[derive(Clone, Debug)]
pub(in crate::scenario) enum Access {
    None,
    Link(Box<DuplexTable>),
}

impl From<DuplexTable> for Access {
    fn from(table: DuplexTable) -> Self {
        Self::Link(Box::new(table))
    }
}

pub(in crate::scenario) type AccessKind = Either<Access, Word<Access>, Nested<DuplexTable>>;

pub(in crate::scenario) const fn host_link() -> AccessKind {
    Either::of(Word("none", Access::None), Nested::<DuplexTable>::KIND)
}

table! {
    /// Many hosts on either side of one link, the nodes `left` and `right`. A flow that does not
    /// say where it goes goes from a host of its own on the left to one on the right.
    struct DumbbellTable ("a dumbbell") {
        /// The link from `left` to `right`, called `bottleneck`; the reverse direction is
        /// `bottleneck.reverse`.
        bottleneck: DuplexTable = Required(Nested::<DuplexTable>::KIND);
        /// The link between a source's host and its router, or `"none"`: the source sits on the
        /// router.
        access: Access = Default(host_link(), "\"none\"");
        /// The link between a router and a destination's host, or `"none"`.
        access_to: Option<Access> = Optional(host_link(), "as `access`");
        /// Shared hosts: so many on the left, `s0`, `s1`, ..., and on the right, `d0`, `d1`, ...
        /// Flow n uses the pair n modulo their number.
        pairs: Option<u32> = Optional(LINKS, "every flow has a pair of its own");
    }
}

table! {
    /// Links in a row: the nodes `n0`, `n1`, ..., with `link-1` from `n0` to `n1` and so on.
    struct ParkingLotTable ("a parking lot") {
        /// How many links there are.
        links: u32 = Required(LINKS);
        /// What each of them is like; the reverse direction is `link-1.reverse` and so on.
        link: DuplexTable = Required(Nested::<DuplexTable>::KIND);
        /// Links that are different.
        different: Option<Vec<DifferentTable>> = Optional(
            List { item: Nested::<DifferentTable>::KIND, min: 0, max: 100_000 },
            "all links are alike",
        );
        /// The link between a source's host and its node, or `"none"`: the source sits on the node.
        access: Access = Default(host_link(), "\"none\"");
        /// The link between a node and a destination's host, or `"none"`.
        access_to: Option<Access> = Optional(host_link(), "as `access`");
    }
}

table! {
    /// A link of a parking lot that is different.
    struct DifferentTable ("a different link") {
        /// Its number, from 1.
        number: u32 = Required(LINKS);
        /// What it is like.
        link: DuplexTable = Keys::<DuplexTable>::OF;
    }
}

table! {
    /// Nodes, and links between them by name.
    struct GraphTable ("a graph") {
        /// The names of the nodes.
        nodes: Vec<(String, super::super::source::Place)> = Required(List {
            item: super::super::kinds::Placed(Name("the name of a node")),
            min: 1,
            max: MAX_LINKS as usize,
        });
        /// The links. In paths, a link is known by its `name`.
        link: Vec<GraphLinkTable> = Required(List {
            item: Nested::<GraphLinkTable>::KIND,
            min: 1,
            max: MAX_LINKS as usize,
        });
        /// The link between a source's host and its node, or `"none"`: the source sits on the node.
        access: Access = Default(host_link(), "\"none\"");
        /// The link between a node and a destination's host, or `"none"`.
        access_to: Option<Access> = Optional(host_link(), "as `access`");
    }
}

table! {
    /// A link of a graph.
    struct GraphLinkTable ("[[topology.link]]") {
        /// What it is called; its random numbers depend on the name. The reverse direction of a
        /// duplex link is called the same with `.reverse` behind it.
        name: Option<String> = Optional(Name("the name of the link"), "the nodes: `a-b`");
        /// The node where packets enter.
        from: String = Required(Name("the name of a node"));
        /// The node where they come out.
        to: String = Required(Name("the name of a node"));
        /// Whether there is a reverse direction too.
        duplex: bool = Default(Flag, "true");
        /// What it is like.
        link: DuplexTable = Keys::<DuplexTable>::OF;
    }
}
