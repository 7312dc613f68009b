//! PES packets of video, cut where access units begin.

use std::collections::VecDeque;

use super::unit::{Damage, Marks, Units, Whole};
use crate::codec::{Beginning, Codec, Mark, Marker, Structure, begins_unit, is_open, start_codes};
use crate::header::Times;
use crate::work;

/// After this many consecutive PES packets that have a time stamp but contain no beginning, or only
/// headers, their content counts as unknown.
const TRUST: u8 = 8;
/// After this many units that lack a property of the stream, the property is forgotten: a bit error
/// may have caused it. Key pictures, which may be the only units with it, come more often.
pub(super) const FORGOTTEN: u16 = 1_000;

/// Cuts the PES packets of one video stream into access units: a picture, both of its fields, with
/// the headers before it.
///
/// A time stamp belongs to the first unit that begins in its PES packet, at any position (ISO/IEC
/// 13818-1 2.4.3.7); other units have none. While all units begin with PES packets, a packet with a
/// time stamp that begins a unit immediately ends the previous unit, if that has a picture. If no
/// beginnings are found at all, each PES packet with a time stamp is a unit. Headers in a PES
/// packet without a time stamp have that of the next packet, because some sources write the time
/// stamp with the slices.
#[derive(Debug, Default)]
pub(super) struct Pictures {
    marker: Marker,
    /// The present unit, with the unscanned bytes after it.
    unit: Option<Whole>,
    /// The position in those bytes at which the unit begins. It is nonzero only during a scan.
    from: usize,
    looked: usize,
    picture: Option<Picture>,
    /// Whether the present unit has more than headers.
    has_slices: bool,
    /// The position of the next picture's headers.
    headers: Option<usize>,
    /// The PES packets that contain the held bytes, in their order.
    packets: VecDeque<Packet>,
    /// How many more PES packets with a time stamp may lack a beginning; zero until the first
    /// beginning is found.
    trust: u8,
    /// Where data is missing or wrong in the held bytes.
    damage: Damage,
    /// Whether the beginning of the present unit is missing.
    is_headless: bool,
    /// For how many more units it counts that the first unit of some PES packet began inside it.
    unaligned: u16,
    /// For how many more units it counts that some unit continued in another PES packet.
    continued: u16,
}

/// The present picture.
#[derive(Clone, Copy, Debug)]
struct Picture {
    beginning: Beginning,
    is_field: bool,
    has_second: bool,
}

impl Picture {
    /// Data without the beginning of a picture. The next picture ends it.
    const UNKNOWN: Self = Self::new(Beginning {
        frame: 0,
        structure: Structure::Frame,
    });

    const fn new(beginning: Beginning) -> Self {
        Self {
            beginning,
            is_field: matches!(
                beginning.structure,
                Structure::TopField | Structure::BottomField
            ),
            has_second: false,
        }
    }

    /// Whether the next beginning is the other field of the same frame.
    fn goes_on_with(&self, next: Beginning) -> bool {
        let is_other = match next.structure {
            Structure::Frame => false,
            Structure::Open => true,
            structure => structure != self.beginning.structure,
        };
        self.is_field && !self.has_second && is_other && next.frame == self.beginning.frame
    }
}

/// A PES packet whose bytes begin at `at`.
#[derive(Clone, Copy, Debug)]
struct Packet {
    at: usize,
    stream_id: u8,
    times: Times,
    aligned: bool,
    marks: Marks,
    /// Whether a unit begins in it.
    has_begun: bool,
}

impl Packet {
    const fn new(at: usize, packet: &Whole) -> Self {
        Self {
            at,
            stream_id: packet.stream_id,
            times: packet.times,
            aligned: packet.aligned,
            marks: packet.marks,
            has_begun: false,
        }
    }

    /// The unit with these bytes, which begins in the packet.
    fn begin(&mut self, bytes: Vec<u8>) -> Whole {
        let is_first = !core::mem::replace(&mut self.has_begun, true);
        Whole {
            stream_id: self.stream_id,
            times: if is_first { self.times } else { Times::None },
            aligned: is_first && self.aligned,
            scrambled: false,
            marks: if is_first {
                self.marks
            } else {
                Marks::default()
            },
            follows: !is_first,
            damaged: false,
            bytes,
        }
    }
}

impl Pictures {
    /// The number of bytes held.
    pub(super) fn held(&self) -> usize {
        self.unit.as_ref().map_or(0, |unit| unit.bytes.len())
    }

    /// The memory that it uses, including its records of PES packets, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.held() + self.packets.len() * size_of::<Packet>()
    }

    pub(super) const fn is_holding(&self) -> bool {
        self.unit.is_some()
    }

    /// Whether each unit so far has ended with the PES packet in which it began.
    pub(super) const fn end_with_packets(&self) -> bool {
        self.continued == 0 && !self.is_unaligned()
    }

    /// Whether units may begin inside PES packets.
    const fn is_unaligned(&self) -> bool {
        self.unaligned > 0
    }

    /// Processes the beginning of a PES packet, which may be incomplete. If it ends a unit, the
    /// unit is returned immediately.
    pub(super) fn begin(&mut self, codec: Codec, packet: &Whole, out: &mut Units) {
        let has_time = packet.times != Times::None;
        if has_time && !self.is_unaligned() && begins_unit(codec, &packet.bytes) {
            self.end(codec, out);
        }
    }

    /// Handles the end of a PES packet that ends the present picture. Headers after the picture, or
    /// alone in some packets, belong to the next picture.
    pub(super) fn end(&mut self, codec: Codec, out: &mut Units) {
        self.look(codec, usize::MAX, out);
        let may_go_on = self.packets.len() <= usize::from(TRUST) && self.damage.is_none();
        if !self.has_slices && may_go_on {
            return;
        }
        let Some(at) = self.headers else {
            return self.flush(codec, out);
        };
        self.cut(at, out);
        self.settle();
        // The next unit may have begun in an earlier PES packet.
        self.trust = TRUST;
        (self.picture, self.has_slices) = (None, false);
    }

    /// Adds a PES packet, or the rest of the latest one if `is_rest`. If `is_missing`, data before
    /// it is missing.
    pub(super) fn take(
        &mut self,
        codec: Codec,
        mut packet: Whole,
        damage: &Damage,
        (is_missing, is_rest): (bool, bool),
        out: &mut Units,
    ) {
        self.begin(codec, &packet, out);
        let has_time = packet.times != Times::None;
        let follows_headers = self.unit.is_some() && !self.has_slices;
        let held = self.held();
        // The time stamp of a PES packet also belongs to a unit that begins in its rest.
        let goes_on = is_rest && !self.packets.is_empty();
        let mut entry = Packet::new(held, &packet);
        if is_missing && held > 0 {
            self.damage.add(held..held);
        }
        self.damage.append(held, damage);
        let is_unaligned = self.is_unaligned();
        match &mut self.unit {
            Some(unit) => {
                self.continued = FORGOTTEN;
                let is_untimed = unit.times == Times::None && !unit.follows;
                let is_theirs = follows_headers && begins_unit(codec, &packet.bytes);
                if is_untimed && has_time && is_theirs && !is_unaligned {
                    // Its headers are in a PES packet of their own, without a time stamp.
                    (unit.times, unit.marks) = (packet.times, packet.marks);
                    entry.has_begun = true;
                }
                unit.bytes.extend(packet.bytes);
            }
            None if begins_unit(codec, &packet.bytes) => {
                self.continued = self.continued.saturating_sub(1);
                self.unit = Some(entry.begin(packet.bytes));
            }
            None => {
                self.is_headless = is_missing;
                // The previous unit was taken for complete, but continues.
                if !is_missing && !has_time {
                    self.continued = FORGOTTEN;
                }
                (self.picture, self.has_slices) = (Some(Picture::UNKNOWN), true);
                let bytes = core::mem::take(&mut packet.bytes);
                self.unit = Some(packet.continued(bytes, false));
            }
        }
        if !goes_on {
            self.packets.push_back(entry);
        }
        self.look(codec, 0, out);
        let Some(packet) = self.packets.back().copied() else {
            return;
        };
        if packet.has_begun || follows_headers {
            self.trust = TRUST;
        } else if has_time && self.trust > 0 {
            self.trust -= 1;
        } else if has_time {
            // The time stamp implies the beginning of a unit, even if no start code shows it.
            self.look(codec, packet.at, out);
            let at = self.packets.back().map_or(0, |packet| packet.at);
            self.cut(at, out);
            self.settle();
            (self.picture, self.has_slices) = (Some(Picture::UNKNOWN), true);
        }
    }

    /// Adds bytes of MPEG video outside of PES packets.
    pub(super) fn extend(&mut self, bytes: &[u8], out: &mut Units) {
        match &mut self.unit {
            Some(unit) => unit.bytes.extend(bytes),
            None => {
                let whole = Whole {
                    stream_id: 0xe0,
                    times: Times::None,
                    aligned: false,
                    scrambled: false,
                    marks: Marks::default(),
                    follows: false,
                    damaged: false,
                    bytes: Vec::new(),
                };
                let mut packet = Packet::new(0, &whole);
                self.unit = Some(packet.begin(bytes.to_vec()));
                self.packets.push_back(packet);
            }
        }
        self.look(Codec::Mpeg2, 0, out);
    }

    /// Whether the present unit has a picture.
    pub(super) const fn has_picture(&self) -> bool {
        self.picture.is_some()
    }

    /// Removes the held bytes.
    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        self.unit.take().map_or(Vec::new(), |unit| unit.bytes)
    }

    /// Handles missing data between PES packets. Returns whether it may be part of a unit.
    pub(super) fn interrupt(&mut self, codec: Codec, out: &mut Units) -> bool {
        if !self.is_unaligned() {
            self.flush(codec, out);
        }
        let held = self.held();
        if held > 0 {
            self.damage.add(held..held);
        }
        held > 0
    }

    /// Returns the present unit, which is complete.
    pub(super) fn flush(&mut self, codec: Codec, out: &mut Units) {
        self.look(codec, usize::MAX, out);
        if let Some(unit) = self.unit.take() {
            let damaged = self.is_headless || self.damage.is_in(0..unit.bytes.len());
            out.push(Ok(Whole { damaged, ..unit }));
        }
        self.clear();
    }

    /// Drops the present unit.
    pub(super) fn clear(&mut self) {
        self.unit = None;
        self.damage = Damage::default();
        self.is_headless = false;
        self.looked = 0;
        self.picture = None;
        self.has_slices = false;
        self.headers = None;
        self.packets.clear();
    }

    /// Scans the start codes that are followed by enough bytes, and all before `end`. Cuts where a
    /// unit begins.
    pub(super) fn look(&mut self, codec: Codec, end: usize, out: &mut Units) {
        self.look_through(codec, end, out);
        self.settle();
    }

    fn look_through(&mut self, codec: Codec, end: usize, out: &mut Units) {
        while let Some(unit) = &self.unit {
            let fresh = unit.bytes.get(self.looked..).unwrap_or_default();
            let Some(at) = start_codes(fresh).next().map(|at| at + self.looked) else {
                // A prefix may be split, so its first two bytes stay for the next scan.
                self.looked = self.looked.max(unit.bytes.len().saturating_sub(2));
                return;
            };
            let start = unit.bytes.get(at..).unwrap_or_default();
            if start.is_empty() || (at >= end && is_open(codec, start)) {
                return;
            }
            self.looked = at;
            let mark = self.marker.mark(codec, start);
            self.has_slices |= matches!(mark, Mark::Picture(_) | Mark::Continued);
            match mark {
                Mark::Other => {}
                Mark::Field => {
                    if let Some(picture) = &mut self.picture {
                        picture.is_field = true;
                    }
                }
                Mark::Continued => self.headers = None,
                Mark::Header => {
                    if self.picture.is_some() && self.headers.is_none() {
                        self.headers = Some(self.beginning(codec, at));
                    }
                }
                Mark::Picture(beginning) => match &mut self.picture {
                    Some(picture) if picture.goes_on_with(beginning) => {
                        picture.has_second = true;
                        self.headers = None;
                    }
                    Some(_) => {
                        let at = self.headers.unwrap_or_else(|| self.beginning(codec, at));
                        self.cut(at, out);
                        // The unit may have begun in an earlier PES packet.
                        self.trust = TRUST;
                        self.picture = Some(Picture::new(beginning));
                    }
                    None => self.picture = Some(Picture::new(beginning)),
                },
            }
        }
    }

    /// The beginning of a unit whose first start code prefix ends before `at`. It includes the zero
    /// byte of H.264 and H.265, unless that byte ends the previous PES packet: a time stamp belongs
    /// to the prefix with which its PES packet begins.
    fn beginning(&self, codec: Codec, at: usize) -> usize {
        let prefix = at.saturating_sub(3);
        let zero = prefix.saturating_sub(1);
        let bytes = self.unit.as_ref().map(|unit| unit.bytes.as_slice());
        let found = self.packets.binary_search_by_key(&prefix, |packet| {
            work::count(1);
            packet.at
        });
        let is_split = found.is_ok();
        match bytes.and_then(|bytes| bytes.get(zero)) {
            Some(0) if codec != Codec::Mpeg2 && !is_split => zero,
            _ => prefix,
        }
    }

    /// Ends the present unit before `at`, where the next one begins.
    fn cut(&mut self, at: usize, out: &mut Units) {
        while self.packets.get(1).is_some_and(|packet| packet.at <= at) {
            self.packets.pop_front();
        }
        let (Some(unit), Some(packet)) = (&mut self.unit, self.packets.front_mut()) else {
            return;
        };
        self.headers = None;
        if at <= self.from && packet.has_begun {
            // The present unit begins here, as its time stamp indicated.
            self.is_headless = false;
            return;
        }
        if !packet.has_begun {
            self.unaligned = match packet.at < at {
                true => FORGOTTEN,
                false => self.unaligned.saturating_sub(1),
            };
        }
        let held = core::mem::take(&mut unit.bytes);
        let bytes = held.get(self.from..at).unwrap_or_default().to_vec();
        let ended = core::mem::replace(unit, packet.begin(held));
        let is_headless = core::mem::take(&mut self.is_headless);
        if !bytes.is_empty() {
            let damaged = is_headless || self.damage.is_in(self.from..at);
            out.push(Ok(Whole {
                damaged,
                bytes,
                ..ended
            }));
        }
        self.from = at;
    }

    /// Drops the bytes before the present unit, after all cuts.
    fn settle(&mut self) {
        let from = core::mem::take(&mut self.from);
        if let Some(unit) = self.unit.as_mut().filter(|_| from > 0) {
            unit.bytes.drain(..from.min(unit.bytes.len()));
        }
        self.damage.pass(from);
        if from > 0 {
            for packet in &mut self.packets {
                work::count(1);
                packet.at = packet.at.saturating_sub(from);
            }
        }
        self.looked = self.looked.saturating_sub(from);
        self.headers = self.headers.map(|at| at.saturating_sub(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(codec: Codec, packets: &[(Times, Vec<u8>)]) -> Vec<(Times, usize)> {
        let mut pictures = Pictures::default();
        let mut units = Units::new();
        for (times, bytes) in packets {
            let packet = Whole {
                stream_id: 0xe0,
                times: *times,
                aligned: false,
                scrambled: false,
                marks: Marks::default(),
                follows: false,
                damaged: false,
                bytes: bytes.clone(),
            };
            pictures.take(
                codec,
                packet,
                &Damage::default(),
                (false, false),
                &mut units,
            );
        }
        pictures.flush(codec, &mut units);
        { units.into_iter().flatten() }
            .map(|unit| (unit.times, unit.bytes.len()))
            .collect()
    }

    const FIRST: Times = Times::Presentation(1);

    #[test]
    fn both_fields_of_a_frame_are_one_unit() {
        // Profile 66, parameter sets 0, 4 bits of frame_num, order type 2, one reference, no gaps,
        // 16x32, fields.
        let sequence = [0, 0, 1, 0x67, 66, 0, 30, 0b1101_1101, 0b1010_0000];
        let slice =
            |header: u8, fields: [u8; 2]| [&[0, 0, 1, header][..], &fields, &[0x80; 20]].concat();
        // first_mb 0, I, set 0, frame_num 0, a field, top or bottom; then P with frame_num 1.
        let intra = [0x84, 0x86].map(|fields| slice(0x65, [0x88, fields]));
        let predicted = [0x30, 0x38].map(|fields| slice(0x41, [0x9a, fields]));
        let frames = |sequence: &[u8]| {
            let frames = [&intra[0], &intra[1], &predicted[0], &predicted[1]];
            let frames = frames.map(Vec::as_slice).concat();
            units(Codec::H264, &[(FIRST, [sequence, &frames].concat())])
        };
        assert_eq!(
            frames(&sequence),
            [(FIRST, 9 + 2 * 26), (Times::None, 2 * 26)]
        );
        // Without fields, each is a picture: `frame_mbs_only_flag` is the tenth bit.
        let mut progressive = sequence;
        progressive[8] |= 0b0100_0000;
        assert_eq!(frames(&progressive).len(), 4);
        // In MPEG-2, the extension after the header determines it.
        let picture = |reference: u8, structure: u8| {
            let extension = [0, 0, 1, 0xb5, 0x8f, 0xff, 0xf0 | structure, 0];
            let header = [0, 0, 1, 0, 0, reference << 6 | 1 << 3, 0, 0];
            [&header[..], &extension, &[0, 0, 1, 1], &[0x80; 20]].concat()
        };
        for (structure, expected) in [(1, 2), (3, 3)] {
            let pictures = [
                picture(0, structure),
                picture(0, structure),
                picture(1, structure),
            ];
            assert_eq!(
                units(Codec::Mpeg2, &[(FIRST, pictures.concat())]).len(),
                expected
            );
        }
    }

    /// A sequence parameter set with 200 offsets for the order of pictures, before the field that
    /// states whether there are fields: profile 66, set 0, 4 bits of `frame_num`, order type 1.
    #[test]
    fn a_parameter_set_may_be_split() {
        let offsets = "1".repeat(200);
        let bits = format!("1_1_010_0_1_1_000000011001001_{offsets}_1_0_1_1_0_1000000");
        let bits: Vec<u8> = bits.bytes().filter(|bit| *bit != b'_').collect();
        let fields = { bits.chunks_exact(8) }
            .map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | (bit & 1)));
        let mut sequence = vec![0, 0, 1, 0x67, 66, 0, 30];
        sequence.extend(fields);
        // As in the previous test.
        let slice =
            |header: u8, fields: [u8; 2]| [&[0, 0, 1, header][..], &fields, &[0x80; 20]].concat();
        let fields = [
            slice(0x65, [0x88, 0x84]),
            slice(0x65, [0x88, 0x86]),
            slice(0x41, [0x9a, 0x30]),
            slice(0x41, [0x9a, 0x38]),
        ];
        let stream = [&sequence[..], &fields.concat()].concat();
        let expected = [(FIRST, sequence.len() + 2 * 26), (Times::None, 2 * 26)];
        for cut in 1..stream.len() {
            let (first, second) = stream.split_at(cut);
            let packets = [(FIRST, first.to_vec()), (Times::None, second.to_vec())];
            assert_eq!(units(Codec::H264, &packets), expected, "{cut}");
        }
    }

    /// Each with a time stamp: a delimiter, a parameter set, a message and eight slices.
    #[test]
    fn each_part_of_a_picture_may_have_a_pes_packet() {
        let slice = |first: u8| [&[0, 0, 1, 0x65, first][..], &[0x80; 20]].concat();
        let mut packets = Vec::new();
        for number in 0..20 {
            let mut add =
                |bytes: &[u8]| packets.push((Times::Presentation(number), bytes.to_vec()));
            add(&[0, 0, 0, 1, 9, 0xf0]);
            add(&[0, 0, 1, 0x68, 1, 2]);
            add(&[0, 0, 1, 6, 5, 1, 9]);
            // `first_mb_in_slice` is 0 for this slice, and 1 for the others.
            add(&slice(0x88));
            (0..7).for_each(|_| add(&slice(0x46)));
        }
        let length = 6 + 6 + 7 + 8 * 25;
        let expected = (0..20).map(|number| (Times::Presentation(number), length));
        assert!(units(Codec::H264, &packets).into_iter().eq(expected));
        // Headers that no picture follows are returned eventually.
        let alone = |number| (Times::Presentation(number), vec![0, 0, 1, 6, 5, 1, 9]);
        let packets: Vec<_> = (0..90).map(alone).collect();
        let lengths = units(Codec::H264, &packets);
        assert!(lengths.len() > 5 && lengths.iter().all(|(_, length)| *length < 90));
    }

    #[test]
    fn a_time_stamp_belongs_to_the_first_unit_that_begins_after_it() {
        let second = Times::Presentation(2);
        let picture = [&[0, 0, 0, 1, 9, 0xf0, 0, 0, 1, 0x65, 0x88][..], &[0x80; 29]].concat();
        let stream = picture.repeat(5);
        // 60 bytes: the second unit begins in the first packet, without a time stamp. The third has
        // the time stamp of the second packet.
        let packets = [
            (FIRST, stream[..60].to_vec()),
            (second, stream[60..].to_vec()),
        ];
        let times = [FIRST, Times::None, second, Times::None, Times::None];
        assert_eq!(units(Codec::H264, &packets), times.map(|times| (times, 40)));
        // If a stream begins with the end of a missing unit, that unit has no time stamp.
        let packets = [(second, stream[60..].to_vec())];
        let expected = [
            (Times::None, 20),
            (second, 40),
            (Times::None, 40),
            (Times::None, 40),
        ];
        assert_eq!(units(Codec::H264, &packets), expected);
    }
}
