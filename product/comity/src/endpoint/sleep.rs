//! When the endpoint's thread sleeps, and how it is woken.
//!
//! The thread takes all requests, sets `is_asleep`, checks for requests once more, and waits. A
//! task adds its request, and then sends the signal if `is_asleep` was set. So either the thread
//! finds the request, or the signal ends its wait. The lock orders the two checks, so nothing
//! depends on a total order of accesses. `loom/` checks every interleaving of these steps.

use std::sync::PoisonError;

use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering};

/// Ends the thread's wait in the system. A signal stays until it is cleared.
pub(crate) trait Signal {
    /// Ends the present wait, or the next one.
    fn send(&self);

    /// Clears all signals.
    fn clear(&self);
}

/// The requests for a thread that sleeps when it has none. `T` identifies a connection.
#[derive(Debug)]
pub(crate) struct Sleep<T, S> {
    requests: Mutex<Requests<T>>,
    /// Only swapped, so that all changes have one order without a fence.
    is_asleep: AtomicBool,
    signal: S,
}

#[derive(Debug)]
struct Requests<T> {
    /// Connections that their handles have scheduled.
    scheduled: Vec<T>,
    /// Whether a request of another kind waits for the thread.
    has_other: bool,
}

impl<T, S: Signal> Sleep<T, S> {
    pub(crate) fn new(signal: S) -> Self {
        Self {
            requests: Mutex::new(Requests {
                scheduled: Vec::new(),
                has_other: false,
            }),
            is_asleep: AtomicBool::new(false),
            signal,
        }
    }

    pub(crate) fn signal(&self) -> &S {
        &self.signal
    }

    fn requests(&self) -> MutexGuard<'_, Requests<T>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread look for requests of other kinds.
    pub(crate) fn request(&self) {
        self.requests().has_other = true;
        self.wake();
    }

    /// Makes the thread serve a connection.
    pub(crate) fn schedule(&self, connection: T) {
        self.requests().scheduled.push(connection);
        self.wake();
    }

    /// Swaps the connections that were scheduled into `scheduled`, which is empty. Returns whether
    /// there was a request of another kind since the last call.
    pub(crate) fn take(&self, scheduled: &mut Vec<T>) -> bool {
        let mut requests = self.requests();
        std::mem::swap(&mut requests.scheduled, scheduled);
        std::mem::take(&mut requests.has_other)
    }

    fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.signal.send();
        }
    }

    /// Prepares the thread's wait. Returns `false` if work waits already.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.is_asleep.swap(true, Ordering::SeqCst);
        let requests = self.requests();
        let is_idle = !requests.has_other && requests.scheduled.is_empty();
        drop(requests);
        if !is_idle {
            self.is_asleep.swap(false, Ordering::SeqCst);
        }
        is_idle
    }

    /// Ends the thread's wait.
    pub(crate) fn wake_up(&self, was_woken: bool) {
        if was_woken {
            self.signal.clear();
        }
        self.is_asleep.swap(false, Ordering::SeqCst);
    }
}

/// Whether a connection is scheduled, so that it is in the list only once.
#[derive(Debug)]
pub(crate) struct IsScheduled(AtomicBool);

impl IsScheduled {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Records that the connection needs service. Returns whether to schedule it.
    pub(crate) fn set(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }

    /// Allows the connection to be scheduled again. The thread calls this before it checks the
    /// connection's state and serves it.
    pub(crate) fn clear(&self) {
        self.0.swap(false, Ordering::SeqCst);
    }
}
