//! `comity list`

mod controller;
mod overview;
mod systems;

use std::fmt::Write as _;

use comity_congestion::table::{Domain, Parameter, Row, TABLE, nearest, other_name};
use comity_sim::scenario::applications::{APPLICATIONS, Application};
use comity_sim::scenario::reference::{self, Key};
use serde_json::{Value, json};

use super::sim::Table;
use super::{Failure, complain, print};
use crate::args;
use controller::{losses, receiver, transports};
use overview::{line_length, overview};
use systems::{FLOW, Kind, System, systems};

pub(crate) fn list(args: &args::Catalogue) -> Result<(), Failure> {
    let systems = systems();
    let Some(name) = &args.name else {
        return print(if args.json {
            let all = document(TABLE.iter(), systems.iter(), APPLICATIONS.iter());
            format!("{all:#}\n")
        } else {
            overview(&systems, line_length())
        });
    };
    // A recovery and a controller may have one name.
    let rows: Vec<&Row> = TABLE.iter().filter(|row| row.name == name).collect();
    let applications = APPLICATIONS.iter().filter(|known| known.name == name);
    let applications: Vec<&Application> = applications.collect();
    let named: Vec<&System> = systems.iter().filter(|known| known.name == name).collect();
    if rows.is_empty() && named.is_empty() && applications.is_empty() {
        complain(&unknown(name));
        return Err(Failure::Usage);
    }
    if args.json {
        return print(format!(
            "{:#}\n",
            document(
                rows.into_iter(),
                named.into_iter(),
                applications.into_iter()
            )
        ));
    }
    let parts = rows.into_iter().map(of_row);
    let parts = parts.chain(named.into_iter().map(of_system));
    let parts: Vec<String> = parts
        .chain(applications.into_iter().map(of_application))
        .collect();
    print(parts.join("\n"))
}

/// The names that the list has, each once: a recovery and a controller may have one name.
pub(crate) fn names() -> Vec<&'static str> {
    let names = TABLE.iter().map(|row| row.name);
    let names = names.chain(systems().into_iter().map(|system| system.name));
    let names = names.chain(APPLICATIONS.iter().map(|application| application.name));
    let mut once = Vec::new();
    for name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

fn unknown(name: &str) -> String {
    if let Some(other) = other_name(name) {
        return format!("there is no entry {name:?}: {}", other.instead);
    }
    match nearest(name, names()) {
        Some(nearest) => format!("there is no entry {name:?}; did you mean {nearest:?}?"),
        None => format!("there is no entry {name:?}; `comity list` prints all names"),
    }
}

fn of_row(row: &Row) -> String {
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

fn of_system(system: &System) -> String {
    let System {
        name,
        kind,
        summary,
        source,
    } = system;
    let what = match kind {
        Kind::System => "a system".to_owned(),
        Kind::Workload => "a value of workload.kind".to_owned(),
        kind => format!("a value of {}", kind.key()),
    };
    let mut text = format!("{name}: {what}\n\n{summary}\n\nsource: {source}\n");
    let settings = system.settings();
    if !settings.is_empty() {
        let mut table = Table::new(["key", "value", "what it is"]);
        for (key, value) in settings {
            let key_of_flow = key.replace("rto.", "");
            let title = if key == key_of_flow {
                FLOW
            } else {
                "a retransmission timer"
            };
            let summary = reference::keys(title, (title == FLOW).then_some("tcp"))
                .into_iter()
                .flatten()
                .find(|known| known.name == key_of_flow)
                .map_or(String::new(), |known| known.summary);
            table.row([key.into(), value, summary]);
        }
        let _ = writeln!(text, "\n{table}");
    }
    if let Some(keys) = system.keys() {
        if keys.is_empty() {
            text.push_str("\nNo parameters.\n");
            return text;
        }
        let mut table = Table::new(["parameter", "default", "values", "what it is"]);
        for Key {
            name,
            default,
            values,
            summary,
        } in keys
        {
            let default = default.unwrap_or_else(|| "required".into());
            table.row([name, default, values, summary]);
        }
        let _ = writeln!(text, "\n{table}");
    }
    text
}

/// The keys of a flow, and behind them every parameter that they have, with what stands for those
/// that are left out.
fn of_application(application: &Application) -> String {
    let mut text = format!(
        "{}: an application\n\n{}\n\nsource: {}\n\n[[flow]]\n{}",
        application.name,
        application.summary,
        application.source,
        application.toml(),
    );
    let mut table = Table::new(["parameter", "here", "default", "values", "what it is"]);
    for parameter in application.parameters() {
        let Key {
            name,
            default,
            values,
            summary,
        } = parameter.key;
        table.row([
            format!("{}.{name}", parameter.of),
            parameter.value.unwrap_or_default(),
            default.unwrap_or_else(|| "required".into()),
            values,
            summary,
        ]);
    }
    let _ = writeln!(text, "\n{table}");
    text
}

// ---------------------------------------------------------------- JSON

fn document<'a>(
    rows: impl Iterator<Item = &'a Row>,
    systems: impl Iterator<Item = &'a System>,
    applications: impl Iterator<Item = &'a Application>,
) -> Value {
    let controllers: Vec<Value> = rows.map(controller).collect();
    let systems: Vec<Value> = systems
        .map(|system| {
            json!({
                "name": system.name,
                "key": system.kind.key(),
                "summary": system.summary,
                "source": system.source,
                "parameters": system.keys().into_iter().flatten().map(|key| of_key(&key)).collect::<Vec<_>>(),
                "settings": system.settings().into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            })
        })
        .collect();
    let applications: Vec<Value> = applications.map(application).collect();
    json!({
        "format": "comity-list/1",
        "controllers": controllers,
        "systems": systems,
        "applications": applications,
    })
}

fn of_key(key: &Key) -> Value {
    json!({
        "name": key.name,
        "summary": key.summary,
        "values": key.values,
        "required": key.default.is_none(),
        "default": key.default,
    })
}

/// Its keys are TOML, as a flow has them, and so are the values of its parameters.
fn application(application: &Application) -> Value {
    let keys: std::collections::BTreeMap<_, _> = application.keys.iter().copied().collect();
    let parameters: Vec<Value> = application
        .parameters()
        .into_iter()
        .map(|parameter| {
            let mut value = of_key(&parameter.key);
            value["of"] = json!(parameter.of);
            value["value"] = json!(parameter.value);
            value
        })
        .collect();
    json!({
        "name": application.name,
        "summary": application.summary,
        "source": application.source,
        "flow": keys,
        "parameters": parameters,
    })
}

fn controller(row: &Row) -> Value {
    let transports: Vec<&str> = transports(row).split(", ").collect();
    let parameters: Vec<Value> = row.parameters.iter().map(parameter).collect();
    json!({
        "name": row.name,
        "summary": row.summary,
        "source": row.source,
        "transports": transports,
        "receiver_half": row.has_meter(),
        "repeats_losses": row.repeats_losses(),
        "parameters": parameters,
    })
}

/// Quantities are texts with their unit, as in scenarios and URIs; numbers are numbers.
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

/// The largest of a unit is no limit.
fn limit(text: &str) -> Value {
    let unlimited = [
        comity_units::Span::MAX.to_string(),
        comity_units::Rate::MAX.to_string(),
        comity_units::Bytes::MAX.to_string(),
    ];
    if unlimited.iter().any(|most| most == text) {
        Value::Null
    } else {
        json!(text)
    }
}
