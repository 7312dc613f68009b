//! Secure sessions without sockets: datagrams and times are the input; datagrams, events and the
//! next timer are the output.
//!
//! A [`Caller`] opens one connection to a listener; a [`Listener`] answers many. Both keep a
//! [`Session`] for each open connection, which seals and opens the packets of a [`Protocol`]: the
//! transport, without keys and addresses. All three are driven alike:
//!
//! 1. Call `handle_datagram` for each datagram that arrived, and `on_timer` when `next_timer` is
//!    due.
//! 2. Then call `poll_transmit` and `poll_event`, each until it returns `None`.
//!
//! No code reads beyond the fixed header of a packet before the packet is authenticated. No state
//! is kept for an address that has not proved that it receives. No input causes a panic. The
//! chapter "Handshake and protection" of `docs/protocol/core.md` specifies the wire format and the
//! rules.

use std::net::{IpAddr, SocketAddr};

use comity_units::Time;

mod allow_list;
mod attempt;
mod budget;
mod call;
mod caller;
mod cookie;
mod cpace;
mod credentials;
#[cfg(test)]
mod debug;
mod exchange;
mod failed;
mod handshake;
mod holder;
mod ids;
mod listener;
mod locking;
mod noise;
mod path;
mod protection;
mod protocol;
mod randomness;
mod refusal;
mod replay;
mod reset;
mod secret;
#[expect(
    clippy::module_inception,
    reason = "the module is about sessions, and this part is the session"
)]
mod session;
mod spent;
mod ticket;
#[cfg(test)]
mod vector;

pub use allow_list::{AllowList, AllowListError};
pub(crate) use call::CALL_TIMEOUT;
pub use call::{CallError, CallerConfig};
pub use caller::{Caller, CallerEvent};
pub use comity_congestion::Ecn;
pub use comity_transport::wire::header::{ConnectionId, Pattern};
pub use comity_transport::wire::limits::MAX_PARAMETERS;
pub use cookie::{Cookies, ROTATION, SLOT};
pub use credentials::{
    Allow, CallerCredentials, CredentialError, ListenerCredentials, Passphrase, PassphraseKey,
    PresharedKey, PublicKey, StaticKey,
};
pub(crate) use holder::Holder;
pub(crate) use ids::{IdChange, IdMap, LaterIds, change_id};
pub(crate) use listener::USUAL_CONNECTIONS;
pub use listener::{
    Listener, ListenerConfig, ListenerConfigError, ListenerEvent, ListenerStatistics, RefusedCaller,
};
pub(crate) use locking::{lock, recover, use_locked};
pub use protection::{Cipher, KeyLimits, KeyUsedUp, OpenError, Protection, Role};
pub(crate) use protocol::whole;
pub use protocol::{BadParameters, Opener, PathFrame, Protocol, Transmit};
pub use randomness::Randomness;
pub use replay::{ReplayWindow, Stale};
pub use secret::Secret;
pub use session::{Closed, Event, Session, SessionStatistics};

/// The two addresses of a received datagram.
///
/// A host that listens on several addresses must answer from the called address. The caller, and
/// address translators and filters on the path, accept no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The local address, if replies must leave from it and it is known.
    pub local: Option<IpAddr>,
}

impl From<SocketAddr> for Addresses {
    fn from(peer: SocketAddr) -> Self {
        Self { peer, local: None }
    }
}

/// A datagram to send. Its bytes are the last `length` bytes of the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The destination.
    pub to: SocketAddr,
    /// The source address; `None` if the system may choose.
    pub source: Option<IpAddr>,
    /// The ECN mark.
    pub ecn: Ecn,
    /// The number of appended bytes.
    pub length: usize,
    /// The time after which it must not be sent, since it carries a section with a deadline;
    /// `Time::MAX` for never. A host that holds it back until then drops it, and the connection
    /// treats it as lost.
    pub leave_by: Time,
}
