//! The bytes of a layout: `docs/protocol/media.md`, "The layout".
//!
//! [`Codec`] is generic over the direction. It holds what both ends know from the previous packets,
//! and codes how the next packet differs from the expected one.

use std::collections::BTreeMap;

use super::coder::{Coder, Decoder, Encoder, Model};
use super::model::{
    Field, Layout, MAX_PACKETS, MAX_PIDS, Made, Null, Packet, Prefix, Run, STEP_SHIFT, SectionRef,
};
use super::models::Models;
use super::packet::{CLOCK_WRAP, ROOM, announced, field_length, prefix_length};
use crate::header::PACKET;
use crate::work;

/// The maximum number of bytes outside of packets in a layout. A reader gives up before.
pub(super) const MAX_OUTSIDE: usize = 2 << 20;
/// The maximum length of a section.
const MAX_LENGTH: u32 = 64 << 20;

pub(super) fn encode(layout: &Layout) -> Vec<u8> {
    let mut codec = Codec::new(Encoder::new());
    // Every layout that the arranger makes can be coded.
    let coded = codec.layout(layout);
    debug_assert_eq!(coded.as_ref(), Some(layout));
    codec.coder.finish()
}

/// Reads a layout; `None` if the bytes are not a layout, or are more than it needs.
pub(crate) fn decode(bytes: &[u8]) -> Option<Layout> {
    let mut codec = Codec::new(Decoder::new(bytes));
    let layout = codec.layout(&Layout::default())?;
    (!codec.coder.has_rest()).then_some(layout)
}

/// A position in the sections of a PID.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// The present section, or the last one.
    section: Option<SectionRef>,
    at: u32,
    /// Whether the present section is left before its end.
    is_left: bool,
}

impl Cursor {
    /// The number of bytes that remain in the present section.
    fn left(&self) -> usize {
        match self.section {
            Some(section) if !self.is_left => section.length.saturating_sub(self.at) as usize,
            _ => 0,
        }
    }

    /// Whether these parts continue where the present section was left.
    fn goes_on_with(&self, runs: &[Run]) -> bool {
        let is_next = |run: &Run| self.section == Some(run.section) && run.from == self.at;
        self.left() == 0 || runs.first().is_none_or(is_next)
    }

    /// Advances by up to this many bytes.
    fn take(&mut self, most: usize) -> Option<Run> {
        let section = self.section?;
        let length = u32::try_from(most.min(self.left())).ok()?;
        let from = self.at;
        self.at += length;
        (length > 0).then_some(Run {
            section,
            from,
            to: self.at,
        })
    }
}

/// The state of the packets of one PID.
#[derive(Debug)]
struct Lane {
    pid: u16,
    counter: Option<u8>,
    priority: bool,
    scrambling: u8,
    field_flags: u8,
    /// The latest clock reference, and the number of its packet in the layout.
    clock: Option<(u64, u64)>,
    pes_data: u8,
    pes_length: u16,
    /// The number of bytes that remain in the present PES packet, if its header states its length.
    pes_left: Option<usize>,
    was_plain: bool,
    was_whole: bool,
    parts: Cursor,
    wholes: Cursor,
}

impl Lane {
    const fn new(pid: u16) -> Self {
        const NOWHERE: Cursor = Cursor {
            section: None,
            at: 0,
            is_left: false,
        };
        Self {
            pid,
            counter: None,
            priority: false,
            scrambling: 0,
            field_flags: 0x10,
            clock: None,
            pes_data: 5,
            pes_length: 0,
            pes_left: None,
            was_plain: false,
            was_whole: false,
            parts: NOWHERE,
            wholes: NOWHERE,
        }
    }

    fn expected_counter(&self, has_payload: bool) -> Option<u8> {
        let counter = self.counter?;
        Some((counter + u8::from(has_payload)) & 0x0f)
    }

    /// Whether the packet differs from the previous one of its PID only in its counter and its
    /// data.
    fn is_plain(&self, made: &Made) -> bool {
        let planned: usize = made.runs.iter().map(Run::len).sum();
        planned == ROOM
            && !made.begins
            && made.field.is_none()
            && made.prefix == Prefix::Nothing
            && made.priority == self.priority
            && made.scrambling == self.scrambling
            && Some(made.counter) == self.expected_counter(true)
            && self.parts.goes_on_with(&made.runs)
    }
}

#[derive(Debug)]
struct Codec<C> {
    coder: C,
    models: Models,
    lanes: Vec<Lane>,
    /// The lanes in the order of their latest packets, the most recent first.
    recent: Vec<usize>,
    /// The next expected number in each stream.
    numbers: BTreeMap<u16, u16>,
    step: Option<u32>,
    index: u64,
    /// Which of the previous three packets were null packets.
    history: usize,
    null: Null,
}

/// The argument of a decoder, which does not know the packet yet.
const UNKNOWN: Packet = Packet::Null(Null::PLAIN);

impl<C: Coder> Codec<C> {
    const fn new(coder: C) -> Self {
        Self {
            coder,
            models: Models::new(),
            lanes: Vec::new(),
            recent: Vec::new(),
            numbers: BTreeMap::new(),
            step: None,
            index: 0,
            history: 0,
            null: Null::PLAIN,
        }
    }

    /// Codes a bit that differs from what is expected.
    fn other<T: PartialEq + Copy>(
        coder: &mut C,
        model: &mut Model,
        (expected, value): (T, T),
        code: impl FnOnce(&mut C) -> T,
    ) -> T {
        match coder.bit(model, value != expected) {
            true => code(coder),
            false => expected,
        }
    }

    fn byte(coder: &mut C, value: u8) -> u8 {
        coder.bits(8, u64::from(value)) as u8
    }

    fn layout(&mut self, layout: &Layout) -> Option<Layout> {
        let has_step = self
            .coder
            .bit(&mut self.models.has_step, layout.step.is_some());
        if has_step {
            let step = self.coder.bits(32, layout.step.unwrap_or(0).into());
            self.step = Some(step as u32);
        }
        let has_lasted = self
            .coder
            .bit(&mut self.models.has_lasted, layout.lasted.is_some());
        let lasted = layout.lasted.unwrap_or(0);
        let lasted = has_lasted.then(|| Self::byte(&mut self.coder, lasted));
        let is_last = self.coder.bit(&mut self.models.is_last, layout.is_last);
        let count = layout.packets.len() as u64;
        let count = self.coder.number(&mut self.models.count, 13, count) as usize;
        if count > MAX_PACKETS {
            return None;
        }
        let has_outside = self
            .coder
            .bit(&mut self.models.has_outside, !layout.outside.is_empty());
        let mut packets = Vec::with_capacity(count);
        let (mut outside, mut last, mut room) = (BTreeMap::new(), Vec::new(), MAX_OUTSIDE);
        for at in 0..=count {
            if has_outside {
                let bytes = layout.outside.get(&at).map_or(&[][..], Vec::as_slice);
                last = self.outside(bytes, &last, room)?;
                room -= last.len();
                if !last.is_empty() {
                    outside.insert(at, last.clone());
                }
            }
            if at < count {
                packets.push(self.packet(layout.packets.get(at).unwrap_or(&UNKNOWN))?);
                self.index += 1;
            }
        }
        Some(Layout {
            step: self.step,
            lasted,
            is_last,
            packets,
            outside,
        })
    }

    /// Codes bytes outside of packets; `last` are those before the previous packet.
    fn outside(&mut self, bytes: &[u8], last: &[u8], room: usize) -> Option<Vec<u8>> {
        let (coder, models) = (&mut self.coder, &mut self.models);
        let lengths = (last.len(), bytes.len());
        let number = &mut models.outside_length;
        let code = |coder: &mut C| coder.number(number, 22, bytes.len() as u64) as usize;
        let length = Self::other(coder, &mut models.other_outside_length, lengths, code);
        if length > room {
            return None;
        }
        let mut coded = Vec::with_capacity(length);
        for at in 0..length {
            let byte = bytes.get(at).copied().unwrap_or(0);
            let code = |coder: &mut C| Self::byte(coder, byte);
            coded.push(match last.get(at) {
                Some(&last) => Self::other(coder, &mut models.other_outside, (last, byte), code),
                None => code(coder),
            });
        }
        Some(coded)
    }

    fn packet(&mut self, packet: &Packet) -> Option<Packet> {
        let model = self.models.null.get_mut(self.history)?;
        let is_null = self.coder.bit(model, matches!(packet, Packet::Null(_)));
        self.history = (self.history << 1 | usize::from(is_null)) & 7;
        if is_null {
            let null = match packet {
                Packet::Null(null) => *null,
                _ => Null::PLAIN,
            };
            let is_other = self
                .coder
                .bit(&mut self.models.other_null, null != self.null);
            if is_other {
                self.null = Null {
                    flags: (self.coder.bits(3, (null.flags >> 5).into()) as u8) << 5,
                    control: 0x10 | Self::byte(&mut self.coder, null.control) & 0xcf,
                    fill: Self::byte(&mut self.coder, null.fill),
                };
            }
            return Some(Packet::Null(self.null));
        }
        let at = self.lane(packet.pid())?;
        // The lane is put back even if the rest cannot be read.
        let mut lane = core::mem::replace(self.lanes.get_mut(at)?, Lane::new(0));
        let packet = self.in_lane(&mut lane, packet);
        *self.lanes.get_mut(at)? = lane;
        packet
    }

    /// Codes which PID a packet has.
    fn lane(&mut self, pid: u16) -> Option<usize> {
        let is_of = |&at: &usize| self.lanes.get(at).is_some_and(|lane| lane.pid == pid);
        let known = self.recent.iter().position(is_of);
        if self.coder.bit(&mut self.models.new_pid, known.is_none()) {
            if self.lanes.len() >= MAX_PIDS {
                return None;
            }
            let pid = self.coder.bits(13, pid.into()) as u16;
            self.lanes.push(Lane::new(pid));
            self.recent.insert(0, self.lanes.len() - 1);
            return Some(self.lanes.len() - 1);
        }
        let mut rank = 0;
        while rank + 1 < self.recent.len() {
            work::count(1);
            let model = self.models.rank.get_mut(rank.min(3))?;
            if self.coder.bit(model, known == Some(rank)) {
                break;
            }
            rank += 1;
        }
        if rank >= self.recent.len() {
            return None;
        }
        self.recent.get_mut(..=rank)?.rotate_right(1);
        self.recent.first().copied()
    }

    fn in_lane(&mut self, lane: &mut Lane, packet: &Packet) -> Option<Packet> {
        let made = match packet {
            Packet::Made(made) => Some(made),
            _ => None,
        };
        if lane.counter.is_some() {
            let model = self.models.plain.get_mut(usize::from(lane.was_plain))?;
            let is_plain = made.is_some_and(|made| lane.is_plain(made));
            lane.was_plain = self.coder.bit(model, is_plain);
            if lane.was_plain {
                lane.counter = lane.expected_counter(true);
                lane.was_whole = false;
                return Some(Packet::Made(Made {
                    pid: lane.pid,
                    counter: lane.counter?,
                    priority: lane.priority,
                    scrambling: lane.scrambling,
                    has_payload: true,
                    runs: self.parts(lane, ROOM, packet.runs())?,
                    ..Made::default()
                }));
            }
        }
        let model = self.models.whole.get_mut(usize::from(lane.was_whole))?;
        lane.was_whole = self
            .coder
            .bit(model, matches!(packet, Packet::Whole { .. }));
        if lane.was_whole {
            return self.whole(lane, packet);
        }
        const BLANK: &Made = &Made {
            pid: 0,
            counter: 0,
            begins: false,
            priority: false,
            scrambling: 0,
            has_payload: false,
            field: None,
            prefix: Prefix::Nothing,
            runs: Vec::new(),
        };
        self.made(lane, made.unwrap_or(BLANK)).map(Packet::Made)
    }

    fn counter(&mut self, lane: &mut Lane, has_payload: bool, counter: u8) -> u8 {
        let coder = &mut self.coder;
        let code = |coder: &mut C| coder.bits(4, counter.into()) as u8;
        let counter = match lane.expected_counter(has_payload) {
            Some(next) => Self::other(coder, &mut self.models.other_counter, (next, counter), code),
            None => code(coder),
        };
        lane.counter = Some(counter);
        counter
    }

    fn whole(&mut self, lane: &mut Lane, packet: &Packet) -> Option<Packet> {
        let counter = match *packet {
            Packet::Whole { counter, .. } => counter,
            _ => 0,
        };
        let counter = self.counter(lane, true, counter);
        let given = packet.runs();
        self.leave(&mut lane.wholes, given);
        if lane.wholes.left() == 0 {
            self.reference(&mut lane.wholes, None, given.first())?;
        }
        let run = lane.wholes.take(PACKET)?;
        // A packet is not split between sections.
        (run.len() == PACKET).then_some(Packet::Whole {
            pid: lane.pid,
            counter,
            run,
        })
    }

    fn made(&mut self, lane: &mut Lane, made: &Made) -> Option<Made> {
        let (coder, models) = (&mut self.coder, &mut self.models);
        let other = made.priority != lane.priority;
        lane.priority ^= coder.bit(&mut models.other_priority, other);
        let scrambling = (lane.scrambling, made.scrambling & 3);
        lane.scrambling = Self::other(coder, &mut models.other_scrambling, scrambling, |coder| {
            coder.bits(2, made.scrambling.into()) as u8
        });
        let begins = coder.bit(&mut models.begins, made.begins);
        let has_payload = !coder.bit(&mut models.no_payload, !made.has_payload);
        let has_field = !has_payload || coder.bit(&mut models.field, made.field.is_some());
        let counter = self.counter(lane, has_payload, made.counter);
        let field = match has_field {
            true => Some(self.field(lane, made.field.as_ref())?),
            false => None,
        };
        let mut result = Made {
            pid: lane.pid,
            counter,
            begins,
            priority: lane.priority,
            scrambling: lane.scrambling,
            has_payload,
            field,
            prefix: Prefix::Nothing,
            runs: Vec::new(),
        };
        if !has_payload {
            return Some(result);
        }
        self.leave(&mut lane.parts, &made.runs);
        if begins {
            result.prefix = self.prefix(lane, &made.prefix)?;
            lane.pes_left = announced(&result.prefix);
        }
        let used = result.field.as_ref().map_or(0, field_length) + prefix_length(&result.prefix);
        let room = ROOM.checked_sub(used)?;
        let planned: usize = made.runs.iter().map(Run::len).sum();
        if lane.parts.left() == 0 {
            if room == 0 || self.coder.bit(&mut self.models.empty, planned == 0) {
                return Some(result);
            }
            self.reference(&mut lane.parts, lane.pes_left, made.runs.first())?;
        }
        let (expected, model) = match lane.pes_left.filter(|&left| left > 0) {
            Some(left) => (left, 1),
            None => (lane.parts.left(), 0),
        };
        let model = self.models.unexpected.get_mut(model)?;
        let coder = &mut self.coder;
        let spare = &mut self.models.spare;
        let sizes = (expected.min(room), planned);
        let planned = Self::other(coder, model, sizes, |coder| {
            let behind = room.saturating_sub(planned) as u64;
            room.saturating_sub(coder.number(spare, 9, behind) as usize)
        });
        result.runs = self.parts(lane, planned, &made.runs)?;
        Some(result)
    }

    fn field(&mut self, lane: &mut Lane, field: Option<&Field>) -> Option<Field> {
        let blank = Field::default();
        let field = field.unwrap_or(&blank);
        let (coder, models) = (&mut self.coder, &mut self.models);
        if !coder.bit(&mut models.content, field.flags != 0) {
            return Some(blank);
        }
        let flags = (lane.field_flags, field.flags);
        let flags = Self::other(coder, &mut models.other_flags, flags, |coder| {
            Self::byte(coder, field.flags)
        });
        if flags == 0 {
            return None;
        }
        lane.field_flags = flags;
        let clock = match flags & 0x10 {
            0 => None,
            _ => Some(self.clock(lane, field.clock.unwrap_or(0))?),
        };
        let length = field.rest.len() as u64;
        let length = self.coder.number(&mut self.models.rest, 8, length);
        let rest = self.literal(length, &field.rest)?;
        Some(Field { flags, clock, rest })
    }

    fn clock(&mut self, lane: &mut Lane, clock: u64) -> Option<u64> {
        let clock = match lane.clock {
            Some((last, index)) => {
                let step = u64::from(self.step.unwrap_or(0));
                let passed = (step * (self.index - index)) >> STEP_SHIFT;
                let expected = (last + passed) % CLOCK_WRAP;
                let after = (clock + CLOCK_WRAP - expected) % CLOCK_WRAP;
                let off = match after > CLOCK_WRAP / 2 {
                    true => after as i64 - CLOCK_WRAP as i64,
                    false => after as i64,
                };
                let off = self.coder.signed(&mut self.models.clock, 43, off);
                (expected as i64 + off).rem_euclid(CLOCK_WRAP as i64) as u64
            }
            None => {
                let base = self.coder.bits(33, clock / 300);
                let extension = self.coder.bits(9, clock % 300);
                if extension >= 300 {
                    return None;
                }
                base * 300 + extension
            }
        };
        lane.clock = Some((clock, self.index));
        Some(clock)
    }

    fn literal(&mut self, length: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        let length = usize::try_from(length)
            .ok()
            .filter(|&length| length <= ROOM)?;
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        Some(
            (0..length)
                .map(|at| Self::byte(&mut self.coder, byte(at)))
                .collect(),
        )
    }

    fn prefix(&mut self, lane: &mut Lane, prefix: &Prefix) -> Option<Prefix> {
        let (coder, models) = (&mut self.coder, &mut self.models);
        let is_literal = matches!(prefix, Prefix::Literal(_) | Prefix::Nothing);
        if coder.bit(&mut models.literal, is_literal) {
            let bytes: &[u8] = match prefix {
                Prefix::Literal(bytes) => bytes,
                _ => &[],
            };
            let length = coder.number(&mut models.literal_length, 8, bytes.len() as u64);
            let bytes = self.literal(length, bytes)?;
            return Some(match bytes.is_empty() {
                true => Prefix::Nothing,
                false => Prefix::Literal(bytes),
            });
        }
        if coder.bit(&mut models.pointer, matches!(prefix, Prefix::Pointer(_))) {
            let pointer = match *prefix {
                Prefix::Pointer(pointer) => pointer,
                _ => 0,
            };
            let expected = u8::try_from(lane.parts.left()).unwrap_or(u8::MAX);
            let pointers = (expected, pointer);
            let pointer = Self::other(coder, &mut models.other_pointer, pointers, |coder| {
                Self::byte(coder, pointer)
            });
            return Some(Prefix::Pointer(pointer));
        }
        let (length, flags, data) = match *prefix {
            Prefix::Pes {
                length,
                flags,
                data,
            } => (length, flags, data),
            _ => (0, None, 0),
        };
        lane.pes_data = Self::other(
            coder,
            &mut models.other_data,
            (lane.pes_data, data),
            |coder| Self::byte(coder, data),
        );
        let flags = match coder.bit(&mut models.other_pes_flags, flags.is_some()) {
            true => Some(Self::byte(coder, flags.unwrap_or(0))),
            false => None,
        };
        let lengths = (lane.pes_length, length);
        lane.pes_length = Self::other(coder, &mut models.other_pes_length, lengths, |coder| {
            coder.bits(16, length.into()) as u16
        });
        Some(Prefix::Pes {
            length: lane.pes_length,
            flags,
            data: lane.pes_data,
        })
    }

    /// Codes whether the present section is left before its end.
    fn leave(&mut self, cursor: &mut Cursor, runs: &[Run]) {
        if cursor.left() > 0 {
            let goes_on = cursor.goes_on_with(runs);
            cursor.is_left = self.coder.bit(&mut self.models.jumps, !goes_on);
        }
    }

    /// Codes `length` bytes of the lane's sections.
    fn parts(&mut self, lane: &mut Lane, length: usize, given: &[Run]) -> Option<Vec<Run>> {
        let mut runs = Vec::new();
        let mut left = length;
        while left > 0 {
            if lane.parts.left() == 0 {
                let next = given.get(runs.len());
                self.reference(&mut lane.parts, lane.pes_left, next)?;
            }
            let run = lane.parts.take(left)?;
            left -= run.len();
            lane.pes_left = lane.pes_left.and_then(|left| left.checked_sub(run.len()));
            runs.push(run);
        }
        Some(runs)
    }

    /// Codes which section comes next, and the offset in it.
    fn reference(
        &mut self,
        cursor: &mut Cursor,
        pes_left: Option<usize>,
        run: Option<&Run>,
    ) -> Option<()> {
        let (coder, models) = (&mut self.coder, &mut self.models);
        let (section, from) = run.map_or_else(Default::default, |run| (run.section, run.from));
        let mut stream =
            |coder: &mut C| coder.number(&mut models.stream, 17, section.stream.into());
        let stream = match cursor.section {
            Some(last) => {
                let streams = (u64::from(last.stream), u64::from(section.stream));
                Self::other(coder, &mut models.other_stream, streams, stream)
            }
            None => stream(coder),
        };
        let stream = u16::try_from(stream).ok()?;
        let number = match self.numbers.get(&stream) {
            Some(&expected) => {
                let off = section.number.wrapping_sub(expected) as i16;
                let off = coder.signed(&mut models.number, 17, off.into());
                expected.wrapping_add(off as u16)
            }
            None => coder.bits(16, section.number.into()) as u16,
        };
        self.numbers.insert(stream, number.wrapping_add(1));
        let from = match coder.bit(&mut models.offset, from > 0) {
            true => u32::try_from(coder.number(&mut models.from, 27, from.into())).ok()?,
            false => 0,
        };
        let to_end = pes_left
            .filter(|&left| left > 0)
            .and_then(|left| u32::try_from(left).ok()?.checked_add(from));
        let length = match to_end {
            Some(expected) if !coder.bit(&mut models.goes_on, section.length != expected) => {
                expected
            }
            _ => {
                let last = cursor.section.map_or(0, |last| last.length);
                let lengths = (last, section.length);
                Self::other(coder, &mut models.other_length, lengths, |coder| {
                    let length = coder.number(&mut models.length, 27, section.length.into());
                    u32::try_from(length).unwrap_or(0)
                })
            }
        };
        if length > MAX_LENGTH || from >= length {
            return None;
        }
        let hash = coder.bits(16, section.hash.into()) as u16;
        *cursor = Cursor {
            section: Some(SectionRef {
                stream,
                number,
                length,
                hash,
            }),
            at: from,
            is_left: false,
        };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the example in `docs/protocol/media.md`.
    const THREE_NULL_PACKETS: &[u8] = &[0xdc, 0x6b];

    #[test]
    fn the_example_on_the_page_is_three_null_packets() {
        let layout = Layout {
            step: None,
            lasted: None,
            is_last: false,
            packets: vec![Packet::Null(Null::PLAIN); 3],
            outside: BTreeMap::new(),
        };
        assert_eq!(encode(&layout), THREE_NULL_PACKETS);
        assert_eq!(decode(THREE_NULL_PACKETS), Some(layout));
    }

    #[test]
    fn a_layout_of_more_packets_than_allowed_is_refused() {
        let layout = |count: usize| Layout {
            step: Some(7),
            lasted: Some(u8::MAX),
            is_last: true,
            packets: vec![UNKNOWN; count],
            outside: BTreeMap::new(),
        };
        let most = layout(MAX_PACKETS);
        let bytes = encode(&most);
        assert!(bytes.len() < 60, "{}", bytes.len());
        assert_eq!(decode(&bytes), Some(most));
        let mut codec = Codec::new(Encoder::new());
        assert_eq!(codec.layout(&layout(MAX_PACKETS + 1)), None);
        assert_eq!(decode(&codec.coder.finish()), None);
        // More bytes than the layout needs.
        assert_eq!(decode(&[&bytes[..], &[1; 5]].concat()), None);
    }

    /// A layout of as many packets as possible, on these PIDs in turn.
    fn of_pids(count: u16) -> Layout {
        let made = |number: u16| {
            Packet::Made(Made {
                pid: number % count,
                counter: (number / count % 16) as u8,
                field: Some(Field::default()),
                ..Made::default()
            })
        };
        Layout {
            packets: (0..MAX_PACKETS as u16).map(made).collect(),
            ..Layout::default()
        }
    }

    /// Each packet is on the PID whose latest packet is the longest ago.
    #[test]
    fn a_layout_has_at_most_256_pids_and_few_steps() {
        let layout = of_pids(256);
        let bytes = encode(&layout);
        let steps = work::of(|| assert_eq!(decode(&bytes).as_ref(), Some(&layout)));
        assert_eq!(steps, (MAX_PACKETS - MAX_PIDS) * (MAX_PIDS - 1));
        let mut codec = Codec::new(Encoder::new());
        assert_eq!(codec.layout(&of_pids(257)), None);
        assert_eq!(decode(&codec.coder.finish()), None);
    }

    #[test]
    fn bytes_outside_of_packets_are_cheap_if_they_repeat() {
        let layout = |outside: BTreeMap<usize, Vec<u8>>| Layout {
            packets: vec![UNKNOWN; 100],
            outside,
            ..Layout::default()
        };
        let length = |outside: BTreeMap<usize, Vec<u8>>| {
            let layout = layout(outside);
            let bytes = encode(&layout);
            assert_eq!(decode(&bytes), Some(layout));
            bytes.len()
        };
        let none = length(BTreeMap::new());
        let even = length((1..=100).map(|at| (at, vec![0xff; 16])).collect());
        // The upper bytes of time stamps repeat.
        let stamps = |at: usize| (at as u32 * 27_000).to_be_bytes().to_vec();
        let stamps = length((0..100).map(|at| (at, stamps(at))).collect());
        let odd = length([(7, (0..200).collect()), (100, vec![0x47; 90])].into());
        assert!(even < none + 50, "{even}");
        assert!((200..330).contains(&(stamps - none)), "{stamps}");
        assert!((290..400).contains(&(odd - none)), "{odd}");
        // As many bytes as a reader skips before it gives up, and one more.
        for (bytes, is_known) in [(MAX_OUTSIDE, true), (MAX_OUTSIDE + 1, false)] {
            let most = layout([(0, vec![0; bytes])].into());
            let mut codec = Codec::new(Encoder::new());
            assert_eq!(codec.layout(&most).is_some(), is_known);
        }
    }
}
