//! Reading any scenario file ends with a scenario or with reported problems.

use comity_sim::scenario::{Limits, NoFiles, Reading, Scenario};

/// One input.
pub fn check(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let reading = Reading {
        // Small enough that every request in a text is quick.
        limits: Limits {
            runs: 16,
            flows: 16,
            links: 16,
        },
        ..Reading::default()
    };
    match Scenario::parse("fuzzed.toml", text, NoFiles, &reading) {
        Ok(scenario) => {
            for run in scenario.runs() {
                let (network, _) = scenario.prepare(&run);
                assert!(network.flows.len() <= 16);
            }
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}
