//! Sections over a connection, for applications.

use std::future::poll_fn;
use std::io;

use super::stream::TcpStream;
use crate::section::{Delivery, Piece, Section, SectionStatistics};

impl TcpStream {
    /// How the connection delivers sections. If the host offered time-lined TCP,
    /// [`Delivery::Plain`] means that the peer does not support it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is unknown to its host.
    pub fn delivery(&self) -> io::Result<Delivery> {
        let delivery = self.stack.shared().state().host.delivery(self.id);
        delivery.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Submits sections, and waits until at least the first one is accepted: see
    /// [`Host::send`](crate::Host::send). Their deadlines refer to
    /// [`Stack::now`](super::Stack::now). If the call is cancelled, nothing has been submitted.
    ///
    /// # Errors
    /// If the first section is invalid, or the connection has ended.
    pub async fn send_sections(&self, sections: &[Section<'_>]) -> io::Result<usize> {
        poll_fn(|context| {
            let shared = self.stack.shared();
            self.attempt(
                context,
                |waiting| &mut waiting.writer,
                |state| state.host.send(shared.now(), self.id, sections),
            )
        })
        .await
    }

    /// Reads the next pieces of the peer's stream, data and gaps, and waits for the first one: see
    /// [`Host::receive`](crate::Host::receive). Cancel safe.
    ///
    /// # Errors
    /// If the connection ended before the stream.
    pub async fn receive_pieces(
        &self,
        buffer: &mut [u8],
        pieces: &mut [Piece],
    ) -> io::Result<usize> {
        poll_fn(|context| {
            self.attempt(
                context,
                |waiting| &mut waiting.reader,
                |state| state.host.receive(self.id, buffer, pieces),
            )
        })
        .await
    }

    /// The fates of the submitted sections.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is unknown to its host.
    pub fn section_statistics(&self) -> io::Result<SectionStatistics> {
        let statistics = self.stack.shared().state().host.section_statistics(self.id);
        statistics.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}
