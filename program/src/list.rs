//! `comity list`

use comity_commands::list::{Listed, controllers, line_length, overview};
use comity_commands::{Failure, complain, print};
use comity_congestion::table::{TABLE, nearest, other_name};
#[cfg(feature = "laboratory")]
use comity_lab_commands::list as laboratory;
use serde_json::{Value, json};

use crate::args;

pub(crate) fn list(args: &args::Catalogue) -> Result<(), Failure> {
    let mut found = listed();
    if let Some(name) = &args.name {
        // A recovery and a controller may have the same name.
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

/// All items of this program. A program without the laboratory has controllers only.
fn listed() -> Vec<Listed> {
    let all = controllers();
    #[cfg(feature = "laboratory")]
    let all = all.chain(laboratory::listed());
    all.collect()
}

/// The names in the list, without duplicates: a recovery and a controller may have the same name.
/// Every start of the program needs the names, so nothing else is created.
pub(crate) fn names() -> Vec<&'static str> {
    let names = TABLE.iter().map(|row| row.name);
    #[cfg(feature = "laboratory")]
    let names = names.chain(laboratory::names());
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
