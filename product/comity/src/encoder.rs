//! Bitrates for an encoder that follows the network.
//!
//! An encoder cannot use [`Connection::target_bitrate`](crate::Connection::target_bitrate) as it
//! is. The target includes sound and tables. It changes in each round trip, and some encoders need
//! seconds for a change. A [`Follower`] derives the few bitrates that an encoder should get. It has
//! no clock, so each binding of this library calls it with its own.
//!
//! ```
//! use comity::encoder::{Follower, Observation};
//! use comity::{Rate, Settings};
//! use std::time::Duration;
//!
//! let mut settings = Settings::default();
//! settings.encoder_max = Some(Rate::from_mbps(6));
//! let mut follower = Follower::new(&settings);
//! let mut at = |ms, target_mbps| {
//!     let now = Duration::from_millis(ms);
//!     let observed = Observation {
//!         connected_for: now,
//!         target: Some(Rate::from_mbps(target_mbps)),
//!         other: Rate::from_kbps(200),
//!     };
//!     follower.poll_update(now, &observed).map(|update| update.encoder_bps)
//! };
//! // 5 % head room, and 200 kb/s for the sound.
//! assert_eq!(at(1_000, 4), Some(3_600_000));
//! assert_eq!(at(1_600, 4), None);
//! // A fall is followed at once, a rise in steps of an eighth.
//! assert_eq!(at(2_200, 2), Some(1_700_000));
//! assert_eq!(at(2_800, 8), Some(1_912_500));
//! ```

use std::time::Duration;

use comity_transport::counters;
use comity_units::Rate;

use crate::config::Settings;
use crate::statistics::Statistics;

/// Decides when an encoder gets which bitrate.
///
/// ```text
/// goal = min( max( ( 1 − h ) · target − other, least ), most )
/// fall:  goal < ( 1 − h ) · sent     sends goal
/// rise:  goal > ( 1 + h ) · sent     sends min( goal, ( 1 + RISE / N ) · sent ),
///                                    or goal if that is within h of goal
/// ```
///
/// - `target`: the target bitrate. It counts bytes of sections: headers and retransmissions of the
///   transport are subtracted from it already.
/// - `other`: the rate of sections that the encoder's setting does not change, such as sound.
/// - h: the setting `encoder_headroom`. It is the reserve for pictures above the mean size, and the
///   dead band: an encoder that is h above its goal still has at most the target.
/// - `least`, `most`: the settings `encoder_min` and `encoder_max`.
/// - N: the setting `encoder_updates`. Updates are at least 1 / N seconds apart.
/// - `sent`: the last update. The first update is the goal.
///
/// Thus, 1 / N seconds after a fall of the target at the latest, the update and `other` together
/// are at most the target, unless the update is within h of `least`.
///
/// # Source
/// The shape is that of the policy of moq-dev/moq (pull request 2303): head room, dead band, falls
/// at once, rises of 25 % a second. It differs in these points: 1. the dead band equals the head
/// room; 2. the last step of a rise reaches the goal; 3. updates are limited to N per second; 4.
/// other sections are subtracted; 5. the first second of a connection is ignored.
#[derive(Clone, Debug)]
pub struct Follower {
    least: Rate,
    most: Rate,
    headroom: f64,
    /// The minimum time between updates.
    interval: Duration,
    /// The last update, and when it was.
    sent: Option<(Duration, Rate)>,
}

/// How much the bitrate rises in a second, as a share, before interest.
const RISE: f64 = 0.25;

/// How long slow start may change the target of a new connection in each round trip. No update is
/// due before.
const SETTLING: Duration = Duration::from_secs(1);

/// What a sender knows about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// How long the connection has been open.
    pub connected_for: Duration,
    /// The target bitrate, if the path is known.
    pub target: Option<Rate>,
    /// The rate of sections that the encoder's setting does not change: sound, tables, layouts.
    pub other: Rate,
}

impl Observation {
    /// The observation that belongs to the statistics of a connection.
    pub fn of(statistics: &Statistics, other: Rate) -> Self {
        let target = statistics.path.target_mbps;
        Self {
            connected_for: Duration::from_secs_f64(statistics.age_ms.max(0.0) / 1e3),
            target: target.map(|mbps| Rate::from_bps_f64(mbps * 1e6)),
            other,
        }
    }
}

counters! {
    /// A bitrate for an encoder.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Update {
        /// The bitrate that the encoder should produce.
        pub encoder_bps: u64 = "bpsEncoder", Gauge, Bps;
        /// The target bitrate of the connection, for all of its sections.
        pub target_bps: u64 = "bpsTarget", Gauge, Bps;
        /// The rate of sections that the encoder does not produce, such as sound.
        pub other_bps: u64 = "bpsOther", Gauge, Bps;
    }
}

crate::serialize_counters!(Update);

impl Follower {
    /// Follows with these settings: those whose names begin with `encoder_`. Without `encoder_max`,
    /// the maximum is `max_rate`.
    pub fn new(settings: &Settings) -> Self {
        let most = settings.encoder_max.unwrap_or(settings.max_rate);
        Self {
            least: settings.encoder_min.min(most),
            most,
            headroom: f64::from(settings.encoder_headroom.min(100)) / 100.0,
            interval: Duration::from_secs(1) / settings.encoder_updates.max(1).into(),
            sent: None,
        }
    }

    /// The update that is due at `now`, the time since any fixed moment. Call it every 100 ms, and
    /// when the target changes.
    pub fn poll_update(&mut self, now: Duration, observed: &Observation) -> Option<Update> {
        let target = observed.target?;
        if observed.connected_for < SETTLING {
            return None;
        }
        let goal = self.goal(target, observed.other);
        let rate = match self.sent {
            None => goal,
            Some((at, _)) if now.saturating_sub(at) < self.interval => return None,
            Some((_, sent)) => self.step(sent, goal)?,
        };
        self.sent = Some((now, rate));
        Some(Update {
            encoder_bps: rate.as_bps(),
            target_bps: target.as_bps(),
            other_bps: observed.other.as_bps(),
        })
    }

    fn goal(&self, target: Rate, other: Rate) -> Rate {
        let usable = target.mul_f64(1.0 - self.headroom).as_bps();
        let rest = Rate::from_bps(usable.saturating_sub(other.as_bps()));
        rest.clamp(self.least, self.most)
    }

    /// The next rate after `sent`; `None` within the dead band.
    fn step(&self, sent: Rate, goal: Rate) -> Option<Rate> {
        if goal < sent.mul_f64(1.0 - self.headroom) {
            return Some(goal);
        }
        if goal <= sent.mul_f64(1.0 + self.headroom) {
            return None;
        }
        let next = sent.mul_f64(1.0 + RISE * self.interval.as_secs_f64());
        let reaches = next.mul_f64(1.0 + self.headroom) >= goal;
        Some(if reaches { goal } else { next })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const POLL: Duration = Duration::from_millis(100);

    fn settings(headroom: u8, updates: u8) -> Settings {
        Settings {
            encoder_min: Rate::from_kbps(500),
            encoder_max: Some(Rate::from_kbps(6_000)),
            encoder_headroom: headroom,
            encoder_updates: updates,
            ..Settings::default()
        }
    }

    /// The updates, in kbit/s with their times in milliseconds, if each target holds from its time
    /// on, up to `end`.
    fn updates(
        settings: &Settings,
        targets: &[(u64, u64)],
        other_kbps: u64,
        end: u64,
    ) -> Vec<(u64, u64)> {
        let mut follower = Follower::new(settings);
        let mut updates = Vec::new();
        for ms in (0..end).step_by(100) {
            let now = MS * ms as u32;
            let target = targets.iter().rfind(|(at, _)| *at <= ms);
            let observed = Observation {
                connected_for: now,
                target: target.map(|&(_, kbps)| Rate::from_kbps(kbps)),
                other: Rate::from_kbps(other_kbps),
            };
            if let Some(update) = follower.poll_update(now, &observed) {
                updates.push((ms, update.encoder_bps / 1_000));
            }
        }
        updates
    }

    #[test]
    fn a_fall_is_followed_at_once_and_a_rise_in_steps_up_to_the_goal() {
        let targets = [(0, 4_000), (3_050, 2_000), (6_000, 4_000)];
        let found = updates(&settings(5, 2), &targets, 100, 20_000);
        // 0.95 · 4,000 − 100, 0.95 · 2,000 − 100, then 12.5 % in each half second. The step after
        // 3,243, to 3,649, is within 5 % of the goal.
        let rise = [2_025, 2_278, 2_562, 2_883, 3_243, 3_700];
        let rise = (6_000..).step_by(500).zip(rise);
        let expected: Vec<_> = [(1_000, 3_700), (3_100, 1_800)]
            .into_iter()
            .chain(rise)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_first_second_of_a_connection_and_an_unknown_target_give_no_update() {
        let targets = [(0, 300), (300, 2_400), (900, 4_000)];
        let found = updates(&settings(5, 2), &targets, 0, 10_000);
        assert_eq!(found, [(1_000, 3_800)]);
        assert_eq!(updates(&settings(5, 2), &[(5_000, 4_000)], 0, 4_900), []);
    }

    #[test]
    fn changes_within_the_head_room_give_no_update() {
        let targets = [(0, 4_000), (2_000, 3_810), (3_000, 4_190), (4_000, 4_000)];
        assert_eq!(updates(&settings(5, 2), &targets, 0, 6_000).len(), 1);
        let targets = [(0, 4_000), (2_000, 3_790), (4_000, 4_190)];
        assert_eq!(updates(&settings(5, 2), &targets, 0, 6_000).len(), 3);
    }

    #[test]
    fn updates_stay_within_the_settings() {
        let targets = [(0, 50_000), (2_000, 100), (4_000, 200)];
        let found = updates(&settings(5, 2), &targets, 0, 6_000);
        assert_eq!(found, [(1_000, 6_000), (2_000, 500)]);
        // More sound than the path carries.
        let found = updates(&settings(5, 2), &[(0, 3_000)], 4_000, 6_000);
        assert_eq!(found, [(1_000, 500)]);
        // A minimum above the maximum is the maximum; a missing maximum is that of the connection.
        let contradiction = Settings {
            encoder_min: Rate::from_mbps(9),
            ..settings(5, 2)
        };
        assert_eq!(updates(&contradiction, &[(0, 1_000)], 0, 6_000)[0].1, 6_000);
        let unlimited = Settings {
            encoder_max: None,
            max_rate: Rate::from_mbps(20),
            ..settings(5, 2)
        };
        assert_eq!(updates(&unlimited, &[(0, 50_000)], 0, 6_000)[0].1, 20_000);
    }

    #[test]
    fn an_update_has_its_fields_in_json() {
        let update = Update {
            encoder_bps: 3_600_000,
            target_bps: 4_000_000,
            other_bps: 200_000,
        };
        let expected = serde_json::json!({"bpsEncoder": 3_600_000, "bpsTarget": 4_000_000, "bpsOther": 200_000});
        assert_eq!(serde_json::to_value(update).unwrap(), expected);
    }

    #[test]
    fn an_observation_has_the_age_and_the_target_of_the_statistics() {
        let mut statistics = Statistics {
            age_ms: 1_500.0,
            ..Statistics::default()
        };
        statistics.path.target_mbps = Some(2.5);
        let other = Rate::from_kbps(64);
        let expected = Observation {
            connected_for: MS * 1_500,
            target: Some(Rate::from_kbps(2_500)),
            other,
        };
        assert_eq!(Observation::of(&statistics, other), expected);
    }

    proptest! {
        /// Targets in bit/s, each for a number of polls.
        #[test]
        fn updates_are_rare_bounded_and_below_the_target_soon_after_a_fall(
            targets in vec((0_u64..10_000_000, 1_u32..30), 1..40),
            other in 0_u64..400_000,
            headroom in 0_u8..=50,
            count in 1_u8..=10,
        ) {
            let settings = settings(headroom, count);
            let mut follower = Follower::new(&settings);
            let interval = Duration::from_secs(1) / count.into();
            let (mut now, mut times, mut sent) = (Duration::ZERO, Vec::new(), 0_u64);
            for (target, polls) in targets {
                let begins = now;
                let mut changes = 0;
                for _ in 0..polls {
                    let observed = Observation {
                        connected_for: Duration::from_secs(1),
                        target: Some(Rate::from_bps(target)),
                        other: Rate::from_bps(other),
                    };
                    if let Some(update) = follower.poll_update(now, &observed) {
                        // Steps upwards are limited.
                        let most = sent as f64
                            * (1.0 + 0.25 / f64::from(count))
                            * (1.0 + f64::from(headroom) / 100.0);
                        prop_assert!(sent == 0 || update.encoder_bps as f64 <= most + 2.0);
                        changes += u32::from(update.encoder_bps < sent);
                        sent = update.encoder_bps;
                        times.push(now);
                    }
                    prop_assert!((500_000..=6_000_000).contains(&sent));
                    // Rounding to whole bits may add two.
                    let share = f64::from(100 - headroom) / 100.0;
                    let is_low = sent + other <= target + 2 || sent as f64 * share <= 500_000.5;
                    prop_assert!(is_low || now < begins + interval, "{sent} of {target}");
                    now += POLL;
                }
                prop_assert!(changes <= 1, "one fall of the target, one fall of the update");
            }
            // No second has more updates than the setting.
            for (at, first) in times.iter().enumerate() {
                let within = times[at..].iter().filter(|time| **time < *first + Duration::from_secs(1));
                prop_assert!(within.count() <= usize::from(count));
            }
        }

        #[test]
        fn a_constant_target_gives_one_update(
            target in 0_u64..10_000_000,
            other in 0_u64..400_000,
            headroom in 0_u8..=50,
            count in 1_u8..=10,
        ) {
            let mut follower = Follower::new(&settings(headroom, count));
            let observed = Observation {
                connected_for: Duration::from_secs(1),
                target: Some(Rate::from_bps(target)),
                other: Rate::from_bps(other),
            };
            let updates = (0..100).filter_map(|poll| follower.poll_update(POLL * poll, &observed));
            prop_assert_eq!(updates.count(), 1);
        }
    }
}
