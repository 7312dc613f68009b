//! Arbitrary transport streams: `comity_harness::media::check_checker`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::media::check_checker(bytes));
