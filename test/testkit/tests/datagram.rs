//! The datagram transport over simulated paths.

use bytes::Bytes;
use comity_congestion::table::{self, Parameters, Setup};
use comity_link::{Jitter, Limit, LinkConfig, Loss, LossModel, LossPlace, Queue};
use comity_testkit::datagram::{Pair, controllers};
use comity_testkit::paths::losses;
use comity_transport::datagram::{Config, Connection, Event};
use comity_transport::timeline::inbox::GapReason;
use comity_transport::timeline::outbox::{ArgumentError, Fate, SubmitError};
use comity_transport::timeline::{
    Deliver, Delivery, DropPolicy, Importance, Outgoing, Reliability, StreamId,
};
use comity_transport::wire::CloseCode;
use comity_units::{Rate, Seed, Span, Time};

#[path = "datagram/credit.rs"]
mod credit;
#[path = "datagram/encoder.rs"]
mod encoder;
#[path = "datagram/finish.rs"]
mod finish;
#[path = "datagram/gain.rs"]
mod gain;
#[path = "datagram/size.rs"]
mod size;
#[path = "datagram/taking.rs"]
mod taking;
#[path = "datagram/target.rs"]
mod target;

const VIDEO: StreamId = StreamId(0);

/// An end with this controller.
fn end(controller: &str, config: Config) -> Connection<Bytes> {
    let setup = Setup::new(comity_units::DataSize::new(u64::from(config.payload)));
    let controller = table::find(controller)
        .expect("a known controller")
        .build(&setup, &Parameters::new())
        .expect("valid parameters");
    Connection::new(config, config.ack_delay, controller, None, Time::ZERO).expect("a valid config")
}

fn ends(controller: &str, config: Config) -> [Connection<Bytes>; 2] {
    let one = Config {
        expect_deadlines: config.enforces_deadlines(),
        ..config
    };
    let other = Config {
        seed: Seed::new(1),
        ..one
    };
    comity_testkit::datagram::ends(controller, one, other)
}

/// A link of this rate with a queue of 60 packets and 20 ms of delay.
fn link(rate: Rate) -> LinkConfig {
    LinkConfig {
        queue: Queue::DropTail(Limit::Packets(60)),
        ..LinkConfig::new(rate, Span::from_millis(20))
    }
}

/// A section whose bytes identify it.
fn section(now: Time, number: u64, length: u32, latency: Span) -> Outgoing<Bytes> {
    let payload: Vec<u8> = (0..length).map(|at| byte(number, at)).collect();
    Outgoing {
        stream: VIDEO,
        importance: Importance(100),
        source_time: now,
        deadline: now + latency,
        needs: None,
        payload: Bytes::from(payload),
    }
}

fn byte(number: u64, at: u32) -> u8 {
    (number.wrapping_mul(31).wrapping_add(u64::from(at) * 7) >> 1) as u8
}

/// Sends `count` sections of `length` bytes, one each 40 ms, and runs until the pair is settled.
fn stream(pair: &mut Pair<Bytes>, count: u64, length: u32, latency: Span) {
    for number in 0..count {
        pair.run_until(Time::from_millis(40 * (number + 1)));
        let section = section(pair.now(), number, length, latency);
        pair.ends[0].submit(pair.now(), section).expect("room");
    }
    pair.ends[0].end(VIDEO).unwrap();
    // At 30 % loss in each direction, the last packets may need many probes.
    assert!(pair.run_until_settled(Span::from_secs(60)), "comes to rest");
    pair.run_until(pair.now() + latency + Span::from_millis(200));
}

/// Checks that every section was delivered exactly once and in order; returns how many of them
/// completely, with the right bytes.
fn whole(pair: &Pair<Bytes>, count: u64) -> u64 {
    let mut whole = 0;
    let deliveries = &pair.deliveries[1];
    assert_eq!(deliveries.len() as u64, count, "each section once");
    for (number, (_, delivery)) in (0..).zip(deliveries) {
        match delivery {
            Delivery::Section(section) => {
                assert_eq!(section.meta.section.0, number);
                let is_right = (0..)
                    .zip(&section.payload)
                    .all(|(at, &got)| got == byte(number, at));
                assert!(is_right, "section {number} has other bytes");
                whole += 1;
            }
            Delivery::Gap(gap) => assert_eq!(gap.section.0, number),
        }
    }
    whole
}

/// The counters of both ends are consistent.
fn check_sums(pair: &Pair<Bytes>) {
    for end in &pair.ends {
        let statistics = end.statistics();
        assert_eq!(
            statistics.outbox.bytes.submitted,
            statistics.outbox.bytes.sum()
        );
        assert_eq!(statistics.inbox.received, statistics.inbox.sum());
    }
    assert!(pair.violations.is_empty(), "{:?}", pair.violations);
}

#[test]
fn on_a_clean_path_everything_is_on_time() {
    let path = link(Rate::from_mbps(8));
    let mut pair = Pair::new(
        ends("reno", Config::default()),
        [&path, &path],
        Seed::new(1),
    );
    stream(&mut pair, 250, 15_000, Span::from_millis(120));
    assert_eq!(whole(&pair, 250), 250);
    check_sums(&pair);
    let sender = pair.ends[0].statistics();
    assert_eq!(
        (sender.sent.lost_packets, sender.sent.retransmitted_bytes),
        (0, 0)
    );
    assert_eq!(sender.inbox.on_time, 0);
    assert_eq!(pair.ends[1].statistics().inbox.on_time, 250);
    let peer = sender.peer.expect("the receiver reports");
    assert!((240..=250).contains(&peer.on_time), "{peer:?}");
    // The round trip is 40 ms, plus the queueing delay within a frame's packets.
    let rtt = sender.path.min_rtt.expect("measured").as_millis();
    assert!((40..=45).contains(&rtt), "{rtt}");
}

/// Two uniform draws from 0 to `a` differ by `a / 3` on average, and |D| is just that for packets
/// that do not queue. The reports of 20 s average it: the standard deviation of J is some 15 % of
/// it, and much less for a mean over independent ones.
#[test]
fn the_receiver_reports_the_jitter_and_the_delay_of_the_path() {
    for most in [0, 6, 24] {
        let config = Config {
            ack_frequency: 1,
            ..Config::default()
        };
        let clean = link(Rate::from_mbps(1_000));
        let forward = LinkConfig {
            jitter: Jitter::Uniform {
                max: Span::from_millis(most),
                reorder: false,
            },
            ..clean.clone()
        };
        let mut pair = Pair::new(ends("reno", config), [&forward, &clean], Seed::new(5));
        let (mut jitter, mut latest, mut least, mut reports) = (0.0, 0.0, 0.0, 0.0);
        for number in 0..1_000 {
            pair.run_until(Time::from_millis(40 * (number + 1)));
            let section = section(pair.now(), number, 500, Span::from_millis(200));
            pair.ends[0].submit(pair.now(), section).expect("room");
            if number >= 250
                && let Some(peer) = pair.ends[0].statistics().peer
            {
                jitter += peer.jitter.as_secs_f64() * 1e3;
                latest += peer.one_way_latest_us as f64 / 1e3;
                least += peer.one_way_least_us as f64 / 1e3;
                reports += 1.0;
            }
        }
        let most = most as f64;
        let reported = [jitter, latest - least, least].map(|sum| sum / reports);
        // The extra delay of a packet is its draw; the minimum in a window is near zero.
        let expected = [most / 3.0, most / 2.0, 20.0];
        for (reported, expected) in reported.iter().zip(expected) {
            let error = (reported - expected).abs();
            assert!(
                error < 0.15 * expected + 0.01,
                "{most} ms: {reported} ms, expected {expected} ms"
            );
        }
        assert!(pair.violations.is_empty(), "{:?}", pair.violations);
    }
}

#[test]
fn a_greedy_reno_fills_the_path() {
    let path = link(Rate::from_mbps(8));
    let config = Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        ..Config::default()
    };
    let mut pair = Pair::new(ends("reno", config), [&path, &path], Seed::new(1));
    for number in 0..400 {
        let section = section(pair.now(), number, 30_000, Span::from_secs(3_600));
        pair.ends[0].submit(pair.now(), section).expect("room");
    }
    pair.run_until(Time::from_secs(10));
    let acknowledged = pair.ends[0].statistics().outbox.bytes.acknowledged * 8;
    assert!(
        (64_000_000..80_000_000).contains(&acknowledged),
        "{acknowledged} bits in 10 s at 8 Mb/s"
    );
    check_sums(&pair);
}

#[test]
fn after_an_outage_of_three_seconds_the_stream_continues() {
    let path = link(Rate::from_mbps(8));
    let mut pair = Pair::new(
        ends("reno", Config::default()),
        [&path, &path],
        Seed::new(1),
    );
    pair.set_outage(Time::from_secs(4), Time::from_secs(7));
    stream(&mut pair, 500, 10_000, Span::from_millis(400));
    let whole = whole(&pair, 500);
    // 75 sections fall into the outage. The last ten of them can still be sent afterwards, after a
    // probe and a slow start.
    assert!((415..=436).contains(&whole), "{whole} of 500");
    check_sums(&pair);
    let statistics = pair.ends[0].statistics();
    assert_eq!(statistics.sent.late_bytes, 0);
    let late = pair.deliveries[1]
        .iter()
        .filter(|(at, delivery)| match delivery {
            Delivery::Section(section) => *at > section.meta.deadline + Span::from_millis(25),
            Delivery::Gap(_) => false,
        });
    assert_eq!(late.count(), 0);
}

/// An end's own unlimited deadlines do not affect what it receives: the peer sets the peer's
/// deadlines.
#[test]
fn an_end_without_deadlines_of_its_own_enforces_those_of_its_peer() {
    let path = link(Rate::from_mbps(8));
    let sender = Config::default();
    let receiver = Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        expect_deadlines: sender.enforces_deadlines(),
        seed: Seed::new(1),
        ..sender
    };
    let mut pair = Pair::new(
        [end("reno", sender), end("reno", receiver)],
        [&path, &path],
        Seed::new(1),
    );
    pair.set_outage(Time::from_millis(1_005), Time::from_millis(3_000));
    let latency = Span::from_millis(120);
    for number in 0..50 {
        pair.run_until(Time::from_millis(40 * (number + 1)));
        let section = section(pair.now(), number, 10_000, latency);
        pair.ends[0].submit(pair.now(), section).expect("room");
    }
    // The outage cuts a frame in two, which is delivered at its deadline during the outage. The
    // receiver's clock map may be off by the one-way delay until it has measured that.
    pair.run_until(Time::from_millis(2_500));
    let (at, gap) = pair.deliveries[1]
        .iter()
        .find_map(|(at, delivery)| match delivery {
            Delivery::Gap(gap) => Some((*at, gap)),
            Delivery::Section(_) => None,
        })
        .expect("the deadline was enforced");
    assert_eq!(gap.reason, GapReason::Overdue);
    let deadline = gap.partial.as_ref().expect("some of it came").meta.deadline;
    let apart = at
        .saturating_since(deadline)
        .max(deadline.saturating_since(at));
    assert!(apart < Span::from_millis(25), "{at} for {deadline}");
}

/// A host that holds a packet back learns until when: the first deadline of its sections, if
/// deadlines are enforced.
#[test]
fn a_packet_states_its_departure_deadline() {
    let (soon, later) = (Span::from_millis(50), Span::from_millis(120));
    let never = Config {
        drop: DropPolicy::Never,
        ..Config::default()
    };
    for (config, enforced) in [(Config::default(), true), (never, false)] {
        let mut end = end("reno", config);
        let now = Time::from_millis(7);
        for (number, latency) in [(0, later), (1, soon), (2, later)] {
            let section = section(now, number, 400, latency);
            end.submit(now, section).expect("room");
        }
        let mut until = Vec::new();
        let mut payload = Vec::new();
        while let Some(packet) = end.poll_transmit(now, &mut payload) {
            until.push(packet.leave_by);
        }
        assert!(payload.len() > 1_200, "all three have left");
        let expected = match enforced {
            true => [now + soon],
            false => [Time::MAX],
        };
        assert_eq!(until, expected, "one packet has room for them");

        // A packet without sections may always leave.
        payload.clear();
        end.close(now, CloseCode::DONE, "");
        let packet = end.poll_transmit(now, &mut payload).expect("a close");
        assert_eq!(packet.leave_by, Time::MAX);
    }
}

/// The ceiling holds on the wire over any time, headers and retransmissions included. A controller
/// limited by it does not grow because of that.
#[test]
fn the_ceiling_limits_the_sending_rate() {
    let path = link(Rate::from_mbps(100));
    for controller in ["reno", "cubic", "vegas"] {
        let config = Config {
            reliability: Reliability::Full,
            drop: DropPolicy::Never,
            max_rate: Rate::from_mbps(2),
            ..Config::default()
        };
        let mut pair = Pair::new(ends(controller, config), [&path, &path], Seed::new(1));
        for number in 0..400 {
            let section = section(Time::ZERO, number, 10_000, Span::from_secs(60));
            pair.ends[0].submit(Time::ZERO, section).expect("room");
        }
        let mut before = 0;
        for second in 1..=10 {
            pair.run_until(Time::from_secs(second));
            let wire = pair.ends[0].statistics().sent.wire_bytes;
            let sent = wire - before;
            before = wire;
            // 2 Mb/s are 250,000 bytes a second; plus the first packet, and a compensated
            // millisecond.
            let most = 250_000 + 1_500 + 250;
            assert!(
                (230_000..=most).contains(&sent),
                "{controller}: {sent} in second {second}"
            );
        }
        let path = pair.ends[0].statistics().path;
        // 10,000 bytes are in flight at this rate and round trip.
        assert!(path.window.get() < 100_000, "{controller}: {}", path.window);
        let target = path.target_bitrate.expect("the ceiling is known").as_bps();
        assert!(
            (1_700_000..2_000_000).contains(&target),
            "{controller}: {target}"
        );
    }
}

#[test]
fn a_burst_is_paced_and_idle_time_earns_nothing() {
    let path = link(Rate::from_mbps(8));
    let mut pair = Pair::new(
        ends("reno", Config::default()),
        [&path, &path],
        Seed::new(1),
    );
    stream(&mut pair, 100, 10_000, Span::from_millis(400));
    let before = pair.ends[0].statistics().path.window;
    // 2 Mb/s need 10,000 bytes in a round trip; an application-limited flow does not grow.
    assert!((14_000..60_000).contains(&before.get()), "{before}");
    pair.run_until(pair.now() + Span::from_secs(3_600));
    assert!(pair.ends.iter().all(Connection::is_open), "kept alive");
    assert_eq!(pair.ends[0].statistics().path.window, before);
    // A key frame of 50 packets after an idle hour meets a queue of 60 and loses nothing.
    let section = section(pair.now(), 100, 70_000, Span::from_millis(1_000));
    let big = Outgoing {
        stream: StreamId(1),
        ..section
    };
    pair.ends[0].submit(pair.now(), big).expect("room");
    assert!(pair.run_until_settled(Span::from_secs(3)));
    assert_eq!(pair.ends[0].statistics().sent.lost_packets, 0);
}

mod random_paths {
    use super::*;
    use comity_testkit::paths::random_path;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        /// Whatever the path does: no byte leaves after its deadline, each section is reported
        /// exactly once at both ends, complete sections have the right bytes, and the counters are
        /// consistent.
        #[test]
        fn deadlines_hold_and_sums_agree(
            forward in random_path(1..30, 1..100, 0.0..0.3),
            backward in random_path(1..30, 1..100, 0.0..0.3),
            controller in prop::sample::select(controllers()),
            drop in prop::sample::select(vec![DropPolicy::Expired, DropPolicy::Infeasible]),
            reliability in prop::sample::select(vec![Reliability::None, Reliability::Timeline]),
            length in 1_u32..60_000,
            latency in 20_u64..600,
            seed in any::<u64>(),
        ) {
            let config = Config { drop, reliability, ..Config::default() };
            let ends = ends(controller, config);
            let mut pair = Pair::new(ends, [&forward, &backward], Seed::new(seed));
            stream(&mut pair, 60, length, Span::from_millis(latency));
            whole(&pair, 60);
            check_sums(&pair);
            let sender = pair.ends[0].statistics();
            prop_assert_eq!(sender.sent.late_bytes, 0);
            let outcomes = pair.events[0].iter().filter(|(_, event)| {
                matches!(event, Event::Outcome(_))
            });
            prop_assert_eq!(outcomes.count(), 60);
            prop_assert_eq!(sender.outbox.bytes.queued + sender.outbox.bytes.in_flight, 0);
            prop_assert_eq!(sender.outbox.bytes.submitted, 60 * u64::from(length));
        }
    }
}

#[test]
fn a_receiver_that_runs_out_of_room_stops_the_sender_and_starts_it_again() {
    let path = link(Rate::from_mbps(50));
    let sender = Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        ..Config::default()
    };
    let receiver = Config {
        receive_buffer: 400_000,
        deliver: Deliver::Paced,
        ..sender
    };
    let mut pair = Pair::new(
        [end("reno", sender), end("reno", receiver)],
        [&path, &path],
        Seed::new(1),
    );
    pair.ends[0].set_initial_credit(400_000, sender.receive_sections);
    // Each is delivered a second after its creation, so they accumulate at the receiver: 50 Mb/s
    // would bring 6 MB in that second.
    for number in 0..100 {
        let section = section(
            Time::ZERO,
            number,
            20_000,
            Span::from_millis(1_000 + 20 * number),
        );
        pair.ends[0].submit(Time::ZERO, section).expect("room");
    }
    pair.run_until(Time::from_millis(900));
    let held = pair.ends[1].statistics().inbox.held;
    assert!((200_000..=400_000).contains(&held), "{held}");
    assert!(pair.run_until_settled(Span::from_secs(60)));
    pair.run_until(pair.now() + Span::from_secs(2));
    assert_eq!(whole(&pair, 100), 100);
    check_sums(&pair);
}

#[test]
fn sections_larger_than_the_room_left_pass_all_the_same() {
    let path = link(Rate::from_mbps(50));
    let config = Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        receive_buffer: 1_000_000,
        ..Config::default()
    };
    let mut pair = Pair::new(ends("reno", config), [&path, &path], Seed::new(1));
    for number in 0..6 {
        let section = section(Time::ZERO, number, 900_000, Span::from_secs(30));
        pair.ends[0].submit(Time::ZERO, section).expect("room");
    }
    assert!(pair.run_until_settled(Span::from_secs(100)));
    pair.run_until(Time::from_secs(120));
    assert_eq!(whole(&pair, 6), 6);
}

#[test]
fn closing_settles_everything_at_both_ends() {
    use comity_transport::datagram::{CloseReason, Event};
    use comity_transport::wire::CloseCode;
    let path = link(Rate::from_mbps(1));
    let mut pair = Pair::new(
        ends("reno", Config::default()),
        [&path, &path],
        Seed::new(1),
    );
    for number in 0..5 {
        let section = section(Time::ZERO, number, 50_000, Span::from_secs(10));
        pair.ends[0].submit(Time::ZERO, section).expect("room");
    }
    pair.run_until(Time::from_millis(500));
    let now = pair.now();
    pair.ends[0].close(now, CloseCode::DONE, "enough");
    pair.run_until(Time::from_secs(5));
    assert!(pair.ends.iter().all(Connection::is_closed));
    let last = |end: usize| pair.events[end].last().map(|(_, event)| event.clone());
    let reason = "enough".to_owned();
    let code = CloseCode::DONE;
    let local = CloseReason::Local {
        code,
        reason: reason.clone(),
    };
    assert_eq!(last(0), Some(Event::Closed(local)));
    assert_eq!(
        last(1),
        Some(Event::Closed(CloseReason::Peer { code, reason }))
    );
    let outcomes = pair.events[0]
        .iter()
        .filter(|(_, event)| matches!(event, Event::Outcome(_)));
    assert_eq!(outcomes.count(), 5);
    check_sums(&pair);
}

#[test]
fn a_peer_that_acknowledges_unsent_packets_is_disconnected() {
    use comity_congestion::Ecn;
    use comity_transport::datagram::Violation;
    use comity_transport::wire::frame::{Ack, AckRange, AckRanges, Frame, encode_departure};
    use comity_transport::wire::{CloseCode, Stamp};
    use comity_units::PacketNumber;
    let mut sender = end("reno", Config::default());
    let mut payload = Vec::new();
    let now = Time::from_millis(1);
    sender
        .submit(now, section(now, 0, 5_000, Span::from_secs(1)))
        .expect("room");
    let mut sent = 0;
    while sender.poll_transmit(now, &mut payload).is_some() {
        sent += 1;
    }
    assert_eq!(sent, 4, "5,000 bytes in packets of 1,423");
    let ranges = [AckRange {
        first: PacketNumber::ZERO,
        last: PacketNumber::new(4),
    }];
    let ack = Ack {
        proof: None,
        ranges: AckRanges::new(&ranges).expect("one range"),
        delay: Span::ZERO,
        arrival: Stamp::from_micros(0),
        ecn: None,
    };
    let mut lie = Vec::new();
    encode_departure(Stamp::from_micros(0), &mut lie);
    Frame::Ack(ack).encode(&mut lie).expect("well formed");
    let result = sender.on_packet(
        Time::from_millis(40),
        PacketNumber::ZERO,
        Ecn::NotCapable,
        &lie,
    );
    let number = PacketNumber::new(4);
    assert_eq!(result, Err(Violation::AcknowledgedUnsent { number }));
    assert!(!sender.is_open());
    let mut close = Vec::new();
    assert!(
        sender
            .poll_transmit(Time::from_millis(40), &mut close)
            .is_some()
    );
    // After the departure, an end of stream 0 with its one section, the code, and no reason.
    let code = CloseCode::OPTIMISTIC_ACK.get() as u8;
    assert_eq!(close[4..], [0x11, 0, 1, 0x10, code, 0]);
}

/// The receiver's measurements determine the window. On a new path both halves restart. Reports
/// about the old path count for nothing, whether in flight or sent before the receiver learns of
/// the change. The first waves of the new path are measured.
#[test]
fn on_a_new_path_both_halves_restart() {
    let config = Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        expect_deadlines: false,
        ..Config::default()
    };
    let segment = comity_units::DataSize::new(u64::from(config.payload));
    let setup = Setup {
        initial_window: segment * 2,
        ..Setup::new(segment)
    };
    let row = table::find("real").expect("a known controller");
    let controller = || {
        row.build(&setup, &Parameters::new())
            .expect("valid parameters")
    };
    let meter = row
        .build_meter(&setup, &Parameters::new())
        .and_then(Result::ok);
    let delay = config.ack_delay;
    let receiver = Connection::new(config, delay, controller(), meter, Time::ZERO).expect("valid");
    let path = link(Rate::from_mbps(8));
    let sender = Connection::new(config, delay, controller(), None, Time::ZERO).expect("valid");
    let ends = [sender, receiver];
    let mut pair = Pair::new(ends, [&path, &path], Seed::new(1));
    for number in 0..200 {
        let section = section(pair.now(), number, 30_000, Span::from_secs(3_600));
        pair.ends[0].submit(pair.now(), section).expect("room");
    }
    let segments = |pair: &Pair<Bytes>| {
        pair.ends[0].statistics().path.window.get() / u64::from(config.payload)
    };
    pair.run_until(Time::from_secs(2));
    assert!(segments(&pair) > 4);
    let moved = pair.now();
    pair.ends[0].on_new_path(moved, controller());
    let mut seen = Vec::new();
    for step in 1..=100 {
        pair.run_until(moved + Span::from_millis(10) * step);
        seen.push(segments(&pair));
    }
    seen.dedup();
    assert_eq!(seen.get(..5), Some(&[2, 4, 8, 16, 24][..]), "{seen:?}");
    check_sums(&pair);
}

/// The missing packets equal the link's drops, except for a few excused numbers.
#[test]
fn the_receiver_counts_lost_packets() {
    for (share, least, most) in [(0.0, 0, 0), (0.05, 95, 125)] {
        let path = LinkConfig {
            losses: losses(share),
            ..link(Rate::from_mbps(100))
        };
        let clean = link(Rate::from_mbps(100));
        let mut pair = Pair::new(
            ends("cubic", Config::default()),
            [&path, &clean],
            Seed::new(5),
        );
        stream(&mut pair, 800, 3_500, Span::from_secs(1));
        let (sent, received) = (
            pair.ends[0].statistics().sent.packets,
            pair.ends[1].statistics().received,
        );
        let missing = received.missing_packets;
        let lost = sent - received.packets;
        assert!(sent > 2_000, "{sent} packets");
        assert!(
            (least..=most).contains(&missing)
                && missing <= lost + 2
                && lost <= missing + sent / 250,
            "{missing} for {lost} of {sent}"
        );
    }
}
