//! An encoder that gets its bitrate from a [`Follower`], over a link whose rate changes.

use std::time::Duration;

use comity::Settings;
use comity::encoder::{Follower, Observation};
use comity_link::RateProfile;

use super::*;

const FRAME: Span = Span::from_millis(40);
const LATENCY: Span = Span::from_millis(400);
const POLL: Span = Span::from_millis(100);

/// The sound beside the pictures, in bit/s.
const SOUND: u64 = 128_000;

/// What happened to an encoder.
#[derive(Default)]
struct Followed {
    /// The updates, in Mb/s, with their times in seconds.
    updates: Vec<(f64, f64)>,
    /// The source times of sections that were not on time, in seconds.
    late: Vec<f64>,
    sections: usize,
}

impl Followed {
    /// The bitrate of the encoder at this second.
    fn at(&self, second: f64) -> f64 {
        let update = self.updates.iter().rfind(|(at, _)| *at <= second);
        update.expect("an update").1
    }

    /// When the bitrate is first below, or above, this rate from `second` on.
    fn when(&self, second: f64, holds: impl Fn(f64) -> bool) -> f64 {
        let found = { self.updates.iter() }.find(|(at, mbps)| *at >= second && holds(*mbps));
        found.expect("an update").0
    }
}

/// An encoder of up to 5 Mb/s, 25 frames a second and a key frame of four times the mean size in
/// each second, which obeys at the next frame.
fn follow(rates: &[(u64, u64)], seconds: u64) -> Followed {
    let steps = rates
        .iter()
        .map(|&(at, mbps)| (Time::from_secs(at), Rate::from_mbps(mbps)));
    let path = LinkConfig {
        rate: RateProfile::Steps(steps.collect()),
        ..link(Rate::from_mbps(6))
    };
    let mut pair = Pair::new(
        ends("steady", Config::default()),
        [&path, &path],
        Seed::new(1),
    );
    let mut settings = Settings::default();
    settings.encoder_max = Some(Rate::from_mbps(5));
    let mut follower = Follower::new(&settings);
    let mut followed = Followed::default();
    let (mut bitrate, mut polled) = (5_000_000, Time::ZERO);
    for number in 0..seconds * 25 {
        while polled <= Time::ZERO + FRAME * number {
            pair.run_until(polled);
            let observed = Observation {
                connected_for: Duration::from_nanos(polled.as_nanos()),
                target: pair.ends[0].target_bitrate(),
                other: Rate::from_bps(SOUND),
            };
            if let Some(update) = follower.poll_update(observed.connected_for, &observed) {
                bitrate = update.encoder_bps;
                let mbps = bitrate as f64 / 1e6;
                followed
                    .updates
                    .push((polled.saturating_since(Time::ZERO).as_secs_f64(), mbps));
            }
            polled += POLL;
        }
        pair.run_until(Time::ZERO + FRAME * number);
        let now = pair.now();
        let parts = if number % 25 == 0 { 4 } else { 1 };
        let sizes = [bitrate / 8 * parts / 28, SOUND / 8 / 25];
        for (part, size) in (0..).zip(sizes) {
            let length = u32::try_from(size).expect("a frame");
            let frame = section(now, 2 * number + part, length, LATENCY);
            pair.ends[0].submit(now, frame).expect("room");
            followed.sections += 1;
        }
    }
    pair.run_until(pair.now() + LATENCY * 2);
    let mut on_time = 0;
    for (_, delivery) in &pair.deliveries[1] {
        match delivery {
            Delivery::Section(section) if section.completed <= section.meta.deadline => {
                on_time += 1;
            }
            Delivery::Section(section) => {
                let sent = section.meta.source_time.saturating_since(Time::ZERO);
                followed.late.push(sent.as_secs_f64());
            }
            Delivery::Gap(gap) => {
                let times = gap.sections().map(|id| (FRAME * (id.0 / 2)).as_secs_f64());
                followed.late.extend(times);
            }
        }
    }
    assert_eq!(on_time + followed.late.len(), followed.sections);
    followed
}

#[test]
fn an_encoder_follows_a_link_that_falls_from_6_to_2_mbps_and_rises_again() {
    let followed = follow(&[(0, 6), (20, 2), (50, 6)], 80);
    // 0.95 · (0.9 · 6 Mb/s, less the headers) − 0.128 Mb/s.
    assert!(
        (4.3..4.8).contains(&followed.at(19.0)),
        "{:?}",
        followed.updates
    );
    let fell = followed.when(20.0, |mbps| mbps < 2.0);
    assert!((20.0..21.0).contains(&fell), "{:?}", followed.updates);
    // At least half of the link, and never above it.
    for second in 23..50 {
        let mbps = followed.at(f64::from(second));
        assert!((1.1..1.7).contains(&mbps), "{mbps} Mb/s at {second} s");
    }
    // Ten steps of an eighth, half a second apart.
    let rose = followed.when(50.0, |mbps| mbps > 4.3);
    assert!((54.0..56.0).contains(&rose), "{:?}", followed.updates);
    // Only pictures and sound of the first second after the fall, or a little more, are late.
    assert!(followed.late.len() < 50, "{:?}", followed.late);
    let after_fall = |second: &f64| (20.0..21.5).contains(second);
    assert!(followed.late.iter().all(after_fall), "{:?}", followed.late);
}
