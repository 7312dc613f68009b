//! The order of sending, abandoned sections and byte counters, on cases worked out by hand.

use comity_transport::timeline::outbox::{self, ArgumentError, Fate};
use comity_transport::timeline::{
    Chunk, DropPolicy, Elided, Outbox, Outgoing, PathEstimate, Reason, Reliability, SectionId,
    StreamId,
};
use comity_transport::wire::limits::MAX_SECTION_COUNT;
use comity_units::{Rate, Span, Time};

use crate::outbox_cases::{VIDEO, fates, ms, outbox, section};

fn needing(needs: u64, length: u32, importance: u8, deadline: Time) -> Outgoing<Elided> {
    Outgoing {
        needs: Some(SectionId(needs)),
        ..section(length, importance, deadline)
    }
}

fn reliable(reliability: Reliability) -> Outbox<Elided> {
    Outbox::new(outbox::Config {
        reliability,
        ..outbox::Config::default()
    })
}

/// An outbox without tolerance in which 100 kB are due within a second, after a section that has
/// already left.
fn urgent_queue() -> Outbox<Elided> {
    let mut outbox = Outbox::new(outbox::Config {
        tolerance_percent: 0,
        ..outbox::Config::default()
    });
    outbox.submit(ms(0), section(100, 5, ms(5_000))).unwrap();
    next(&mut outbox, ms(0)).unwrap();
    outbox
        .submit(ms(0), section(100_000, 5, ms(1_000)))
        .unwrap();
    outbox
}

fn next(outbox: &mut Outbox<Elided>, now: Time) -> Option<Chunk> {
    outbox.next_chunk(now, 1_000, &PathEstimate::UNKNOWN)
}

/// The next piece: its section, and whether it is a retransmission.
fn leaves(outbox: &mut Outbox<Elided>, now: Time) -> Option<(u64, bool)> {
    let chunk = next(outbox, now)?;
    Some((chunk.section.0, chunk.is_retransmission))
}

#[test]
fn a_repair_waits_for_sections_due_before_it() {
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1_000, 1, ms(200))).unwrap();
    let first = next(&mut outbox, ms(0)).unwrap();
    outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    outbox.submit(ms(0), section(1_000, 1, ms(200))).unwrap();
    outbox.on_lost(ms(10), &first);
    for expected in [(1, false), (0, true), (2, false)] {
        assert_eq!(leaves(&mut outbox, ms(10)), Some(expected));
    }
}

/// Among sections of one deadline and importance, in any streams, the oldest leaves first.
#[test]
fn equal_sections_leave_in_the_order_of_their_submission() {
    let mut outbox = outbox();
    let streams = [2, 0, 1, 0];
    for stream in streams.map(StreamId) {
        let section = section(1_000, 1, ms(100));
        let section = Outgoing { stream, ..section };
        outbox.submit(ms(0), section).unwrap();
    }
    let order = std::iter::from_fn(|| next(&mut outbox, ms(0)));
    let order: Vec<u16> = order.map(|chunk| chunk.stream.0).collect();
    assert_eq!(order, streams);
}

/// If all of a section is in flight at its deadline, it is kept, and its dependents are sent. After
/// the loss of one of its pieces, the section and its dependents are abandoned.
#[test]
fn a_section_in_flight_at_its_deadline_is_abandoned_when_lost() {
    for is_lost in [false, true] {
        let mut outbox = outbox();
        outbox.submit(ms(0), section(2_000, 1, ms(100))).unwrap();
        let pieces = [0, 1].map(|_| next(&mut outbox, ms(0)).unwrap());
        outbox.submit(ms(0), needing(0, 1_000, 1, ms(300))).unwrap();
        outbox.expire(ms(100));
        assert_eq!(fates(&mut outbox), []);
        if is_lost {
            outbox.on_lost(ms(101), &pieces[0]);
            assert_eq!(fates(&mut outbox), [(1, Fate::Dropped(Reason::Dependency))]);
            assert_eq!(leaves(&mut outbox, ms(101)), None);
            outbox.on_acked(&pieces[1]);
            assert_eq!(fates(&mut outbox), [(0, Fate::ExpiredInNetwork)]);
            assert_eq!(outbox.counters().bytes.expired_in_network, 1_000);
        } else {
            assert_eq!(leaves(&mut outbox, ms(101)), Some((1, false)));
            pieces.iter().for_each(|piece| outbox.on_acked(piece));
            assert_eq!(fates(&mut outbox), [(0, Fate::Acknowledged)]);
        }
    }
}

/// A section that is completely in flight is not infeasible, even if it could no longer arrive if
/// it left now.
#[test]
fn a_section_in_flight_is_not_infeasible() {
    let estimate = PathEstimate {
        rate: Some(Rate::from_kbps(800)),
        one_way: Span::from_millis(60),
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    let first = outbox.next_chunk(ms(0), 1_000, &estimate).unwrap();
    outbox.submit(ms(50), section(1_000, 1, ms(500))).unwrap();
    outbox.look_ahead(ms(50), &estimate);
    assert_eq!(outbox.notice_to_tell(), None);
    outbox.on_acked(&first);
    assert_eq!(fates(&mut outbox), [(0, Fate::Acknowledged)]);
    assert_eq!(outbox.counters().given_up_but_arrived, 0);
}

/// The path carries 100 kB/s for a second. The first section is too long, and the second needs it.
/// The third, less important section therefore gets the room of the second.
#[test]
fn dependents_of_infeasible_sections_use_no_budget_in_the_plan() {
    let estimate = PathEstimate {
        rate: Some(Rate::from_kbps(800)),
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = outbox();
    // With data in flight, no section is tried against the prediction.
    outbox.submit(ms(0), section(100, 5, ms(1_000))).unwrap();
    next(&mut outbox, ms(0)).unwrap();
    outbox
        .submit(ms(0), section(200_000, 4, ms(1_000)))
        .unwrap();
    outbox
        .submit(ms(0), needing(1, 60_000, 3, ms(1_000)))
        .unwrap();
    outbox.submit(ms(0), section(60_000, 2, ms(1_000))).unwrap();
    outbox.look_ahead(ms(0), &estimate);
    let [one, two] = fates(&mut outbox)[..] else {
        panic!("two sections are given up")
    };
    assert_eq!((one, two.0), ((1, Fate::Dropped(Reason::Infeasible)), 2));
}

/// The queue is checked again only for a reason: here if the rate has fallen by more than 5 %, or
/// the path delay has grown by more than an eighth and more than 1 ms.
#[test]
fn the_queue_is_checked_again_when_the_path_has_changed() {
    let estimate = |bps, one_way_us| PathEstimate {
        rate: Some(Rate::from_bps(bps)),
        one_way: Span::from_micros(one_way_us),
        ..PathEstimate::UNKNOWN
    };
    // 100 kB within a second. Their plan does not change in the first 20 ms or so.
    let slow = 820_000;
    let cases = [
        ((slow, 0), (779_000, 0), false),
        ((slow, 0), (778_999, 0), true),
        ((900_000, 80_000), (900_000, 90_000), false),
        ((900_000, 80_000), (800_000, 70_000), true),
        ((892_000, 80_000), (860_000, 90_000), false),
        ((892_000, 80_000), (860_000, 90_001), true),
        ((808_000, 4_000), (790_000, 5_000), false),
        ((808_000, 4_000), (790_000, 5_001), true),
    ];
    for (before, after, is_checked) in cases {
        let mut outbox = urgent_queue();
        outbox.look_ahead(ms(0), &estimate(before.0, before.1));
        assert_eq!(fates(&mut outbox), [], "{before:?}");
        outbox.look_ahead(ms(1), &estimate(after.0, after.1));
        assert_eq!(
            !fates(&mut outbox).is_empty(),
            is_checked,
            "{before:?}, {after:?}"
        );
    }
}

/// 100 kB within a second at 102.5 kB/s can wait for 24.39 ms. They are dropped as soon as more
/// time has passed.
#[test]
fn the_queue_is_checked_again_when_a_section_would_be_late() {
    let estimate = PathEstimate {
        rate: Some(Rate::from_bps(820_000)),
        ..PathEstimate::UNKNOWN
    };
    let mut outbox = urgent_queue();
    outbox.look_ahead(ms(0), &estimate);
    outbox.look_ahead(Time::from_micros(24_300), &estimate);
    assert_eq!(fates(&mut outbox), []);
    outbox.look_ahead(Time::from_micros(24_500), &estimate);
    assert_eq!(fates(&mut outbox), [(1, Fate::Dropped(Reason::Infeasible))]);
}

/// The peer has room for 10 kB. A section is sent before its predecessor. The predecessor must then
/// begin before a long section of another stream: until then the peer holds the first one back and
/// has no room for the long one.
#[test]
fn an_overtaken_section_is_begun_before_a_long_one_of_another_stream() {
    let mut outbox = reliable(Reliability::Full);
    let credit = |credit| PathEstimate {
        credit,
        ..PathEstimate::UNKNOWN
    };
    outbox.submit(ms(0), section(1_000, 1, ms(300))).unwrap();
    outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    let first = outbox.next_chunk(ms(0), 1_000, &credit(10_000)).unwrap();
    assert_eq!(first.section, SectionId(1));
    outbox.on_acked(&first);
    let long = Outgoing {
        stream: StreamId(1),
        ..section(9_500, 1, ms(50))
    };
    outbox.submit(ms(10), long).unwrap();
    let second = outbox.next_chunk(ms(10), 1_000, &credit(9_000)).unwrap();
    assert_eq!((second.stream, second.section), (VIDEO, SectionId(0)));
    assert_eq!(outbox.next_chunk(ms(10), 1_000, &credit(8_000)), None);
    outbox.on_acked(&second);
    // Both were delivered to the application.
    let long = outbox.next_chunk(ms(20), 1_000, &credit(10_000)).unwrap();
    assert_eq!((long.stream, long.section), (StreamId(1), SectionId(0)));
}

/// A lossy path on which every repair would be late.
const LOSSY: PathEstimate = PathEstimate {
    one_way: Span::from_millis(20),
    repair: Span::from_millis(50),
    lost_permille: 20,
    ..PathEstimate::UNKNOWN
};

/// The number of transmissions of a section of the highest importance that leaves at this time and
/// is due at 200 ms.
fn transmissions(outbox: &mut Outbox<Elided>, at: Time) -> usize {
    outbox.submit(ms(0), section(1, 1, ms(1_000))).unwrap();
    outbox.submit(at, section(800, 9, ms(200))).unwrap();
    let chunks = std::iter::from_fn(|| outbox.next_chunk(at, 1_000, &LOSSY));
    chunks.filter(|chunk| chunk.length == 800).count()
}

#[test]
fn no_duplicates_without_repairs_or_deadlines() {
    let at = ms(150);
    assert_eq!(transmissions(&mut outbox(), at), 2);
    for reliability in [Reliability::None, Reliability::Full] {
        let mut outbox = reliable(reliability);
        assert_eq!(transmissions(&mut outbox, at), 1, "{reliability:?}");
    }
    let mut outbox = Outbox::new(outbox::Config {
        drop: DropPolicy::Never,
        ..outbox::Config::default()
    });
    assert_eq!(transmissions(&mut outbox, at), 1);
}

/// A repair takes 50 ms and the path 20 ms: at 130 ms one is still in time.
#[test]
fn a_section_is_duplicated_only_if_a_repair_would_be_late() {
    for (at_us, times) in [(130_000, 1), (130_001, 2)] {
        let at = Time::from_micros(at_us);
        assert_eq!(transmissions(&mut outbox(), at), times, "{at}");
    }
}

/// A section is due at 200 ms and lost at 100 ms: its repair leaves twice, unless it is the least
/// important, which may not borrow.
#[test]
fn repairs_of_the_least_important_sections_are_not_duplicated() {
    for (importance, other, times) in [(1, 9, 1), (9, 1, 2)] {
        let mut outbox = outbox();
        outbox.submit(ms(0), section(1, other, ms(1_000))).unwrap();
        outbox
            .submit(ms(0), section(800, importance, ms(200)))
            .unwrap();
        let first = next(&mut outbox, ms(0)).unwrap();
        assert_eq!(first.length, 800);
        outbox.on_lost(ms(100), &first);
        let chunks = std::iter::from_fn(|| outbox.next_chunk(ms(150), 1_000, &LOSSY));
        let repairs = chunks.filter(|chunk| chunk.length == 800).count();
        assert_eq!(repairs, times, "importance {importance}");
    }
}

/// Two sections are sent twice. One of them arrives before its copy leaves; the copy of the other
/// one still leaves.
#[test]
fn a_duplicate_is_skipped_only_if_its_own_section_arrived() {
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1, 1, ms(1_000))).unwrap();
    for _ in 0..2 {
        outbox.submit(ms(150), section(800, 9, ms(200))).unwrap();
    }
    let mut first = |_| {
        outbox
            .next_chunk_with(ms(150), &LOSSY, |_, _, _| 1_000)
            .unwrap()
    };
    let pieces = [0, 1].map(&mut first);
    assert_eq!(pieces.map(|piece| piece.section.0), [1, 2]);
    assert_eq!(outbox.backlog(), 1_601);
    outbox.on_acked(&pieces[0]);
    assert_eq!(outbox.backlog(), 801);
    let copy = outbox.next_copy(ms(151), &LOSSY, |_, _, _| 1_000);
    assert_eq!(copy.map(|copy| copy.section), Some(SectionId(2)));
}

/// The 200 bytes of the first piece are lost, and 1,000 bytes are in flight.
#[test]
fn lost_bytes_are_queued_again_if_repaired() {
    for (reliability, queued, lost) in [
        (Reliability::Timeline, 200, 0),
        (Reliability::Full, 200, 0),
        (Reliability::None, 0, 200),
    ] {
        let mut outbox = reliable(reliability);
        outbox.submit(ms(0), section(1_200, 1, ms(100))).unwrap();
        let small = outbox.next_chunk(ms(0), 200, &PathEstimate::UNKNOWN);
        next(&mut outbox, ms(0)).unwrap();
        outbox.on_lost(ms(10), &small.unwrap());
        let bytes = outbox.counters().bytes;
        assert_eq!(
            (bytes.queued, bytes.lost),
            (queued, lost),
            "{reliability:?}"
        );
        assert_eq!((bytes.in_flight, bytes.sum()), (1_000, 1_200));
    }
}

#[test]
fn bytes_that_leave_after_their_deadline_are_counted() {
    let mut outbox = reliable(Reliability::Full);
    outbox.submit(ms(0), section(1_500, 1, ms(100))).unwrap();
    next(&mut outbox, ms(99)).unwrap();
    assert_eq!(outbox.counters().sent_late, 0);
    let last = next(&mut outbox, ms(100)).unwrap();
    assert_eq!(outbox.counters().sent_late, 500);
    outbox.on_lost(ms(150), &last);
    assert!(next(&mut outbox, ms(150)).unwrap().is_retransmission);
    let counters = outbox.counters();
    assert_eq!((counters.sent_late, counters.sent_again), (1_000, 500));
}

/// The floor passes a withdrawn section at once, although its bytes are in flight.
#[test]
fn the_floor_passes_a_withdrawn_section_at_once() {
    let mut outbox = outbox();
    outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    next(&mut outbox, ms(0)).unwrap();
    assert!(outbox.cancel(VIDEO, SectionId(0)));
    assert_eq!(outbox.floor(VIDEO), SectionId(1));
    assert_eq!(outbox.floor_to_tell(), Some((VIDEO, SectionId(1))));
    assert_eq!(fates(&mut outbox), []);
}

/// A floor that passes a lost section must be announced. A floor that passes only arrived sections
/// need not be.
#[test]
fn a_lost_section_makes_the_floor_due_once() {
    let mut outbox = reliable(Reliability::None);
    for _ in 0..3 {
        outbox.submit(ms(0), section(1_000, 1, ms(100))).unwrap();
    }
    let pieces = [0, 1, 2].map(|_| next(&mut outbox, ms(0)).unwrap());
    outbox.on_lost(ms(10), &pieces[0]);
    assert_eq!(outbox.floor_to_tell(), Some((VIDEO, SectionId(1))));
    assert!(outbox.on_floor_told(VIDEO));
    outbox.on_acked(&pieces[1]);
    assert_eq!(
        (outbox.floor(VIDEO), outbox.floor_to_tell()),
        (SectionId(2), None)
    );
    // If a section is lost before an earlier one arrives, the floor must be announced when it
    // passes both.
    outbox.submit(ms(20), section(1_000, 1, ms(100))).unwrap();
    let last = next(&mut outbox, ms(20)).unwrap();
    outbox.on_lost(ms(30), &last);
    assert_eq!(outbox.floor_to_tell(), None);
    outbox.on_acked(&pieces[2]);
    assert_eq!(outbox.floor_to_tell(), Some((VIDEO, SectionId(4))));
}

/// A begun section and lost bytes need no credit.
#[test]
fn a_begun_section_needs_no_credit() {
    let mut outbox = outbox();
    assert!(!outbox.has_credit(u64::MAX));
    outbox.submit(ms(0), section(1_500, 1, ms(100))).unwrap();
    assert!(!outbox.has_credit(1_499) && outbox.has_credit(1_500));
    let first = next(&mut outbox, ms(0)).unwrap();
    assert!(outbox.has_credit(0), "its rest waits");
    next(&mut outbox, ms(0)).unwrap();
    assert!(!outbox.has_credit(u64::MAX));
    outbox.on_lost(ms(10), &first);
    assert!(outbox.has_credit(0), "a repair waits");
}

/// The peer learns the reasons for a run of 64 skipped numbers, and only the floor for a longer
/// run.
#[test]
fn short_runs_of_skipped_numbers_have_reasons() {
    for (count, named) in [(64, 64), (65, 0)] {
        let mut outbox = outbox();
        outbox.skip_run(VIDEO, count, Reason::Shed).unwrap();
        let mut notices = 0;
        while outbox.notice_to_tell().is_some() {
            outbox.on_notice_told();
            notices += 1;
        }
        assert_eq!(notices, named);
        assert_eq!(outbox.floor_to_tell(), Some((VIDEO, SectionId(count))));
    }
}

#[test]
fn a_new_stream_has_as_many_numbers_as_any() {
    let mut outbox = outbox();
    let other = StreamId(1);
    let too_many = outbox.skip_run(other, MAX_SECTION_COUNT + 1, Reason::Shed);
    let used_up = ArgumentError::StreamUsedUp { stream: other };
    assert_eq!(too_many, Err(used_up.into()));
    let all = outbox.skip_run(VIDEO, MAX_SECTION_COUNT, Reason::Shed);
    assert_eq!(all, Ok(SectionId(0)));
}
