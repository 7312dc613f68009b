//! The small pieces of a connection's state.

use alloc::boxed::Box;
use alloc::vec::Vec;

use comity_units::{PacketNumber, Span, Time, TwoWindows};

use super::sent::Carried;
use crate::timeline::outbox::Notice;
use crate::timeline::{Chunk, StreamId};

/// What a packet carried that matters when it is acknowledged or lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) chunk: Option<Chunk>,
    /// Further chunks, of small sections that share a packet.
    pub(super) more: Vec<Chunk>,
    /// The largest number that the acknowledgement in it spoke of.
    pub(super) acknowledged: Option<PacketNumber>,
    pub(super) control: Option<Box<SentControl>>,
    /// It carried nothing, but tried a size: that it is lost is an answer and no loss.
    pub(super) tries_size: bool,
}

impl Contents {
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunk.iter().chain(&self.more)
    }

    /// Whether it says how much room there is.
    pub(super) fn tells_room(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.credit)
    }

    /// Whether it says what was abandoned.
    pub(super) fn tells_news(&self) -> bool {
        self.control
            .as_ref()
            .is_some_and(|control| !control.notices.is_empty() || !control.floors.is_empty())
    }
}

impl Carried for Contents {
    /// Pieces of sections that arrive after all need not be retransmitted; what else there is was
    /// given out with the repetition.
    fn repeat(&mut self) -> Self {
        Self {
            control: self.control.take(),
            ..self.clone()
        }
    }
}

/// Control frames of a packet that have to be repeated when it is lost.
#[derive(Clone, Debug, Default)]
pub(super) struct SentControl {
    pub(super) notices: Vec<Notice>,
    pub(super) ends: Vec<(StreamId, u64)>,
    pub(super) floors: Vec<StreamId>,
    pub(super) credit: bool,
}

/// Control frames that wait for a packet.
#[derive(Debug, Default)]
pub(super) struct Control {
    pub(super) ends: Vec<(StreamId, u64)>,
    pub(super) ping: bool,
}

impl Control {
    /// Whether something waits that is worth a packet whatever the window says. Each is requested
    /// for once.
    pub(super) fn is_pending(&self) -> bool {
        self.ping || !self.ends.is_empty()
    }
}

/// One-way delays to the peer, by what its acknowledgements say of arrivals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// The least difference of arrival and departure, of two clocks; of the current and the last
    /// window.
    least: [i64; 2],
    window_began_at: Time,
    latest: Option<i64>,
    heard_at: Time,
    /// The longest recent queueing delay.
    longest: TwoWindows<Span>,
}

impl Path {
    pub(super) fn new() -> Self {
        Self {
            least: [i64::MAX; 2],
            window_began_at: Time::ZERO,
            latest: None,
            heard_at: Time::ZERO,
            longest: TwoWindows::default(),
        }
    }

    /// The peer got at `arrival` on its clock what left at `departure` on ours, both in
    /// microseconds mod 2³².
    pub(super) fn on_arrival(&mut self, now: Time, difference: i64) {
        if now.saturating_since(self.window_began_at) > PATH_MEMORY {
            self.least = [difference, self.least[0]];
            self.window_began_at = now;
        }
        self.least[0] = self.least[0].min(difference);
        self.latest = Some(difference);
        self.heard_at = now;
        let queueing = self.queueing();
        self.longest.raise(now, LONGEST_MEMORY, queueing);
    }

    /// How much longer than the last packet the next ones wait, if the queue fills as it did of
    /// late.
    pub(super) fn wait_at(&self, now: Time) -> Span {
        self.longest.most().saturating_sub(self.queueing_at(now))
    }

    /// How much longer than the least a packet takes now: as the last one did, or no longer if that
    /// is long ago. A queue that nobody has looked at for a while may be gone, and only sending
    /// tells.
    pub(super) fn queueing_at(&self, now: Time) -> Span {
        if now.saturating_since(self.heard_at) > QUEUE_MEMORY {
            return Span::ZERO;
        }
        self.queueing()
    }

    /// How much longer than the least the last packet took.
    pub(super) fn queueing(&self) -> Span {
        let least = self.least[0].min(self.least[1]);
        self.latest.map_or(Span::ZERO, |latest| {
            Span::from_micros(u64::try_from(latest - least).unwrap_or(0))
        })
    }
}

/// For how long the last packet's delay is taken for that of the next.
const QUEUE_MEMORY: Span = Span::from_millis(250);

/// The longest queueing delay is that of one to two such windows: groups of pictures begin about
/// once a second.
const LONGEST_MEMORY: Span = Span::from_secs(2);

/// The least one-way delay is that of one to two such windows.
const PATH_MEMORY: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue held packets for 90 ms, and holds them for 20 now: 70 more are to be expected,
    /// until the memory of two windows of 2 s has passed.
    #[test]
    fn the_queue_may_fill_as_it_did_in_the_last_seconds() {
        let mut path = Path::new();
        let arrive = |path: &mut Path, millis: u64, queueing: i64| {
            path.on_arrival(Time::from_millis(millis), 5_000 + queueing * 1_000);
            path.wait_at(Time::from_millis(millis))
        };
        assert_eq!(arrive(&mut path, 0, 0), Span::ZERO);
        assert_eq!(arrive(&mut path, 100, 90), Span::ZERO, "it is as full now");
        assert_eq!(arrive(&mut path, 200, 20), Span::from_millis(70));
        // A queue that nobody has looked at for a while may be gone.
        let later = Time::from_millis(451);
        assert_eq!(path.wait_at(later), Span::from_millis(90));
        assert_eq!(arrive(&mut path, 2_050, 20), Span::from_millis(70));
        assert_eq!(arrive(&mut path, 4_100, 20), Span::ZERO);
    }
}
