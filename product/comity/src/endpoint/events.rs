//! The events of an endpoint and its connections.

use std::net::SocketAddr;

use comity_transport::datagram::Target;
use comity_units::Rate;
use tokio::sync::{broadcast, watch};

use crate::error::CloseReason;
use crate::section::Outcome;
use crate::session::RefusedCaller;
use crate::transport::PathSize;

/// An event of an endpoint, apart from its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// The endpoint refused a caller.
    Refused {
        /// The caller's address.
        from: SocketAddr,
        /// The reason.
        why: RefusedCaller,
    },
    /// The endpoint closed a connection because too many wait to be accepted.
    Unaccepted {
        /// The caller's address.
        from: SocketAddr,
    },
    /// The receiver of events was too slow: this many events are lost.
    Missed(u64),
}

/// The events of an endpoint since the call of [`Endpoint::events`](super::Endpoint::events).
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

/// An event of an open connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The fate of a section that was sent.
    Outcome(Outcome),
    /// The peer has moved, and has proved that it receives at its new address.
    PathChanged {
        /// The old address.
        from: SocketAddr,
        /// The new one.
        to: SocketAddr,
    },
    /// The path carries datagrams of another size than before. Until the first such event, the size
    /// is the largest that both ends accept.
    PathSize(PathSize),
    /// The receiver of events was too slow: this many events are lost.
    Missed(u64),
    /// The connection is closed. The last event.
    Closed(CloseReason),
}

/// The sizes of datagrams that a path carries.
#[derive(Debug)]
pub struct PathSizes(pub(super) watch::Receiver<Option<PathSize>>);

impl PathSizes {
    /// Waits for the next size; `None` when the endpoint has forgotten the connection. The largest
    /// size that both ends accept is reported only after a smaller one.
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

/// The events of a connection since the call of [`Connection::events`](super::Connection::events).
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

/// The bitrate for an encoder, as it changes.
#[derive(Clone, Debug)]
pub struct TargetBitrate(pub(super) watch::Receiver<Advice>);

impl TargetBitrate {
    /// The bitrate at which the application should submit now; `None` before the path is known.
    pub fn current(&self) -> Option<Rate> {
        self.0.borrow().target.map(|target| target.rate)
    }

    /// The rate up to which a sender that sheds frames should submit sections; `None` before
    /// anything limits the connection.
    ///
    /// It is at least [`current`](Self::current), and at most the measured capacity of the path.
    /// The fair share of a connection changes by more than half within seconds. When the share is
    /// smaller, the connection drops the least important sections itself. When it is larger, only
    /// submitted sections can use it.
    pub fn offer(&self) -> Option<Rate> {
        self.0.borrow().target.and_then(|target| target.offer)
    }

    /// Waits until [`current`](Self::current) or [`offer`](Self::offer) changes, and returns the
    /// bitrate for an encoder; `None` when the connection is over.
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

/// Both rates, and whether the connection is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) target: Option<Target>,
    pub(super) is_over: bool,
}
