//! Events: their classes, times and sources.

use comity_units::Time;

/// The class of an event. At one instant events run in this order, then by source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// A flow starts or stops, or measuring begins.
    Control = 0,
    /// A packet comes out of a link.
    Arrival = 1,
    /// A link that serves its queue packet by packet has work.
    Service = 2,
    /// A transport's timer.
    Timer = 3,
    /// A workload or a reader acts.
    Application = 4,
}

impl Class {
    const ALL: [Self; 5] = [
        Self::Control,
        Self::Arrival,
        Self::Service,
        Self::Timer,
        Self::Application,
    ];
}

/// An entry of the queue. Events are ordered by (time, class, source), never by insertion, so the
/// order of a run does not depend on how its packets are computed.
///
/// An event is one number with the time in its upper half, the class in the byte below and the
/// source at the bottom, so one comparison orders two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event(u128);

impl Event {
    #[inline]
    pub(super) fn new(time: Time, class: Class, source: u32) -> Self {
        let tie = ((class as u64) << 56) | u64::from(source);
        Self((u128::from(time.as_nanos()) << 64) | u128::from(tie))
    }

    /// After all others.
    pub(super) const NEVER: Self = Self(u128::MAX);

    #[inline]
    pub(super) fn time(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    #[inline]
    pub(super) fn class(self) -> Class {
        let index = (self.0 as u64 >> 56) as usize;
        Class::ALL.get(index).copied().unwrap_or(Class::Control)
    }

    #[inline]
    pub(super) fn source(self) -> u32 {
        self.0 as u32
    }
}
