//! URIs: `comity_harness::uri::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::uri::check(bytes));
