//! Deadline transport over datagrams: sections in packets that are never numbered twice.
//!
//! A [`Connection`] takes [sections](crate::timeline) from its application and gives payloads for
//! packets; it takes the payloads of packets that arrived and gives sections, whole or as gaps. It
//! knows neither keys nor addresses: sealing, connection identifiers and path validation are the
//! business of who owns it, and the simulator does without them.
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
//! A [`Connection`] delegates to owners, one for each of its jobs. Each file says its job in the
//! first line: `lifecycle`, `congestion` (with `episode`, `bucket_pace`), `ceiling`, `credit`,
//! `advertised_room`, `reports`, `feedback`, `departures`, `reception` (with `received`, `taking`,
//! `missing`), `sent`, `loss`, `size`, `target`, `ecn` and `notifications`. The methods that need
//! several owners stand in `transmit`, `receive`, `timers` and `allowance`.
//!
//! Because packet numbers are apart from the positions in sections, packets whose content became
//! obsolete in flight are still acknowledged or lost in the eyes of congestion control: the blind
//! spot of time-lined TCP (its section 5.5) does not exist here.
//!
//! Source: RFC 9002 for loss detection, RFC 9000 for acknowledgements; TLTCP for deadlines.
//!
//! Differs from QUIC in: 1. one packet number space, after the handshake; 2. content is chosen when
//! a packet is built, by deadline, and lost content is retransmitted only while its deadline
//! allows; 3. windows are paced at 1.25 (in slow start 2) times the window in a round trip; 4. flow
//! control counts what is unacknowledged against what the receiver has room for, as TCP's window
//! does, because sections that are abandoned leave no position behind.

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

pub use config::{Config, ConfigError, MIN_PAYLOAD, bounds};
pub use connection::Connection;
pub use events::{CloseReason, Event, LostPacket, PathFrame, Target, Violation};
pub use received::Ecn;
pub use statistics::{PathStatistics, PeerReport, ReceivedStatistics, SentStatistics, Statistics};
pub use transmit::Transmit;
