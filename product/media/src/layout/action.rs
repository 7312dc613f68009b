//! What a restored stream is made of.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::model::{MAX_PACKETS, STEP_SHIFT};
use super::packet::CLOCK_WRAP;
use crate::header::PACKET;

/// The maximum number of null packets in the place of missing layouts.
const MAX_NULLS: u64 = 4 * MAX_PACKETS as u64;

/// What to write next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A packet of the source.
    Packet([u8; PACKET]),
    /// Bytes of the source outside of packets.
    Outside(Vec<u8>),
    /// A packet in the place of one whose section is missing. If it has no payload and announces
    /// nothing, its counter is that of the packet before.
    Replacement([u8; PACKET]),
    /// A section of this stream whose layout is missing.
    Remultiplex(u16, Bytes),
    /// The rest of a unit on this PID, whose first packets are written and whose next layout is
    /// missing.
    Continue(u16, Bytes),
    /// Packets of the source are left out here, and the counters jump.
    Break,
    /// A layout is missing before this clock reference, in a multiplex of constant rate.
    Resume(Resume),
}

/// The first clock reference behind a missing layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resume {
    pub(crate) pid: u16,
    /// In ticks of 27 MHz.
    pub(crate) clock: u64,
    /// How many packets come before it.
    pub(super) before: u64,
    pub(super) step: u32,
    /// The counter of the first packet with payload of each PID.
    pub(crate) counters: BTreeMap<u16, u8>,
}

impl Resume {
    /// How many null packets restore the distance from a clock reference of the same PID, whose
    /// packet was the last but `since` - 1; 0 if that is no distance of missing packets.
    pub(crate) fn nulls(&self, clock: u64, since: u64) -> u64 {
        let ticks = u128::from((self.clock + CLOCK_WRAP - clock) % CLOCK_WRAP);
        let step = u128::from(self.step.max(1));
        let distance = ((ticks << STEP_SHIFT) + step / 2) / step;
        let nulls = distance.saturating_sub(u128::from(since + self.before));
        let nulls = u64::try_from(nulls).unwrap_or(u64::MAX);
        if nulls <= MAX_NULLS { nulls } else { 0 }
    }
}
