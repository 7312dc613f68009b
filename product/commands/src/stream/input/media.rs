//! Converts bytes of media to sections with times.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use comity::{SectionId, StreamId};

use comity_media::{
    DeadlineRule, Event, MediaSection, MissingUnit, ReadError, Reader, ReaderConfig,
};
use comity_stream::{
    Counters, Due, MediaUnit, Missing, MissingReason, Notice, Source, SourceItem, TransportMonitor,
};
use comity_units::Time;
use tokio::time::sleep_until;

use super::super::error::Error;
use super::feed::{Feed, Piece};
use super::lead::Lead;
use super::notice;
use super::silence::Silence;
use super::waiting::{READ_AHEAD, Waiting};
use crate::clock::now;

/// Reads media from a [`Feed`]: a file at its own pace, a live source as its data arrives.
#[derive(Debug)]
pub(crate) struct MediaInput {
    feed: Feed,
    reader: Reader,
    config: ReaderConfig,
    has_ended: bool,
    has_reported_growth: bool,
    pace: Pace,
    waiting: Waiting,
    /// The silence of a live source.
    silence: Silence,
    /// How far a live source that can be held back is ahead of its own time stamps.
    lead: Option<Lead>,
    /// Whether it waits until a consumer reads.
    is_patient: bool,
    /// The number of bytes read so far.
    read: u64,
    /// The number of bytes read so far, without sections that wait for their time.
    bytes: Arc<AtomicU64>,
    transport: TransportMonitor,
}

#[derive(Debug)]
enum Pace {
    /// A file, read at `speed` times its own pace from `start`.
    Stored { start: Option<Instant>, speed: f64 },
    /// A live source, whose sections are due on arrival. Times count from `epoch`.
    Live { epoch: Instant },
}

/// How far ahead of its time a file is read. Multiplexers let streams drift apart by at most this
/// much.
const LOOKAHEAD: Duration = Duration::from_secs(1);
/// The maximum for a group of pictures that is sent together, if the file contains sound with later
/// times before its pictures.
const GROUP_LOOKAHEAD: Duration = Duration::from_secs(10);

impl MediaInput {
    /// Reads a live source.
    pub(crate) fn live(feed: Feed, config: ReaderConfig) -> Self {
        Self::new(feed, config, Pace::Live { epoch: now() })
    }

    /// Reads a live source that can be held back. Data that arrives ahead of its time stamps waits
    /// for its time, and nothing is lost before there is a connection.
    pub(crate) fn pipe(feed: Feed, config: ReaderConfig) -> Self {
        let lead = Some(Lead::new(now()));
        Self {
            lead,
            ..Self::live(feed, config)
        }
        .patient()
    }

    /// Reads a file at `speed` times its own pace.
    pub(crate) fn stored(feed: Feed, speed: f64, config: ReaderConfig) -> Self {
        Self::new(feed, config, Pace::Stored { start: None, speed }).patient()
    }

    /// Waits until a consumer reads, so that nothing is lost before there is a connection.
    const fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }

    fn new(feed: Feed, config: ReaderConfig, pace: Pace) -> Self {
        Self {
            feed,
            reader: Reader::new(config),
            config,
            has_ended: false,
            has_reported_growth: false,
            pace,
            waiting: Waiting::default(),
            silence: Silence::new(now()),
            lead: None,
            is_patient: false,
            read: 0,
            bytes: Arc::default(),
            transport: TransportMonitor::default(),
        }
    }

    /// The next section, when it is due; `None` after the end of the source. Cancel safe: dropping
    /// the call before it completes loses nothing.
    async fn read(&mut self) -> Result<Option<SourceItem>, Error> {
        loop {
            if self.waiting.is_full()
                && self.is_stored()
                && !core::mem::replace(&mut self.waiting.has_reported_full, true)
            {
                let held = self.waiting.span().mul_f64(self.speed());
                return Ok(Some(SourceItem::Notice(notice::full(READ_AHEAD, held))));
            }
            if !self.is_stored() && self.waiting.due().is_some() {
                return Ok(self.take_next());
            }
            match self.reader.poll() {
                Some(Event::Section(section)) => {
                    let mut unit = self.pace.lay(section);
                    unit.source_time = unit.source_time.max(self.least());
                    self.waiting.add(unit);
                    continue;
                }
                Some(Event::Missing(unit)) => {
                    let (source_time, missing) = self.pace.miss(&unit);
                    self.waiting.miss(source_time, missing);
                    continue;
                }
                Some(Event::Notice(notice)) => {
                    return Ok(Some(SourceItem::Notice(self.notice_for(&notice))));
                }
                None => {}
            }
            // All data that was read from a file so far has arrived in order.
            self.count();
            match self.waiting.due() {
                Some(due) if self.has_ended || self.has_read_enough() => {
                    sleep_until(due.into()).await;
                    return Ok(self.take_next());
                }
                None if self.has_ended => return Ok(self.growth()),
                _ => {}
            }
            let piece = match self.next_piece().await {
                Next::Piece(piece) => piece,
                Next::Silence(arrival) => {
                    self.reader.on_silence(arrival).map_err(unreadable)?;
                    continue;
                }
                Next::Wakeup(arrival) => {
                    self.reader.on_wakeup(arrival);
                    continue;
                }
            };
            match piece {
                Some(Piece::Bytes(bytes)) => self.take(&bytes)?,
                Some(Piece::Notice(notice)) => return Ok(Some(SourceItem::Notice(notice))),
                Some(Piece::Failed(error)) => {
                    // The data before the error is still delivered.
                    self.finish()?;
                    return Err(error);
                }
                Some(Piece::End) | None => self.finish()?,
            }
        }
    }

    /// The next piece of the feed. Cancel safe: dropping the call before it completes loses
    /// nothing.
    async fn next_piece(&mut self) -> Next {
        if let Some(until) = self.lead.as_ref().and_then(Lead::holds_until) {
            sleep_until(until.into()).await;
        }
        let silent_at = self.silence.begins_at();
        let wakes_at = self.reader.next_wakeup();
        let wakes_at = wakes_at.map(|time| self.pace.instant_of(time));
        tokio::select! {
            biased;
            piece = self.feed.next() => Next::Piece(piece),
            () = reached(wakes_at) => Next::Wakeup(self.pace.arrival()),
            () = reached(silent_at) => {
                self.silence.on_silence();
                Next::Silence(self.pace.arrival())
            }
        }
    }

    /// Reports once, at the end, that a file has grown since it was read.
    fn growth(&mut self) -> Option<SourceItem> {
        if core::mem::replace(&mut self.has_reported_growth, true) {
            return None;
        }
        let (name, more) = self.feed.growth(self.read)?;
        Some(SourceItem::Notice(notice::grown(name, more)))
    }

    fn take_next(&mut self) -> Option<SourceItem> {
        let item = self.waiting.take();
        self.count();
        item
    }

    fn count(&self) {
        let bytes = self.read.saturating_sub(self.waiting.payload());
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.read += bytes.len() as u64;
        self.transport.push(bytes);
        let read = match self.pace {
            Pace::Stored { .. } => self.reader.push(bytes),
            Pace::Live { .. } => {
                self.silence.on_bytes(now());
                self.reader.push_arrived(bytes, self.pace.arrival())
            }
        };
        if let Some(lead) = &mut self.lead {
            lead.advance(now(), self.reader.progress());
        }
        // The data before the error is still delivered.
        self.has_ended |= read.is_err();
        read.map_err(unreadable)
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.has_ended = true;
        self.transport.finish();
        self.reader.finish().map_err(unreadable)
    }

    /// The earliest source time of data that is now read from a file. Data with an earlier time
    /// gets this time, such as the last sound of a program if the multiplexer wrote it at the end
    /// of the file.
    fn least(&self) -> Instant {
        let lookahead = match (&self.pace, self.config.deadlines) {
            (Pace::Live { epoch }, _) => return *epoch,
            (Pace::Stored { speed, .. }, DeadlineRule::Each) => LOOKAHEAD.div_f64(*speed),
            (Pace::Stored { speed, .. }, DeadlineRule::Group) => GROUP_LOOKAHEAD.div_f64(*speed),
        };
        let furthest = self.waiting.furthest.unwrap_or_else(now);
        furthest.checked_sub(lookahead).unwrap_or(furthest)
    }

    fn notice_for(&self, notice: &comity_media::Notice) -> Notice {
        let stored_at = self.is_stored().then_some(self.config.assumed_rate);
        notice::for_operator(notice, stored_at)
    }

    /// Whether the section that is due first is known, or the buffer is full.
    fn has_read_enough(&self) -> bool {
        match self.pace {
            Pace::Stored { speed, .. } => {
                // A late consumer needs no more read-ahead than a punctual one.
                let from = self.waiting.due().map_or_else(now, |due| due.min(now()));
                let after = |lookahead: Duration| from + lookahead.div_f64(speed);
                let (near, far) = (after(LOOKAHEAD), after(GROUP_LOOKAHEAD));
                let is_read = match self.config.deadlines {
                    DeadlineRule::Each => self.waiting.reaches(near),
                    DeadlineRule::Group => {
                        self.waiting.reaches_picture(near) || self.waiting.reaches(far)
                    }
                };
                is_read || self.waiting.is_full()
            }
            Pace::Live { .. } => true,
        }
    }

    /// The factor by which the source is read faster than its own pace.
    const fn speed(&self) -> f64 {
        match self.pace {
            Pace::Stored { speed, .. } => speed,
            Pace::Live { .. } => 1.0,
        }
    }

    const fn is_stored(&self) -> bool {
        matches!(self.pace, Pace::Stored { .. })
    }
}

impl Source for MediaInput {
    async fn next(&mut self) -> Result<Option<SourceItem>, comity_stream::Error> {
        Ok(self.read().await?)
    }

    /// Ends a live source after the data that has already arrived, including data in its socket:
    /// the reader then releases everything that it holds. Drops the rest of a file.
    fn cut(&mut self) {
        if self.has_ended || !self.is_stored() && self.feed.cut() {
            return;
        }
        (self.has_ended, self.has_reported_growth) = (true, true);
        if self.is_stored() {
            self.transport.finish();
            self.read -= self.waiting.payload();
            self.waiting = Waiting::default();
            self.reader = Reader::new(self.config);
            return;
        }
        while let Some(Piece::Bytes(bytes)) = self.feed.waiting() {
            if self.take(&bytes).is_err() {
                break;
            }
        }
        self.transport.finish();
        // After a stop, errors in the last bytes do not matter.
        let _ = self.reader.finish();
    }

    fn refuse(&mut self, _reason: &str) {
        self.cut();
    }

    async fn close(&mut self, _reason: Option<&str>) {}

    fn is_patient(&self) -> bool {
        self.is_patient
    }

    fn counters(&self) -> Counters {
        Counters::of_media(self.bytes.clone(), self.transport.clone())
    }
}

fn unreadable(error: ReadError) -> Error {
    Error::failed(format!("cannot read the rest of the input: {error}"))
}

/// Waits until this moment, if there is one.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => pending().await,
    }
}

/// The result of waiting for the feed.
enum Next {
    Piece(Option<Piece>),
    /// No data has arrived until this time.
    Silence(Time),
    /// The same, for less than a silence.
    Wakeup(Time),
}

impl Pace {
    /// The present arrival time of data from a live source; zero for a file.
    fn arrival(&self) -> Time {
        match self {
            Self::Stored { .. } => Time::ZERO,
            Self::Live { epoch } => Time::ZERO + now().saturating_duration_since(*epoch).into(),
        }
    }

    /// Converts a time of the source to this host's clock.
    fn instant_of(&mut self, source_time: Time) -> Instant {
        match self {
            Self::Stored { start, speed } => {
                let start = *start.get_or_insert_with(now);
                let after = Duration::from(source_time.saturating_since(Time::ZERO));
                start + after.div_f64(*speed)
            }
            Self::Live { epoch } => *epoch + source_time.saturating_since(Time::ZERO).into(),
        }
    }

    /// The entry for a unit that is incomplete at the source.
    fn miss(&mut self, unit: &MissingUnit) -> (Instant, Missing) {
        let source_time = self.instant_of(unit.source_time);
        let missing = Missing {
            stream: StreamId(unit.stream),
            id: SectionId(unit.number),
            count: 1,
            kind: None,
            reason: MissingReason::Source,
            length: None,
            missing_bytes: None,
            source_time: Some(source_time),
        };
        (source_time, missing)
    }

    /// Converts a section to this host's clock.
    fn lay(&mut self, section: MediaSection) -> MediaUnit {
        let deadline = Duration::from(section.deadline);
        let source_time = self.instant_of(section.source_time);
        let due = match self {
            Self::Stored { speed, .. } => Due::AfterLatency(deadline.div_f64(*speed)),
            Self::Live { .. } => Due::Live {
                more: deadline,
                arriving: now().saturating_duration_since(source_time),
            },
        };
        MediaUnit::new(section, source_time, due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_media::{FrameType, Header, Times, TsWriter, Unit, WriterConfig};
    use comity_units::Rate;
    use tokio::sync::mpsc;

    /// A program of one second beside one of four seconds. The multiplexer wrote the last sound of
    /// the first at the end of the file.
    #[test]
    fn late_data_in_a_file_gets_the_time_of_its_reading_position() {
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut bytes = Vec::new();
        let mut unit = |pid: u16, millis: u64| {
            let header = Header::Unit(Unit {
                pid,
                stream_type: 0x81,
                stream_id: 0xbd,
                frame: FrameType::Audio,
                times: Times::Presentation(90 * millis),
                random_access: false,
                discontinuity: false,
                aligned: false,
            });
            let mut payload = Vec::new();
            header.encode(&mut payload);
            payload.extend([7; 100]);
            writer.write(&payload, &mut bytes).unwrap();
        };
        for millis in (0..4_000).step_by(40) {
            unit(0x100, millis);
            if millis < 1_000 {
                unit(0x101, millis);
            }
        }
        unit(0x101, 1_000);
        writer.finish(&mut bytes);
        let (pieces, feed) = mpsc::channel(2);
        pieces.try_send(Piece::Bytes(bytes)).unwrap();
        pieces.try_send(Piece::End).unwrap();
        let mut input = MediaInput::stored(feed.into(), 100.0, ReaderConfig::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        let times: Vec<(u16, u64, Instant)> = runtime.unwrap().block_on(async {
            let mut times = Vec::new();
            while let Some(SourceItem::Unit(unit)) = input.next().await.unwrap() {
                times.push((unit.stream.0, unit.id.0, unit.source_time));
            }
            times
        });
        let start = times[0].2;
        let at = |stream, number| {
            let found = times
                .iter()
                .find(|time| (time.0, time.1) == (stream, number));
            found.unwrap().2 - start
        };
        // At a hundred times its pace.
        for number in 0..25 {
            let exact = Duration::from_micros(400 * number);
            assert_eq!((at(1, number), at(2, number)), (exact, exact));
        }
        assert_eq!(at(1, 99), Duration::from_micros(39_600));
        assert_eq!(at(2, 25), Duration::from_micros(29_600));
    }

    #[test]
    fn sections_that_are_not_due_do_not_count_as_read() {
        let mut writer = TsWriter::new(WriterConfig::default());
        let mut file = Vec::new();
        for millis in (0..4_000).step_by(40) {
            let header = Header::Unit(Unit {
                pid: 0x100,
                stream_type: 0x81,
                stream_id: 0xbd,
                frame: FrameType::Audio,
                times: Times::Presentation(90 * millis),
                random_access: false,
                discontinuity: false,
                aligned: false,
            });
            let mut payload = Vec::new();
            header.encode(&mut payload);
            payload.extend([7; 20_000]);
            writer.write(&payload, &mut file).unwrap();
        }
        writer.finish(&mut file);
        let (pieces, feed) = mpsc::channel(64);
        for piece in file.chunks(64 << 10) {
            pieces.try_send(Piece::Bytes(piece.to_vec())).unwrap();
        }
        pieces.try_send(Piece::End).unwrap();
        let mut input = MediaInput::stored(feed.into(), 100.0, ReaderConfig::default());
        let bytes = input.bytes.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            let mut given = 0;
            while let Some(SourceItem::Unit(unit)) = input.next().await.unwrap() {
                given += unit.payload.len() as u64;
                // The container takes 3 %, and the last section may be partly read.
                let counted = bytes.load(Ordering::Relaxed);
                let most = given + 20_000 + file.len() as u64 / 25;
                assert!((given..most).contains(&counted), "{counted} of {given}");
            }
            assert!(given > 100 * 20_000);
        });
        assert_eq!(bytes.load(Ordering::Relaxed), file.len() as u64);
    }

    /// A slow path with full reliability, or a slow reader behind a relay, holds the source back.
    #[test]
    fn a_late_reader_does_not_extend_the_read_ahead() {
        // At 100 Mb/s, one second has 12.5 MB, and a lag of ten seconds exceeds 32 MiB by far.
        let config = ReaderConfig {
            assumed_rate: Rate::from_mbps(100),
            ..ReaderConfig::default()
        };
        let (pieces, feed) = mpsc::channel(1);
        let source = std::thread::spawn(move || {
            let piece = || Piece::Bytes(vec![7; 64 << 10]);
            while pieces.blocking_send(piece()).is_ok() {}
        });
        let mut input = MediaInput::stored(feed.into(), 1.0, config);
        let start = now().checked_sub(Duration::from_secs(10));
        input.pace = Pace::Stored { start, speed: 1.0 };
        // As if a section had just arrived.
        input.waiting.furthest = start;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            let mut kinds = Vec::new();
            for _ in 0..100 {
                if let SourceItem::Notice(notice) = input.next().await.unwrap().unwrap() {
                    kinds.push(notice.kind);
                }
                // One second, the piece that completes it, and the overhead of each section.
                assert!(input.waiting.bytes < 14_000_000, "{}", input.waiting.bytes);
            }
            assert_eq!(kinds, ["format"]);
            assert!(input.waiting.bytes > 12_000_000, "{}", input.waiting.bytes);
        });
        drop(input);
        source.join().unwrap();
    }

    #[test]
    fn read_ahead_is_limited_in_bytes() {
        // Reading a second ahead would take 1.25 GB.
        let config = ReaderConfig {
            assumed_rate: Rate::from_mbps(10_000),
            ..ReaderConfig::default()
        };
        let (pieces, feed) = mpsc::channel(1);
        let source = std::thread::spawn(move || {
            let mut sent = 0;
            while pieces
                .blocking_send(Piece::Bytes(vec![7; 64 << 10]))
                .is_ok()
            {
                sent += 64 << 10;
            }
            sent
        });
        let mut input = MediaInput::stored(feed.into(), 1.0, config);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(async {
            let mut notices = Vec::new();
            for _ in 0..100 {
                match input.next().await.unwrap().unwrap() {
                    SourceItem::Notice(notice) => notices.push(notice),
                    SourceItem::Unit(_) => {}
                    SourceItem::Missing(missing) => panic!("{missing:?}"),
                }
            }
            let kinds: Vec<_> = notices.iter().map(|notice| notice.kind).collect();
            assert_eq!(kinds, ["format", "full"]);
            let text = &notices[1].text;
            assert!(text.contains("which hold 0.03 s of it"), "{text}");
        });
        assert!(input.waiting.bytes < READ_AHEAD + (512 << 10));
        drop(input);
        let sent: usize = source.join().unwrap();
        assert!(
            (READ_AHEAD..READ_AHEAD + (8 << 20)).contains(&sent),
            "{sent}"
        );
    }
}
