//! A time-lined connection at the limits of the number space, of its memory, and of a peer's
//! statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::{Controller, Decision, Event, Needs, Pacing, Phase};
use comity_tcp::timeline::{DeadlineClock, Piece, TimelineConfig};
use comity_tcp::{Config, Connection, State};
use comity_testkit::tcp::{
    Pair, Path, Script, Side, TIMELINED, fixed, listener, opener, parse, reno,
};
use comity_units::{DataSize, Span, Time};

/// A receiver that sends no announcements of its own.
fn receiver() -> Script {
    Script::new(listener(
        Config {
            mss: 20,
            ..TIMELINED
        },
        fixed(10),
    ))
}

/// The segment arrives, and its acknowledgement is lost.
fn feed(connection: &mut Connection, line: &str) {
    let segment = parse(line).unwrap_or_else(|error| panic!("{error}"));
    connection.on_segment(Time::from_millis(1), &segment);
    while connection.poll_transmit(Time::from_millis(1)).is_some() {}
}

fn read_all(connection: &mut Connection) -> Vec<Piece> {
    core::iter::from_fn(|| connection.read_piece(u64::MAX)).collect()
}

#[test]
fn a_stream_that_jumped_once_continues_beyond_the_number_space() {
    let large = Config {
        mss: 1 << 27,
        receive_buffer: DataSize::new(1 << 29),
        window_scaling: true,
        ..TIMELINED
    };
    let delay = Span::from_millis(10);
    for total in [(5_u64 << 29), 5 << 30] {
        let mut pair = Pair::new(
            opener(large, fixed(1 << 29)),
            listener(large, fixed(1)),
            Path::new(delay),
            Path::new(delay),
        );
        pair.call(Side::A, |sender| {
            sender
                .write_section(1_000, Time::ZERO)
                .expect("it is taken");
            sender.write(total);
        });
        assert!(pair.drive(Time::from_secs(3_000)));
        // The FIN carries only `seq_update`, as an empty acknowledgement does.
        pair.call(Side::A, Connection::close);
        pair.drive(Time::from_secs(4_000));
        pair.call(Side::B, Connection::close);
        pair.drive(Time::from_secs(10_000));
        assert_eq!(pair.end(Side::B).state(), State::Closed);
        assert_eq!(pair.end(Side::B).delivered(), total);
        assert_eq!(pair.end(Side::B).gap_statistics().bytes, 1_000);
    }
}

#[test]
fn updates_beyond_the_reach_of_any_sender_are_ignored() {
    const FARTHEST: u32 = 1 << 30;
    for (beyond, is_followed) in [(0, true), (1, false)] {
        let expected = 10 + FARTHEST + beyond;
        let mut connection = listener(TIMELINED, fixed(10));
        feed(
            &mut connection,
            &format!(". 10+0 ack 10 win 40 <upd {expected}>"),
        );
        assert_eq!(connection.gap_statistics().jumps, u64::from(is_followed));
        let mut connection = listener(TIMELINED, fixed(10));
        let start = expected - 5;
        feed(
            &mut connection,
            &format!(". {expected}+0 ack 10 win 40 <upd 10/{start}-{expected}>"),
        );
        feed(
            &mut connection,
            &format!(". 10+0 ack 10 win 40 <upd {start}>"),
        );
        let reached = if is_followed { expected } else { start };
        assert_eq!(connection.gap_statistics().bytes, u64::from(reached - 10));
    }
}

#[test]
fn a_receiver_remembers_a_limited_number_of_voids() {
    let mut connection = listener(TIMELINED, fixed(10));
    let mut most = 0;
    for void in 0..20_000_u32 {
        let end = 13 + 2 * void;
        let line = format!(". {end}+0 ack 10 win 40 <upd 10/{}-{end}>", end - 1);
        feed(&mut connection, &line);
        most = most.max(connection.heap_memory());
    }
    assert!(most < 40_000, "{most} bytes");
    // A forgotten void is named again later.
    feed(&mut connection, ". 40013+1 ack 10 win 40 <upd 40013>");
    let gap = Piece::Gap {
        offset: 0,
        length: 40_003,
    };
    let data = Piece::Data {
        offset: 40_003,
        length: 1,
    };
    assert_eq!(read_all(&mut connection), [gap, data]);
}

#[test]
fn no_peer_fills_more_than_the_buffer_behind_voids() {
    let mut connection = listener(TIMELINED, fixed(10));
    for step in 0..100_u32 {
        let end = 1_000 * (step + 1);
        for byte in 0..40 {
            let line = format!(
                ". {}+1 ack 10 win 40 <upd 10/{}-{end}>",
                end + byte,
                end - 10
            );
            feed(&mut connection, &line);
        }
    }
    feed(&mut connection, ". 100100+0 ack 10 win 40 <upd 100100>");
    assert_eq!(connection.delivered(), 40);
}

#[test]
fn a_segment_beyond_the_window_makes_nothing_jump() {
    // 40 bytes from 10 on are offered: 50 is the last number of an acceptable segment.
    for (number, jumps) in [(51, 0), (90, 0), (50, 1)] {
        let mut script = receiver();
        // 11 to 19 arrive, so a jump to 20 skips one number and moves the edge to 51.
        script.send(1, ". 11+9 ack 10 win 40 <upd 10>");
        script.expect(1, ". 10+0 ack 10");
        script.send(2, &format!(". {}+0 ack 10 win 40 <upd 20>", number + 1));
        assert_eq!(
            script.connection().gap_statistics().jumps,
            jumps,
            "{number}"
        );
    }
    // Right behind its own jump, it is within the window after the jump.
    let mut script = receiver();
    script.send(1, ". 1000+1 ack 10 win 40 <upd 1000>");
    script.expect(1, ". 10+0 ack 1001");
}

#[test]
fn data_after_two_voids_is_kept_although_the_first_is_unknown() {
    let mut script = receiver();
    script.call(0, |end| {
        end.write_section(5, Time::from_secs(100))
            .expect("it is taken");
    });
    script.expect(0, "P. 10+5 ack 10 <upd 10>");
    // 10 is lost, then 1000 and 1001, which name the void from 15 on.
    for number in 11..15 {
        script.send(1, &format!(". {number}+1 ack 10 win 40 <upd 10>"));
        script.expect(1, ". 15+0 ack 10 <upd 10>");
    }
    for number in 2_000..2_033 {
        script.send(2, &format!(". {number}+1 ack 15 win 40 <upd 10/1002-2000>"));
        script.expect(2, ". 15+0 ack 10 <upd 10>");
    }
    assert_eq!(script.connection().acknowledged(), 5);
    script.send(3, ". 10+1 ack 15 win 40 <upd 10>");
    script.expect(3, ". 15+0 ack 15 <upd 10>");
    script.send(4, ". 1000+1 ack 15 win 40 <upd 10/15-1000>");
    script.expect(4, ". 15+0 ack 1001 <upd 10>");
    script.send(5, ". 1001+1 ack 15 win 40 <upd 10/15-1000>");
    script.expect(5, ". 15+0 ack 2033 <upd 10>");
    assert_eq!(script.connection().delivered(), 40);
}

/// Allows ten outstanding bytes and counts the reported packets.
#[derive(Debug)]
struct Asking(Arc<AtomicU64>);

impl Controller for Asking {
    fn on_event(&mut self, event: Event<'_>) {
        if let Event::InOrderAck(ack) = event {
            self.0.store(ack.number.get(), Ordering::Relaxed);
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::new(10),
            pacing: Pacing::Unpaced,
            phase: Phase::Steady,
            ..Decision::default()
        }
    }

    fn needs(&self) -> Needs {
        Needs {
            in_order_acks: true,
            ..Needs::default()
        }
    }
}

#[test]
fn an_acknowledgement_that_only_follows_a_jump_reports_no_packet() {
    let answered = Arc::new(AtomicU64::new(0));
    let config = Config {
        timeline: Some(TimelineConfig::PAPER),
        ..TIMELINED
    };
    let mut script = Script::new(opener(config, Box::new(Asking(Arc::clone(&answered)))));
    script.call(0, |sender| {
        sender
            .write_section(5, Time::from_millis(100))
            .and_then(|()| sender.write_section(20, Time::from_secs(100)))
            .expect("it is taken");
    });
    for number in 10..20 {
        script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
    }
    script.send(50, ". 10+0 ack 12 win 40");
    assert_eq!(answered.load(Ordering::Relaxed), 2);
    script.expect(50, ". 20+1 ack 10 <upd 10>");
    script.expect(50, ". 21+1 ack 10 <upd 10>");
    script.expect_nothing(100);
    // The receiver of 22, say, jumped to 15: neither of 12 to 14 has to have arrived.
    script.send(110, ". 10+0 ack 15 win 40");
    assert_eq!(answered.load(Ordering::Relaxed), 2);
    for number in 22..25 {
        script.expect(110, &format!(". {number}+1 ack 10 <upd 15>"));
    }
    script.send(120, ". 10+0 ack 16 win 40");
    assert_eq!(answered.load(Ordering::Relaxed), 6);
    script.expect(120, ". 25+1 ack 10 <upd 15>");
}

#[test]
fn a_replacement_is_not_retransmitted_for_the_next_loss() {
    let config = Config {
        recovery: RecoveryConfig::SACK,
        sack: true,
        ..TIMELINED
    };
    let mut script = Script::new(opener(config, fixed(5)));
    script.call(0, |sender| {
        sender
            .write_section(10, Time::from_millis(100))
            .and_then(|()| sender.write_section(50, Time::from_secs(100)))
            .expect("it is taken");
    });
    for number in 10..15 {
        script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
    }
    script.expect_nothing(100);
    // 10 and 11 are lost.
    script.send(101, ". 10+0 ack 10 win 40 <sack 12-13>");
    script.send(102, ". 10+0 ack 10 win 40 <sack 12-14>");
    script.send(103, ". 10+0 ack 10 win 40 <sack 12-15>");
    script.expect(103, ". 20+1 ack 10 <upd 20>");
    script.expect(103, ". 21+1 ack 10 <upd 20>");
    let statistics = script.connection().timeline_statistics().unwrap();
    assert_eq!(
        (statistics.replacements, statistics.pseudo_retransmissions),
        (2, 0)
    );
}

/// 10 is lost twice and obsolete when a timeout gives 10 to 14 up. The peer has 11 to 14, which use
/// the room that it offered. The missing byte makes room for one more.
#[test]
fn given_up_data_that_arrived_uses_the_window() {
    for blind_spot in [true, false] {
        let config = Config {
            receive_buffer: DataSize::new(5),
            sack: true,
            recovery: RecoveryConfig::SACK,
            timeline: Some(TimelineConfig {
                blind_spot,
                ..TimelineConfig::PAPER
            }),
            ..TIMELINED
        };
        let mut script = Script::new(opener(config, fixed(10)));
        script.call(0, |sender| {
            sender
                .write_section(10, Time::from_millis(100))
                .and_then(|()| sender.write_section(50, Time::from_secs(100)))
                .expect("it is taken");
        });
        for number in 10..15 {
            script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
        }
        script.send(50, ". 10+0 ack 10 win 5 <sack 11-15>");
        script.expect(50, ". 10+1 ack 10 <upd 10>");
        script.expect(1_050, ". 20+1 ack 10 <upd 20>");
        script.expect_nothing(1_051);
        script.send(1_100, ". 10+0 ack 21 win 5");
        for number in 21..26 {
            script.expect(1_100, &format!(". {number}+1 ack 10 <upd 20>"));
        }
        script.expect_nothing(1_101);
    }
}

/// A timeout marks 10 to 14 as lost, and the deadline passes after 10 to 12 were retransmitted.
/// Without the blind spot the sender does not yet report 11 and 12, which are in flight, as given
/// up. Until they are acknowledged, the peer's offer ends at 15. The timeout answered the loss of
/// 13 and 14, which are reported as soon as nothing lies before them.
#[test]
fn data_not_retransmitted_after_a_timeout_is_given_up_in_sequence() {
    let config = Config {
        receive_buffer: DataSize::new(5),
        timeline: Some(TimelineConfig {
            blind_spot: false,
            ..TimelineConfig::PAPER
        }),
        ..TIMELINED
    };
    let mut script = Script::new(opener(config, reno(1, 10, 20)));
    script.call(0, |sender| {
        sender
            .write_section(10, Time::from_millis(1_200))
            .and_then(|()| sender.write_section(50, Time::from_secs(100)))
            .expect("it is taken");
    });
    for number in 10..15 {
        script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
    }
    script.expect(1_000, ". 10+1 ack 10 <upd 10>");
    script.send(1_100, ". 10+0 ack 11 win 4");
    script.expect(1_100, ". 11+1 ack 10 <upd 10>");
    script.expect(1_100, ". 12+1 ack 10 <upd 10>");
    script.expect_nothing(1_200);
    assert_eq!(script.connection().in_flight(), 2, "11 and 12");
    // The peer's application reads nothing, so its window edge stays.
    script.send(1_300, ". 10+0 ack 12 win 3");
    script.expect_nothing(1_309);
    assert_eq!(script.connection().in_flight(), 1, "12");
    script.send(1_310, ". 10+0 ack 13 win 2");
    script.expect(1_310, ". 20+1 ack 10 <upd 20>");
    script.expect(1_310, ". 21+1 ack 10 <upd 20>");
    script.expect_nothing(1_400);
}

/// The lifetime timer follows the oldest data. Its acknowledgement makes the timer expire for 11,
/// and releases 13, which has expired as well; between them, 12 has no deadline.
#[test]
fn expired_data_behind_current_data_is_not_sent_at_the_lifetime_timer() {
    let mut script = Script::new(opener(TIMELINED, fixed(3)));
    script.call(0, |sender| {
        let never = Time::MAX;
        let over_at = Time::from_millis;
        let sections = [
            (1, over_at(300)),
            (1, over_at(100)),
            (1, never),
            (5, over_at(200)),
            (5, never),
        ];
        for (bytes, deadline) in sections {
            sender.write_section(bytes, deadline).expect("it is taken");
        }
    });
    for number in 10..13 {
        script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
    }
    script.send(250, ". 10+0 ack 11 win 40");
    script.expect(250, ". 18+1 ack 10 <upd 12/13-18>");
    script.expect_nothing(260);
}

#[test]
fn a_later_jump_does_not_wait_for_the_notice_of_an_earlier_one() {
    let mut script = Script::new(opener(TIMELINED, fixed(10)));
    script.call(0, |sender| {
        sender
            .write_section(1, Time::from_secs(100))
            .expect("it is taken");
    });
    script.expect(0, "P. 10+1 ack 10 <upd 10>");
    script.send(10, ". 10+0 ack 11 win 40");
    let over = |sender: &mut Connection| {
        sender
            .write_section(5, Time::from_millis(20))
            .expect("it is taken");
    };
    script.call(1_000, over);
    // Three notices are lost.
    for at in [1_000, 2_000, 4_000, 8_000] {
        script.expect(at, ". 10+0 ack 10 <upd 16>");
    }
    script.call(9_000, over);
    script.expect_nothing(9_500);
    // The last notice is acknowledged: the later jump is reported at once, and again after the
    // first timeout.
    script.send(9_600, ". 10+0 ack 16 win 40");
    script.expect(9_600, ". 10+0 ack 10 <upd 21>");
    script.expect(10_600, ". 10+0 ack 10 <upd 21>");
    script.send(10_700, ". 10+0 ack 21 win 40");
    script.expect_nothing(60_000);
    // None of these was a packet.
    let connection = script.connection();
    assert_eq!(connection.statistics().segments, 1);
    assert_eq!(connection.timeline_statistics().unwrap().notices, 6);
}

#[test]
fn sections_without_bytes_take_no_memory() {
    let mut connection = opener(TIMELINED, fixed(10));
    let before = connection.heap_memory();
    for at in 0..10_000 {
        connection
            .write_section(0, Time::from_millis(at))
            .expect("it is taken");
    }
    assert_eq!(connection.heap_memory(), before);
    assert_eq!(connection.timeline_statistics().unwrap().sections, 0);
}

#[test]
fn late_retransmissions_are_counted() {
    let mut script = Script::new(opener(TIMELINED, fixed(10)));
    script.call(0, |sender| {
        sender
            .write_section(3, Time::from_secs(100))
            .and_then(|()| sender.write_section(2, Time::from_millis(500)))
            .expect("it is taken");
    });
    for at in [0, 1_000] {
        for number in 10..14 {
            script.expect(at, &format!(". {number}+1 ack 10 <upd 10>"));
        }
        script.expect(at, "P. 14+1 ack 10 <upd 10>");
    }
    let statistics = script.connection().timeline_statistics().unwrap();
    assert_eq!(statistics.retransmitted_obsolete_bytes, 2);
}

#[test]
fn a_gap_counts_once_whether_it_was_read_in_between_or_not() {
    for reads in [false, true] {
        let mut script = receiver();
        for (at, expected) in [(1, 20), (2, 30)] {
            script.send(at, &format!(". 10+0 ack 10 win 40 <upd {expected}>"));
            script.expect(at, &format!(". 10+0 ack {expected}"));
            if reads {
                script.call(at, |end| {
                    assert_eq!((end.readable(), end.has_piece()), (0, true));
                    assert_eq!(read_all(end).len(), 1);
                    assert!(!end.has_piece());
                });
            }
        }
        script.send(3, ". 30+1 ack 10 win 40 <upd 30>");
        script.expect(3, ". 10+0 ack 31");
        script.send(4, ". 10+0 ack 10 win 40 <upd 40>");
        script.expect(4, ". 10+0 ack 40");
        let statistics = script.connection().gap_statistics();
        assert_eq!((statistics.jumps, statistics.gaps), (3, 2), "{reads}");
        assert_eq!(statistics.bytes, 29);
    }
}

#[test]
fn a_deadline_at_the_receiver_ends_half_a_round_trip_earlier_at_the_sender() {
    for (clock, over) in [
        (DeadlineClock::Receiver, 960),
        (DeadlineClock::Sender, 1_000),
    ] {
        let config = Config {
            timeline: Some(TimelineConfig {
                clock,
                ..TimelineConfig::PAPER
            }),
            ..TIMELINED
        };
        let script = || {
            let mut script = Script::new(opener(config, fixed(2)));
            script.call(0, |sender| {
                sender
                    .write_section(10, Time::from_millis(1_000))
                    .and_then(|()| sender.write_section(10, Time::from_secs(100)))
                    .expect("it is taken");
            });
            script.expect(0, ". 10+1 ack 10 <upd 10>");
            script.expect(0, ". 11+1 ack 10 <upd 10>");
            // A round trip of 80 ms, and a window that stays closed until the deadline.
            script.send(80, ". 10+0 ack 12 win 0");
            script
        };
        let mut before = script();
        before.send(over - 1, ". 10+0 ack 12 win 1");
        before.expect(over - 1, ". 12+1 ack 10 <upd 10>");
        let mut after = script();
        after.send(over + 1, ". 10+0 ack 12 win 1");
        after.expect(over + 1, ". 20+1 ack 10 <upd 20>");
    }
}

/// A short segment is missing alone: its size is the room that a deadline freed. It is sent once
/// after a timeout, and again unchanged after the next. No whole segment fits then, although all
/// other outstanding data has arrived.
#[test]
fn the_rest_of_a_window_is_retransmitted_though_it_is_less_than_a_segment() {
    let config = Config {
        mss: 10,
        recovery: RecoveryConfig::SACK,
        sack: true,
        limited_transmit: false,
        ..TIMELINED
    };
    let mut script = Script::new(opener(config, fixed(1_000)));
    script.call(0, |sender| {
        sender
            .write_section(2, Time::from_millis(500))
            .and_then(|()| sender.write_section(100, Time::MAX))
            .expect("it is taken");
    });
    script.expect(0, ". 10+2 ack 10 <upd 10>");
    for number in [12, 22, 32] {
        script.expect(0, &format!(". {number}+10 ack 10 <upd 10>"));
    }
    script.send(100, ". 10+0 ack 10 win 40 <sack 12-42>");
    script.expect(100, ". 10+2 ack 10 <upd 10>");
    // Of the offer up to 50, the deadline frees two bytes.
    script.expect(1_100, ". 42+10 ack 10 <upd 12>");
    // It arrived without its option, so the peer accepted only its own offer.
    script.send(1_200, ". 10+0 ack 10 win 40 <sack 12-50>");
    script.expect(3_100, ". 50+2 ack 10 <upd 12>");
    script.send(3_200, ". 10+0 ack 52 win 40");
    script.expect(3_200, ". 52+10 ack 10 <upd 12>");
}

/// A sender with ten packets outstanding and the blind spot. 10 to 19 leave at once, and their
/// deadline passes before the acknowledgements of those up to `lost` arrive. Each of these releases
/// one of the packets from 20 on; `lost` is lost.
fn before_a_jump(recovery: RecoveryConfig, lost: u64, current: u64) -> Script {
    let config = Config {
        recovery,
        sack: recovery == RecoveryConfig::SACK_NS2,
        ..TIMELINED
    };
    let mut script = Script::new(opener(config, fixed(10)));
    script.call(0, |sender| {
        sender
            .write_section(10, Time::from_millis(100))
            .and_then(|()| sender.write_section(current, Time::from_secs(100)))
            .expect("it is taken");
    });
    for number in 10..20 {
        script.expect(0, &format!(". {number}+1 ack 10 <upd 10>"));
    }
    script.expect_nothing(100);
    for acknowledged in 11..=lost {
        script.send(
            90 + acknowledged,
            &format!(". 10+0 ack {acknowledged} win 40"),
        );
        let number = 9 + acknowledged;
        let flags = if number + 1 == 20 + current {
            "P."
        } else {
            "."
        };
        script.expect(
            90 + acknowledged,
            &format!("{flags} {number}+1 ack 10 <upd 20>"),
        );
    }
    script
}

/// 15 and 23 are lost. 20, which names the jump, was sent before the recovery began, and so were
/// the packets up to 24.
#[test]
fn behind_a_jump_in_a_recovery_one_packet_leaves_for_one() {
    let mut script = before_a_jump(RecoveryConfig::NEW_RENO, 15, 100);
    let repeats = |script: &mut Script, at: u64, acknowledged: u64, sent: &[u64]| {
        script.send(at, &format!(". 10+0 ack {acknowledged} win 40"));
        for number in sent {
            script.expect(at, &format!(". {number}+1 ack 10 <upd 20>"));
        }
        script.expect_nothing(at);
    };
    // 16 to 19 arrive: with the third the recovery begins, and 20 replaces 15. The window is
    // open up to 15 + 10 + 3, and one acknowledgement fills two places of it.
    repeats(&mut script, 111, 15, &[]);
    repeats(&mut script, 112, 15, &[]);
    repeats(&mut script, 113, 15, &[20, 25, 26]);
    repeats(&mut script, 114, 15, &[27, 28]);
    // 20 arrives. Its acknowledgement subtracts the six packets 15 to 20 from an inflation of four:
    // from 21 on ten places are free, and eight packets are outstanding.
    repeats(&mut script, 121, 21, &[29, 30]);
    // 21 and 22 were in flight: they name no hole, and each releases one.
    repeats(&mut script, 122, 22, &[31]);
    repeats(&mut script, 123, 23, &[32]);
    // 24, the second 20 and 25 arrive: 23 is lost.
    repeats(&mut script, 124, 23, &[33]);
    repeats(&mut script, 125, 23, &[34]);
    repeats(&mut script, 126, 23, &[23, 35]);
    let statistics = script.connection().statistics();
    assert_eq!((statistics.fast_retransmits, statistics.timeouts), (1, 0));
    assert_eq!(statistics.retransmitted, 2, "20 and 23");
}

/// 13 and 21 are lost, and 22 is the last packet: behind the jump, 22 and the second 20 make two
/// duplicates.
#[test]
fn a_hole_behind_a_jump_with_too_few_packets_after_it_waits_for_the_timeout() {
    let mut script = before_a_jump(RecoveryConfig::NEW_RENO, 13, 3);
    for at in [111, 112] {
        script.send(at, ". 10+0 ack 13 win 40");
        script.expect_nothing(at);
    }
    script.send(113, ". 10+0 ack 13 win 40");
    script.expect(113, ". 20+1 ack 10 <upd 20>");
    // 17 to 19 arrive, then 20, from which the receiver jumps.
    for at in [114, 115, 116] {
        script.send(at, ". 10+0 ack 13 win 40");
    }
    for at in [121, 122, 123] {
        script.send(at, ". 10+0 ack 21 win 40");
    }
    script.expect_nothing(1_120);
    // A second after the last advancing acknowledgement.
    script.expect(1_121, ". 21+1 ack 10 <upd 20>");
    script.expect(1_121, "P. 22+1 ack 10 <upd 20>");
    let statistics = script.connection().statistics();
    assert_eq!((statistics.fast_retransmits, statistics.timeouts), (1, 1));
}

/// 15, 21 and 23 are lost, and packets are counted: ten minus the three that arrived when the
/// recovery begins. As in ns-2, the first retransmission, here 20 in the place of 15, does not
/// count.
#[test]
fn the_counted_pipe_loses_two_packets_with_a_repair_and_one_with_another_acknowledgement() {
    let mut script = before_a_jump(RecoveryConfig::SACK_NS2, 15, 100);
    let mut answer = |at: u64, says: &str, sent: &[u64]| {
        script.send(at, &format!(". 10+0 {says}"));
        for number in sent {
            script.expect(at, &format!(". {number}+1 ack 10 <upd 20>"));
        }
        script.expect_nothing(at);
    };
    answer(111, "ack 15 win 40 <sack 16-17>", &[]);
    answer(112, "ack 15 win 40 <sack 16-18>", &[]);
    answer(113, "ack 15 win 40 <sack 16-19>", &[20]);
    // Six are left of seven, and the window holds ten.
    answer(114, "ack 15 win 40 <sack 16-20>", &[25, 26, 27, 28]);
    // 20 arrives, and the receiver jumps: that repairs nothing, and one packet has left.
    answer(121, "ack 21 win 40", &[29]);
    // Holes precede new data.
    answer(122, "ack 21 win 40 <sack 22-23>", &[21]);
    answer(123, "ack 21 win 40 <sack 24-25,22-23>", &[23]);
    // The second 21 arrives: it has left the pipe, and so has the first.
    answer(124, "ack 23 win 40 <sack 24-25>", &[30, 31]);
}
