//! Takes a packet apart into the content of a layout and of sections, and puts it together again.

use super::model::{Field, Made, NULL, Null, Prefix, Run};
use crate::header::{PACKET, Unit};
use crate::pes::{has_fields, stamps};

/// The number of bytes after the header of a packet.
pub(super) const ROOM: usize = PACKET - 4;
/// The flag of an adaptation field with a clock reference.
pub(super) const CLOCK: u8 = 0x10;
/// The period of a clock: 33 bits of base, and an extension of 9 bits up to 299.
pub(super) const CLOCK_WRAP: u64 = (1 << 33) * 300;

/// The header of a packet, and the positions of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) pid: u16,
    pub(super) counter: u8,
    pub(super) begins: bool,
    pub(super) has_error: bool,
    priority: bool,
    scrambling: u8,
    has_field: bool,
    pub(super) has_payload: bool,
    /// The position of the payload.
    payload: usize,
}

impl Parts {
    /// Reads a header; `None` if the adaptation field is longer than the packet.
    pub(super) fn of(packet: &[u8; PACKET]) -> Option<Self> {
        let [_, second, third, fourth, length, ..] = *packet;
        let has_field = fourth & 0x20 != 0;
        let payload = if has_field {
            5 + usize::from(length)
        } else {
            4
        };
        (payload <= PACKET).then_some(Self {
            pid: u16::from_be_bytes([second & 0x1f, third]),
            counter: fourth & 0x0f,
            begins: second & 0x40 != 0,
            has_error: second & 0x80 != 0,
            priority: second & 0x20 != 0,
            scrambling: fourth >> 6,
            has_field,
            has_payload: fourth & 0x10 != 0,
            payload,
        })
    }

    /// The payload; empty if the packet has none.
    pub(super) fn payload<'a>(&self, packet: &'a [u8; PACKET]) -> &'a [u8] {
        match self.has_payload {
            true => packet.get(self.payload..).unwrap_or_default(),
            false => &[],
        }
    }

    /// The clock reference in ticks of 27 MHz. `None` if there is none, or if its extension or
    /// reserved bits are unusual.
    pub(super) fn clock(&self, packet: &[u8; PACKET]) -> Option<u64> {
        let field = packet.get(5..self.payload)?;
        (self.has_field && !self.has_error && field.first()? & 0x10 != 0)
            .then(|| read_clock(field.get(1..)?))
            .flatten()
    }
}

/// The clock reference of a packet in ticks of 27 MHz.
pub(crate) fn read_clock_of(packet: &[u8; PACKET]) -> Option<u64> {
    Parts::of(packet)?.clock(packet)
}

/// The packet with its transport_error_indicator cleared.
pub(super) fn without_error(packet: &[u8; PACKET]) -> [u8; PACKET] {
    let mut bytes = *packet;
    bytes[1] &= 0x7f;
    bytes
}

/// The length of the header of the PES packet that begins here, if the header is complete.
pub(super) fn pes_header_length(payload: &[u8]) -> Option<usize> {
    if !payload.starts_with(&[0, 0, 1]) {
        return None;
    }
    let length = match has_fields(*payload.get(3)?) {
        true => 9 + usize::from(*payload.get(8)?),
        false => 6,
    };
    (length <= payload.len()).then_some(length)
}

/// The description of a null packet whose payload repeats one byte.
pub(super) fn null(packet: &[u8; PACKET]) -> Option<Null> {
    let [_, second, third, control, fill, ..] = *packet;
    let is_null = u16::from_be_bytes([second & 0x1f, third]) == NULL && control & 0x30 == 0x10;
    let is_even = || { packet.iter().skip(5) }.all(|&byte| byte == fill);
    (is_null && is_even()).then_some(Null {
        flags: second & 0xe0,
        control,
        fill,
    })
}

/// Describes a packet whose payload consists of `prefix` bytes and these parts of sections; `None`
/// if it does not. `unit` is the first unit that begins in the packet. `is_table` states that its
/// payload has pointers.
pub(super) fn take_apart<'a>(
    packet: &[u8; PACKET],
    (prefix, is_table): (usize, bool),
    runs: Vec<Run>,
    unit: Option<&Unit>,
    content: impl Fn(&Run) -> Option<&'a [u8]>,
) -> Option<Made> {
    let parts = Parts::of(packet)?;
    if parts.has_error || !parts.has_field && !parts.has_payload {
        return None;
    }
    let field = match parts.has_field {
        true => Some(read_field(packet.get(5..parts.payload)?)?),
        false => None,
    };
    let head = parts.payload(packet).get(..prefix)?;
    let mut made = Made {
        pid: parts.pid,
        counter: parts.counter,
        begins: parts.begins,
        priority: parts.priority,
        scrambling: parts.scrambling,
        has_payload: parts.has_payload,
        field,
        prefix: Prefix::Nothing,
        runs,
    };
    let short = match *head {
        [] => None,
        [pointer] if is_table => Some(Prefix::Pointer(pointer)),
        [0, 0, 1, id, high, low, flags, _, data, ..] if has_fields(id) => {
            let usual = unit.map_or(0x80, usual_flags);
            Some(Prefix::Pes {
                length: u16::from_be_bytes([high, low]),
                flags: (flags != usual).then_some(flags),
                data,
            })
        }
        _ => None,
    };
    let is_right = |made: &Made| put_together(made, unit, &content) == Some(*packet);
    if let Some(short) = short {
        made.prefix = short;
        if is_right(&made) {
            return Some(made);
        }
    }
    if !head.is_empty() {
        made.prefix = Prefix::Literal(head.to_vec());
    }
    is_right(&made).then_some(made)
}

/// Makes the packet; `None` if its parts do not fit, or some of them are missing.
pub(super) fn put_together<'a>(
    made: &Made,
    unit: Option<&Unit>,
    content: impl Fn(&Run) -> Option<&'a [u8]>,
) -> Option<[u8; PACKET]> {
    let mut out = Assembly::default();
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    let [high, low] = (made.pid & 0x1fff).to_be_bytes();
    out.add(&[
        0x47,
        high | flag(made.begins, 0x40) | flag(made.priority, 0x20),
        low,
        (made.scrambling & 3) << 6
            | flag(made.field.is_some(), 0x20)
            | flag(made.has_payload, 0x10)
            | made.counter & 0x0f,
    ])?;
    if let Some(field) = &made.field {
        let planned: usize = made.runs.iter().map(Run::len).sum();
        let behind = prefix_length(&made.prefix) + planned;
        let length = ROOM.checked_sub(1 + behind)?;
        out.add(&[u8::try_from(length).ok()?])?;
        let end = out.at + length;
        // A field of length zero has no flags.
        if field.flags != 0 || length > 0 {
            out.add(&[field.flags])?;
        }
        if let Some(clock) = field.clock {
            out.add(&clock_bytes(clock))?;
        }
        out.add(&field.rest)?;
        out.fill_to(end)?;
    }
    out.add_prefix(&made.prefix, unit)?;
    for run in &made.runs {
        out.add(content(run)?)?;
    }
    (made.field.is_none() || out.at == PACKET).then_some(out.bytes)
}

/// A packet that is written from its beginning, and filled with ff.
#[derive(Debug)]
struct Assembly {
    bytes: [u8; PACKET],
    at: usize,
}

impl Default for Assembly {
    fn default() -> Self {
        Self {
            bytes: [0xff; PACKET],
            at: 0,
        }
    }
}

impl Assembly {
    fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at + bytes.len();
        self.bytes.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }

    /// Keeps ff up to this position.
    fn fill_to(&mut self, end: usize) -> Option<()> {
        (self.at <= end && end <= PACKET).then(|| self.at = end)
    }

    fn add_prefix(&mut self, prefix: &Prefix, unit: Option<&Unit>) -> Option<()> {
        match *prefix {
            Prefix::Nothing => Some(()),
            Prefix::Pointer(pointer) => self.add(&[pointer]),
            Prefix::Literal(ref bytes) => self.add(bytes),
            Prefix::Pes {
                length,
                flags,
                data,
            } => {
                let unit = unit?;
                let (stamps, times) = stamps(unit.times);
                let flags = flags.unwrap_or(usual_flags(unit));
                let [high, low] = length.to_be_bytes();
                self.add(&[0, 0, 1, unit.stream_id, high, low, flags, stamps, data])?;
                let end = self.at + usize::from(data);
                self.add(&times)?;
                self.fill_to(end)
            }
        }
    }
}

/// A packet without payload, which replaces a missing packet.
pub(crate) fn without_payload(
    pid: u16,
    counter: u8,
    discontinuity: bool,
    clock: Option<u64>,
) -> [u8; PACKET] {
    let mut packet = [0xff; PACKET];
    let [high, low] = (pid & 0x1fff).to_be_bytes();
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    let flags = flag(discontinuity, 0x80) | flag(clock.is_some(), 0x10);
    let mut head = vec![0x47, high, low, 0x20 | counter & 0x0f, 183, flags];
    if let Some(clock) = clock {
        head.extend(clock_bytes(clock));
    }
    for (to, from) in packet.iter_mut().zip(head) {
        *to = from;
    }
    packet
}

/// The null packet with this description.
pub(crate) fn null_packet(null: Null) -> [u8; PACKET] {
    let mut packet = [null.fill; PACKET];
    let [high, low] = NULL.to_be_bytes();
    let head = [0x47, high | null.flags & 0xe0, low, null.control];
    for (to, from) in packet.iter_mut().zip(head) {
        *to = from;
    }
    packet
}

/// The length of a field without stuffing, including its length byte.
pub(super) fn field_length(field: &Field) -> usize {
    match (field.flags, field.clock) {
        (0, _) => 1,
        (_, Some(_)) => 8 + field.rest.len(),
        (_, None) => 2 + field.rest.len(),
    }
}

pub(super) const fn prefix_length(prefix: &Prefix) -> usize {
    match prefix {
        Prefix::Nothing => 0,
        Prefix::Pointer(_) => 1,
        Prefix::Pes { data, .. } => 9 + *data as usize,
        Prefix::Literal(bytes) => bytes.len(),
    }
}

/// The number of bytes that follow the prefix in its PES packet; `None` if the prefix does not
/// state a length.
pub(super) fn announced(prefix: &Prefix) -> Option<usize> {
    let (length, header) = match prefix {
        Prefix::Pes { length, data, .. } => (*length, 3 + usize::from(*data)),
        Prefix::Literal(bytes) => match **bytes {
            [0, 0, 1, _, high, low, ref rest @ ..] => (u16::from_be_bytes([high, low]), rest.len()),
            _ => return None,
        },
        Prefix::Nothing | Prefix::Pointer(_) => return None,
    };
    (length > 0).then(|| usize::from(length).saturating_sub(header))
}

/// Reads the bytes between the length of a field and the payload. `None` for a form that a layout
/// cannot contain.
fn read_field(bytes: &[u8]) -> Option<Field> {
    let Some((&flags, rest)) = bytes.split_first() else {
        return Some(Field::default());
    };
    let (clock, rest) = match flags & 0x10 {
        0 => (None, rest),
        _ => (Some(read_clock(rest)?), rest.get(6..)?),
    };
    // Stuffing is ff up to the payload.
    let filled = rest.iter().rev().take_while(|&&byte| byte == 0xff).count();
    let rest = rest.get(..rest.len() - filled)?.to_vec();
    (flags != 0 || rest.is_empty()).then_some(Field { flags, clock, rest })
}

fn read_clock(bytes: &[u8]) -> Option<u64> {
    let bytes = bytes.first_chunk::<6>()?;
    let bits = { bytes.iter() }.fold(0, |bits, &byte| bits << 8 | u64::from(byte));
    let (base, reserved, extension) = (bits >> 15, bits >> 9 & 0x3f, bits & 0x1ff);
    (reserved == 0x3f && extension < 300).then_some(base * 300 + extension)
}

fn clock_bytes(clock: u64) -> [u8; 6] {
    let clock = clock % CLOCK_WRAP;
    let bits = (clock / 300) << 15 | 0x7e00 | (clock % 300);
    let [_, _, bytes @ ..] = bits.to_be_bytes();
    bytes
}

/// The usual seventh byte of a PES header: not scrambled, and aligned if the unit is.
const fn usual_flags(unit: &Unit) -> u8 {
    if unit.aligned { 0x84 } else { 0x80 }
}
