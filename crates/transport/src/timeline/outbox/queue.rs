//! The sections of all streams and the order in which their bytes leave.

use alloc::vec::Vec;

use comity_units::Time;

use super::{Accounts, Chunk, Config, Notice, Outcome, Outlook, SubmitError};
use crate::timeline::section::{Meta, Outgoing, Payload, Reason, SectionId, StreamId};

/// The sender's half of the timeline.
#[derive(Debug)]
pub struct Outbox<P: Payload> {
    config: Config,
    payload: core::marker::PhantomData<P>,
}

#[allow(unused_variables, clippy::needless_pass_by_value, missing_docs, clippy::unimplemented)]
impl<P: Payload> Outbox<P> {
    pub fn new(config: Config) -> Self { unimplemented!() }
    pub fn submit(&mut self, now: Time, section: Outgoing<P>) -> Result<SectionId, SubmitError> { unimplemented!() }
    pub fn end(&mut self, stream: StreamId) -> Option<u64> { unimplemented!() }
    pub fn abandon(&mut self, stream: StreamId, section: SectionId, reason: Reason) -> bool { unimplemented!() }
    pub fn next_chunk(&mut self, now: Time, max_bytes: u32, outlook: &Outlook) -> Option<Chunk> { unimplemented!() }
    /// `room` says how many bytes of payload fit behind the header of a piece that begins at this offset.
    pub fn next_chunk_with(&mut self, now: Time, outlook: &Outlook, room: impl FnOnce(&Meta, u32) -> u32) -> Option<Chunk> { unimplemented!() }
    pub fn meta(&self, chunk: &Chunk) -> Option<Meta> { unimplemented!() }
    pub fn write(&self, chunk: &Chunk, out: &mut Vec<u8>) -> bool { unimplemented!() }
    pub fn on_acked(&mut self, chunk: &Chunk) { unimplemented!() }
    pub fn on_lost(&mut self, now: Time, chunk: &Chunk) { unimplemented!() }
    pub fn expire(&mut self, now: Time) { unimplemented!() }
    pub fn floor(&self, stream: StreamId) -> SectionId { unimplemented!() }
    /// Streams whose floor has moved since the last call.
    pub fn poll_floor(&mut self) -> Option<(StreamId, SectionId)> { unimplemented!() }
    pub fn poll_notice(&mut self) -> Option<Notice> { unimplemented!() }
    pub fn on_notice_lost(&mut self, notice: Notice) { unimplemented!() }
    pub fn poll_outcome(&mut self) -> Option<Outcome> { unimplemented!() }
    pub fn earliest_deadline(&self) -> Time { unimplemented!() }
    /// Bytes that wait to be sent, for the first time or again.
    pub fn backlog(&self) -> u64 { unimplemented!() }
    pub fn is_settled(&self) -> bool { unimplemented!() }
    pub fn accounts(&self) -> &Accounts { unimplemented!() }
}
