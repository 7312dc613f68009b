//! A connection, as a subscriber uses it.

use std::time::Duration;

use comity::{
    Connection, Event, Events, Outcome, Rate, Reason, Section, SectionId, SendError, StreamId,
    TargetBitrate,
};

use comity_media::LAYOUT_FEATURE;

use crate::counters::ConnectionId;

/// The operations of a connection that a subscriber uses. The property test of relays implements
/// them over a transport in virtual time.
pub(crate) trait Outlet {
    /// The time from the source time of sections to their deadline, unless they have their own.
    fn latency(&self) -> Duration;

    /// The minimum round-trip time; zero while it is unknown.
    fn round_trip(&self) -> Duration;

    /// The rate up to which frames are not shed.
    fn offer(&self) -> Option<Rate>;

    /// Whether the receiver accepts layouts.
    fn takes_layouts(&self) -> bool;

    /// Submits a section, and returns its number.
    fn try_send(&mut self, section: Section) -> Result<SectionId, SendError>;

    /// Skips the next numbers of a stream, and returns the first of them.
    fn skip_run(
        &mut self,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, SendError>;

    /// The fate of a section, if one has become known since the last call.
    fn try_outcome(&mut self) -> Option<Outcome>;
}

/// A connection to a receiver.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) id: ConnectionId,
    pub(crate) connection: Connection,
    target: TargetBitrate,
    /// `None` unless the fates of sections are followed.
    pub(crate) events: Option<Events>,
}

impl Peer {
    /// Follows the fates of sections with `follows`.
    pub(crate) fn new(id: ConnectionId, connection: Connection, follows: bool) -> Self {
        Self {
            id,
            target: connection.target_bitrate(),
            events: follows.then(|| connection.events()),
            connection,
        }
    }
}

impl Outlet for Peer {
    fn latency(&self) -> Duration {
        self.connection.latency()
    }

    fn round_trip(&self) -> Duration {
        self.connection.min_rtt().unwrap_or_default()
    }

    fn offer(&self) -> Option<Rate> {
        self.target.offer()
    }

    fn takes_layouts(&self) -> bool {
        self.connection.peer_features() & LAYOUT_FEATURE != 0
    }

    fn try_send(&mut self, section: Section) -> Result<SectionId, SendError> {
        self.connection.try_send(section)
    }

    fn skip_run(
        &mut self,
        stream: StreamId,
        count: u64,
        reason: Reason,
    ) -> Result<SectionId, SendError> {
        self.connection.skip_run(stream, count, reason)
    }

    fn try_outcome(&mut self) -> Option<Outcome> {
        let events = self.events.as_mut()?;
        loop {
            if let Event::Outcome(outcome) = events.try_next()? {
                return Some(outcome);
            }
        }
    }
}
