//! Small parts of a connection's state.

use alloc::boxed::Box;
use alloc::vec::Vec;

use comity_units::{PacketNumber, Span, Time, TwoWindows};

use super::sent::Carried;
use crate::timeline::outbox::Notice;
use crate::timeline::{Chunk, StreamId};

/// The contents of a packet that matter when it is acknowledged or lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents {
    pub(super) chunk: Option<Chunk>,
    /// Further chunks, of small sections that share the packet.
    pub(super) more: Vec<Chunk>,
    /// The largest number in its acknowledgement.
    pub(super) acknowledged: Option<PacketNumber>,
    pub(super) control: Option<Box<SentControl>>,
    /// It contains only padding, and tests a size: its loss is a result and not a sign of
    /// congestion.
    pub(super) tries_size: bool,
}

impl Contents {
    pub(super) fn chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.chunk.iter().chain(&self.more)
    }

    /// Whether it reports the receiver's room.
    pub(super) fn tells_room(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.credit)
    }

    /// Whether it reports abandoned sections.
    pub(super) fn reports_news(&self) -> bool {
        self.control
            .as_ref()
            .is_some_and(|control| !control.notices.is_empty() || !control.floors.is_empty())
    }
}

impl Carried for Contents {
    /// Pieces of sections that arrive late after all need not be retransmitted. The other contents
    /// are returned for the repetition.
    fn repeat(&mut self) -> Self {
        Self {
            control: self.control.take(),
            ..self.clone()
        }
    }
}

/// Control frames that must be repeated when their packet is lost.
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
    /// Whether a frame is pending that justifies a packet regardless of the window.
    pub(super) fn is_pending(&self) -> bool {
        self.ping || !self.ends.is_empty()
    }
}

/// One-way delays to the peer, from the arrival times in its acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// The minimum difference of arrival and departure, on two clocks; in the current window and
    /// the previous one.
    least: [i64; 2],
    window_began_at: Time,
    latest: Option<i64>,
    received_at: Time,
    /// The longest recent queueing delay.
    longest: TwoWindows<Span>,
}

impl Path {
    pub(super) fn new() -> Self {
        Self {
            least: [i64::MAX; 2],
            window_began_at: Time::ZERO,
            latest: None,
            received_at: Time::ZERO,
            longest: TwoWindows::default(),
        }
    }

    /// A packet was acknowledged whose arrival on the peer's clock and departure on this end's
    /// clock have this difference, in microseconds mod 2³².
    pub(super) fn on_arrival(&mut self, now: Time, difference: i64) {
        if now.saturating_since(self.window_began_at) > PATH_MEMORY {
            self.least = [difference, self.least[0]];
            self.window_began_at = now;
        }
        self.least[0] = self.least[0].min(difference);
        self.latest = Some(difference);
        self.received_at = now;
        let queueing = self.queueing();
        self.longest.raise(now, LONGEST_MEMORY, queueing);
    }

    /// How much longer than the last packet the next ones may wait, if the queue fills as it did
    /// recently.
    pub(super) fn wait_at(&self, now: Time) -> Span {
        self.longest.most().saturating_sub(self.queueing_at(now))
    }

    /// The queueing delay now: that of the last packet, or zero if that is old. An unobserved queue
    /// may be empty, and only sending can show that.
    pub(super) fn queueing_at(&self, now: Time) -> Span {
        if now.saturating_since(self.received_at) > QUEUE_MEMORY {
            return Span::ZERO;
        }
        self.queueing()
    }

    /// The queueing delay of the last packet.
    pub(super) fn queueing(&self) -> Span {
        let least = self.least[0].min(self.least[1]);
        self.latest.map_or(Span::ZERO, |latest| {
            Span::from_micros(u64::try_from(latest - least).unwrap_or(0))
        })
    }
}

/// How long the last packet's delay predicts that of the next.
const QUEUE_MEMORY: Span = Span::from_millis(250);

/// The window of the maximum queueing delay, which covers one to two of them: groups of pictures
/// begin about once a second.
const LONGEST_MEMORY: Span = Span::from_secs(2);

/// The window of the minimum one-way delay, which covers one to two of them.
const PATH_MEMORY: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// The queue held packets for 90 ms and now holds them for 20 ms. So 70 ms more are possible
    /// until two windows of 2 s have passed.
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
        // An unobserved queue may be empty.
        let later = Time::from_millis(451);
        assert_eq!(path.wait_at(later), Span::from_millis(90));
        assert_eq!(arrive(&mut path, 2_050, 20), Span::from_millis(70));
        assert_eq!(arrive(&mut path, 4_100, 20), Span::ZERO);
    }
}
