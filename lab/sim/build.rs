//! Hashes the sources that decide results. Stored runs are found by this hash among other things,
//! so that a changed simulator does not reuse the runs of an earlier one.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use twox_hash::XxHash64;

/// The crates that decide results: this one, and all of the workspace that it depends on.
///
/// The other dependencies do not count: those that compute numbers (`libm`, `rand_xoshiro`) promise
/// the same bits in every version.
pub(crate) const CRATES: [&str; 8] = [
    "base/congestion",
    "base/frames",
    "base/units",
    "lab/link",
    "lab/sim",
    "lab/tcp",
    "product/qlog",
    "product/transport",
];

fn main() {
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let folders = sources(Path::new(&here));
    for folder in &folders {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    let hash = hash(&folders).expect("Cargo reads the sources too");
    println!("cargo::rustc-env=COMITY_SOURCES={hash:016x}");
}

/// The folders of sources, from that of this crate. A crate from a registry has no neighbours: the
/// versions, its own and theirs, tell the sources.
pub(crate) fn sources(here: &Path) -> Vec<PathBuf> {
    let folders = CRATES.map(|name| here.join("../..").join(name).join("src"));
    match folders.iter().all(|folder| folder.is_dir()) {
        true => folders.into(),
        false => vec![here.join("src")],
    }
}

/// ```text
/// hash = XXH64 of the name, the length and the content of each file, in the order of names
/// ```
pub(crate) fn hash(folders: &[PathBuf]) -> io::Result<u64> {
    let mut bytes = Vec::new();
    for (number, folder) in (0_u8..).zip(folders) {
        bytes.push(number);
        add(folder, folder, &mut bytes)?;
    }
    Ok(XxHash64::oneshot(0, &bytes))
}

fn add(root: &Path, folder: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            add(root, &path, bytes)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap_or(&path);
            let content = fs::read(&path)?;
            bytes.extend(name.to_string_lossy().as_bytes());
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content);
        }
    }
    Ok(())
}
