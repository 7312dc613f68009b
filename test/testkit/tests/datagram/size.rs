//! The search for the packet size.

use super::*;

/// The search for the packet size, starting from datagrams of 1,200 bytes.
fn searching() -> Config {
    Config {
        payload: 1_400,
        base_payload: Some(1_171),
        ..Config::default()
    }
}

/// The packet sizes that an end found, each with its time.
fn sizes(pair: &Pair<Bytes>, end: usize) -> Vec<(Time, u32)> {
    let size = |(at, event): &(Time, Event)| match event {
        Event::PathSize { payload, most } => {
            assert_eq!(*most, 1_400);
            Some((*at, *payload))
        }
        _ => None,
    };
    pair.events[end].iter().filter_map(size).collect()
}

#[test]
fn full_packets_are_discovered_in_a_round_trip() {
    let path = link(Rate::from_mbps(8));
    let mut pair = Pair::new(ends("reno", searching()), [&path, &path], Seed::new(1));
    let first = section(Time::ZERO, 0, 15_000, Span::from_secs(1));
    pair.ends[0].submit(Time::ZERO, first).expect("room");
    assert_eq!(pair.ends[0].statistics().path.payload, 1_171);
    // The round trip of 40 ms, and four packets of 1.2 ms or 1.5 ms until their acknowledgement.
    pair.run_until(Time::from_millis(50));
    assert_eq!(pair.ends[0].statistics().path.payload, 1_400);
    assert_eq!(
        pair.ends[1].statistics().path.payload,
        1_171,
        "it sends nothing"
    );
    assert_eq!(sizes(&pair, 0), [], "as it was to be expected");
    check_sums(&pair);
}

/// The search ends at most 1 % below the size that the path carries.
#[test]
fn a_path_that_swallows_large_packets_from_the_start_loses_no_section() {
    for largest in [1_228, 1_300, 1_400, 1_456] {
        let path = link(Rate::from_mbps(8));
        let mut pair = Pair::new(ends("reno", searching()), [&path, &path], Seed::new(1));
        pair.set_largest(largest);
        stream(&mut pair, 250, 15_000, Span::from_millis(120));
        assert_eq!(whole(&pair, 250), 250, "{largest}");
        check_sums(&pair);
        let sender = pair.ends[0].statistics();
        let carried = largest - 57;
        let payload = sender.path.payload;
        assert!(
            (carried - 16..=carried).contains(&payload),
            "{payload} of {carried}"
        );
        let found = sizes(&pair, 0);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, payload);
        assert!(found[0].0 < Time::from_secs(5), "{found:?}");
        // No probe counts as a loss.
        let sent = sender.sent;
        let counts = [sent.lost_packets, sent.loss_events, sent.black_holes];
        assert_eq!((counts, sent.retransmitted_bytes), ([0; 3], 0));
    }
}

#[test]
fn a_path_that_becomes_narrower_under_way_is_filled_with_smaller_packets() {
    for (seed, length) in [(1, 15_000), (2, 14_000), (3, 1_300), (4, 60_000)] {
        let path = link(Rate::from_mbps(20));
        let mut pair = Pair::new(ends("reno", searching()), [&path, &path], Seed::new(seed));
        for number in 0..250 {
            pair.run_until(Time::from_millis(40 * (number + 1)));
            if number == 100 {
                assert_eq!(pair.ends[0].statistics().path.payload, 1_400);
                pair.set_largest(1_300);
            }
            let section = section(pair.now(), number, length, Span::from_millis(1_500));
            pair.ends[0].submit(pair.now(), section).expect("room");
        }
        pair.ends[0].end(VIDEO).unwrap();
        assert!(pair.run_until_settled(Span::from_secs(60)), "comes to rest");
        pair.run_until(pair.now() + Span::from_secs(2));
        // Data cut for larger packets is cut again: nothing is lost.
        assert_eq!(whole(&pair, 250), 250, "sections of {length}");
        check_sums(&pair);
        let sender = pair.ends[0].statistics();
        assert_eq!(sender.sent.black_holes, 1);
        assert!((1_227..=1_243).contains(&sender.path.payload));
        let found = sizes(&pair, 0);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

/// A refusal by the system takes effect at once, and is reported once.
#[test]
fn a_refusal_of_the_system_takes_effect_at_once() {
    let path = link(Rate::from_mbps(8));
    let mut pair = Pair::new(ends("reno", searching()), [&path, &path], Seed::new(1));
    for number in 0..50 {
        pair.run_until(Time::from_millis(40 * (number + 1)));
        if number == 5 {
            assert_eq!(pair.ends[0].statistics().path.payload, 1_400);
            pair.ends[0].on_too_large(pair.now(), 1_400);
            assert_eq!(pair.ends[0].statistics().path.payload, 1_171);
            pair.set_largest(1_399 + 57);
        }
        let section = section(pair.now(), number, 15_000, Span::from_millis(120));
        pair.ends[0].submit(pair.now(), section).expect("room");
    }
    pair.run_until(pair.now() + Span::from_millis(500));
    assert_eq!(whole(&pair, 50), 50);
    assert!((1_384..1_400).contains(&pair.ends[0].statistics().path.payload));
    // An end without a search keeps its size.
    let mut plain = end("reno", Config::default());
    plain.on_too_large(Time::ZERO, 1_423);
    assert_eq!(plain.statistics().path.payload, 1_423);
}

/// Losses of packets of any size, and silence, look like a black hole only briefly, and are never
/// reported as one.
#[test]
fn random_loss_and_an_outage_do_not_look_like_a_narrow_path() {
    for seed in 0..8 {
        let path = LinkConfig {
            losses: vec![Loss {
                model: LossModel::Bernoulli(0.05),
                place: LossPlace::AfterTransmission,
            }],
            ..link(Rate::from_mbps(8))
        };
        let mut pair = Pair::new(ends("reno", searching()), [&path, &path], Seed::new(seed));
        pair.set_outage(Time::from_secs(4), Time::from_secs(7));
        stream(&mut pair, 500, 5_000, Span::from_millis(400));
        assert_eq!(pair.deliveries[1].len(), 500);
        check_sums(&pair);
        assert_eq!(pair.ends[0].statistics().path.payload, 1_400);
        assert_eq!(sizes(&pair, 0), []);
    }
}
