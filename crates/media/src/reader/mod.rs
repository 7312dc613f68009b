//! From bytes, in whatever pieces they come, to sections.

mod cadence;
mod demux;
mod elementary;
mod framing;
mod pes;
mod pictures;
mod slices;
mod sound;
mod tempo;
mod transport;

use std::collections::VecDeque;

use comity_units::{Bytes, Rate, Span, Time};

use crate::header::PACKET;
use crate::section::{Event, Notice};
use comity_frames::DeadlineRule;
use elementary::{Elementary, Unpictured};
use framing::{RUN, STRIDES, rhythm};
use slices::Slicer;
use transport::Transport;

/// How a [`Reader`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderConfig {
    /// Which deadlines pictures get.
    pub deadlines: DeadlineRule,
    /// How long a slice of what is not understood lasts; half of it is how long at the most a live source is looked at before it is
    /// taken for nothing that is understood (20 ms).
    pub slice: Span,
    /// How fast a stored source that is not understood, or whose times do not move, is assumed to be (4 Mb/s).
    pub assumed_rate: Rate,
    /// After which time a table that has not changed is sent again, for receivers that lost it (1 s).
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

/// Reads a transport stream, or an MPEG-1 or MPEG-2 elementary stream, as sections.
///
/// Bytes go in by [`push`](Self::push) as they come, sections and notices come out of
/// [`poll`](Self::poll), and [`finish`](Self::finish) says that no more will come. The same bytes give the same
/// events, however they are cut.
///
/// Units are pictures and frames of sound, cut where they begin, wherever PES packets do. The time stamps of a PES packet are
/// those of the first unit that begins in it. Frames of sound behind that follow by their samples; pictures behind it
/// keep without stamps, and their time follows by the interval between the latest two stamps.
///
/// The time of a section is its decoding time. Where time stamps are missing, stand still or run backwards, time
/// goes by the first of these that moves, and a [`Notice::Untimed`] says which: the stamps of the program's other
/// streams; its clock references; when the bytes came, of a live source
/// ([`push_arrived`](Self::push_arrived)); or how many bytes came, at the
/// [assumed rate](ReaderConfig::assumed_rate). Stamps that jump or wrap are gone on with.
///
/// Nothing that is read is an error: what is not understood is sent in slices, as are the bytes of a transport stream in
/// which no packet is found for longer than 12,032 bytes; what else is broken is left out; and a [`Notice`] says so. A unit that is left out has a number,
/// which an [`Event::Missing`] names.
///
/// A picture whose PES packet does not say how long it is is given with the transport packet that is filled up behind it, in a stream in
/// which 8 PES packets have come and none was filled up within; before that, and where the last packet is just full, when the next
/// picture begins, one frame interval later.
///
/// ```
/// use comity_media::{Event, Notice, Reader, ReaderConfig};
///
/// let mut reader = Reader::new(ReaderConfig::default());
/// reader.push(b"certainly no film");
/// reader.finish();
/// assert_eq!(reader.poll(), Some(Event::Notice(Notice::UnknownFormat)));
/// let Some(Event::Section(section)) = reader.poll() else { panic!() };
/// assert!(section.payload.ends_with(b"no film"));
/// assert_eq!(reader.poll(), None);
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
    pub fn push_arrived(&mut self, bytes: &[u8], arrival: Time) {
        self.arrival = self.arrival.max(Some(arrival));
        self.push(bytes);
    }

    /// Takes the next bytes of the source.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.source {
            Source::Unknown(start) => {
                if start.is_empty() {
                    self.began = self.arrival;
                }
                start.extend(bytes);
                let waited = match (self.arrival, self.began) {
                    (Some(now), Some(began)) => now.saturating_since(began),
                    _ => Span::ZERO,
                };
                if start.len() >= MOST_SNIFFED || waited >= self.config.slice / 2 {
                    self.recognise();
                } else if start.len() >= SNIFFED
                    && let Some(format) = recognise(start)
                {
                    self.read_as(format);
                }
            }
            Source::Transport(transport) => transport.push(bytes, self.arrival, &mut self.events),
            Source::Elementary(elementary) => {
                if let Err(left) = elementary.push(bytes, &mut self.events) {
                    self.slice(&left);
                }
            }
            Source::Slices(slicer) => slicer.push(bytes, self.arrival, &mut self.events),
        }
    }

    /// Says that the source has ended: what is held is given. The reader then is at the beginning of a source
    /// again, with numbers and times that begin anew.
    pub fn finish(&mut self) {
        if matches!(self.source, Source::Unknown(_)) {
            self.recognise();
        }
        match core::mem::replace(&mut self.source, Source::Unknown(Vec::new())) {
            Source::Unknown(_) => {}
            Source::Transport(mut transport) => transport.finish(&mut self.events),
            Source::Elementary(mut elementary) => {
                if let Err(left) = elementary.finish(&mut self.events) {
                    self.slice(&left);
                    self.finish();
                }
            }
            Source::Slices(mut slicer) => slicer.finish(&mut self.events),
        }
    }

    /// The next section or notice, in the order of the source.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Goes on in slices of bytes.
    fn slice(&mut self, left: &Unpictured) {
        let bytes = self.config.longest_unit.get().min(left.rest.len() as u64);
        self.events
            .push_back(Event::Notice(Notice::NoPictures { bytes }));
        self.source = Source::Slices(Box::new(Slicer::bytes(&self.config, left.next_number)));
        self.push(&left.rest);
    }

    /// Decides by what there is.
    fn recognise(&mut self) {
        let Source::Unknown(start) = &self.source else {
            return;
        };
        if !start.is_empty() {
            let start = start.get(..MOST_SNIFFED).unwrap_or(start);
            let format = recognise(start).or_else(|| recognise_short(start));
            self.read_as(format.unwrap_or(Format::Unknown));
        }
    }

    fn read_as(&mut self, format: Format) {
        let Source::Unknown(start) = &mut self.source else {
            return;
        };
        let start = core::mem::take(start);
        self.source = match format {
            Format::Transport(stride) => {
                if stride != PACKET {
                    self.events.push_back(Event::Notice(Notice::PacketsApart {
                        bytes: stride as u64,
                    }));
                }
                Source::Transport(Box::new(Transport::new(self.config, stride)))
            }
            Format::Elementary => Source::Elementary(Box::new(Elementary::new(self.config))),
            Format::Unknown => {
                self.events.push_back(Event::Notice(Notice::UnknownFormat));
                Source::Slices(Box::new(Slicer::bytes(&self.config, 0)))
            }
        };
        self.push(&start);
    }
}

/// The first byte of a transport packet.
const SYNC: u8 = 0x47;

/// How many bytes may tell the format: five packets, behind the rest of a sixth.
const SNIFFED: usize = 6 * PACKET;

/// With so many bytes a source of no known format is taken for what it is: whatever is broken at the beginning of a
/// transport stream, five packets in a row are to be found in them. A live source is waited for half as long as a slice lasts.
const MOST_SNIFFED: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Packets that stand so far apart.
    Transport(usize),
    Elementary,
    Unknown,
}

/// An elementary stream begins with a sequence header, a transport stream has a sync byte every 188, 192 or 204 bytes
/// somewhere, five times: in random bytes that is found once in 10^11 places. `None` while neither is seen.
///
/// A sequence header further on is not looked for: containers of other kinds have one, too, and what stands before it is
/// what they are read by.
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

/// A source that ends before five packets are seen is a transport stream if all begin with a sync byte: one that it
/// begins with itself, or two and more behind the rest of a packet.
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
