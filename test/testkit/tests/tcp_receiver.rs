//! When the receiving half acknowledges, and the windows and blocks that it reports.

use comity_tcp::{Config, DelayedAck, Flags, Segment};
use comity_testkit::tcp::{PLAIN, Script, fixed, opener};
use comity_units::{DataSize, SeqNo, Span, Time};

fn established(config: Config) -> Script {
    let mut script = Script::new(opener(config, fixed(10_000)));
    let connection = opener(config, fixed(10_000));
    let window = connection.config().receive_buffer.get();
    let options = if config.sack { " sackok" } else { "" };
    let first = config.initial_sequence;
    script.expect(0, &format!("S {first}+0 win {window} <mss 100{options}>"));
    let ack = first + 1;
    script.send(
        10,
        &format!("S. 0+0 ack {ack} win 10000 <mss 100{options}>"),
    );
    script.expect(10, &format!(". {ack}+0 ack 1"));
    script
}

const DELAYING: Config = Config {
    delayed_ack: Some(DelayedAck {
        segments: 2,
        timeout: Span::from_millis(40),
        quick: 0,
    }),
    ..PLAIN
};

#[test]
fn acknowledgements_wait_for_a_second_segment_or_forty_milliseconds() {
    let mut script = established(DELAYING);
    script.send(20, ". 1+100 ack 1 win 10000");
    script.expect_nothing(59);
    script.expect(60, ". 1+0 ack 101");
    script.send(70, ". 101+100 ack 1 win 10000");
    script.send(80, ". 201+100 ack 1 win 10000");
    script.expect(80, ". 1+0 ack 301");
    // The acknowledged segments leave no timer behind.
    script.expect_nothing(1_000);
    // The end's own data carries the acknowledgement.
    script.send(1_010, ". 301+100 ack 1 win 10000");
    script.call(1_020, |connection| connection.write(50));
    script.expect(1_020, "P. 1+50 ack 401");
    script.send(1_030, ". 401+0 ack 51 win 10000");
    script.expect_nothing(2_000);
}

#[test]
fn disorder_is_acknowledged_at_once() {
    let mut script = established(DELAYING);
    script.send(20, ". 101+100 ack 1 win 10000");
    script.expect(20, ". 1+0 ack 1");
    script.send(30, ". 301+100 ack 1 win 10000");
    script.expect(30, ". 1+0 ack 1");
    // Filling the first gap, with a second one open.
    script.send(40, ". 1+100 ack 1 win 10000");
    script.expect(40, ". 1+0 ack 201");
    script.send(50, ". 201+100 ack 1 win 10000");
    script.expect(50, ". 1+0 ack 401");
    // Old data, wholly and in part.
    script.send(60, ". 301+100 ack 1 win 10000");
    script.expect(60, ". 1+0 ack 401");
    script.send(70, ". 351+100 ack 1 win 10000");
    script.expect_nothing(109);
    script.expect(110, ". 1+0 ack 451");
    assert_eq!(script.connection().delivered(), 450);
}

#[test]
fn blocks_are_reported_latest_first() {
    let mut script = established(Config {
        sack: true,
        ..PLAIN
    });
    script.send(20, ". 101+100 ack 1 win 10000");
    script.expect(20, ". 1+0 ack 1 <sack 101-201>");
    script.send(21, ". 301+100 ack 1 win 10000");
    script.expect(21, ". 1+0 ack 1 <sack 301-401,101-201>");
    script.send(22, ". 501+100 ack 1 win 10000");
    script.expect(22, ". 1+0 ack 1 <sack 501-601,301-401,101-201>");
    script.send(23, ". 701+100 ack 1 win 10000");
    script.expect(23, ". 1+0 ack 1 <sack 701-801,501-601,301-401>");
    // Joined with its neighbours, the oldest range becomes the first again.
    script.send(24, ". 201+100 ack 1 win 10000");
    script.expect(24, ". 1+0 ack 1 <sack 101-401,701-801,501-601>");
    script.send(25, ". 1+100 ack 1 win 10000");
    script.expect(25, ". 1+0 ack 401 <sack 701-801,501-601>");
    script.send(26, ". 401+300 ack 1 win 10000");
    script.expect(26, ". 1+0 ack 801");
}

#[test]
fn blocks_and_numbers_wrap() {
    let config = Config {
        sack: true,
        initial_sequence: SeqNo::new(u32::MAX),
        ..PLAIN
    };
    let mut script = Script::new(opener(config, fixed(10_000)));
    script.expect(0, "S 4294967295+0 win 10000 <mss 100 sackok>");
    script.send(10, "S. 4294967195+0 ack 0 win 10000 <mss 100 sackok>");
    script.expect(10, ". 0+0 ack 4294967196");
    script.send(20, ". 0+100 ack 0 win 10000");
    script.expect(20, ". 0+0 ack 4294967196 <sack 0-100>");
    script.send(30, ". 4294967196+100 ack 0 win 10000");
    script.expect(30, ". 0+0 ack 100");
    assert_eq!(script.connection().delivered(), 200);
    script.call(40, |connection| connection.write(100));
    script.expect(40, "P. 0+100 ack 100");
    script.send(50, ". 100+0 ack 100 win 10000");
    assert!(script.connection().is_all_acknowledged());
}

#[test]
fn the_window_follows_the_reader_and_never_moves_left() {
    let config = Config {
        receive_buffer: DataSize::new(300),
        ..PLAIN
    };
    let mut script = established(config);
    script.send(20, ". 1+100 ack 1 win 10000");
    script.expect(20, ". 1+0 ack 101 win 200");
    script.send(30, ". 101+100 ack 1 win 10000");
    script.expect(30, ". 1+0 ack 201 win 100");
    script.send(40, ". 201+150 ack 1 win 10000");
    script.expect(40, ". 1+0 ack 301 win 0");
    assert_eq!(
        script.connection().delivered(),
        300,
        "50 bytes were beyond it"
    );
    // A probe receives the same.
    script.send(50, ". 300+0 ack 1 win 10000");
    script.expect(50, ". 1+0 ack 301 win 0");
    // Half of the buffer is 150, less than a segment. Less than that is not worth an offer, with or
    // without a probe (RFC 9293, 3.8.6.2.2).
    script.call(60, |connection| assert_eq!(connection.read(99), 99));
    script.send(70, ". 300+0 ack 1 win 10000");
    script.expect(70, ". 1+0 ack 301 win 0");
    script.call(80, |connection| assert_eq!(connection.read(1), 1));
    script.send(90, ". 300+0 ack 1 win 10000");
    script.expect(90, ". 1+0 ack 301 win 100");
    script.call(100, |connection| assert_eq!(connection.read(149), 149));
    script.expect_nothing(100);
    script.call(110, |connection| assert_eq!(connection.read(1_000), 51));
    script.expect(110, ". 1+0 ack 301 win 300");
    assert_eq!(script.connection().readable(), 0);
}

#[test]
fn segments_beyond_the_window_are_dropped_and_acknowledged() {
    let config = Config {
        receive_buffer: DataSize::new(300),
        ..PLAIN
    };
    let mut script = established(config);
    script.send(20, ". 301+100 ack 1 win 10000");
    script.expect(20, ". 1+0 ack 1 win 300");
    script.send(30, ". 302+0 ack 1 win 10000");
    script.expect(30, ". 1+0 ack 1 win 300");
    // At the right edge an empty segment is in order: its sender has filled the window.
    script.send(40, ". 301+0 ack 1 win 10000");
    script.expect_nothing(40);
    script.send(50, ". 201+200 ack 1 win 10000");
    script.expect(50, ". 1+0 ack 1 win 300");
    script.send(60, ". 1+200 ack 1 win 10000");
    script.expect(60, ". 1+0 ack 301 win 0");
    assert_eq!(script.connection().delivered(), 300);
}

#[test]
fn the_accepted_part_of_a_payload_is_reported() {
    let mut script = established(Config {
        receive_buffer: DataSize::new(1_000),
        ..PLAIN
    });
    let cases = [
        (101, 100, 101..201, 1, "out of order"),
        (1, 100, 1..101, 201, "in order"),
        (1, 200, 0..0, 201, "old"),
        (151, 100, 201..251, 251, "partly old"),
        (901, 200, 901..1_001, 251, "partly beyond the window"),
        (1_001, 100, 0..0, 251, "beyond the window"),
        (251, 650, 251..901, 1_001, "up to data that arrived"),
    ];
    for (at_ms, (start, payload, expected, ack, case)) in (20..).zip(cases) {
        script.call(at_ms, |connection| {
            let segment = Segment {
                sequence: SeqNo::new(start),
                acknowledgement: connection.config().initial_sequence + 1,
                payload,
                window: 10_000,
                flags: Flags::ACK,
                ..Segment::default()
            };
            let accepted = connection.on_segment(Time::from_millis(at_ms), &segment);
            assert_eq!(accepted, expected, "{case}");
        });
        script.expect(at_ms, &format!(". 1+0 ack {ack}"));
    }
    assert_eq!(script.connection().delivered(), 1_000);
}

#[test]
fn a_keep_alive_probe_is_numbered_before_the_first_unacknowledged_byte() {
    let mut script = established(PLAIN);
    script.send(20, ". 1+100 ack 1 win 10000");
    script.expect(20, ". 1+0 ack 101");
    script.call(30, |connection| {
        let initial = connection.config().initial_sequence;
        let probe = connection.keep_alive(Time::from_millis(30)).unwrap();
        assert_eq!((probe.sequence, probe.payload), (initial, 0));
        assert_eq!(probe.acknowledgement, SeqNo::new(101));
        assert_eq!(probe.flags, Flags::ACK);
    });
    script.call(40, |connection| {
        connection.on_segment(
            Time::from_millis(40),
            &Segment {
                sequence: SeqNo::new(101),
                flags: Flags::RST,
                ..Segment::default()
            },
        );
        assert_eq!(connection.keep_alive(Time::from_millis(40)), None, "reset");
    });
}

#[test]
fn another_segment_size_holds_for_later_data() {
    let mut script = established(PLAIN);
    script.call(20, |connection| {
        connection.set_mss(80);
        connection.set_mss(60);
        connection.write(150);
    });
    script.expect(20, ". 1+60 ack 1");
    script.expect(20, ". 61+60 ack 1");
    script.expect(20, "P. 121+30 ack 1");
}
