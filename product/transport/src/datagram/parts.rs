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
    /// Further chunks, if small sections share the packet.
    pub(super) more: Vec<Chunk>,
    /// The largest number in its acknowledgement.
    pub(super) acknowledged: Option<PacketNumber>,
    pub(super) control: Option<Box<SentControl>>,
    /// Whether the packet tries a size. It then contains only padding, and its loss is no sign of
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
    /// Returns the contents to retransmit. The control frames move into the result. A record of the
    /// pieces of sections also remains here, to settle them if the packet arrives late.
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

    /// A packet was acknowledged. `difference` is its arrival on the peer's clock less its
    /// departure on this end's clock, in microseconds mod 2³².
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

    /// The queueing delay that the next packets may have beyond that of the last packet, if the
    /// queue fills as it did recently.
    pub(super) fn wait_at(&self, now: Time) -> Span {
        self.longest.most().saturating_sub(self.queueing_at(now))
    }

    /// The queueing delay now: that of the last packet, or zero if that packet is too old. A queue
    /// that was not observed recently may be empty, and only a new packet can show this.
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

/// How long the delay of the last packet predicts the delay of the next packet.
const QUEUE_MEMORY: Span = Span::from_millis(250);

/// The window of the maximum queueing delay: the maximum covers one to two windows. Groups of
/// pictures begin about once a second.
const LONGEST_MEMORY: Span = Span::from_secs(2);

/// The window of the minimum one-way delay: the minimum covers one to two windows.
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
