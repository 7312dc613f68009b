//! TCP-Real on the byte-sequence transport: waves and levels as options, the wave-decision timer at
//! the receiver, the duplicate bit at the sender, and transfers over bad paths.

use std::ops::RangeInclusive;
use std::sync::Arc;

use comity_congestion::TimeoutRepair;
use comity_congestion::controllers::tcp_real::{
    Opening, TcpReal, TcpRealConfig, TimeoutReduction, WaveMeter,
};
use comity_congestion::recovery::RecoveryConfig;
use comity_tcp::checksum::{Checksum, PseudoHeader};
use comity_tcp::codec::{Ports, decode, encode};
use comity_tcp::{Config, Connection};
use comity_testkit::tcp::{BORN, Chaos, Fate, Pair, Path, Script, Side};
use comity_units::{DataSize, Rate, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

const METERED: Config = Config {
    recovery: RecoveryConfig::RENO,
    metered: true,
    ..BORN
};

fn tcp_real() -> TcpRealConfig {
    TcpRealConfig::new(DataSize::new(100))
}

fn sender(config: Config) -> Connection {
    sender_with(config, tcp_real())
}

fn sender_with(config: Config, tcp_real: TcpRealConfig) -> Connection {
    Connection::connect(Arc::new(config), Box::new(TcpReal::new(tcp_real)))
}

fn receiver(config: Config, tcp_real: TcpRealConfig) -> Connection {
    Connection::listen_to_receive(Arc::new(config)).with_meter(Box::new(WaveMeter::new(tcp_real)))
}

/// Expects these positions of a wave of this many segments at `at`, in full segments from number
/// `first` on.
fn expect_wave(
    script: &mut Script,
    at: u64,
    first: u64,
    (wave, positions, segments): (u16, RangeInclusive<u16>, u16),
) {
    for (start, position) in (first..).step_by(100).zip(positions) {
        script.expect(
            at,
            &format!(". {start}+100 ack 1 <wave {wave}:{position}/{segments}>"),
        );
    }
}

/// A sender with the first packet of two acknowledged, level 3 received and six segments in flight.
fn six_in_flight() -> Script {
    let mut script = Script::new(sender(METERED));
    script.call(0, |connection| connection.write(10_000));
    expect_wave(&mut script, 0, 1, (1, 1..=2, 2));
    script.send(100, ". 1+0 ack 101 win 10000 <level 3>");
    expect_wave(&mut script, 100, 201, (2, 1..=5, 6));
    script
}

/// Section 2.2 with waves of 12 segments, level 6. At intervals of 10 ms the first takes 110 ms. Of
/// the second, at 1,000 ms, the last is lost. The timer is 2 · 110 ms, so the segment at 1,220 ms
/// decides nothing and the one at 1,230 ms does. The rate is 110/230 of the one before, the
/// threshold is 3 and therefore below the level: 6 · (0.618 + 0.382 · 110/230) = 4.80. The
/// acknowledgement of that very segment carries 5.
#[test]
fn the_wave_decision_timer_at_the_receiver() {
    let by_figure = TcpRealConfig {
        opening: Opening::Figure,
        ..tcp_real()
    };
    let mut script = Script::new(receiver(METERED, by_figure));
    let mut next = 1;
    let mut segment = |script: &mut Script, at: u64, wave: &str, answer: Option<&str>| {
        script.send(at, &format!(". {next}+100 ack 1 win 10000 <wave {wave}>"));
        next += 100;
        let level = answer.map_or(String::new(), |level| format!(" <level {level}>"));
        script.expect(at, &format!(". 1+0 ack {next}{level}"));
    };
    for position in 1..=12 {
        // No level exists before a rate.
        let level = (position == 12).then_some("6");
        segment(
            &mut script,
            (position - 1) * 10,
            &format!("1:{position}/12"),
            level,
        );
    }
    for position in 1..=11 {
        segment(
            &mut script,
            990 + position * 10,
            &format!("2:{position}/12"),
            Some("6"),
        );
    }
    segment(&mut script, 1_220, "3:1/12", Some("6"));
    segment(&mut script, 1_230, "3:2/12", Some("5"));
}

/// "If any DACK is received, the bit is set. Upon a timeout, the sender retransmits the packet but
/// reduces the congestion window to two segments only if the bit is not set." The timer backs off
/// either way.
#[test]
fn the_duplicate_bit_at_the_sender() {
    for is_duplicate_seen in [false, true] {
        let mut script = Script::new(sender(METERED));
        script.call(0, |connection| connection.write(10_000));
        script.expect(0, ". 1+100 ack 1 <wave 1:1/2>");
        script.expect(0, ". 101+100 ack 1 <wave 1:2/2>");
        script.send(100, ". 1+0 ack 101 win 10000 <level 2>");
        expect_wave(&mut script, 100, 201, (2, 1..=3, 4));
        if is_duplicate_seen {
            script.send(110, ". 1+0 ack 101 win 10000 <level 2>");
        }
        // One sample of 100 ms: 300 ms, under the floor of a second.
        script.expect(
            1_100,
            if is_duplicate_seen {
                ". 101+100 ack 1 <wave 2:4/4>"
            } else {
                ". 101+100 ack 1 <wave 3:1/2>"
            },
        );
        if is_duplicate_seen {
            expect_wave(&mut script, 1_100, 201, (3, 1..=3, 4));
        } else {
            script.expect(1_100, ". 201+100 ack 1 <wave 3:2/2>");
        }
        script.expect_nothing(3_099);
        let window = script.connection().congestion_window();
        assert_eq!(window, if is_duplicate_seen { 400 } else { 200 });
        // Any acknowledgement with the same level restores the window.
        script.send(3_099, ". 1+0 ack 201 win 10000 <level 2>");
        assert_eq!(script.connection().congestion_window(), 400);
    }
}

/// Four segments in flight from 101 on, and one duplicate acknowledgement.
fn four_in_flight_and_a_duplicate(tcp_real: TcpRealConfig) -> Script {
    let mut script = Script::new(sender_with(METERED, tcp_real));
    script.call(0, |connection| connection.write(10_000));
    expect_wave(&mut script, 0, 1, (1, 1..=2, 2));
    script.send(100, ". 1+0 ack 101 win 10000 <level 2>");
    expect_wave(&mut script, 100, 201, (2, 1..=3, 4));
    script.send(110, ". 1+0 ack 101 win 10000 <level 2>");
    script
}

/// "The sender retransmits the packet", and only that. The other three count as outstanding, so
/// only an advance releases new data, as much as it covers. The next hole lies below the data
/// outstanding at the timeout. Three duplicates for it repair nothing: it waits for the timer,
/// which sends that one packet.
#[test]
fn a_timeout_may_send_the_first_segment_alone() {
    let mut script = four_in_flight_and_a_duplicate(TcpRealConfig {
        timeout_repair: TimeoutRepair::FirstSegment,
        ..tcp_real()
    });
    script.expect(1_100, ". 101+100 ack 1 <wave 2:4/4>");
    script.expect_nothing(1_199);
    assert_eq!(script.connection().congestion_window(), 400);
    script.send(1_200, ". 1+0 ack 301 win 10000 <level 2>");
    expect_wave(&mut script, 1_200, 501, (3, 1..=2, 4));
    for at in [1_300, 1_310, 1_320] {
        script.send(at, ". 1+0 ack 301 win 10000 <level 2>");
        script.expect_nothing(at);
    }
    assert_eq!(script.connection().statistics().fast_retransmits, 0);
    // The timer of 1,100 backed off to two seconds; the advance restarted it with that.
    script.expect(3_200, ". 301+100 ack 1 <wave 3:3/4>");
    script.expect_nothing(3_300);
    assert_eq!(script.connection().statistics().timeouts, 2);
    assert_eq!(script.connection().statistics().retransmitted, 2);
}

/// "Always backs off as Tahoe and Reno": a timeout after a duplicate reduces the window as well.
/// Everything is then retransmitted, whatever the repair of a timeout without a reduction.
#[test]
fn every_timeout_may_reduce_the_window() {
    for timeout_repair in [TimeoutRepair::GoBackN, TimeoutRepair::FirstSegment] {
        let mut script = four_in_flight_and_a_duplicate(TcpRealConfig {
            timeout_reduction: TimeoutReduction::Always,
            timeout_repair,
            ..tcp_real()
        });
        expect_wave(&mut script, 1_100, 101, (3, 1..=2, 2));
        script.expect_nothing(1_199);
        assert_eq!(script.connection().congestion_window(), 200);
        script.send(1_200, ". 1+0 ack 201 win 10000 <level 2>");
        assert_eq!(script.connection().congestion_window(), 400);
        expect_wave(&mut script, 1_200, 301, (4, 1..=3, 4));
    }
}

/// The third duplicate repairs and restarts the timer, although its data was seen as duplicate. The
/// timeout clears the bit, so the next one, without an acknowledgement in between, does reduce the
/// window.
#[test]
fn the_duplicates_that_repair_do_not_clear_the_bit() {
    let mut script = six_in_flight();
    for at in [110, 120] {
        script.send(at, ". 1+0 ack 101 win 10000 <level 3>");
    }
    script.send(130, ". 1+0 ack 101 win 10000 <level 3>");
    script.expect(130, ". 101+100 ack 1 <wave 2:6/6>");
    // Three duplicates release three new segments beyond the full window.
    expect_wave(&mut script, 130, 701, (3, 1..=3, 6));
    expect_wave(&mut script, 1_130, 101, (3, 4..=6, 6));
    expect_wave(&mut script, 1_130, 401, (4, 1..=3, 6));
    assert_eq!(script.connection().congestion_window(), 600);
    expect_wave(&mut script, 3_130, 101, (5, 1..=2, 2));
    assert_eq!(script.connection().congestion_window(), 200);
}

/// A source that pauses ends its wave with its last segment, and so does a peer whose window
/// closes. A peer window that is only smaller than the controller's moves on with each
/// acknowledgement, and does not.
#[test]
fn a_wave_ends_before_a_pause() {
    let mut script = Script::new(sender(METERED));
    script.call(0, |connection| connection.write(600));
    script.expect(0, ". 1+100 ack 1 <wave 1:1/2>");
    script.expect(0, ". 101+100 ack 1 <wave 1:2/2>");
    script.send(100, ". 1+0 ack 201 win 10000 <level 6>");
    expect_wave(&mut script, 100, 201, (2, 1..=3, 12));
    script.expect(100, "P. 501+100 ack 1 <wave 2:4/4>");
    script.send(200, ". 1+0 ack 601 win 10000 <level 6>");
    script.call(5_200, |connection| connection.write(10_000));
    expect_wave(&mut script, 5_200, 601, (3, 1..=12, 12));
    // Smaller than the window, and larger than half of it.
    script.send(5_300, ". 1+0 ack 1801 win 700 <level 6>");
    expect_wave(&mut script, 5_300, 1801, (4, 1..=7, 12));
    // It closes.
    script.send(5_400, ". 1+0 ack 2501 win 200 <level 6>");
    script.expect(5_400, ". 2501+100 ack 1 <wave 4:8/12>");
    script.expect(5_400, ". 2601+100 ack 1 <wave 4:9/9>");
}

/// "TCP-Real extends Reno": three duplicates repair the first segment, and the window stays the
/// receiver's. With the full window, the three duplicates release new data.
#[test]
fn a_fast_retransmit_leaves_the_window_alone() {
    let mut script = six_in_flight();
    for at in [110, 120, 130] {
        script.send(at, ". 1+0 ack 101 win 10000 <level 3>");
        if at < 130 {
            script.expect_nothing(at);
        }
    }
    script.expect(130, ". 101+100 ack 1 <wave 2:6/6>");
    expect_wave(&mut script, 130, 701, (3, 1..=3, 6));
    assert_eq!(script.connection().congestion_window(), 600);
    assert_eq!(script.connection().statistics().fast_retransmits, 1);
}

/// Only the newest acknowledgement sets the level, and only if both ends enable it.
#[test]
fn levels_that_do_not_count() {
    let mut script = Script::new(sender(METERED));
    script.call(0, |connection| connection.write(400));
    script.expect(0, ". 1+100 ack 1 <wave 1:1/2>");
    script.expect(0, ". 101+100 ack 1 <wave 1:2/2>");
    script.send(100, ". 1+0 ack 201 win 10000");
    script.expect(100, ". 201+100 ack 1 <wave 2:1/2>");
    script.expect(100, "P. 301+100 ack 1 <wave 2:2/2>");
    // Overtaken by the one before.
    script.send(110, ". 1+0 ack 101 win 10000 <level 9>");
    assert_eq!(script.connection().congestion_window(), 200);

    let mut script = Script::new(sender(BORN));
    script.call(0, |connection| connection.write(200));
    script.expect(0, ". 1+100 ack 1");
    script.expect(0, "P. 101+100 ack 1");
    script.send(100, ". 1+0 ack 101 win 10000 <level 9>");
    assert_eq!(script.connection().congestion_window(), 200);
}

/// With timestamps, SACK blocks and both options, headers stay within the codec's limits.
#[test]
fn options_leave_room_for_each_other() {
    let config = Config {
        timestamps: true,
        sack: true,
        recovery: RecoveryConfig::SACK,
        ..METERED
    };
    let forth = Path::judged_by(Span::from_millis(10), |index, _| {
        if index % 3 == 1 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    })
    .with_rate(Rate::from_mbps(1));
    let mut pair = Pair::new(
        sender(config),
        receiver(config, tcp_real()),
        forth,
        Path::new(Span::from_millis(10)),
    );
    pair.call(Side::A, |connection| connection.write(60_000));
    pair.drive(Time::from_secs(600));
    assert_eq!(pair.end(Side::B).delivered(), 60_000);
    let addresses = PseudoHeader::V4 {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
    };
    let mut blocks = 0;
    for record in pair.records() {
        let segment = record.segment;
        blocks = blocks.max(segment.options.sack.len());
        let mut buffer = vec![0; 60];
        let length = encode(
            &segment,
            Ports::default(),
            &addresses,
            Checksum::new(),
            &mut buffer,
        )
        .unwrap();
        buffer.truncate(length);
        if segment.payload == 0 {
            assert_eq!(decode(&buffer, &addresses).unwrap().segment, segment);
        }
    }
    assert_eq!(blocks, 2);
}

proptest! {
    /// Whatever a path does to data, acknowledgements and their options, everything arrives, with
    /// each interpretation of a timeout and with each recovery.
    #[test]
    fn transfers_end(
        bytes in 1u64..20_000,
        forth in vec(fate(), 0..120),
        back in vec(fate(), 0..120),
        timeout_reduction in prop_oneof![
            Just(TimeoutReduction::WithoutDuplicates),
            Just(TimeoutReduction::Always),
        ],
        timeout_repair in prop_oneof![Just(TimeoutRepair::GoBackN), Just(TimeoutRepair::FirstSegment)],
        recovery in prop_oneof![
            Just(RecoveryConfig::TAHOE),
            Just(RecoveryConfig::RENO),
            Just(RecoveryConfig::NEW_RENO),
            Just(RecoveryConfig::SACK),
            Just(RecoveryConfig::SACK_NS2),
        ],
        bugfix: bool,
    ) {
        let path = |fates| Path::chaotic(Span::from_millis(15), Chaos(fates)).with_rate(Rate::from_kbps(500));
        let config = Config {
            sack: true,
            recovery: RecoveryConfig { bugfix, ..recovery },
            ..METERED
        };
        let tcp_real = TcpRealConfig { timeout_reduction, timeout_repair, ..tcp_real() };
        let ends = (sender_with(config, tcp_real), receiver(config, tcp_real));
        let mut pair = Pair::new(ends.0, ends.1, path(forth), path(back));
        pair.call(Side::A, |connection| connection.write(bytes));
        pair.drive(Time::from_secs(100_000));
        prop_assert_eq!(pair.end(Side::B).delivered(), bytes);
        prop_assert!(pair.end(Side::A).is_all_acknowledged());
    }
}

proptest! {
    /// On a path that removes all options, the sender receives no level. It sends two segments at a
    /// time, its window without a level, and everything arrives. A segment without options never
    /// counts as a level or a wave.
    #[test]
    fn without_options_the_window_stays_at_two_segments(
        bytes in 1u64..20_000,
        delay in 1u64..100,
        (forth, back) in (any::<bool>(), any::<bool>()),
    ) {
        // One direction suffices: the receiver measures the forward direction, and the sender
        // receives levels in the reverse direction.
        prop_assume!(forth || back);
        let path = |strips| {
            let fate = if strips { Fate::Stripped } else { Fate::Arrives };
            Path::chaotic(Span::from_millis(delay), Chaos(vec![fate; 2_000]))
        };
        let mut pair = Pair::new(sender(METERED), receiver(METERED, tcp_real()), path(forth), path(back));
        pair.check_each(|connection, _| {
            let window = connection.congestion_window();
            assert!(window <= 200, "{window} bytes");
        });
        pair.call(Side::A, |connection| connection.write(bytes));
        pair.drive(Time::from_secs(100_000));
        prop_assert_eq!(pair.end(Side::B).delivered(), bytes);
        prop_assert!(pair.end(Side::A).is_all_acknowledged());
        prop_assert!(pair.end(Side::A).statistics().timeouts == 0);
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrives),
        2 => Just(Fate::Stripped),
        2 => Just(Fate::Lost),
        1 => (0u64..60).prop_map(|late| Fate::Late(Span::from_millis(late))),
        1 => (0u64..60).prop_map(|later| Fate::Twice(Span::from_millis(later))),
    ]
}
