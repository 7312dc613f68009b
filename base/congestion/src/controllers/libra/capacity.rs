//! The capacity of the bottleneck, from packet pairs.

mod covered;
mod delivered;
mod floors;
mod mean;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;

use comity_units::{DataSize, PacketNumber, Rate, Span, Time, TwoWindows};

use crate::{Arrived, InOrderAck, Sent};
use covered::Covered;
use delivered::Delivered;
use floors::{Floors, MAX_GROUP, Probe};
use mean::Mean;

/// Estimates the rate of the slowest link by packet pairs.
///
/// Two packets of `L` bytes that leave together arrive `T = L / C` apart, unless other traffic
/// disturbs them. Traffic between them makes T too long, and C too low. Traffic that delays only
/// the first makes T too short, and C too high. Either way one of the two was delayed, so the
/// estimate comes from the pair with the smallest sum of delays:
///
/// ```text
/// D_i = ack_i − sent_i
/// C   = L / (arrival_2 − arrival_1)      of the pair with the minimum D_1 + D_2
/// ```
///
/// A packet also queues behind the packets of its own group, which is no disturbance: packet i,
/// from 0, is `i · T` later. So two pairs `a` and `b` are compared by
///
/// ```text
/// D_1 + D_2 − (position_1 + position_2) · min(T_a, T_b)
/// ```
///
/// with `T` for one packet. Without that term, a pair at the end of the first flight could seem
/// more disturbed than one whose second packet was acknowledged late. The term takes the lesser
/// `T`, because one that is too long would excuse any delay at the end of a group.
///
/// **Time stamps.** If the receiver reports arrival times in ticks, a difference of two has an
/// error below one tick. A dispersion of [`FINE_TICKS`] or more is taken from the time stamps. A
/// shorter one is the dispersion of the ACKs, limited by the time stamps:
///
/// ```text
/// T = ack_2 − ack_1, at least (stamp_2 − stamp_1) − tick, at most (stamp_2 − stamp_1) + tick
/// ```
///
/// So compressed or delayed ACKs change little, and a pair within one tick says only "at most one
/// tick". From [`ONE_WAY_TICKS`] on, `arrival_i` replaces `ack_i` in the delays too. The receiver's
/// clock has another origin, so delays to arrivals and delays to ACKs are compared after adding the
/// minimum `ack − arrival`, the delay of the reverse path without a queue. A queue on the reverse
/// path then hides no good pair. If the receiver delays an ACK and stamps it when it leaves, the
/// packet counts as late. Without time stamps, dispersion and delays are those of the ACKs.
///
/// **Confirmation.** The minimum sum is wrong if every pair was disturbed. So the estimate is known
/// only if the pair passes three tests.
///
/// 1. Delays. A pair with delays to arrivals passes, as in CapProbe: the reverse path does not
///    affect it. For other pairs the reverse path counts too. If the first packet or its ACK queued
///    behind the bottleneck, the pair is compressed by that time. [`Floors`] has the minimum round
///    trip of each position in a group. A pair passes in two cases. Either no floor shows that the
///    pair queued or has another dispersion, by more than an eighth. Or the slope of the floors is
///    the pair's dispersion to within an eighth, as for a pair that queued at the bottleneck
///    itself.
/// 2. The mean of all dispersions, and that of the time stamps ([`Mean`]).
/// 3. Without any time stamps: the flow itself has delivered [`MAX_MULTIPLE`]⁻¹ of the estimate or
///    more over a round trip ([`Delivered`]). A queue of the reverse path that is never empty
///    compresses all pairs, by `f · L` over the size of an ACK, and round trips do not show it.
///
/// Otherwise the capacity is unknown. The rate is then that of the mean dispersion, and the
/// controller grows by it, but no faster than TCP.
///
/// **Delayed ACKs.** A receiver that acknowledges every f-th packet never reports both packets of a
/// pair. Any two acknowledged packets of one group serve instead: k packets apart, `C = k · L / T`.
///
/// If the receiver's timer sends an ACK, the ACK and its time stamp are late by up to that timer.
/// Such an ACK covers fewer packets than the receiver usually waits for ([`Covered`]). If it is
/// also [`MIN_TIMER`] or more behind the other ACK, the pair does not count.
///
/// **Limits.** If no packet met an empty path within the memory, for example behind greedy flows on
/// the reverse path, the floors queued as the pairs did. The estimate can then be too high, by up
/// to the ratio of packet and ACK sizes times the packets for each ACK, and is confirmed. Time
/// stamps prevent that from eight ticks on, and limit it from two on. If all pairs queued at the
/// bottleneck, and time stamps are missing or coarse, correct pairs can remain unconfirmed. The
/// datagram transport has time stamps in microseconds; TCP has those of its peer, in microseconds
/// or milliseconds. If the clocks drift, pairs appear earlier or later by the drift since.
///
/// The time stamps of the datagram transport wrap every 71.6 minutes. An unwrapped time stamp is
/// the candidate nearest to the last arrival plus the time since its ACK.
///
/// A pair counts only if its packets surely left together: the time between departures is less than
/// half of that between arrivals. Packets that differ in size by more than 1/64, retransmissions
/// and packets with an out-of-order ACK do not count.
///
/// Source: Kapoor, Chen, Lao, Gerla and Sanadidi, CapProbe, SIGCOMM 2004. Differs from it in: 1.
/// the probes are data packets, and ACKs give the dispersion where time stamps do not; 2. the
/// estimate is always that of the minimum sum so far. CapProbe takes the first pair whose sum
/// equals the sum of the minimum delays of either packet. If only round trips are known, that test
/// is test 1: with the floors of all positions, an eighth of tolerance, and without the queueing
/// behind the pair's own group; 3. sums that differ by less than a sixteenth of the dispersion, or
/// than two ticks, count as equal, and their dispersions are averaged; 4. pairs expire after one to
/// two lengths of the memory, pauses included; 5. tests 2 and 3 are Comity's own. The slope of
/// minimum delays is that of Chan, Luo and others, CoNEXT 2009, who have it for pairs.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    memory: Span,
    /// Groups in flight, oldest first.
    groups: VecDeque<Group>,
    seen: TwoWindows<Seen>,
    /// The minimum of ack − arrival, with the arrival on the receiver's clock.
    reverse: TwoWindows<Option<i64>>,
    /// The last arrival, on the receiver's clock without wraps, and the time of its ACK.
    last_arrival: Option<(Time, Time)>,
    covered: Covered,
    delivered: Delivered,
}

/// The best pair and the floors of one window of time. A window begins with a group, so a pair and
/// its delays expire together.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    best: Option<Best>,
    /// The minimum round trips by position.
    floors: Floors,
    mean: Mean,
    /// The highest delivery rate of the flow, in bytes per second.
    delivered: f64,
}

/// An estimate of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    pub(super) rate: Rate,
    /// Whether the pair is confirmed. Otherwise the rate is that of the mean dispersion.
    pub(super) is_confirmed: bool,
}

/// Packets with consecutive numbers that left together.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: PacketNumber,
    packets: u64,
    /// The size of each on the wire.
    wire: DataSize,
    sent_at: Time,
    last_sent_at: Time,
    /// The last acknowledged packet of this group.
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
    /// The delay of the first packet.
    first: i64,
    /// The position of the first packet in its group.
    position: i64,
    /// How many positions the second packet is behind the first.
    apart: i64,
    /// The sum of both positions.
    positions: i64,
    /// The dispersion of one packet.
    packet: i64,
    /// Whether the delays end with the arrivals, on the receiver's clock, not with the ACKs.
    is_one_way: bool,
    /// The error of a difference of two delays, from the tick of the time stamps.
    slack: i64,
}

impl Delays {
    const fn probe(&self) -> Probe {
        Probe {
            delay: self.first,
            position: self.position,
            packet: self.packet,
            apart: self.apart,
        }
    }

    /// The sum of the round trips. One-way delays get `reverse` added for each reverse path.
    const fn of_round_trips(self, reverse: i64) -> i64 {
        if self.is_one_way {
            self.sum.saturating_add(reverse.saturating_mul(2))
        } else {
            self.sum
        }
    }

    /// How much more this pair was delayed than `other`, without the queueing behind its own group.
    fn beyond(self, other: Self, reverse: i64) -> i64 {
        let packet = self.packet.min(other.packet);
        let disturbed = |of: Self| {
            of.of_round_trips(reverse)
                .saturating_sub(of.positions.saturating_mul(packet))
        };
        disturbed(self).saturating_sub(disturbed(other))
    }
}

/// The dispersion of the pairs with the minimum sum of delays.
#[derive(Clone, Copy, Debug)]
struct Best {
    delays: Delays,
    /// The mean dispersion of one byte.
    seconds_per_byte: f64,
    /// The number of pairs in the mean.
    pairs: u32,
}

impl Capacity {
    pub(super) fn new(memory: Span) -> Self {
        Self {
            memory,
            groups: VecDeque::new(),
            seen: TwoWindows::default(),
            reverse: TwoWindows::default(),
            last_arrival: None,
            covered: Covered::default(),
            delivered: Delivered::default(),
        }
    }

    /// The estimate; `None` before the first pair.
    pub(super) fn estimate(&self) -> Option<Estimate> {
        let TwoWindows {
            current, before, ..
        } = self.seen;
        let best = [current.best, before.best].into_iter().flatten();
        let reverse = self.reverse_delay();
        let best = best.reduce(|one, other| {
            if one.delays.beyond(other.delays, reverse) > 0 {
                other
            } else {
                one
            }
        })?;
        let floors = current.floors.and(before.floors);
        let longest = floors.longest_packet();
        let packet = best.delays.packet;
        let is_agreed = |longest: i64| longest.abs_diff(packet) <= packet.unsigned_abs() / 8;
        let is_undisturbed = best.delays.is_one_way
            || floors.confirm(&best.delays.probe())
            || longest.is_some_and(is_agreed);
        let mean = current.mean.and(before.mean);
        let delivered = current.delivered.max(before.delivered);
        let multiple = 1.0 / (best.seconds_per_byte * delivered);
        let is_confirmed = is_undisturbed
            && mean.agrees(best.seconds_per_byte)
            && (mean.has_stamps() || multiple <= MAX_MULTIPLE);
        let seconds_per_byte = if is_confirmed {
            best.seconds_per_byte
        } else {
            mean.seconds_per_byte()
        };
        Some(Estimate {
            rate: Rate::from_bps_f64(8.0 / seconds_per_byte),
            is_confirmed,
        })
    }

    fn reverse_delay(&self) -> i64 {
        let TwoWindows {
            current, before, ..
        } = self.reverse;
        [current, before].into_iter().flatten().min().unwrap_or(0)
    }

    /// Takes a sent packet; `begins` says whether it begins a new group.
    pub(super) fn on_sent(&mut self, sent: &Sent, begins: bool) {
        self.covered.on_sent(sent.number);
        let follows = |group: &&mut Group| {
            !begins
                && group.end() == sent.number.get()
                && group.wire.get().abs_diff(sent.wire.get()) <= group.wire.get() / 64
                && group.packets < MAX_GROUP
                && sent.now.saturating_since(group.sent_at) <= MAX_GROUP_TIME
        };
        if let Some(group) = self.groups.back_mut().filter(follows) {
            group.packets += 1;
            group.last_sent_at = sent.now;
            return;
        }
        // A group of one packet is no probe.
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

    /// Takes the acknowledgement of a packet.
    pub(super) fn on_in_order_ack(&mut self, answered: &InOrderAck) {
        let answered = &InOrderAck {
            arrived_at: answered
                .arrived_at
                .map(|arrived| self.unwrap(answered.now, arrived)),
            ..*answered
        };
        if let Some(arrived_at) = answered.arrived_at {
            let reverse = nanos_between(arrived_at.at, answered.now);
            self.reverse.turn(answered.now, self.memory);
            let least = self
                .reverse
                .current
                .map_or(reverse, |least| least.min(reverse));
            self.reverse.current = Some(least);
        }
        let number = answered.number;
        let (covered, may_be_timer) = self.covered.on_ack(number);
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
        let position = number.get().saturating_sub(group.first.get());
        let (sent_at, wire) = (group.sent_at, group.wire);
        let earlier = group.answered.replace(*answered);
        if earlier.is_none() {
            self.seen.turn(answered.now, self.memory);
        }
        let ended = self.delivered.on_ack(answered.now, covered, sent_at);
        if let Some((packets, time)) = ended {
            let rate = (wire * packets).get() as f64 / time.as_secs_f64();
            self.seen.current.delivered = self.seen.current.delivered.max(rate);
        }
        let delay = nanos_between(sent_at, answered.now);
        self.seen.current.floors.lower(position, delay);
        let pair = earlier.and_then(|earlier| Pair::of(group, &earlier, answered));
        if let Some(pair) = pair.filter(|pair| !may_be_timer || pair.dispersion < MIN_TIMER) {
            let mean = &mut self.seen.current.mean;
            mean.add(pair.dispersion, pair.stamps, pair.bytes);
            if pair.is_usable {
                self.take(&pair);
            }
        }
    }

    /// Unwraps a time stamp: the candidate nearest to the expected time of the receiver's clock.
    fn unwrap(&mut self, now: Time, arrived: Arrived) -> Arrived {
        let at = match self.last_arrival {
            None => arrived.at,
            Some((at, acked_at)) => {
                let expected = at + now.saturating_since(acked_at);
                let ahead = nanos_between(expected, arrived.at).rem_euclid(WRAP);
                let ahead = if ahead < WRAP / 2 {
                    ahead
                } else {
                    ahead - WRAP
                };
                Time::from_nanos(expected.as_nanos().saturating_add_signed(ahead))
            }
        };
        self.last_arrival = Some((at, now));
        Arrived { at, ..arrived }
    }

    fn take(&mut self, pair: &Pair) {
        let fresh = Best {
            delays: pair.delays,
            seconds_per_byte: pair.dispersion.as_secs_f64() / pair.bytes.get() as f64,
            pairs: 1,
        };
        let tolerance = (pair.dispersion / 16).as_nanos().cast_signed();
        let tolerance = tolerance.max(pair.delays.slack);
        let reverse = self.reverse_delay();
        // How much more this pair was delayed than the best one.
        let ahead = |best: &Best| pair.delays.beyond(best.delays, reverse);
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
                }
            }
            _ => fresh,
        });
    }
}

/// Two acknowledged packets of one group.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// Whether the packets surely left together.
    is_usable: bool,
    delays: Delays,
    dispersion: Span,
    /// The difference of the time stamps, and their tick.
    stamps: Option<(Span, Span)>,
    /// The bytes from the end of the first packet to the end of the second.
    bytes: DataSize,
}

impl Pair {
    fn of(group: &Group, first: &InOrderAck, second: &InOrderAck) -> Option<Self> {
        let packets = second.number.get().checked_sub(first.number.get())?;
        let answers = second.now.since(first.now)?;
        let stamps = first.arrived_at.zip(second.arrived_at);
        let stamps = match stamps {
            Some((first, second)) => {
                // The time stamps of reordered packets go back.
                let apart = second.at.since(first.at)?;
                Some((apart, first.tick.max(second.tick)))
            }
            None => None,
        };
        let dispersion = match stamps {
            Some((apart, tick)) if apart >= tick * FINE_TICKS => apart,
            Some((apart, tick)) => answers.clamp(apart.saturating_sub(tick), apart + tick),
            None => answers,
        };
        let by_stamps = stamps.filter(|(apart, tick)| *apart >= *tick * ONE_WAY_TICKS);
        let leaving = group.last_sent_at.saturating_since(group.sent_at);
        let delay = |of: &InOrderAck| {
            let arrived_at = of.arrived_at.filter(|_| by_stamps.is_some());
            nanos_between(group.sent_at, arrived_at.map_or(of.now, |stamp| stamp.at))
        };
        let position = |of: &InOrderAck| {
            let position = of.number.get().saturating_sub(group.first.get());
            position.cast_signed()
        };
        (packets > 0).then(|| Self {
            is_usable: !dispersion.is_zero() && leaving * 2 <= dispersion,
            delays: Delays {
                sum: delay(first).saturating_add(delay(second)),
                first: delay(first),
                position: position(first),
                apart: packets.cast_signed(),
                positions: position(first).saturating_add(position(second)),
                packet: (dispersion.as_nanos() / packets).cast_signed(),
                is_one_way: by_stamps.is_some(),
                slack: by_stamps.map_or(0, |(_, tick)| (tick * 2).as_nanos().cast_signed()),
            },
            dispersion,
            stamps,
            bytes: group.wire * packets,
        })
    }
}

/// The time from `from` to `to`, which may be on clocks with different origins.
const fn nanos_between(from: Time, to: Time) -> i64 {
    to.as_nanos().wrapping_sub(from.as_nanos()).cast_signed()
}

/// The wrap of the datagram transport's time stamps, which count microseconds modulo 2³². TCP's
/// time stamps arrive unwrapped, and differ from the expected time by less than half of this.
const WRAP: i64 = (1 << 32) * 1_000;

/// The longest time in which the packets of a group leave.
const MAX_GROUP_TIME: Span = Span::from_millis(1);

/// The most groups in flight that are observed. Further groups are not observed.
const MAX_GROUPS: usize = 512;

/// The shortest timer of delayed ACKs; Linux has 40 ms.
const MIN_TIMER: Span = Span::from_millis(20);

/// A pair by ACKs alone is believed up to this multiple of the flow's own delivery rate. ACKs of 40
/// B for packets of 1500 B, compressed on a reverse path of the same rate, show 37.5 times the
/// capacity.
const MAX_MULTIPLE: f64 = 24.0;

/// The most pairs in the mean; after that it is exponentially weighted.
const MAX_AVERAGED: u32 = 64;

/// From this many ticks on, the time stamps alone give the dispersion, with an error up to 1/50.
const FINE_TICKS: u64 = 50;

/// From this many ticks on, delays end with the arrivals, because the error of the time stamps is
/// small beside the dispersion.
const ONE_WAY_TICKS: u64 = 8;
