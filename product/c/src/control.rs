//! Ancillary data: what describes sections beside their bytes.

use std::ffi::c_int;

use crate::failure::Failure;

/// The level (`cmsg_level`) of this library's ancillary data.
pub const SOL_COMITY: c_int = 0x4354;

/// To `comity_sendmsg`: an `int64_t` for each section, its deadline at the receiver, in nanoseconds
/// of this host's `CLOCK_MONOTONIC`. `TL_NEVER` for none. Without it, the setting `latency` after
/// the source time.
pub const TL_DEADLINE: c_int = 1;
/// To `comity_sendmsg`: an `int64_t` for each section, when it was captured, in nanoseconds of
/// `CLOCK_MONOTONIC`. Without it, the time of the call.
pub const TL_SOURCE_TIME: c_int = 2;
/// To `comity_sendmsg`: a `uint8_t` for each section. When not everything can arrive in time,
/// higher importance goes first. Without it, 0.
pub const TL_IMPORTANCE: c_int = 3;
/// To `comity_sendmsg`: a `uint16_t` for each section, its stream. Without it, 0. The sections of a
/// stream are numbered 0, 1, 2 and so on as they are accepted.
pub const TL_STREAM: c_int = 4;
/// To `comity_sendmsg`: a `uint64_t` for each section, the number of an earlier section of its
/// stream without which it is worthless. `TL_NOTHING` for none.
pub const TL_NEEDS: c_int = 5;
/// From `comity_recvmsg`: a `struct comity_item` about a section that is whole.
pub const TL_DATA: c_int = 6;
/// From `comity_recvmsg`: a `struct comity_item` about sections that are missing.
pub const TL_GAP: c_int = 7;

/// A deadline that never comes.
pub const TL_NEVER: i64 = i64::MAX;
/// The number of no section.
pub const TL_NOTHING: u64 = u64::MAX;

/// The length of a header, with its padding.
// SAFETY: they compute with a number.
pub(crate) const HEADER: usize = unsafe { libc::CMSG_LEN(0) } as usize;

/// The length of a message with such data, with its padding.
pub(crate) const fn space(data: usize) -> usize {
    // SAFETY: it computes with a number.
    unsafe { libc::CMSG_SPACE(data as u32) as usize }
}

/// What a user says about sections, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About<'a> {
    deadlines: Option<&'a [u8]>,
    source_times: Option<&'a [u8]>,
    importances: Option<&'a [u8]>,
    streams: Option<&'a [u8]>,
    needs: Option<&'a [u8]>,
}

impl<'a> About<'a> {
    /// Reads the ancillary data of so many sections.
    pub(crate) fn read(mut control: &'a [u8], count: usize) -> Result<Self, Failure> {
        let mut about = Self::default();
        while !control.is_empty() {
            let Message {
                level,
                kind,
                data,
                rest,
            } = split(control)?;
            control = rest;
            if level != SOL_COMITY {
                return Err(Failure::invalid(format!(
                    "msg_control: level {level}; expected SOL_COMITY"
                )));
            }
            let (slot, name, size) = match kind {
                TL_DEADLINE => (&mut about.deadlines, "TL_DEADLINE", 8),
                TL_SOURCE_TIME => (&mut about.source_times, "TL_SOURCE_TIME", 8),
                TL_IMPORTANCE => (&mut about.importances, "TL_IMPORTANCE", 1),
                TL_STREAM => (&mut about.streams, "TL_STREAM", 2),
                TL_NEEDS => (&mut about.needs, "TL_NEEDS", 8),
                _ => {
                    return Err(Failure::invalid(format!(
                        "msg_control: type {kind}; expected TL_DEADLINE, TL_SOURCE_TIME, \
                         TL_IMPORTANCE, TL_STREAM or TL_NEEDS"
                    )));
                }
            };
            if Some(data.len()) != count.checked_mul(size) {
                return Err(Failure::invalid(format!(
                    "{name}: {} bytes; expected {size} for each of {count} sections",
                    data.len()
                )));
            }
            if slot.replace(data).is_some() {
                return Err(Failure::invalid(format!("{name}: is there twice")));
            }
        }
        Ok(about)
    }

    pub(crate) fn deadline(&self, section: usize) -> Option<i64> {
        element(self.deadlines, section).map(i64::from_ne_bytes)
    }

    pub(crate) fn source_time(&self, section: usize) -> Option<i64> {
        element(self.source_times, section).map(i64::from_ne_bytes)
    }

    pub(crate) fn importance(&self, section: usize) -> Option<u8> {
        element(self.importances, section).map(u8::from_ne_bytes)
    }

    pub(crate) fn stream(&self, section: usize) -> Option<u16> {
        element(self.streams, section).map(u16::from_ne_bytes)
    }

    pub(crate) fn needs(&self, section: usize) -> Option<u64> {
        let needs = element(self.needs, section).map(u64::from_ne_bytes);
        needs.filter(|needs| *needs != TL_NOTHING)
    }
}

fn element<const SIZE: usize>(elements: Option<&[u8]>, index: usize) -> Option<[u8; SIZE]> {
    elements?.as_chunks().0.get(index).copied()
}

/// The first message, and what follows it.
struct Message<'a> {
    level: c_int,
    kind: c_int,
    data: &'a [u8],
    rest: &'a [u8],
}

fn split(control: &[u8]) -> Result<Message<'_>, Failure> {
    let too_short = |length| {
        Failure::invalid(format!(
            "msg_control: {} bytes are left for a message of {length}; expected CMSG_SPACE of \
             each, and their sum in msg_controllen",
            control.len()
        ))
    };
    if control.len() < HEADER {
        return Err(too_short(HEADER));
    }
    // SAFETY: there are enough bytes, and any bytes are a header.
    let header: libc::cmsghdr =
        unsafe { control.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
    match control.get(HEADER..header.cmsg_len) {
        Some(data) => Ok(Message {
            level: header.cmsg_level,
            kind: header.cmsg_type,
            data,
            rest: control.get(space(data.len())..).unwrap_or_default(),
        }),
        None => Err(too_short(header.cmsg_len)),
    }
}

/// Writes a message at the beginning of `control`, which has room for it.
pub(crate) fn put(control: &mut [u8], kind: c_int, data: &[u8]) {
    // SAFETY: zeros are a header.
    let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
    header.cmsg_len = HEADER + data.len();
    header.cmsg_level = SOL_COMITY;
    header.cmsg_type = kind;
    let (slot, rest) = control.split_at_mut(HEADER);
    let slot = slot.as_mut_ptr().cast::<libc::cmsghdr>();
    // SAFETY: the header has at most this length, to which it is padded.
    unsafe { slot.write_unaligned(header) };
    rest[..data.len()].copy_from_slice(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: c_int, data: &[u8]) -> Vec<u8> {
        let mut control = vec![0; space(data.len())];
        put(&mut control, kind, data);
        control
    }

    #[test]
    fn ancillary_data_has_one_element_for_each_section() {
        let deadlines: Vec<u8> = [5_i64, TL_NEVER]
            .iter()
            .flat_map(|time| time.to_ne_bytes())
            .collect();
        let needs: Vec<u8> = [TL_NOTHING, 7]
            .iter()
            .flat_map(|number| number.to_ne_bytes())
            .collect();
        let control = [
            message(TL_DEADLINE, &deadlines),
            message(TL_IMPORTANCE, &[3, 200]),
            message(TL_NEEDS, &needs),
        ];
        let control = control.concat();
        let about = About::read(&control, 2).unwrap();
        assert_eq!(
            [0, 1, 2].map(|at| about.deadline(at)),
            [Some(5), Some(TL_NEVER), None]
        );
        assert_eq!([0, 1].map(|at| about.importance(at)), [Some(3), Some(200)]);
        assert_eq!([0, 1].map(|at| about.needs(at)), [None, Some(7)]);
        assert_eq!((about.stream(0), about.source_time(1)), (None, None));
    }

    #[test]
    fn wrong_ancillary_data_is_named() {
        let error = |control: &[u8], count| {
            let failure = About::read(control, count).unwrap_err();
            format!("{failure:?}")
        };
        let stream = message(TL_STREAM, &[1, 0]);
        assert!(error(&stream, 2).contains("TL_STREAM: 2 bytes; expected 2 for each of 2"));
        assert!(error(&stream, usize::MAX).contains("TL_STREAM"));
        assert!(error(&[&stream[..], &stream].concat(), 1).contains("twice"));
        assert!(error(&message(99, &[]), 1).contains("type 99"));
        for length in 1..HEADER + 2 {
            assert!(error(&stream[..length], 1).contains("are left"), "{length}");
        }
        for length in [0_usize, 1, HEADER - 1, usize::MAX] {
            let mut control = stream.clone();
            control[..8].copy_from_slice(&length.to_ne_bytes());
            assert!(error(&control, 1).contains("are left"), "{length}");
        }
        let mut other = stream;
        other[8] ^= 1;
        assert!(error(&other, 1).contains("SOL_COMITY"));
    }
}
