//! A connection under a controller with a token bucket: which packets leave, and when.

use comity_congestion::{Controller, Decision, Event, Pacing, Phase};
use comity_transport::datagram::{Config, Connection};
use comity_transport::timeline::{DropPolicy, Elided, Importance, Outgoing, StreamId};
use comity_units::{DataSize, Rate, Span, Time};

/// 100 kB/s on average, ten times that in bursts, 10 kB of tokens and of borrowing.
#[derive(Debug)]
struct Bucket;

impl Controller for Bucket {
    fn on_event(&mut self, _event: Event<'_>) {}

    fn decision(&self) -> Decision {
        Decision {
            window: DataSize::MAX,
            pacing: Pacing::Bucket {
                rate: Rate::from_kbps(800),
                peak: Rate::from_mbps(8),
                depth: DataSize::new(10_000),
                fair: Rate::from_kbps(800),
                proven: Rate::from_kbps(800),
            },
            phase: Phase::CongestionAvoidance,
            ..Decision::default()
        }
    }
}

fn connection() -> Connection<Elided> {
    let config = Config {
        drop: DropPolicy::Expired,
        ..Config::default()
    };
    let ack_delay = Span::from_millis(25);
    Connection::new(config, ack_delay, Box::new(Bucket), None, Time::ZERO).unwrap()
}

fn submit(connection: &mut Connection<Elided>, length: u32, importance: u8, deadline: Time) {
    let section = Outgoing {
        stream: StreamId(0),
        importance: Importance(importance),
        source_time: Time::ZERO,
        deadline,
        needs: None,
        payload: Elided(length),
    };
    connection.submit(Time::ZERO, section).unwrap();
}

/// Sends all that may leave until `end`, without any ACK; returns the bytes of payload.
fn sent_until(connection: &mut Connection<Elided>, from: Time, end: Time) -> u64 {
    let (mut now, mut bytes, mut turns) = (from, 0, 0);
    while now <= end {
        connection.on_timer(now);
        while let Some(sent) = connection.poll_transmit(now, &mut Vec::new()) {
            bytes += u64::from(sent.payload);
        }
        turns += 1;
        assert!(turns < 5_000, "its timer stays at {now} for ever");
        now = connection.next_timer().max(now + Span::from_nanos(1));
    }
    bytes
}

/// The tokens in the bucket, 200 ms of refill, and the borrowing limit for the most important
/// section; up to one packet more or less.
#[test]
fn the_token_bucket_limits_departures() {
    for (importance, owed) in [(9, 10_000), (1, 0)] {
        let mut connection = connection();
        // Both importances are known, and the other section is soon sent.
        submit(&mut connection, 1, 10 - importance, Time::from_millis(1));
        submit(&mut connection, 200_000, importance, Time::from_millis(400));
        let end = Time::from_millis(200);
        let sent = sent_until(&mut connection, Time::ZERO, end);
        let expected = 10_000 + 20_000 + owed;
        assert!(
            (expected - 1_500..expected + 3_000).contains(&sent),
            "importance {importance}: {sent} for {expected}"
        );
    }
}

/// A burst leaves no faster than its deadline requires: 10 kB with two seconds of time are spread
/// at the rate.
#[test]
fn sections_with_time_are_spread() {
    let mut connection = connection();
    submit(&mut connection, 10_000, 9, Time::from_secs(2));
    let sent = sent_until(&mut connection, Time::ZERO, Time::from_millis(50));
    assert!((4_000..9_000).contains(&sent), "{sent}");
    let mut connection = self::connection();
    submit(&mut connection, 10_000, 9, Time::from_millis(40));
    let sent = sent_until(&mut connection, Time::ZERO, Time::from_millis(39));
    assert!(sent >= 10_000, "{sent}");
}

#[test]
fn a_debt_stays_behind_on_the_old_path() {
    let mut connection = connection();
    submit(&mut connection, 200_000, 9, Time::from_secs(5));
    let end = Time::from_millis(400);
    sent_until(&mut connection, Time::ZERO, end);
    let before = sent_until(&mut connection, end, end + Span::from_millis(20));
    connection.on_new_path(end + Span::from_millis(20), Box::new(Bucket));
    let begin = end + Span::from_millis(21);
    let after = sent_until(&mut connection, begin, begin + Span::from_millis(20));
    assert!(before < 5_000, "{before}");
    assert!(after >= before, "{after} after {before}");
}
