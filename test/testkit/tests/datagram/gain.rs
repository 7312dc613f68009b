//! The departure rate of a section with time for a repair, and of one without.

use comity_congestion::{Controller, Decision, Event, Pacing, Phase};

use super::*;

/// 200 kB/s on average, twice that in bursts, 20 kB of tokens and of borrowing.
#[derive(Debug)]
struct Bucket;

impl Controller for Bucket {
    fn on_event(&mut self, _event: Event<'_>) {}

    fn decision(&self) -> Decision {
        Decision {
            window: comity_units::DataSize::MAX,
            pacing: Pacing::Bucket {
                rate: Rate::from_kbps(1_600),
                peak: Rate::from_kbps(3_200),
                depth: comity_units::DataSize::new(20_000),
                fair: Rate::from_kbps(1_600),
                proven: Rate::from_kbps(1_600),
            },
            phase: Phase::CongestionAvoidance,
            ..Decision::default()
        }
    }
}

const DELAY: Span = Span::from_millis(20);

/// Two ends over 20 ms in each direction at this rate. Sections of these bytes and milliseconds are
/// submitted, one a second.
fn given(rate: Rate, sections: &[(u32, u64)]) -> Pair<Bytes> {
    let path = LinkConfig::new(rate, DELAY);
    let config = Config::default();
    let ends = [(); 2].map(|()| {
        Connection::new(config, config.ack_delay, Box::new(Bucket), None, Time::ZERO)
            .expect("valid")
    });
    let mut pair = Pair::new(ends, [&path, &path], Seed::new(1));
    for (second, &(length, latency)) in (0..).zip(sections) {
        let now = Time::from_secs(second);
        pair.run_until(now);
        let section = section(now, second, length, Span::from_millis(latency));
        pair.ends[0].submit(now, section).expect("room");
    }
    pair
}

/// How long a section of 9,000 bytes with this deadline takes to leave; `None` if it does not
/// arrive in time. An earlier one measures the round trip.
fn leaves_within(latency: u64) -> Option<Span> {
    let mut pair = given(Rate::from_mbps(1_000), &[(1_000, 1_000), (9_000, latency)]);
    pair.run_until(Time::from_secs(2));
    match pair.deliveries[1].pop() {
        Some((_, Delivery::Section(section))) if section.meta.length == 9_000 => {
            assert!(section.completed <= section.meta.deadline);
            Some(
                section
                    .completed
                    .saturating_since(Time::from_secs(1) + DELAY),
            )
        }
        _ => None,
    }
}

/// The path counts as 30 ms and a repair takes 50 ms: 80 ms. A section with less time leaves as
/// fast as it must, up to twice the peak: 9,000 bytes take 9 to 10 ms. One with more time leaves at
/// the peak, in 19 ms or more.
#[test]
fn a_section_without_time_for_a_repair_leaves_at_twice_the_peak() {
    for (latency, millis) in [
        (40, 9..10),
        (45, 9..10),
        (55, 9..10),
        (65, 13..15),
        (84, 19..24),
    ] {
        let took = leaves_within(latency).expect("in time");
        let range = Span::from_millis(millis.start)..Span::from_millis(millis.end);
        assert!(range.contains(&took), "{latency} ms: {took:?}");
    }
}

/// Of 30 ms, 20 are the path; the other 10 carry 8,000 bytes at twice the peak.
#[test]
fn a_section_late_even_at_twice_the_peak_does_not_leave() {
    assert_eq!(leaves_within(30), None);
}

/// 30 kB at 3 Mb/s through 1.6 Mb/s show that the flow alone fills the queue. Then 9,000 bytes do
/// not leave within 13 ms, which would require twice the peak.
#[test]
fn a_flow_that_fills_the_queue_alone_stays_at_the_peak() {
    let narrow = Rate::from_kbps(1_600);
    for (before, bytes) in [
        ((30_000, 210), 1_000..7_500),
        ((1_000, 1_000), 9_000..9_001),
    ] {
        let mut pair = given(narrow, &[(1_000, 1_000), before, (9_000, 45)]);
        let earlier = pair.ends[0].statistics().sent.section_bytes;
        pair.run_until(pair.now() + Span::from_millis(13));
        let sent = pair.ends[0].statistics().sent.section_bytes - earlier;
        assert!(bytes.contains(&sent), "behind {before:?}: {sent}");
    }
}
