//! Sections with deadlines: which bytes are worth sending, and their outcomes.
//!
//! The application submits [`section`]s, each with one deadline. The [`outbox`] chooses the next
//! bytes to send and gives up sections that can no longer arrive in time. The [`inbox`] reassembles
//! sections and reports each exactly once, whole or as a gap. Deadlines are on the sender's clock;
//! [`clock`] maps it onto the receiver's. [`feasible`] finds which sections to drop if not all can
//! arrive in time. None of them sends or reads packets, and time is an argument.
//!
//! Source: B. Mukherjee, T. Brecht, "Time-lined TCP for the TCP-friendly Delivery of Streaming
//! Media", sections 3 and 5. The floor of a stream ([`outbox::Outbox::floor`]) is its `seq_update`,
//! and [`outbox::Outbox::earliest_deadline`] its lifetime timer.
//!
//! Differs from the source in:
//! 1. With `drop = infeasible`, and once a one-way delay is known, a deadline is the time by which
//!    a section has to arrive, not to be sent.
//! 2. Sections leave by deadline and importance across several streams, not in the order of a byte
//!    sequence. A hole delays no later section.
//! 3. Packet numbers show the loss of obsolete data, so the blind spot of section 5.5 does not
//!    exist.
//! 4. The sender reports obsolete sections with a reason instead of only skipping them.

/// The maximum number of streams of a connection.
pub const MAX_STREAMS: usize = 64;
/// The default limit of the bytes of sections that an end holds.
pub const DEFAULT_BUFFER: u64 = 16 << 20;
/// The default limit of the number of sections that an end holds.
pub const DEFAULT_SECTIONS: u32 = 4_096;
/// The default limit of the time from a section's arrival to its deadline.
pub const DEFAULT_MAX_LATENCY: comity_units::Span = comity_units::Span::from_secs(60);

pub mod clock;
pub mod feasible;
pub mod inbox;
pub mod outbox;
pub mod section;
mod tokens;

pub use clock::ClockMap;
pub use inbox::{Delivery, Inbox};
pub use outbox::{Chunk, Outbox, Outcome, PathEstimate};
pub use section::{
    Deliver, DropPolicy, Elided, Importance, Meta, Outgoing, Payload, Reason, Reliability,
    SectionId, StreamId,
};
pub use tokens::{Borrowing, Tokens};
