//! When the queue has to be checked for sections that cannot arrive in time.

use comity_units::{Rate, Span, Time};

use super::Config;
use crate::timeline::feasible::Forecast;

/// The last check of the queue for sections that cannot arrive in time.
#[derive(Debug)]
pub(super) struct FeasibilityCheck {
    /// The forecast at that time.
    pub(super) rate: Rate,
    pub(super) one_way: Span,
    /// How long repairs take.
    pub(super) repair: Span,
    /// The latest prediction.
    pub(super) latest: Forecast,
    /// The first and the last drop in the present series of drops.
    pub(super) left_out: Option<(Time, Time)>,
    /// When a section was last given up with bytes that had never left.
    pub(super) short_at: Option<Time>,
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

    /// Whether the source has submitted more than can arrive in time, for a while. Drops at the
    /// beginning of a flow or after an outage do not show that.
    pub(super) fn is_overloaded(&self, now: Time) -> bool {
        self.left_out.is_some_and(|(began, last)| {
            now < last + OVERLOAD_MEMORY && last >= began + OVERLOAD_BEGINS
        })
    }
}

/// How long the sender keeps a reserve after it dropped sections. If a source submits more than its
/// share throughout, every section would otherwise be planned for the last moment, and any delay
/// would make all of them late.
const OVERLOAD_MEMORY: Span = Span::from_secs(2);

/// How long drops go on before a source counts as one that submits more than its share.
const OVERLOAD_BEGINS: Span = Span::from_millis(500);
