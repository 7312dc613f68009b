//! Computes when the datagrams of a stream leave.

use std::collections::VecDeque;

use comity_units::{DataSize, Rate, Span, Time};

use crate::check::packet::{Facts, clock_step};
use crate::clock::ArrivalClock;
use crate::header::{PACKET, is_packets};

/// How much faster than the multiplex late datagrams are sent.
const CATCHING_UP: f64 = 1.05;
/// The maximum lag of a datagram behind its due time while datagrams catch up.
const MAX_LAG: Span = Span::from_millis(250);
/// The time over which a burst is spread if neither its spacing nor a constant rate is known. The
/// backlog of earlier bursts shortens it in proportion to `MAX_BACKLOG`.
const SPREAD: Span = Span::from_millis(20);
/// The minimum time over which a burst with a known spacing is spread, or `EACH` for each packet if
/// that is less. Readers have small buffers.
const SHORT_SPREAD: Span = Span::from_millis(12);
const EACH: Span = Span::from_micros(30);
/// The maximum time over which a burst is spread, and the maximum backlog of earlier bursts.
const LONG_SPREAD: Span = Span::from_millis(255);
const MAX_BACKLOG: Span = Span::from_millis(60);
/// The time over which the mean rate of arrivals is measured, and the time before it is known.
const MEAN: Span = Span::from_secs(1);
const KNOWN_AFTER: Span = Span::from_millis(500);
/// How much faster than the mean rate datagrams are sent.
const FASTER: f64 = 1.2;
/// The maximum number of arrivals remembered for the mean rate.
const MAX_ARRIVALS: usize = 4_096;

/// A datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// When it leaves.
    pub departure: Time,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Spaces the datagrams of a stream whose bytes arrive in bursts.
///
/// In a *multiplex of constant rate*, clock references (PCR) give the rate, and thus the time of
/// each byte. A datagram leaves when its last packet is due by that clock. The clock follows the
/// bytes that arrived with the greatest delay in the last 10 s, so that the output is even although
/// the delays of bursts differ. Datagrams that arrived too late leave 5 % faster than the
/// multiplex.
///
/// In *any other stream*, each burst is spread over the time in which its source sent it. If that
/// is unknown, the burst is spread over 20 ms, or leaves at 1.2 times the mean rate of the last
/// second if that is faster. A burst that arrives while earlier ones still leave follows them. It
/// leaves faster the larger their backlog is.
///
/// No datagram leaves before its bytes arrived, or before a datagram whose bytes arrived first.
/// Each datagram leaves at most 750 ms after its bytes arrived. The limit is 315 ms in a stream
/// that never has a constant rate, and 60 ms there without a known spacing.
///
/// ```
/// use comity_media::Pacer;
/// use comity_units::Time;
///
/// let mut pacer = Pacer::new(1_316);
/// pacer.push(Time::from_secs(1), &[0; 4_000], None);
/// let lengths: Vec<usize> = pacer.datagrams().map(|datagram| datagram.bytes.len()).collect();
/// assert_eq!(lengths, [1_316, 1_316, 1_316, 52]);
/// ```
#[derive(Debug)]
pub struct Pacer {
    largest: usize,
    multiplex: Multiplex,
    /// The clock of a multiplex of constant rate.
    clock: Option<ArrivalClock>,
    arrivals: VecDeque<(Time, u64)>,
    began: Option<Time>,
    /// When the latest datagram leaves, and when the next one may leave.
    last: Time,
    free: Time,
    ready: VecDeque<Datagram>,
}

impl Pacer {
    /// Creates a pacer of datagrams with at most `largest` bytes, at least one.
    pub fn new(largest: usize) -> Self {
        Self {
            largest: largest.max(1),
            multiplex: Multiplex::default(),
            clock: None,
            arrivals: VecDeque::new(),
            began: None,
            last: Time::ZERO,
            free: Time::ZERO,
            ready: VecDeque::new(),
        }
    }

    /// Adds bytes that arrived at `now`. `spacing` is the time between their packets at the source,
    /// if known. No datagram contains bytes of two calls.
    pub fn push(&mut self, now: Time, bytes: &[u8], spacing: Option<Span>) {
        self.push_in(self.largest, now, bytes, spacing);
    }

    /// Adds a datagram that arrived at `now`, whatever its length.
    pub fn push_datagram(&mut self, now: Time, bytes: &[u8]) {
        self.push_in(bytes.len().max(1), now, bytes, None);
    }

    fn push_in(&mut self, largest: usize, now: Time, bytes: &[u8], spacing: Option<Span>) {
        self.arrive(now, bytes.len() as u64);
        let mean = self.mean_rate(now).filter(|_| spacing.is_none());
        let (stride, _) = rhythm(bytes);
        let whole = largest / stride * stride;
        let is_longer = stride > PACKET && whole > 0;
        let bursts = bytes.chunks(if is_longer { whole } else { largest });
        let backlog = self.free.saturating_since(now).min(MAX_BACKLOG);
        let room = MAX_BACKLOG.saturating_sub(backlog).as_secs_f64() / MAX_BACKLOG.as_secs_f64();
        let spread = match spacing {
            Some(spacing) => {
                let packets = (bytes.len() / PACKET) as u64;
                (spacing * packets).clamp(SHORT_SPREAD.min(EACH * packets), LONG_SPREAD)
            }
            None => SPREAD,
        };
        let even = spread.mul_f64(room) / (bursts.len() as u64).max(1);
        for media in bursts {
            let (departure, gap) = match self.multiplex.read(media) {
                Some((due, taken)) => self.due(now, due, taken),
                None => self.spread(now, media.len() as u64, even, mean),
            };
            // In order, and never before the bytes arrived.
            let departure = departure.max(self.last).max(now);
            self.last = departure;
            self.free = departure + gap;
            self.ready.push_back(Datagram {
                departure,
                bytes: media.to_vec(),
            });
        }
    }

    /// The datagrams of all bytes so far, in order. Each is returned once.
    pub fn datagrams(&mut self) -> impl Iterator<Item = Datagram> + '_ {
        self.ready.drain(..)
    }

    /// In a multiplex of constant rate: when a datagram leaves that is due at `due` and takes
    /// `taken`, and how long after it the next one may leave.
    fn due(&mut self, now: Time, due: Time, taken: Span) -> (Time, Span) {
        let clock = self.clock.get_or_insert_default();
        let due = clock.lay(now, due);
        (
            due.max(self.free.min(due + MAX_LAG)),
            taken.mul_f64(1.0 / CATCHING_UP),
        )
    }

    /// In any other stream: the same for a datagram of a burst, with `even` between the datagrams
    /// of the burst and with this mean rate.
    fn spread(&mut self, now: Time, length: u64, even: Span, mean: Option<Rate>) -> (Time, Span) {
        self.clock = None;
        let start = self.free.clamp(now, now + MAX_BACKLOG);
        let gap = match mean {
            None => even,
            Some(rate) => even.min(
                rate.mul_f64(FASTER)
                    .transmission_time(DataSize::new(length)),
            ),
        };
        (start, gap)
    }

    fn arrive(&mut self, now: Time, bytes: u64) {
        self.began.get_or_insert(now);
        self.arrivals.push_back((now, bytes));
        while let Some(&(time, _)) = self.arrivals.front()
            && (now.saturating_since(time) > MEAN || self.arrivals.len() > MAX_ARRIVALS)
        {
            self.arrivals.pop_front();
        }
    }

    fn mean_rate(&self, now: Time) -> Option<Rate> {
        let passed = now.saturating_since(self.began?).min(MEAN);
        let bytes = self.arrivals.iter().map(|(_, bytes)| bytes).sum();
        (passed >= KNOWN_AFTER).then(|| Rate::of(DataSize::new(bytes), passed))
    }
}

/// How much faster than planned datagrams leave after a late one.
const MAKING_UP: f64 = 1.2;
/// The maximum delay that is made up gradually.
const MAX_DELAY: Span = Span::from_millis(50);
/// The inaccuracy of a host's timers. A smaller delay does not count.
const INEXACT: Span = Span::from_micros(200);

/// Spaces datagrams after a delay of the sender, because the host was busy. Otherwise all datagrams
/// that became due meanwhile would be sent at once.
///
/// ```
/// use comity_media::Spacing;
/// use comity_units::Time;
///
/// let at = Time::from_millis;
/// let mut spacing = Spacing::default();
/// spacing.on_sent(at(0), at(9));
/// // Twelve milliseconds behind the last one in the plan, and ten in fact.
/// assert_eq!(spacing.moment(at(12)), Time::from_micros(18_800));
/// assert_eq!(spacing.moment(at(24)), Time::from_micros(28_800));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Spacing {
    /// When the latest datagram was due to leave, and when it left.
    last: Option<(Time, Time)>,
}

impl Spacing {
    /// When a datagram with this planned departure leaves.
    pub fn moment(&self, departure: Time) -> Time {
        let Some((planned, left)) = self.last else {
            return departure;
        };
        let gap = departure.saturating_since(planned);
        let moment = departure.max(left + gap.mul_f64(1.0 / MAKING_UP));
        match moment.saturating_since(departure) > MAX_DELAY {
            true => departure,
            false => moment,
        }
    }

    /// Records that a datagram with this planned departure has left.
    pub fn on_sent(&mut self, departure: Time, now: Time) {
        let left = self.moment(departure).max(now.saturating_sub(INEXACT));
        self.last = Some((departure, left));
    }
}

/// The number of stretches with the same pace after which the rate of a multiplex counts as
/// constant. A stretch is the data between two clock references.
const STRETCHES: u64 = 3;
/// The tolerance for the pace of a stretch: one part in 20.
const TOLERANCE: u128 = 20;
/// The maximum step of the clock, in ticks: one second.
const MAX_STEP: i64 = 27_000_000;
/// After this many stretches without a clock reference, another PID may carry the clock.
const ABSENT: u64 = 20;

/// The clock of a multiplex of constant rate.
#[derive(Debug, Default)]
struct Multiplex {
    /// The PID of the clock, and its latest reference, in ticks of 27 MHz.
    reference: Option<(u16, u64)>,
    /// The time of that reference, with jumps removed, and the number of packets since.
    position: u64,
    since: u64,
    /// The ticks and the packets of the latest stretches with the same pace, and their number.
    ticks: u64,
    packets: u64,
    stretches: u64,
}

impl Multiplex {
    /// Reads the packets of a datagram. Returns when its last packet is due and how long its
    /// packets take; `None` unless the rate is constant.
    fn read(&mut self, media: &[u8]) -> Option<(Time, Span)> {
        let (stride, at) = rhythm(media);
        for packet in media.chunks(stride) {
            let packet = packet.get(at..).and_then(<[u8]>::first_chunk);
            match packet.and_then(Facts::of) {
                Some(facts) => self.on_packet(&facts),
                None => *self = Self::default(),
            }
        }
        if self.stretches < STRETCHES {
            return None;
        }
        let behind = self.ticks_of(self.since);
        let taken = self.ticks_of((media.len() / stride) as u64);
        Some((Time::ZERO + span(self.position + behind), span(taken)))
    }

    fn on_packet(&mut self, facts: &Facts<'_>) {
        self.since += 1;
        if self.since > ABSENT * (self.packets / self.stretches.max(1)).max(1_000) {
            *self = Self::default();
        }
        let Some(clock) = facts.clock.filter(|_| !facts.is_erroneous) else {
            return;
        };
        match self.reference {
            Some((pid, _)) if pid != facts.pid => return,
            Some((_, latest)) => self.on_step(clock_step(latest, clock), facts.discontinuity),
            None => {}
        }
        self.reference = Some((facts.pid, clock));
        self.since = 0;
    }

    fn on_step(&mut self, step: i64, is_marked: bool) {
        let (Ok(ticks), false, true) = (u64::try_from(step), is_marked, step <= MAX_STEP) else {
            // The clock jumped. Time continues at the present pace.
            self.position += self.ticks_of(self.since);
            return;
        };
        let (this, usual) = (
            u128::from(ticks) * u128::from(self.packets),
            u128::from(self.ticks) * u128::from(self.since),
        );
        if this.abs_diff(usual) * TOLERANCE > usual {
            (self.ticks, self.packets, self.stretches) = (0, 0, 0);
        }
        self.position += ticks;
        self.ticks += ticks;
        self.packets += self.since;
        self.stretches += 1;
    }

    /// The number of ticks that this many packets take.
    fn ticks_of(&self, packets: u64) -> u64 {
        let ticks = u128::from(self.ticks) * u128::from(packets);
        u64::try_from(ticks / u128::from(self.packets.max(1))).unwrap_or(u64::MAX)
    }
}

/// The distance between packets, and the position of the first one: packets of 188 bytes, behind
/// time stamps of 4 bytes, or before or behind parity of 16 bytes.
fn rhythm(media: &[u8]) -> (usize, usize) {
    let fits = |&(stride, at): &(usize, usize)| {
        let mut syncs = media.iter().skip(at).step_by(stride);
        media.len().is_multiple_of(stride) && syncs.all(|&byte| byte == 0x47)
    };
    let longer = [(192, 4), (204, 0), (204, 16)];
    match is_packets(media) {
        true => (PACKET, 0),
        false => longer.into_iter().find(fits).unwrap_or((PACKET, 0)),
    }
}

fn span(ticks: u64) -> Span {
    Span::from_nanos(u64::try_from(u128::from(ticks) * 1_000 / 27).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bits per second of the multiplex: a packet takes 75.2 us, a datagram 526.4.
    const RATE: u64 = 20_000_000;
    const DATAGRAM: Span = Span::from_nanos(7 * 75_200);

    /// `count` packets of a constant rate, with a clock reference every `every` packets. The first
    /// packet has the number `first`.
    fn packets(first: u64, count: u64, every: u64) -> Vec<u8> {
        let packet = |number: u64| {
            let mut bytes = [0xff; PACKET];
            bytes[..4].copy_from_slice(&[0x47, 1, 0, 0x10]);
            if number.is_multiple_of(every) {
                let ticks = number * 188 * 8 * 27_000_000 / RATE;
                let clock = (ticks / 300) << 15 | (ticks % 300);
                bytes[3..6].copy_from_slice(&[0x30, 7, 0x10]);
                bytes[6..12].copy_from_slice(&clock.to_be_bytes()[2..]);
            }
            bytes
        };
        (first..first + count).flat_map(packet).collect()
    }

    /// The maximum number of datagrams within a window.
    fn peak(departures: &[Time], window: Span) -> usize {
        let mut first = 0;
        let within = departures.iter().enumerate().map(|(number, departure)| {
            while departure.saturating_since(departures[first]) >= window {
                first += 1;
            }
            number + 1 - first
        });
        within.max().unwrap_or(0)
    }

    /// Sends a multiplex that arrives in bursts of 532 packets, or 40 ms, each late by `delay`.
    /// Returns the arrival and the departure of each datagram.
    fn paced(bursts: u64, delay: impl Fn(u64) -> Span) -> Vec<(Time, Time)> {
        let mut pacer = Pacer::new(7 * PACKET);
        let (mut times, mut now) = (Vec::new(), Time::ZERO);
        for burst in 0..bursts {
            // No burst overtakes another.
            now = now.max(Time::from_nanos((burst + 1) * 532 * 75_200) + delay(burst));
            pacer.push(now, &packets(burst * 532, 532, 266), None);
            times.extend(pacer.datagrams().map(|datagram| (now, datagram.departure)));
        }
        times
    }

    #[test]
    fn a_multiplex_leaves_at_its_own_pace() {
        let times = paced(100, |_| Span::ZERO);
        // Once the rate is known.
        let settled: Vec<Time> = times
            .iter()
            .skip(1_000)
            .map(|(_, leaves)| *leaves)
            .collect();
        for pair in settled.windows(2) {
            let gap = pair[1].saturating_since(pair[0]);
            assert!(gap.abs_diff(DATAGRAM) < Span::from_micros(2), "{gap}");
        }
        // The first datagram of a burst is not delayed, and the last one by the whole burst.
        let waits = times
            .iter()
            .skip(1_000)
            .map(|(came, leaves)| leaves.saturating_since(*came));
        let longest = waits.max().unwrap();
        let burst = Span::from_nanos(532 * 75_200);
        assert!(
            longest <= burst && longest + DATAGRAM * 2 > burst,
            "{longest}"
        );
    }

    #[test]
    fn longer_packets_stay_whole_and_leave_at_their_pace() {
        // Behind time stamps, before parity, and between the parity of the packet before.
        for (before, behind) in [(4, 0), (0, 16), (16, 0)] {
            let stride = PACKET + before + behind;
            let mut pacer = Pacer::new(7 * PACKET);
            let (mut left, mut sent) = (Vec::new(), 0);
            for burst in 0..100 {
                let packets = packets(burst * 532, 532, 266);
                let longer: Vec<u8> = { packets.chunks(PACKET) }
                    .flat_map(|packet| [&vec![9_u8; before][..], packet, &vec![9; behind]].concat())
                    .collect();
                let now = Time::from_nanos((burst + 1) * 532 * 75_200);
                pacer.push(now, &longer, None);
                for datagram in pacer.datagrams() {
                    assert!(datagram.bytes.len().is_multiple_of(stride));
                    assert_eq!(datagram.bytes[before], 0x47);
                    let packets = (datagram.bytes.len() / stride) as u64;
                    sent += packets;
                    // The rest of a burst is in a shorter one, which follows at the pace of others.
                    if packets == 6 {
                        left.push((datagram.departure, sent));
                    }
                }
            }
            assert_eq!((sent, left.len()), (53_200, 100 * (532 / 6)));
            for pair in left[2_000..].windows(2) {
                let gap = pair[1].0.saturating_since(pair[0].0);
                let expected = Span::from_nanos(75_200) * (pair[1].1 - pair[0].1);
                assert!(gap.abs_diff(expected) < Span::from_micros(2), "{gap}");
            }
        }
    }

    #[test]
    fn late_bursts_make_no_peaks() {
        // Every burst is up to 10 ms late, and three bursts are late by another 100 ms.
        let times = paced(1_200, |burst| {
            let late = burst * 7_919 % 10;
            Span::from_millis(late + if (500..503).contains(&burst) { 100 } else { 0 })
        });
        let settled: Vec<Time> = times
            .iter()
            .skip(1_000)
            .map(|(_, leaves)| *leaves)
            .collect();
        for (window, source) in [(1, 2), (10, 19), (40, 76)] {
            let most = peak(&settled, Span::from_millis(window));
            let limit = source + source / 5;
            assert!(
                (source - 1..=limit).contains(&most),
                "{window} ms: {most} of {source}"
            );
        }
    }

    /// Every two seconds, what arrives in 410 ms arrives at their end.
    #[test]
    fn bursts_that_recur_are_evened_out() {
        let times = paced(600, |burst| {
            Span::from_millis(410_u64.saturating_sub(burst % 50 * 40))
        });
        // Each burst has 76 datagrams. The first long waits are those at 2, 4 and 6 s.
        let settled = &times[76 * 165..];
        for pair in settled.windows(2) {
            let gap = pair[1].1.saturating_since(pair[0].1);
            assert!(gap <= DATAGRAM * 2, "{gap} at {}", pair[0].1);
        }
        let waits = { settled.iter() }.map(|(came, leaves)| leaves.saturating_since(*came));
        let longest = waits.max().unwrap();
        let expected = Span::from_millis(410)..Span::from_millis(410 + 45);
        assert!(expected.contains(&longest), "{longest}");
        // A single one delays nothing later by more than a burst may be late.
        let times = paced(600, |burst| {
            let late = 410_u64.saturating_sub((burst.max(200) - 200) * 40);
            Span::from_millis(if burst < 200 { 0 } else { late })
        });
        let later = times[76 * 340..].iter();
        let longest = later.map(|(came, leaves)| leaves.saturating_since(*came));
        assert!(longest.max().unwrap() <= Span::from_millis(250 + 45));
    }

    #[test]
    fn a_late_sender_makes_up_at_1_2_times_the_rate() {
        let (mut spacing, mut sent) = (Spacing::default(), Vec::new());
        let mut now = Time::ZERO;
        for number in 0..200 {
            let departure = Time::ZERO + DATAGRAM * number;
            // The host is busy once, for 10 ms.
            let away = Span::from_millis(if number == 50 { 10 } else { 0 });
            now = now.max(spacing.moment(departure)) + away;
            spacing.on_sent(departure, now);
            sent.push(now.saturating_since(departure));
        }
        assert_eq!(sent[49], Span::ZERO);
        assert_eq!(sent[50], Span::from_millis(10));
        for pair in sent[50..].windows(2) {
            let made_up = pair[0].saturating_sub(pair[1]);
            let limit = DATAGRAM / 6 + INEXACT + Span::from_nanos(2);
            assert!(made_up <= limit, "{made_up}");
        }
        // 10 ms, minus the inaccuracy of timers, are made up by a sixth of each of 112 gaps.
        let behind = sent[50..].iter().take_while(|late| !late.is_zero()).count();
        assert!((110..=114).contains(&behind), "{behind}");
        // Timers that are later than a gap can make up delay nothing.
        let (mut spacing, mut now) = (Spacing::default(), Time::ZERO);
        for number in 0..1_000 {
            let departure = Time::ZERO + DATAGRAM / 4 * number;
            now = now.max(spacing.moment(departure)) + Span::from_micros(100);
            spacing.on_sent(departure, now);
        }
        let late = now.saturating_since(Time::ZERO + DATAGRAM / 4 * 999);
        assert!(late < Span::from_micros(700), "{late}");
        // After a longer delay, all due datagrams leave at once.
        spacing.on_sent(Time::ZERO, Time::from_secs(1));
        assert_eq!(spacing.moment(Time::from_millis(20)), Time::from_millis(20));
    }

    #[test]
    fn other_streams_are_spread_over_20_ms() {
        let mut pacer = Pacer::new(7 * PACKET);
        // 40 kB every 40 ms, and 400 kB every second.
        for burst in 0..100_u64 {
            let now = Time::from_millis(40 * burst);
            let length = if burst % 25 == 0 { 400_000 } else { 40_000 };
            pacer.push(now, &vec![0; length], None);
            let datagrams: Vec<_> = pacer.datagrams().collect();
            let (first, last) = (
                datagrams[0].departure,
                datagrams[datagrams.len() - 1].departure,
            );
            assert_eq!(first, now);
            let taken = last.saturating_since(first);
            assert!(
                (15_000..=20_000).contains(&taken.as_micros()),
                "{burst}: {taken}"
            );
            for pair in datagrams.windows(2) {
                let gap = pair[1].departure.saturating_since(pair[0].departure);
                assert!(
                    gap * datagrams.len() as u64 <= Span::from_millis(21),
                    "{gap}"
                );
            }
        }
    }

    #[test]
    fn packets_leave_as_far_apart_as_they_came() {
        let leaves = |spacing: Span, packets: usize| {
            let mut pacer = Pacer::new(7 * PACKET);
            let mut longest = Vec::new();
            for burst in 0..100_u64 {
                let now = Time::from_millis(40 * burst);
                pacer.push(now, &vec![0; packets * PACKET], Some(spacing));
                let sent: Vec<Time> = pacer.datagrams().map(|sent| sent.departure).collect();
                assert_eq!(sent[0], now);
                longest.push(sent[sent.len() - 1].saturating_since(now));
            }
            assert!(longest.iter().all(|taken| *taken == longest[0]));
            longest[0]
        };
        // All but the last of ten datagrams.
        assert_eq!(
            leaves(Span::from_micros(500), 70),
            Span::from_micros(31_500)
        );
        // All packets at once at their source.
        assert_eq!(leaves(Span::ZERO, 70), Span::from_micros(30 * 63));
        assert_eq!(
            leaves(Span::ZERO, 700),
            Span::from_micros(12_000 * 99 / 100)
        );
    }

    #[test]
    fn bursts_that_come_at_once_follow_each_other() {
        let mut pacer = Pacer::new(7 * PACKET);
        let mut last = Time::ZERO;
        for burst in 0..12 {
            pacer.push(Time::ZERO, &vec![0; 40_000], None);
            let departures: Vec<Time> = pacer.datagrams().map(|sent| sent.departure).collect();
            let even = Span::from_millis(20) / 31;
            for pair in departures.windows(2) {
                let gap = pair[1].saturating_since(pair[0]);
                assert!(!gap.is_zero() && gap <= even, "{burst}: {gap}");
            }
            assert!(departures[0] >= last);
            last = departures[departures.len() - 1];
        }
        assert!(
            (40_000..60_000).contains(&(last.as_nanos() / 1_000)),
            "{last}"
        );
    }

    #[test]
    fn a_clock_that_jumps_does_not_move_the_departures() {
        let mut pacer = Pacer::new(7 * PACKET);
        let mut last = None;
        for burst in 0..200_u64 {
            let now = Time::from_nanos((burst + 1) * 532 * 75_200);
            // One hour ahead, in whole intervals between references.
            let jump = if burst < 100 { 0 } else { 266 * 180_000 };
            pacer.push(now, &packets(burst * 532 + jump, 532, 266), None);
            for datagram in pacer.datagrams() {
                let gap = last.map(|last| datagram.departure.saturating_since(last));
                last = Some(datagram.departure);
                if let Some(gap) = gap.filter(|_| burst > 10) {
                    assert!(
                        gap.abs_diff(DATAGRAM) < Span::from_micros(2),
                        "{burst}: {gap}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn datagrams_are_whole_ordered_and_in_time(
            bursts in prop::collection::vec((0_u64..200_000, 0_u64..2_000, any::<bool>()), 1..60),
            spacing in prop::option::of(0_u64..2_000),
            largest in prop_oneof![Just(7 * PACKET), 100_usize..3_000],
        ) {
            let mut pacer = Pacer::new(largest);
            let (mut now, mut last, mut number) = (Time::ZERO, Time::ZERO, 0);
            for (micros, count, is_media) in bursts {
                now += Span::from_micros(micros);
                let bytes = match is_media {
                    true => packets(number, count, 266),
                    false => vec![count as u8; count as usize * 3],
                };
                number += count;
                pacer.push(now, &bytes, spacing.map(Span::from_micros));
                let mut sent = Vec::new();
                for datagram in pacer.datagrams() {
                    prop_assert!(datagram.departure >= last.max(now));
                    let wait = datagram.departure.saturating_since(now);
                    prop_assert!(wait <= Span::from_millis(750), "{}", wait);
                    prop_assert!((1..=largest).contains(&datagram.bytes.len()));
                    last = datagram.departure;
                    sent.extend(datagram.bytes);
                }
                prop_assert_eq!(sent, bytes);
            }
        }
    }
}
