//! Traces: parsing, and links that follow them.

use std::collections::VecDeque;

use comity_link::{
    AnalyticLink, DeliveryTrace, LinkConfig, Outcome, Packet, QueuedLink, RateProfile,
    TraceErrorKind, parse_delay_steps, parse_mahimahi, parse_steps,
};
use comity_units::{DataSize, Rate, Seed, Span, Time};
use proptest::prelude::*;

fn config(trace: DeliveryTrace) -> LinkConfig {
    LinkConfig {
        rate: RateProfile::Deliveries(trace),
        ..LinkConfig::default()
    }
}

fn departure(outcome: Outcome) -> Time {
    match outcome {
        Outcome::Carried(passage) => passage.departure,
        other => panic!("{other:?}"),
    }
}

const fn packet(bytes: u32) -> Packet {
    Packet {
        bytes,
        ecn_capable: false,
        flow: 0,
    }
}

/// Opportunities at 3, 5, 5 and 10 ms, then at 13, 15, 15, 20 and so on.
#[test]
fn packets_share_opportunities_and_miss_those_at_their_own_instant() {
    let trace = parse_mahimahi("3\n5\n5\n10\n").unwrap();
    assert_eq!(trace.opportunities(), 4);
    assert_eq!(trace.period(), Span::from_millis(10));
    assert_eq!(trace.mean_rate(), Rate::from_bps(4 * 1_504 * 8 * 100));
    let mut link = AnalyticLink::new(&config(trace), Seed::new(0)).unwrap();
    for (offered, bytes, expected) in [
        (0, 1_504, 3),   // exactly one opportunity
        (0, 1_000, 5),   // leaves 504 bytes of the first at 5 ms
        (0, 500, 5),     // leaves 4 of it
        (0, 1_508, 5),   // 4 and the whole second one
        (0, 1, 10),      // leaves 1,503 of the one at 10 ms
        (9, 1_503, 10),  // offered before 10 ms: shares it
        (10, 1, 13),     // offered at that instant: missed it
        (11, 1_503, 13), // shares
        (14, 4_000, 20), // two at 15 ms and 992 of 20 ms
        (25, 100, 30),   // offered at 25 ms: both of that instant are lost
        (100, 1_504, 103),
    ] {
        let now = Time::from_millis(offered);
        let got = departure(link.offer(now, packet(bytes)));
        assert_eq!(
            got,
            Time::from_millis(expected),
            "{bytes} B at {offered} ms"
        );
    }
}

/// Mahimahi's loop, millisecond by millisecond: every opportunity serves the packet in transit,
/// then the next in line, and its rest is lost.
fn literal(milliseconds: &[u32], offers: &[(u64, u32)], until: u64) -> Vec<Option<u64>> {
    let period = u64::from(*milliseconds.last().unwrap());
    let mut departures = vec![None; offers.len()];
    let mut line: VecDeque<(usize, u32)> = VecDeque::new();
    let mut next = 0;
    for now in 0..until {
        // A repetition ends where the next one begins: both have opportunities at that instant.
        let of_this = |repetition: u64| {
            milliseconds
                .iter()
                .filter(move |&&ms| repetition * period + u64::from(ms) == now)
                .count()
        };
        let ended = if now >= period && now % period == 0 {
            of_this(now / period - 1)
        } else {
            0
        };
        for _ in 0..ended + of_this(now / period) {
            let mut left = 1_504;
            while left > 0
                && let Some(first) = line.front_mut()
            {
                let taken = left.min(first.1);
                first.1 -= taken;
                left -= taken;
                if first.1 == 0 {
                    departures[first.0] = Some(now * 1_000_000);
                    line.pop_front();
                }
            }
        }
        while next < offers.len() && offers[next].0 < (now + 1) * 1_000_000 {
            line.push_back((next, offers[next].1));
            next += 1;
        }
    }
    departures
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn deliveries_agree_with_the_literal_loop(
        mut milliseconds in prop::collection::vec(0..40_u32, 1..30),
        offers in prop::collection::vec((0..20_000_u64, 1..5_000_u32), 1..60),
    ) {
        milliseconds.push(40);
        milliseconds.sort_unstable();
        let mut now = 0;
        let offers: Vec<(u64, u32)> = offers
            .into_iter()
            .map(|(micros, bytes)| {
                now += micros * 500;
                (now, bytes)
            })
            .collect();
        let until = now / 1_000_000 + 60 * 4 * 40 + 100;
        let expected = literal(&milliseconds, &offers, until);
        let config = config(DeliveryTrace::new(milliseconds).unwrap());
        let mut analytic = AnalyticLink::new(&config, Seed::new(0)).unwrap();
        let mut queued = QueuedLink::new(&config, Seed::new(0)).unwrap();
        for (token, &(at, bytes)) in offers.iter().enumerate() {
            let at = Time::from_nanos(at);
            let got = departure(analytic.offer(at, packet(bytes)));
            prop_assert_eq!(Some(got.as_nanos()), expected[token], "packet {}", token);
            prop_assert_eq!(queued.offer(at, packet(bytes), token), Ok(()));
        }
        while let Some(back) = queued.poll(Time::from_millis(until)) {
            let got = departure(back.outcome).as_nanos();
            prop_assert_eq!(Some(got), expected[back.token], "queued {}", back.token);
        }
        prop_assert_eq!(queued.next_wakeup(), None);
    }

    /// Any text is parsed or refused, without a panic; a parsed trace has the promised form.
    #[test]
    fn any_text_is_read_or_refused(text in "[0-9 #,.\\-smbpsk\n]{0,60}|\\PC{0,40}") {
        if let Ok(trace) = parse_mahimahi(&text) {
            prop_assert!(!trace.period().is_zero() && trace.opportunities() > 0);
        }
        if let Ok(steps) = parse_steps(&text) {
            prop_assert!(!steps.is_empty());
            prop_assert!(steps.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}

/// A packet of 3,000 B that has used one opportunity when the rate is set: 1,496 B are left. The
/// second opportunity at the millisecond of the start of service counts too.
#[test]
fn setting_a_rate_ends_a_trace() {
    let trace = parse_mahimahi("5\n5\n10\n").unwrap();
    let mut link = QueuedLink::new(&config(trace), Seed::new(0)).unwrap();
    link.offer(Time::ZERO, packet(1_504), 0).unwrap();
    link.offer(Time::ZERO, packet(3_000), 1).unwrap();
    assert_eq!(link.next_wakeup(), Some(Time::from_millis(5)));
    assert!(link.poll(Time::from_millis(6)).is_some());
    assert_eq!(link.next_wakeup(), Some(Time::from_millis(10)));
    // 1,496 B at 8 kb/s: one millisecond a byte.
    link.set_rate(Time::from_millis(7), Rate::from_kbps(8));
    assert_eq!(link.next_wakeup(), Some(Time::from_millis(7 + 1_496)));
}

#[test]
fn backlog_of_a_trace_counts_its_remaining_opportunities() {
    let trace = parse_mahimahi("5\n5\n10\n").unwrap();
    let mut link = AnalyticLink::new(&config(trace), Seed::new(0)).unwrap();
    link.offer(Time::ZERO, packet(1_000));
    link.offer(Time::ZERO, packet(2_500));
    link.offer(Time::ZERO, packet(9));
    for (millis, left) in [(0, 3_509), (4, 3_509), (5, 501), (9, 501), (10, 0)] {
        assert_eq!(
            link.backlog(Time::from_millis(millis)).bytes,
            DataSize::new(left),
            "{millis} ms"
        );
    }
}

/// A trace of a constant rate is, on average, that rate: 1,000 opportunities a second are 12.032
/// Mb/s.
#[test]
fn a_saturated_trace_delivers_its_mean_rate() {
    let trace = DeliveryTrace::new(1..=1_000).unwrap();
    assert_eq!(trace.mean_rate(), Rate::from_bps(12_032_000));
    let mut link = AnalyticLink::new(&config(trace), Seed::new(0)).unwrap();
    let last = (0..15_040)
        .map(|_| departure(link.offer(Time::ZERO, packet(1_000))))
        .last();
    // 15,040,000 bytes are 10,000 opportunities.
    assert_eq!(last, Some(Time::from_secs(10)));
}

#[test]
fn errors_state_the_line_its_text_and_the_expectation() {
    for (text, expected) in [
        (
            "",
            "line 1: \"\": expected at least one line, the trace is empty",
        ),
        (
            "0\n0\n",
            "line 3: \"\": expected the last delivery after millisecond 0, since the trace repeats",
        ),
        (
            "3\n2\n",
            "line 2: \"2\": expected a millisecond not before 3, that of the line above",
        ),
        (
            "3\n\n4\n",
            "line 2: \"\": expected the millisecond of a delivery, a whole number below 4294967296",
        ),
        (
            "1\n-4\n",
            "line 2: \"-4\": expected the millisecond of a delivery, a whole number below 4294967296",
        ),
        (
            "4294967296",
            "line 1: \"4294967296\": expected the millisecond of a delivery, a whole number below 4294967296",
        ),
        (
            "1.5",
            "line 1: \"1.5\": expected the millisecond of a delivery, a whole number below 4294967296",
        ),
    ] {
        assert_eq!(parse_mahimahi(text).unwrap_err().to_string(), expected);
    }
    for (text, expected) in [
        (
            "# nothing\n\n",
            "line 3: \"\": expected at least one line, the trace is empty",
        ),
        (
            "0s, 1Mbps\n0s, 2Mbps # again\n",
            "line 2: \"0s, 2Mbps # again\": expected a time after 0.000000000s, that of the step above",
        ),
        (
            "0s 1Mbps",
            "line 1: \"0s 1Mbps\": expected a time, a comma and a value, such as \"1.5s, 800kbps\"",
        ),
        (
            "0, 1Mbps",
            "line 1: \"0, 1Mbps\": expected a duration such as \"40ms\", \"1.5s\" or \"250us\", but its unit is missing",
        ),
        (
            "\n0s, 1MB",
            "line 2: \"0s, 1MB\": expected a rate such as \"1.5Mbps\", \"800kbps\" or \"10Gbps\", but its unit is not known",
        ),
    ] {
        assert_eq!(parse_steps(text).unwrap_err().to_string(), expected);
    }
    let long = parse_steps(&"x".repeat(1_000)).unwrap_err();
    assert_eq!(long.text().len(), 63, "a long line is shortened");
    assert_eq!(long.line(), 1);
}

#[test]
fn absurd_traces_are_refused_exactly_at_the_bound() {
    let dense = |count: usize| DeliveryTrace::new(core::iter::repeat_n(7, count));
    assert!(dense(DeliveryTrace::MAX_PER_MILLISECOND).is_ok());
    let error = dense(DeliveryTrace::MAX_PER_MILLISECOND + 1).unwrap_err();
    assert_eq!(error.kind(), TraceErrorKind::TooDense);
    assert_eq!(error.line(), DeliveryTrace::MAX_PER_MILLISECOND + 1);
    let most = DeliveryTrace::MAX_OPPORTUNITIES as u32;
    assert!(DeliveryTrace::new((0..most).map(|index| index / 8)).is_ok());
    let error = DeliveryTrace::new((0..=most).map(|index| index / 8)).unwrap_err();
    assert_eq!(
        error.kind(),
        TraceErrorKind::TooLong {
            most: most as usize
        }
    );
}

#[test]
fn steps_are_read_with_units_and_comments() {
    let text = "# a comment\n 0s, 4 Mbps\n\n20s , 0bps # stall\n22500ms,1.5Mb/s";
    assert_eq!(
        parse_steps(text).unwrap(),
        [
            (Time::ZERO, Rate::from_mbps(4)),
            (Time::from_secs(20), Rate::ZERO),
            (Time::from_millis(22_500), Rate::from_kbps(1_500)),
        ]
    );
    assert_eq!(
        parse_delay_steps("0s, 40ms\n1min, 250us\n").unwrap(),
        [
            (Time::ZERO, Span::from_millis(40)),
            (Time::from_secs(60), Span::from_micros(250))
        ]
    );
}
