//! Reads bytes, in pieces of any size, as sections.

mod cadence;
mod config;
mod counter;
mod demux;
mod elementary;
mod error;
mod framing;
mod pes;
mod pictures;
mod program;
mod slices;
mod sound;
mod steps;
mod stream;
mod tables;
mod transport;
mod unit;

use std::collections::VecDeque;

use comity_units::{Span, Time};

use crate::header::PACKET;
use crate::section::{Event, Notice};
pub use config::{Damaged, ReaderConfig};
use elementary::Elementary;
pub use error::ReadError;
use error::Stop;
use framing::{RUN, STRIDES, SYNC, rhythm};
use slices::Slicer;
use transport::Transport;

/// Reads a transport stream, or an MPEG-1 or MPEG-2 elementary stream, as sections.
///
/// [`push`](Self::push) accepts bytes, [`poll`](Self::poll) returns sections and notices, and
/// [`finish`](Self::finish) ends the source. The same bytes produce the same events, however they
/// are split.
///
/// Units are pictures and audio frames, cut at their beginnings, regardless of where PES packets
/// begin. The time stamps of a PES packet belong to the first unit that begins in it. The times of
/// later audio frames in the packet follow from their samples. Later pictures in the packet have no
/// time stamps. Their time follows from the interval between the latest two time stamps.
///
/// The time of a section of a stored source is its decoding time. A section without one has the
/// latest time of its program. If the program had no time stamp for 250 ms, its clock references
/// apply. The times continue where time stamps jump or wrap. The time of a section of a live source
/// is its [arrival](Self::push_arrived); with layouts, it is the arrival of the section's first
/// packet. The source's own times only order its sections.
///
/// Missing parts of a stream are reported: a dropped unit has a number in an [`Event::Missing`],
/// and a [`Notice`] counts bytes between packets. A source of an unknown format is cut into slices
/// of bytes, by the [assumed rate](ReaderConfig::assumed_rate) or by their
/// [arrival](Self::push_arrived). The same applies to any source that is
/// [opaque](ReaderConfig::opaque). A source that becomes unreadable ends with a [`ReadError`].
///
/// Some PES packets of video do not contain their length. Their picture ends with a transport
/// packet that has stuffing, once the stream has had 8 PES packets without stuffing inside. Before
/// that, or if the last transport packet is exactly full, it ends when the next picture begins, one
/// frame interval later. It also ends once the other streams have advanced by one second. If PES
/// packets contain their length, pictures end with their PES packets after the first 8. A PES
/// packet that is longer than all before it may contain only a part of a picture, so its picture
/// ends with the next one. Headers without a picture always belong to the next picture.
///
/// ```
/// use comity_media::{Event, Notice, Reader, ReaderConfig};
///
/// let mut reader = Reader::new(ReaderConfig::default());
/// reader.push(b"certainly no film")?;
/// reader.finish()?;
/// assert_eq!(reader.poll(), Some(Event::Notice(Notice::UnknownFormat)));
/// let Some(Event::Section(section)) = reader.poll() else { panic!() };
/// assert!(section.payload.ends_with(b"no film"));
/// assert_eq!(reader.poll(), None);
/// # Ok::<(), comity_media::ReadError>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    config: ReaderConfig,
    source: Source,
    /// The arrival of the latest bytes of a live source.
    arrival: Option<Time>,
    /// The arrival of the first bytes of a live source of an unknown format.
    began: Option<Time>,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum Source {
    /// These bytes are too few to determine the format.
    Unknown(Vec<u8>),
    Transport(Box<Transport>),
    Elementary(Box<Elementary>),
    Slices(Box<Slicer>),
    Failed(ReadError),
}

impl Reader {
    /// Creates a reader at the beginning of its source.
    pub fn new(config: ReaderConfig) -> Self {
        Self {
            config,
            source: Source::Unknown(Vec::new()),
            arrival: None,
            began: None,
            events: VecDeque::new(),
        }
    }

    /// Adds the next bytes of a live source, which arrived at `arrival`.
    ///
    /// # Errors
    /// Like [`push`](Self::push).
    pub fn push_arrived(&mut self, bytes: &[u8], arrival: Time) -> Result<(), ReadError> {
        self.arrival = self.arrival.max(Some(arrival));
        self.push(bytes)
    }

    /// Handles a silence of a live source: nothing more has arrived up to `now`, for a time longer
    /// than any pause within a picture. Returns the data that would otherwise wait for the next
    /// bytes. For a transport stream with layouts, this includes the packets of incomplete units.
    ///
    /// # Errors
    /// Like [`push`](Self::push).
    pub fn on_silence(&mut self, now: Time) -> Result<(), ReadError> {
        self.arrival = self.arrival.max(Some(now));
        let from = self.events.len();
        let read = match &mut self.source {
            // A stray datagram may precede a transport stream.
            Source::Unknown(start) if start.len() < SNIFFED => Ok(()),
            Source::Unknown(_) => self.recognise(),
            Source::Transport(transport) => {
                transport.on_silence(now, &mut self.events);
                Ok(())
            }
            Source::Slices(slicer) => {
                slicer.finish(&mut self.events);
                Ok(())
            }
            Source::Elementary(_) | Source::Failed(_) => Ok(()),
        };
        self.time_by_arrival(from);
        read
    }

    /// When to call [`on_wakeup`](Self::on_wakeup) if no bytes of a live source arrive before.
    pub fn next_wakeup(&self) -> Option<Time> {
        match &self.source {
            Source::Transport(transport) => transport.next_wakeup(),
            _ => None,
        }
    }

    /// Returns the layout of a live source's packets that have waited until `now` for more. Unlike
    /// in a [silence](Self::on_silence), incomplete units still wait.
    pub fn on_wakeup(&mut self, now: Time) {
        self.arrival = self.arrival.max(Some(now));
        if let Source::Transport(transport) = &mut self.source {
            transport.wake(now, &mut self.events);
        }
    }

    /// The progress of a transport stream or an elementary stream by its own times, without jumps.
    pub fn progress(&mut self) -> Span {
        match &mut self.source {
            Source::Transport(transport) => transport.progress(),
            Source::Elementary(elementary) => elementary.progress(),
            Source::Unknown(_) | Source::Slices(_) | Source::Failed(_) => Span::ZERO,
        }
    }

    /// Adds the next bytes of the source.
    ///
    /// # Errors
    /// A [`ReadError`] if the source cannot be read further; all later calls return it too.
    /// [`poll`](Self::poll) still returns the earlier output.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let from = self.events.len();
        let read = self.read(bytes);
        self.time_by_arrival(from);
        read
    }

    /// Sets the times of a live source's sections from this event on to the arrival of its latest
    /// bytes. Sections of a transport stream already have their times.
    fn time_by_arrival(&mut self, from: usize) {
        let Some(arrival) = self.arrival else { return };
        if matches!(self.source, Source::Transport(_)) {
            return;
        }
        for event in self.events.range_mut(from..) {
            event.set_source_time(arrival);
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let result = match &mut self.source {
            Source::Unknown(start) if self.config.opaque => {
                start.extend(bytes);
                return self.read_as(Format::Opaque);
            }
            Source::Unknown(start) => {
                if start.is_empty() {
                    self.began = self.arrival;
                }
                start.extend(bytes);
                let waited = match (self.arrival, self.began) {
                    (Some(now), Some(began)) => now.saturating_since(began),
                    _ => Span::ZERO,
                };
                if start.len() < SNIFFED {
                    return Ok(());
                } else if start.len() >= MAX_SNIFFED || waited >= self.config.slice / 2 {
                    return self.recognise();
                } else if let Some(format) = recognise(start) {
                    return self.read_as(format);
                }
                Ok(())
            }
            Source::Transport(transport) => transport.push(bytes, self.arrival, &mut self.events),
            Source::Elementary(elementary) => elementary.push(bytes, &mut self.events),
            Source::Slices(slicer) => {
                slicer.push(bytes, self.arrival, &mut self.events);
                Ok(())
            }
            Source::Failed(error) => return Err(*error),
        };
        self.go_on(result)
    }

    /// Ends the source, and returns the units that the reader still holds. The reader then starts
    /// again, with new numbers and times.
    ///
    /// # Errors
    /// Like [`push`](Self::push).
    pub fn finish(&mut self) -> Result<(), ReadError> {
        let from = self.events.len();
        let began = match self.source {
            Source::Unknown(_) => self.recognise(),
            _ => Ok(()),
        };
        let events = &mut self.events;
        let result = match &mut self.source {
            Source::Unknown(_) => Ok(()),
            Source::Transport(transport) => transport.finish(events),
            Source::Elementary(elementary) => elementary.finish(events),
            Source::Slices(_) => Ok(()),
            Source::Failed(error) => Err(Stop::Failed(*error)),
        };
        let result = self.go_on(result);
        if let Source::Slices(slicer) = &mut self.source {
            slicer.finish(&mut self.events);
        }
        self.time_by_arrival(from);
        self.source = Source::Unknown(Vec::new());
        began.and(result)
    }

    /// The next section or notice, in the order of the source.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn go_on(&mut self, result: Result<(), Stop>) -> Result<(), ReadError> {
        match result {
            Ok(()) => Ok(()),
            Err(Stop::Unknown(bytes)) => {
                self.source = Source::Unknown(bytes);
                self.read_as(Format::Unknown)
            }
            Err(Stop::Failed(error)) => {
                self.source = Source::Failed(error);
                Err(error)
            }
        }
    }

    /// Determines the format from the available bytes.
    fn recognise(&mut self) -> Result<(), ReadError> {
        let Source::Unknown(start) = &self.source else {
            return Ok(());
        };
        if start.is_empty() {
            return Ok(());
        }
        let start = start.get(..MAX_SNIFFED).unwrap_or(start);
        let format = recognise(start).or_else(|| recognise_short(start));
        self.read_as(format.unwrap_or(Format::Unknown))
    }

    fn read_as(&mut self, format: Format) -> Result<(), ReadError> {
        let Source::Unknown(start) = &mut self.source else {
            return Ok(());
        };
        let start = core::mem::take(start);
        self.source = match format {
            Format::Transport(stride) => {
                Source::Transport(Box::new(Transport::new(self.config, stride)))
            }
            Format::Elementary => Source::Elementary(Box::new(Elementary::new(self.config))),
            Format::Opaque => Source::Slices(Box::new(Slicer::new(&self.config))),
            Format::Unknown => {
                self.events.push_back(Event::Notice(Notice::UnknownFormat));
                Source::Slices(Box::new(Slicer::new(&self.config)))
            }
        };
        self.read(&start)
    }
}

/// The number of bytes that may determine the format: five packets, after the rest of a sixth.
const SNIFFED: usize = 6 * PACKET;

/// The number of bytes after which the format must be determined. They contain five consecutive
/// packets even if the beginning of a transport stream is broken. For a live source with
/// [`SNIFFED`] bytes, the limit is also half of a slice's duration.
const MAX_SNIFFED: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Packets this many bytes apart.
    Transport(usize),
    Elementary,
    Unknown,
    /// The format does not matter.
    Opaque,
}

/// Recognises the format. An elementary stream begins with a sequence header. A transport stream
/// has five consecutive sync bytes at distances of 188, 192 or 204 bytes; in random bytes, this
/// occurs once in 10^11 positions. `None` if neither is found.
///
/// A sequence header at a later position is ignored: other container formats contain one too, and
/// cannot be read from there.
fn recognise(start: &[u8]) -> Option<Format> {
    let zeros = start.iter().take_while(|&&byte| byte == 0).count();
    let code = start.get(zeros..).unwrap_or_default();
    if zeros >= 2 && code.starts_with(&[0x01, crate::codec::Headers::SEQUENCE]) {
        return Some(Format::Elementary);
    }
    let syncs = start.iter().enumerate().filter(|&(_, &byte)| byte == SYNC);
    let runs = syncs.flat_map(|(at, _)| {
        let run = start.get(at..).unwrap_or_default();
        let is_run = move |stride: &usize| rhythm(run, *stride, RUN) == (RUN, RUN);
        { STRIDES.into_iter().filter(is_run) }.map(move |stride| (at + (RUN - 1) * stride, stride))
    });
    // The run that is complete first wins, so that the result does not depend on the amount of data
    // after it.
    runs.min().map(|(_, stride)| Format::Transport(stride))
}

/// Recognises a source that ends before five packets. It is a transport stream if all of its
/// packets begin with a sync byte: at least one at its beginning, or two after the rest of a
/// packet.
fn recognise_short(start: &[u8]) -> Option<Format> {
    let is_whole = |offset: &usize| {
        let mut syncs = start.iter().skip(*offset).step_by(PACKET).take(RUN);
        let packets = (start.len() - offset) / PACKET;
        packets > usize::from(*offset > 0) && syncs.all(|&byte| byte == SYNC)
    };
    let offsets = 0..PACKET.min(start.len());
    { offsets }
        .find(is_whole)
        .map(|_| Format::Transport(PACKET))
}
