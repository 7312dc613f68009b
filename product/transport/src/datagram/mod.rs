//! Transport of sections with deadlines over datagrams. No packet number is used twice.
//!
//! A [`Connection`] accepts [sections](crate::timeline) from its application and produces the
//! payloads of packets. It accepts the payloads of received packets and produces sections, whole or
//! as gaps. It has neither keys nor addresses: its owner does sealing, connection identifiers and
//! path validation, and the simulator needs none of them.
//!
//! ```text
//!                submit                                             poll_delivery
//!                  │                                                     ▲
//!            ┌─────▼─────┐   chunks   ┌────────────┐   frames   ┌────────┴──┐
//!            │  Outbox   ├───────────►│ Connection ├───────────►│   Inbox   │
//!            │ deadlines │◄───────────┤            │            │ deadlines │
//!            └───────────┘ acked/lost └─┬────────▲─┘            └───────────┘
//!                        poll_transmit  │        │  on_packet
//!                                       ▼        │
//!                               sent packets, loss detection,
//!                               controller, pacer, acknowledgements
//! ```
//!
//! The life of a connection begins after the handshake, in `Open`:
//!
//! ```text
//! Open ── close() or a violation ──► Closing ── three probe timeouts ──► Closed
//!   ├──── the peer's Close ────────► Draining ── three probe timeouts ─► Closed
//!   └──── idle timeout ──────────────────────────────────────────────────► Closed
//! ```
//!
//! A [`Connection`] consists of parts with one task each. The first line of each file states the
//! task: `lifecycle`, `congestion` (with `episode`, `bucket_pace`), `ceiling`, `credit`,
//! `advertised_room`, `reports`, `feedback`, `departures`, `reception` (with `received`, `taking`,
//! `missing`), `sent`, `loss`, `size`, `target`, `ecn` and `notifications`. The methods that need
//! several parts are in `transmit`, `receive`, `timers` and `allowance`.
//!
//! Packet numbers are independent of positions in sections. Congestion control therefore sees the
//! acknowledgement or loss of a packet even if its content became obsolete in flight. Time-lined
//! TCP cannot do this (section 5.5 of its paper).
//!
//! Source: RFC 9002 for loss detection, RFC 9000 for acknowledgements; TLTCP for deadlines.
//!
//! Differs from QUIC in: 1. one packet number space, after the handshake; 2. the sender chooses the
//! content when it builds a packet, by deadline, and retransmits lost content only while its
//! deadline allows; 3. windows are paced at 1.25 (in slow start 2) times the window per round trip;
//! 4. flow control compares unacknowledged bytes with the room of the receiver, as TCP's window
//!    does, because abandoned sections have no positions in a byte stream.

mod acknowledge;
mod advertised_room;
mod allowance;
mod bucket_pace;
mod carried;
mod ceiling;
mod config;
mod congestion;
mod connection;
mod credit;
mod departures;
mod ecn;
mod episode;
mod events;
mod evidence;
mod feedback;
mod intervals;
mod lifecycle;
mod loss;
mod missing;
mod notifications;
#[cfg(test)]
mod page;
mod parts;
mod proof;
mod receive;
mod received;
mod reception;
mod reports;
mod sent;
mod size;
mod statistics;
mod taking;
mod target;
mod timers;
mod transmit;
mod used;

pub use config::{Config, ConfigError, MIN_PAYLOAD, bounds};
pub use connection::Connection;
pub use events::{CloseReason, Event, LostPacket, PathFrame, Target, Violation};
pub use statistics::{PathStatistics, PeerReport, ReceivedStatistics, SentStatistics, Statistics};
pub use transmit::Transmit;
