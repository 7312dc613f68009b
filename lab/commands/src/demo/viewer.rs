//! What a viewer of the video sees: delays, freezes, and the worst moment.
//!
//! A player shows each picture a fixed time after its source time. If the picture, or one that it
//! depends on, was incomplete at its deadline, the player keeps the last picture.
//!
//! ```text
//! ready( picture ) = max( complete( picture ), ready( what it needs ) )
//! shown            ⇔ ready ≤ deadline
//! freeze           = from the time of the first picture that is not shown
//!                    to that of the next picture that is shown
//! ```

use std::collections::BTreeMap;

use super::recording::{Fate, Recording, Sent};
use crate::numbers::{percent, thousands};

/// The name of the demo's own transport.
pub(crate) const COMITY: &str = "Comity";

/// One transport and what its viewers saw.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transport {
    pub(crate) name: String,
    /// The conditions of its run.
    pub(crate) how: String,
    /// What its viewers saw, or why it did not run.
    pub(crate) viewing: Result<Viewing, String>,
}

/// All transports, Comity first.
pub(crate) fn transports(recording: &Recording) -> Vec<Transport> {
    let comity = Transport {
        name: COMITY.into(),
        how: "Sent in real time over encrypted UDP through the emulated bottleneck.".into(),
        viewing: Ok(Viewing::of(&recording.sections)),
    };
    let others = recording.others.iter().map(|other| Transport {
        name: other.name.clone(),
        how: other.how.clone(),
        viewing: other
            .sections
            .as_ref()
            .map(|sections| Viewing::of(sections))
            .map_err(Clone::clone),
    });
    std::iter::once(comity).chain(others).collect()
}

/// What the viewers of all copies of the video saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Viewing {
    pub(crate) pictures: u64,
    /// Pictures that were shown on time.
    pub(crate) shown: u64,
    /// The time from the source time of a picture until it was complete, in milliseconds; infinite
    /// if it never was. `None` without pictures.
    pub(crate) delay_ms: Option<Delay>,
    /// The copies of the video; each has one viewer.
    pub(crate) copies: u64,
    /// The freezes of all copies.
    pub(crate) freezes: u64,
    /// The total length of a copy's freezes, averaged over the copies.
    pub(crate) frozen_s: f64,
    pub(crate) longest_s: f64,
    /// The end of the longest freeze; without a freeze, the picture with the least time left.
    pub(crate) worst: Option<Moment>,
}

/// Percentiles of the delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delay {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// What one viewer saw at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// When the picture that was due would be shown on a path without delay.
    pub(crate) at_s: f64,
    /// The picture of the clip that was due.
    pub(crate) due: usize,
    /// The picture on the screen; `None` if there was none yet.
    pub(crate) seen: Option<usize>,
    /// How much older the picture on the screen is than the due one.
    pub(crate) behind_s: f64,
    /// The time left before the deadline when the picture was ready; negative if it was late,
    /// negative infinity if it was never ready.
    pub(crate) left_ms: f64,
}

/// A picture, as its viewer sees it.
#[derive(Clone, Copy)]
struct Picture {
    /// When it is due on the screen, minus the latency.
    time_s: f64,
    number: usize,
    left_ms: f64,
}

impl Viewing {
    pub(crate) fn of(sections: &[Sent]) -> Self {
        let mut copies: BTreeMap<u16, Vec<Picture>> = BTreeMap::new();
        let mut delays = Vec::new();
        let mut ready: Vec<f64> = Vec::with_capacity(sections.len());
        for section in sections {
            let delay_ms = match section.fate {
                Fate::Complete { slack_ms } => section.allowed_ms - slack_ms,
                Fate::Gap(_) | Fate::Unreported => f64::INFINITY,
            };
            let needed = section.needs.and_then(|needs| ready.get(needs).copied());
            let ready_s = (section.at_s + delay_ms / 1e3).max(needed.unwrap_or(0.0));
            ready.push(ready_s);
            let Some(number) = section.picture else {
                continue;
            };
            delays.push(delay_ms);
            let due_s = section.at_s + section.allowed_ms / 1e3;
            copies.entry(section.copy).or_default().push(Picture {
                time_s: section.shown_s,
                number,
                left_ms: (due_s - ready_s) * 1e3,
            });
        }
        let mut viewing = Self {
            pictures: delays.len() as u64,
            copies: copies.len() as u64,
            delay_ms: Delay::of(delays),
            ..Self::default()
        };
        for pictures in copies.values_mut() {
            pictures.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
            viewing.watch(pictures);
        }
        viewing.frozen_s /= viewing.copies.max(1) as f64;
        viewing
    }

    /// Shows the pictures of one copy, in display order.
    fn watch(&mut self, pictures: &[Picture]) {
        let mut on_screen: Option<Picture> = None;
        let mut frozen_since: Option<f64> = None;
        let nexts = pictures.iter().skip(1).map(|next| next.time_s);
        // The last picture stays as long as the one before it.
        let last = match pictures {
            [.., before, last] => 2.0 * last.time_s - before.time_s,
            _ => 0.0,
        };
        for (picture, next_s) in pictures.iter().zip(nexts.chain([last])) {
            let is_worst = if picture.left_ms >= 0.0 {
                self.shown += 1;
                on_screen = Some(*picture);
                frozen_since = None;
                let least = self.worst.map_or(f64::INFINITY, |worst| worst.left_ms);
                self.freezes == 0 && picture.left_ms < least
            } else {
                self.freezes += u64::from(frozen_since.is_none());
                self.frozen_s += next_s - picture.time_s;
                let frozen_s = next_s - *frozen_since.get_or_insert(picture.time_s);
                // Of equally long freezes the first counts, despite rounding.
                let is_longest = frozen_s > self.longest_s + 1e-9;
                self.longest_s = self.longest_s.max(frozen_s);
                is_longest
            };
            if is_worst {
                self.worst = Some(Moment {
                    at_s: picture.time_s,
                    due: picture.number,
                    seen: on_screen.map(|seen| seen.number),
                    behind_s: on_screen.map_or(self.longest_s, |seen| picture.time_s - seen.time_s),
                    left_ms: picture.left_ms,
                });
            }
        }
    }

    /// The result in words.
    pub(crate) fn words(&self) -> String {
        let delay = self.delay_ms.map_or(String::new(), |delay| {
            format!(
                "delay {} (median), {} (99 %), {} (longest); ",
                milliseconds(delay.p50),
                milliseconds(delay.p99),
                milliseconds(delay.max)
            )
        });
        let freezes = match self.freezes {
            0 => "no freeze".to_owned(),
            1 => format!("one freeze of {:.2} s", self.longest_s),
            freezes => {
                let (of, each) = match self.copies {
                    0 | 1 => (String::new(), "in all"),
                    copies => (format!(" in {copies} copies"), "a copy"),
                };
                format!(
                    "{} freezes{of}, {:.2} s {each}, the longest {:.2} s",
                    thousands(freezes),
                    self.frozen_s,
                    self.longest_s
                )
            }
        };
        format!(
            "{} of {} pictures shown in time; {delay}{freezes}.",
            percent(self.shown_share()),
            thousands(self.pictures)
        )
    }

    /// The share of the pictures that were shown on time.
    pub(crate) fn shown_share(&self) -> f64 {
        super::metrics::share(self.shown, self.pictures)
    }
}

/// A delay in words.
pub(crate) fn milliseconds(delay: f64) -> String {
    if delay.is_finite() {
        format!("{delay:.0} ms")
    } else {
        "never".into()
    }
}

impl Delay {
    /// By the nearest rank.
    fn of(mut delays: Vec<f64>) -> Option<Self> {
        delays.sort_by(f64::total_cmp);
        let count = delays.len();
        let at = |share: f64| {
            let rank = (share * count as f64).ceil() as usize;
            delays.get(rank.clamp(1, count.max(1)) - 1).copied()
        };
        Some(Self {
            p50: at(0.5)?,
            p95: at(0.95)?,
            p99: at(0.99)?,
            max: at(1.0)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::clip::Kind;

    /// A picture every 40 ms, due after 100 ms, each with the picture that it needs and its delay
    /// in milliseconds, `None` for never.
    fn sections(pictures: &[(Option<usize>, Option<f64>)]) -> Vec<Sent> {
        let section = |(number, &(needs, delay)): (usize, &(Option<usize>, Option<f64>))| Sent {
            kind: Kind::Predicted,
            copy: 0,
            picture: Some(number),
            at_s: number as f64 * 0.04,
            shown_s: number as f64 * 0.04,
            allowed_ms: 100.0,
            bytes: 1_000,
            needs,
            fate: delay.map_or(Fate::Gap("lost"), |delay| Fate::Complete {
                slack_ms: 100.0 - delay,
            }),
        };
        pictures.iter().enumerate().map(section).collect()
    }

    #[test]
    fn each_copy_has_a_viewer_of_its_own() {
        // All pictures of the first copy are late, and two pictures in a row of the second.
        let mut both = sections(&[(None, None), (None, None), (None, None), (None, None)]);
        let second = sections(&[
            (None, Some(20.0)),
            (None, None),
            (None, None),
            (None, Some(20.0)),
        ]);
        both.extend(second.into_iter().map(|sent| Sent { copy: 1, ..sent }));
        let viewing = Viewing::of(&both);
        assert_eq!((viewing.copies, viewing.freezes), (2, 2));
        near(viewing.frozen_s, (4.0 * 0.04 + 2.0 * 0.04) / 2.0);
        near(viewing.longest_s, 4.0 * 0.04);
        let words = viewing.words();
        let expected = "2 freezes in 2 copies, 0.12 s a copy, the longest 0.16 s.";
        assert!(words.ends_with(expected), "{words}");
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn a_picture_that_is_late_or_missing_freezes_those_that_need_it() {
        // 1 is late by 50 ms. 2 needs it and is ready 10 ms after its own deadline. 3 is no longer
        // affected. 5 never arrives, and 6 needs it.
        let viewing = Viewing::of(&sections(&[
            (None, Some(20.0)),
            (Some(0), Some(150.0)),
            (Some(1), Some(20.0)),
            (Some(2), Some(20.0)),
            (None, Some(60.0)),
            (None, None),
            (Some(5), Some(20.0)),
            (None, Some(20.0)),
        ]));
        assert_eq!((viewing.pictures, viewing.shown), (8, 4));
        assert_eq!(viewing.freezes, 2);
        near(viewing.frozen_s, 4.0 * 0.04);
        near(viewing.longest_s, 0.08);
        let worst = viewing.worst.unwrap();
        assert_eq!((worst.due, worst.seen), (2, Some(0)));
        near(worst.behind_s, 0.08);
        near(worst.at_s, 0.08);
        let delay = viewing.delay_ms.unwrap();
        assert_eq!((delay.p50, delay.p95), (20.0, f64::INFINITY));
        assert_eq!(
            viewing.words(),
            "50.0 % of 8 pictures shown in time; delay 20 ms (median), never (99 %), never (longest); 2 \
             freezes, 0.16 s in all, the longest 0.08 s."
        );
    }

    #[test]
    fn a_freeze_lasts_until_the_next_picture_that_is_shown() {
        let viewing = Viewing::of(&sections(&[
            (None, None),
            (None, Some(20.0)),
            (None, None),
            (None, None),
        ]));
        assert_eq!(viewing.freezes, 2);
        near(viewing.frozen_s, 3.0 * 0.04);
        near(viewing.longest_s, 2.0 * 0.04);
        let worst = viewing.worst.unwrap();
        assert_eq!((worst.due, worst.seen), (3, Some(1)));
    }

    /// Sent as I P B, shown as I B P: the missing B is between the other two.
    #[test]
    fn pictures_are_watched_in_the_order_of_showing() {
        let mut sections = sections(&[(None, Some(20.0)), (Some(0), Some(20.0)), (Some(1), None)]);
        for (section, (picture, shown_s)) in
            sections.iter_mut().zip([(0, 0.0), (2, 0.08), (1, 0.04)])
        {
            (section.picture, section.shown_s) = (Some(picture), shown_s);
        }
        let viewing = Viewing::of(&sections);
        assert_eq!((viewing.shown, viewing.freezes), (2, 1));
        near(viewing.longest_s, 0.04);
        let worst = viewing.worst.unwrap();
        assert_eq!((worst.due, worst.seen), (1, Some(0)));
    }

    #[test]
    fn without_a_freeze_the_worst_moment_has_the_least_time_left() {
        let viewing = Viewing::of(&sections(&[
            (None, Some(20.0)),
            (None, Some(90.0)),
            (None, Some(100.0)),
            (None, Some(20.0)),
        ]));
        assert_eq!((viewing.freezes, viewing.shown), (0, 4));
        assert_eq!((viewing.frozen_s, viewing.longest_s), (0.0, 0.0));
        let worst = viewing.worst.unwrap();
        assert_eq!((worst.due, worst.seen), (2, Some(2)));
        near(worst.left_ms, 0.0);
        let delay = viewing.delay_ms.unwrap();
        assert_eq!([delay.p50, delay.p95, delay.max], [20.0, 100.0, 100.0]);
        assert_eq!(Viewing::of(&[]), Viewing::default());
    }
}
