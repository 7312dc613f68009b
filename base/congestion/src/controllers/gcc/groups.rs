//! The pre-filter of GCC: groups of packets, and how the delay changes from one to the next.

use comity_units::{Span, Time};

/// Merges packets into groups, and compares each group with the one before.
///
/// ```text
/// d(i) = t(i) − t(i−1) − (T(i) − T(i−1))
///
/// T, t   when the last packet of the group left and arrived
/// group  the packets that left within burst_time of its first,
///        and those that arrive within burst_time of the one before, with d < 0
/// ```
///
/// Packets out of order are ignored. Source: draft-ietf-rmcat-gcc-02, sections 5.1 and 5.2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Groups {
    current: Option<Group>,
    before: Option<Group>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent_at: Time,
    first_arrived_at: Time,
    /// T.
    sent_at: Time,
    /// t.
    arrived_at: Time,
}

impl Group {
    const fn of(sent_at: Time, arrived_at: Time) -> Self {
        Self {
            first_sent_at: sent_at,
            first_arrived_at: arrived_at,
            sent_at,
            arrived_at,
        }
    }

    fn takes(&self, sent_at: Time, arrived_at: Time) -> bool {
        let apart = arrived_at.saturating_since(self.arrived_at);
        let is_closer = apart < sent_at.saturating_since(self.sent_at);
        let lasts = arrived_at.saturating_since(self.first_arrived_at);
        sent_at.saturating_since(self.first_sent_at) <= BURST_TIME
            || (is_closer && apart < BURST_TIME && lasts < LONGEST_BURST)
    }
}

/// A group of packets, compared with the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Variation {
    /// t(i), on the clock of the receiver.
    pub(super) arrived_at: Time,
    /// t(i) − t(i−1).
    pub(super) inter_arrival: Span,
    /// T(i) − T(i−1).
    pub(super) inter_departure: Span,
}

impl Variation {
    /// d(i), in milliseconds.
    pub(super) fn delay(&self) -> f64 {
        millis(self.inter_arrival) - millis(self.inter_departure)
    }
}

/// A time in milliseconds.
pub(super) fn millis(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

impl Groups {
    /// A packet that left at `sent_at` arrived at `arrived_at`, on the clock of the receiver.
    /// Returns the group that ended before it, compared with its predecessor.
    pub(super) fn on_packet(&mut self, sent_at: Time, arrived_at: Time) -> Option<Variation> {
        let next = Group::of(sent_at, arrived_at);
        let group = self.current.get_or_insert(next);
        if sent_at < group.sent_at || arrived_at < group.arrived_at {
            return None;
        }
        if group.takes(sent_at, arrived_at) {
            (group.sent_at, group.arrived_at) = (sent_at, arrived_at);
            return None;
        }
        let ended = core::mem::replace(group, next);
        let before = self.before.replace(ended)?;
        Some(Variation {
            arrived_at: ended.arrived_at,
            inter_arrival: ended.arrived_at.saturating_since(before.arrived_at),
            inter_departure: ended.sent_at.saturating_since(before.sent_at),
        })
    }
}

/// burst_time (Table 1).
const BURST_TIME: Span = Span::from_millis(5);

/// The longest time in which packets join a group by their arrival, as in libwebrtc
/// (`kMaxBurstDuration`). Without this limit, which the draft does not have, a queue that drains
/// for seconds would be one group.
const LONGEST_BURST: Span = Span::from_millis(100);

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    /// The groups of packets that left and arrived at these times, in milliseconds: t, t(i) −
    /// t(i−1) and T(i) − T(i−1).
    fn groups(packets: &[(u64, u64)]) -> Vec<(u64, u64, u64)> {
        let mut groups = Groups::default();
        let variations = packets.iter().filter_map(|&(sent, arrived)| {
            // The receiver's clock is an hour ahead.
            let arrived_at = Time::from_millis(arrived) + Span::from_secs(3_600);
            groups.on_packet(Time::from_millis(sent), arrived_at)
        });
        variations
            .map(|variation| {
                let arrived_at = variation.arrived_at.as_nanos() / 1_000_000 - 3_600_000;
                let arrival = variation.inter_arrival.as_millis();
                (arrived_at, arrival, variation.inter_departure.as_millis())
            })
            .collect()
    }

    #[test]
    fn packets_that_leave_within_a_burst_are_a_group() {
        // Frames of three packets. The delay of the last packet grows by 2 ms from frame to frame.
        let packets = [
            (0, 20),
            (2, 22),
            (5, 25),
            (33, 53),
            (35, 55),
            (38, 60),
            (66, 86),
            (68, 88),
            (71, 95),
            (99, 119),
        ];
        // t: 25, 60, 95; T: 5, 38, 71. The last group has not ended.
        assert_eq!(groups(&packets), [(60, 35, 33), (95, 35, 33)]);
        let variation = Variation {
            arrived_at: Time::ZERO,
            inter_arrival: Span::from_micros(35_500),
            inter_departure: Span::from_millis(33),
        };
        assert_eq!(variation.delay(), 2.5);
    }

    #[test]
    fn what_an_outage_held_back_is_one_group() {
        // Packets 20 ms apart. Those of 40, 60 and 80 ms arrive together with that of 100 ms.
        let packets = [
            (0, 10),
            (20, 30),
            (40, 108),
            (60, 108),
            (80, 109),
            (100, 110),
            (120, 130),
            (140, 150),
        ];
        // T: 0, 20, 100, 120; t: 10, 30, 110, 130. The delay is the same before and after.
        assert_eq!(
            groups(&packets),
            [(30, 20, 20), (110, 80, 80), (130, 20, 20)]
        );
    }

    #[test]
    fn a_group_ends_though_a_queue_drains_for_longer() {
        // A packet leaves every 8 ms, and arrives 4 ms after the one before.
        let packets: Vec<(u64, u64)> = (0..60).map(|at| (8 * at, 1_000 + 4 * at)).collect();
        let found = groups(&packets);
        // 25 packets arrive within less than 100 ms of the first.
        assert_eq!(found, [(1_196, 100, 200)]);
    }

    #[test]
    fn packets_out_of_order_are_ignored() {
        let in_order = [(0, 10), (20, 30), (60, 70), (80, 95), (100, 110)];
        let late = [(0, 10), (20, 30), (60, 70), (40, 71), (80, 95), (100, 110)];
        let early = [(0, 10), (20, 30), (60, 70), (70, 60), (80, 95), (100, 110)];
        let expected = [(30, 20, 20), (70, 40, 40), (95, 25, 20)];
        for packets in [&in_order[..], &late, &early] {
            assert_eq!(groups(packets), expected);
        }
    }
}
