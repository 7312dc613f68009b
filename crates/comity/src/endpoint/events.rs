//! What an endpoint and its connections tell the application while they last.

use std::net::SocketAddr;

use comity_transport::datagram::Target;
use comity_units::Rate;
use tokio::sync::{broadcast, watch};

use crate::error::CloseReason;
use crate::section::Outcome;
use crate::session::RefusedCaller;
use crate::transport::PathSize;

/// What happens to an endpoint apart from its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// A caller was turned away.
    Refused {
        /// From where it came.
        from: SocketAddr,
        /// Why.
        why: RefusedCaller,
    },
    /// A connection was closed because too many wait to be accepted.
    Unaccepted {
        /// From where it came.
        from: SocketAddr,
    },
    /// So many events were not kept, because nobody asked for so long.
    Missed(u64),
}

/// The events of an endpoint, from the call of [`Endpoint::events`](super::Endpoint::events) on.
#[derive(Debug)]
pub struct EndpointEvents(pub(super) broadcast::Receiver<EndpointEvent>);

impl EndpointEvents {
    /// The next event; `None` when the endpoint is gone.
    pub async fn next(&mut self) -> Option<EndpointEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(EndpointEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// What happens to a connection while it is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// What became of a section that was sent.
    Outcome(Outcome),
    /// The peer has moved to another address, and proved it.
    PathChanged {
        /// The old address.
        from: SocketAddr,
        /// The new one.
        to: SocketAddr,
    },
    /// It was found out how large datagrams may be on the path, and that is not what it was: at
    /// first, as large as both ends take.
    PathSize(PathSize),
    /// So many events were not kept, because nobody asked for so long.
    Missed(u64),
    /// The connection is closed. The last event.
    Closed(CloseReason),
}

/// What a path is found to carry, as it changes.
#[derive(Debug)]
pub struct PathSizes(pub(super) watch::Receiver<Option<PathSize>>);

impl PathSizes {
    /// Waits for the next finding; `None` when the connection is forgotten. That the path carries
    /// what both ends take is none, but after a narrower one.
    pub async fn next(&mut self) -> Option<PathSize> {
        loop {
            self.0.changed().await.ok()?;
            let size = *self.0.borrow_and_update();
            if size.is_some() {
                return size;
            }
        }
    }
}

/// The events of a connection, from the call of [`Connection::events`](super::Connection::events)
/// on.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Event>,
    is_over: bool,
}

impl Events {
    pub(super) const fn new(receiver: broadcast::Receiver<Event>) -> Self {
        Self {
            receiver,
            is_over: false,
        }
    }

    /// The next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<Event> {
        if self.is_over {
            return None;
        }
        let event = match self.receiver.recv().await {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(missed)) => Event::Missed(missed),
            Err(broadcast::error::RecvError::Closed) => return None,
        };
        self.is_over = matches!(event, Event::Closed(_));
        Some(event)
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        let event = match self.receiver.try_recv() {
            Ok(event) => event,
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Event::Missed(missed),
            Err(_) => return None,
        };
        self.is_over = matches!(event, Event::Closed(_));
        Some(event)
    }
}

/// What an encoder should be set to, as it changes.
#[derive(Clone, Debug)]
pub struct TargetBitrate(pub(super) watch::Receiver<Advice>);

impl TargetBitrate {
    /// What the application may send now; `None` before anything is known of the path.
    pub fn current(&self) -> Option<Rate> {
        self.0.borrow().target.map(|target| target.rate)
    }

    /// The rate up to which a sender that sheds frames should submit sections. `None` before
    /// anything is known of the path.
    ///
    /// It is at least [`current`](Self::current), and at most what the path was seen to carry. The
    /// share of a connection beside other flows changes by more than half within seconds. When the
    /// share is smaller, the connection drops the least important sections itself. When it is
    /// larger, only submitted sections can use it.
    pub fn offer(&self) -> Option<Rate> {
        self.0.borrow().target.map(|target| target.offer)
    }

    /// Waits until one of the two has changed, and gives what an encoder should be set to; `None`
    /// when the connection is over.
    pub async fn changed(&mut self) -> Option<Rate> {
        loop {
            if self.0.borrow().is_over {
                return None;
            }
            self.0.changed().await.ok()?;
            let Advice { target, is_over } = *self.0.borrow_and_update();
            if let (false, Some(target)) = (is_over, target) {
                return Some(target.rate);
            }
        }
    }
}

/// What the application may send, and whether that is the last word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) target: Option<Target>,
    pub(super) is_over: bool,
}
