//! The time-line list on cases worked out by hand. Stream offsets and wire offsets begin at 1 and
//! are equal before the first jump.

use alloc::string::ToString;

use super::*;

const fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn line() -> Line {
    Line::new(TimelineConfig::PAPER, &RttConfig::RFC6298)
}

/// A stream without an acknowledgement, sent up to `max`.
const fn sent(max: u64, end: u64) -> Standing {
    Standing {
        una: 1,
        next: max,
        max,
        end,
    }
}

/// A line with this many jumps over 5 bytes each, at the stream offsets 10, 20, ...
fn with_jumps(count: u64) -> Line {
    let mut line = line();
    for number in 1..=count {
        let at = number * 10;
        let from = at + 5 * (number - 1);
        line.jump(1, at, from, from + 5);
    }
    line
}

#[test]
fn a_section_that_reaches_too_far_ahead_is_refused() {
    let mut line = line();
    let reach = MAX_REACH + 1;
    let refused = SectionError::TooFarAhead { reach };
    assert_eq!(line.add(reach, ms(100)), Err(refused));
    let text = refused.to_string();
    assert!(text.contains("1073741825 bytes") && text.contains("at most 1073741824"));
    assert_eq!(line.add(MAX_REACH, ms(100)), Ok(()));
    assert_eq!(line.statistics.sections, 1);
    // Without a deadline there is no limit.
    assert_eq!(line.add(reach, Time::MAX), Ok(()));
}

#[test]
fn a_section_ends_where_the_next_begins() {
    let mut line = line();
    line.add(100, ms(100)).unwrap();
    line.add(100, ms(200)).unwrap();
    assert_eq!((line.section_end(1), line.section_end(100)), (101, 101));
    assert_eq!(
        (line.section_end(101), line.section_end(201)),
        (201, u64::MAX)
    );
}

#[test]
fn the_lifetime_timer_may_expire_on_ticks_alone() {
    // At 30, 130, 230 ms.
    let rtt = RttConfig {
        tick: Span::from_millis(100),
        phase: Span::from_millis(30),
        ..RttConfig::RFC6298
    };
    let config = TimelineConfig {
        lifetime_on_tick: true,
        ..TimelineConfig::PAPER
    };
    let mut line = Line::new(config, &rtt);
    for deadline in [ms(130), ms(131), ms(230), Time::MAX] {
        line.add(10, deadline).unwrap();
    }
    assert_eq!(line.lifetime(), ms(130));
    line.on_lifetime(ms(130), sent(11, 41));
    assert_eq!((line.obsolete, line.lifetime()), (11, ms(230)));
    // Both sections of that tick expire.
    line.on_lifetime(ms(230), sent(31, 41));
    assert_eq!((line.obsolete, line.lifetime()), (31, Time::MAX));
}

#[test]
fn truncation_keeps_the_remaining_sections() {
    let mut line = line();
    line.add(100, ms(100)).unwrap();
    line.add(100, ms(200)).unwrap();
    line.truncate(51);
    assert_eq!((line.section_end(1), line.section_end(51)), (51, u64::MAX));
    line.add(10, ms(300)).unwrap();
    assert_eq!((line.section_end(51), line.lifetime()), (61, ms(100)));
    line.truncate(1);
    assert_eq!(
        (line.section_end(1), line.lifetime()),
        (u64::MAX, Time::MAX)
    );
}

#[test]
fn data_without_deadlines_takes_no_memory() {
    let mut line = line();
    line.add(10, Time::MAX).unwrap();
    let before = line.heap_memory();
    for _ in 0..1_000 {
        line.add(10, Time::MAX).unwrap();
    }
    assert_eq!(line.heap_memory(), before);
    assert_eq!(line.section_end(1), 10_011);
    assert_eq!(line.lifetime(), Time::MAX);
}

#[test]
fn memory_grows_with_sections_and_with_jumps() {
    let empty = line().heap_memory();
    assert_eq!(empty, size_of::<Line>());
    let mut line = with_jumps(1_000);
    let with_jumps = line.heap_memory() - empty;
    let jump = size_of::<Jump>();
    assert!((1_000 * jump..=2_048 * jump).contains(&with_jumps));
    for number in 0..1_000 {
        line.add(10, ms(number)).unwrap();
    }
    let more = line.heap_memory() - empty - with_jumps;
    let section = size_of::<Section>();
    assert!((1_000 * section..=2_048 * section).contains(&more));
    for number in 0..1_000 {
        line.free.insert(10 * number..10 * number + 5, ());
    }
    let free = line.heap_memory() - empty - with_jumps - more;
    assert_eq!(free, line.free.heap_memory());
    assert!(free >= 1_000 * size_of::<(u64, u64)>());
}

/// The second section expires before the first: its data is discarded while the first is current.
#[test]
fn stale_data_is_passed_over_whatever_the_order_of_deadlines() {
    let mut line = line();
    line.add(100, ms(200)).unwrap();
    line.add(100, ms(100)).unwrap();
    assert!(!line.is_quiet(ms(99)));
    assert_eq!(line.discard_stale(ms(99), sent(101, 201)), 201);
    assert_eq!(line.discard_stale(ms(100), sent(101, 201)), 101);
    let counts = (line.statistics.expired, line.statistics.discarded_bytes);
    assert_eq!(counts, (1, 100));
    assert_eq!((line.wire(100), line.wire(101)), (100, 201));
}

#[test]
fn the_rest_of_a_begun_section_is_discarded_at_its_deadline() {
    for now in [ms(100), ms(101)] {
        let mut line = line();
        line.add(100, ms(100)).unwrap();
        line.add(100, ms(200)).unwrap();
        assert!(line.is_quiet(ms(99)) && !line.is_quiet(now));
        assert_eq!(line.discard_stale(ms(99), sent(41, 201)), 201);
        assert_eq!(line.discard_stale(now, sent(41, 201)), 141);
        // It counts as expired when the timer finds it, since a part of it was sent.
        assert_eq!(line.statistics.expired, 0);
        assert_eq!((line.wire(41), line.section_end(1)), (101, 41));
    }
}

#[test]
fn a_completely_sent_section_leaves_no_jump() {
    let mut line = line();
    line.add(100, ms(100)).unwrap();
    line.add(100, ms(200)).unwrap();
    let moved = line.on_lifetime(ms(100), sent(101, 201));
    assert_eq!(
        moved,
        Moved {
            next: 101,
            end: 201
        }
    );
    assert_eq!((line.statistics.jumps, line.statistics.expired), (0, 1));
    assert_eq!(line.lifetime(), ms(200));
    // One byte less was sent: that byte is discarded.
    let mut line = self::line();
    line.add(100, ms(100)).unwrap();
    line.add(100, ms(200)).unwrap();
    let moved = line.on_lifetime(ms(100), sent(100, 201));
    assert_eq!(
        moved,
        Moved {
            next: 100,
            end: 200
        }
    );
    assert_eq!(
        (line.statistics.jumps, line.statistics.discarded_bytes),
        (1, 1)
    );
}

#[test]
fn a_completely_acknowledged_section_does_not_expire() {
    for (confirmed, expired) in [(101, 0), (100, 1)] {
        let mut line = line();
        line.add(100, ms(100)).unwrap();
        line.on_confirmed(confirmed);
        line.on_lifetime(ms(100), sent(101, 101));
        assert_eq!(line.statistics.expired, expired);
    }
}

/// Two obsolete sections of 20 bytes, each with 10 sent bytes, and an acknowledgement from offset 1
/// on. Checks how many bytes it leaves in the window, and where the window begins.
#[test]
fn the_window_space_of_passed_sections_may_be_held() {
    let held = |acknowledged: u64, replaced: u64| {
        let config = TimelineConfig {
            holds_passed: true,
            ..TimelineConfig::PAPER
        };
        let mut line = Line::new(config, &RttConfig::RFC6298);
        for deadline in [100, 200, 300] {
            line.add(20, ms(deadline)).unwrap();
        }
        line.on_lifetime(ms(100), sent(11, 61));
        line.on_lifetime(ms(200), sent(21, 51));
        assert_eq!((line.obsolete, line.jumps.len()), (21, 2));
        line.on_replacement((1, 1 + replaced), 31);
        let una = line.offset(acknowledged);
        line.on_confirmed(acknowledged);
        let before = line.base(1);
        assert_eq!(before, 1 + replaced);
        let passed = line.on_advance(1, una);
        (passed - replaced, line.base(una))
    };
    // In the first section, and after its last sent byte.
    assert_eq!(held(6, 0), (0, 6));
    assert_eq!(held(11, 0), (0, 11));
    // At the beginning of the second section, and in it.
    assert_eq!(held(21, 0), (10, 1));
    assert_eq!(held(26, 0), (10, 6));
    assert_eq!(held(26, 4), (6, 10));
    // In the third section.
    assert_eq!(held(41, 0), (20, 1));
    assert_eq!(held(46, 0), (20, 6));
}

/// Some of the jumps below the acknowledgement are kept for late acknowledgements. The translation
/// of later offsets does not change.
#[test]
fn old_jumps_are_forgotten_and_later_offsets_keep_their_numbers() {
    let mut line = with_jumps(7);
    let wires = |line: &Line| [25, 35, 45, 55, 65, 75].map(|offset| line.wire(offset));
    let before = wires(&line);
    assert_eq!(before, [35, 50, 65, 80, 95, 110]);
    line.on_advance(50, 59);
    assert_eq!((line.jumps.len(), wires(&line)), (6, before));
    line.on_advance(59, 60);
    assert_eq!((line.jumps.len(), wires(&line)), (5, before));
    assert_eq!(
        before.map(|wire| line.offset(wire)),
        [25, 35, 45, 55, 65, 75]
    );
}

/// A peer that knows a jump does not receive it again.
#[test]
fn a_void_is_named_until_the_acknowledgement_has_passed_it() {
    let line = with_jumps(2);
    let initial = SeqNo::new(1_000);
    let number = |wire: u32| initial + wire;
    let void = SeqUpdate {
        expected: number(1),
        void_start: number(10),
        void_end: number(15),
    };
    assert_eq!(line.update(1, 12, initial), void);
    assert_eq!(line.update(10, 12, initial), SeqUpdate::to(number(15)));
    let next = SeqUpdate {
        expected: number(15),
        void_start: number(25),
        void_end: number(30),
    };
    assert_eq!(line.update(10, 22, initial), next);
}

#[test]
fn in_a_recovery_that_passed_obsolete_data_only_retransmissions_are_repairs() {
    let mut line = line();
    line.obsolete = 50;
    line.begin_recovery();
    assert!(line.is_repair(60), "nothing was passed");
    line.on_retransmitted(100);
    assert!(!line.is_repair(49));
    assert!(line.is_repair(99) && !line.is_repair(100));
    // The next recovery has passed nothing yet.
    line.begin_recovery();
    assert!(line.is_repair(100));
}
