//! The C library: sections with deadlines through `sendmsg` and `recvmsg`.
//!
//! `include/comity.h` is made from this crate and documents the functions. The interface is that of
//! TLTCP ("The API" in its paper). It differs in:
//!
//! 1. `comity_sendmsg` and `comity_recvmsg` return a number of sections and gaps, not of bytes: a
//!    gap has no bytes.
//! 2. A deadline counts at the receiver, not at the sender.
//! 3. A received section can be lent by the library instead of copied.
//! 4. Further ancillary data carries the stream, the source time, the importance and dependencies.
//!
//! Each function finds its descriptor (`descriptor`), tries, and waits for the descriptor as any
//! user could (`readiness`). Errors and panics become `errno` and a text (`failure`).

#![allow(
    clippy::missing_safety_doc,
    reason = "pointers are null or valid, as in any C library; the header is the documentation"
)]

mod clock;
mod connection;
mod control;
mod descriptor;
mod door;
mod failure;
mod foreign;
mod link;
mod listener;
mod media;
mod message;
mod open;
mod readiness;
mod statistics;

pub use connection::{comity_connect, comity_shutdown};
pub use control::{
    SOL_COMITY, TL_DATA, TL_DEADLINE, TL_GAP, TL_IMPORTANCE, TL_NEEDS, TL_NEVER, TL_NOTHING,
    TL_SOURCE_TIME, TL_STREAM,
};
pub use descriptor::comity_close;
pub use failure::comity_error;
pub use listener::{comity_accept, comity_listen};
pub use media::{comity_read, comity_write};
pub use message::{
    MSG_TL, TL_CANCELLED, TL_CLOSED, TL_DEPENDENCY, TL_EXPIRED, TL_INFEASIBLE, TL_OBSOLETE,
    TL_OVERDUE, TL_SHED, TL_WHOLE, comity_item, comity_recvmsg, comity_sendmsg,
};
pub use statistics::{
    comity_encoder_bitrate, comity_local_address, comity_peer_address, comity_statistics,
    comity_stats, comity_stats_json, comity_stream_name, comity_target_bitrate, comity_version,
};
