//! Jumps among the times of a live source, which its arrivals reveal.

use comity_units::{Span, Time};

use crate::section::Jump;
use crate::timeline::{difference, ticks, ticks_in};

/// How much longer than expected a step is that is a jump ahead, in ticks: 120 ms.
const AHEAD: i64 = 10_800;
/// How far back a jump goes: 250 ms. Some sources have pictures without decoding times.
const BACK: i64 = 22_500;
/// By one in so many parts of the time passed, a source may be slower than this host.
const DRIFT: i64 = 100;

/// The times of one stream beside their arrivals.
///
/// A source may be held up and then deliver at once what it gathered. Its times then advance faster
/// than the arrivals, but never further ahead of them than before. A jump ahead does that in one
/// step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    latest: Option<Latest>,
    /// The progress without the jumps, in ticks since the first time stamp.
    progress: i64,
}

#[derive(Clone, Copy, Debug)]
struct Latest {
    stamp: u64,
    arrival: Time,
    /// How far the times were ahead of the arrivals: now, and at most.
    ahead: i64,
    furthest: i64,
    /// The latest step.
    interval: i64,
}

impl Steps {
    /// Processes the next time stamp of the stream. Returns how far it jumped, if it did.
    pub(super) fn on_stamp(&mut self, stamp: u64, arrival: Time) -> Option<Jump> {
        let Some(latest) = &mut self.latest else {
            self.latest = Some(Latest {
                stamp,
                arrival,
                ahead: 0,
                furthest: 0,
                interval: 0,
            });
            return None;
        };
        let step = difference(stamp, latest.stamp);
        let passed = ticks_in(arrival.saturating_since(latest.arrival));
        let beyond = step - passed.max(latest.interval);
        let furthest = latest.furthest - passed / DRIFT;
        let is_ahead = beyond > AHEAD && latest.ahead + step - passed > furthest + AHEAD;
        let is_jump = is_ahead || step < -BACK;
        let jumped = step - latest.interval;
        let taken = if is_jump { latest.interval } else { step };
        let ahead = latest.ahead + taken - passed;
        *latest = Latest {
            stamp,
            arrival,
            ahead,
            furthest: furthest.max(ahead),
            interval: taken.max(0),
        };
        self.progress += taken;
        is_jump.then(|| Jump::of(jumped))
    }

    /// How far the stream has come since its first time stamp, without the jumps.
    pub(super) fn progress(&self) -> Span {
        ticks(u64::try_from(self.progress).unwrap_or(0))
    }
}
