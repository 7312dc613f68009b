//! When each section is to be given to the transport.

use std::collections::VecDeque;

use comity_units::{Span, Time};

/// Lays the source's clock on the sender's.
///
/// A *stored* source is read faster than real time: each section becomes available at its own time,
/// counted from when the sending began.
///
/// A *live* source says by its arrival when a section is available, and may be uneven: a
/// multiplexer holds frames of sound back until it has a packet full of them, and an encoder takes
/// longer for some pictures. Such a wait is the source's, and is not taken from the time that a
/// section has for its way. So the source's clock is laid such that the section that had waited
/// longest in the last 30 s is available when it comes, and the others as much later than they
/// come:
///
/// ```text
/// wait(k)       = arrival(k) − source time(k)
/// available(k)  = max( arrival(k),  source time(k) + greatest wait of the last 30 s )
/// ```
///
/// A wait that is longer by a second than the least is no unevenness but a halt of the source. It
/// counts for its own section alone. A source whose clock runs slower than ours is followed at
/// once, one whose clock runs faster 30 s behind.
///
/// ```
/// use comity_media::SourceClock;
/// use comity_units::Time;
///
/// let mut clock = SourceClock::stored(Time::from_secs(7));
/// assert_eq!(clock.lay(Time::ZERO, Time::from_millis(40)), Time::from_millis(7_040));
///
/// // A packet with three frames of sound comes when the last of them is complete.
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

/// The least and the greatest wait within [`WINDOW`].
#[derive(Clone, Debug, Default)]
struct Live {
    /// (when, wait): waits rise from front to back, so the front is the least.
    least: VecDeque<(Time, Span)>,
    /// The same falling, so the front is the greatest.
    greatest: VecDeque<(Time, Span)>,
}

/// How far back the waits are remembered.
const WINDOW: Span = Span::from_secs(30);
/// How uneven a source is taken to be at most.
const UNEVENNESS: Span = Span::from_secs(1);

impl SourceClock {
    /// The clock of a stored source whose sending begins at `start`.
    pub const fn stored(start: Time) -> Self {
        Self(Kind::Stored { start })
    }

    /// The clock of a live source.
    pub fn live() -> Self {
        Self(Kind::Live(Live::default()))
    }

    /// The sender's time at which a section is available that came at `now` and has this source
    /// time. It is no earlier than `now` for a live source; a stored one does not mind when a
    /// section comes.
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

/// Adds a wait to those that may still become the extreme one, of which those go that cannot any
/// more; the extreme one.
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
    fn a_live_source_is_laid_on_its_slowest_sections() {
        let mut clock = SourceClock::live();
        // Waits of 1.05, 1.02, 1.05 and 1.03 s.
        assert_eq!(clock.lay(at(1_050), at(0)), at(1_050));
        assert_eq!(clock.lay(at(1_060), at(40)), at(1_090));
        assert_eq!(clock.lay(at(1_130), at(80)), at(1_130));
        assert_eq!(clock.lay(at(1_150), at(120)), at(1_170));
        // 30 s later that of 1.05 s is forgotten; the longest since is 1.03 s.
        assert_eq!(clock.lay(at(31_120), at(30_090)), at(31_140));
        assert_eq!(clock.lay(at(31_140), at(30_130)), at(31_160));
    }

    #[test]
    fn frames_of_one_packet_keep_their_distances_and_all_of_their_time() {
        // Sixteen frames of 20 ms in a packet, which comes when the last one is complete.
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
    fn a_halt_of_the_source_delays_what_it_held_up_and_nothing_else() {
        let mut clock = SourceClock::live();
        assert_eq!(clock.lay(at(100), at(0)), at(100));
        assert_eq!(clock.lay(at(2_100), at(40)), at(2_100), "2.06 s: held up");
        assert_eq!(clock.lay(at(2_100), at(2_000)), at(2_100));
        assert_eq!(clock.lay(at(2_130), at(2_040)), at(2_140), "100 ms again");
        // What waits less than a second longer than the least is unevenness.
        assert_eq!(clock.lay(at(3_140), at(2_060)), at(3_140));
        assert_eq!(clock.lay(at(3_140), at(3_040)), at(4_120));
    }

    #[test]
    fn a_slow_source_is_followed_at_once_and_a_fast_one_behind() {
        // A part in a thousand slower than ours, or faster.
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
