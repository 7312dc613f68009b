//! Leaving out what the network has no room for, the least important first.

use std::collections::{BTreeMap, VecDeque};

use comity_units::{Bytes, Rate, Span, Time};

use crate::section::{FrameType, MediaSection};

/// How a [`Shedder`] decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShedderConfig {
    /// The part of the target bitrate that the sections may take (0.95): headers and retransmissions take some.
    pub headroom: f64,
    /// Over how long the source is measured (2 s), in whole groups of pictures where there are some in it.
    pub window: Span,
    /// How much more than now must be allowed before less is left out than at present (a tenth).
    pub rise: f64,
    /// For how long it must have been allowed (2 s).
    pub hold: Span,
}

impl Default for ShedderConfig {
    fn default() -> Self {
        Self {
            headroom: 0.95,
            window: Span::from_secs(2),
            rise: 0.1,
            hold: Span::from_secs(2),
        }
    }
}

/// What is to be done with a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is to be sent.
    Keep,
    /// It is left out for its own kind.
    Shed,
    /// It is left out because what it needs was.
    Dependent,
}

/// Sections, and the bytes of their payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub sections: u64,
    /// How much.
    pub bytes: Bytes,
}

impl Count {
    fn add(&mut self, section: &MediaSection) {
        self.sections += 1;
        self.bytes += size(section);
    }
}

/// What became of all that was offered: the other counts sum to `offered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShedAccount {
    /// All sections.
    pub offered: Count,
    /// To be sent.
    pub kept: Count,
    /// Left out: pictures that nothing needs.
    pub unreferenced: Count,
    /// Left out: B pictures that others need.
    pub referenced: Count,
    /// Left out: P pictures.
    pub predicted: Count,
    /// Left out because what they need was.
    pub dependent: Count,
}

/// Pictures in the order in which they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Unreferenced,
    ReferencedB,
    /// With their place in the group, counted from its end, so that the last go first.
    Predicted {
        from_end: u8,
    },
    Kept,
}

fn class(section: &MediaSection) -> Class {
    match section.frame {
        FrameType::Bidirectional { referenced: false }
        | FrameType::Predicted { referenced: false } => Class::Unreferenced,
        FrameType::Bidirectional { referenced: true } => Class::ReferencedB,
        FrameType::Predicted { referenced: true } => Class::Predicted {
            from_end: u8::MAX - section.position,
        },
        _ => Class::Kept,
    }
}

fn size(section: &MediaSection) -> Bytes {
    Bytes::new(section.payload.len() as u64)
}

/// What is left out at present: everything below `boundary`, and `share` of the class at it.
#[derive(Clone, Copy, Debug)]
struct Plan {
    boundary: Class,
    share: f64,
}

impl Plan {
    const NOTHING: Self = Self {
        boundary: Class::Unreferenced,
        share: 0.0,
    };
}

/// Leaves out pictures while the network carries less than the source gives.
///
/// First go pictures that nothing needs, evenly spread, as many as necessary; then B pictures that others need;
/// then P pictures from the end of each group on; and always what needs a picture that went. I pictures, audio,
/// tables and what is not understood always stay.
///
/// Less is allowed at once; more, once something is left out, only when the target has been higher by
/// [`ShedderConfig::rise`] for [`ShedderConfig::hold`], so that the picture does not change its smoothness with every
/// feedback.
///
/// ```
/// use comity_media::{Event, Reader, ReaderConfig, Shedder, ShedderConfig, Verdict};
/// use comity_units::{Rate, Time};
///
/// let mut reader = Reader::new(ReaderConfig::default());
/// reader.push(include_bytes!("../tests/vectors/h264.ts"));
/// reader.finish();
/// let mut shedder = Shedder::new(ShedderConfig::default());
/// shedder.retarget(Time::ZERO, Rate::from_kbps(200), None);
/// while let Some(event) = reader.poll() {
///     let Event::Section(section) = event else { continue };
///     if shedder.offer(&section) == Verdict::Keep {
///         // Give it to the transport.
///     }
/// }
/// let account = shedder.account();
/// assert!(account.unreferenced.sections > 0 && account.kept.bytes < account.offered.bytes);
/// ```
#[derive(Debug)]
pub struct Shedder {
    config: ShedderConfig,
    allowed: Option<Rate>,
    /// Since when a higher target has been seen, and the least of those.
    rising: Option<(Time, Rate)>,
    /// What is said of the source's rate by who knows it better.
    stated: Option<Rate>,
    recent: VecDeque<Recent>,
    plan: Plan,
    is_shedding: bool,
    /// How much of a picture of the boundary's class is to go by now.
    due: f64,
    /// The latest sections of each stream that went.
    gone: BTreeMap<u16, VecDeque<u64>>,
    account: ShedAccount,
}

/// A section of the time over which the source is measured.
#[derive(Clone, Copy, Debug)]
struct Recent {
    source_time: Time,
    class: Class,
    is_intra: bool,
    size: Bytes,
}

/// Of how many sections that went a stream is remembered: more than any section lies behind what it needs.
const REMEMBERED: usize = 512;
/// At least so long must the groups be that the source is measured by.
const LEAST_MEASURED: Span = Span::from_millis(500);
/// Without whole groups, so much of the window must be known before anything is left out.
const LEAST_OF_WINDOW: f64 = 0.75;
/// While shedding, the source must fall so far below what is allowed to be whole again.
const WHOLE_AGAIN: f64 = 0.95;

impl Shedder {
    /// A shedder that keeps everything until it is told a target.
    pub fn new(config: ShedderConfig) -> Self {
        Self {
            config,
            allowed: None,
            rising: None,
            stated: None,
            recent: VecDeque::new(),
            plan: Plan::NOTHING,
            is_shedding: false,
            due: 0.0,
            gone: BTreeMap::new(),
            account: ShedAccount::default(),
        }
    }

    /// Notes what the network carries at `now`, on the source's clock, and the source's rate where the caller
    /// knows it; otherwise it is measured.
    pub fn retarget(&mut self, now: Time, target: Rate, source: Option<Rate>) {
        self.stated = source;
        let Some(allowed) = self.allowed else {
            self.allowed = Some(target);
            return self.decide();
        };
        // While nothing is left out a higher target changes nothing that could be seen.
        if target < allowed || !self.is_shedding {
            self.allowed = Some(target);
            self.rising = None;
            self.decide();
        } else if target < allowed.mul_f64(1.0 + self.config.rise) {
            self.rising = None;
        } else {
            let (since, least) = self
                .rising
                .map_or((now, target), |(since, least)| (since, least.min(target)));
            self.rising = Some((since, least));
            if now.saturating_since(since) >= self.config.hold {
                self.allowed = Some(least);
                self.rising = None;
                self.decide();
            }
        }
    }

    /// Says whether the next section of the source is to be sent.
    pub fn offer(&mut self, section: &MediaSection) -> Verdict {
        self.measure(section);
        if section.frame.is_intra() {
            self.decide();
        }
        self.account.offered.add(section);
        let class = class(section);
        let needs_gone = section.needs.is_some_and(|needed| {
            self.gone
                .get(&section.stream)
                .is_some_and(|gone| gone.contains(&needed))
        });
        let verdict = if class == Class::Kept {
            Verdict::Keep
        } else if class < self.plan.boundary {
            Verdict::Shed
        } else if needs_gone {
            Verdict::Dependent
        } else if class == self.plan.boundary {
            self.due += self.plan.share;
            if self.due >= 1.0 {
                self.due -= 1.0;
                Verdict::Shed
            } else {
                Verdict::Keep
            }
        } else {
            Verdict::Keep
        };
        let count = match (verdict, class) {
            (Verdict::Keep, _) | (_, Class::Kept) => &mut self.account.kept,
            (Verdict::Dependent, _) => &mut self.account.dependent,
            (Verdict::Shed, Class::Unreferenced) => &mut self.account.unreferenced,
            (Verdict::Shed, Class::ReferencedB) => &mut self.account.referenced,
            (Verdict::Shed, Class::Predicted { .. }) => &mut self.account.predicted,
        };
        count.add(section);
        if verdict != Verdict::Keep {
            let gone = self.gone.entry(section.stream).or_default();
            if gone.len() == REMEMBERED {
                gone.pop_front();
            }
            gone.push_back(section.number);
        }
        verdict
    }

    /// What became of what was offered.
    pub fn account(&self) -> ShedAccount {
        self.account
    }

    /// The source's rate: as stated, or as measured over the window.
    pub fn source_rate(&self) -> Option<Rate> {
        self.stated
            .or_else(|| self.measured().map(|(rate, _)| rate))
    }

    fn measure(&mut self, section: &MediaSection) {
        let now = section.source_time;
        self.recent.push_back(Recent {
            source_time: now,
            class: class(section),
            is_intra: section.frame.is_intra(),
            size: size(section),
        });
        // Times of several streams are not quite in order; what is left of the window is what matters.
        while self
            .recent
            .front()
            .is_some_and(|oldest| now.saturating_since(oldest.source_time) > self.config.window)
        {
            self.recent.pop_front();
        }
        if self.recent.len() > 65_536 {
            self.recent.pop_front();
        }
    }

    /// The measured rate, and all bytes that are known.
    ///
    /// A group begins with what is many times as long as the rest of it: whole groups are counted, from one intra picture to
    /// another, or else all that is known, if that is most of the window.
    fn measured(&self) -> Option<(Rate, Bytes)> {
        let (first, last) = (
            self.recent.front()?.source_time,
            self.recent.back()?.source_time,
        );
        let between = |from: Time, to: Time| -> Bytes {
            let within = |one: &&Recent| from <= one.source_time && one.source_time < to;
            self.recent.iter().filter(within).map(|one| one.size).sum()
        };
        // The last section's own time has only begun: it counts for what comes.
        let bytes = between(Time::ZERO, last);
        let mut intra = self.recent.iter().filter(|one| one.is_intra);
        let (begin, end) = match (intra.next(), intra.next_back()) {
            (Some(begin), Some(end)) => (begin.source_time, end.source_time),
            _ => (last, last),
        };
        let groups = end.saturating_since(begin);
        if groups >= LEAST_MEASURED {
            return Some((Rate::of(between(begin, end), groups), bytes));
        }
        let span = last.saturating_since(first);
        let is_enough = span >= self.config.window.mul_f64(LEAST_OF_WINDOW);
        is_enough.then(|| (Rate::of(bytes, span), bytes))
    }

    fn decide(&mut self) {
        let (Some(allowed), Some((measured, bytes))) = (self.allowed, self.measured()) else {
            return;
        };
        let source = self.stated.unwrap_or(measured).as_bps() as f64;
        let allowed = allowed.as_bps() as f64 * self.config.headroom;
        let limit = if self.is_shedding {
            allowed * WHOLE_AGAIN
        } else {
            allowed
        };
        self.is_shedding = source > limit;
        if !self.is_shedding {
            self.plan = Plan::NOTHING;
            return;
        }
        let mut excess = bytes.get() as f64 * (1.0 - allowed / source).max(0.0);
        let mut classes: BTreeMap<Class, f64> = BTreeMap::new();
        for one in &self.recent {
            *classes.entry(one.class).or_default() += one.size.get() as f64;
        }
        self.plan = Plan {
            boundary: Class::Kept,
            share: 0.0,
        };
        for (class, bytes) in classes {
            if class == Class::Kept {
                break;
            }
            if excess <= bytes {
                let share = if bytes > 0.0 { excess / bytes } else { 0.0 };
                // Of P pictures at one place, those of some groups would go and those of others stay: all go.
                let is_predicted = matches!(class, Class::Predicted { .. });
                let share = if is_predicted && excess > 0.0 {
                    1.0
                } else {
                    share
                };
                self.plan = Plan {
                    boundary: class,
                    share,
                };
                break;
            }
            excess -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Importance;

    const I: FrameType = FrameType::Key;
    const P: FrameType = FrameType::Predicted { referenced: true };
    const RB: FrameType = FrameType::Bidirectional { referenced: true };
    const B: FrameType = FrameType::Bidirectional { referenced: false };

    /// One group of a second: I, then four times P Br B B, each 1000 bytes; 17 pictures: 136 kb/s.
    const GROUP: [(FrameType, u8, Option<u64>); 17] = [
        (I, 0, None),
        (P, 1, Some(0)),
        (RB, 1, Some(1)),
        (B, 1, Some(2)),
        (B, 1, Some(2)),
        (P, 2, Some(1)),
        (RB, 2, Some(5)),
        (B, 2, Some(6)),
        (B, 2, Some(6)),
        (P, 3, Some(5)),
        (RB, 3, Some(9)),
        (B, 3, Some(10)),
        (B, 3, Some(10)),
        (P, 4, Some(9)),
        (RB, 4, Some(13)),
        (B, 4, Some(14)),
        (B, 4, Some(14)),
    ];

    fn sections(groups: std::ops::Range<u64>) -> impl Iterator<Item = MediaSection> {
        groups.flat_map(|group| {
            (0..)
                .zip(GROUP)
                .map(move |(index, (frame, position, needs))| MediaSection {
                    stream: 1,
                    number: group * 17 + index,
                    source_time: Time::from_nanos((group * 17 + index) * 1_000_000_000 / 17),
                    deadline: Span::ZERO,
                    importance: Importance::of(frame, position),
                    frame,
                    position,
                    needs: needs.map(|needed| group * 17 + needed),
                    payload: vec![0; 1_000].into(),
                })
        })
    }

    /// Which pictures of the tenth group are kept at this target, after nine groups at it.
    fn kept(kbps: u64) -> (Vec<usize>, Shedder) {
        let mut shedder = Shedder::new(ShedderConfig {
            headroom: 1.0,
            ..ShedderConfig::default()
        });
        shedder.retarget(Time::ZERO, Rate::from_kbps(kbps), None);
        for section in sections(0..9) {
            shedder.offer(&section);
        }
        let verdicts: Vec<_> = sections(9..10)
            .map(|section| shedder.offer(&section))
            .collect();
        let kept = (0..17)
            .filter(|&index| verdicts[index] == Verdict::Keep)
            .collect();
        (kept, shedder)
    }

    #[test]
    fn the_least_important_go_first() {
        assert_eq!(kept(140).0.len(), 17);
        // 8 kb/s too much: one picture of the seventeen; two and a half: half of what nothing needs is four.
        assert_eq!(kept(128).0.len(), 16);
        let some = kept(104).0;
        assert_eq!(some.len(), 13);
        assert!(
            [0, 1, 2, 5, 6, 9, 10, 13, 14]
                .iter()
                .all(|index| some.contains(index))
        );
        // Exactly without the eight: 72 kb/s; then without referenced B pictures: 40.
        assert_eq!(kept(72).0, [0, 1, 2, 5, 6, 9, 10, 13, 14]);
        assert_eq!(kept(40).0, [0, 1, 5, 9, 13]);
        // P pictures from the end on; never the I picture.
        assert_eq!(kept(33).0, [0, 1, 5, 9]);
        assert_eq!(kept(17).0, [0, 1]);
        assert_eq!(kept(1).0, [0]);
    }

    #[test]
    fn dependents_go_with_what_they_need_and_the_account_sums() {
        let (_, shedder) = kept(56);
        let account = shedder.account();
        assert!(account.referenced.sections > 0 && account.dependent.sections == 0);
        // A target that rises within a group: what needs a P picture that went has nothing to come back to.
        let config = ShedderConfig {
            hold: Span::ZERO,
            ..ShedderConfig::default()
        };
        let mut shedder = Shedder::new(config);
        shedder.retarget(Time::ZERO, Rate::from_kbps(30), None);
        for section in sections(0..4).take(3 * 17 + 11) {
            shedder.offer(&section);
        }
        shedder.retarget(Time::from_millis(3_700), Rate::from_mbps(1), None);
        let rest: Vec<_> = sections(3..5)
            .skip(11)
            .map(|section| shedder.offer(&section))
            .collect();
        assert_eq!(rest[..6], [Verdict::Dependent; 6]);
        assert_eq!(rest[6..], [Verdict::Keep; 17]);
        let account = shedder.account();
        let parts = [
            account.kept,
            account.unreferenced,
            account.referenced,
            account.predicted,
            account.dependent,
        ];
        assert_eq!(parts.map(|part| part.sections).iter().sum::<u64>(), 5 * 17);
        assert_eq!(
            parts.map(|part| part.bytes).into_iter().sum::<Bytes>(),
            account.offered.bytes
        );
        assert!(
            account.predicted.sections > 0 && account.dependent.sections > 0,
            "{account:?}"
        );
    }

    #[test]
    fn more_is_sent_only_when_it_has_been_allowed_for_a_while() {
        let (_, mut shedder) = kept(72);
        let mut target = |millis: u64, kbps: u64| {
            shedder.retarget(Time::from_millis(millis), Rate::from_kbps(kbps), None);
            shedder.allowed.map(Rate::as_bps)
        };
        assert_eq!(target(10_000, 140), Some(72_000));
        assert_eq!(target(11_900, 160), Some(72_000));
        // A dip begins the waiting anew.
        assert_eq!(target(11_950, 75), Some(72_000));
        assert_eq!(target(12_000, 150), Some(72_000));
        assert_eq!(target(13_900, 145), Some(72_000));
        assert_eq!(target(14_000, 170), Some(145_000));
        assert_eq!(target(14_001, 100), Some(100_000));
    }

    #[test]
    fn a_low_target_that_rises_before_anything_went_takes_nothing() {
        let mut shedder = Shedder::new(ShedderConfig::default());
        shedder.retarget(Time::ZERO, Rate::from_kbps(20), None);
        for section in sections(0..4) {
            if section.source_time >= Time::from_millis(100) {
                shedder.retarget(section.source_time, Rate::from_kbps(300), None);
            }
            assert_eq!(shedder.offer(&section), Verdict::Keep, "{}", section.number);
        }
    }

    /// Each group begins with a picture that has nine times as much as each of the others: 200 kb/s. All of it fits, in every
    /// part of every group, from the first on.
    #[test]
    fn a_group_that_has_only_begun_does_not_pass_for_a_faster_source() {
        let mut shedder = Shedder::new(ShedderConfig {
            headroom: 1.0,
            ..ShedderConfig::default()
        });
        for mut section in sections(0..5) {
            if section.frame == I {
                section.payload = vec![0; 9_000].into();
            }
            shedder.retarget(section.source_time, Rate::from_kbps(210), None);
            assert_eq!(shedder.offer(&section), Verdict::Keep, "{}", section.number);
        }
        let rate = shedder.source_rate().map(|rate| rate.as_bps() / 1_000);
        assert_eq!(rate, Some(200));
        // With less, it is no later than in the second group that pictures go.
        let mut shedder = Shedder::new(ShedderConfig::default());
        shedder.retarget(Time::ZERO, Rate::from_kbps(100), None);
        let verdicts = sections(0..2).map(|section| shedder.offer(&section));
        let gone = verdicts.filter(|verdict| *verdict != Verdict::Keep).count();
        assert!(gone >= 4, "{gone}");
    }

    #[test]
    fn a_stated_rate_replaces_the_measured_one() {
        let (_, mut shedder) = kept(140);
        assert_eq!(
            shedder.source_rate().map(|rate| rate.as_bps() / 1_000),
            Some(136)
        );
        shedder.retarget(
            Time::from_secs(10),
            Rate::from_kbps(140),
            Some(Rate::from_kbps(280)),
        );
        let kept = sections(10..11)
            .filter(|section| shedder.offer(section) == Verdict::Keep)
            .count();
        // Half of it has to go: eight and a half of seventeen.
        assert!((8..=9).contains(&kept), "{kept}");
    }
}
