//! Restores packets without their missing sections.

use super::model::{Made, Prefix, Run};
use super::packet::{announced, put_together};
use crate::header::{PACKET, Times, Unit};
use crate::pes::stamps;

/// The PES packet of a PID, as far as it is written.
///
/// A decoder reads the bytes after a PES header, up to the next header, as one unit. If a section
/// among them is missing, the next section therefore gets a header of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PesPacket {
    /// The number of its bytes that follow at the source, if its header states its length.
    rest: Option<usize>,
    /// Whether its header is written, and no section has been missing since.
    is_whole: bool,
    /// Whether that header is in the packet that replaces the previous, missing packet.
    is_mended: bool,
}

impl PesPacket {
    /// Advances after a packet of the PID. `is_here` states for each of its sections whether it was
    /// written. `has_header` states whether a PES header was written with the first of these.
    pub(super) fn pass(&mut self, made: &Made, is_here: &[bool], has_header: bool) {
        if made.begins {
            self.rest = announced(&made.prefix);
            self.is_whole = false;
        }
        self.is_whole |= has_header;
        let has_header = has_header || core::mem::take(&mut self.is_mended);
        let first = is_here.iter().position(|&is_here| is_here).unwrap_or(0);
        let after = if has_header { first } else { 0 };
        let mut runs = made.runs.iter().zip(is_here).skip(after);
        self.is_whole &= !runs.any(|(run, &is_here)| run.from == 0 && !is_here);
        self.rest = self
            .rest
            .and_then(|rest| rest.checked_sub(length(&made.runs)));
    }

    /// Records that a header was written in the packet that replaces the last, missing packet.
    pub(super) const fn mend(&mut self) {
        (self.is_whole, self.is_mended) = (true, true);
    }

    /// The next packet without its missing sections, and whether it has a PES header. `None` if a
    /// decoder could read nothing from it.
    pub(super) fn part<'a>(
        &self,
        made: &Made,
        unit: impl Fn(&Run) -> Option<&'a Unit>,
        content: impl Fn(&Run) -> Option<&'a [u8]>,
    ) -> Option<([u8; PACKET], bool)> {
        let is_here = |run: &&Run| content(run).is_some();
        let kept: Vec<Run> = made.runs.iter().filter(is_here).copied().collect();
        let first = kept.first()?;
        let put = |prefix: Prefix, of: Option<&Unit>| {
            let part = Made {
                begins: !matches!(prefix, Prefix::Nothing),
                prefix,
                field: Some(made.field.clone().unwrap_or_default()),
                runs: kept.clone(),
                ..made.clone()
            };
            put_together(&part, of, &content)
        };
        let source = match made.begins {
            true => announced(&made.prefix),
            false => self.rest,
        };
        let lost = length(&made.runs) - length(&kept);
        let rest = source.and_then(|rest| rest.checked_sub(lost));
        let begun = made.runs.iter().find(|run| run.from == 0);
        // The section that the first one continues is not whole.
        let mut before = made.runs.iter().take_while(|run| !is_here(run));
        let is_broken = !self.is_mended && (!self.is_whole || before.any(|run| run.from == 0));
        let header = match begun.filter(is_here) {
            Some(begun) if made.begins => Some((shortened(&made.prefix, rest), unit(begun)?)),
            _ if first.from == 0 && (made.begins || is_broken) => {
                unit(first).and_then(|unit| Some((header(unit, rest)?, unit)))
            }
            _ => None,
        };
        let with_header = header.and_then(|(header, unit)| put(header, Some(unit)));
        match with_header {
            Some(bytes) => Some((bytes, true)),
            None if made.begins => None,
            None => Some((put(Prefix::Nothing, None)?, false)),
        }
    }

    /// If the next packet needs a PES header in the packet that replaces the missing one before it,
    /// makes that packet. The first present section of the next packet has the index `first`, and
    /// is `unit`. `None` if no header is needed.
    pub(super) fn before(
        &self,
        missing: &Made,
        next: &Made,
        first: usize,
        unit: &Unit,
    ) -> Option<[u8; PACKET]> {
        let mut after = *self;
        after.pass(missing, &vec![false; missing.runs.len()], false);
        let begins = next.runs.get(first)?.from == 0 && !next.begins;
        let before = length(next.runs.get(..first)?);
        let rest = after.rest.and_then(|rest| rest.checked_sub(before));
        let mut field = missing.field.clone().unwrap_or_default();
        field.flags = field.flags & 0x10 | DISCONTINUITY;
        field.rest.clear();
        let packet = Made {
            begins: true,
            prefix: header(unit, rest)?,
            field: Some(field),
            runs: Vec::new(),
            ..missing.clone()
        };
        (begins && !after.is_whole).then(|| put_together(&packet, Some(unit), |_| None))?
    }
}

/// The discontinuity_indicator of an adaptation field.
const DISCONTINUITY: u8 = 0x80;

fn length(runs: &[Run]) -> usize {
    runs.iter().map(Run::len).sum()
}

/// The header of a PES packet that begins with this unit, and has this many bytes. A unit without
/// time stamps continues the unit before it, and needs no header.
fn header(unit: &Unit, bytes: Option<usize>) -> Option<Prefix> {
    let has_times = !matches!(unit.times, Times::None);
    let data = u8::try_from(stamps(unit.times).1.len()).ok()?;
    has_times.then(|| Prefix::Pes {
        length: announcement(data, bytes),
        flags: None,
        data,
    })
}

/// The header with the length for this many bytes.
fn shortened(prefix: &Prefix, bytes: Option<usize>) -> Prefix {
    match *prefix {
        Prefix::Pes { flags, data, .. } => Prefix::Pes {
            length: announcement(data, bytes),
            flags,
            data,
        },
        _ => prefix.clone(),
    }
}

/// The PES_packet_length; 0, which means unspecified, if the length is unknown or does not fit.
fn announcement(data: u8, bytes: Option<usize>) -> u16 {
    let length = bytes.map_or(0, |bytes| 3 + usize::from(data) + bytes);
    u16::try_from(length).unwrap_or(0)
}
