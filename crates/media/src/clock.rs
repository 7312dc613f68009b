//! When each section is to be given to the transport.

use std::collections::VecDeque;

use comity_units::{Span, Time};

use crate::section::MediaSection;

/// Lays the source's clock on the sender's.
///
/// A *stored* source is read faster than real time: each section becomes available at its own time, counted
/// from when the sending began. A *live* source says by its arrival when it is available; its clock is laid
/// such that the section that had waited least in the last while has not waited at all. So a section that
/// comes late from its source keeps the deadline that it would have had, and a source whose clock runs faster
/// or slower than ours is followed.
///
/// ```
/// use comity_media::SourceClock;
/// use comity_units::Time;
///
/// let clock = SourceClock::stored(Time::from_secs(7));
/// assert_eq!(clock.available(Time::from_millis(40)), Time::from_millis(7_040));
/// ```
#[derive(Clone, Debug)]
pub struct SourceClock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Stored { start: Time },
    Live(Live),
}

/// Remembers the least distance between arrival and source time within [`WINDOW`].
#[derive(Clone, Debug, Default)]
struct Live {
    /// (when, distance): distances rise from front to back, so the front is the least.
    distances: VecDeque<(Time, Span)>,
}

/// How far back a live source's least delay is looked for.
const WINDOW: Span = Span::from_secs(30);

impl SourceClock {
    /// The clock of a stored source whose sending begins at `start`.
    pub const fn stored(start: Time) -> Self {
        Self(Kind::Stored { start })
    }

    /// The clock of a live source.
    pub fn live() -> Self {
        Self(Kind::Live(Live::default()))
    }

    /// Notes that a section came from the source at `now`. A stored source does not mind.
    pub fn on_section(&mut self, now: Time, section: &MediaSection) {
        let Kind::Live(live) = &mut self.0 else {
            return;
        };
        let distance = now.saturating_since(section.source_time);
        while live
            .distances
            .back()
            .is_some_and(|&(_, last)| last >= distance)
        {
            live.distances.pop_back();
        }
        live.distances.push_back((now, distance));
        while live
            .distances
            .front()
            .is_some_and(|&(when, _)| now.saturating_since(when) > WINDOW)
        {
            live.distances.pop_front();
        }
    }

    /// The sender's time at which what has this source time is available. Before its first section, a live
    /// source's clock is taken to be the sender's.
    pub fn available(&self, source_time: Time) -> Time {
        match &self.0 {
            Kind::Stored { start } => source_time + start.saturating_since(Time::ZERO),
            Kind::Live(live) => {
                let least = live
                    .distances
                    .front()
                    .map_or(Span::ZERO, |&(_, least)| least);
                source_time + least
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::{FrameType, Importance};

    fn section(millis: u64) -> MediaSection {
        MediaSection {
            stream: 1,
            number: 0,
            source_time: Time::from_millis(millis),
            deadline: Span::ZERO,
            importance: Importance(0),
            frame: FrameType::Opaque,
            position: 0,
            needs: None,
            payload: bytes::Bytes::new(),
        }
    }

    #[test]
    fn a_live_source_is_laid_on_its_fastest_sections() {
        let mut clock = SourceClock::live();
        clock.on_section(Time::from_millis(1_050), &section(0));
        assert_eq!(clock.available(Time::ZERO), Time::from_millis(1_050));
        clock.on_section(Time::from_millis(1_060), &section(40));
        clock.on_section(Time::from_millis(1_130), &section(80));
        // The second waited least: 1.02 s.
        assert_eq!(
            clock.available(Time::from_millis(80)),
            Time::from_millis(1_100)
        );
    }

    #[test]
    fn a_slow_source_is_followed() {
        // One part in a thousand slower than ours: over 100 s it falls back by 100 ms.
        let mut clock = SourceClock::live();
        for second in 0..100 {
            clock.on_section(Time::from_millis(1_001 * second), &section(1_000 * second));
        }
        let lag = clock
            .available(Time::from_secs(99))
            .saturating_since(Time::from_secs(99));
        assert!(
            (Span::from_millis(68)..=Span::from_millis(70)).contains(&lag),
            "{lag:?}"
        );
    }
}
