//! The capacity of the bottleneck, from how far apart packets arrive that left together.

mod floors;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;

use comity_units::{Bytes, PacketNumber, Rate, Span, Time, TwoWindows};

use crate::{Arrived, InOrderAck, Sent};
use floors::{Floors, LONGEST_GROUP, Probe};

/// Estimates the speed of the slowest link by packet pairs.
///
/// Two packets of `L` bytes that leave together arrive `T = L / C` apart, unless other traffic came
/// between them (T too long: C is underestimated) or held up the first of them elsewhere (T too
/// short: overestimated). Either way one of the two was delayed, so the pair with the smallest sum
/// of delays is the one to believe:
///
/// ```text
/// D_i = answer_i − sent_i
/// C   = L / (arrival_2 − arrival_1)      of the pair with the least D_1 + D_2
/// ```
///
/// A packet also waits for those of its own group that left before it, which is no disturbance: the
/// i-th of them, from 0, is later by `i · T`. So two pairs `a` and `b` are compared by
///
/// ```text
/// D_1 + D_2 − (place_1 + place_2) · min(T_a, T_b)
/// ```
///
/// with `T` for one packet. Else what is far behind in the first flight could pass for more
/// disturbed than a pair whose second packet was acknowledged late. The lesser of the two `T`,
/// because one that is too long would excuse any delay far behind in a group.
///
/// **Clocks.** Where the receiver says when packets arrived, stamps of a tick each are right within
/// one tick for a difference. A dispersion of [`FINE`] ticks or more is taken from them. A shorter
/// one is that of the acknowledgements, within what the stamps leave open:
///
/// ```text
/// T = answer_2 − answer_1, but no less than (stamp_2 − stamp_1) − tick and no more than (stamp_2 − stamp_1) + tick
/// ```
///
/// so that acknowledgements that were compressed or held up on their way change little, and a pair
/// within one tick tells only "at most a tick". From [`TELLING`] ticks on `arrival_i` stands for
/// `answer_i` in the delays too. The clock of the receiver began at another time, so to compare
/// them with others the least `answer − arrival` that was seen is added: the reverse path without a
/// queue. A queue on the reverse path then hides no good pair, and an acknowledgement that the
/// receiver held back, and stamped when it left, makes its packet a late one. Without stamps
/// dispersion and delays are those of the acknowledgements and the round trip.
///
/// **Whether to believe it.** A pair with delays to arrivals is believed as CapProbe does it:
/// nothing on the reverse path changes that, and of what is behind the bottleneck on the forward
/// path the least sum is the judge. For others the reverse path counts too. A pair whose first
/// packet, or its acknowledgement, waited behind the bottleneck is compressed by what the first
/// waited, so that the pair with the least sum can still be wrong where every pair waited. The
/// least round trips of single packets show that. [`Floors`] has the least one of each place in a
/// group, and such a pair is believed if none of them shows that it waited, or that its dispersion
/// is another one, by more than an eighth; or if the slope of the floors is its dispersion up to an
/// eighth, as of a pair that waited at the bottleneck itself. Else the estimate is `L / T` with the
/// longest T that the floors allow, or the shortest that the stamps of the pair leave open if that
/// is longer: a bound from below if the least delayed packet met no queue. If the floors allow none
/// it is that of the pair, without a belief in it. The controller then grows by no more than TCP
/// does.
///
/// Receivers that acknowledge every f-th packet only never tell when both packets of a pair
/// arrived. Any two acknowledged packets of one group of packets that left together serve instead:
/// k packets apart, `C = k · L / T`.
///
/// What stays unknown: where no packet at all met an empty way within the memory, as behind greedy
/// flows on the reverse path, the floors waited as the pairs did, and an estimate that is too high
/// by up to the ratio of the sizes of packets and acknowledgements, times the packets that each of
/// these is for, is believed. Stamps prevent it from eight ticks on, and limit it from two on.
/// Where all pairs waited at the bottleneck, and stamps are missing or coarser, right ones can be
/// refused. The datagram transport has those of microseconds, TCP those of its peer, if they tick
/// in microseconds or milliseconds. Clocks that drift against each other make pairs look earlier or
/// later by as much as they drifted since.
///
/// The stamps of the datagram transport begin again every 71.6 minutes. Of the moments that one can
/// stand for, the nearest to the last arrival plus the time since its answer is meant.
///
/// Pairs whose packets did not leave together for certain are left out (the time between them has
/// to be less than half of that between their arrivals), and so are packets that differ in size by
/// more than a sixty-fourth, that were retransmitted, or whose acknowledgement was not in order.
///
/// Source: Kapoor, Chen, Lao, Gerla and Sanadidi, CapProbe, SIGCOMM 2004. Differs from the source
/// in: 1. it probes with data instead of packets of its own, and measures the dispersion by
/// acknowledgements where it has to; 2. the answer is that of the least sum so far, at any time,
/// instead of the first pair whose sum is that of the least delays of either packet: where there
/// are only round trips that test, made with the floors of all places and an eighth of tolerance,
/// decides whether it is an estimate or a bound, and what a packet waits behind its own group is
/// taken off; 3. sums that differ by less than a sixteenth of the dispersion, or than two ticks,
/// count as equal, and the dispersions of such are averaged; 4. pairs are forgotten after one to
/// two lengths of a memory, and the pauses between pairs in them. The bound is that of the
/// differences of least delays (Chan, Luo and others, CoNEXT 2009, have it for pairs of packets).
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    memory: Span,
    /// Groups in flight, oldest first.
    groups: VecDeque<Group>,
    seen: TwoWindows<Seen>,
    /// The least time from an arrival, on the clock of the receiver, to its answer here.
    back: TwoWindows<Option<i64>>,
    /// When the last arrival was, on the clock of the receiver as if it never wrapped, and its
    /// answer here.
    told: Option<(Time, Time)>,
}

/// What is remembered of groups. A window begins with a group, so that a pair and its delays are
/// forgotten together.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    best: Option<Best>,
    /// The least delays of round trips, by place.
    floors: Floors,
}

/// What is known of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) rate: Rate,
    /// Whether the pair that it is from is believed. Else it is a bound from below where the least
    /// delays give one.
    pub(super) is_confirmed: bool,
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
    answered: Option<InOrderAck>,
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
    /// That of the first packet, its place, and how many places the second is behind it.
    first: i64,
    place: i64,
    apart: i64,
    /// How many packets of its own group left before either packet, together.
    places: i64,
    /// The dispersion of one packet, and the shortest that the stamps leave open.
    packet: i64,
    shortest: i64,
    /// Whether they end with the arrivals, on the clock of the receiver, instead of the answers.
    is_one_way: bool,
    /// By how much a difference of two delays may be wrong as the clock tells it.
    slack: i64,
}

impl Delays {
    const fn probe(&self) -> Probe {
        Probe {
            delay: self.first,
            place: self.place,
            packet: self.packet,
            apart: self.apart,
        }
    }

    /// The sum of the round trips, with `back` for either reverse path that is not in it.
    const fn of_round_trips(self, back: i64) -> i64 {
        if self.is_one_way {
            self.sum.saturating_add(back.saturating_mul(2))
        } else {
            self.sum
        }
    }

    /// How much more this pair was delayed than `other`, beside what packets wait behind their own
    /// groups.
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
    /// The size of a packet.
    wire: Bytes,
}

impl Capacity {
    pub(super) fn new(memory: Span) -> Self {
        Self {
            memory,
            groups: VecDeque::new(),
            seen: TwoWindows::default(),
            back: TwoWindows::default(),
            told: None,
        }
    }

    /// The estimate, once there is one.
    pub(super) fn estimate(&self) -> Option<Estimate> {
        let TwoWindows {
            current, before, ..
        } = self.seen;
        let best = [current.best, before.best].into_iter().flatten();
        let back = self.back();
        let best = best.reduce(|one, other| {
            if one.delays.beyond(other.delays, back) > 0 {
                other
            } else {
                one
            }
        })?;
        let floors = current.floors.and(before.floors);
        let longest = floors.longest_packet();
        let packet = best.delays.packet;
        let is_agreed = |longest: i64| longest.abs_diff(packet) <= packet.unsigned_abs() / 8;
        let is_confirmed = best.delays.is_one_way
            || floors.confirm(&best.delays.probe())
            || longest.is_some_and(is_agreed);
        let seconds_per_byte = match longest {
            Some(longest) if !is_confirmed => {
                let longest = longest.max(best.delays.shortest);
                let longest = Span::from_nanos(longest.unsigned_abs());
                longest.as_secs_f64() / best.wire.get() as f64
            }
            _ => best.seconds_per_byte,
        };
        Some(Estimate {
            rate: Rate::from_bps_f64(8.0 / seconds_per_byte),
            is_confirmed,
        })
    }

    fn back(&self) -> i64 {
        let TwoWindows {
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
        if self.groups.len() < MAX_GROUPS {
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
    pub(super) fn on_in_order_ack(&mut self, answered: &InOrderAck) {
        let answered = &InOrderAck {
            arrived_at: answered
                .arrived_at
                .map(|arrived| self.unwrap(answered.now, arrived)),
            ..*answered
        };
        if let Some(arrived_at) = answered.arrived_at {
            let back = nanos_between(arrived_at.at, answered.now);
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
        let place = number.get().saturating_sub(group.first.get());
        let sent_at = group.sent_at;
        let earlier = group.answered.replace(*answered);
        if earlier.is_none() {
            self.seen.turn(answered.now, self.memory);
        }
        let delay = nanos_between(sent_at, answered.now);
        self.seen.current.floors.lower(place, delay);
        if let Some(pair) = earlier.and_then(|earlier| Pair::of(group, &earlier, answered)) {
            self.take(&pair);
        }
    }

    /// Of the moments that a stamp can stand for, the one nearest to where that clock is by ours.
    fn unwrap(&mut self, now: Time, arrived: Arrived) -> Arrived {
        let at = match self.told {
            None => arrived.at,
            Some((at, told_at)) => {
                let expected = at + now.saturating_since(told_at);
                let ahead = nanos_between(expected, arrived.at).rem_euclid(WRAP);
                let ahead = if ahead < WRAP / 2 {
                    ahead
                } else {
                    ahead - WRAP
                };
                Time::from_nanos(expected.as_nanos().saturating_add_signed(ahead))
            }
        };
        self.told = Some((at, now));
        Arrived { at, ..arrived }
    }

    fn take(&mut self, pair: &Pair) {
        let fresh = Best {
            delays: pair.delays,
            seconds_per_byte: pair.dispersion.as_secs_f64() / pair.bytes.get() as f64,
            pairs: 1,
            wire: pair.wire,
        };
        let tolerance = (pair.dispersion / 16).as_nanos().cast_signed();
        let tolerance = tolerance.max(pair.delays.slack);
        let back = self.back();
        // How much better the best is than this one.
        let ahead = |best: &Best| pair.delays.beyond(best.delays, back);
        self.seen.current.best = Some(match self.seen.current.best {
            Some(best) if ahead(&best) > tolerance => best,
            Some(best) if ahead(&best) >= -tolerance => {
                let pairs = (best.pairs + 1).min(MAX_AVERAGED);
                let change = fresh.seconds_per_byte - best.seconds_per_byte;
                Best {
                    delays: if ahead(&best) > 0 {
                        best.delays
                    } else {
                        pair.delays
                    },
                    seconds_per_byte: best.seconds_per_byte + change / f64::from(pairs),
                    pairs,
                    wire: fresh.wire,
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
    /// The size of a packet.
    wire: Bytes,
}

impl Pair {
    fn of(group: &Group, first: &InOrderAck, second: &InOrderAck) -> Option<Self> {
        let packets = second.number.get().checked_sub(first.number.get())?;
        let answers = second.now.since(first.now)?;
        let stamps = first.arrived_at.zip(second.arrived_at);
        let stamps = match stamps {
            Some((first, second)) => {
                // Stamps that go back are of packets that overtook each other.
                let apart = second.at.since(first.at)?;
                Some((apart, first.tick.max(second.tick)))
            }
            None => None,
        };
        let dispersion = match stamps {
            Some((apart, tick)) if apart >= tick * FINE => apart,
            Some((apart, tick)) => answers.clamp(apart.saturating_sub(tick), apart + tick),
            None => answers,
        };
        let shortest = stamps.map_or(Span::ZERO, |(apart, tick)| apart.saturating_sub(tick));
        let by_stamps = stamps.filter(|(apart, tick)| *apart >= *tick * TELLING);
        let leaving = group.last_sent_at.saturating_since(group.sent_at);
        let is_usable = packets > 0 && !dispersion.is_zero() && leaving * 2 <= dispersion;
        let delay = |of: &InOrderAck| {
            let arrived_at = of.arrived_at.filter(|_| by_stamps.is_some());
            nanos_between(group.sent_at, arrived_at.map_or(of.now, |stamp| stamp.at))
        };
        let place = |of: &InOrderAck| {
            let place = of.number.get().saturating_sub(group.first.get());
            place.cast_signed()
        };
        is_usable.then(|| Self {
            delays: Delays {
                sum: delay(first).saturating_add(delay(second)),
                first: delay(first),
                place: place(first),
                apart: packets.cast_signed(),
                places: place(first).saturating_add(place(second)),
                packet: (dispersion.as_nanos() / packets).cast_signed(),
                shortest: (shortest.as_nanos() / packets).cast_signed(),
                is_one_way: by_stamps.is_some(),
                slack: by_stamps.map_or(0, |(_, tick)| (tick * 2).as_nanos().cast_signed()),
            },
            dispersion,
            bytes: group.wire * packets,
            wire: group.wire,
        })
    }
}

/// From one moment to another. They may be on clocks that began at different times.
const fn nanos_between(from: Time, to: Time) -> i64 {
    to.as_nanos().wrapping_sub(from.as_nanos()).cast_signed()
}

/// Stamps of the datagram transport count microseconds modulo 2³²; those of TCP arrive unwrapped,
/// and differ from where they are expected by less than half of this.
const WRAP: i64 = (1 << 32) * 1_000;

/// Packets further apart than this did not leave together.
const TOGETHER: Span = Span::from_millis(1);

/// The most groups that are remembered: with more in flight, those that leave go unobserved for a
/// while.
const MAX_GROUPS: usize = 512;

/// Over how many equally good pairs the mean is taken; after that it moves on with new ones.
const MAX_AVERAGED: u32 = 64;

/// A dispersion of so many ticks is taken from the stamps alone, with an error of a fiftieth at the
/// most. A shorter one is that of the acknowledgements, within what the stamps leave open.
const FINE: u64 = 50;

/// From so many ticks on, the error of the stamps is small beside the dispersion, and delays are
/// taken to the arrivals.
const TELLING: u64 = 8;
