//! A connection for applications.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::stack::{Stack, State, Waiting};
use crate::error::StreamError;
use crate::id::ConnectionId;
use crate::statistics::Info;

/// A connection of a host, like [`tokio::net::TcpStream`] for the kernel.
///
/// When it is dropped, it is closed, and written data still arrives. If some data was not read, the
/// connection is reset.
#[derive(Debug)]
pub struct TcpStream {
    pub(super) stack: Stack,
    pub(super) id: ConnectionId,
}

impl TcpStream {
    pub(super) const fn new(stack: Stack, id: ConnectionId) -> Self {
        Self { stack, id }
    }

    /// Opens a connection from a host.
    ///
    /// # Errors
    /// If it cannot begin, or the peer refuses it, is unreachable or does not respond.
    pub async fn connect(stack: &Stack, remote: SocketAddr) -> io::Result<Self> {
        let shared = stack.shared();
        let id = {
            let mut state = shared.state();
            state.check()?;
            let id = state.host.connect(shared.now(), remote, None)?;
            state.waiting.insert(id, Waiting::default());
            shared.flush(&mut state);
            id
        };
        let stream = Self::new(stack.clone(), id);
        stream.connected().await?;
        Ok(stream)
    }

    /// The local and the remote address.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is unknown to its host.
    pub fn addresses(&self) -> io::Result<(SocketAddr, SocketAddr)> {
        let state = self.stack.shared().state();
        let addresses = state.host.addresses(self.id);
        addresses.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// The state of the connection.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is unknown to its host.
    pub fn info(&self) -> io::Result<Info> {
        let state = self.stack.shared().state();
        let connection = state.host.connection(self.id);
        let path_mtu = state.host.path_mtu(self.id);
        let info = connection
            .zip(path_mtu)
            .map(|(connection, mtu)| Info::of(connection, mtu));
        info.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Resets the connection. Written data may not arrive.
    pub fn abort(&self) {
        let shared = self.stack.shared();
        let mut state = shared.state();
        state.host.abort(shared.now(), self.id);
        shared.flush(&mut state);
    }

    /// Waits until the peer has acknowledged everything that was written, and, if the stream is
    /// shut down, its end.
    ///
    /// # Errors
    /// If the connection ends before.
    pub async fn acknowledged(&self) -> io::Result<()> {
        poll_fn(|context| {
            self.attempt(
                context,
                |waiting| &mut waiting.writer,
                |state| state.host.acknowledged(self.id),
            )
        })
        .await
    }

    /// Waits until the handshake is complete.
    async fn connected(&self) -> io::Result<()> {
        poll_fn(|context| {
            let mut state = self.stack.shared().state();
            state.check()?;
            if let Some(end) = state.host.end(self.id) {
                return Poll::Ready(Err(end.into()));
            }
            if state.host.is_connected(self.id) {
                return Poll::Ready(Ok(()));
            }
            let waiting = state.waiting.entry(self.id).or_default();
            waiting.writer = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Does `work`. If it would block, the task of `context` waits in the slot that `slot` selects.
    pub(super) fn attempt<T>(
        &self,
        context: &Context<'_>,
        slot: fn(&mut Waiting) -> &mut Option<Waker>,
        work: impl FnOnce(&mut State) -> Result<T, StreamError>,
    ) -> Poll<io::Result<T>> {
        let shared = self.stack.shared();
        let mut state = shared.state();
        state.check()?;
        let result = work(&mut state);
        match result {
            Ok(value) => {
                shared.flush(&mut state);
                Poll::Ready(Ok(value))
            }
            Err(StreamError::WouldBlock) => {
                let waiting = state.waiting.entry(self.id).or_default();
                *slot(waiting) = Some(context.waker().clone());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (id, unfilled) = (self.id, buffer.initialize_unfilled());
        let read = self.attempt(
            context,
            |waiting| &mut waiting.reader,
            |state| state.host.read(id, unfilled),
        );
        read.map_ok(|length| buffer.advance(length))
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let id = self.id;
        self.attempt(
            context,
            |waiting| &mut waiting.writer,
            |state| state.host.write(id, bytes),
        )
    }

    /// Does nothing, since data is sent as soon as the windows permit.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the writing side. The FIN follows the data.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = self.stack.shared();
        let mut state = shared.state();
        state.host.shutdown(shared.now(), self.id);
        shared.flush(&mut state);
        Poll::Ready(Ok(()))
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        let shared = self.stack.shared();
        let mut state = shared.state();
        state.waiting.remove(&self.id);
        state.host.release(shared.now(), self.id);
        shared.flush(&mut state);
    }
}
