//! The continuity counter of a PID.

use super::packet::Facts;
use crate::header::PACKET;

/// The bytes of a clock reference in a packet.
const CLOCK: core::ops::Range<usize> = 6..12;

/// How a packet continues the previous packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuity {
    /// Its counter is right.
    Right,
    /// It is the first copy of the previous packet.
    Copy,
    /// Its counter is wrong. Unless packets are out of order, at least this many are missing.
    Wrong { missing: u64 },
}

/// Follows the counter (ISO/IEC 13818-1, 2.4.3.3).
#[derive(Debug, Default)]
pub(super) struct Counter(Option<Last>);

#[derive(Debug)]
struct Last {
    counter: u8,
    has_payload: bool,
    /// Whether a copy of it has arrived.
    is_copied: bool,
    bytes: [u8; PACKET],
}

impl Counter {
    /// Accepts any counter in the next packet.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    pub(super) fn follow(&mut self, facts: &Facts<'_>, bytes: &[u8; PACKET]) -> Continuity {
        let continuity = match &mut self.0 {
            Some(last) if !facts.discontinuity => last.precedes(facts, bytes),
            _ => Continuity::Right,
        };
        if continuity != Continuity::Copy {
            self.0 = Some(Last {
                counter: facts.counter,
                has_payload: facts.has_payload,
                is_copied: continuity == Continuity::Wrong { missing: 0 },
                bytes: *bytes,
            });
        }
        continuity
    }
}

impl Last {
    fn precedes(&mut self, facts: &Facts<'_>, bytes: &[u8; PACKET]) -> Continuity {
        let is_copy = facts.has_payload
            && self.has_payload
            && facts.counter == self.counter
            && is_same(&self.bytes, bytes, facts.clock.is_some());
        if is_copy {
            return match core::mem::replace(&mut self.is_copied, true) {
                false => Continuity::Copy,
                true => Continuity::Wrong { missing: 0 },
            };
        }
        let expected = (self.counter + u8::from(facts.has_payload)) % 16;
        match (facts.counter + 16 - expected) % 16 {
            0 => Continuity::Right,
            missing => Continuity::Wrong {
                missing: missing.into(),
            },
        }
    }
}

/// Whether two packets are equal. The clock reference of a copy may differ.
fn is_same(one: &[u8; PACKET], other: &[u8; PACKET], has_clock: bool) -> bool {
    if !has_clock {
        return one == other;
    }
    one.get(..CLOCK.start) == other.get(..CLOCK.start)
        && one.get(CLOCK.end..) == other.get(CLOCK.end..)
}

#[cfg(test)]
mod tests {
    use super::Continuity::*;
    use super::*;

    fn packet(counter: u8, content: u8) -> [u8; PACKET] {
        let mut bytes = [content; PACKET];
        bytes[..4].copy_from_slice(&[0x47, 1, 0, 0x10 | counter]);
        bytes
    }

    fn empty(counter: u8, is_marked: bool) -> [u8; PACKET] {
        let mut bytes = packet(counter, 0xff);
        bytes[3] = 0x20 | counter;
        bytes[4..6].copy_from_slice(&[183, if is_marked { 0x80 } else { 0 }]);
        bytes
    }

    fn follow(packets: &[[u8; PACKET]]) -> Vec<Continuity> {
        let mut counter = Counter::default();
        let follow = |bytes| counter.follow(&Facts::of(bytes).unwrap(), bytes);
        packets.iter().map(follow).collect()
    }

    #[test]
    fn the_counter_goes_on_with_payloads() {
        let packets: Vec<_> = (0..40).map(|number| packet(number % 16, number)).collect();
        assert_eq!(follow(&packets), vec![Right; 40]);
        let packets = [packet(3, 0), empty(3, false), empty(3, false), packet(4, 0)];
        assert_eq!(follow(&packets), [Right; 4]);
        let packets = [packet(3, 0), empty(4, false), packet(5, 0)];
        assert_eq!(follow(&packets), [Right, Wrong { missing: 1 }, Right]);
    }

    #[test]
    fn missing_packets_are_counted_modulo_16() {
        for missing in 1..16 {
            let packets = [packet(9, 0), packet((10 + missing) % 16, 1)];
            let missing = missing.into();
            assert_eq!(follow(&packets), [Right, Wrong { missing }]);
        }
        // Out of order.
        let packets = [0, 2, 1, 3].map(|counter| packet(counter, counter));
        let missing = |missing| Wrong { missing };
        assert_eq!(
            follow(&packets),
            [Right, missing(1), missing(14), missing(1)]
        );
    }

    #[test]
    fn one_copy_is_allowed() {
        let packets = [packet(1, 0), packet(1, 0), packet(2, 0)];
        assert_eq!(follow(&packets), [Right, Copy, Right]);
        let packets = [1, 1, 1, 1, 2].map(|counter| packet(counter, 0));
        let again = Wrong { missing: 0 };
        assert_eq!(follow(&packets), [Right, Copy, again, again, Right]);
        // Fifteen packets are missing before a packet with the same counter and different content.
        let packets = [packet(1, 0), packet(1, 7)];
        assert_eq!(follow(&packets), [Right, Wrong { missing: 15 }]);
        // The clock reference of a copy differs.
        let mut clock = packet(1, 0);
        clock[3] |= 0x20;
        clock[4..6].copy_from_slice(&[7, 0x10]);
        let mut copy = clock;
        copy[8] = 9;
        assert_eq!(follow(&[clock, copy]), [Right, Copy]);
        copy[20] = 9;
        assert_eq!(follow(&[clock, copy]), [Right, Wrong { missing: 15 }]);
    }

    #[test]
    fn a_mark_allows_any_counter() {
        let packets = [packet(1, 0), empty(9, true), packet(10, 0)];
        assert_eq!(follow(&packets), [Right; 3]);
        let mut counter = Counter::default();
        for bytes in [packet(1, 0), packet(9, 0)] {
            counter.forget();
            let facts = Facts::of(&bytes).unwrap();
            assert_eq!(counter.follow(&facts, &bytes), Right);
        }
    }
}
