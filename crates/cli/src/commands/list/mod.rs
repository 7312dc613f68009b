//! `comity list`

#[cfg(feature = "laboratory")]
mod applications;
mod controller;
mod overview;
#[cfg(feature = "laboratory")]
mod systems;

use comity_congestion::table::{nearest, other_name};
use serde_json::{Value, json};

use super::{Failure, complain, print};
use crate::args;
use controller::controllers;
use overview::{Entry, line_length, overview};

/// What has a name.
struct Listed {
    name: &'static str,
    /// The list of the JSON document that has it.
    key: &'static str,
    /// What stands above it in the overview.
    heading: &'static str,
    /// What it is, in the overview.
    entry: Entry,
    /// What it is, with every parameter.
    text: String,
    /// The same as JSON.
    document: Value,
}

pub(crate) fn list(args: &args::Catalogue) -> Result<(), Failure> {
    let mut found = listed();
    if let Some(name) = &args.name {
        // A recovery and a controller may have one name.
        found.retain(|one| one.name == name);
        if found.is_empty() {
            complain(&unknown(name));
            return Err(Failure::Usage);
        }
    }
    if args.json {
        return print(format!("{:#}\n", document(found)));
    }
    print(match args.name {
        None => overview(&found, line_length()),
        Some(_) => found
            .into_iter()
            .map(|one| one.text)
            .collect::<Vec<_>>()
            .join("\n"),
    })
}

/// All that this program has. A program without the laboratory has controllers alone.
fn listed() -> Vec<Listed> {
    let all = controllers();
    #[cfg(feature = "laboratory")]
    let all = all
        .chain(systems::systems().into_iter().map(systems::listed))
        .chain(applications::applications());
    all.collect()
}

/// The names that the list has, each once: a recovery and a controller may have one name.
pub(crate) fn names() -> Vec<&'static str> {
    let mut once = Vec::new();
    for one in listed() {
        if !once.contains(&one.name) {
            once.push(one.name);
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

fn document(found: Vec<Listed>) -> Value {
    let mut document = json!({
        "format": "comity-list/1",
        "controllers": [],
        "systems": [],
        "applications": [],
    });
    for one in found {
        if let Some(list) = document[one.key].as_array_mut() {
            list.push(one.document);
        }
    }
    document
}
