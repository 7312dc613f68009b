//! The state that the endpoint's thread and its handles share.
//!
//! The thread sleeps in the system. An eventfd wakes it, written only while it sleeps
//! ([`sleep`](super::sleep)).

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{broadcast, watch};

use super::clock::Clock;
use super::events::EndpointEvent;
use super::sleep::{Signal, Sleep};
use crate::session::ConnectionId;
use crate::statistics::EndpointStatistics;

/// The part of an endpoint that its thread and its handles share.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    pub(crate) clock: Clock,
    pub(crate) address: SocketAddr,
    pub(crate) sleep: Sleep<ConnectionId, OwnedFd>,
    is_shut_down: AtomicBool,
    accepts_nobody: AtomicBool,
    pub(crate) events: broadcast::Sender<EndpointEvent>,
    /// The counters when the thread last checked for requests.
    pub(crate) statistics: Mutex<EndpointStatistics>,
    /// Whether the thread has ended.
    pub(crate) is_over: watch::Sender<bool>,
}

/// Ends the thread when the last handle is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<EndpointShared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.shut_down();
    }
}

/// The maximum number of endpoint events that wait for a slow receiver.
const MAX_ENDPOINT_EVENTS: usize = 256;

/// An eventfd.
impl Signal for OwnedFd {
    fn send(&self) {
        // It fails only if the counter is full, and then a signal is pending.
        let _ = rustix::io::write(self, &1_u64.to_ne_bytes());
    }

    fn clear(&self) {
        let _ = rustix::io::read(self, &mut [0; 8]);
    }
}

impl EndpointShared {
    pub(crate) fn new(address: SocketAddr, wake: OwnedFd) -> Self {
        Self {
            clock: Clock::start(),
            address,
            sleep: Sleep::new(wake),
            is_shut_down: AtomicBool::new(false),
            accepts_nobody: AtomicBool::new(false),
            events: broadcast::Sender::new(MAX_ENDPOINT_EVENTS),
            statistics: Mutex::default(),
            is_over: watch::Sender::new(false),
        }
    }

    /// Answers no more callers.
    pub(crate) fn stop_accepting(&self) {
        self.accepts_nobody.store(true, Ordering::SeqCst);
        self.sleep.request();
    }

    pub(crate) fn accepts_nobody(&self) -> bool {
        self.accepts_nobody.load(Ordering::SeqCst)
    }

    /// Closes all connections, and ends the thread.
    pub(crate) fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::SeqCst);
        self.sleep.request();
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::SeqCst)
    }
}
