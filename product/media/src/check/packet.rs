//! The facts in the header of a packet.

use comity_frames::stamp::difference_within;
use mpeg2ts_reader::packet::{AdaptationField, Packet};

use crate::header::PACKET;
use crate::timeline::WRAP;

/// The modulus of clock references, in ticks of 27 MHz.
pub(crate) const CLOCK_WRAP: u64 = WRAP * 300;

/// The header of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) pid: u16,
    pub(crate) is_erroneous: bool,
    pub(crate) is_scrambled: bool,
    /// Whether a PES packet or a section begins in the packet.
    pub(crate) begins: bool,
    pub(crate) counter: u8,
    /// Whether its header announces a payload.
    pub(crate) has_payload: bool,
    pub(crate) payload: Option<&'a [u8]>,
    pub(crate) discontinuity: bool,
    /// Its clock reference, in ticks of 27 MHz.
    pub(crate) clock: Option<u64>,
}

impl<'a> Facts<'a> {
    /// Returns `None` without a sync byte.
    pub(crate) fn of(bytes: &'a [u8; PACKET]) -> Option<Self> {
        let packet = Packet::try_new(bytes)?;
        let field = packet.adaptation_field();
        let clock = field.as_ref().map(AdaptationField::pcr);
        Some(Self {
            pid: packet.pid().into(),
            is_erroneous: packet.transport_error_indicator(),
            is_scrambled: packet.transport_scrambling_control().is_scrambled(),
            begins: packet.payload_unit_start_indicator(),
            counter: packet.continuity_counter().count(),
            has_payload: packet.adaptation_control().has_payload(),
            payload: packet.payload(),
            discontinuity: field.is_some_and(|field| field.discontinuity_indicator()),
            clock: clock.and_then(Result::ok).map(u64::from),
        })
    }
}

/// The distance between two clock references, in the shorter direction.
pub(crate) const fn clock_step(from: u64, to: u64) -> i64 {
    difference_within(CLOCK_WRAP, to, from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_clock_wrap() {
        assert_eq!(clock_step(5, 7), 2);
        assert_eq!(clock_step(7, 5), -2);
        assert_eq!(clock_step(CLOCK_WRAP - 1, 1), 2);
        assert_eq!(clock_step(1, CLOCK_WRAP - 1), -2);
        // An extension of 511 lies beyond the wrap.
        assert_eq!(clock_step(CLOCK_WRAP + 211, 0), -211);
    }

    #[test]
    fn a_header_is_read() {
        let mut bytes = [0; PACKET];
        // PID 0x123, start; adaptation field and payload, counter 9; discontinuity and PCR.
        bytes[..12].copy_from_slice(&[0x47, 0x41, 0x23, 0x39, 7, 0x90, 0, 0, 0, 1, 0x80, 5]);
        let facts = Facts::of(&bytes).unwrap();
        assert_eq!((facts.pid, facts.counter), (0x123, 9));
        assert!(facts.begins && facts.discontinuity && facts.has_payload);
        assert!(!facts.is_erroneous && !facts.is_scrambled);
        // The base has 33 bits, the lowest one in the fifth byte.
        assert_eq!(facts.clock, Some(3 * 300 + 5));
        assert_eq!(facts.payload.map(<[u8]>::len), Some(PACKET - 12));
        bytes[1] |= 0x80;
        bytes[3] |= 0x80;
        let facts = Facts::of(&bytes).unwrap();
        assert!(facts.is_erroneous && facts.is_scrambled);
    }
}
