//! One elementary stream: converts the payloads of its packets to sections.

use std::collections::VecDeque;

use bytes::Bytes as Payload;
use comity_frames::{Arrival, DeadlineRule, FrameType, Group, Importance, Member};
use comity_units::{Span, Time};

use super::cadence::Cadence;
use super::config::{Damaged, ReaderConfig};
use super::counter::Counter;
use super::pes::{Assembler, Part};
use super::program::ProgramClock;
use super::slices::payload;
use super::steps::Steps;
use super::unit::{Fault, Units, Whole};
use crate::codec::{Carriage, Class, Codec, H265State, carriage, classify, is_enhancement};
use crate::header::{Header, PACKET, Times, Unit};
use crate::layout::DroppedUnit;
use crate::pes::is_pes;
use crate::section::{Event, Jump, JumpedTimes, MediaSection, MissingUnit, Notice};
use crate::timeline::{Mark, difference, ticks};

/// After this many consecutive starts of PES packets, a stream whose first start was none has PES
/// packets: that start was damaged.
const PES_STARTS: u8 = 3;
/// The importance of streams that are only decoded together with others.
const ENHANCEMENT: Importance = Importance(25);
/// The maximum number of packets in one section.
const KEPT_PACKETS: usize = 64;

/// One elementary stream.
#[derive(Debug)]
pub(super) struct Stream {
    pid: u16,
    number: u16,
    pub(super) stream_type: u8,
    pub(super) codec: Option<Codec>,
    /// The PID of the map of its program.
    pub(super) program: u16,
    /// Whether the latest map of its program names it.
    pub(super) is_named: bool,
    pub(super) assembler: Assembler,
    pub(super) counter: Counter,
    pub(super) group: Group,
    /// The latest time stamp.
    mark: Option<Mark>,
    /// The time stamps of a live source, compared with their arrivals.
    pub(super) steps: Steps,
    cadence: Cadence,
    h265: H265State,
    next_section: u64,
    /// Its packets that are sent as they are, and when the first of them arrived.
    kept: Vec<u8>,
    kept_since: Time,
    has_reported_scrambled: bool,
    /// Whether its packets carry PES packets, as the first start of one shows, and how many later
    /// ones in a row contradict that there are none.
    has_pes: Option<bool>,
    pes_starts: u8,
    /// Its memory for incomplete units at the last count.
    pub(super) counted: usize,
    /// Whether a packet arrived since the last check, and when the last packet arrived.
    pub(super) has_packets: bool,
    pub(super) last_packet_at: Time,
}

/// The codec of this stream type, if it is known.
pub(super) const fn codec(stream_type: u8) -> Option<Codec> {
    match carriage(stream_type) {
        Carriage::Known(codec) => Some(codec),
        Carriage::Opaque | Carriage::Tables => None,
    }
}

/// The destination of a stream's units, and the clock of their times.
pub(super) struct Output<'a> {
    pub(super) clock: &'a mut ProgramClock,
    pub(super) events: &'a mut VecDeque<Event>,
    pub(super) config: &'a ReaderConfig,
    /// The units that the configuration drops, for the layouts that name them.
    pub(super) dropped: &'a mut Vec<DroppedUnit>,
    /// The arrival time of a live source.
    pub(super) arrival: Option<Time>,
}

impl Output<'_> {
    fn now(&self) -> Time {
        self.arrival.unwrap_or_else(|| self.clock.between_stamps())
    }

    pub(super) fn report(&mut self, notice: Notice) {
        self.events.push_back(Event::Notice(notice));
    }
}

impl Stream {
    /// Creates a stream without any data.
    pub(super) fn new(
        pid: u16,
        number: u16,
        program: u16,
        stream_type: u8,
        rule: DeadlineRule,
    ) -> Self {
        Self {
            pid,
            number,
            stream_type,
            codec: codec(stream_type),
            program,
            is_named: true,
            assembler: Assembler::default(),
            counter: Counter::default(),
            group: Group::new(rule),
            mark: None,
            steps: Steps::default(),
            cadence: Cadence::default(),
            h265: H265State::default(),
            next_section: 0,
            kept: Vec::new(),
            kept_since: Time::ZERO,
            has_reported_scrambled: false,
            has_pes: None,
            pes_starts: 0,
            counted: 0,
            has_packets: true,
            last_packet_at: Time::ZERO,
        }
    }

    pub(super) fn push(&mut self, part: Part<'_>, longest: usize, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.push(self.codec, part, longest, &mut units);
        self.give(units, output);
    }

    /// Changes its type, after [`finish`](Self::finish).
    pub(super) fn change_type(&mut self, stream_type: u8) {
        self.stream_type = stream_type;
        self.codec = codec(stream_type);
        self.has_pes = None;
        self.assembler = Assembler::default();
        self.group.reset();
    }

    /// Begins again, after [`finish`](Self::finish), in this program and with this type. Its
    /// sections are numbered on.
    pub(super) fn begin_anew(&mut self, program: u16, stream_type: u8) {
        (self.program, self.is_named, self.mark) = (program, true, None);
        self.counter = Counter::default();
        self.cadence = Cadence::default();
        self.change_type(stream_type);
    }

    /// Handles the payload of a clear packet with a start.
    pub(super) fn on_start(&mut self, payload: &[u8]) {
        let is_pes = is_pes(payload);
        match self.has_pes {
            None => self.has_pes = Some(is_pes),
            Some(true) => {}
            Some(false) => {
                self.pes_starts = if is_pes { self.pes_starts + 1 } else { 0 };
                self.has_pes = Some(self.pes_starts >= PES_STARTS);
            }
        }
    }

    /// Whether it is of an unknown kind that has no PES packets: T2-MI, ULE, data piping, or
    /// sections.
    pub(super) fn lacks_pes(&self) -> bool {
        self.codec.is_none() && self.has_pes == Some(false)
    }

    /// Handles a scrambled packet: the unit before it has no more clear bytes.
    pub(super) fn end_clear(&mut self, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.end_clear(self.codec, &mut units);
        self.give(units, output);
    }

    /// The memory of its incomplete units, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.assembler.memory() + self.kept.len()
    }

    /// Drops the incomplete units, because there is no memory for them.
    pub(super) fn give_up(&mut self, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.give_up(&mut units);
        self.give(units, output);
    }

    /// Handles the end of the source.
    pub(super) fn finish(&mut self, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.finish(self.codec, &mut units);
        self.give(units, output);
        self.flush_kept(output);
    }

    /// Handles a long silence of the stream.
    pub(super) fn give_up_waiting(&mut self, output: &mut Output<'_>) {
        let mut units = Units::new();
        self.assembler.give_up_waiting(self.codec, &mut units);
        self.give(units, output);
        self.flush_kept(output);
    }

    /// Handles missing data, after which a PES packet `begins` or continues.
    pub(super) fn interrupt(&mut self, begins: bool, output: &mut Output<'_>) {
        let mut units = Units::new();
        let is_between = self.assembler.interrupt(self.codec, begins, &mut units);
        self.give(units, output);
        if is_between {
            self.cadence = Cadence::default();
            output.report(Notice::Break { pid: self.pid });
        }
    }

    /// Assigns a number to a dropped unit.
    fn miss(&mut self, output: &mut Output<'_>) {
        output.events.push_back(Event::Missing(MissingUnit {
            stream: self.number,
            number: self.next_section,
            source_time: output.clock.now(),
        }));
        self.next_section += 1;
    }

    fn give(&mut self, units: Units, output: &mut Output<'_>) {
        let pid = self.pid;
        for unit in units {
            match unit {
                Ok(unit) => self.unit(&unit, output),
                Err(Fault::NoFrame) => output.report(Notice::NoFrames { pid }),
                Err(Fault::Length) => output.report(Notice::WrongLength { pid }),
                Err(Fault::Headless) => {
                    self.cadence = Cadence::default();
                    output.report(Notice::Damaged { pid });
                    self.miss(output);
                }
                Err(Fault::Oversized(bytes)) => {
                    output.report(Notice::Oversized { pid, bytes });
                    self.miss(output);
                }
            }
        }
    }

    fn unit(&mut self, unit: &Whole, output: &mut Output<'_>) {
        if unit.bytes.is_empty() {
            return;
        }
        let pid = self.pid;
        if unit.scrambled {
            self.report_scrambled(output);
        }
        if unit.damaged {
            self.cadence = Cadence::default();
            output.report(Notice::Damaged { pid });
        }
        let codec = self.codec.filter(|_| !unit.scrambled);
        let Class {
            frame,
            begins_refresh,
        } = codec.map_or(Class::of(FrameType::Opaque), |codec| {
            let random_access = unit.marks.random_access;
            classify(codec, &unit.bytes, random_access, &mut self.h265)
        });
        let stamp = match codec.is_some_and(Codec::has_pictures) {
            true => self.cadence.locate(unit.times.decoding(), unit.follows),
            false => unit.times.decoding(),
        };
        let placed = stamp.map(|stamp| output.clock.locate(stamp, self.mark));
        self.mark = placed.map(|placed| placed.mark).or(self.mark);
        let source_time =
            placed.map_or_else(|| output.clock.between_stamps(), |placed| placed.time);
        let jump = placed.and_then(|placed| placed.jump);
        // The times of other streams vary: subtitles arrive long before they are shown.
        let is_steady = frame.is_picture() || frame == FrameType::Audio;
        let jumped = match (output.arrival, stamp) {
            (Some(arrival), Some(stamp)) if is_steady => self.steps.on_stamp(stamp, arrival),
            _ => jump.map(Jump::of),
        };
        if let Some(by) = jumped {
            output.report(Notice::Discontinuity {
                pid,
                times: JumpedTimes::Stamps,
                by,
            });
        }
        let discontinuity = jump.is_some() || unit.marks.discontinuity;
        if discontinuity {
            self.group.reset();
        }
        // Pictures still depend on each other if their times jump ahead.
        let discontinuity = discontinuity || matches!(jumped, Some(Jump::Ahead(_)));
        let header = Unit {
            pid,
            stream_type: self.stream_type,
            stream_id: unit.stream_id,
            frame,
            times: unit.times,
            random_access: unit.marks.random_access || frame == FrameType::Key,
            discontinuity,
            aligned: unit.aligned,
        };
        let reordering = match unit.times {
            Times::Both {
                presentation,
                decoding,
            } => ticks(u64::try_from(difference(presentation, decoding)).unwrap_or(0)),
            _ => Span::ZERO,
        };
        let payload_of = |header| payload(Header::Unit(header), &unit.bytes);
        if unit.damaged && output.config.damaged == Damaged::Drop {
            output.dropped.push(DroppedUnit {
                stream: self.number,
                number: self.next_section,
                payload: payload_of(header),
            });
            return self.miss(output);
        }
        let member = self.group.push(Arrival {
            number: self.next_section,
            frame_type: frame,
            presentation: unit.times.presentation(),
            source_time,
            reordering,
            begins_refresh,
        });
        let frame = member.frame_type;
        let payload = payload_of(Unit { frame, ..header });
        self.section((frame, unit.damaged), member, payload, output);
    }

    fn section(
        &mut self,
        (frame, is_damaged): (FrameType, bool),
        member: Member,
        payload: Payload,
        output: &mut Output<'_>,
    ) {
        let is_picture = frame.is_picture();
        let position = if is_picture { member.position } else { 0 };
        let Importance(importance) = match is_enhancement(self.stream_type) {
            true => ENHANCEMENT,
            false => Importance::of(frame, position),
        };
        output.events.push_back(Event::Section(MediaSection {
            stream: self.number,
            number: self.next_section,
            source_time: member.source_time,
            deadline: member.deadline,
            importance: Importance(if is_damaged {
                importance / 2
            } else {
                importance
            }),
            is_damaged,
            frame,
            position,
            needs: member.needs,
            is_bound: member.is_bound,
            payload,
        }));
        self.next_section += 1;
    }

    pub(super) fn report_scrambled(&mut self, output: &mut Output<'_>) {
        if !core::mem::replace(&mut self.has_reported_scrambled, true) {
            output.report(Notice::Scrambled { pid: self.pid });
        }
    }

    pub(super) fn keep(&mut self, packet: &[u8; PACKET], output: &mut Output<'_>) {
        // Such packets have no readable time stamps.
        let now = output.now();
        let waited = now.saturating_since(self.kept_since);
        if waited >= output.config.slice {
            self.flush_kept(output);
        }
        if self.kept.is_empty() {
            self.kept_since = now;
        }
        self.kept.extend(packet);
        if self.kept.len() >= KEPT_PACKETS * PACKET {
            self.flush_kept(output);
        }
    }

    pub(super) fn flush_kept(&mut self, output: &mut Output<'_>) {
        if self.kept.is_empty() {
            return;
        }
        let packets = core::mem::take(&mut self.kept);
        let member = Member {
            frame_type: FrameType::Slice,
            position: 0,
            needs: None,
            is_bound: false,
            source_time: self.kept_since,
            deadline: Span::ZERO,
        };
        let payload = payload(Header::Packets, &packets);
        self.section((FrameType::Slice, false), member, payload, output);
    }
}
