//! Taking numbers from the results of one run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use comity_units::Span;

use super::expression::{Column, Expression, Function, Kind, Operator, Stage, Table};
use super::fault::{Fault, Faulty};
use super::grid::{extreme, unknown};
use crate::metrics;
use crate::network::Network;
use crate::report::{RunReport, groups_of, is_within};
use crate::results::{Picked, columns, pick};

/// What the runs of a scenario have: what a measure is checked against.
#[derive(Clone, Debug, Default)]
pub(super) struct There {
    /// Groups and flows.
    flows: BTreeSet<String>,
    links: BTreeSet<String>,
    /// Whether there are values over time.
    bins: bool,
}

impl There {
    /// Takes note of what a run has.
    pub(super) fn add(&mut self, network: &Network, bins: bool) {
        self.bins |= bins;
        let groups = groups_of(network.flows.iter().map(|flow| flow.group.as_str()));
        self.flows.extend(groups.into_iter().map(Into::into));
        for flow in &network.flows {
            self.flows.insert(flow.name.clone());
        }
        for link in &network.links {
            self.links.insert(link.name.clone());
        }
    }
}

/// What an expression gives: one number, or a number for each of some things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Number,
    /// For each flow or link.
    List,
    /// For each bin of each flow or link.
    Bins,
}

/// Whether an expression can be calculated from the runs of a scenario, and gives one number.
pub(super) fn check(expression: &Expression, there: &There) -> Result<(), Faulty> {
    match form(expression, there)? {
        Form::Number => Ok(()),
        Form::List => Err(Faulty::new(
            &expression.range,
            Fault::List { of: "flow or link" },
        )),
        Form::Bins => Err(Faulty::new(
            &expression.range,
            Fault::List {
                of: "bin of each flow or link",
            },
        )),
    }
}

fn form(expression: &Expression, there: &There) -> Result<Form, Faulty> {
    let range = &expression.range;
    let wrong = |what: String| {
        let fault = Fault::WrongStage {
            what,
            stage: Stage::Value,
        };
        Err(Faulty::new(range, fault))
    };
    match &expression.kind {
        Kind::Number(_) => Ok(Form::Number),
        Kind::Name(name) => wrong(format!("another measure such as `{name}`")),
        Kind::Paper(_) => wrong("numbers of the paper".into()),
        Kind::Select(..) => wrong("points".into()),
        Kind::Column(column) => of_column(column, there),
        Kind::Minus(inner) => form(inner, there),
        Kind::Binary(_, left, right) => both(form(left, there)?, form(right, there)?, range),
        Kind::Call(function, arguments) => of_call(*function, arguments, range, there),
    }
}

fn both(left: Form, right: Form, range: &Range<usize>) -> Result<Form, Faulty> {
    match (left, right) {
        (Form::Number, other) | (other, Form::Number) => Ok(other),
        (left, right) if left == right => Ok(left),
        _ => Err(Faulty::new(range, Fault::Mixed)),
    }
}

fn of_column(column: &Column, there: &There) -> Result<Form, Faulty> {
    let (names, what) = match column.table {
        Table::Flow => (&there.flows, "group or flow"),
        Table::Link => (&there.links, "link"),
    };
    for (name, range) in &column.names {
        if !names.contains(name) {
            let fault = unknown(what, name, names.iter().map(String::as_str));
            return Err(Faulty::new(range, fault));
        }
    }
    if column.bins && !there.bins {
        return Err(Faulty::new(&column.column_range, Fault::NoBins));
    }
    let known = columns(table_name(column));
    if !known.contains(&column.column) {
        let fault = unknown("column", &column.column, known.iter().map(String::as_str));
        return Err(Faulty::new(&column.column_range, fault));
    }
    Ok(if column.bins { Form::Bins } else { Form::List })
}

const fn table_name(column: &Column) -> &'static str {
    match (column.table, column.bins) {
        (Table::Flow, false) => "flows",
        (Table::Flow, true) => "flow_series",
        (Table::Link, false) => "links",
        (Table::Link, true) => "link_series",
    }
}

fn of_call(
    function: Function,
    arguments: &[Expression],
    range: &Range<usize>,
    there: &There,
) -> Result<Form, Faulty> {
    let name = function.row().map_or("", |row| row.name);
    if function.row().is_none_or(|row| row.stage == Stage::Value) {
        let fault = Fault::WrongStage {
            what: format!("`{name}`"),
            stage: Stage::Value,
        };
        return Err(Faulty::new(range, fault));
    }
    let mut forms = Vec::new();
    for argument in arguments {
        forms.push(form(argument, there)?);
    }
    let no_list = || Err(Faulty::new(range, Fault::NoList { function: name }));
    match (function, forms.as_slice()) {
        (Function::Abs | Function::Sqrt, [form]) => Ok(*form),
        (Function::Or, [first, second]) => both(*first, *second, range),
        (Function::Between, [Form::Bins, Form::Number, Form::Number]) => Ok(Form::Bins),
        (Function::Friendliness, [Form::List, Form::List]) => Ok(Form::Number),
        (Function::Between | Function::Friendliness, _) => no_list(),
        (_, [Form::Bins]) => Ok(Form::List),
        (_, [Form::List]) => Ok(Form::Number),
        _ => no_list(),
    }
}

/// The columns that some expressions name.
#[derive(Clone, Debug, Default)]
pub(super) struct Needed {
    tables: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Needed {
    pub(super) fn add(&mut self, expression: &Expression) {
        match &expression.kind {
            Kind::Column(column) => {
                let of = self.tables.entry(table_name(column)).or_default();
                of.insert(column.column.clone());
            }
            Kind::Number(_) | Kind::Name(_) | Kind::Paper(_) => {}
            Kind::Select(inner, _) | Kind::Minus(inner) => self.add(inner),
            Kind::Call(_, arguments) => arguments.iter().for_each(|argument| self.add(argument)),
            Kind::Binary(_, left, right) => {
                self.add(left);
                self.add(right);
            }
        }
    }
}

/// The results of one run, as far as measures need them.
pub(super) struct Results {
    tables: BTreeMap<&'static str, Picked>,
    bin: Option<Span>,
}

impl Results {
    pub(super) fn of(report: &RunReport, needed: &Needed) -> Self {
        Self {
            tables: pick(report, &needed.tables),
            bin: report.series.as_ref().map(|series| series.bin),
        }
    }
}

/// What an expression gives; a value that does not exist is no number.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    Number(f64),
    List(Vec<f64>),
    Bins(Vec<Vec<f64>>),
}

/// The number that an expression gives in one run; none when it does not exist.
pub(super) fn measure(expression: &Expression, results: &Results) -> f64 {
    match given(expression, results) {
        Given::Number(number) if number.is_finite() => number,
        _ => f64::NAN,
    }
}

fn given(expression: &Expression, results: &Results) -> Given {
    match &expression.kind {
        Kind::Number(number) => Given::Number(*number),
        Kind::Name(_) | Kind::Paper(_) | Kind::Select(..) => Given::Number(f64::NAN),
        Kind::Column(column) => read(column, results),
        Kind::Minus(inner) => given(inner, results).map(&|value| -value),
        Kind::Binary(operator, left, right) => {
            let apply = |left: f64, right: f64| match (operator, right) {
                // Nothing of nothing is no share.
                (Operator::Divide, 0.0) => f64::NAN,
                _ => operator.apply(left, right),
            };
            given(left, results).zip(given(right, results), &apply)
        }
        Kind::Call(function, arguments) => {
            let arguments: Vec<Given> = arguments
                .iter()
                .map(|argument| given(argument, results))
                .collect();
            called(*function, arguments, results)
        }
    }
}

fn read(column: &Column, results: &Results) -> Given {
    let Some(picked) = results.tables.get(table_name(column)) else {
        return Given::Number(f64::NAN);
    };
    let is_meant = |name: &str, group: &str| {
        column.names.is_empty()
            || column
                .names
                .iter()
                .any(|(meant, _)| meant == name || is_within(group, meant))
    };
    let empty = Vec::new();
    let values = picked.columns.get(&column.column).unwrap_or(&empty);
    let rows = picked.rows.iter().zip(values);
    let rows = rows.filter(|((_, name, group), _)| is_meant(name, group));
    if !column.bins {
        return Given::List(rows.map(|(_, value)| *value).collect());
    }
    let mut bins: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for ((index, ..), value) in rows {
        bins.entry(*index).or_default().push(*value);
    }
    Given::Bins(bins.into_values().collect())
}

impl Given {
    fn map(self, apply: &dyn Fn(f64) -> f64) -> Self {
        let list = |list: Vec<f64>| list.into_iter().map(apply).collect();
        match self {
            Self::Number(number) => Self::Number(apply(number)),
            Self::List(values) => Self::List(list(values)),
            Self::Bins(bins) => Self::Bins(bins.into_iter().map(list).collect()),
        }
    }

    /// Combines value by value; lists of different lengths have nothing to do with each other.
    fn zip(self, other: Self, apply: &dyn Fn(f64, f64) -> f64) -> Self {
        let lists = |a: Vec<f64>, b: Vec<f64>| -> Vec<f64> {
            if a.len() == b.len() {
                a.into_iter().zip(b).map(|(a, b)| apply(a, b)).collect()
            } else {
                vec![f64::NAN]
            }
        };
        match (self, other) {
            (Self::Number(a), b) => b.map(&|b| apply(a, b)),
            (a, Self::Number(b)) => a.map(&|a| apply(a, b)),
            (Self::List(a), Self::List(b)) => Self::List(lists(a, b)),
            (Self::Bins(a), Self::Bins(b)) if a.len() == b.len() => {
                Self::Bins(a.into_iter().zip(b).map(|(a, b)| lists(a, b)).collect())
            }
            _ => Self::Number(f64::NAN),
        }
    }
}

fn called(function: Function, mut arguments: Vec<Given>, results: &Results) -> Given {
    let second = (arguments.len() > 1).then(|| arguments.remove(1));
    let Some(first) = (!arguments.is_empty()).then(|| arguments.remove(0)) else {
        return Given::Number(f64::NAN);
    };
    match (function, first, second) {
        (Function::Abs, first, _) => first.map(&f64::abs),
        (Function::Sqrt, first, _) => first.map(&f64::sqrt),
        (Function::Or, first, Some(second)) => first.zip(second, &|value, other| {
            if value.is_nan() { other } else { value }
        }),
        (Function::Between, Given::Bins(bins), Some(Given::Number(from))) => {
            let Some(Given::Number(to)) = arguments.pop() else {
                return Given::Number(f64::NAN);
            };
            let length = results.bin.map_or(f64::NAN, Span::as_secs_f64);
            let inside = |list: Vec<f64>| {
                let starts = (0..list.len()).map(|bin| bin as f64 * length);
                // A bin that begins a rounding error before the time begins with it.
                let is_inside = |start: f64| start >= from - 1e-9 && start < to - 1e-9;
                let kept = list
                    .iter()
                    .zip(starts)
                    .filter(|(_, start)| is_inside(*start));
                kept.map(|(value, _)| *value).collect()
            };
            Given::Bins(bins.into_iter().map(inside).collect())
        }
        (Function::Friendliness, Given::List(a), Some(Given::List(b))) => {
            Given::Number(metrics::friendliness(&a, &b).unwrap_or(f64::NAN))
        }
        (_, Given::Bins(bins), None) => {
            Given::List(bins.iter().map(|list| reduce(function, list)).collect())
        }
        (_, Given::List(list), None) => Given::Number(reduce(function, &list)),
        _ => Given::Number(f64::NAN),
    }
}

/// Makes one number of a list; of an empty one there is a count and a sum.
fn reduce(function: Function, list: &[f64]) -> f64 {
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    match function {
        Function::Count => list.len() as f64,
        Function::Deviation => {
            let mean = mean(list);
            let squares: f64 = list.iter().map(|x| (x - mean) * (x - mean)).sum();
            (squares / list.len() as f64).sqrt()
        }
        Function::Jain => metrics::jain(list).unwrap_or(f64::NAN),
        Function::Max => extreme(list.iter().copied(), f64::max),
        Function::Mean => mean(list),
        Function::Median => {
            let mut sorted = list.to_vec();
            sorted.sort_by(f64::total_cmp);
            let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
            match (sorted.get(low), sorted.get(high)) {
                (Some(low), Some(high)) if list.iter().all(|x| !x.is_nan()) => (low + high) / 2.0,
                _ => f64::NAN,
            }
        }
        Function::Min => extreme(list.iter().copied(), f64::min),
        Function::Separation => metrics::max_min_ratio(list).unwrap_or(f64::NAN),
        Function::Sum => list.iter().sum(),
        Function::Variation => metrics::coefficient_of_variation(list).unwrap_or(f64::NAN),
        Function::Worst => metrics::baseline(list).map_or(f64::NAN, |halves| halves.worst),
        Function::Abs
        | Function::Argmax
        | Function::Argmin
        | Function::Between
        | Function::Friendliness
        | Function::Or
        | Function::Spearman
        | Function::Sqrt => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use comity_units::{Seed, Time};

    use super::super::parser;
    use super::*;
    use crate::report::{Cost, FlowReport, FlowSeries, LinkReport, Series};

    fn report() -> RunReport {
        let flow = |group: &str, name: &str, throughput: f64, sent: u64, dropped: u64| FlowReport {
            name: name.into(),
            group: group.into(),
            throughput_bps: throughput,
            sent_packets: sent,
            dropped_packets: dropped,
            finished: (name == "a-0").then(|| Time::from_nanos(2_000_000_000)),
            ..FlowReport::default()
        };
        let series = |sent: [u32; 4]| FlowSeries {
            sent_packets: sent.into(),
            ..FlowSeries::default()
        };
        RunReport {
            world: crate::report::World::default(),
            seed: Seed::new(1),
            fingerprint: 0,
            duration: Span::from_secs(4),
            warmup: Span::ZERO,
            flows: vec![
                flow("a", "a-0", 3e6, 100, 10),
                flow("a", "a-1", 1e6, 100, 30),
                flow("b+c", "b-0", 4e6, 0, 0),
            ],
            links: vec![LinkReport {
                name: "bottleneck".into(),
                utilisation: Some(0.75),
                ..LinkReport::default()
            }],
            cost: Cost::default(),
            packets: None,
            series: Some(Series {
                bin: Span::from_secs(1),
                flows: vec![series([1, 2, 3, 4]), series([5, 5, 5, 5]), series([0; 4])],
                ..Series::default()
            }),
        }
    }

    fn number(text: &str) -> f64 {
        let expression = parser::expression(text).unwrap();
        let mut needed = Needed::default();
        needed.add(&expression);
        measure(&expression, &Results::of(&report(), &needed))
    }

    #[test]
    fn lists_are_of_groups_of_flows_and_of_all() {
        assert_eq!(number("mean(flow.a.throughput_bps) / 1e6"), 2.0);
        assert_eq!(number("sum(flow.*.throughput_bps) / 1Mbps"), 8.0);
        assert_eq!(number("sum(flow.{b, 'a-1'}.throughput_bps) / 1Mbps"), 5.0);
        assert_eq!(
            number("min(flow.*.throughput_bps) - max(flow.*.throughput_bps)"),
            -3e6
        );
        assert_eq!(number("median(flow.*.throughput_bps)"), 3e6);
        assert_eq!(number("count(flow.a.throughput_bps)"), 2.0);
        assert_eq!(number("stddev(flow.a.throughput_bps)"), 1e6);
        assert_eq!(number("variation(flow.a.throughput_bps)"), 0.5);
        // (3 + 1)² / (2 (9 + 1)).
        assert!((number("jain(flow.a.throughput_bps)") - 0.8).abs() < 1e-12);
        assert_eq!(number("max_min_ratio(flow.a.throughput_bps)"), 3.0);
        assert_eq!(number("worst(flow.a.throughput_bps)"), 3.0);
        assert_eq!(
            number("friendliness(flow.a.throughput_bps, flow.b.throughput_bps)"),
            0.5
        );
        assert_eq!(number("mean(link.bottleneck.utilisation)"), 0.75);
    }

    #[test]
    fn lists_are_calculated_with_one_by_one() {
        assert_eq!(
            number("max(flow.a.dropped_packets / flow.a.sent_packets)"),
            0.3
        );
        assert_eq!(
            number("sum(flow.a.dropped_packets) / sum(flow.a.sent_packets)"),
            0.2
        );
        assert!(number("mean(flow.b.dropped_packets / flow.b.sent_packets)").is_nan());
        assert!(number("sum(flow.b.throughput_bps + flow.a.throughput_bps)").is_nan());
    }

    #[test]
    fn what_does_not_exist_is_no_number_unless_replaced() {
        assert_eq!(number("mean(flow.'a-0'.finished_ns) / 1e9"), 2.0);
        assert!(number("mean(flow.a.finished_ns)").is_nan());
        assert_eq!(number("mean(or(flow.a.finished_ns / 1e9, 4s))"), 3.0);
    }

    #[test]
    fn bins_are_reduced_flow_by_flow() {
        assert_eq!(number("sum(mean(flow.a.bins.sent_packets))"), 7.5);
        assert_eq!(
            number("max(sum(between(flow.a.bins.sent_packets, 1s, 3s)))"),
            10.0
        );
        assert_eq!(
            number("min(sum(between(flow.a.bins.sent_packets, 1s, 3s)))"),
            5.0
        );
        assert_eq!(number("mean(stddev(flow.'a-1'.bins.sent_packets))"), 0.0);
    }

    #[test]
    fn mistakes_are_found_before_anything_is_run() {
        let mut there = There {
            flows: ["a", "b", "a-0"].map(String::from).into(),
            links: ["bottleneck".into()].into(),
            bins: false,
        };
        let fault = |text: &str, there: &There| {
            let expression = parser::expression(text).unwrap();
            check(&expression, there).expect_err(text).fault
        };
        assert_eq!(
            fault("flow.a.throughput_bps", &there),
            Fault::List { of: "flow or link" }
        );
        assert!(matches!(
            fault("mean(flow.a.througput_bps)", &there),
            Fault::Unknown { what: "column", nearest: Some(near), .. } if near == "throughput_bps"
        ));
        assert!(matches!(
            fault("mean(flow.c.throughput_bps)", &there),
            Fault::Unknown {
                what: "group or flow",
                ..
            }
        ));
        assert!(matches!(
            fault("mean(link.bottle.utilisation)", &there),
            Fault::Unknown { .. }
        ));
        assert_eq!(
            fault("mean(mean(flow.a.bins.sent_packets))", &there),
            Fault::NoBins
        );
        assert!(matches!(
            fault("mean(3)", &there),
            Fault::NoList { function: "mean" }
        ));
        assert!(matches!(
            fault("argmax(3, a)", &there),
            Fault::WrongStage { .. }
        ));
        assert!(matches!(
            fault("other + 1", &there),
            Fault::WrongStage { .. }
        ));
        there.bins = true;
        assert_eq!(
            fault(
                "mean(flow.a.bins.sent_packets + flow.a.sent_packets)",
                &there
            ),
            Fault::Mixed
        );
        let fine = parser::expression("mean(flow.'a-0'.delay_mean_s)").unwrap();
        assert_eq!(check(&fine, &there), Ok(()));
    }

    /// A measure may name a combined group only if the results have one; a group without
    /// partners makes none.
    #[test]
    fn groups_are_there_together_as_they_are_in_results() {
        use crate::scenario::{NoFiles, Reading, Scenario};
        let there = |groups: &[&str]| {
            let flows = groups.iter().map(|group| {
                format!(
                    "[[flow]]\ngroup = \"{group}\"\ntransport = \"datagram\"\n\
                     workload = {{ kind = \"cbr\", rate = \"1Mbps\" }}\n"
                )
            });
            let text = format!(
                "[scenario]\nname = \"x\"\nduration = \"1s\"\n[topology]\nkind = \"dumbbell\"\n\
                 bottleneck = {{ rate = \"1Mbps\", delay = \"1ms\" }}\n{}",
                flows.collect::<String>()
            );
            let scenario = Scenario::parse("x.toml", &text, NoFiles, &Reading::default()).unwrap();
            let (network, _) = scenario.prepare(&scenario.runs()[0]);
            let mut there = There::default();
            there.add(&network, false);
            there.flows
        };
        let has = |groups: &[&str], name: &str| there(groups).contains(name);
        assert!(has(&["net+long", "net+short"], "net"));
        assert!(has(&["net+long", "net+short"], "net+long"));
        assert!(has(&["net+long"], "net+long"));
        assert!(!has(&["net+long"], "net"));
        assert!(has(&["net+long"], "net+long-0"));
    }
}
