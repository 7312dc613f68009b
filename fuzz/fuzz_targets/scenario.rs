//! Scenario files: `comity_harness::scenario::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::scenario::check(bytes));
