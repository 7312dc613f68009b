//! Computes when the packets of a stored stream are due, by the stream's own clock.

use std::collections::VecDeque;

use comity_units::Time;

use super::packet::{Facts, clock_step};
use crate::header::PACKET;

/// The number of ticks in a second.
const SECOND: i64 = 27_000_000;
/// A clock reference that advances by more than this has jumped.
const MAX_STEP: i64 = SECOND;
/// A clock reference that advances by more than this, and by far more than its bytes take, has
/// jumped.
const USUAL_STEP: i64 = SECOND / 10;
/// After this many references of another PID without one of the present PID, the other PID takes
/// over.
const TAKES_OVER: u64 = 10;
/// The maximum number of held items, 12 MiB: one second at 98 Mb/s, and ten times the usual
/// distance of references at a gigabit per second.
const MAX_HELD: usize = 1 << 16;

/// A part of the stream whose time is not yet known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Packet([u8; PACKET]),
    SyncByteError,
    SyncLoss,
    Skipped(u64),
}

/// A clock reference, and the number of held packets up to it.
#[derive(Clone, Copy, Debug)]
struct Reference {
    pid: u16,
    clock: u64,
    packets: u64,
}

/// Holds the packets between two clock references of one PID, and distributes them evenly over the
/// time between these (ISO/IEC 13818-1, 2.4.2.2).
///
/// The time of the first packet is the duration of one packet. A stream without two references has
/// no times.
#[derive(Debug, Default)]
pub(super) struct StoredClock {
    held: VecDeque<Item>,
    /// The number of held packets.
    packets: u64,
    /// The time of the packet before the held ones, in ticks of 27 MHz.
    time: u64,
    /// The ticks and the packets of the latest stretch.
    pace: Option<(u64, u64)>,
    reference: Option<Reference>,
    /// The first reference of another PID since the last one of this PID, and the number of
    /// references since.
    rival: Option<(Reference, u64)>,
}

impl StoredClock {
    /// Adds the next item, and passes items whose times are known to `take`.
    pub(super) fn push(&mut self, item: Item, take: &mut impl FnMut(Option<Time>, Item)) {
        let facts = match &item {
            Item::Packet(bytes) => {
                self.packets += 1;
                Facts::of(bytes).filter(|facts| !facts.is_erroneous)
            }
            _ => None,
        };
        let found = facts.and_then(|facts| Some((facts.pid, facts.clock?, facts.discontinuity)));
        self.held.push_back(item);
        if let Some((pid, clock, is_marked)) = found {
            let packets = self.packets;
            let found = Reference {
                pid,
                clock,
                packets,
            };
            self.on_reference(found, is_marked, take);
        }
        if self.held.len() >= MAX_HELD {
            self.release(take);
            (self.reference, self.rival) = (None, None);
        }
    }

    /// Passes the held items to `take` at the end of the source. A multiplexer writes its last
    /// packets at once, so they take no longer than the maximum distance of references, unless they
    /// are so many that the clock has stopped.
    pub(super) fn finish(&mut self, take: &mut impl FnMut(Option<Time>, Item)) {
        if let Some((ticks, per)) = self.pace {
            let took = u128::from(ticks) * u128::from(self.packets) / u128::from(per.max(1));
            if took < u128::from(MAX_STEP.unsigned_abs()) {
                let most = USUAL_STEP.unsigned_abs();
                let fastest = most / self.packets.max(1);
                self.pace = Some((ticks.min(fastest.saturating_mul(per)), per));
            }
        }
        self.release(take);
    }

    fn on_reference(
        &mut self,
        found: Reference,
        is_marked: bool,
        take: &mut impl FnMut(Option<Time>, Item),
    ) {
        match self.reference {
            None => self.reference = Some(found),
            Some(last) if last.pid == found.pid => {
                self.rival = None;
                let stretch = self.stretch(last, found);
                self.pace = stretch.filter(|_| !is_marked).or(self.pace);
                if self.pace.is_some() {
                    self.release(take);
                }
                let packets = self.packets;
                self.reference = Some(Reference { packets, ..found });
            }
            Some(_) => {
                let (first, count) = self.rival.get_or_insert((found, 0));
                if first.pid != found.pid {
                    return;
                }
                *count += 1;
                let (first, count) = (*first, *count);
                if count <= TAKES_OVER {
                    return;
                }
                let ticks = clock_step(first.clock, found.clock);
                if let Ok(ticks @ 1..) = u64::try_from(ticks) {
                    self.pace = Some((ticks, found.packets - first.packets));
                }
                if self.pace.is_some() {
                    self.release(take);
                }
                let packets = self.packets;
                self.reference = Some(Reference { packets, ..found });
                self.rival = None;
            }
        }
    }

    /// The ticks and the packets from one reference to the next; `None` if the clock jumped.
    fn stretch(&self, from: Reference, to: Reference) -> Option<(u64, u64)> {
        let ticks = clock_step(from.clock, to.clock);
        let packets = to.packets - from.packets;
        let is_far = ticks > USUAL_STEP
            && self.pace.is_some_and(|(paced, per)| {
                2 * u128::from(paced) * u128::from(packets)
                    < u128::from(ticks.unsigned_abs()) * u128::from(per)
            });
        let jumps = is_far || !(1..=MAX_STEP).contains(&ticks);
        (!jumps).then_some((ticks.unsigned_abs(), packets))
    }

    /// Passes all held items to `take`, at the present pace.
    fn release(&mut self, take: &mut impl FnMut(Option<Time>, Item)) {
        let start = self.time;
        let mut packets = 0;
        while let Some(item) = self.held.pop_front() {
            packets += u64::from(matches!(item, Item::Packet(_)));
            if let Some((ticks, per)) = self.pace {
                let passed = u128::from(ticks) * u128::from(packets) / u128::from(per.max(1));
                self.time = start.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX));
            }
            take(self.pace.map(|_| at(self.time)), item);
        }
        self.packets = 0;
    }
}

/// The time of this many ticks.
fn at(ticks: u64) -> Time {
    let nanos = u128::from(ticks) * 1_000 / 27;
    Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of this PID, with a clock reference if there is one, in milliseconds.
    fn packet(pid: u16, clock_ms: Option<u64>, is_marked: bool) -> Item {
        let mut bytes = [0xff; PACKET];
        let [high, low] = pid.to_be_bytes();
        bytes[..4].copy_from_slice(&[0x47, high, low, 0x10]);
        if let Some(millis) = clock_ms {
            let base = (millis * 90) << 15;
            bytes[3] = 0x30;
            bytes[4] = 7;
            bytes[5] = if is_marked { 0x90 } else { 0x10 };
            bytes[6..12].copy_from_slice(&base.to_be_bytes()[2..]);
        }
        Item::Packet(bytes)
    }

    /// The times of all items, in microseconds.
    fn times(items: impl IntoIterator<Item = Item>) -> Vec<Option<u64>> {
        let (mut clock, mut times) = (StoredClock::default(), Vec::new());
        let mut take = |time: Option<Time>, _| times.push(time.map(|time| time.as_nanos() / 1_000));
        for item in items {
            clock.push(item, &mut take);
        }
        clock.finish(&mut take);
        times
    }

    #[test]
    fn packets_lie_evenly_between_references() {
        // 2 packets before the first reference, 4 in 20 ms, 5 in 10 ms, and 3 after the last
        // reference.
        let items = (1..=14).map(|number| match number {
            3 => packet(1, Some(100), false),
            7 => packet(1, Some(120), false),
            12 => packet(1, Some(130), false),
            _ => packet(2, None, false),
        });
        let expected: Vec<_> = [5, 10, 15, 20, 25, 30, 35, 37, 39, 41, 43, 45, 47, 49]
            .map(|millis| Some(millis * 1_000))
            .into();
        assert_eq!(times(items), expected);
    }

    #[test]
    fn marks_have_the_time_of_the_packet_before_them() {
        let items = [
            packet(1, Some(0), false),
            Item::SyncLoss,
            packet(1, Some(10), false),
            Item::Skipped(9),
        ];
        assert_eq!(
            times(items),
            [10_000, 10_000, 20_000, 20_000].map(Some).to_vec()
        );
    }

    #[test]
    fn a_jump_moves_no_time() {
        // References 20 ms apart, four packets each, with one jump after the third.
        for (jump_ms, is_marked, moves_ms) in [
            (0, false, 0),
            (50_000, true, 0),
            (50_000, false, 0),
            (500, false, 0),
            // Late references are not a jump.
            (15, false, 15),
        ] {
            let items = (0..40).map(|number| match number % 4 {
                0 => {
                    let jump = if number > 12 { jump_ms } else { 0 };
                    let clock = 1_000 + 5 * number + jump;
                    packet(1, Some(clock), is_marked && number == 16)
                }
                _ => packet(1, None, false),
            });
            let last = times(items).last().copied().flatten();
            assert_eq!(last, Some((40 * 5 + moves_ms) * 1_000), "{jump_ms} ms");
        }
    }

    #[test]
    fn the_clock_may_go_back_and_wrap() {
        let wrap_ms = super::super::packet::CLOCK_WRAP / 27_000;
        for start in [0, wrap_ms - 50] {
            let clock = |number: u64| (start + 10 * number) % wrap_ms;
            let items = (0..20).map(|number| packet(1, Some(clock(number)), false));
            let last = times(items).last().copied().flatten();
            let millis = last.map(|micros| micros / 1_000);
            assert!((199..=200).contains(&millis.unwrap()), "{millis:?}");
        }
        let back = (0..20).map(|number| {
            let clock = if number < 10 { 5_000 } else { 1_000 } + 10 * number;
            packet(1, Some(clock), false)
        });
        assert_eq!(times(back).last(), Some(&Some(200_000)));
    }

    #[test]
    fn the_last_packets_take_no_longer_than_a_reference_may() {
        let last = |behind: u64| {
            let items = (0..11 + behind).map(|number| match number {
                0..=10 => packet(1, Some(5 * number), false),
                _ => packet(1, None, false),
            });
            times(items).last().copied().flatten().unwrap() / 1_000 - 55
        };
        assert_eq!([last(1), last(20), last(21)], [5, 100, 99]);
        assert!((98..=100).contains(&last(199)));
        // The clock has stopped.
        assert_eq!(last(200), 1_000);
    }

    #[test]
    fn another_clock_takes_over_from_one_that_stops() {
        // Both PIDs have a reference every ten packets, or 10 ms. The first stops after 100
        // packets.
        let items = (0..1_000).map(|number| match number % 10 {
            0 if number < 100 => packet(1, Some(number), false),
            5 => packet(2, Some(70_000 + number), false),
            _ => packet(3, None, false),
        });
        let times = times(items);
        for (number, time) in (1..).zip(times) {
            assert_eq!(time, Some(number * 1_000), "packet {number}");
        }
    }

    #[test]
    fn a_stream_without_references_has_no_times_and_is_not_held() {
        let count = 2 * MAX_HELD + 5;
        let mut clock = StoredClock::default();
        let mut given = 0;
        for _ in 0..count {
            clock.push(packet(1, None, false), &mut |time, _| {
                given += 1;
                assert_eq!(time, None);
            });
            assert!(clock.held.len() < MAX_HELD);
        }
        clock.finish(&mut |_, _| given += 1);
        assert_eq!(given, count);
    }
}
