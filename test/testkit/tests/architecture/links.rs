//! Links between the documents lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use comity_testkit::tracked::files;

/// Files that may name a document.
const NAMES_DOCUMENTS: [&str; 5] = ["md", "rs", "toml", "py", "sh"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines outside of fenced blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// The anchors of a page, as GitHub makes them of headings.
fn anchors(page: &str) -> BTreeSet<String> {
    prose(page)
        .filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()))
        .map(|heading| {
            heading
                .to_lowercase()
                .chars()
                .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
                .map(|letter| if letter == ' ' { '-' } else { letter })
                .collect()
        })
        .collect()
}

/// Text and target of each link `[text](target)`; a link may go over two lines.
pub(super) fn links(text: &str) -> Vec<(&str, String)> {
    text.match_indices("](")
        .map(|(at, _)| {
            let label = text[..at].rsplit('[').next().unwrap_or_default();
            let target = text[at + 2..].split(')').next().unwrap_or_default();
            (label, target.split_whitespace().collect())
        })
        .collect()
}

/// The targets of the links of a page.
fn targets(page: &str) -> Vec<String> {
    let text: Vec<&str> = prose(page).collect();
    let text = text.join("\n");
    links(&text).into_iter().map(|(_, target)| target).collect()
}

#[test]
fn links_of_the_documents_lead_to_files_and_headings() {
    let mut links = 0;
    let mut dead = Vec::new();
    for page in files(&root(), &["md"]) {
        let text = fs::read_to_string(&page).expect("the page can be read");
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = match path {
                "" => page.clone(),
                path => page.with_file_name("").join(path),
            };
            let is_there = file.exists()
                && (anchor.is_empty()
                    || fs::read_to_string(&file)
                        .is_ok_and(|there| anchors(&there).contains(anchor)));
            if !is_there {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(links > 200, "only {links} links were found");
    assert!(
        dead.is_empty(),
        "dead links (mend them, or make the files):\n{}",
        dead.join("\n")
    );
}

#[test]
fn documents_that_code_and_scenarios_name_exist() {
    let mut sources = files(&root(), &NAMES_DOCUMENTS);
    sources.push(root().join("Makefile"));
    let mut names = 0;
    let mut dead = Vec::new();
    for source in sources {
        if source.ends_with(file!().rsplit('/').next().unwrap_or_default()) {
            continue;
        }
        let text = fs::read_to_string(&source).expect("the file can be read");
        for (at, _) in text.match_indices("docs/") {
            let end = text[at..]
                .find(|letter: char| !letter.is_ascii_alphanumeric() && !"/._-".contains(letter))
                .map_or(text.len(), |length| at + length);
            let name = text[at..end].trim_end_matches('.');
            let is_page = name.ends_with(".md") || name.ends_with(".svg");
            let before = text[..at].chars().next_back().unwrap_or(' ');
            if !is_page || before.is_ascii_alphanumeric() {
                continue;
            }
            names += 1;
            if !root().join(name).exists() {
                dead.push(format!("{}: {name}", source.display()));
            }
        }
    }
    assert!(names > 50, "only {names} names were found");
    assert!(dead.is_empty(), "no such documents:\n{}", dead.join("\n"));
}

#[test]
fn anchors_and_targets_are_found() {
    let page = "# A `b`: c, d (0x1)\n```sh\n# no heading [no](link)\n```\n[x](y.md#z) and [two\nlines](v.md)\n";
    assert_eq!(anchors(page), BTreeSet::from(["a-b-c-d-0x1".to_owned()]));
    assert_eq!(targets(page), ["y.md#z", "v.md"]);
}
