//! Calls that handles request and the endpoint's thread makes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::connection::Connection;
use super::shared::Handle;
use crate::config::Config;
use crate::error::ConnectError;
use crate::session::lock;

/// A task that waits for the result of a call.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) reply: oneshot::Sender<Result<Connection, ConnectError>>,
    pub(super) handle: Arc<Handle>,
}

/// A call to be made.
#[derive(Debug)]
pub(super) struct CallRequest {
    pub(super) address: SocketAddr,
    pub(super) config: Box<Config>,
    pub(super) waiting: Waiting,
}

/// The requested calls; `None` once the thread has ended, since nobody makes them any more.
#[derive(Debug)]
pub(super) struct CallRequests(Mutex<Option<Vec<CallRequest>>>);

impl Default for CallRequests {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl CallRequests {
    /// If the thread has ended, this drops the request with its reply channel: a waiting task
    /// learns that no reply comes.
    pub(super) fn push(&self, request: CallRequest) {
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

    pub(super) fn take(&self) -> Vec<CallRequest> {
        let mut requests = lock(&self.0);
        requests.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The thread ends: drops the waiting requests, and all later ones.
    pub(super) fn end(&self) {
        let late = lock(&self.0).take();
        drop(late);
    }
}
