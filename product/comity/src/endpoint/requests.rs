//! Requests that handles make until the endpoint's thread has ended.
//!
//! A request carries the channel of its reply: dropping the request ends the wait of its task.
//! `loom/` checks that each request is taken or dropped.

use crate::session::lock;
use crate::sync::Mutex;

/// The requests; `None` once the thread has ended.
#[derive(Debug)]
pub(crate) struct Requests<T>(Mutex<Option<Vec<T>>>);

impl<T> Default for Requests<T> {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl<T> Requests<T> {
    /// Adds a request, or drops it if the thread has ended.
    pub(crate) fn push(&self, request: T) {
        let refused = match lock(&self.0).as_mut() {
            Some(requests) => {
                requests.push(request);
                None
            }
            None => Some(request),
        };
        // Not under the lock: this may drop the last handle.
        drop(refused);
    }

    pub(crate) fn take(&self) -> Vec<T> {
        let mut requests = lock(&self.0);
        requests.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Drops the waiting requests and all later ones, since the thread ends.
    pub(crate) fn end(&self) {
        let late = lock(&self.0).take();
        drop(late);
    }
}
