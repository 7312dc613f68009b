//! Reading any scenario file ends with a scenario or with reported problems.

use comity_sim::scenario::{Limits, NoFiles, Reading, Scenario};
use proptest::prelude::*;

/// Small enough that every request in a text is quick.
const LIMITS: Limits = Limits {
    runs: 64,
    flows: 64,
    links: 64,
};

fn read(text: &str) {
    let reading = Reading {
        limits: LIMITS,
        ..Reading::default()
    };
    match Scenario::parse("x.toml", text, NoFiles, &reading) {
        Ok(scenario) => {
            for run in scenario.runs() {
                let (network, settings) = scenario.prepare(&run);
                assert!(network.flows.len() <= LIMITS.flows as usize);
                assert!(settings.backbone <= network.links.len());
                assert!(network.warmup < network.duration);
            }
        }
        Err(problems) => {
            assert!(problems.count() > 0);
            assert!(!problems.to_string().is_empty());
            for problem in problems.iter() {
                let Some(span) = problem.span else { continue };
                assert!(
                    problems.sources().line_and_column(span).is_some(),
                    "{problem:?} has no line"
                );
            }
        }
    }
}

const SEEDS: [&str; 4] = [
    include_str!("../../../experiments/demo/dumbbell.toml"),
    include_str!("../../../experiments/reference/parking_lot.toml"),
    include_str!("../../../experiments/reference/on_off_errors.toml"),
    include_str!("../../../experiments/reference/packet_spacing.toml"),
];

/// Replacements for a piece of a valid scenario.
const PIECES: [&str; 24] = [
    "",
    "0",
    "-1",
    "1e400",
    "nan",
    "\"\"",
    "\"1\"",
    "\"-1ms\"",
    "\"99999999999999999999h\"",
    "[]",
    "{}",
    "[[]]",
    "[1, \"a\"]",
    "{ kind = \"red\" }",
    "true",
    "1979-05-27",
    "\"{i-9}\"",
    "\"µ\"",
    "[[flow]]",
    "[topology]",
    "*",
    ".",
    "\"flow.*.*\"",
    "{ from = 0, to = 9, step = 0.5 }",
];

proptest! {
    #[test]
    fn arbitrary_text(text in "\\PC{0,200}") {
        read(&text);
    }

    #[test]
    fn arbitrary_lines(text in "([a-z_.\\[\\]{}=\", 0-9\\n]{0,40}\\n){0,12}") {
        read(&text);
    }

    /// A right scenario with words replaced.
    #[test]
    fn changed_words(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len()), 1..4),
    ) {
        let mut words: Vec<&str> = SEEDS[seed].split_inclusive([' ', '\n', '=', ',', '{', '}']).collect();
        for (at, piece) in changes {
            let at = at.index(words.len());
            words[at] = PIECES[piece];
        }
        read(&words.concat());
    }

    /// A valid scenario with lines removed, doubled or exchanged.
    #[test]
    fn changed_lines(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
    ) {
        let mut lines: Vec<&str> = SEEDS[seed].lines().collect();
        for (from, to) in changes {
            let (from, to) = (from.index(lines.len()), to.index(lines.len()));
            if from == to {
                lines.remove(from);
            } else {
                lines.insert(to, lines[from]);
            }
        }
        read(&lines.join("\n"));
    }
}

#[test]
fn deep_and_long_texts() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{ a = ".repeat(100_000)),
        format!("{} = 1", "a.".repeat(100_000) + "a"),
        format!("[{}]", "a.".repeat(10_000) + "a"),
        "x".repeat(20 << 20),
        "[[flow]]\n".repeat(100_000),
    ] {
        read(&text);
    }
}
