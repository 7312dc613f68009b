//! Sections as a stream of bytes again: files, pipes and datagrams.

use std::fs::OpenOptions;
use std::future::pending;
use std::io;
use std::net::UdpSocket;
use std::path::Path;

use comity::session::Randomness;
use comity_media::{PACKET, TsWriter, WriterConfig};
use tokio::sync::{mpsc, oneshot};

use super::super::passing::Passing;
use super::super::rtp::Packetiser;
use super::super::trouble::Trouble;
use super::target::{Datagrams, Recording, Target, write_all};

/// How many pieces may wait for a slow disk or reader; then the connection holds the sender back.
const WAITING: usize = 256;

/// Writes what arrives, whole sections only.
#[derive(Debug)]
pub(crate) struct MediaOutput {
    writer: TsWriter,
    form: Form,
    name: String,
    pieces: Option<mpsc::Sender<Vec<u8>>>,
    /// How the thread that writes has ended.
    written: Option<oneshot::Receiver<io::Result<()>>>,
    /// Bytes given to the thread.
    pub(crate) bytes: u64,
}

/// What sections hold: what the first one looks like decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    /// Each begins with a media header.
    Media,
    /// Another application's bytes, written as they are.
    Plain,
}

/// What became of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Yes,
    /// Its header does not read: nothing of it was written.
    Malformed,
    /// Nobody reads the pipe any more.
    ReaderGone,
}

impl MediaOutput {
    /// A file, which is emptied when the first bytes are there, and not before.
    pub(crate) fn file(path: &Path) -> Result<Self, Trouble> {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|error| Trouble::open(path, &error))?;
        Self::new(path.display().to_string(), Recording::new(file))
    }

    /// The standard output.
    pub(crate) fn pipe() -> Result<Self, Trouble> {
        Self::new("the standard output".into(), io::stdout())
    }

    /// Datagrams of at most `payload` bytes of media; whole transport packets where they fit.
    pub(crate) fn datagrams(
        name: &str,
        socket: UdpSocket,
        payload: u32,
        as_rtp: bool,
    ) -> Result<Self, Trouble> {
        let mut randomness = Randomness::system();
        let packetiser = as_rtp.then(|| {
            let [a, b, c, d, e, f]: [u8; 6] = randomness.bytes();
            Packetiser::new(u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
        });
        // The URI has at least one packet.
        let length = payload as usize / PACKET * PACKET;
        Self::new(name.to_owned(), Datagrams::new(socket, length, packetiser))
    }

    fn new(name: String, target: impl Target + Send + 'static) -> Result<Self, Trouble> {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (tell, written) = oneshot::channel();
        std::thread::Builder::new()
            .name("output".into())
            // Nobody may be left to hear how it went.
            .spawn(move || drop(tell.send(write_all(target, waiting))))
            .map_err(|error| Trouble::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            writer: TsWriter::new(WriterConfig::default()),
            form: Form::Unknown,
            name,
            pieces: Some(pieces),
            written: Some(written),
            bytes: 0,
        })
    }

    /// Writes a section; waits while the disk or the reader is behind.
    pub(crate) async fn write(&mut self, passing: &Passing) -> Result<Written, Trouble> {
        let mut piece = Vec::new();
        if self.form == Form::Plain {
            piece.extend(&passing.payload);
        } else {
            match (self.form, self.writer.write(&passing.payload, &mut piece)) {
                (_, Ok(())) => self.form = Form::Media,
                (Form::Media, Err(_)) => return Ok(Written::Malformed),
                (_, Err(_)) => {
                    self.form = Form::Plain;
                    piece.extend(&passing.payload);
                }
            }
        }
        self.give(piece).await
    }

    async fn give(&mut self, piece: Vec<u8>) -> Result<Written, Trouble> {
        if piece.is_empty() {
            return Ok(Written::Yes);
        }
        let length = piece.len() as u64;
        if let Some(pieces) = &self.pieces
            && pieces.send(piece).await.is_ok()
        {
            self.bytes += length;
            return Ok(Written::Yes);
        }
        self.ended().await
    }

    /// Returns when the thread that writes has ended, which it does early only for a reason.
    pub(crate) async fn ended(&mut self) -> Result<Written, Trouble> {
        let Some(written) = &mut self.written else {
            return pending().await;
        };
        let ended = written.await;
        self.written = None;
        self.pieces = None;
        match ended {
            Ok(Ok(())) => Ok(Written::Yes),
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::ReaderGone),
            Ok(Err(error)) => Err(Trouble::write(&self.name, &error)),
            Err(_) => Err(Trouble::failed("the thread that writes is gone")),
        }
    }

    /// Writes what is held and waits until all is written.
    pub(crate) async fn finish(&mut self) -> Result<(), Trouble> {
        let mut rest = Vec::new();
        self.writer.finish(&mut rest);
        if self.pieces.is_some() {
            self.give(rest).await?;
        }
        self.pieces = None;
        if self.written.is_some() {
            self.ended().await?;
        }
        Ok(())
    }
}
