//! A whole TCP host on a hostile network: `comity_harness::tcp_host::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::tcp_host::check(bytes));
