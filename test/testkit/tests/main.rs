//! The tests of the crate's public interface, in one program: it links once, and its tests run
//! beside one another.

#[path = "architecture/main.rs"]
mod architecture;
mod conformance;
mod datagram;
mod datagram_clocks;
mod datagram_controllers;
mod datagram_streams;
mod honest;
mod tcp_calendar;
mod tcp_close;
mod tcp_ecn;
mod tcp_handshake;
mod tcp_offload;
mod tcp_properties;
mod tcp_rack;
mod tcp_real;
mod tcp_receiver;
mod tcp_recovery;
mod tcp_skips;
mod tcp_timer;
mod tcp_window;
mod tltcp_clock;
mod tltcp_limits;
#[path = "tltcp_model/main.rs"]
mod tltcp_model;
mod tltcp_paper;
mod tltcp_properties;
