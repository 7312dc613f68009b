//! What a connection's driver and its handles have in common.
//!
//! Its transport stands behind a lock: a handle submits sections to it directly, and makes the
//! driver look at the connection. What arrives waits in a bounded queue, with a notification for
//! the task that waits for it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use comity_units::Span;
use tokio::sync::{Notify, broadcast, watch};

use super::events::{Advice, Event};
use super::shared::EndpointShared;
use crate::error::CloseReason;
use crate::section::Item;
use crate::session::{Cipher, ConnectionId, PublicKey, SessionStatistics, lock};
use crate::statistics::Statistics;
use crate::transport::{PathSize, Transport};

/// A transport that the driver's session and the application's handles use.
pub(super) type SharedTransport = Arc<Mutex<Transport>>;

/// The way from the driver to the application.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    pub(crate) items: VecDeque<Item>,
    pub(crate) bytes: usize,
    /// The items in the queue are the last ones.
    pub(crate) is_over: bool,
    /// The driver holds sections back because this is full.
    pub(crate) is_stalled: bool,
}

/// What is known of a connection from its beginning on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) id: ConnectionId,
    pub(crate) peer_address: SocketAddr,
    pub(crate) peer_key: Option<PublicKey>,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) stream_name: Option<String>,
    pub(crate) latency: Span,
}

/// A connection, as the driver and its handles see it.
#[derive(Debug)]
pub(crate) struct ConnectionShared {
    pub(crate) facts: Facts,
    pub(crate) transport: SharedTransport,
    /// What the session counted until the driver served the connection last.
    pub(crate) session: Mutex<SessionStatistics>,
    /// What was counted when it ended.
    pub(crate) last: OnceLock<Statistics>,
    pub(crate) room: Notify,
    /// Whether a task waits for room; changes under the lock of the transport.
    pub(crate) is_waited_for: AtomicBool,
    /// Nobody will receive anything any more.
    pub(crate) is_abandoned: AtomicBool,
    pub(crate) inbound: Mutex<Inbound>,
    pub(crate) arrived: Notify,
    pub(crate) end: watch::Sender<Option<CloseReason>>,
    pub(crate) target: watch::Sender<Advice>,
    pub(crate) address: watch::Sender<SocketAddr>,
    /// What the path was found to carry, where that was not to be expected.
    pub(crate) size: watch::Sender<Option<PathSize>>,
    /// Made when somebody asks for events.
    events: OnceLock<broadcast::Sender<Event>>,
    /// Whether the id stands in the endpoint's list.
    is_scheduled: AtomicBool,
}

/// Events of a connection that wait for a slow listener to them.
const MAX_EVENTS: usize = 1_024;

impl ConnectionShared {
    pub(crate) fn new(facts: Facts, transport: SharedTransport) -> Self {
        Self {
            address: watch::Sender::new(facts.peer_address),
            facts,
            transport,
            session: Mutex::default(),
            last: OnceLock::new(),
            room: Notify::new(),
            is_waited_for: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            inbound: Mutex::default(),
            arrived: Notify::new(),
            end: watch::Sender::new(None),
            target: watch::Sender::new(Advice::default()),
            size: watch::Sender::new(None),
            events: OnceLock::new(),
            is_scheduled: AtomicBool::new(false),
        }
    }

    /// Makes the driver look at the connection.
    pub(crate) fn schedule(&self, endpoint: &EndpointShared) {
        if !self.is_scheduled.swap(true, Ordering::SeqCst) {
            endpoint.schedule(self.facts.id);
        }
    }

    /// The driver is about to look at the connection.
    pub(crate) fn unschedule(&self) {
        self.is_scheduled.store(false, Ordering::SeqCst);
    }

    /// The events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events
            .get_or_init(|| broadcast::Sender::new(MAX_EVENTS))
            .subscribe()
    }

    pub(crate) fn tell(&self, event: Event) {
        if let Some(events) = self.events.get() {
            // It fails when nobody listens.
            let _ = events.send(event);
        }
    }

    /// Why it is closed, if the driver knows of it.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.end.borrow().clone()
    }

    /// Why it is closed, or about to be.
    pub(crate) fn closing_reason(&self, transport: &Transport) -> CloseReason {
        self.close_reason()
            .or_else(|| transport.close_reason())
            .unwrap_or(CloseReason::EndpointClosed)
    }

    /// Nothing comes after what waits to be received.
    pub(crate) fn end_inbound(&self) {
        lock(&self.inbound).is_over = true;
        self.arrived.notify_one();
    }
}
