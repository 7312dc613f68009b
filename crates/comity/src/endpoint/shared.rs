//! The state that the endpoint's thread and its handles share.
//!
//! The thread sleeps in the system. An eventfd wakes it, written only while it sleeps.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{broadcast, watch};

use super::clock::Clock;
use super::events::EndpointEvent;
use crate::session::{ConnectionId, lock};
use crate::statistics::EndpointStatistics;

/// The endpoint, as its thread and its handles see it.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    pub(crate) clock: Clock,
    pub(crate) address: SocketAddr,
    /// Connections that their handles have scheduled.
    scheduled: Mutex<Vec<ConnectionId>>,
    /// Whether another request waits for the thread.
    is_requested: AtomicBool,
    is_shut_down: AtomicBool,
    is_asleep: AtomicBool,
    wake: OwnedFd,
    pub(crate) events: broadcast::Sender<EndpointEvent>,
    /// The counters at the thread's last look for requests.
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

/// The events of an endpoint that may wait for a slow receiver.
const MAX_ENDPOINT_EVENTS: usize = 256;

impl EndpointShared {
    pub(crate) fn new(address: SocketAddr, wake: OwnedFd) -> Self {
        Self {
            clock: Clock::start(),
            address,
            scheduled: Mutex::default(),
            is_requested: AtomicBool::new(false),
            is_shut_down: AtomicBool::new(false),
            is_asleep: AtomicBool::new(false),
            wake,
            events: broadcast::Sender::new(MAX_ENDPOINT_EVENTS),
            statistics: Mutex::default(),
            is_over: watch::Sender::new(false),
        }
    }

    pub(crate) fn wake_descriptor(&self) -> &OwnedFd {
        &self.wake
    }

    /// Makes the thread look for calls and for its end.
    pub(crate) fn request(&self) {
        self.is_requested.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Closes all connections, and ends the thread.
    pub(crate) fn shut_down(&self) {
        self.is_shut_down.store(true, Ordering::SeqCst);
        self.request();
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.is_shut_down.load(Ordering::SeqCst)
    }

    /// Whether there was a request since the last call.
    pub(crate) fn take_request(&self) -> bool {
        self.is_requested.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn schedule(&self, id: ConnectionId) {
        lock(&self.scheduled).push(id);
        self.wake();
    }

    fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // It fails only if the counter is full, and then the thread is awake.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }

    /// The thread is about to wait; `false` if work waits already.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.is_asleep.store(true, Ordering::SeqCst);
        let is_requested = self.is_requested.load(Ordering::SeqCst);
        let is_idle = !is_requested && lock(&self.scheduled).is_empty();
        if !is_idle {
            self.is_asleep.store(false, Ordering::SeqCst);
        }
        is_idle
    }

    /// The thread is awake again.
    pub(crate) fn wake_up(&self, was_woken: bool) {
        if was_woken {
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Swaps the connections that were scheduled into `into`, which is empty.
    pub(crate) fn take_scheduled(&self, into: &mut Vec<ConnectionId>) {
        std::mem::swap(&mut *lock(&self.scheduled), into);
    }
}
