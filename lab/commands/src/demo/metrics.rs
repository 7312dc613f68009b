//! Counts, rates and shares of a recording.

use std::collections::BTreeMap;

use comity_frames::Decodability;
use comity_sim::metrics::jain;

use super::clip::Kind;
use super::recording::{Fate, Flow, Recording, Sent, Setup};

/// Shares are measured after this time, or after a quarter of a short run: the controllers first
/// need to find their rates.
const SETTLING_S: f64 = 2.0;

/// The sections of one kind, by outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KindCount {
    pub(crate) kind: Kind,
    /// Submitted to the connection.
    pub(crate) sent: u64,
    /// Complete by their deadline.
    pub(crate) on_time: u64,
    /// Complete after their deadline.
    pub(crate) late: u64,
    /// Never complete.
    pub(crate) gaps: u64,
    /// On time, and so were all sections that they need.
    pub(crate) decodable: u64,
    pub(crate) bytes: ByteCount,
}

/// Bytes of sections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteCount {
    /// Submitted to the connection.
    pub(crate) sent: u64,
    /// Complete by their deadline.
    pub(crate) on_time: u64,
    /// On time, and so were all sections that they need.
    pub(crate) decodable: u64,
}

/// The rate of a flow, and its share.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowShare {
    pub(crate) name: String,
    /// The rate of arrival on the wire.
    pub(crate) mbps: f64,
    /// Its share of the sum of all rates.
    pub(crate) share: f64,
    /// The rate by max-min fairness: the video gets at most what it needs, and the others share the
    /// rest equally.
    pub(crate) fair_mbps: f64,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metrics {
    /// The kinds that occur.
    pub(crate) kinds: Vec<KindCount>,
    /// Gaps by their reason.
    pub(crate) gaps: BTreeMap<&'static str, u64>,
    /// Gaps by reason and kind.
    pub(crate) gaps_of: BTreeMap<(&'static str, Kind), u64>,
    /// Sections that the receiver did not report: 0 unless the connection was lost.
    pub(crate) unreported: u64,
    /// The flows, the video first.
    pub(crate) flows: Vec<FlowShare>,
    /// The interval over which the rates were measured, in seconds.
    pub(crate) counted: (f64, f64),
    /// Jain's index of the rates; `None` without rates.
    pub(crate) jain: Option<f64>,
    /// Jain's index of the rates divided by their fair rates.
    pub(crate) jain_of_fair: Option<f64>,
    /// The bytes of all sections.
    pub(crate) bytes: ByteCount,
    /// The bytes of sections that an equal share of the bottleneck carries during the run.
    pub(crate) equal_share_bytes: u64,
    /// The time left before the deadline at completion, in milliseconds: 1st percentile and median.
    pub(crate) slack_ms: Option<(f64, f64)>,
}

impl Metrics {
    /// Evaluates a recording.
    pub(crate) fn of(recording: &Recording) -> Self {
        let sections = &recording.sections;
        let decodable = decodable(sections);
        let kinds = Kind::ALL.map(|kind| count(kind, sections, &decodable));
        let mut gaps = BTreeMap::new();
        let mut gaps_of = BTreeMap::new();
        let mut unreported = 0;
        for section in sections {
            match section.fate {
                Fate::Gap(reason) => {
                    *gaps.entry(reason).or_default() += 1;
                    *gaps_of.entry((reason, section.kind)).or_default() += 1;
                }
                Fate::Unreported => unreported += 1,
                Fate::Complete { .. } => {}
            }
        }
        let kinds: Vec<KindCount> = kinds.into_iter().filter(|kind| kind.sent > 0).collect();
        let bytes = kinds
            .iter()
            .fold(ByteCount::default(), |sum, kind| ByteCount {
                sent: sum.sent + kind.bytes.sent,
                on_time: sum.on_time + kind.bytes.on_time,
                decodable: sum.decodable + kind.bytes.decodable,
            });
        let counted = counted(recording.length_s);
        let flows = shares(&recording.setup, &recording.flows, counted);
        let rates: Vec<f64> = flows.iter().map(|flow| flow.mbps).collect();
        let relative: Vec<f64> = flows
            .iter()
            .map(|flow| flow.mbps / flow.fair_mbps)
            .collect();
        Self {
            kinds,
            bytes,
            equal_share_bytes: recording.setup.equal_share_bytes(recording.length_s),
            gaps,
            gaps_of,
            unreported,
            jain: jain(&rates).ok(),
            jain_of_fair: jain(&relative).ok(),
            flows,
            counted,
            slack_ms: slack(sections),
        }
    }

    /// The decodable bytes, divided by the submitted bytes that an equal share could have carried.
    pub(crate) fn decodable_of_share(&self) -> f64 {
        share(
            self.bytes.decodable,
            self.equal_share_bytes.min(self.bytes.sent),
        )
    }

    /// The sections of the selected kinds: sent, on time, decodable.
    pub(crate) fn total(&self, of: impl Fn(Kind) -> bool) -> (u64, u64, u64) {
        let kinds = self.kinds.iter().filter(|count| of(count.kind));
        kinds.fold((0, 0, 0), |(sent, on_time, decodable), count| {
            (
                sent + count.sent,
                on_time + count.on_time,
                decodable + count.decodable,
            )
        })
    }
}

/// `part` divided by `whole`; 1 if `whole` is zero.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

/// The interval over which rates are measured.
fn counted(length_s: f64) -> (f64, f64) {
    (SETTLING_S.min(length_s / 4.0), length_s)
}

/// For each section, whether it and all that it needs were on time.
fn decodable(sections: &[Sent]) -> Vec<bool> {
    let mut decodability = Decodability::default();
    (0..)
        .zip(sections)
        .map(|(number, section)| {
            let is_on_time = matches!(section.fate, Fate::Complete { slack_ms } if slack_ms >= 0.0);
            let needs = section.needs.map(|needs| needs as u64);
            decodability.judge(number, needs, is_on_time)
        })
        .collect()
}

fn count(kind: Kind, sections: &[Sent], decodable: &[bool]) -> KindCount {
    let mut count = KindCount {
        kind,
        sent: 0,
        on_time: 0,
        late: 0,
        gaps: 0,
        decodable: 0,
        bytes: ByteCount::default(),
    };
    for (section, decodable) in sections.iter().zip(decodable) {
        if section.kind != kind {
            continue;
        }
        count.sent += 1;
        count.bytes.sent += section.bytes;
        if *decodable {
            count.decodable += 1;
            count.bytes.decodable += section.bytes;
        }
        match section.fate {
            Fate::Complete { slack_ms } if slack_ms >= 0.0 => {
                count.on_time += 1;
                count.bytes.on_time += section.bytes;
            }
            Fate::Complete { .. } => count.late += 1,
            Fate::Gap(_) => count.gaps += 1,
            Fate::Unreported => {}
        }
    }
    count
}

fn shares(setup: &Setup, flows: &[Flow], (from, to): (f64, f64)) -> Vec<FlowShare> {
    let rates: Vec<f64> = flows
        .iter()
        .map(|flow| flow.rate_mbps(from, to).unwrap_or(0.0))
        .collect();
    let sum: f64 = rates.iter().sum();
    let capacity = setup.rate.as_mbps_f64();
    let video = setup
        .demand
        .as_mbps_f64()
        .min(setup.equal_share().as_mbps_f64());
    let other = (capacity - video) / f64::from(setup.flows.max(1));
    flows
        .iter()
        .zip(rates)
        .enumerate()
        .map(|(position, (flow, mbps))| FlowShare {
            name: flow.name.clone(),
            mbps,
            share: if sum > 0.0 { mbps / sum } else { 0.0 },
            fair_mbps: if position == 0 { video } else { other },
        })
        .collect()
}

fn slack(sections: &[Sent]) -> Option<(f64, f64)> {
    let mut slack: Vec<f64> = sections
        .iter()
        .filter_map(|section| match section.fate {
            Fate::Complete { slack_ms } => Some(slack_ms),
            _ => None,
        })
        .collect();
    slack.sort_by(f64::total_cmp);
    let at = |share: f64| slack.get((share * slack.len() as f64) as usize).copied();
    at(0.01).zip(at(0.5))
}

impl Flow {
    /// The rate of arrival between two moments; `None` with fewer than two samples in between.
    pub(crate) fn rate_mbps(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let within = |sample: &&super::recording::Sample| {
            (from_s - 1e-9..=to_s + 1e-9).contains(&sample.at_s)
        };
        let first = self.samples.iter().find(within)?;
        let last = self.samples.iter().rev().find(within)?;
        let span = last.at_s - first.at_s;
        if span <= 0.0 {
            return None;
        }
        let bytes = last.arrived_bytes.saturating_sub(first.arrived_bytes);
        Some(bytes as f64 * 8.0 / 1e6 / span)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use comity_units::{Rate, Span};

    use super::*;
    use crate::demo::recording::{Exactness, Other, Sample, SenderCount};

    /// Ten seconds of three flows at 9 Mb/s. One of the four pictures needs a late one.
    pub(crate) fn recording() -> Recording {
        let sent = |kind: Kind, at_s: f64, needs, fate| Sent {
            kind,
            copy: 0,
            picture: kind.is_picture().then_some(at_s as usize),
            at_s,
            shown_s: at_s,
            allowed_ms: 400.0,
            bytes: match kind {
                Kind::Intra => 40_000,
                Kind::Predicted => 20_000,
                Kind::Bidirectional => 10_000,
                Kind::Audio | Kind::Other => 1_000,
            },
            needs,
            fate,
        };
        let complete = |slack_ms| Fate::Complete { slack_ms };
        let flow = |name: &str, mbps: f64| Flow {
            name: name.into(),
            samples: (0..=100)
                .map(|step| Sample {
                    at_s: f64::from(step) / 10.0,
                    arrived_bytes: (mbps * 1e6 / 8.0 * f64::from(step) / 10.0) as u64,
                })
                .collect(),
        };
        Recording {
            setup: Setup {
                rate: Rate::from_mbps(9),
                delay: Span::from_millis(20),
                queue: 60,
                loss: 0.0,
                flows: 2,
                clip: None,
                copies: 4,
                latency: Span::from_millis(400),
                duration: Span::from_secs(10),
                controller: "reno".into(),
                rivals: "reno".into(),
                sheds: false,
                seed: 1,
                demand: Rate::from_bps(2_250_000),
            },
            length_s: 10.0,
            cipher: "AES-128-GCM".into(),
            sections: vec![
                sent(Kind::Intra, 0.0, None, complete(300.0)),
                sent(Kind::Predicted, 1.0, Some(0), complete(-5.0)),
                sent(Kind::Bidirectional, 2.0, Some(1), complete(200.0)),
                sent(
                    Kind::Predicted,
                    3.0,
                    Some(0),
                    Fate::Gap("expired <at> the sender"),
                ),
                sent(Kind::Audio, 3.0, None, complete(350.0)),
            ],
            flows: vec![flow("video", 2.0), flow("Reno 1", 4.0), flow("Reno 2", 2.0)],
            others: vec![
                Other::left_out("SRT", "it does <not> connect"),
                Other {
                    name: "TCP, simulated".into(),
                    how: "As <sent>.".into(),
                    sections: Ok(vec![
                        sent(Kind::Intra, 0.0, None, complete(300.0)),
                        sent(Kind::Predicted, 1.0, Some(0), complete(-5.0)),
                    ]),
                },
            ],
            exactness: Exactness {
                releases: 20_000,
                p50_ms: 0.01,
                p99_ms: 0.1,
                max_ms: 2.0,
                overload: Vec::new(),
                offered_packets: 10_000,
                dropped_packets: 3,
                lost_packets: 0,
            },
            sender: SenderCount {
                submitted_bytes: 5_000,
                retransmitted_bytes: 500,
                late_bytes: 0,
                pacing_p99_us: 80.0,
            },
        }
    }

    #[test]
    fn every_section_is_counted_once_by_its_kind() {
        let metrics = Metrics::of(&recording());
        let of = |kind| {
            let count = metrics.kinds.iter().find(|count| count.kind == kind);
            count.map(|c| (c.sent, c.on_time, c.late, c.gaps, c.decodable))
        };
        assert_eq!(of(Kind::Intra), Some((1, 1, 0, 0, 1)));
        assert_eq!(of(Kind::Predicted), Some((2, 0, 1, 1, 0)));
        assert_eq!(
            of(Kind::Bidirectional),
            Some((1, 1, 0, 0, 0)),
            "on time, but it needs a late one"
        );
        assert_eq!(of(Kind::Audio), Some((1, 1, 0, 0, 1)));
        assert_eq!(of(Kind::Other), None);
        assert_eq!(metrics.total(Kind::is_picture), (4, 2, 1));
        assert_eq!(metrics.total(|_| true), (5, 3, 2));
        assert_eq!(metrics.gaps.get("expired <at> the sender"), Some(&1));
        let of_kind = metrics
            .gaps_of
            .get(&("expired <at> the sender", Kind::Predicted));
        assert_eq!(of_kind, Some(&1));
        assert_eq!(metrics.unreported, 0);
        let all = ByteCount {
            sent: 40_000 + 20_000 + 10_000 + 20_000 + 1_000,
            on_time: 40_000 + 10_000 + 1_000,
            decodable: 40_000 + 1_000,
        };
        assert_eq!(metrics.bytes, all);
    }

    #[test]
    fn decodable_bytes_are_compared_with_an_equal_share() {
        let mut recording = recording();
        // 3 Mb/s for 10 s, with 1,400 bytes of sections in 1,477: more than was submitted.
        let metrics = Metrics::of(&recording);
        assert_eq!(metrics.equal_share_bytes, 3_554_502);
        let near = |metrics: &Metrics, expected: f64| {
            assert!((metrics.decodable_of_share() - expected).abs() < 1e-9);
        };
        near(&metrics, 41.0 / 91.0);
        // The share carries only a part of a picture a hundred times as large.
        recording.sections[1].bytes = 4_000_000;
        recording.sections[1].fate = Fate::Complete { slack_ms: 0.0 };
        let metrics = Metrics::of(&recording);
        assert_eq!(metrics.bytes.decodable, 4_051_000);
        near(&metrics, 4_051_000.0 / 3_554_502.0);
        recording.sections.clear();
        near(&Metrics::of(&recording), 1.0);
    }

    #[test]
    fn fairness_accounts_for_the_demand_of_the_video() {
        let metrics = Metrics::of(&recording());
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-3;
        let [video, first, second] = metrics.flows.as_slice() else {
            panic!("{:?}", metrics.flows);
        };
        assert!(near(video.mbps, 2.0) && near(video.share, 0.25));
        assert!(near(first.share, 0.5) && near(second.share, 0.25));
        // 9 Mb/s less the 2.25 that the video needs, for two.
        assert!(near(video.fair_mbps, 2.25) && near(first.fair_mbps, 3.375));
        // (2 + 4 + 2)² / (3 · (4 + 16 + 4)).
        assert!(metrics.jain.is_some_and(|index| near(index, 64.0 / 72.0)));
        let relative = [2.0 / 2.25, 4.0 / 3.375, 2.0 / 3.375];
        let sum: f64 = relative.iter().sum();
        let squares: f64 = relative.iter().map(|x| x * x).sum();
        let expected = sum * sum / (3.0 * squares);
        assert!(metrics.jain_of_fair.is_some_and(|j| near(j, expected)));
        assert_eq!(metrics.counted, (2.0, 10.0));
    }

    #[test]
    fn a_greedy_video_is_entitled_to_at_most_an_equal_share() {
        let mut recording = recording();
        recording.setup.demand = Rate::from_mbps(8);
        let metrics = Metrics::of(&recording);
        let fair: Vec<f64> = metrics.flows.iter().map(|flow| flow.fair_mbps).collect();
        assert!(
            fair.iter().all(|fair| (fair - 3.0).abs() < 1e-6),
            "{fair:?}"
        );
    }

    #[test]
    fn an_empty_recording_has_no_results() {
        let mut recording = recording();
        recording.sections.clear();
        for flow in &mut recording.flows {
            flow.samples.clear();
        }
        let metrics = Metrics::of(&recording);
        assert!(metrics.kinds.is_empty() && metrics.jain.is_none() && metrics.slack_ms.is_none());
        assert!(metrics.flows.iter().all(|flow| flow.share == 0.0));
    }
}
