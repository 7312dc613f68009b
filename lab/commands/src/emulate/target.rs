//! Whether a program listens at the target.

use comity_emulator::Statistics;
use comity_units::Span;

/// How long packets must be refused before a warning. A target may start after its callers, and
/// callers may send packets after its end until they notice. A host that accepts packets refuses
/// none for this long; a system may report only one refusal per second.
const LASTS: Span = Span::from_secs(2);
/// The maximum age of the last refusal for a warning at the end.
const RECENT: Span = Span::from_secs(1);

/// The counts of an emulator at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    elapsed: Span,
    /// Packets sent to the target, and packets from it.
    sent: u64,
    answered: u64,
    /// The number of reports that packets were refused.
    refused: u64,
}

impl From<&Statistics> for Counts {
    fn from(statistics: &Statistics) -> Self {
        Self {
            elapsed: statistics.elapsed,
            sent: statistics.forward.timing.count,
            answered: statistics.backward.counts.arrived.packets,
            refused: statistics.refused,
        }
    }
}

/// Distinguishes a target without a listener from one that starts late or ended normally.
#[derive(Debug, Default)]
pub(super) struct Target {
    last: Counts,
    refusing: Option<Refusing>,
    has_warned_absent: bool,
    has_warned_ended: bool,
}

/// A target that refuses packets and answers nothing.
#[derive(Clone, Copy, Debug)]
struct Refusing {
    since: Span,
    until: Span,
    /// The number of packets sent until its last refusal.
    sent: u64,
}

impl Target {
    /// The warning about the target `to` at this moment. Each warning is returned once.
    pub(super) fn judge(&mut self, counts: Counts, to: &str) -> Option<String> {
        self.update(counts);
        let refusing = self.refusing?;
        let lasted = refusing.until.saturating_sub(refusing.since);
        let (has_warned, text) = match counts.answered {
            0 => (&mut self.has_warned_absent, "yet; it may start at any time"),
            _ => (&mut self.has_warned_ended, "any more"),
        };
        if lasted < LASTS || core::mem::replace(has_warned, true) {
            return None;
        }
        Some(format!(
            "nobody listens at {to} {text}: its host has refused packets for {:.0} s",
            lasted.as_secs_f64()
        ))
    }

    /// The warning at the end. A target that has answered may have ended before its callers.
    pub(super) fn judge_end(mut self, counts: Counts, to: &str) -> Option<String> {
        self.update(counts);
        let refusing = self.refusing.filter(|_| counts.answered == 0)?;
        let is_recent = counts.elapsed.saturating_sub(refusing.until) < RECENT;
        (is_recent || counts.sent == refusing.sent).then(|| {
            format!(
                "nobody listened at {to}: its host refused packets, the last one {:.1} s after the start; start the \
                 receiver first, or check the port",
                refusing.until.as_secs_f64()
            )
        })
    }

    fn update(&mut self, counts: Counts) {
        let last = core::mem::replace(&mut self.last, counts);
        if counts.answered > last.answered {
            self.refusing = None;
        } else if counts.refused > last.refused {
            let since = self.refusing.map_or(counts.elapsed, |before| before.since);
            self.refusing = Some(Refusing {
                since,
                until: counts.elapsed,
                sent: counts.sent,
            });
        } else if let Some(refusing) = self.refusing
            && counts.sent > refusing.sent
            && counts.elapsed.saturating_sub(refusing.until) >= LASTS
        {
            self.refusing = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The warnings about a target during this many seconds, each with its second, and the warning
    /// at the end. The target is sent a packet every 200 ms until the second `sends`. It refuses
    /// packets while it does not accept them, and answers the others if it `answers`.
    fn judged(
        seconds: f64,
        sends: f64,
        answers: bool,
        accepts: impl Fn(f64) -> bool,
    ) -> (Vec<(f64, String)>, Option<String>) {
        let (mut target, mut counts) = (Target::default(), Counts::default());
        let mut warnings = Vec::new();
        for turn in 0..(seconds * 5.0) as u64 {
            let now = turn as f64 / 5.0;
            counts.elapsed = Span::from_millis(200) * turn;
            if now < sends {
                counts.sent += 1;
                counts.refused += u64::from(!accepts(now));
                counts.answered += u64::from(answers && accepts(now));
            }
            let text = target.judge(counts, "192.0.2.1:9000");
            warnings.extend(text.map(|text| (now, text)));
        }
        (warnings, target.judge_end(counts, "192.0.2.1:9000"))
    }

    #[test]
    fn a_target_without_a_listener_is_reported_after_two_seconds_and_at_the_end() {
        let (warnings, end) = judged(20.0, 20.0, true, |_| false);
        let expected = "nobody listens at 192.0.2.1:9000 yet; it may start at any time: its host has refused packets for 2 s";
        assert_eq!(warnings, [(2.0, expected.into())]);
        let expected = "nobody listened at 192.0.2.1:9000: its host refused packets, the last one 19.8 s after the start; \
                        start the receiver first, or check the port";
        assert_eq!(end.as_deref(), Some(expected));
        // A caller that gives up soon, while the emulator continues.
        let (warnings, end) = judged(20.0, 1.0, true, |_| false);
        assert_eq!(warnings, []);
        assert!(end.is_some());
    }

    #[test]
    fn a_target_that_starts_late_is_not_reported() {
        for answers in [true, false] {
            let (warnings, end) = judged(20.0, 20.0, answers, |now| now >= 1.9);
            assert_eq!((warnings, end), (Vec::new(), None), "{answers}");
            // The target was already reported.
            let (warnings, end) = judged(20.0, 20.0, answers, |now| now >= 7.0);
            assert_eq!((warnings.len(), end), (1, None), "{answers}");
        }
        // A silent target that refuses no packets may be listening.
        assert_eq!(judged(20.0, 20.0, false, |_| true), (Vec::new(), None));
    }

    #[test]
    fn a_target_that_ends_early_is_reported_if_its_callers_continue() {
        // The last packets of a caller that has not yet noticed the end.
        let (warnings, end) = judged(20.0, 11.0, true, |now| now < 10.0);
        assert_eq!((warnings, end), (Vec::new(), None));
        let (warnings, end) = judged(20.0, 20.0, true, |now| now < 10.0);
        let [(at, text)] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        assert_eq!(*at, 12.0);
        assert!(text.contains("any more"), "{text}");
        assert_eq!(end, None);
    }

    #[test]
    fn one_refusal_in_a_second_is_enough() {
        // A router reports no more refusals.
        let (warnings, end) = judged(20.0, 20.0, false, |now| {
            !((now * 5.0) as u64).is_multiple_of(5)
        });
        assert_eq!(warnings.len(), 1);
        assert!(end.is_some());
    }
}
