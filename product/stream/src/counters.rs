//! The counters of one end of a relay, readable at any moment.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use comity::causes::Closed;
use comity::{CloseReason, Connection, Statistics};

use crate::address::plain;
use crate::lock::lock;
use crate::refusals::Refusals;
use crate::statistics::{PeerStatistics, Side, Totals, Unsent};
use crate::transport::TransportMonitor;

/// The counters of a source or a sink. Clones share them, and reading never waits.
#[derive(Clone, Debug)]
pub struct Counters(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Media(Arc<AtomicU64>, TransportMonitor),
    Connections(Arc<Mutex<Connections>>),
}

impl Counters {
    /// The counters of a host's own source or sink: the bytes of media that it read or wrote, and
    /// their statistics as a transport stream.
    pub const fn of_media(bytes: Arc<AtomicU64>, transport: TransportMonitor) -> Self {
        Self(Kind::Media(bytes, transport))
    }

    pub(crate) fn of_connections(connections: &SharedConnections) -> Self {
        Self(Kind::Connections(connections.0.clone()))
    }

    /// The open connections.
    pub fn connections(&self) -> Vec<Connection> {
        match &self.0 {
            Kind::Media(..) => Vec::new(),
            Kind::Connections(connections) => {
                let connections = lock(connections);
                let open = connections.open.iter();
                open.map(|(_, connection)| connection.clone()).collect()
            }
        }
    }

    /// The counters at this moment.
    pub fn side(&self) -> Side {
        match &self.0 {
            Kind::Media(bytes, transport) => Side {
                bytes: Some(bytes.load(Ordering::Relaxed)),
                transport: transport.statistics(),
                ..Side::default()
            },
            Kind::Connections(connections) => lock(connections).side(),
        }
    }
}

/// Identifies a connection of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionId(u64);

/// The counters of one end's connections.
#[derive(Debug)]
pub(crate) struct Connections {
    open: Vec<(ConnectionId, Connection)>,
    next: u64,
    /// The sums over closed connections.
    closed: Totals,
    /// `None` unless this end sends.
    unsent: Option<Unsent>,
    refusals: Refusals,
}

impl Connections {
    fn side(&self) -> Side {
        let mut totals = self.closed;
        let mut connections = Vec::new();
        for (_, connection) in &self.open {
            let statistics = add(&mut totals, connection);
            connections.push(PeerStatistics {
                peer: plain(connection.peer_address()).to_string(),
                latency_ms: connection.latency().as_secs_f64() * 1e3,
                statistics,
            });
        }
        Side {
            bytes: None,
            transport: None,
            connections,
            totals: Some(totals),
            refused: self.refusals.counts(),
            unsent: self.unsent,
        }
    }
}

/// Adds a connection, and returns its counters.
fn add(totals: &mut Totals, connection: &Connection) -> Statistics {
    let statistics = connection.stats();
    totals.add(&statistics);
    match connection.close_reason() {
        Some(CloseReason::Session(Closed::Internal)) => totals.internal_errors += 1,
        Some(CloseReason::Violation(violation)) if violation.is_false_feedback() => {
            totals.false_feedback += 1;
        }
        _ => {}
    }
    statistics
}

/// [`Connections`] behind a lock, owned by the source or the sink. Dropping it drops the
/// connections, so a leftover [`Counters`] keeps none open.
#[derive(Debug)]
pub(crate) struct SharedConnections(Arc<Mutex<Connections>>);

impl Drop for SharedConnections {
    fn drop(&mut self) {
        let mut connections = lock(&self.0);
        for (_, connection) in std::mem::take(&mut connections.open) {
            add(&mut connections.closed, &connection);
        }
    }
}

impl SharedConnections {
    pub(crate) fn new(refusals: Refusals, sends: bool) -> Self {
        Self(Arc::new(Mutex::new(Connections {
            open: Vec::new(),
            next: 0,
            closed: Totals::default(),
            unsent: sends.then(Unsent::default),
            refusals,
        })))
    }

    pub(crate) fn open(&self, connection: Connection) -> ConnectionId {
        let mut connections = lock(&self.0);
        let id = ConnectionId(connections.next);
        connections.next += 1;
        connections.open.push((id, connection));
        id
    }

    /// Moves a connection to the closed ones, with its final counters.
    pub(crate) fn close(&self, id: ConnectionId) {
        let mut connections = lock(&self.0);
        if let Some(at) = connections.open.iter().position(|(open, _)| *open == id) {
            let (_, connection) = connections.open.remove(at);
            add(&mut connections.closed, &connection);
        }
    }

    pub(crate) fn count_unsent(&self, unsent: Unsent) {
        if let Some(counted) = &mut lock(&self.0).unsent {
            counted.add(unsent);
        }
    }
}
