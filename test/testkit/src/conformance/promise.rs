//! The promises of a controller, and the violation of one.

use std::fmt;

use comity_congestion::Decision;
use comity_congestion::table::{Parameters, Row, Value};

/// The documented properties in which controllers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expectations {
    /// Whether its window may grow while the application limits the flow.
    pub grows_when_limited: bool,
    /// Whether a model of the path sets its window, also in a recovery, and restores its earlier
    /// value.
    pub restores_window: bool,
    /// An acknowledgement raises the window by at most this many times the bytes that it
    /// acknowledges.
    pub growth: u64,
    /// Whether its window limits only the start of a flow, by the acknowledged bytes and the rate
    /// of the first flight, and ends with an acknowledgement.
    pub lifts_window: bool,
}

impl Default for Expectations {
    fn default() -> Self {
        Self {
            grows_when_limited: false,
            restores_window: false,
            growth: 1,
            lifts_window: false,
        }
    }
}

impl Expectations {
    /// The documented properties of a row with these parameters.
    pub fn of(row: &Row, parameters: &Parameters) -> Self {
        // Its window is three times its reference window, which grows in recoveries, and with less
        // in flight than it allows.
        let is_scream = row.name == "scream";
        // The window of a young flow, which counts all acknowledged bytes.
        let lifts_window = row.name == "steady";
        let said = parameters.get("grow_when_limited") == Some(&Value::Flag(true));
        Self {
            restores_window: is_scream || ["bbr", "bbr3"].contains(&row.name),
            grows_when_limited: is_scream || said,
            growth: if is_scream || lifts_window { 4 } else { 1 },
            lifts_window,
        }
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The promise.
    pub promise: Promise,
    /// The decision before the event.
    pub before: Box<Decision>,
    /// The decision after it.
    pub after: Box<Decision>,
}

/// The checked property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The decision does not change between events, and twins have the same decisions.
    Determinism,
    /// An acknowledgement raises the window by at most [`Expectations::growth`] times the bytes
    /// that it acknowledges.
    GrowthByEvidence,
    /// The window does not grow while the application limits the flow.
    NoGrowthWhenLimited,
    /// The window does not grow in a recovery.
    NoGrowthInRecovery,
    /// The window does not grow on a loss or a timeout.
    NoGrowthOnLoss,
    /// The pacing allows packets to leave.
    Pacing,
    /// A pause leaves a window between the initial one and the last one.
    Restart,
    /// A tag has the announced size.
    Tag,
    /// A loss or a timeout leaves a threshold of two segments or more.
    Threshold,
    /// The wake-up lies in the future.
    Wakeup,
    /// The window is at least a segment, and at most the limit.
    Window,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} was broken: before {:?}, after {:?}",
            self.promise, self.before, self.after
        )
    }
}

impl std::error::Error for Violation {}

pub(super) fn check(
    kept: bool,
    promise: Promise,
    before: Decision,
    after: Decision,
) -> Result<(), Violation> {
    if kept {
        Ok(())
    } else {
        Err(Violation {
            promise,
            before: Box::new(before),
            after: Box::new(after),
        })
    }
}
