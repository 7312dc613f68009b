//! Two sessions and a hostile network: `comity_harness::session::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::session::check(bytes));
