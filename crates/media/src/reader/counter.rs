//! Continuity counters.

use mpeg2ts_reader::packet::Packet;

/// Detects missing and duplicate packets from the continuity counter.
#[derive(Debug, Default)]
pub(super) struct Counter(Option<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuity {
    Next,
    Again,
    Broken,
}

impl Counter {
    pub(super) fn next(&mut self, packet: &Packet<'_>, announced: bool) -> Continuity {
        let count = packet.continuity_counter().count();
        match self.0.replace(count) {
            None => Continuity::Next,
            Some(last) if (last + 1) % 16 == count => Continuity::Next,
            Some(last) if last == count && !announced => Continuity::Again,
            Some(_) if announced => Continuity::Next,
            Some(_) => Continuity::Broken,
        }
    }
}
