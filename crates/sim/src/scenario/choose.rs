//! Choosing one run of a sweep by the values of its axes.

use std::fmt;

use comity_congestion::table::nearest;

use super::document::{Node, Value};
use super::source::Place;
use super::sweep::identity;
use super::{Run, Scenario};

/// The most values that an error lists.
const MOST: usize = 12;

/// Why a point does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChoiceError(String);

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChoiceError {}

impl Scenario {
    /// The first run at a point, given as texts such as `queue=60`. An axis without a value has
    /// its first one. Equal values may be written differently: `1s` is `1000ms`.
    ///
    /// # Errors
    /// [`ChoiceError`] if there is no such axis or value.
    pub fn run_at(&self, point: &[String]) -> Result<Run, ChoiceError> {
        let mut chosen: Vec<(&str, Vec<String>)> = Vec::new();
        for text in point {
            let Some((axis, value)) = text.split_once('=') else {
                return Err(ChoiceError(format!(
                    "{text:?} is not a point; expected AXIS=VALUE, such as queue=60"
                )));
            };
            self.check_axis_value(axis, value)?;
            chosen.push((axis, identities(value)));
        }
        let axes = self.axes();
        self.runs()
            .into_iter()
            .find(|run| {
                chosen.iter().all(|(axis, value)| {
                    let at = axes.iter().position(|name| name == axis);
                    let node = at.and_then(|at| self.axis_node(run.point, at));
                    node.is_some_and(|node| value.contains(&identity(node)))
                })
            })
            .ok_or_else(|| {
                ChoiceError(format!(
                    "the sweep has no point with {}; axes with one `zip` vary together",
                    point.join(" and ")
                ))
            })
    }

    fn check_axis_value(&self, name: &str, value: &str) -> Result<(), ChoiceError> {
        let axes = self.axes();
        let axis = self
            .groups
            .iter()
            .flat_map(|group| &group.axes)
            .find(|axis| axis.name == name);
        let Some(axis) = axis else {
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
            return Ok(());
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

/// How a value of the command line may be meant: as a number or as a text.
fn identities(text: &str) -> Vec<String> {
    let text = text.trim();
    let number = text
        .parse()
        .map(Value::Integer)
        .or_else(|_| text.parse().map(Value::Float));
    let number = number.ok();
    let boolean = text.parse().map(Value::Boolean).ok();
    let place = Place::new(0, 0..0);
    [Some(Value::Text(text.into())), number, boolean]
        .into_iter()
        .flatten()
        .map(|value| identity(&Node { place, value }))
        .collect()
}
