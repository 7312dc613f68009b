//! When the queue has to be checked for what cannot arrive in time.

use comity_units::{Rate, Span, Time};

use super::Config;
use crate::timeline::feasible::Forecast;

/// When the queue was last checked for what cannot arrive in time.
#[derive(Debug)]
pub(super) struct FeasibilityCheck {
    /// What was foreseen then.
    pub(super) rate: Rate,
    pub(super) one_way: Span,
    /// How long repairs take.
    pub(super) repair: Span,
    /// The latest prediction.
    pub(super) latest: Forecast,
    /// The first and the last time at which sections were left out, of those that lie close
    /// together.
    pub(super) left_out: Option<(Time, Time)>,
    /// Whether something has changed since.
    pub(super) is_due: bool,
    /// When it has to be checked again in any case.
    pub(super) again: Time,
}

impl FeasibilityCheck {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            rate: Rate::ZERO,
            one_way: Span::ZERO,
            repair: Span::ZERO,
            latest: Forecast {
                rate: Rate::ZERO,
                growth: Rate::ZERO,
                peak: Rate::MAX,
                tokens: None,
                one_way: Span::ZERO,
                tolerance_percent: config.tolerance_percent,
            },
            left_out: None,
            is_due: false,
            again: Time::MAX,
        }
    }

    pub(super) fn on_left_out(&mut self, now: Time) {
        let began = match self.left_out {
            Some((began, last)) if now < last + OVERLOAD_MEMORY => began,
            _ => now,
        };
        self.left_out = Some((began, now));
    }

    /// Whether the source gives more than can arrive in time, and has done so for a while. What is
    /// left out at the beginning of a flow, or behind an outage, says nothing of that.
    pub(super) fn is_overloaded(&self, now: Time) -> bool {
        self.left_out.is_some_and(|(began, last)| {
            now < last + OVERLOAD_MEMORY && last >= began + OVERLOAD_BEGINS
        })
    }
}

/// A source that had to leave sections out keeps a reserve for so long: when it asks for more than
/// its share throughout, every section would else be planned to arrive at the last moment, and any
/// delay would make all of them late.
const OVERLOAD_MEMORY: Span = Span::from_secs(2);

/// Sections are left out for so long before a source counts as one that gives more than its share.
const OVERLOAD_BEGINS: Span = Span::from_millis(500);
