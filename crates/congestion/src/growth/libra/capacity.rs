//! The capacity of the bottleneck, from how far apart packets arrive that left together.

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;

use comity_units::{Bytes, PacketNumber, Rate, Span, Time, Windows};

use crate::{Answered, Sent};

/// Estimates the speed of the slowest link by packet pairs.
///
/// Two packets of `L` bytes that leave together arrive `T = L / C` apart, unless other traffic came between them
/// (T too long: C is underestimated) or held up the first of them elsewhere (T too short: overestimated). Either
/// way one of the two was delayed, so the pair with the smallest sum of delays is the one to believe:
///
/// ```text
/// D_i = answer_i − sent_i
/// C   = L / (arrival_2 − arrival_1)      of the pair with the least D_1 + D_2
/// ```
///
/// A packet also waits for those of its own group that left before it, which is no disturbance: the i-th of them, from 0,
/// is later by `i · T`. So two pairs `a` and `b` are compared by
///
/// ```text
/// D_1 + D_2 − (place_1 + place_2) · min(T_a, T_b)
/// ```
///
/// with `T` for one packet. Else what is far behind in the first flight could pass for more disturbed than a pair whose
/// second packet was acknowledged late. The lesser of the two `T`, because one that is too long would excuse any delay
/// far behind in a group.
///
/// Where the receiver says when packets arrived, the dispersion is taken from that, and `arrival_i` stands for
/// `answer_i` in the delays. The clock of the receiver began at another time, so to compare them with others the least
/// `answer − arrival` that was seen is added: the way back without a queue. A queue on the way back then hides no good
/// pair, and an acknowledgement that the receiver held back, and stamped when it left, makes its packet a late one.
///
/// Else dispersion and delays are those of the acknowledgements and the round trip, so queues on the way back are found
/// as well.
///
/// Receivers that acknowledge every f-th packet only never tell when both packets of a pair arrived. Any two
/// acknowledged packets of one group of packets that left together serve instead: k packets apart, `C = k · L / T`.
///
/// Acknowledgements that queued on the way back arrive closer together than their packets did. Where there is always a
/// queue on the way back, as behind greedy flows that way, and the receiver says nothing of arrivals, every pair is
/// compressed and C is overestimated, by up to the ratio of the sizes of packets and acknowledgements times the packets
/// that each of these is for. The least sum of delays does not find them: the pair that has it queued as well. It was
/// underestimated by 3 to 15 times in some runs too. The datagram
/// transport always says, TCP where the peer's timestamps tick in microseconds. Clocks that drift against each other
/// make pairs look earlier or later by as much as they drifted since.
///
/// Pairs whose packets did not leave together for certain are left out (the time between them has to be less than
/// half of that between their arrivals), and so are packets that differ in size by more than a sixty-fourth, that were sent
/// again, or whose acknowledgement was not in order.
///
/// Source: Kapoor, Chen, Lao, Gerla and Sanadidi, CapProbe, SIGCOMM 2004. Differs from the source in: 1. it probes
/// with data instead of packets of its own, and measures the dispersion by acknowledgements where it has to;
/// 2. the answer is that of the least sum so far, at any time, instead of the first pair whose sum is that of the
/// least delays of either packet, and what a packet waits behind its own group is taken off; 3. sums that differ by less than a sixteenth of the dispersion count as equal,
/// and the dispersions of such are averaged; 4. pairs are forgotten after one to two lengths of a memory, and the
/// pauses between pairs in them.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    memory: Span,
    /// Groups in flight, oldest first.
    groups: VecDeque<Group>,
    best: Windows<Option<Best>>,
    /// The least time from an arrival, on the clock of the receiver, to its answer here.
    back: Windows<Option<i64>>,
}

/// Packets with consecutive numbers that left together.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: PacketNumber,
    packets: u64,
    /// The size of each on the wire.
    wire: Bytes,
    sent_at: Time,
    last_sent_at: Time,
    /// The packet of this group that was acknowledged last.
    answered: Option<Answered>,
}

impl Group {
    const fn end(&self) -> u64 {
        self.first.get().saturating_add(self.packets)
    }
}

/// The delays of a pair, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Delays {
    sum: i64,
    /// How many packets of its own group left before either packet, together.
    places: i64,
    /// The dispersion of one packet.
    packet: i64,
    /// Whether they end with the arrivals, on the clock of the receiver, instead of the answers.
    is_one_way: bool,
}

impl Delays {
    /// The sum of the round trips, with `back` for either way back that is not in it.
    const fn of_round_trips(self, back: i64) -> i64 {
        if self.is_one_way {
            self.sum.saturating_add(back.saturating_mul(2))
        } else {
            self.sum
        }
    }

    /// How much more this pair was delayed than `other`, beside what packets wait behind their own groups.
    fn beyond(self, other: Self, back: i64) -> i64 {
        let packet = self.packet.min(other.packet);
        let disturbed = |of: Self| {
            of.of_round_trips(back)
                .saturating_sub(of.places.saturating_mul(packet))
        };
        disturbed(self).saturating_sub(disturbed(other))
    }
}

/// The dispersion of the pairs with the least sum of delays.
#[derive(Clone, Copy, Debug)]
struct Best {
    delays: Delays,
    /// The mean dispersion of one byte.
    seconds_per_byte: f64,
    /// How many pairs that is the mean of.
    pairs: u32,
}

impl Capacity {
    pub(super) fn new(memory: Span) -> Self {
        Self {
            memory,
            groups: VecDeque::new(),
            best: Windows::default(),
            back: Windows::default(),
        }
    }

    /// The estimate, once there is one.
    pub(super) fn rate(&self) -> Option<Rate> {
        let Windows {
            current, before, ..
        } = self.best;
        let best = [current, before].into_iter().flatten();
        let back = self.back();
        best.reduce(|one, other| {
            if one.delays.beyond(other.delays, back) > 0 {
                other
            } else {
                one
            }
        })
        .map(|best| Rate::from_bps_f64(8.0 / best.seconds_per_byte))
    }

    fn back(&self) -> i64 {
        let Windows {
            current, before, ..
        } = self.back;
        [current, before].into_iter().flatten().min().unwrap_or(0)
    }

    /// A packet left, and whether a new group began with it.
    pub(super) fn on_sent(&mut self, sent: &Sent, begins: bool) {
        let follows = |group: &&mut Group| {
            !begins
                && group.end() == sent.number.get()
                && group.wire.get().abs_diff(sent.wire.get()) <= group.wire.get() / 64
                && group.packets < LONGEST_GROUP
                && sent.now.saturating_since(group.sent_at) <= TOGETHER
        };
        if let Some(group) = self.groups.back_mut().filter(follows) {
            group.packets += 1;
            group.last_sent_at = sent.now;
            return;
        }
        // A group of one tells nothing, and what is not recorded now need not be found again.
        if self.groups.back().is_some_and(|group| group.packets < 2) {
            self.groups.pop_back();
        }
        if self.groups.len() < MOST_GROUPS {
            self.groups.push_back(Group {
                first: sent.number,
                packets: 1,
                wire: sent.wire,
                sent_at: sent.now,
                last_sent_at: sent.now,
                answered: None,
            });
        }
    }

    /// The arrival of a packet was acknowledged.
    pub(super) fn on_answered(&mut self, answered: &Answered) {
        if let Some(arrived_at) = answered.arrived_at {
            let back = nanos_between(arrived_at, answered.now);
            self.back.turn(answered.now, self.memory);
            let least = self.back.current.map_or(back, |least| least.min(back));
            self.back.current = Some(least);
        }
        let number = answered.number;
        while self
            .groups
            .front()
            .is_some_and(|group| group.end() <= number.get())
        {
            self.groups.pop_front();
        }
        let Some(group) = self.groups.front_mut().filter(|of| of.first <= number) else {
            return;
        };
        let earlier = group.answered.replace(*answered);
        if let Some(pair) = earlier.and_then(|earlier| Pair::of(group, &earlier, answered)) {
            self.take(answered.now, &pair);
        }
    }

    fn take(&mut self, now: Time, pair: &Pair) {
        self.best.turn(now, self.memory);
        let fresh = Best {
            delays: pair.delays,
            seconds_per_byte: pair.dispersion.as_secs_f64() / pair.bytes.get() as f64,
            pairs: 1,
        };
        let tolerance = (pair.dispersion / 16).as_nanos().cast_signed();
        let back = self.back();
        // How much better the best is than this one.
        let ahead = |best: &Best| pair.delays.beyond(best.delays, back);
        self.best.current = Some(match self.best.current {
            Some(best) if ahead(&best) > tolerance => best,
            Some(best) if ahead(&best) >= -tolerance => {
                let pairs = (best.pairs + 1).min(MOST_AVERAGED);
                let change = fresh.seconds_per_byte - best.seconds_per_byte;
                Best {
                    delays: if ahead(&best) > 0 {
                        best.delays
                    } else {
                        pair.delays
                    },
                    seconds_per_byte: best.seconds_per_byte + change / f64::from(pairs),
                    pairs,
                }
            }
            _ => fresh,
        });
    }
}

/// What two acknowledged packets of one group tell.
#[derive(Clone, Copy, Debug)]
struct Pair {
    delays: Delays,
    dispersion: Span,
    /// What arrived from behind the first to the end of the second.
    bytes: Bytes,
}

impl Pair {
    fn of(group: &Group, first: &Answered, second: &Answered) -> Option<Self> {
        let packets = second.number.get().checked_sub(first.number.get())?;
        let answers = second.now.since(first.now)?;
        let arrivals = match (first.arrived_at, second.arrived_at) {
            (Some(first), Some(second)) => second.since(first),
            _ => None,
        };
        let arrivals = arrivals.filter(|arrivals| *arrivals >= FINEST_STAMP);
        let dispersion = arrivals.unwrap_or(answers);
        let leaving = group.last_sent_at.saturating_since(group.sent_at);
        let is_usable = packets > 0 && !dispersion.is_zero() && leaving * 2 <= dispersion;
        let delay = |of: &Answered| {
            let end = of.arrived_at.filter(|_| arrivals.is_some());
            nanos_between(group.sent_at, end.unwrap_or(of.now))
        };
        let place = |of: &Answered| of.number.get().saturating_sub(group.first.get());
        let places = place(first).saturating_add(place(second));
        is_usable.then(|| Self {
            delays: Delays {
                sum: delay(first).saturating_add(delay(second)),
                places: places.cast_signed(),
                packet: (dispersion.as_nanos() / packets).cast_signed(),
                is_one_way: arrivals.is_some(),
            },
            dispersion,
            bytes: group.wire * packets,
        })
    }
}

/// From one moment to another, of which either may be on a clock that began at another time.
const fn nanos_between(from: Time, to: Time) -> i64 {
    to.as_nanos().wrapping_sub(from.as_nanos()).cast_signed()
}

/// Packets further apart than this did not leave together.
const TOGETHER: Span = Span::from_millis(1);

/// Longer groups would queue behind themselves.
const LONGEST_GROUP: u64 = 16;

/// The most groups that are remembered: with more in flight, those that leave go unobserved for a while.
const MOST_GROUPS: usize = 512;

/// Over how many equally good pairs the mean is taken; after that it moves on with new ones.
const MOST_AVERAGED: u32 = 64;

/// The stamps of receivers are whole microseconds: shorter dispersions are taken from the acknowledgements.
const FINEST_STAMP: Span = Span::from_micros(50);
