//! The state that a connection's driver and its handles share.
//!
//! A lock guards the transport. A handle submits sections to it directly, and schedules the
//! connection with the driver. Received items wait in a bounded queue, with a notification for the
//! waiting task.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use comity_units::Span;
use tokio::sync::{broadcast, watch};

use super::events::{Advice, Event};
use super::inbound::Inbound;
use super::room::Room;
use super::shared::EndpointShared;
use super::sleep::IsScheduled;
use crate::error::CloseReason;
use crate::memory::MemoryShare;
use crate::section::Item;
use crate::session::{Cipher, ConnectionId, PublicKey, SessionStatistics, lock};
use crate::statistics::Statistics;
use crate::transport::{PathSize, Transport};

/// A transport shared by the driver's session and the application's handles.
pub(super) type SharedTransport = Arc<Mutex<Transport>>;

/// The properties of a connection that do not change.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) id: ConnectionId,
    pub(crate) peer_address: SocketAddr,
    pub(crate) peer_key: Option<PublicKey>,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) stream_name: Option<String>,
    pub(crate) peer_features: u64,
    pub(crate) latency: Span,
}

/// The part of a connection that its driver and its handles share.
#[derive(Debug)]
pub(crate) struct ConnectionShared {
    pub(crate) facts: Facts,
    pub(crate) transport: SharedTransport,
    /// Its part of the endpoint's memory.
    pub(crate) memory: Arc<MemoryShare>,
    /// The session's counters when the driver last served the connection.
    pub(crate) session: Mutex<SessionStatistics>,
    /// The final counters.
    pub(crate) last: OnceLock<Statistics>,
    pub(crate) room: Room,
    /// Whether the application accepts no more items.
    pub(crate) is_abandoned: AtomicBool,
    pub(crate) inbound: Inbound<Item>,
    pub(crate) end: watch::Sender<Option<CloseReason>>,
    pub(crate) target: watch::Sender<Advice>,
    pub(crate) address: watch::Sender<SocketAddr>,
    /// The size of datagrams on the path, if it differs from the expected one.
    pub(crate) size: watch::Sender<Option<PathSize>>,
    /// Created at the first subscription.
    events: OnceLock<broadcast::Sender<Event>>,
    /// Whether the connection's id is in the endpoint's list.
    is_scheduled: IsScheduled,
}

/// The maximum number of events of a connection that wait for a slow receiver.
const MAX_EVENTS: usize = 1_024;

impl ConnectionShared {
    pub(crate) fn new(facts: Facts, transport: SharedTransport) -> Self {
        let memory = lock(&transport).memory().clone();
        Self {
            address: watch::Sender::new(facts.peer_address),
            facts,
            inbound: Inbound::new(memory.clone()),
            memory,
            transport,
            session: Mutex::default(),
            last: OnceLock::new(),
            room: Room::new(),
            is_abandoned: AtomicBool::new(false),
            end: watch::Sender::new(None),
            target: watch::Sender::new(Advice::default()),
            size: watch::Sender::new(None),
            events: OnceLock::new(),
            is_scheduled: IsScheduled::new(),
        }
    }

    /// Schedules the connection with the driver.
    pub(crate) fn schedule(&self, endpoint: &EndpointShared) {
        if self.is_scheduled.set() {
            endpoint.sleep.schedule(self.facts.id);
        }
    }

    /// Allows the next schedule: the driver is about to serve the connection.
    pub(crate) fn unschedule(&self) {
        self.is_scheduled.clear();
    }

    /// The events from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.events
            .get_or_init(|| broadcast::Sender::new(MAX_EVENTS))
            .subscribe()
    }

    pub(crate) fn emit(&self, event: Event) {
        if let Some(events) = self.events.get() {
            // It fails if there is no subscriber.
            let _ = events.send(event);
        }
    }

    /// Why the connection is closed, if the driver has reported it.
    pub(crate) fn close_reason(&self) -> Option<CloseReason> {
        self.end.borrow().clone()
    }
}
