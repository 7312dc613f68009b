//! Accepting arrived sections, and their acknowledgement.

use super::*;

/// The fates of the sections of end 0, by number.
fn fates(pair: &Pair<Bytes>) -> Vec<Fate> {
    let outcomes = pair.events[0].iter().filter_map(|(_, event)| match event {
        Event::Outcome(outcome) => Some((outcome.section, outcome.fate)),
        _ => None,
    });
    let fates: std::collections::BTreeMap<_, _> = outcomes.collect();
    fates.into_values().collect()
}

/// Two ends whose receiver waits for an application to accept its sections.
fn untaken() -> Pair<Bytes> {
    let path = link(Rate::from_mbps(10));
    let mut pair = Pair::new(
        ends("cubic", Config::default()),
        [&path, &path],
        Seed::new(3),
    );
    pair.ends[1].await_taker();
    pair
}

#[test]
fn sections_without_a_reader_are_not_acknowledged() {
    let mut pair = untaken();
    stream(&mut pair, 20, 5_000, Span::from_millis(200));
    let statistics = pair.ends[0].statistics();
    assert_eq!(statistics.outbox.sections.acknowledged, 0);
    let fates = fates(&pair);
    assert_eq!(fates.len(), 20, "each has its fate: {fates:?}");
    assert!(fates.iter().all(|fate| *fate != Fate::Acknowledged));
    assert!(pair.ends[0].is_open(), "it may still be accepted");
    assert_eq!(pair.violations, []);
}

#[test]
fn an_end_with_a_reader_at_once_is_unaffected() {
    let mut pair = untaken();
    let first = section(Time::ZERO, 0, 5_000, Span::from_secs(1));
    pair.ends[0].submit(Time::ZERO, first).unwrap();
    // All of it has arrived, and nothing was acknowledged.
    pair.run_until(Time::from_millis(40));
    assert_eq!(pair.ends[0].statistics().received.packets, 0);
    assert!(pair.ends[1].statistics().received.packets >= 4);
    pair.ends[1].take_sections(pair.now());
    assert!(!pair.ends[1].awaits_taker());
    pair.run_until(Time::from_millis(70));
    assert_eq!(fates(&pair), [Fate::Acknowledged]);
    let sent = pair.ends[0].statistics().sent;
    assert_eq!((sent.lost_packets, sent.retransmitted_bytes), (0, 0));
}

#[test]
fn an_end_that_stops_accepting_accounts_for_acknowledged_sections() {
    const COUNT: u64 = 25;
    let latency = Span::from_millis(400);
    let path = LinkConfig {
        losses: losses(0.02),
        ..link(Rate::from_mbps(10))
    };
    for stop in [410, 415, 433, 500] {
        let mut pair = Pair::new(
            ends("cubic", Config::default()),
            [&path, &path],
            Seed::new(stop),
        );
        for number in 0..COUNT {
            let at = Time::from_millis(40 * (number + 1));
            let stop = Time::from_millis(stop);
            if pair.now() < stop && stop <= at {
                pair.run_until(stop);
                pair.ends[1].refuse_sections();
            }
            if at > stop + latency && pair.ends[1].is_open() {
                let now = pair.now();
                pair.ends[1].close(now, CloseCode::DONE, "");
            }
            pair.run_until(at);
            let section = section(pair.now(), number, 5_000, latency);
            // It fails when the connection is over.
            let _ = pair.ends[0].submit(pair.now(), section);
        }
        pair.run_until(Time::from_secs(3));
        assert_eq!(pair.violations, []);
        let fates = fates(&pair);
        let acknowledged = fates.iter().filter(|fate| **fate == Fate::Acknowledged);
        let deliveries = &pair.deliveries[1];
        let arrived = deliveries
            .iter()
            .filter(|(_, delivery)| matches!(delivery, Delivery::Section(_)));
        let (acknowledged, arrived) = (acknowledged.count(), arrived.count());
        assert!(
            (6..13).contains(&acknowledged) && acknowledged <= arrived && arrived < 13,
            "stopped at {stop}: {acknowledged} of {arrived}"
        );
        // Every section that it knows is delivered, once and in order, and those after the stop are
        // gaps.
        let numbers: Vec<u64> = deliveries
            .iter()
            .map(|(_, delivery)| number(delivery))
            .collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
        assert!(numbers.len() > arrived, "{} known", numbers.len());
        for (at, fate) in fates.iter().enumerate() {
            let is_whole = deliveries
                .get(at)
                .is_some_and(|(_, delivery)| matches!(delivery, Delivery::Section(_)));
            assert!(is_whole || *fate != Fate::Acknowledged, "section {at}");
        }
    }
}

/// The probes of a sender reach a peer that accepts no more sections, and carry no section bytes.
#[test]
fn a_probe_carries_no_section_bytes_to_an_end_that_accepts_none() {
    let path = link(Rate::from_mbps(10));
    let mut pair = Pair::new(
        ends("cubic", Config::default()),
        [&path, &path],
        Seed::new(3),
    );
    pair.ends[1].refuse_sections();
    let first = section(Time::ZERO, 0, 5_000, Span::from_secs(10));
    pair.ends[0].submit(Time::ZERO, first).unwrap();
    // The credit of zero arrives after 20 ms.
    pair.run_until(Time::from_millis(25));
    let before = pair.ends[0].statistics().sent;
    assert!((1..=5_000).contains(&before.section_bytes), "{before:?}");
    assert_eq!(before.probes, 0);
    pair.run_until(Time::from_secs(5));
    let after = pair.ends[0].statistics().sent;
    assert_eq!(after.section_bytes, before.section_bytes);
    assert!(after.probes >= 1 && after.packets > before.packets);
    assert_eq!(pair.ends[0].statistics().outbox.sections.acknowledged, 0);
    assert!(pair.ends[0].is_open());
    assert_eq!(pair.violations, []);
}

fn number(delivery: &Delivery<Bytes>) -> u64 {
    match delivery {
        Delivery::Section(section) => section.meta.section.0,
        Delivery::Gap(gap) => gap.section.0,
    }
}
