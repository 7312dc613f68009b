//! The rules of the inbox one by one, on cases worked out by hand.

use comity_transport::timeline::inbox::{self, GapReason, Violation};
use comity_transport::timeline::{
    ClockMap, Deliver, Delivery, Elided, Importance, Inbox, Meta, Reason, SectionId,
};
use comity_transport::wire::limits::MAX_SECTION_COUNT;
use comity_units::{Span, Time};

use crate::outbox_cases::{VIDEO, ms};

struct Receiver {
    inbox: Inbox<Elided>,
    clock: ClockMap,
}

fn receiver(deliver: Deliver) -> Receiver {
    receiver_that(deliver, true)
}

fn receiver_that(deliver: Deliver, enforce_deadlines: bool) -> Receiver {
    let config = inbox::Config {
        deliver,
        enforce_deadlines,
        max_bytes: 10_000,
        max_sections: 100,
        ..inbox::Config::default()
    };
    Receiver {
        inbox: Inbox::new(config),
        clock: ClockMap::default(),
    }
}

impl Receiver {
    /// 500 bytes of a section of 1,000, which is due at 100 ms plus 10 ms times its number.
    fn half(&mut self, now: u64, section: u64, second: bool) -> Result<(), Violation> {
        self.half_due(now, (section, 100 + 10 * section), second)
    }

    /// The first packet states a departure half an hour after the beginning of the sender's clock.
    fn set_ahead(&mut self) {
        self.clock.on_arrival(ms(20), micros(AHEAD + 20));
        assert_eq!(self.clock.to_local(ms(AHEAD)), Time::ZERO);
    }

    /// The next packets state departures half an hour earlier.
    fn set_back(&mut self) {
        for now in [21, 22] {
            self.clock.on_arrival(ms(now), micros(now));
            self.clock.on_round_trip(ms(now), Span::from_millis(1));
        }
        assert!(self.clock.to_local(ms(AHEAD)) > ms(AHEAD - 100), "believed");
    }

    fn half_due(&mut self, now: u64, due: (u64, u64), second: bool) -> Result<(), Violation> {
        self.half_that_needs(now, due, None, second)
    }

    fn half_that_needs(
        &mut self,
        now: u64,
        (section, due): (u64, u64),
        needs: Option<u64>,
        second: bool,
    ) -> Result<(), Violation> {
        let meta = Meta {
            stream: VIDEO,
            section: SectionId(section),
            length: 1_000,
            importance: Importance(1),
            source_time: ms(10 * section),
            deadline: ms(due),
            needs: needs.map(SectionId),
        };
        let offset = if second { 500 } else { 0 };
        self.inbox
            .on_chunk(ms(now), &self.clock, &meta, offset, 500, &[])
    }

    fn whole(&mut self, now: u64, section: u64) {
        for second in [true, false] {
            self.half(now, section, second).unwrap();
        }
    }

    /// Numbers, and why they are gaps.
    fn poll(&mut self, now: u64) -> Vec<(u64, Option<GapReason>)> {
        std::iter::from_fn(|| self.inbox.poll(ms(now), &self.clock))
            .flat_map(Delivery::each)
            .map(|delivery| match delivery {
                Delivery::Section(received) => (received.meta.section.0, None),
                Delivery::Gap(gap) => (gap.section.0, Some(gap.reason)),
            })
            .collect()
    }
}

#[test]
fn early_delivery_is_in_order_and_waits_for_a_gap_until_its_deadline() {
    let mut receiver = receiver(Deliver::Early);
    receiver.whole(20, 0);
    receiver.half(21, 1, false).unwrap();
    receiver.whole(30, 2);
    assert_eq!(receiver.poll(30), [(0, None)]);
    assert_eq!(receiver.inbox.next_wakeup(&receiver.clock), ms(110));
    assert_eq!(receiver.poll(109), []);
    assert_eq!(
        receiver.poll(110),
        [(1, Some(GapReason::Overdue)), (2, None)]
    );
    receiver.half(111, 1, true).unwrap();
    receiver.half(112, 2, true).unwrap();
    let counters = receiver.inbox.counters();
    assert_eq!(
        (counters.late, counters.duplicate, counters.partial),
        (500, 500, 500)
    );
}

#[test]
fn an_unseen_section_is_bounded_by_the_next_seen_one() {
    for deliver in [Deliver::Early, Deliver::Paced] {
        let mut receiver = receiver(deliver);
        receiver.whole(40, 3);
        assert_eq!(receiver.poll(129), []);
        let overdue = Some(GapReason::Overdue);
        let expected = [(0, overdue), (1, overdue), (2, overdue), (3, None)];
        assert_eq!(receiver.poll(130), expected);
    }
}

#[test]
fn the_sender_reports_dropped_sections() {
    let mut receiver = receiver(Deliver::Early);
    receiver.whole(40, 3);
    receiver
        .inbox
        .on_drop(VIDEO, SectionId(1), Reason::Shed)
        .unwrap();
    receiver.inbox.on_floor(VIDEO, SectionId(3)).unwrap();
    let expected = [
        (0, Some(GapReason::Obsolete)),
        (1, Some(GapReason::Dropped(Reason::Shed))),
        (2, Some(GapReason::Obsolete)),
        (3, None),
    ];
    assert_eq!(receiver.poll(41), expected);
    receiver.inbox.on_end(VIDEO, 5).unwrap();
    assert!(!receiver.inbox.is_finished(VIDEO));
    receiver.inbox.close();
    assert_eq!(receiver.poll(42), [(4, Some(GapReason::Closed))]);
    assert!(receiver.inbox.is_finished(VIDEO));
}

#[test]
fn paced_delivery_is_at_the_deadline() {
    let mut receiver = receiver(Deliver::Paced);
    receiver.whole(20, 0);
    receiver.half(21, 1, false).unwrap();
    assert_eq!(receiver.poll(99), []);
    assert_eq!(receiver.poll(100), [(0, None)]);
    assert_eq!(receiver.poll(109), []);
    assert_eq!(receiver.poll(110), [(1, Some(GapReason::Overdue))]);
}

#[test]
fn abandoned_sections_are_gaps_before_their_turn() {
    let mut receiver = receiver(Deliver::Paced);
    let counts = |receiver: &Receiver| (receiver.inbox.complete(), receiver.inbox.gaps());
    receiver.whole(20, 0);
    receiver.whole(50, 4);
    receiver.half(51, 6, false).unwrap();
    // Sections 1, 2, 3 and 5 may still come, and the rest of section 6.
    assert_eq!(counts(&receiver), ((2, 0), 0));
    let dropped = |receiver: &mut Receiver, section| {
        let inbox = &mut receiver.inbox;
        let section = SectionId(section);
        inbox.on_drop(VIDEO, section, Reason::Shed).unwrap();
    };
    dropped(&mut receiver, 2);
    dropped(&mut receiver, 6);
    assert_eq!(counts(&receiver), ((2, 0), 2));
    receiver.inbox.on_floor(VIDEO, SectionId(5)).unwrap();
    assert_eq!(counts(&receiver), ((2, 0), 4));
    receiver.inbox.on_floor(VIDEO, SectionId(7)).unwrap();
    receiver.inbox.on_end(VIDEO, 7).unwrap();
    assert_eq!(counts(&receiver), ((2, 0), 5));
    assert_eq!(receiver.inbox.counters().gaps.sum(), 0);
    receiver.poll(400);
    assert_eq!(counts(&receiver), ((2, 0), 5));
    assert_eq!(receiver.inbox.counters().gaps.sum(), 5);
}

/// I10 and P11 of a group due at 200 ms, then B12 and B13 of the group before it, due at 100 ms and
/// dependent on I10.
#[test]
fn a_dependency_is_delivered_before_its_dependents() {
    for (is_whole, expected) in [
        (true, [(0, None), (2, None), (3, None), (1, None)]),
        (
            false,
            [
                (2, None),
                (3, None),
                (0, Some(GapReason::Overdue)),
                (1, None),
            ],
        ),
    ] {
        let mut receiver = receiver(Deliver::Paced);
        for (section, due, needs) in [
            (0, 200, None),
            (1, 200, Some(0)),
            (2, 100, Some(0)),
            (3, 100, Some(0)),
        ] {
            for second in [false, true] {
                if section == 0 && second && !is_whole {
                    continue;
                }
                receiver
                    .half_that_needs(10, (section, due), needs, second)
                    .unwrap();
            }
        }
        let early = if is_whole { 3 } else { 2 };
        assert_eq!(receiver.poll(99), []);
        assert_eq!(receiver.poll(100), expected[..early]);
        assert_eq!(receiver.poll(199), []);
        assert_eq!(receiver.poll(200), expected[early..]);
    }
}

#[test]
fn sections_received_before_the_end_are_delivered_at_their_deadlines() {
    let closed = Some(GapReason::Closed);
    for (deliver, at_once) in [(Deliver::Paced, false), (Deliver::Early, true)] {
        let mut receiver = receiver(deliver);
        receiver.whole(20, 1);
        receiver.half(21, 2, false).unwrap();
        receiver.whole(22, 4);
        receiver.inbox.play_out(Time::MAX);
        let all = [(0, closed), (1, None), (2, closed), (3, closed), (4, None)];
        if at_once {
            assert_eq!(receiver.poll(23), all);
            continue;
        }
        // A gap waits only for the deadlines before it.
        assert_eq!(receiver.poll(23), all[..1]);
        assert_eq!(receiver.inbox.next_wakeup(&receiver.clock), ms(110));
        assert_eq!(receiver.poll(109), []);
        assert_eq!(receiver.poll(110), all[1..4]);
        assert_eq!(receiver.poll(139), []);
        assert!(!receiver.inbox.is_empty());
        let mut hurried = receiver;
        hurried.inbox.close();
        assert_eq!(hurried.poll(139), all[4..]);
        assert!(hurried.inbox.is_empty());
        assert_eq!(hurried.inbox.next_wakeup(&hurried.clock), Time::MAX);
    }
}

#[test]
fn without_enforced_deadlines_late_sections_keep_their_order() {
    let mut receiver = receiver_that(Deliver::Paced, false);
    receiver.whole(20, 0);
    receiver.half(21, 1, false).unwrap();
    receiver.whole(22, 2);
    // Nothing of section 3 has arrived.
    receiver.whole(23, 4);
    assert_eq!(receiver.poll(99), []);
    assert_eq!(receiver.poll(100), [(0, None)]);
    assert_eq!(receiver.poll(130), [], "2 waits for 1");
    receiver.half(131, 1, true).unwrap();
    assert_eq!(receiver.poll(131), [(1, None), (2, None)]);
    assert_eq!(receiver.poll(140), [], "4 waits for 3");
    receiver.whole(145, 3);
    assert_eq!(receiver.poll(145), [(3, None), (4, None)]);
    let counters = receiver.inbox.counters();
    assert_eq!((counters.on_time, counters.complete_late), (3, 2));
}

#[test]
fn without_enforced_deadlines_later_sections_hold_up_nothing() {
    let mut receiver = receiver_that(Deliver::Paced, false);
    receiver.half_due(20, (0, 300), false).unwrap();
    for second in [false, true] {
        receiver.half_due(20, (1, 200), second).unwrap();
        receiver.half_due(20, (2, 250), second).unwrap();
    }
    assert_eq!(receiver.poll(199), []);
    assert_eq!(receiver.poll(200), [(1, None)]);
    receiver.half_due(210, (0, 300), true).unwrap();
    assert_eq!(receiver.poll(250), [(2, None)]);
    assert_eq!(receiver.poll(299), []);
    assert_eq!(receiver.poll(300), [(0, None)]);
}

#[test]
fn a_peer_cannot_exceed_the_limits_of_the_inbox() {
    let mut receiver = receiver(Deliver::Paced);
    for section in 0..10 {
        receiver.half(1, section, false).unwrap();
    }
    let limit = 10_000;
    assert_eq!(
        receiver.half(1, 10, false),
        Err(Violation::TooManyBytes { limit })
    );
    assert!(matches!(
        receiver.half(1, 100, false),
        Err(Violation::TooManySections { limit: 100, .. })
    ));
    assert!(receiver.inbox.on_end(VIDEO, 3).is_err());
    let highest = SectionId(MAX_SECTION_COUNT);
    assert_eq!(receiver.inbox.on_floor(VIDEO, highest), Ok(()));
    assert_eq!(receiver.inbox.free_bytes(), 0);
    // All skipped sections are one gap.
    let now = ms(1_000);
    let polled: Vec<_> = std::iter::from_fn(|| receiver.inbox.poll(now, &receiver.clock)).collect();
    assert_eq!(polled.len(), 11);
    assert!(matches!(polled.last(), Some(Delivery::Gap(gap))
        if gap.count == MAX_SECTION_COUNT - 10 && gap.partial.is_none()));
    assert_eq!(receiver.inbox.free_bytes(), 10_000);
}

/// After the end of the peer, `play_out` bounds the deadlines of the remaining sections.
#[test]
fn deadlines_after_the_end_are_bounded() {
    let mut receiver = receiver(Deliver::Paced);
    receiver.whole(20, 0);
    for second in [false, true] {
        receiver.half_due(20, (1, 50_000), second).unwrap();
    }
    receiver.inbox.play_out(ms(1_000));
    assert_eq!(receiver.poll(100), [(0, None)]);
    assert_eq!(receiver.inbox.next_wakeup(&receiver.clock), ms(1_000));
    assert_eq!(receiver.poll(999), []);
    assert_eq!(receiver.poll(1_000), [(1, None)]);
    assert!(receiver.inbox.is_empty());
}

/// The time that the sender's clock seems to have run before the connection, in milliseconds.
const AHEAD: u64 = 1_800_000;

fn micros(millis: u64) -> u32 {
    (millis * 1_000) as u32
}

/// A section with a deadline too far away is due after the maximum latency, and its metadata has
/// that deadline.
#[test]
fn deadlines_are_limited_by_the_maximum_latency() {
    let far = 3_600_000;
    for (is_whole, lies, stated) in [
        (false, false, far),
        (true, false, far),
        (false, true, far),
        (true, true, far),
        (false, true, 59_000),
    ] {
        let mut receiver = receiver(Deliver::Paced);
        receiver.set_ahead();
        let stated = AHEAD + stated;
        receiver.half_due(20, (0, stated), false).unwrap();
        if lies {
            receiver.set_back();
        }
        if is_whole {
            receiver.half_due(5_000, (0, stated), true).unwrap();
        }
        // All packets of a section must have the same deadline.
        assert!(receiver.half_due(21, (0, stated + 1), false).is_err());
        let due = 60_000 + 20;
        assert_eq!(receiver.poll(5_001), []);
        assert_eq!(receiver.inbox.next_wakeup(&receiver.clock), ms(due));
        assert_eq!(receiver.poll(due - 1), []);
        let delivery = receiver.inbox.poll(ms(due), &receiver.clock).unwrap();
        let meta = match delivery {
            Delivery::Section(section) => {
                assert!(is_whole && !section.is_late);
                section.meta
            }
            Delivery::Gap(gap) => {
                assert!(!is_whole);
                gap.partial.unwrap().meta
            }
        };
        // A relay forwards this deadline.
        assert_eq!(receiver.clock.to_local(meta.deadline), ms(due));
    }
}

/// An application or a relay gets no later deadline, even if it gets the section at once.
#[test]
fn a_false_clock_postpones_no_deadline() {
    let mut receiver = receiver(Deliver::Early);
    receiver.set_ahead();
    let due = AHEAD + 50_000;
    receiver.half_due(20, (0, due), false).unwrap();
    receiver.set_back();
    receiver.half_due(22, (0, due), true).unwrap();
    let delivery = receiver.inbox.poll(ms(5_001), &receiver.clock);
    let Some(Delivery::Section(section)) = delivery else {
        panic!("{delivery:?}");
    };
    let deadline = receiver.clock.to_local(section.meta.deadline);
    assert_eq!(deadline, ms(60_020));
}
