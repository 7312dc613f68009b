//! The sections of all streams as they arrive.

use comity_units::Time;

use super::{Accounts, Config, Delivery, Violation};
use crate::timeline::clock::ClockMap;
use crate::timeline::section::{Meta, Payload, Reason, SectionId, StreamId};

/// The receiver's half of the timeline.
#[derive(Debug)]
pub struct Inbox<P: Payload> {
    config: Config,
    payload: core::marker::PhantomData<P>,
}

#[allow(unused_variables, missing_docs, clippy::unimplemented)]
impl<P: Payload> Inbox<P> {
    pub fn new(config: Config) -> Self { unimplemented!() }
    /// `bytes` are ignored (and may be empty) where payloads are elided.
    pub fn on_chunk(&mut self, now: Time, clock: &ClockMap, meta: &Meta, offset: u32, length: u32, bytes: &[u8]) -> Result<(), Violation> { unimplemented!() }
    pub fn on_floor(&mut self, stream: StreamId, floor: SectionId) -> Result<(), Violation> { unimplemented!() }
    pub fn on_drop(&mut self, stream: StreamId, section: SectionId, reason: Reason) -> Result<(), Violation> { unimplemented!() }
    pub fn on_end(&mut self, stream: StreamId, sections: u64) -> Result<(), Violation> { unimplemented!() }
    /// Everything that is not settled becomes a gap.
    pub fn close(&mut self) { unimplemented!() }
    pub fn poll(&mut self, now: Time, clock: &ClockMap) -> Option<Delivery<P>> { unimplemented!() }
    /// When to poll again (after `poll` gave `None`).
    pub fn next_wakeup(&self, clock: &ClockMap) -> Time { unimplemented!() }
    /// Whether the stream has ended and everything of it was handed out.
    pub fn is_finished(&self, stream: StreamId) -> bool { unimplemented!() }
    /// Bytes reserved for unsettled and undelivered sections.
    pub fn held_bytes(&self) -> u64 { unimplemented!() }
    /// Bytes of sections handed out or given up, plus what is free: for the credit of the peer.
    pub fn free_bytes(&self) -> u64 { unimplemented!() }
    pub fn accounts(&self) -> &Accounts { unimplemented!() }
}
