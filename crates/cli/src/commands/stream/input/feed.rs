//! Bytes from files, pipes and sockets, read by a thread of their own.

use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use comity_media::rtp::Reorder;
use comity_units::Time;
use tokio::sync::mpsc;

use super::super::now;
use super::super::passing::Remark;
use super::super::trouble::Trouble;

/// How much is read at once from a file or a pipe, in bytes.
const PIECE: usize = 64 << 10;
/// How many pieces may wait: a slow network holds a pipe back rather than filling the memory.
const WAITING: usize = 16;
/// The longest datagram.
const LARGEST: usize = 65_536;
/// How often a thread that waits for datagrams looks whether anybody still wants them.
const GLANCE: Duration = Duration::from_millis(20);

/// What a thread reads.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// Something that is wrong with the source and does not end it.
    Notice(Remark),
    End,
    Failed(Trouble),
}

/// What comes of the thread.
pub(crate) type Feed = mpsc::Receiver<Piece>;

/// Opens a file; whether it is one that is there as a whole, and not a pipe or a device.
pub(crate) fn file(path: &Path) -> Result<(Feed, bool), Trouble> {
    let file = File::open(path).map_err(|error| Trouble::open(path, &error))?;
    let metadata = file
        .metadata()
        .map_err(|error| Trouble::open(path, &error))?;
    if metadata.is_dir() {
        return Err(Trouble::unopened(format!(
            "cannot read {}: it is a folder; expected a file of media",
            path.display()
        )));
    }
    let name = path.display().to_string();
    // The length says it as well, but for files that are made when they are read.
    if metadata.is_file() && matches!(file.read_at(&mut [0], 0), Ok(0)) {
        return Err(empty(&name));
    }
    Ok((spawn(name, file)?, metadata.is_file()))
}

fn empty(name: &str) -> Trouble {
    Trouble::unopened(format!(
        "{name}: is empty; expected media, such as a transport stream"
    ))
}

/// Reads the standard input.
pub(crate) fn pipe() -> Result<Feed, Trouble> {
    spawn("the standard input".into(), io::stdin())
}

fn spawn(name: String, mut source: impl Read + Send + 'static) -> Result<Feed, Trouble> {
    let (pieces, feed) = mpsc::channel(WAITING);
    thread(move || {
        let mut piece = vec![0; PIECE];
        let mut total = 0_u64;
        loop {
            let read = match source.read(&mut piece) {
                Ok(0) if total == 0 => Piece::Failed(empty(&name)),
                Ok(0) => Piece::End,
                Ok(length) => {
                    total += length as u64;
                    Piece::Bytes(piece.get(..length).unwrap_or_default().to_vec())
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Piece::Failed(Trouble::failed(format!(
                    "cannot read on from {name}: {error}"
                ))),
            };
            let is_last = !matches!(read, Piece::Bytes(_));
            // It fails when nobody wants it any more.
            if pieces.blocking_send(read).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(feed)
}

/// Reads datagrams of bare media.
pub(crate) fn datagrams(socket: UdpSocket) -> Result<Feed, Trouble> {
    receive(socket, |received, pieces| match received {
        Some(bytes) => pieces.blocking_send(Piece::Bytes(bytes.to_vec())).is_ok(),
        None => !pieces.is_closed(),
    })
}

/// Reads datagrams of RTP, in order.
pub(crate) fn rtp(socket: UdpSocket) -> Result<Feed, Trouble> {
    let mut reorder = Reorder::default();
    let began = now();
    let elapsed = move || Time::ZERO + now().saturating_duration_since(began).into();
    let mut said = None;
    receive(socket, move |received, pieces| {
        let mut media = Vec::new();
        match received {
            Some(bytes) => {
                if let Err(error) = reorder.push(elapsed(), bytes, &mut media)
                    && said != Some(error)
                {
                    said = Some(error);
                    let notice = Remark {
                        kind: "rtp",
                        text: format!("{error}; such packets are left out"),
                    };
                    if pieces.blocking_send(Piece::Notice(notice)).is_err() {
                        return false;
                    }
                }
            }
            None => reorder.expire(elapsed(), &mut media),
        }
        match media.is_empty() {
            true => !pieces.is_closed(),
            false => pieces.blocking_send(Piece::Bytes(media)).is_ok(),
        }
    })
}

/// Gives every datagram to `take`, and `None` when there was none for a while, until it says `false`.
fn receive(
    socket: UdpSocket,
    mut take: impl FnMut(Option<&[u8]>, &mpsc::Sender<Piece>) -> bool + Send + 'static,
) -> Result<Feed, Trouble> {
    socket
        .set_read_timeout(Some(GLANCE))
        .map_err(|error| Trouble::failed(format!("cannot set up the socket: {error}")))?;
    let (pieces, feed) = mpsc::channel(WAITING);
    thread(move || {
        let mut datagram = vec![0; LARGEST];
        loop {
            let goes_on = match socket.recv(&mut datagram) {
                Ok(length) => take(datagram.get(..length), &pieces),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => take(None, &pieces),
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => true,
                    _ => {
                        let trouble =
                            Trouble::failed(format!("cannot read on from the socket: {error}"));
                        // It fails when nobody wants it any more.
                        let _ = pieces.blocking_send(Piece::Failed(trouble));
                        false
                    }
                },
            };
            if !goes_on {
                return;
            }
        }
    })?;
    Ok(feed)
}

fn thread(work: impl FnOnce() + Send + 'static) -> Result<(), Trouble> {
    std::thread::Builder::new()
        .name("input".into())
        .spawn(work)
        .map(drop)
        .map_err(|error| Trouble::failed(format!("cannot start a thread: {error}")))
}
