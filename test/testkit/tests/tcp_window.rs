//! The peer's window: closed, small, scaled, false; and limits on bursts.

use comity_congestion::Pacing;
use comity_tcp::Config;
use comity_testkit::tcp::{
    BORN, Fate, PLAIN, Pair, Path, Script, Side, fixed, listener, opener, paced,
};
use comity_units::{DataSize, Rate, Span, Time};

#[test]
fn a_closed_window_is_probed_with_back_off_until_it_opens() {
    let mut script = Script::new(opener(BORN, fixed(10_000)));
    script.call(0, |connection| connection.write(300));
    script.expect(0, ". 1+100 ack 1");
    script.expect(0, ". 101+100 ack 1");
    script.expect(0, "P. 201+100 ack 1");
    script.send(100, ". 1+0 ack 301 win 0");
    script.expect_nothing(150);
    script.call(200, |connection| connection.write(250));
    // The timeout is a second, its floor: probes after 1, 2, 4, 8, 16, 32 and 60, 60 seconds.
    for at in [1, 3, 7, 15, 31, 63, 123, 183] {
        script.expect(at * 1_000 + 200, ". 300+0 ack 1");
        // Each is answered; the window is still closed.
        script.send(at * 1_000 + 300, ". 1+0 ack 301 win 0");
    }
    assert_eq!(script.connection().statistics().timeouts, 0);
    script.send(190_000, ". 1+0 ack 301 win 10000");
    script.expect(190_000, ". 301+100 ack 1");
    script.expect(190_000, ". 401+100 ack 1");
    script.expect(190_000, "P. 501+50 ack 1");
    script.send(190_100, ". 1+0 ack 551 win 10000");
    script.expect_nothing(1_000_000);
}

#[test]
fn a_fin_needs_no_window() {
    let mut script = Script::new(opener(BORN, fixed(10_000)));
    script.call(0, |connection| connection.write(100));
    script.expect(0, "P. 1+100 ack 1");
    script.send(100, ". 1+0 ack 101 win 0");
    script.call(200, |connection| connection.close());
    script.expect(200, "F. 101+0 ack 1");
}

#[test]
fn less_than_half_of_the_window_is_not_worth_a_segment() {
    // The largest window was 10,000 (from the beginning): 60 bytes of it are not worth a segment.
    // Nothing else is in flight, however, so they leave when the persist timer expires, and the
    // rest is treated the same.
    let mut script = Script::new(opener(BORN, fixed(10_000)));
    script.call(0, |connection| connection.write(100));
    script.expect(0, "P. 1+100 ack 1");
    script.send(100, ". 1+0 ack 101 win 60");
    script.call(200, |connection| connection.write(100));
    // The peer's own data brings no news about its window and must not delay the timer.
    for (at, start, end) in [(500, 1, 11), (900, 11, 21), (1_100, 21, 31)] {
        script.send(at, &format!(". {start}+10 ack 101 win 60"));
        script.expect(at, &format!(". 101+0 ack {end}"));
    }
    script.expect(1_200, ". 101+60 ack 31");
    script.send(1_300, ". 31+0 ack 161 win 10000");
    script.expect(1_300, "P. 161+40 ack 31");
}

#[test]
fn half_of_the_largest_window_is_worth_a_segment() {
    let config = Config {
        handshake: true,
        ..PLAIN
    };
    let mut script = Script::new(opener(config, fixed(10_000)));
    script.expect(0, "S 0+0 win 10000 <mss 100>");
    script.send(10, "S. 0+0 ack 1 win 150 <mss 100>");
    script.expect(10, ". 1+0 ack 1");
    script.call(20, |connection| connection.write(300));
    script.expect(20, ". 1+100 ack 1");
    // 50 bytes are left: less than 75.
    script.expect_nothing(30);
    script.send(40, ". 1+0 ack 101 win 75");
    script.expect(40, ". 101+75 ack 1");
}

#[test]
fn a_reduced_window_is_respected_and_probed() {
    // MUST-34 of RFC 9293: robust against a window that shrinks below what is outstanding.
    let mut script = Script::new(opener(BORN, fixed(300)));
    script.call(0, |connection| connection.write(600));
    for start in [1, 101, 201] {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.send(100, ". 1+0 ack 101 win 0");
    // Expiry at 1,100: nothing fits, so the probes begin, by the backed-off timeout of two seconds.
    script.expect(3_100, ". 100+0 ack 1");
    script.send(3_200, ". 1+0 ack 101 win 10000");
    script.expect(3_200, ". 101+100 ack 1");
}

#[test]
fn a_reordered_acknowledgement_closes_no_window() {
    let mut script = Script::new(opener(BORN, fixed(10_000)));
    script.call(0, |connection| connection.write(100));
    script.expect(0, "P. 1+100 ack 1");
    script.send(100, ". 1+0 ack 101 win 10000");
    script.send(101, ". 1+0 ack 101 win 0");
    script.call(200, |connection| connection.write(100));
    script.expect(200, "P. 101+100 ack 1");
}

/// A pair whose second end does not read.
fn unread(buffer: u64, back: Path) -> Pair {
    let config = Config {
        receive_buffer: DataSize::new(buffer),
        ..BORN
    };
    let mut pair = Pair::new(
        opener(config, fixed(1_000_000)),
        listener(config, fixed(1_000_000)),
        Path::new(Span::from_millis(10)),
        back,
    );
    pair.set_reads(Side::B, false);
    pair
}

#[test]
fn a_lost_window_update_stops_nothing() {
    // The acknowledgements of five segments, then the window update: the sixth in the reverse
    // direction is lost.
    let back = Path::judged_by(Span::from_millis(10), |index, _| {
        if index == 5 {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    });
    let mut pair = unread(500, back);
    pair.call(Side::A, |connection| connection.write(1_000));
    pair.drive(Time::from_millis(500));
    assert_eq!(pair.end(Side::B).readable(), 500);
    assert_eq!(pair.end(Side::A).peer_window(), 0);
    pair.set_reads(Side::B, true);
    pair.call(Side::B, |connection| connection.read(u64::MAX));
    assert!(pair.drive(Time::from_secs(100)));
    assert_eq!(pair.end(Side::B).delivered(), 1_000);
    // Armed at 20 ms with the timeout of a second, answered 20 ms later.
    let resumed = pair.sent_segments(Side::A, 100)[5];
    assert_eq!(resumed, (1_040, 6));
}

#[test]
fn big_windows_are_scaled_and_filled() {
    // 10 Gbit/s and 100 ms would need 125 MB; 100 MB need a shift of 11.
    let config = Config {
        mss: 1_000,
        receive_buffer: DataSize::new(100_000_000),
        window_scaling: true,
        ..PLAIN
    };
    let delay = Span::from_millis(50);
    let mut pair = Pair::new(
        opener(config, fixed(u64::MAX)),
        listener(config, fixed(u64::MAX)),
        Path::new(delay),
        Path::new(delay),
    );
    pair.set_reads(Side::B, false);
    pair.call(Side::A, |connection| connection.write(8_000_000));
    pair.drive(Time::from_millis(149));
    assert_eq!(pair.records()[0].segment.options.window_scale, Some(11));
    // The window of a SYN is not scaled: 65,535 bytes, and 535 are not worth a segment.
    assert_eq!(pair.sent_segments(Side::A, 1_000).len(), 65);
    assert!(pair.drive(Time::from_secs(10)));
    assert_eq!(pair.sent_segments(Side::A, 1_000).len(), 8_000);
    assert_eq!(pair.end(Side::B).readable(), 8_000_000);
    let offered = pair.end(Side::A).peer_window();
    assert_eq!(offered, 92_000_000_u64.div_ceil(2_048) * 2_048);
}

#[test]
fn max_burst_limits_what_one_event_releases() {
    let config = Config {
        max_burst: Some(3),
        ..BORN
    };
    let mut script = Script::new(opener(config, fixed(1_000)));
    script.call(0, |connection| connection.write(1_000));
    for start in [1, 101, 201] {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.expect_nothing(50);
    script.send(100, ". 1+0 ack 101 win 10000");
    for start in [301, 401, 501] {
        script.expect(100, &format!(". {start}+100 ack 1"));
    }
    script.expect_nothing(150);
}

#[test]
fn pacing_spaces_segments_without_needless_wakeups() {
    // 140 bytes on the wire at 11.2 kbit/s: one in 100 ms.
    let pacing = Pacing::Rate(Rate::from_bps(11_200));
    let mut script = Script::new(opener(BORN, paced(pacing)));
    script.call(0, |connection| connection.write(300));
    script.expect(0, ". 1+100 ack 1");
    assert_eq!(script.connection().next_timer(), Time::from_millis(100));
    script.expect(100, ". 101+100 ack 1");
    script.expect(200, "P. 201+100 ack 1");
    // Nothing is left to pace: only the retransmission timer runs.
    assert_eq!(script.connection().next_timer(), Time::from_secs(1));
    // A window with less than a segment of room causes no wake-up before the persist timer.
    script.send(250, ". 1+0 ack 301 win 30");
    script.call(400, |connection| connection.write(100));
    script.expect_nothing(410);
    assert_eq!(script.connection().next_timer(), Time::from_millis(1_400));
    // Duplicates with an unlimited window overflow nothing.
    script.expect(1_400, ". 301+30 ack 1");
    for at in [1_410, 1_420, 1_430] {
        script.send(at, ". 1+0 ack 301 win 30");
    }
    // The fast retransmit waits for the pacer: 70 bytes on the wire took 50 ms.
    script.expect(1_450, ". 301+30 ack 1");
}

#[test]
fn a_paced_sender_probes_a_closed_window() {
    // The acknowledgement arrives before the pacer would release the next segment.
    let pacing = Pacing::Rate(Rate::from_bps(1_120));
    let mut script = Script::new(opener(BORN, paced(pacing)));
    script.call(0, |connection| connection.write(200));
    script.expect(0, ". 1+100 ack 1");
    script.send(100, ". 1+0 ack 101 win 0");
    script.expect(1_100, ". 100+0 ack 1");
}
