//! Sections and times that cannot be.

use bytes::Bytes;
use comity_transport::datagram::{CloseReason, Config, Event, Violation};
use comity_transport::timeline::inbox::GapReason;
use comity_transport::timeline::outbox::{IntakeError, SubmitError};
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

/// A section of the size of a packet, made now and due `latency` later on the peer's clock.
fn timely(world: &World, section: u64, latency: Span) -> SectionHeader {
    SectionHeader {
        source_time: world.now,
        deadline: world.now + latency,
        ..header(section, 1_000)
    }
}

/// The map of the clocks follows the least delay by 10 ms in a second: lies move it slowly, and the
/// truth moves it back when they have left its memory of 16 s.
#[test]
fn departures_that_lie_move_the_clock_little_and_not_for_long() {
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

/// Departures at random: whatever a peer says of its clock, its sections are handed over once, at
/// the latest when the connection ends.
#[test]
fn a_clock_that_makes_no_sense_delays_nothing_for_ever() {
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
    world.check_accounts();
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
    // What was due before it came is handed over late; what has no deadline is behind those that
    // wait.
    let late: Vec<_> = world.deliveries.iter().collect();
    assert!(matches!(late.as_slice(), [Delivery::Section(first)] if first.is_late));
    let statistics = world.end.statistics();
    assert_eq!(statistics.inbox.held, 4_000);
    assert!(world.end.next_timer() > world.now, "nothing spins for them");
    world.end.close(world.now, CloseCode::DONE, "");
    world.drain();
    assert_eq!(world.deliveries.len(), 5, "each once");
    world.check_accounts();
}

#[test]
fn two_packets_that_differ_about_a_section_end_the_connection() {
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
        // What had come is handed over as it is, and nothing after it.
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
fn an_end_is_one_and_nothing_lies_beyond_it() {
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

/// A Close is the last word of its packet, whatever stands behind it.
#[test]
fn what_stands_behind_a_close_is_not_heard() {
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

/// Random bytes that are sealed with the right key are a reason to close, and nothing worse.
#[test]
fn payloads_that_cannot_be_read_close_with_their_code() {
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

/// Who keeps talking to a closed end hears the reason again, ever more rarely, and then nothing.
#[test]
fn a_closed_end_answers_one_packet_of_each_doubling() {
    let mut world = World::new(paced());
    assert!(world.give(&[0, 0]).is_err());
    let before = world.sent.len();
    for _ in 0..1_000 {
        world.say(&[Frame::Ping]).expect("nobody listens");
    }
    assert_eq!(world.sent.len() - before, 10, "1, 2, 4, ... 512");
    // It says so five times more by itself, once in each half of a probe timeout.
    world.pass(Span::from_secs(10));
    assert!(world.end.is_closed());
    world.say(&[Frame::Ping]).expect("nobody listens");
    assert_eq!(world.sent.len() - before, 10 + 5);
}

/// An application may be hostile too, or careless: what it asks for cannot make packets without
/// end.
#[test]
fn deadlines_that_no_frame_can_tell_are_none() {
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
        world.check_accounts();
    }
}

#[test]
fn nothing_is_taken_after_the_end() {
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
        assert_eq!(refused, Err(SubmitError::Stream(IntakeError::Closed)));
    }
    world.drain();
    // The one that was taken has its outcome, and the end is the last that is heard.
    assert!(matches!(
        world.events.as_slice(),
        [Event::Outcome(_), Event::Closed(CloseReason::Local { .. })]
    ));
    world.check_accounts();
}
