//! The runs of a scenario, and their origin.

use std::fmt;

use comity_units::Seed;
use serde::{Deserialize, Serialize};

use crate::report::RunReport;
use crate::words;

/// The version of the tables. It rises when a column is removed or changes its name, type or
/// meaning, not when a column is added.
pub const SCHEMA_VERSION: u32 = 3;

/// The version of the engine's results. It rises when a change gives other results for the same
/// network and seed.
pub const ENGINE_VERSION: u32 = 2;

/// The runs of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultSet {
    /// The scenario.
    pub scenario: ScenarioInfo,
    /// The command as typed.
    pub command: String,
    /// The runs, in the order of their numbers; some may be missing.
    pub runs: Vec<CompletedRun>,
}

/// The scenario that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioInfo {
    /// Its name, not a path.
    pub name: String,
    /// Its whole text.
    pub text: String,
    /// The values that replaced those of the text, as `path=value`.
    pub set: Vec<String>,
}

/// One run and its point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletedRun {
    /// Its number in the sweep, from 0.
    pub number: usize,
    /// The axes with their values.
    pub axes: Vec<(String, AxisValue)>,
    /// The seed of the run.
    #[serde(with = "words")]
    pub seed: Seed,
    /// The hash of the effective scenario, see
    /// [`Scenario::point_hash`](crate::scenario::Scenario::point_hash).
    pub scenario_hash: u64,
    /// Its report.
    pub report: RunReport,
}

/// The value that an axis has at one point of a sweep.
///
/// The column of an axis takes the type of its values: whole numbers among numbers become numbers,
/// and any other mixture becomes text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AxisValue {
    /// Yes or no.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text, among them quantities with their unit such as `40ms`.
    Text(String),
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => f.pad(if *value { "true" } else { "false" }),
            Self::Integer(value) => f.pad(&value.to_string()),
            Self::Number(value) => f.pad(&value.to_string()),
            Self::Text(text) => f.pad(text),
        }
    }
}

/// The origin of results, as stored in files.
pub(super) struct Metadata {
    pub(super) entries: Vec<(&'static str, String)>,
}

impl Metadata {
    pub(super) fn new(set: &ResultSet) -> Self {
        let ScenarioInfo {
            name,
            text,
            set: overrides,
        } = &set.scenario;
        Self {
            entries: vec![
                ("schema_version", SCHEMA_VERSION.to_string()),
                ("version", env!("CARGO_PKG_VERSION").to_owned()),
                ("engine_version", ENGINE_VERSION.to_string()),
                ("command", set.command.clone()),
                ("scenario_name", name.clone()),
                ("scenario_text", text.clone()),
                ("scenario_set", overrides.join("\n")),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_values_print_as_they_are_written() {
        let values = [
            (AxisValue::Boolean(true), "true"),
            (AxisValue::Integer(-3), "-3"),
            (AxisValue::Number(0.25), "0.25"),
            (AxisValue::Text("40ms".into()), "40ms"),
        ];
        for (value, text) in values {
            assert_eq!(value.to_string(), text);
        }
    }
}
