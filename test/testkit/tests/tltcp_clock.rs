//! The time stamps of a time-lined connection, and its probes of a closed window: packets of one
//! byte, sections 10..19, 20..29 and so on. The first expires after 100 ms, and each later one ten
//! seconds after its predecessor.

use comity_tcp::Config;
use comity_tcp::timeline::Piece;
use comity_testkit::tcp::{Script, TIMELINED, fixed, listener, opener};
use comity_units::{DataSize, Span, Time};

const STAMPED: Config = Config {
    timestamps: true,
    ..TIMELINED
};

/// A sender that sent 10 to 14 before the first deadline, and 20 to 24 a millisecond after it.
fn sent_over_the_jump() -> Script {
    let five = Config {
        receive_buffer: DataSize::new(5),
        ..STAMPED
    };
    let mut script = Script::new(opener(five, fixed(10)));
    script.call(0, |sender| {
        for section in 0..3 {
            let deadline = Time::from_millis(100 + section * 10_000);
            sender.write_section(10, deadline).unwrap();
        }
    });
    for number in 10..15 {
        script.expect(0, &format!(". {number}+1 ack 10 <ts 1/0 upd 10>"));
    }
    script.send(101, ". 10+0 ack 10 win 10 <ts 500/1>");
    for number in 20..25 {
        script.expect(101, &format!(". {number}+1 ack 10 <ts 101001/500 upd 20>"));
    }
    script
}

/// The round trip of the next acknowledgement, and the number of samples.
fn sample(script: &Script, samples_before: u64) -> (u64, Option<Span>) {
    let connection = script.connection();
    let latest = connection.rtt().and_then(|rtt| rtt.latest());
    let taken = connection.statistics().rtt_samples - samples_before;
    (taken, latest.filter(|_| taken > 0))
}

/// 14 arrives and its acknowledgement is delayed. 20 arrives, and the receiver jumps and
/// acknowledges both with the older time stamp, as in RFC 7323 (section 4.3). The stamp belongs to
/// obsolete data, and a jump moved the acknowledgement: no round trip. An echo of data sent at the
/// jump or after it is one.
#[test]
fn an_echo_from_before_a_jump_is_no_round_trip() {
    for (echo, expected) in [
        (1, None),
        (100_000, None),
        (100_001, Some(Span::from_millis(50))),
        (101_001, Some(Span::from_millis(49))),
    ] {
        let mut script = sent_over_the_jump();
        let before = script.connection().statistics().rtt_samples;
        script.send(150, &format!(". 10+0 ack 21 win 10 <ts 600/{echo}>"));
        let found = sample(&script, before);
        assert_eq!(found, (u64::from(expected.is_some()), expected), "{echo}");
    }
}

/// Acknowledgements within obsolete data are TCP's, and their echoes are round trips. The same
/// holds within current data.
#[test]
fn an_echo_beside_a_jump_is_a_round_trip_as_any() {
    let mut script = sent_over_the_jump();
    let before = script.connection().statistics().rtt_samples;
    script.send(120, ". 10+0 ack 13 win 10 <ts 600/1>");
    assert_eq!(sample(&script, before), (1, Some(Span::from_millis(120))));
    let mut script = sent_over_the_jump();
    script.send(140, ". 10+0 ack 21 win 5 <ts 600/1>");
    script.expect(140, ". 25+1 ack 10 <ts 140001/600 upd 20>");
    let before = script.connection().statistics().rtt_samples;
    script.send(150, ". 10+0 ack 22 win 4 <ts 700/101001>");
    assert_eq!(sample(&script, before), (1, Some(Span::from_millis(49))));
}

/// 20 leaves for the second time in the place of 10. Without time stamps its round trip is unknown;
/// with them the echo identifies the transmission that arrived (RFC 7323, section 4).
#[test]
fn the_echo_identifies_the_copies_of_a_pseudo_retransmission() {
    for (echo, millis) in [(101_001, 49), (104_001, 46)] {
        let mut script = sent_over_the_jump();
        for at in [102, 103, 104] {
            script.send(at, ". 10+0 ack 10 win 10 <ts 500/1>");
        }
        script.expect(104, ". 20+1 ack 10 <ts 104001/500 upd 20>");
        let statistics = script.connection().timeline_statistics().unwrap();
        assert_eq!(statistics.pseudo_retransmissions, 1);
        let before = script.connection().statistics().rtt_samples;
        script.send(150, &format!(". 10+0 ack 21 win 10 <ts 600/{echo}>"));
        assert_eq!(
            sample(&script, before),
            (1, Some(Span::from_millis(millis)))
        );
    }
}

/// The receiver echoes the time stamp of the segment that made it jump, not that of earlier
/// acknowledged data.
#[test]
fn the_segment_that_causes_a_jump_is_echoed() {
    let mut script = Script::new(listener(STAMPED, fixed(10)));
    script.send(10, ". 10+1 ack 10 win 40 <ts 1/0 upd 10>");
    script.expect(10, ". 10+0 ack 11 <ts 10001/1>");
    // 11 to 14 are lost.
    script.send(110, ". 20+1 ack 10 win 40 <ts 101001/0 upd 20>");
    script.expect(110, ". 10+0 ack 21 <ts 110001/101001>");
    // An old, reordered one neither jumps nor is echoed.
    script.send(120, ". 13+1 ack 10 win 40 <ts 2/0 upd 10>");
    script.expect(120, ". 10+0 ack 21 <ts 120001/101001>");
    let gaps = script.connection().gap_statistics();
    assert_eq!((gaps.jumps, gaps.gaps, gaps.bytes), (1, 1, 9));
}

/// The window is closed when the deadlines pass. The probe carries the position of the stream, and
/// its acknowledgement confirms it although the window stays closed.
#[test]
fn a_probe_of_a_closed_window_carries_seq_update() {
    let mut script = Script::new(opener(
        Config {
            receive_buffer: DataSize::new(5),
            ..TIMELINED
        },
        fixed(10),
    ));
    script.call(0, |sender| {
        for deadline in [3_000, 6_000, 60_000] {
            let deadline = Time::from_millis(deadline);
            sender.write_section(10, deadline).unwrap();
        }
    });
    for number in 10..15 {
        script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
    }
    script.send(50, ". 10+0 ack 15 win 0");
    // The timeout is a second, its floor. Nothing has expired yet.
    script.expect(1_050, ". 14+0 ack 10 <upd 10>");
    script.send(1_100, ". 10+0 ack 15 win 0");
    // Two seconds later the first section has expired, and four seconds later the second.
    script.expect(3_050, ". 14+0 ack 10 <upd 20>");
    script.send(3_100, ". 10+0 ack 20 win 0");
    script.expect(7_050, ". 14+0 ack 10 <upd 30>");
    script.send(7_100, ". 10+0 ack 30 win 0");
    script.expect_nothing(8_000);
    // It opens by two.
    script.send(8_100, ". 10+0 ack 30 win 2");
    script.expect(8_100, ". 30+1 ack 10 <upd 30>");
    script.expect(8_100, ". 31+1 ack 10 <upd 30>");
    script.expect_nothing(8_200);
    let statistics = script.connection().timeline_statistics().unwrap();
    assert_eq!((statistics.jumps, statistics.discarded_bytes), (1, 15));
    assert_eq!(
        (
            statistics.notices,
            script.connection().statistics().timeouts
        ),
        (0, 0)
    );
}

/// The other end of the same connection: the probe makes it jump, and it acknowledges that with any
/// window.
#[test]
fn a_receiver_with_a_closed_window_follows_the_probe() {
    let five = Config {
        receive_buffer: DataSize::new(5),
        ..TIMELINED
    };
    let mut script = Script::new(listener(five, fixed(10)));
    for number in 10..15_u64 {
        let left = 14 - number;
        script.send(number, &format!(". {number}+1 ack 10 win 40 <upd 10>"));
        let next = number + 1;
        script.expect(number, &format!(". 10+0 ack {next} win {left}"));
    }
    script.send(1_000, ". 14+0 ack 10 win 40 <upd 10>");
    script.expect(1_000, ". 10+0 ack 15 win 0");
    script.send(3_000, ". 14+0 ack 10 win 40 <upd 20>");
    script.expect(3_000, ". 10+0 ack 20 win 0");
    let mut found = Vec::new();
    script.call(3_100, |receiver| {
        found.extend(core::iter::from_fn(|| receiver.read_piece(100)));
    });
    script.expect(3_100, ". 10+0 ack 20 win 5");
    let data = Piece::Data {
        offset: 0,
        length: 5,
    };
    let gap = Piece::Gap {
        offset: 5,
        length: 5,
    };
    assert_eq!(found, [data, gap]);
}
