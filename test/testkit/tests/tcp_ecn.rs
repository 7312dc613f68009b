//! ECN on TCP (RFC 3168), quick acknowledgements, duplicate SACKs, and restarts after idle times.

use comity_congestion::Ecn;
use comity_congestion::recovery::RecoveryConfig;
use comity_tcp::{Config, Connection, DelayedAck};
use comity_testkit::tcp::{BORN, PLAIN, Script, listener, opener, parse, reno};
use comity_units::{Span, Time};

const MARKED: Config = Config { ecn: true, ..BORN };

/// Eight segments out at 0 ms.
fn eight(config: Config) -> Script {
    let mut script = Script::new(opener(config, reno(100, 8, 8)));
    script.call(0, |connection| connection.write(100_000));
    for start in (1..801).step_by(100) {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    script
}

fn arrives(connection: &mut Connection, at_ms: u64, line: &str, ecn: Ecn) {
    let mut segment = parse(line).expect("a line");
    segment.ecn = ecn;
    connection.on_segment(Time::from_millis(at_ms), &segment);
}

#[test]
fn both_ends_must_agree_on_ecn() {
    let with = |ecn| Config { ecn, ..PLAIN };
    let mut script = Script::new(opener(with(true), reno(100, 8, 8)));
    script.expect(0, "SEW 0+0 win 10000 <mss 100>");
    script.send(10, "SE. 0+0 ack 1 win 10000 <mss 100>");
    script.expect(10, ". 1+0 ack 1");
    assert!(script.connection().config().ecn);
    // The peer does not support ECN, or reflects flags that it does not understand.
    for answer in ["S.", "SEW."] {
        let mut script = Script::new(opener(with(true), reno(100, 8, 8)));
        script.expect(0, "SEW 0+0 win 10000 <mss 100>");
        script.send(10, &format!("{answer} 0+0 ack 1 win 10000 <mss 100>"));
        script.expect(10, ". 1+0 ack 1");
        assert!(!script.connection().config().ecn);
    }
    for (ecn, answer) in [(true, "SE."), (false, "S.")] {
        let mut script = Script::new(listener(with(ecn), reno(100, 8, 8)));
        script.send(0, "SEW 0+0 win 10000 <mss 100>");
        script.expect(0, &format!("{answer} 0+0 ack 1 win 10000 <mss 100>"));
        assert_eq!(script.connection().config().ecn, ecn);
    }
}

#[test]
fn a_window_is_reduced_once_for_the_marks_of_its_data() {
    // Every acknowledgement of eight segments echoes the mark. At the first, seven are in flight:
    // 3.5 remain. NewReno then grows six times by a segment per window, to 4.96, and sends from
    // three in flight on. RACK reduces in proportion: four in eight acknowledgements, without
    // growth until that window is acknowledged.
    for (recovery, window, sent, later) in [
        (
            RecoveryConfig::NEW_RENO,
            496,
            &[801, 901, 1_001][..],
            &[1_101, 1_201][..],
        ),
        (RecoveryConfig::RACK, 350, &[801, 901, 1_001, 1_101], &[]),
    ] {
        let mut script = eight(Config {
            recovery,
            sack: recovery == RecoveryConfig::RACK,
            ..MARKED
        });
        for ack in (101..=701).step_by(100) {
            script.send(100, &format!("E. 1+0 ack {ack} win 10000"));
        }
        assert_eq!(script.connection().statistics().marks, 1);
        assert_eq!(script.connection().statistics().retransmitted, 0);
        assert_eq!(script.connection().congestion_window(), window);
        // The next new data reports the reduction.
        for (index, start) in sent.iter().enumerate() {
            let flags = if index == 0 { "W." } else { "." };
            script.expect(100, &format!("{flags} {start}+100 ack 1"));
        }
        script.send(200, ". 1+0 ack 801 win 10000");
        for start in later {
            script.expect(200, &format!(". {start}+100 ack 1"));
        }
        // Beyond the data sent at the reduction, an echo causes a new one.
        let before = script.connection().congestion_window();
        script.send(210, "E. 1+0 ack 901 win 10000");
        assert_eq!(script.connection().statistics().marks, 2);
        assert!(script.connection().congestion_window() < before);
    }
}

#[test]
fn only_new_data_is_ecn_capable() {
    let mut connection = opener(MARKED, reno(100, 4, 4));
    connection.write(100_000);
    let codepoints: Vec<Ecn> =
        core::iter::from_fn(|| connection.poll_transmit(Time::ZERO).map(|it| it.ecn)).collect();
    assert_eq!(codepoints, [Ecn::Capable0; 4]);
    // After a timeout the first segment is retransmitted.
    let at = connection.next_timer();
    connection.on_timer(at);
    let again = connection.poll_transmit(at).expect("the first segment");
    assert_eq!((again.sequence.get(), again.ecn), (1, Ecn::NotCapable));
    let mut plain = opener(BORN, reno(100, 4, 4));
    plain.write(100);
    let segment = plain.poll_transmit(Time::ZERO).expect("a segment");
    assert_eq!(segment.ecn, Ecn::NotCapable);
}

#[test]
fn a_mark_is_echoed_until_the_sender_reports_its_reaction() {
    let mut script = Script::new(listener(MARKED, reno(100, 8, 8)));
    script.call(0, |connection| {
        arrives(connection, 0, ". 1+100 ack 1 win 10000", Ecn::Capable0);
    });
    script.expect(0, ". 1+0 ack 101");
    script.call(1, |connection| {
        arrives(
            connection,
            1,
            ". 101+100 ack 1 win 10000",
            Ecn::CongestionExperienced,
        );
    });
    script.expect(1, "E. 1+0 ack 201");
    script.send(2, ". 201+100 ack 1 win 10000");
    script.expect(2, "E. 1+0 ack 301");
    script.send(3, "W. 301+100 ack 1 win 10000");
    script.expect(3, ". 1+0 ack 401");
    // A segment that reports the reaction and is marked itself starts a new echo.
    script.call(4, |connection| {
        arrives(
            connection,
            4,
            "W. 401+100 ack 1 win 10000",
            Ecn::CongestionExperienced,
        );
    });
    script.expect(4, "E. 1+0 ack 501");
}

#[test]
fn the_first_acknowledgements_are_quick_and_those_after_a_pause() {
    let config = Config {
        delayed_ack: Some(DelayedAck {
            segments: 2,
            timeout: Span::from_millis(40),
            quick: 3,
        }),
        ..BORN
    };
    let mut script = Script::new(listener(config, reno(100, 8, 8)));
    let mut next = 1;
    let mut segment = || {
        next += 100;
        (
            format!(". {}+100 ack 1 win 10000", next - 100),
            format!(". 1+0 ack {next}"),
        )
    };
    for at in [0, 1, 2] {
        let (data, ack) = segment();
        script.send(at, &data);
        script.expect(at, &ack);
    }
    let (data, _) = segment();
    script.send(3, &data);
    script.expect_nothing(4);
    let (data, ack) = segment();
    script.send(5, &data);
    script.expect(5, &ack);
    // The least timeout of these settings is one second.
    let (data, ack) = segment();
    script.send(1_005, &data);
    script.expect(1_045, &ack);
    let (data, ack) = segment();
    script.send(2_006, &data);
    script.expect(2_006, &ack);
}

#[test]
fn a_duplicate_is_reported_in_the_first_block() {
    // RFC 2883, section 4: below the acknowledgement, and within a block above it.
    let config = Config {
        sack: true,
        duplicate_sack: true,
        ..BORN
    };
    let mut script = Script::new(listener(config, reno(100, 8, 8)));
    script.send(0, ". 1+100 ack 1 win 10000");
    script.expect(0, ". 1+0 ack 101");
    script.send(1, ". 1+100 ack 1 win 10000");
    script.expect(1, ". 1+0 ack 101 <sack 1-101>");
    script.send(2, ". 201+100 ack 1 win 10000");
    script.expect(2, ". 1+0 ack 101 <sack 201-301>");
    script.send(3, ". 301+100 ack 1 win 10000");
    script.expect(3, ". 1+0 ack 101 <sack 201-401>");
    script.send(4, ". 201+100 ack 1 win 10000");
    script.expect(4, ". 1+0 ack 101 <sack 201-301,201-401>");
    script.send(5, ". 101+100 ack 1 win 10000");
    script.expect(5, ". 1+0 ack 401");
    // Without the setting nothing is reported.
    let config = Config {
        duplicate_sack: false,
        ..config
    };
    let mut script = Script::new(listener(config, reno(100, 8, 8)));
    script.send(0, ". 1+100 ack 1 win 10000");
    script.expect(0, ". 1+0 ack 101");
    script.send(1, ". 1+100 ack 1 win 10000");
    script.expect(1, ". 1+0 ack 101");
}

/// The window, in segments, after a pause of `pause_ms`: seven before it, an initial window of
/// four, a timeout of one second.
fn window_after(pause_ms: u64, restarts: bool) -> u64 {
    let config = Config {
        restart_after_idle: restarts,
        ..BORN
    };
    let mut script = Script::new(opener(config, reno(100, 4, 8)));
    script.call(0, |connection| connection.write(800));
    for start in (1..401).step_by(100) {
        script.expect(0, &format!(". {start}+100 ack 1"));
    }
    for ack in (101..=401).step_by(100) {
        script.send(100, &format!(". 1+0 ack {ack} win 10000"));
    }
    for start in (401..701).step_by(100) {
        script.expect(100, &format!(". {start}+100 ack 1"));
    }
    script.expect(100, "P. 701+100 ack 1");
    script.send(200, ". 1+0 ack 801 win 10000");
    let before = script.connection().congestion_window();
    assert_eq!(before / 100, 7);
    script.call(100 + pause_ms, |connection| connection.write(10_000));
    script.connection().congestion_window() / 100
}

#[test]
fn a_pause_halves_the_window_for_each_timeout_but_the_first() {
    // The measurements: SRTT = 100 ms and a floor of one second.
    for (pause, window) in [(1_000, 7), (1_001, 4), (2_000, 4), (9_000, 4)] {
        assert_eq!(window_after(pause, true), window, "after {pause} ms");
        assert_eq!(window_after(pause, false), 7);
    }
}
