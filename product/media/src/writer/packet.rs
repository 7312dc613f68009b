//! Transport packets: ISO/IEC 13818-1, 2.4.3.

use std::collections::{BTreeMap, BTreeSet};

use crate::header::{PACKET, Times, Unit};
use crate::pes::{has_fields, stamps};

/// The contents of an adaptation field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// The clock reference, in ticks of 90 kHz.
    pub(super) clock: Option<u64>,
    pub(super) discontinuity: bool,
    pub(super) random_access: bool,
}

impl Field {
    /// The flags and the clock reference, without the length before them; empty for an empty field.
    fn bytes(self) -> Vec<u8> {
        if self == Self::default() {
            return Vec::new();
        }
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let mut bytes = vec![
            flag(self.discontinuity, 0x80)
                | flag(self.random_access, 0x40)
                | flag(self.clock.is_some(), 0x10),
        ];
        if let Some(clock) = self.clock {
            // 33 bits of base, six reserved ones, nine bits of extension: zero.
            let field = (clock & 0x1_ffff_ffff) << 15 | 0x7e00;
            bytes.extend(&field.to_be_bytes()[2..]);
        }
        bytes
    }
}

/// The number of bytes after the header of a packet.
const ROOM: usize = PACKET - 4;

/// Writes packets with a continuity counter for each PID.
#[derive(Debug, Default)]
pub(super) struct Packetiser {
    counters: BTreeMap<u16, u8>,
    packets: u64,
    copied: u64,
}

impl Packetiser {
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Counts a packet that was copied.
    pub(super) const fn on_copied(&mut self) {
        self.copied += 1;
    }

    /// The number of packets, including copied ones.
    pub(super) const fn position(&self) -> u64 {
        self.packets + self.copied
    }

    /// Continues after a packet that was not made here, with its counter.
    pub(super) fn follow(&mut self, pid: u16, counter: u8) {
        self.counters.insert(pid, counter);
    }

    /// The PIDs that have a counter.
    pub(super) fn pids(&self) -> BTreeSet<u16> {
        self.counters.keys().copied().collect()
    }

    /// The latest counter of a PID.
    pub(super) fn counter(&self, pid: u16) -> Option<u8> {
        self.counters.get(&pid).copied()
    }

    /// The number of bytes of a table section in packets.
    pub(super) const fn length(section: &[u8]) -> usize {
        (1 + section.len()).div_ceil(ROOM) * PACKET
    }

    /// Writes a table section in separate packets.
    pub(super) fn section(&mut self, pid: u16, section: &[u8], out: &mut Vec<u8>) {
        // With this pointer, the section begins immediately. 0xff after it is stuffing.
        let mut payload = vec![0];
        payload.extend(section);
        let whole = payload.len().div_ceil(ROOM) * ROOM;
        payload.resize(whole, 0xff);
        for (index, part) in payload.chunks(ROOM).enumerate() {
            self.packet(pid, index == 0, &[], part, out);
        }
    }

    /// Writes a packet without payload.
    pub(super) fn field(&mut self, pid: u16, field: Field, out: &mut Vec<u8>) {
        self.packet(pid, false, &field.bytes(), &[], out);
    }

    /// Writes an access unit as one PES packet, or as several if it is too long and not video.
    pub(super) fn unit(&mut self, unit: &Unit, field: Field, bytes: &[u8], out: &mut Vec<u8>) {
        let is_video = unit.stream_id & 0xf0 == 0xe0;
        let part = if is_video { usize::MAX } else { LONGEST_PART };
        let mut field = field.bytes();
        for (index, bytes) in bytes.chunks(part).enumerate() {
            let times = if index == 0 { unit.times } else { Times::None };
            let mut header = pes_header(unit, times, index == 0, bytes);
            let first = ROOM
                .saturating_sub(field_room(&field))
                .saturating_sub(header.len());
            let (start, rest) = bytes.split_at(first.min(bytes.len()));
            header.extend(start);
            self.packet(unit.pid, true, &field, &header, out);
            self.go_on(unit.pid, rest, out);
            field.clear();
        }
    }

    /// Continues the PES packet of this PID.
    pub(super) fn go_on(&mut self, pid: u16, bytes: &[u8], out: &mut Vec<u8>) {
        for part in bytes.chunks(ROOM) {
            self.packet(pid, false, &[], part, out);
        }
    }

    /// Writes one packet: its payload, and an adaptation field that fills the rest.
    fn packet(&mut self, pid: u16, begins: bool, field: &[u8], payload: &[u8], out: &mut Vec<u8>) {
        let counter = self.counters.entry(pid).or_insert(15);
        if !payload.is_empty() {
            *counter = (*counter + 1) % 16;
        }
        let has_field = !field.is_empty() || payload.len() < ROOM;
        let control = if has_field { 0x20 } else { 0 } | if payload.is_empty() { 0 } else { 0x10 };
        out.push(0x47);
        out.extend((pid & 0x1fff | if begins { 0x4000 } else { 0 }).to_be_bytes());
        out.push(control | *counter);
        if has_field {
            let length = ROOM.saturating_sub(payload.len() + 1);
            out.push(u8::try_from(length).unwrap_or(0));
            let stuffed = out.len() + length;
            if length > 0 {
                out.extend(if field.is_empty() { &[0][..] } else { field });
            }
            out.resize(stuffed, 0xff);
        }
        out.extend(payload);
        self.packets += 1;
    }
}

const fn field_room(field: &[u8]) -> usize {
    if field.is_empty() { 0 } else { 1 + field.len() }
}

/// The maximum number of bytes in a PES packet whose length has 16 bits, without its header.
const LONGEST_PART: usize = 65_535 - 13;

/// PES_header_data_length of teletext and other lines of the vertical blanking interval.
const LINES_HEADER: usize = 0x24;

/// Whether these are teletext (EN 300 472, 4.2) or other lines of the vertical blanking interval
/// (EN 301 775, 4.3), whose PES packets fill whole transport packets, with a header of 45 bytes.
fn fills_packets(stream_id: u8, bytes: &[u8]) -> bool {
    const PRIVATE_STREAM_1: u8 = 0xbd;
    let has_lines = matches!(bytes.first(), Some(0x10..=0x1f | 0x99..=0x9b));
    let is_whole = (9 + LINES_HEADER + bytes.len()).is_multiple_of(ROOM);
    stream_id == PRIVATE_STREAM_1 && has_lines && is_whole
}

fn pes_header(unit: &Unit, times: Times, begins: bool, bytes: &[u8]) -> Vec<u8> {
    let mut fields = Vec::new();
    if has_fields(unit.stream_id) {
        let aligned = if unit.aligned && begins { 0x04 } else { 0 };
        fields.push(0x80 | aligned);
        let (flags, mut stamps) = stamps(times);
        if fills_packets(unit.stream_id, bytes) {
            stamps.resize(LINES_HEADER, 0xff);
        }
        fields.extend([flags, u8::try_from(stamps.len()).unwrap_or(0)]);
        fields.extend(stamps);
    }
    // Video too long for the field has length 0, which means unspecified.
    let length = u16::try_from(fields.len() + bytes.len()).unwrap_or(0);
    let mut header = vec![0, 0, 1, unit.stream_id];
    header.extend(length.to_be_bytes());
    header.extend(fields);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_frames::FrameType;
    use mpeg2ts_reader::packet::Packet;
    use proptest::prelude::*;

    fn unit(stream_id: u8, times: Times) -> Unit {
        Unit {
            pid: 0x101,
            stream_type: 0x0f,
            stream_id,
            frame: FrameType::Audio,
            times,
            random_access: true,
            discontinuity: false,
            aligned: true,
        }
    }

    #[test]
    fn fields_have_the_bits_of_the_standard() {
        let field = Field {
            clock: Some(1),
            discontinuity: true,
            random_access: false,
        };
        assert_eq!(field.bytes(), [0x90, 0, 0, 0, 0, 0xfe, 0]);
    }

    #[test]
    fn units_too_long_for_a_pes_packet_are_split_unless_video() {
        let bytes = vec![7; 70_000];
        let headers = |stream_id: u8| {
            let (mut packetiser, mut out) = (Packetiser::default(), Vec::new());
            let unit = unit(stream_id, Times::Presentation(1));
            packetiser.unit(&unit, Field::default(), &bytes, &mut out);
            let packets = out
                .as_chunks::<PACKET>()
                .0
                .iter()
                .map(|packet| Packet::new(packet));
            packets
                .filter(Packet::payload_unit_start_indicator)
                .filter_map(|packet| packet.payload().map(|payload| payload[4..9].to_vec()))
                .collect::<Vec<_>>()
        };
        assert_eq!(headers(0xe0), [[0, 0, 0x84, 0x80, 5]]);
        // 65522 + 8 bytes, then the rest (4478 + 3), without a time stamp.
        assert_eq!(
            headers(0xc0),
            [[0xff, 0xfa, 0x84, 0x80, 5], [0x11, 0x81, 0x80, 0x00, 0]]
        );
    }

    proptest! {
        /// A unit of any length is read back unchanged by an independent packet reader.
        #[test]
        fn units_of_any_length_are_whole(
            bytes in prop::collection::vec(any::<u8>(), 1..800),
            stamps in 0_u8..3,
            clock in prop::option::of(0_u64..1 << 33),
        ) {
            let times = [
                Times::None,
                Times::Presentation(5),
                Times::Both { presentation: 9, decoding: 5 },
            ][usize::from(stamps)];
            let (mut packetiser, mut out) = (Packetiser::default(), Vec::new());
            let field = Field { clock, discontinuity: false, random_access: true };
            packetiser.unit(&unit(0xc0, times), field, &bytes, &mut out);
            let (packets, rest) = out.as_chunks::<PACKET>();
            prop_assert!(rest.is_empty());
            let mut payload = Vec::new();
            for (index, packet) in packets.iter().enumerate() {
                let packet = Packet::new(packet);
                prop_assert_eq!(usize::from(packet.continuity_counter().count()), index % 16);
                prop_assert_eq!(packet.payload_unit_start_indicator(), index == 0);
                let read = packet.adaptation_field().and_then(|field| field.pcr().ok());
                prop_assert_eq!(read.map(|clock| clock.base()), clock.filter(|_| index == 0));
                payload.extend(packet.payload().unwrap_or_default());
            }
            prop_assert!(payload.ends_with(&bytes));
            let stamps = usize::from(stamps);
            prop_assert_eq!(payload.len() - bytes.len(), 9 + 5 * stamps);
        }
    }
}
