//! The examples of sections 5.2 to 5.5 of the TLTCP paper, with its numbers: packets of one byte,
//! sections 10..19, 20..29 and so on.

use comity_congestion::recovery::RecoveryConfig;
use comity_tcp::timeline::{Piece, TimelineConfig};
use comity_tcp::{Config, Connection};
use comity_testkit::tcp::{
    Pair, Path, Record, Script, Side, TIMELINED, fixed, listener, opener, reno,
};
use comity_units::{DataSize, SeqNo, Span, Time};

const D1: u64 = 100;

/// Submits `count` sections of ten bytes: the first expires at `D1`, the others ten seconds later.
fn give(connection: &mut Connection, count: u64) {
    for section in 0..count {
        let deadline = Time::from_millis(D1 + section * 10_000);
        connection.write_section(10, deadline).unwrap();
    }
}

/// A sender whose peer's window admits 10 to 14 until `D1`, and nothing of 15 to 19.
fn sent_10_to_14(config: Config, window: u64) -> Script {
    let five = Config {
        receive_buffer: DataSize::new(5),
        ..config
    };
    let mut script = Script::new(opener(five, fixed(window)));
    script.call(0, |sender| give(sender, 3));
    for number in 10..15 {
        script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
    }
    script.expect_nothing(D1);
    script
}

#[test]
fn section_5_2_after_14_comes_20() {
    let mut script = sent_10_to_14(TIMELINED, 10);
    script.send(D1 + 1, ". 10+0 ack 10 win 6");
    script.expect(D1 + 1, ". 20+1 ack 10 <upd 20>");
    script.expect_nothing(D1 + 2);
    let statistics = script.connection().timeline_statistics().unwrap();
    assert_eq!((statistics.jumps, statistics.expired), (1, 1));
    assert_eq!(statistics.discarded_bytes, 5, "15 to 19");
    assert_eq!(statistics.obsolete_bytes, 5, "10 to 14");
    // The lifetime timer is set to the second section's deadline; the first retransmission is due
    // earlier.
    assert!(script.connection().next_timer() <= Time::from_millis(D1 + 10_000));
}

#[test]
fn section_5_4_an_acknowledgement_of_obsolete_data_opens_the_window() {
    let mut script = sent_10_to_14(TIMELINED, 10);
    script.send(D1 + 1, ". 10+0 ack 10 win 10");
    // The send window is {10, 11, 12, 13, 14, 20, 21, 22, 23, 24}.
    for number in 20..25 {
        script.expect(D1 + 1, &format!(". {number}+1 ack 10 <upd 20>"));
    }
    script.expect_nothing(D1 + 2);
    // "An ACK is received for sequence number 12": the next number expected is 13.
    script.send(D1 + 3, ". 10+0 ack 13 win 10");
    for number in 25..28 {
        script.expect(D1 + 3, &format!(". {number}+1 ack 10 <upd 20>"));
    }
    script.expect_nothing(D1 + 4);
}

/// A sender that keeps obsolete places which no acknowledgement of their section has passed, or
/// does not. 10 to 13 are acknowledged, 14 is not; 20 to 28 leave after `D1`.
fn sent_20_to_28(holds_passed: bool, (window, peer_window): (u64, u64)) -> Script {
    let config = Config {
        timeline: Some(TimelineConfig {
            holds_passed,
            ..TimelineConfig::PAPER
        }),
        ..TIMELINED
    };
    let mut script = sent_10_to_14(config, window);
    script.send(D1 + 1, &format!(". 10+0 ack 14 win {peer_window}"));
    for number in 20..29 {
        script.expect(D1 + 1, &format!(". {number}+1 ack 10 <upd 20>"));
    }
    script
}

/// 14 is lost, and 20 makes the receiver jump. By the paper's letter the acknowledgement of 20
/// releases both places; by the other reading only that of 20. Either window counts the places.
#[test]
fn section_5_4_an_acknowledgement_behind_a_jump_may_hold_lost_bytes() {
    for windows in [(10, 10), (10, 20), (20, 10)] {
        for (holds_passed, next) in [(false, 29..31), (true, 29..30)] {
            let mut script = sent_20_to_28(holds_passed, windows);
            script.send(D1 + 3, &format!(". 10+0 ack 21 win {}", windows.1));
            for number in next {
                script.expect(D1 + 3, &format!(". {number}+1 ack 10 <upd 20>"));
            }
            script.expect_nothing(D1 + 4);
        }
    }
}

/// 14 and 20 are lost: 21 makes the receiver jump, which acknowledges nothing behind the jump.
#[test]
fn section_5_4_an_acknowledgement_up_to_a_jump_may_hold_lost_bytes() {
    let mut script = sent_20_to_28(false, (10, 10));
    script.send(D1 + 3, ". 10+0 ack 20 win 10");
    script.expect(D1 + 3, ". 29+1 ack 10 <upd 20>");
    script.expect_nothing(D1 + 4);
    let mut script = sent_20_to_28(true, (10, 10));
    script.send(D1 + 3, ". 10+0 ack 20 win 10");
    script.expect_nothing(D1 + 4);
}

/// Kept places leave the window with a timeout, also where nothing else is outstanding.
#[test]
fn section_5_4_a_timeout_releases_held_bytes() {
    let mut script = sent_20_to_28(true, (10, 10));
    script.send(D1 + 3, ". 10+0 ack 29 win 1");
    // The peer's window holds one packet, and that is taken.
    script.expect_nothing(D1 + 4);
    assert_eq!(script.connection().statistics().timeouts, 0);
    let due = script.connection().next_timer();
    assert!(due < Time::from_millis(D1 + 3_000), "{due}");
    script.expect(due.as_nanos() / 1_000_000, ". 29+1 ack 10 <upd 20>");
    assert_eq!(script.connection().statistics().timeouts, 1);
}

/// 10 is the timed packet, and after it 25. The paper does not say whether an acknowledgement of
/// obsolete data measures the round trip.
#[test]
fn section_5_4_an_acknowledgement_of_obsolete_data_may_give_no_sample() {
    for (samples_obsolete, of_obsolete) in [(true, 1), (false, 0)] {
        let config = Config {
            timeline: Some(TimelineConfig {
                samples_obsolete,
                ..TimelineConfig::PAPER
            }),
            ..TIMELINED
        };
        let mut script = sent_10_to_14(config, 10);
        let samples = |script: &Script| script.connection().statistics().rtt_samples;
        let before = samples(&script);
        script.send(D1 + 1, ". 10+0 ack 10 win 10");
        for number in 20..25 {
            script.expect(D1 + 1, &format!(". {number}+1 ack 10 <upd 20>"));
        }
        script.send(D1 + 3, ". 10+0 ack 13 win 10");
        assert_eq!(samples(&script), before + of_obsolete);
        for number in 25..28 {
            script.expect(D1 + 3, &format!(". {number}+1 ack 10 <upd 20>"));
        }
        // The place of 14 comes before 20.
        script.send(D1 + 5, ". 10+0 ack 28 win 1");
        assert_eq!(samples(&script), before + of_obsolete + 1);
    }
}

#[test]
fn section_5_5_a_lost_obsolete_packet_is_answered_with_a_first_send() {
    let mut script = sent_10_to_14(TIMELINED, 5);
    // Packet 10 is lost, 11 to 13 are reported.
    for at in [1, 2] {
        script.send(D1 + at, ". 10+0 ack 10 win 5");
        script.expect_nothing(D1 + at);
    }
    script.send(D1 + 3, ". 10+0 ack 10 win 5");
    script.expect(D1 + 3, ". 20+1 ack 10 <upd 20>");
    script.expect_nothing(D1 + 4);
    let statistics = script.connection().timeline_statistics().unwrap();
    assert_eq!(statistics.replacements, 1);
    assert_eq!(statistics.pseudo_retransmissions, 0);
    assert_eq!(script.connection().statistics().retransmitted, 0);
}

#[test]
fn section_5_5_the_same_after_a_timeout() {
    let mut script = sent_10_to_14(TIMELINED, 5);
    script.expect(1_000, ". 20+1 ack 10 <upd 20>");
    let statistics = script.connection().timeline_statistics().unwrap();
    // The sender gives up everything outstanding, so the window of five admits four more.
    assert_eq!(statistics.pseudo_retransmissions, 0);
    for number in 21..25 {
        script.expect(1_000, &format!(". {number}+1 ack 10 <upd 20>"));
    }
    script.expect_nothing(1_100);
}

#[test]
fn figure_3_a_packet_sent_before_is_pseudo_retransmitted_and_never_timed() {
    let mut script = sent_10_to_14(TIMELINED, 10);
    script.send(D1 + 1, ". 10+0 ack 10 win 10");
    for number in 20..25 {
        script.expect(D1 + 1, &format!(". {number}+1 ack 10 <upd 20>"));
    }
    let before = script.connection().statistics();
    for at in 2..5 {
        script.send(D1 + at, ". 10+0 ack 10 win 10");
    }
    script.expect(D1 + 4, ". 20+1 ack 10 <upd 20>");
    let statistics = script.connection().timeline_statistics().unwrap();
    assert_eq!(statistics.pseudo_retransmissions, 1);
    assert_eq!(statistics.replacements, 0);
    // The acknowledgement of 20 arrives, and may refer to either transmission.
    script.send(D1 + 50, ". 10+0 ack 21 win 10");
    let after = script.connection().statistics();
    assert_eq!(after.rtt_samples, before.rtt_samples);
    assert_eq!(after.retransmitted, 1);
}

/// Reno with a window of ten. 10 to 14 leave before `D1` and 20 to 24 after it, over a path that
/// loses 10 and 14. Returns the number of window reductions, and the transcript.
fn two_losses(timeline: Option<TimelineConfig>, recovery: RecoveryConfig) -> (u32, Pair) {
    let config = Config {
        timeline,
        recovery,
        sack: recovery == RecoveryConfig::SACK,
        ..TIMELINED
    };
    let delay = Span::from_millis(100);
    let mut pair = Pair::new(
        opener(config, reno(1, 10, 10)),
        listener(config, fixed(10)),
        Path::losing(delay, &[10, 14]),
        Path::new(delay),
    );
    // The application has at most five bytes of the first section ready.
    pair.call(Side::A, |sender| {
        sender
            .write_section(5, Time::from_millis(D1))
            .expect("it is taken");
    });
    pair.drive(Time::from_millis(D1 + 1));
    pair.call(Side::A, |sender| {
        sender
            .write_section(5, Time::from_millis(D1 + 1))
            .and_then(|()| sender.write_section(50, Time::from_secs(100)))
            .expect("it is taken");
    });
    pair.drive(Time::from_secs(30));
    let statistics = pair.end(Side::A).statistics();
    (statistics.fast_retransmits + statistics.timeouts, pair)
}

#[test]
fn figure_4_the_second_loss_goes_unseen() {
    let reno = RecoveryConfig::RENO;
    let (tltcp, pair) = two_losses(Some(TimelineConfig::PAPER), reno);
    assert_eq!(tltcp, 1, "\n{}", pair.transcript());
    let (tcp, pair) = two_losses(None, reno);
    assert_eq!(tcp, 2, "\n{}", pair.transcript());
}

#[test]
fn without_the_blind_spot_losses_are_detected_as_by_tcp() {
    let open = TimelineConfig {
        blind_spot: false,
        ..TimelineConfig::PAPER
    };
    for recovery in [
        RecoveryConfig::RENO,
        RecoveryConfig::NEW_RENO,
        RecoveryConfig::SACK,
    ] {
        let (tltcp, mine) = two_losses(Some(open), recovery);
        let (tcp, _) = two_losses(None, recovery);
        assert_eq!(tltcp, tcp, "{recovery:?}\n{}", mine.transcript());
        let statistics = mine.end(Side::A).timeline_statistics().unwrap();
        let answers = statistics.pseudo_retransmissions + statistics.replacements;
        // Reno detects the second loss by a timeout, which restarts sending and answers no loss of
        // its own.
        let expected = if recovery == RecoveryConfig::RENO {
            1
        } else {
            2
        };
        assert_eq!(answers, expected, "{recovery:?}\n{}", mine.transcript());
    }
}

#[test]
fn nothing_obsolete_is_sent_after_the_deadline() {
    let (_, pair) = two_losses(Some(TimelineConfig::PAPER), RecoveryConfig::RENO);
    let is_late = |record: &&Record| {
        record.from == Side::A
            && record.at > Time::from_millis(D1)
            && record.segment.payload > 0
            && record.segment.sequence.precedes(SeqNo::new(20))
    };
    assert_eq!(pair.records().iter().find(is_late), None);
}

/// A receiver that has 10, 11 and 13.
fn receiver_of_10_11_13() -> Script {
    // With larger segments, single-byte reads are not worth an announcement.
    let large = Config {
        mss: 20,
        ..TIMELINED
    };
    let mut script = Script::new(listener(large, fixed(10)));
    for (number, acknowledged) in [(10_u64, 11), (11, 12), (13, 12)] {
        let at = number;
        script.send(at, &format!(". {number}+1 ack 10 win 40 <upd 10>"));
        script.expect(at, &format!(". 10+0 ack {acknowledged}"));
    }
    script
}

fn pieces(script: &mut Script, at_ms: u64) -> Vec<Piece> {
    let mut found = Vec::new();
    script.call(at_ms, |receiver| {
        found.extend(core::iter::from_fn(|| receiver.read_piece(100)));
    });
    found
}

const fn data(offset: u64, length: u64) -> Piece {
    Piece::Data { offset, length }
}

const fn gap(offset: u64, length: u64) -> Piece {
    Piece::Gap { offset, length }
}

#[test]
fn the_receiver_jumps_and_reads_data_and_gaps_in_order() {
    let mut script = receiver_of_10_11_13();
    assert_eq!(pieces(&mut script, 20), [data(0, 2)]);
    // 21 announces that nothing below 20 will arrive, and is out of order itself.
    script.send(21, ". 21+1 ack 10 win 40 <upd 20>");
    script.expect(21, ". 10+0 ack 20");
    assert_eq!(pieces(&mut script, 22), [gap(2, 1), data(3, 1), gap(4, 6)]);
    script.send(23, ". 20+1 ack 10 win 40 <upd 20>");
    script.expect(23, ". 10+0 ack 22");
    assert_eq!(pieces(&mut script, 24), [data(10, 2)]);
    let statistics = script.connection().gap_statistics();
    assert_eq!(
        (statistics.jumps, statistics.gaps, statistics.bytes),
        (1, 2, 7)
    );
    assert_eq!(script.connection().delivered(), 5);
}

#[test]
fn an_old_update_and_old_data_change_nothing() {
    let mut script = receiver_of_10_11_13();
    script.send(21, ". 20+1 ack 10 win 40 <upd 20>");
    script.expect(21, ". 10+0 ack 21");
    // 12 is late: the receiver has given up the gap.
    script.send(22, ". 12+1 ack 10 win 40 <upd 10>");
    script.expect(22, ". 10+0 ack 21");
    script.send(23, ". 21+1 ack 10 win 40 <upd 10>");
    script.expect(23, ". 10+0 ack 22");
    assert_eq!(
        pieces(&mut script, 24),
        [data(0, 2), gap(2, 1), data(3, 1), gap(4, 6), data(10, 2)]
    );
}

#[test]
fn a_void_is_passed_over_but_missing_data_before_it_is_expected() {
    let mut script = receiver_of_10_11_13();
    script.send(21, ". 20+1 ack 10 win 40 <upd 10/14-20>");
    script.expect(21, ". 10+0 ack 12");
    assert_eq!(pieces(&mut script, 22), [data(0, 2)]);
    script.send(23, ". 12+1 ack 10 win 40 <upd 10>");
    script.expect(23, ". 10+0 ack 21");
    assert_eq!(
        pieces(&mut script, 24),
        [data(2, 2), gap(4, 6), data(10, 1)]
    );
}

#[test]
fn updates_that_contradict_their_segment_or_are_no_answer_are_ignored() {
    for line in [
        // Data below the update, and within the void that it names.
        ". 14+1 ack 10 win 40 <upd 20>",
        ". 15+1 ack 10 win 40 <upd 10/14-20>",
        // It acknowledges unsent data.
        ". 20+1 ack 50 win 40 <upd 20>",
    ] {
        let mut script = receiver_of_10_11_13();
        script.send(21, line);
        script.expect(21, ". 10+0 ack 12");
        assert_eq!(script.connection().gap_statistics().jumps, 0, "{line}");
    }
}
