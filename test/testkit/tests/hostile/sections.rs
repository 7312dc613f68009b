//! Impossible sections and times.

use bytes::Bytes;
use comity_transport::datagram::{CloseReason, Config, Event, Violation};
use comity_transport::timeline::inbox::GapReason;
use comity_transport::timeline::outbox::SubmitError;
use comity_transport::timeline::{Deliver, Delivery, Importance, Outgoing, StreamId, inbox};
use comity_transport::wire::CloseCode;
use comity_transport::wire::frame::{Close, End, Frame, SectionHeader};
use comity_transport::wire::limits::MAX_TIME_US;
use comity_units::{Span, Time};

use crate::peer::{World, header};

fn paced() -> Config {
    Config {
        deliver: Deliver::Paced,
        ..Config::default()
    }
}

/// A section of one packet, made now and due `latency` later on the peer's clock.
fn timely(world: &World, section: u64, latency: Span) -> SectionHeader {
    SectionHeader {
        source_time: world.now,
        deadline: world.now + latency,
        ..header(section, 1_000)
    }
}

/// The clock map follows the minimum delay at 10 ms per second. False departures move it slowly,
/// and true ones move it back when the false ones have left its memory of 16 s.
#[test]
fn false_departures_move_the_clock_little_and_not_for_long() {
    let mut world = World::new(paced());
    let truth = |world: &World| (world.now.as_nanos() / 1_000) as u32;
    world.say(&[Frame::Ping]).expect("no violation");
    for lie in [-900_000_000_i32, 3_000_000, 1_200_000_000, -1, i32::MAX / 4] {
        let departure = truth(&world).wrapping_add_signed(lie);
        world
            .say_at(departure, &[Frame::Ping])
            .expect("no violation");
        world.pass(Span::from_millis(200));
        let apart = world.end.to_local(world.now).as_nanos() as i64 - world.now.as_nanos() as i64;
        assert!(apart.abs() <= 10_000_000, "{apart} ns after a second");
        assert!(world.end.clock_drift_ppm().is_finite());
    }
    for _ in 0..4_000 {
        world.say(&[Frame::Ping]).expect("no violation");
        world.pass(Span::from_millis(10));
    }
    let section = timely(&world, 0, Span::from_millis(200));
    let due = world.now + Span::from_millis(200);
    world.piece(&section, 1_000).expect("room");
    world.pass(Span::from_millis(198));
    assert!(world.deliveries.is_empty(), "paced to {due}");
    world.pass(Span::from_millis(4));
    assert!(
        matches!(world.deliveries.as_slice(), [Delivery::Section(received)] if !received.is_late),
        "{:?}",
        world.deliveries
    );
}

/// Random departures: whatever the peer's clock, its sections are delivered once, at the latest
/// when the connection ends.
#[test]
fn a_random_clock_delays_nothing_for_ever() {
    let mut world = World::new(paced());
    let mut departure = 1_u32;
    for section in 0..500 {
        departure = departure
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        world
            .say_at(departure, &[Frame::Ping])
            .expect("no violation");
        let header = timely(&world, section, Span::from_millis(50));
        world.piece(&header, 1_000).expect("room");
        world.pass(Span::from_millis(10));
        assert!(world.end.clock_drift_ppm().is_finite());
    }
    world.end.close(world.now, CloseCode::DONE, "");
    world.drain();
    assert_eq!(world.deliveries.len(), 500);
    world.check_sums();
}

#[test]
fn deadlines_at_the_end_of_time_and_at_its_beginning() {
    let mut world = World::new(paced());
    let end_of_time = Time::from_micros(MAX_TIME_US);
    let extremes = [
        (Time::ZERO, Time::ZERO),
        (Time::ZERO, Time::from_micros(MAX_TIME_US - 1)),
        (end_of_time, end_of_time),
        (
            end_of_time,
            end_of_time + Span::from_micros(MAX_TIME_US - 1),
        ),
        (Time::ZERO, Time::MAX),
    ];
    for (section, (source_time, deadline)) in (0..).zip(extremes) {
        let header = SectionHeader {
            source_time,
            deadline,
            ..header(section, 1_000)
        };
        world.piece(&header, 1_000).expect("room");
    }
    world.pass(Span::from_secs(4));
    // Sections due before their arrival are delivered late; those without a deadline follow the
    // waiting ones.
    let late: Vec<_> = world.deliveries.iter().collect();
    assert!(matches!(late.as_slice(), [Delivery::Section(first)] if first.is_late));
    let statistics = world.end.statistics();
    assert_eq!(statistics.inbox.held, 4_000);
    assert!(world.end.next_timer() > world.now, "nothing spins for them");
    world.end.close(world.now, CloseCode::DONE, "");
    world.drain();
    assert_eq!(world.deliveries.len(), 5, "each once");
    world.check_sums();
}

#[test]
fn contradictory_packets_about_a_section_end_the_connection() {
    let changes: [fn(&mut SectionHeader); 5] = [
        |header| header.total += 1,
        |header| header.importance += 1,
        |header| header.deadline = Time::from_secs(5),
        |header| header.source_time = Time::from_millis(1),
        |header| header.needs = Some(0),
    ];
    for change in changes {
        let mut world = World::new(paced());
        let first = header(1, 5_000);
        world.piece(&first, 100).expect("room");
        let mut second = SectionHeader {
            offset: 100,
            ..first
        };
        change(&mut second);
        assert!(matches!(
            world.piece(&second, 100),
            Err(Violation::Sections(inbox::Violation::Contradiction { .. }))
        ));
        assert_eq!(world.closed_with, Some(CloseCode::SECTION_STATE));
        // Received data is delivered with gaps, and nothing after it.
        let gaps = world.deliveries.iter().map(|delivery| match delivery {
            Delivery::Gap(gap) => gap.reason,
            Delivery::Section(section) => panic!("{section:?}"),
        });
        assert_eq!(gaps.collect::<Vec<_>>(), [GapReason::Closed; 2]);
        let more = header(2, 10);
        world.piece(&more, 10).expect("nobody listens");
        assert_eq!(world.deliveries.len(), 2);
    }
}

#[test]
fn a_stream_has_one_end_and_no_section_beyond_it() {
    let end = |sections| {
        Frame::End(End {
            stream: 0,
            sections,
        })
    };
    let mut world = World::new(paced());
    world.say(&[end(2)]).expect("an end");
    world.say(&[end(2)]).expect("the same end");
    assert!(matches!(
        world.say(&[end(3)]),
        Err(Violation::Sections(inbox::Violation::End { .. }))
    ));
    let mut world = World::new(paced());
    world.say(&[end(2)]).expect("an end");
    assert!(matches!(
        world.piece(&header(2, 10), 10),
        Err(Violation::Sections(inbox::Violation::End { .. }))
    ));
    assert_eq!(world.closed_with, Some(CloseCode::SECTION_STATE));
}

/// A Close ends the processing of its packet.
#[test]
fn frames_after_a_close_are_ignored() {
    let close = || {
        Frame::Close(Close {
            code: CloseCode::DONE,
            reason: "bye",
        })
    };
    let mut world = World::new(paced());
    let end = Frame::End(End {
        stream: 3,
        sections: 9,
    });
    world
        .say(&[close(), close(), end])
        .expect("no violation any more");
    assert_eq!(world.events.len(), 1, "{:?}", world.events);
    assert!(world.deliveries.is_empty());
    assert_eq!(world.closed_with, None, "a Close is not answered");
}

/// Random bytes sealed with the right key close the connection, without worse effects.
#[test]
fn unreadable_payloads_close_with_their_code() {
    for (payload, code) in [
        (&[0, 0, 0, 0][..], CloseCode::FRAME_ENCODING),
        (&[0, 0, 0, 0, 0x13], CloseCode::UNKNOWN_FRAME),
        (&[0, 0, 0, 0, 0x02, 0xff], CloseCode::FRAME_ENCODING),
        (&[0, 0], CloseCode::FRAME_ENCODING),
    ] {
        let mut world = World::new(paced());
        assert!(matches!(world.give(payload), Err(Violation::Malformed(_))));
        assert_eq!(world.closed_with, Some(code), "{payload:?}");
    }
}

/// A peer that keeps sending to a closed end receives the reason again, at growing intervals, and
/// finally nothing.
#[test]
fn a_closed_end_answers_one_packet_of_each_doubling() {
    let mut world = World::new(paced());
    assert!(world.give(&[0, 0]).is_err());
    let before = world.sent.len();
    for _ in 0..1_000 {
        world.say(&[Frame::Ping]).expect("nobody listens");
    }
    assert_eq!(world.sent.len() - before, 10, "1, 2, 4, ... 512");
    // The end repeats it five times by itself, once in each half of a probe timeout.
    world.pass(Span::from_secs(10));
    assert!(world.end.is_closed());
    world.say(&[Frame::Ping]).expect("nobody listens");
    assert_eq!(world.sent.len() - before, 10 + 5);
}

/// An application may be hostile too: its requests cannot produce packets without end.
#[test]
fn deadlines_beyond_the_range_of_a_frame_mean_none() {
    let far = [
        (Time::ZERO, Time::from_nanos(u64::MAX - 1)),
        (
            Time::from_nanos(u64::MAX - 2),
            Time::from_nanos(u64::MAX - 1),
        ),
        (Time::MAX, Time::MAX),
        (
            Time::from_micros(MAX_TIME_US),
            Time::from_micros(2 * MAX_TIME_US),
        ),
    ];
    for (source_time, deadline) in far {
        let mut world = World::new(paced());
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(1),
            source_time,
            deadline,
            needs: None,
            payload: Bytes::from_static(&[7; 100]),
        };
        world.end.submit(world.now, section).expect("room");
        world.drain();
        assert_eq!(world.sent.len(), 1, "one packet has it all");
        world.acknowledge(&[(0, 0)]).expect("the truth");
        assert_eq!(world.end.statistics().outbox.sections.acknowledged, 1);
        world.check_sums();
    }
}

#[test]
fn nothing_is_accepted_after_the_end() {
    let mut world = World::new(paced());
    world.submit(100);
    world.end.close(world.now, CloseCode::DONE, "");
    for stream in [0, 9] {
        let section = Outgoing {
            stream: StreamId(stream),
            importance: Importance(1),
            source_time: world.now,
            deadline: Time::MAX,
            needs: None,
            payload: Bytes::from_static(&[7; 100]),
        };
        let refused = world.end.submit(world.now, section);
        assert_eq!(refused, Err(SubmitError::Closed));
    }
    world.drain();
    // The accepted section has its outcome, and the end is the last event.
    assert!(matches!(
        world.events.as_slice(),
        [Event::Outcome(_), Event::Closed(CloseReason::Local { .. })]
    ));
    world.check_sums();
}
