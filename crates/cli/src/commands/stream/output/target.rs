//! What bytes are written to, by a thread of its own.

use std::fs::File;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::time::Instant;

use comity_media::rtp::Packetiser;
use comity_media::{Pacer, Spacing};
use comity_units::{Span, Time};
use rustix::thread::{Timespec, nanosleep};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::ledger::Taken;
use crate::clock::now;

/// A piece that waits, with the room that it takes until it has been written.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// When it came.
    pub(super) came: Instant,
    /// How far apart its packets were at their source, if that is known.
    pub(super) spacing: Option<Span>,
    pub(super) _room: OwnedSemaphorePermit,
}

/// Something that takes bytes.
pub(crate) trait Target {
    /// Takes the next ones, which came at this moment, and whose packets were so far apart at their
    /// source, if that is known: all or, as far as that can be had, none.
    fn take(&mut self, piece: &[u8], came: Instant, spacing: Option<Span>) -> io::Result<()>;

    /// Nothing more comes.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes until nothing more comes, or until it fails; counts the pieces that were taken whole.
pub(super) fn write_all(
    mut target: impl Target,
    mut waiting: mpsc::Receiver<Piece>,
    taken: &Taken,
) -> io::Result<()> {
    while let Some(piece) = waiting.blocking_recv() {
        if let Err(error) = target.take(&piece.bytes, piece.came, piece.spacing) {
            // Before the piece gives its room back: nothing more is to come for that.
            waiting.close();
            return Err(error);
        }
        taken.add(piece.bytes.len());
        drop(piece);
    }
    target.end()
}

impl Target for io::Stdout {
    fn take(&mut self, piece: &[u8], _: Instant, _: Option<Span>) -> io::Result<()> {
        self.write_all(piece)?;
        // What stays in the buffer is not written, and may never be.
        self.flush()
    }
}

/// A file, or what is opened like one.
#[derive(Debug)]
pub(crate) struct Recording {
    file: File,
    /// Whether it is on a disk.
    is_stored: bool,
    /// Whether what it held before is still in it.
    is_old: bool,
    /// How much was written of whole pieces.
    length: u64,
}

impl Recording {
    pub(crate) fn new(file: File) -> Self {
        let is_stored = file.metadata().is_ok_and(|metadata| metadata.is_file());
        Self {
            file,
            is_stored,
            is_old: is_stored,
            length: 0,
        }
    }
}

impl Target for Recording {
    fn take(&mut self, piece: &[u8], _: Instant, _: Option<Span>) -> io::Result<()> {
        if self.is_old {
            self.file.set_len(0)?;
            self.is_old = false;
        }
        let taken = self.file.write_all(piece);
        match (&taken, self.is_stored) {
            (Ok(()), _) => self.length += piece.len() as u64,
            // The part that found room is no section, nor need it be whole packets. When even this
            // fails, the first error is the one to tell.
            (Err(_), true) => drop(self.file.set_len(self.length)),
            (Err(_), false) => {}
        }
        taken
    }

    fn end(&mut self) -> io::Result<()> {
        match self.is_stored {
            // Some disks are found to be full only then.
            true => self.file.sync_all(),
            false => Ok(()),
        }
    }
}

/// Datagrams to one address, each at its time.
#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: UdpSocket,
    pacer: Pacer,
    spacing: Spacing,
    packetiser: Option<Packetiser>,
    began: Instant,
}

impl Datagrams {
    /// Datagrams of at most `length` bytes of media each, at least one, in RTP where there is a
    /// packetiser.
    pub(crate) fn new(socket: UdpSocket, length: usize, packetiser: Option<Packetiser>) -> Self {
        Self {
            socket,
            pacer: Pacer::new(length),
            spacing: Spacing::default(),
            packetiser,
            began: now(),
        }
    }
}

impl Target for Datagrams {
    /// Returns when the last datagram has left. What comes meanwhile waits, with the time at which
    /// it came.
    fn take(&mut self, piece: &[u8], came: Instant, spacing: Option<Span>) -> io::Result<()> {
        let came = came.saturating_duration_since(self.began);
        self.pacer.push(Time::ZERO + came.into(), piece, spacing);
        for datagram in self.pacer.datagrams() {
            let moment = self.spacing.moment(datagram.departure);
            wait_until(self.began + moment.saturating_since(Time::ZERO).into());
            let elapsed = now().saturating_duration_since(self.began);
            self.spacing
                .on_sent(datagram.departure, Time::ZERO + elapsed.into());
            let sent = match &mut self.packetiser {
                Some(packetiser) => {
                    let packet = packetiser.packet(elapsed.into(), &datagram.bytes);
                    self.socket.send(&packet)
                }
                None => self.socket.send(&datagram.bytes),
            };
            match sent {
                Ok(_) => {}
                // Nobody listens yet, or the network is away for a while: datagrams are lost then.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionRefused
                            | io::ErrorKind::NetworkUnreachable
                            | io::ErrorKind::HostUnreachable
                            | io::ErrorKind::NetworkDown
                    ) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Waits until a moment, which may be over.
fn wait_until(moment: Instant) {
    loop {
        let rest = moment.saturating_duration_since(now());
        if rest.is_zero() {
            return;
        }
        // An interrupted wait goes on.
        let _ = nanosleep(&Timespec {
            tv_sec: rest.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: rest.subsec_nanos().into(),
        });
    }
}
