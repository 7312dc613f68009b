//! When each section is due for submission to the transport.

use std::collections::VecDeque;

use comity_units::{Span, Time};

/// Maps the source's clock to the sender's.
///
/// A *stored* source is read faster than real time. Each section becomes available at its source
/// time, counted from the start of sending.
///
/// The arrivals of a *live* source show when a section is available, and may be uneven. A
/// multiplexer holds audio frames back until they fill a packet, and an encoder takes longer for
/// some pictures. That wait belongs to the source and does not reduce the section's time in the
/// network. The mapping therefore follows the section with the longest wait in the last 30 s. That
/// section is available on arrival, and the others as much later as they waited less:
///
/// ```text
/// wait(k)       = arrival(k) − source time(k)
/// available(k)  = max( arrival(k),  source time(k) + greatest wait of the last 30 s )
/// ```
///
/// A wait that exceeds the shortest by a second is a stall of the source, not unevenness. It
/// affects its own section alone. The mapping follows a source whose clock is slower than the
/// sender's at once, and a faster one 30 s later.
///
/// ```
/// use comity_media::SourceClock;
/// use comity_units::Time;
///
/// let mut clock = SourceClock::stored(Time::from_secs(7));
/// assert_eq!(clock.lay(Time::ZERO, Time::from_millis(40)), Time::from_millis(7_040));
///
/// // A packet with three audio frames arrives when the last of them is complete.
/// let mut clock = SourceClock::live();
/// let came = Time::from_millis(1_060);
/// for frame in [20, 40, 60] {
///     clock.lay(came, Time::from_millis(frame));
/// }
/// assert_eq!(clock.lay(Time::from_millis(1_120), Time::from_millis(80)), Time::from_millis(1_120));
/// assert_eq!(clock.lay(Time::from_millis(1_120), Time::from_millis(120)), Time::from_millis(1_160));
/// ```
#[derive(Clone, Debug)]
pub struct SourceClock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Stored { start: Time },
    Live(Live),
}

/// The shortest and the longest wait within [`WINDOW`].
#[derive(Clone, Debug, Default)]
struct Live {
    /// (time, wait): waits rise from front to back, so the front is the shortest.
    least: VecDeque<(Time, Span)>,
    /// The same in falling order, so the front is the longest.
    greatest: VecDeque<(Time, Span)>,
}

/// How long waits are remembered.
const WINDOW: Span = Span::from_secs(30);
/// The limit between unevenness and a stall.
const UNEVENNESS: Span = Span::from_secs(1);

impl SourceClock {
    /// Creates the clock of a stored source whose sending begins at `start`.
    pub const fn stored(start: Time) -> Self {
        Self(Kind::Stored { start })
    }

    /// The clock of a live source.
    pub fn live() -> Self {
        Self(Kind::Live(Live::default()))
    }

    /// The sender's time at which a section is available that arrived at `now` with this source
    /// time. It is never before `now` for a live source; a stored source ignores `now`.
    pub fn lay(&mut self, now: Time, source_time: Time) -> Time {
        match &mut self.0 {
            Kind::Stored { start } => source_time + start.saturating_since(Time::ZERO),
            Kind::Live(live) => now.max(source_time + live.wait(now, source_time)),
        }
    }
}

impl Live {
    fn wait(&mut self, now: Time, source_time: Time) -> Span {
        let wait = now.saturating_since(source_time);
        let least = extreme(&mut self.least, now, wait, |last| last >= wait);
        let most = least + UNEVENNESS;
        let greatest = match wait <= most {
            true => extreme(&mut self.greatest, now, wait, |last| last <= wait),
            false => self.greatest.front().map_or(wait, |&(_, front)| front),
        };
        greatest.min(most)
    }
}

/// Adds a wait to the candidates for the extreme, removes those that can no longer be it, and
/// returns the extreme.
fn extreme(
    waits: &mut VecDeque<(Time, Span)>,
    now: Time,
    wait: Span,
    is_surpassed: impl Fn(Span) -> bool,
) -> Span {
    while waits.back().is_some_and(|&(_, last)| is_surpassed(last)) {
        waits.pop_back();
    }
    waits.push_back((now, wait));
    while waits
        .front()
        .is_some_and(|&(when, _)| now.saturating_since(when) > WINDOW)
    {
        waits.pop_front();
    }
    waits.front().map_or(wait, |&(_, front)| front)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_live_source_follows_its_slowest_sections() {
        let mut clock = SourceClock::live();
        // Waits of 1.05, 1.02, 1.05 and 1.03 s.
        assert_eq!(clock.lay(at(1_050), at(0)), at(1_050));
        assert_eq!(clock.lay(at(1_060), at(40)), at(1_090));
        assert_eq!(clock.lay(at(1_130), at(80)), at(1_130));
        assert_eq!(clock.lay(at(1_150), at(120)), at(1_170));
        // 30 s later, the wait of 1.05 s is outdated; the longest since is 1.03 s.
        assert_eq!(clock.lay(at(31_120), at(30_090)), at(31_140));
        assert_eq!(clock.lay(at(31_140), at(30_130)), at(31_160));
    }

    #[test]
    fn frames_of_one_packet_keep_their_distances_and_lose_no_time() {
        // Sixteen frames of 20 ms in a packet, which arrives when the last one is complete.
        let mut clock = SourceClock::live();
        let mut last = Time::ZERO;
        for packet in 1..20 {
            let came = at(packet * 320);
            for frame in (packet - 1) * 16..packet * 16 {
                let available = clock.lay(came, at(frame * 20));
                assert!(available >= came, "frame {frame}");
                if packet > 1 {
                    assert_eq!(available, last + Span::from_millis(20), "frame {frame}");
                }
                last = available;
            }
        }
    }

    #[test]
    fn a_stall_of_the_source_delays_only_the_stalled_section() {
        let mut clock = SourceClock::live();
        assert_eq!(clock.lay(at(100), at(0)), at(100));
        assert_eq!(clock.lay(at(2_100), at(40)), at(2_100), "2.06 s: held up");
        assert_eq!(clock.lay(at(2_100), at(2_000)), at(2_100));
        assert_eq!(clock.lay(at(2_130), at(2_040)), at(2_140), "100 ms again");
        // A wait less than a second above the shortest is unevenness.
        assert_eq!(clock.lay(at(3_140), at(2_060)), at(3_140));
        assert_eq!(clock.lay(at(3_140), at(3_040)), at(4_120));
    }

    #[test]
    fn a_slow_source_is_followed_at_once_and_a_fast_one_behind() {
        // One part in a thousand slower or faster than the sender's clock.
        for (second_here, at_once) in [(1_001, true), (999, false)] {
            let mut clock = SourceClock::live();
            for second in 1..100 {
                let came = at(second_here * second + 500);
                let late = clock.lay(came, at(1_000 * second)).saturating_since(came);
                let expected = match at_once {
                    true => 0,
                    false => (second - 1).min(30),
                };
                assert_eq!(late, Span::from_millis(expected), "second {second}");
            }
        }
    }
}
