//! Which moves of a peer begin congestion control afresh.
//!
//! ```text
//! another port of the same host           the state is kept
//! another host                            a fresh start
//! another host, soon after a fresh start  the state is kept
//! ```
//!
//! Otherwise, a peer that moves to and fro would never be subject to congestion control: each move
//! would undo the reactions to its losses.
//!
//! Source: RFC 9000, section 9.4. Differs from the source in: a second move to another host within
//! [`FRESH_INTERVAL`] keeps the state. Losses on the new path still lower the rate.

use comity_units::{Span, Time};

/// The minimum time between two fresh starts.
pub(super) const FRESH_INTERVAL: Span = Span::from_secs(10);

/// The last fresh start of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moves {
    fresh_at: Option<Time>,
}

impl Moves {
    /// Whether a move to another host begins congestion control afresh now.
    pub(super) fn begins_afresh(&mut self, now: Time) -> bool {
        let is_soon = { self.fresh_at }.is_some_and(|at| now < at + FRESH_INTERVAL);
        if !is_soon {
            self.fresh_at = Some(now);
        }
        !is_soon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_moves_in_two_seconds_begin_afresh_once() {
        let mut moves = Moves::default();
        let at = |millis| Time::from_secs(5) + Span::from_millis(millis);
        let fresh = (0..20).filter(|step| moves.begins_afresh(at(step * 100)));
        assert_eq!(fresh.collect::<Vec<_>>(), [0]);
        // From Wi-Fi to a mobile network, and home again in the evening.
        assert!(!moves.begins_afresh(at(9_999)));
        assert!(moves.begins_afresh(at(10_000)));
    }
}
