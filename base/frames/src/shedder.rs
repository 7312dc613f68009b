//! Sheds frames beyond the path's capacity, the least important first.

use alloc::collections::{BTreeMap, VecDeque};

use comity_units::{DataSize, Rate, Span, Time};

use crate::frame::{Frame, FrameType};
use crate::reason::Reason;

/// How a [`Shedder`] decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShedderConfig {
    /// The share of the target bitrate that frames may take (0.95). Headers and retransmissions
    /// take the rest.
    pub headroom: f64,
    /// The window over which the rate of the source is measured (2 s), in whole groups if it holds
    /// any.
    pub window: Span,
    /// How far the target must rise, as a share of the old one, before the shedder keeps more
    /// (0.1).
    pub rise: f64,
    /// How long the rise must last, and at the start how long the target must not have risen
    /// before anything is shed (2 s).
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

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub frames: u64,
    /// How much.
    pub bytes: DataSize,
}

impl Count {
    fn add(&mut self, frame: &Frame) {
        self.frames += 1;
        self.bytes += frame.size;
    }
}

/// The fate of all frames: the other counts sum to `offered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShedCounters {
    /// All frames.
    pub offered: Count,
    /// Frames to send.
    pub kept: Count,
    /// Shed: unreferenced pictures.
    pub unreferenced: Count,
    /// Shed: referenced B pictures.
    pub referenced: Count,
    /// Shed: referenced P pictures.
    pub predicted: Count,
    /// Shed because their dependency was shed.
    pub dependent: Count,
}

/// Pictures in the order in which they are shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Unreferenced,
    ReferencedB,
    /// By position from the end of the group: the last are shed first.
    Predicted {
        from_end: u8,
    },
    Kept,
}

fn class(frame: &Frame) -> Class {
    match frame.frame_type {
        FrameType::Bidirectional { referenced: false }
        | FrameType::Predicted { referenced: false } => Class::Unreferenced,
        FrameType::Bidirectional { referenced: true } => Class::ReferencedB,
        // A P picture that is not bound is kept: without an intra picture soon, everything that
        // follows depends on it.
        FrameType::Predicted { referenced: true } if frame.is_bound => Class::Predicted {
            from_end: u8::MAX - frame.position,
        },
        _ => Class::Kept,
    }
}

/// The present shedding: everything below `boundary`, and `share` of the class at it.
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

/// Sheds pictures while the path carries less than the source submits.
///
/// The shedder first sheds unreferenced pictures, evenly spread and as many as necessary. Then it
/// sheds referenced B pictures, then P pictures from the end of each group. It always sheds the
/// dependents of a shed picture that are bound to it ([`Group::push`](crate::Group::push)). It
/// keeps intra pictures, P pictures that are not bound, audio, tables and unknown data.
///
/// A connection finds its rate in the first seconds, and its first targets are far too low. The
/// shedder therefore sheds nothing while the target sets new maxima, nor for
/// [`ShedderConfig::hold`] after the last one.
///
/// Later, a lower target takes effect at once. An encoder that follows it ends the shedding within
/// the group, as soon as its pictures are small enough. During shedding, a higher target takes
/// effect after it has exceeded the old one by [`ShedderConfig::rise`] for [`ShedderConfig::hold`].
/// Otherwise each feedback would change the smoothness of the picture.
///
/// ```
/// use comity_frames::{Frame, FrameType, Shedder, ShedderConfig};
/// use comity_units::{DataSize, Rate, Time};
///
/// // Groups of one I and nine B pictures, 25 a second: 200 kb/s over a path of 150 kb/s.
/// let frames = (0..250).map(|number| Frame {
///     stream: 0,
///     number,
///     frame_type: match number % 10 {
///         0 => FrameType::Key,
///         _ => FrameType::Bidirectional { referenced: false },
///     },
///     position: 0,
///     needs: (number % 10 > 0).then_some(number - number % 10),
///     is_bound: number % 10 > 0,
///     source_time: Time::from_millis(40 * number),
///     size: DataSize::new(1_000),
/// });
/// let mut shedder = Shedder::new(ShedderConfig::default());
/// shedder.retarget(Time::ZERO, Rate::from_kbps(150), None);
/// let kept = frames.filter(|frame| shedder.offer(frame).is_ok()).count();
/// let counters = shedder.counters();
/// assert_eq!(kept as u64, counters.kept.frames);
/// assert!((180..210).contains(&kept) && counters.unreferenced.frames == 250 - counters.kept.frames);
/// ```
#[derive(Debug)]
pub struct Shedder {
    config: ShedderConfig,
    allowed: Option<Rate>,
    /// The maximum of the target, and when the target last rose clearly above the one before.
    highest: Option<(Time, Rate)>,
    /// When the target rose, and its minimum since.
    rising: Option<(Time, Rate)>,
    /// The rate of the source, if the caller states it.
    stated: Option<Rate>,
    recent: VecDeque<Recent>,
    plan: Plan,
    is_shedding: bool,
    /// The accumulated fraction of a picture of the boundary class to shed.
    due: f64,
    /// The latest shed frames of each stream.
    gone: BTreeMap<u16, VecDeque<u64>>,
    counters: ShedCounters,
}

/// A frame within the window of measurement.
#[derive(Clone, Copy, Debug)]
struct Recent {
    source_time: Time,
    frame_type: FrameType,
    class: Class,
    size: DataSize,
}

/// How many shed frames of a stream are remembered: no frame depends on an older one.
const REMEMBERED: usize = 512;
/// The minimum duration of whole groups for a rate measurement.
const MIN_MEASURED: Span = Span::from_millis(500);
/// Without whole groups, the known share of the window required before anything is shed.
const MIN_SHARE_OF_WINDOW: f64 = 0.75;
/// The time, and the minimum number of pictures in it, after which the shedder notices that an
/// encoder follows its target.
const TREND: Span = Span::from_millis(600);
const MIN_TREND: u32 = 6;
/// During shedding, the source must fall below this share of the target before everything is kept
/// again.
const WHOLE_AGAIN: f64 = 0.95;

impl Shedder {
    /// Creates a shedder that keeps everything until it has a target.
    pub fn new(config: ShedderConfig) -> Self {
        Self {
            config,
            allowed: None,
            highest: None,
            rising: None,
            stated: None,
            recent: VecDeque::new(),
            plan: Plan::NOTHING,
            is_shedding: false,
            due: 0.0,
            gone: BTreeMap::new(),
            counters: ShedCounters::default(),
        }
    }

    /// Sets the target bitrate from `now` on, by the clock of the source.
    ///
    /// `source` is the rate of the source if the caller knows it; otherwise the shedder measures
    /// it.
    pub fn retarget(&mut self, now: Time, target: Rate, source: Option<Rate>) {
        self.stated = source;
        let is_higher =
            |(_, highest): (Time, Rate)| target > highest.mul_f64(1.0 + self.config.rise);
        if self.highest.is_none_or(is_higher) {
            self.highest = Some((now, target));
        }
        let Some(allowed) = self.allowed else {
            self.allowed = Some(target);
            return self.decide(now);
        };
        // Without shedding, a higher target makes no visible difference.
        if target < allowed || !self.is_shedding {
            self.allowed = Some(target);
            self.rising = None;
            self.decide(now);
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
                self.decide(now);
            }
        }
    }

    /// Sets the target bitrate, if `Some`, and decides about the next frame as
    /// [`offer`](Self::offer) does. For a host that does not know the rate of its source.
    ///
    /// # Errors
    ///
    /// As [`offer`](Self::offer).
    pub fn offer_at(&mut self, target: Option<Rate>, frame: &Frame) -> Result<(), Reason> {
        if let Some(target) = target {
            self.retarget(frame.source_time, target, None);
        }
        self.offer(frame)
    }

    /// Decides whether to send the next frame of the source.
    ///
    /// # Errors
    ///
    /// [`Reason::Shed`] to leave it out for its own type, [`Reason::Dependency`] because a frame
    /// that it needs was left out.
    pub fn offer(&mut self, frame: &Frame) -> Result<(), Reason> {
        self.measure(frame);
        let has_followed = self.is_shedding && { self.rate_now().zip(self.room()) }
            .is_some_and(|((source, _), allowed)| !self.is_excess(source, allowed));
        if frame.frame_type.is_intra() || has_followed {
            self.decide(frame.source_time);
        }
        self.counters.offered.add(frame);
        let class = class(frame);
        let needs_gone = frame.bound_to().is_some_and(|needed| {
            self.gone
                .get(&frame.stream)
                .is_some_and(|gone| gone.contains(&needed))
        });
        let decision = if class == Class::Kept {
            Ok(())
        } else if class < self.plan.boundary {
            Err(Reason::Shed)
        } else if needs_gone {
            Err(Reason::Dependency)
        } else if class == self.plan.boundary {
            self.due += self.plan.share;
            if self.due >= 1.0 {
                self.due -= 1.0;
                Err(Reason::Shed)
            } else {
                Ok(())
            }
        } else {
            Ok(())
        };
        let count = match (decision, class) {
            (Ok(()), _) | (_, Class::Kept) => &mut self.counters.kept,
            (Err(Reason::Dependency), _) => &mut self.counters.dependent,
            (Err(_), Class::Unreferenced) => &mut self.counters.unreferenced,
            (Err(_), Class::ReferencedB) => &mut self.counters.referenced,
            (Err(_), Class::Predicted { .. }) => &mut self.counters.predicted,
        };
        count.add(frame);
        if decision.is_err() {
            let gone = self.gone.entry(frame.stream).or_default();
            if gone.len() == REMEMBERED {
                gone.pop_front();
            }
            gone.push_back(frame.number);
        }
        decision
    }

    /// The fate of all frames so far.
    pub fn counters(&self) -> ShedCounters {
        self.counters
    }

    /// The source's rate: as stated, or as measured over the window.
    pub fn source_rate(&self) -> Option<Rate> {
        self.stated
            .or_else(|| self.measured().map(|(rate, _)| rate))
    }

    fn measure(&mut self, frame: &Frame) {
        let now = frame.source_time;
        self.recent.push_back(Recent {
            source_time: now,
            frame_type: frame.frame_type,
            class: class(frame),
            size: frame.size,
        });
        // Times of several streams are slightly out of order, so the check covers the oldest frame
        // still in the window.
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

    /// The measured rate, and the sum of all known bytes.
    ///
    /// An intra picture is many times as large as the others. The measurement therefore covers
    /// whole groups, from one intra picture to another. Without one, it covers all known data, if
    /// that is most of the window.
    fn measured(&self) -> Option<(Rate, DataSize)> {
        let (first, last) = (
            self.recent.front()?.source_time,
            self.recent.back()?.source_time,
        );
        let between = |from: Time, to: Time| -> DataSize {
            let within = |one: &&Recent| from <= one.source_time && one.source_time < to;
            self.recent.iter().filter(within).map(|one| one.size).sum()
        };
        // The interval of the last frame has only begun.
        let bytes = between(Time::ZERO, last);
        let mut intra = self.recent.iter().filter(|one| one.frame_type.is_intra());
        let (begin, end) = match (intra.next(), intra.next_back()) {
            (Some(begin), Some(end)) => (begin.source_time, end.source_time),
            _ => (last, last),
        };
        let groups = end.saturating_since(begin);
        if groups >= MIN_MEASURED {
            return Some((Rate::of(between(begin, end), groups), bytes));
        }
        let span = last.saturating_since(first);
        let is_enough = span >= self.config.window.mul_f64(MIN_SHARE_OF_WINDOW);
        is_enough.then(|| (Rate::of(bytes, span), bytes))
    }

    /// The mean size of the latest pictures, without intra pictures, as a share of the mean size
    /// over the whole window; 1 if they are not smaller. After an encoder has reduced its rate, the
    /// trend falls below 1 long before a whole group has been measured.
    ///
    /// ```text
    /// trend = min( 1, mean size of the last 0.6 s / mean size of the window )
    /// ```
    fn trend(&self) -> f64 {
        let now = { self.recent.back() }.map_or(Time::ZERO, |one| one.source_time);
        let mean_since = |begin: Time| {
            let (mut sizes, mut count) = (0, 0_u32);
            for one in self.recent.iter().filter(|one| begin <= one.source_time) {
                if let FrameType::Predicted { .. } | FrameType::Bidirectional { .. } =
                    one.frame_type
                {
                    (sizes, count) = (sizes + one.size.get(), count + 1);
                }
            }
            (count >= MIN_TREND).then(|| sizes as f64 / f64::from(count))
        };
        match (
            mean_since(now.saturating_sub(TREND)),
            mean_since(Time::ZERO),
        ) {
            (Some(latest), Some(all)) => (latest / all).min(1.0),
            _ => 1.0,
        }
    }

    /// The rate of the source now: as stated, or else as measured and scaled by the trend.
    fn rate_now(&self) -> Option<(f64, DataSize)> {
        let (measured, bytes) = self.measured()?;
        let rate = { self.stated }.unwrap_or_else(|| measured.mul_f64(self.trend()));
        Some((rate.as_bps() as f64, bytes))
    }

    /// Whether a source of this rate exceeds the rate that frames may take. During shedding the
    /// bound is lower.
    fn is_excess(&self, source: f64, allowed: f64) -> bool {
        let share = if self.is_shedding { WHOLE_AGAIN } else { 1.0 };
        source > allowed * share
    }

    /// The rate that frames may take.
    fn room(&self) -> Option<f64> {
        Some(self.allowed?.as_bps() as f64 * self.config.headroom)
    }

    /// Whether the connection may still be finding its rate.
    fn is_starting(&self, now: Time) -> bool {
        self.highest
            .is_none_or(|(since, _)| now.saturating_since(since) < self.config.hold)
    }

    fn decide(&mut self, now: Time) {
        if !self.is_shedding && self.is_starting(now) {
            return;
        }
        let (Some(allowed), Some((source, bytes))) = (self.room(), self.rate_now()) else {
            return;
        };
        self.is_shedding = self.is_excess(source, allowed);
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
                // A share of the P pictures at one position would be shed in some groups and kept
                // in others, so all of them are shed.
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
mod tests;
