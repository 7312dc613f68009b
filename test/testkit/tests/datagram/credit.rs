//! The receiver's credit, and the sender's use of it.

use comity_testkit::paths::random_path;
use comity_units::DataSize as Amount;
use proptest::prelude::*;

use super::*;

/// Everything arrives, however long it takes, and the receiver buffers this much of it.
fn lasting(buffer: u64) -> Config {
    Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        receive_buffer: buffer,
        deliver: Deliver::Early,
        // Long enough for a few probes to be lost in a row.
        idle_timeout: Span::from_secs(600),
        ..Config::default()
    }
}

/// A section of this stream with this length and deadline, whose bytes identify it.
fn piece(stream: u16, number: u64, length: u32, deadline: Time) -> Outgoing<Bytes> {
    Outgoing {
        stream: StreamId(stream),
        deadline,
        ..section(Time::ZERO, number, length, Span::ZERO)
    }
}

/// Submits the sections in this order as fast as they are accepted, and waits for the end.
fn give_all(pair: &mut Pair<Bytes>, sections: Vec<Outgoing<Bytes>>, limit: Span) -> bool {
    let until = pair.now() + limit;
    for section in sections {
        while let Err(refused) = pair.ends[0].submit(pair.now(), section.clone()) {
            let is_full = matches!(
                refused,
                SubmitError::TooManyBytes { held: 1.., .. } | SubmitError::TooManySections { .. }
            );
            assert!(is_full, "{refused}");
            if pair.now() >= until {
                return false;
            }
            pair.run_until(pair.now() + Span::from_millis(1));
        }
    }
    pair.run_until_settled(until.saturating_since(pair.now()))
}

/// The lengths of the completely delivered sections, by stream.
fn lengths(pair: &Pair<Bytes>, stream: u16) -> Vec<u32> {
    let whole = pair.deliveries[1]
        .iter()
        .map(|(_, delivery)| match delivery {
            Delivery::Section(section) => (section.meta.stream, section.meta.length),
            Delivery::Gap(gap) => panic!("{gap:?}"),
        });
    whole
        .filter(|(of, _)| *of == StreamId(stream))
        .map(|(_, length)| length)
        .collect()
}

/// Sections nearly as long as the buffer, with short ones between them that are easily lost.
#[test]
fn a_buffer_for_one_section_is_enough_for_all() {
    for share in [0.0, 0.05, 0.3] {
        let path = LinkConfig {
            losses: losses(share),
            ..link(Rate::from_mbps(100))
        };
        let mut pair = Pair::new(ends("cubic", lasting(65_536)), [&path, &path], Seed::new(7));
        let given: Vec<u32> = (0..60)
            .map(|number| {
                if number % 2 == 0 {
                    65_425
                } else {
                    111 + number
                }
            })
            .collect();
        let sections = given.iter().zip(0..);
        let sections = sections
            .map(|(&length, number)| piece(0, number, length, Time::from_millis(number)))
            .collect();
        assert!(
            give_all(&mut pair, sections, Span::from_secs(600)),
            "at {share} of loss {:?} of {} arrived",
            lengths(&pair, 0).len(),
            given.len()
        );
        assert_eq!(lengths(&pair, 0), given, "at {share} of loss");
        assert_eq!(pair.violations, []);
    }
}

/// Each section leaves when the peer has reported the delivery of the previous one: one and a half
/// round trips each.
#[test]
fn a_section_that_needs_the_whole_buffer_waits_for_a_round_trip() {
    let path = LinkConfig {
        queue: Queue::DropTail(Limit::Bytes(Amount::new(1 << 20))),
        ..link(Rate::from_mbps(1_000))
    };
    let mut pair = Pair::new(ends("reno", lasting(10_000)), [&path, &path], Seed::new(1));
    let sections = (0..20)
        .map(|number| piece(0, number, 10_000, Time::MAX))
        .collect();
    assert!(give_all(&mut pair, sections, Span::from_secs(60)));
    assert_eq!(lengths(&pair, 0), [10_000; 20]);
    let (end, _) = pair.deliveries[1][19];
    // 20 ms in each direction for each; initial pacing costs a few more.
    let least = Time::from_millis(20 + 19 * 40);
    let most = Time::from_millis(20 + 19 * 60);
    assert!(least <= end && end <= most, "{end}");
    let sent = pair.ends[0].statistics().sent;
    assert_eq!(
        (sent.lost_packets, sent.retransmitted_bytes),
        (0, 0),
        "nothing was refused"
    );
}

#[test]
fn a_section_longer_than_the_buffer_is_refused_at_once() {
    let path = link(Rate::from_mbps(10));
    let mut pair = Pair::new(ends("reno", lasting(10_000)), [&path, &path], Seed::new(1));
    let refused = pair.ends[0].submit(Time::ZERO, piece(0, 0, 10_001, Time::MAX));
    let expected = ArgumentError::TooLong {
        stream: StreamId(0),
        length: 10_001,
        max: 10_000,
    };
    assert_eq!(refused, Err(expected.into()));
    assert!(give_all(
        &mut pair,
        vec![piece(0, 0, 10_000, Time::MAX)],
        Span::from_secs(5)
    ));
    assert_eq!(lengths(&pair, 0), [10_000]);
}

/// After the first section, the peer has room for the second, but too little news to report it
/// unrequested.
#[test]
fn a_blocked_sender_requests_a_new_credit() {
    let path = link(Rate::from_mbps(100));
    let mut pair = Pair::new(ends("reno", lasting(10_000)), [&path, &path], Seed::new(1));
    pair.ends[0]
        .submit(Time::ZERO, piece(0, 0, 2_000, Time::MAX))
        .expect("room");
    pair.run_until(Time::from_millis(200));
    pair.ends[0]
        .submit(pair.now(), piece(0, 1, 9_000, Time::MAX))
        .expect("room");
    assert!(pair.run_until_settled(Span::from_secs(1)));
    assert_eq!(lengths(&pair, 0), [2_000, 9_000]);
    let (arrived, _) = pair.deliveries[1][1];
    // It waits for a probe timeout, receives the credit 40 ms after its request, and the section
    // takes 20 ms.
    let least = Time::from_millis(260);
    let most = Time::from_millis(420);
    assert!(least <= arrived && arrived <= most, "{arrived}");
}

/// The application reads nothing for ten seconds: the sender waits without losing anything, and
/// continues.
#[test]
fn a_receiver_that_waits_holds_the_sender_up_and_no_longer() {
    let config = Config {
        deliver: Deliver::Paced,
        ..lasting(20_000)
    };
    let path = LinkConfig {
        queue: Queue::DropTail(Limit::Bytes(Amount::new(1 << 20))),
        ..link(Rate::from_mbps(100))
    };
    let mut pair = Pair::new(ends("steady", config), [&path, &path], Seed::new(1));
    for number in 0..30 {
        let section = piece(0, number, 3_000, Time::from_secs(10));
        pair.ends[0].submit(Time::ZERO, section).expect("room");
    }
    pair.run_until(Time::from_millis(9_900));
    assert!(lengths(&pair, 0).is_empty());
    let held = pair.ends[1].statistics().inbox.held;
    assert_eq!(held, 18_000, "six of them fit");
    let waiting = pair.ends[0].statistics().sent;
    assert_eq!((waiting.lost_packets, waiting.retransmitted_bytes), (0, 0));
    assert!(pair.run_until_settled(Span::from_secs(1)));
    assert_eq!(lengths(&pair, 0), [3_000; 30]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Every section that fits the buffer arrives, over any path, with deadlines in any order, in
    /// any number of streams: no sender waits for room that never comes.
    #[test]
    fn nothing_stands_still_for_want_of_room(
        buffer in 1_000_u64..40_000,
        given in prop::collection::vec((0_u16..4, 0_u32..14, 500_u64..=1_000, 0_u64..2_000), 1..60),
        forward in random_path(1..50, 1..50, 0.0..0.3),
        backward in random_path(1..50, 1..50, 0.0..0.3),
        controller in prop::sample::select(controllers()),
        seed in any::<u64>(),
    ) {
        let paths = [&forward, &backward];
        let mut pair = Pair::new(ends(controller, lasting(buffer)), paths, Seed::new(seed));
        // Long ones are as likely as short ones on a logarithmic scale.
        let length = |halvings: u32, permille: u64| {
            u32::try_from((buffer >> halvings) * permille / 1_000).unwrap_or(u32::MAX).max(1)
        };
        let sections: Vec<_> = given
            .iter()
            .zip(0..)
            .map(|(&(stream, halvings, permille, deadline), number)| {
                piece(stream, number, length(halvings, permille), Time::from_millis(deadline))
            })
            .collect();
        let of_stream = |stream| -> Vec<u32> {
            let among = sections.iter().filter(|section| section.stream == StreamId(stream));
            among.map(|section| section.payload.len() as u32).collect()
        };
        let expected: Vec<_> = (0..4).map(of_stream).collect();
        prop_assert!(give_all(&mut pair, sections, Span::from_secs(3_000)), "no progress");
        for (stream, expected) in (0..4).zip(expected) {
            prop_assert_eq!(lengths(&pair, stream), expected);
        }
        prop_assert_eq!(&pair.violations, &[]);
    }
}
