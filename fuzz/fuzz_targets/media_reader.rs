//! Arbitrary media: `comity_harness::media::check_reader`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::media::check_reader(bytes));
