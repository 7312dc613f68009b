//! The calls of applications that use sections (TLTCP, section 4).

use comity_tcp::timeline;
use comity_units::Time;

use super::Host;
use super::calls::{is_shut, nothing_to_read};
use crate::error::StreamError;
use crate::id::ConnectionId;
use crate::section::{Delivery, Piece, PieceKind, Section, SectionStatistics};

impl Host {
    /// How a connection delivers sections; `None` before its handshake is complete.
    pub fn delivery(&self, id: ConnectionId) -> Option<Delivery> {
        self.sockets.get(&id)?.delivery()
    }

    /// Submits sections in order, each with its deadline (TLTCP, section 4: `sendmsg`). Returns the
    /// number that the send buffer accepted, at least one unless `sections` is empty. A section is
    /// accepted whole or not at all.
    ///
    /// To a time-lined peer, a section is sent until its deadline, and then removed from the send
    /// buffer. For an ordinary peer, see [`Delivery::Plain`].
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] if the buffer is full or the handshake is not complete;
    /// [`Event::Writable`](super::Event::Writable) follows. [`StreamError::Empty`] and
    /// [`StreamError::TooLarge`] for an invalid first section.
    pub fn send(
        &mut self,
        now: Time,
        id: ConnectionId,
        sections: &[Section<'_>],
    ) -> Result<usize, StreamError> {
        let socket = self.sockets.get_mut(&id).ok_or(StreamError::Unknown)?;
        if let Some(end) = socket.end {
            return Err(end.into());
        }
        if is_shut(socket) {
            return Err(StreamError::ShutDown);
        }
        let mut count = 0;
        for section in sections {
            match socket.submit(section) {
                Ok(()) => count += 1,
                Err(error) if count == 0 => {
                    socket.wants_room |= error == StreamError::WouldBlock;
                    return Err(error);
                }
                Err(_) => break,
            }
        }
        socket.on_call();
        self.mark_ready(id);
        self.settle(now, id);
        Ok(count)
    }

    /// Reads the next pieces of the stream in order (TLTCP, section 4: `recvmsg`). Data is written
    /// to `buffer`, piece after piece. Data that does not fit remains for the next call. Gaps need
    /// no room. Returns the number of pieces: 0 if the peer's stream has ended, or there is no room
    /// for a piece.
    ///
    /// # Errors
    /// [`StreamError::WouldBlock`] if no more pieces are known;
    /// [`Event::Readable`](super::Event::Readable) follows.
    pub fn receive(
        &mut self,
        id: ConnectionId,
        buffer: &mut [u8],
        pieces: &mut [Piece],
    ) -> Result<usize, StreamError> {
        let socket = self.sockets.get_mut(&id).ok_or(StreamError::Unknown)?;
        let (mut count, mut used) = (0, 0);
        for piece in &mut *pieces {
            let room = buffer.len() - used;
            let Some(next) = socket.tcp.read_piece(room as u64) else {
                break;
            };
            *piece = match next {
                timeline::Piece::Gap { offset, length } => Piece {
                    kind: PieceKind::Gap,
                    offset,
                    length,
                },
                timeline::Piece::Data { offset, length } => {
                    let end = used + length as usize;
                    let part = buffer.get_mut(used..end).unwrap_or_default();
                    socket.receive.read(part);
                    used = end;
                    Piece {
                        kind: PieceKind::Data,
                        offset,
                        length,
                    }
                }
            };
            count += 1;
        }
        if count > 0 {
            socket.on_call();
            self.mark_ready(id);
            return Ok(count);
        }
        if pieces.is_empty() || socket.tcp.has_piece() {
            return Ok(0);
        }
        nothing_to_read(socket)
    }

    /// The fates of the sections that a connection submitted.
    pub fn section_statistics(&self, id: ConnectionId) -> Option<SectionStatistics> {
        Some(self.sockets.get(&id)?.section_statistics())
    }
}
