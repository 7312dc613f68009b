//! When the packets in flight left.

use alloc::collections::VecDeque;

use comity_units::{Span, Time};

/// Departures in order, those close together as one.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    /// The first and the last departure of a part.
    parts: VecDeque<(Time, Time)>,
}

impl Flight {
    /// A packet left. It is of the last part if that began less than `together` ago.
    pub(super) fn on_sent(&mut self, now: Time, together: Span) {
        match self.parts.back_mut() {
            Some((first, last)) if now.saturating_since(*first) < together => *last = now,
            _ => self.parts.push_back((now, now)),
        }
        if self.parts.len() > MOST {
            self.parts.pop_front();
        }
    }

    /// The packet that left at `departed` was acknowledged: those before it were too, or are known to be missing.
    pub(super) fn on_acked(&mut self, departed: Time) {
        while self
            .parts
            .front()
            .is_some_and(|(_, last)| *last <= departed)
        {
            self.parts.pop_front();
        }
        if let Some((first, _)) = self.parts.front_mut() {
            *first = departed.max(*first);
        }
    }

    /// When the oldest one left.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.parts.front().map(|(first, _)| *first)
    }
}

/// Several timeouts' worth of parts.
const MOST: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_close_together_are_one() {
        let at = Time::from_millis;
        let together = Span::from_millis(10);
        let mut flight = Flight::default();
        for millis in [0, 4, 9, 10, 19, 25] {
            flight.on_sent(at(millis), together);
        }
        assert_eq!(flight.parts.len(), 3);
        assert_eq!(flight.oldest(), Some(at(0)));
        flight.on_acked(at(4));
        assert_eq!(flight.oldest(), Some(at(4)), "one of that part is left");
        flight.on_acked(at(9));
        assert_eq!(flight.oldest(), Some(at(10)));
        flight.on_acked(at(25));
        assert_eq!(flight.oldest(), None);
    }
}
