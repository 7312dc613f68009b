//! Detects that the path of a connection carries less than the source produces.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use comity_stream::{PeerStatistics, Snapshot};
use comity_units::Rate;

use super::advice::allows_retransmission;

/// How long, in seconds, a path must be too narrow; the second value applies after a silence of the
/// peer. A connection needs the first seconds to find its rate, and the same time after an outage.
const LASTS: f64 = 5.0;
const LASTS_BEHIND_SILENCE: f64 = 10.0;
/// The minimum number of dropped sections in each half of that time, and the maximum number of
/// submitted sections for each dropped one.
const MIN_DROPS: u64 = 5;
const MIN_SHARE: u64 = 20;
/// A target that exceeds all earlier ones by this factor is still growing.
const RISE: f64 = 1.1;
/// The share of the target that sections can use; headers and retransmissions use the rest. The
/// advice leaves a little more room.
const USABLE: f64 = 0.95;
const ADVISED: f64 = 0.9;
/// A target of at least this share of the maximum rate is bounded by the maximum rate, less the
/// share of headers and of losses.
const CAPPED: f64 = 0.85;
/// The maximum number of connections to check. By then the user has seen the warning.
const MOST: usize = 64;

/// Finds narrow paths, and reports each once.
///
/// Dropped sections alone do not prove a narrow path: an outage, a short latency and a burst of the
/// source cause them too. A path is narrow if sections are dropped continuously while the peer
/// responds, and if the rate of the controller stays below that of the source. Totals at
/// half-second intervals show whether the peer responds. The transport detects the losses of an
/// outage only when the outage is over, and a warning must not come before.
#[derive(Debug)]
pub(crate) struct NarrowPaths {
    paths: BTreeMap<String, Path>,
    /// The maximum rate of the URI (`maxbw`).
    max_rate: Rate,
}

#[derive(Debug, Default)]
struct Path {
    samples: VecDeque<Sample>,
    was_silent: bool,
    is_reported: bool,
}

/// A connection at one moment.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at_s: f64,
    /// The number of bytes that the source has produced.
    source_bytes: u64,
    submitted: u64,
    arrived: u64,
    /// The number of sections dropped for lack of rate or time before they were completely sent.
    dropped: u64,
    target_mbps: Option<f64>,
}

impl NarrowPaths {
    /// For connections that send at most at this rate.
    pub(crate) const fn new(max_rate: Rate) -> Self {
        Self {
            paths: BTreeMap::new(),
            max_rate,
        }
    }

    /// The warnings for the connections of the output. Called every half second.
    pub(crate) fn judge(&mut self, snapshot: &Snapshot) -> Vec<String> {
        let whole = snapshot.passed.whole.values();
        let source_bytes = whole.map(|count| count.bytes).sum();
        let mut warnings = Vec::new();
        for peer in &snapshot.output.connections {
            if self.paths.len() >= MOST && !self.paths.contains_key(&peer.peer) {
                continue;
            }
            let path = self.paths.entry(peer.peer.clone()).or_default();
            if path.is_reported {
                continue;
            }
            path.add(sample(snapshot.elapsed_s, source_bytes, peer));
            if can_be_punctual(peer)
                && let Some(text) = path.judge(self.max_rate)
            {
                path.is_reported = true;
                warnings.push(format!("{}: {text}", peer.peer));
            }
        }
        warnings
    }
}

/// Whether sections within the rate of the path arrive on time.
fn can_be_punctual(peer: &PeerStatistics) -> bool {
    let latency = Duration::from_secs_f64(peer.latency_ms / 1e3);
    let round_trip = peer.statistics.path.min_rtt_ms.unwrap_or(0.0);
    allows_retransmission(latency, Duration::from_secs_f64(round_trip / 1e3))
}

fn sample(at_s: f64, source_bytes: u64, peer: &PeerStatistics) -> Sample {
    let sections = &peer.statistics.sent.sections;
    Sample {
        at_s,
        source_bytes,
        submitted: sections.submitted,
        arrived: sections.acknowledged,
        dropped: sections.shed + sections.expired_unsent + sections.infeasible,
        target_mbps: peer.statistics.path.target_mbps,
    }
}

impl Sample {
    /// Whether sections were dropped continuously between `then` and now.
    const fn drops_since(&self, then: &Self) -> bool {
        let dropped = self.dropped.saturating_sub(then.dropped);
        let submitted = self.submitted.saturating_sub(then.submitted);
        dropped >= MIN_DROPS && MIN_SHARE * dropped >= submitted
    }
}

impl Path {
    fn add(&mut self, sample: Sample) {
        if let Some(last) = self.samples.back() {
            let is_another = sample.submitted < last.submitted;
            // At the start of a connection, nothing can have arrived yet.
            let is_silent = sample.arrived == last.arrived
                && last.arrived > 0
                && sample.submitted > last.submitted;
            if is_another || is_silent {
                self.samples.clear();
            }
            self.was_silent = !is_another && (self.was_silent || is_silent);
        }
        self.samples.push_back(sample);
        let lasts = self.lasts();
        // The first sample may be older, so that the samples cover the whole time.
        while self
            .samples
            .get(1)
            .is_some_and(|second| sample.at_s - second.at_s >= lasts)
        {
            self.samples.pop_front();
        }
    }

    const fn lasts(&self) -> f64 {
        match self.was_silent {
            true => LASTS_BEHIND_SILENCE,
            false => LASTS,
        }
    }

    fn judge(&self, max_rate: Rate) -> Option<String> {
        let half = self.samples.len() / 2;
        let (first, middle) = (self.samples.front()?, self.samples.get(half)?);
        let last = self.samples.back()?;
        let lasted = last.at_s - first.at_s;
        if lasted < self.lasts() || !middle.drops_since(first) || !last.drops_since(middle) {
            return None;
        }
        let bytes = last.source_bytes.saturating_sub(first.source_bytes);
        let source = bytes as f64 * 8e-6 / lasted;
        let targets = self.samples.iter().map(|sample| sample.target_mbps);
        let before = targets.clone().take(half).flatten().fold(0.0, f64::max);
        let most = targets.clone().skip(half).flatten().fold(0.0, f64::max);
        let least = targets.skip(half).flatten().reduce(f64::min)?;
        let is_rising = last.target_mbps? > before * RISE;
        if is_rising || most * USABLE >= source {
            return None;
        }
        let max_mbps = max_rate.as_bps() as f64 / 1e6;
        if least >= max_mbps * CAPPED {
            return Some(format!(
                "maxbw={max_mbps:.2}Mbps in the URI is less than the source needs: {} of {} sections were dropped in the \
                 last {lasted:.0} s. The source has {source:.2} Mb/s, and headers and retransmissions come on top: raise \
                 maxbw, or set the encoder so that all of it has at most {:.2} Mb/s",
                last.dropped.saturating_sub(first.dropped),
                last.submitted.saturating_sub(first.submitted),
                least * ADVISED,
            ));
        }
        Some(format!(
            "the path carries less than the source produces: {} of {} sections were dropped in the last {lasted:.0} s. \
             The source has {source:.2} Mb/s: set the encoder so that all of it has at most {:.2} Mb/s. On a link \
             that loses packets and has no other traffic, cc=fixed&maxbw=RATE in the URI sends at a fixed rate",
            last.dropped.saturating_sub(first.dropped),
            last.submitted.saturating_sub(first.submitted),
            least * ADVISED,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity::Statistics;
    use comity_stream::{Count, Side};

    /// The state of a connection at one second: sections submitted, arrived and dropped so far, and
    /// the target in Mb/s.
    type At = (u64, u64, u64, f64);

    /// Checks a source with 100 sections per second and this rate in Mb/s, every half second.
    fn judged(
        source: f64,
        seconds: u32,
        latency_ms: f64,
        at: impl Fn(f64) -> At,
    ) -> Vec<(f64, String)> {
        judged_below(Rate::MAX, source, seconds, latency_ms, at)
    }

    /// The same with this maximum rate.
    fn judged_below(
        max_rate: Rate,
        source: f64,
        seconds: u32,
        latency_ms: f64,
        at: impl Fn(f64) -> At,
    ) -> Vec<(f64, String)> {
        let mut paths = NarrowPaths::new(max_rate);
        let mut warnings = Vec::new();
        for check in 0..seconds * 2 {
            let now = f64::from(check) / 2.0;
            let (submitted, arrived, shed, target) = at(now);
            let mut statistics = Statistics::default();
            statistics.path.target_mbps = Some(target);
            statistics.path.min_rtt_ms = Some(40.0);
            statistics.sent.sections.submitted = submitted;
            statistics.sent.sections.acknowledged = arrived;
            statistics.sent.sections.shed = shed;
            let mut snapshot = Snapshot {
                elapsed_s: now,
                output: Side {
                    connections: vec![PeerStatistics {
                        peer: "192.0.2.1:9000".into(),
                        latency_ms,
                        statistics,
                    }],
                    ..Side::default()
                },
                ..Snapshot::default()
            };
            let bytes = (source * 125_000.0 * now) as u64;
            snapshot.passed.whole.insert(
                "P",
                Count {
                    sections: submitted,
                    bytes,
                },
            );
            warnings.extend(paths.judge(&snapshot).into_iter().map(|text| (now, text)));
        }
        warnings
    }

    fn per_second(now: f64, rate: f64) -> u64 {
        (now * rate) as u64
    }

    /// A path with this target that drops a tenth continuously.
    fn drops_a_tenth(target: impl Fn(f64) -> f64) -> impl Fn(f64) -> At {
        move |now| {
            let (submitted, dropped) = (per_second(now, 100.0), per_second(now, 10.0));
            (submitted, submitted - dropped, dropped, target(now))
        }
    }

    #[test]
    fn a_narrow_path_is_reported_once_with_a_rate_that_fits() {
        let warnings = judged(2.0, 60, 200.0, drops_a_tenth(|_| 1.5));
        let [(at, text)] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        assert_eq!(*at, 5.0);
        for part in [
            "192.0.2.1:9000: the path carries less than the source produces",
            "50 of 500 sections",
            "The source has 2.00 Mb/s",
            "at most 1.35 Mb/s",
        ] {
            assert!(text.contains(part), "{text}");
        }
        // A source that follows the advice gets no further advice.
        assert_eq!(judged(1.35, 60, 200.0, drops_a_tenth(|_| 1.5)), []);
    }

    #[test]
    fn a_maximum_rate_below_the_source_is_no_narrow_path() {
        let text = |max_kbps: u64| {
            let max_rate = Rate::from_kbps(max_kbps);
            let warnings = judged_below(max_rate, 2.0, 60, 200.0, drops_a_tenth(|_| 1.5));
            let [(_, text)] = &warnings[..] else {
                panic!("{warnings:?}")
            };
            text.clone()
        };
        // Headers take 6 % of the maximum.
        let capped = text(1_600);
        for part in [
            "192.0.2.1:9000: maxbw=1.60Mbps in the URI",
            "50 of 500 sections",
            "The source has 2.00 Mb/s",
            "at most 1.35 Mb/s",
        ] {
            assert!(capped.contains(part), "{capped}");
        }
        assert!(!capped.contains("the path"), "{capped}");
        // The path carries less than the maximum.
        assert!(text(2_000).contains("the path carries less than the source produces"));
    }

    #[test]
    fn a_path_with_room_for_the_source_is_not_narrow() {
        // Bursts, or sections of a damaged source.
        assert_eq!(judged(0.5, 60, 200.0, drops_a_tenth(|_| 402.53)), []);
        assert_eq!(judged(2.0, 60, 200.0, drops_a_tenth(|_| 2.2)), []);
        // Less than a twentieth is dropped.
        let few = |now| {
            let (submitted, dropped) = (per_second(now, 100.0), per_second(now, 4.0));
            (submitted, submitted - dropped, dropped, 1.5)
        };
        assert_eq!(judged(2.0, 60, 200.0, few), []);
        // No retransmission can be on time: the latency advice covers this case.
        assert_eq!(judged(2.0, 60, 50.0, drops_a_tenth(|_| 1.5)), []);
    }

    #[test]
    fn sections_missing_at_the_source_are_no_sign_of_a_narrow_path() {
        let mut statistics = Statistics::default();
        statistics.sent.sections.cancelled = 1_000;
        statistics.sent.sections.dependency = 1_000;
        statistics.sent.sections.expired_in_network = 1_000;
        let peer = PeerStatistics {
            peer: String::new(),
            latency_ms: 200.0,
            statistics,
        };
        assert_eq!(sample(0.0, 0, &peer).dropped, 0);
    }

    #[test]
    fn a_connection_that_finds_its_rate_is_not_narrow() {
        // The target rises by 0.3 Mb/s each second.
        let starts = |now: f64| {
            let dropped = per_second(now.min(4.5), 30.0);
            let submitted = per_second(now, 100.0);
            (
                submitted,
                submitted - dropped,
                dropped,
                (0.3 * now).min(20.0),
            )
        };
        assert_eq!(judged(2.0, 60, 200.0, starts), []);
    }

    #[test]
    fn an_outage_is_not_a_narrow_path() {
        // From 20 s to 22 s nothing arrives. The controller then needs 6 s to find its rate again,
        // and half of the sections are dropped in that time.
        let outage = |now: f64| {
            let submitted = per_second(now, 100.0);
            let during = per_second((now - 20.0).clamp(0.0, 2.0), 100.0);
            let behind = per_second((now - 22.0).clamp(0.0, 6.0), 50.0);
            let dropped = during + behind;
            let target = if (20.0..28.0).contains(&now) {
                0.8
            } else {
                20.0
            };
            (submitted, submitted - dropped, dropped, target)
        };
        assert_eq!(judged(2.0, 60, 200.0, outage), []);
        // A path that is narrow after the outage is reported.
        let narrow = |now: f64| match now < 22.0 {
            true => outage(now),
            false => {
                let submitted = per_second(now, 100.0);
                let dropped = 200 + per_second(now - 22.0, 50.0);
                (submitted, submitted - dropped, dropped, 0.8)
            }
        };
        let warnings = judged(2.0, 60, 200.0, narrow);
        assert!(
            matches!(warnings[..], [(at, _)] if (31.0..34.0).contains(&at)),
            "{warnings:?}"
        );
    }

    #[test]
    fn a_silent_peer_is_no_sign_of_a_narrow_path() {
        let dead = |now: f64| {
            let submitted = per_second(now, 100.0);
            let arrived = per_second(now.min(3.0), 100.0);
            (submitted, arrived, submitted - arrived, 0.5)
        };
        assert_eq!(judged(2.0, 60, 200.0, dead), []);
    }
}
