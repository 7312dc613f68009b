//! A listener without protection, and strangers: `comity_harness::listener::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::listener::check(bytes));
