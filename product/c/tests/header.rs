//! The header, the symbols and the manual pages agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::built;

/// What the library exports. Adding a function makes the next minor release; removing or changing
/// one needs another soname.
const SYMBOLS: [&str; 18] = [
    "comity_accept",
    "comity_close",
    "comity_connect",
    "comity_encoder_bitrate",
    "comity_error",
    "comity_listen",
    "comity_local_address",
    "comity_peer_address",
    "comity_read",
    "comity_recvmsg",
    "comity_sendmsg",
    "comity_shutdown",
    "comity_stats",
    "comity_stats_json",
    "comity_stream_name",
    "comity_target_bitrate",
    "comity_version",
    "comity_write",
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> String {
    let path = folder().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The header is committed: a change of the interface shows in review, and no user of the library
/// needs the tool that makes it.
#[test]
fn header_is_made_from_the_code() {
    let config = cbindgen::Config::from_file(folder().join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_crate(folder())
        .with_config(config)
        .generate()
        .unwrap()
        .write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let file = "include/comity.h";
    if std::env::var_os("COMITY_UPDATE").is_some() {
        fs::write(folder().join(file), &made).unwrap();
    }
    let command = "COMITY_UPDATE=1 cargo test -p comity-c header";
    assert!(
        read(file) == made,
        "{file} is not that of the code: {command}"
    );
}

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = read("include/comity.h");
    let names = header.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let with_bracket = |name: &&str| header.contains(&format!("{name}("));
    names
        .filter(|name| name.starts_with("comity_"))
        .filter(with_bracket)
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let expected: BTreeSet<_> = SYMBOLS.map(str::to_owned).into();
    assert_eq!(declared(), expected);
    let Some(nm) = built::tool("nm") else { return };
    let listed = Command::new(nm)
        .args(["-D", "--defined-only", "-j"])
        .arg(built::library())
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let exported: BTreeSet<_> = listed.lines().map(str::to_owned).collect();
    assert_eq!(exported, expected);
}

#[test]
fn every_function_is_in_a_manual_page() {
    let pages = fs::read_dir(folder().join("man")).unwrap();
    let pages: Vec<PathBuf> = pages.map(|entry| entry.unwrap().path()).collect();
    let text: String = pages
        .iter()
        .map(|page| fs::read_to_string(page).unwrap())
        .collect();
    for name in declared() {
        assert!(text.contains(&name), "{name}: no page names it");
    }
}
