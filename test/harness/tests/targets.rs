//! Every fuzz target, with the committed inputs and with seeded ones.
#![allow(
    clippy::print_stdout,
    reason = "a test that fails shows what it tried last"
)]

use std::path::PathBuf;

use comity_harness::{TARGETS, Target};
use comity_units::Seed;

fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<_> = std::fs::read_dir(folder.join(target.name))
        .into_iter()
        .flatten()
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read(path).expect("readable"));
    files.into_iter().map(read).collect()
}

/// Expands a seed to bytes: the numbers of its children.
fn bytes(seed: Seed, length: usize) -> Vec<u8> {
    let words = (0..length.div_ceil(8)).map(|at| seed.index(at as u64).get().to_le_bytes());
    let mut bytes = words.collect::<Vec<_>>().concat();
    bytes.truncate(length);
    bytes
}

/// An input: bytes of the seed alone, or a committed input with a few changes: bytes, cuts, and
/// pieces of others.
fn input(seed: Seed, target: &Target, corpus: &[(PathBuf, Vec<u8>)]) -> Vec<u8> {
    let draw = |name: &str, below: usize| (seed.derive(name).get() % below.max(1) as u64) as usize;
    if corpus.is_empty() || draw("kind", 2) == 0 {
        return bytes(seed.derive("bytes"), draw("length", target.longest + 1));
    }
    let mut input = corpus[draw("file", corpus.len())].1.clone();
    input.truncate(target.longest);
    for change in 0..draw("changes", 8) as u64 {
        let seed = seed.derive("change").index(change);
        let draw =
            |name: &str, below: usize| (seed.derive(name).get() % below.max(1) as u64) as usize;
        let at = draw("at", input.len() + 1);
        match draw("what", 4) {
            0 => input.truncate(at),
            1 => {
                let other = &corpus[draw("other", corpus.len())].1;
                let from = draw("from", other.len() + 1);
                let piece = &other[from..];
                input.truncate(at);
                input.extend(&piece[..piece.len().min(target.longest - at)]);
            }
            2 if input.len() < target.longest => input.insert(at, draw("byte", 256) as u8),
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = draw("byte", 256) as u8;
                }
            }
        }
    }
    input
}

fn every_input(name: &str, cases: u64) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.expect("a target of that name");
    let corpus = corpus(target);
    for (path, input) in &corpus {
        println!("{}", path.display());
        (target.check)(input);
    }
    for case in 0..cases {
        println!("{name}, case {case}");
        (target.check)(&input(Seed::new(case).derive(name), target, &corpus));
    }
}

macro_rules! targets {
    ($($name:ident: $cases:literal,)*) => {
        $(#[test]
        fn $name() {
            every_input(stringify!($name), $cases);
        })*

        #[test]
        fn every_target_is_listed() {
            let tested = [$(stringify!($name)),*];
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, tested);
        }
    };
}

// As many cases as run in a second or two each.
targets! {
    connection: 3_000,
    keys: 50_000,
    link_traces: 10_000,
    media_checker: 2_000,
    media_header: 10_000,
    media_layout: 20_000,
    media_reader: 500,
    rtp: 20_000,
    scenario: 1_000,
    segment_codec: 20_000,
    session: 3_000,
    session_listener: 3_000,
    tcp_host: 2_000,
    transfers: 20_000,
    uri: 20_000,
    wire: 50_000,
}

/// Each kind of input is there once and short: whoever clones the repository has them all, and
/// every run of the tests reads them.
#[test]
fn the_corpus_is_small() {
    const MAX_FILES: usize = 24;
    const MAX_BYTES: usize = 16 << 10;
    const MAX_TOTAL: usize = 64 << 10;
    let mut total = 0;
    for target in TARGETS {
        let files = corpus(target);
        let name = target.name;
        assert!(
            (1..=MAX_FILES).contains(&files.len()),
            "{name}: {}",
            files.len()
        );
        let size: usize = files.iter().map(|(_, input)| input.len()).sum();
        assert!(size <= MAX_BYTES, "{name}: {size} bytes");
        total += size;
        for (at, (path, input)) in files.iter().enumerate() {
            let same = files[..at].iter().find(|(_, other)| other == input);
            assert_eq!(same, None, "the same as {}", path.display());
        }
    }
    assert!(total <= MAX_TOTAL, "{total} bytes in all");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("readable").file_name();
        let is_known = TARGETS.iter().any(|target| target.name == name) || name == "README.md";
        assert!(is_known, "{name:?} belongs to no target");
    }
}
