//! Properties of a time-lined stream on any path: data and gaps tile it, it ends, and it stays
//! within the window.

use std::cell::RefCell;

use comity_congestion::recovery::RecoveryConfig;
use comity_congestion::table::{Parameters, Row, Setup, TABLE};
use comity_tcp::timeline::{DeadlineClock, Piece, TimelineConfig};
use comity_tcp::{Config, Connection, DelayedAck, Flags, Options, State};
use comity_testkit::conformance::variants;
use comity_testkit::tcp::{Chaos, Fate, PLAIN, Pair, Path, Record, Side, fixed, listener, opener};
use comity_units::{DataSize, Seed, SeqNo, Span, Time};
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
        any::<[bool; 12]>(),
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
                bugfix,
                handshake,
                blind_spot,
                holds_passed,
                at_receiver,
                samples_obsolete,
                lifetime_on_tick,
            ] = switches;
            Config {
                receive_buffer: DataSize::new(buffer),
                window_scaling: scaling,
                timestamps,
                sack,
                handshake,
                delayed_ack: delayed.then_some(DelayedAck {
                    segments: 2,
                    timeout: Span::from_millis(40),
                    quick: 0,
                }),
                limited_transmit: limited,
                initial_sequence: SeqNo::new(initial),
                recovery: RecoveryConfig { bugfix, ..recovery },
                timeline: Some(TimelineConfig {
                    blind_spot,
                    holds_passed,
                    samples_obsolete,
                    lifetime_on_tick,
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

/// Every controller that drives a byte sequence; each can be time-lined.
fn controllers() -> impl Strategy<Value = &'static Row> {
    let rows: Vec<_> = TABLE.iter().filter(|row| row.drives_tcp).collect();
    assert!(rows.len() >= 7, "{rows:?}");
    prop::sample::select(rows)
}

/// Each of them, with its defaults or another value of one of its flags and choices.
fn controllers_and_variants() -> impl Strategy<Value = (&'static Row, Parameters)> {
    controllers().prop_flat_map(|row| (Just(row), prop::sample::select(variants(row))))
}

/// Controllers that ignore the size of packets, which includes the option. Libra measures capacity
/// by it, and the controller for media and BBR derive durations from it.
fn blind_controllers() -> impl Strategy<Value = &'static Row> {
    controllers().prop_filter("sees the size of packets", |row| {
        !["libra", "steady", "bbr", "bbr3"].contains(&row.name)
    })
}

/// Controllers that do not depend on round trips. A time-lined flow measures fewer: none with
/// obsolete data.
fn clocked_controllers() -> impl Strategy<Value = &'static Row> {
    blind_controllers().prop_filter("goes by round trips", |row| row.name != "vegas")
}

/// Controllers that restart when everything outstanding is marked lost. Otherwise the
/// acknowledgement of the first hole passes retransmissions still in flight, and one more window
/// leaves. BBR restores its window after a recovery.
fn restarting_controllers() -> impl Strategy<Value = &'static Row> {
    controllers().prop_filter("keeps its window", |row| {
        !["fixed", "real", "bbr", "bbr3"].contains(&row.name)
    })
}

fn setup() -> Setup {
    Setup {
        mss: DataSize::new(100),
        initial_window: DataSize::new(400),
        initial_ssthresh: DataSize::new(2_000),
        max_window: DataSize::MAX,
        seed: Seed::new(5),
    }
}

/// Sender and receiver of this controller; the receiver has the controller's half if one exists.
fn ends(config: Config, row: &Row, parameters: &Parameters) -> [Connection; 2] {
    let config = Config {
        metered: row.has_meter(),
        ..config
    };
    let controller = row.build(&setup(), parameters);
    let sender = opener(config, controller.expect("the parameters are sound"));
    let receiver = listener(config, fixed(1_000));
    match row.build_meter(&setup(), parameters) {
        None => [sender, receiver],
        Some(meter) => [
            sender,
            receiver.with_meter(meter.expect("the parameters are sound")),
        ],
    }
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

/// Loses each of the first few hundred with this probability, without other fates.
fn losses(share: f64) -> impl Strategy<Value = Chaos> {
    vec(prop::bool::weighted(share), 0..400).prop_map(|losses| {
        let fate = |lost| if lost { Fate::Lost } else { Fate::Arrives };
        Chaos(losses.into_iter().map(fate).collect())
    })
}

/// A section: its submission time, length and deadline.
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

/// Runs the sections over the path; returns the final pair, and whether it became idle.
fn run(
    (config, row): (Config, &Row),
    given: &[Given],
    forward: Chaos,
    reverse: Chaos,
    delay: u64,
) -> (Pair, bool) {
    run_checked(
        the_logical_window_is_kept,
        (config, row, &Parameters::new()),
        given,
        (forward, reverse),
        delay,
    )
}

/// The same with a check of each transmission.
fn run_checked(
    check: fn(&Connection, &Record),
    (config, row, parameters): (Config, &Row, &Parameters),
    given: &[Given],
    (forward, reverse): (Chaos, Chaos),
    delay: u64,
) -> (Pair, bool) {
    let delay = Span::from_millis(delay);
    let [sender, receiver] = ends(config, row, parameters);
    let mut pair = Pair::new(
        sender,
        receiver,
        Path::chaotic(delay, forward),
        Path::chaotic(delay, reverse),
    );
    pair.check_each(check);
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

/// Without losses, at most as many places are outstanding as the window and limited transmit allow.
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

thread_local! {
    /// The congestion windows at departures of data, and the number of expiries of the
    /// retransmission timer.
    static WINDOWS: RefCell<Vec<(u64, u32)>> = const { RefCell::new(Vec::new()) };
}

fn note_window(connection: &Connection, record: &Record) {
    if is_data(record) {
        let timeouts = connection.statistics().timeouts;
        let window = (connection.congestion_window(), timeouts);
        WINDOWS.with_borrow_mut(|windows| windows.push(window));
    }
}

/// Conservation of packets, in recovery and out of it. The sender has no information about packets
/// sent within the last round trip. All of them that no cumulative acknowledgement covers are
/// therefore in flight: first transmissions, retransmissions, and replacements of obsolete packets.
/// They fit into the largest window in force meanwhile. Duplicates, selective acknowledgements and
/// pseudo-retransmissions that change the sender's state concern older packets.
///
/// Two additions apply: limited transmit (two segments), and packets that a recovery sends with any
/// window (the first hole, the next one with a partial acknowledgement, and a rescue). A timeout
/// during arriving acknowledgements marks packets in flight as lost, and attributes their
/// acknowledgements to its retransmissions: the check skips two round trips after it.
fn assert_a_round_trip_holds_a_window(
    pair: &Pair,
    windows: &[(u64, u32)],
    config: &Config,
    delay: Span,
) -> Result<(), TestCaseError> {
    let on_top = SLACK * u64::from(config.mss);
    let sent: Vec<&Record> = pair
        .records()
        .iter()
        .filter(|record| is_data(record))
        .collect();
    prop_assert_eq!(sent.len(), windows.len());
    let acknowledgements = pair.records().iter().filter(|record| {
        record.from == Side::B
            && record.fate == Fate::Arrives
            && record.segment.flags.contains(Flags::ACK)
    });
    let mut acknowledgements = acknowledgements.peekable();
    let mut acknowledged = None;
    let (mut timeouts, mut settled_at) = (0, Time::ZERO);
    for (last, record) in sent.iter().enumerate() {
        while let Some(arrived) = acknowledgements.next_if(|it| it.at + delay <= record.at) {
            let number = arrived.segment.acknowledgement;
            acknowledged =
                Some(acknowledged.map_or(number, |highest: SeqNo| highest.latest(number)));
        }
        let recent = sent[..=last].iter().zip(windows).rev();
        let recent = recent.take_while(|(sent, _)| sent.at + delay * 2 > record.at);
        let (in_flight, window) = recent.fold((0, 0), |(bytes, widest), (sent, window)| {
            let is_covered = acknowledged.is_some_and(|una| sent.segment.sequence.precedes(una));
            let bytes = bytes + u64::from(sent.segment.payload) * u64::from(!is_covered);
            (bytes, widest.max(window.0))
        });
        if windows[last].1 > timeouts {
            timeouts = windows[last].1;
            settled_at = record.at + delay * 4;
        }
        if record.at < settled_at {
            continue;
        }
        prop_assert!(
            in_flight <= window.saturating_add(on_top),
            "{in_flight} bytes under {window}\n{}",
            before(pair, record.at)
        );
    }
    Ok(())
}

const SLACK: u64 = 5;

/// No payload exceeds the peer's offer, in places: numbers without the jumps, which appear on the
/// wire as numbers never sent. Data given up towards the peer counts as acknowledged.
fn assert_the_window_is_kept(pair: &Pair, config: &Config) -> Result<(), TestCaseError> {
    let first = config.initial_sequence + 1;
    let offset = |number: SeqNo| i64::from(number.distance_from(first)).max(0);
    // The jumps: the first number never sent, and the number after the last.
    let mut jumps: Vec<(i64, i64)> = Vec::new();
    let mut highest = 0;
    // Started established, both know each other's buffer.
    let buffer = config.receive_buffer.get() as i64;
    let mut edge = (!config.handshake).then_some(buffer);
    let mut widest = edge.unwrap_or(0);
    let mut scale = 0;
    for record in pair.records() {
        let segment = &record.segment;
        let is_syn = segment.flags.contains(Flags::SYN);
        let stream_offset = |number: i64, jumps: &[(i64, i64)]| {
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
                let acknowledged = stream_offset(offset(segment.acknowledgement), &jumps);
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
        let given_up = stream_offset(offset(update.expected), &jumps) + widest;
        prop_assert!(
            stream_offset(end, &jumps) <= offered.max(given_up),
            "{record} beyond {offered} and {given_up}\n{}",
            pair.transcript()
        );
    }
    Ok(())
}

/// The shift of a receiver's windows in bits.
fn pair_scale(config: &Config) -> u8 {
    let buffer = config.receive_buffer.get();
    (0..14)
        .find(|scale| buffer >> scale <= 65_535)
        .unwrap_or(14)
}

/// The section of each byte in a segment is current, if deadlines are at the sender: always with
/// ascending deadlines, and otherwise at its first transmission.
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

/// The last transmissions up to a moment, and the next ones.
fn before(pair: &Pair, at: Time) -> String {
    let records = pair.records();
    let up_to = records.partition_point(|record| record.at <= at);
    let shown = &records[up_to.saturating_sub(60)..(up_to + 10).min(records.len())];
    shown.iter().map(|record| format!("{record}\n")).collect()
}

fn is_data(record: &Record) -> bool {
    record.from == Side::A && record.segment.payload > 0
}

/// When a time-lined flow and TCP may begin to differ, by the segments of one of them on the wire:
/// * the sender may have information about a packet that was lost while another was missing. Its
///   replacement is one more packet behind the second, while TCP's retransmission is one before it;
/// * a retransmission is lost, or was sent after a timeout at a moment without an arriving
///   acknowledgement;
/// * the lowest current packet, which answers the loss of an obsolete one, was lost itself: one
///   answer repairs both.
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
    /// Gaps and data tile the stream, no obsolete data leaves, and both ends close.
    #[test]
    fn gaps_and_data_tile_the_stream_and_all_comes_to_an_end(
        config in configs(),
        (row, parameters) in controllers_and_variants(),
        given in sections(),
        (forward, reverse) in (chaos(), chaos()),
        delay in 1_u64..120,
    ) {
        let row = (config, row, &parameters);
        let (pair, quiet) =
            run_checked(the_logical_window_is_kept, row, &given, (forward, reverse), delay);
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
        // All unsent data is missing; of the sent data, at most the obsolete part is.
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
        row in blind_controllers(),
        bytes in 1_u64..6_000,
        (forward, reverse) in (chaos(), chaos()),
        delay in 1_u64..120,
    ) {
        let given = [Given { at: Time::ZERO, bytes, deadline: Time::MAX }];
        let plain = Config { timeline: None, ..config };
        let (mine, _) = run((config, row), &given, forward.clone(), reverse.clone(), delay);
        let (tcp, _) = run((plain, row), &given, forward, reverse, delay);
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

    /// Whatever is lost in either direction, with any controller and blind spot, under Tahoe, Reno
    /// and RFC 6675: at most as much leaves in a round trip as TCP would have in flight. Without
    /// deadlines the same holds for TCP, with every recovery.
    #[test]
    fn a_round_trip_holds_a_window_in_recovery_too(
        config in configs(),
        row in restarting_controllers(),
        (lives, is_timed) in (vec(1_u64..400, 1..12), prop::bool::weighted(0.8)),
        (forward, reverse) in (losses(0.06), losses(0.04)),
        delay in 5_u64..60,
    ) {
        let recovery = RecoveryConfig { bugfix: true, ..config.recovery }.with_sack(config.sack);
        let mut given = Vec::new();
        let mut deadline = Time::ZERO;
        for life in lives {
            deadline += Span::from_millis(life);
            given.push(Given { at: Time::ZERO, bytes: 3_000, deadline });
        }
        given.push(Given { at: Time::ZERO, bytes: 40_000, deadline: Time::MAX });
        let config = Config {
            timeline: config.timeline.filter(|_| is_timed),
            // Otherwise duplicates of a timeout's unnecessary retransmissions would count as
            // reports of the flight (RFC 6582, section 1).
            recovery,
            ..config
        };
        if !is_timed {
            given.iter_mut().for_each(|section| section.deadline = Time::MAX);
        }
        WINDOWS.take();
        let (pair, _) = run_checked(note_window, (config, row, &Parameters::new()), &given, (forward, reverse), delay);
        assert_a_round_trip_holds_a_window(&pair, &WINDOWS.take(), &config, Span::from_millis(delay))?;
    }

    /// A stream that deadlines shorten sends when TCP sends, and as much, with or without losses.
    /// The logical window holds as much as TCP's, and a lost obsolete packet is answered when TCP
    /// retransmits. Both lose the same transmissions, by count. [`parting`] returns when each may
    /// begin to differ.
    #[test]
    fn the_logical_window_is_that_of_tcp_while_answers_arrive(
        recovery in prop::sample::select(vec![RecoveryConfig::NEW_RENO, RecoveryConfig::SACK]),
        row in clocked_controllers(),
        lives in vec(1_u64..400, 1..8),
        losses in vec(prop::bool::weighted(0.02), 0..200),
        delay in 5_u64..60,
    ) {
        let config = Config {
            receive_buffer: DataSize::new(60_000),
            handshake: false,
            recovery,
            sack: recovery == RecoveryConfig::SACK,
            timeline: Some(TimelineConfig { blind_spot: false, ..TimelineConfig::PAPER }),
            ..PLAIN
        };
        // Whole segments, so that both have the same ones, and more than necessary.
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
        let (mine, _) = run((config, row), &given, forward.clone(), Chaos::default(), delay);
        let (tcp, _) = run((plain, row), &given, forward, Chaos::default(), delay);
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
