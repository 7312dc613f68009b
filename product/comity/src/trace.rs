//! qlog files of real connections.
//!
//! The endpoint's thread only puts records into a bounded queue. Another thread turns them into
//! text and writes them. When it cannot keep up, records are dropped and counted, here and in the
//! file: a slow disk makes a trace incomplete, but never delays a packet.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::mem;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use comity_qlog::{
    CongestionState, Description, LossTrigger, Metrics, Packet, Piece, QlogWriter, Side,
};
use comity_transport::datagram::{LostPacket, PathStatistics};
use comity_transport::timeline::outbox::Fate;
use comity_transport::timeline::{Delivery, Meta, Outcome, Reason, SectionId, StreamId, inbox};
use comity_transport::wire::frame::{self, Content, Frame};
use comity_units::{DataSize, PacketNumber, Time};
use serde::Serialize;

use crate::existing::Existing;
use crate::session::{Role, lock};
use crate::statistics::Statistics;

/// The length of the queue of records: a quarter of a second of a connection at 400 Mb/s.
const MAX_WAITING: usize = 16_384;
/// The size limit of all files together, in full files.
const FULL_FILES: u64 = 8;
/// The maximum number of connections with a file.
const MAX_FILES: u32 = 1_000;

/// The qlog files of the connections of one or more endpoints, one file for each connection. The
/// first is `trace.sqlog`, the next `trace-2.sqlog` and so on, up to a thousand.
///
/// They hold the packets sent, received and lost with their frames, the controller's metrics, every
/// section with its deadline and fate, and the last [`Statistics`]. `docs/reference/streaming.md`
/// describes the format. Clones write to the same files.
#[derive(Clone, Debug)]
pub struct Qlog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    records: SyncSender<Message>,
    begun: AtomicU32,
    counts: Arc<Counts>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Records dropped since the last report in a file.
    omitted: AtomicU64,
    /// All dropped records.
    omitted_in_all: AtomicU64,
    incomplete: Mutex<Vec<(PathBuf, io::Error)>>,
}

/// Which qlog files are incomplete, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct QlogError {
    /// The incomplete files, with the reasons.
    pub files: Vec<(PathBuf, io::Error)>,
    /// Records that were dropped because they came too fast.
    pub omitted_records: u64,
}

impl std::error::Error for QlogError {}

impl fmt::Display for QlogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (path, error)) in self.files.iter().enumerate() {
            let separator = if at > 0 { "; " } else { "" };
            write!(
                f,
                "{separator}{}: the trace is not complete: {error}",
                path.display()
            )?;
        }
        if self.omitted_records > 0 {
            let separator = if self.files.is_empty() { "" } else { "; " };
            let count = self.omitted_records;
            write!(
                f,
                "{separator}{count} records came faster than they could be written"
            )?;
        }
        Ok(())
    }
}

impl Qlog {
    /// Creates the first file. Each file holds at most `max_bytes`, and all together eight times as
    /// much. Further records are dropped, and the last record of the file reports it. Existing
    /// files are not replaced, and symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// If the file exists, cannot be created, or the thread cannot start.
    pub fn create(path: impl Into<PathBuf>, max_bytes: u64) -> io::Result<Self> {
        Self::open(path.into(), max_bytes, Existing::Kept)
    }

    /// As [`create`](Self::create), but replaces existing files.
    ///
    /// # Errors
    ///
    /// If the file cannot be created, is a symbolic link, or the thread cannot start.
    pub fn create_over(path: impl Into<PathBuf>, max_bytes: u64) -> io::Result<Self> {
        Self::open(path.into(), max_bytes, Existing::Replaced)
    }

    fn open(path: PathBuf, max_bytes: u64, existing: Existing) -> io::Result<Self> {
        let first = existing.create(&path)?;
        let counts = Arc::new(Counts::default());
        let (records, waiting) = sync_channel(MAX_WAITING);
        let files = Files {
            path,
            first: Some(first),
            existing,
            max_bytes,
            left: Arc::new(AtomicU64::new(max_bytes.saturating_mul(FULL_FILES))),
            counts: counts.clone(),
            open: BTreeMap::new(),
        };
        let writer = std::thread::Builder::new()
            .name("qlog".into())
            .spawn(move || files.write(&waiting))?;
        Ok(Self(Arc::new(Shared {
            records,
            begun: AtomicU32::new(0),
            counts,
            writer: Mutex::new(Some(writer)),
        })))
    }

    /// Writes all records so far and ends the files. Later records are dropped.
    ///
    /// # Errors
    ///
    /// [`QlogError`] if the files are incomplete. A later call does not report it again.
    pub fn finish(&self) -> Result<(), QlogError> {
        let mut writer = lock(&self.0.writer);
        if let Some(writer) = writer.take() {
            // Both fail only if the thread has ended.
            let _ = self.0.records.send(Message::Finish);
            let _ = writer.join();
        }
        let counts = &self.0.counts;
        let mut incomplete = lock(&counts.incomplete);
        let files = mem::take(&mut *incomplete);
        let omitted_records = counts.omitted_in_all.swap(0, Ordering::Relaxed);
        match files.is_empty() && omitted_records == 0 {
            true => Ok(()),
            false => Err(QlogError {
                files,
                omitted_records,
            }),
        }
    }

    /// The trace of one connection. It takes the number of its file at its first record.
    pub(crate) fn connection(&self, role: Role, epoch: Time, controller: &'static str) -> Trace {
        Trace {
            qlog: self.clone(),
            number: None,
            role,
            controller,
            epoch,
        }
    }
}

/// The trace of one connection.
#[derive(Debug)]
pub(crate) struct Trace {
    qlog: Qlog,
    /// `Some(None)` if too many connections have files.
    number: Option<Option<u32>>,
    role: Role,
    controller: &'static str,
    /// The origin of the times in the file.
    epoch: Time,
}

impl Trace {
    pub(crate) fn record(&mut self, now: Time, record: Record) {
        let shared = &self.qlog.0;
        let number = *self.number.get_or_insert_with(|| {
            let number = shared.begun.fetch_add(1, Ordering::Relaxed);
            (number < MAX_FILES).then_some(number)
        });
        let Some(number) = number else { return };
        let message = Message::Record {
            number,
            role: self.role,
            controller: self.controller,
            at: self.since_epoch(now),
            record,
        };
        // Records after [`Qlog::finish`] are dropped and not counted.
        if let Err(TrySendError::Full(_)) = shared.records.try_send(message) {
            shared.counts.omitted.fetch_add(1, Ordering::Relaxed);
            shared.counts.omitted_in_all.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn since_epoch(&self, time: Time) -> Time {
        match time.is_never() {
            true => time,
            false => Time::ZERO + time.saturating_since(self.epoch),
        }
    }
}

#[derive(Debug)]
enum Message {
    Record {
        number: u32,
        role: Role,
        controller: &'static str,
        at: Time,
        record: Record,
    },
    Finish,
}

/// An event of a connection.
#[derive(Debug)]
pub(crate) enum Record {
    Sent(PacketRecord),
    Received(PacketRecord),
    Lost(LostPacket),
    Path(Box<PathStatistics>),
    Submitted(Submitted),
    Skipped(Skipped),
    Settled(Settled),
    Delivered(Delivered),
    Missing(Missing),
    Size(Size),
    Ended(Box<Ended>),
}

/// A packet and the frames in its payload.
#[derive(Debug)]
pub(crate) struct PacketRecord {
    number: PacketNumber,
    wire: u32,
    acknowledged: Vec<RangeInclusive<u64>>,
    pieces: Vec<Piece>,
    others: Vec<&'static str>,
    /// The planned departure, on the clock of the file.
    planned: Option<Time>,
}

impl PacketRecord {
    /// Reads a payload whose packet is `overhead` bytes longer on the wire.
    pub(crate) fn read(number: PacketNumber, payload: &[u8], overhead: u32) -> Self {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let mut record = Self {
            number,
            wire: length.saturating_add(overhead),
            acknowledged: Vec::new(),
            pieces: Vec::new(),
            others: Vec::new(),
            planned: None,
        };
        let Ok(packet) = frame::decode(payload, Content::Present) else {
            record.others.push("malformed");
            return record;
        };
        for frame in packet.frames {
            match frame {
                Ok(frame) => record.add(&frame),
                Err(_) => record.others.push("malformed"),
            }
        }
        record
    }

    /// Sets the departure that pacing planned, on the clock of the file.
    pub(crate) const fn planned_at(mut self, time: Option<Time>) -> Self {
        self.planned = time;
        self
    }

    fn add(&mut self, frame: &Frame<'_>) {
        let other = match frame {
            Frame::Ack(ack) => {
                let ranges = ack.ranges.iter();
                self.acknowledged
                    .extend(ranges.map(|range| range.first.get()..=range.last.get()));
                return;
            }
            Frame::Section(section) => {
                let header = &section.header;
                self.pieces.push(Piece {
                    stream: header.stream,
                    section: header.section,
                    offset: header.offset,
                    length: section.data.len() as u32,
                    total: header.total,
                    retransmission: header.is_retransmission,
                });
                return;
            }
            Frame::Padding { .. } => "padding",
            Frame::Ping => "ping",
            Frame::Floor(_) => "floor",
            Frame::Dropped(_) => "drop",
            Frame::Credit(_) => "credit",
            Frame::Tag(_) => "tag",
            Frame::Feedback(_) => "feedback",
            Frame::ReceiverReport(_) => "receiver_report",
            Frame::PathChallenge(_) => "path_challenge",
            Frame::PathResponse(_) => "path_response",
            Frame::Close(_) => "connection_close",
            Frame::End(_) => "end",
            Frame::Blocked => "blocked",
        };
        self.others.push(other);
    }

    fn packet(&self) -> Packet<'_> {
        Packet {
            number: self.number.get(),
            wire_bytes: self.wire,
            data: None,
            acknowledged: &self.acknowledged,
            pieces: &self.pieces,
            others: &self.others,
            planned: self.planned,
        }
    }
}

/// A section that the application submitted.
#[derive(Debug, Serialize)]
pub(crate) struct Submitted {
    stream_id: u16,
    section: u64,
    length: u32,
    importance: u8,
    /// Milliseconds on the clock of the file; negative if before its start.
    source_time: f64,
    /// `None` for no deadline.
    deadline: Option<f64>,
    needs: Option<u64>,
}

impl Submitted {
    pub(crate) fn new(
        trace: &Trace,
        section: SectionId,
        given: &comity_transport::timeline::Outgoing<bytes::Bytes>,
    ) -> Self {
        Self {
            stream_id: given.stream.0,
            section: section.0,
            length: u32::try_from(given.payload.len()).unwrap_or(u32::MAX),
            importance: given.importance.0,
            source_time: trace.millis(given.source_time),
            deadline: (!given.deadline.is_never()).then(|| trace.millis(given.deadline)),
            needs: given.needs.map(|needs| needs.0),
        }
    }
}

/// A skipped number.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    stream_id: u16,
    section: u64,
    /// The number of sections from this one on.
    count: u64,
    reason: &'static str,
}

impl Skipped {
    pub(crate) const fn new(
        stream: StreamId,
        section: SectionId,
        count: u64,
        reason: Reason,
    ) -> Self {
        Self {
            stream_id: stream.0,
            section: section.0,
            count,
            reason: reason.word(),
        }
    }
}

impl Trace {
    /// A time of this end as milliseconds on the clock of the file.
    fn millis(&self, time: Time) -> f64 {
        match time.since(self.epoch) {
            Some(after) => after.as_nanos() as f64 / 1e6,
            None => -(self.epoch.saturating_since(time).as_nanos() as f64 / 1e6),
        }
    }
}

/// The fate of a section.
#[derive(Debug, Serialize)]
pub(crate) struct Settled {
    stream_id: u16,
    section: u64,
    fate: &'static str,
    length: u32,
    sent: u32,
    acknowledged: u32,
}

impl Settled {
    pub(crate) fn new(outcome: &Outcome) -> Self {
        Self {
            stream_id: outcome.stream.0,
            section: outcome.section.0,
            fate: match outcome.fate {
                Fate::Acknowledged => "acknowledged",
                Fate::Dropped(Reason::Expired) => "expired_unsent",
                Fate::Dropped(reason) => reason.word(),
                Fate::ExpiredInNetwork => "expired_in_network",
                Fate::Lost => "lost",
            },
            length: outcome.length,
            sent: outcome.sent,
            acknowledged: outcome.acknowledged,
        }
    }
}

/// A section of the peer that was delivered whole.
#[derive(Debug, Serialize)]
pub(crate) struct Delivered {
    stream_id: u16,
    section: u64,
    length: u32,
    /// Milliseconds on the clock of the file.
    completed: f64,
    deadline: Option<f64>,
    late: bool,
}

/// A section of the peer that was not delivered whole.
#[derive(Debug, Serialize)]
pub(crate) struct Missing {
    stream_id: u16,
    section: u64,
    /// The number of sections from this one on.
    count: u64,
    reason: &'static str,
    /// `None` if nothing of the section arrived.
    length: Option<u32>,
    missing_bytes: Option<u64>,
    deadline: Option<f64>,
}

impl Record {
    /// A record of a delivery. `local` maps times of the peer's clock to this end's clock.
    pub(crate) fn delivery(
        trace: &Trace,
        delivery: &Delivery<bytes::Bytes>,
        local: impl Fn(Time) -> Time,
    ) -> Self {
        let deadline =
            |meta: &Meta| (!meta.deadline.is_never()).then(|| trace.millis(local(meta.deadline)));
        match delivery {
            Delivery::Section(section) => Self::Delivered(Delivered {
                stream_id: section.meta.stream.0,
                section: section.meta.section.0,
                length: section.meta.length,
                completed: trace.millis(section.completed),
                deadline: deadline(&section.meta),
                late: section.is_late,
            }),
            Delivery::Gap(gap) => {
                let partial = gap.partial.as_ref();
                Self::Missing(Missing {
                    stream_id: gap.stream.0,
                    section: gap.section.0,
                    count: gap.count,
                    reason: match gap.reason {
                        inbox::GapReason::Closed => "closed",
                        inbox::GapReason::Obsolete => "obsolete",
                        inbox::GapReason::Overdue => "overdue",
                        inbox::GapReason::Dropped(reason) => reason.word(),
                    },
                    length: partial.map(|partial| partial.meta.length),
                    missing_bytes: partial.map(|partial| {
                        let missing = partial.missing.iter();
                        missing
                            .map(|range| u64::from(range.end - range.start))
                            .sum()
                    }),
                    deadline: partial.and_then(|partial| deadline(&partial.meta)),
                })
            }
        }
    }
}

/// The new size of a full datagram, in bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Size {
    pub(crate) new: u32,
}

/// The end of a connection.
#[derive(Debug, Serialize)]
pub(crate) struct Ended {
    pub(crate) reason: String,
    pub(crate) statistics: Statistics,
}

/// The files, owned by the writing thread.
struct Files {
    path: PathBuf,
    first: Option<File>,
    existing: Existing,
    max_bytes: u64,
    /// The bytes left for all files.
    left: Arc<AtomicU64>,
    counts: Arc<Counts>,
    /// `None` once a file is complete or failed.
    open: BTreeMap<u32, Option<QlogWriter<Bounded>>>,
}

impl Files {
    fn write(mut self, waiting: &Receiver<Message>) {
        while let Ok(Message::Record {
            number,
            role,
            controller,
            at,
            record,
        }) = waiting.recv()
        {
            let is_last = matches!(record, Record::Ended(_));
            let result = self
                .writer(number, role, controller)
                .map_or(Ok(()), |writer| put(writer, at, record));
            let omitted = self.counts.omitted.swap(0, Ordering::Relaxed);
            let result = result.and_then(|()| match self.open.get_mut(&number) {
                Some(Some(writer)) if omitted > 0 => {
                    writer.event(at, "comity:records_omitted", &Omitted { count: omitted })
                }
                _ => Ok(()),
            });
            if let Err(error) = result {
                self.give_up(number, at, error);
            } else if is_last {
                self.end(number);
            }
        }
        let numbers: Vec<u32> = self.open.keys().copied().collect();
        for number in numbers {
            self.end(number);
        }
    }

    fn writer(
        &mut self,
        number: u32,
        role: Role,
        controller: &'static str,
    ) -> Option<&mut QlogWriter<Bounded>> {
        if !self.open.contains_key(&number) {
            let created = match self.first.take() {
                Some(file) if number == 0 => Ok(file),
                first => {
                    self.first = first;
                    self.existing.create(&numbered(&self.path, number))
                }
            };
            let (left, left_in_all) = (self.max_bytes, self.left.clone());
            let begun = created.and_then(|file| {
                let side = match role {
                    Role::Caller => Side::Client,
                    Role::Listener => Side::Server,
                };
                let description = Description {
                    title: "comity",
                    description: controller,
                    endpoint: match role {
                        Role::Caller => "caller",
                        Role::Listener => "listener",
                    },
                    side,
                    protocol: "COMITY",
                };
                let out = Bounded {
                    out: BufWriter::with_capacity(1 << 16, file),
                    left,
                    left_in_all: Some(left_in_all),
                };
                QlogWriter::new(out, &description)
            });
            let begun = match begun {
                Ok(writer) => Some(writer),
                Err(error) => {
                    self.complain(number, error);
                    None
                }
            };
            self.open.insert(number, begun);
        }
        self.open.get_mut(&number)?.as_mut()
    }

    /// Ends a file that is full or cannot be written. A last record reports this, if possible.
    fn give_up(&mut self, number: u32, at: Time, error: io::Error) {
        self.complain(number, error);
        if let Some(Some(writer)) = self.open.insert(number, None)
            && let Ok(mut out) = writer.finish()
        {
            (out.left, out.left_in_all) = (u64::MAX, None);
            let time = at.as_nanos() as f64 / 1e6;
            // The caller has recorded the reason.
            let _ = writeln!(
                out,
                "\u{1e}{{\"time\":{time},\"name\":\"comity:trace_ended\",\"data\":{{\"limit_bytes\":{}}}}}",
                self.max_bytes
            );
            let _ = out.flush();
        }
    }

    fn end(&mut self, number: u32) {
        if let Some(Some(writer)) = self.open.insert(number, None)
            && let Err(error) = writer.finish()
        {
            self.complain(number, error);
        }
    }

    fn complain(&self, number: u32, error: io::Error) {
        let path = numbered(&self.path, number);
        lock(&self.counts.incomplete).push((path, error));
    }
}

#[derive(Serialize)]
struct Omitted {
    count: u64,
}

fn put(writer: &mut QlogWriter<Bounded>, at: Time, record: Record) -> io::Result<()> {
    match record {
        Record::Sent(packet) => writer.packet_sent(at, &packet.packet()),
        Record::Received(packet) => writer.packet_received(at, &packet.packet()),
        Record::Lost(lost) => {
            let packet = Packet {
                number: lost.number.get(),
                wire_bytes: lost.payload,
                ..Packet::default()
            };
            let trigger = match lost.by_delay {
                true => LossTrigger::TimeThreshold,
                false => LossTrigger::ReorderingThreshold,
            };
            writer.packet_lost(at, &packet, trigger)
        }
        Record::Path(path) => {
            let known = |bytes: DataSize| Some(bytes).filter(|bytes| *bytes != DataSize::MAX);
            let metrics = Metrics {
                min_rtt: path.min_rtt,
                smoothed_rtt: path.srtt,
                latest_rtt: path.latest_rtt,
                rtt_variance: path.srtt.map(|_| path.rtt_variation),
                congestion_window: known(path.window),
                bytes_in_flight: Some(path.in_flight),
                ssthresh: path.ssthresh.and_then(known),
                pacing_rate: path.pacing_rate,
                capacity: path.capacity,
            };
            writer.metrics_updated(at, &metrics)?;
            writer.congestion_state_updated(at, CongestionState::from(path.phase))
        }
        Record::Submitted(section) => writer.event(at, "comity:section_submitted", &section),
        Record::Skipped(section) => writer.event(at, "comity:section_skipped", &section),
        Record::Settled(section) => writer.event(at, "comity:section_settled", &section),
        Record::Delivered(section) => writer.event(at, "comity:section_delivered", &section),
        Record::Missing(section) => writer.event(at, "comity:section_missing", &section),
        Record::Size(size) => writer.event(at, "connectivity:mtu_updated", &size),
        Record::Ended(ended) => writer.event(at, "comity:connection_ended", &ended),
    }
}

/// `trace.sqlog`, `trace-2.sqlog`, ..
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{}", number + 1));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A file with a size limit. It stores each record whole or not at all.
#[derive(Debug)]
struct Bounded {
    out: BufWriter<File>,
    left: u64,
    /// The bytes left for all files; `None` for no limit.
    left_in_all: Option<Arc<AtomicU64>>,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len() as u64;
        // One thread writes all files.
        let left_in_all = self.left_in_all.as_deref();
        let rest = left_in_all.map_or(u64::MAX, |left| left.load(Ordering::Relaxed));
        if length > self.left.min(rest) {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the file has reached its limit",
            ));
        }
        self.out.write_all(bytes)?;
        self.left -= length;
        if let Some(left) = left_in_all {
            left.store(rest - length, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_before_their_extension() {
        let name = |path: &str, number| numbered(Path::new(path), number).display().to_string();
        assert_eq!(name("a/trace.sqlog", 0), "a/trace.sqlog");
        assert_eq!(name("a/trace.sqlog", 1), "a/trace-2.sqlog");
        assert_eq!(name("trace", 9), "trace-10");
    }
}
