//! Traces of links: `comity_harness::links::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::links::check(bytes));
