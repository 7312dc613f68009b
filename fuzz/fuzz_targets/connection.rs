//! One end of a connection in a hostile environment: `comity_harness::connection::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::connection::check(bytes));
