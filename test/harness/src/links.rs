//! Any text is a trace or a typed error with an existing line. A link with an accepted trace
//! carries packets in order, and both kinds of link agree about them.

use comity_link::{
    AnalyticLink, LinkConfig, Outcome, Packet, QueuedLink, RateProfile, TraceError,
    parse_delay_steps, parse_mahimahi, parse_steps,
};
use comity_units::{Seed, Span, Time};

/// One input.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else {
        return;
    };
    match parse_mahimahi(text) {
        Ok(trace) => carry(RateProfile::Deliveries(trace), data),
        Err(error) => report(&error, text),
    }
    match parse_steps(text) {
        Ok(steps) => carry(RateProfile::Steps(steps), data),
        Err(error) => report(&error, text),
    }
    match parse_delay_steps(text) {
        Ok(steps) => assert!(!steps.is_empty()),
        Err(error) => report(&error, text),
    }
}

fn report(error: &TraceError, text: &str) {
    assert!((1..=text.lines().count() + 1).contains(&error.line()));
    assert!(!error.to_string().is_empty());
}

/// Offers packets with sizes and distances from the bytes of the input.
fn carry(rate: RateProfile, data: &[u8]) {
    let config = LinkConfig {
        rate,
        ..LinkConfig::default()
    };
    let mut analytic =
        AnalyticLink::new(&config, Seed::new(0)).expect("a trace that was read is valid");
    let mut queued = QueuedLink::new(&config, Seed::new(0)).expect("as above");
    let (mut now, mut last) = (Time::ZERO, Time::ZERO);
    let mut expected = Vec::new();
    for (token, &byte) in data.iter().enumerate().take(64) {
        now += Span::from_micros(u64::from(byte) * u64::from(byte) * 10);
        let packet = Packet {
            bytes: u32::from(byte) * 40,
            ecn_capable: false,
            flow: 0,
        };
        let outcome = analytic.offer(now, packet);
        let Outcome::Carried(passage) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(passage.start >= now.max(last) && passage.departure >= passage.start);
        assert!(passage.arrival == passage.departure);
        last = passage.departure;
        expected.push(outcome);
        assert_eq!(queued.offer(now, packet, token), Ok(()));
    }
    while let Some(wakeup) = queued.next_wakeup() {
        while let Some(back) = queued.poll(wakeup) {
            assert_eq!(back.outcome, expected[back.token]);
        }
    }
}
