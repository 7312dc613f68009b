//! The receiver of the packet-spacing protocol.

use alloc::collections::VecDeque;

use comity_units::{Span, Time};

use crate::{Arrival, Meter, Report, Tag};

/// Counts the packets of each round, and reports each round in order once it is over.
///
/// A round is over an eighth of a round trip after the first packet of a later round arrived, or
/// two round trips after its own first packet arrived. Rounds without an arrival, between two
/// rounds with some, are reported with zero packets: at one packet per round trip, no other report
/// would show losses. A packet with a round trip of zero is acknowledged at once, because the
/// sender measures the round trip with it.
///
/// Source: section 2 of the paper; [the module](crate::controllers::psp) has the differences.
#[derive(Clone, Debug, Default)]
pub struct RoundMeter {
    /// Rounds without a report, in order; the last is the current one.
    open: VecDeque<Counted>,
    /// The last reported round.
    last: Option<Counted>,
    /// Whether the first report of `last` is still due.
    is_unreported: bool,
    /// When the sender requested a report.
    requested_at: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    round: u32,
    packets: u32,
    ends_at: Time,
}

impl RoundMeter {
    /// Begins a round that is later than all before it.
    fn begin(&mut self, now: Time, round: u32, rtt: Span) {
        let ends_at = now + rtt / 8;
        for before in &mut self.open {
            before.ends_at = before.ends_at.min(ends_at);
        }
        if let Some(newest) = self.newest() {
            let missing = round.wrapping_sub(newest) - 1;
            for back in (1..=missing.min(MAX_MISSING)).rev() {
                self.open.push_back(Counted {
                    round: round.wrapping_sub(back),
                    packets: 0,
                    ends_at,
                });
            }
        }
        self.open.push_back(Counted {
            round,
            packets: 1,
            ends_at: now + rtt * 2,
        });
        while self.open.len() > MAX_OPEN {
            self.open.pop_front();
        }
    }

    fn newest(&self) -> Option<u32> {
        self.open.back().or(self.last.as_ref()).map(|it| it.round)
    }
}

/// Whether `round` comes after `other`, across the wrap.
const fn is_after(round: u32, other: u32) -> bool {
    let ahead = round.wrapping_sub(other);
    ahead != 0 && ahead < 1 << 31
}

impl Meter for RoundMeter {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Tag::Round { round, rtt } = arrival.tag else {
            return;
        };
        if rtt.is_zero() {
            self.requested_at = Some(arrival.now);
            return;
        }
        if self.newest().is_none_or(|newest| is_after(round, newest)) {
            self.begin(arrival.now, round, rtt);
            return;
        }
        let known = self.open.iter_mut().chain(&mut self.last);
        if let Some(counted) = known.into_iter().find(|counted| counted.round == round) {
            counted.packets = counted.packets.saturating_add(1);
        }
    }

    fn report(&mut self, now: Time) -> Report {
        self.on_wakeup(now);
        self.is_unreported = false;
        self.last.map_or(Report::None, |last| Report::Count {
            round: last.round,
            packets: last.packets,
        })
    }

    fn wakeup(&self) -> Option<Time> {
        // The next round follows once the round before was reported.
        let next = self.open.front().filter(|_| !self.is_unreported);
        let next = next.map(|counted| counted.ends_at);
        next.into_iter().chain(self.requested_at).min()
    }

    fn on_wakeup(&mut self, now: Time) {
        self.requested_at = self.requested_at.filter(|at| *at > now);
        if self.is_unreported {
            return;
        }
        if self.open.front().is_some_and(|first| first.ends_at <= now) {
            self.last = self.open.pop_front();
            self.is_unreported = true;
        }
    }
}

/// The most missing rounds to report. The sender's no-feedback time has answered older ones.
const MAX_MISSING: u32 = 8;

/// The most open rounds; beyond that the oldest is dropped.
const MAX_OPEN: usize = 64;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use comity_units::{DataSize, PacketNumber};

    const RTT: Span = Span::from_millis(80);

    fn arrive(meter: &mut RoundMeter, at_ms: u64, round: u32) {
        meter.on_arrival(&Arrival {
            now: Time::from_millis(at_ms),
            number: PacketNumber::ZERO,
            payload: DataSize::new(1_000),
            wire: DataSize::new(1_000),
            marked: false,
            tag: Tag::Round { round, rtt: RTT },
        });
    }

    fn count(round: u32, packets: u32) -> Report {
        Report::Count { round, packets }
    }

    #[test]
    fn a_round_is_reported_an_eighth_of_a_round_trip_into_the_next() {
        let mut meter = RoundMeter::default();
        for at in [0, 20, 40, 60] {
            arrive(&mut meter, at, 7);
        }
        assert_eq!(meter.report(Time::from_millis(70)), Report::None);
        assert_eq!(meter.wakeup(), Some(Time::from_millis(160)));
        arrive(&mut meter, 80, 8);
        // A packet of the seventh round arrives out of order.
        arrive(&mut meter, 85, 7);
        assert_eq!(meter.wakeup(), Some(Time::from_millis(90)));
        assert_eq!(meter.report(Time::from_millis(89)), Report::None);
        meter.on_wakeup(Time::from_millis(90));
        assert_eq!(meter.report(Time::from_millis(90)), count(7, 5));
        assert_eq!(meter.report(Time::from_millis(95)), count(7, 5), "repeated");
    }

    #[test]
    fn the_last_round_before_a_silence_is_reported_by_time() {
        let mut meter = RoundMeter::default();
        arrive(&mut meter, 0, 1);
        arrive(&mut meter, 10, 1);
        let due = meter.wakeup().unwrap();
        assert_eq!(due, Time::from_millis(160));
        meter.on_wakeup(due);
        assert_eq!(meter.wakeup(), None);
        assert_eq!(meter.report(due), count(1, 2));
        // Late packets of the round are counted, and no round begins again.
        arrive(&mut meter, 170, 1);
        assert_eq!(meter.report(Time::from_millis(171)), count(1, 3));
        arrive(&mut meter, 172, 0);
        assert_eq!(meter.wakeup(), None);
    }

    #[test]
    fn rounds_of_which_nothing_arrived_are_reported_too() {
        let mut meter = RoundMeter::default();
        arrive(&mut meter, 0, u32::MAX - 1);
        // Two rounds without an arrival, across the wrap. A packet of the second arrives late.
        arrive(&mut meter, 240, 1);
        arrive(&mut meter, 245, 0);
        let mut reports = std::vec::Vec::new();
        while let Some(due) = meter.wakeup().filter(|due| *due <= Time::from_millis(250)) {
            // The first was over by time, 160 ms after it began.
            assert_eq!(
                due,
                Time::from_millis(if reports.is_empty() { 160 } else { 250 })
            );
            meter.on_wakeup(Time::from_millis(250));
            reports.push(meter.report(Time::from_millis(250)));
        }
        assert_eq!(
            reports,
            [count(u32::MAX - 1, 1), count(u32::MAX, 0), count(0, 1)]
        );
        // After a jump by billions only the last few rounds are reported, at once.
        arrive(&mut meter, 300, 1 << 30);
        let mut reports = 0;
        while meter.wakeup().is_some() {
            meter.on_wakeup(Time::from_secs(9));
            assert_ne!(meter.report(Time::from_secs(9)), Report::None);
            reports += 1;
        }
        assert_eq!(reports, 10, "the round of one, eight, and the last");
    }

    #[test]
    fn a_round_that_follows_within_the_eighth_takes_no_report_away() {
        let mut meter = RoundMeter::default();
        // Three rounds compressed into 6 ms.
        for (at, round) in [(0, 1), (80, 2), (82, 3), (84, 3), (86, 4)] {
            arrive(&mut meter, at, round);
        }
        for (due, expected) in [(90, count(1, 1)), (92, count(2, 1)), (96, count(3, 2))] {
            assert_eq!(meter.wakeup(), Some(Time::from_millis(due)));
            meter.on_wakeup(Time::from_millis(due));
            assert_eq!(meter.report(Time::from_millis(due)), expected);
        }
    }

    #[test]
    fn numbers_wrap_and_probes_are_answered_at_once() {
        let mut meter = RoundMeter::default();
        arrive(&mut meter, 0, u32::MAX);
        arrive(&mut meter, 80, 0);
        assert_eq!(meter.report(Time::from_millis(90)), count(u32::MAX, 1));
        meter.on_arrival(&Arrival {
            now: Time::from_millis(91),
            number: PacketNumber::ZERO,
            payload: DataSize::new(100),
            wire: DataSize::new(100),
            marked: false,
            tag: Tag::Round {
                round: 0,
                rtt: Span::ZERO,
            },
        });
        assert_eq!(meter.wakeup(), Some(Time::from_millis(91)));
    }

    #[test]
    fn a_measuring_packet_is_answered_once_and_at_once() {
        let mut meter = RoundMeter::default();
        let now = Time::from_millis(5);
        meter.on_arrival(&Arrival {
            now,
            number: PacketNumber::ZERO,
            payload: DataSize::new(1_000),
            wire: DataSize::new(1_000),
            marked: false,
            tag: Tag::Round {
                round: 0,
                rtt: Span::ZERO,
            },
        });
        assert_eq!(meter.wakeup(), Some(now));
        meter.on_wakeup(now);
        assert_eq!(meter.wakeup(), None);
    }

    #[test]
    fn half_the_numbers_are_ahead_and_half_are_behind() {
        let half = 1 << 31;
        assert!(is_after(half - 1, 0) && is_after(half + 1, 2));
        assert!(!is_after(half, 0) && !is_after(0, half) && !is_after(5, 5));
        assert!(is_after(3, u32::MAX) && !is_after(u32::MAX, 3));
    }

    /// Rounds of a millisecond without reports: the oldest are dropped.
    #[test]
    fn at_most_the_last_rounds_are_kept() {
        let mut meter = RoundMeter::default();
        for round in 0..100 {
            arrive(&mut meter, u64::from(round), round);
        }
        assert_eq!(meter.open.len(), MAX_OPEN);
        meter.on_wakeup(Time::from_secs(1));
        assert_eq!(meter.report(Time::from_secs(1)), count(36, 1));
    }
}
