//! Controllers and their parameters, from the table of controllers.

use comity_congestion::table::{Domain, Parameters, Row, TABLE, Value as Setting, find, nearest};

use super::document::{Entry, Node, Value};
use super::papers::known_as;
use super::problem::ProblemKind;
use super::schema::{Context, Kind, Shape, is_text};

pub(super) struct ControllerName;

impl Kind for ControllerName {
    type Value = String;

    fn shape(&self) -> Shape {
        Shape::Choice(
            TABLE
                .iter()
                .map(|row| (row.name.into(), row.summary.into()))
                .collect(),
        )
    }

    fn takes(&self, node: &Node) -> bool {
        is_text(node)
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<String> {
        let Some(name) = node.text() else {
            cx.wrong_kind(node, &self.shape());
            return None;
        };
        if cx.custom.iter().any(|custom| custom == name) {
            return Some(name.into());
        }
        match find(name) {
            Ok(row) => Some(row.name.into()),
            Err(error) => {
                cx.report(
                    node.span,
                    ProblemKind::UnknownChoice {
                        value: node.show(),
                        known: TABLE
                            .iter()
                            .map(|row| row.name.into())
                            .chain(cx.custom.iter().cloned())
                            .collect(),
                        nearest: error
                            .other
                            .map_or(error.nearest, |other| other.controller)
                            .map(Into::into),
                        elsewhere: known_as(name),
                    },
                );
                None
            }
        }
    }
}

/// Parameters as written. Their meaning depends on the controller.
#[derive(Clone, Debug)]
pub(super) struct ParameterTable(Vec<Entry>);

/// A table of parameters.
pub(super) struct ParametersKind;

impl Kind for ParametersKind {
    type Value = ParameterTable;

    fn shape(&self) -> Shape {
        Shape::Parameters
    }

    fn takes(&self, node: &Node) -> bool {
        matches!(node.value, Value::Table(_))
    }

    fn read(&self, node: &Node, cx: &mut Context<'_>) -> Option<ParameterTable> {
        match node.entries() {
            Some(entries) => Some(ParameterTable(entries.to_vec())),
            None => {
                cx.wrong_kind(node, &Shape::Parameters);
                None
            }
        }
    }
}

impl ParameterTable {
    /// Applies these values to `parameters`, those of `row` or of a custom controller. `path` leads
    /// to the table.
    pub(super) fn set(
        &self,
        row: Option<&Row>,
        parameters: &mut Parameters,
        path: &str,
        cx: &mut Context<'_>,
    ) {
        for entry in &self.0 {
            cx.within_path(&[path, &entry.key], |cx| {
                match row.map_or_else(|| plain(entry), |row| setting(row, entry)) {
                    Ok(value) => {
                        parameters.insert(&entry.key, value);
                    }
                    Err(kind) => {
                        let span = match kind {
                            ProblemKind::UnknownKey { .. } => entry.key_span,
                            _ => entry.node.span,
                        };
                        cx.report(span, kind);
                    }
                }
            });
        }
    }
}

/// A parameter of a custom controller. Only the controller can check its value.
fn plain(entry: &Entry) -> Result<Setting, ProblemKind> {
    match &entry.node.value {
        Value::Integer(number) => Ok(Setting::Number(*number as f64)),
        Value::Float(number) => Ok(Setting::Number(*number)),
        Value::Boolean(flag) => Ok(Setting::Flag(*flag)),
        Value::Text(text) => Ok(Setting::Text(text.clone().into())),
        _ => Err(ProblemKind::WrongKind {
            found: entry.node.kind(),
            value: entry.node.show(),
            expected: "a number, true, false or a text".into(),
        }),
    }
}

fn setting(row: &Row, entry: &Entry) -> Result<Setting, ProblemKind> {
    let names = || row.parameters.iter().map(|parameter| parameter.name);
    let Some(parameter) = row
        .parameters
        .iter()
        .find(|parameter| parameter.name == entry.key)
    else {
        return Err(ProblemKind::UnknownKey {
            known: names().map(Into::into).collect(),
            nearest: nearest(&entry.key, names()).map(Into::into),
            elsewhere: TABLE
                .iter()
                .find(|row| row.parameters.iter().any(|other| other.name == entry.key))
                .map(|row| ("controller".into(), row.name.into())),
        });
    };
    let value = match (&entry.node.value, &parameter.domain) {
        (Value::Integer(number), Domain::Number { .. } | Domain::Whole { .. }) => {
            Some(Setting::Number(*number as f64))
        }
        (Value::Float(number), Domain::Number { .. } | Domain::Whole { .. }) => {
            Some(Setting::Number(*number))
        }
        (Value::Boolean(flag), Domain::Flag) => Some(Setting::Flag(*flag)),
        (Value::Text(text), Domain::Span { .. } | Domain::Rate { .. } | Domain::Bytes { .. }) => {
            parameter.parse(text).ok()
        }
        (Value::Text(text), Domain::Choice(_)) => Some(Setting::Text(text.clone().into())),
        _ => None,
    };
    value
        .filter(|value| parameter.domain.admits(value))
        .ok_or_else(|| ProblemKind::WrongKind {
            found: entry.node.kind(),
            value: entry.node.show(),
            expected: parameter.domain.to_string(),
        })
}

/// The names of all parameters of all controllers.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = TABLE
        .iter()
        .flat_map(|row| row.parameters.iter().map(|parameter| parameter.name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
