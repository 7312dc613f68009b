//! Advice for a latency that is too short for the round-trip time of the connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use comity_stream::plain;

/// The maximum number of connections to check. By then the user has seen the advice.
const MOST: usize = 64;
/// The advised latency in round trips. Three to four round trips leave time for retransmissions.
const ROUND_TRIPS: u32 = 4;

/// Whether a lost packet can be retransmitted in time.
pub(super) fn allows_retransmission(latency: Duration, round_trip: Duration) -> bool {
    latency >= round_trip.mul_f64(1.5)
}

/// Checks each connection once.
#[derive(Debug, Default)]
pub(crate) struct LatencyAdvice {
    judged: BTreeMap<SocketAddr, Judged>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    /// The round trip was too long once. The first sample may include a queue.
    Once,
    Done,
}

impl LatencyAdvice {
    /// Whether this peer is not checked yet.
    pub(crate) fn is_open(&self, peer: SocketAddr) -> bool {
        match self.judged.get(&peer) {
            Some(judged) => *judged == Judged::Once,
            None => self.judged.len() < MOST,
        }
    }

    /// The advice for a connection with this latency and minimum round-trip time, at its second
    /// check.
    ///
    /// A loss is detected after one round trip, and the retransmission takes half a round trip.
    /// With a latency below 1.5 round trips, every retransmission is late; below half a round trip,
    /// every section is late.
    pub(crate) fn judge(
        &mut self,
        peer: SocketAddr,
        latency: Duration,
        round_trip: Duration,
    ) -> Option<String> {
        let is_enough = allows_retransmission(latency, round_trip);
        let before = self.judged.insert(peer, Judged::Done);
        if is_enough || before == Some(Judged::Done) {
            return None;
        }
        if before.is_none() {
            self.judged.insert(peer, Judged::Once);
            return None;
        }
        let one_way = round_trip / 2;
        let wrong = match latency <= one_way {
            true => format!(
                "the path alone takes {} ms, half of a round trip: hardly any section can be on time",
                one_way.as_millis()
            ),
            false => format!(
                "a round trip takes {} ms: lost packets cannot be retransmitted in time",
                round_trip.as_millis()
            ),
        };
        let advised = (round_trip * ROUND_TRIPS).as_millis().next_multiple_of(10);
        Some(format!(
            "{}: the latency is {} ms and {wrong}. Unlike SRT's, it includes the delay of the path; \
             latency={advised}ms at either end, four round trips, leaves room",
            plain(peer),
            latency.as_millis(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(latency: u64, round_trips: &[u64]) -> Vec<Option<String>> {
        let peer = SocketAddr::from(([192, 0, 2, 1], 9_000));
        let mut advice = LatencyAdvice::default();
        let latency = Duration::from_millis(latency);
        let judge = |&round_trip: &u64| {
            let open = advice.is_open(peer);
            let text = advice.judge(peer, latency, Duration::from_millis(round_trip));
            assert!(open || text.is_none());
            text
        };
        round_trips.iter().map(judge).collect()
    }

    #[test]
    fn a_latency_is_judged_once_at_its_second_check() {
        assert_eq!(judged(150, &[100, 100, 100]), [None, None, None]);
        // A queue that disappears, and a later queue.
        assert_eq!(judged(150, &[300, 100, 300]), [None, None, None]);
        let text = judged(120, &[302, 301, 301]);
        assert_eq!((&text[0], &text[2]), (&None, &None));
        let text = text[1].clone().expect("advice");
        assert!(
            text.contains("192.0.2.1:9000: the latency is 120 ms and the path alone takes 150 ms"),
            "{text}"
        );
        assert!(text.contains("latency=1210ms"), "{text}");
        let text = judged(149, &[100, 100])[1].clone().expect("advice");
        assert!(text.contains("a round trip takes 100 ms"), "{text}");
        assert!(text.contains("latency=400ms"), "{text}");
    }
}
