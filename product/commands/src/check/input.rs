//! Reads the input of a check.

use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use comity_media::check::{Checker, Report, Timing};
use comity_media::rtp::{Recogniser, Reorder, Reported};
use comity_units::Time;

use super::super::files::unread;
use super::super::interrupt::LINGER;
use super::super::say;
use super::super::status_line::{StatusLine, interrupt_key};
use super::super::stream::error::Error;
use super::super::stream::input::{RTP_RIVAL, looks_like_rtp};
use super::super::stream::sockets;
use super::super::stream::uri::Uri;
use super::findings::Rtp;
use super::text;
use crate::args;
use crate::clock::now;

/// The number of bytes to read at once from a file or a pipe.
const PIECE: usize = 256 << 10;
/// The number of pieces to read ahead.
const PIECES: usize = 4;
/// The maximum length of a datagram.
const LARGEST: usize = 65_536;
/// The interval at which a socket without datagrams checks for a request to stop.
const GLANCE: Duration = Duration::from_millis(20);
/// The maximum time for emptying a socket at the end. More datagrams than the socket holds arrive
/// in this time only if the source has not ended.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// Reads the input to its end, or until the request to stop.
pub(super) fn read(
    uri: &Uri,
    text: &str,
    args: &args::Check,
) -> Result<(Report, Option<Rtp>), Error> {
    let mut status = StatusLine::new(args.quiet);
    let read = match uri {
        Uri::File(path) => {
            let open = |error: &io::Error| Error::unopened(unread(path, error));
            let file = File::open(path).map_err(|error| open(&error))?;
            let metadata = file.metadata().map_err(|error| open(&error))?;
            if metadata.is_dir() {
                return Err(open(&io::ErrorKind::IsADirectory.into()));
            }
            let length = metadata.is_file().then_some(metadata.len());
            stored(file, text, length, &mut status).map(|report| (report, None))
        }
        Uri::Pipe => stored(io::stdin(), "the standard input", None, &mut status)
            .map(|report| (report, None)),
        Uri::Udp(uri) => {
            let socket = sockets::receiver(uri, text)?;
            live(&socket, text, None, args, &mut status)
        }
        Uri::Rtp(uri) => {
            let socket = sockets::receiver(uri, text)?;
            let reorder = Reorder::new(uri.payload_type);
            live(&socket, text, Some(reorder), args, &mut status)
        }
        Uri::Comity(_) => Err(Error::usage(format!("{text}: is a connection"))),
    };
    status.clear();
    read
}

/// Checks a file or a pipe to its end, or up to the request to stop.
fn stored(
    source: impl Read + Send + 'static,
    name: &str,
    length: Option<u64>,
    status: &mut StatusLine,
) -> Result<Report, Error> {
    let is_stopped = interrupt_key(Some(LINGER), || true);
    let pieces = read_ahead(source)?;
    let mut checker = Checker::new(Timing::Clock);
    let mut total = 0;
    let mut ends_at = None;
    loop {
        if ends_at.is_none() && is_stopped.load(Ordering::Relaxed) {
            // The writer may have been interrupted too, which ends the pipe.
            ends_at = now().checked_add(LAST_LOOK);
        }
        if ends_at.is_some_and(|end| now() >= end) {
            break;
        }
        match pieces.recv_timeout(GLANCE) {
            Ok(Ok(piece)) => {
                checker.push(&piece);
                total += piece.len() as u64;
                status.show(|elapsed| text::progress(total, length, elapsed));
            }
            Ok(Err(error)) => {
                return Err(Error::failed(format!(
                    "cannot read the rest of {name}: {error}"
                )));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    checker.finish();
    Ok(checker.report())
}

/// Reads on a separate thread, since a read may block forever.
fn read_ahead(
    mut source: impl Read + Send + 'static,
) -> Result<Receiver<io::Result<Vec<u8>>>, Error> {
    let (pieces, reading) = mpsc::sync_channel(PIECES);
    let work = move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = match source.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    piece.truncate(read);
                    Ok(piece)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            // The receiver is gone after the request to stop.
            if pieces.send(read).is_err() || is_last {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("input".into())
        .spawn(work)
        .map_err(|error| Error::failed(format!("cannot start a thread: {error}")))?;
    Ok(reading)
}

fn live(
    socket: &UdpSocket,
    text: &str,
    reorder: Option<Reorder>,
    args: &args::Check,
    status: &mut StatusLine,
) -> Result<(Report, Option<Rtp>), Error> {
    let is_stopped: &AtomicBool = interrupt_key(Some(LINGER), || true);
    let failed = |error: &io::Error| Error::failed(format!("{text}: cannot read: {error}"));
    { socket.set_read_timeout(Some(GLANCE)) }.map_err(|error| failed(&error))?;
    let local = socket.local_addr().map_err(|error| failed(&error))?;
    if !args.quiet {
        say(&format!("listening on {local}"));
    }
    let began = now();
    let until = args.duration.map(Duration::from);
    let mut receiving = Receiving::new(began, reorder);
    let mut datagram = vec![0; LARGEST];
    let mut ends_at = None;
    loop {
        let is_over = until.is_some_and(|until| began.elapsed() >= until);
        if ends_at.is_none() && (is_over || is_stopped.load(Ordering::Relaxed)) {
            // Empties the socket without waiting for more.
            ends_at = now().checked_add(LAST_LOOK);
            { socket.set_nonblocking(true) }.map_err(|error| failed(&error))?;
        }
        if ends_at.is_some_and(|end| now() >= end) {
            break;
        }
        match socket.recv(&mut datagram) {
            Ok(length) => receiving.take(datagram.get(..length).unwrap_or_default()),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if ends_at.is_some() => break,
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => receiving.expire(),
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused => {}
                _ => return Err(failed(&error)),
            },
        }
        status.show(|elapsed| text::live(&receiving.checker.report(), elapsed));
    }
    Ok(receiving.finish())
}

/// A checker of datagrams.
struct Receiving {
    began: Instant,
    checker: Checker,
    reorder: Option<Reorder>,
    reported: Reported,
    recogniser: Recogniser,
    has_rival: bool,
    media: Vec<u8>,
}

impl Receiving {
    fn new(began: Instant, reorder: Option<Reorder>) -> Self {
        Self {
            began,
            checker: Checker::new(Timing::Arrival),
            reorder,
            reported: Reported::default(),
            recogniser: Recogniser::default(),
            has_rival: false,
            media: Vec::new(),
        }
    }

    fn take(&mut self, datagram: &[u8]) {
        let arrival = self.elapsed();
        let Some(reorder) = &mut self.reorder else {
            if let Some(payload_type) = self.recogniser.see(datagram) {
                say(&format!("warning: {}", looks_like_rtp(payload_type)));
            }
            return self.checker.push_arrived(datagram, arrival);
        };
        if let Err(error) = reorder.push(arrival, datagram, &mut self.media)
            && self.reported.is_first(error)
        {
            say(&format!("warning: {error}; such packets are left out"));
        }
        if reorder.rival > 0 && !core::mem::replace(&mut self.has_rival, true) {
            say(&format!("warning: {RTP_RIVAL}; only one is checked"));
        }
        self.check_media(arrival);
    }

    /// Handles a time without datagrams.
    fn expire(&mut self) {
        let now = self.elapsed();
        if let Some(reorder) = &mut self.reorder {
            reorder.expire(now, &mut self.media);
            self.check_media(now);
        }
    }

    fn finish(mut self) -> (Report, Option<Rtp>) {
        let now = self.elapsed();
        let rtp = self.reorder.take().map(|mut reorder| {
            reorder.flush(&mut self.media);
            Rtp {
                missing_packets: reorder.lost,
                late_packets: reorder.late,
            }
        });
        self.check_media(now);
        self.checker.finish();
        if self.checker.has_packets() {
            self.checker.wait(now);
        }
        (self.checker.report(), rtp)
    }

    fn check_media(&mut self, now: Time) {
        if !self.media.is_empty() {
            self.checker.push_arrived(&self.media, now);
            self.media.clear();
        }
    }

    fn elapsed(&self) -> Time {
        Time::ZERO + now().saturating_duration_since(self.began).into()
    }
}
