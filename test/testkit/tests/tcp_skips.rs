//! Skipped segments: a receiver that hides losses is found, an honest one never, and the sender
//! goes on as before.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use comity_congestion::RttConfig;
use comity_congestion::controllers::{DecreaseBasis, Increase, Reno, RenoConfig, Rounding};
use comity_congestion::recovery::RecoveryConfig;
use comity_tcp::timeline::TimelineConfig;
use comity_tcp::{Config, SackBlock, SackBlocks, Segment, SenderStatistics};
use comity_testkit::tcp::{BORN, Fate, Pair, Path, Side, fixed, listener, opener, reno};
use comity_units::{DataSize, Seed, Span, Time};

const MSS: u32 = 100;
const DELAY: Span = Span::from_millis(20);
/// No transfer takes longer.
const LIMIT: Time = Time::from_secs(10_000);

/// A recovery, whether the ends agree on SACK, and whether the stream has sections.
type Mode = (RecoveryConfig, bool, bool);

/// What connections of the TCP host use: with SACK, without, and with sections.
const OF_THE_HOST: [Mode; 4] = [
    (RecoveryConfig::RACK, true, false),
    (RecoveryConfig::NEW_RENO, false, false),
    (RecoveryConfig::SACK, true, true),
    (RecoveryConfig::NEW_RENO, false, true),
];

/// Those that a configuration may choose beside them.
const OTHERS: [Mode; 5] = [
    (RecoveryConfig::TAHOE, false, false),
    (RecoveryConfig::RENO, false, false),
    (RecoveryConfig::SACK, true, false),
    (RecoveryConfig::NEW_RENO_NS2, false, false),
    (RecoveryConfig::SACK_NS2, true, false),
];

fn config((recovery, sack, has_sections): Mode, skips: Option<u64>) -> Config {
    Config {
        mss: MSS,
        sack,
        duplicate_sack: sack,
        receive_buffer: DataSize::new(60_000),
        recovery,
        rtt: RttConfig::LINUX,
        timeline: has_sections.then_some(TimelineConfig {
            blind_spot: false,
            ..TimelineConfig::PAPER
        }),
        skip_segments: skips.map(Seed::new),
        ..BORN
    }
}

/// A number below `limit` (xorshift64).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// The sender of `count` segments, which begins with 30 in flight, and its receiver.
fn pair(config: Config, count: u64, forward: Path, back: Path) -> Pair {
    let sender = opener(config, reno(MSS, 30, 30));
    let mut pair = Pair::new(sender, listener(config, fixed(1_000)), forward, back);
    pair.call(Side::A, |end| {
        for _ in 0..count / 10 {
            let deadline = match config.timeline {
                Some(_) => LIMIT,
                None => Time::MAX,
            };
            end.write_section(10 * u64::from(MSS), deadline).unwrap();
        }
    });
    pair
}

/// What the sender counted when everything had arrived, and how long that took.
fn arrived(mut pair: Pair, count: u64) -> (SenderStatistics, Time) {
    while !pair.end(Side::A).is_all_acknowledged() && !pair.end(Side::A).was_deceived() {
        let next = pair.now() + Span::from_secs(1);
        assert!(!pair.drive(next) || pair.end(Side::A).is_all_acknowledged());
        assert!(next < LIMIT, "{}", pair.transcript());
    }
    assert!(!pair.end(Side::A).was_deceived(), "{}", pair.transcript());
    assert_eq!(pair.end(Side::B).delivered(), count * u64::from(MSS));
    (pair.end(Side::A).statistics(), pair.now())
}

#[test]
fn nothing_is_read_as_a_loss_where_nothing_is_lost() {
    const COUNT: u64 = 4_000;
    for mode in OF_THE_HOST.into_iter().chain(OTHERS) {
        let mut skipped = 0;
        for seed in 0..8 {
            let run = |skips| {
                let config = config(mode, skips);
                arrived(
                    pair(config, COUNT, Path::new(DELAY), Path::new(DELAY)),
                    COUNT,
                )
            };
            let (statistics, took) = run(Some(seed));
            let (without, usual) = run(None);
            let SenderStatistics {
                retransmitted,
                timeouts,
                fast_retransmits,
                ..
            } = statistics;
            assert_eq!(
                (retransmitted, timeouts, fast_retransmits),
                (0, 0, 0),
                "{mode:?}"
            );
            assert_eq!(statistics.segments - statistics.skipped, without.segments);
            // This controller grows by acknowledgements, and a hole leaves one of many where
            // duplicates are counted.
            let limit = if mode == OF_THE_HOST[0] { 103 } else { 120 };
            assert!(
                took.as_nanos() * 100 <= usual.as_nanos() * limit,
                "{mode:?}: {took} instead of {usual}"
            );
            skipped += statistics.skipped;
        }
        assert!(skipped >= 16, "{mode:?}: {skipped}");
    }
}

/// The segments that arrive, and when they leave. A constant window does not react to a loss: then
/// those of a sender that skips some are those of one whose path loses the same.
#[test]
fn a_skipped_segment_looks_like_a_lost_one() {
    for mode in [OF_THE_HOST[0], OF_THE_HOST[1], OTHERS[2]] {
        let mut tests = 0;
        for seed in 0..10 {
            let run = |skips, forward| {
                let config = Config {
                    limited_transmit: true,
                    ..config(mode, skips)
                };
                let sender = opener(config, fixed(3_000));
                let receiver = listener(config, fixed(1_000));
                let mut pair = Pair::new(sender, receiver, forward, Path::new(DELAY));
                pair.call(Side::A, |end| end.write(1_000 * u64::from(MSS)));
                assert!(pair.drive(LIMIT));
                { pair.records().iter() }
                    .filter(|record| record.from == Side::A && record.fate == Fate::Arrives)
                    .map(|record| (record.at, record.segment.sequence.get()))
                    .collect::<Vec<_>>()
            };
            let tested = run(Some(seed), Path::new(DELAY));
            let mut next = 1;
            let mut skipped = Vec::new();
            for &(_, sequence) in &tested {
                while next < sequence {
                    skipped.push(next);
                    next += MSS;
                }
                next = next.max(sequence + MSS);
            }
            tests += skipped.len();
            let lossy = run(None, Path::losing(DELAY, &skipped));
            // Until the first repair, which ends a decision.
            let is_repair = |(_, sequence): &(Time, u32)| skipped.first() == Some(sequence);
            let until = tested.iter().position(is_repair).unwrap_or(0);
            assert_eq!(
                tested.get(..=until),
                lossy.get(..=until),
                "{mode:?}, {seed}"
            );
        }
        assert!(tests > 20, "{mode:?}: {tests} segments skipped");
    }
}

/// Losses, reordering and duplicates in both directions.
fn disturbed(seed: u64, lost: u64) -> Path {
    let mut random = Random::new(seed);
    Path::judged_by(DELAY, move |_, _| {
        let late = Span::from_millis(random.below(80));
        match random.below(100) {
            drawn if drawn < lost => Fate::Lost,
            drawn if drawn < lost + 4 => Fate::Late(late),
            drawn if drawn < lost + 7 => Fate::Twice(late),
            _ => Fate::Arrives,
        }
    })
}

#[test]
fn an_honest_receiver_is_never_accused() {
    const COUNT: u64 = 1_500;
    for mode in OF_THE_HOST.into_iter().chain(OTHERS) {
        let mut skipped = 0;
        for seed in 0..30 {
            let lost = seed % 10;
            let config = config(mode, Some(seed));
            let paths = [2 * seed, 2 * seed + 1].map(|seed| disturbed(seed, lost));
            let [forward, back] = paths;
            let (statistics, _) = arrived(pair(config, COUNT, forward, back), COUNT);
            skipped += statistics.skipped;
        }
        assert!(skipped >= 10, "{mode:?}: {skipped}");
    }
}

/// What a receiver makes of its acknowledgements.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// It acknowledges everything below the highest byte that arrived.
    Hides,
    /// It acknowledges segments that are on the way.
    Ahead,
}

/// A path that loses one in 20 segments, and the reverse one of a receiver that lies. Each
/// segment that arrives causes one acknowledgement. Counts the segments that it did not have.
fn lying(seed: u64, lie: Lie) -> ([Path; 2], Rc<Cell<u64>>) {
    let arriving = Rc::new(RefCell::new(VecDeque::new()));
    let lies = Rc::new(Cell::new(0));
    let mut random = Random::new(seed);
    let forward = Path::judged_by(DELAY, {
        let arriving = Rc::clone(&arriving);
        move |_, segment: &Segment| match random.below(20) {
            _ if segment.payload == 0 => Fate::Arrives,
            0 => Fate::Lost,
            _ => {
                let range = (segment.sequence, segment.sequence_end());
                arriving.borrow_mut().push_back(range);
                Fate::Arrives
            }
        }
    });
    let mut highest = BORN.initial_sequence + 1;
    let count = Rc::clone(&lies);
    let back = Path::new(DELAY).rewritten_by(move |segment| {
        let answered = { arriving.borrow_mut().pop_front() };
        segment.options.sack = SackBlocks::EMPTY;
        let Some((start, end)) = answered else {
            // It answers a segment without data.
            segment.acknowledgement = highest;
            return;
        };
        let missing = start.distance_from(highest).max(0).unsigned_abs();
        count.set(count.get() + u64::from(missing / MSS));
        highest = highest.latest(end);
        match lie {
            Lie::Hides => segment.acknowledgement = highest,
            Lie::Ahead => {
                count.set(count.get() + 1);
                segment.acknowledgement = highest + 5 * MSS;
            }
        }
    });
    ([forward, back], lies)
}

/// Runs until the sender finds the lies; returns how many round trips it took.
fn found(mut pair: Pair) -> u64 {
    for round in 1..10_000 {
        pair.drive(pair.now() + DELAY * 2);
        if pair.end(Side::A).was_deceived() {
            assert_eq!(pair.end(Side::A).next_timer(), Time::MAX, "it is over");
            return round;
        }
    }
    panic!("{}", pair.transcript());
}

#[test]
fn a_receiver_that_hides_losses_is_found_within_a_hundred_lies() {
    let (mut runs, mut late) = (0, Vec::new());
    for mode in OF_THE_HOST.into_iter().chain(OTHERS) {
        for seed in 0..25 {
            let ([forward, back], lies) = lying(seed, Lie::Hides);
            found(pair(config(mode, Some(seed)), 40_000, forward, back));
            runs += 1;
            if lies.get() > 100 {
                late.push((mode.0.name(), seed, lies.get()));
            }
        }
    }
    assert!(late.len() * 100 <= runs, "{late:?} of {runs}");
}

/// Each of its acknowledgements is a lie, and most are not about tests.
#[test]
fn a_receiver_that_acknowledges_ahead_is_found_within_forty_round_trips() {
    let (mut runs, mut late) = (0, Vec::new());
    for mode in OF_THE_HOST {
        for seed in 0..25 {
            let ([forward, back], _) = lying(seed, Lie::Ahead);
            let rounds = found(pair(config(mode, Some(seed)), 40_000, forward, back));
            runs += 1;
            if rounds > 40 {
                late.push((mode.0.name(), seed, rounds));
            }
        }
    }
    assert!(late.len() * 50 <= runs, "{late:?} of {runs}");
}

/// Without tests, nobody finds such a receiver.
#[test]
fn without_skipped_segments_losses_are_hidden_for_ever() {
    let ([forward, back], lies) = lying(1, Lie::Hides);
    let mut pair = pair(config(OF_THE_HOST[0], None), 40_000, forward, back);
    pair.drive(Time::from_secs(200));
    assert!(!pair.end(Side::A).was_deceived() && lies.get() > 1_000);
    assert_eq!(pair.end(Side::A).statistics().fast_retransmits, 0);
}

/// The receiver shows every hole, and says of every retransmission that it had the segment already
/// (RFC 3708). Returns how many losses were found, and the bytes acknowledged.
fn needless(skips: Option<u64>) -> (u32, u64) {
    let highest = Rc::new(Cell::new(BORN.initial_sequence + 1));
    let twice = Rc::new(RefCell::new(VecDeque::new()));
    let mut random = Random::new(7);
    let forward = Path::judged_by(DELAY, {
        let (highest, twice) = (Rc::clone(&highest), Rc::clone(&twice));
        move |_, segment: &Segment| {
            let is_again = segment.sequence.precedes(highest.get());
            highest.set(highest.get().latest(segment.sequence_end()));
            if !is_again && random.below(100) == 0 {
                return Fate::Lost;
            }
            twice.borrow_mut().push_back(is_again.then_some(SackBlock {
                start: segment.sequence,
                end: segment.sequence_end(),
            }));
            Fate::Arrives
        }
    });
    let back = Path::new(DELAY).rewritten_by(move |segment| {
        if let Some(block) = { twice.borrow_mut().pop_front() }.flatten() {
            let mut blocks = SackBlocks::EMPTY;
            blocks.push(block);
            for block in segment.options.sack.as_slice().iter().take(2) {
                blocks.push(*block);
            }
            segment.options.sack = blocks;
        }
    });
    let config = config(OF_THE_HOST[0], skips);
    let controller = Reno::new(RenoConfig {
        mss: DataSize::new(MSS.into()),
        initial_window: DataSize::new(3_000),
        initial_ssthresh: DataSize::new(3_000),
        max_window: DataSize::MAX,
        increase: Increase::PerAck,
        decrease_basis: DecreaseBasis::Flight,
        rounding: Rounding::Exact,
        grow_when_limited: false,
        undo: true,
        weight: 1.0,
    });
    let sender = opener(config, Box::new(controller));
    let mut pair = Pair::new(sender, listener(config, fixed(1_000)), forward, back);
    pair.call(Side::A, |end| end.write(40_000 * u64::from(MSS)));
    pair.drive(Time::from_secs(30));
    let end = pair.end(Side::A);
    assert!(!end.was_deceived());
    (end.statistics().fast_retransmits, end.acknowledged())
}

#[test]
fn a_receiver_cannot_undo_every_reduction() {
    let (found, fast) = needless(None);
    let (limited, slow) = needless(Some(1));
    assert!(found > 50 && limited > 50, "{found} {limited}");
    assert!(fast >= 2 * slow, "{fast} {slow}");
}
