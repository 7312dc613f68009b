//! The destination of bytes, which a separate thread writes.

use std::fs::File;
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use comity_media::rtp::Packetiser;
use comity_media::{PACKET, Pacer, Spacing, is_packets};
use comity_units::{Span, Time};
use rustix::io::Errno;
use rustix::net::connect_unspec;
use rustix::thread::{Timespec, nanosleep};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::ledger::Taken;
use crate::clock::now;

/// A waiting piece, with the room that it holds until it is written.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// Its arrival time.
    pub(super) came: Instant,
    /// The spacing of its packets at the source, if known.
    pub(super) spacing: Option<Span>,
    pub(super) _room: OwnedSemaphorePermit,
}

/// A destination of bytes.
pub(crate) trait Target {
    /// Writes a piece that arrived at `came`, with the spacing of its packets at the source, if
    /// known. After an error, nothing of the piece should remain.
    fn take(&mut self, piece: &[u8], came: Instant, spacing: Option<Span>) -> io::Result<()>;

    /// Ends the output: no more pieces follow.
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes until no more pieces follow, or until an error. Counts the completely written pieces.
pub(super) fn write_all(
    mut target: impl Target,
    mut waiting: mpsc::Receiver<Piece>,
    taken: &Taken,
) -> io::Result<()> {
    while let Some(piece) = waiting.blocking_recv() {
        if let Err(error) = target.take(&piece.bytes, piece.came, piece.spacing) {
            // Closed before the piece frees its room, so that no more pieces come in.
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
        // The rest of the buffer has not been written, and may never be.
        self.flush()
    }
}

/// A file, or anything opened like one.
#[derive(Debug)]
pub(crate) struct Recording {
    file: File,
    /// Whether it is a regular file.
    is_stored: bool,
    /// Whether it still has its old content.
    is_old: bool,
    /// The length of the completely written pieces.
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
            // A partly written piece is neither a section nor whole packets. If truncation fails
            // too, the first error is reported.
            (Err(_), true) => drop(self.file.set_len(self.length)),
            (Err(_), false) => {}
        }
        taken
    }

    fn end(&mut self) -> io::Result<()> {
        match self.is_stored {
            // Some disks report only here that they are full.
            true => self.file.sync_all(),
            false => Ok(()),
        }
    }
}

/// Datagrams to one address, each sent at its time.
#[derive(Debug)]
pub(crate) struct Datagrams {
    destination: Destination,
    pacer: Pacer,
    /// The maximum length of a piece of other bytes than transport packets that stays one datagram.
    whole: usize,
    spacing: Spacing,
    packetiser: Option<Packetiser>,
    began: Instant,
}

/// Where datagrams go, through passing faults of this host and of the network.
#[derive(Debug)]
struct Destination {
    socket: UdpSocket,
    /// The address to which the socket is connected anew if its own address is gone.
    peer: Option<SocketAddr>,
    fault: Fault,
}

/// The first passing fault of an output, for a warning.
#[derive(Clone, Debug, Default)]
pub(super) struct Fault(Arc<OnceLock<String>>);

impl Fault {
    pub(super) fn text(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// The maximum UDP payload over Ethernet and IPv4.
const ETHERNET: usize = 1_500 - 28;

impl Datagrams {
    /// Sends datagrams of at most `payload` bytes of media each, in RTP if there is a packetiser.
    /// They have whole transport packets; the payload has room for at least one. A piece of other
    /// bytes, such as an opaque datagram, stays whole if it fits the payload, or Ethernet if the
    /// payload is not below `usual`.
    pub(crate) fn new(
        socket: UdpSocket,
        payload: usize,
        usual: usize,
        packetiser: Option<Packetiser>,
    ) -> Self {
        Self {
            destination: Destination {
                peer: socket.peer_addr().ok(),
                fault: Fault::default(),
                socket,
            },
            pacer: Pacer::new(payload / PACKET * PACKET),
            whole: match payload < usual {
                true => payload,
                false => payload.max(ETHERNET),
            },
            spacing: Spacing::default(),
            packetiser,
            began: now(),
        }
    }

    /// The passing faults of this output.
    pub(super) fn fault(&self) -> Fault {
        self.destination.fault.clone()
    }
}

impl Target for Datagrams {
    /// Returns when the last datagram has been sent. Data that arrives meanwhile waits, with its
    /// arrival time.
    fn take(&mut self, piece: &[u8], came: Instant, spacing: Option<Span>) -> io::Result<()> {
        let came = came.saturating_duration_since(self.began);
        let came = Time::ZERO + came.into();
        match piece.len() <= self.whole && !is_packets(piece) {
            true => self.pacer.push_datagram(came, piece),
            false => self.pacer.push(came, piece, spacing),
        }
        for datagram in self.pacer.datagrams() {
            let moment = self.spacing.moment(datagram.departure);
            wait_until(self.began + moment.saturating_since(Time::ZERO).into());
            let elapsed = now().saturating_duration_since(self.began);
            self.spacing
                .on_sent(datagram.departure, Time::ZERO + elapsed.into());
            match &mut self.packetiser {
                Some(packetiser) => {
                    let planned = datagram.departure.saturating_since(Time::ZERO);
                    let packet = packetiser.packet(planned, &datagram.bytes);
                    self.destination.send(&packet)?;
                }
                None => self.destination.send(&datagram.bytes)?,
            }
        }
        Ok(())
    }
}

impl Destination {
    /// Sends a datagram, or loses it. Fails if no other datagram can be sent.
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.send(datagram) {
            Ok(_) => Ok(()),
            Err(error) => self.lose(error),
        }
    }

    /// Handles the loss of a datagram.
    fn lose(&self, error: io::Error) -> io::Result<()> {
        match Loss::of(&error) {
            Loss::Usual => return Ok(()),
            Loss::ByHost => {}
            Loss::Address => {
                // Without its old address, the socket gets one of those that there are now. If
                // this fails, the next datagram tries again.
                if let Some(peer) = self.peer {
                    let _ = connect_unspec(&self.socket);
                    let _ = self.socket.connect(peer);
                }
            }
            Loss::Final => return Err(error),
        }
        self.fault.0.get_or_init(|| error.to_string());
        Ok(())
    }
}

/// What an error says of a datagram and of the next ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// It is lost, as on any network: nothing listens yet, or the network is down.
    Usual,
    /// It is lost through this host: a firewall that loads its rules, a full connection table, or
    /// no memory.
    ByHost,
    /// The same, because the address of the socket or its interface is gone.
    Address,
    /// No other datagram can be sent.
    Final,
}

impl Loss {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::CONNREFUSED | Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN) => {
                Self::Usual
            }
            Some(Errno::PERM | Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN | Errno::INTR) => {
                Self::ByHost
            }
            Some(
                Errno::INVAL
                | Errno::NODEV
                | Errno::NXIO
                | Errno::ADDRNOTAVAIL
                | Errno::NOTCONN
                | Errno::DESTADDRREQ,
            ) => Self::Address,
            _ => Self::Final,
        }
    }
}

/// Waits until a moment, which may already have passed.
fn wait_until(moment: Instant) {
    loop {
        let rest = moment.saturating_duration_since(now());
        if rest.is_zero() {
            return;
        }
        // Continues after an interrupted wait.
        let _ = nanosleep(&Timespec {
            tv_sec: rest.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: rest.subsec_nanos().into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The lengths of the datagrams that these pieces become, over the loopback.
    fn lengths(payload: usize, pieces: &[Vec<u8>]) -> Vec<usize> {
        let reader = UdpSocket::bind("127.0.0.1:0").unwrap();
        reader
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(reader.local_addr().unwrap()).unwrap();
        let mut target = Datagrams::new(socket, payload, 1_316, None);
        let (mut lengths, mut datagram) = (Vec::new(), [0; 65_536]);
        for piece in pieces {
            target.take(piece, now(), None).unwrap();
            let mut rest = piece.len();
            while rest > 0 {
                let length = reader.recv(&mut datagram).unwrap();
                rest -= length;
                lengths.push(length);
            }
        }
        lengths
    }

    #[test]
    fn opaque_datagrams_stay_whole_and_packets_are_split_between_them() {
        let rtp = [&[0x80, 33][..], &[7; 1_326]].concat();
        let packets = |count: usize| [&[0x47][..], &[7; PACKET - 1]].concat().repeat(count);
        let pieces = [rtp, packets(8), vec![7; 1_472], vec![7; 1_473]];
        assert_eq!(
            lengths(1_316, &pieces),
            [1_328, 1_316, 188, 1_472, 1_316, 157]
        );
        assert_eq!(
            lengths(1_456, &pieces[..2]),
            [1_328, 1_316, 188],
            "room for seven packets"
        );
        // A narrower path.
        assert_eq!(lengths(600, &pieces[..1]), [564, 564, 200]);
        assert_eq!(lengths(4_000, &[vec![7; 3_900]]), [3_900]);
    }

    /// Readers regenerate the clock from the time stamps. A late host must not move them.
    #[test]
    fn rtp_packets_have_the_times_at_which_they_should_leave() {
        let reader = UdpSocket::bind("127.0.0.1:0").unwrap();
        reader
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(reader.local_addr().unwrap()).unwrap();
        let packetiser = Packetiser::new(7, 7).from_stamp(1_000);
        let mut target = Datagrams::new(socket, 1_316, 1_316, Some(packetiser));
        // Two datagrams that were due a second ago, 5 ms apart.
        target.began = now().checked_sub(Duration::from_secs(1)).unwrap();
        let piece = [&[0x47][..], &[7; PACKET - 1]].concat().repeat(14);
        let spacing = Span::from_millis(5) / 7;
        target.take(&piece, target.began, Some(spacing)).unwrap();
        let stamp = || {
            let mut datagram = [0; 2_000];
            assert_eq!(reader.recv(&mut datagram).unwrap(), 12 + 1_316);
            u32::from_be_bytes([datagram[4], datagram[5], datagram[6], datagram[7]])
        };
        let stamps = [stamp(), stamp()];
        assert_eq!(stamps[0], 1_000);
        assert!((449..=450).contains(&(stamps[1] - stamps[0])), "{stamps:?}");
    }

    #[test]
    fn only_lasting_errors_end_the_output() {
        for (errno, expected) in [
            (Errno::CONNREFUSED, Loss::Usual),
            (Errno::NETUNREACH, Loss::Usual),
            (Errno::HOSTUNREACH, Loss::Usual),
            (Errno::NETDOWN, Loss::Usual),
            (Errno::PERM, Loss::ByHost),
            (Errno::NOBUFS, Loss::ByHost),
            (Errno::NOMEM, Loss::ByHost),
            (Errno::INVAL, Loss::Address),
            (Errno::NODEV, Loss::Address),
            (Errno::ADDRNOTAVAIL, Loss::Address),
            // Longer than any datagram, and a socket that is none.
            (Errno::MSGSIZE, Loss::Final),
            (Errno::ACCESS, Loss::Final),
            (Errno::BADF, Loss::Final),
        ] {
            assert_eq!(Loss::of(&errno.into()), expected, "{errno:?}");
        }
        assert_eq!(Loss::of(&io::ErrorKind::WriteZero.into()), Loss::Final);
    }

    #[test]
    fn an_output_goes_on_behind_a_lost_address() {
        let reader = UdpSocket::bind("127.0.0.1:0").unwrap();
        reader
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect(reader.local_addr().unwrap()).unwrap();
        let mut target = Datagrams::new(socket, 1_316, 1_316, None);
        // As the socket is when its address is gone: each datagram is refused.
        connect_unspec(&target.destination.socket).unwrap();
        target.take(b"lost", now(), None).unwrap();
        assert!(target.fault().text().is_some());
        target.take(b"sent", now(), None).unwrap();
        let mut datagram = [0; 16];
        assert_eq!(reader.recv(&mut datagram).unwrap(), 4);
        assert_eq!(datagram[..4], *b"sent");
        // A fault that passes is named, and one that lasts ends the output.
        assert!(target.destination.lose(Errno::NOBUFS.into()).is_ok());
        assert!(target.destination.lose(Errno::MSGSIZE.into()).is_err());
    }
}
