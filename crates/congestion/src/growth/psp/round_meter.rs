//! The receiver's half: packets of each round, counted.

use comity_units::{Span, Time};

use crate::{Arrival, Meter, Report, Tag};

/// Counts the packets of each round and reports every round once it is over.
///
/// A round is over an eighth of a round trip after a packet of a later one arrived, or two round trips after its own
/// first packet did. A packet with a round trip of zero asks for an answer at once: the sender measures with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundMeter {
    current: Option<Counted>,
    /// The round that is reported, or will be.
    last: Option<Counted>,
    /// Whether `last` was over when it was last looked at.
    is_over: bool,
    due_at: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Counted {
    round: u32,
    packets: u32,
    ends_at: Time,
}

impl Counted {
    fn add(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }
}

impl RoundMeter {
    fn begin(&mut self, now: Time, round: u32, rtt: Span) {
        if let Some(before) = self.current.take() {
            self.last = Some(before);
            self.is_over = false;
            self.due_at = Some(now + rtt / 8);
        }
        self.current = Some(Counted {
            round,
            packets: 1,
            ends_at: now + rtt * 2,
        });
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
            self.due_at = Some(arrival.now);
            return;
        }
        if let Some(last) = &mut self.last
            && last.round == round
        {
            last.add();
            return;
        }
        match &mut self.current {
            Some(current) if current.round == round => current.add(),
            Some(current) if !is_after(round, current.round) => {}
            _ if self.last.is_some_and(|last| !is_after(round, last.round)) => {}
            _ => self.begin(arrival.now, round, rtt),
        }
    }

    fn report(&mut self, now: Time) -> Report {
        self.on_wakeup(now);
        match self.last {
            Some(last) if self.is_over => Report::Count {
                round: last.round,
                packets: last.packets,
            },
            _ => Report::None,
        }
    }

    fn wakeup(&self) -> Option<Time> {
        let end = self.current.map(|current| current.ends_at);
        match (self.due_at, end) {
            (Some(due), Some(end)) => Some(due.min(end)),
            (due, end) => due.or(end),
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.due_at.is_some_and(|due| due <= now) {
            self.due_at = None;
            self.is_over = true;
        }
        if let Some(current) = self.current
            && current.ends_at <= now
        {
            self.current = None;
            self.last = Some(current);
            self.is_over = true;
            self.due_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::{Bytes, PacketNumber};

    const RTT: Span = Span::from_millis(80);

    fn arrive(meter: &mut RoundMeter, at_ms: u64, round: u32) {
        meter.on_arrival(&Arrival {
            now: Time::from_millis(at_ms),
            number: PacketNumber::ZERO,
            payload: Bytes::new(1_000),
            wire: Bytes::new(1_000),
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
        // One of the seventh was overtaken.
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
        // What comes of it later is counted, and no round is begun again.
        arrive(&mut meter, 170, 1);
        assert_eq!(meter.report(Time::from_millis(171)), count(1, 3));
        arrive(&mut meter, 172, 0);
        assert_eq!(meter.wakeup(), None);
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
            payload: Bytes::new(100),
            wire: Bytes::new(100),
            marked: false,
            tag: Tag::Round {
                round: 0,
                rtt: Span::ZERO,
            },
        });
        assert_eq!(meter.wakeup(), Some(Time::from_millis(91)));
    }
}
