//! When the packets in flight left.

use alloc::collections::VecDeque;

use comity_units::{PacketNumber, Span, Time};

/// Departures in order, those close together as one.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    parts: VecDeque<Part>,
}

/// The first and the last of some packets that left close together, less those acknowledged.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: Departure,
    last: Departure,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    number: PacketNumber,
    at: Time,
}

impl Flight {
    /// A packet left. It is of the last part if that began less than `together` ago.
    pub(super) fn on_sent(&mut self, now: Time, number: PacketNumber, together: Span) {
        let last = Departure { number, at: now };
        match self.parts.back_mut() {
            Some(part) if now.saturating_since(part.first.at) < together => part.last = last,
            _ => self.parts.push_back(Part { first: last, last }),
        }
        if self.parts.len() > MOST {
            self.parts.pop_front();
        }
    }

    /// This packet was acknowledged: those before it were too, or are known to be missing.
    pub(super) fn on_acked(&mut self, number: PacketNumber) {
        while self
            .parts
            .front()
            .is_some_and(|part| part.last.number <= number)
        {
            self.parts.pop_front();
        }
        if let Some(part) = self.parts.front_mut()
            && part.first.number <= number
        {
            // The next one left no earlier than its share of the part; which is all that is kept.
            let acked = (number.get() + 1).saturating_sub(part.first.number.get());
            let all = part.last.number.get() - part.first.number.get();
            let share = acked as f64 / all.max(1) as f64;
            let length = part.last.at.saturating_since(part.first.at);
            part.first = Departure {
                number: PacketNumber::new(number.get() + 1),
                at: part.first.at + length.mul_f64(share),
            };
        }
    }

    /// When the oldest one left.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.parts.front().map(|part| part.first.at)
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
        for (number, millis) in [0, 4, 8, 10, 19, 25].into_iter().enumerate() {
            flight.on_sent(at(millis), PacketNumber::new(number as u64), together);
        }
        assert_eq!(flight.parts.len(), 3);
        assert_eq!(flight.oldest(), Some(at(0)));
        flight.on_acked(PacketNumber::new(0));
        assert_eq!(flight.oldest(), Some(at(4)), "by its share");
        flight.on_acked(PacketNumber::new(0));
        assert_eq!(flight.oldest(), Some(at(4)), "again");
        flight.on_acked(PacketNumber::new(2));
        assert_eq!(flight.oldest(), Some(at(10)));
        flight.on_acked(PacketNumber::new(1));
        assert_eq!(flight.oldest(), Some(at(10)), "late");
        flight.on_acked(PacketNumber::new(5));
        assert_eq!(flight.oldest(), None);
    }
}
