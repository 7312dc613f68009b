//! Controllers of the table on the datagram transport.

use bytes::Bytes;
use comity_congestion::table::{self, Parameters, Setup, TABLE, Value};
use comity_link::{Limit, LinkConfig, Queue};
use comity_testkit::datagram::Pair;
use comity_transport::datagram::{Config, Connection};
use comity_transport::timeline::{
    Deliver, DropPolicy, Importance, Outgoing, Reliability, StreamId,
};
use comity_units::{Rate, Seed, Span, Time};

fn pair(
    controller: &str,
    parameters: &Parameters,
    config: Config,
    path: &LinkConfig,
) -> Pair<Bytes> {
    pair_from(
        controller,
        parameters,
        config,
        path,
        comity_units::DataSize::MAX,
    )
}

fn pair_from(
    controller: &str,
    parameters: &Parameters,
    config: Config,
    path: &LinkConfig,
    initial_ssthresh: comity_units::DataSize,
) -> Pair<Bytes> {
    let row = table::find(controller).expect("a known controller");
    let ends = [0, 1].map(|end| {
        let config = Config {
            seed: Seed::new(end),
            ..config
        };
        let setup = Setup {
            initial_ssthresh,
            ..Setup::new(comity_units::DataSize::new(u64::from(config.payload)))
        };
        let controller = row.build(&setup, parameters).expect("valid parameters");
        let meter = row
            .build_meter(&setup, parameters)
            .filter(|_| end == 1)
            .map(|meter| meter.expect("valid parameters"));
        Connection::new(config, config.ack_delay, controller, meter, Time::ZERO)
            .expect("a valid config")
    });
    Pair::new(ends, [path, path], Seed::new(1))
}

fn submit(pair: &mut Pair<Bytes>, length: usize, latency: Span) {
    let now = pair.now();
    let section = Outgoing {
        stream: StreamId(0),
        importance: Importance(100),
        source_time: now,
        deadline: now + latency,
        needs: None,
        payload: Bytes::from(vec![7; length]),
    };
    pair.ends[0].submit(now, section).expect("room");
}

/// 8 Mb/s, 40 ms round trip, a queue of 60 packets.
fn path() -> LinkConfig {
    LinkConfig {
        queue: Queue::DropTail(Limit::Packets(60)),
        ..LinkConfig::new(Rate::from_mbps(8), Span::from_millis(20))
    }
}

/// The state at a key frame of 50 packets after a stream of 2 Mb/s and a pause.
#[derive(Debug)]
struct Found {
    /// Right before the pause and right after it.
    windows: [u64; 2],
    rates: [Option<Rate>; 2],
    /// What leaves in the first 40 ms, a round trip.
    let_out: u64,
    lost: u64,
}

fn after_a_pause(controller: &str, pause: Span) -> Found {
    let mut pair = pair(controller, &Parameters::new(), Config::default(), &path());
    let latency = Span::from_millis(1_000);
    for number in 0..100 {
        pair.run_until(Time::from_millis(40 * (number + 1)));
        submit(&mut pair, 10_000, latency);
    }
    pair.run_until(pair.now() + Span::from_secs(1));
    let before = pair.ends[0].statistics();
    pair.run_until(pair.now() + pause);
    assert!(pair.ends.iter().all(Connection::is_open), "{controller}");
    let after = pair.ends[0].statistics();
    submit(&mut pair, 70_000, latency);
    pair.run_until(pair.now() + Span::from_millis(40));
    let first = pair.ends[0].statistics();
    pair.run_until(pair.now() + Span::from_secs(3));
    let last = pair.ends[0].statistics();
    Found {
        windows: [before.path.window.get(), after.path.window.get()],
        rates: [before.path.pacing_rate, after.path.pacing_rate],
        let_out: first.sent.wire_bytes - after.sent.wire_bytes,
        lost: last.sent.lost_packets,
    }
}

/// An hour with keep-alives only gives no controller a larger window or a higher rate, and allows
/// no larger burst after it than a second does. The departures meet a queue of 60 packets and lose
/// nothing.
#[test]
fn an_idle_hour_earns_no_controller_anything() {
    for row in TABLE {
        let short = after_a_pause(row.name, Span::from_secs(1));
        let long = after_a_pause(row.name, Span::from_secs(3_600));
        let seen = format!("{}: {short:?}, {long:?}", row.name);
        assert!(long.windows[1] <= long.windows[0], "{seen}");
        // Beside a window, the rate is that window over the round trip, which varies a little.
        if long.windows[1] == u64::MAX {
            assert!(long.rates[1] <= long.rates[0], "{seen}");
        }
        // One packet more or less, depending on the phase of the pacing.
        assert!(long.let_out <= short.let_out + 1_480, "{seen}");
        assert!(long.let_out > 0, "{seen}");
        assert_eq!((short.lost, long.lost), (0, 0), "{seen}");
    }
}

/// Its timeout is little more than a round trip, so delayed acknowledgements would look like
/// silence. RAP still uses a path of 8 Mb/s of its own, however rare the requested
/// acknowledgements.
#[test]
fn rap_fills_a_path_of_its_own_with_delayed_acknowledgements() {
    for (ack_frequency, ack_delay) in [(1, 0), (2, 25), (4, 25)] {
        let config = Config {
            ack_frequency,
            ack_delay: Span::from_millis(ack_delay),
            ..Config::default()
        };
        let mut pair = pair("rap", &Parameters::new(), config, &path());
        run_greedily(&mut pair, Span::from_secs(20));
        let bytes = pair.ends[0].statistics().outbox.bytes.acknowledged;
        let carried = bytes as f64 * 8.0 / 20e6;
        assert!(
            (6.0..8.0).contains(&carried),
            "{carried} Mb/s, one of {ack_frequency}"
        );
    }
}

/// Full load for two seconds, little data for `pause`, and full load for eight: the loss rate of
/// the last.
fn lost_after_little(pause: Span) -> f64 {
    let config = Config {
        drop: DropPolicy::Expired,
        ..Config::default()
    };
    let mut pair = pair("steady", &Parameters::new(), config, &path());
    let run = |pair: &mut Pair<Bytes>, length: usize, apart: Span, span: Span| {
        let until = pair.now() + span;
        while pair.now() < until {
            submit(pair, length, Span::from_millis(400));
            pair.run_until(pair.now() + apart);
        }
    };
    let (apart, little) = (Span::from_millis(10), Span::from_millis(100));
    run(&mut pair, 20_000, apart, Span::from_secs(2));
    run(&mut pair, 6_000, little, pause);
    let before = pair.ends[0].statistics().sent;
    run(&mut pair, 30_000, apart, Span::from_secs(8));
    let after = pair.ends[0].statistics().sent;
    let sent = after.packets - before.packets;
    (after.lost_packets - before.lost_packets) as f64 / sent as f64
}

/// Unused capacity earns nothing: after minutes of 0.5 Mb/s, `steady` backs off as after seconds.
#[test]
fn little_data_makes_losses_count_for_no_less() {
    let short = lost_after_little(Span::from_secs(3));
    assert!((0.001..0.15).contains(&short), "{short}");
    for pause in [20, 120, 900] {
        let long = lost_after_little(Span::from_secs(pause));
        assert!(
            long > 0.0 && long < short * 1.5,
            "{long} after {pause} s, {short} after 3 s"
        );
    }
}

/// The rows of table "libra" that this test sets: no β, which would need a queue, and no
/// forgetting.
fn libra(capacity: Option<Rate>) -> Parameters {
    let parameters = Parameters::new()
        .with("y", Value::Number(0.0))
        .with("memory", Value::Span(Span::MAX));
    match capacity {
        Some(rate) => parameters.with("capacity", Value::Rate(rate)),
        None => parameters,
    }
}

const SEGMENT: f64 = 1_423.0;

/// The window in segments, and the acknowledged section bytes.
fn state(pair: &Pair<Bytes>) -> (f64, u64) {
    let statistics = pair.ends[0].statistics();
    let window = statistics.path.window.get() as f64 / SEGMENT;
    (window, statistics.outbox.bytes.acknowledged)
}

/// Lets time pass with unlimited data to send.
fn run_greedily(pair: &mut Pair<Bytes>, span: Span) {
    let until = pair.now() + span;
    while pair.now() < until {
        while pair.ends[0].statistics().outbox.bytes.queued < 1_000_000 {
            submit(pair, 50_000, Span::from_secs(3_600));
        }
        pair.run_until((pair.now() + Span::from_millis(5)).min(until));
    }
}

/// The paper's figure 2 and equation (1), with β = 0, literally: an acknowledged segment adds
/// `a / window` with `a = X · C · RTT² / (RTT + A)`. `window²` therefore grows by `2 · a` for each,
/// and a loss leaves `1 − B / (2 · (RTT + A))` of the window. With X = 2, A = B = 1 s and 40 ms
/// that is a = 0.00308 · C in Mb/s, and 0.519.
#[test]
fn libra_follows_its_equations_on_sections() {
    const ROUND_TRIP: f64 = 0.04;
    let full = Config {
        reliability: Reliability::Full,
        drop: DropPolicy::Never,
        // No data waits at the receiver and uses up its room.
        deliver: Deliver::Early,
        ack_frequency: 1,
        ..Config::default()
    };
    // With a known capacity, on a link without queueing; and with an estimate, on a link of that
    // capacity, half filled by the window.
    for (given, link) in [(Some(100), 1_000), (None, 20)] {
        let path = LinkConfig::new(Rate::from_mbps(link), Span::from_millis(20));
        let parameters = libra(given.map(Rate::from_mbps));
        let ssthresh = comity_units::DataSize::new(20 * 1_423);
        let mut pair = pair_from("libra", &parameters, full, &path, ssthresh);
        run_greedily(&mut pair, Span::from_secs(2));
        let capacity = pair.ends[0].capacity().expect("known by now").as_mbps_f64();
        match given {
            Some(given) => assert!((capacity - given as f64).abs() < 1e-9),
            None => assert!(
                (capacity / 20.0 - 1.0).abs() < 0.05,
                "{capacity} of 20 Mb/s"
            ),
        }
        let step = 2.0 * capacity * ROUND_TRIP * ROUND_TRIP / (ROUND_TRIP + 1.0);
        let check_growth = |pair: &mut Pair<Bytes>, seconds: u64| {
            let (before, acked_before) = state(pair);
            run_greedily(pair, Span::from_secs(seconds));
            let (after, acked) = state(pair);
            let segments = (acked - acked_before) as f64 / SEGMENT;
            let expected = 2.0 * step * segments;
            let found = after * after - before * before;
            assert!(
                (found / expected - 1.0).abs() < 0.08,
                "{given:?}: window from {before} to {after}, squares {found} apart for {expected}"
            );
            // The calendar of pairs sends one window per round trip.
            let rounds = seconds as f64 / ROUND_TRIP;
            let full = rounds * (before + after) / 2.0;
            assert!(
                (0.8..1.05).contains(&(segments / full)),
                "{segments} of {full} segments"
            );
        };
        check_growth(&mut pair, 10);
        let (before, _) = state(&pair);
        let now = pair.now();
        pair.set_outage(now + Span::from_millis(10), now + Span::from_millis(14));
        let mut after = before;
        for _ in 0..40 {
            run_greedily(&mut pair, Span::from_millis(5));
            let (window, _) = state(&pair);
            if window < before * 0.9 {
                after = window;
                break;
            }
        }
        let left = 1.0 - 1.0 / (2.0 * (ROUND_TRIP + 1.0));
        assert!(
            (after / before / left - 1.0).abs() < 0.03,
            "{given:?}: {before} became {after}, {left} of it was expected"
        );
        run_greedily(&mut pair, Span::from_secs(1));
        check_growth(&mut pair, 10);
        assert!(pair.violations.is_empty(), "{:?}", pair.violations);
    }
}

/// RFC 5348, section 4.4: after an idle time, at least the recover rate remains, `W_init / R`.
/// `W_init` is 4,380 bytes plus headers, and the smoothed round trip is within an acknowledgement
/// delay of 40 ms.
#[test]
fn an_idle_hour_leaves_tfrc_its_recover_rate() {
    let found = after_a_pause("tfrc", Span::from_secs(3_600));
    let recover = Rate::of(comity_units::DataSize::new(4_380), Span::from_millis(40));
    for rate in found.rates {
        let rate = rate.expect("a controller that paces");
        // Without losses it is less than twice that once halving ends.
        assert!(rate >= recover.mul_f64(0.9), "{found:?}");
        assert!(rate <= recover.mul_f64(2.1), "{found:?}");
    }
}
