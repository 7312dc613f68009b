//! TFRC's receiver against RFC 5348, sections 5 and 6: the whole record of arrivals is kept and
//! gone through from the beginning for each report.

use comity_congestion::equation::{throughput, throughput_with_timeout};
use comity_congestion::table::{self, Parameters, Setup, Value};
use comity_congestion::{Arrival, Meter, Report, Tag};
use comity_units::{DataSize, PacketNumber, Rate, Span, Time};
use proptest::prelude::*;

const NDUPACK: usize = 3;
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Losses with their times, by sections 5.1 and 5.2.
fn losses(record: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut sorted = record.to_vec();
    sorted.sort_by_key(|arrival| arrival.0);
    let mut found = Vec::new();
    for (index, pair) in sorted.windows(2).enumerate() {
        if sorted.len() - 1 - index < NDUPACK {
            break;
        }
        let ((s_before, t_before), (s_after, t_after)) = (pair[0], pair[1]);
        for s_loss in s_before + 1..s_after {
            let share = (s_loss - s_before) as f64 / (s_after - s_before) as f64;
            found.push((s_loss, t_before + (t_after - t_before) * share));
        }
    }
    found
}

/// The first losses of loss events, by section 5.2.
fn events(losses: &[(u64, f64)], rtt: f64) -> Vec<(u64, f64)> {
    let mut events: Vec<(u64, f64)> = Vec::new();
    for &(number, at) in losses {
        if events.last().is_none_or(|(_, began)| at > began + rtt) {
            events.push((number, at));
        }
    }
    events
}

/// Intervals, the newest (open) first, and the average of section 5.4; `first` stands for the first
/// of all.
fn mean(events: &[(u64, f64)], highest: u64, first: f64) -> f64 {
    let (newest, _) = *events.last().unwrap();
    let mut intervals = vec![(highest - newest + 1) as f64];
    for pair in events.windows(2).rev() {
        intervals.push((pair[1].0 - pair[0].0) as f64);
    }
    intervals.push(first);
    let k = intervals.len() - 1;
    let n = k.min(8);
    let (mut i_tot0, mut i_tot1, mut w_tot) = (0.0, 0.0, 0.0);
    for i in 0..n {
        i_tot0 += intervals[i] * WEIGHTS[i];
        w_tot += WEIGHTS[i];
    }
    for i in 1..=n {
        i_tot1 += intervals[i] * WEIGHTS[i - 1];
    }
    f64::max(i_tot0, i_tot1) / w_tot
}

fn build(parameters: &Parameters) -> Box<dyn Meter> {
    let setup = Setup::new(DataSize::new(1_000));
    let row = table::find("tfrc").unwrap();
    row.build_meter(&setup, parameters).unwrap().unwrap()
}

fn arrive(meter: &mut dyn Meter, now: Time, number: u32, rtt: Span) {
    meter.on_arrival(&Arrival {
        now,
        // Not the controller's: the transport leaves numbers out and gives them to other packets.
        number: PacketNumber::new(u64::from(number) * 3),
        payload: DataSize::new(1_000),
        wire: DataSize::new(1_040),
        marked: false,
        tag: Tag::Numbered { number, rtt },
    });
}

/// The report at this moment, as a transport requests it.
fn ask(meter: &mut dyn Meter, now: Time) -> Option<(f64, Rate)> {
    if meter.wakeup().is_none_or(|due| due > now) {
        return None;
    }
    meter.on_wakeup(now);
    match meter.report(now) {
        Report::LossEvents { rate, received } => Some((rate, received)),
        other => panic!("{other:?}"),
    }
}

const RTT: Span = Span::from_millis(100);

/// Reports of loss events: when in ms, the rate of events, and the rate of arrival.
type Reports = Vec<(u64, f64, Rate)>;

/// 1000 B packets every 10 ms under a round trip of 100 ms, from which `lost` are missing.
fn stream(
    parameters: &Parameters,
    count: u32,
    lost: impl Fn(u32) -> bool,
) -> (Box<dyn Meter>, Reports) {
    let mut meter = build(parameters);
    let mut reports = Vec::new();
    for number in (0..count).filter(|number| !lost(*number)) {
        let millis = 1_000 + u64::from(number) * 10;
        let now = Time::from_millis(millis);
        arrive(&mut *meter, now, number, RTT);
        if let Some((rate, received)) = ask(&mut *meter, now) {
            reports.push((millis, rate, received));
        }
        assert_eq!(
            meter.report(now),
            Report::None,
            "what was reported is not repeated"
        );
    }
    (meter, reports)
}

fn plain() -> Parameters {
    Parameters::new().with("discounting", Value::Flag(false))
}

fn last(reports: &[(u64, f64, Rate)]) -> f64 {
    reports.last().unwrap().1
}

fn near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 1e-9,
        "{found}, expected {expected}"
    );
}

/// Every hundredth packet is lost, 1 s apart: all intervals are 100 and p = 1 %. Nine events close
/// eight intervals, which push the first, made up one out.
#[test]
fn even_losses_give_their_own_rate() {
    let (_, reports) = stream(&plain(), 1_050, |number| number % 100 == 50);
    near(last(&reports), 0.01);
}

/// Two losses 50 ms apart are one event, two that are 110 ms apart are two: the second closes an
/// interval of 11 packets, and the ones after it are 89.
#[test]
fn losses_of_one_round_trip_are_one_event() {
    let (_, reports) = stream(&plain(), 1_050, |number| matches!(number % 100, 50 | 55));
    near(last(&reports), 0.01);
    let (_, reports) = stream(&plain(), 1_050, |number| matches!(number % 100, 50 | 61));
    // The last report comes when 1044 has arrived: the open interval is 84 from 961 on.
    let open = 84.0 + 11.0 + 89.0 + 11.0 + 0.8 * 89.0 + 0.6 * 11.0 + 0.4 * 89.0 + 0.2 * 11.0;
    let closed = 11.0 + 89.0 + 11.0 + 89.0 + 0.8 * 11.0 + 0.6 * 89.0 + 0.4 * 11.0 + 0.2 * 89.0;
    assert!(open > closed);
    let at = reports.last().unwrap().0;
    let highest = (at - 1_000) / 10;
    near(last(&reports), 6.0 / (open + (highest as f64 - 1_044.0)));
}

/// The first loss at 50 is known with 53, at 1.53 s; reports come for the first packet, once in
/// each round trip, and for the loss.
#[test]
fn reports_come_once_in_a_round_trip_and_at_once_for_a_loss() {
    let (_, reports) = stream(&plain(), 100, |number| number == 50);
    let times: Vec<u64> = reports.iter().map(|report| report.0).collect();
    assert_eq!(
        times,
        [
            1_000, 1_100, 1_200, 1_300, 1_400, 1_510, 1_530, 1_630, 1_730, 1_830, 1_930
        ]
    );
    assert_eq!(reports[4].1, 0.0);
    // Ten packets in a round trip; the one that was to come at the end of the fifth is missing.
    assert_eq!(reports[4].2, Rate::from_kbps(800));
    assert!(reports[6].1 > 0.0);
    // Two packets since the last report, 20 ms ago, and 80 ms of 727 kb/s before it.
    let received = reports[6].2.as_bps() as f64;
    assert!(
        (received - (16_000.0 + 0.08 * 727_272.0) / 0.1).abs() < 100.0,
        "{received}"
    );
}

/// Section 6.2: what arrived in the last round trip, so that a packet in a round trip is the least
/// that is reported, however long nothing came before. Two packets 30 ms apart every half second,
/// 1000 B each: the first is reported at once, with 1000 B in 100 ms; the second a round trip
/// later, with what has arrived since, 1000 B in 100 ms again.
#[test]
fn silence_does_not_lower_the_receive_rate() {
    let mut meter = build(&plain());
    let mut reports = Vec::new();
    for number in 0..8_u32 {
        let millis = 1_000 + u64::from(number / 2) * 500 + u64::from(number % 2) * 30;
        let now = Time::from_millis(millis);
        arrive(&mut *meter, now, number, RTT);
        let due = meter.wakeup().unwrap().max(now);
        if due < Time::from_millis(millis + 470) {
            let (_, received) = ask(&mut *meter, due).unwrap();
            reports.push((due.as_nanos() / 1_000_000, received));
        }
    }
    let packet = Rate::from_kbps(80);
    assert_eq!(
        reports,
        [
            (1_000, packet),
            (1_100, packet),
            (1_500, packet),
            (1_600, packet),
            (2_000, packet),
            (2_100, packet),
            (2_500, packet),
            (2_600, packet),
        ]
    );
}

/// The first interval is that of the throughput equation: 100 packets of 1000 B a second.
#[test]
fn the_first_loss_stands_for_the_rate_until_then() {
    let (_, reports) = stream(&plain(), 60, |number| number == 50);
    let back = throughput(DataSize::new(1_000), RTT, last(&reports)).as_bps() as f64;
    assert!((back / 800_000.0 - 1.0).abs() < 0.01, "{back}");
    // Half a packet in a round trip where the first packet was lost, before the open interval is
    // longer.
    let (_, reports) = stream(&plain(), 4, |number| number == 0);
    let back = throughput(DataSize::new(1_000), RTT, last(&reports)).as_bps() as f64;
    assert!((back / 40_000.0 - 1.0).abs() < 0.01, "{back}");
    // The report by then, if it was another one: the first packet.
    let (_, reports) = stream(&plain(), 5, |number| number == 1);
    let back = throughput(DataSize::new(1_000), RTT, last(&reports)).as_bps() as f64;
    assert!((back / 80_000.0 - 1.0).abs() < 0.01, "{back}");
}

/// The equation of the sender's own timeout, and of what headers take of it where packets are
/// small.
#[test]
fn the_first_interval_is_that_of_the_senders_equation() {
    let (_, usual) = stream(&plain(), 60, |number| number == 50);
    let short = plain().with("timeout", Value::Number(1.0));
    let (_, short) = stream(&short, 60, |number| number == 50);
    let back = throughput_with_timeout(DataSize::new(1_000), RTT, last(&short), 1.0).as_bps();
    assert!((back as f64 / 800_000.0 - 1.0).abs() < 0.01, "{back}");
    assert!(last(&short) > 1.01 * last(&usual));
    // 1000 of 1250 bytes are payload.
    let small = plain()
        .with("small_packets", Value::Flag(true))
        .with("header", Value::Bytes(DataSize::new(250)));
    let (_, small) = stream(&small, 54, |number| number == 50);
    let back = throughput(DataSize::new(1_460), RTT, last(&small)).as_bps() as f64;
    assert!((back * 0.8 / 800_000.0 - 1.0).abs() < 0.01, "{back}");
}

/// How a flow really begins: two packets at once that know no round trip, then four 25 ms apart,
/// then eight 12.5 ms apart, and so on, and one is lost. How close together the first ones came
/// must leave no trace.
#[test]
fn the_first_flight_measures_nothing() {
    let mut meter = build(&plain());
    let start = Time::from_secs(1);
    for number in 0..2 {
        let now = start + Span::from_micros(100) * u64::from(number);
        arrive(&mut *meter, now, number, Span::ZERO);
        assert_eq!(ask(&mut *meter, now), Some((0.0, Rate::ZERO)), "{number}");
    }
    let mut number = 2;
    let (mut most, mut first) = (Rate::ZERO, None);
    for flight in 1..=4_u64 {
        let packets = 2 << flight;
        for index in 0..packets {
            let now = start + RTT * flight + RTT / packets * index;
            number += 1;
            if flight == 4 && index == 10 {
                continue;
            }
            arrive(&mut *meter, now, number - 1, RTT);
            if let Some((p, received)) = ask(&mut *meter, now) {
                most = most.max(received);
                if p > 0.0 {
                    first.get_or_insert(p);
                }
            }
        }
    }
    let back = throughput(DataSize::new(1_000), RTT, first.unwrap()).as_bps() as f64;
    let most = most.as_bps() as f64;
    // Sixteen packets in the round trip before the last. The last report may have seen only a part.
    assert!((0.8e6..1.7e6).contains(&most), "{most}");
    assert!((0.5..1.02).contains(&(back / most)), "{back} of {most}");
}

/// A loss in that flight: half a packet in a round trip, whatever the round trip turns out to be.
#[test]
fn a_loss_before_the_round_trip_is_known_begins_at_half_a_packet_in_one() {
    for lost in 0..2 {
        let mut meter = build(&plain());
        let mut reported = None;
        for number in (0..5).filter(|number| *number != lost) {
            let now = Time::from_secs(1) + Span::from_micros(100) * u64::from(number);
            arrive(&mut *meter, now, number, Span::ZERO);
            reported = reported.or(ask(&mut *meter, now).filter(|(p, _)| *p > 0.0));
        }
        let (p, received) = reported.unwrap();
        let back = throughput(DataSize::new(1_000), RTT, p).as_bps() as f64;
        assert!((back / 40_000.0 - 1.0).abs() < 0.01, "{lost}: {back}");
        assert_eq!(received, Rate::ZERO);
    }
}

/// Intervals of 100, then none lost for long: the past counts for a quarter at the least, in ns-2
/// for half. 8 of 100, open 1000: D = max(1/4, 200 / 1000), by hand: (1000 + 1/4 · 500) / (1 +
/// 5/4); (1000 + 1/2 · 500) / (1 + 5/2).
#[test]
fn history_is_discounted() {
    let lost = |number: u32| number <= 1_050 && number % 100 == 50;
    let (_, with) = stream(&Parameters::new(), 2_050, lost);
    let (_, without) = stream(&plain(), 2_050, lost);
    let highest = |reports: &[(u64, f64, Rate)]| (reports.last().unwrap().0 - 1_000) / 10;
    let open = |reports: &[(u64, f64, Rate)]| (highest(reports) - 1_050 + 1) as f64;
    near(last(&with), 2.25 / (open(&with) + 125.0));
    let half = Parameters::new().with("min_discount", Value::Number(0.5));
    let (_, half) = stream(&half, 2_050, lost);
    near(last(&half), 3.5 / (open(&half) + 250.0));
    near(last(&without), 6.0 / (open(&without) + 500.0));
}

/// Two events 11 packets apart, with two losses in the first: the interval counts as 5.5 for small
/// packets.
#[test]
fn short_intervals_of_small_packets_count_their_losses() {
    let small = plain().with("small_packets", Value::Flag(true));
    let lost = |number: u32| matches!(number, 50 | 52 | 61);
    let (_, reports) = stream(&small, 66, lost);
    let (_, large) = stream(&plain(), 66, lost);
    let first =
        |reports: &[(u64, f64, Rate)]| reports.iter().find(|report| report.1 > 0.0).unwrap().1;
    near(last(&reports), 2.0 / (5.5 + 1.0 / first(&reports)));
    near(last(&large), 2.0 / (11.0 + 1.0 / first(&large)));
}

#[test]
fn a_mark_is_a_loss_event() {
    let mut meter = build(&plain());
    for number in 0..100_u32 {
        let now = Time::from_millis(1_000 + u64::from(number) * 10);
        meter.on_arrival(&Arrival {
            now,
            number: PacketNumber::new(0),
            payload: DataSize::new(1_000),
            wire: DataSize::new(1_040),
            marked: number == 50,
            tag: Tag::Numbered { number, rtt: RTT },
        });
        let reported = ask(&mut *meter, now);
        assert_eq!(
            reported.is_some_and(|(p, _)| p > 0.0),
            reported.is_some() && number >= 50,
            "{number}"
        );
        assert!(number != 50 || reported.is_some(), "at once");
    }
}

/// A sender on a new path counts from 0 again; numbers that jump by billions take no time.
#[test]
fn numbers_that_begin_again_or_jump_are_survived() {
    let (mut meter, _) = stream(&plain(), 1_050, |number| number % 100 == 50);
    let mut now = Time::from_secs(100);
    let (mut reported, mut most) = (1.0, Rate::ZERO);
    for number in 0..300_u32 {
        now += Span::from_millis(10);
        arrive(&mut *meter, now, number, RTT);
        if let Some((p, received)) = ask(&mut *meter, now) {
            (reported, most) = (p, most.max(received));
        }
    }
    assert_eq!(reported, 0.0, "nothing is lost on the new path");
    assert!(most < Rate::from_mbps(1), "{most}");
    for jump in 1..5_u32 {
        for number in 0..5 {
            now += Span::from_millis(10);
            arrive(
                &mut *meter,
                now,
                jump.wrapping_mul(1_000_000_000) + number,
                Span::from_nanos(1_000),
            );
            reported = ask(&mut *meter, now).map_or(reported, |(p, _)| p);
        }
    }
    assert!((0.0..=1.0).contains(&reported));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Random losses, reordering within the threshold, and gaps between packets.
    #[test]
    fn the_loss_event_rate_is_that_of_the_rfc(
        packets in prop::collection::vec((prop::bool::weighted(0.06), 1u64..30, 0usize..3), 20..600),
        start in any::<u32>(),
        rtt_ms in 20u64..200,
    ) {
        // No two losses are exactly a round trip apart.
        let rtt = Span::from_millis(rtt_ms) + Span::from_nanos(500_137);
        let mut sequence: Vec<(u32, bool)> = packets.iter().enumerate()
            .map(|(number, packet)| (number as u32, packet.0)).collect();
        // Packets move back by less than it takes to declare them lost.
        let mut index = 0;
        while index < sequence.len() {
            let by = packets[index].2;
            if by > 0 && index + by < sequence.len() && !sequence[index].1 {
                let moved = sequence.remove(index);
                sequence.insert(index + by, moved);
                index += by + 1;
            }
            index += 4;
        }
        let mut meter = build(&plain());
        let mut record: Vec<(u64, f64)> = Vec::new();
        let (mut now, mut first) = (Time::from_secs(1), None);
        let mut event_count = 0;
        for (&(number, is_lost), packet) in sequence.iter().zip(&packets) {
            now += Span::from_millis(packet.1);
            if is_lost && number > 4 {
                continue;
            }
            record.push((u64::from(number), now.as_secs_f64()));
            arrive(&mut *meter, now, start.wrapping_add(number), rtt);
            let reported = ask(&mut *meter, now);
            let events = events(&losses(&record), rtt.as_secs_f64());
            prop_assert!(events.len() <= event_count + 1 || reported.is_some());
            event_count = events.len();
            let Some((p, _)) = reported else { continue };
            if events.is_empty() {
                prop_assert_eq!(p, 0.0);
                continue;
            }
            let highest = record.iter().map(|arrival| arrival.0).max().unwrap();
            // The first interval is taken as reported: the equation's inverse has a test of its
            // own.
            let first = match first {
                Some(first) => first,
                None => {
                    let open = (highest - events[0].0 + 1) as f64;
                    // While the open interval is longer, the first cannot be seen.
                    if events.len() > 1 || 1.0 / p <= open + 1e-6 {
                        break;
                    }
                    *first.insert(1.0 / p)
                }
            };
            let expected = (1.0 / mean(&events, highest, first)).min(1.0);
            prop_assert!((p / expected - 1.0).abs() < 1e-6, "{p}, expected {expected}; {events:?} of {record:?} at {now}");
        }
    }
}
