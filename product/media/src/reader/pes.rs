//! PES packets of one stream, and the access units in them.

use super::pictures::Pictures;
use super::sound::Sound;
use super::unit::{Damage, Fault, Marks, Units, Whole};
use crate::codec::Codec;
use crate::header::Times;
use crate::pes::{PADDING, PesHeader};

/// The number of bytes of a PES packet in which the beginning of a unit can be detected.
const SEEN_EARLY: usize = 512;
/// After this many PES packets, a property that none of them had is assumed to be absent from the
/// stream.
const KNOWN: u8 = 8;

/// How the PES packets of a stream are cut into units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Pictures(Codec),
    Frames,
    /// Each PES packet is a unit.
    Whole,
}

impl Cut {
    const fn of(codec: Option<Codec>) -> Self {
        match codec {
            Some(codec @ (Codec::Mpeg2 | Codec::H264 | Codec::H265)) => Self::Pictures(codec),
            Some(Codec::Audio) => Self::Frames,
            Some(Codec::WholeAudio) | None => Self::Whole,
        }
    }
}

/// The payload of one transport packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub(super) payload: &'a [u8],
    /// The properties of the PES packet that begins here, if one does.
    pub(super) begins: Option<Marks>,
    /// Whether the transport packet has stuffing, and thus had room for more of the PES packet.
    pub(super) is_filled: bool,
    /// Whether the transport packet is marked as wrong (`transport_error_indicator`).
    pub(super) is_suspect: bool,
}

/// A PES packet that has not ended, from its first byte on.
#[derive(Debug, Default)]
struct Packet {
    bytes: Vec<u8>,
    marks: Marks,
    damage: Damage,
    /// Whether bytes of it are missing.
    is_cut: bool,
    /// Whether it is longer than its header states.
    overruns: bool,
    /// Whether the rest of it is scrambled.
    is_clear_part: bool,
    /// The number of its payload bytes that are already in units.
    given: usize,
}

/// A PES packet that has ended, as far as known.
#[derive(Debug)]
struct Ended {
    /// Its properties.
    packet: Whole,
    /// Whether its length marked the end, not stuffing.
    by_length: bool,
}

/// Collects the PES packets of one stream, and returns the access units in them.
///
/// A PES packet of video need not contain its length. It then ends where the next one begins. It
/// also ends with a transport packet that has stuffing, because there was no more data to fill it
/// (ISO/IEC 13818-1 2.4.3.5). Multiplexers may stuff other packets too, so this rule applies only
/// after 8 PES packets of the stream without stuffing inside. If the rule fails nevertheless, the
/// rest of the PES packet becomes a separate unit.
///
/// Everything that a player would decode is kept: a PES packet that is cut, or whose length differs
/// from its header, extends to the next one. Bytes after missing data that follow a whole PES
/// packet belong to a PES packet whose header is missing. Players drop them, and so does this.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    packet: Option<Packet>,
    /// The number of complete PES packets, up to [`KNOWN`].
    ended: u8,
    /// Whether the latest transport packet of the present PES packet had stuffing.
    is_filled: bool,
    /// Whether a PES packet was seen that continued after stuffing.
    fills_within: bool,
    latest: Option<Ended>,
    /// How many consecutive PES packets must have the length of their header before a length ends a
    /// PES packet again.
    distrust: u8,
    has_reported_length: bool,
    /// The length of the longest PES packet so far, in bytes.
    longest: usize,
    pictures: Pictures,
    sound: Sound,
    /// Whether data before the next PES packet is missing.
    is_broken: bool,
    /// Whether dropped bytes without a header have been reported.
    has_reported_rest: bool,
}

impl Assembler {
    /// Handles missing data, after which a PES packet `begins` or continues. Returns whether it is
    /// certain that no unit is damaged.
    pub(super) fn interrupt(
        &mut self,
        codec: Option<Codec>,
        begins: bool,
        out: &mut Units,
    ) -> bool {
        let has_end = core::mem::take(&mut self.is_filled) && self.knows_end(codec);
        if has_end && self.packet.as_ref().is_some_and(Packet::is_open) {
            self.end(codec, out);
        }
        if let Some(packet) = &mut self.packet {
            packet.cut();
            return false;
        }
        let was_broken = core::mem::replace(&mut self.is_broken, true);
        let is_within = match Cut::of(codec) {
            Cut::Pictures(codec) => self.pictures.interrupt(codec, out),
            Cut::Frames => self.sound.interrupt(out),
            Cut::Whole => false,
        };
        self.has_reported_rest &= was_broken;
        begins && !is_within && !was_broken
    }

    /// Whether stuffing marks the last transport packet of a PES packet.
    fn knows_end(&self, codec: Option<Codec>) -> bool {
        matches!(Cut::of(codec), Cut::Pictures(_)) && self.ended >= KNOWN && !self.fills_within
    }

    /// Whether a unit has begun and may be incomplete.
    pub(super) fn is_within(&self) -> bool {
        self.packet.is_some() || self.pictures.is_holding() || self.sound.held() > 0
    }

    /// The memory that it uses, in bytes.
    pub(super) fn memory(&self) -> usize {
        let packet = self.packet.as_ref().map_or(0, |packet| packet.bytes.len());
        packet + self.pictures.memory() + self.sound.held()
    }

    /// Drops the incomplete units.
    pub(super) fn give_up(&mut self, out: &mut Units) {
        self.refuse(self.memory(), out);
    }

    /// Whether a PES packet has begun and is not known to be complete.
    pub(super) const fn is_within_packet(&self) -> bool {
        self.packet.is_some()
    }

    pub(super) fn push(
        &mut self,
        codec: Option<Codec>,
        part: Part<'_>,
        longest: usize,
        out: &mut Units,
    ) {
        if let Some(marks) = part.begins {
            self.close(codec, out);
            self.packet = Some(Packet {
                marks,
                ..Packet::default()
            });
            self.latest = None;
        } else {
            let may_go_on =
                self.packet.is_some() || self.latest.as_ref().is_some_and(Ended::is_open);
            self.fills_within |= self.is_filled && may_go_on;
        }
        self.is_filled = part.is_filled;
        let trusts_length = self.distrust == 0;
        let Some(packet) = &mut self.packet else {
            return self.go_on(codec, part, longest, out);
        };
        let before = packet.bytes.len();
        packet.bytes.extend(part.payload);
        if part.is_suspect {
            packet.damage.add(before..packet.bytes.len());
        }
        let header = PesHeader::read(&packet.bytes);
        if let Cut::Pictures(codec) = Cut::of(codec)
            && self.pictures.is_holding()
            && packet.bytes.len() <= SEEN_EARLY
            && let Some(header) = header.filter(|header| !header.scrambled)
        {
            self.pictures.begin(codec, &packet.payload(&header), out);
        }
        let is_overrun = packet.overruns;
        packet.overruns |= trusts_length && header.is_some_and(|header| packet.is_over(&header));
        let is_wrong = packet.overruns && !is_overrun && packet.damage.is_none();
        if is_wrong {
            self.doubt(out);
        }
        let Some(packet) = &self.packet else { return };
        let held = packet.bytes.len() + self.pictures.held() + self.sound.held();
        if held > longest {
            return self.refuse(held, out);
        }
        let length = header.and_then(|header| packet.length(&header));
        let has_ended = match length {
            Some(length) => trusts_length && packet.bytes.len() >= length,
            None => header.is_some() && part.is_filled && self.knows_end(codec),
        };
        // A multiplexer may split pictures that are too long for it.
        let may_be_split = length.is_some_and(|length| length > self.longest);
        if has_ended {
            self.end(codec, out);
            if let Cut::Pictures(codec) = Cut::of(codec)
                && self.ended >= KNOWN
                && self.pictures.end_with_packets()
                && !may_be_split
            {
                self.pictures.end(codec, out);
            }
        } else if let (Cut::Frames, Some(header)) = (Cut::of(codec), header) {
            self.give_frames(&header, out);
        }
    }

    /// Returns the whole frames of sound in the present PES packet, which may take long to end.
    fn give_frames(&mut self, header: &PesHeader, out: &mut Units) {
        let Some(packet) = &mut self.packet else {
            return;
        };
        let is_sure = packet.damage.is_none() && !self.is_broken;
        if !is_sure || header.scrambled || header.stream_id == PADDING {
            return;
        }
        let end = header.length.unwrap_or(usize::MAX).min(packet.bytes.len());
        let new = packet.bytes.get(header.size + packet.given..end);
        let length = self.sound.whole_frames(new.unwrap_or_default());
        if let Some(bytes) = new.and_then(|new| new.get(..length)).filter(|_| length > 0) {
            let frames = Whole {
                bytes: bytes.to_vec(),
                ..packet.properties(header)
            };
            packet.given += length;
            self.sound.take(frames, &Damage::default(), false, out);
        }
    }

    /// Stops trusting lengths.
    fn doubt(&mut self, out: &mut Units) {
        self.distrust = KNOWN;
        if !core::mem::replace(&mut self.has_reported_length, true) {
            out.push(Err(Fault::Length));
        }
    }

    /// Ends the present PES packet, although more of it may follow.
    fn end(&mut self, codec: Option<Codec>, out: &mut Units) {
        self.latest = self.packet.as_ref().and_then(|packet| {
            let header = PesHeader::read(&packet.bytes)?;
            Some(Ended {
                packet: packet.properties(&header),
                by_length: packet.length(&header).is_some(),
            })
        });
        self.close(codec, out);
    }

    /// Adds the continuation of a PES packet that was assumed to be complete.
    fn go_on(&mut self, codec: Option<Codec>, part: Part<'_>, longest: usize, out: &mut Units) {
        let is_missing = self.is_broken;
        let Some(latest) = { &self.latest }
            .as_ref()
            .filter(|latest| latest.is_open() || !is_missing)
        else {
            if is_missing && !core::mem::replace(&mut self.has_reported_rest, true) {
                out.push(Err(Fault::Headless));
            }
            return;
        };
        let held = self.pictures.held() + self.sound.held() + part.payload.len();
        let rest = latest
            .packet
            .continued(part.payload.to_vec(), is_missing || part.is_suspect);
        if latest.by_length {
            self.doubt(out);
        }
        if held > longest {
            self.latest = None;
            return self.refuse(held, out);
        }
        let mut damage = Damage::default();
        if part.is_suspect {
            damage.add(0..part.payload.len());
        }
        self.is_broken = false;
        self.take(codec, rest, &damage, (is_missing, true), out);
    }

    /// Drops data beyond the limit.
    fn refuse(&mut self, held: usize, out: &mut Units) {
        self.packet = None;
        self.latest = None;
        self.pictures.clear();
        self.sound.clear();
        self.is_broken = true;
        self.has_reported_rest = true;
        out.push(Err(Fault::Oversized(held as u64)));
    }

    /// Handles a scrambled transport packet of the stream: returns the clear bytes before it, as a
    /// unit.
    pub(super) fn end_clear(&mut self, codec: Option<Codec>, out: &mut Units) {
        if let Some(packet) = &mut self.packet {
            packet.is_clear_part = true;
        }
        self.latest = None;
        if self.is_within() {
            self.close(codec, out);
            self.flush(codec, out);
        }
    }

    /// Handles a long silence of the stream: returns the present picture. If the length of its PES
    /// packet shows that more should follow, the rest counts as missing.
    pub(super) fn give_up_waiting(&mut self, codec: Option<Codec>, out: &mut Units) {
        if let Some(packet) = &mut self.packet {
            if !packet.is_open() {
                packet.cut();
            }
            self.end(codec, out);
        }
        if let Cut::Pictures(codec) = Cut::of(codec) {
            self.pictures.flush(codec, out);
        }
    }

    /// Handles the end of the source.
    pub(super) fn finish(&mut self, codec: Option<Codec>, out: &mut Units) {
        if let Some(packet) = &mut self.packet
            && !packet.is_open()
            && self.distrust == 0
        {
            packet.cut();
        }
        self.close(codec, out);
        self.flush(codec, out);
    }

    /// Returns the incomplete units.
    fn flush(&mut self, codec: Option<Codec>, out: &mut Units) {
        if let Cut::Pictures(codec) = Cut::of(codec) {
            self.pictures.flush(codec, out);
        }
        self.sound.finish(out);
    }

    /// Ends the present PES packet.
    fn close(&mut self, codec: Option<Codec>, out: &mut Units) {
        let Some(mut packet) = self.packet.take() else {
            return;
        };
        let Some(header) = PesHeader::read(&packet.bytes) else {
            self.is_broken = true;
            self.has_reported_rest = true;
            return out.push(Err(Fault::Headless));
        };
        if header.stream_id == PADDING {
            return;
        }
        let mut is_cut = packet.damage.reaches(packet.bytes.len());
        if let Some(length) = header.length {
            let is_right = packet.bytes.len() == length || packet.is_filled_from(length);
            // If bytes of it are missing, it contains bytes of the next one instead.
            is_cut |= is_right && packet.is_cut;
            if is_right {
                packet.bytes.truncate(length);
                self.distrust = self.distrust.saturating_sub(1);
            } else if packet.damage.is_none() && !packet.is_clear_part {
                self.doubt(out);
            }
        }
        self.ended = KNOWN.min(self.ended + 1);
        self.longest = self.longest.max(packet.bytes.len());
        let is_missing = core::mem::replace(&mut self.is_broken, is_cut);
        packet.damage.pass(header.size + packet.given);
        let payload = packet.payload(&header);
        if packet.given > 0 {
            return self.sound.take_rest(payload, &packet.damage, out);
        }
        self.take(codec, payload, &packet.damage, (is_missing, false), out);
    }

    /// Adds the payload of a PES packet, or its rest if `is_rest`. If `is_missing`, data before it
    /// is missing.
    fn take(
        &mut self,
        codec: Option<Codec>,
        packet: Whole,
        damage: &Damage,
        (is_missing, is_rest): (bool, bool),
        out: &mut Units,
    ) {
        match Cut::of(codec) {
            Cut::Pictures(codec) if !packet.scrambled => {
                self.pictures
                    .take(codec, packet, damage, (is_missing, is_rest), out);
            }
            Cut::Frames if !packet.scrambled => self.sound.take(packet, damage, is_missing, out),
            _ => {
                self.flush(codec, out);
                let damaged = packet.damaged || !damage.is_none();
                out.push(Ok(Whole { damaged, ..packet }));
            }
        }
    }
}

impl Packet {
    /// Records that bytes are missing here.
    fn cut(&mut self) {
        let at = self.bytes.len();
        self.damage.add(at..at);
        self.is_cut = true;
    }

    /// Its length, if it is known.
    fn length(&self, header: &PesHeader) -> Option<usize> {
        header.length.filter(|_| !self.overruns)
    }

    /// Whether only the beginning of the next PES packet shows its end.
    fn is_open(&self) -> bool {
        PesHeader::read(&self.bytes).is_some_and(|header| self.length(&header).is_none())
    }

    /// Whether it continues beyond the length in its header, with more than stuffing.
    fn is_over(&self, header: &PesHeader) -> bool {
        let length = header.length.unwrap_or(usize::MAX);
        self.bytes.len() > length && !self.is_filled_from(length)
    }

    /// Whether it contains only stuffing beyond this length.
    fn is_filled_from(&self, length: usize) -> bool {
        let rest = self.bytes.get(length..).unwrap_or_default();
        !rest.is_empty() && rest.iter().all(|&byte| byte == 0xff)
    }

    /// The payload that is not in units yet.
    fn payload(&self, header: &PesHeader) -> Whole {
        let rest = self.bytes.get(header.size + self.given..);
        Whole {
            bytes: rest.unwrap_or_default().to_vec(),
            ..self.properties(header)
        }
    }

    /// The properties of the payload that is not in units yet. The time stamps and marks are those
    /// of the first unit.
    fn properties(&self, header: &PesHeader) -> Whole {
        let is_first = self.given == 0;
        Whole {
            stream_id: header.stream_id,
            times: if is_first { header.times } else { Times::None },
            aligned: header.aligned,
            scrambled: header.scrambled,
            marks: if is_first {
                self.marks
            } else {
                Marks::default()
            },
            follows: false,
            damaged: false,
            bytes: Vec::new(),
        }
    }
}

impl Ended {
    /// Whether more of it may follow.
    const fn is_open(&self) -> bool {
        !self.by_length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PES packet of stream 0xe0, with the time stamp 0 if `timed`.
    fn packet(timed: bool, bounded: bool, payload: &[u8]) -> Vec<u8> {
        let fields: &[u8] = if timed {
            &[0x80, 0x80, 5, 0x21, 0, 1, 0, 1]
        } else {
            &[0x80, 0, 0]
        };
        let length = if bounded {
            u8::try_from(fields.len() + payload.len()).expect("short")
        } else {
            0
        };
        [&[0, 0, 1, 0xe0, 0, length], fields, payload].concat()
    }

    fn part(payload: &[u8], begins: bool, is_filled: bool) -> Part<'_> {
        Part {
            payload,
            begins: begins.then(Marks::default),
            is_filled,
            is_suspect: false,
        }
    }

    fn bytes(units: Units) -> Vec<Result<Vec<u8>, Fault>> {
        { units.into_iter() }
            .map(|unit| unit.map(|unit| unit.bytes))
            .collect()
    }

    fn whole(units: Units) -> Vec<Vec<u8>> {
        { bytes(units).into_iter() }
            .map(|unit| unit.expect("whole"))
            .collect()
    }

    fn feed(codec: Codec, packets: &[Vec<u8>]) -> Vec<Result<Vec<u8>, Fault>> {
        let mut units = Units::new();
        let mut assembler = Assembler::default();
        for packet in packets {
            assembler.push(Some(codec), part(packet, true, false), 60, &mut units);
        }
        assembler.finish(Some(codec), &mut units);
        bytes(units)
    }

    const DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];

    #[test]
    fn a_unit_continues_in_packets_that_begin_none() {
        let picture = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x88]].concat();
        let units = feed(
            Codec::H264,
            &[
                packet(true, false, &picture),
                packet(false, true, &[1, 2]),
                packet(false, false, &picture),
                packet(true, false, &[3, 4]),
            ],
        );
        let first = [&picture[..], &[1, 2]].concat();
        let second = [&picture[..], &[3, 4]].concat();
        assert_eq!(units, [Ok(first), Ok(second)]);
    }

    /// ISO/IEC 13818-1 2.4.3.7: a time stamp belongs to the unit that begins in its PES packet, and
    /// a unit begins with its headers (ITU-T H.264 7.4.1.2.3).
    #[test]
    fn headers_in_a_pes_packet_of_their_own_are_those_of_the_next_picture() {
        let slice = |number: u8| [0, 0, 1, 0x65, 0x88, number, number];
        for is_bounded in [false, true] {
            for (is_head_timed, is_rest_timed) in [(true, true), (true, false), (false, true)] {
                let pictures = (0..20).flat_map(|number| {
                    [
                        packet(is_head_timed, is_bounded, &DELIMITER),
                        packet(is_rest_timed, is_bounded, &slice(number)),
                    ]
                });
                let (mut assembler, mut units) = (Assembler::default(), Units::new());
                for packet in pictures {
                    let part = part(&packet, true, false);
                    assembler.push(Some(Codec::H264), part, 60, &mut units);
                }
                assembler.finish(Some(Codec::H264), &mut units);
                let what = (is_bounded, is_head_timed, is_rest_timed);
                let is_timed = |unit: &Whole| unit.times == Times::Presentation(0);
                assert!(units.iter().flatten().all(is_timed), "{what:?}");
                let expected = (0..20).map(|number| [&DELIMITER[..], &slice(number)].concat());
                assert!(whole(units).into_iter().eq(expected), "{what:?}");
            }
        }
    }

    #[test]
    fn headers_behind_a_picture_are_those_of_the_next_one() {
        let slice = |number: u8| [0, 0, 1, 0x65, 0x88, number];
        let picture = |number: u8| [&DELIMITER[..], &slice(number)].concat();
        for is_bounded in [false, true] {
            let packets: Vec<_> = (0..30)
                .map(|number| match number {
                    ..10 => picture(number),
                    10 => [&picture(10), &DELIMITER[..]].concat(),
                    11..29 => [&slice(number), &DELIMITER[..]].concat(),
                    _ => slice(number).to_vec(),
                })
                .map(|bytes| packet(true, is_bounded, &bytes))
                .collect();
            let units = feed(Codec::H264, &packets);
            let expected = (0..30).map(|number| Ok(picture(number)));
            assert!(units.into_iter().eq(expected), "{is_bounded}");
        }
    }

    #[test]
    fn audio_is_returned_as_soon_as_it_is_complete() {
        let mut units = Units::new();
        let mut assembler = Assembler::default();
        let whole = packet(true, true, &[1, 2]);
        let (start, end) = whole.split_at(10);
        assembler.push(Some(Codec::Audio), part(start, true, false), 60, &mut units);
        assembler.push(Some(Codec::Audio), part(end, false, false), 60, &mut units);
        let [Ok(unit)] = &units[..] else {
            panic!("{units:?}")
        };
        assert_eq!(unit.times, Times::Presentation(0));
    }

    /// Pictures in transport packets: the beginning of a PES packet without a length, and a last
    /// packet with stuffing.
    fn pictures(count: usize) -> Vec<[Vec<u8>; 2]> {
        let picture = |number: usize| {
            let number = u8::try_from(number).expect("few");
            let start = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x88, number]].concat();
            [packet(true, false, &start), vec![number; 3]]
        };
        (0..count).map(picture).collect()
    }

    fn push(assembler: &mut Assembler, payload: &[u8], begins: bool, fills: bool) -> Vec<u8> {
        let mut units = Units::new();
        let part = part(payload, begins, fills);
        assembler.push(Some(Codec::H264), part, 600, &mut units);
        whole(units).concat()
    }

    #[test]
    fn stuffing_ends_a_picture_once_the_stream_is_known() {
        let mut assembler = Assembler::default();
        for (number, [start, end]) in pictures(20).iter().enumerate() {
            // Up to the ninth picture, each is returned when the next one begins. The ninth is
            // returned at its own end.
            let given = push(&mut assembler, start, true, false);
            assert_eq!(given.len(), if (1..9).contains(&number) { 15 } else { 0 });
            let given = push(&mut assembler, end, false, true);
            assert_eq!(given.len(), if number >= 8 { 15 } else { 0 }, "{number}");
        }
        // A picture without stuffing is returned when the next one begins.
        let [start, end] = &pictures(2)[1];
        assert_eq!(push(&mut assembler, start, true, false), []);
        assert_eq!(push(&mut assembler, end, false, false), []);
        assert_eq!(push(&mut assembler, start, true, false).len(), 15);
    }

    /// Later parts of a picture have no time stamp.
    #[test]
    fn pictures_that_are_too_long_for_a_pes_packet_stay_whole() {
        let picture = |number: u8| {
            let mut bytes = [&DELIMITER[..], &[0, 0, 1, 0x65, 0x88, number]].concat();
            bytes.resize(if number < 10 { 100 } else { 250 }, 0x55);
            bytes
        };
        for most in [110, 220] {
            let (mut assembler, mut units) = (Assembler::default(), Units::new());
            for picture in (0..20).map(picture) {
                for (at, bytes) in picture.chunks(most).enumerate() {
                    let bytes = packet(at == 0, true, bytes);
                    let part = part(&bytes, true, false);
                    assembler.push(Some(Codec::H264), part, 600, &mut units);
                }
            }
            assembler.finish(Some(Codec::H264), &mut units);
            assert!(whole(units).into_iter().eq((0..20).map(picture)), "{most}");
        }
        // A picture no longer than those before is returned at its own end.
        let mut assembler = Assembler::default();
        for number in 0..10 {
            let bytes = packet(true, true, &picture(number));
            let mut units = Units::new();
            let part = part(&bytes, true, false);
            assembler.push(Some(Codec::H264), part, 600, &mut units);
            let expected = match number {
                0 => 0,
                7 => 2,
                _ => 1,
            };
            assert_eq!(units.len(), expected, "{number}");
        }
    }

    #[test]
    fn stuffing_within_a_picture_disables_the_rule_at_no_cost() {
        for learns_late in [false, true] {
            let mut assembler = Assembler::default();
            let (mut given, mut sent) = (Vec::new(), Vec::new());
            for (number, [start, end]) in pictures(30).iter().enumerate() {
                let fills = number == 12 || !learns_late;
                given.push(push(&mut assembler, start, true, fills));
                given.push(push(&mut assembler, end, false, true));
                sent.extend([&start[14..], end].concat());
            }
            let mut units = Units::new();
            assembler.finish(Some(Codec::H264), &mut units);
            given.extend(whole(units));
            assert_eq!(given.concat(), sent, "{learns_late}");
            let early = given.chunks(2).take(30).filter(|pair| pair[1].len() == 15);
            // From the ninth picture up to the one that disproves the rule, or none.
            assert_eq!(early.count(), if learns_late { 4 } else { 0 });
        }
    }

    #[test]
    fn a_break_after_stuffing_damages_no_picture() {
        for (count, is_filled, is_certain) in
            [(12, true, true), (12, false, false), (5, true, false)]
        {
            let mut assembler = Assembler::default();
            let mut units = Units::new();
            for (number, [start, end]) in pictures(count).iter().enumerate() {
                let fills = number + 1 < count || is_filled;
                for part in [part(start, true, false), part(end, false, fills)] {
                    assembler.push(Some(Codec::H264), part, 600, &mut units);
                }
            }
            let certain = assembler.interrupt(Some(Codec::H264), true, &mut units);
            assert_eq!(certain, is_certain, "{count}, {is_filled}");
            assembler.finish(Some(Codec::H264), &mut units);
            let damaged: Vec<bool> = { units.iter().flatten() }
                .map(|unit| unit.damaged)
                .collect();
            let expected: Vec<bool> = (1..=count)
                .map(|number| number == count && !is_certain)
                .collect();
            assert_eq!(damaged, expected, "{count}, {is_filled}");
            assert_eq!(whole(units).concat().len(), 15 * count);
        }
    }

    /// Whether each unit is damaged, and its length.
    fn lengths(units: &Units) -> Vec<Result<(bool, usize), Fault>> {
        let of = |unit: &Whole| (unit.damaged, unit.bytes.len());
        { units.iter() }
            .map(|unit| unit.as_ref().map(of).map_err(|&fault| fault))
            .collect()
    }

    #[test]
    fn missing_data_is_between_the_bytes_that_came() {
        let bounded = packet(true, true, &[9; 40]);
        let next = packet(true, true, &[8; 5]);
        // The bytes from the 20th up to this one are missing.
        for (to, left) in [(28, 32), (54, 6)] {
            let (mut assembler, mut units) = (Assembler::default(), Units::new());
            assembler.push(None, part(&bounded[..20], true, false), 600, &mut units);
            assert!(!assembler.interrupt(None, false, &mut units));
            assembler.push(None, part(&bounded[to..], false, false), 600, &mut units);
            assembler.push(None, part(&next, true, false), 600, &mut units);
            assert_eq!(lengths(&units), [Ok((true, left)), Ok((false, 5))], "{to}");
        }
        // The rest of a PES packet whose header is missing is dropped if it follows a whole PES
        // packet.
        let (mut assembler, mut units) = (Assembler::default(), Units::new());
        assembler.push(None, part(&bounded, true, false), 600, &mut units);
        assert!(!assembler.interrupt(None, false, &mut units));
        for _ in 0..3 {
            assembler.push(None, part(&[7; 9], false, false), 600, &mut units);
        }
        assembler.push(None, part(&next, true, false), 600, &mut units);
        assert!(assembler.interrupt(None, true, &mut units));
        let expected = [Ok((false, 40)), Err(Fault::Headless), Ok((false, 5))];
        assert_eq!(lengths(&units), expected);
    }

    #[test]
    fn a_pes_packet_is_as_long_as_its_bytes_whatever_it_says() {
        let mut stream = Vec::new();
        for number in 0..12_u8 {
            let mut bytes = packet(true, true, &[number; 40]);
            // Too short by half, too long, or with stuffing after it.
            match number % 4 {
                0 => bytes[5] -= 20,
                1 => bytes[5] += 7,
                2 => bytes.extend([0xff; 3]),
                _ => {}
            }
            stream.push(bytes);
        }
        for cut in [10, 20, 30, 34, 54] {
            let (mut assembler, mut units) = (Assembler::default(), Units::new());
            for bytes in &stream {
                let (start, end) = bytes.split_at(cut);
                for (bytes, begins) in [(start, true), (end, false)] {
                    if begins || !bytes.is_empty() {
                        assembler.push(None, part(bytes, begins, false), 600, &mut units);
                    }
                }
            }
            assembler.finish(None, &mut units);
            let reported = units.iter().filter(|unit| unit.is_err()).count();
            assert_eq!(reported, 1, "{cut}");
            units.retain(Result::is_ok);
            assert!(units.iter().flatten().all(|unit| !unit.damaged), "{cut}");
            let all: Vec<u8> = (0..12).flat_map(|number| [number; 40]).collect();
            assert_eq!(whole(units).concat(), all, "{cut}");
        }
    }

    #[test]
    fn wrong_lengths_and_units_that_are_too_long_are_reported() {
        let mut cut = packet(true, true, &[1, 2, 3]);
        cut.truncate(15);
        assert_eq!(
            feed(Codec::Audio, &[cut, packet(true, true, &[4])]),
            [Err(Fault::Length), Ok(vec![1]), Ok(vec![4])]
        );
        let long = packet(true, false, &[7; 60]);
        assert_eq!(
            feed(Codec::H264, &[long, packet(true, false, &[5])]),
            [Err(Fault::Oversized(74)), Ok(vec![5])]
        );
    }
}
