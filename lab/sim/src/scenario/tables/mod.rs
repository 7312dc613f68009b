//! The tables of a scenario file, each declared once.

pub(super) mod flow;
pub(super) mod link;
pub(super) mod sections;
pub(super) mod topology;
pub(super) mod transfers;

use comity_units::Span;

use super::document::Node;
use super::kinds::{
    Amount, Anything, Count, Either, LONGEST, List, Name, POSITIVE_SPAN, Real, SPAN, Text, Whole,
};
use super::schema::{Default, Nested, Optional, Required, table};
use flow::FlowTable;
use topology::TopologyTable;

table! {
    /// A scenario: a network, its flows, and the values that vary from run to run.
    struct ScenarioFile ("a scenario") {
        /// The name of the scenario, and the duration and number of its runs.
        scenario: ScenarioTable = Required(Nested::<ScenarioTable>::KIND);
        /// The network.
        topology: TopologyTable = Required(Nested::<TopologyTable>::KIND);
        /// The groups of flows. In paths, `group` names a group.
        flow: Vec<FlowTable> = Required(List {
            item: Nested::<FlowTable>::KIND,
            min: 1,
            max: 100_000,
        });
        /// The axes of the sweep: one run for each combination of their values. In paths, `name`
        /// names an axis.
        sweep: Option<Vec<SweepTable>> = Optional(
            List { item: Nested::<SweepTable>::KIND, min: 0, max: 64 },
            "nothing is varied",
        );
    }
}

table! {
    /// The name of the scenario, and the duration and number of its runs.
    struct ScenarioTable ("[scenario]") {
        /// A short name, also the name of result files.
        name: String = Required(Name("a short name"));
        /// The purpose of the scenario, in a sentence or two.
        description: Option<String> = Optional(Text("what the scenario shows"), "no description");
        /// The duration of a run, in simulated time.
        duration: Span = Required(Amount { min: Span::from_micros(1), max: LONGEST });
        /// The time from the start to the beginning of measurements.
        warmup: Span = Default(SPAN, "\"0s\"");
        /// The length of the bins of time series.
        bins: Option<Span> = Optional(POSITIVE_SPAN, "no values over time");
        /// When the flows of a group count as converged to equal shares; needs `bins`.
        convergence: Option<ConvergenceTable> = Optional(
            Nested::<ConvergenceTable>::KIND,
            "not looked for",
        );
        /// The seeds. Every point of the sweep runs once with each.
        seeds: Seeds = Default(
            Either::<Seeds, _, _>::of(
                List { item: Whole { min: 0, max: i64::MAX as u64 }, min: 1, max: 1_000_000 },
                Nested::<SeedRange>::KIND,
            ),
            "[1]",
        );
        /// The most runs of the sweep with all seeds.
        max_runs: u64 = Default(Whole { min: 1, max: 100_000_000 }, "100000");
    }
}

table! {
    /// When the flows of a group count as converged: in every bin of a period, each flow gets
    /// nearly its fair share of the group's goodput.
    struct ConvergenceTable ("convergence") {
        /// The largest distance of a flow's goodput from the fair share, as a part of that share.
        tolerance: f64 = Required(Real { min: 0.0, max: 1.0 });
        /// The length of the period, rounded up to whole bins.
        hold: Span = Required(POSITIVE_SPAN);
    }
}

table! {
    /// Consecutive seeds.
    struct SeedRange ("seeds") {
        /// The first seed.
        first: u64 = Default(Whole { min: 0, max: 1 << 62 }, "1");
        /// The number of seeds.
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
    /// An axis of the sweep: a key and its values.
    struct SweepTable ("[[sweep]]") {
        /// The path of the key to vary, such as `flow.tcp.rwnd` or `topology.bottleneck.queue`, or
        /// a list of paths that get the same value. In a path, the `name`, the `group` or the
        /// number from 0 names an item of a list; `*` means all items.
        parameter: Paths = Required(Either::<Paths, _, _>::of(
            Text("the path of a key"),
            List { item: Text("the path of a key"), min: 1, max: 64 },
        ));
        /// The name of the axis in results.
        name: Option<String> = Optional(Name("a short name"), "the (first) path");
        /// The values, each of the kind of the key.
        values: Option<Vec<Node>> = Optional(
            List { item: Anything, min: 1, max: 1_000_000 },
            "set by `range`",
        );
        /// Values at equal distances or ratios.
        range: Option<RangeTable> = Optional(Nested::<RangeTable>::KIND, "set by `values`");
        /// Axes with the same `zip` advance together instead of being multiplied.
        zip: Option<String> = Optional(Name("the name of a group of axes"), "multiplied with all others");
    }
}

/// The keys of an axis.
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
        /// The last value, included if a step reaches it.
        to: Node = Required(Anything);
        /// The difference between two values, in the same unit.
        step: Option<Node> = Optional(Anything, "set by `factor`");
        /// The ratio of each value to the one before it.
        factor: Option<Node> = Optional(Anything, "set by `step`");
    }
}
