//! Relaying media between Comity connections: fan-out, redialling, missing sections, statistics.
//!
//! A [`Relay`] passes sections from a [`Source`] to a [`Sink`] with bounded memory. A [`Receiver`]
//! is a source that receives from one connection after the other. A [`Fanout`] is a sink that sends
//! to one peer, or to every caller. Both get their connections from a [`Dialer`], which calls or
//! listens, and calls again as its [`Redial`] policy says.
//!
//! | to | use |
//! |----|-----|
//! | relay one input to many outputs | [`Relay`] from a [`Receiver`] to a [`Fanout`] |
//! | list missing sections with reasons | [`Event::Missing`], [`Missing::entry`] |
//! | redial a lost connection | [`Redial`], [`Reconnect`] |
//! | count at any moment, without waiting | [`Monitor::snapshot`] |
//! | provide your own input or output | [`Source`] and [`Sink`] |
//! | send and receive media over your own connection | [`MediaSender`], [`MediaReceiver`] |
//! | separate a fault before the sender from one on the path | [`TransportMonitor`] |
//!
//! ```
//! use comity::{Config, Deliver, Section, connect, uri::{Host, Role}};
//! use comity_stream::{
//!     Dialer, Ending, Fanout, FanoutOptions, Observer, Receiver, Reconnect, Relay,
//! };
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::builder()
//!     .passphrase("correct horse battery")
//!     .latency(Duration::from_millis(400))
//!     // A relay passes sections on as soon as they are whole.
//!     .deliver(Deliver::Early)
//!     .build()?;
//! let listen = || {
//!     let role = Role::Listener { host: Some(Host::Ip([127, 0, 0, 1].into())), port: 0 };
//!     Dialer::open(&role, config.clone(), Reconnect::No.into(), Observer::default())
//! };
//! let (input, output) = (listen()?, listen()?);
//! let addresses = [input.local_address(), output.local_address()].map(Option::unwrap);
//!
//! let sink = Fanout::new(output, FanoutOptions { max_subscribers: 2, ..Default::default() });
//! let observer = Observer::new(|event| println!("{event:?}"));
//! let relay = Relay::new(Receiver::new(input, Duration::ZERO), sink, observer);
//! let monitor = relay.monitor();
//! let running = tokio::spawn(relay.run(std::future::pending()));
//!
//! let receiver = connect(addresses[1], config.clone()).await?;
//! let sender = connect(addresses[0], config.clone()).await?;
//! sender.send(Section::new("a frame")).await?;
//! let received = receiver.recv().await.and_then(|item| item.into_section());
//! assert_eq!(received.ok_or("a gap")?.payload, "a frame");
//! assert_eq!(monitor.snapshot().passed.sections(), 1);
//!
//! let finished = async { (sender.finish().await, receiver.recv().await) };
//! let (ending, finished) = tokio::join!(running, finished);
//! assert_eq!(ending??, Ending::Done);
//! # finished.0?;
//! # Ok(())
//! # }
//! ```
//!
//! # What stays outside
//!
//! Files, pipes, `udp://` and `rtp://` belong to the `comity` command, which passes them to a relay
//! as a [`Source`] and a [`Sink`]. A GStreamer element has its own buffers, and bindings for C and
//! Python pass bytes. All of these hosts share this crate.
//!
//! # Runtime
//!
//! Everything runs in a tokio runtime with time enabled; sockets belong to the threads of
//! [`comity`].
#![forbid(unsafe_code)]

mod address;
mod clock;
mod counters;
mod dialer;
mod error;
mod event;
mod fanout;
mod fates;
mod joining;
mod lock;
mod media;
mod missing;
mod named;
mod peer;
mod receiver;
mod refusals;
mod relay;
mod statistics;
mod subscriber;
mod transport;
#[cfg(test)]
mod two_hops;
mod unit;

pub use address::{plain, resolve};
pub use counters::Counters;
pub use dialer::{Dialer, Reconnect, Redial, listen};
pub use error::Error;
pub use event::{Event, Observer};
pub use fanout::{Fanout, FanoutOptions, Reports};
pub use media::{MediaReceiver, MediaSender};
pub use missing::{GapEntry, Missing, MissingReason};
pub use receiver::Receiver;
pub use refusals::REFUSALS;
pub use relay::{Ending, Monitor, Relay, Sink, Source, Written};
pub use statistics::{Count, Passed, PeerStatistics, Side, Snapshot, Totals, Unsent};
pub use transport::{TransportMonitor, TransportStatistics};
pub use unit::{Due, KINDS, MediaUnit, Notice, SourceItem, kind, kind_of};
