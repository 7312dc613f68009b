//! `docs/papers.md` names only files, items and scenarios that exist, and leaves out no figure,
//! equation or table of the papers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::links::links;

/// Each paper, and how many figures, equations and tables it has.
const PAPERS: &[(&str, usize, usize, usize)] = &[
    ("TLTCP", 13, 0, 1),
    ("TCP-Real", 12, 0, 12),
    ("Libra", 8, 2, 0),
    ("IFTP", 2, 6, 1),
    ("Packet spacing", 19, 0, 0),
];

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn page() -> String {
    std::fs::read_to_string(docs().join("papers.md")).expect("docs/papers.md")
}

/// Whether a file defines the last part of a path: an item, a variant, a field, or the module that
/// the file is.
fn defines(path: &Path, text: &str, item: &str) -> bool {
    let name = item.rsplit("::").next().unwrap_or(item);
    let is_module = path.file_stem().is_some_and(|stem| stem == name)
        || path.file_name().is_some_and(|file| file == "mod.rs")
            && path
                .parent()
                .and_then(Path::file_name)
                .is_some_and(|directory| directory == name);
    let holds = |start: &str, ends: &[char]| {
        text.lines().any(|line| {
            let line = line.trim_start();
            let behind = line.find(start).map(|at| &line[at + start.len()..]);
            behind.is_some_and(|behind| behind.starts_with(ends)) && !line.starts_with("//")
        })
    };
    let ends = ['(', '<', ' ', '{', ';'];
    is_module
        || ["fn", "struct", "enum", "trait", "const"]
            .iter()
            .any(|kind| holds(&format!("{kind} {name}"), &ends))
        || text.lines().any(|line| {
            let line = line.trim_start().trim_start_matches("pub ");
            line.strip_prefix(name)
                .is_some_and(|behind| behind.starts_with([',', ':', '(']) || behind == " {")
        })
}

#[test]
fn every_link_leads_to_what_it_names() {
    let mut count = 0;
    for (number, line) in page().lines().enumerate() {
        for (text, target) in links(line) {
            let location = format!("docs/papers.md:{}: {text}", number + 1);
            let path = docs().join(&target);
            let file = std::fs::read_to_string(&path);
            let file = file.unwrap_or_else(|error| panic!("{location}: {target}: {error}"));
            count += 1;
            match text
                .strip_prefix('`')
                .and_then(|text| text.strip_suffix('`'))
            {
                Some(item) => assert!(
                    defines(&path, &file, item),
                    "{location}: {target} does not define it"
                ),
                None => assert!(
                    target.ends_with(&format!("experiments/{text}")) && file.contains("[scenario]"),
                    "{location}: {target} is no scenario of this name"
                ),
            }
        }
    }
    assert!(count > 100, "only {count} links");
}

#[test]
fn every_row_has_a_location_or_a_reason() {
    for (number, line) in page().lines().enumerate() {
        let Some(row) = line.strip_prefix("| ") else {
            continue;
        };
        let location = row.trim_end_matches(" |").rsplit(" | ").next();
        let location = location.unwrap_or_default();
        let is_heading = row.starts_with("paper |") || row.starts_with("---");
        assert!(
            is_heading || location.starts_with('[') || location.starts_with("Not in scope: "),
            "docs/papers.md:{}: {location}",
            number + 1
        );
    }
}

/// The numbers that stand behind `word` or its plural in the first column of a paper's table.
fn numbers(section: &str, word: &str) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for row in section.lines().filter_map(|line| line.strip_prefix("| ")) {
        let first = row.split(" | ").next().unwrap_or_default();
        let mut counts = false;
        for part in first.split([',', ' ']).filter(|part| !part.is_empty()) {
            match part.parse() {
                Ok(number) if counts => {
                    found.insert(number);
                }
                Ok(_) => {}
                Err(_) => counts = part.trim_end_matches('s') == word,
            }
        }
    }
    found
}

#[test]
fn no_figure_equation_or_table_is_left_out() {
    let page = page();
    let sections: Vec<_> = page.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), PAPERS.len());
    for (section, &(name, figures, equations, tables)) in sections.iter().zip(PAPERS) {
        assert!(section.starts_with(&format!("{name}\n")), "{name}");
        for (word, count) in [
            ("figure", figures),
            ("equation", equations),
            ("table", tables),
        ] {
            let all: BTreeSet<_> = (1..=count).collect();
            assert_eq!(numbers(section, word), all, "{name}: {word}s");
        }
    }
}
