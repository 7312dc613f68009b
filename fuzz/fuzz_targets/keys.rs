//! Files of keys: `comity_harness::keys::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::keys::check(bytes));
