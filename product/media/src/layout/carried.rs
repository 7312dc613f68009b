//! The units whose bytes are in packets that were carried whole.
//!
//! No layout names a unit that the sender carried whole, although its section is sent. The restorer
//! recognises the unit by its bytes. After a missing layout, it writes none of them again.

use std::collections::{BTreeMap, VecDeque};

use super::packet::{Parts, ROOM, pes_header_length};
use super::waiting::{EACH, State, Stream};
use crate::header::PACKET;

/// The maximum memory of carried bytes whose units have not arrived. Beyond it, they are forgotten,
/// and their units may be written again after a missing layout.
const MAX_UNKNOWN: usize = 1 << 20;
/// The same for one PID, and the maximum length of a unit in which the bytes after a gap are
/// searched: that of a PES packet that states its length.
const MAX_UNKNOWN_EACH: usize = 64 << 10;
/// The maximum number of pieces of a PID, and of units that are compared with a packet.
const MAX_COMPARED: usize = 8;

/// The units in the carried packets that were written, by PID.
#[derive(Debug, Default)]
pub(super) struct CarriedUnits {
    pids: BTreeMap<u16, OnPid>,
    /// Whether a layout was missing. The unit of a PID may have begun in it.
    has_missed: bool,
    /// The memory of the bytes whose units have not arrived.
    unknown: usize,
}

/// The latest written packets of a PID.
#[derive(Debug, Default)]
struct OnPid {
    /// The stream of its units, once one has arrived.
    stream: Option<u16>,
    /// The unit in which the latest packet ends; `None` if it has not arrived.
    unit: Option<u64>,
    /// Bytes whose units have not arrived, in their order. If there are any, `unit` is `None`.
    pieces: VecDeque<Piece>,
    /// Whether packets are missing after the latest one.
    has_gap: bool,
}

/// Consecutive bytes of carried packets.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    /// Whether a unit begins with them.
    begins: bool,
}

impl CarriedUnits {
    /// Looks for a unit that has arrived, with this stream and number, in the carried packets.
    pub(super) fn on_unit(
        &mut self,
        pid: u16,
        (id, number): (u16, u64),
        streams: &mut BTreeMap<u16, Stream>,
    ) {
        self.begin(pid);
        self.change(pid, |on_pid| {
            if on_pid.stream.replace(id) != Some(id) {
                on_pid.unit = None;
            }
            if let Some(stream) = streams.get_mut(&id) {
                on_pid.claim(number, stream);
            }
        });
    }

    fn begin(&mut self, pid: u16) {
        let has_gap = self.has_missed;
        self.pids.entry(pid).or_insert_with(|| OnPid {
            has_gap,
            ..OnPid::default()
        });
    }

    /// Changes what is known of a PID, and counts its memory.
    fn change(&mut self, pid: u16, change: impl FnOnce(&mut OnPid)) {
        if let Some(on_pid) = self.pids.get_mut(&pid) {
            self.unknown -= on_pid.cost();
            change(on_pid);
            self.unknown += on_pid.cost();
        }
    }

    /// Follows a carried packet that was written.
    pub(super) fn on_carried(
        &mut self,
        packet: &[u8; PACKET],
        streams: &mut BTreeMap<u16, Stream>,
    ) {
        let Some((pid, begins, bytes)) = contents(packet) else {
            return;
        };
        // At a receiver that joined, the sections of a unit that began before never come.
        if begins || self.has_missed {
            self.begin(pid);
        }
        self.change(pid, |on_pid| {
            let mut none = Stream::default();
            let stream = { on_pid.stream }.and_then(|id| streams.get_mut(&id));
            on_pid.add(bytes, begins, stream.unwrap_or(&mut none));
        });
        if self.unknown > MAX_UNKNOWN {
            for on_pid in self.pids.values_mut() {
                on_pid.has_gap |= !on_pid.pieces.is_empty();
                on_pid.pieces = VecDeque::new();
            }
            self.unknown = 0;
        }
    }

    /// Follows a described packet that was written. It ends in this section of the stream `id`.
    pub(super) fn on_described(&mut self, pid: u16, id: u16, number: Option<u64>) {
        self.change(pid, |on_pid| {
            on_pid.pieces.clear();
            on_pid.unit = number.filter(|_| on_pid.stream == Some(id));
            on_pid.has_gap = false;
        });
    }

    /// Records that a packet of this PID is missing.
    pub(super) fn miss_packet(&mut self, pid: u16) {
        self.pids.entry(pid).or_default().has_gap = true;
    }

    /// Records that a layout is missing, perhaps with packets of each PID.
    pub(super) fn miss_layout(&mut self) {
        self.has_missed = true;
        for on_pid in self.pids.values_mut() {
            on_pid.has_gap = true;
        }
    }

    /// Whether a layout is missing before the next one with bytes of this PID's units.
    pub(super) fn follows_gap(&self, pid: u16, streams: &BTreeMap<u16, Stream>) -> bool {
        let on_pid = self.pids.get(&pid);
        let stream = on_pid.and_then(|on_pid| streams.get(&on_pid.stream?));
        stream.is_some_and(|stream| stream.has_gap)
    }

    /// The unit with bytes in a carried packet, the first one of its PID after a missing layout:
    /// its stream, its number, and the position of the packet in it.
    pub(super) fn unit_of(
        &self,
        packet: &[u8; PACKET],
        streams: &BTreeMap<u16, Stream>,
    ) -> Option<(u16, u64, usize)> {
        let (pid, begins, bytes) = contents(packet)?;
        let on_pid = self.pids.get(&pid)?;
        let id = on_pid.stream?;
        let stream = streams.get(&id)?;
        let present = on_pid.unit.filter(|_| !begins);
        let mut numbers = present.into_iter().chain(unwritten(stream));
        numbers.find_map(|number| {
            let held = stream.held.get(&number)?;
            let at = find(held.rest(), bytes, !begins)?;
            Some((id, number, held.written + at))
        })
    }
}

impl OnPid {
    fn cost(&self) -> usize {
        let pieces = self.pieces.iter();
        pieces.map(|piece| EACH + piece.bytes.len()).sum()
    }

    /// Adds the bytes of a carried packet. `begins` states whether a PES packet begins with them.
    fn add(&mut self, mut bytes: &[u8], mut begins: bool, stream: &mut Stream) {
        let unit = self.unit.filter(|_| !begins);
        if let Some(held) = unit.and_then(|number| stream.held.get_mut(&number)) {
            let length = held.rest().len();
            match find(held.rest(), bytes, self.has_gap) {
                Some(at) => {
                    let common = bytes.len().min(length - at);
                    held.written += at + common;
                    self.has_gap = false;
                    bytes = bytes.get(common..).unwrap_or_default();
                    if bytes.is_empty() {
                        return;
                    }
                    begins = true;
                }
                // Packets are missing between the unit and these bytes.
                None if self.has_gap => {}
                // The next unit begins behind a whole one.
                None if length == 0 => begins = true,
                // The packet is a copy of the one before it, for example.
                None => return,
            }
        }
        self.leave(stream);
        if begins || self.has_gap {
            let bytes = bytes.to_vec();
            self.pieces.push_back(Piece { bytes, begins });
        } else if let Some(piece) = self.pieces.back_mut() {
            piece.bytes.extend(bytes);
        } else {
            // The beginning of the unit is unknown, as at a receiver that joined.
            return;
        }
        while self.pieces.len() > MAX_COMPARED || self.cost() > MAX_UNKNOWN_EACH {
            self.pieces.pop_front();
        }
        self.has_gap = self.pieces.is_empty();
        for number in unwritten(stream) {
            self.claim(number, stream);
        }
    }

    /// Looks for the unit with this number in the pieces.
    fn claim(&mut self, number: u64, stream: &mut Stream) {
        if Some(number) < stream.carried {
            return;
        }
        let Some(held) = stream.held.get_mut(&number) else {
            return;
        };
        let payload = held.payload.clone();
        let content = payload.get(held.header..).unwrap_or_default();
        let has_it = |piece: &Piece| find(content, &piece.bytes, !piece.begins).is_some();
        let Some(first) = self.pieces.iter().position(has_it) else {
            return;
        };
        self.pieces.drain(..first);
        let mut written = 0;
        while let Some(piece) = self.pieces.front_mut() {
            let rest = content.get(written..).unwrap_or_default();
            let is_other = written > 0 && piece.begins;
            let found = find(rest, &piece.bytes, !piece.begins);
            let Some(at) = found.filter(|_| !is_other) else {
                break;
            };
            let common = piece.bytes.len().min(rest.len() - at);
            written += at + common;
            piece.bytes.drain(..common);
            if !piece.bytes.is_empty() {
                piece.begins = true;
                break;
            }
            self.pieces.pop_front();
        }
        // If other bytes follow, the output is past the unit's rest.
        let is_latest = self.pieces.is_empty();
        held.written = if is_latest { written } else { content.len() };
        self.unit = is_latest.then_some(number);
        stream.carried = Some(number);
    }

    /// Leaves the present unit: the output is past its rest.
    fn leave(&mut self, stream: &mut Stream) {
        let unit = self.unit.take();
        let held = unit.and_then(|number| stream.held.get_mut(&number));
        if let Some(held) = held.filter(|held| held.written > 0) {
            held.written += held.rest().len();
        }
    }
}

/// The PID of a packet with payload, whether a PES packet begins in it, and its bytes behind the
/// header of that one.
fn contents(packet: &[u8; PACKET]) -> Option<(u16, bool, &[u8])> {
    let parts = Parts::of(packet).filter(|parts| parts.has_payload)?;
    let payload = parts.payload(packet);
    let header = match parts.begins {
        true => pes_header_length(payload),
        false => None,
    };
    let bytes = payload.get(header.unwrap_or(0)..)?;
    Some((parts.pid, header.is_some(), bytes))
}

/// The first units of a stream that are not written, as far as known, nor before a carried one.
fn unwritten(stream: &Stream) -> Vec<u64> {
    let held = stream.held.range(stream.carried.unwrap_or(0)..);
    let unwritten = held.filter(|(_, held)| held.state == State::Fresh && held.written == 0);
    { unwritten.map(|(&number, _)| number) }
        .take(MAX_COMPARED)
        .collect()
}

/// The position in a unit from which it agrees with `bytes`, up to the end of the shorter one. It
/// is the beginning, unless the bytes follow a gap.
fn find(unit: &[u8], bytes: &[u8], follows_gap: bool) -> Option<usize> {
    let at = match follows_gap {
        false => 0,
        true if unit.len() > MAX_UNKNOWN_EACH => return None,
        true => memchr::memmem::find(unit, bytes.get(..ROOM).unwrap_or(bytes))?,
    };
    let rest = unit.get(at..)?;
    let agrees = rest.starts_with(bytes) || bytes.starts_with(rest);
    (agrees && !rest.is_empty() && !bytes.is_empty()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A unit is in progress on each of 8,000 PIDs, and none of them arrives.
    #[test]
    fn carried_bytes_of_missing_units_take_limited_memory() {
        const PIDS: u16 = 8_000;
        let (mut carried, mut streams) = (CarriedUnits::default(), BTreeMap::new());
        let mut most = 0;
        for round in 0..520_u16 {
            // One PID has many packets, and then all have a few.
            let pid = if round < 500 { 0..1 } else { 0..PIDS };
            for pid in pid {
                let mut packet = [7; PACKET];
                let [high, low] = pid.to_be_bytes();
                let begins = if round % 100 == 0 { 0x40 } else { 0 };
                packet[..4].copy_from_slice(&[0x47, begins | high, low, 0x10]);
                packet[4..13].copy_from_slice(&[0, 0, 1, 0xbd, 0, 0, 0x80, 0, 0]);
                carried.on_carried(&packet, &mut streams);
                most = most.max(carried.unknown);
                assert!(carried.unknown <= MAX_UNKNOWN);
            }
            let each = carried.pids.values().map(OnPid::cost);
            assert!(each.clone().all(|cost| cost <= MAX_UNKNOWN_EACH));
            assert_eq!(carried.unknown, each.sum::<usize>());
        }
        assert!(most > MAX_UNKNOWN / 2, "{most}");
        assert!(streams.is_empty());
    }
}
