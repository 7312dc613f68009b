//! Round-trip times, the retransmission timer, timestamps.

use std::num::NonZeroU32;
use std::sync::Arc;

use comity_congestion::recovery::RecoveryConfig;
use comity_tcp::{Config, Connection, DelayedAck, State};
use comity_testkit::tcp::{BORN, PLAIN, Script, fixed, listener, opener, reno};
use comity_units::{SeqNo, Span, Time};

fn born(controller: Box<dyn comity_congestion::Controller>) -> Script {
    Script::new(opener(BORN, controller))
}

fn smoothed(connection: &Connection) -> Option<Span> {
    connection.rtt().unwrap().smoothed(&connection.config().rtt)
}

#[test]
fn one_segment_per_round_trip_is_timed_and_no_retransmission() {
    let mut script = born(fixed(300));
    script.call(0, |connection| connection.write(300));
    for start in [1, 101] {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.expect(0, "P. 201+100 ack 1");
    // The first is timed: 80 ms. The second and third were not.
    script.send(80, ". 1+0 ack 101 win 10000");
    script.send(90, ". 1+0 ack 301 win 10000");
    assert_eq!(script.connection().statistics().rtt_samples, 1);
    assert_eq!(smoothed(script.connection()), Some(Span::from_millis(80)));
    // Sent at 100, retransmitted at 1,100 (the floor of a second): the acknowledgement at 1,110 is
    // ambiguous.
    script.call(100, |connection| connection.write(100));
    script.expect(100, "P. 301+100 ack 1");
    script.expect(1_100, "P. 301+100 ack 1");
    script.send(1_110, ". 1+0 ack 401 win 10000");
    assert_eq!(script.connection().statistics().rtt_samples, 1);
    // Its back-off lasts until a segment sent once is acknowledged: two seconds, then one.
    script.call(1_200, |connection| connection.write(100));
    script.expect(1_200, "P. 401+100 ack 1");
    script.send(1_360, ". 1+0 ack 501 win 10000");
    // 7/8 * 80 + 1/8 * 160 = 90.
    assert_eq!(smoothed(script.connection()), Some(Span::from_millis(90)));
    script.call(1_400, |connection| connection.write(100));
    script.expect(1_400, "P. 501+100 ack 1");
    script.expect(2_400, "P. 501+100 ack 1");
}

#[test]
fn the_back_off_doubles_to_its_ceiling_and_ends_with_a_sample() {
    let mut script = born(fixed(100));
    script.call(0, |connection| connection.write(200));
    script.expect(0, ". 1+100 ack 1");
    // 1, 2, 4, 8, 16, 32, then at most 60 seconds.
    for at in [1, 3, 7, 15, 31, 63, 123, 183] {
        script.expect(at * 1_000, ". 1+100 ack 1");
    }
    script.send(183_500, ". 1+0 ack 101 win 10000");
    script.expect(183_500, "P. 101+100 ack 1");
    script.send(183_600, ". 1+0 ack 201 win 10000");
    script.call(184_000, |connection| connection.write(100));
    script.expect(184_000, "P. 201+100 ack 1");
    script.expect(185_000, "P. 201+100 ack 1");
    assert_eq!(script.connection().statistics().timeouts, 9);
}

#[test]
fn back_off_survives_an_acknowledgement_without_a_sample() {
    let mut script = born(fixed(100));
    script.call(0, |connection| connection.write(200));
    script.expect(0, ". 1+100 ack 1");
    script.expect(1_000, ". 1+100 ack 1");
    script.send(1_100, ". 1+0 ack 101 win 10000");
    script.expect(1_100, "P. 101+100 ack 1");
    script.expect(3_100, "P. 101+100 ack 1");
}

#[test]
fn the_timer_starts_with_data_restarts_with_progress_and_stops_at_the_end() {
    // RFC 6298, section 5.
    let mut script = born(fixed(300));
    assert!(script.connection().next_timer().is_never());
    script.call(0, |connection| connection.write(100));
    script.expect(0, "P. 1+100 ack 1");
    assert_eq!(script.connection().next_timer(), Time::from_secs(1));
    // 5.1: sending more does not restart it.
    script.call(400, |connection| connection.write(200));
    script.expect(400, ". 101+100 ack 1");
    script.expect(400, "P. 201+100 ack 1");
    assert_eq!(script.connection().next_timer(), Time::from_secs(1));
    // 5.3: progress does. 500 ms: SRTT + 4 * RTTVAR = 500 + 1000 ms.
    script.send(500, ". 1+0 ack 101 win 10000");
    assert_eq!(script.connection().next_timer(), Time::from_secs(2));
    // A repetition does not.
    script.send(600, ". 1+0 ack 101 win 10000");
    assert_eq!(script.connection().next_timer(), Time::from_secs(2));
    // 5.2: with nothing outstanding it stops.
    script.send(700, ". 1+0 ack 301 win 10000");
    assert!(script.connection().next_timer().is_never());
}

#[test]
fn a_timeout_retransmits_everything_in_slow_start() {
    // Eight segments; on expiry the window is one, the threshold half of eight.
    let mut script = Script::new(opener(BORN, reno(100, 8, 100)));
    script.call(0, |connection| connection.write(800));
    for start in (1..701).step_by(100) {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.expect(0, "P. 701+100 ack 1");
    script.expect(1_000, ". 1+100 ack 1");
    assert_eq!(script.connection().congestion_window(), 100);
    let ssthresh = script
        .connection()
        .controller()
        .unwrap()
        .decision()
        .ssthresh;
    assert_eq!(ssthresh.map(comity_units::DataSize::get), Some(400));
    script.send(1_100, ". 1+0 ack 101 win 10000");
    script.expect(1_100, ". 101+100 ack 1");
    script.expect(1_100, ". 201+100 ack 1");
    // Bytes that arrived the first time need not be retransmitted.
    script.send(1_200, ". 1+0 ack 501 win 10000");
    script.expect(1_200, ". 501+100 ack 1");
    script.expect(1_200, ". 601+100 ack 1");
    script.expect(1_200, "P. 701+100 ack 1");
    script.send(1_300, ". 1+0 ack 801 win 10000");
    script.expect_nothing(100_000);
    assert_eq!(script.connection().statistics().retransmitted, 6);
}

/// Eight segments leave at 0. 3 and 5 arrive and are reported, too few for fast retransmit. The
/// timer expires at one second.
fn eight_sent_two_reported(recovery: RecoveryConfig) -> Script {
    let config = Config {
        sack: true,
        recovery,
        ..BORN
    };
    let mut script = Script::new(opener(config, reno(100, 8, 100)));
    script.call(0, |connection| connection.write(1_200));
    for start in (1..801).step_by(100) {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.send(50, ". 1+0 ack 1 win 10000 <sack 201-301>");
    script.send(51, ". 1+0 ack 1 win 10000 <sack 401-501,201-301>");
    script.expect(1_000, ". 1+100 ack 1");
    script
}

#[test]
fn sacked_data_is_not_retransmitted_after_a_timeout() {
    let mut script = eight_sent_two_reported(RecoveryConfig::SACK);
    // Two segments may be in the network: 101, and 301, for 201 has left it.
    script.send(1_100, ". 1+0 ack 101 win 10000 <sack 401-501,201-301>");
    script.expect(1_100, ". 101+100 ack 1");
    script.expect(1_100, ". 301+100 ack 1");
    // Three: 301, and past 401 two more.
    script.send(1_200, ". 1+0 ack 301 win 10000 <sack 401-501>");
    script.expect(1_200, ". 501+100 ack 1");
    script.expect(1_200, ". 601+100 ack 1");
    // Four: 501 and 601, the last of the first flight, and one that is new.
    script.send(1_210, ". 1+0 ack 501 win 10000");
    script.expect(1_210, ". 701+100 ack 1");
    script.expect(1_210, ". 801+100 ack 1");
    // Later reports count as well: with five allowed and nothing missing, all of it is new.
    script.send(1_300, ". 1+0 ack 801 win 10000");
    script.expect(1_300, ". 901+100 ack 1");
    script.expect(1_300, ". 1001+100 ack 1");
    script.expect(1_300, "P. 1101+100 ack 1");
    assert_eq!(script.connection().statistics().retransmitted, 6);
    script.send(1_400, ". 1+0 ack 1201 win 10000");
    script.expect_nothing(100_000);
}

#[test]
fn data_sacked_after_a_timeout_is_not_retransmitted_either() {
    let mut script = eight_sent_two_reported(RecoveryConfig::SACK);
    script.send(
        1_100,
        ". 1+0 ack 101 win 10000 <sack 601-801,401-501,201-301>",
    );
    script.expect(1_100, ". 101+100 ack 1");
    script.expect(1_100, ". 301+100 ack 1");
    // 501 is missing, and the rest of the first flight has arrived: new data follows.
    script.send(1_200, ". 1+0 ack 501 win 10000 <sack 601-801>");
    script.expect(1_200, ". 501+100 ack 1");
}

#[test]
fn a_reneging_peer_receives_everything_again_after_the_next_timeout() {
    let mut script = eight_sent_two_reported(RecoveryConfig::SACK);
    script.send(1_100, ". 1+0 ack 101 win 10000");
    script.expect(1_100, ". 101+100 ack 1");
    script.expect(1_100, ". 301+100 ack 1");
    // It has dropped 201, which it had reported. Three segments, including 301.
    script.send(1_200, ". 1+0 ack 201 win 10000");
    script.expect(1_200, ". 501+100 ack 1");
    script.expect(1_200, ". 601+100 ack 1");
    // Two seconds by the back-off, from the last progress on.
    script.expect(3_200, ". 201+100 ack 1");
    script.send(3_300, ". 1+0 ack 301 win 10000");
    script.expect(3_300, ". 301+100 ack 1");
    script.expect(3_300, ". 401+100 ack 1");
}

#[test]
fn the_sack_of_ns2_forgets_with_a_timeout() {
    let mut script = eight_sent_two_reported(RecoveryConfig::SACK_NS2);
    script.send(1_100, ". 1+0 ack 101 win 10000 <sack 401-501,201-301>");
    script.expect(1_100, ". 101+100 ack 1");
    script.expect(1_100, ". 201+100 ack 1");
}

fn patient_for(expiries: u32) -> Config {
    Config {
        give_up_after: NonZeroU32::new(expiries),
        ..BORN
    }
}

#[test]
fn a_silent_peer_is_abandoned_at_the_limit() {
    let mut script = Script::new(opener(patient_for(3), fixed(100)));
    script.call(0, |connection| connection.write(200));
    script.expect(0, ". 1+100 ack 1");
    script.expect(1_000, ". 1+100 ack 1");
    script.expect(3_000, ". 1+100 ack 1");
    // A sign of life restarts the count, with the back-off of two expiries.
    script.send(3_500, ". 1+0 ack 101 win 10000");
    script.expect(3_500, "P. 101+100 ack 1");
    script.expect(7_500, "P. 101+100 ack 1");
    script.expect(15_500, "P. 101+100 ack 1");
    script.expect_nothing(31_499);
    assert_eq!(script.connection().state(), State::Established);
    script.expect_nothing(1_000_000);
    assert_eq!(script.connection().state(), State::Closed);
    assert!(script.connection().gave_up() && !script.connection().was_reset());
    assert_eq!(script.connection().statistics().timeouts, 5);
    // A late segment is reset, because the connection no longer exists.
    script.send(1_000_001, ". 1+0 ack 201 win 10000");
    script.expect(1_000_001, "R 201+0 win 0");
}

#[test]
fn an_unanswered_syn_is_abandoned() {
    let config = Config {
        handshake: true,
        ..patient_for(2)
    };
    let mut script = Script::new(opener(config, fixed(100)));
    script.expect(0, "S 0+0 win 10000 <mss 100>");
    script.expect(1_000, "S 0+0 win 10000 <mss 100>");
    script.expect_nothing(1_000_000);
    assert!(script.connection().gave_up());
    assert_eq!(script.connection().statistics().timeouts, 2);
}

#[test]
fn an_end_that_only_receives_abandons_a_silent_peer_too() {
    let config = Arc::new(Config {
        handshake: true,
        ..patient_for(2)
    });
    // Its answer to a SYN.
    let mut script = Script::new(Connection::listen_to_receive(Arc::clone(&config)));
    script.send(0, "S 0+0 win 10000 <mss 100>");
    script.expect(0, "S. 0+0 ack 1 <mss 100>");
    script.expect(1_000, "S. 0+0 ack 1 <mss 100>");
    script.expect_nothing(2_999);
    assert_eq!(script.connection().state(), State::SynReceived);
    script.expect_nothing(1_000_000);
    assert_eq!(script.connection().state(), State::Closed);
    assert!(script.connection().gave_up() && script.connection().next_timer().is_never());

    // A peer with a closed window does not accept its FIN but answers. The count restarts, and the
    // back-off of one expiry stays.
    let mut script = Script::new(Connection::listen_to_receive(config));
    script.send(0, "S 0+0 win 10000 <mss 100>");
    script.expect(0, "S. 0+0 ack 1 <mss 100>");
    script.send(10, ". 1+0 ack 1 win 0");
    script.call(100, Connection::close);
    script.expect(100, "F. 1+0 ack 1");
    script.expect(1_100, "F. 1+0 ack 1");
    script.send(1_200, ". 1+0 ack 1 win 0");
    script.expect(3_100, "F. 1+0 ack 1");
    script.expect_nothing(7_099);
    assert_eq!(script.connection().state(), State::FinWait1);
    script.expect_nothing(1_000_000);
    assert!(script.connection().gave_up() && !script.connection().was_reset());
}

#[test]
fn answered_probes_continue_and_others_end() {
    let mut script = Script::new(opener(patient_for(2), fixed(1_000)));
    script.call(0, |connection| connection.write(300));
    for start in [1, 101] {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.expect(0, "P. 201+100 ack 1");
    script.send(10, ". 1+0 ack 301 win 0");
    script.call(20, |connection| connection.write(100));
    // The first round trip of 10 ms leaves the timeout at its floor of a second.
    for at in [1_020, 3_020, 7_020, 15_020] {
        script.expect(at, ". 300+0 ack 1");
        script.send(at + 10, ". 1+0 ack 301 win 0");
    }
    script.expect(31_020, ". 300+0 ack 1");
    script.expect_nothing(1_000_000);
    assert!(script.connection().gave_up());
}

#[test]
fn an_acknowledgement_after_a_timeout_has_the_next_number() {
    let mut script = Script::new(opener(BORN, reno(100, 2, 100)));
    script.call(0, |connection| connection.write(200));
    script.expect(0, ". 1+100 ack 1");
    script.expect(0, "P. 101+100 ack 1");
    script.expect(1_000, ". 1+100 ack 1");
    // 101 would look like a probe to the peer, which already has 201.
    script.send(1_010, ". 1+100 ack 1 win 10000");
    script.expect(1_010, ". 201+0 ack 101");
}

const STAMPED: Config = Config {
    timestamps: true,
    ..PLAIN
};

/// An established end at 10 ms, with the peer's clock at 5000 then.
fn stamped() -> Script {
    let mut script = Script::new(opener(STAMPED, fixed(10_000)));
    script.expect(0, "S 0+0 win 10000 <mss 100 ts 1/0>");
    script.send(10, "S. 0+0 ack 1 win 10000 <mss 100 ts 5000/1>");
    script.expect(10, ". 1+0 ack 1 <ts 10001/5000>");
    script
}

#[test]
fn timestamps_time_retransmissions_too() {
    let mut script = stamped();
    script.call(20, |connection| connection.write(100));
    script.expect(20, "P. 1+100 ack 1 <ts 20001/5000>");
    script.expect(1_020, "P. 1+100 ack 1 <ts 1020001/5000>");
    // The answer echoes the duplicate transmission.
    script.send(1_050, ". 1+0 ack 101 win 10000 <ts 6000/1020001>");
    assert_eq!(
        script.connection().rtt().unwrap().latest(),
        Some(Span::from_millis(30))
    );
    // An echo from the future measures nothing.
    let samples = script.connection().statistics().rtt_samples;
    script.call(1_100, |connection| connection.write(100));
    script.expect(1_100, "P. 101+100 ack 1 <ts 1100001/6000>");
    script.send(1_130, ". 1+0 ack 201 win 10000 <ts 7000/9000000>");
    assert_eq!(
        script.connection().statistics().rtt_samples - samples,
        1,
        "the segment was timed without its stamp"
    );
    assert_eq!(
        script.connection().rtt().unwrap().latest(),
        Some(Span::from_millis(30))
    );
}

#[test]
fn an_old_stamp_marks_an_old_segment() {
    let mut script = stamped();
    script.send(20, ". 1+100 ack 1 win 10000 <ts 6000/1>");
    script.expect(20, ". 1+0 ack 101 <ts 20001/6000>");
    script.send(30, ". 101+100 ack 1 win 10000 <ts 5999/1>");
    script.expect(30, ". 1+0 ack 101 <ts 30001/6000>");
    assert_eq!(script.connection().delivered(), 100);
    // Without a stamp it is ignored (RFC 7323, 3.2); resets need none.
    script.send(40, ". 101+100 ack 1 win 10000");
    script.expect_nothing(40);
    // Disorder: the echo stays with the last segment in order.
    script.send(50, ". 201+100 ack 1 win 10000 <ts 7000/1>");
    script.expect(50, ". 1+0 ack 101 <ts 50001/6000>");
    // A segment outside the window leaves no stamp.
    script.send(60, ". 1+100 ack 1 win 10000 <ts 9000/1>");
    script.expect(60, ". 1+0 ack 101 <ts 60001/6000>");
    script.send(70, ". 101+100 ack 1 win 10000 <ts 6500/1>");
    script.expect(70, ". 1+0 ack 301 <ts 70001/6500>");
    script.send(80, "R 301+0 win 0");
    assert!(script.connection().was_reset());
}

#[test]
fn a_stamp_ages() {
    // Half of the clock's period is 35.8 minutes: after 31 minutes of silence, an older stamp is
    // accepted.
    let mut script = stamped();
    script.send(29 * 60_000, ". 1+100 ack 1 win 10000 <ts 4999/1>");
    script.expect(29 * 60_000, ". 1+0 ack 1 <ts 1740000001/5000>");
    script.send(31 * 60_000, ". 1+100 ack 1 win 10000 <ts 4999/1>");
    script.expect(31 * 60_000, ". 1+0 ack 101 <ts 1860000001/4999>");
}

#[test]
fn a_delayed_acknowledgement_echoes_the_first_of_its_segments() {
    // RFC 7323, section 4.3, case A.
    let config = Config {
        delayed_ack: Some(DelayedAck {
            segments: 2,
            timeout: Span::from_millis(40),
            quick: 0,
        }),
        ..STAMPED
    };
    let mut script = Script::new(listener(config, fixed(10_000)));
    script.send(0, "S 0+0 win 10000 <mss 100 ts 5000/0>");
    script.expect(0, "S. 0+0 ack 1 <mss 100 ts 1/5000>");
    script.send(10, ". 1+0 ack 1 win 10000 <ts 5010/1>");
    script.send(20, ". 1+100 ack 1 win 10000 <ts 5020/1>");
    script.send(30, ". 101+100 ack 1 win 10000 <ts 5030/1>");
    script.expect(30, ". 1+0 ack 201 <ts 30001/5020>");
}

#[test]
fn sequence_numbers_wrap_in_the_middle_of_a_flight() {
    let config = Config {
        initial_sequence: SeqNo::new(u32::MAX - 149),
        ..BORN
    };
    let mut script = Script::new(opener(config, fixed(300)));
    script.call(0, |connection| connection.write(400));
    let first = u32::MAX - 148;
    let peer = first; // Both ends are born with the same settings.
    script.expect(0, &format!(". {first}+100 ack {peer}"));
    script.expect(0, &format!(". {}+100 ack {peer}", first + 100));
    script.expect(0, &format!(". 51+100 ack {peer}"));
    script.send(10, &format!(". {peer}+0 ack 51 win 10000"));
    script.expect(10, &format!("P. 151+100 ack {peer}"));
    script.expect(1_010, &format!(". 51+100 ack {peer}"));
    script.expect(1_010, &format!("P. 151+100 ack {peer}"));
    script.send(1_020, &format!(". {peer}+0 ack 251 win 10000"));
    assert!(script.connection().is_all_acknowledged());
    assert_eq!(script.connection().acknowledged(), 400);
}
