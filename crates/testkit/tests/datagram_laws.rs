//! Laws of the table on the datagram transport.

use bytes::Bytes;
use comity_congestion::table::{self, Parameters, Setup, TABLE};
use comity_link::{Limit, LinkConfig, Queue};
use comity_testkit::datagram::Pair;
use comity_transport::datagram::{Config, Connection};
use comity_transport::timeline::{Importance, Outgoing, StreamId};
use comity_units::{Rate, Seed, Span, Time};

fn pair(law: &str, parameters: &Parameters, config: Config, path: &LinkConfig) -> Pair<Bytes> {
    let row = table::find(law).expect("a known controller");
    let ends = [0, 1].map(|end| {
        let config = Config {
            seed: Seed::new(end),
            ..config
        };
        let setup = Setup::new(comity_units::Bytes::new(u64::from(config.payload)));
        let law = row.build(&setup, parameters).expect("valid parameters");
        let meter = row
            .build_meter(&setup, parameters)
            .filter(|_| end == 1)
            .map(|meter| meter.expect("valid parameters"));
        Connection::new(config, config.ack_delay, law, meter, Time::ZERO).expect("a valid config")
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

/// 8 Mb/s, 40 ms there and back, a queue of 60 packets.
fn path() -> LinkConfig {
    LinkConfig {
        queue: Queue::DropTail(Limit::Packets(60)),
        ..LinkConfig::new(Rate::from_mbps(8), Span::from_millis(20))
    }
}

/// What a key frame of 50 packets finds after a stream of 2 Mb/s and a pause.
#[derive(Debug)]
struct Found {
    /// Right before the pause and right after it.
    windows: [u64; 2],
    rates: [Option<Rate>; 2],
    /// What leaves in the first 40 ms, a round trip.
    let_out: u64,
    lost: u64,
}

fn after_a_pause(law: &str, pause: Span) -> Found {
    let mut pair = pair(law, &Parameters::new(), Config::default(), &path());
    let latency = Span::from_millis(1_000);
    for number in 0..100 {
        pair.run_until(Time::from_millis(40 * (number + 1)));
        submit(&mut pair, 10_000, latency);
    }
    pair.run_until(pair.now() + Span::from_secs(1));
    let before = pair.ends[0].statistics();
    pair.run_until(pair.now() + pause);
    assert!(pair.ends.iter().all(Connection::is_open), "{law}");
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

/// An hour in which an end says nothing but that it is still there gives no law a larger window or a higher rate, and lets
/// no more leave at once after it than a second does. What leaves meets a queue of 60 packets and loses nothing.
#[test]
fn an_idle_hour_earns_no_law_anything() {
    for row in TABLE {
        let short = after_a_pause(row.name, Span::from_secs(1));
        let long = after_a_pause(row.name, Span::from_secs(3_600));
        let seen = format!("{}: {short:?}, {long:?}", row.name);
        assert!(long.windows[1] <= long.windows[0], "{seen}");
        // Beside a window the rate is that window over the round trip, which moves a little.
        if long.windows[1] == u64::MAX {
            assert!(long.rates[1] <= long.rates[0], "{seen}");
        }
        // One packet more or less, by where the pacing of a second and of an hour begins.
        assert!(long.let_out <= short.let_out + 1_457, "{seen}");
        assert!(long.let_out > 0, "{seen}");
        assert_eq!((short.lost, long.lost), (0, 0), "{seen}");
    }
}
