//! From bytes, in whatever pieces they come, to sections.

mod cadence;
mod demux;
mod elementary;
mod framing;
mod pes;
mod pictures;
mod program;
mod slices;
mod sound;
mod transport;

use core::fmt;
use std::collections::VecDeque;

use comity_units::{Bytes, Rate, Span, Time};

use crate::header::PACKET;
use crate::section::{Event, Notice};
use comity_frames::DeadlineRule;
use demux::STILL;
use elementary::Elementary;
use framing::{RUN, SEARCHED, STRIDES, rhythm};
use slices::Slicer;
use transport::Transport;

/// How a [`Reader`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderConfig {
    /// Which deadlines pictures get.
    pub deadlines: DeadlineRule,
    /// How long a slice of what is not understood lasts; half of it is how long at the most a live
    /// source is looked at before it is taken for nothing that is understood (20 ms).
    pub slice: Span,
    /// How fast a stored source that is not understood is assumed to be (4 Mb/s).
    pub assumed_rate: Rate,
    /// After which time a table that has not changed is retransmitted, for receivers that lost it
    /// (1 s).
    pub table_refresh: Span,
    /// The longest access unit, and the memory that each stream may take (16 MiB).
    pub longest_unit: Bytes,
}

impl Default for ReaderConfig {
    fn default() -> Self {
        Self {
            deadlines: DeadlineRule::Each,
            slice: Span::from_millis(20),
            assumed_rate: Rate::from_mbps(4),
            table_refresh: Span::from_secs(1),
            longest_unit: Bytes::new(16 << 20),
        }
    }
}

/// Why a source cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// A transport stream has no packet for more than 1,048,576 bytes.
    NoPacket {
        /// Where the first of them stands in the source.
        at: u64,
        /// What stands there, in the place of a sync byte.
        found: u8,
    },
    /// A transport stream has no time stamp and no clock reference that goes on, in 8,388,608 bytes
    /// of its streams.
    NoTime {
        /// Where the last of these packets stands in the source.
        at: u64,
    },
    /// No picture of an elementary stream ends within as many bytes as an access unit may have.
    NoPicture {
        /// Where the first of them stands in the source.
        at: u64,
        /// How many were searched.
        bytes: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPacket { at, found } => write!(
                out,
                "transport stream, byte {at}: found {found:#04x} and no packet in the {SEARCHED} bytes from there, \
                 expected 0x47 at the beginning of each packet"
            ),
            Self::NoTime { at } => write!(
                out,
                "transport stream, byte {at}: found no time stamp (PTS) and no clock reference (PCR) that goes on in the \
                 {STILL} bytes of its streams up to there, expected one every 700 ms"
            ),
            Self::NoPicture { at, bytes } => write!(
                out,
                "MPEG video, byte {at}: found no end of a picture in the {bytes} bytes from there, expected one"
            ),
        }
    }
}

impl core::error::Error for ReadError {}

/// Why a source is not read on as what it was taken for.
enum Stop {
    /// It is something else, and nothing was given of it: all of its bytes.
    Unknown(Vec<u8>),
    Failed(ReadError),
}

/// Reads a transport stream, or an MPEG-1 or MPEG-2 elementary stream, as sections.
///
/// Bytes go in by [`push`](Self::push) as they come, sections and notices come out of
/// [`poll`](Self::poll), and [`finish`](Self::finish) says that no more will come. The same bytes
/// give the same events, however they are cut.
///
/// Units are pictures and frames of sound, cut where they begin, wherever PES packets do. The time
/// stamps of a PES packet are those of the first unit that begins in it. Frames of sound behind
/// that follow by their samples; pictures behind it keep without stamps, and their time follows by
/// the interval between the latest two stamps.
///
/// The time of a section is its decoding time. What has none has the latest of its program, or,
/// where that had none for 250 ms, goes by the clock references of the program. Stamps that jump or
/// wrap are gone on with.
///
/// What is missing of a stream is named: a unit that is left out has a number in an
/// [`Event::Missing`], and bytes between packets are counted in a [`Notice`]. A source that is not
/// understood from its beginning on is cut into slices of bytes, by the [assumed
/// rate](ReaderConfig::assumed_rate) or by their [arrival](Self::push_arrived). One that cannot be
/// read any more ends with a [`ReadError`].
///
/// A picture whose PES packet does not say how long it is is given with the transport packet that
/// is filled up behind it, in a stream in which 8 PES packets have come and none was filled up
/// within; before that, and where the last packet is just full, when the next picture begins, one
/// frame interval later, or when the other streams have gone on by a second.
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
    /// When the latest bytes came, of a live source.
    arrival: Option<Time>,
    /// When the first bytes came of a live source whose format is not known.
    began: Option<Time>,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum Source {
    /// What it is cannot be said from these bytes yet.
    Unknown(Vec<u8>),
    Transport(Box<Transport>),
    Elementary(Box<Elementary>),
    Slices(Box<Slicer>),
    Failed(ReadError),
}

impl Reader {
    /// A reader at the beginning of its source.
    pub fn new(config: ReaderConfig) -> Self {
        Self {
            config,
            source: Source::Unknown(Vec::new()),
            arrival: None,
            began: None,
            events: VecDeque::new(),
        }
    }

    /// Takes the next bytes of a live source, which came at `arrival`.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn push_arrived(&mut self, bytes: &[u8], arrival: Time) -> Result<(), ReadError> {
        self.arrival = self.arrival.max(Some(arrival));
        self.push(bytes)
    }

    /// Takes the next bytes of the source.
    ///
    /// # Errors
    /// A [`ReadError`] when the source cannot be read any further, now and for all that follows.
    /// What was read of it before comes out of [`poll`](Self::poll).
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ReadError> {
        let result = match &mut self.source {
            Source::Unknown(start) => {
                if start.is_empty() {
                    self.began = self.arrival;
                }
                start.extend(bytes);
                let waited = match (self.arrival, self.began) {
                    (Some(now), Some(began)) => now.saturating_since(began),
                    _ => Span::ZERO,
                };
                if start.len() >= MAX_SNIFFED || waited >= self.config.slice / 2 {
                    return self.recognise();
                } else if start.len() >= SNIFFED
                    && let Some(format) = recognise(start)
                {
                    return self.read_as(format);
                }
                Ok(())
            }
            Source::Transport(transport) => transport.push(bytes, &mut self.events),
            Source::Elementary(elementary) => elementary.push(bytes, &mut self.events),
            Source::Slices(slicer) => {
                slicer.push(bytes, self.arrival, &mut self.events);
                Ok(())
            }
            Source::Failed(error) => return Err(*error),
        };
        self.go_on(result)
    }

    /// Says that the source has ended: what is held is given. The reader then is at the beginning
    /// of a source again, with numbers and times that begin anew.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self) -> Result<(), ReadError> {
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

    /// Decides by what there is.
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
            Format::Unknown => {
                self.events.push_back(Event::Notice(Notice::UnknownFormat));
                Source::Slices(Box::new(Slicer::new(&self.config)))
            }
        };
        self.push(&start)
    }
}

/// The first byte of a transport packet.
const SYNC: u8 = 0x47;

/// How many bytes may tell the format: five packets, behind the rest of a sixth.
const SNIFFED: usize = 6 * PACKET;

/// With so many bytes a source of no known format is taken for what it is: whatever is broken at
/// the beginning of a transport stream, five packets in a row are to be found in them. A live
/// source is waited for half as long as a slice lasts.
const MAX_SNIFFED: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Packets that stand so far apart.
    Transport(usize),
    Elementary,
    Unknown,
}

/// An elementary stream begins with a sequence header, a transport stream has a sync byte every
/// 188, 192 or 204 bytes somewhere, five times: in random bytes that is found once in 10^11 places.
/// `None` while neither is seen.
///
/// A sequence header further on is not looked for: containers of other kinds have one, too, and
/// what stands before it is what they are read by.
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
    // The run that is whole first, so that the answer does not hang on how much is there beside it.
    runs.min().map(|(_, stride)| Format::Transport(stride))
}

/// A source that ends before five packets are seen is a transport stream if all begin with a sync
/// byte: one that it begins with itself, or two and more behind the rest of a packet.
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
