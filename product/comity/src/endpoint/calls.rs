//! Calls that handles request and that the endpoint's thread makes.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::connection::Connection;
use super::requests::Requests;
use super::shared::Handle;
use crate::config::Config;
use crate::error::ConnectError;

/// A task that waits for the result of a call.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) reply: oneshot::Sender<Result<Connection, ConnectError>>,
    pub(super) handle: Arc<Handle>,
}

#[derive(Debug)]
pub(super) struct CallRequest {
    pub(super) address: SocketAddr,
    pub(super) config: Box<Config>,
    pub(super) waiting: Waiting,
}

pub(super) type CallRequests = Requests<CallRequest>;
