//! How soon the end of a connection is known on paths that lose packets.

use comity_link::{LinkConfig, Loss, LossModel, LossPlace};
use comity_testkit::datagram::Pair;
use comity_transport::datagram::Config;
use comity_transport::timeline::{DropPolicy, Importance, Outgoing, StreamId};
use comity_units::{Rate, Seed, Span};

use super::ends;

/// How long after the last deadline the sender of three seconds of video knows how every section
/// fared; `None` if it takes more than 20 s.
fn end_known(loss: f64, seed: u64) -> Option<Span> {
    let config = Config {
        drop: DropPolicy::Expired,
        ..Config::default()
    };
    let link = LinkConfig {
        losses: vec![Loss {
            model: LossModel::Bernoulli(loss),
            place: LossPlace::AfterTransmission,
        }],
        ..LinkConfig::new(Rate::from_mbps(20), Span::from_millis(60))
    };
    let ends = ends("steady", config);
    let mut pair = Pair::new(ends, [&link, &link], Seed::new(seed));
    let latency = Span::from_millis(100);
    for number in 0..75_u32 {
        let now = pair.now();
        let section = Outgoing {
            stream: StreamId(0),
            importance: Importance(9),
            source_time: now,
            deadline: now + latency,
            needs: None,
            payload: bytes::Bytes::from(vec![0; 1_000 + 53 * number as usize]),
        };
        pair.ends[0].submit(now, section).expect("there is room");
        pair.run_until(now + Span::from_millis(40));
    }
    pair.ends[0].finish();
    let last = pair.now() + (Span::from_millis(60));
    while pair.now() < last + Span::from_secs(20) {
        pair.run_until(pair.now() + Span::from_millis(1));
        if pair.ends[0].is_settled() {
            return Some(pair.now().saturating_since(last));
        }
    }
    None
}

/// Pings that keep the path alive do not keep a connection from its end.
#[test]
fn the_end_is_known_where_a_round_trip_takes_longer_than_the_keep_alive_interval() {
    let config = Config::default();
    let link = LinkConfig::new(Rate::from_mbps(20), config.keep_alive);
    let mut pair = Pair::new(ends("steady", config), [&link, &link], Seed::new(1));
    pair.run_until(pair.now() + Span::from_secs(10));
    pair.ends[0].finish();
    pair.run_until(pair.now() + Span::from_secs(10));
    assert!(pair.ends[0].is_settled());
}

/// A sender waits a second by default (`linger`). With probes that back off, 3 of
/// 1,000 ends came later than that at 10 % loss in each direction, and 66 at 20 %.
#[test]
fn the_end_is_known_within_a_second_on_paths_that_lose_packets() {
    let second = Span::from_secs(1);
    for (loss, may_be_later) in [(0.0, 0), (0.1, 0), (0.2, 6)] {
        let ends = (0..400).map(|seed| end_known(loss, seed).expect("within 20 s"));
        let times: Vec<Span> = ends.collect();
        let later = times.iter().filter(|time| **time > second).count();
        assert!(later <= may_be_later, "{later} of 400 at a loss of {loss}");
        // What left last was 60 ms old then, and its answer takes a round trip of 120 ms.
        let first = times.iter().min().expect("400 times");
        assert!(*first > Span::from_millis(60), "{first}");
    }
}
