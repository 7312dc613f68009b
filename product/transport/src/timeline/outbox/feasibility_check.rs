//! When to check the queue for sections that cannot arrive in time.

use comity_units::{Rate, Span, Time};

use super::Config;
use crate::timeline::feasible::Forecast;

/// The last check of the queue for sections that cannot arrive in time.
#[derive(Debug)]
pub(super) struct FeasibilityCheck {
    /// The forecast at that time.
    pub(super) rate: Rate,
    pub(super) one_way: Span,
    /// The duration of repairs.
    pub(super) repair: Span,
    /// The latest prediction.
    pub(super) latest: Forecast,
    /// The first and the last drop in the present series of drops.
    pub(super) left_out: Option<(Time, Time)>,
    /// When a section with unsent bytes was last given up.
    pub(super) short_at: Option<Time>,
    /// Whether a relevant input has changed since.
    pub(super) is_due: bool,
    /// When the next check is due in any case.
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
                caution: Span::ZERO,
                tolerance_percent: config.tolerance_percent,
            },
            left_out: None,
            short_at: None,
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

    /// Whether the source has submitted more than can arrive in time for some time. Drops at the
    /// beginning of a flow or after an outage do not prove that.
    pub(super) fn is_overloaded(&self, now: Time) -> bool {
        self.left_out.is_some_and(|(began, last)| {
            now < last + OVERLOAD_MEMORY && last >= began + OVERLOAD_BEGINS
        })
    }
}

/// How long the sender keeps a reserve after it dropped sections. If a source continuously submits
/// more than its share, every section would otherwise be planned for the last moment, and any delay
/// would make all of them late.
const OVERLOAD_MEMORY: Span = Span::from_secs(2);

/// The duration of drops after which the source counts as submitting more than its share.
const OVERLOAD_BEGINS: Span = Span::from_millis(500);
