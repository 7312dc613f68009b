//! PES packets of one stream, and the access units in them.

use mpeg2ts_reader::pes::{DataAlignment, PesContents, PesHeader, PesLength, PtsDts};

use super::pictures::Pictures;
use super::sound::Sound;
use super::unit::{Fault, Marks, Units, Whole};
use crate::codec::Codec;
use crate::header::Times;

/// The data to drop where part of a stream is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// A unit.
    Unit,
    /// More of a unit that was already dropped.
    Rest,
    /// No part of any unit.
    Nothing,
}

/// How many bytes of a PES packet suffice to detect the beginning of a unit.
const SEEN_EARLY: usize = 512;
/// After this many PES packets, a property that none of them had is assumed to be absent from the
/// stream.
const KNOWN: u8 = 8;

/// How the PES packets of a stream are cut into units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Pictures(Codec),
    Frames,
    /// Each is a unit.
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
    /// Whether the transport packet has stuffing: it had room for more of the PES packet.
    pub(super) is_filled: bool,
}

/// Collects the PES packets of one stream, and returns the access units in them.
///
/// A PES packet of video need not contain its length. It then ends where the next one begins. It
/// also ends with a transport packet that has stuffing, because no more data was available to fill
/// it (ISO/IEC 13818-1 2.4.3.5). Multiplexers may stuff other packets too, so this rule needs 8 PES
/// packets of the stream without stuffing inside. If the rule is wrong even so, the rest of the PES
/// packet becomes a unit of its own.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// The present PES packet, from its first byte.
    packet: Option<(Vec<u8>, Marks)>,
    /// The number of complete PES packets, up to [`KNOWN`].
    ended: u8,
    /// Whether the latest transport packet of the present PES packet had stuffing.
    is_filled: bool,
    /// Whether a PES packet was seen that continued after stuffing.
    fills_within: bool,
    /// The PES packet that was assumed to end with stuffing, without its bytes.
    taken_as_ended: Option<Whole>,
    pictures: Pictures,
    sound: Sound,
    /// Whether to drop the continuation, because its beginning was dropped.
    is_broken: bool,
}

impl Assembler {
    /// Handles missing data, after which a PES packet `begins` or continues: drops the unit that it
    /// may belong to. Returns the dropped data.
    pub(super) fn interrupt(
        &mut self,
        codec: Option<Codec>,
        begins: bool,
        out: &mut Units,
    ) -> Interrupted {
        let has_end = core::mem::take(&mut self.is_filled) && self.tells_end(codec);
        if has_end
            && self
                .packet
                .as_ref()
                .is_some_and(|(packet, _)| length_of(packet) == Length::Open)
        {
            self.close(codec, out);
        }
        self.taken_as_ended = None;
        let is_within = self.packet.is_some() || self.pictures.may_go_on() || self.sound.held() > 0;
        let interrupted = match (is_within, self.is_broken) {
            (true, _) => Interrupted::Unit,
            (false, true) => Interrupted::Rest,
            (false, false) if begins => Interrupted::Nothing,
            (false, false) => Interrupted::Unit,
        };
        let packet = self.packet.take();
        let start = packet
            .map(|(packet, marks)| parse_start(&packet, marks).filter(|packet| !packet.scrambled));
        match Cut::of(codec) {
            Cut::Pictures(codec) => self.pictures.interrupt(codec, start, out),
            Cut::Frames => {
                if let Some(packet) = start.flatten() {
                    self.sound.take(packet, (true, self.is_broken), out);
                }
                self.sound.interrupt();
            }
            Cut::Whole => {}
        }
        self.is_broken = true;
        interrupted
    }

    /// Whether stuffing marks the last transport packet of a PES packet.
    fn tells_end(&self, codec: Option<Codec>) -> bool {
        matches!(Cut::of(codec), Cut::Pictures(_)) && self.ended >= KNOWN && !self.fills_within
    }

    /// Whether a unit has begun and may be incomplete.
    pub(super) fn is_within(&self) -> bool {
        self.packet.is_some() || self.pictures.is_holding() || self.sound.held() > 0
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
            self.packet = Some((Vec::new(), marks));
            self.taken_as_ended = None;
        } else {
            self.fills_within |= self.is_filled && self.is_open();
        }
        self.is_filled = part.is_filled;
        let Some((packet, marks)) = &mut self.packet else {
            return self.go_on(codec, part.payload, longest, out);
        };
        packet.extend(part.payload);
        if let Cut::Pictures(codec) = Cut::of(codec)
            && self.pictures.is_holding()
            && packet.len() <= SEEN_EARLY
            && let Some(start) = parse_start(packet, *marks).filter(|start| !start.scrambled)
        {
            self.pictures.begin(codec, &start, out);
        }
        let length = length_of(packet);
        let held = packet.len() + self.pictures.held() + self.sound.held();
        if held > longest {
            return self.refuse(held, out);
        }
        let has_ended = match length {
            Length::Known(length) => packet.len() >= length,
            Length::Open => part.is_filled && self.tells_end(codec),
            Length::Unread => false,
        };
        if has_ended {
            if length == Length::Open
                && let Some((packet, marks)) = &self.packet
            {
                self.taken_as_ended = parse_start(packet, *marks).map(Whole::emptied);
            }
            self.close(codec, out);
            if let Cut::Pictures(codec) = Cut::of(codec)
                && self.ended >= KNOWN
                && self.pictures.end_with_packets()
            {
                self.pictures.flush(codec, out);
            }
        }
    }

    /// Whether a PES packet could continue.
    const fn is_open(&self) -> bool {
        self.packet.is_some() || self.taken_as_ended.is_some()
    }

    /// Adds the continuation of a PES packet that was assumed to be complete.
    fn go_on(&mut self, codec: Option<Codec>, payload: &[u8], longest: usize, out: &mut Units) {
        let (Some(packet), Cut::Pictures(codec)) = (&self.taken_as_ended, Cut::of(codec)) else {
            return;
        };
        let held = self.pictures.held() + payload.len();
        if held > longest {
            self.taken_as_ended = None;
            return self.refuse(held, out);
        }
        let rest = Whole {
            times: Times::None,
            aligned: false,
            marks: Marks::default(),
            bytes: payload.to_vec(),
            ..*packet
        };
        self.pictures.take(codec, rest, false, out);
    }

    /// Drops data beyond the limit.
    fn refuse(&mut self, held: usize, out: &mut Units) {
        self.packet = None;
        self.pictures.clear();
        self.sound.interrupt();
        self.is_broken = true;
        out.push(Err(Fault::Oversized(held as u64)));
    }

    /// Handles a long silence of the stream: returns the present picture, unless its PES packet
    /// announces more of it.
    pub(super) fn give_up_waiting(&mut self, codec: Option<Codec>, out: &mut Units) {
        if let Some((packet, marks)) = &self.packet {
            if length_of(packet) != Length::Open {
                return;
            }
            self.taken_as_ended = parse_start(packet, *marks).map(Whole::emptied);
            self.close(codec, out);
        }
        if let Cut::Pictures(codec) = Cut::of(codec) {
            self.pictures.flush(codec, out);
        }
    }

    /// Handles the end of the source.
    pub(super) fn finish(&mut self, codec: Option<Codec>, out: &mut Units) {
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

    /// Ends the PES packet at hand.
    fn close(&mut self, codec: Option<Codec>, out: &mut Units) {
        let Some((packet, marks)) = self.packet.take() else {
            return;
        };
        let Some(unit) = parse(&packet, marks) else {
            self.packet = Some((packet, marks));
            self.interrupt(codec, false, out);
            return out.push(Err(Fault::Damaged));
        };
        self.ended = KNOWN.min(self.ended + 1);
        let is_broken = core::mem::take(&mut self.is_broken);
        match Cut::of(codec) {
            Cut::Pictures(codec) if !unit.scrambled => {
                self.pictures.take(codec, unit, is_broken, out);
            }
            Cut::Frames if !unit.scrambled => self.sound.take(unit, (false, is_broken), out),
            _ => {
                self.flush(codec, out);
                out.push(Ok(unit));
            }
        }
    }
}

/// The length in the header of a PES packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// With its header.
    Known(usize),
    /// It does not.
    Open,
    /// Too few bytes have arrived.
    Unread,
}

fn length_of(packet: &[u8]) -> Length {
    match PesHeader::from_bytes(packet).map(|header| header.pes_packet_length()) {
        Some(PesLength::Bounded(length)) => Length::Known(6 + usize::from(length.get())),
        Some(PesLength::Unbounded) => Length::Open,
        None => Length::Unread,
    }
}

fn parse(packet: &[u8], marks: Marks) -> Option<Whole> {
    let packet = match length_of(packet) {
        Length::Unread => return None,
        Length::Open => packet,
        Length::Known(length) => packet.get(..length)?,
    };
    parse_start(packet, marks)
}

/// Parses a PES packet whose end may be missing.
fn parse_start(packet: &[u8], marks: Marks) -> Option<Whole> {
    let stream_id = *packet.get(3)?;
    match PesHeader::from_bytes(packet)?.contents() {
        PesContents::Payload(payload) => Some(Whole {
            stream_id,
            times: Times::None,
            aligned: false,
            scrambled: false,
            marks,
            follows: false,
            bytes: payload.to_vec(),
        }),
        PesContents::Parsed(contents) => {
            let contents = contents?;
            let times = match contents.pts_dts() {
                Ok(PtsDts::PtsOnly(Ok(pts))) => Times::Presentation(pts.value()),
                Ok(PtsDts::Both {
                    pts: Ok(pts),
                    dts: Ok(dts),
                }) => Times::Both {
                    presentation: pts.value(),
                    decoding: dts.value(),
                },
                _ => Times::None,
            };
            Some(Whole {
                stream_id,
                times,
                aligned: contents.data_alignment_indicator() == DataAlignment::Aligned,
                scrambled: packet.get(6)? & 0x30 != 0,
                marks,
                follows: false,
                bytes: contents.payload().to_vec(),
            })
        }
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

    /// A picture in transport packets: the beginning of a PES packet without a length, and a last
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
            // From the ninth up to the one that disproves the rule, or none.
            assert_eq!(early.count(), if learns_late { 4 } else { 0 });
        }
    }

    #[test]
    fn a_break_after_stuffing_costs_no_picture() {
        for (count, is_filled, expected) in [
            (12, true, (Interrupted::Nothing, 0)),
            (12, false, (Interrupted::Unit, 0)),
            (5, true, (Interrupted::Unit, 0)),
        ] {
            let mut assembler = Assembler::default();
            let pictures = pictures(count);
            let mut given = 0;
            for (number, [start, end]) in pictures.iter().enumerate() {
                given += push(&mut assembler, start, true, false).len();
                let fills = number + 1 < count || is_filled;
                given += push(&mut assembler, end, false, fills).len();
            }
            let mut behind = Units::new();
            let interrupted = assembler.interrupt(Some(Codec::H264), true, &mut behind);
            assert_eq!(
                (interrupted, behind.len()),
                expected,
                "{count}, {is_filled}"
            );
            let whole = count - usize::from(interrupted == Interrupted::Unit);
            assert_eq!(given, 15 * whole, "{count}, {is_filled}");
        }
    }

    #[test]
    fn units_that_are_too_short_or_too_long_are_reported() {
        let mut cut = packet(true, true, &[1, 2, 3]);
        cut.truncate(15);
        assert_eq!(
            feed(Codec::Audio, &[cut, packet(true, true, &[4])]),
            [Err(Fault::Damaged), Ok(vec![4])]
        );
        let long = packet(true, false, &[7; 60]);
        assert_eq!(
            feed(Codec::H264, &[long, packet(true, false, &[5])]),
            [Err(Fault::Oversized(74)), Ok(vec![5])]
        );
    }
}
