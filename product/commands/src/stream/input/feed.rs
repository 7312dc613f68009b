//! Bytes from files, pipes and sockets, read by a separate thread.

use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use comity_media::rtp::{Recogniser, Reorder, Reported};
use comity_stream::Notice;
use comity_units::Time;
use tokio::sync::mpsc;

use super::super::error::Error;
use super::notice;
use super::overrun::Overrun;
use crate::clock::now;
use crate::files::unread;

/// The number of bytes to read at once from a file or a pipe.
const PIECE: usize = 64 << 10;
/// The maximum number of waiting pieces: a slow network holds back a pipe instead of filling the
/// memory.
const WAITING: usize = 16;
/// The maximum length of a datagram.
const LARGEST: usize = 65_536;
/// The interval at which a thread that waits for datagrams checks whether its consumer still
/// exists.
const GLANCE: Duration = Duration::from_millis(20);
/// The maximum time for emptying a socket at the end. More datagrams than the socket holds arrive
/// in this time only if the source has not ended.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// An item that the thread delivers.
#[derive(Debug)]
pub(crate) enum Piece {
    Bytes(Vec<u8>),
    /// A fault of the source that does not end it.
    Notice(Notice),
    End,
    Failed(Error),
}

/// The consumer's end of the thread.
#[derive(Debug)]
pub(crate) struct Feed {
    pieces: mpsc::Receiver<Piece>,
    /// Setting this flag ends the thread. Only the threads of sockets have one.
    is_cut: Option<Arc<AtomicBool>>,
    /// The name and the file, if it is a regular file.
    stored: Option<(String, File)>,
}

impl Feed {
    /// The next piece. Cancel safe: dropping the call before it completes loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Piece> {
        self.pieces.recv().await
    }

    /// The name of the file and the number of bytes after the first `read`, if it has grown.
    pub(crate) fn growth(&self, read: u64) -> Option<(&str, u64)> {
        let (name, file) = self.stored.as_ref()?;
        let more = file.metadata().ok()?.len().checked_sub(read)?;
        (more > 0).then_some((name, more))
    }

    /// A piece that has already arrived.
    pub(crate) fn waiting(&mut self) -> Option<Piece> {
        self.pieces.try_recv().ok()
    }

    /// Ends the feed after the data that has already arrived. Returns `false` for a pipe, because
    /// its thread waits for more data.
    pub(crate) fn cut(&self) -> bool {
        if let Some(is_cut) = &self.is_cut {
            is_cut.store(true, Ordering::Relaxed);
        }
        self.is_cut.is_some()
    }
}

impl From<mpsc::Receiver<Piece>> for Feed {
    fn from(pieces: mpsc::Receiver<Piece>) -> Self {
        Self {
            pieces,
            is_cut: None,
            stored: None,
        }
    }
}

/// Opens a file. Returns whether it is a regular file, and not a pipe or a device.
pub(crate) fn file(path: &Path) -> Result<(Feed, bool), Error> {
    let file = File::open(path).map_err(|error| Error::unopened(unread(path, &error)))?;
    let metadata = file.metadata().map_err(|error| Error::open(path, &error))?;
    if metadata.is_dir() {
        return Err(Error::unopened(format!(
            "cannot read {}: it is a folder; expected a media file",
            path.display()
        )));
    }
    let name = path.display().to_string();
    // The length alone is not sufficient: files that are generated while they are read report zero.
    if metadata.is_file() && matches!(file.read_at(&mut [0], 0), Ok(0)) {
        return Err(empty(&name));
    }
    let stored = match metadata.is_file() {
        true => { file.try_clone().ok() }.map(|file| (name.clone(), file)),
        false => None,
    };
    let feed = Feed {
        stored,
        ..spawn(name, file)?
    };
    Ok((feed, metadata.is_file()))
}

fn empty(name: &str) -> Error {
    Error::unopened(format!(
        "{name}: is empty; expected media, such as a transport stream"
    ))
}

/// Reads the standard input.
pub(crate) fn pipe() -> Result<Feed, Error> {
    spawn("the standard input".into(), io::stdin())
}

fn spawn(name: String, mut source: impl Read + Send + 'static) -> Result<Feed, Error> {
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
                Err(error) => Piece::Failed(Error::failed(format!(
                    "cannot read the rest of {name}: {error}"
                ))),
            };
            let is_last = !matches!(read, Piece::Bytes(_));
            // This fails if the consumer is gone.
            if pieces.blocking_send(read).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(feed.into())
}

/// The result of reading a socket.
enum Received<'a> {
    Datagram(&'a [u8]),
    /// No datagram arrived for a while.
    Nothing,
    /// No more datagrams follow.
    End,
}

/// Reads datagrams of bare media; `opaque` ones may be of any kind.
pub(crate) fn datagrams(socket: UdpSocket, opaque: bool) -> Result<Feed, Error> {
    let mut recogniser = Recogniser::default();
    receive(socket, move |received, pieces| match received {
        Received::Datagram(bytes) => {
            if !opaque
                && let Some(payload_type) = recogniser.see(bytes)
                && { pieces.blocking_send(Piece::Notice(notice::is_rtp(payload_type))) }.is_err()
            {
                return false;
            }
            pieces.blocking_send(Piece::Bytes(bytes.to_vec())).is_ok()
        }
        Received::Nothing | Received::End => !pieces.is_closed(),
    })
}

/// Reads datagrams of RTP in order, including those of `payload_type`.
pub(crate) fn rtp(socket: UdpSocket, payload_type: u8) -> Result<Feed, Error> {
    let mut reorder = Reorder::new(payload_type);
    let began = now();
    let elapsed = move || Time::ZERO + now().saturating_duration_since(began).into();
    let mut reported = Reported::default();
    let (mut lost, mut has_rival) = (0, false);
    receive(socket, move |received, pieces| {
        let mut media = Vec::new();
        match received {
            Received::Datagram(bytes) => {
                if let Err(error) = reorder.push(elapsed(), bytes, &mut media)
                    && reported.is_first(error)
                {
                    let notice = Notice {
                        kind: "rtp",
                        text: format!("{error}; such packets are dropped"),
                    };
                    if pieces.blocking_send(Piece::Notice(notice)).is_err() {
                        return false;
                    }
                }
            }
            Received::Nothing => reorder.expire(elapsed(), &mut media),
            Received::End => reorder.flush(&mut media),
        }
        if reorder.rival > 0
            && !core::mem::replace(&mut has_rival, true)
            && pieces
                .blocking_send(Piece::Notice(notice::rtp_rival()))
                .is_err()
        {
            return false;
        }
        let missing = reorder.lost - core::mem::replace(&mut lost, reorder.lost);
        if missing > 0
            && pieces
                .blocking_send(Piece::Notice(notice::rtp_loss(missing)))
                .is_err()
        {
            return false;
        }
        match media.is_empty() {
            true => !pieces.is_closed(),
            false => pieces.blocking_send(Piece::Bytes(media)).is_ok(),
        }
    })
}

/// Passes datagrams to `take` until it returns `false` or the feed is cut.
fn receive(
    socket: UdpSocket,
    mut take: impl FnMut(Received<'_>, &mpsc::Sender<Piece>) -> bool + Send + 'static,
) -> Result<Feed, Error> {
    socket
        .set_read_timeout(Some(GLANCE))
        .map_err(|error| Error::failed(format!("cannot set up the socket: {error}")))?;
    let (pieces, feed) = mpsc::channel(WAITING);
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_cut);
    thread(move || {
        let mut datagram = vec![0; LARGEST];
        let mut overrun = Overrun::of(&socket);
        let mut ends_at = None;
        loop {
            if ends_at.is_none() && cut.load(Ordering::Relaxed) {
                ends_at = now().checked_add(LAST_LOOK);
                // Empties the socket without waiting for more.
                let _ = socket.set_nonblocking(true);
            }
            let is_over = ends_at.is_some_and(|end| now() >= end);
            let received = overrun.receive(&socket, &mut datagram);
            if let Some(drops) = overrun.report(now())
                && !report_overrun(drops, &pieces)
            {
                return;
            }
            let goes_on = match received {
                Ok(length) if !is_over => {
                    let datagram = datagram.get(..length).unwrap_or_default();
                    take(Received::Datagram(datagram), &pieces)
                }
                Ok(_) => end(&mut take, &mut overrun, &pieces),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if ends_at.is_some() => {
                        end(&mut take, &mut overrun, &pieces)
                    }
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        take(Received::Nothing, &pieces)
                    }
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => true,
                    _ => {
                        let error = Error::failed(format!("cannot read from the socket: {error}"));
                        // This fails if the consumer is gone.
                        let _ = pieces.blocking_send(Piece::Failed(error));
                        false
                    }
                },
            };
            if !goes_on {
                return;
            }
        }
    })?;
    Ok(Feed {
        pieces: feed,
        is_cut: Some(is_cut),
        stored: None,
    })
}

/// Delivers the remaining data and the end. Always returns `false`, since nothing follows.
fn end(
    take: &mut impl FnMut(Received<'_>, &mpsc::Sender<Piece>) -> bool,
    overrun: &mut Overrun,
    pieces: &mpsc::Sender<Piece>,
) -> bool {
    let rest = overrun.rest();
    if rest.is_none_or(|drops| report_overrun(drops, pieces)) && take(Received::End, pieces) {
        // This fails if the consumer is gone.
        let _ = pieces.blocking_send(Piece::End);
    }
    false
}

/// Reports that this host dropped datagrams. Returns whether the consumer still exists.
fn report_overrun(drops: u64, pieces: &mpsc::Sender<Piece>) -> bool {
    let notice = notice::overrun(drops);
    pieces.blocking_send(Piece::Notice(notice)).is_ok()
}

fn thread(work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    std::thread::Builder::new()
        .name("input".into())
        .spawn(work)
        .map(drop)
        .map_err(|error| Error::failed(format!("cannot start a thread: {error}")))
}

#[cfg(test)]
mod tests {
    use comity_media::rtp::Packetiser;
    use comity_units::Span;
    use socket2::SockRef;

    use super::*;

    /// A receiving socket, and one that sends to it.
    fn sockets() -> (UdpSocket, UdpSocket) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let source = UdpSocket::bind("127.0.0.1:0").unwrap();
        source.connect(socket.local_addr().unwrap()).unwrap();
        (source, socket)
    }

    /// The notices of a feed, and its number of bytes beyond `length`.
    fn notices(mut feed: Feed, length: usize) -> (Vec<Notice>, usize) {
        let (mut came, mut notices) = (0, Vec::new());
        loop {
            if came >= length {
                assert!(feed.cut());
            }
            match feed.pieces.blocking_recv() {
                Some(Piece::Bytes(media)) => came += media.len(),
                Some(Piece::Notice(notice)) => notices.push(notice),
                Some(Piece::End) | None => break,
                Some(Piece::Failed(error)) => panic!("{error}"),
            }
        }
        (notices, came - length)
    }

    #[test]
    fn datagrams_dropped_by_this_host_are_reported() {
        let (source, socket) = sockets();
        SockRef::from(&socket).set_recv_buffer_size(4_096).unwrap();
        let send = || source.send(&[7; 1_000]).unwrap() / 1_000;
        let mut sent: usize = (0..100).map(|_| send()).sum();
        let mut feed = datagrams(socket, false).unwrap();
        let mut came = 0;
        // The system reports the count with the next datagram that it accepts.
        let overrun_report = loop {
            sent += send();
            match feed.pieces.blocking_recv() {
                Some(Piece::Bytes(bytes)) => came += bytes.len() / 1_000,
                Some(Piece::Notice(notice)) => break notice,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(overrun_report.kind, "overrun");
        let mut words = overrun_report.text.split_whitespace();
        let overrun_report: usize = words.nth(3).unwrap().parse().unwrap();
        came += notices(feed, 0).1 / 1_000;
        assert!(
            (1..=sent - came).contains(&overrun_report),
            "{overrun_report} of {sent}, {came}"
        );
    }

    #[test]
    fn only_missing_rtp_packets_are_reported() {
        let kinds = |numbers: &[u16], came: usize| {
            let (source, socket) = sockets();
            for &number in numbers {
                let packet = Packetiser::new(number, 7).packet(Span::ZERO, &[7; 188]);
                source.send(&packet).unwrap();
            }
            let (notices, more) = notices(rtp(socket, 33).unwrap(), 188 * came);
            assert_eq!(more, 0);
            let kinds = notices.iter().map(|notice| notice.kind);
            kinds.collect::<Vec<_>>()
        };
        assert_eq!(kinds(&[1, 2, 4, 5], 4), ["rtp loss"]);
        // Each datagram twice, as over two paths.
        assert_eq!(kinds(&[1, 1, 2, 3, 2, 3, 4], 4), [""; 0]);
    }

    #[test]
    fn datagrams_that_were_read_are_not_reported_as_dropped() {
        let (source, socket) = sockets();
        for _ in 0..40 {
            source.send(&[7; 1_000]).unwrap();
        }
        let read = notices(datagrams(socket, false).unwrap(), 40_000);
        assert_eq!(read, (Vec::new(), 0));
    }

    #[test]
    fn rtp_at_an_input_of_bare_media_is_named_once_unless_it_is_opaque() {
        let kinds = |datagram: &[u8], opaque: bool| {
            let (source, socket) = sockets();
            for _ in 0..20 {
                source.send(datagram).unwrap();
            }
            let (notices, more) = notices(datagrams(socket, opaque).unwrap(), 20 * datagram.len());
            assert_eq!(more, 0);
            let kinds = notices.iter().map(|notice| notice.kind);
            kinds.collect::<Vec<_>>()
        };
        let packets = [0x47; 188];
        let rtp = Packetiser::new(7, 7).packet(Span::ZERO, &packets);
        assert_eq!(kinds(&rtp, false), ["rtp"]);
        assert_eq!(kinds(&rtp, true), [""; 0]);
        assert_eq!(kinds(&packets, false), [""; 0]);
    }

    #[test]
    fn two_rtp_sources_at_once_are_named_once() {
        let (source, socket) = sockets();
        let mut feed = rtp(socket, 33).unwrap();
        let mut packetisers = [7, 8].map(|source| Packetiser::new(0, source));
        // Each source sends until the second one is known to go on beside the first.
        let notice = loop {
            for packetiser in &mut packetisers {
                let packet = packetiser.packet(Span::ZERO, &[7; 188]);
                source.send(&packet).unwrap();
            }
            match feed.pieces.blocking_recv() {
                Some(Piece::Bytes(_)) => {}
                Some(Piece::Notice(notice)) if notice.kind == "rtp" => break notice,
                other => panic!("{other:?}"),
            }
        };
        assert!(notice.text.contains("two RTP sources"), "{}", notice.text);
        for packetiser in &mut packetisers {
            for _ in 0..20 {
                source
                    .send(&packetiser.packet(Span::ZERO, &[7; 188]))
                    .unwrap();
            }
        }
        let (more, _) = notices(feed, 10 * 188);
        assert!(more.iter().all(|notice| notice.kind != "rtp"), "{more:?}");
    }
}
