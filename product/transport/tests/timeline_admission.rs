//! The limits of what an outbox accepts, to the byte and to the section, and its small counters.

use comity_transport::counter::{Counters, Value};
use comity_transport::timeline::outbox::{
    self, ArgumentError, Fate, Notice, SectionCounters, SubmitError,
};
use comity_transport::timeline::{
    Chunk, Elided, Importance, Outbox, Outgoing, PathEstimate, Reason, SectionId, StreamId,
};
use comity_units::Time;

const VIDEO: StreamId = StreamId(0);
const DUE: Time = Time::from_millis(100);

fn section(length: u32) -> Outgoing<Elided> {
    Outgoing {
        stream: VIDEO,
        importance: Importance(1),
        source_time: Time::ZERO,
        deadline: DUE,
        needs: None,
        payload: Elided(length),
    }
}

fn outbox() -> Outbox<Elided> {
    Outbox::new(outbox::Config {
        max_bytes: 1_000,
        max_sections: 4,
        ..outbox::Config::default()
    })
}

fn submit(outbox: &mut Outbox<Elided>, length: u32) -> Result<SectionId, SubmitError> {
    outbox.submit(Time::ZERO, section(length))
}

fn next(outbox: &mut Outbox<Elided>) -> Option<Chunk> {
    outbox.next_chunk(Time::ZERO, 1_000, &PathEstimate::UNKNOWN)
}

#[test]
fn a_section_may_have_the_longest_length_and_no_more() {
    let mut outbox = outbox();
    let too_long = |length, max| {
        Err(SubmitError::from(ArgumentError::TooLong {
            stream: VIDEO,
            length,
            max,
        }))
    };
    assert_eq!(submit(&mut outbox, 1_001), too_long(1_001, 1_000));
    outbox.set_max_length(600);
    assert_eq!(submit(&mut outbox, 601), too_long(601, 600));
    assert!(outbox.fits_peer(VIDEO, 600) && !outbox.fits_peer(VIDEO, 601));
    assert_eq!(submit(&mut outbox, 600), Ok(SectionId(0)));
    assert_eq!(outbox.held(), (1, 600));
    // 400 bytes are free. A longer section must wait, unless it exceeds the maximum.
    assert!(outbox.has_room(400) && !outbox.has_room(401) && !outbox.has_room(600));
    assert!(outbox.has_room(601));
    assert!(outbox.never_fits(601) && !outbox.never_fits(600));
    let no_room = SubmitError::TooManyBytes {
        held: 600,
        length: 401,
        limit: 1_000,
    };
    assert_eq!(outbox.check(&section(401)), Err(no_room));
    assert_eq!(submit(&mut outbox, 401), Err(no_room));
    assert_eq!(outbox.check(&section(400)), Ok(()));
    assert_eq!(submit(&mut outbox, 400), Ok(SectionId(1)));
    assert_eq!(outbox.held(), (2, 1_000));
    assert_eq!(outbox.memory(), 2 * outbox::RECORD);
}

#[test]
fn the_number_of_open_sections_is_limited_by_the_peer() {
    let mut outbox = outbox();
    outbox.set_max_open(2);
    assert_eq!(outbox.max_open(), 2);
    for number in 0..2 {
        assert!(outbox.fits_peer(VIDEO, 1));
        assert_eq!(submit(&mut outbox, 1), Ok(SectionId(number)));
    }
    assert!(!outbox.fits_peer(VIDEO, 1) && outbox.fits_peer(StreamId(1), 1));
    let full = |limit| Err(SubmitError::TooManySections { limit });
    assert_eq!(submit(&mut outbox, 1), full(2));
    // The limit counts sections of all streams, and outcomes that were not polled.
    outbox.set_max_open(100);
    submit(&mut outbox, 1).unwrap();
    submit(&mut outbox, 1).unwrap();
    assert_eq!(submit(&mut outbox, 1), full(4));
    assert!(outbox.cancel(VIDEO, SectionId(3)));
    assert_eq!(outbox.held(), (4, 3));
    assert_eq!(submit(&mut outbox, 1), full(4));
    assert_eq!(
        outbox.poll_outcome().unwrap().fate,
        Fate::Dropped(Reason::Cancelled)
    );
    assert_eq!(outbox.held(), (3, 3));
    // The stream's own span is full: the first section is not settled.
    assert_eq!(submit(&mut outbox, 1), full(4));
    let other = Outgoing {
        stream: StreamId(1),
        ..section(1)
    };
    assert_eq!(outbox.submit(Time::ZERO, other), Ok(SectionId(0)));
}

/// The counters that are not zero.
fn counted(counters: Counters<'_>) -> Vec<(&'static str, u64)> {
    let counted = counters
        .into_iter()
        .filter_map(|counter| match counter.value {
            Value::Whole(count) if count > 0 => Some((counter.key, count)),
            _ => None,
        });
    counted.collect()
}

#[test]
fn counters_have_a_name_each_and_skipped_numbers_count() {
    let mut outbox = outbox();
    for reason in [Reason::Shed, Reason::Shed, Reason::Cancelled] {
        outbox.skip(VIDEO, reason).unwrap();
    }
    submit(&mut outbox, 5).unwrap();
    let counters = outbox.counters().sections;
    let expected = SectionCounters {
        submitted: 4,
        open: 1,
        shed: 2,
        cancelled: 1,
        ..SectionCounters::default()
    };
    assert_eq!((counters, counters.sum()), (expected, 4));
    assert_eq!(
        counted(counters.counters()),
        [("submitted", 4), ("open", 1), ("shed", 2), ("cancelled", 1)]
    );
    let all = counters.counters();
    let mut names: Vec<_> = all.iter().map(|counter| counter.key).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(outbox.counters().bytes.submitted, 5);
}

/// A section is withdrawn while its bytes are in flight, and all of them arrive.
#[test]
fn abandoned_sections_that_arrived_are_counted() {
    let mut outbox = outbox();
    submit(&mut outbox, 10).unwrap();
    submit(&mut outbox, 20).unwrap();
    let chunks = [next(&mut outbox).unwrap(), next(&mut outbox).unwrap()];
    assert_eq!(outbox.counters().sent, 30);
    assert!(outbox.cancel(VIDEO, SectionId(0)));
    for chunk in &chunks {
        outbox.on_acked(chunk);
    }
    for _ in 0..2 {
        let outcome = outbox.poll_outcome().expect("both are settled");
        assert_eq!(outcome.fate, Fate::Acknowledged);
    }
    assert_eq!(outbox.counters().given_up_but_arrived, 1);
    assert!(outbox.is_settled());
}

/// The floor and the notices of abandoned sections are announced again if their packet is lost.
#[test]
fn floors_and_notices_are_repeated_until_acknowledged() {
    let mut outbox = outbox();
    assert!(!outbox.has_news());
    submit(&mut outbox, 10).unwrap();
    submit(&mut outbox, 10).unwrap();
    assert!(outbox.cancel(VIDEO, SectionId(1)));
    let notice = Notice {
        stream: VIDEO,
        section: SectionId(1),
        reason: Reason::Cancelled,
    };
    // A notice alone must be announced.
    assert_eq!(outbox.floor_to_tell(), None);
    assert_eq!(outbox.notice_to_tell(), Some(notice));
    assert!(outbox.has_news());
    outbox.on_notice_told();
    assert!(!outbox.has_news());
    outbox.on_notice_lost(notice);
    assert_eq!(outbox.notice_to_tell(), Some(notice));
    outbox.on_notice_told();
    assert!(outbox.cancel(VIDEO, SectionId(0)));
    // The floor alone must be announced.
    while outbox.notice_to_tell().is_some() {
        outbox.on_notice_told();
    }
    assert_eq!(outbox.floor_to_tell(), Some((VIDEO, SectionId(2))));
    assert!(outbox.has_news());
    assert!(outbox.on_floor_told(VIDEO) && !outbox.on_floor_told(VIDEO));
    assert!(!outbox.has_news());
    outbox.on_floor_lost(VIDEO);
    assert_eq!(outbox.floor_to_tell(), Some((VIDEO, SectionId(2))));
}

#[test]
fn errors_name_the_value_and_the_limit() {
    let too_long = ArgumentError::TooLong {
        stream: VIDEO,
        length: 601,
        max: 600,
    };
    let text = SubmitError::from(too_long).to_string();
    assert_eq!(
        text,
        "stream 0: a section of 601 bytes was submitted; expected at most 600"
    );
    let finished = ArgumentError::Finished { stream: VIDEO }.to_string();
    assert_eq!(finished, "stream 0 is already finished");
}

/// Every byte has exactly one state: waiting, in flight or arrived, by name.
#[test]
fn every_byte_is_in_exactly_one_counter() {
    let mut outbox = outbox();
    submit(&mut outbox, 100).unwrap();
    submit(&mut outbox, 200).unwrap();
    submit(&mut outbox, 300).unwrap();
    let first = next(&mut outbox).unwrap();
    next(&mut outbox).unwrap();
    outbox.on_acked(&first);
    assert_eq!(
        counted(outbox.counters().bytes.counters()),
        [
            ("submitted", 600),
            ("queued", 300),
            ("in_flight", 200),
            ("acknowledged", 100)
        ]
    );
}
