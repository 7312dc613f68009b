//! Media with deadlines over best-effort networks, sharing them fairly with TCP.
//!
//! An [`Endpoint`] is a UDP socket with any number of connections. What is sent over a
//! [`Connection`] are [`Section`]s, each with one deadline: a video frame, a block of sound. The
//! peer receives each of them exactly once, as an [`Item`]: whole, or as a [`Gap`] with the reason.
//! Nothing is sent that cannot arrive in time, and a congestion controller keeps the connection's
//! share of the network fair.
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
//! | set an encoder to what the network gives | [`Connection::target_bitrate`] |
//! | learn what became of each section | [`Connection::events`] |
//! | count, on both ends | [`Connection::stats`] |
//! | look at every packet and decision later | [`ConfigBuilder::qlog`] |
//! | end in good order, or at once | [`Connection::finish`], [`Connection::close`] |
//!
//! Tasks may run under any async runtime: what they wait on are channels. Sockets and timers belong
//! to one thread per endpoint. [`session`] is the secure half without any socket, and [`Transport`]
//! the deadline transport as what such a session carries, for hosts with sockets of their own.
//!
//! # Ending, and calling off
//!
//! Every future of this crate may be dropped at any time: in `select!` with a timer, or with the
//! task that waits. What [`Connection::recv`] and [`Endpoint::accept`] had not given is there for
//! the next call, and a [`Connection::send`] that was not ready has sent nothing.
//!
//! | what | becomes of sections that are under way |
//! |---|---|
//! | [`Connection::finish`] | each gets its outcome first: it arrives, or its deadline comes |
//! | [`Connection::close`], or dropping it | gaps at the peer, which is told why |
//! | [`Endpoint::close`], or dropping it and all of its connections | the same, for all of them |
//! | losing the peer | gaps, after [`ConfigBuilder::idle_timeout`] |
//!
//! What had arrived can still be received, as long as the handle is kept. Afterwards every call
//! returns at once, with the reason where it has one ([`Connection::close_reason`]).
//!
//! # How exactly packets leave
//!
//! The thread of an endpoint sleeps until the planned departure of the next paced packet, with a
//! timer slack of 1 ns, and counts by how much it missed it ([`Pacing`]). Over loopback, on two
//! virtual processors with nothing else on them:
//!
//! | later than planned, in us | 50 % | 99 % | 99.9 % |
//! |---|---|---|---|
//! | one stream of 8 Mb/s with the controller for media (`cargo bench -p comity --bench endpoint -- pacing 5`), three runs | 46, 49, 79 | 129, 137, 220 | 831, 487, 950 |
//! | packets at 10 Mb/s (`examples/pacing.rs`) | 77 | 257 | 1,483 |
//!
//! At a load of 8 by other programs half of the packets of 10 Mb/s left at most 57 us late, 99 % at
//! most 3,930 us, where a bare loop that sleeps for 1 ms woke 35 and 3,720 us late.
//!
//! Where the controller sets when each packet leaves, the thread of an endpoint with few
//! connections stays awake for the last 100 us, and gaps of 50 us are kept. With more than eight
//! connections that are busy, it does what has come together every 250 us, and their paced packets
//! leave later by about as much. Both are measured in `docs/results/endpoint-cost.md`.
//!
//! The tails are those of the machine: no program sleeps more exactly there. What an endpoint costs
//! stands in `docs/results/endpoint-cost.md`.
#![forbid(unsafe_code)]

mod config;
mod endpoint;
mod error;
mod section;
pub mod session;
mod statistics;
mod trace;
pub mod transport;
pub mod uri;

pub use bytes::Bytes;
/// The congestion controller of connections that name none.
pub use comity_congestion::table::DEFAULT_FOR_SECTIONS as DEFAULT_CONTROLLER;
pub use comity_congestion::table::{
    ParameterError, Parameters as ControllerParameters, UnknownController, Value,
};
pub use comity_transport::datagram::Violation;
pub use comity_transport::timeline::inbox::Violation as SectionViolation;
pub use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
pub use comity_transport::wire::CloseCode;
pub use comity_transport::wire::DecodeError;
pub use comity_transport::wire::parameters::Parameters;
pub use comity_units::{PacketNumber, Rate, Seed, Span, Time};

pub use crate::config::{Config, ConfigBuilder, SETTINGS, Setting, Settings};
pub use crate::endpoint::{
    Connection, Endpoint, EndpointEvent, EndpointEvents, Event, Events, PathSizes, SYSTEM_BUFFER,
    TargetBitrate, connect,
};
pub use crate::error::{
    BindError, CloseReason, ConfigError, ConnectError, SendError, StreamError, TrySendError,
};
pub use crate::section::{
    About, Fate, Gap, GapReason, Importance, Item, Outcome, Partial, Reason, Received, Section,
    SectionId, StreamId,
};
pub use crate::session::SessionStatistics;
pub use crate::statistics::Received as ReceivedStatistics;
pub use crate::statistics::{
    ByteAccounts, EndpointStatistics, GapAccounts, Pacing, Path, Peer, ReceivedCounters,
    SectionAccounts, Sent, SentCounters, Statistics,
};
pub use crate::trace::{Qlog, QlogError};
pub use crate::transport::{PathSize, Transport};

/// What headers and protection add to bytes, and the sizes of datagrams that follow from it.
pub mod sizes {
    pub use comity_transport::wire::limits::{
        DEFAULT_DATAGRAM, MIN_INITIAL, SEALING, UDP_IPV4, UDP_IPV6,
    };
}
