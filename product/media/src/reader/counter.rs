//! The continuity counter of a PID.

use mpeg2ts_reader::packet::Packet;

use crate::header::PACKET;

/// Detects missing and duplicate packets from the continuity counter.
#[derive(Debug, Default)]
pub(super) struct Counter(Option<Last>);

/// The last packet with a payload.
#[derive(Debug)]
struct Last {
    count: u8,
    bytes: [u8; PACKET],
    is_duplicate: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuity {
    Next,
    Again,
    Broken,
}

impl Counter {
    /// Adds a packet with a payload. If `announced`, its counter may jump.
    ///
    /// A packet may be sent twice; the copy differs only in its clock reference (ISO/IEC 13818-1
    /// 2.4.3.3). A different packet with the same counter is not a copy.
    pub(super) fn next(&mut self, bytes: &[u8; PACKET], announced: bool) -> Continuity {
        let packet = Packet::new(bytes);
        let count = packet.continuity_counter().count();
        let continuity = match &self.0 {
            None => Continuity::Next,
            Some(last) if (last.count + 1) % 16 == count => Continuity::Next,
            Some(_) if announced => Continuity::Next,
            Some(last) if last.is_again(&packet) => Continuity::Again,
            Some(_) => Continuity::Broken,
        };
        self.0 = Some(Last {
            count,
            bytes: *bytes,
            is_duplicate: continuity == Continuity::Again,
        });
        continuity
    }
}

impl Last {
    /// Whether this packet is a copy of the last one.
    fn is_again(&self, packet: &Packet<'_>) -> bool {
        let is_equal =
            Packet::try_new(&self.bytes).is_some_and(|last| last.payload() == packet.payload());
        packet.continuity_counter().count() == self.count && !self.is_duplicate && is_equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_comes_twice_at_most_and_unchanged() {
        let mut counter = Counter::default();
        let mut next = |count: u8, fill: u8, announced: bool| {
            let mut bytes = [fill; PACKET];
            bytes[..4].copy_from_slice(&[0x47, 1, 0, 0x10 | count]);
            counter.next(&bytes, announced)
        };
        assert_eq!(next(15, 1, false), Continuity::Next);
        assert_eq!(next(0, 2, false), Continuity::Next);
        assert_eq!(next(0, 2, false), Continuity::Again);
        assert_eq!(next(0, 2, false), Continuity::Broken);
        assert_eq!(next(0, 3, false), Continuity::Broken);
        assert_eq!(next(1, 4, false), Continuity::Next);
        assert_eq!(next(3, 5, false), Continuity::Broken);
        assert_eq!(next(9, 6, true), Continuity::Next);
    }
}
