//! PES packets of one stream, and the access units in them.

use super::pictures::{FORGOTTEN, Pictures};
use super::sound::Sound;
use super::unit::{Damage, Fault, Marks, Units, Whole};
use crate::codec::Codec;
use crate::header::Times;
use crate::pes::{PADDING, PesHeader};
use crate::work;

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
    /// For how many more PES packets it counts that some PES packet continued after stuffing.
    fills_within: u16,
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
        matches!(Cut::of(codec), Cut::Pictures(_)) && self.ended >= KNOWN && self.fills_within == 0
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
            if self.is_filled && may_go_on {
                self.fills_within = FORGOTTEN;
            }
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
        self.fills_within = self.fills_within.saturating_sub(1);
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
        work::count(rest.map_or(0, <[u8]>::len));
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
mod tests;
