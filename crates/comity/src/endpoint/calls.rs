//! Calls that handles ask for, until the endpoint's thread makes them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::connection::Connection;
use super::shared::Handle;
use crate::config::Config;
use crate::error::ConnectError;
use crate::session::lock;

/// Who waits for a call to be answered.
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

/// The calls to be made; `None` once the thread has ended: nobody makes them any more.
#[derive(Debug)]
pub(super) struct CallRequests(Mutex<Option<Vec<CallRequest>>>);

impl Default for CallRequests {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl CallRequests {
    /// When the thread has ended the request is dropped, and with it the way back: whoever waits
    /// for an answer learns that none comes.
    pub(super) fn push(&self, request: CallRequest) {
        let refused = match lock(&self.0).as_mut() {
            Some(requests) => {
                requests.push(request);
                None
            }
            None => Some(request),
        };
        // Not under the lock: the last handle may go with it.
        drop(refused);
    }

    pub(super) fn take(&self) -> Vec<CallRequest> {
        let mut requests = lock(&self.0);
        requests.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The thread ends: requests that came too late are dropped, as those that follow will be.
    pub(super) fn end(&self) {
        let late = lock(&self.0).take();
        drop(late);
    }
}
