//! The measures of the flows of a run, together or by group.
//!
//! The tables `runs` and `groups` store them, and `comity sim run` prints their means over runs.

use comity_units::Span;

use crate::histogram::{Distribution, Summary};
use crate::metrics;
use crate::report::{FlowReport, FrameCounts, PlaybackReport, RunReport, SectionsReport};

/// Flows of a run.
pub(super) struct Flows<'a> {
    /// The name of their group; empty for all flows of the run.
    name: &'a str,
    report: &'a RunReport,
    all: Vec<&'a FlowReport>,
}

type Count = fn(&Flows<'_>) -> Option<u64>;
type Number = fn(&Flows<'_>) -> Option<f64>;

/// How flows share, by the names of columns.
pub(super) const SHARING: &[(&str, Number)] = &[
    ("mean_goodput_bps", |of| mean(&of.each(|it| it.goodput_bps))),
    ("mean_throughput_bps", |of| mean(&of.throughputs())),
    ("jain", |of| metrics::jain(&of.throughputs()).ok()),
    ("f_best", |of| {
        Some(metrics::baseline(&of.throughputs()).ok()?.best)
    }),
    ("f_worst", |of| {
        Some(metrics::baseline(&of.throughputs()).ok()?.worst)
    }),
    ("max_min_ratio", |of| {
        metrics::max_min_ratio(&of.throughputs()).ok()
    }),
];

/// Counts of a group, by the names of columns.
pub(super) const COUNTS: &[(&str, Count)] = &[
    ("timeouts", |of| Some(of.sum(|flow| flow.timeouts))),
    ("sections_submitted", |of| of.sections(|it| it.submitted)),
    ("sections_refused", |of| of.sections(|it| it.refused)),
    ("sections_shed", |of| of.sections(|it| it.shed)),
    ("sections_on_time_bytes", |of| {
        of.sections(|it| it.bytes.on_time)
    }),
    ("sections_decodable_bytes", |of| {
        of.sections(|it| it.bytes.decodable)
    }),
    ("sections_equal_share_bytes", |of| {
        of.sections_that_have(|it| it.equal_share_bytes)
    }),
    ("sections_sent_late_bytes", |of| {
        of.sections(|it| it.late_bytes)
    }),
    ("sections_retransmitted_bytes", |of| {
        of.sections(|it| it.retransmitted_bytes)
    }),
    ("sections_lost_packets", |of| {
        of.sections(|it| it.lost_packets)
    }),
];

/// Numbers of a group, by the names of columns.
pub(super) const NUMBERS: &[(&str, Number)] = &[
    ("goodput_min_bps", |of| least(&of.each(|it| it.goodput_bps))),
    ("goodput_max_bps", |of| most(&of.each(|it| it.goodput_bps))),
    ("base_rtt_min_s", |of| {
        FlowReport::base_rtt_range(of.all.iter().copied()).map(|[least, _]| least)
    }),
    ("base_rtt_max_s", |of| {
        FlowReport::base_rtt_range(of.all.iter().copied()).map(|[_, most]| most)
    }),
    ("friendliness", |of| {
        let others = of.report.flows.iter().filter(|flow| !flow.is_in(of.name));
        let others: Vec<f64> = others.map(|flow| flow.throughput_bps).collect();
        metrics::friendliness(&of.throughputs(), &others).ok()
    }),
    ("convergence_s", |of| {
        of.report.convergence(of.name).map(Span::as_secs_f64)
    }),
    ("loss_ratio", |of| loss_ratio(of.all.iter().copied())),
    ("data_loss_ratio", |of| {
        let lost = of.sum(|flow| flow.dropped_packets.saturating_sub(flow.dropped_acks));
        metrics::loss_ratio(lost, of.sum(|flow| flow.sent_packets)).ok()
    }),
    ("retransmitted_ratio", |of| {
        let again = of.sum(|flow| flow.retransmitted_packets);
        ratio(again, of.sum(|flow| flow.sent_packets))
    }),
    ("mean_delay_s", |of| mean_delay(of.all.iter().copied())),
    ("transfer_bps", |of| mean(&of.transfer_rates())),
    ("reads_satisfied_ratio", |of| {
        let sum = |count| of.players().into_iter().map(count).sum::<u64>();
        let satisfied: fn(&PlaybackReport) -> u64 = |it| it.satisfied;
        ratio(sum(satisfied), sum(|it| it.reads))
    }),
    ("startup_delay_s", |of| {
        mean(&of.of_players(|it| it.startup_delay_s))
    }),
    ("stalls", |of| {
        mean(&of.of_players(|it| Some(it.stalls as f64)))
    }),
    ("stalled_s", |of| {
        mean(&of.of_players(|it| Some(it.stalled_s)))
    }),
    ("sections_on_time_ratio", |of| {
        of.share_of_settled(|it| it.on_time)
    }),
    ("sections_late_ratio", |of| {
        of.share_of_settled(|it| it.late)
    }),
    ("sections_given_up_ratio", |of| {
        of.share_of_settled(|it| it.gaps.sum() - it.gaps.overdue)
    }),
    ("sections_overdue_ratio", |of| {
        of.share_of_settled(|it| it.gaps.overdue)
    }),
    ("sections_decodable_ratio", |of| {
        of.share_of_settled(|it| it.decodable)
    }),
    ("sections_decodable_of_share_ratio", |of| {
        let decodable = of.sections(|it| it.bytes.decodable)?;
        ratio(
            decodable,
            of.sections_that_have(SectionsReport::carriable_bytes)?,
        )
    }),
    ("sections_intra_on_time_ratio", |of| {
        of.frames_on_time(|it| it.intra)
    }),
    ("sections_predicted_on_time_ratio", |of| {
        of.frames_on_time(|it| it.predicted)
    }),
    ("sections_bidirectional_on_time_ratio", |of| {
        of.frames_on_time(|it| it.bidirectional)
    }),
    ("sections_target_bitrate_bps", |of| {
        mean(&of.each_with_sections(|it| it.target_bitrate_bps))
    }),
    ("sections_slack_p1_s", |of| {
        least(&of.each_with_sections(|it| it.slack_p1_s))
    }),
    ("sections_slack_p50_s", |of| {
        mean(&of.each_with_sections(|it| it.slack_median_s))
    }),
];

/// The measures of the flows of a run, or of one of its groups.
#[derive(Clone, Debug)]
pub struct Measures<'a> {
    /// The name of the group; empty for all flows of the run.
    pub name: &'a str,
    /// The number of flows.
    pub flows: u64,
    /// The completion times of the flows that have an end, started in measured time and ended.
    pub completion: Summary,
    /// How many of these flows did not end; `None` if none has an end.
    pub unfinished: Option<u64>,
    /// The sum of the goodputs, in bit/s.
    pub(super) goodput: f64,
    /// The sum of the throughputs, in bit/s.
    pub(super) throughput: f64,
    pub(super) sharing: Vec<Option<f64>>,
    pub(super) counts: Vec<Option<u64>>,
    pub(super) numbers: Vec<Option<f64>>,
}

impl<'a> Measures<'a> {
    /// Those of all flows together: only how they share.
    pub(super) fn of_run(report: &'a RunReport) -> Self {
        let all = report.flows.iter().collect();
        Self::new(&Flows {
            name: "",
            report,
            all,
        })
    }

    /// Those of each group of flows ([`RunReport::groups`]).
    pub fn of_groups(report: &'a RunReport) -> Vec<Self> {
        let of_group = |name| {
            let all = report.flows.iter().filter(|flow| flow.is_in(name));
            let flows = Flows {
                name,
                report,
                all: all.collect(),
            };
            Self {
                counts: COUNTS.iter().map(|(_, count)| count(&flows)).collect(),
                numbers: NUMBERS.iter().map(|(_, number)| number(&flows)).collect(),
                ..Self::new(&flows)
            }
        };
        report.groups().into_iter().map(of_group).collect()
    }

    fn new(flows: &Flows<'a>) -> Self {
        let transfers = flows.transfers();
        let mut times = Distribution::new();
        for time in transfers.iter().filter_map(|flow| flow.completion_time()) {
            times.record(time);
        }
        Self {
            name: flows.name,
            flows: flows.all.len() as u64,
            completion: times.summary(),
            unfinished: (!transfers.is_empty()).then(|| transfers.len() as u64 - times.count()),
            goodput: flows.each(|flow| flow.goodput_bps).iter().sum(),
            throughput: flows.throughputs().iter().sum(),
            sharing: SHARING.iter().map(|(_, number)| number(flows)).collect(),
            counts: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// The measures by the names of their columns in the table `groups`, counts as numbers.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        fn named<T, N: Copy>(
            measures: &'static [(&'static str, T)],
            values: &[N],
        ) -> impl Iterator<Item = (&'static str, N)> {
            measures
                .iter()
                .map(|(name, _)| *name)
                .zip(values.iter().copied())
        }
        let counts = named(COUNTS, &self.counts);
        let completion = (self.completion.count > 0).then_some(self.completion.mean);
        named(SHARING, &self.sharing)
            .chain(named(NUMBERS, &self.numbers))
            .chain(counts.map(|(name, count)| (name, count.map(|count| count as f64))))
            .chain([("completion_mean_s", completion)])
    }
}

impl<'a> Flows<'a> {
    fn each(&self, of: fn(&FlowReport) -> f64) -> Vec<f64> {
        self.all.iter().map(|flow| of(flow)).collect()
    }

    fn throughputs(&self) -> Vec<f64> {
        self.each(|flow| flow.throughput_bps)
    }

    fn sum(&self, of: fn(&FlowReport) -> u64) -> u64 {
        self.all.iter().map(|flow| of(flow)).sum()
    }

    fn players(&self) -> Vec<&'a PlaybackReport> {
        let players = self.all.iter().filter_map(|flow| flow.playback.as_ref());
        players.collect()
    }

    fn of_players(&self, of: fn(&PlaybackReport) -> Option<f64>) -> Vec<f64> {
        self.players().into_iter().filter_map(of).collect()
    }

    /// The flows that have an end and started in measured time.
    fn transfers(&self) -> Vec<&'a FlowReport> {
        let all = self.all.iter().copied();
        all.filter(|flow| self.report.is_measured_transfer(flow))
            .collect()
    }

    /// The rates of these flows until completion, in bit/s, for those that ended.
    fn transfer_rates(&self) -> Vec<f64> {
        let rate = |flow: &FlowReport| {
            let time = flow.completion_time()?.as_secs_f64();
            Some(flow.delivered_bytes_total as f64 * 8.0 / time)
        };
        let rates = self.transfers().into_iter().filter_map(rate);
        rates.filter(|rate| rate.is_finite()).collect()
    }

    fn with_sections(&self) -> impl Iterator<Item = &'a SectionsReport> {
        self.all.iter().filter_map(|flow| flow.sections.as_ref())
    }

    /// The sum over the flows of sections; `None` if there are none.
    fn sections(&self, of: fn(&SectionsReport) -> u64) -> Option<u64> {
        self.with_sections()
            .map(of)
            .reduce(|sum, count| sum + count)
    }

    /// As [`Self::sections`]; `None` also if a flow has no such value.
    fn sections_that_have(&self, of: fn(&SectionsReport) -> Option<u64>) -> Option<u64> {
        self.with_sections()
            .map(of)
            .reduce(|sum, count| Some(sum? + count?))?
    }

    fn each_with_sections(&self, of: fn(&SectionsReport) -> Option<f64>) -> Vec<f64> {
        self.with_sections().filter_map(of).collect()
    }

    /// The share of all sections that were not open at the end. Refused and shed ones never arrive.
    fn share_of_settled(&self, of: fn(&SectionsReport) -> u64) -> Option<f64> {
        let settled = self.sections(|it| it.submitted + it.refused + it.shed - it.open)?;
        ratio(self.sections(of)?, settled)
    }

    fn frames_on_time(&self, of: fn(&SectionsReport) -> FrameCounts) -> Option<f64> {
        let frames = || self.with_sections().map(of);
        let on_time = frames().map(|frames| frames.on_time).sum();
        let settled = frames().map(|frames| frames.submitted - frames.open).sum();
        ratio(on_time, settled)
    }
}

/// The share of dropped packets among all packets in the network, duplicates and acknowledgements
/// included.
pub(super) fn loss_ratio<'f>(flows: impl Iterator<Item = &'f FlowReport> + Clone) -> Option<f64> {
    let dropped = flows.clone().map(|flow| flow.dropped_packets).sum();
    let offered = flows
        .map(|flow| flow.sent_packets + flow.acks + flow.duplicated_packets)
        .sum();
    metrics::loss_ratio(dropped, offered).ok()
}

/// The mean one-way delay over all measured packets of the flows.
pub(super) fn mean_delay<'f>(flows: impl Iterator<Item = &'f FlowReport> + Clone) -> Option<f64> {
    let count: u64 = flows.clone().map(|flow| flow.delay.count).sum();
    let sum: f64 = flows
        .map(|flow| flow.delay.mean * flow.delay.count as f64)
        .sum();
    (count > 0).then(|| sum / count as f64)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn mean(values: &[f64]) -> Option<f64> {
    Some(metrics::mean_with_interval(values).ok()?.mean)
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}
