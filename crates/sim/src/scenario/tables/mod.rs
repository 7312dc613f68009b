//! The tables of a scenario file, each declared once.

pub(super) mod flow;
pub(super) mod link;
pub(super) mod sections;
pub(super) mod topology;

use comity_units::Span;

use super::document::Node;
use super::kinds::{
    Amount, Anything, Count, Either, LONGEST, List, Name, POSITIVE_SPAN, Real, SPAN, Text, Whole,
};
use super::schema::{Default, Nested, Optional, Required, table};
use flow::FlowTable;
use topology::TopologyTable;

table! {
    /// A scenario: a network, the flows in it, and what is varied from run to run.
    struct ScenarioFile ("a scenario") {
        /// What the scenario is called, how long it runs and how often.
        scenario: ScenarioTable = Required(Nested::<ScenarioTable>::KIND);
        /// The network.
        topology: TopologyTable = Required(Nested::<TopologyTable>::KIND);
        /// The flows, in groups. In paths, a group is known by its `group`.
        flow: Vec<FlowTable> = Required(List {
            item: Nested::<FlowTable>::KIND,
            min: 1,
            max: 100_000,
        });
        /// The axes of the sweep: one run for each combination of their values. In paths, an axis
        /// is known by its `name`.
        sweep: Option<Vec<SweepTable>> = Optional(
            List { item: Nested::<SweepTable>::KIND, min: 0, max: 64 },
            "nothing is varied",
        );
    }
}

table! {
    /// What the scenario is called, how long it runs and how often.
    struct ScenarioTable ("[scenario]") {
        /// A short name; files are named after it.
        name: String = Required(Name("a short name"));
        /// What the scenario shows, in a sentence or two.
        description: Option<String> = Optional(Text("what the scenario shows"), "no description");
        /// How long a run takes, in simulated time.
        duration: Span = Required(Amount { min: Span::from_micros(1), max: LONGEST });
        /// How long after the start measuring begins.
        warmup: Span = Default(SPAN, "\"0s\"");
        /// The length of the bins of values over time.
        bins: Option<Span> = Optional(POSITIVE_SPAN, "no values over time");
        /// When the flows of a group count as having come to share equally; needs `bins`.
        convergence: Option<ConvergenceTable> = Optional(
            Nested::<ConvergenceTable>::KIND,
            "not looked for",
        );
        /// The seeds: every point of the sweep is run once with each.
        seeds: Seeds = Default(
            Either::<Seeds, _, _>::of(
                List { item: Whole { min: 0, max: i64::MAX as u64 }, min: 1, max: 1_000_000 },
                Nested::<SeedRange>::KIND,
            ),
            "[1]",
        );
        /// The most runs that the sweep and the seeds may multiply to.
        max_runs: u64 = Default(Whole { min: 1, max: 100_000_000 }, "100000");
    }
}

table! {
    /// When the flows of a group count as having come to share equally: in every bin of some time,
    /// each of them gets its fair share of what the group gets, or nearly so.
    struct ConvergenceTable ("convergence") {
        /// How far the goodput of each flow may be from the fair share, as a part of it.
        tolerance: f64 = Required(Real { min: 0.0, max: 1.0 });
        /// For how long, rounded up to whole bins.
        hold: Span = Required(POSITIVE_SPAN);
    }
}

table! {
    /// Seeds that follow each other.
    struct SeedRange ("seeds") {
        /// The first seed.
        first: u64 = Default(Whole { min: 0, max: 1 << 62 }, "1");
        /// How many there are.
        count: u32 = Required(Count { min: 1, max: 1_000_000 });
    }
}

/// The seeds of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Seeds(pub(super) Vec<u64>);

impl From<Vec<u64>> for Seeds {
    fn from(list: Vec<u64>) -> Self {
        Self(list)
    }
}

impl From<SeedRange> for Seeds {
    fn from(range: SeedRange) -> Self {
        Self((range.first..).take(range.count as usize).collect())
    }
}

table! {
    /// An axis of the sweep: a key, and the values that it takes.
    struct SweepTable ("[[sweep]]") {
        /// The path of the key that is varied, such as `flow.tcp.rwnd` or
        /// `topology.bottleneck.queue`, or a list of paths that all take the value. In a path, an
        /// item of a list has its `name`, its `group` or its number from 0; `*` means all items.
        parameter: Paths = Required(Either::<Paths, _, _>::of(
            Text("the path of a key"),
            List { item: Text("the path of a key"), min: 1, max: 64 },
        ));
        /// What the axis is called in results.
        name: Option<String> = Optional(Name("a short name"), "the (first) path");
        /// The values, each of the kind that the key takes.
        values: Option<Vec<Node>> = Optional(
            List { item: Anything, min: 1, max: 1_000_000 },
            "set by `range`",
        );
        /// Values at equal distances or ratios.
        range: Option<RangeTable> = Optional(Nested::<RangeTable>::KIND, "set by `values`");
        /// Axes with the same word here advance together instead of being multiplied.
        zip: Option<String> = Optional(Name("the name of a group of axes"), "multiplied with all others");
    }
}

/// The keys that an axis varies.
#[derive(Clone, Debug)]
pub(super) struct Paths(pub(super) Vec<String>);

impl From<String> for Paths {
    fn from(path: String) -> Self {
        Self(vec![path])
    }
}

impl From<Vec<String>> for Paths {
    fn from(paths: Vec<String>) -> Self {
        Self(paths)
    }
}

table! {
    /// Values at equal distances or ratios: `{ from = 2, to = 100, step = 2 }`, or
    /// `{ from = "1ms", to = "64ms", factor = 2 }`.
    struct RangeTable ("a range of values") {
        /// The first value.
        from: Node = Required(Anything);
        /// The last value, included when the steps meet it.
        to: Node = Required(Anything);
        /// The distance from one value to the next, in the same unit.
        step: Option<Node> = Optional(Anything, "set by `factor`");
        /// The ratio of each value to the one before.
        factor: Option<Node> = Optional(Anything, "set by `step`");
    }
}
