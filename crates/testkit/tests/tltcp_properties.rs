//! What holds for a time-lined stream whatever the path does: it is tiled by data and gaps, it comes to its
//! end, and towards the network it keeps to the window.

use comity_congestion::Controller;
use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::{self, Parameters, Setup};
use comity_testkit::tcp::{Chaos, Fate, PLAIN, Pair, Path, Record, Side, fixed, listener, opener};
use comity_transport::tcp::timeline::{DeadlineClock, Piece, TimelineConfig};
use comity_transport::tcp::{Config, Connection, DelayedAck, Flags, Options, State};
use comity_units::{Bytes, Seed, SeqNo, Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

const RECOVERIES: [RecoveryConfig; 6] = [
    RecoveryConfig::TAHOE,
    RecoveryConfig::RENO,
    RecoveryConfig::NEW_RENO,
    RecoveryConfig::NEW_RENO_NS2,
    RecoveryConfig::SACK,
    RecoveryConfig::SACK_NS2,
];

fn configs() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(&RECOVERIES[..]),
        any::<[bool; 9]>(),
        prop::sample::select(vec![0, 1, 5_000, u32::MAX - 700, u32::MAX]),
        prop::sample::select(vec![150_u64, 400, 3_000, 100_000]),
    )
        .prop_map(|(recovery, switches, initial, buffer)| {
            let [
                scaling,
                timestamps,
                sack,
                delayed,
                limited,
                careful,
                handshake,
                blind_spot,
                at_receiver,
            ] = switches;
            Config {
                receive_buffer: Bytes::new(buffer),
                window_scaling: scaling,
                timestamps,
                sack,
                handshake,
                delayed_ack: delayed.then_some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(40),
                }),
                limited_transmit: limited,
                initial_sequence: SeqNo::new(initial),
                recovery: RecoveryConfig {
                    careful,
                    ..recovery
                },
                timeline: Some(TimelineConfig {
                    blind_spot,
                    clock: if at_receiver {
                        DeadlineClock::Receiver
                    } else {
                        DeadlineClock::Sender
                    },
                }),
                time_wait: Span::from_secs(86_400),
                ..PLAIN
            }
        })
}

/// The growth laws that are time-lined here.
const LAWS: [&str; 3] = ["reno", "cubic", "libra"];

/// Those that do not see how large packets are: Libra measures capacity by them, and the option is a part of each.
const BLIND_LAWS: [&str; 2] = ["reno", "cubic"];

fn controller(law: &str) -> Box<dyn Controller> {
    let setup = Setup {
        mss: Bytes::new(100),
        initial_window: Bytes::new(400),
        initial_ssthresh: Bytes::new(2_000),
        max_window: Bytes::MAX,
        seed: Seed::new(5),
    };
    let row = table::find(law).expect("the law is known");
    row.build(&setup, &Parameters::new())
        .expect("its defaults are sound")
}

fn chaos() -> impl Strategy<Value = Chaos> {
    let fate = prop_oneof![
        1 => Just(Fate::Stripped),
        6 => Just(Fate::Arrives),
        3 => Just(Fate::Lost),
        2 => (0_u64..200).prop_map(|ms| Fate::Late(Span::from_millis(ms))),
        1 => (0_u64..200).prop_map(|ms| Fate::Twice(Span::from_millis(ms))),
    ];
    vec(fate, 0..60).prop_map(Chaos)
}

/// A section: when it is given, of how many bytes, and when it is over.
#[derive(Clone, Copy, Debug)]
struct Given {
    at: Time,
    bytes: u64,
    deadline: Time,
}

fn sections() -> impl Strategy<Value = Vec<Given>> {
    let section = (
        prop_oneof![Just(0_u64), 0_u64..400],
        prop_oneof![Just(0_u64), 1_u64..300, 300_u64..3_000],
        prop_oneof![4 => 0_u64..1_500, 1 => Just(u64::MAX)],
    );
    vec(section, 0..12).prop_map(|list| {
        let mut now = Time::from_millis(0);
        list.into_iter()
            .map(|(pause, bytes, life)| {
                now += Span::from_millis(pause);
                let deadline = if life == u64::MAX {
                    Time::MAX
                } else {
                    now + Span::from_millis(life)
                };
                Given {
                    at: now,
                    bytes,
                    deadline,
                }
            })
            .collect()
    })
}

/// Plays the sections over the path; the pair at the end, and whether it came to rest.
fn play(
    (config, law): (Config, &str),
    given: &[Given],
    forward: Chaos,
    back: Chaos,
    delay: u64,
) -> (Pair, bool) {
    let delay = Span::from_millis(delay);
    let mut pair = Pair::new(
        opener(config, controller(law)),
        listener(config, fixed(1_000)),
        Path::chaotic(delay, forward),
        Path::chaotic(delay, back),
    );
    pair.check_each(the_logical_window_is_kept);
    for section in given {
        pair.drive(section.at);
        pair.call(Side::A, |end: &mut Connection| {
            end.write_section(section.bytes, section.deadline)
                .expect("it is taken");
        });
    }
    pair.call(Side::A, Connection::close);
    pair.drive(pair.now() + Span::from_secs(10_000));
    pair.call(Side::B, Connection::close);
    let quiet = pair.drive(Time::from_secs(1_000_000));
    (pair, quiet)
}

/// As long as nothing was lost, no more places are outstanding than the window and limited transmit allow.
fn the_logical_window_is_kept(connection: &Connection, record: &Record) {
    let statistics = connection.statistics();
    let is_undisturbed = statistics.fast_retransmits == 0 && statistics.timeouts == 0;
    if is_undisturbed && record.segment.payload > 0 {
        let released = 2 * u64::from(connection.config().mss);
        let allowed = connection.congestion_window().saturating_add(released);
        assert!(
            connection.in_flight().saturating_sub(1) <= allowed,
            "{record}"
        );
    }
}

/// No payload goes beyond what the peer offered, in places: numbers without the jumps, which are read off the wire as
/// what was never sent. What is given up towards the peer is as good as acknowledged.
fn assert_the_window_is_kept(pair: &Pair, config: &Config) -> Result<(), TestCaseError> {
    let first = config.initial_sequence + 1;
    let offset = |number: SeqNo| i64::from(number.distance_from(first)).max(0);
    // Where it jumped: the numbers of the first byte never sent, and of the one behind.
    let mut jumps: Vec<(i64, i64)> = Vec::new();
    let mut highest = 0;
    // Born established, both know each other's buffer.
    let buffer = config.receive_buffer.get() as i64;
    let mut edge = (!config.handshake).then_some(buffer);
    let mut widest = edge.unwrap_or(0);
    let mut scale = 0;
    for record in pair.records() {
        let segment = &record.segment;
        let is_syn = segment.flags.contains(Flags::SYN);
        let place = |number: i64, jumps: &[(i64, i64)]| {
            let skipped = jumps
                .iter()
                .map(|&(from, to)| (number.min(to) - from).max(0));
            number - skipped.sum::<i64>()
        };
        if record.from == Side::B {
            if is_syn {
                scale = segment.options.window_scale.unwrap_or(0);
            } else if !config.handshake && config.window_scaling {
                scale = pair_scale(config);
            }
            if segment.flags.contains(Flags::ACK) {
                let window = i64::from(segment.window) << if is_syn { 0 } else { scale };
                let acknowledged = place(offset(segment.acknowledgement), &jumps);
                edge = edge.max(Some(acknowledged + window));
                widest = widest.max(window);
            }
            continue;
        }
        if segment.payload == 0 {
            continue;
        }
        let start = offset(segment.sequence);
        if start > highest {
            jumps.push((highest, start));
        }
        let end = start + i64::from(segment.payload);
        highest = highest.max(end);
        let Some(update) = segment.options.seq_update else {
            continue;
        };
        let offered = edge.unwrap_or(0);
        let given_up = place(offset(update.expected), &jumps) + widest;
        prop_assert!(
            place(end, &jumps) <= offered.max(given_up),
            "{record} beyond {offered} and {given_up}\n{}",
            pair.transcript()
        );
    }
    Ok(())
}

/// By how many bits a receiver shifts its windows.
fn pair_scale(config: &Config) -> u8 {
    let buffer = config.receive_buffer.get();
    (0..14)
        .find(|scale| buffer >> scale <= 65_535)
        .unwrap_or(14)
}

/// The section of each byte that a segment carries is not over, where deadlines are at the sender: where they are in
/// order always, and otherwise when it is sent for the first time.
fn assert_nothing_obsolete(
    pair: &Pair,
    given: &[Given],
    config: &Config,
) -> Result<(), TestCaseError> {
    let in_order = given
        .windows(2)
        .all(|pair| pair[0].deadline <= pair[1].deadline);
    let mut sent_to = 0;
    for record in pair.records() {
        if record.from == Side::B || record.segment.payload == 0 {
            continue;
        }
        let first = config.initial_sequence + 1;
        let mut offset = u64::from(record.segment.sequence.distance_from(first).unsigned_abs());
        let is_first = offset >= sent_to;
        sent_to = sent_to.max(offset + u64::from(record.segment.payload));
        for section in given {
            if offset < section.bytes {
                prop_assert!(
                    record.at < section.deadline || !in_order && !is_first,
                    "{record}\n{}",
                    pair.transcript()
                );
                let is_within = offset + u64::from(record.segment.payload) <= section.bytes;
                prop_assert!(
                    is_within || section.deadline.is_never(),
                    "beyond its section: {record}"
                );
                break;
            }
            offset -= section.bytes;
        }
    }
    Ok(())
}

/// What was sent last up to a moment, and next.
fn before(pair: &Pair, at: Time) -> String {
    let records = pair.records();
    let up_to = records.partition_point(|record| record.at <= at);
    let shown = &records[up_to.saturating_sub(60)..(up_to + 10).min(records.len())];
    shown.iter().map(|record| format!("{record}\n")).collect()
}

fn is_data(record: &Record) -> bool {
    record.from == Side::A && record.segment.payload > 0
}

/// When a time-lined flow and TCP may begin to go their own ways, by what is seen of one of them on the wire:
/// * something may be known of a packet that was lost while another was missing. The packet that takes the place of the
///   first is one more behind the second, while TCP's repetition is one before it;
/// * something is sent again that is lost, or that was sent at a moment at which no acknowledgement arrives, after a timeout;
/// * the lowest current packet, with which the loss of an obsolete one is answered, was lost itself: one answer mends both.
fn parting(pair: &Pair, delay: u64) -> Time {
    let delay = Span::from_millis(delay);
    let mut parting = Time::MAX;
    let (mut highest, mut acknowledged) = (SeqNo::ZERO, SeqNo::ZERO);
    let mut lost: Vec<SeqNo> = Vec::new();
    let mut acknowledgements = std::collections::VecDeque::new();
    let mut acknowledged_at = Time::ZERO;
    for record in pair.records() {
        while let Some(&(at, number)) = acknowledgements.front()
            && at <= record.at
        {
            acknowledgements.pop_front();
            acknowledged_at = at;
            acknowledged = acknowledged.latest(number);
        }
        let segment = &record.segment;
        if record.from == Side::B && record.fate == Fate::Arrives {
            acknowledgements.push_back((record.at + delay, segment.acknowledgement));
        } else if is_data(record) {
            let is_again = segment.sequence.precedes(highest);
            let is_lost = record.fate == Fate::Lost;
            let is_timeout = acknowledged_at != record.at;
            let update = segment.options.seq_update;
            let is_for_obsolete = update.is_some_and(|it| it.expected.follows(acknowledged));
            let mends_both = is_for_obsolete && lost.contains(&segment.sequence);
            if is_again && (is_timeout || is_lost || mends_both) {
                parting = parting.min(record.at);
            }
            let is_missing = |number: &SeqNo| !number.precedes(acknowledged);
            if is_lost && lost.iter().any(is_missing) {
                parting = parting.min(record.at + delay * 2);
            }
            highest = highest.latest(segment.sequence + segment.payload);
            lost.extend(is_lost.then_some(segment.sequence));
        }
    }
    parting
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Gaps and data tile the stream, nothing obsolete leaves, and both ends close.
    #[test]
    fn gaps_and_data_tile_the_stream_and_all_comes_to_an_end(
        config in configs(),
        law in prop::sample::select(&LAWS[..]),
        given in sections(),
        (forward, back) in (chaos(), chaos()),
        delay in 1_u64..120,
    ) {
        let (pair, quiet) = play((config, law), &given, forward, back, delay);
        prop_assert!(quiet, "\n{}", pair.transcript());
        for side in [Side::A, Side::B] {
            let state = pair.end(side).state();
            prop_assert_eq!(state, State::Closed, "{:?}\n{}", side, pair.transcript());
        }
        let mut expected = 0;
        let mut gaps = 0;
        for piece in pair.pieces(Side::B) {
            let (Piece::Data { offset, length } | Piece::Gap { offset, length }) = *piece;
            prop_assert_eq!(offset, expected, "{:?}", pair.pieces(Side::B));
            prop_assert!(length > 0);
            expected += length;
            if matches!(piece, Piece::Gap { .. }) {
                gaps += length;
            }
        }
        let total: u64 = given.iter().map(|section| section.bytes).sum();
        prop_assert_eq!(expected, total, "{}", pair.transcript());
        let receiver = pair.end(Side::B);
        prop_assert_eq!(receiver.gap_statistics().bytes, gaps);
        prop_assert_eq!(receiver.delivered(), total - gaps);
        // What was never sent is missing; of what was sent, at most what was obsolete is.
        let statistics = pair.end(Side::A).timeline_statistics().unwrap();
        prop_assert!(gaps >= statistics.discarded_bytes);
        prop_assert!(gaps <= statistics.discarded_bytes + statistics.obsolete_bytes);
        if config.timeline.unwrap().clock == DeadlineClock::Sender {
            assert_nothing_obsolete(&pair, &given, &config)?;
        }
        assert_the_window_is_kept(&pair, &config)?;
    }

    /// Without deadlines, a time-lined stream sends what TCP sends, when TCP sends it.
    #[test]
    fn without_deadlines_it_is_tcp(
        config in configs(),
        law in prop::sample::select(&BLIND_LAWS[..]),
        bytes in 1_u64..6_000,
        (forward, back) in (chaos(), chaos()),
        delay in 1_u64..120,
    ) {
        let given = [Given { at: Time::ZERO, bytes, deadline: Time::MAX }];
        let plain = Config { timeline: None, ..config };
        let (mine, _) = play((config, law), &given, forward.clone(), back.clone(), delay);
        let (tcp, _) = play((plain, law), &given, forward, back, delay);
        let sent = |pair: &Pair| -> Vec<_> {
            let without_options = |record: &Record| {
                let mut record = *record;
                // The option leaves room for fewer blocks.
                record.segment.options = Options::default();
                record.to_string()
            };
            pair.records().iter().map(without_options).collect()
        };
        prop_assert_eq!(sent(&mine), sent(&tcp));
    }

    /// A stream of which deadlines take bytes away sends when TCP sends, and as much, losses or not: the logical window
    /// holds what TCP's does, and a lost obsolete packet is answered where TCP repeats one. Both lose the same of their
    /// transmissions, by count. [`parting`] says from when on each may go its own way.
    #[test]
    fn the_logical_window_is_that_of_tcp_while_answers_arrive(
        recovery in prop::sample::select(vec![RecoveryConfig::NEW_RENO, RecoveryConfig::SACK]),
        law in prop::sample::select(&LAWS[..2]),
        lives in vec(1_u64..400, 1..8),
        losses in vec(prop::bool::weighted(0.02), 0..200),
        delay in 5_u64..60,
    ) {
        let config = Config {
            receive_buffer: Bytes::new(60_000),
            handshake: false,
            recovery,
            sack: recovery == RecoveryConfig::SACK,
            timeline: Some(TimelineConfig { blind_spot: false, ..TimelineConfig::PAPER }),
            ..PLAIN
        };
        // Whole segments, so that both have the same ones, and more than are needed.
        let mut given = Vec::new();
        let mut deadline = Time::ZERO;
        for life in lives {
            deadline += Span::from_millis(life);
            given.push(Given { at: Time::ZERO, bytes: 4_000, deadline });
        }
        given.push(Given { at: Time::ZERO, bytes: 400_000, deadline: Time::MAX });
        let fates = losses.iter().map(|&lost| if lost { Fate::Lost } else { Fate::Arrives });
        let forward = Chaos(fates.collect());
        let plain = Config { timeline: None, ..config };
        let (mine, _) = play((config, law), &given, forward.clone(), Chaos::default(), delay);
        let (tcp, _) = play((plain, law), &given, forward, Chaos::default(), delay);
        let until = parting(&mine, delay).min(parting(&tcp, delay));
        let sent = |pair: &Pair| -> Vec<(Time, u32)> {
            let data = pair.records().iter().filter(|record| is_data(record));
            let sent = data.map(|record| (record.at, record.segment.payload));
            sent.filter(|sent| sent.0 < until).take(1_000).collect()
        };
        let (mine_sent, tcp_sent) = (sent(&mine), sent(&tcp));
        let mut both = mine_sent.iter().zip(&tcp_sent);
        if let Some((one, other)) = both.find(|(one, other)| one != other) {
            let at = one.0.min(other.0);
            prop_assert_eq!(before(&mine, at), before(&tcp, at), "apart at {}", at);
        }
        prop_assert_eq!(mine_sent.len(), tcp_sent.len());
    }
}
