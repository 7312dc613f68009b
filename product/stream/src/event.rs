//! The events of a relay.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use comity::causes::RefusedCaller;
use comity::{CloseReason, Connection, PathSize};

use crate::error::Error;
use crate::missing::Missing;
use crate::unit::Notice;

/// An event of a relay, as an [`Observer`] receives it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A connection was made.
    Connected(&'a Connection),
    /// A connection ended.
    Disconnected(&'a Connection, &'a CloseReason),
    /// The first of a series of calls failed. The dialer keeps calling, perhaps only until the
    /// connect timeout.
    Redialling {
        /// Whether there was a connection before.
        was_connected: bool,
        /// Why the call failed.
        error: &'a Error,
    },
    /// A listener refused callers.
    Refused {
        /// The latest of them.
        from: SocketAddr,
        /// The word for the reason, as it is counted.
        word: &'static str,
        /// The reason; `None` if too many callers waited.
        why: Option<&'a RefusedCaller>,
        /// How many others were refused for the same reason since the last such event.
        more: u64,
    },
    /// The path to a peer carries datagrams of this size.
    PathSize(SocketAddr, PathSize),
    /// A receiver was disconnected because it was more than `max_bytes` behind the fastest
    /// receiver.
    LeftBehind {
        /// The receiver.
        peer: SocketAddr,
        /// How far behind a receiver may be.
        max_bytes: u64,
    },
    /// A section is missing.
    Missing(&'a Missing),
    /// The source reports something about itself. The number counts its notices of this kind.
    Notice(&'a Notice, u64),
    /// The relay had failed, and passing on its remaining sections failed too.
    Undrained(&'a Error),
}

/// Receives events in the task that causes them. It must not block.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(&Event<'_>) + Send + Sync>);

impl Observer {
    /// Calls `on_event` for every event.
    pub fn new(on_event: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(on_event))
    }

    pub(crate) fn on_event(&self, event: &Event<'_>) {
        (self.0)(event);
    }
}

/// Ignores all events.
impl Default for Observer {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
