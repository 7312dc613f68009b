//! RTP packets: `comity_harness::rtp::check`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| comity_harness::rtp::check(bytes));
