//! Spreads packets in time as a controller decides.

use comity_congestion::Pacing;
use comity_units::{Bytes, Rate, Time};

/// Remembers when the next packet may leave.
///
/// ```text
/// Rate(r):  next = max(next, now − quantum / r) + wire / r     starts are wire / r apart
/// Gap(g):   next = now + wire / line + g                       from the end of one to the start of the next
/// At(t):    next = t                                           the law keeps its own calendar
/// ```
///
/// A sender that was idle does not save up: it starts again with at most `quantum` bytes at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    next: Time,
}

impl Pacer {
    /// When the next packet may leave under `pacing`.
    pub fn release_at(&self, pacing: Pacing) -> Time {
        match pacing {
            Pacing::Rate(_) | Pacing::Bucket { .. } | Pacing::Gap(_) => self.next,
            Pacing::At(time) => time,
            _ => Time::ZERO,
        }
    }

    /// A packet of `wire` bytes left at `now` over a first link of speed `line`.
    pub fn on_sent(&mut self, now: Time, wire: Bytes, pacing: Pacing, line: Rate, quantum: Bytes) {
        match pacing {
            Pacing::Rate(rate) | Pacing::Bucket { rate, .. } => {
                let credit = rate.transmission_time(quantum);
                let earliest = Time::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
                self.next = self.next.max(earliest) + rate.transmission_time(wire);
            }
            Pacing::Gap(gap) => self.next = now + line.transmission_time(wire) + gap,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::Span;

    const PACKET: Bytes = Bytes::new(1_000);

    #[test]
    fn a_rate_spaces_starts_and_does_not_save_up() {
        let pacing = Pacing::Rate(Rate::from_mbps(8));
        let mut pacer = Pacer::default();
        let start = Time::from_secs(5);
        pacer.on_sent(start, PACKET, pacing, Rate::MAX, Bytes::ZERO);
        assert_eq!(pacer.release_at(pacing), start + Span::from_millis(1));
        // Called late: the next one is still a full interval away, nothing is caught up.
        let late = start + Span::from_millis(7);
        pacer.on_sent(late, PACKET, pacing, Rate::MAX, Bytes::ZERO);
        assert_eq!(pacer.release_at(pacing), late + Span::from_millis(1));
        // With a quantum of two packets, up to two intervals may be caught up.
        let mut pacer = Pacer::default();
        pacer.on_sent(late, PACKET, pacing, Rate::MAX, PACKET * 2);
        assert_eq!(
            pacer.release_at(pacing),
            Time::from_nanos(late.as_nanos() - 1_000_000)
        );
    }

    #[test]
    fn a_gap_begins_where_the_packet_ends() {
        let pacing = Pacing::Gap(Span::from_micros(500));
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::ZERO, PACKET, pacing, Rate::from_mbps(8), Bytes::ZERO);
        assert_eq!(pacer.release_at(pacing), Time::from_micros(1_500));
        assert_eq!(pacer.release_at(Pacing::Unpaced), Time::ZERO);
        assert_eq!(
            pacer.release_at(Pacing::At(Time::from_secs(9))),
            Time::from_secs(9)
        );
    }
}
