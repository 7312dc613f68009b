//! Program tables: collects their sections from packets, reads PAT and PMT, and writes minimal
//! ones.

use mpeg2ts_reader::mpegts_crc;
use mpeg2ts_reader::psi::pat::{PatSection, ProgramDescriptor};
use mpeg2ts_reader::psi::pmt::PmtSection;

pub(crate) const PAT: u16 = 0;
const SYNTAX_HEADER: usize = 8;
const CRC: usize = 4;
/// The table of program maps.
pub(crate) const PROGRAM_MAP: u8 = 0x02;
/// The maximum length of a section of the PAT, of the CAT, or of a program map, tables 0 to 2. Its
/// `section_length` is at most 1,021 (ISO/IEC 13818-1, 2.4.4.5, 2.4.4.7 and 2.4.4.9).
const MAX_PROGRAM_SECTION: usize = 3 + 1_021;

/// Whether these bytes are one table section: its length is right and allowed, and its CRC is right
/// if it has one.
pub(crate) fn is_whole_section(section: &[u8]) -> bool {
    let Some(length) = section_length(section) else {
        return false;
    };
    let names_programs = section.first().is_some_and(|table| *table <= PROGRAM_MAP);
    if section.len() != length || names_programs && length > MAX_PROGRAM_SECTION {
        return false;
    }
    let has_syntax = section.get(1).is_some_and(|byte| byte & 0x80 != 0);
    !has_syntax || (length >= SYNTAX_HEADER + CRC && mpegts_crc::sum32(section) == 0)
}

fn section_length(start: &[u8]) -> Option<usize> {
    let [table, high, low] = *start.first_chunk::<3>()?;
    // 0xff is stuffing.
    (table != 0xff).then_some(3 + (usize::from(high & 0x0f) << 8 | usize::from(low)))
}

/// The identity of a table section on its PID: table, extension and section number.
pub(crate) fn key(section: &[u8]) -> [u8; 4] {
    let byte = |at: usize| section.get(at).copied().unwrap_or(0);
    if byte(1) & 0x80 == 0 {
        return [byte(0), 0, 0, 0];
    }
    [byte(0), byte(3), byte(4), byte(6)]
}

/// Whether a table section is only announced: it is not valid yet.
pub(crate) fn is_next(section: &[u8]) -> bool {
    Version::of(section).is_some_and(|version| !version.is_current)
}

/// The header of a table section with the long syntax.
pub(crate) struct Version {
    pub(crate) table: u8,
    pub(crate) extension: [u8; 2],
    pub(crate) version: u8,
    is_current: bool,
    /// The number of the last section.
    pub(crate) last: u8,
}

impl Version {
    pub(crate) fn of(section: &[u8]) -> Option<Self> {
        let [table, flags, _, high, low, version, _, last] = *section.first_chunk()?;
        (flags & 0x80 != 0).then_some(Self {
            table,
            extension: [high, low],
            version: version >> 1 & 0x1f,
            is_current: version & 1 == 1,
            last,
        })
    }
}

/// The body of a table section with the long syntax that is valid now, not one that is only
/// announced.
pub(crate) fn body(section: &[u8], table: u8) -> Option<&[u8]> {
    let version = Version::of(section)?;
    (version.table == table && version.is_current)
        .then(|| section.get(SYNTAX_HEADER..section.len().checked_sub(CRC)?))?
}

/// The PIDs of the program maps listed in a section of the PAT.
pub(crate) fn programs(section: &[u8]) -> Option<Vec<u16>> {
    let programs = numbered_programs(section)?;
    Some(programs.into_iter().map(|(_, pid)| pid).collect())
}

/// The number of each program in a section of the PAT, and the PID of its map.
pub(crate) fn numbered_programs(section: &[u8]) -> Option<Vec<(u16, u16)>> {
    let body = body(section, 0)?;
    // Entries have four bytes each. The parser requires whole entries.
    let whole = body.get(..body.len() / 4 * 4)?;
    Some(
        PatSection::new(whole)
            .programs()
            .filter_map(|program| match program {
                ProgramDescriptor::Program {
                    program_number,
                    pid,
                } => Some((program_number, u16::from(pid))),
                ProgramDescriptor::Network { .. } => None,
            })
            .collect(),
    )
}

/// The contents of a program map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramMap {
    pub(crate) clock_pid: u16,
    /// PID and stream type of each elementary stream.
    pub(crate) streams: Vec<(u16, u8)>,
}

pub(crate) fn program_map(section: &[u8]) -> Option<ProgramMap> {
    let map = PmtSection::from_bytes(body(section, PROGRAM_MAP)?).ok()?;
    Some(ProgramMap {
        clock_pid: map.pcr_pid().into(),
        streams: map
            .streams()
            .map(|stream| (stream.elementary_pid().into(), stream.stream_type().into()))
            .collect(),
    })
}

/// The program of a section of a program map.
pub(crate) fn program_number(section: &[u8]) -> Option<u16> {
    let [table, flags, _, high, low] = *section.first_chunk()?;
    (table == PROGRAM_MAP && flags & 0x80 != 0).then_some(u16::from_be_bytes([high, low]))
}

/// A PAT with one program, number 1.
pub(crate) fn write_pat(map_pid: u16) -> Vec<u8> {
    let mut body = vec![0, 1];
    body.extend((0xe000 | map_pid).to_be_bytes());
    write_section(0, &body)
}

/// The map of program 1, without descriptors.
pub(crate) fn write_program_map(map: &ProgramMap) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend((0xe000 | map.clock_pid).to_be_bytes());
    body.extend([0xf0, 0]);
    for &(pid, stream_type) in &map.streams {
        body.push(stream_type);
        body.extend((0xe000 | pid).to_be_bytes());
        body.extend([0xf0, 0]);
    }
    write_section(PROGRAM_MAP, &body)
}

/// A current section, number 0 of 0, with extension 1 and version 0.
fn write_section(table: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + SYNTAX_HEADER - 3 + CRC).unwrap_or(u16::MAX) & 0x0fff;
    let mut section = vec![table];
    section.extend((0xb000 | length).to_be_bytes());
    section.extend([0, 1, 0xc1, 0, 0]);
    section.extend(body);
    let crc = mpegts_crc::sum32(&section);
    section.extend(crc.to_be_bytes());
    section
}

/// Collects the sections of one PID from the payloads of its packets.
#[derive(Debug, Default)]
pub(crate) struct Gatherer {
    /// The bytes of the present section so far. `None` until a packet in which a section begins.
    partial: Option<Vec<u8>>,
}

impl Gatherer {
    /// Drops an incomplete section. Returns whether there was one.
    pub(crate) fn reset(&mut self) -> bool {
        self.partial
            .take()
            .is_some_and(|partial| !partial.is_empty())
    }

    /// The length of the incomplete section.
    pub(crate) fn held(&self) -> usize {
        self.partial.as_ref().map_or(0, Vec::len)
    }

    /// Adds a packet's payload. Returns the sections that end in it, and whether one of them was
    /// malformed.
    pub(crate) fn push(&mut self, payload: &[u8], begins: bool) -> (Vec<Vec<u8>>, bool) {
        let mut found = Vec::new();
        let mut malformed = false;
        self.gather(payload, begins, |section| match section {
            Ok(section) => found.push(section),
            Err(_) => malformed = true,
        });
        (found, malformed)
    }

    /// Adds a packet's payload, and passes the sections that end in it to `take`. Of a malformed
    /// section, it passes the bytes that were found.
    pub(crate) fn gather(
        &mut self,
        payload: &[u8],
        begins: bool,
        mut take: impl FnMut(Result<Vec<u8>, Vec<u8>>),
    ) {
        if begins {
            let Some((&pointer, rest)) = payload.split_first() else {
                return take(Err(Vec::new()));
            };
            let Some((end_of_last, next)) = rest.split_at_checked(usize::from(pointer)) else {
                self.partial = None;
                return take(Err(Vec::new()));
            };
            if let Some(partial) = &mut self.partial {
                partial.extend(end_of_last);
                self.drain(&mut take);
            }
            self.partial = Some(next.to_vec());
        } else if let Some(partial) = &mut self.partial {
            partial.extend(payload);
        }
        self.drain(&mut take);
    }

    fn drain(&mut self, take: &mut impl FnMut(Result<Vec<u8>, Vec<u8>>)) {
        while let Some(partial) = &mut self.partial {
            if partial.first() == Some(&0xff) {
                // Stuffing fills the rest of the packet.
                self.partial = None;
                break;
            }
            let Some(length) = section_length(partial).filter(|&length| length <= partial.len())
            else {
                break;
            };
            let rest = partial.split_off(length);
            let section = core::mem::replace(partial, rest);
            if partial.is_empty() {
                self.partial = None;
            }
            take(match is_whole_section(&section) {
                true => Ok(section),
                false => Err(section),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> ProgramMap {
        ProgramMap {
            clock_pid: 0x100,
            streams: vec![(0x100, 0x1b), (0x101, 0x0f)],
        }
    }

    #[test]
    fn written_tables_are_read() {
        let section = write_program_map(&map());
        assert!(is_whole_section(&section));
        assert_eq!(program_map(&section), Some(map()));
        assert_eq!(programs(&write_pat(0x1000)), Some(vec![0x1000]));
        // Another table, or a table that is not yet valid.
        assert_eq!(programs(&section), None);
        let mut next = section.clone();
        next[5] &= 0xfe;
        assert_eq!(program_map(&next), None);
        // A flipped bit is detected.
        next = section;
        next[9] ^= 1;
        assert!(!is_whole_section(&next));
    }

    #[test]
    fn sections_are_gathered_over_any_cut_and_two_in_a_packet() {
        let (pat, pmt) = (write_pat(0x1000), write_program_map(&map()));
        for cut in 1..pmt.len() {
            let mut gatherer = Gatherer::default();
            // No section has begun: the first bytes end an unknown section.
            assert_eq!(gatherer.push(&[1, 2, 3], false), (vec![], false));
            let first = [&[0][..], &pat, &pmt[..cut]].concat();
            assert_eq!(gatherer.push(&first, true), (vec![pat.clone()], false));
            let pointer = u8::try_from(pmt.len() - cut).expect("a short table");
            let second = [&[pointer][..], &pmt[cut..], &pat, &[0xff; 9]].concat();
            assert_eq!(
                gatherer.push(&second, true),
                (vec![pmt.clone(), pat.clone()], false)
            );
            assert!(!gatherer.reset());
        }
    }

    #[test]
    fn a_table_that_is_not_valid_yet_is_known() {
        let pat = write_pat(0x1000);
        let mut next = pat.clone();
        next[5] &= 0xfe;
        assert!(is_next(&next) && !is_next(&pat));
        next[1] &= 0x7f;
        assert!(!is_next(&next), "without a version");
    }

    /// A section of this table and length, without a checksum or with one.
    fn of_length(table: u8, length: usize, has_syntax: bool) -> Vec<u8> {
        let flags = if has_syntax { 0xb0 } else { 0x30 };
        let body = u16::try_from(length - 3).unwrap();
        let mut section = vec![table, flags | (body >> 8) as u8, body as u8];
        section.resize(length - CRC, 1);
        section.extend(mpegts_crc::sum32(&section).to_be_bytes());
        section
    }

    #[test]
    fn sections_that_name_programs_have_at_most_1024_bytes() {
        for has_syntax in [true, false] {
            for (table, most) in [
                (0, 1_024),
                (1, 1_024),
                (2, 1_024),
                (3, 4_098),
                (0x4e, 4_098),
            ] {
                for length in [20, 1_024, 1_025, 4_098] {
                    let section = of_length(table, length, has_syntax);
                    assert_eq!(
                        is_whole_section(&section),
                        length <= most,
                        "{table} {length}"
                    );
                    // A longer one is found and passed on as malformed.
                    let mut gatherer = Gatherer::default();
                    let (found, malformed) = gatherer.push(&[&[0], &section[..]].concat(), true);
                    assert_eq!(
                        (found.len(), malformed),
                        match length <= most {
                            true => (1, false),
                            false => (0, true),
                        }
                    );
                }
            }
        }
    }

    #[test]
    fn a_section_with_a_wrong_checksum_is_dropped() {
        let mut pat = write_pat(0x1000);
        pat[10] ^= 0x10;
        let mut gatherer = Gatherer::default();
        assert_eq!(
            gatherer.push(&[&[0][..], &pat].concat(), true),
            (vec![], true)
        );
        assert_eq!(gatherer.push(&[200, 1], true), (vec![], true));
    }

    #[test]
    fn a_section_with_the_short_syntax_names_no_programs() {
        let mut pat = write_pat(0x1000);
        assert_eq!(programs(&pat), Some(vec![0x1000]));
        pat[1] &= 0x7f;
        assert_eq!(programs(&pat), None);
    }
}
