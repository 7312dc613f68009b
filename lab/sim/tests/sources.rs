//! The hash of the sources under which runs are stored.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[expect(
    dead_code,
    clippy::print_stdout,
    reason = "Cargo calls `main` and reads what it prints"
)]
#[path = "../build.rs"]
mod build;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// The folder of a crate of the workspace, from its root.
fn folder_of(name: &str) -> String {
    let root = fs::read_to_string(Path::new(HERE).join("../../Cargo.toml")).unwrap();
    let begin = format!("comity-{name} = {{ path = \"");
    let line = root.lines().find_map(|line| line.strip_prefix(&begin));
    let (folder, _) = line.and_then(|rest| rest.split_once('"')).unwrap();
    folder.into()
}

/// The folders of the crates of the workspace that a crate depends on, its own included.
fn add_dependencies(name: &str, folders: &mut BTreeSet<String>) {
    let folder = folder_of(name);
    if !folders.insert(folder.clone()) {
        return;
    }
    let manifest = Path::new(HERE)
        .join("../..")
        .join(folder)
        .join("Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
    let ours = dependencies
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    for line in ours {
        if let Some((name, _)) = line
            .strip_prefix("comity-")
            .and_then(|it| it.split_once('.'))
        {
            add_dependencies(name, folders);
        }
    }
}

#[test]
fn every_crate_that_the_simulator_depends_on_is_hashed() {
    let mut found = BTreeSet::new();
    add_dependencies("sim", &mut found);
    assert_eq!(found, build::CRATES.map(String::from).into());
    let folders = build::sources(Path::new(HERE));
    assert_eq!(folders.len(), found.len());
    let hash = build::hash(&folders).unwrap();
    assert_eq!(format!("{hash:016x}"), env!("COMITY_SOURCES"));
}

#[test]
fn a_crate_without_neighbours_hashes_its_own_sources() {
    let alone = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a/crate");
    assert_eq!(build::sources(&alone), [alone.join("src")]);
}

#[test]
fn the_hash_depends_on_the_names_and_contents_of_sources_alone() {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources");
    let hash = |case: &str, files: &[(&str, &str)]| {
        let folder = root.join(case);
        let _ = fs::remove_dir_all(&folder);
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        build::hash(&[folder]).unwrap()
    };
    let plain = hash("plain", &[("a.rs", "1"), ("b/c.rs", "2")]);
    let other_order = [("b/c.rs", "2"), ("a.rs", "1"), ("notes.txt", "3")];
    assert_eq!(hash("order", &other_order), plain);
    let changed: [&[_]; 4] = [
        &[("a.rs", "1"), ("b/c.rs", "3")],
        &[("a.rs", "1"), ("c.rs", "2")],
        &[("a.rs", "12"), ("b/c.rs", "")],
        &[("a.rs", "1"), ("b/c.rs", "2"), ("d.rs", "")],
    ];
    let mut hashes: BTreeSet<u64> = changed.map(|files| hash("changed", files)).into();
    assert!(hashes.insert(plain));
    assert_eq!(hashes.len(), 5);
}
