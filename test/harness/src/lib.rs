//! One function for each fuzz target: it accepts any bytes, and panics if a promise is broken.
//!
//! The fuzzer (`make fuzz`) calls them through the binaries in `fuzz/`. `cargo test` calls them
//! with inputs that once failed, with a small corpus, and with seeded bytes. A finding of the
//! fuzzer therefore becomes a test as soon as its input is in `corpus/`, and every change compiles
//! and runs the harnesses.

pub mod connection;
pub mod keys;
pub mod links;
pub mod listener;
pub mod media;
pub mod rtp;
pub mod scenario;
pub mod segment;
pub mod session;
pub mod source;
pub mod tcp_host;
pub mod transfers;
pub mod uri;
pub mod wire;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also that of its binary in `fuzz/` and of its folder in `corpus/`.
    pub name: &'static str,
    /// Checks one input.
    pub check: fn(&[u8]),
    /// The maximum useful length of an input.
    pub longest: usize,
}

/// All of them, by name.
pub const TARGETS: &[Target] = &[
    Target {
        name: "connection",
        check: connection::check,
        longest: 2_048,
    },
    Target {
        name: "keys",
        check: keys::check,
        longest: 512,
    },
    Target {
        name: "link_traces",
        check: links::check,
        longest: 512,
    },
    Target {
        name: "media_checker",
        check: media::check_checker,
        longest: 4_096,
    },
    Target {
        name: "media_header",
        check: media::check_header,
        longest: 512,
    },
    Target {
        name: "media_layout",
        check: media::check_layout,
        longest: 1_024,
    },
    Target {
        name: "media_reader",
        check: media::check_reader,
        longest: 4_096,
    },
    Target {
        name: "rtp",
        check: rtp::check,
        longest: 1_024,
    },
    Target {
        name: "scenario",
        check: scenario::check,
        longest: 2_048,
    },
    Target {
        name: "segment_codec",
        check: segment::check,
        longest: 128,
    },
    Target {
        name: "session",
        check: session::check,
        longest: 1_024,
    },
    Target {
        name: "session_listener",
        check: listener::check,
        longest: 2_048,
    },
    Target {
        name: "tcp_host",
        check: tcp_host::check,
        longest: 2_048,
    },
    Target {
        name: "transfers",
        check: transfers::check,
        longest: 512,
    },
    Target {
        name: "uri",
        check: uri::check,
        longest: 256,
    },
    Target {
        name: "wire",
        check: wire::check,
        longest: 512,
    },
];
