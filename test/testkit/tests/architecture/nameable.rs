//! Every foreign type in a public signature of the library can be named by its users.
//!
//! Looked at are the signatures of `pub fn` and the public fields in `product/comity/src`, and what
//! they name of the crates behind the library. Such a name has to be in a `pub use` of the
//! library's root or of one of its public modules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use comity_testkit::tracked::files;

use super::circles::{Cursor, tokens};

/// Crates whose types users of the library do not have by themselves.
const BEHIND: [&str; 4] = [
    "bytes",
    "comity_congestion",
    "comity_transport",
    "comity_units",
];

/// The files whose `pub use` users see, in place or by the root's own.
const PUBLIC: [&str; 7] = [
    "counter.rs",
    "lib.rs",
    "section.rs",
    "session/mod.rs",
    "statistics.rs",
    "transport.rs",
    "uri/mod.rs",
];

/// Imported names, with their paths, and whether they are imported for others.
type Imports = BTreeMap<String, (Vec<String>, bool)>;

/// What a file imports, and the names in its public signatures.
fn read(text: &str) -> (Imports, BTreeSet<String>) {
    let tokens = tokens(text);
    let mut cursor = Cursor::new(&tokens);
    let (mut imports, mut names) = (BTreeMap::new(), BTreeSet::new());
    while !cursor.peek(0).is_empty() {
        match cursor.peek(0) {
            "use" => {
                let is_for_others = cursor.before() == "pub";
                cursor.advance(1);
                let mut found = Vec::new();
                cursor.use_tree(&[], &mut found);
                imports.extend(
                    found
                        .into_iter()
                        .map(|(path, name)| (name, (path, is_for_others))),
                );
            }
            "pub" if (1..4).any(|ahead| cursor.peek(ahead) == "fn") && cursor.peek(1) != "(" => {
                while !matches!(cursor.peek(0), "{" | ";" | "") {
                    names.insert(cursor.peek(0).to_owned());
                    cursor.advance(1);
                }
            }
            "pub" if cursor.peek(2) == ":" => {
                while !matches!(cursor.peek(0), "," | "}" | "") {
                    names.insert(cursor.peek(0).to_owned());
                    cursor.advance(1);
                }
            }
            _ => cursor.advance(1),
        }
    }
    (imports, names)
}

/// The crate and the name of a path.
fn ends(path: &[String]) -> Option<(String, String)> {
    Some((path.first()?.clone(), path.last()?.clone()))
}

#[test]
fn types_in_public_signatures_can_be_named() {
    let root = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../product/comity/src"
    ));
    let text = |path: &Path| fs::read_to_string(path).expect("a source is text");
    let mut nameable = BTreeSet::new();
    for file in PUBLIC {
        let (imports, _) = read(&text(&root.join(file)));
        let public = imports.into_values().filter(|(_, is_public)| *is_public);
        nameable.extend(public.filter_map(|(path, _)| ends(&path)));
    }
    let (mut looked_at, mut wrong) = (0, String::new());
    for path in files(root, &["rs"]) {
        let (imports, names) = read(&text(&path));
        let file = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        for name in names {
            let Some((origin, _)) = imports.get(&name) else {
                continue;
            };
            let is_behind = origin
                .first()
                .is_some_and(|first| BEHIND.contains(&&**first));
            let is_type = name.starts_with(char::is_uppercase);
            if !is_behind || !is_type {
                continue;
            }
            looked_at += 1;
            let is_nameable = ends(origin).is_some_and(|ends| nameable.contains(&ends));
            if !is_nameable {
                wrong += &format!("{file}: {name} ({})\n", origin.join("::"));
            }
        }
    }
    assert!(wrong.is_empty(), "not to be named by users:\n{wrong}");
    assert!(looked_at > 20, "only {looked_at} names were found");
}

#[test]
fn a_foreign_name_in_a_public_signature_is_found() {
    let (imports, names) = read(
        "pub use a::Shown; use comity_units::{Span as Time, Rate}; pub(crate) fn f(rate: Rate) {} \
         impl X { pub const fn g(&self) -> Option<Time> { None } } struct Y { pub x: Vec<Y>, z: Rate }",
    );
    assert!(imports["Shown"].1 && !imports["Rate"].1);
    assert_eq!(imports["Time"].0, ["comity_units", "Span"]);
    assert!(names.contains("Time") && names.contains("Vec") && !names.contains("Rate"));
}
