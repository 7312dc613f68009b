//! Crates import only downward (`docs/design/architecture.md`).
//!
//! Three checks of the output of `cargo metadata`. Every dependency between two crates of the
//! workspace is in the plan, and none leads from `base` or `product` to `lab`. Every crate stands
//! in the folder of its house. The pure crates depend on nothing outside the workspace but a short
//! list of reviewed crates. The compiler checks that these do without `std` (`scripts/purity.sh`).

mod bounds;
mod circles;
mod links;
mod nameable;
mod papers;
mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// A folder of crates that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum House {
    /// What product and laboratory share.
    Base,
    /// Media with deadlines between hosts. Who works on it never opens the laboratory.
    Product,
    /// Simulation, TCP, emulation, measurement.
    Lab,
    /// The command `comity`, which links product and laboratory.
    Program,
    /// What only tests use.
    Test,
}

impl House {
    /// The folder from the root of the repository.
    const fn folder(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Product => "product",
            Self::Lab => "lab",
            Self::Program => "program",
            Self::Test => "test",
        }
    }

    /// Whether a crate of this house may import a crate of the other one.
    const fn may_import(self, other: Self) -> bool {
        match self {
            Self::Base => matches!(other, Self::Base),
            Self::Product => matches!(other, Self::Base | Self::Product),
            // The Python package carries the program.
            Self::Lab => !matches!(other, Self::Test),
            Self::Program => !matches!(other, Self::Program | Self::Test),
            Self::Test => true,
        }
    }
}

/// The plan: each crate, its house, and the crates of the workspace that it may depend on.
///
/// The plan includes crates that do not exist yet. Leaves may import any crate that is not a leaf
/// and that their house permits. Nothing may import a leaf, except that tests may import
/// `comity-testkit`.
const PLAN: &[(&str, House, Imports)] = &[
    ("comity-units", House::Base, Imports::Only(&[])),
    (
        "comity-congestion",
        House::Base,
        Imports::Only(&["comity-units"]),
    ),
    (
        "comity-frames",
        House::Base,
        Imports::Only(&["comity-units"]),
    ),
    (
        "comity-transport",
        House::Product,
        Imports::Only(&["comity-units", "comity-congestion", "comity-frames"]),
    ),
    (
        "comity-media",
        House::Product,
        Imports::Only(&["comity-units", "comity-frames"]),
    ),
    (
        "comity-qlog",
        House::Product,
        Imports::Only(&["comity-units", "comity-congestion"]),
    ),
    (
        "comity",
        House::Product,
        Imports::Only(&[
            "comity-units",
            "comity-congestion",
            "comity-transport",
            "comity-qlog",
        ]),
    ),
    (
        "comity-stream",
        House::Product,
        Imports::Only(&["comity-frames", "comity-media", "comity"]),
    ),
    (
        "comity-commands",
        House::Product,
        Imports::Only(&[
            "comity-units",
            "comity-congestion",
            "comity-frames",
            "comity-media",
            "comity",
            "comity-stream",
        ]),
    ),
    ("comity-link", House::Lab, Imports::Only(&["comity-units"])),
    (
        "comity-tcp",
        House::Lab,
        Imports::Only(&["comity-units", "comity-congestion"]),
    ),
    (
        "comity-sim",
        House::Lab,
        Imports::Only(&[
            "comity-units",
            "comity-congestion",
            "comity-frames",
            "comity-transport",
            "comity-qlog",
            "comity-link",
            "comity-tcp",
        ]),
    ),
    (
        "comity-emulator",
        House::Lab,
        Imports::Only(&["comity-units", "comity-link"]),
    ),
    (
        "comity-tcp-host",
        House::Lab,
        Imports::Only(&["comity-units", "comity-congestion", "comity-tcp"]),
    ),
    (
        "comity-lab",
        House::Lab,
        Imports::Only(&[
            "comity-units",
            "comity-congestion",
            "comity-frames",
            "comity-transport",
            "comity",
            "comity-link",
            "comity-tcp",
            "comity-sim",
            "comity-emulator",
            "comity-tcp-host",
        ]),
    ),
    (
        "comity-kernel",
        House::Lab,
        Imports::Only(&["comity-units", "comity-congestion", "comity-tcp"]),
    ),
    (
        "comity-lab-commands",
        House::Lab,
        Imports::Only(&[
            "comity-units",
            "comity-congestion",
            "comity-frames",
            "comity-media",
            "comity",
            "comity-stream",
            "comity-commands",
            "comity-link",
            "comity-tcp",
            "comity-sim",
            "comity-emulator",
            "comity-tcp-host",
            "comity-lab",
            "comity-kernel",
        ]),
    ),
    ("comity-c", House::Product, Imports::Leaf),
    ("comity-cli", House::Program, Imports::Leaf),
    ("comity-python", House::Lab, Imports::Leaf),
    ("comity-harness", House::Test, Imports::Leaf),
    (TESTKIT, House::Test, Imports::Leaf),
    ("comity-purity", House::Test, Imports::Leaf),
    ("comity-impostor", House::Test, Imports::Only(&[])),
];

const TESTKIT: &str = "comity-testkit";

/// The crates that are `no_std`, clockless and forbid `unsafe`.
const PURE: &[&str] = &[
    "comity-units",
    "comity-congestion",
    "comity-frames",
    "comity-transport",
    "comity-link",
    "comity-tcp",
];

/// The crates outside the workspace that pure crates may depend on: reviewed, `no_std`, without
/// clocks.
const PURE_MAY_REACH: &[&str] = &["bytes", "libm", "rand_core", "rand_xoshiro"];

#[derive(Clone, Copy)]
enum Imports {
    /// These crates of the workspace alone.
    Only(&'static [&'static str]),
    /// Any crate that is not a leaf.
    Leaf,
}

/// A dependency in a crate's manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrow {
    from: String,
    to: String,
    /// Whether only tests, examples and benchmarks of `from` use it.
    for_tests: bool,
}

/// The direct dependencies of each crate that end up in the built library.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn rule_of(name: &str) -> Option<(House, Imports)> {
    PLAN.iter()
        .find(|(planned, ..)| *planned == name)
        .map(|&(_, house, imports)| (house, imports))
}

/// One sentence for each dependency outside the plan, with the dependency and the rule.
fn forbidden_arrows(arrows: &[Arrow]) -> Vec<String> {
    let judge = |arrow: &Arrow| {
        let Arrow {
            from,
            to,
            for_tests,
        } = arrow;
        let Some((house, rule)) = rule_of(from) else {
            return Some(format!(
                "{from} -> {to}: {from} is not in the plan; a new crate needs a row there"
            ));
        };
        if *for_tests && to == TESTKIT {
            return None;
        }
        // The Python package carries the command.
        let is_command_of_package = from == "comity-python" && to == "comity-cli";
        let other = match rule_of(to) {
            Some((other, Imports::Only(_))) => other,
            Some((other, Imports::Leaf)) if is_command_of_package => other,
            _ => {
                return Some(format!(
                    "{from} -> {to}: {to} is a leaf, nothing may import it"
                ));
            }
        };
        if !house.may_import(other) {
            return Some(format!(
                "{from} -> {to}: {}/ may not import {}/",
                house.folder(),
                other.folder()
            ));
        }
        match rule {
            Imports::Leaf => None,
            Imports::Only(allowed) if allowed.contains(&to.as_str()) => None,
            Imports::Only([]) => Some(format!(
                "{from} -> {to}: {from} imports nothing of the workspace"
            )),
            Imports::Only(allowed) => Some(format!(
                "{from} -> {to}: {from} may import only {}",
                allowed.join(", ")
            )),
        }
    };
    arrows.iter().filter_map(judge).collect()
}

/// One sentence for each foreign crate that `root` depends on and that is not in
/// [`PURE_MAY_REACH`], with the chain of dependencies.
fn impurities(root: &str, graph: &Graph, workspace: &BTreeSet<String>) -> Vec<String> {
    let mut ways: BTreeMap<&str, Vec<&str>> = BTreeMap::from([(root, vec![root])]);
    let mut unvisited = vec![root];
    while let Some(name) = unvisited.pop() {
        for next in graph.get(name).into_iter().flatten() {
            if !ways.contains_key(next.as_str()) {
                let mut way = ways[name].clone();
                way.push(next);
                ways.insert(next, way);
                unvisited.push(next);
            }
        }
    }
    ways.iter()
        .filter(|(name, _)| !workspace.contains(**name) && !PURE_MAY_REACH.contains(name))
        .map(|(name, way)| {
            format!(
                "{}: {root} is pure and may reach only {}; if {name} is no_std and has no clock, add it there",
                way.join(" -> "),
                PURE_MAY_REACH.join(", ")
            )
        })
        .collect()
}

/// The triple of the test's machine: only its dependencies have been downloaded.
fn host() -> String {
    let output = std::process::Command::new("rustc")
        .arg("-vV")
        .output()
        .expect("cargo runs this test, so rustc is there");
    let text = String::from_utf8(output.stdout).expect("rustc writes UTF-8");
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("rustc -vV has a line with the host")
        .to_owned()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .other_options(["--filter-platform".to_owned(), host()])
        .exec()
        .expect("cargo metadata reads the workspace it was started from")
}

fn workspace() -> (Vec<Arrow>, Graph, BTreeSet<String>) {
    let metadata = metadata();
    let members: BTreeSet<String> = metadata
        .workspace_packages()
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let arrows = metadata
        .workspace_packages()
        .iter()
        .flat_map(|package| {
            let members = &members;
            package
                .dependencies
                .iter()
                .filter(move |dependency| members.contains(&dependency.name))
                .map(move |dependency| Arrow {
                    from: package.name.to_string(),
                    to: dependency.name.clone(),
                    for_tests: dependency.kind == DependencyKind::Development,
                })
        })
        .collect();
    let names: BTreeMap<_, _> = metadata
        .packages
        .iter()
        .map(|package| (&package.id, package.name.to_string()))
        .collect();
    let graph = metadata
        .resolve
        .as_ref()
        .expect("metadata was asked for with dependencies")
        .nodes
        .iter()
        .map(|node| {
            let reached = node
                .deps
                .iter()
                .filter(|dependency| {
                    let kinds = &dependency.dep_kinds;
                    kinds
                        .iter()
                        .any(|kind| kind.kind != DependencyKind::Development)
                })
                .map(|dependency| names[&dependency.pkg].clone());
            (names[&node.id].clone(), reached.collect())
        })
        .collect();
    (arrows, graph, members)
}

#[test]
fn crates_import_only_downward() {
    let (arrows, _, _) = workspace();
    assert!(
        arrows.contains(&arrow("comity-sim -> comity-units")),
        "cargo metadata was misread: the simulator's import of the units is missing"
    );
    let forbidden = forbidden_arrows(&arrows);
    assert!(forbidden.is_empty(), "\n{}\n", forbidden.join("\n"));
}

#[test]
fn crates_stand_in_their_houses() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root
        .canonicalize()
        .expect("this crate stands two below the root");
    let mut seen = 0;
    for package in metadata().workspace_packages() {
        let Some((house, _)) = rule_of(&package.name) else {
            panic!("{} is not in the plan", package.name);
        };
        let folder = package.manifest_path.as_std_path().strip_prefix(&root);
        let folder = folder.expect("a member of the workspace stands in it");
        assert!(
            folder.starts_with(house.folder()),
            "{} stands in {}, and not in {}/",
            package.name,
            folder.display(),
            house.folder()
        );
        seen += 1;
    }
    assert!(seen > 15, "{seen} crates");
}

#[test]
fn pure_crates_reach_only_what_was_looked_at() {
    let (_, graph, members) = workspace();
    assert!(
        graph["comity-congestion"].contains("libm"),
        "cargo metadata was misread: libm is missing"
    );
    let found: Vec<String> = PURE
        .iter()
        .flat_map(|pure| impurities(pure, &graph, &members))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// An arrow written as `from -> to`, or `from ~> to` when it is for tests only.
fn arrow(text: &str) -> Arrow {
    let for_tests = text.contains(" ~> ");
    let (from, to) = text
        .split_once(if for_tests { " ~> " } else { " -> " })
        .expect("an arrow has two ends");
    Arrow {
        from: from.to_owned(),
        to: to.to_owned(),
        for_tests,
    }
}

#[test]
fn dependencies_follow_the_plan_or_are_listed() {
    for allowed in [
        "comity-transport -> comity-congestion",
        "comity-sim -> comity-link",
        "comity-lab-commands -> comity-commands",
        "comity-cli -> comity-lab-commands",
        "comity-python -> comity-cli",
        "comity-testkit -> comity-sim",
        "comity-units ~> comity-testkit",
        "comity-sim ~> comity-link",
    ] {
        assert_eq!(
            forbidden_arrows(&[arrow(allowed)]),
            [] as [&str; 0],
            "{allowed}"
        );
    }
    for (forbidden, sentence) in [
        (
            "comity-units -> comity-link",
            "comity-units -> comity-link: base/ may not import lab/",
        ),
        (
            "comity-c -> comity-sim",
            "comity-c -> comity-sim: product/ may not import lab/",
        ),
        (
            "comity-commands ~> comity-link",
            "comity-commands -> comity-link: product/ may not import lab/",
        ),
        (
            "comity-link -> comity-congestion",
            "comity-link -> comity-congestion: comity-link may import only comity-units",
        ),
        (
            "comity-link ~> comity-sim",
            "comity-link -> comity-sim: comity-link may import only comity-units",
        ),
        (
            "comity-transport -> comity-link",
            "comity-transport -> comity-link: product/ may not import lab/",
        ),
        (
            "comity-units -> comity-congestion",
            "comity-units -> comity-congestion: comity-units imports nothing of the workspace",
        ),
        (
            "comity-units -> comity-testkit",
            "comity-units -> comity-testkit: comity-testkit is a leaf, nothing may import it",
        ),
        (
            "comity-testkit -> comity-cli",
            "comity-testkit -> comity-cli: comity-cli is a leaf, nothing may import it",
        ),
        (
            "comity-attic -> comity-units",
            "comity-attic -> comity-units: comity-attic is not in the plan; a new crate needs a row there",
        ),
    ] {
        assert_eq!(forbidden_arrows(&[arrow(forbidden)]), [sentence]);
    }
}

#[test]
fn the_plan_itself_has_no_circle() {
    // Each crate's imports stand above its own row, so a walk along them must end.
    for (at, (name, _, imports)) in PLAN.iter().enumerate() {
        if let Imports::Only(allowed) = imports {
            for import in *allowed {
                let above = PLAN[..at].iter().any(|(planned, ..)| planned == import);
                assert!(above, "{name} -> {import}: {import} stands below {name}");
            }
        }
    }
}

#[test]
fn impurity_is_found_at_any_depth() {
    let graph: Graph = [
        ("comity-link", &["comity-units", "libm", "rand_xoshiro"][..]),
        ("rand_xoshiro", &["rand_core"]),
        ("rand_core", &["getrandom"]),
        ("comity-units", &[]),
    ]
    .into_iter()
    .map(|(name, reached)| {
        let reached = reached.iter().map(|&next| next.to_owned());
        (name.to_owned(), reached.collect())
    })
    .collect();
    let workspace = ["comity-link", "comity-units"].map(str::to_owned).into();
    assert_eq!(
        impurities("comity-link", &graph, &workspace),
        [
            "comity-link -> rand_xoshiro -> rand_core -> getrandom: comity-link is pure and may reach \
          only bytes, libm, rand_core, rand_xoshiro; if getrandom is no_std and has no clock, add it there"
        ]
    );
    assert_eq!(
        impurities("comity-units", &graph, &workspace),
        [] as [&str; 0]
    );
}
