//! A listener: a socket that waits for callers.

use std::sync::{Arc, Mutex};

use comity::{Connection, Endpoint, Settings};

use crate::failure::Failure;
use crate::open::{Incoming, Made, Socket, Taken, lock};
use crate::readiness::Readiness;

/// A listener.
pub(crate) struct Door {
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) endpoint: Endpoint,
    /// The socket; `None` after the close.
    socket: Mutex<Option<Arc<Socket>>>,
    pub(crate) settings: Settings,
    incoming: Mutex<Incoming<Connection>>,
}

impl Door {
    pub(crate) fn new(endpoint: Endpoint, settings: Settings, readiness: Arc<Readiness>) -> Self {
        let door = Self {
            socket: Mutex::new(Some(Arc::new(Socket::Listener(endpoint.clone())))),
            endpoint,
            settings,
            incoming: Mutex::new(Incoming::new(&readiness)),
            readiness,
        };
        lock(&door.incoming).look_ahead(|| door.fetch());
        door
    }

    fn fetch(&self) -> impl Future<Output = Option<Connection>> + Send + use<> {
        let endpoint = self.endpoint.clone();
        async move { endpoint.accept().await }
    }

    pub(crate) fn accept(&self) -> Result<Option<Made>, Failure> {
        let ended = || Failure::new(libc::ECONNABORTED, "the listener was closed");
        let socket = lock(&self.socket).clone().ok_or_else(ended)?;
        match lock(&self.incoming).take(|| self.fetch()) {
            Taken::Value(connection) => Ok(Some((connection, socket))),
            Taken::Nothing => Ok(None),
            Taken::End => Err(ended()),
        }
    }

    pub(crate) fn close(&self) {
        self.endpoint.stop_accepting();
        lock(&self.incoming).close();
        let socket = lock(&self.socket).take();
        if let Some(socket) = socket {
            Socket::release(socket);
        }
    }
}
