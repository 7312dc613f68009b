//! Requests for metrics: `comity_harness::metrics::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::metrics::check(bytes));
