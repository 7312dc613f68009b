//! Converts sections back to a stream of bytes: files, pipes and datagrams.
//!
//! A slow disk or reader exerts back-pressure: unread data stays in the connection's receive
//! buffer, up to `rcvbuf`. [`Room`] limits the data that waits here, after the connection.

use std::collections::{BTreeSet, VecDeque};
use std::future::pending;
use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use comity::credentials::Randomness;
use comity_media::rtp::Packetiser;
use comity_media::{TsWriter, WriterConfig, is_packets};
use comity_stream::{Counters, MediaUnit, Missing, MissingReason, Sink, TransportMonitor, Written};
use comity_units::{DataSize, Span};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::super::error::Error;
use super::super::overwrite::Existing;
use super::super::status::Reporter;
use super::super::uri::{MediaUri, PAYLOAD};
use super::beginning::{Beginning, pid_of};
use super::ledger::Ledger;
use super::slow::SlowOutput;
use super::target::{Datagrams, Fault, Piece, Recording, Target, write_all};
use crate::clock::now;

/// The maximum number of waiting pieces of any length.
const WAITING: usize = 256;
/// The maximum number of waiting bytes.
const MAX_BYTES: u32 = 4 << 20;

/// The maximum number of bytes in pieces that wait to be written or are being written. Beyond it,
/// the connection holds back the sender. A piece longer than this waits alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room(u32);

impl Room {
    /// Without a connection as the source: 4 MiB.
    pub(crate) const WITHOUT_CONNECTION: Self = Self(MAX_BYTES);

    /// Behind a connection with this receive buffer: a quarter of it, and at most 4 MiB.
    pub(crate) fn behind(receive_buffer: DataSize) -> Self {
        let quarter = u32::try_from(receive_buffer.get() / 4).unwrap_or(MAX_BYTES);
        Self(quarter.clamp(1, MAX_BYTES))
    }
}

/// Writes whole sections only.
#[derive(Debug)]
pub(crate) struct MediaOutput {
    writer: TsWriter,
    form: Form,
    /// Whether only transport packets can be written, because RTP announces its content.
    packets_only: bool,
    /// Why a section cannot be written; reported by the next [`flush`](Self::flush).
    unfit: Option<Error>,
    name: String,
    pieces: Option<mpsc::Sender<Piece>>,
    /// Pieces that the thread does not have yet, with their arrival time, and with the spacing of
    /// their packets at the source, if known.
    waiting: VecDeque<(Vec<u8>, Instant, Option<Span>)>,
    room: Room,
    /// The number of free bytes of the room.
    free: Arc<Semaphore>,
    /// The result of the writing thread.
    written: Option<oneshot::Receiver<io::Result<()>>>,
    ledger: Ledger,
    transport: TransportMonitor,
    reporter: Option<Reporter>,
    beginning: Beginning,
    /// `None` for datagrams, which are never held back.
    slow: Option<SlowOutput>,
    /// The faults of an output of datagrams, until one is reported.
    fault: Option<Fault>,
}

/// The form of the sections, determined by the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    /// Each section begins with a media header.
    Media,
    /// Another application's bytes, written unchanged.
    Plain,
}

impl MediaOutput {
    /// A file. Its old content is removed only when the first bytes are written.
    pub(crate) fn file(path: &Path, existing: Existing, room: Room) -> Result<Self, Error> {
        let file = existing.open("OUTPUT", path)?;
        Ok(Self {
            beginning: Beginning::of_file(path),
            ..Self::new(path.display().to_string(), Recording::new(file), room)?
        })
    }

    /// The standard output.
    pub(crate) fn pipe(room: Room) -> Result<Self, Error> {
        Self::new("the standard output".into(), io::stdout(), room)
    }

    /// Datagrams with at most the payload of the URI; whole transport packets if at least one fits.
    pub(crate) fn datagrams(
        name: &str,
        socket: UdpSocket,
        uri: &MediaUri,
        as_rtp: bool,
        room: Room,
    ) -> Result<Self, Error> {
        let mut randomness = Randomness::system();
        let packetiser = as_rtp.then(|| {
            let [a, b, c, d, e, f]: [u8; 6] = randomness.bytes();
            Packetiser::new(u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
                .from_stamp(u32::from_be_bytes(randomness.bytes()))
                .of_type(uri.payload_type)
        });
        let target = Datagrams::new(socket, uri.payload as usize, PAYLOAD as usize, packetiser);
        let fault = target.fault();
        Ok(Self {
            packets_only: as_rtp,
            slow: None,
            fault: Some(fault),
            writer: TsWriter::new(WriterConfig {
                outside: !as_rtp,
                ..WriterConfig::default()
            }),
            ..Self::new(name.to_owned(), target, room)?
        })
    }

    fn new(name: String, target: impl Target + Send + 'static, room: Room) -> Result<Self, Error> {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (report, written) = oneshot::channel();
        let ledger = Ledger::default();
        let count = ledger.written.clone();
        std::thread::Builder::new()
            .name("output".into())
            // The receiver of the result may be gone.
            .spawn(move || drop(report.send(write_all(target, waiting, &count))))
            .map_err(|error| Error::failed(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            writer: TsWriter::new(WriterConfig::default()),
            form: Form::Unknown,
            packets_only: false,
            unfit: None,
            name,
            pieces: Some(pieces),
            waiting: VecDeque::new(),
            room,
            free: Arc::new(Semaphore::new(room.0 as usize)),
            written: Some(written),
            ledger,
            transport: TransportMonitor::default(),
            reporter: None,
            beginning: Beginning::default(),
            slow: Some(SlowOutput::new(now())),
            fault: None,
        })
    }

    /// Reports faults of the output to `reporter`.
    pub(crate) fn with_warnings(mut self, reporter: &Reporter) -> Self {
        self.reporter = Some(reporter.clone());
        self
    }

    fn warn(&self, text: Option<String>) {
        if let (Some(reporter), Some(text)) = (&self.reporter, text) {
            reporter.warn(&text);
        }
    }

    fn give(&mut self, piece: Vec<u8>) {
        if piece.is_empty() {
            self.ledger.keep();
            return;
        }
        let text = self.beginning.bytes(&piece);
        self.warn(text);
        self.transport.push(&piece);
        self.ledger.give();
        self.waiting
            .push_back((piece, now(), self.writer.spacing()));
    }

    /// Passes the written bytes to the thread, and waits while the disk or the reader is behind.
    /// Cancel safe: if the call is dropped before it completes, the next one continues.
    async fn flush_waiting(&mut self) -> Result<Written, Error> {
        if let Some(error) = self.unfit.take() {
            self.ledger.has_failed = true;
            return Err(error);
        }
        let mut wants_room = now();
        while let Some((piece, ..)) = self.waiting.front() {
            // A buffer that grew uses more memory than its content.
            let taken =
                u32::try_from(piece.capacity()).map_or(self.room.0, |taken| taken.min(self.room.0));
            // The semaphore is closed when the thread ends.
            let free = self.free.clone().acquire_many_owned(taken).await;
            let permit = match &self.pieces {
                Some(pieces) => pieces.reserve().await.ok(),
                None => None,
            };
            let (Some(permit), Ok(room)) = (permit, free) else {
                return self.ended().await;
            };
            let has_room = now();
            if let Some((bytes, came, spacing)) = self.waiting.pop_front() {
                let length = bytes.len() as u64;
                let slow = self.slow.as_mut();
                let rate = slow.and_then(|slow| slow.on_room(wants_room, has_room, length));
                wants_room = has_room;
                permit.send(Piece {
                    bytes,
                    came,
                    spacing,
                    _room: room,
                });
                self.warn(rate.map(|rate| too_slow(&self.name, rate)));
            }
        }
        Ok(Written::Yes)
    }

    /// Returns when the writing thread has ended. It ends early only after an error.
    async fn ended(&mut self) -> Result<Written, Error> {
        let Some(written) = &mut self.written else {
            return pending().await;
        };
        let ended = written.await;
        self.written = None;
        self.pieces = None;
        match ended {
            Ok(Ok(())) => Ok(Written::Yes),
            Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.ledger.has_failed = true;
                Ok(Written::ReaderGone)
            }
            Ok(Err(error)) => {
                self.ledger.has_failed = true;
                Err(Error::write(&self.name, &error))
            }
            Err(_) => {
                self.ledger.has_failed = true;
                Err(Error::failed("the thread that writes is gone"))
            }
        }
    }

    /// Writes the remaining bytes, and waits until all are written.
    async fn finish_writing(&mut self) -> Result<(), Error> {
        let mut rest = Vec::new();
        self.writer.finish(&mut rest);
        self.ledger.assign(&BTreeSet::new());
        if self.pieces.is_some() {
            self.give(rest);
            self.transport.finish();
            self.flush_waiting().await?;
        }
        self.pieces = None;
        if self.written.is_some() {
            self.ended().await?;
        }
        Ok(())
    }
}

impl Sink for MediaOutput {
    /// Returns when the reader of the output is gone. In all other cases, the output ends only in
    /// [`finish`](Self::finish).
    async fn tend(&mut self) -> Result<Written, comity_stream::Error> {
        match self.ended().await? {
            Written::ReaderGone => Ok(Written::ReaderGone),
            _ => pending().await,
        }
    }

    /// Accepts a section for [`flush`](Self::flush), which reports errors of the disk or the
    /// reader.
    fn write(&mut self, unit: &MediaUnit) -> Written {
        let text = self.beginning.picture(unit);
        self.warn(text);
        if let Some(error) = self.fault.as_ref().and_then(Fault::text) {
            let text = lost_datagrams(&self.name, error);
            self.fault = None;
            self.warn(Some(text));
        }
        if let Some(slow) = &mut self.slow {
            slow.on_section(now().saturating_duration_since(unit.source_time));
        }
        let mut piece = Vec::new();
        if self.form == Form::Plain {
            piece.extend(&unit.payload);
        } else {
            let (stream, number) = (unit.stream.0, unit.id.0);
            let writer = &mut self.writer;
            let written = writer.write_section(stream, number, &unit.payload, &mut piece);
            match (self.form, written) {
                (_, Ok(())) => self.form = Form::Media,
                (Form::Media, Err(_)) => return Written::Malformed,
                (_, Err(_)) => {
                    self.form = Form::Plain;
                    piece.extend(&unit.payload);
                }
            }
        }
        let section = unit.missing(MissingReason::Unwritten);
        self.ledger.add(pid_of(&unit.payload), section);
        if self.packets_only && !is_packets(&piece) {
            self.unfit.get_or_insert_with(|| not_packets(&self.name));
            return Written::Yes;
        }
        let has_come = !piece.is_empty() || !self.writer.is_holding();
        if has_come {
            self.ledger.assign(&self.writer.held_streams());
        }
        self.give(piece);
        Written::Yes
    }

    /// Writes data that waited for the missing section.
    fn skip(&mut self, missing: &Missing) {
        self.beginning.miss(missing);
        if self.form != Form::Media {
            return;
        }
        let mut piece = Vec::new();
        let (stream, first) = (missing.stream.0, missing.id.0);
        self.writer.miss(stream, first, missing.count, &mut piece);
        if !piece.is_empty() {
            self.ledger.assign(&self.writer.held_streams());
            self.give(piece);
        }
    }

    /// The sections that were submitted and not written when the writing thread failed. Later calls
    /// return nothing.
    fn take_unwritten(&mut self) -> Vec<Missing> {
        match self.has_failed() {
            true => self.ledger.take(),
            false => Vec::new(),
        }
    }

    fn abandon(&mut self) {
        self.ledger.has_failed = true;
    }

    /// Whether writing has failed.
    fn has_failed(&self) -> bool {
        self.ledger.has_failed
    }

    async fn flush(&mut self) -> Result<Written, comity_stream::Error> {
        Ok(self.flush_waiting().await?)
    }

    async fn finish(&mut self) -> Result<(), comity_stream::Error> {
        Ok(self.finish_writing().await?)
    }

    /// The bytes of completely written pieces, without waiting pieces and without a piece for which
    /// there was no space.
    fn counters(&self) -> Counters {
        Counters::of_media(self.ledger.written.bytes(), self.transport.clone())
    }
}

fn too_slow(name: &str, rate: f64) -> String {
    format!(
        "{name}: takes {rate:.2} Mb/s, less than arrives. What it does not take waits in the connection (rcvbuf), \
         comes out late, and then is lost: it needs a faster disk or reader"
    )
}

fn lost_datagrams(name: &str, error: &str) -> String {
    format!(
        "{name}: this host refuses datagrams ({error}): they are lost. The next ones are tried all the same. Check \
         the firewall, the connection table and the addresses of the interfaces"
    )
}

fn not_packets(name: &str) -> Error {
    Error::failed(format!(
        "{name}: the media is no transport stream, the only format that RTP carries here (payload type 33); expected one, as \
         from ffmpeg -i INPUT -c copy -f mpegts -, or another output: udp://, a file and - take any bytes"
    ))
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::mpsc as blocking;
    use std::task::{Context, Poll, Waker};

    use ::bytes::Bytes as Payload;

    use tokio::task::unconstrained;

    use comity::{Importance, SectionId, StreamId};
    use comity_media::{FrameType, Header, Times, Unit};
    use comity_stream::Due;

    use super::*;

    /// Accepts a piece when permitted, and reports its length.
    struct Slow {
        may: blocking::Receiver<()>,
        took: blocking::Sender<usize>,
    }

    impl Target for Slow {
        fn take(&mut self, piece: &[u8], _: Instant, _: Option<Span>) -> io::Result<()> {
            self.may.recv().map_err(io::Error::other)?;
            self.took.send(piece.len()).map_err(io::Error::other)
        }
    }

    fn slow(room: Room) -> (MediaOutput, blocking::Sender<()>, blocking::Receiver<usize>) {
        let (let_it, may) = blocking::channel();
        let (took, taken) = blocking::channel();
        let output = MediaOutput::new("a slow reader".into(), Slow { may, took }, room);
        (output.unwrap(), let_it, taken)
    }

    /// A section of another application, which is written unchanged.
    fn section(length: usize) -> MediaUnit {
        MediaUnit {
            stream: StreamId(1),
            id: SectionId(0),
            importance: Importance(0),
            source_time: now(),
            due: Due::Never,
            needs: None,
            payload: Payload::from(vec![0xff; length]),
            frame: None,
            is_damaged: false,
        }
    }

    /// The number of sections of this length that it passes on until it has to wait, including the
    /// one that waits.
    fn taken_at_once(output: &mut MediaOutput, length: usize) -> usize {
        let section = section(length);
        let mut context = Context::from_waker(Waker::noop());
        for count in 0.. {
            assert_eq!(output.write(&section), Written::Yes);
            match pin!(unconstrained(output.flush())).poll(&mut context) {
                Poll::Ready(written) => assert_eq!(written.unwrap(), Written::Yes),
                Poll::Pending => return count,
            }
        }
        unreachable!("it takes any number of them")
    }

    fn written(output: &MediaOutput) -> u64 {
        output.counters().side().bytes.unwrap()
    }

    async fn flushes(output: &mut MediaOutput) {
        assert_eq!(output.flush().await.unwrap(), Written::Yes);
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(test);
    }

    #[test]
    fn a_slow_reader_holds_up_at_most_the_room() {
        run(async {
            // 3,000,000 bytes are less than a third of the room.
            let (mut output, let_it, taken) = slow(Room(10_000_000));
            assert_eq!(taken_at_once(&mut output, 3_000_000), 3);
            // A written piece frees its room.
            let_it.send(()).unwrap();
            flushes(&mut output).await;
            assert_eq!(taken.recv(), Ok(3_000_000));
            assert_eq!(taken_at_once(&mut output, 3_000_000), 0);
            // A waiting call detects that the reader is gone, and reports the waiting sections with
            // the rest: one was accepted.
            drop(let_it);
            assert!(output.flush().await.is_err());
            assert_eq!(output.take_unwritten().len(), 4);
            assert_eq!(written(&output), 3_000_000);
        });
    }

    #[test]
    fn an_abandoned_wait_for_room_loses_nothing() {
        run(async {
            let (mut output, let_it, taken) = slow(Room(1_000));
            // The first piece takes all the room. The waits of the other two are cancelled.
            assert_eq!(taken_at_once(&mut output, 900), 1);
            assert_eq!(taken_at_once(&mut output, 700), 0);
            assert_eq!(written(&output), 0, "nothing is written yet");
            for () in [(); 3] {
                let_it.send(()).unwrap();
            }
            let finished = output.finish().await;
            assert_eq!(finished.map_err(|error| error.to_string()), Ok(()));
            assert_eq!(written(&output), 900 + 900 + 700);
            assert_eq!(taken.into_iter().collect::<Vec<_>>(), [900, 900, 700]);
            assert!(output.take_unwritten().is_empty());
        });
    }

    #[test]
    fn a_section_longer_than_the_room_waits_alone() {
        run(async {
            let (mut output, let_it, taken) = slow(Room(1_000));
            assert_eq!(taken_at_once(&mut output, 5_000), 1);
            assert_eq!(taken_at_once(&mut output, 1), 0);
            for () in [(); 3] {
                let_it.send(()).unwrap();
            }
            assert_eq!(
                output.finish().await.map_err(|error| error.to_string()),
                Ok(())
            );
            assert_eq!(taken.into_iter().collect::<Vec<_>>(), [5_000, 5_000, 1]);
        });
    }

    #[test]
    fn the_number_of_waiting_short_sections_is_bounded() {
        run(async {
            let (mut output, _let_it, _taken) = slow(Room::WITHOUT_CONNECTION);
            // The thread may already have accepted one piece.
            let count = taken_at_once(&mut output, 1);
            assert!((WAITING..=WAITING + 1).contains(&count), "{count}");
        });
    }

    #[test]
    fn the_room_follows_the_receive_buffer() {
        assert_eq!(Room::behind(DataSize::new(65_536)), Room(16_384));
        assert_eq!(Room::behind(DataSize::new(8 << 20)), Room(2 << 20));
        assert_eq!(Room::behind(DataSize::new(16 << 20)), Room(4 << 20));
        assert_eq!(Room::behind(DataSize::new(1 << 40)), Room(4 << 20));
    }

    /// A unit waits for tables that never come, and tables that say nothing come without end.
    #[test]
    fn tables_beside_a_held_unit_are_remembered_up_to_a_limit() {
        let (mut output, _let_it, _taken) = slow(Room::WITHOUT_CONNECTION);
        let unit = Unit {
            pid: 256,
            stream_type: 0x1b,
            stream_id: 0xe0,
            frame: FrameType::Key,
            times: Times::None,
            random_access: true,
            discontinuity: false,
            aligned: false,
        };
        let table = Header::Table {
            pid: 0x11,
            repeated: true,
        };
        let mut write = |stream: u16, number: u64, header: Header, bytes: &[u8]| {
            let mut payload = Vec::new();
            header.encode(&mut payload);
            payload.extend(bytes);
            let section = MediaUnit {
                stream: StreamId(stream),
                id: SectionId(number),
                payload: Payload::from(payload),
                ..section(0)
            };
            assert_eq!(output.write(&section), Written::Yes);
        };
        write(1, 0, Header::Unit(unit), &[9; 10]);
        for number in 0..10_000 {
            write(0, number, table, &[0x40, 0, 0]);
        }
        assert!(output.writer.is_holding());
        let kept = output.ledger.take();
        assert_eq!(kept.len(), 4_096);
        assert_eq!(kept[4_095].id.0, 9_999);
    }
}
