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
    /// The spans of the table and its keys in the file.
    pub(in crate::scenario) const fn written(&self) -> &At {
        match self {
            Self::Dumbbell(table) => &table.written,
            Self::ParkingLot(table) => &table.written,
            Self::Graph(table) => &table.written,
        }
    }
}

/// The link of a host; with none, the host is the node itself.
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
    /// One link between the nodes `left` and `right`, with many hosts on either side. By default, a
    /// flow goes from its own host on the left to its own host on the right.
    struct DumbbellTable ("a dumbbell") {
        /// The link from `left` to `right`, called `bottleneck`; the reverse direction is
        /// `bottleneck.reverse`.
        bottleneck: DuplexTable = Required(Nested::<DuplexTable>::KIND);
        /// The link between a source's host and its router. With `"none"`, the router is the
        /// source.
        access: Access = Default(host_link(), "\"none\"");
        /// The link between a router and a destination's host. With `"none"`, the router is the
        /// destination.
        access_to: Option<Access> = Optional(host_link(), "as `access`");
        /// The number of shared hosts on each side: `s0`, `s1`, ... on the left, and `d0`, `d1`,
        /// ... on the right. Flow n uses the pair n modulo this number.
        pairs: Option<u32> = Optional(LINKS, "every flow has a pair of its own");
    }
}

table! {
    /// Links in a row: the nodes `n0`, `n1`, ..., with `link-1` from `n0` to `n1` and so on.
    struct ParkingLotTable ("a parking lot") {
        /// The number of links.
        links: u32 = Required(LINKS);
        /// The properties of each link; the reverse direction is `link-1.reverse` and so on.
        link: DuplexTable = Required(Nested::<DuplexTable>::KIND);
        /// Links with other properties.
        different: Option<Vec<DifferentTable>> = Optional(
            List { item: Nested::<DifferentTable>::KIND, min: 0, max: 100_000 },
            "all links are alike",
        );
        /// The link between a source's host and its node. With `"none"`, the node is the source.
        access: Access = Default(host_link(), "\"none\"");
        /// The link between a node and a destination's host. With `"none"`, the node is the
        /// destination.
        access_to: Option<Access> = Optional(host_link(), "as `access`");
    }
}

table! {
    /// A link of a parking lot with other properties.
    struct DifferentTable ("a different link") {
        /// The number of the link, from 1.
        number: u32 = Required(LINKS);
        /// The properties of the link.
        link: DuplexTable = Keys::<DuplexTable>::OF;
    }
}

table! {
    /// Named nodes, and links between them.
    struct GraphTable ("a graph") {
        /// The names of the nodes.
        nodes: Vec<(String, super::super::source::SourceSpan)> = Required(List {
            item: super::super::kinds::Placed(Name("the name of a node")),
            min: 1,
            max: MAX_LINKS as usize,
        });
        /// The links. In paths, `name` names a link.
        link: Vec<GraphLinkTable> = Required(List {
            item: Nested::<GraphLinkTable>::KIND,
            min: 1,
            max: MAX_LINKS as usize,
        });
        /// The link between a source's host and its node. With `"none"`, the node is the source.
        access: Access = Default(host_link(), "\"none\"");
        /// The link between a node and a destination's host. With `"none"`, the node is the
        /// destination.
        access_to: Option<Access> = Optional(host_link(), "as `access`");
    }
}

table! {
    /// A link of a graph.
    struct GraphLinkTable ("[[topology.link]]") {
        /// The name of the link. Its random numbers depend on the name. The reverse direction of a
        /// duplex link has the same name with the suffix `.reverse`.
        name: Option<String> = Optional(Name("the name of the link"), "the nodes: `a-b`");
        /// The node where packets enter.
        from: String = Required(Name("the name of a node"));
        /// The node where packets leave.
        to: String = Required(Name("the name of a node"));
        /// Whether the link has a reverse direction.
        duplex: bool = Default(Flag, "true");
        /// The properties of the link.
        link: DuplexTable = Keys::<DuplexTable>::OF;
    }
}
