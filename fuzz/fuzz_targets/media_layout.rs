//! Layouts and the packets that they restore: `comity_harness::media::check_layout`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::media::check_layout(bytes));
