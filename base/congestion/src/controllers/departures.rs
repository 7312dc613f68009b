//! Departure times for a controller that schedules each packet.

use comity_units::{DataSize, Rate, Span, Time};

/// When the packets of one sender leave, and the transmission time of a packet on its own link.
///
/// ```text
/// next = max( due + period, now + τ )     due = the time set, or now if that is long past
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct Departures {
    next_at: Time,
    link: Rate,
    /// τ of the largest packet so far.
    transmission: Span,
}

impl Departures {
    /// Creates a schedule in which the first packet may leave at any time.
    pub(super) fn new(link: Rate, packet: DataSize) -> Self {
        Self {
            next_at: Time::ZERO,
            link,
            transmission: link.transmission_time(packet).min(LONGEST),
        }
    }

    /// When the next packet is due.
    pub(super) const fn next_at(&self) -> Time {
        self.next_at
    }

    /// Sets when the next packet is due.
    pub(super) const fn set(&mut self, at: Time) {
        self.next_at = at;
    }

    /// τ: the transmission time of a packet.
    pub(super) const fn transmission(&self) -> Span {
        self.transmission
    }

    /// Takes the size of a packet, before [`on_sent`](Self::on_sent).
    pub(super) fn measure(&mut self, wire: DataSize) {
        let transmission = self.link.transmission_time(wire).min(LONGEST);
        self.transmission = self.transmission.max(transmission);
    }

    /// Schedules the next packet a period after this one. Compensates for a late timer, not for a
    /// pause.
    pub(super) fn on_sent(&mut self, now: Time, period: Span) {
        let late = now.saturating_since(self.next_at);
        let due = if late < period.max(LATE) {
            self.next_at
        } else {
            now
        };
        self.next_at = (due + period).max(now + self.transmission);
    }
}

/// The maximum transmission time.
const LONGEST: Span = Span::from_secs(60);

/// A departure that is late by at most this was delayed by a timer.
const LATE: Span = Span::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_timer_is_made_up_for_and_a_pause_is_not() {
        let at = Time::from_micros;
        let period = Span::from_micros(3_000);
        // 1000 bytes at 8 Mb/s: 1 ms.
        let mut departures = Departures::new(Rate::from_mbps(8), DataSize::new(1_000));
        departures.set(at(10_000));
        for (now, next) in [
            (10_000, 13_000),
            (13_400, 16_000),
            // At least a transmission time apart.
            (18_900, 19_900),
            // More than a period late: the schedule restarts now.
            (22_900, 25_900),
        ] {
            departures.on_sent(at(now), period);
            assert_eq!(departures.next_at(), at(next), "{now}");
        }
        departures.measure(DataSize::new(500));
        assert_eq!(departures.transmission(), Span::from_millis(1));
        departures.measure(DataSize::new(2_000));
        assert_eq!(departures.transmission(), Span::from_millis(2));
        let mut slow = Departures::new(Rate::from_bps(1), DataSize::new(1_000));
        assert_eq!(slow.transmission(), LONGEST);
        slow.measure(DataSize::MAX);
        assert_eq!(slow.transmission(), LONGEST);
    }
}
