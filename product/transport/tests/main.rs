//! The tests of the crate's public interface, in one program: it links once, and its tests run
//! beside one another.

mod datagram_calendar;
mod datagram_counters;
mod datagram_fates;
mod datagram_iftp;
mod datagram_overhead;
mod datagram_psp;
mod datagram_reports;
mod outbox_cases;
mod pair;
mod timeline;
mod timeline_admission;
mod timeline_counters;
mod timeline_receiving;
mod timeline_rules;
mod timeline_sending;
#[path = "wire/main.rs"]
mod wire;
