//! Acknowledgements that are false, too many, or missing.

use comity_testkit::memory::held;
use comity_transport::datagram::{CloseReason, Config, Event, Violation};
use comity_transport::timeline::{DropPolicy, Reliability};
use comity_transport::wire::frame::{Ack, AckRange, AckRanges, Frame, ReceiverReport};
use comity_transport::wire::{CloseCode, Stamp};
use comity_units::{PacketNumber, Span};

use crate::peer::{World, header};

fn reliable() -> Config {
    Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        ..Config::default()
    }
}

/// An end that has sent some hundred packets, all acknowledged so far.
fn busy() -> World {
    let mut world = World::new(reliable());
    let mut acknowledged = 0;
    for _ in 0..60 {
        world.submit(10_000);
        world.pass(Span::from_millis(40));
        // Each packet in its own range if a number was skipped.
        let reported: Vec<u64> = world.sent[acknowledged..]
            .iter()
            .map(|sent| sent.0)
            .collect();
        acknowledged = world.sent.len();
        for number in reported {
            world.acknowledge(&[(number, number)]).expect("the truth");
        }
    }
    world
}

#[test]
fn acknowledging_a_skipped_number_closes_the_connection() {
    let mut world = busy();
    let left_out = world
        .sent
        .windows(2)
        .find(|pair| pair[1].0 > pair[0].0 + 1)
        .map(|pair| pair[0].0 + 1)
        .expect("one in 128 to 383 numbers is left out");
    assert!((128..=384).contains(&left_out), "{left_out}");
    let all = world.sent.last().expect("some were sent").0;
    let number = PacketNumber::new(left_out);
    assert_eq!(
        world.acknowledge(&[(0, all)]),
        Err(Violation::AcknowledgedUnsent { number })
    );
    assert_eq!(world.closed_with, Some(CloseCode::OPTIMISTIC_ACK));
    assert!(matches!(
        world.events.last(),
        Some(Event::Closed(CloseReason::Violation(_)))
    ));
    world.check_sums();
}

#[test]
fn acknowledgements_of_settled_packets_change_nothing() {
    let mut world = busy();
    let before = world.end.statistics();
    let first = world.sent[0].0;
    for _ in 0..10_000 {
        world
            .acknowledge(&[(first, first + 50)])
            .expect("the truth");
    }
    let after = world.end.statistics();
    assert_eq!(after.outbox, before.outbox);
    assert_eq!(after.path.window, before.path.window);
    assert_eq!(after.path.srtt, before.path.srtt);
}

/// 128 ranges with gaps of one number each, repeatedly: the packets in the gaps are lost once,
/// without further effects.
#[test]
fn floods_of_ranges_cost_no_memory() {
    let mut world = busy();
    let last = world.sent.last().expect("some were sent").0;
    let settled: Vec<(u64, u64)> = world
        .sent
        .iter()
        .rev()
        .step_by(2)
        .take(128)
        .map(|sent| (sent.0, sent.0))
        .collect();
    assert!(settled.len() == 128 && settled[0].0 == last);
    let before = held();
    for _ in 0..2_000 {
        world.acknowledge(&settled).expect("the truth");
    }
    assert!(held() - before < 200_000, "{} bytes", held() - before);
    assert_eq!(world.end.statistics().sent.lost_packets, 0);
}

/// A peer has no use for a second Ack frame, which could only add work.
#[test]
fn of_two_acks_in_a_packet_the_first_counts() {
    let mut world = World::new(reliable());
    for _ in 0..3 {
        world.submit(1_000);
        world.pass(Span::from_millis(1));
    }
    let ranges = [0, 1, 1_000_000].map(|number| {
        let number = PacketNumber::new(number);
        let (first, last) = (number, number);
        [AckRange { first, last }]
    });
    let acks = ranges.each_ref().map(|ranges| {
        Frame::Ack(Ack {
            proof: None,
            ranges: AckRanges::new(ranges).expect("one range"),
            delay: Span::ZERO,
            arrival: Stamp::from_micros(0),
            ecn: None,
        })
    });
    let open = |world: &World| {
        let sections = world.end.statistics().outbox.sections;
        sections.submitted - sections.acknowledged
    };
    assert_eq!(open(&world), 3);
    world.say(&acks).expect("two are ignored");
    assert_eq!(open(&world), 2);
    world.say(&acks[1..2]).expect("the truth");
    assert_eq!(open(&world), 1);
}

/// The peer sends without end and never acknowledges anything, so no packet record is ever settled.
/// Of every second packet, 64 ranges are remembered. An older packet may have come before or not:
/// it is ignored, and counts neither as a duplicate nor as received.
#[test]
fn a_packet_that_is_too_old_stays_missing() {
    let mut world = World::new(reliable());
    let ping = [Frame::Ping];
    for number in (10..=138).step_by(2) {
        world.next = number;
        world.say(&ping).unwrap();
    }
    let counts = |world: &World| {
        let received = world.end.statistics().received;
        (
            received.packets,
            received.duplicates,
            received.missing_packets,
        )
    };
    let before = counts(&world);
    assert_eq!((before.0, before.1), (65, 0));
    for number in [9, 10, 11] {
        world.next = number;
        world.say(&ping).unwrap();
    }
    assert_eq!(counts(&world), before);
    world.next = 12;
    world.say(&ping).unwrap();
    assert_eq!(counts(&world), (65, 1, before.2));
    world.next = 13;
    world.say(&ping).unwrap();
    assert_eq!(counts(&world), (66, 1, before.2 - 1));
}

#[test]
fn a_peer_that_never_acknowledges_costs_no_memory_and_times_out() {
    let mut world = World::new(Config::default());
    // The buffer is so full that each acknowledgement carries a Credit frame, which requires an
    // acknowledgement.
    world.piece(&header(0, 12 << 20), 1_000).expect("room");
    let before = held();
    let mut highest = 0;
    while world.end.is_open() {
        for _ in 0..200 {
            let _ = world.say(&[Frame::Ping]);
        }
        world.pass(Span::from_millis(100));
        // The memory of the test's own record does not count.
        world.sent.clear();
        world.sent.shrink_to_fit();
        highest = highest.max(held() - before);
        assert!(world.next < 10_000_000, "it is never left");
    }
    assert!(world.next > 100_000, "after {} packets", world.next);
    assert!(highest < 4 << 20, "{highest} bytes");
    assert!(world.events.contains(&Event::Closed(CloseReason::Idle)));
    let after = world.now.as_secs_f64();
    assert!((60.0..240.0).contains(&after), "after {after} s");
}

/// The same with an end that has data to send, at a window that cannot open.
#[test]
fn unacknowledged_data_stays_within_window_and_buffer() {
    let config = Config {
        send_buffer: 1 << 20,
        ..reliable()
    };
    let before = held();
    let mut world = World::new(config);
    for _ in 0..20 {
        world.submit(50_000);
    }
    let mut highest = 0;
    while world.end.is_open() {
        world.say(&[Frame::Ping]).expect("no violation");
        world.pass(Span::from_millis(500));
        world.check_sums();
        highest = highest.max(held() - before);
    }
    assert!(highest < 3 << 20, "{highest} bytes");
    // Ten packets of the initial window, a probe for each expiry, and a few other frames.
    let asked = world.sent.iter().filter(|sent| sent.1).count();
    assert!((70..200).contains(&asked), "{asked} packets");
}

/// Whoever reports more than it was sent would make the sums over all receivers useless.
#[test]
fn a_report_claims_no_more_than_was_sent() {
    let mut world = busy();
    let report = |all: u64, part: u64| {
        Frame::ReceiverReport(ReceiverReport {
            complete: all,
            on_time: part,
            late: part,
            with_gaps: part,
            bytes: all,
            packets: all,
            duplicates: all,
            one_way_latest_us: 0,
            one_way_least_us: 0,
            jitter: Span::ZERO,
            buffered: 0,
            drift_ppb: 0,
        })
    };
    // The largest that the format has.
    const MOST: u64 = (1 << 62) - 1;
    world.say(&[report(40, 20)]).expect("an honest report");
    let peer = world.end.statistics().peer.expect("a report");
    let reported = (peer.complete, peer.on_time, peer.late, peer.gaps);
    assert_eq!(reported, (40, 20, 20, 20));
    world.say(&[report(MOST, MOST)]).expect("no violation");
    let statistics = world.end.statistics();
    let peer = statistics.peer.expect("a report");
    let reported = (peer.complete, peer.on_time, peer.late, peer.gaps);
    assert_eq!(reported, (60, 60, 0, 0));
    assert_eq!(peer.bytes, statistics.sent.section_bytes);
    assert_eq!(peer.packets, statistics.sent.packets);
    assert_eq!(peer.duplicates, statistics.sent.packets);
}
