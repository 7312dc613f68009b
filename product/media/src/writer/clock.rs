//! The clock of a program: makes clock references from decoding times.

use std::collections::{BTreeMap, BTreeSet};

use comity_units::Span;

use crate::timeline::{WRAP, difference};

/// Across a gap larger than this, the clock jumps instead of advancing in small steps.
const JUMP: i64 = 10 * 90_000;

/// A unit that reports a discontinuity makes the clock jump if it is behind the clock or further
/// ahead than this: 120 ms. A smaller step is time that passed at the source.
const AHEAD: i64 = 10_800;

/// A step ahead that is longer than this, one second, also makes the clock jump, unless the
/// previous step was half as long. Time stamps are at most 0.7 s apart (ISO/IEC 13818-1 2.7.4), but
/// the pictures of some sources are further apart. In a longer step, either no time passed at the
/// source, or the source produced nothing.
const LONG: i64 = 90_000;

/// The minimum interval between references, 10 ms: more would be useless and fill the stream.
const SHORTEST: u64 = 900;
/// If this many consecutive units are late, and each also goes back in its own stream, the clock is
/// wrong: a source restarted shortly before its last position. Fewer late units are only late.
const IN_A_ROW: u32 = 16;
/// How long after a jump units of the old clock may still arrive.
const SOON: u64 = 2 * 90_000;

/// A clock reference to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The writer's own time in ticks of 90 kHz since the beginning.
    pub(super) at: u64,
    /// The reference, in ticks of 90 kHz, 33 bits.
    pub(super) clock: u64,
    pub(super) discontinuity: bool,
}

/// Follows the latest decoding time at a constant distance.
#[derive(Debug)]
pub(super) struct Clock {
    /// The distance, in ticks, as all times here.
    lead: u64,
    /// The latest decoding time.
    stamp: Option<u64>,
    /// The latest step ahead of that time.
    step: Option<i64>,
    /// The position of the clock, with jumps removed.
    position: u64,
    /// The position of the latest reference.
    referenced: u64,
    /// The latest decoding time before the last jump, and its position.
    left: Option<(u64, u64)>,
    /// The streams that have jumped with the clock. None of them returns to the old clock.
    jumped: BTreeSet<u16>,
    /// The latest decoding time of each stream since the last jump.
    latest: BTreeMap<u16, u64>,
    /// How many consecutive units were behind both the clock and their own stream.
    passed: u32,
}

impl Clock {
    pub(super) fn new(lead: Span) -> Self {
        Self {
            lead: in_ticks(lead),
            stamp: None,
            step: None,
            position: 0,
            referenced: 0,
            left: None,
            jumped: BTreeSet::new(),
            latest: BTreeMap::new(),
            passed: 0,
        }
    }

    pub(super) const fn now(&self) -> u64 {
        self.position
    }

    /// Whether a decoding time was seen.
    pub(super) const fn has_begun(&self) -> bool {
        self.stamp.is_some()
    }

    /// Whether the clock has passed the decoding time of this unit.
    pub(super) fn is_late(&self, stamp: u64) -> bool {
        self.stamp
            .is_some_and(|latest| self.is_passed(stamp, latest))
    }

    fn is_passed(&self, stamp: u64, latest: u64) -> bool {
        let lead = i64::try_from(self.lead).unwrap_or(i64::MAX);
        difference(latest, stamp) > lead
    }

    /// Moves the clock to the decoding time of a unit. Returns the references due by then, at most
    /// `interval` apart. Returns `None` if the unit belongs to the clock before the last jump:
    /// after the reference that marks the jump, its time stamps would refer to the new clock
    /// (ISO/IEC 13818-1 2.7.6).
    pub(super) fn advance(
        &mut self,
        stream: u16,
        stamp: u64,
        discontinuity: bool,
        interval: Span,
    ) -> Option<Vec<Step>> {
        let interval = in_ticks(interval).max(SHORTEST);
        let Some(latest) = self.stamp else {
            self.stamp = Some(stamp);
            self.latest.insert(stream, stamp);
            return Some(vec![self.reference(self.position, false)]);
        };
        let step = difference(stamp, latest);
        let own = self.latest.get(&stream).copied();
        let goes_back = own.is_some_and(|own| self.is_passed(stamp, own));
        match self.is_late(stamp) {
            true => self.passed += u32::from(goes_back),
            false => self.passed = 0,
        }
        // One stream jumps before the others, whose last units still belong to the old clock.
        if self.has_left(stream, stamp) {
            return None;
        }
        let began_again = self.passed >= IN_A_ROW;
        // A discontinuity mark without a jump of the times reports a jump of the source's counters,
        // but the writer's counters have no gap. Streams that follow the first one report the same
        // jump again.
        let is_reported = discontinuity && !self.follows(stream) && !(0..=AHEAD).contains(&step);
        let is_lone = step > LONG && self.step.is_some_and(|last| step > 2 * last);
        if step.abs() > JUMP || began_again || is_reported || is_lone {
            self.passed = 0;
            self.left = Some((latest, self.position));
            self.jumped = BTreeSet::from([stream]);
            self.latest = BTreeMap::from([(stream, stamp)]);
            self.stamp = Some(stamp);
            self.referenced = self.position;
            return Some(vec![self.reference(self.position, true)]);
        }
        if self.left.is_some() {
            self.jumped.insert(stream);
        }
        if own.is_none_or(|own| difference(stamp, own) > 0) {
            self.latest.insert(stream, stamp);
        }
        let Ok(passed) = u64::try_from(step) else {
            return Some(Vec::new());
        };
        if step > 0 {
            self.step = Some(step);
        }
        self.stamp = Some(stamp);
        self.position += passed;
        let mut due = Vec::new();
        while self.position - self.referenced > interval {
            self.referenced += interval;
            due.push(self.referenced);
        }
        // The last reference accompanies the unit itself if the next unit could be too late for it.
        if self.position - self.referenced >= interval / 4 * 3 {
            self.referenced = self.position;
            due.push(self.referenced);
        }
        Some(
            due.into_iter()
                .map(|at| self.reference(at, false))
                .collect(),
        )
    }

    /// Whether there was a jump recently, and this stream has not jumped yet.
    fn follows(&self, stream: u16) -> bool {
        let is_soon = { self.left }.is_some_and(|(_, position)| self.position - position < SOON);
        is_soon && !self.jumped.contains(&stream)
    }

    /// Whether a stream that has not jumped yet has, soon after a jump, a decoding time nearer to
    /// the old clock than to the new one.
    fn has_left(&self, stream: u16, stamp: u64) -> bool {
        let (Some((left, _)), Some(latest)) = (self.left, self.stamp) else {
            return false;
        };
        let distance = |other: u64| difference(stamp, other).abs();
        self.follows(stream) && distance(left) < distance(latest)
    }

    fn reference(&self, at: u64, discontinuity: bool) -> Step {
        let back = self.position - at + self.lead;
        let clock = self.stamp.unwrap_or(0).wrapping_sub(back) % WRAP;
        Step {
            at,
            clock,
            discontinuity,
        }
    }
}

/// The progress of the clock references in copied packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    /// The latest reference, in ticks of 90 kHz, as all times here.
    latest: Option<u64>,
    position: u64,
    /// The position at which tables were last due.
    repeated: u64,
}

impl Copied {
    /// The position of the clock, with jumps removed.
    pub(super) const fn now(&self) -> u64 {
        self.position
    }

    /// Processes a reference. Returns whether tables are due with it, because they would be more
    /// than `interval` apart with the next one.
    pub(super) fn advance(&mut self, reference: u64, interval: Span) -> bool {
        let step = self.latest.replace(reference).map(|latest| {
            let step = u64::try_from(difference(reference, latest)).unwrap_or(0);
            // The clock jumped.
            if step > JUMP.unsigned_abs() { 0 } else { step }
        });
        self.position += step.unwrap_or(0);
        let is_due =
            step.is_none_or(|step| self.position - self.repeated + step > in_ticks(interval));
        if is_due {
            self.repeated = self.position;
        }
        is_due
    }
}

/// A span in whole ticks of 90 kHz.
pub(super) fn in_ticks(span: Span) -> u64 {
    u64::try_from(u128::from(span.as_nanos()) * 9 / 100_000).unwrap_or(u64::MAX) % WRAP
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Span = Span::from_millis(90);

    /// Advances the clock by a unit of the video, PID 256.
    fn advance(clock: &mut Clock, stamp: u64, discontinuity: bool, interval: Span) -> Vec<Step> {
        let steps = clock.advance(256, stamp, discontinuity, interval);
        steps.expect("a unit of this clock")
    }

    fn clocks(steps: &[Step]) -> Vec<(u64, bool)> {
        steps
            .iter()
            .map(|step| (step.clock, step.discontinuity))
            .collect()
    }

    #[test]
    fn references_follow_the_decoding_times_and_fill_gaps() {
        let mut clock = Clock::new(Span::from_secs(1));
        assert_eq!(
            clocks(&advance(&mut clock, 90_000, false, INTERVAL)),
            [(0, false)]
        );
        // After 40 ms, a reference can wait. After 80 ms, it is due.
        assert_eq!(clocks(&advance(&mut clock, 93_600, false, INTERVAL)), []);
        assert_eq!(
            clocks(&advance(&mut clock, 97_200, false, INTERVAL)),
            [(7_200, false)]
        );
        // A step back within the order of several streams: no reference.
        assert_eq!(clocks(&advance(&mut clock, 95_000, false, INTERVAL)), []);
        assert!(!clock.is_late(95_000) && clock.is_late(97_200 - 90_001));
        // A gap of 200 ms: a reference every 8100 ticks. The rest can wait.
        assert_eq!(
            clocks(&advance(&mut clock, 97_200 + 18_000, false, INTERVAL)),
            [(15_300, false), (23_400, false)]
        );
    }

    #[test]
    fn a_jump_is_marked_and_a_wrap_is_not() {
        let mut clock = Clock::new(Span::from_secs(1));
        advance(&mut clock, WRAP - 3_600, false, INTERVAL);
        assert_eq!(
            clocks(&advance(&mut clock, 3_600, false, INTERVAL)),
            [(WRAP + 3_600 - 90_000, false)]
        );
        assert_eq!(
            clocks(&advance(&mut clock, 9_000_000, false, INTERVAL)),
            [(8_910_000, true)]
        );
        assert_eq!(
            clocks(&advance(&mut clock, 8_999_000, true, INTERVAL)),
            [(8_909_000, true)]
        );
        assert_eq!(clock.now(), 7_200);
        // Another stream's remaining units of the old clock do not move the new one until that
        // stream has jumped too.
        assert_eq!(clock.advance(257, 9_000_100, false, INTERVAL), None);
        assert_eq!(clock.now(), 7_200);
        assert_eq!(
            clock.advance(257, 8_998_900, false, INTERVAL),
            Some(Vec::new())
        );
        assert_eq!(
            clock.advance(257, 9_000_100, false, INTERVAL),
            Some(Vec::new())
        );
        assert_eq!(clock.now(), 8_300);
        // The video does not return to the old clock either, although it passes the time of the
        // jump.
        assert_eq!(clocks(&advance(&mut clock, 9_000_200, false, INTERVAL)), []);
        assert_eq!(clock.now(), 8_400);
    }

    /// A restarted source repeats some seconds, and the clock goes back with it.
    #[test]
    fn a_restarted_source_moves_the_clock_back() {
        for (back_s, jumps) in [(8, true), (2, true), (0, false)] {
            let mut clock = Clock::new(Span::from_secs(1));
            for frame in 0..250 {
                advance(&mut clock, 3_600 * frame + 90_000, false, INTERVAL);
            }
            let again = 3_600 * 250 + 90_000 - back_s * 90_000;
            let mut steps = Vec::new();
            for frame in 0..50 {
                steps.extend(advance(&mut clock, again + 3_600 * frame, false, INTERVAL));
            }
            let marked = steps.iter().filter(|step| step.discontinuity).count();
            assert_eq!(marked, usize::from(jumps), "{back_s} s");
            // 34 or 50 frames of 40 ms after the jump, with a reference about every 80 ms.
            assert!(
                (15..=28).contains(&steps.len()),
                "{back_s} s: {}",
                steps.len()
            );
            let last = steps[steps.len() - 1].clock + 90_000;
            let end = again + 3_600 * 49;
            assert!((end - 2 * 3_600..=end).contains(&last), "{back_s} s");
        }
    }

    /// A live source's clock is set ahead. Its streams report this one after another, and units
    /// from before the jump arrive in between.
    #[test]
    fn a_reported_jump_ahead_is_one_and_is_not_filled() {
        for by in [45_000, 270_000, 810_000] {
            let mut clock = Clock::new(Span::from_secs(1));
            for frame in 0..10 {
                clock.advance(256, 900_000 + 3_600 * frame, false, INTERVAL);
                clock.advance(257, 890_000 + 3_600 * frame, false, INTERVAL);
            }
            let steps = advance(&mut clock, 936_000 + by, true, INTERVAL);
            assert_eq!(clocks(&steps), [(846_000 + by, true)]);
            assert_eq!(clock.advance(257, 926_000, false, INTERVAL), None);
            for (stream, stamp, mark) in [(257, 929_600, true), (256, 939_600, false)] {
                let steps = clock.advance(stream, stamp + by, mark, INTERVAL);
                assert_eq!(steps, Some(Vec::new()), "{by}");
            }
            assert_eq!(clock.now(), 9 * 3_600 + 3_600);
        }
        // A discontinuity mark after a shorter loss is not a jump.
        let mut clock = Clock::new(Span::from_secs(1));
        advance(&mut clock, 900_000, false, INTERVAL);
        let steps = advance(&mut clock, 910_800, true, INTERVAL);
        assert_eq!(clocks(&steps), [(818_100, false)]);
    }

    /// No time passes at a source when its clock steps, and its time stamps are at most 0.7 s apart
    /// (ISO/IEC 13818-1 2.7.4). The pictures of some sources are further apart.
    #[test]
    fn a_step_without_a_mark_is_a_jump_and_is_not_filled() {
        for (interval, step, jumps) in [
            (3_600, 89_000, false),
            (3_600, 91_000, true),
            (3_600, 270_000, true),
            (3_600, 890_000, true),
            (270_000, 270_000, false),
            (90_000, 170_000, false),
            (90_000, 190_000, true),
        ] {
            let mut clock = Clock::new(Span::from_secs(1));
            for frame in 0..3 {
                advance(&mut clock, 900_000 + interval * frame, false, INTERVAL);
            }
            let now = clock.now();
            let stamp = 900_000 + 2 * interval + step;
            let steps = clocks(&advance(&mut clock, stamp, false, INTERVAL));
            match jumps {
                true => assert_eq!((steps, clock.now()), (vec![(stamp - 90_000, true)], now)),
                false => {
                    assert!(steps.iter().all(|&(_, is_marked)| !is_marked));
                    assert!(steps.len() as u64 >= step / 8_100, "{}", steps.len());
                    assert_eq!(clock.now(), now + step);
                }
            }
        }
    }

    #[test]
    fn single_units_that_are_late_do_not_move_the_clock() {
        let mut clock = Clock::new(Span::from_secs(1));
        advance(&mut clock, 900_000, false, INTERVAL);
        for unit in 0..200 {
            // Fifteen late units, then one on time.
            let stamp = match unit % 16 {
                15 => 900_000 + 225 * unit,
                _ => 900_000 - 450_000 + 3_600 * unit,
            };
            let steps = advance(&mut clock, stamp, false, INTERVAL);
            assert!(steps.iter().all(|step| !step.discontinuity), "unit {unit}");
        }
    }

    /// Audio that is more than a whole packet of frames behind the pictures is late, but its own
    /// stream advances.
    #[test]
    fn a_stream_that_stays_behind_does_not_move_the_clock_back() {
        let mut clock = Clock::new(Span::from_secs(1));
        for frame in 0..100 {
            clock.advance(256, 900_000 + 3_600 * frame, false, INTERVAL);
        }
        for frame in 0..40 {
            let steps = clock.advance(257, 900_000 + 1_920 * frame, false, INTERVAL);
            assert_eq!(steps, Some(Vec::new()), "frame {frame}");
        }
        assert_eq!(clock.now(), 3_600 * 99);
        let steps = clock.advance(256, 900_000 + 3_600 * 100, false, INTERVAL);
        assert!(steps.is_some_and(|steps| steps.iter().all(|step| !step.discontinuity)));
    }
}
