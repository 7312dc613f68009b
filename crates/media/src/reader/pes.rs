//! PES packets of one stream, and the access units that they make.

use mpeg2ts_reader::pes::{DataAlignment, PesContents, PesHeader, PesLength, PtsDts};

use crate::codec::{Codec, begins_unit};
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
    pub(super) bytes: Vec<u8>,
}

/// What went wrong with an access unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Damaged,
    Oversized(u64),
}

/// Collects the PES packets of one stream.
///
/// A PES packet of video without a time stamp, in which no access unit begins, goes on with the one before.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// The PES packet at hand, from its first byte.
    packet: Option<(Vec<u8>, Marks)>,
    /// The unit that may still go on.
    pending: Option<Whole>,
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
        if let Some((packet, marks)) = self.packet.take() {
            let went_on = match (codec, parse_start(&packet, marks)) {
                (Some(codec), Some(unit)) => {
                    unit.times == Times::None && !begins_unit(codec, &unit.bytes)
                }
                _ => true,
            };
            if went_on {
                self.pending = None;
            }
        }
        self.flush(give);
        self.is_broken = true;
    }

    /// Whether a unit has begun that may not have ended.
    pub(super) const fn is_within(&self) -> bool {
        self.packet.is_some() || self.pending.is_some()
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
            self.close(codec, longest, give);
            self.packet = Some((Vec::new(), marks));
            if has_time(payload) {
                self.flush(give);
            }
        }
        let Some((packet, _)) = &mut self.packet else {
            return;
        };
        packet.extend(payload);
        let held = packet.len() + self.pending.as_ref().map_or(0, |unit| unit.bytes.len());
        if held > longest {
            self.packet = None;
            self.pending = None;
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
            self.close(codec, longest, give);
        }
    }

    /// No more will come.
    pub(super) fn finish(
        &mut self,
        codec: Option<Codec>,
        longest: usize,
        give: &mut impl FnMut(Result<Whole, Fault>),
    ) {
        self.close(codec, longest, give);
        self.flush(give);
    }

    fn flush(&mut self, give: &mut impl FnMut(Result<Whole, Fault>)) {
        if let Some(unit) = self.pending.take() {
            give(Ok(unit));
        }
    }

    /// Ends the PES packet at hand.
    fn close(
        &mut self,
        codec: Option<Codec>,
        longest: usize,
        give: &mut impl FnMut(Result<Whole, Fault>),
    ) {
        let Some((packet, marks)) = self.packet.take() else {
            return;
        };
        let Some(unit) = parse(&packet, marks) else {
            self.is_broken = true;
            return give(Err(Fault::Damaged));
        };
        let video = codec.filter(|&codec| codec != Codec::Audio && !unit.scrambled);
        let Some(video) = video else {
            self.is_broken = false;
            self.flush(give);
            return give(Ok(unit));
        };
        let goes_on = unit.times == Times::None && !begins_unit(video, &unit.bytes);
        match &mut self.pending {
            _ if goes_on && self.is_broken => {}
            Some(pending) if goes_on && pending.bytes.len() + unit.bytes.len() <= longest => {
                pending.bytes.extend(unit.bytes);
            }
            _ => {
                self.is_broken = false;
                self.flush(give);
                self.pending = Some(unit);
            }
        }
    }
}

/// Whether the PES header that these bytes begin with has a time stamp.
fn has_time(start: &[u8]) -> bool {
    start
        .get(6..8)
        .is_some_and(|flags| flags[0] >> 6 == 2 && flags[1] & 0x80 != 0)
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
        assembler.finish(Some(codec), 60, &mut give);
        units
    }

    const DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];

    #[test]
    fn a_unit_goes_on_in_packets_without_time_that_begin_none() {
        let units = feed(
            Codec::H264,
            &[
                packet(true, false, &DELIMITER),
                packet(false, true, &[1, 2]),
                packet(false, false, &DELIMITER),
                packet(true, false, &[3, 4]),
            ],
        );
        let first = [&DELIMITER[..], &[1, 2]].concat();
        assert_eq!(units, [Ok(first), Ok(DELIMITER.to_vec()), Ok(vec![3, 4])]);
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
