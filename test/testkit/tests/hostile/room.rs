//! More data than there is room for.

use comity_testkit::memory::held;
use comity_transport::datagram::{Config, Violation};
use comity_transport::timeline::inbox;
use comity_transport::timeline::{Deliver, Delivery, Reason, SectionId};
use comity_transport::wire::CloseCode;
use comity_transport::wire::frame::{Dropped, End, Floor, Frame, SectionHeader};
use comity_transport::wire::limits::MAX_SECTION_COUNT;
use comity_units::Time;

use crate::peer::{World, header};

const BUFFER: u64 = 1 << 20;

/// Delivers at deadlines, so the peer decides how long sections are held.
fn paced() -> Config {
    Config {
        deliver: Deliver::Paced,
        receive_buffer: BUFFER,
        ..Config::default()
    }
}

/// In the format's furthest future.
const NEVER_COMES: Time = Time::from_secs(1 << 32);

#[test]
fn bytes_beyond_the_buffer_are_dropped_and_not_acknowledged() {
    let mut world = World::new(paced());
    let before = held();
    // Each reserves its whole length with one byte.
    for section in 0..1_000 {
        let _ = world.piece(&header(section, 100_000), 1);
    }
    assert!(world.end.is_open(), "data in flight is not a violation");
    let statistics = world.end.statistics();
    // None was ever complete: ten of 100,000 bytes fit, with one byte of each.
    assert_eq!(statistics.inbox.held, 10);
    assert_eq!(statistics.received.packets, 10);
    let grown = held() - before;
    assert!(grown < 3 * BUFFER as isize, "{grown} bytes");
    world.check_sums();
}

/// Bytes are not the only cost: every section has a record, however short it is.
#[test]
fn a_hundred_thousand_sections_of_one_byte_stay_within_the_buffer() {
    let mut world = World::new(paced());
    let before = held();
    let mut highest = 0;
    for stream in 0..64 {
        for section in 0..2_000 {
            let header = SectionHeader {
                stream,
                deadline: NEVER_COMES,
                ..header(section, 1)
            };
            let _ = world.piece(&header, 1);
        }
        highest = highest.max(held() - before);
    }
    assert!(world.end.is_open());
    // One for each 256 bytes of the buffer.
    assert_eq!(world.end.statistics().inbox.held, BUFFER / 256);
    assert!(highest < 4 * BUFFER as isize, "{highest} bytes");
    world.check_sums();
}

#[test]
fn sections_dropped_before_they_begin_stay_within_the_buffer() {
    let mut world = World::new(paced());
    // The first of the stream waits for ever, so nothing after it is settled.
    let first = SectionHeader {
        deadline: NEVER_COMES,
        ..header(0, 1)
    };
    world.piece(&first, 1).expect("room");
    let before = held();
    for section in 0..300_000 {
        let floor = Floor {
            stream: 0,
            floor: section,
        };
        let dropped = Dropped {
            stream: 0,
            section: section + 1,
            reason: Reason::Shed,
        };
        let result = world.say(&[Frame::Floor(floor), Frame::Dropped(dropped)]);
        assert_eq!(result, Ok(()));
    }
    let grown = held() - before;
    assert!(grown < 4 * BUFFER as isize, "{grown} bytes");
    assert!(world.end.is_open());
}

#[test]
fn a_fragmented_section_is_held_in_a_limited_number_of_pieces() {
    let mut world = World::new(paced());
    let before = held();
    let total = 900_000;
    for at in 0..20_000 {
        let crumb = SectionHeader {
            offset: at * 40,
            ..header(0, total)
        };
        world.piece(&crumb, 1).expect("no violation");
    }
    let statistics = world.end.statistics();
    assert_eq!(statistics.inbox.held, 2_048);
    assert_eq!(statistics.received.packets, 2_048);
    let grown = held() - before;
    assert!(grown < 3 * BUFFER as isize, "{grown} bytes");
    // Whoever fills the holes is welcome.
    for at in 0..900 {
        let piece = SectionHeader {
            offset: at * 1_000,
            ..header(0, total)
        };
        world.piece(&piece, 1_000).expect("no violation");
    }
    assert!(matches!(
        world.deliveries.as_slice(),
        [Delivery::Section(_)]
    ));
    world.check_sums();
}

#[test]
fn the_65th_stream_is_refused() {
    for what in 0..4_u8 {
        let mut world = World::new(paced());
        let before = held();
        let mut opened = 0;
        let mut result = Ok(());
        for stream in 0..=u16::MAX {
            result = match what {
                0 => world.piece(
                    &SectionHeader {
                        stream,
                        ..header(0, 10)
                    },
                    1,
                ),
                1 => world.say(&[Frame::Floor(Floor { stream, floor: 1 })]),
                2 => world.say(&[Frame::End(End {
                    stream,
                    sections: 0,
                })]),
                _ => world.say(&[Frame::Dropped(Dropped {
                    stream,
                    section: 0,
                    reason: Reason::Shed,
                })]),
            };
            if result.is_err() {
                break;
            }
            opened += 1;
        }
        assert_eq!(opened, 64);
        assert!(matches!(
            result,
            Err(Violation::Sections(inbox::Violation::TooManyStreams { .. }))
        ));
        assert_eq!(world.closed_with, Some(CloseCode::SECTION_LIMIT));
        let grown = held() - before;
        assert!(grown < 200_000, "{grown} bytes");
    }
}

/// A packet of 64 floors, each a million sections above the one before: the application gets one
/// gap for each at the most, and no memory is kept.
#[test]
fn a_floor_may_jump_any_number_of_sections_for_the_price_of_one() {
    let mut world = World::new(paced());
    let before = held();
    let jump = |floor| Frame::Floor(Floor { stream: 0, floor });
    let million = 1 << 20;
    let jumps: Vec<_> = (1..=64).map(|times| jump(times * million)).collect();
    world.say(&jumps).expect("within the limits");
    let skipped: Vec<_> = world.deliveries.drain(..).collect();
    assert!(
        matches!(skipped.as_slice(), [Delivery::Gap(gap)]
            if gap.section == SectionId(0) && gap.count == 64 * million),
        "{skipped:?}"
    );
    assert_eq!(world.end.statistics().inbox.gaps.obsolete, 64 * million);
    // A floor never moves back.
    world.say(&[jump(5)]).expect("an old packet");
    assert!(world.deliveries.is_empty());
    world.say(&[jump(MAX_SECTION_COUNT)]).expect("the highest");
    let end = Frame::End(End {
        stream: 0,
        sections: MAX_SECTION_COUNT,
    });
    world.say(&[end]).expect("there are no more");
    assert!(matches!(world.deliveries.as_slice(), [Delivery::Gap(gap)]
        if gap.count == MAX_SECTION_COUNT - 64 * million));
    assert!(held() - before < 100_000);
}

/// Whatever order the packets of a sender come in that skipped more sections than its peer keeps
/// apart, it breaks no limit: a Drop of one that is too far ahead says nothing.
#[test]
fn a_drop_that_is_too_far_ahead_says_nothing() {
    let mut world = World::new(paced());
    let far = u64::from(world.end.config().receive_sections) + 900;
    let drop = |section| {
        Frame::Dropped(Dropped {
            stream: 0,
            section,
            reason: Reason::Shed,
        })
    };
    world.say(&[drop(far)]).expect("within the limits");
    assert!(world.deliveries.is_empty());
    let floor = far + 1;
    world
        .say(&[Frame::Floor(Floor { stream: 0, floor })])
        .expect("within the limits");
    assert!(matches!(world.deliveries.as_slice(), [Delivery::Gap(gap)] if gap.count == floor));
    assert_eq!(world.end.statistics().inbox.gaps.sum(), floor);
}

/// An end that only sends grants no room, and keeps nothing of what a peer says all the same.
#[test]
fn an_end_that_takes_no_sections_keeps_nothing_of_them() {
    let mut world = World::new(Config {
        receive_buffer: 0,
        ..paced()
    });
    let before = held();
    for section in 0..10_000 {
        let stream = (section % 60_000) as u16;
        let header = SectionHeader {
            stream,
            deadline: NEVER_COMES,
            ..header(section, 1 << 20)
        };
        assert_eq!(world.piece(&header, 1), Ok(()));
        let frames = [
            Frame::Floor(Floor {
                stream,
                floor: section,
            }),
            Frame::Dropped(Dropped {
                stream,
                section: section + 2,
                reason: Reason::Shed,
            }),
            Frame::End(End {
                stream,
                sections: section + 9,
            }),
        ];
        assert_eq!(world.say(&frames), Ok(()));
    }
    assert!(world.end.is_open());
    assert_eq!(world.end.memory(), 0);
    assert!(world.deliveries.is_empty());
    // The packets without pieces of sections are acknowledged, the others are not.
    assert_eq!(world.end.statistics().received.packets, 10_000);
    let grown = held() - before;
    assert!(grown < 1 << 20, "{grown} bytes");
    // It sends as ever.
    world.submit(1_000);
    assert_eq!(world.end.statistics().sent.packets, world.sent.len() as u64);
}
