//! Applications of the papers, as keys of a flow.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use comity_sim::scenario::applications::{APPLICATIONS, Application};
use comity_sim::scenario::reference::Key;
use serde_json::{Value, json};

use super::systems::{default, of_key};
use crate::tables::Table;
use comity_commands::list::{Entry, Listed, first_sentence};

/// All applications.
pub(super) fn applications() -> impl Iterator<Item = Listed> {
    APPLICATIONS.iter().map(|application| Listed {
        name: application.name,
        key: "applications",
        heading: "Applications of the papers, made of the keys of a flow",
        entry: entry(application),
        text: text(application),
        document: document(application),
    })
}

/// The entry of an application: its values of the parameters, and the defaults of those that it
/// does not set.
fn entry(application: &Application) -> Entry {
    let mut entry = Entry::new(
        application.name,
        first_sentence(application.summary),
        application.source,
    );
    let keys = application.keys.iter();
    entry.list("keys", keys.map(|(key, value)| format!("{key} = {value}")));
    let left_out = application.parameters().into_iter();
    let left_out = left_out.filter(|parameter| parameter.value.is_none());
    let left_out = left_out.map(|parameter| default(&format!("{}.", parameter.of), &parameter.key));
    let mut left_out = left_out.peekable();
    if left_out.peek().is_some() {
        entry.list("defaults", left_out);
    }
    entry
}

/// The keys of a flow, and then all parameters, with defaults for those that are not set.
fn text(application: &Application) -> String {
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

/// The keys as the TOML of a flow, and the values of its parameters likewise.
fn document(application: &Application) -> Value {
    let keys: BTreeMap<_, _> = application.keys.iter().copied().collect();
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
