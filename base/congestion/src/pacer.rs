//! Spaces packets as a controller decides.

use comity_units::{DataSize, Rate, Span, Time};

use crate::Pacing;

/// Records the last departure, and computes the next one from the present pacing.
///
/// ```text
/// Rate(r):  start = max(next, now − (quantum − wire) / r)      of the packet that leaves
///           next  = start + wire / r                           starts are wire / r apart
/// Bursts(r, s): a packet leaves at once if it fits into s with the packets since start
///           next  = start + bytes of the burst / r             after a pause earlier by the pause,
///                                                              at most by half of the burst
/// Gap(g):   next  = now + wire / line + g                      from the end of a packet to the
///                                                              start of the next
/// At(t):    next  = t                                          the controller has its own calendar
/// ```
///
/// `next` uses the rate or the gap in force at the time of the call. A controller with a newer
/// estimate therefore does not wait for a time computed from the old one.
///
/// An idle sender accumulates at most `quantum` bytes, or one packet, to send at once. The first
/// packet does not follow a pause, so the second one keeps its distance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    last: Option<Departure>,
}

/// The last packet.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// Its nominal start, and how much earlier that is because of the preceding pause.
    start: Time,
    early: Span,
    /// The length of the pause before its burst.
    late: Span,
    /// When it ends on the first link.
    end: Time,
    /// The bytes that determine the pause until the next start: the packet, or the burst that it
    /// ends.
    wire: DataSize,
    packet: DataSize,
    /// When the next may start at `rate`, the rate in force.
    next: Time,
    rate: Rate,
}

impl Departure {
    /// When the next packet may start at this rate, without an early start.
    fn due(&self, rate: Rate) -> Time {
        self.start + rate.transmission_time(self.wire)
    }

    fn next(&self, rate: Rate) -> Time {
        if rate == self.rate {
            return self.next;
        }
        self.due(rate).saturating_sub(self.early)
    }
}

impl Pacer {
    /// When the next packet may leave under `pacing`.
    pub fn release_at(&self, pacing: Pacing) -> Time {
        match (pacing, &self.last) {
            (Pacing::At(time), _) => time,
            (Pacing::Rate(rate) | Pacing::Bucket { rate, .. }, Some(last)) => last.next(rate),
            (Pacing::Bursts { rate, size }, Some(last)) => {
                if last.wire + last.packet <= size {
                    last.start
                } else {
                    last.next(rate)
                }
            }
            (Pacing::Gap(gap), Some(last)) => last.end + gap,
            _ => Time::ZERO,
        }
    }

    /// Records that a packet of `wire` bytes left at `now` over a first link of speed `line`.
    pub fn on_sent(
        &mut self,
        now: Time,
        wire: DataSize,
        pacing: Pacing,
        line: Rate,
        quantum: DataSize,
    ) {
        let mut departure = Departure {
            start: now,
            early: Span::ZERO,
            late: Span::ZERO,
            end: now,
            wire,
            packet: wire,
            next: now,
            rate: Rate::MAX,
        };
        match pacing {
            Pacing::Rate(rate) | Pacing::Bucket { rate, .. } => {
                if let Some(last) = &self.last {
                    // `early` is on the other side of the comparison to avoid times before the
                    // epoch.
                    let (late_since, due) = (now + last.early, last.due(rate));
                    if late_since < due {
                        departure.start = due.saturating_sub(last.early);
                    } else {
                        let credit = rate.transmission_time(quantum.saturating_sub(wire));
                        departure.early = late_since.saturating_since(due).min(credit);
                    }
                }
                departure.rate = rate;
                departure.next = departure.due(rate).saturating_sub(departure.early);
            }
            Pacing::Bursts { rate, size } => {
                if let Some(last) = &self.last {
                    let next = last.next(rate);
                    if now < next && last.wire + wire <= size {
                        (departure.start, departure.late) = (last.start, last.late);
                        departure.wire = last.wire + wire;
                    } else {
                        departure.late = now.saturating_since(next);
                    }
                    let half = rate.transmission_time(departure.wire) / 2;
                    departure.early = departure.late.min(half);
                }
                departure.rate = rate;
                departure.next = departure.due(rate).saturating_sub(departure.early);
            }
            Pacing::Gap(_) => departure.end = now + line.transmission_time(wire),
            _ => return,
        }
        self.last = Some(departure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: DataSize = DataSize::new(1_000);

    /// How many packets leave at `now`.
    fn burst(pacer: &mut Pacer, now: Time, pacing: Pacing, quantum: DataSize) -> usize {
        let mut count = 0;
        while pacer.release_at(pacing) <= now {
            pacer.on_sent(now, PACKET, pacing, Rate::MAX, quantum);
            count += 1;
        }
        count
    }

    #[test]
    fn a_rate_spaces_starts_and_accumulates_nothing() {
        let pacing = Pacing::Rate(Rate::from_mbps(8));
        let mut pacer = Pacer::default();
        let start = Time::from_secs(5);
        assert_eq!(pacer.release_at(pacing), Time::ZERO);
        pacer.on_sent(start, PACKET, pacing, Rate::MAX, DataSize::ZERO);
        assert_eq!(pacer.release_at(pacing), start + Span::from_millis(1));
        // Called late: the next packet is still a full interval away, with no compensation.
        let late = start + Span::from_millis(7);
        pacer.on_sent(late, PACKET, pacing, Rate::MAX, DataSize::ZERO);
        assert_eq!(pacer.release_at(pacing), late + Span::from_millis(1));
        // Called half an interval early: the next packet compensates for that.
        pacer.on_sent(
            late + Span::from_micros(500),
            PACKET,
            pacing,
            Rate::MAX,
            DataSize::ZERO,
        );
        assert_eq!(pacer.release_at(pacing), late + Span::from_millis(2));
    }

    #[test]
    fn the_quantum_leaves_at_once_after_any_pause() {
        let pacing = Pacing::Rate(Rate::from_mbps(8));
        for start in [Time::ZERO, Time::from_micros(900), Time::from_secs(100)] {
            for packets in 1..=4 {
                let quantum = PACKET * packets;
                let mut pacer = Pacer::default();
                assert_eq!(burst(&mut pacer, start, pacing, quantum), 1, "the first");
                let later = start + Span::from_millis(10);
                let count = burst(&mut pacer, later, pacing, quantum) as u64;
                assert_eq!(count, packets, "at {start}");
                assert_eq!(pacer.release_at(pacing), later + Span::from_millis(1));
            }
        }
        // A shorter delay of the timer is compensated to the nanosecond.
        let mut pacer = Pacer::default();
        pacer.on_sent(Time::ZERO, PACKET, pacing, Rate::MAX, PACKET * 2);
        let late = Time::from_micros(1_400);
        pacer.on_sent(late, PACKET, pacing, Rate::MAX, PACKET * 2);
        assert_eq!(pacer.release_at(pacing), Time::from_millis(2));
    }

    #[test]
    fn the_next_packet_leaves_by_the_present_rate() {
        let slow = Pacing::Rate(Rate::from_kbps(8));
        let fast = Pacing::Rate(Rate::from_kbps(80));
        let mut pacer = Pacer::default();
        let start = Time::from_secs(3);
        pacer.on_sent(start, PACKET, slow, Rate::MAX, PACKET * 2);
        assert_eq!(pacer.release_at(slow), start + Span::from_secs(1));
        assert_eq!(pacer.release_at(fast), start + Span::from_millis(100));
        assert_eq!(pacer.release_at(slow), start + Span::from_secs(1));
        // An early departure at the old rate stays as early.
        let later = start + Span::from_millis(150);
        pacer.on_sent(later, PACKET, fast, Rate::MAX, PACKET * 2);
        assert_eq!(pacer.release_at(fast), start + Span::from_millis(200));
        assert_eq!(
            pacer.release_at(slow),
            start + Span::from_millis(100) + Span::from_secs(1)
        );
    }

    #[test]
    fn bursts_of_two_packets_leave_at_once_and_wait_for_both() {
        let pacing = Pacing::Bursts {
            rate: Rate::from_mbps(8),
            size: PACKET * 2,
        };
        let mut pacer = Pacer::default();
        let start = Time::from_secs(5);
        assert_eq!(burst(&mut pacer, start, pacing, DataSize::ZERO), 2);
        assert_eq!(pacer.release_at(pacing), start + Span::from_millis(2));
        let second = start + Span::from_millis(2);
        // The second packet of a burst may leave later without restarting the pause.
        pacer.on_sent(second, PACKET, pacing, Rate::MAX, DataSize::ZERO);
        let between = second + Span::from_micros(500);
        assert!(pacer.release_at(pacing) <= between);
        pacer.on_sent(between, PACKET, pacing, Rate::MAX, DataSize::ZERO);
        assert_eq!(pacer.release_at(pacing), second + Span::from_millis(2));
        // After a pause, half of the burst's time is compensated.
        let late = second + Span::from_millis(10);
        assert_eq!(burst(&mut pacer, late, pacing, DataSize::ZERO), 2);
        assert_eq!(pacer.release_at(pacing), late + Span::from_millis(1));
    }

    #[test]
    fn a_gap_begins_where_the_packet_ends() {
        let pacing = Pacing::Gap(Span::from_micros(500));
        let mut pacer = Pacer::default();
        assert_eq!(pacer.release_at(pacing), Time::ZERO);
        pacer.on_sent(
            Time::ZERO,
            PACKET,
            pacing,
            Rate::from_mbps(8),
            DataSize::ZERO,
        );
        assert_eq!(pacer.release_at(pacing), Time::from_micros(1_500));
        let shorter = Pacing::Gap(Span::from_micros(100));
        assert_eq!(pacer.release_at(shorter), Time::from_micros(1_100));
        assert_eq!(pacer.release_at(Pacing::Unpaced), Time::ZERO);
        assert_eq!(
            pacer.release_at(Pacing::At(Time::from_secs(9))),
            Time::from_secs(9)
        );
    }
}
