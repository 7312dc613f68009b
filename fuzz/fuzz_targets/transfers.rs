//! Files of sizes and of connections: `comity_harness::transfers::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::transfers::check(bytes));
