//! The effects of a token bucket, head starts and duplicate transmissions on the order of sending,
//! on cases worked out by hand.

use comity_transport::timeline::outbox::Fate;
use comity_transport::timeline::{
    Chunk, Elided, Outbox, Outgoing, PathEstimate, SectionId, StreamId, Tokens,
};
use comity_units::{Rate, Span, Time};

use crate::outbox_cases::{ms, outbox, section};

fn next(
    outbox: &mut Outbox<Elided>,
    now: Time,
    estimate: &PathEstimate,
) -> Option<(u64, u32, bool)> {
    let chunk = outbox.next_chunk(now, 1_000, estimate)?;
    Some((chunk.section.0, chunk.offset, chunk.is_retransmission))
}

fn saved(level: i64) -> PathEstimate {
    PathEstimate {
        tokens: Some(Tokens {
            level,
            depth: 10_000,
        }),
        ..PathEstimate::UNKNOWN
    }
}

#[test]
fn a_section_that_may_not_borrow_waits_for_one_that_may() {
    let mut outbox = outbox();
    outbox.submit(ms(0), section(2_000, 9, ms(200))).unwrap();
    outbox.submit(ms(0), section(2_000, 1, ms(100))).unwrap();
    // It is due first, but may not borrow.
    assert_eq!(next(&mut outbox, ms(1), &saved(0)), Some((0, 0, false)));
    assert_eq!(next(&mut outbox, ms(2), &saved(-10_000)), None);
    assert_eq!(next(&mut outbox, ms(3), &saved(1)), Some((1, 0, false)));
}

/// Half of it has left, so it may borrow half of the 8,000 bytes of a completely sent section.
#[test]
fn a_begun_section_may_borrow_to_complete() {
    let mut outbox = outbox();
    outbox.submit(ms(0), section(2_000, 9, ms(200))).unwrap();
    outbox.submit(ms(0), section(2_000, 1, ms(100))).unwrap();
    outbox.submit(ms(0), section(2_000, 1, ms(110))).unwrap();
    assert_eq!(next(&mut outbox, ms(0), &saved(1)), Some((1, 0, false)));
    let (least, less) = (saved(-3_999), saved(-4_000));
    assert_eq!(next(&mut outbox, ms(1), &less), Some((0, 0, false)));
    assert_eq!(next(&mut outbox, ms(2), &least), Some((1, 1_000, false)));
    // The third has not begun.
    assert_eq!(next(&mut outbox, ms(3), &least), Some((0, 1_000, false)));
    assert_eq!(next(&mut outbox, ms(4), &least), None);
}

#[test]
fn borrowed_tokens_hold_repairs_back_too() {
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1_000, 9, ms(200))).unwrap();
    outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    let first = outbox.next_chunk(ms(0), 1_000, &saved(1)).unwrap();
    assert_eq!(first.section, SectionId(1));
    outbox.on_lost(ms(40), &first);
    let (least, less) = (saved(-7_999), saved(-8_000));
    assert_eq!(next(&mut outbox, ms(40), &less), Some((0, 0, false)));
    assert_eq!(next(&mut outbox, ms(40), &less), None);
    assert_eq!(next(&mut outbox, ms(41), &least), Some((1, 0, true)));
}

/// Tables and audio are more important than any picture, but do not reduce the rank of a key
/// picture.
#[test]
fn importance_is_relative_to_the_stream() {
    let mut outbox = outbox();
    let sound = Outgoing {
        stream: StreamId(1),
        ..section(1, 240, ms(900))
    };
    outbox.submit(ms(0), sound).unwrap();
    outbox.submit(ms(0), section(1_000, 9, ms(200))).unwrap();
    outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    assert_eq!(
        next(&mut outbox, ms(0), &saved(-9_999)),
        Some((0, 0, false))
    );
    assert_eq!(
        next(&mut outbox, ms(0), &saved(-9_999)),
        Some((0, 0, false))
    );
    assert_eq!(next(&mut outbox, ms(0), &saved(-9_999)), None);
}

/// Of two sections due 30 ms apart, the later one goes first if it is the most important and two
/// repairs take longer than that. Equal sections have no head start.
#[test]
fn the_most_important_get_a_head_start_of_two_repairs() {
    for (importance, repair, first) in [(9, 16, 1), (9, 14, 0), (5, 50, 0)] {
        let mut outbox = outbox();
        let estimate = PathEstimate {
            one_way: Span::from_millis(20),
            repair: Span::from_millis(repair),
            ..PathEstimate::UNKNOWN
        };
        outbox.look_ahead(ms(0), &estimate);
        outbox.submit(ms(0), section(1_000, 5, ms(200))).unwrap();
        let key = section(1_000, importance, ms(230));
        outbox.submit(ms(0), key).unwrap();
        let (section, ..) = next(&mut outbox, ms(0), &estimate).unwrap();
        assert_eq!(section, first, "{importance}, {repair} ms");
    }
}

/// 90 ms to the deadline minus 30 ms on the path leave 60 ms. The head start is 40 ms of them, not
/// the 80 ms of a repair.
#[test]
fn a_head_start_leaves_a_third_of_the_time() {
    for (other, first) in [(51, 1), (49, 0)] {
        let mut outbox = outbox();
        let estimate = PathEstimate {
            one_way: Span::from_millis(30),
            repair: Span::from_millis(80),
            ..PathEstimate::UNKNOWN
        };
        outbox.look_ahead(ms(0), &estimate);
        outbox.submit(ms(0), section(1_000, 5, ms(other))).unwrap();
        outbox.submit(ms(0), section(1_000, 9, ms(90))).unwrap();
        let (section, ..) = next(&mut outbox, ms(0), &estimate).unwrap();
        assert_eq!(section, first, "{other} ms");
    }
}

/// 130 ms to the deadline minus 30 ms on the path leave 100 ms. A second repair of 40 ms gets 10 ms
/// of them, up to half of the time.
#[test]
fn a_head_start_for_a_second_repair_leaves_half_of_the_time() {
    for (other, first) in [(81, 1), (79, 0)] {
        let mut outbox = outbox();
        let estimate = PathEstimate {
            one_way: Span::from_millis(30),
            repair: Span::from_millis(40),
            ..PathEstimate::UNKNOWN
        };
        outbox.look_ahead(ms(0), &estimate);
        outbox.submit(ms(0), section(1_000, 5, ms(other))).unwrap();
        outbox.submit(ms(0), section(1_000, 9, ms(130))).unwrap();
        let (section, ..) = next(&mut outbox, ms(0), &estimate).unwrap();
        assert_eq!(section, first, "{other} ms");
    }
}

/// A repair takes 50 ms and the path 20 ms: a packet that leaves later than 70 ms before its
/// deadline is the last chance.
#[test]
fn last_chance_repairs_are_duplicated() {
    let estimate = PathEstimate {
        one_way: Span::from_millis(20),
        repair: Span::from_millis(50),
        ..PathEstimate::UNKNOWN
    };
    // (importance, retransmission time, number of transmissions)
    for (importance, at, times) in [(9, 130, 1), (9, 131, 2), (5, 131, 2), (1, 131, 1)] {
        let mut outbox = outbox();
        // One less important and one more important section exist.
        outbox.submit(ms(0), section(1, 1, ms(1_000))).unwrap();
        outbox.submit(ms(0), section(1, 9, ms(1_000))).unwrap();
        outbox
            .submit(ms(0), section(800, importance, ms(200)))
            .unwrap();
        let mut first = None;
        while let Some(chunk) = outbox.next_chunk(ms(0), 1_000, &estimate) {
            if chunk.section == SectionId(2) {
                first = Some(chunk);
            } else {
                outbox.on_acked(&chunk);
            }
        }
        outbox.on_lost(ms(at), &first.unwrap());
        let mut repairs: Vec<Chunk> = Vec::new();
        while let Some(chunk) = outbox.next_chunk(ms(at), 1_000, &estimate) {
            assert_eq!((chunk.section, chunk.range()), (SectionId(2), 0..800));
            repairs.push(chunk);
        }
        assert_eq!(repairs.len(), times, "importance {importance} at {at} ms");
        assert_eq!(outbox.counters().sent_again, 800 * times as u64);
        assert_eq!(outbox.backlog(), 0);
        if let [one, other] = repairs[..] {
            // One of the two copies is lost, which does not count as a loss.
            outbox.on_lost(ms(170), &one);
            assert_eq!(outbox.backlog(), 0);
            outbox.on_acked(&other);
            let fates: Vec<_> = std::iter::from_fn(|| outbox.poll_outcome())
                .filter(|outcome| outcome.section == SectionId(2))
                .map(|outcome| outcome.fate)
                .collect();
            assert_eq!(fates, [Fate::Acknowledged]);
        }
    }
}

#[test]
fn losing_both_transmissions_is_a_loss() {
    let estimate = PathEstimate {
        repair: Span::from_millis(50),
        lost_permille: 20,
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1, 1, ms(1_000))).unwrap();
    outbox.submit(ms(0), section(800, 9, ms(40))).unwrap();
    // No repair is possible, and the path loses packets: even the first packet is sent twice.
    let one = outbox.next_chunk(ms(0), 1_000, &estimate).unwrap();
    let other = outbox.next_chunk(ms(0), 1_000, &estimate).unwrap();
    assert_eq!((one.section, other.section), (SectionId(1), SectionId(1)));
    assert!(!one.is_retransmission && other.is_retransmission);
    outbox.on_lost(ms(20), &one);
    assert_eq!(outbox.counters().bytes.in_flight, 800);
    outbox.on_lost(ms(21), &other);
    assert_eq!(outbox.counters().bytes.in_flight, 0);
    assert_eq!(next(&mut outbox, ms(21), &estimate), Some((1, 0, true)));
}

/// A connection begins with a budget of 3,000 bytes for duplicate transmissions; two lost bytes pay
/// for another one.
#[test]
fn losses_pay_for_duplicates() {
    let estimate = PathEstimate {
        repair: Span::from_millis(50),
        lost_permille: 20,
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1, 1, ms(1_000))).unwrap();
    let mut leave = |expected: usize| {
        outbox.submit(ms(0), section(1_000, 9, ms(40))).unwrap();
        let chunks: Vec<Chunk> = std::iter::from_fn(|| outbox.next_chunk(ms(0), 1_000, &estimate))
            .filter(|chunk| chunk.length == 1_000)
            .collect();
        assert_eq!(chunks.len(), expected);
        chunks
    };
    // No repair is possible: three sections are sent twice, and the fourth is not.
    for times in [2, 2, 2] {
        leave(times);
    }
    let fourth = leave(1);
    let fifth = leave(1);
    outbox.on_lost(ms(1), &fourth[0]);
    outbox.on_lost(ms(1), &fifth[0]);
    // The budget covers a thousand bytes: one of the two repairs is sent twice.
    let repairs = std::iter::from_fn(|| outbox.next_chunk(ms(1), 1_000, &estimate));
    assert_eq!(repairs.filter(|chunk| chunk.is_retransmission).count(), 3);
}

/// 50 kB in pieces of 1,000 bytes, due at 200 ms. A repair takes 50 ms and the path 20 ms, plus 30
/// ms if the queue fills again: a packet that leaves later than at 100 ms cannot be repaired. With
/// 21 lost pieces in 1,000, 1,050 bytes are at risk with each piece, and all are sent twice. With
/// 19 it is 950 bytes, and duplicates use the initial budget of a connection: 3,000 bytes, from 130
/// ms on.
#[test]
fn important_sections_are_duplicated_and_duplicates_leave_after_them() {
    let cases = [
        (21, 100, 0),
        (21, 101, 50),
        (19, 101, 0),
        (19, 130, 0),
        (19, 131, 3),
        (21, 131, 50),
    ];
    for (lost_permille, at, copies) in cases {
        let estimate = PathEstimate {
            one_way: Span::from_millis(20),
            repair: Span::from_millis(50),
            wait: Span::from_millis(30),
            lost_permille,
            ..PathEstimate::UNKNOWN
        };
        let mut outbox = outbox();
        outbox.submit(ms(0), section(1, 1, ms(1_000))).unwrap();
        outbox.submit(ms(at), section(50_000, 9, ms(200))).unwrap();
        let left: Vec<(u32, bool)> =
            std::iter::from_fn(|| outbox.next_chunk(ms(at), 1_000, &estimate))
                .filter(|chunk| chunk.section == SectionId(1))
                .map(|chunk| (chunk.offset, chunk.is_retransmission))
                .collect();
        let once = (0..50).map(|piece| (piece * 1_000, false));
        let again = (0..copies).map(|piece| (piece * 1_000, true));
        let expected: Vec<(u32, bool)> = once.chain(again).collect();
        assert_eq!(left, expected, "{lost_permille} of 1,000 at {at} ms");
    }
}

/// Sections of 3 kB every 10 ms over 200 kB/s, each with 100 ms: a third of them must be dropped.
/// The others are planned to arrive 40 ms early, so a later delay of 30 ms makes none of them late.
#[test]
fn an_overloaded_source_keeps_a_reserve() {
    let estimate = PathEstimate {
        rate: Some(Rate::from_kbps(1_600)),
        repair: Span::from_millis(40),
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = outbox();
    let mut left_at = Vec::new();
    for now in 0..2_000_u64 {
        if now % 10 == 0 {
            let deadline = ms(now + 100);
            outbox.submit(ms(now), section(3_000, 5, deadline)).unwrap();
        }
        // 200 bytes a millisecond.
        if now % 5 == 0
            && let Some(chunk) = outbox.next_chunk(ms(now), 1_000, &estimate)
        {
            outbox.on_acked(&chunk);
            let given = chunk.section.0 * 10;
            if chunk.offset == 2_000 && now > 1_000 {
                left_at.push(now - given);
            }
        }
    }
    assert!(left_at.len() > 50, "two thirds of 100: {}", left_at.len());
    let last = left_at.iter().max().copied().unwrap();
    assert!((50..=70).contains(&last), "{last} ms after submission");
}

/// 36 kB at once, then as much as the rate carries. 30 kB of the 36 can arrive in time. The excess
/// is dropped at the beginning, and no more for the sake of a reserve.
#[test]
fn an_early_drop_costs_nothing_later() {
    let estimate = PathEstimate {
        rate: Some(Rate::from_kbps(2_400)),
        repair: Span::from_millis(40),
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = outbox();
    let (mut given, mut whole) = (0, 0);
    for now in 0..1_000_u64 {
        let due = match now {
            0 => 12,
            _ => u64::from(now % 10 == 0 && now < 900),
        };
        for _ in 0..due {
            given += 1;
            let deadline = ms(now + 100);
            outbox.submit(ms(now), section(3_000, 5, deadline)).unwrap();
        }
        // 300 bytes a millisecond.
        if now % 10 == 0 {
            for _ in 0..3 {
                if let Some(chunk) = outbox.next_chunk(ms(now), 1_000, &estimate) {
                    outbox.on_acked(&chunk);
                    whole += u64::from(chunk.offset == 2_000);
                }
            }
        }
    }
    assert_eq!(given, 12 + 89);
    assert!((2..=3).contains(&(given - whole)), "{whole} of {given}");
}

#[test]
fn a_duplicate_of_a_removed_section_is_not_sent() {
    let estimate = PathEstimate {
        repair: Span::from_millis(50),
        lost_permille: 20,
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1, 1, ms(1_000))).unwrap();
    outbox.submit(ms(0), section(800, 9, ms(40))).unwrap();
    let one = outbox.next_chunk(ms(0), 1_000, &estimate).unwrap();
    outbox.on_acked(&one);
    assert_eq!(next(&mut outbox, ms(1), &estimate), Some((0, 0, false)));
    assert_eq!(next(&mut outbox, ms(1), &estimate), None);
    assert_eq!(outbox.backlog(), 0);
}

/// 30 kB of a key picture and 10 kB after it: without tokens, 30 kB/s · 1 s would not suffice for
/// both.
#[test]
fn plans_include_tokens_and_borrowing() {
    let estimate = |level| PathEstimate {
        rate: Some(Rate::from_kbps(240)),
        ..saved(level)
    };
    // 30 kB/s for a second: 30 kB, plus a tolerance of 12 %.
    for (level, given_up) in [(10_000, vec![]), (0, vec![1])] {
        let mut outbox = outbox();
        outbox.submit(ms(0), section(30_000, 9, ms(1_000))).unwrap();
        outbox.submit(ms(0), section(10_000, 1, ms(1_000))).unwrap();
        outbox.look_ahead(ms(0), &estimate(level));
        let fates: Vec<u64> = std::iter::from_fn(|| outbox.poll_outcome())
            .map(|outcome| outcome.section.0)
            .collect();
        assert_eq!(fates, given_up, "with {level} saved");
    }
    // The key picture alone may borrow 10 kB: 40 kB in all, and a tolerance of 3.6 kB.
    for (length, others) in [(43_000, 1), (44_000, 0)] {
        let mut outbox = outbox();
        outbox.submit(ms(0), section(length, 9, ms(1_000))).unwrap();
        outbox.submit(ms(0), section(100, 9, ms(1_000))).unwrap();
        outbox.look_ahead(ms(0), &estimate(0));
        let kept = 2 - std::iter::from_fn(|| outbox.poll_outcome()).count();
        assert_eq!(kept, 1 + others, "{length}");
    }
}

/// At 10 bytes per millisecond, 2,000 bytes do not arrive within 100 ms. The sender tries them if
/// it has no other evidence of the path's capacity, or if they are the most important ones.
#[test]
fn infeasible_sections_are_tried_if_necessary() {
    let estimate = PathEstimate {
        rate: Some(Rate::from_kbps(80)),
        ..PathEstimate::UNKNOWN
    };
    let cases = [
        (5, false, true),
        (5, true, false),
        (9, false, true),
        (9, true, true),
    ];
    for (importance, is_on_its_way, is_tried) in cases {
        let mut outbox = outbox();
        outbox.submit(ms(0), section(100, 5, ms(1_000))).unwrap();
        let first = outbox.next_chunk(ms(0), 1_000, &estimate).unwrap();
        if !is_on_its_way {
            outbox.on_acked(&first);
        }
        outbox
            .submit(ms(0), section(2_000, importance, ms(100)))
            .unwrap();
        let tried = outbox.next_chunk(ms(0), 1_000, &estimate);
        assert_eq!(tried.is_some(), is_tried, "{importance}, {is_on_its_way}");
        let dropped = outbox.counters().bytes.infeasible;
        assert_eq!(dropped, if is_tried { 0 } else { 2_000 });
    }
}
