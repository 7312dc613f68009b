//! The output of a restorer, step by step.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::model::{MAX_PACKETS, STEP_SHIFT};
use super::packet::CLOCK_WRAP;
use crate::header::PACKET;

/// The maximum number of null packets that replace missing layouts.
const MAX_NULLS: u64 = 4 * MAX_PACKETS as u64;

/// What to write next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A packet of the source.
    Packet([u8; PACKET]),
    /// Bytes of the source outside of packets.
    Outside(Vec<u8>),
    /// Replaces a packet whose section is missing. If it has no payload and announces no
    /// discontinuity, its counter is that of the previous packet.
    Replacement([u8; PACKET]),
    /// A section of this stream whose layout is missing.
    Remultiplex(u16, Bytes),
    /// The rest of a unit on this PID. Its first packets were written, and its next layout is
    /// missing.
    Continue(u16, Bytes),
    /// Packets of the source are omitted here, and the counters jump.
    Break,
    /// A layout is missing before this clock reference, in a multiplex of constant rate.
    Resume(Resume),
}

/// The first clock reference after a missing layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resume {
    pub(crate) pid: u16,
    /// The clock reference, in ticks of 27 MHz.
    pub(crate) clock: u64,
    /// The number of packets before it in its layout.
    pub(super) before: u64,
    pub(super) step: u32,
    /// The counter of the first packet with payload of each PID.
    pub(crate) counters: BTreeMap<u16, u8>,
}

impl Resume {
    /// The number of null packets that restore the distance from an earlier clock reference,
    /// `clock`, of the same PID. `since` packets were written from that one's packet on. Returns 0
    /// if the distance is too long for missing packets.
    pub(crate) fn nulls(&self, clock: u64, since: u64) -> u64 {
        let ticks = u128::from((self.clock + CLOCK_WRAP - clock) % CLOCK_WRAP);
        let step = u128::from(self.step.max(1));
        let distance = ((ticks << STEP_SHIFT) + step / 2) / step;
        let nulls = distance.saturating_sub(u128::from(since + self.before));
        let nulls = u64::try_from(nulls).unwrap_or(u64::MAX);
        if nulls <= MAX_NULLS { nulls } else { 0 }
    }
}
