//! The axes of a sweep.

use std::collections::BTreeSet;

use comity_units::{DataSize, Rate, Span};

use super::document::{Node, Value};
use super::kinds::Quantity;
use super::path::{self, Location};
use super::problem::{Problem, ProblemKind, RangeFault, Unfit};
use super::schema::{At, Context, Shape};
use super::source::SourceSpan;
use super::tables::{RangeTable, SweepTable};
use crate::results::AxisValue;

/// The most values of one axis.
const MAX_VALUES: usize = 1_000_000;

impl From<&Node> for AxisValue {
    fn from(node: &Node) -> Self {
        match &node.value {
            Value::Integer(value) => Self::Integer(*value),
            Value::Float(value) => Self::Number(*value),
            Value::Boolean(value) => Self::Boolean(*value),
            Value::Text(text) => Self::Text(text.clone()),
            _ => Self::Text(node.to_line()),
        }
    }
}

/// A text that is equal for equal values, such as `1` and `1.0`, or `"1s"` and `"1000ms"`.
pub(super) fn identity(node: &Node) -> String {
    match &node.value {
        Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.0}"),
        Value::Text(text) => [Unit::Span, Unit::Rate, Unit::Bytes, Unit::Packets]
            .into_iter()
            .find_map(|unit| Some(unit.text(unit.count(text)?)))
            .map_or_else(|| node.to_line(), |value| format!("{value:?}")),
        _ => node.to_line(),
    }
}

/// One axis: the keys that vary together, and their values.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) paths: Vec<String>,
    /// The span of the paths in the text.
    pub(super) span: Option<SourceSpan>,
    pub(super) values: Vec<Node>,
}

/// Axes that advance together. The points of a sweep are the product of its groups.
#[derive(Clone, Debug)]
pub(super) struct Group {
    zip: Option<String>,
    pub(super) axes: Vec<Axis>,
}

impl Group {
    pub(super) fn len(&self) -> usize {
        self.axes.first().map_or(1, |axis| axis.values.len())
    }

    /// Reports the first point that is equal to an earlier one: their runs would be the same.
    fn report_repeated(&self, cx: &mut Context<'_>) {
        let Some(first) = self.axes.first() else {
            return;
        };
        let mut seen = BTreeSet::new();
        for (at, value) in first.values.iter().enumerate() {
            let values = self.axes.iter().filter_map(|axis| axis.values.get(at));
            if seen.insert(values.map(identity).collect::<Vec<_>>()) {
                continue;
            }
            let kind = ProblemKind::Unfit {
                reason: Unfit::RepeatedPoint,
            };
            let path = format!("sweep.{}", first.name);
            cx.problems
                .push(Problem::new(Some(value.span), &path, kind));
            return;
        }
    }
}

/// A value from outside the scenario, and the keys that it sets.
#[derive(Clone, Debug)]
pub(super) struct Override {
    pub(super) path: String,
    pub(super) value: Node,
    pub(super) keys: Vec<Location>,
}

/// Whether each of `keys` is one of `others` or below one.
fn is_covered(keys: &[Location], others: &[&Location]) -> bool {
    keys.iter()
        .all(|key| others.iter().any(|other| key.starts_with(other)))
}

/// Reports overrides without effect, because later ones set their keys again.
pub(super) fn report_set_again(overrides: &[Override], cx: &mut Context<'_>) {
    for (at, early) in overrides.iter().enumerate() {
        let later = overrides.get(at + 1..).unwrap_or_default();
        let keys: Vec<&Location> = later.iter().flat_map(|it| &it.keys).collect();
        let Some(last) = later.last().filter(|_| is_covered(&early.keys, &keys)) else {
            continue;
        };
        let kind = ProblemKind::SetAgain {
            by: last.path.clone(),
        };
        let problem = Problem::new(Some(early.value.span), &early.path, kind);
        cx.problems.push(problem);
    }
}

/// Lets overrides replace the values of axes that set the same keys. Returns notes for the user.
/// Reports overrides that axes would hide, and axes that later ones hide.
pub(super) fn overrule(
    groups: &mut [Group],
    document: &Node,
    shape: &Shape,
    overrides: &[Override],
    cx: &mut Context<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    // Keys of lists are those at the first point.
    let mut document = document.clone();
    let mut known: Vec<(String, Option<SourceSpan>, Vec<Location>)> = Vec::new();
    for group in groups.iter_mut() {
        let mut replaced = 0;
        for axis in &mut group.axes {
            let Some(value) = axis.values.first() else {
                continue;
            };
            let assigned = axis.paths.iter().map(|path| {
                // Unknown paths are reported when the point is read.
                path::assign(&mut document, shape, path, value).unwrap_or_default()
            });
            let keys: Vec<Location> = assigned.flatten().collect();
            if let Some((by, value)) = axis.overruled(&keys, overrides, cx) {
                let number = axis.values.len();
                let values = if number == 1 { "value" } else { "values" };
                notes.push(format!(
                    "`{by}` = {} replaces the {number} {values} of the axis \"{}\"",
                    value.show(),
                    axis.name,
                ));
                axis.values = vec![value; number];
                replaced += 1;
            }
            known.push((axis.name.clone(), axis.span, keys));
        }
        if replaced == group.axes.len() {
            for axis in &mut group.axes {
                axis.values.truncate(1);
            }
        } else if replaced > 0 {
            group.report_repeated(cx);
        }
    }
    for (at, (name, span, keys)) in known.iter().enumerate() {
        let later = known.get(at + 1..).unwrap_or_default();
        let others: Vec<&Location> = later.iter().flat_map(|(_, _, keys)| keys).collect();
        if let Some((by, ..)) = later.last()
            && !keys.is_empty()
            && is_covered(keys, &others)
        {
            let kind = ProblemKind::SetAgain {
                by: format!("sweep.{by}"),
            };
            let problem = Problem::new(*span, &format!("sweep.{name}"), kind);
            cx.problems.push(problem);
        }
    }
    notes
}

impl Axis {
    /// The path and the value of the overrides that set all keys of the axis. Reports an override
    /// that the axis would hide otherwise.
    fn overruled(
        &self,
        keys: &[Location],
        overrides: &[Override],
        cx: &mut Context<'_>,
    ) -> Option<(String, Node)> {
        let mut hidden = overrides.iter().filter(|it| it.meets(keys)).peekable();
        let by = *hidden.peek()?;
        // Of two overrides of one key, the last one counts.
        let last = |key: &Location| overrides.iter().rfind(|it| it.keys.contains(key));
        let values: Option<Vec<&Override>> = keys.iter().map(last).collect();
        let value = values.filter(|values| {
            let is_same = |it: &&Override| identity(&it.value) == identity(&by.value);
            values.iter().all(is_same)
        });
        if value.is_some() {
            return Some((by.path.clone(), by.value.clone()));
        }
        let kind = ProblemKind::SetAndSwept {
            axis: self.name.clone(),
            keys: self.paths.clone(),
        };
        let problem = Problem::new(Some(by.value.span), &by.path, kind);
        cx.problems.push(problem);
        None
    }
}

impl Override {
    /// Whether an axis that sets `keys` hides a part of this value.
    fn meets(&self, keys: &[Location]) -> bool {
        self.keys.iter().any(|own| {
            keys.iter().any(|key| match key.strip_prefix(&own[..]) {
                Some(rest) => path::inside(&self.value, rest).is_some(),
                None => own.starts_with(key),
            })
        })
    }
}

/// The groups of axes; `None` only after a report.
pub(super) fn groups(tables: &[SweepTable], cx: &mut Context<'_>) -> Option<Vec<Group>> {
    let reported = cx.problems.len();
    let mut groups: Vec<Group> = Vec::new();
    let mut names: Vec<(String, Option<SourceSpan>)> = Vec::new();
    for table in tables {
        let Some(axis) = axis(table, cx) else {
            continue;
        };
        let key = if table.name.is_some() {
            "name"
        } else {
            "parameter"
        };
        let span = table.written.span_of(key);
        match names.iter().find(|(name, _)| *name == axis.name) {
            Some((name, first)) => cx.report_at(
                &table.written,
                key,
                ProblemKind::Duplicate {
                    what: "sweep axis",
                    name: name.clone(),
                    first: *first,
                },
            ),
            None => names.push((axis.name.clone(), span)),
        }
        let partner = table.zip.as_ref().and_then(|zip| {
            groups
                .iter_mut()
                .find(|group| group.zip.as_ref() == Some(zip))
        });
        match partner {
            Some(group) if group.len() != axis.values.len() => {
                let kind = ProblemKind::UnevenZip {
                    group: group.zip.clone().unwrap_or_default(),
                    found: axis.values.len(),
                    expected: group.len(),
                };
                cx.report_at(&table.written, "zip", kind);
            }
            Some(group) => group.axes.push(axis),
            None => groups.push(Group {
                zip: table.zip.clone(),
                axes: vec![axis],
            }),
        }
    }
    if cx.problems.len() == reported {
        groups.iter().for_each(|group| group.report_repeated(cx));
    }
    (cx.problems.len() == reported).then_some(groups)
}

/// Keys of `[scenario]` that may differ from run to run.
const SWEPT_OF_SCENARIO: [&str; 3] = ["duration", "warmup", "bins"];

fn axis(table: &SweepTable, cx: &mut Context<'_>) -> Option<Axis> {
    let written = &table.written;
    for path in &table.parameter.0 {
        let mut parts = path.split('.').map(str::trim);
        let swept = match (parts.next(), parts.next()) {
            (Some("sweep"), _) => false,
            (Some("scenario"), Some(key)) => SWEPT_OF_SCENARIO.contains(&key),
            _ => true,
        };
        if !swept {
            let span = written.span_of("parameter");
            let problem = Problem::new(span, path, ProblemKind::NotSwept);
            cx.problems.push(problem);
            return None;
        }
    }
    let values = match (&table.values, &table.range) {
        (Some(values), None) => values.clone(),
        (None, Some(range)) => {
            let span = written.span_of("range");
            match range_values(range, cx)? {
                Ok(values) => values
                    .into_iter()
                    .filter_map(|value| Some(Node { span: span?, value }))
                    .collect(),
                Err(reason) => {
                    cx.report_at(written, "range", ProblemKind::BadRange { reason });
                    return None;
                }
            }
        }
        (Some(_), Some(_)) => {
            cx.report_at(written, "range", ProblemKind::Excludes { other: "values" });
            return None;
        }
        (None, None) => {
            let expected = "`values` or `range`".into();
            cx.report_at(written, "values", ProblemKind::Missing { expected });
            return None;
        }
    };
    Some(Axis {
        name: table
            .name
            .clone()
            .or_else(|| table.parameter.0.first().cloned())?,
        paths: table.parameter.0.clone(),
        span: written.span_of("parameter"),
        values,
    })
}

/// The values of a range; `None` only after a report.
fn range_values(
    range: &RangeTable,
    cx: &mut Context<'_>,
) -> Option<Result<Vec<Value>, RangeFault>> {
    let factor = match &range.factor {
        None => None,
        Some(node) => match node.value {
            Value::Integer(factor) => Some(factor as f64),
            Value::Float(factor) => Some(factor),
            _ => {
                wrong_factor(node, &range.written, cx);
                return None;
            }
        },
    };
    Some(match (&range.step, factor) {
        (Some(step), None) => steps(&range.from, &range.to, step),
        (None, Some(factor)) => factors(&range.from, &range.to, factor),
        _ => Err(RangeFault::StepOrFactor),
    })
}

fn wrong_factor(node: &Node, written: &At, cx: &mut Context<'_>) {
    let kind = ProblemKind::WrongKind {
        found: node.kind(),
        value: node.show(),
        expected: "a number above 1".into(),
    };
    cx.report_at(written, "factor", kind);
}

/// A number with a unit, as a count of its smallest parts.
#[derive(Clone, Copy)]
enum Unit {
    Span,
    Rate,
    Bytes,
    Packets,
}

impl Unit {
    fn text(self, count: u64) -> Value {
        Value::Text(match self {
            Self::Span => Span::from_nanos(count).to_string(),
            Self::Rate => Rate::from_bps(count).to_string(),
            Self::Bytes => DataSize::new(count).to_string(),
            Self::Packets => format!("{count} packets"),
        })
    }

    fn count(self, text: &str) -> Option<u64> {
        fn read<Q: Quantity>(text: &str) -> Option<Q> {
            text.parse().ok()
        }
        match self {
            Self::Span => read(text).map(Span::as_nanos),
            Self::Rate => read(text).map(Rate::as_bps),
            Self::Bytes => read(text).map(DataSize::get),
            Self::Packets => text.trim().strip_suffix("packets")?.trim().parse().ok(),
        }
    }
}

/// The counts of two or three quantities in their common unit.
fn counts<const N: usize>(nodes: [&Node; N]) -> Option<(Unit, [u64; N])> {
    [Unit::Span, Unit::Rate, Unit::Bytes, Unit::Packets]
        .into_iter()
        .find_map(|unit| {
            let mut counts = [0; N];
            for (count, node) in counts.iter_mut().zip(nodes) {
                *count = unit.count(node.text()?)?;
            }
            Some((unit, counts))
        })
}

fn numbers<const N: usize>(nodes: [&Node; N]) -> Option<[f64; N]> {
    let mut numbers = [0.0; N];
    for (number, node) in numbers.iter_mut().zip(nodes) {
        *number = match node.value {
            Value::Integer(value) => value as f64,
            Value::Float(value) if value.is_finite() => value,
            _ => return None,
        };
    }
    Some(numbers)
}

fn steps(from: &Node, to: &Node, step: &Node) -> Result<Vec<Value>, RangeFault> {
    let whole = |from: i128, to: i128, step: i128| {
        if step <= 0 {
            return Err(RangeFault::Step);
        }
        if to < from {
            return Err(RangeFault::Reversed);
        }
        let count = (to - from) / step + 1;
        match usize::try_from(count) {
            Ok(count) if count <= MAX_VALUES => {
                Ok((0..count as i128).map(move |index| from + index * step))
            }
            _ => Err(RangeFault::TooMany),
        }
    };
    if let (Value::Integer(from), Value::Integer(to), Value::Integer(step)) =
        (&from.value, &to.value, &step.value)
    {
        let values = whole((*from).into(), (*to).into(), (*step).into())?;
        return Ok(values.map(|value| Value::Integer(value as i64)).collect());
    }
    if let Some((unit, [from, to, step])) = counts([from, to, step]) {
        let values = whole(from.into(), to.into(), step.into())?;
        return Ok(values.map(|value| unit.text(value as u64)).collect());
    }
    let [from, to, step] = numbers([from, to, step]).ok_or(RangeFault::MixedUnits)?;
    if step <= 0.0 {
        return Err(RangeFault::Step);
    }
    if to < from {
        return Err(RangeFault::Reversed);
    }
    // Slightly more than the last whole step, because 0.3 is not 3 times 0.1 in binary.
    let count = ((to - from) / step + 1e-6).floor() + 1.0;
    if count > MAX_VALUES as f64 {
        return Err(RangeFault::TooMany);
    }
    Ok((0..count as usize)
        .map(|index| Value::Float(tidy(from + index as f64 * step)))
        .collect())
}

fn factors(from: &Node, to: &Node, factor: f64) -> Result<Vec<Value>, RangeFault> {
    // NaN also fails this comparison.
    if !(factor > 1.0 && factor.is_finite()) {
        return Err(RangeFault::Factor);
    }
    let series = |from: f64, to: f64| {
        if to < from {
            return Err(RangeFault::Reversed);
        }
        if from <= 0.0 {
            return Err(RangeFault::FactorFromZero);
        }
        let mut values = Vec::new();
        let mut value = from;
        while value <= to * (1.0 + 1e-9) {
            if values.len() >= MAX_VALUES {
                return Err(RangeFault::TooMany);
            }
            values.push(value);
            value *= factor;
        }
        Ok(values)
    };
    let mut values: Vec<Value> = Vec::new();
    let integers = matches!(
        (&from.value, &to.value),
        (Value::Integer(_), Value::Integer(_))
    ) && factor.fract() == 0.0;
    if let Some((unit, [from, to])) = counts([from, to]) {
        for value in series(from as f64, to as f64)? {
            values.push(unit.text((value + 0.5) as u64));
        }
    } else {
        let [from, to] = numbers([from, to]).ok_or(RangeFault::MixedUnits)?;
        for value in series(from, to)? {
            values.push(if integers {
                Value::Integer(value as i64)
            } else {
                Value::Float(tidy(value))
            });
        }
    }
    Ok(values)
}

/// The number rounded to twelve digits, which removes rounding errors.
fn tidy(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::super::document::parse_value;
    use super::super::source::Sources;
    use super::*;

    fn node(text: &str) -> Node {
        parse_value(&mut Sources::default(), "x", text).unwrap()
    }

    fn shown(values: Result<Vec<Value>, RangeFault>) -> Result<String, RangeFault> {
        let span = node("1").span;
        Ok(values?
            .into_iter()
            .map(|value| AxisValue::from(&Node { span, value }).to_string())
            .collect::<Vec<_>>()
            .join(" "))
    }

    /// Long values are shortened neither in comparisons nor in the results.
    #[test]
    fn long_values_that_begin_alike_are_two() {
        let text = |last| format!("[{}{last}]", "100, ".repeat(40));
        let [first, second] = [text(1), text(2)].map(|text| node(&text));
        assert_ne!(identity(&first), identity(&second));
        assert_eq!(AxisValue::from(&first).to_string(), text(1));
    }

    #[test]
    fn steps_and_factors_include_the_end_they_meet() {
        for (from, to, step, expected) in [
            ("2", "10", "4", "2 6 10"),
            ("2", "9", "4", "2 6"),
            ("0.1", "0.3", "0.1", "0.1 0.2 0.3"),
            ("\"1ms\"", "\"2ms\"", "\"500us\"", "1ms 1.5ms 2ms"),
            ("\"1Mbps\"", "\"3Mbps\"", "\"1Mbps\"", "1Mbps 2Mbps 3Mbps"),
            (
                "\"10 packets\"",
                "\"30 packets\"",
                "\"20 packets\"",
                "10 packets 30 packets",
            ),
        ] {
            let values = shown(steps(&node(from), &node(to), &node(step)));
            assert_eq!(values.as_deref(), Ok(expected));
        }
        for (from, to, factor, expected) in [
            ("1", "8", 2.0, "1 2 4 8"),
            ("1", "2", 1.5, "1 1.5"),
            ("\"1ms\"", "\"8ms\"", 2.0, "1ms 2ms 4ms 8ms"),
        ] {
            let values = shown(factors(&node(from), &node(to), factor));
            assert_eq!(values.as_deref(), Ok(expected));
        }
    }

    #[test]
    fn ranges_without_values_are_refused() {
        for (from, to, step, fault) in [
            ("3", "1", "1", RangeFault::Reversed),
            ("1", "3", "0", RangeFault::Step),
            ("1", "3", "-1", RangeFault::Step),
            ("0", "9000000000000000000", "1", RangeFault::TooMany),
            ("\"1ms\"", "3", "1", RangeFault::MixedUnits),
            ("\"1ms\"", "\"3Mbps\"", "\"1ms\"", RangeFault::MixedUnits),
            ("nan", "3.0", "1.0", RangeFault::MixedUnits),
            ("0.0", "1.0", "1e-300", RangeFault::TooMany),
        ] {
            assert_eq!(
                steps(&node(from), &node(to), &node(step)).err(),
                Some(fault)
            );
        }
        for (from, to, factor, fault) in [
            ("1", "8", 1.0, RangeFault::Factor),
            ("1", "8", f64::NAN, RangeFault::Factor),
            ("0", "8", 2.0, RangeFault::FactorFromZero),
            ("8", "1", 2.0, RangeFault::Reversed),
            ("1", "8", 1.000_000_000_1, RangeFault::TooMany),
        ] {
            assert_eq!(factors(&node(from), &node(to), factor).err(), Some(fault));
        }
    }
}
