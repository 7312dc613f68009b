//! The choice of runs of a sweep: by the values of its axes, and by shards.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use comity_congestion::table::nearest;

use super::document::{Node, Value};
use super::source::SourceSpan;
use super::sweep::identity;
use super::{Run, Scenario};

/// The most values that an error lists.
const MOST: usize = 12;

/// Why runs cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceError(String);

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChoiceError {}

/// A part of the runs of a sweep, such as the third of sixteen: `3/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    part: usize,
    of: usize,
}

impl Shard {
    /// Whether the run with this number belongs to it. Successive runs take about as long, and
    /// belong to different shards.
    pub const fn has(self, number: usize) -> bool {
        number % self.of == self.part - 1
    }
}

impl FromStr for Shard {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Self { part, of }),
            _ => Err(ChoiceError(
                "expected K/N with K from 1 to N, such as 3/16".into(),
            )),
        }
    }
}

impl Scenario {
    /// The runs at these points that belong to a shard, in order. Points are texts such as
    /// `queue=60`. Values of one axis are alternatives, and an axis without a value has all. Equal
    /// values may be written differently: `1s` is `1000ms`.
    ///
    /// # Errors
    /// [`ChoiceError`] if there is no such axis or value.
    pub fn choose(&self, points: &[String], shard: Option<Shard>) -> Result<Vec<Run>, ChoiceError> {
        let mut chosen: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for text in points {
            let Some((axis, value)) = text.split_once('=') else {
                return Err(ChoiceError(format!(
                    "{text:?} is not a point; expected AXIS=VALUE, such as queue=60"
                )));
            };
            let axis = self.check_axis_value(axis, value)?;
            chosen.entry(axis).or_default().extend(identities(value));
        }
        let mut runs = self.runs();
        runs.retain(|run| {
            chosen.iter().all(|(axis, values)| {
                let node = self.axis_node(run.point, *axis);
                node.is_some_and(|node| values.contains(&identity(node)))
            })
        });
        if runs.is_empty() {
            return Err(ChoiceError(format!(
                "the sweep has no point with {}; axes with one `zip` vary together",
                points.join(" and ")
            )));
        }
        runs.retain(|run| shard.is_none_or(|shard| shard.has(run.number)));
        Ok(runs)
    }

    /// The number of the axis with this name. Checks that it has this value.
    fn check_axis_value(&self, name: &str, value: &str) -> Result<usize, ChoiceError> {
        let axes = self.axes();
        let axis = self
            .groups
            .iter()
            .flat_map(|group| &group.axes)
            .enumerate()
            .find(|(_, axis)| axis.name == name);
        let Some((number, axis)) = axis else {
            let expected = match (nearest(name, axes.iter().copied()), axes.is_empty()) {
                (Some(nearest), _) => format!("did you mean {nearest:?}?"),
                (None, true) => "the scenario has no sweep".into(),
                (None, false) => format!("expected one of {}", axes.join(", ")),
            };
            return Err(ChoiceError(format!(
                "the sweep has no axis {name:?}; {expected}"
            )));
        };
        let wanted = identities(value);
        if axis.values.iter().any(|it| wanted.contains(&identity(it))) {
            return Ok(number);
        }
        let known: Vec<_> = axis.values.iter().take(MOST).map(Node::show).collect();
        let more = if axis.values.len() > MOST {
            ", ..."
        } else {
            ""
        };
        Err(ChoiceError(format!(
            "the axis {name} has no value {value}; expected one of {}{more}",
            known.join(", ")
        )))
    }

    /// The value of the axis with this number at a point.
    fn axis_node(&self, point: usize, axis: usize) -> Option<&Node> {
        self.indices(point)
            .flat_map(|(group, index)| {
                let axes = group.axes.iter();
                axes.filter_map(move |axis| axis.values.get(index))
            })
            .nth(axis)
    }
}

/// The possible meanings of a value of the command line: a number or a text.
fn identities(text: &str) -> Vec<String> {
    let text = text.trim();
    let number = text
        .parse()
        .map(Value::Integer)
        .or_else(|_| text.parse().map(Value::Float));
    let number = number.ok();
    let boolean = text.parse().map(Value::Boolean).ok();
    let span = SourceSpan::new(0, 0..0);
    [Some(Value::Text(text.into())), number, boolean]
        .into_iter()
        .flatten()
        .map(|value| identity(&Node { span, value }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{NoFiles, Reading};
    use super::*;

    fn scenario() -> Scenario {
        let text = r#"
            [scenario]
            name = "x"
            duration = "1s"
            seeds = { count = 2 }
            [topology]
            kind = "dumbbell"
            bottleneck = { rate = "1Mbps", delay = "1ms" }
            [[flow]]
            group = "tcp"
            [[sweep]]
            name = "length"
            parameter = "scenario.duration"
            values = ["1s", "10s", "100s"]
            [[sweep]]
            name = "count"
            parameter = "flow.tcp.count"
            values = [1, 2]
        "#;
        Scenario::parse("x", text, NoFiles, &Reading::default()).unwrap()
    }

    fn numbers(points: &[&str], shard: Option<&str>) -> Vec<usize> {
        let points: Vec<_> = points.iter().map(|point| (*point).into()).collect();
        let shard = shard.map(|shard| shard.parse().unwrap());
        let runs = scenario().choose(&points, shard).unwrap();
        runs.iter().map(|run| run.number).collect()
    }

    #[test]
    fn points_and_shards_choose_runs() {
        assert_eq!(numbers(&[], None), (0..12).collect::<Vec<_>>());
        assert_eq!(numbers(&["length=10000ms"], None), [4, 5, 6, 7]);
        let two = numbers(&["length=1s", "count=2", "length=100s"], None);
        assert_eq!(two, [2, 3, 10, 11]);
        assert_eq!(numbers(&["count=1"], Some("2/3")), [1, 4]);
        assert!(numbers(&["length=1s"], Some("9/99")).is_empty());
    }

    #[test]
    fn points_that_do_not_exist_are_refused() {
        for (point, expected) in [
            ("lenght=1s", "did you mean \"length\"?"),
            ("length=2s", "expected one of \"1s\", \"10s\", \"100s\""),
            ("length", "expected AXIS=VALUE"),
        ] {
            let error = scenario().choose(&[point.into()], None).unwrap_err();
            assert!(error.to_string().contains(expected), "{point}: {error}");
        }
    }

    #[test]
    fn shards_part_the_runs() {
        let parts = ["1/3", "2/3", "3/3"].map(|part| part.parse::<Shard>().unwrap());
        for number in 0..10 {
            assert_eq!(parts.iter().filter(|part| part.has(number)).count(), 1);
        }
        for bad in ["", "3", "0/3", "4/3", "1/0", "-1/3", "a/b", "1/2/3"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad:?} was accepted");
        }
    }
}
