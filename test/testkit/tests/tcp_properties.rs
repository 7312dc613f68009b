//! Properties of TCP with any path and any foreign segments.

use std::sync::Arc;

use comity_congestion::Pacing;
use comity_congestion::recovery::{RecoveryConfig, RecoveryKind};
use comity_tcp::{
    Config, Connection, DelayedAck, Flags, Options, SackBlock, SackBlocks, Segment, State,
    Timestamps,
};
use comity_testkit::tcp::{
    Chaos, Fate, PLAIN, Pair, Path, Side, fixed, listener, opener, paced, reno,
};
use comity_units::{DataSize, Rate, SeqNo, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

const RECOVERIES: [RecoveryConfig; 8] = [
    RecoveryConfig::TAHOE,
    RecoveryConfig::RENO,
    RecoveryConfig::NEW_RENO,
    RecoveryConfig::NEW_RENO_NS2,
    RecoveryConfig::SACK,
    RecoveryConfig::SACK_NS2,
    RecoveryConfig::RACK,
    RecoveryConfig {
        kind: RecoveryKind::Rack {
            probe: false,
            proportional: false,
            undo: false,
        },
        ..RecoveryConfig::RACK
    },
];

fn configs() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(&RECOVERIES[..]),
        any::<[bool; 6]>(),
        (any::<[bool; 3]>(), 0_u8..20),
        prop::sample::select(vec![0, 1, 5_000, u32::MAX - 700, u32::MAX]),
        prop::sample::select(vec![150_u64, 400, 3_000, 100_000]),
        prop::option::of(2_u32..5),
    )
        .prop_map(|(recovery, switches, more, initial, buffer, max_burst)| {
            let ([twice, ecn, restarts], quick) = more;
            let [scaling, timestamps, sack, delayed, limited, bugfix] = switches;
            Config {
                receive_buffer: DataSize::new(buffer),
                window_scaling: scaling,
                timestamps,
                sack,
                delayed_ack: delayed.then_some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(40),
                    quick,
                }),
                duplicate_sack: twice,
                ecn,
                restart_after_idle: restarts,
                limited_transmit: limited,
                initial_sequence: SeqNo::new(initial),
                recovery: RecoveryConfig { bugfix, ..recovery },
                max_burst,
                // Longer than losses can delay a FIN: with a shorter time, the end would reset its
                // peer.
                time_wait: Span::from_secs(86_400),
                ..PLAIN
            }
        })
}

fn chaos() -> impl Strategy<Value = Chaos> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        3 => Just(Fate::Lost),
        2 => (0_u64..200).prop_map(|ms| Fate::Late(Span::from_millis(ms))),
        1 => (0_u64..200).prop_map(|ms| Fate::Twice(Span::from_millis(ms))),
    ];
    vec(fate, 0..50).prop_map(Chaos)
}

/// The actions of one application.
#[derive(Clone, Copy, Debug)]
struct Application {
    writes: u64,
    /// It writes the second half this much later.
    pause: Span,
    /// It begins to read so late.
    reads_from: Time,
    pacing: Option<u64>,
}

fn applications() -> impl Strategy<Value = Application> {
    (
        prop_oneof![Just(0_u64), 1_u64..200, 200_u64..6_000],
        prop_oneof![Just(0_u64), 1_u64..3_000],
        prop_oneof![3 => Just(0_u64), 1 => 1_u64..5_000],
        prop::option::weighted(0.2, 20_000_u64..1_000_000),
    )
        .prop_map(|(writes, pause, reads_from, pacing)| Application {
            writes,
            pause: Span::from_millis(pause),
            reads_from: Time::from_millis(reads_from),
            pacing,
        })
}

fn controller(application: &Application) -> Box<dyn comity_congestion::Controller> {
    match application.pacing {
        Some(rate) => paced(Pacing::Rate(Rate::from_bps(rate))),
        None => reno(100, 4, 20),
    }
}

/// The maximum that any window allowed: no new data beyond the congestion window, the two segments
/// of limited transmit, and the bytes that duplicates report as having left the network.
fn nothing_extra_without_recovery(connection: &Connection, record: &comity_testkit::tcp::Record) {
    let statistics = connection.statistics();
    // RACK sends as much as arrived out of order, and probes.
    let is_rack = matches!(connection.config().recovery.kind, RecoveryKind::Rack { .. });
    let is_undisturbed = statistics.fast_retransmits == 0 && statistics.timeouts == 0 && !is_rack;
    if is_undisturbed && record.segment.payload > 0 {
        let released = 2 * u64::from(connection.config().mss);
        let allowed = connection.congestion_window().saturating_add(released);
        assert!(
            connection.in_flight().saturating_sub(1) <= allowed,
            "{record}"
        );
    }
}

proptest! {
    /// Every byte arrives once and in order, both ends close, and the work is bounded.
    #[test]
    fn everything_arrives_and_both_close(
        config in configs(),
        peer in configs(),
        (a, b) in (applications(), applications()),
        (forward, back) in (chaos(), chaos()),
        (handshake, both_open) in any::<(bool, bool)>(),
        delay in 1_u64..120,
    ) {
        let config = Config { handshake, ..config };
        // Without a handshake both ends have the same settings.
        let peer = if handshake { peer } else { config };
        let delay = Span::from_millis(delay);
        let first = opener(config, controller(&a));
        let second = if both_open && handshake {
            opener(peer, controller(&b))
        } else {
            listener(peer, controller(&b))
        };
        let mut pair = Pair::new(
            first,
            second,
            Path::chaotic(delay, forward),
            Path::chaotic(delay, back),
        );
        pair.check_each(nothing_extra_without_recovery);
        let mut events = Vec::new();
        for (side, application) in [(Side::A, a), (Side::B, b)] {
            let half = application.writes / 2;
            pair.set_reads(side, application.reads_from == Time::ZERO);
            pair.call(side, |connection| connection.write(half));
            events.push((Time::ZERO + application.pause, side, true));
            events.push((application.reads_from, side, false));
        }
        events.sort();
        for (at, side, is_write) in events {
            pair.drive(at);
            if is_write {
                let application = if side == Side::A { a } else { b };
                let rest = application.writes - application.writes / 2;
                pair.call(side, |connection| {
                    connection.write(rest);
                    // A listener that closes before any SYN is just closed.
                    if connection.state() != State::Listen {
                        connection.close();
                    }
                });
            } else {
                pair.set_reads(side, true);
                pair.call(side, |connection| connection.read(u64::MAX));
            }
        }
        // A listener that still waited closes as soon as it can.
        for _ in 0..10 {
            let quiet = pair.drive(pair.now() + Span::from_secs(1_000_000));
            for side in [Side::A, Side::B] {
                pair.call(side, |connection| {
                    if connection.state() != State::Listen {
                        connection.close();
                    }
                });
            }
            if quiet && pair.end(Side::A).state() == State::Closed
                && pair.end(Side::B).state() == State::Closed
            {
                break;
            }
        }
        for (side, written) in [(Side::A, a.writes), (Side::B, b.writes)] {
            let end = pair.end(side);
            prop_assert_eq!(end.state(), State::Closed, "{:?}\n{}", side, pair.transcript());
            prop_assert!(!end.was_reset(), "{}", pair.transcript());
            prop_assert_eq!(end.acknowledged(), written);
            prop_assert!(end.is_all_acknowledged());
            prop_assert_eq!(pair.end(side.other()).delivered(), written, "{}", pair.transcript());
        }
        // At worst, every byte travels alone, several times, with an acknowledgement; a loop would
        // exceed that.
        prop_assert!(pair.records().len() < 20_000, "{}", pair.transcript());
    }

    /// Foreign segments, near the expected numbers or anywhere, break nothing.
    #[test]
    fn garbage_breaks_nothing(
        config in configs(),
        writes in 0_u64..3_000,
        strange in vec(strangers(), 1..60),
    ) {
        let mut connection = opener(config, reno(100, 4, 20));
        let mut now = Time::ZERO;
        connection.write(writes);
        let mut sent_to = drain(&mut connection, now, config.initial_sequence);
        connection.on_segment(now, &Segment {
            sequence: SeqNo::new(1_000),
            acknowledgement: config.initial_sequence + 1,
            window: 5_000,
            flags: Flags::SYN | Flags::ACK,
            options: Options {
                mss: Some(100),
                window_scale: Some(3),
                sack_permitted: true,
                timestamps: Some(Timestamps { value: 7, echo: 1 }),
                ..Options::default()
            },
            ..Segment::default()
        });
        sent_to = drain(&mut connection, now, sent_to);
        let mut delivered = 0;
        for (wait, strange) in strange {
            now += wait;
            let segment = strange.realise(config.initial_sequence);
            let before = connection.delivered();
            connection.on_segment(now, &segment);
            sent_to = drain(&mut connection, now, sent_to);
            // The delivered bytes are explained by the segment, or by the gap that it closed.
            delivered += connection.delivered() - before;
            prop_assert!(connection.delivered() - before <= config.receive_buffer.get() + 128);
            connection.read(u64::MAX);
            sent_to = drain(&mut connection, now, sent_to);
            prop_assert_eq!(connection.delivered(), delivered);
            prop_assert!(connection.acknowledged() <= writes - connection.unsent());
            let sent = sent_to.distance_from(config.initial_sequence + 1);
            prop_assert!(connection.acknowledged() <= u64::from(sent.unsigned_abs()));
            let due = connection.next_timer();
            if due <= now + Span::from_secs(5) {
                now = now.max(due);
                connection.on_timer(now);
                sent_to = drain(&mut connection, now, sent_to);
                prop_assert!(connection.next_timer() > now, "a timer without progress");
            }
        }
    }

    /// Header prediction equals the full path. A twin that receives every segment with an ignored
    /// flag (URG) never uses prediction, and answers the same.
    #[test]
    fn prediction_changes_nothing(
        config in configs(),
        (a, b) in (1_u64..6_000, 0_u64..3_000),
        (forward, back) in (chaos(), chaos()),
    ) {
        let config = Config { timestamps: false, handshake: false, ..config };
        let delay = Span::from_millis(20);
        let mut pair = Pair::new(
            opener(config, reno(100, 4, 20)),
            listener(config, reno(100, 4, 20)),
            Path::chaotic(delay, forward),
            Path::chaotic(delay, back),
        );
        pair.call(Side::A, |connection| connection.write(a));
        pair.call(Side::B, |connection| connection.write(b));
        pair.drive(Time::from_secs(10));
        pair.call(Side::A, Connection::close);
        pair.call(Side::B, Connection::close);
        pair.drive(Time::from_secs(1_000));

        for side in [Side::A, Side::B] {
            let twin = |marked: Flags| {
                let mut connection = Connection::connect(Arc::new(config), reno(100, 4, 20));
                let mut out = Vec::new();
                let written = if side == Side::A { a } else { b };
                connection.write(written);
                replay(&pair, side, &mut connection, marked, delay, &mut out);
                (out, connection.delivered(), connection.acknowledged(), connection.state(),
                 connection.statistics(), connection.next_timer(), connection.congestion_window())
            };
            prop_assert_eq!(twin(Flags::NONE), twin(Flags::URG));
        }
    }
}

/// Feeds one end the segments that arrived at it in a run.
fn replay(
    pair: &Pair,
    side: Side,
    connection: &mut Connection,
    marked: Flags,
    delay: Span,
    out: &mut Vec<(Time, Segment)>,
) {
    let mut now = Time::ZERO;
    let mut drain = |connection: &mut Connection, now| {
        connection.read(u64::MAX);
        while let Some(segment) = connection.poll_transmit(now) {
            out.push((now, segment));
        }
    };
    drain(connection, now);
    let arrivals = pair
        .records()
        .iter()
        .filter(|record| record.from == side.other() && record.fate != Fate::Lost);
    for record in arrivals {
        let at = (record.at + delay).max(now);
        while connection.next_timer() < at {
            now = connection.next_timer();
            connection.on_timer(now);
            drain(connection, now);
        }
        now = at;
        let mut segment = record.segment;
        segment.flags |= marked;
        connection.on_segment(now, &segment);
        drain(connection, now);
    }
}

fn drain(connection: &mut Connection, now: Time, mut highest: SeqNo) -> SeqNo {
    for _ in 0..10_000 {
        match connection.poll_transmit(now) {
            Some(segment) if segment.flags.contains(Flags::RST) => {}
            Some(segment) => highest = highest.latest(segment.sequence_end()),
            None => return highest,
        }
    }
    panic!("segments leave without end");
}

/// A stranger hits the window with a timestamp far ahead, but acknowledges what was not sent.
#[test]
fn a_timestamp_counts_only_with_an_acceptable_acknowledgement() {
    let config = Config {
        timestamps: true,
        ..PLAIN
    };
    let mut connection = opener(config, fixed(10_000));
    let now = Time::from_secs(1);
    drain(&mut connection, now, config.initial_sequence);
    let mut arrive = |sequence, ahead: u32, value| {
        let is_first = sequence == 1_000;
        let segment = Segment {
            sequence: SeqNo::new(sequence),
            acknowledgement: config.initial_sequence + 1 + ahead,
            payload: if is_first { 0 } else { 100 },
            window: 5_000,
            flags: if is_first {
                Flags::SYN | Flags::ACK
            } else {
                Flags::ACK
            },
            options: Options {
                timestamps: Some(Timestamps { value, echo: 1 }),
                ..Options::default()
            },
            ..Segment::default()
        };
        connection.on_segment(now, &segment);
        let accepted = connection.was_accepted();
        drain(&mut connection, now, config.initial_sequence);
        (connection.delivered(), accepted)
    };
    arrive(1_000, 0, 7);
    assert_eq!(arrive(1_001, 0, 8), (100, true));
    let far = 8 + (1 << 31) - 1;
    assert_eq!(arrive(1_101, 5_000, far), (100, false));
    assert_eq!(arrive(1_101, 0, 9), (200, true), "the peer goes on");
    // An accepted one does make older ones stale.
    assert_eq!(arrive(1_201, 0, far), (300, true));
    assert_eq!(arrive(1_301, 0, 10), (300, false));
}

/// A segment near a connection's numbers or far from them.
#[derive(Clone, Debug)]
struct Stranger {
    sequence: u32,
    acknowledgement: u32,
    segment: Segment,
}

impl Stranger {
    fn realise(&self, initial: SeqNo) -> Segment {
        Segment {
            sequence: SeqNo::new(self.sequence.wrapping_add(1_000)),
            acknowledgement: initial + self.acknowledgement,
            ..self.segment
        }
    }
}

fn strangers() -> impl Strategy<Value = (Span, Stranger)> {
    let number = || {
        prop_oneof![
            4 => 0_u32..1_500,
            1 => (0_u32..1_500).prop_map(|back| 0_u32.wrapping_sub(back)),
            1 => any::<u32>(),
        ]
    };
    let flags = prop_oneof![
        6 => Just(Flags::ACK),
        1 => Just(Flags::ACK | Flags::FIN),
        // Resets at the exact number end everything, so they are rare.
        3 => any::<u8>().prop_map(|bits| Flags::from_bits(bits & !0x04)),
        1 => any::<u8>().prop_map(Flags::from_bits),
    ];
    let payload = prop_oneof![3 => Just(0_u32), 4 => 1_u32..300, 1 => any::<u32>()];
    let stamps = prop::option::of((prop_oneof![Just(7_u32), any::<u32>()], any::<u32>()));
    let blocks = vec((number(), number()), 0..5);
    (
        0_u64..2_000,
        (
            number(),
            number(),
            payload,
            prop_oneof![Just(0_u16), any::<u16>()],
            flags,
        ),
        (stamps, blocks),
    )
        .prop_map(
            |(wait, (sequence, acknowledgement, payload, window, flags), (stamps, blocks))| {
                let mut sack = SackBlocks::EMPTY;
                for (start, end) in blocks {
                    let _ = sack.push(SackBlock {
                        start: SeqNo::new(start),
                        end: SeqNo::new(end),
                    });
                }
                let timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
                let segment = Segment {
                    payload,
                    window,
                    flags,
                    options: Options {
                        timestamps,
                        sack,
                        ..Options::default()
                    },
                    ..Segment::default()
                };
                let stranger = Stranger {
                    sequence,
                    acknowledgement,
                    segment,
                };
                (Span::from_millis(wait), stranger)
            },
        )
}

/// Acknowledgements of unsent data, and blocks beyond it, gain nothing (Savage et al. 1999).
#[test]
fn optimism_is_not_rewarded() {
    let config = Config {
        handshake: false,
        sack: true,
        recovery: RecoveryConfig::SACK,
        ..PLAIN
    };
    let mut connection = opener(config, fixed(400));
    connection.write(10_000);
    let mut highest = drain(&mut connection, Time::ZERO, SeqNo::new(1));
    assert_eq!(highest, SeqNo::new(401));
    for (at, acknowledgement) in (1..100).zip((402..).step_by(97)) {
        let now = Time::from_millis(at);
        connection.on_segment(
            now,
            &Segment {
                sequence: SeqNo::new(1),
                acknowledgement: SeqNo::new(acknowledgement),
                window: 60_000,
                flags: Flags::ACK,
                ..Segment::default()
            },
        );
        highest = drain(&mut connection, now, highest);
    }
    assert_eq!(highest, SeqNo::new(401));
    assert_eq!(
        (connection.acknowledged(), connection.in_flight()),
        (0, 400)
    );
}
