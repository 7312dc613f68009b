//! PES packets of one stream, and the access units that they make.

use mpeg2ts_reader::pes::{DataAlignment, PesContents, PesHeader, PesLength, PtsDts};

use super::pictures::Pictures;
use super::sound::Sound;
use crate::codec::Codec;
use crate::header::Times;

/// What a transport packet says of the PES packet that begins in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) random_access: bool,
    pub(super) discontinuity: bool,
}

/// An access unit as the source had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) stream_id: u8,
    pub(super) times: Times,
    pub(super) aligned: bool,
    pub(super) scrambled: bool,
    pub(super) marks: Marks,
    /// Whether it begins in the same PES packet as the unit before, and so has no time stamp of its own.
    pub(super) follows: bool,
    pub(super) bytes: Vec<u8>,
}

/// What went wrong with an access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Damaged,
    Oversized(u64),
    /// Sound that is in no frame, where there were frames before.
    NoFrame,
}

/// How many bytes of a PES packet are enough to see whether a unit begins with it.
const SEEN_EARLY: usize = 512;

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
            Some(Codec::MultiplexedAudio) | None => Self::Whole,
        }
    }
}

/// Collects the PES packets of one stream, and gives the access units in them.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// The PES packet at hand, from its first byte.
    packet: Option<(Vec<u8>, Marks)>,
    pictures: Pictures,
    sound: Sound,
    /// Whether what goes on is to be left out, because its beginning was.
    is_broken: bool,
}

impl Assembler {
    /// A part of the stream is missing: the unit that it may belong to is left out.
    pub(super) fn interrupt(
        &mut self,
        codec: Option<Codec>,
        give: &mut impl FnMut(Result<Whole, Fault>),
    ) {
        let packet = self.packet.take();
        let start = packet
            .map(|(packet, marks)| parse_start(&packet, marks).filter(|packet| !packet.scrambled));
        match Cut::of(codec) {
            Cut::Pictures(codec) => self.pictures.interrupt(codec, start, give),
            Cut::Frames => {
                if let Some(packet) = start.flatten() {
                    self.sound.take(packet, (true, self.is_broken), give);
                }
                self.sound.interrupt();
            }
            Cut::Whole => {}
        }
        self.is_broken = true;
    }

    /// Whether a unit has begun that may not have ended.
    pub(super) fn is_within(&self) -> bool {
        self.packet.is_some() || self.pictures.is_holding() || self.sound.held() > 0
    }

    /// Whether a PES packet has begun that is not known to have ended.
    pub(super) const fn is_within_packet(&self) -> bool {
        self.packet.is_some()
    }

    pub(super) fn push(
        &mut self,
        codec: Option<Codec>,
        payload: &[u8],
        begins: Option<Marks>,
        longest: usize,
        give: &mut impl FnMut(Result<Whole, Fault>),
    ) {
        if let Some(marks) = begins {
            self.close(codec, give);
            self.packet = Some((Vec::new(), marks));
        }
        let Some((packet, marks)) = &mut self.packet else {
            return;
        };
        packet.extend(payload);
        if let Cut::Pictures(codec) = Cut::of(codec)
            && self.pictures.is_holding()
            && packet.len() <= SEEN_EARLY
            && let Some(start) = parse_start(packet, *marks).filter(|start| !start.scrambled)
        {
            self.pictures.begin(codec, &start, give);
        }
        let held = packet.len() + self.pictures.held() + self.sound.held();
        if held > longest {
            self.packet = None;
            self.pictures.clear();
            self.sound.interrupt();
            self.is_broken = true;
            give(Err(Fault::Oversized(held as u64)));
            return;
        }
        let complete = match PesHeader::from_bytes(packet).map(|header| header.pes_packet_length())
        {
            Some(PesLength::Bounded(length)) => packet.len() >= 6 + usize::from(length.get()),
            _ => false,
        };
        if complete {
            self.close(codec, give);
        }
    }

    /// No more will come.
    pub(super) fn finish(
        &mut self,
        codec: Option<Codec>,
        give: &mut impl FnMut(Result<Whole, Fault>),
    ) {
        self.close(codec, give);
        self.flush(codec, give);
    }

    /// Gives what is held of units.
    fn flush(&mut self, codec: Option<Codec>, give: &mut impl FnMut(Result<Whole, Fault>)) {
        if let Cut::Pictures(codec) = Cut::of(codec) {
            self.pictures.flush(codec, give);
        }
        self.sound.finish(give);
    }

    /// Ends the PES packet at hand.
    fn close(&mut self, codec: Option<Codec>, give: &mut impl FnMut(Result<Whole, Fault>)) {
        let Some((packet, marks)) = self.packet.take() else {
            return;
        };
        let Some(unit) = parse(&packet, marks) else {
            self.packet = Some((packet, marks));
            self.interrupt(codec, give);
            return give(Err(Fault::Damaged));
        };
        let is_broken = core::mem::take(&mut self.is_broken);
        match Cut::of(codec) {
            Cut::Pictures(codec) if !unit.scrambled => {
                self.pictures.take(codec, unit, is_broken, give);
            }
            Cut::Frames if !unit.scrambled => self.sound.take(unit, (false, is_broken), give),
            _ => {
                self.flush(codec, give);
                give(Ok(unit));
            }
        }
    }
}

fn parse(packet: &[u8], marks: Marks) -> Option<Whole> {
    let header = PesHeader::from_bytes(packet)?;
    let packet = match header.pes_packet_length() {
        PesLength::Unbounded => packet,
        PesLength::Bounded(length) => packet.get(..6 + usize::from(length.get()))?,
    };
    parse_start(packet, marks)
}

/// What a PES packet says, of which the end may be missing.
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

    /// A PES packet of stream 0xe0, with the time stamp 0 when it has one.
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

    fn feed(codec: Codec, packets: &[Vec<u8>]) -> Vec<Result<Vec<u8>, Fault>> {
        let mut units = Vec::new();
        let mut give = |unit: Result<Whole, Fault>| units.push(unit.map(|unit| unit.bytes));
        let mut assembler = Assembler::default();
        for packet in packets {
            assembler.push(Some(codec), packet, Some(Marks::default()), 60, &mut give);
        }
        assembler.finish(Some(codec), &mut give);
        units
    }

    const DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];

    #[test]
    fn a_unit_goes_on_in_packets_that_begin_none() {
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
    fn audio_is_given_as_soon_as_it_is_whole() {
        let mut units = 0;
        let mut assembler = Assembler::default();
        let whole = packet(true, true, &[1, 2]);
        let (start, end) = whole.split_at(10);
        let mut give = |unit: Result<Whole, Fault>| {
            assert_eq!(unit.expect("whole").times, Times::Presentation(0));
            units += 1;
        };
        assembler.push(
            Some(Codec::Audio),
            start,
            Some(Marks::default()),
            60,
            &mut give,
        );
        assembler.push(Some(Codec::Audio), end, None, 60, &mut give);
        assert_eq!(units, 1);
    }

    #[test]
    fn what_is_too_short_or_too_long_is_named() {
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
