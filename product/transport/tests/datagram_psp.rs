//! Packet spacing over two ends of the datagram transport and a path with scripted losses and
//! delays: the spacing over time, computed from the departures.

use crate::pair;

use comity_congestion::controllers::{Psp, PspConfig, RoundMeter, Step};
use comity_transport::datagram::Connection;
use comity_transport::timeline::Elided;
use comity_units::{DataSize, Rate, Seed, Span, Time};

use pair::{PAYLOAD, config};

/// Half of the round trip of 10 ms.
const WAY: Span = Span::from_millis(5);

/// The scripted events.
#[derive(Clone, Copy, Debug, Default)]
struct Script<'a> {
    is_damped: bool,
    /// Whether rounds begun before a reaction are ignored.
    settles: bool,
    /// The first data packet after each of these milliseconds is lost.
    lost_ms: &'a [u64],
    /// ACKs sent between the first two of these milliseconds arrive at the third.
    late_ms: Option<[u64; 3]>,
}

fn controller(script: &Script<'_>) -> Psp {
    Psp::new(PspConfig {
        mss: DataSize::new(u64::from(PAYLOAD)),
        max_window: DataSize::MAX,
        link: Rate::from_mbps(100),
        is_damped: script.is_damped,
        step: Step::Fixed {
            first: Span::from_micros(50),
            step: Span::from_micros(2),
        },
        settles: script.settles,
        is_dynamic: false,
        jitter: 0.0,
        seed: Seed::new(1),
    })
}

/// When data packets left.
fn play(script: &Script<'_>, until: Time) -> Vec<Time> {
    let end = |meter| {
        let controller = Box::new(controller(script));
        Connection::<Elided>::new(config(), Span::ZERO, controller, meter, Time::ZERO).unwrap()
    };
    let ends = [end(None), end(Some(Box::new(RoundMeter::default())))];
    let lost = script.lost_ms.iter().map(|ms| Time::from_millis(*ms));
    let mut lost = lost.peekable();
    let late = script.late_ms.map(|ms| ms.map(Time::from_millis));
    let mut times = Vec::new();
    pair::play(ends, 1_500_000, until, |now, from, sent| {
        if sent.payload == PAYLOAD {
            times.push(now);
            let is_lost = lost.next_if(|at| *at <= now).is_some();
            return (!is_lost).then_some(now + WAY);
        }
        match late {
            Some([since, until, at]) if from == 1 && (since..until).contains(&now) => Some(at),
            _ => Some(now + WAY),
        }
    });
    times
}

/// The spacings in microseconds, each with the millisecond of its beginning, and the number of
/// packets that left with each. A spacing is the time between departures minus the packet's
/// transmission time on the sender's link.
fn spacings(times: &[Time]) -> Vec<(u64, u64, usize)> {
    // After the probe and its ACK, two packets without a spacing.
    let transmission = times[2].saturating_since(times[1]);
    let mut found: Vec<(u64, u64, usize)> = Vec::new();
    for pair in times[1..].windows(2) {
        let spacing = pair[1]
            .saturating_since(pair[0])
            .saturating_sub(transmission);
        let micros = spacing.as_nanos() / 1_000;
        match found.last_mut() {
            Some((last, _, packets)) if *last == micros => *packets += 1,
            _ => found.push((micros, pair[0].as_nanos() / 1_000_000, 1)),
        }
    }
    found
}

/// The spacings alone, and since when.
fn changes(script: &Script<'_>, until_ms: u64) -> Vec<(u64, u64)> {
    since(&spacings(&play(script, Time::from_millis(until_ms))))
}

fn since(found: &[(u64, u64, usize)]) -> Vec<(u64, u64)> {
    found.iter().map(|&(micros, at, _)| (micros, at)).collect()
}

/// One packet measures the round trip. After its ACK the first round begins, without a spacing:
/// packets leave as fast as the link of 100 Mb/s carries them.
#[test]
fn a_probe_measures_the_round_trip() {
    let times = play(&Script::default(), Time::from_millis(30));
    assert_eq!(times[..2], [Time::ZERO, Time::from_millis(10)]);
    let apart = times[2].saturating_since(times[1]);
    // 1000 bytes and the headers.
    assert!(
        apart >= Span::from_micros(80) && apart < Span::from_micros(90),
        "{apart}"
    );
    assert!(times[1..].windows(2).all(|pair| pair[1] == pair[0] + apart));
}

/// Rounds begin every 10 ms from 10 ms on. Each is reported 1.25 ms into the next one. The first
/// lost a packet, which is known at 31.25 ms: the spacing becomes 50 us. The second, also with a
/// loss, is known 10 ms later: 100 us. Later rounds lose nothing, and each subtracts 2 us.
#[test]
fn a_loss_doubles_the_spacing_and_a_clean_round_subtracts_two() {
    let script = Script {
        lost_ms: &[15, 25],
        ..Script::default()
    };
    let expected = [(0, 10), (50, 31), (100, 41), (98, 51), (96, 61), (94, 71)];
    assert_eq!(changes(&script, 80), expected);
    // The reaction answers the losses of rounds begun before it: one reaction for both.
    let settled = Script {
        settles: true,
        ..script
    };
    let expected = [(0, 10), (50, 31), (48, 61), (46, 71)];
    assert_eq!(changes(&settled, 80), expected);
}

/// The report of the second round, due at 41 ms, arrives at 50 ms. Of 122 packets 121 arrived,
/// while later rounds sent 80 and 76: compared with those, 121 would be no loss.
#[test]
fn a_late_report_is_compared_with_its_own_round() {
    let script = Script {
        lost_ms: &[15, 25],
        late_ms: Some([36, 46, 50]),
        ..Script::default()
    };
    let found = spacings(&play(&script, Time::from_millis(70)));
    let expected = [(0, 10), (50, 31), (100, 50), (98, 51), (96, 61)];
    assert_eq!(since(&found), expected);
    // From 10 to 31 ms and from 31 to 50 ms: more than twice 121, less than twice 121.
    assert!(found[0].2 > 242 && found[1].2 < 160, "{found:?}");
    // Later than the report of the third round, which had no loss, it is ignored, and it does not
    // count for the third round.
    let overtaken = Script {
        late_ms: Some([36, 46, 53]),
        ..script
    };
    let expected = [(0, 10), (50, 31), (48, 51), (46, 61), (44, 71)];
    assert_eq!(changes(&overtaken, 80), expected);
}

/// The spacing fell from 50 us at 61 and 71 ms, and a packet of the round that began at 60 ms is
/// lost at 65 ms. With damping the spacing returns to its earlier value; without it the spacing
/// doubles.
#[test]
fn a_loss_after_a_decrease_returns_when_damped() {
    for (is_damped, after) in [(true, 50), (false, 92)] {
        let script = Script {
            is_damped,
            settles: true,
            lost_ms: &[15, 65],
            ..Script::default()
        };
        let expected = [
            (0, 10),
            (50, 31),
            (48, 61),
            (46, 71),
            (after, 81),
            (after - 2, 111),
        ];
        assert_eq!(changes(&script, 120), expected, "{is_damped}");
    }
}
