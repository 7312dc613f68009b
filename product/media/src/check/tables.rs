//! The tables that name the PIDs of a stream.

use mpeg2ts_reader::descriptor::{Descriptor, DescriptorError, DescriptorIter};
use mpeg2ts_reader::mpegts_crc;
use mpeg2ts_reader::psi::pat::{PatSection, ProgramDescriptor};
use mpeg2ts_reader::psi::pmt::PmtSection;

use super::kind::Kind;
use crate::psi;

/// The tag of conditional access descriptors.
const CONDITIONAL_ACCESS: u8 = 0x09;
/// The table of a time offset, which has a CRC without the bit that announces it.
const TIME_OFFSET: u8 = 0x73;

pub(super) const PAT: u8 = 0x00;
pub(super) const CAT: u8 = 0x01;
pub(super) const PMT: u8 = 0x02;
pub(super) const NIT: u8 = 0x40;
pub(super) const SDT: u8 = 0x42;
pub(super) const TDT: u8 = 0x70;
const MASTER_GUIDE: u8 = 0xc7;

/// A descriptor that is not parsed.
struct Raw<'a> {
    tag: u8,
    body: &'a [u8],
}

impl<'a> Descriptor<'a> for Raw<'a> {
    fn from_bytes(bytes: &'a [u8]) -> Result<Self, DescriptorError> {
        match bytes {
            [tag, _, body @ ..] => Ok(Self { tag: *tag, body }),
            _ => Err(DescriptorError::BufferTooShort {
                buflen: bytes.len(),
            }),
        }
    }
}

/// A program in the PAT. Number 0 is the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatEntry {
    pub(super) number: u16,
    pub(super) pid: u16,
}

/// The programs in a section of the PAT.
pub(super) fn pat(section: &[u8]) -> Option<Vec<PatEntry>> {
    let body = psi::body(section, PAT)?;
    // Entries have four bytes each. The parser requires whole entries.
    let whole = body.get(..body.len() / 4 * 4)?;
    let entries = PatSection::new(whole).programs();
    let entries = entries.map(|program| match program {
        ProgramDescriptor::Program {
            program_number,
            pid,
        } => PatEntry {
            number: program_number,
            pid: pid.into(),
        },
        ProgramDescriptor::Network { pid } => PatEntry {
            number: 0,
            pid: pid.into(),
        },
    });
    Some(entries.collect())
}

/// The content of the map of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramMap {
    pub(super) number: u16,
    pub(super) clock_pid: u16,
    /// PID, stream type and kind.
    pub(super) streams: Vec<(u16, u8, Kind)>,
    /// The PIDs of entitlement control messages.
    pub(super) keys: Vec<u16>,
}

pub(super) fn program_map(section: &[u8]) -> Option<ProgramMap> {
    let map = PmtSection::from_bytes(psi::body(section, PMT)?).ok()?;
    let number = u16::from_be_bytes([*section.get(3)?, *section.get(4)?]);
    let mut keys: Vec<u16> = access(map.descriptors()).collect();
    let mut streams = Vec::new();
    for stream in map.streams() {
        let descriptors = || stream.descriptors::<Raw<'_>>().filter_map(Result::ok);
        let described = descriptors().map(|raw| (raw.tag, raw.body));
        let stream_type = stream.stream_type().into();
        let kind = Kind::of_stream(stream_type, described);
        streams.push((stream.elementary_pid().into(), stream_type, kind));
        keys.extend(access(stream.descriptors()));
    }
    Some(ProgramMap {
        number,
        clock_pid: map.pcr_pid().into(),
        streams,
        keys,
    })
}

/// The PIDs in conditional access descriptors.
fn access<'a>(
    descriptors: impl Iterator<Item = Result<Raw<'a>, DescriptorError>>,
) -> impl Iterator<Item = u16> {
    descriptors.filter_map(|raw| match raw {
        Ok(Raw {
            tag: CONDITIONAL_ACCESS,
            body: [_, _, high, low, ..],
        }) => Some(u16::from_be_bytes([high & 0x1f, *low])),
        _ => None,
    })
}

/// The PIDs of entitlement management messages in a section of the CAT.
pub(super) fn rights(section: &[u8]) -> Vec<u16> {
    let body = psi::body(section, CAT).unwrap_or_default();
    access(DescriptorIter::new(body)).collect()
}

/// The PIDs in a master guide table (A/65, 6.2).
pub(super) fn guides(section: &[u8]) -> Vec<u16> {
    let mut pids = Vec::new();
    let body = psi::body(section, MASTER_GUIDE).unwrap_or_default();
    // After the protocol version and the number of tables.
    let mut rest = body.get(3..).unwrap_or_default();
    while let Some((&[_, _, high, low, _, _, _, _, _, far, near], behind)) =
        rest.split_first_chunk::<11>()
    {
        pids.push(u16::from_be_bytes([high & 0x1f, low]));
        let descriptors = usize::from(u16::from_be_bytes([far & 0x0f, near]));
        rest = behind.get(descriptors..).unwrap_or_default();
    }
    pids
}

/// Whether a section that a gatherer found to be whole is damaged.
pub(super) fn is_damaged(section: &[u8]) -> bool {
    section.first() == Some(&TIME_OFFSET) && mpegts_crc::sum32(section) != 0
}

/// The tables whose CRC is checked (TR 101 290, 2.2).
pub(super) const fn has_checked_crc(table: u8) -> bool {
    matches!(
        table,
        PAT | CAT | PMT | NIT | 0x41 | SDT | 0x46 | 0x4a | 0x4e..=0x6f | TIME_OFFSET
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(table: u8, extension: u16, body: &[u8]) -> Vec<u8> {
        let length = u16::try_from(body.len() + 9).unwrap();
        let mut section = vec![table];
        section.extend((0xb000 | length).to_be_bytes());
        section.extend(extension.to_be_bytes());
        section.extend([0xc1, 0, 0]);
        section.extend(body);
        section.extend(mpegts_crc::sum32(&section).to_be_bytes());
        section
    }

    #[test]
    fn a_pat_names_programs_and_the_network() {
        let read = pat(&section(PAT, 1, &[0, 0, 0xe0, 0x10, 0, 7, 0xf0, 0x01])).unwrap();
        let entry = |number, pid| PatEntry { number, pid };
        assert_eq!(read, [entry(0, 0x10), entry(7, 0x1001)]);
        assert_eq!(pat(&section(PMT, 1, &[])), None);
    }

    #[test]
    fn a_map_names_streams_and_keys() {
        let mut body = vec![0xe1, 0x00, 0xf0, 6];
        body.extend([0x09, 4, 0, 1, 0xe0, 0x50]);
        body.extend([0x1b, 0xe1, 0x00, 0xf0, 0]);
        body.extend([0x06, 0xe1, 0x01, 0xf0, 12]);
        body.extend([0x05, 4, b'O', b'p', b'u', b's', 0x09, 4, 0, 1, 0xe0, 0x51]);
        let map = program_map(&section(PMT, 300, &body)).unwrap();
        assert_eq!((map.number, map.clock_pid), (300, 0x100));
        let named: Vec<_> = { map.streams.iter() }
            .map(|(pid, stream_type, kind)| (*pid, *stream_type, kind.name))
            .collect();
        let expected = [(0x100, 0x1b, "H.264 video"), (0x101, 6, "Opus audio")];
        assert_eq!((named, map.keys), (expected.to_vec(), vec![0x50, 0x51]));
    }

    #[test]
    fn other_tables_name_pids_too() {
        let body = [
            0x09, 6, 0, 1, 0xe0, 0x60, 1, 2, 0x52, 1, 9, 0x09, 4, 0, 1, 0xe1, 0x61,
        ];
        assert_eq!(rights(&section(CAT, 0xffff, &body)), [0x60, 0x161]);
        let mut body = vec![0, 0, 2];
        body.extend([0x01, 0x00, 0xfd, 0x00, 0xe0, 0, 0, 0, 9, 0xf0, 2, 7, 7]);
        body.extend([0x02, 0x00, 0xfe, 0x00, 0xe0, 0, 0, 0, 9, 0xf0, 0]);
        body.extend([0xf0, 0]);
        assert_eq!(guides(&section(MASTER_GUIDE, 0, &body)), [0x1d00, 0x1e00]);
    }

    #[test]
    fn a_time_offset_has_a_checked_crc() {
        let mut offset = vec![TIME_OFFSET, 0x70, 11, 1, 2, 3, 4, 5, 0xf0, 0];
        offset.extend(mpegts_crc::sum32(&offset).to_be_bytes());
        assert!(psi::is_whole_section(&offset) && !is_damaged(&offset));
        offset[4] ^= 1;
        assert!(psi::is_whole_section(&offset) && is_damaged(&offset));
    }
}
