use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const MIN: Option<Span> = Some(Span::from_millis(20));
const WINDOW: Span = Span::from_millis(5);

/// RFC 8985 literally, one segment after another.
#[derive(Clone, Debug)]
struct Literal {
    start: u64,
    end: u64,
    number: u64,
    sent_at: Time,
    was_resent: bool,
    is_delivered: bool,
    is_lost: bool,
    is_retransmitted: bool,
    is_skipped: bool,
}

#[derive(Debug, Default)]
struct Model {
    segments: Vec<Literal>,
    una: u64,
    newest: u64,
    rtt: Span,
}

impl Model {
    fn deliver(&mut self, now: Time, hit: impl Fn(&Literal) -> bool) -> u64 {
        let mut bytes = 0;
        for segment in &mut self.segments {
            if !hit(segment) || segment.is_delivered {
                continue;
            }
            bytes += segment.end - segment.start;
            segment.is_delivered = true;
            segment.is_skipped = false;
            let rtt = now.saturating_since(segment.sent_at);
            let is_ambiguous = segment.was_resent && Some(rtt) < MIN;
            if !is_ambiguous && segment.number > self.newest {
                self.newest = segment.number;
                self.rtt = rtt;
            }
        }
        bytes
    }

    fn find_lost(&mut self, now: Time) -> u64 {
        let mut bytes = 0;
        for segment in &mut self.segments {
            let waits = segment.is_lost && !segment.is_retransmitted;
            let is_overtaken = segment.number < self.newest;
            let is_due = segment.sent_at + self.rtt + WINDOW <= now;
            if !segment.is_delivered && !waits && is_overtaken && is_due {
                segment.is_lost = true;
                segment.is_retransmitted = false;
                let left = u64::from(!segment.is_skipped);
                bytes += left * (segment.end - segment.start);
            }
        }
        bytes
    }

    fn outstanding(&self) -> impl Iterator<Item = &Literal> {
        self.segments.iter().filter(|it| it.end > self.una)
    }

    fn pipe(&self) -> u64 {
        self.outstanding()
            .filter(|it| !it.is_delivered)
            .map(|it| {
                let copies = u64::from(!it.is_lost) + u64::from(it.is_retransmitted);
                copies * (it.end - it.start)
            })
            .sum()
    }

    fn next_lost(&self) -> Option<(u64, u64)> {
        self.outstanding()
            .find(|it| !it.is_delivered && it.is_lost && !it.is_retransmitted)
            .map(|it| (it.start, it.end))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    /// The same, but the segment is skipped.
    Skip(u64),
    Resend,
    Probe,
    /// Selectively acknowledges the segments with the bits of the mask.
    Select(u16),
    /// Acknowledges this many segments cumulatively.
    Advance(usize),
    Timeout,
    Absolve,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        6 => (1_u64..200).prop_map(Step::Send),
        2 => (1_u64..200).prop_map(Step::Skip),
        3 => Just(Step::Resend),
        1 => Just(Step::Probe),
        4 => any::<u16>().prop_map(Step::Select),
        3 => (1_usize..4).prop_map(Step::Advance),
        1 => Just(Step::Timeout),
        1 => Just(Step::Absolve),
    ];
    prop::collection::vec((0_u64..30, step), 0..60)
}

proptest! {
    /// The running sums agree with the segments after any steps; no outstanding byte is counted
    /// twice or missed.
    #[test]
    fn the_record_agrees_with_a_table(steps in steps()) {
        let mut flight = Flight::new();
        let mut model = Model { una: 1, ..Model::default() };
        let (mut now, mut max, mut sent) = (Time::from_secs(1), 1, 0);
        for (wait, step) in steps {
            now += Span::from_millis(wait);
            match step {
                Step::Send(length) | Step::Skip(length) => {
                    sent += 1;
                    flight.on_sent(now, max, max + length);
                    let is_skipped = matches!(step, Step::Skip(_));
                    if is_skipped {
                        flight.skip_last();
                    }
                    model.segments.push(Literal {
                        start: max,
                        end: max + length,
                        number: sent,
                        sent_at: now,
                        was_resent: false,
                        is_delivered: false,
                        is_lost: false,
                        is_retransmitted: false,
                        is_skipped,
                    });
                    max += length;
                }
                Step::Resend | Step::Probe => {
                    let range = if matches!(step, Step::Probe) {
                        flight.last()
                    } else {
                        flight.next_lost()
                    };
                    let segment = model
                        .segments
                        .iter_mut()
                        .find(|it| range == Some((it.start, it.end)) && !it.is_delivered);
                    if let Some(segment) = segment {
                        sent += 1;
                        flight.on_sent(now, segment.start, segment.end);
                        (segment.number, segment.sent_at) = (sent, now);
                        segment.was_resent = true;
                        if segment.is_skipped {
                            // It left for the first time.
                            segment.is_skipped = false;
                            segment.is_lost = false;
                        } else {
                            segment.is_retransmitted = true;
                        }
                    }
                }
                Step::Select(mask) => {
                    let una = model.una;
                    let blocks: Vec<(u64, u64)> = model
                        .segments
                        .iter()
                        .filter(|it| it.start > una)
                        .enumerate()
                        .filter(|(bit, _)| *bit < 16 && mask >> bit & 1 == 1)
                        .map(|(_, it)| (it.start, it.end))
                        .take(4)
                        .collect();
                    let delivery = flight.on_delivered(now, una, &blocks, MIN);
                    let bytes = model.deliver(now, |it| blocks.contains(&(it.start, it.end)));
                    prop_assert_eq!(delivery.bytes, bytes);
                }
                Step::Advance(count) => {
                    let una = model.outstanding().map(|it| it.end).nth(count - 1);
                    model.una = una.unwrap_or(max);
                    let delivery = flight.on_delivered(now, model.una, &[], MIN);
                    let una = model.una;
                    let bytes = model.deliver(now, |it| it.end <= una);
                    prop_assert_eq!(delivery.bytes, bytes);
                }
                Step::Absolve => {
                    flight.absolve();
                    for segment in &mut model.segments {
                        segment.is_lost = false;
                    }
                }
                Step::Timeout => {
                    let reneged = model.outstanding().next().is_some_and(|it| it.is_delivered);
                    flight.on_timeout(now);
                    let (una, rtt, has_newest) = (model.una, model.rtt, model.newest > 0);
                    let mut is_first = true;
                    for it in model.segments.iter_mut().filter(|it| it.end > una) {
                        let is_taken_back = reneged && it.is_delivered;
                        it.is_delivered &= !reneged;
                        let is_recent = has_newest && it.sent_at + rtt > now;
                        let may_arrive = is_recent && !is_first && !is_taken_back;
                        is_first = false;
                        if !it.is_delivered && !may_arrive {
                            it.is_lost = true;
                            it.is_retransmitted = false;
                        }
                    }
                }
            }
            let windows = Windows { sent: WINDOW, skipped: WINDOW };
            let lost = flight.find_lost(now, windows).map_or(0, |(bytes, _)| bytes);
            prop_assert_eq!(lost, model.find_lost(now));
            let has_lost = model
                .outstanding()
                .any(|it| !it.is_delivered && it.is_lost && !it.is_skipped);
            prop_assert_eq!(flight.has_lost(), has_lost);
            prop_assert_eq!(flight.pipe(max - model.una), model.pipe());
            prop_assert_eq!(flight.next_lost(), model.next_lost());
            let due = model
                .outstanding()
                .filter(|it| !it.is_delivered && (it.is_retransmitted || !it.is_lost))
                .filter(|it| it.number < model.newest)
                .map(|it| it.sent_at + model.rtt + WINDOW)
                .max();
            prop_assert_eq!(flight.reorder_at, due.unwrap_or(Time::MAX));
            let is_clean = model.outstanding().all(|it| {
                !it.is_delivered && !it.is_lost && !it.is_retransmitted
            });
            flight.is_forced = false;
            prop_assert_eq!(flight.is_quiet(), is_clean);
        }
    }
}

#[test]
fn a_part_of_a_segment_leaves_the_rest_in_flight() {
    let mut flight = Flight::new();
    flight.on_sent(Time::ZERO, 1, 101);
    flight.on_sent(Time::ZERO, 101, 201);
    let delivery = flight.on_delivered(Time::from_millis(30), 41, &[], MIN);
    assert_eq!((delivery.bytes, delivery.segments), (40, 0));
    assert_eq!(flight.first(), Some((41, 101)));
    assert_eq!(flight.pipe(160), 160);
    let delivery = flight.on_delivered(Time::from_millis(40), 201, &[], MIN);
    assert_eq!((delivery.bytes, delivery.segments), (160, 2));
    assert!(flight.is_quiet() && flight.first().is_none());
}

/// Three of the segments after a skipped one arrive. The skipped one is overdue at once, and the
/// sent ones wait for the reordering window.
#[test]
fn arrivals_after_a_skipped_segment_mark_no_other_as_lost() {
    const SPREAD: Windows = Windows {
        sent: WINDOW,
        skipped: Span::ZERO,
    };
    let mut flight = Flight::new();
    for segment in 0..7 {
        flight.on_sent(Time::ZERO, 1 + 100 * segment, 101 + 100 * segment);
        if segment == 1 {
            flight.skip_last();
        }
    }
    let now = Time::from_millis(30);
    // The first arrived, the second was skipped, the fourth is late.
    flight.on_delivered(now, 101, &[(201, 301), (401, 501)], MIN);
    assert!(flight.is_at_test() && !flight.has_overtaken(2));
    assert_eq!(flight.find_lost(now, SPREAD), None, "no sign of congestion");
    assert_eq!(flight.next_lost(), Some((101, 201)));
    assert!(!flight.has_lost() && flight.lost().next().is_none());
    flight.on_sent(now, 101, 201);
    assert_eq!(flight.next_lost(), None);
    assert!(flight.is_at_test() && !flight.has_retransmission());
    flight.on_delivered(now, 101, &[(401, 701)], MIN);
    assert!(flight.has_overtaken(2) && !flight.has_overtaken(4));
    // If it is then lost in the network, it is a loss like any other.
    let later = now + Span::from_millis(30);
    flight.on_sent(later, 701, 801);
    flight.on_delivered(later + Span::from_millis(30), 101, &[(401, 801)], MIN);
    let (lost, _) = flight
        .find_lost(later + Span::from_millis(60), SPREAD)
        .expect("both are overdue");
    assert_eq!(lost, 200);
    assert_eq!(flight.next_lost(), Some((101, 201)));
    flight.on_sent(later, 101, 201);
    assert!(!flight.is_at_test() && flight.has_retransmission());
}

#[test]
fn a_slow_start_counts_as_limited_up_to_twice_its_use() {
    let mut usage = Usage::default();
    usage.on_sent(1, 1_001, 1_000, false);
    assert!(!usage.is_limited(1_500, false));
    assert!(usage.is_limited(1_999, true) && !usage.is_limited(2_000, true));
    usage.on_sent(1, 1_501, 1_500, true);
    assert!(usage.is_limited(9_000, false));
    // The next window begins with the acknowledgement of the data sent.
    usage.on_sent(1_400, 1_601, 100, false);
    assert!(usage.is_limited(9_000, false));
    usage.on_sent(1_501, 1_701, 100, false);
    assert!(!usage.is_limited(9_000, false));
}
