//! Tests of the outbox below its public interface.

use comity_units::{Rate, Span, Time};

use super::feasibility_check::FeasibilityCheck;
use super::{Chunk, Config, Outbox, PathEstimate, Reason};
use crate::timeline::section::{Elided, Importance, Outgoing, SectionId, StreamId};
use crate::timeline::tokens::Tokens;

const fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

const fn section(
    length: u32,
    importance: u8,
    source_time: Time,
    deadline: Time,
) -> Outgoing<Elided> {
    Outgoing {
        stream: StreamId(0),
        importance: Importance(importance),
        source_time,
        deadline,
        needs: None,
        payload: Elided(length),
    }
}

fn outbox() -> Outbox<Elided> {
    Outbox::new(Config::default())
}

fn next(outbox: &mut Outbox<Elided>) -> Chunk {
    let chunk = outbox.next_chunk(ms(10), 1_000, &PathEstimate::UNKNOWN);
    chunk.expect("something waits")
}

#[test]
fn the_next_latency_is_that_of_the_section_that_leaves_next() {
    let mut outbox = outbox();
    assert_eq!(outbox.next_latency(), None);
    outbox
        .submit(ms(10), section(500, 1, ms(10), ms(110)))
        .unwrap();
    outbox
        .submit(ms(10), section(500, 1, ms(5), ms(255)))
        .unwrap();
    assert_eq!(outbox.next_latency(), Some(Span::from_millis(100)));
    next(&mut outbox);
    assert_eq!(outbox.next_latency(), Some(Span::from_millis(250)));
    next(&mut outbox);
    assert_eq!(outbox.next_latency(), None);
}

/// A begun section of low importance may spend some tokens, and one of the highest importance all
/// of them.
#[test]
fn the_maximum_spending_of_waiting_sections_is_known() {
    let tokens = Tokens {
        level: 0,
        depth: 10_000,
    };
    let mut outbox = outbox();
    assert_eq!(outbox.max_available(&tokens, u64::MAX), None);
    outbox
        .submit(ms(10), section(2_000, 1, ms(10), ms(100)))
        .unwrap();
    assert_eq!(outbox.max_available(&tokens, u64::MAX), Some(10_000));
    outbox
        .submit(ms(10), section(2_000, 9, ms(10), ms(200)))
        .unwrap();
    outbox
        .submit(ms(10), section(2_000, 1, ms(10), ms(300)))
        .unwrap();
    // The first section was the most important one when it was submitted.
    assert_eq!(next(&mut outbox).section, SectionId(0));
    assert_eq!(outbox.max_available(&tokens, u64::MAX), Some(10_000));
    // Without credit, no other section may begin.
    next(&mut outbox);
    assert_eq!(outbox.max_available(&tokens, 0), None);
    assert_eq!(outbox.max_available(&tokens, 4_000), Some(10_000));
    // The next one has the lowest importance, and has not begun.
    next(&mut outbox);
    next(&mut outbox);
    assert_eq!(outbox.max_available(&tokens, u64::MAX), Some(0));
    next(&mut outbox);
    assert_eq!(outbox.max_available(&tokens, u64::MAX), Some(4_000));
    outbox
        .submit(ms(10), section(2_000, 9, ms(10), ms(400)))
        .unwrap();
    assert_eq!(outbox.max_available(&tokens, u64::MAX), Some(10_000));
}

/// Sent data needs no rate: only waiting sections count, however many are in flight.
#[test]
fn the_needed_rate_is_that_of_the_sections_that_wait() {
    let mut outbox = outbox();
    for _ in 0..64 {
        outbox
            .submit(ms(10), section(100, 1, ms(10), ms(1_010)))
            .unwrap();
        next(&mut outbox);
    }
    let needed =
        |outbox: &Outbox<Elided>| outbox.needed_rate(ms(10), Span::ZERO, Span::ZERO, 1_000);
    assert_eq!(needed(&outbox), Rate::ZERO);
    outbox
        .submit(ms(10), section(1_001, 1, ms(10), ms(2_010)))
        .unwrap();
    // Two whole packets in 2 s.
    assert_eq!(needed(&outbox), Rate::from_bps(8_000));
    // A reserve takes two thirds of the time at most.
    let reserved = |millis| {
        let reserve = Span::from_millis(millis);
        outbox.needed_rate(ms(10), Span::from_millis(500), reserve, 1_000)
    };
    assert_eq!(reserved(500), Rate::from_bps(16_000));
    assert_eq!(reserved(5_000), Rate::from_bps(32_000));
}

/// Drops over half a second are an overload, which ends after two seconds without drops.
#[test]
fn drops_count_as_an_overload_while_they_go_on() {
    let mut check = FeasibilityCheck::new(&Config::default());
    assert!(!check.is_overloaded(ms(0)));
    check.on_left_out(ms(1_000));
    check.on_left_out(ms(1_499));
    assert!(!check.is_overloaded(ms(1_499)));
    check.on_left_out(ms(1_500));
    assert!(check.is_overloaded(ms(1_500)));
    assert!(check.is_overloaded(ms(3_499)));
    assert!(!check.is_overloaded(ms(3_500)));
    // The next drop continues the series if it comes in time, and otherwise begins another one.
    check.on_left_out(ms(3_499));
    assert!(check.is_overloaded(ms(3_499)));
    check.on_left_out(ms(5_499));
    assert!(!check.is_overloaded(ms(5_499)));
}

/// A source of twice the rate overloads the outbox within a second, and one that fits never does.
#[test]
fn sections_dropped_in_advance_count_as_an_overload() {
    let estimate = PathEstimate {
        rate: Some(Rate::from_kbps(80)),
        ..PathEstimate::UNKNOWN
    };
    for (sections, is_overloaded) in [(1, false), (2, true)] {
        let mut outbox = outbox();
        for now in (0..1_000).step_by(100) {
            for _ in 0..sections {
                let section = section(900, 1, ms(now), ms(now + 100));
                outbox.submit(ms(now), section).unwrap();
            }
            while outbox.next_chunk(ms(now), 1_000, &estimate).is_some() {}
        }
        assert_eq!(outbox.look.is_overloaded(ms(900)), is_overloaded);
    }
}

/// The spare time is the 100 ms of the section, less the 20 ms of the path.
#[test]
fn a_plan_reserves_half_of_the_time_to_spare_at_most() {
    let mut outbox = outbox();
    outbox
        .submit(ms(10), section(500, 1, ms(10), ms(110)))
        .unwrap();
    let (_, entry) = outbox.entries.first_key_value().unwrap();
    let span = Span::from_millis;
    assert_eq!(entry.work(span(30), span(20)).deadline, ms(80));
    assert_eq!(entry.work(span(100), span(20)).deadline, ms(70));
}

/// The outbox remembers as many abandoned sections as it may hold.
#[test]
fn dependents_of_recently_abandoned_sections_are_abandoned() {
    let is_abandoned = |needs| {
        let mut outbox = Outbox::new(Config {
            max_sections: 3,
            ..Config::default()
        });
        outbox
            .skip_run(StreamId(0), 100, Reason::Cancelled)
            .unwrap();
        let needing = Outgoing {
            needs: Some(SectionId(needs)),
            ..section(500, 1, ms(10), ms(110))
        };
        outbox.submit(ms(10), needing).unwrap();
        outbox.poll_outcome().is_some()
    };
    assert_eq!(
        [96, 97, 98, 99].map(is_abandoned),
        [false, true, true, true]
    );
}
