//! The three-way handshake, its options, its retransmissions, and the segments that it refuses.

use std::sync::Arc;

use comity_tcp::{Config, Connection, State};
use comity_testkit::tcp::{PLAIN, Pair, Path, Script, Side, fixed, listener, opener};
use comity_units::{DataSize, SeqNo, Span, Time};

/// Every option on; a buffer of 200,000 bytes needs windows shifted by two bits (50,000).
const RICH: Config = Config {
    mss: 1_000,
    receive_buffer: DataSize::new(200_000),
    window_scaling: true,
    timestamps: true,
    sack: true,
    ..PLAIN
};

#[test]
fn an_opener_agrees_on_options_that_both_offer() {
    let mut script = Script::new(opener(RICH, fixed(10_000)));
    script.expect(0, "S 0+0 win 65535 <mss 1000 ws 2 sackok ts 1/0>");
    script.send(50, "S. 700+0 ack 1 win 5000 <mss 400 ws 7 sackok ts 9/1>");
    script.expect(50, ". 1+0 ack 701 win 50000 <ts 50001/9>");
    let connection = script.connection();
    assert_eq!(connection.state(), State::Established);
    assert_eq!(connection.config().mss, 400);
    assert_eq!(
        connection.peer_window(),
        5_000,
        "a SYN's window is unscaled"
    );
    assert_eq!(
        connection.rtt().unwrap().latest(),
        Some(Span::from_millis(50))
    );
    script.send(60, ". 701+0 ack 1 win 100 <ts 10/50001>");
    assert_eq!(script.connection().peer_window(), 100 << 7);
    script.call(70, |connection| connection.write(500));
    script.expect(70, ". 1+400 ack 701 win 50000 <ts 70001/10>");
    script.expect(70, "P. 401+100 ack 701 win 50000 <ts 70001/10>");
}

#[test]
fn a_listener_omits_options_that_the_peer_lacks() {
    for (syn, answer) in [
        (
            "S 700+0 win 5000 <mss 1400 ws 7 sackok ts 9/0>",
            "S. 0+0 ack 701 win 65535 <mss 1000 ws 2 sackok ts 10001/9>",
        ),
        (
            "S 700+0 win 5000 <mss 400 ws 7 ts 9/0>",
            "S. 0+0 ack 701 win 65535 <mss 400 ws 2 ts 10001/9>",
        ),
        (
            "S 700+0 win 5000 <mss 1400 sackok>",
            "S. 0+0 ack 701 win 65535 <mss 1000 sackok>",
        ),
        // Without the option segments are of 536 bytes at most (RFC 9293, 3.7.1).
        ("S 700+0 win 5000", "S. 0+0 ack 701 win 65535 <mss 536>"),
    ] {
        let mut script = Script::new(listener(RICH, fixed(10_000)));
        script.expect_nothing(9);
        script.send(10, syn);
        script.expect(10, answer);
        assert_eq!(script.connection().state(), State::SynReceived);
        let ts = if answer.contains("ts") {
            "<ts 20/10001>"
        } else {
            ""
        };
        script.send(20, &format!(". 701+0 ack 1 win 4000 {ts}"));
        script.expect_nothing(20);
        let connection = script.connection();
        assert_eq!(connection.state(), State::Established);
        let scale = if answer.contains("ws") { 7 } else { 0 };
        assert_eq!(connection.peer_window(), 4_000 << scale, "{syn}");
        // Without scaling, later windows also have at most 16 bits.
        assert_eq!(connection.config().sack, answer.contains("sackok"));
    }
}

#[test]
fn a_lost_syn_is_retransmitted_with_back_off_and_gives_no_sample() {
    let mut script = Script::new(opener(PLAIN, fixed(10_000)));
    for at in [0, 1_000, 3_000, 7_000] {
        script.expect(at, "S 0+0 win 10000 <mss 100>");
    }
    script.send(7_100, "S. 0+0 ack 1 win 10000 <mss 100>");
    script.expect(7_100, ". 1+0 ack 1");
    assert_eq!(script.connection().rtt().unwrap().latest(), None, "Karn");
    // Without a sample the back-off stays in force: the timer runs for eight seconds.
    script.call(7_200, |connection| connection.write(100));
    script.expect(7_200, "P. 1+100 ack 1");
    script.expect(15_200, "P. 1+100 ack 1");
    assert_eq!(script.connection().statistics().timeouts, 4);
}

#[test]
fn a_lost_syn_ack_is_retransmitted_for_a_syn_and_by_the_timer() {
    let mut script = Script::new(listener(PLAIN, fixed(10_000)));
    script.send(0, "S 0+0 win 10000 <mss 100>");
    script.expect(0, "S. 0+0 ack 1 <mss 100>");
    script.send(500, "S 0+0 win 10000 <mss 100>");
    script.expect(500, "S. 0+0 ack 1 <mss 100>");
    script.expect(1_000, "S. 0+0 ack 1 <mss 100>");
    script.send(1_200, ". 1+0 ack 1 win 10000");
    assert_eq!(script.connection().state(), State::Established);
    assert_eq!(
        script.connection().rtt().unwrap().latest(),
        None,
        "which answer was acknowledged is not known"
    );
    script.expect_nothing(60_000);
}

#[test]
fn an_end_that_only_receives_retransmits_its_syn_ack() {
    let mut script = Script::new(Connection::listen_to_receive(Arc::new(PLAIN)));
    script.send(0, "S 0+0 win 10000 <mss 100>");
    script.expect(0, "S. 0+0 ack 1 <mss 100>");
    // RFC 6298, 2.1 and 5.5: one second, doubled with every expiry.
    script.expect(1_000, "S. 0+0 ack 1 <mss 100>");
    script.expect(3_000, "S. 0+0 ack 1 <mss 100>");
    script.send(3_100, ". 1+0 ack 1 win 10000");
    assert_eq!(script.connection().state(), State::Established);
    assert!(script.connection().next_timer().is_never());
    script.send(3_200, "P. 1+100 ack 1 win 10000");
    script.expect(3_200, ". 1+0 ack 101");
    assert_eq!(script.connection().delivered(), 100);
    // It never has data to send.
    script.call(3_300, |connection| connection.write(1_000));
    script.expect_nothing(60_000);
    let connection = script.connection();
    assert_eq!(
        (connection.unsent(), connection.congestion_window()),
        (0, 0)
    );
    assert!(connection.controller().is_none() && connection.rtt().is_none());
    assert!(connection.is_all_acknowledged());
    // The other kind has its sending half on the heap.
    assert_eq!(connection.heap_memory(), 0);
    assert!(listener(PLAIN, fixed(10_000)).heap_memory() > 200);
}

#[test]
fn a_challenge_repairs_a_lost_third_step() {
    // The listener retransmits its SYN-ACK to an established end.
    let mut script = Script::new(opener(PLAIN, fixed(10_000)));
    script.expect(0, "S 0+0 win 10000 <mss 100>");
    script.send(10, "S. 0+0 ack 1 win 10000 <mss 100>");
    script.expect(10, ". 1+0 ack 1");
    script.send(1_010, "S. 0+0 ack 1 win 10000 <mss 100>");
    script.expect(1_010, ". 1+0 ack 1");
    script.expect_nothing(60_000);
}

#[test]
fn both_ends_may_open_at_once() {
    // RFC 9293, figure 8.
    let mut script = Script::new(opener(PLAIN, fixed(10_000)));
    script.expect(0, "S 0+0 win 10000 <mss 100>");
    script.send(10, "S 700+0 win 5000 <mss 100>");
    script.expect(10, "S. 0+0 ack 701 <mss 100>");
    script.send(20, "S. 700+0 ack 1 win 5000 <mss 100>");
    assert_eq!(script.connection().state(), State::Established);
    script.expect(20, ". 1+0 ack 701");
    script.expect_nothing(60_000);

    let delay = Span::from_millis(10);
    let mut pair = Pair::new(
        opener(PLAIN, fixed(10_000)),
        opener(
            Config {
                initial_sequence: SeqNo::new(700),
                ..PLAIN
            },
            fixed(10_000),
        ),
        Path::new(delay),
        Path::new(delay),
    );
    pair.call(Side::A, |connection| connection.write(250));
    pair.call(Side::B, |connection| connection.write(350));
    assert!(pair.drive(Time::from_secs(1_000)));
    assert_eq!(pair.end(Side::B).delivered(), 250);
    assert_eq!(pair.end(Side::A).delivered(), 350);
    // Each: SYN, SYN-ACK; then three and four segments, which carry the last step, and as many
    // acknowledgements.
    assert_eq!(pair.records().len(), 4 + 7 + 7);
}

#[test]
fn strangers_are_refused_with_a_reset() {
    // RFC 9293, 3.10.7: an acknowledgement of unknown data is reset with its own number.
    let mut script = Script::new(opener(PLAIN, fixed(10_000)));
    script.expect(0, "S 0+0 win 10000 <mss 100>");
    script.send(10, ". 300+0 ack 900 win 10000");
    script.expect(10, "R 900+0 win 0");
    script.send(20, "R. 300+0 ack 900 win 0");
    script.expect_nothing(999);
    assert_eq!(script.connection().state(), State::SynSent);
    script.expect(1_000, "S 0+0 win 10000 <mss 100>");
    script.send(1_010, "R. 0+0 ack 1 win 0");
    assert_eq!(script.connection().state(), State::Closed);
    assert!(script.connection().was_reset());
    script.expect_nothing(60_000);

    let mut script = Script::new(listener(PLAIN, fixed(10_000)));
    script.send(10, ". 300+5 ack 900 win 10000");
    script.expect(10, "R 900+0 win 0");
    script.send(20, "R 300+0 win 0");
    script.send(20, "F 300+0 win 0");
    script.expect_nothing(30);
    assert_eq!(script.connection().state(), State::Listen);
    script.call(40, |connection| connection.close());
    script.send(50, "S 300+0 win 5000");
    script.expect(50, "R. 0+0 ack 301 win 0");
    script.send(60, "R 301+0 win 0");
    script.expect_nothing(60);
}

#[test]
fn without_a_handshake_both_ends_start_established() {
    let config = Config {
        handshake: false,
        initial_sequence: SeqNo::new(u32::MAX - 149),
        ..PLAIN
    };
    let delay = Span::from_millis(10);
    let mut pair = Pair::new(
        opener(config, fixed(10_000)),
        listener(config, fixed(10_000)),
        Path::new(delay),
        Path::new(delay),
    );
    assert_eq!(pair.end(Side::A).peer_window(), 10_000);
    pair.call(Side::A, |connection| connection.write(350));
    assert!(pair.drive(Time::from_secs(10)));
    let first = pair.records()[0];
    assert_eq!((first.at, first.segment.payload), (Time::ZERO, 100));
    assert_eq!(pair.records().len(), 8, "four segments, four answers");
    assert_eq!(pair.end(Side::B).delivered(), 350);
    assert!(pair.end(Side::A).is_all_acknowledged());
}
