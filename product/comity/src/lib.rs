//! Media with deadlines over best-effort networks, sharing them fairly with TCP.
//!
//! An [`Endpoint`] is a UDP socket with any number of connections. A [`Connection`] carries
//! [`Section`]s: a video frame or a block of audio, each with one deadline. The peer receives each
//! section exactly once, as an [`Item`]: whole, or as a [`Gap`] with the reason. The sender drops a
//! section that cannot arrive in time, and a congestion controller keeps the connection's share of
//! the network fair.
//!
//! ```
//! use comity::{Endpoint, Item, Config, Section, connect};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Both ends know the passphrase. Every section has 400 ms from its source time to its arrival.
//! let config = Config::builder()
//!     .passphrase("correct horse battery")
//!     .latency(Duration::from_millis(400))
//!     .build()?;
//!
//! // One end listens, the other one calls; either may send.
//! let endpoint = Endpoint::bind("127.0.0.1:0".parse()?, config.clone())?;
//! let address = endpoint.local_address();
//! let (sender, receiver) = tokio::join!(connect(address, config), endpoint.accept());
//! let (sender, receiver) = (sender?, receiver.ok_or("the endpoint was closed")?);
//!
//! for frame in 0..3_u8 {
//!     sender.send(Section::new(vec![frame; 20_000])).await?;
//! }
//! let (finished, ()) = tokio::join!(sender.finish(), async {
//!     while let Some(item) = receiver.recv().await {
//!         match item {
//!             Item::Section(frame) => println!("{}: {} bytes", frame.id, frame.payload.len()),
//!             Item::Gap(gap) => println!("{}: missing, {:?}", gap.id, gap.reason),
//!         }
//!     }
//! });
//! finished?;
//!
//! let statistics = sender.stats();
//! assert_eq!(statistics.sent.sections.acknowledged, 3);
//! assert_eq!(statistics.sent.counters.late_bytes, 0);
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! |----|-----|
//! | choose passphrase or keys, latency, controller, buffers | [`Config`] |
//! | answer callers, or share one socket among many calls | [`Endpoint`] |
//! | send what has a stream, importance, deadline or dependency | [`Section`] |
//! | set an encoder to the measured capacity | [`Connection::target_bitrate`] |
//! | update an encoder that is another program or device | [`encoder::Follower`] |
//! | learn the outcome of each section | [`Connection::events`] |
//! | count, on both ends | [`Connection::stats`] |
//! | inspect every packet and decision later | [`ConfigBuilder::qlog`] |
//! | decrypt captured packets | [`ConfigBuilder::key_log`] |
//! | end gracefully, or at once | [`Connection::finish`], [`Connection::close`] |
//!
//! Tasks may run under any async runtime: they only wait on channels. One thread per endpoint owns
//! the socket and the timers. A host with sockets of its own uses the modules `session` and
//! `transport`, the same protocol without a socket. These pages omit them, and any release may
//! change them; their sources document them.
//!
//! # Ending and cancelling
//!
//! Every future of this crate may be dropped at any time, for example in a `select!` with a timer.
//! A dropped [`Connection::recv`] or [`Endpoint::accept`] loses nothing: the next call returns the
//! item or the connection. A [`Connection::send`] that is dropped before it is ready has sent
//! nothing.
//!
//! | call | outcome of sections in transit |
//! |---|---|
//! | [`Connection::finish`] | each arrives or reaches its deadline first |
//! | [`Connection::close`], or dropping it | gaps at the peer, with the reason |
//! | [`Endpoint::close`], or dropping it and all of its connections | the same, for all of them |
//! | losing the peer | gaps, after [`ConfigBuilder::idle_timeout`] |
//!
//! After the end, received items can still be read while the handle exists. Then every call returns
//! at once, with the reason if it has one ([`Connection::close_reason`]).
//!
//! # Pacing accuracy
//!
//! The thread of an endpoint sleeps until the planned departure of the next paced packet, with a
//! timer slack of 1 ns, and records how late each packet leaves ([`Pacing`](counters::Pacing)).
//! Over loopback, on two virtual processors without other load:
//!
//! | delay after the planned departure, in us | 50 % | 99 % | 99.9 % |
//! |---|---|---|---|
//! | one stream of 8 Mb/s with the controller for media (`cargo bench -p comity --bench endpoint -- pacing 5`), three runs | 46, 49, 79 | 129, 137, 220 | 831, 487, 950 |
//! | packets at 10 Mb/s (`examples/pacing.rs`) | 77 | 257 | 1,483 |
//!
//! With other programs at a load of 8, half of the packets at 10 Mb/s left at most 57 us late, and
//! 99 % at most 3,930 us. For a bare loop that sleeps for 1 ms, these values were 35 and 3,720 us.
//!
//! Some controllers set when each packet leaves. For these, the thread of an endpoint with at most
//! eight connections stays awake for the last 100 us, and keeps gaps of 50 us between packets. With
//! more connections, a busy thread works in batches every 250 us, and paced packets leave up to
//! that much later.
//!
//! The tails come from the machine: the bare loop has them, too. `docs/results/endpoint-cost.md`
//! has the costs of an endpoint.
#![forbid(unsafe_code)]

mod config;
mod contain;
pub mod counter;
pub mod encoder;
mod endpoint;
mod error;
mod existing;
mod key_log;
mod memory;
mod printable;
mod section;
#[doc(hidden)]
pub mod session;
pub mod statistics;
mod sync;
mod trace;
#[doc(hidden)]
pub mod transport;
pub mod uri;

pub use bytes::Bytes;
pub use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
pub use comity_transport::wire::CloseCode;
pub use comity_units::{Rate, Span};

pub use crate::config::{Config, ConfigBuilder, Settings};
pub use crate::endpoint::{
    Connection, Endpoint, EndpointEvent, EndpointEvents, Event, Events, PathSizes, TargetBitrate,
    connect,
};
pub use crate::error::{BindError, CloseReason, ConfigError, ConnectError, SendError};
pub use crate::key_log::KeyLog;
pub use crate::section::{
    About, Fate, Gap, GapReason, Importance, Item, Outcome, Partial, Reason, Received, Section,
    SectionId, StreamId,
};
pub use crate::statistics::{EndpointStatistics, Statistics};
pub use crate::trace::{Qlog, QlogError};
pub use crate::transport::PathSize;

/// What errors, [`CloseReason`] and [`EndpointEvent`] contain.
pub mod causes {
    pub use comity_transport::datagram::Violation;
    pub use comity_transport::timeline::inbox::Violation as SectionViolation;
    pub use comity_transport::timeline::outbox::ArgumentError;
    pub use comity_transport::wire::DecodeError;
    pub use comity_units::PacketNumber;

    pub use crate::session::{CallError, Closed, Pattern, RefusedCaller};
}

/// The parameters of congestion controllers.
pub mod controller {
    pub use comity_congestion::table::{ParameterError, Parameters, UnknownController, Value};
}

/// What [`Statistics`] and [`EndpointStatistics`] contain.
pub mod counters {
    pub use crate::session::SessionStatistics;
    pub use crate::statistics::{
        ByteCounters, GapCounters, Pacing, Path, Peer, Received, ReceivedCounters, SectionCounters,
        Sent, SentCounters,
    };
}

/// The keys of both ends. A passphrase is a text in [`ConfigBuilder::passphrase`].
pub mod credentials {
    pub use crate::session::{
        Allow, AllowList, AllowListError, Cipher, CredentialError, PresharedKey, PublicKey,
        Randomness, StaticKey,
    };
}

/// Parts for the programs, tests and benchmarks of Comity, which any release may change.
#[doc(hidden)]
pub mod parts {
    /// The congestion controller of connections that do not choose one.
    pub use comity_congestion::table::DEFAULT_FOR_SECTIONS as DEFAULT_CONTROLLER;
    /// The bytes that headers and protection add, and the resulting sizes of datagrams.
    pub use comity_transport::wire::limits::{
        DEFAULT_DATAGRAM, MIN_INITIAL, SEALING, UDP_IPV4, UDP_IPV6,
    };
    pub use comity_units::{Seed, Time};

    pub use crate::config::{SETTINGS, Setting};
    pub use crate::contain::{contain, contains_panic};
    pub use crate::endpoint::SYSTEM_BUFFER;
}
