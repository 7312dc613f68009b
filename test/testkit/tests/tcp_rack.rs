//! RACK-TLP, proportional rate reduction and undo, segment by segment.
//!
//! Times are milliseconds, segments are numbered from 1 and have 100 bytes; a round trip takes 100
//! ms.

use comity_congestion::RttConfig;
use comity_congestion::recovery::{RecoveryConfig, RecoveryKind};
use comity_tcp::Config;
use comity_testkit::tcp::{BORN, Fate, Pair, Path, Side, listener, opener, reno};
use comity_units::{DataSize, Span, Time};

/// RACK as Linux has it, with a timeout of `SRTT + 200 ms`.
const RACK: Config = Config {
    sack: true,
    duplicate_sack: true,
    receive_buffer: DataSize::new(50_000),
    recovery: RecoveryConfig::RACK,
    rtt: RttConfig::LINUX,
    ..BORN
};

fn rack(probe: bool, proportional: bool, undo: bool) -> Config {
    Config {
        recovery: RecoveryConfig {
            kind: RecoveryKind::Rack {
                probe,
                proportional,
                undo,
            },
            ..RecoveryConfig::RACK
        },
        ..RACK
    }
}

/// The fates of some transmissions: `(segment, transmission, fate)`.
type Fates = &'static [(u32, u32, Fate)];

/// Sends `count` segments with a window of `window`.
fn transfer(config: Config, window: u64, count: u64, fates: Fates) -> Pair {
    let delay = Span::from_millis(50);
    let mut seen = [0; 100];
    let judge = move |_, segment: &comity_tcp::Segment| {
        let number = (segment.sequence.get() - 1) / 100 + 1;
        if segment.payload == 0 {
            return Fate::Arrives;
        }
        seen[number as usize] += 1;
        let is_it = |&&(which, time, _): &&(u32, u32, Fate)| {
            (which, time) == (number, seen[number as usize])
        };
        fates
            .iter()
            .find(is_it)
            .map_or(Fate::Arrives, |&(_, _, fate)| fate)
    };
    let mut pair = Pair::new(
        opener(config, reno(100, window, window)),
        listener(config, reno(100, window, window)),
        Path::judged_by(delay, judge),
        Path::new(delay),
    );
    pair.call(Side::A, |connection| connection.write(count * 100));
    assert!(pair.drive(Time::from_secs(1_000)));
    assert_eq!(pair.end(Side::B).delivered(), count * 100);
    assert!(pair.end(Side::A).is_all_acknowledged());
    pair
}

const LATE_20: Fate = Fate::Late(Span::from_millis(20));
const LATE_30: Fate = Fate::Late(Span::from_millis(30));

#[test]
fn reordering_within_the_window_causes_no_retransmission() {
    // RFC 8985, section 6.2, step 4: the reordering window is a quarter of the minimum round trip,
    // 25 ms. Segments 3 and 4 overtake 2 by 20 ms: two are too few to do without the window.
    let pair = transfer(RACK, 4, 4, &[(2, 1, LATE_20)]);
    assert_eq!(pair.flights(Side::A, 100), [(0, vec![1, 2, 3, 4])]);
    let statistics = pair.end(Side::A).statistics();
    assert_eq!(
        (statistics.fast_retransmits, statistics.retransmitted),
        (0, 0)
    );
    assert_eq!(pair.end(Side::A).congestion_window() / 100, 4);
}

#[test]
fn beyond_the_window_a_segment_is_retransmitted_and_a_duplicate_report_undoes_it() {
    // 25 ms after the acknowledgements of 3 and 4, segment 2 counts as lost. Its first transmission
    // is acknowledged at 130 ms. The second arrives at 175 ms as a duplicate, which is reported at
    // 225 ms.
    let pair = transfer(RACK, 4, 4, &[(2, 1, LATE_30)]);
    assert_eq!(
        pair.flights(Side::A, 100),
        [(0, vec![1, 2, 3, 4]), (125, vec![2])]
    );
    assert_eq!(pair.end(Side::A).statistics().fast_retransmits, 1);
    let report = pair
        .records()
        .iter()
        .find(|record| record.from == Side::B && record.at == Time::from_millis(175))
        .map(|record| record.segment.options.sack);
    let report = report.expect("the duplicate is answered");
    let block = report.as_slice()[0];
    assert_eq!((block.start.get(), block.end.get()), (101, 201));
    // Reno's controller of this test undoes nothing, but the recovery still calls it.
    assert!(!pair.end(Side::A).is_recovering());
}

#[test]
fn three_out_of_order_are_enough_without_reordering() {
    let pair = transfer(RACK, 5, 5, &[(2, 1, LATE_20)]);
    assert_eq!(
        pair.flights(Side::A, 100),
        [(0, vec![1, 2, 3, 4, 5]), (100, vec![2])]
    );
}

#[test]
fn a_loss_beyond_the_end_of_a_recovery_begins_the_next() {
    // Segment 2 is lost twice. At 100 ms the acknowledgements of 1, 3 and 4 release 9, 10 and 11,
    // and that of 5 reveals the loss. 2 is retransmitted, and the recovery lasts until 11 is
    // acknowledged. Two segments leave for four delivered ones, so 12 follows with the
    // acknowledgement of 7. 13 leaves at 200 ms, and its acknowledgement at 300 ms reveals that
    // both 2 and 12 are lost. The acknowledgement of 2 at 400 ms covers 11, and 12 still counts as
    // lost. Linux: `tcp_try_undo_recovery`, and `tcp_time_to_recover` on the same acknowledgement.
    let twice = transfer(RACK, 8, 20, &[(2, 1, Fate::Lost), (2, 2, Fate::Lost)]);
    assert_eq!(twice.end(Side::A).statistics().fast_retransmits, 1);
    let lost: Fates = &[(2, 1, Fate::Lost), (2, 2, Fate::Lost), (12, 1, Fate::Lost)];
    let behind = transfer(RACK, 8, 20, lost);
    let statistics = behind.end(Side::A).statistics();
    assert_eq!(
        (statistics.fast_retransmits, statistics.retransmitted),
        (2, 3),
        "{}",
        behind.transcript()
    );
    assert_eq!(statistics.timeouts, 0);
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe() {
    // The acknowledgement of 6 at 100 ms leaves two segments: PTO = 2 · 100 + 2 ms, and 8 is
    // retransmitted at 302 ms. Its acknowledgement at 402 ms reveals that 7 is lost. RFC 8985,
    // section 7.
    let lost: Fates = &[(7, 1, Fate::Lost), (8, 1, Fate::Lost)];
    let pair = transfer(RACK, 8, 8, lost);
    assert_eq!(
        pair.flights(Side::A, 100)[1..],
        [(302, vec![8]), (402, vec![7])],
        "{}",
        pair.transcript()
    );
    assert_eq!(pair.end(Side::A).statistics().timeouts, 0);
    // Without a probe, the timer expires after SRTT + 200 ms and retransmits 7; 8 follows one round
    // trip later.
    let pair = transfer(rack(false, true, true), 8, 8, lost);
    assert_eq!(
        pair.flights(Side::A, 100)[1..],
        [(400, vec![7]), (500, vec![8])]
    );
    assert_eq!(pair.end(Side::A).statistics().timeouts, 1);
}

#[test]
fn the_probe_of_a_single_segment_allows_for_a_delayed_acknowledgement() {
    // 2 · 100 + 200 ms is later than the timeout of 300 ms. The probe replaces the timeout, and the
    // window stays.
    let pair = transfer(RACK, 8, 8, &[(8, 1, Fate::Lost)]);
    assert_eq!(pair.flights(Side::A, 100)[1..], [(400, vec![8])]);
    assert_eq!(pair.end(Side::A).statistics().timeouts, 0);
    assert_eq!(pair.end(Side::A).congestion_window() / 100, 8);
}

#[test]
fn a_probe_with_new_data_finds_the_loss() {
    // All but the first two of eight are lost, and more data is ready. The probe is segment 11,
    // after 9 and 10, which the acknowledgements of 1 and 2 release and which are lost too. Its 202
    // ms from 100 ms on exceed the rest of the 300 ms of segment 3, sent at 0 ms.
    const LOST: Fates = &[
        (3, 1, Fate::Lost),
        (4, 1, Fate::Lost),
        (5, 1, Fate::Lost),
        (6, 1, Fate::Lost),
        (7, 1, Fate::Lost),
        (8, 1, Fate::Lost),
        (9, 1, Fate::Lost),
        (10, 1, Fate::Lost),
    ];
    let pair = transfer(RACK, 8, 20, LOST);
    let flights = pair.flights(Side::A, 100);
    assert_eq!(flights[1..3], [(100, vec![9, 10]), (300, vec![11])]);
    // At 400 ms its acknowledgement reveals eight losses: one segment is in the pipe, so as much is
    // sent as was delivered.
    assert_eq!(flights[3], (400, vec![3]));
    assert_eq!(pair.end(Side::A).statistics().timeouts, 0);
}

#[test]
fn a_lost_retransmission_is_repaired_without_a_timeout() {
    // 2 is lost, and again at 100 ms. Segments sent after it at 100 ms are acknowledged at 200 ms,
    // which proves the second loss at once: a recovery has no reordering window.
    let pair = transfer(RACK, 8, 30, &[(2, 1, Fate::Lost), (2, 2, Fate::Lost)]);
    let times: Vec<u64> = pair
        .sent_segments(Side::A, 100)
        .into_iter()
        .filter(|&(_, segment)| segment == 2)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(times, [0, 100, 200]);
    let statistics = pair.end(Side::A).statistics();
    assert_eq!((statistics.timeouts, statistics.fast_retransmits), (0, 1));
}

#[test]
fn the_window_shrinks_in_proportion_to_what_arrives() {
    // RFC 6937, section 4: the first of 20 segments is lost. The acknowledgements of 2 and 3
    // release 21 and 22. With that of 4 the window is halved and 1 leaves. From then on each second
    // acknowledgement sends one, until with that of 20 ten are in flight.
    let pair = transfer(RACK, 20, 60, &[(1, 1, Fate::Lost)]);
    let expected = [21, 22, 1, 23, 24, 25, 26, 27, 28, 29];
    assert_eq!(pair.flights(Side::A, 100)[1], (100, expected.to_vec()));
    // At 200 ms the acknowledgements of 21 and 22 send one each. Then 1 is acknowledged, and nine
    // are outstanding: the window of ten releases one, and each of seven acknowledgements one more.
    let expected: Vec<u32> = (30..40).collect();
    assert_eq!(pair.flights(Side::A, 100)[2], (200, expected));
}

#[test]
fn an_early_acknowledgement_after_a_timeout_shows_that_nothing_was_lost() {
    // 5 to 8 leave at 100 ms and are 250 ms late. The timer expires at 400 ms and retransmits 5.
    // The acknowledgement at 450 ms echoes its first transmission (RFC 3522), so 6 to 8 are not
    // lost either.
    const LATE: Fate = Fate::Late(Span::from_millis(250));
    const FATES: Fates = &[(5, 1, LATE), (6, 1, LATE), (7, 1, LATE), (8, 1, LATE)];
    let repeated = |undo| {
        let config = Config {
            timestamps: true,
            ..rack(false, true, undo)
        };
        let pair = transfer(config, 4, 8, FATES);
        assert_eq!(pair.flights(Side::A, 100)[2].0, 400);
        let statistics = pair.end(Side::A).statistics();
        assert_eq!(statistics.timeouts, 1);
        statistics.retransmitted
    };
    assert_eq!(repeated(true), 1);
    assert!(repeated(false) > 1);
}
