//! Media with deadlines over best-effort networks, sharing them fairly with TCP.
//!
//! An [`Endpoint`] is a UDP socket with any number of connections. What is sent over a [`Connection`] are
//! [`Section`]s, each with one deadline: a video frame, a block of sound. The peer receives each of them exactly
//! once, as an [`Item`]: whole, or as a [`Gap`] with the reason. Nothing is sent that cannot arrive in time, and a
//! congestion controller keeps the connection's share of the network fair.
#![forbid(unsafe_code)]

mod core;
mod endpoint;
mod error;
mod options;
mod section;
pub mod session;
mod statistics;
pub mod uri;

pub use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
pub use comity_transport::wire::CloseCode;
pub use comity_units::Rate;

pub use crate::core::Transport;
pub use crate::endpoint::{
    Connection, Endpoint, EndpointEvent, EndpointEvents, Event, Events, TargetBitrate, connect,
};
pub use crate::error::{BindError, ConnectError, End, OptionsError, SendError};
pub use crate::options::{Options, OptionsBuilder};
pub use crate::section::{
    About, Fate, Gap, GapReason, Importance, Item, Outcome, Partial, Reason, Received, Section,
    SectionId, StreamId,
};
pub use crate::statistics::{
    Account, EndpointStatistics, Gaps, Pacing, Path, Peer, Protection, Sent, Statistics,
};
pub use crate::statistics::Received as ReceivedStatistics;
