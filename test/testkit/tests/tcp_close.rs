//! How connections end: with a FIN in each direction, in any order, or with a reset.

use std::sync::Arc;

use comity_tcp::{Config, Connection, State};
use comity_testkit::tcp::{PLAIN, Script, fixed, opener};
use comity_units::Time;

/// An established end at 10 ms; both streams begin at 1.
fn established(config: Config) -> Script {
    let mut script = Script::new(opener(config, fixed(10_000)));
    script.expect(0, "S 0+0 win 10000 <mss 100>");
    script.send(10, "S. 0+0 ack 1 win 10000 <mss 100>");
    script.expect(10, ". 1+0 ack 1");
    script
}

#[test]
fn the_closing_end_still_receives_and_then_enters_time_wait() {
    let mut script = established(PLAIN);
    script.call(20, |connection| connection.close());
    script.expect(20, "F. 1+0 ack 1");
    assert_eq!(script.connection().state(), State::FinWait1);
    script.send(30, ". 1+0 ack 2 win 10000");
    assert_eq!(script.connection().state(), State::FinWait2);
    script.send(40, "P. 1+100 ack 2 win 10000");
    script.expect(40, ". 2+0 ack 101");
    script.send(50, "F. 101+0 ack 2 win 10000");
    script.expect(50, ". 2+0 ack 102");
    assert_eq!(script.connection().state(), State::TimeWait);
    // A retransmitted FIN is answered and restarts TIME-WAIT (RFC 9293, 3.10.7.4); a reset does not
    // end it.
    script.send(30_000, "F. 101+0 ack 2 win 10000");
    script.expect(30_000, ". 2+0 ack 102");
    script.send(40_000, "R 102+0 win 0");
    assert_eq!(script.connection().state(), State::TimeWait);
    assert_eq!(script.connection().next_timer(), Time::from_secs(90));
    script.expect_nothing(89_999);
    assert_eq!(script.connection().state(), State::TimeWait);
    script.expect_nothing(90_000);
    assert_eq!(script.connection().state(), State::Closed);
    assert!(!script.connection().was_reset());
    assert_eq!(script.connection().delivered(), 100);
    assert!(script.connection().next_timer().is_never());
}

#[test]
fn the_other_end_may_continue_sending() {
    let mut script = established(PLAIN);
    script.send(20, "F. 1+0 ack 1 win 10000");
    script.expect(20, ". 1+0 ack 2");
    assert_eq!(script.connection().state(), State::CloseWait);
    script.call(30, |connection| connection.write(100));
    script.expect(30, "P. 1+100 ack 2");
    script.send(40, ". 2+0 ack 101 win 10000");
    script.call(50, |connection| connection.close());
    script.expect(50, "F. 101+0 ack 2");
    assert_eq!(script.connection().state(), State::LastAck);
    script.send(60, ". 2+0 ack 102 win 10000");
    assert_eq!(script.connection().state(), State::Closed);
    script.expect_nothing(100_000);
}

#[test]
fn an_end_that_only_receives_retransmits_its_fin_into_a_closed_window() {
    let mut script = Script::new(Connection::listen_to_receive(Arc::new(PLAIN)));
    script.send(0, "S 0+0 win 0 <mss 100>");
    script.expect(0, "S. 0+0 ack 1 <mss 100>");
    script.send(10, ". 1+0 ack 1 win 0");
    script.send(20, "F. 1+0 ack 1 win 0");
    script.expect(20, ". 1+0 ack 2");
    assert_eq!(script.connection().state(), State::CloseWait);
    script.call(100, |connection| connection.close());
    for at in [100, 1_100, 3_100, 7_100] {
        script.expect(at, "F. 1+0 ack 2");
        assert_eq!(script.connection().state(), State::LastAck);
    }
    assert_eq!(script.connection().in_flight(), 1);
    script.send(8_000, ". 2+0 ack 2 win 0");
    assert_eq!(script.connection().state(), State::Closed);
    assert!(script.connection().next_timer().is_never());
    script.expect_nothing(100_000);
}

#[test]
fn both_may_close_at_once() {
    let mut script = established(PLAIN);
    script.call(20, |connection| connection.close());
    script.expect(20, "F. 1+0 ack 1");
    script.send(30, "F. 1+0 ack 1 win 10000");
    script.expect(30, ". 2+0 ack 2");
    assert_eq!(script.connection().state(), State::Closing);
    script.send(40, ". 2+0 ack 2 win 10000");
    assert_eq!(script.connection().state(), State::TimeWait);
    script.expect_nothing(60_039);
    assert_eq!(script.connection().state(), State::TimeWait);
    script.expect_nothing(60_040);
    assert_eq!(script.connection().state(), State::Closed);
}

#[test]
fn one_segment_may_acknowledge_our_fin_and_carry_the_peers() {
    let mut script = established(PLAIN);
    script.call(20, |connection| connection.close());
    script.expect(20, "F. 1+0 ack 1");
    script.send(30, "FP. 1+50 ack 2 win 10000");
    script.expect(30, ". 2+0 ack 52");
    assert_eq!(script.connection().state(), State::TimeWait);
    assert_eq!(script.connection().delivered(), 50);
}

#[test]
fn a_fin_follows_the_data_and_nothing_follows_it() {
    let mut script = established(PLAIN);
    script.call(20, |connection| {
        connection.write(250);
        connection.close();
        connection.write(1_000);
    });
    script.expect(20, ". 1+100 ack 1");
    script.expect(20, ". 101+100 ack 1");
    script.expect(20, "FP. 201+50 ack 1");
    // The FIN is retransmitted like data: everything from the first loss on.
    script.send(30, ". 1+0 ack 201 win 10000");
    script.expect(1_030, "FP. 201+50 ack 1");
    script.send(1_040, ". 1+0 ack 251 win 10000");
    assert_eq!(script.connection().state(), State::FinWait1);
    // The timer restarts with its backed-off timeout: two seconds.
    script.expect(3_040, "F. 251+0 ack 1");
    script.send(3_050, ". 1+0 ack 252 win 10000");
    assert_eq!(script.connection().state(), State::FinWait2);
    assert_eq!(script.connection().acknowledged(), 250);
    script.expect_nothing(100_000);
}

#[test]
fn a_fin_waits_for_missing_data_before_it() {
    let mut script = established(PLAIN);
    script.send(20, "F. 101+0 ack 1 win 10000");
    script.expect(20, ". 1+0 ack 1");
    assert_eq!(script.connection().state(), State::Established);
    // A different end of the stream, below or beyond, is ignored, and so is data after the end.
    script.send(30, "F. 301+0 ack 1 win 10000");
    script.expect(30, ". 1+0 ack 1");
    script.send(40, ". 1+150 ack 1 win 10000");
    script.expect(40, ". 1+0 ack 102");
    assert_eq!(script.connection().state(), State::CloseWait);
    assert_eq!(script.connection().delivered(), 100);
    script.send(50, "P. 102+100 ack 1 win 10000");
    script.expect(50, ". 1+0 ack 102");
    script.send(60, "F. 102+0 ack 1 win 10000");
    script.expect(60, ". 1+0 ack 102");
    assert_eq!(script.connection().delivered(), 100);
}

#[test]
fn a_reset_counts_only_at_the_number_expected() {
    // RFC 5961, section 3.2.
    let mut script = established(PLAIN);
    script.send(20, "R 2+0 win 0");
    script.expect(20, ". 1+0 ack 1");
    script.send(30, "R 10001+0 win 0");
    script.expect(30, ". 1+0 ack 1");
    script.send(40, "R 10002+0 win 0");
    script.send(40, "R 0+0 win 0");
    script.expect_nothing(40);
    assert_eq!(script.connection().state(), State::Established);
    script.send(50, "R 1+0 win 0");
    assert_eq!(script.connection().state(), State::Closed);
    assert!(script.connection().was_reset());
    script.expect_nothing(100_000);
}

#[test]
fn a_syn_is_challenged_at_any_number() {
    // RFC 5961, section 4.2.
    let mut script = established(PLAIN);
    for line in ["S 1+0 win 9", "S 500+0 win 9", "S 90000+0 win 9"] {
        script.send(20, line);
        script.expect(20, ". 1+0 ack 1");
    }
    assert_eq!(script.connection().state(), State::Established);
}

#[test]
fn a_closed_end_resets_a_continuing_peer() {
    let mut script = established(PLAIN);
    script.send(20, "R 1+0 win 0");
    script.send(30, "P. 1+100 ack 1 win 10000");
    script.expect(30, "R 1+0 win 0");
    script.send(40, "R 1+0 win 0");
    script.send(40, "R. 1+0 ack 1 win 0");
    script.expect_nothing(50);
}

#[test]
fn acknowledgements_of_unsent_or_ancient_data_are_dropped() {
    let mut script = established(PLAIN);
    script.send(20, "P. 1+100 ack 2 win 10000");
    script.expect(20, ". 1+0 ack 1");
    assert_eq!(script.connection().delivered(), 0);
    // 20,000 bytes later, the number 1 is further back than the largest window (10,000).
    script.call(30, |connection| connection.write(20_000));
    for start in (1..10_001).step_by(100) {
        script.expect(30, &format!(". {start}+100 ack 1"));
    }
    script.send(40, ". 1+0 ack 10001 win 10000");
    for start in (10_001..19_901).step_by(100) {
        script.expect(40, &format!(". {start}+100 ack 1"));
    }
    script.expect(40, "P. 19901+100 ack 1");
    script.send(50, ". 1+0 ack 20001 win 10000");
    script.send(60, "P. 1+100 ack 10000 win 10000");
    script.expect(60, ". 20001+0 ack 1");
    assert_eq!(script.connection().delivered(), 0);
    script.send(70, "P. 1+100 ack 10001 win 10000");
    script.expect(70, ". 20001+0 ack 101");
    assert_eq!(script.connection().delivered(), 100);
}

#[test]
fn closing_before_a_connection_closes_at_once() {
    let mut script = Script::new(opener(PLAIN, fixed(10_000)));
    script.expect(0, "S 0+0 win 10000 <mss 100>");
    script.call(5, |connection| {
        connection.write(50);
        connection.close();
    });
    script.send(10, "S. 0+0 ack 1 win 10000 <mss 100>");
    script.expect(10, "FP. 1+50 ack 1");
    assert_eq!(script.connection().state(), State::FinWait1);
}
