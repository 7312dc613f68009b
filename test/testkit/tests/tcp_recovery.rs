//! Four recoveries, one pattern of losses: the segments that each sends.
//!
//! Times are milliseconds, segments are numbered from 1 and have 100 bytes; a round trip takes 100
//! ms. The controller is Reno's with a window of eight segments in congestion avoidance.

use comity_congestion::recovery::{RecoveryConfig, RecoveryKind};
use comity_tcp::Config;
use comity_testkit::tcp::{BORN, Pair, Path, Script, Side, listener, opener, reno};
use comity_units::{Span, Time};

fn with(recovery: RecoveryConfig) -> Config {
    Config {
        sack: matches!(recovery.kind, RecoveryKind::Sack { .. }),
        recovery,
        ..BORN
    }
}

/// Sends 16 segments and loses those in `lost` once.
fn transfer(config: Config, lost: &[u32]) -> Pair {
    let delay = Span::from_millis(50);
    let sequences: Vec<u32> = lost.iter().map(|segment| (segment - 1) * 100 + 1).collect();
    let mut pair = Pair::new(
        opener(config, reno(100, 8, 8)),
        listener(config, reno(100, 8, 8)),
        Path::losing(delay, &sequences),
        Path::new(delay),
    );
    pair.call(Side::A, |connection| connection.write(1_600));
    assert!(pair.drive(Time::from_secs(1_000)));
    assert_eq!(pair.end(Side::B).delivered(), 1_600);
    assert!(pair.end(Side::A).is_all_acknowledged());
    pair
}

/// The segments of the first end when 2 and 4 of the first eight are lost. In every case the
/// acknowledgement of 1 releases 9 at 100 ms, and the third duplicate (for 5, 6 and so on)
/// retransmits 2.
#[test]
fn two_losses_distinguish_the_recoveries() {
    let first = (0, vec![1, 2, 3, 4, 5, 6, 7, 8]);
    let cases = [
        // The window is one: 2. At 200 ms it is two, and everything from 4 on is retransmitted, of
        // which only 4 was missing; then slow start to the threshold of four.
        (
            RecoveryConfig::TAHOE,
            vec![
                (100, vec![9, 2]),
                (200, vec![4, 5]),
                (300, vec![10, 11, 12]),
                (400, vec![13, 14, 15, 16]),
            ],
        ),
        // Window 4 + 3, with the fourth and fifth duplicate 9: 10. At 200 ms a sixth: 11. The
        // acknowledgement of 3 then ends it. Two duplicates are too few for 4, and the timer,
        // restarted at 200 ms, runs for a second.
        (
            RecoveryConfig::RENO,
            vec![
                (100, vec![9, 2, 10]),
                (200, vec![11]),
                (1_200, vec![4]),
                (1_300, vec![12, 13]),
                (1_400, vec![14, 15, 16]),
            ],
        ),
        // As Reno, but the acknowledgement of 3 is partial: 4 again, and 4 + 6 - 2 + 1 = 9 segments
        // from 4 on: 12, with the next duplicate 13.
        (
            RecoveryConfig::NEW_RENO,
            vec![
                (100, vec![9, 2, 10]),
                (200, vec![11, 4, 12, 13]),
                (300, vec![14, 15, 16]),
            ],
        ),
        // After the fourth duplicate three segments lie above 4, so it is lost as well. The pipe
        // has the retransmitted 2, 8 and 9, one less than the window, and 4 follows; after the
        // fifth 2, 4 and 9: 10.
        (
            RecoveryConfig::SACK,
            vec![
                (100, vec![9, 2, 4, 10]),
                (200, vec![11, 12, 13, 14]),
                (300, vec![15, 16]),
            ],
        ),
        // The counter begins at 8 - 3 and is below four with the fifth duplicate: 4. The sixth: 10;
        // the partial one counts for two: 11 and 12; the end: 13.
        (
            RecoveryConfig::SACK_NS2,
            vec![
                (100, vec![9, 2, 4]),
                (200, vec![10, 11, 12, 13]),
                (300, vec![14, 15, 16]),
            ],
        ),
    ];
    for (recovery, rest) in cases {
        let pair = transfer(with(recovery), &[2, 4]);
        let mut expected = vec![first.clone()];
        expected.extend(rest);
        assert_eq!(pair.flights(Side::A, 100), expected, "{recovery:?}");
    }
}

#[test]
fn one_loss_is_the_same_for_all_but_tahoe() {
    let fast = vec![
        (0, vec![1, 2, 3, 4, 5, 6, 7, 8]),
        (100, vec![9, 2, 10, 11]),
        (200, vec![12, 13, 14, 15]),
        (300, vec![16]),
    ];
    for recovery in [
        RecoveryConfig::RENO,
        RecoveryConfig::NEW_RENO,
        RecoveryConfig::NEW_RENO_NS2,
        RecoveryConfig::SACK,
        RecoveryConfig::SACK_NS2,
    ] {
        assert_eq!(transfer(with(recovery), &[2]).flights(Side::A, 100), fast);
    }
    let slow = transfer(with(RecoveryConfig::TAHOE), &[2]).flights(Side::A, 100);
    assert_eq!(slow[1..3], [(100, vec![9, 2]), (200, vec![10, 11])]);
}

#[test]
fn without_agreement_sack_is_new_reno() {
    let config = Config {
        recovery: RecoveryConfig::SACK,
        sack: false,
        ..BORN
    };
    let expected = transfer(with(RecoveryConfig::NEW_RENO), &[2, 3, 4, 5]).flights(Side::A, 100);
    assert_eq!(
        transfer(config, &[2, 3, 4, 5]).flights(Side::A, 100),
        expected
    );
    assert_eq!(
        transfer(with(RecoveryConfig::SACK), &[2, 3, 4, 5]).flights(Side::A, 100)[1],
        (100, vec![9, 2, 3, 4]),
        "one round trip instead of four"
    );
    // The same if the peer lacks it.
    let mut script = Script::new(opener(
        Config {
            handshake: true,
            sack: true,
            ..config
        },
        reno(100, 8, 8),
    ));
    script.expect(0, "S 0+0 win 10000 <mss 100 sackok>");
    script.send(10, "S. 0+0 ack 1 win 10000 <mss 100>");
    script.expect(10, ". 1+0 ack 1");
    assert_eq!(
        script.connection().config().recovery,
        RecoveryConfig::NEW_RENO
    );
}

/// Eight segments out at 0 ms.
fn eight(config: Config) -> Script {
    let mut script = Script::new(opener(config, reno(100, 8, 8)));
    script.call(0, |connection| connection.write(100_000));
    for start in (1..801).step_by(100) {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script
}

#[test]
fn the_scoreboard_needs_no_three_duplicates() {
    // Four segments above the first: one duplicate proves it lost. The pipe has the retransmitted
    // 1, 6, 7, 8, the new window.
    let mut script = eight(with(RecoveryConfig::SACK));
    script.send(100, ". 1+0 ack 1 win 10000 <sack 101-501>");
    script.expect(100, ". 1+100 ack 1");
    script.expect_nothing(150);
    assert_eq!(script.connection().congestion_window(), 400);
    script.send(160, ". 1+0 ack 1 win 10000 <sack 101-601>");
    script.expect(160, ". 801+100 ack 1");
    // The counter rule counts.
    let mut script = eight(with(RecoveryConfig::SACK_NS2));
    script.send(100, ". 1+0 ack 1 win 10000 <sack 101-501>");
    script.send(101, ". 1+0 ack 1 win 10000 <sack 101-601>");
    script.expect_nothing(110);
    script.send(120, ". 1+0 ack 1 win 10000 <sack 101-701>");
    script.expect(120, ". 1+100 ack 1");
}

/// RFC 6675, section 5, step 4.3, and rule 4 of `NextSeg()`: the last of eight segments may be in
/// flight as long as the retransmitted first is not acknowledged.
#[test]
fn the_last_segment_is_not_rescued_before_the_first_arrived() {
    let mut script = Script::new(opener(with(RecoveryConfig::SACK), reno(100, 8, 8)));
    script.call(0, |connection| connection.write(800));
    for start in (1..701).step_by(100) {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script.expect(0, "P. 701+100 ack 1");
    // The pipe has the retransmitted 1, and 8, in a window of four.
    script.send(100, ". 1+0 ack 1 win 10000 <sack 101-701>");
    script.expect(100, ". 1+100 ack 1");
    script.expect_nothing(190);
    // 8 did not arrive after it: it is retransmitted, but only once.
    script.send(200, ". 1+0 ack 701 win 10000");
    script.expect(200, "P. 701+100 ack 1");
    script.expect_nothing(1_100);
}

#[test]
fn only_new_sack_information_makes_a_duplicate() {
    // RFC 6675, section 2: also on data, also with another window.
    let mut script = eight(with(RecoveryConfig::SACK));
    script.send(100, "P. 1+50 ack 1 win 9000 <sack 101-501>");
    script.expect(100, ". 1+100 ack 51");
    // Without new information an acknowledgement is no duplicate; blocks beyond or below the sent
    // data are no information.
    let mut script = eight(with(RecoveryConfig::SACK));
    for at in [100, 110, 120, 130] {
        script.send(at, ". 1+0 ack 1 win 10000");
        script.send(at, ". 1+0 ack 1 win 10000 <sack 801-1301>");
        script.send(at, ". 1+0 ack 1 win 10000 <sack 4294967000-4294967290>");
        script.send(at, ". 1+0 ack 1 win 10000 <sack 501-101>");
        script.expect_nothing(at);
    }
    script.expect(1_000, ". 1+100 ack 1");
    assert_eq!(script.connection().statistics().fast_retransmits, 0);
    // For RFC 5681 a duplicate repeats all fields, so a segment with data or another window is
    // none.
    let mut script = eight(with(RecoveryConfig::NEW_RENO));
    script.send(100, ". 1+0 ack 1 win 10000");
    script.send(110, ". 1+0 ack 1 win 10000");
    script.send(120, ". 1+0 ack 1 win 11000");
    script.send(130, "P. 1+50 ack 1 win 11000");
    script.expect(130, ". 801+0 ack 51");
    // Neither is a probe or a reordered acknowledgement, whose number is old.
    script.send(140, ". 50+0 ack 1 win 11000");
    script.expect(140, ". 801+0 ack 51");
    script.send(150, ". 51+0 ack 1 win 11000");
    script.expect(150, ". 1+100 ack 51");
}

#[test]
fn blocks_of_advancing_acknowledgements_are_remembered() {
    // 3, 4 and 5 are reported by an acknowledgement that advances, 6 by a duplicate: 2 is lost.
    let mut script = eight(with(RecoveryConfig::SACK));
    script.send(100, ". 1+0 ack 101 win 10000 <sack 201-501>");
    script.expect(100, ". 801+100 ack 1");
    script.send(110, ". 1+0 ack 101 win 10000 <sack 501-601>");
    script.expect(110, ". 101+100 ack 1");
    // ns-2 has forgotten the first three.
    let mut script = eight(with(RecoveryConfig::SACK_NS2));
    script.send(100, ". 1+0 ack 101 win 10000 <sack 201-501>");
    script.expect(100, ". 801+100 ack 1");
    script.send(110, ". 1+0 ack 101 win 10000 <sack 501-601>");
    script.expect_nothing(120);
}

#[test]
fn limited_transmit_releases_one_new_segment_for_each_of_two_duplicates() {
    for recovery in [
        RecoveryConfig::TAHOE,
        RecoveryConfig::RENO,
        RecoveryConfig::NEW_RENO,
    ] {
        let config = Config {
            limited_transmit: true,
            ..with(recovery)
        };
        let mut script = eight(config);
        script.send(100, ". 1+0 ack 1 win 10000");
        script.expect(100, ". 801+100 ack 1");
        script.send(110, ". 1+0 ack 1 win 10000");
        script.expect(110, ". 901+100 ack 1");
        // The released segment is in flight, but no window allowed it: half of eight.
        script.send(120, ". 1+0 ack 1 win 10000");
        script.expect(120, ". 1+100 ack 1");
        script.expect_nothing(130);
        let ssthresh = script
            .connection()
            .controller()
            .unwrap()
            .decision()
            .ssthresh;
        assert_eq!(ssthresh.map(comity_units::DataSize::get), Some(400));
    }
    // With nothing new to send, it retransmits nothing.
    let config = Config {
        limited_transmit: true,
        ..with(RecoveryConfig::RENO)
    };
    let mut script = Script::new(opener(config, reno(100, 8, 8)));
    script.call(0, |connection| connection.write(200));
    script.expect(0, ". 1+100 ack 1");
    script.expect(0, "P. 101+100 ack 1");
    script.send(100, ". 1+0 ack 1 win 10000");
    script.send(100, ". 1+0 ack 1 win 10000");
    script.expect_nothing(110);
}

#[test]
fn the_impatient_variant_lets_the_timer_run() {
    for (impatient, due) in [(true, 1_200), (false, 1_300)] {
        let recovery = RecoveryConfig {
            kind: RecoveryKind::NewReno {
                impatient,
                deflate_window: false,
            },
            ..RecoveryConfig::NEW_RENO
        };
        let mut script = eight(with(recovery));
        for at in [98, 99, 100] {
            script.send(at, ". 1+0 ack 1 win 10000");
        }
        script.expect(100, ". 1+100 ack 1");
        assert_eq!(script.connection().next_timer(), Time::from_millis(1_100));
        script.send(200, ". 1+0 ack 101 win 10000");
        script.expect(200, ". 101+100 ack 1");
        assert_eq!(script.connection().next_timer(), Time::from_millis(1_200));
        script.send(300, ". 1+0 ack 201 win 10000");
        script.expect(300, ". 201+100 ack 1");
        // Window 4 + 3 - 1 + 1 - 1 + 1 from 201 on: one new segment.
        script.expect(300, ". 801+100 ack 1");
        assert_eq!(script.connection().next_timer(), Time::from_millis(due));
        // RFC 6582, step 3: the full acknowledgement ends it with the threshold as window.
        assert!(script.connection().is_recovering());
        script.send(400, ". 1+0 ack 801 win 10000");
        for start in (901..1_201).step_by(100) {
            script.expect(400, &format!(". {start}+100 ack 1"));
        }
        script.expect_nothing(410);
        assert!(!script.connection().is_recovering());
    }
}

#[test]
fn duplicates_of_one_window_cause_one_reduction() {
    // After a timeout, the acknowledgements of unnecessary retransmissions are duplicates (RFC
    // 6582, section 4.1).
    for (bugfix, expected) in [(true, 0), (false, 1)] {
        let recovery = RecoveryConfig {
            bugfix,
            ..RecoveryConfig::RENO
        };
        let mut script = eight(with(recovery));
        script.expect(1_000, ". 1+100 ack 1");
        script.send(1_100, ". 1+0 ack 101 win 10000");
        script.expect(1_100, ". 101+100 ack 1");
        script.expect(1_100, ". 201+100 ack 1");
        for at in [1_110, 1_120, 1_130] {
            script.send(at, ". 1+0 ack 101 win 10000");
        }
        if expected > 0 {
            script.expect(1_130, ". 101+100 ack 1");
            // The minimum window of two, and three that have left the network.
            for start in [301, 401, 501] {
                script.expect(1_130, &format!(". {start}+100 ack 1"));
            }
        }
        script.expect_nothing(1_130);
        assert_eq!(script.connection().statistics().fast_retransmits, expected);
    }
}
