//! Sections with deadlines: which bytes are worth sending, and what became of them.
//!
//! The application gives [`section`]s, each with one deadline. The [`outbox`] chooses what to send
//! next and gives up what can no longer arrive in time; the [`inbox`] puts the sections together
//! and reports each exactly once, whole or as a gap; [`clock`] maps the sender's clock, on which
//! all deadlines are, onto the receiver's; [`feasible`] finds what has to go when not everything
//! can arrive in time. None of them sends or reads packets, and time comes in as an argument.
//!
//! Source: B. Mukherjee, T. Brecht, "Time-lined TCP for the TCP-friendly Delivery of Streaming
//! Media", sections 3 and 5. The floor of a stream ([`outbox::Outbox::floor`]) is its `seq_update`,
//! and [`outbox::Outbox::earliest_deadline`] its lifetime timer.
//!
//! Differs from the source in:
//! 1. Deadlines are by when a section has to arrive, not to be sent, once a one-way delay is known
//!    and `drop = infeasible`.
//! 2. Sections go out by deadline and importance across several streams, not in the order of a byte
//!    sequence; what is behind a hole is not held up by it.
//! 3. Loss of obsolete data is the business of the packet numbers: the blind spot of section 5.5
//!    does not exist.
//! 4. Obsolete sections are named with a reason, not skipped over alone.

/// The most streams of a connection.
pub const MAX_STREAMS: usize = 64;
/// The most bytes of sections that an end holds, where nobody says otherwise.
pub const DEFAULT_BUFFER: u64 = 16 << 20;
/// The most sections that an end holds, where nobody says otherwise.
pub const DEFAULT_SECTIONS: u32 = 4_096;

pub mod clock;
pub mod feasible;
pub mod inbox;
pub mod outbox;
mod ranges;
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
