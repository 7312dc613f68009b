//! Media bytes over one connection, for a host that makes its own connections.

use std::time::{Duration, Instant};

use comity::parts::Time;
use comity::{Connection, Item, SectionId, StreamId};
use comity_media::{Event, MediaSection, ReadError, Reader, ReaderConfig, TsWriter, WriterConfig};

use crate::clock::now;
use crate::counters::ConnectionId;
use crate::joining::Background;
use crate::peer::Peer;
use crate::subscriber::{Subscriber, Unreached};
use crate::unit::{Due, MediaUnit};

/// Sends the bytes of a live source over a connection, as [`Relay`](crate::Relay) does: with the
/// times of their arrival, and with frames shed above the offered rate.
///
/// Differs from a relay in two ways: the host makes another connection after this one is lost, and
/// the last picture of a source that pauses waits for the next bytes or for
/// [`finish`](Self::finish).
#[derive(Debug)]
pub struct MediaSender {
    reader: Reader,
    began: Instant,
    subscriber: Subscriber,
    unreached: Unreached,
}

impl MediaSender {
    /// A sender at the beginning of its source.
    pub fn new(connection: Connection) -> Self {
        let began = now();
        let peer = Peer::new(ConnectionId::default(), connection, false);
        let config = ReaderConfig {
            // Every receiver that supports layouts gets them.
            layouts: true,
            ..ReaderConfig::default()
        };
        Self {
            reader: Reader::new(config),
            began,
            subscriber: Subscriber::new(began, peer, &Background::default(), false, true),
            unreached: Unreached::default(),
        }
    }

    /// Accepts the next bytes of the source, which have just arrived. Returns `false`, without any
    /// effect, while earlier sections wait for room in the send buffer.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the source cannot be read further. Its earlier sections are sent.
    pub fn push(&mut self, bytes: &[u8]) -> Result<bool, ReadError> {
        if !self.flush() {
            return Ok(false);
        }
        let arrival = Time::ZERO + now().saturating_duration_since(self.began).into();
        let read = self.reader.push_arrived(bytes, arrival);
        self.submit();
        read.map(|()| true)
    }

    /// Ends the source: its last sections are sent, or wait for room.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn finish(&mut self) -> Result<(), ReadError> {
        let read = self.reader.finish();
        self.submit();
        read
    }

    /// Submits sections that wait while there is room. Returns whether none waits any more.
    pub fn flush(&mut self) -> bool {
        self.subscriber.flush(&mut self.unreached);
        self.subscriber.behind() == 0
    }

    /// Submits all sections that wait. Cancel safe: dropping the call before it completes loses
    /// nothing.
    pub async fn flush_all(&mut self) {
        self.subscriber.flush_all(&mut self.unreached).await;
    }

    /// The length of the section that waits for room first; `None` if none waits.
    pub fn waiting_length(&self) -> Option<usize> {
        self.subscriber.waiting_length()
    }

    fn submit(&mut self) {
        while let Some(event) = self.reader.poll() {
            match event {
                Event::Section(section) => {
                    let unit = self.unit(section);
                    self.subscriber.queue(&unit, &mut self.unreached);
                }
                Event::Missing(unit) => {
                    let (stream, id) = (StreamId(unit.stream), SectionId(unit.number));
                    self.subscriber.skip(stream, id, 1);
                }
                Event::Notice(_) => {}
            }
        }
    }

    fn unit(&self, section: MediaSection) -> MediaUnit {
        let since = Duration::from(section.source_time.saturating_since(Time::ZERO));
        let source_time = self.began + since;
        let due = Due::Live {
            more: section.deadline.into(),
            arriving: now().saturating_duration_since(source_time),
        };
        MediaUnit::new(section, source_time, due)
    }
}

/// Turns the items of a connection into the bytes of the media that a [`MediaSender`] or
/// `comity send` sent.
///
/// A transport stream is restored byte for byte if the connection has
/// [`LAYOUT_FEATURE`](comity_media::LAYOUT_FEATURE). The bytes of sections that are not media
/// follow each other unchanged.
#[derive(Debug)]
pub struct MediaReceiver {
    writer: TsWriter,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Unknown,
    Media,
    /// The first section was not media.
    Plain,
}

impl Default for MediaReceiver {
    fn default() -> Self {
        Self {
            writer: TsWriter::new(WriterConfig::default()),
            form: Form::Unknown,
        }
    }
}

impl MediaReceiver {
    /// Appends the bytes that an item gives to `out`. In a stream of media, other sections give
    /// none.
    pub fn push(&mut self, item: Item, out: &mut Vec<u8>) {
        match item {
            Item::Section(section) => {
                let (stream, number) = (section.stream.0, section.id.0);
                let writer = &mut self.writer;
                let is_media = self.form != Form::Plain
                    && writer
                        .write_section(stream, number, &section.payload, out)
                        .is_ok();
                self.form = match (self.form, is_media) {
                    (Form::Unknown, false) => Form::Plain,
                    (Form::Unknown, true) => Form::Media,
                    (form, _) => form,
                };
                if self.form == Form::Plain {
                    out.extend_from_slice(&section.payload);
                }
            }
            Item::Gap(gap) if self.form == Form::Media => {
                self.writer.miss(gap.stream.0, gap.id.0, gap.count, out);
            }
            Item::Gap(_) => {}
        }
    }

    /// Adds the bytes that waited for further items to `out`, after the last item.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.writer.finish(out);
    }
}
