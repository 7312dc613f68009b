//! Secure sessions without sockets: datagrams and times go in, datagrams, events and the next
//! wake-up come out.
//!
//! A [`Caller`] opens one connection to a listener; a [`Listener`] answers many. Both keep for each
//! open connection a [`Session`], which seals and opens the packets of a [`Protocol`]: the
//! transport, which sees neither keys nor addresses. All three are driven alike:
//!
//! 1. `handle_datagram` for what arrived, `on_timer` when `next_timer` has come;
//! 2. then `poll_transmit` until it gives nothing, and `poll_event` until it gives nothing.
//!
//! Nothing behind the fixed header is looked at before it is authenticated, no state is kept for an
//! address that has not proved to receive, and no input makes any of it panic. The wire format and
//! the rules are the chapter "Handshake and protection" of `docs/protocol/core.md`.

use std::net::{IpAddr, SocketAddr};

use comity_units::Time;

mod allow_list;
mod caller;
mod cookie;
mod credentials;
mod handshake;
mod listener;
mod noise;
mod path;
mod protection;
mod protocol;
mod randomness;
mod refusal;
mod replay;
mod secret;
#[expect(
    clippy::module_inception,
    reason = "the module is about sessions, and this part is the session"
)]
mod session;
#[cfg(test)]
mod vector;

pub use allow_list::{AllowList, AllowListError};
pub(crate) use caller::CALL_TIMEOUT;
pub use caller::{CallError, Caller, CallerConfig, CallerEvent};
pub use comity_transport::datagram::Ecn;
pub use comity_transport::wire::header::{ConnectionId, Pattern};
pub use comity_transport::wire::limits::MAX_PARAMETERS;
pub use cookie::{Cookies, ROTATION, SLOT};
pub use credentials::{
    Allow, CallerCredentials, CredentialError, ListenerCredentials, Passphrase, PresharedKey,
    PublicKey, StaticKey,
};
pub(crate) use listener::USUAL_CONNECTIONS;
pub use listener::{
    Listener, ListenerConfig, ListenerConfigError, ListenerEvent, ListenerStatistics,
    RefusedCaller, Retry,
};
pub use protection::{Cipher, KeyLimits, KeyUsedUp, OpenError, Protection, Role};
pub(crate) use protocol::lock;
pub use protocol::{BadParameters, Opener, PathFrame, Protocol, Transmit};
pub use randomness::Randomness;
pub use replay::{ReplayWindow, Stale};
pub use secret::Secret;
pub use session::{Closed, Event, Session, SessionStatistics};

/// The two addresses of a datagram that has arrived.
///
/// A host with several addresses that listens on all of them has to answer from the one that was
/// called: its caller, and whatever translates or filters addresses on the way, takes no other one
/// for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The peer's.
    pub peer: SocketAddr,
    /// The one here, where it matters and is known.
    pub local: Option<IpAddr>,
}

impl From<SocketAddr> for Addresses {
    fn from(peer: SocketAddr) -> Self {
        Self { peer, local: None }
    }
}

/// A datagram to be sent: its bytes are the last `length` ones of the buffer that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where it goes.
    pub to: SocketAddr,
    /// The address here that it has to leave from; `None` where the system may choose.
    pub source: Option<IpAddr>,
    /// How it is marked.
    pub ecn: Ecn,
    /// How many bytes were appended.
    pub length: usize,
    /// From when on it is not to be sent any more; `Time::MAX` for never. It carries something with
    /// a deadline then, and who holds it back until that has come throws it away. For the
    /// connection it is lost.
    pub leave_by: Time,
}
