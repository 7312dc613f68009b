//! Datagrams, payloads and parameters: `comity_harness::wire::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::wire::check(bytes));
