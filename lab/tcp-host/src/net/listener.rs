//! A listener for applications.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::Notify;

use super::stack::{Stack, Waiting};
use super::stream::TcpStream;
use crate::error::ListenError;
use crate::id::ListenerId;

/// Accepts connections at an address of a host. When it is dropped, it stops listening, and
/// connections that were not accepted are reset.
#[derive(Debug)]
pub struct TcpListener {
    stack: Stack,
    id: ListenerId,
    local: SocketAddr,
    acceptable: Arc<Notify>,
}

impl TcpListener {
    /// Listens at an address of the host: see [`Host::listen`](crate::Host::listen).
    ///
    /// # Errors
    /// [`ListenError`] if the address does not belong to the host or is in use.
    pub fn bind(stack: &Stack, local: SocketAddr, backlog: usize) -> Result<Self, ListenError> {
        let mut state = stack.shared().state();
        let id = state.host.listen(local, backlog)?;
        let acceptable = Arc::new(Notify::new());
        state.acceptable.insert(id, Arc::clone(&acceptable));
        drop(state);
        Ok(Self {
            stack: stack.clone(),
            id,
            local,
            acceptable,
        })
    }

    /// The address at which it listens.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The next connection, and its peer's address. Cancel safe.
    ///
    /// # Errors
    /// If the host's device failed.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let mut acceptable = pin!(self.acceptable.notified());
            // From here on, no notification is lost.
            acceptable.as_mut().enable();
            if let Some(accepted) = self.try_accept()? {
                return Ok(accepted);
            }
            acceptable.await;
        }
    }

    fn try_accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let mut state = self.stack.shared().state();
        state.check()?;
        let Some(id) = state.host.accept(self.id) else {
            return Ok(None);
        };
        state.waiting.insert(id, Waiting::default());
        let addresses = state.host.addresses(id);
        drop(state);
        let stream = TcpStream::new(self.stack.clone(), id);
        Ok(addresses.map(|(_, remote)| (stream, remote)))
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        let shared = self.stack.shared();
        let mut state = shared.state();
        state.acceptable.remove(&self.id);
        state.host.unlisten(shared.now(), self.id);
        shared.flush(&mut state);
    }
}
