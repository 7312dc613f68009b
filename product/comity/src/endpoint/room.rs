//! Tasks that wait for room in the send buffer of a connection.
//!
//! A task looks for room under the lock of the transport, and announces under the same lock that it
//! will wait. The driver makes room under that lock, and then notifies waiting tasks. `loom/`
//! checks every interleaving of these steps.

use crate::sync::{AtomicBool, Notify, Ordering};

#[derive(Debug)]
pub(crate) struct Room {
    /// Changes only under the lock of the transport.
    is_wanted: AtomicBool,
    notify: Notify,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self {
            is_wanted: AtomicBool::new(false),
            notify: Notify::new(),
        }
    }

    /// Calls `attempt` at once, and then whenever there may be room, until it returns a value. An
    /// attempt that finds no room calls [`want`](Self::want) before it unlocks the transport.
    pub(crate) async fn wait<T>(&self, mut attempt: impl FnMut() -> Option<T>) -> T {
        loop {
            // It receives every notification from here on, also before it waits.
            let notified = self.notify.notified();
            if let Some(done) = attempt() {
                return done;
            }
            notified.await;
        }
    }

    /// Announces that a task will wait for room.
    pub(crate) fn want(&self) {
        self.is_wanted.store(true, Ordering::SeqCst);
    }

    /// Call this when the locked transport has room. Returns whether to call
    /// [`notify`](Self::notify).
    pub(crate) fn take_wanted(&self) -> bool {
        self.is_wanted.swap(false, Ordering::SeqCst)
    }

    /// Wakes all tasks that wait.
    pub(crate) fn notify(&self) {
        self.notify.notify_waiters();
    }
}
