//! Congestion controllers, in words and in JSON.

use std::fmt::Write as _;

use comity_congestion::table::{Domain, Parameter, Row, TABLE};
use serde_json::{Value, json};

use super::listed::{Entry, Listed, words};
use crate::tables::Table;

/// The heading of the controllers in the list.
const HEADING: &str =
    "Controllers (cc=NAME&cc.PARAMETER=VALUE in a URI, controller and parameters in a scenario)";

/// All controllers.
pub fn controllers() -> impl Iterator<Item = Listed> {
    TABLE.iter().map(|row| Listed {
        name: row.name,
        key: "controllers",
        heading: HEADING,
        entry: entry(row),
        text: text(row),
        document: document(row),
    })
}

fn entry(row: &Row) -> Entry {
    let mut entry = Entry::new(row.name, first_sentence(row.summary), row.source);
    let kind = format!(
        "transports: {}; receiver: {}; losses: {}",
        transports(row),
        receiver(row),
        losses(row)
    );
    entry.paragraphs.insert(1, words(&kind));
    let defaults = row.parameters.iter();
    let defaults = defaults.map(|known| format!("{} = {}", known.name, known.default));
    entry.list("parameters", defaults);
    entry
}

fn text(row: &Row) -> String {
    let mut text = format!(
        "{}: a controller\n\n{}\n\nsource:     {}\ntransports: {}\nreceiver:   {}\nlosses:     {}\n",
        row.name,
        row.summary,
        row.source,
        transports(row),
        receiver(row),
        losses(row),
    );
    if row.parameters.is_empty() {
        text.push_str("\nNo parameters.\n");
        return text;
    }
    let mut table = Table::new(["parameter", "default", "values", "what it does"]);
    for parameter in row.parameters {
        table.row([
            parameter.name.into(),
            parameter.default.to_string(),
            parameter.domain.to_string(),
            parameter.summary.into(),
        ]);
    }
    let _ = writeln!(text, "\n{table}");
    text
}

fn document(row: &Row) -> Value {
    let transports: Vec<&str> = transports(row).split(", ").collect();
    let parameters: Vec<Value> = row.parameters.iter().map(parameter).collect();
    json!({
        "name": row.name,
        "summary": row.summary,
        "source": row.source,
        "transports": transports,
        "receiver_half": row.has_meter(),
        "repeats_losses": row.repeats_losses,
        "parameters": parameters,
    })
}

/// Quantities are strings with a unit, as in scenarios and URIs; numbers are numbers.
fn parameter(parameter: &Parameter) -> Value {
    let mut value = json!({
        "name": parameter.name,
        "summary": parameter.summary,
        "default": default(parameter),
    });
    let (kind, min, max, unit) = match parameter.domain {
        Domain::Number { min, max, unit } => ("number", json!(min), json!(max), unit),
        Domain::Whole { min, max, unit } => ("whole", json!(min), json!(max), unit),
        Domain::Flag => ("flag", Value::Null, Value::Null, ""),
        Domain::Span { min, max } => ("time", shown(&min), limit(&max.to_string()), ""),
        Domain::Rate { min, max } => ("rate", shown(&min), limit(&max.to_string()), ""),
        Domain::Bytes { min, max } => ("data", shown(&min), limit(&max.to_string()), ""),
        Domain::Choice(choices) => {
            value["choices"] = json!(choices);
            ("choice", Value::Null, Value::Null, "")
        }
    };
    value["kind"] = json!(kind);
    for (key, found) in [("min", min), ("max", max)] {
        if !found.is_null() {
            value[key] = found;
        }
    }
    if !unit.is_empty() {
        value["unit"] = json!(unit);
    }
    value
}

fn default(parameter: &Parameter) -> Value {
    use comity_congestion::table::Value as Default;
    match &parameter.default {
        Default::Number(number) => json!(number),
        Default::Flag(flag) => json!(flag),
        other => json!(other.to_string()),
    }
}

fn shown(value: &impl ToString) -> Value {
    json!(value.to_string())
}

/// The maximum value of a unit means that there is no limit.
fn limit(text: &str) -> Value {
    let unlimited = [
        comity_units::Span::MAX.to_string(),
        comity_units::Rate::MAX.to_string(),
        comity_units::DataSize::MAX.to_string(),
    ];
    if unlimited.iter().any(|most| most == text) {
        Value::Null
    } else {
        json!(text)
    }
}

/// The transports that the controller supports.
fn transports(row: &Row) -> &'static str {
    if row.drives_tcp {
        "tcp, sections"
    } else {
        "sections"
    }
}

fn receiver(row: &Row) -> &'static str {
    if row.has_meter() {
        "measures for the sender"
    } else {
        "acknowledges only"
    }
}

/// What happens to lost bytes of sections by default.
fn losses(row: &Row) -> &'static str {
    match row.repeats_losses {
        true => "retransmitted until the deadline (reliability timeline)",
        false => "not retransmitted, as in its paper (reliability none)",
    }
}

/// The text before the first full stop that ends a sentence.
pub fn first_sentence(text: &str) -> &str {
    let (first, _) = text.split_once(". ").unwrap_or((text, ""));
    first.trim_end_matches('.')
}
