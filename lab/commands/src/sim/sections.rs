//! The outcomes of sections of a group of flows at one point of a sweep.

use comity_sim::report::{FlowReport, FrameCounts, SectionsReport};
use serde_json::{Value, json};

use super::super::figures::{RateUnit, digits, or_dash, percent};
use super::statistics::{estimate, least, mean};
use crate::numbers::thousands;

/// The results of a group. Each list has one value per run.
#[derive(Debug, Default)]
pub(super) struct Sections {
    submitted: Vec<f64>,
    refused: Vec<f64>,
    shed: Vec<f64>,
    on_time: Vec<f64>,
    late: Vec<f64>,
    decodable: Vec<f64>,
    on_time_bytes: Vec<f64>,
    decodable_bytes: Vec<f64>,
    equal_share_bytes: Vec<f64>,
    /// The decodable bytes, divided by the bytes of the source that an equal share could carry.
    decodable_of_share: Vec<f64>,
    intra: Vec<f64>,
    predicted: Vec<f64>,
    bidirectional: Vec<f64>,
    given_up: Vec<f64>,
    overdue: Vec<f64>,
    sent_late: Vec<f64>,
    retransmitted: Vec<f64>,
    lost: Vec<f64>,
    target: Vec<f64>,
    slack_p1: Vec<f64>,
    slack_median: Vec<f64>,
}

/// The headings of [`Sections::row`].
pub(super) fn header(unit: RateUnit) -> Vec<String> {
    let fixed = [
        "sections",
        "shed",
        "on time",
        "least",
        "late",
        "given up",
        "overdue",
        "I",
        "P",
        "B",
        "decodable",
        "on time MB",
        "decodable MB",
        "of share",
        "late bytes",
        "retransmitted kB",
        "lost",
        "slack p1 ms",
        "p50",
    ];
    let mut header: Vec<String> = fixed.map(Into::into).into();
    header.push(format!("target {}", unit.name));
    header
}

impl Sections {
    /// Adds the flows of sections of a run.
    pub(super) fn add(&mut self, flows: &[&FlowReport]) {
        let reports: Vec<&SectionsReport> = flows
            .iter()
            .filter_map(|flow| flow.sections.as_ref())
            .collect();
        if reports.is_empty() {
            return;
        }
        let sum =
            |of: fn(&SectionsReport) -> u64| reports.iter().map(|report| of(report)).sum::<u64>();
        let submitted = sum(|of| of.submitted);
        self.submitted.push(submitted as f64);
        self.refused.push(sum(|of| of.refused) as f64);
        self.shed.push(sum(|of| of.shed) as f64);
        let share = |list: &mut Vec<f64>, part: u64, whole: u64| {
            if whole > 0 {
                list.push(part as f64 / whole as f64);
            }
        };
        // Sections that are open at the end do not count. Refused and shed ones never arrive.
        let settled = sum(|of| of.submitted + of.refused + of.shed - of.open);
        share(&mut self.on_time, sum(|of| of.on_time), settled);
        share(&mut self.late, sum(|of| of.late), settled);
        share(&mut self.decodable, sum(|of| of.decodable), settled);
        self.on_time_bytes.push(sum(|of| of.bytes.on_time) as f64);
        let decodable = sum(|of| of.bytes.decodable);
        self.decodable_bytes.push(decodable as f64);
        let all = |of: fn(&SectionsReport) -> Option<u64>| -> Option<u64> {
            reports.iter().map(|report| of(report)).sum()
        };
        self.equal_share_bytes
            .extend(all(|of| of.equal_share_bytes).map(|bytes| bytes as f64));
        if let Some(carriable) = all(SectionsReport::carriable_bytes) {
            share(&mut self.decodable_of_share, decodable, carriable);
        }
        let given_up = |of: &SectionsReport| of.gaps.sum() - of.gaps.overdue;
        share(&mut self.given_up, sum(given_up), settled);
        share(&mut self.overdue, sum(|of| of.gaps.overdue), settled);
        let frames_on_time = |list: &mut Vec<f64>, kind: fn(&SectionsReport) -> FrameCounts| {
            let on_time = reports.iter().map(|of| kind(of).on_time).sum();
            let settled = |of: FrameCounts| of.submitted - of.open;
            let settled = reports.iter().map(|of| settled(kind(of))).sum();
            share(list, on_time, settled);
        };
        frames_on_time(&mut self.intra, |of| of.intra);
        frames_on_time(&mut self.predicted, |of| of.predicted);
        frames_on_time(&mut self.bidirectional, |of| of.bidirectional);
        self.sent_late.push(sum(|of| of.late_bytes) as f64);
        self.retransmitted
            .push(sum(|of| of.retransmitted_bytes) as f64);
        self.lost.push(sum(|of| of.lost_packets) as f64);
        let each = |of: fn(&SectionsReport) -> Option<f64>| -> Vec<f64> {
            reports.iter().filter_map(|report| of(report)).collect()
        };
        self.target.extend(mean(&each(|of| of.target_bitrate_bps)));
        self.slack_p1.extend(least(&each(|of| of.slack_p1_s)));
        self.slack_median
            .extend(mean(&each(|of| of.slack_median_s)));
    }

    /// Whether the group has no flows of sections.
    pub(super) fn is_empty(&self) -> bool {
        self.submitted.is_empty()
    }

    pub(super) fn target(&self) -> Option<f64> {
        mean(&self.target)
    }

    pub(super) fn row(&self, unit: RateUnit) -> Vec<String> {
        let share = |values: &[f64]| or_dash(mean(values), percent);
        let count = |values: &[f64]| or_dash(mean(values), |mean| thousands(mean.round() as u64));
        let megabytes = |values: &[f64]| or_dash(mean(values), |bytes| digits(bytes / 1e6));
        let millis = |values: &[f64]| or_dash(mean(values), |seconds| digits(seconds * 1e3));
        vec![
            count(&self.submitted),
            count(&self.shed),
            share(&self.on_time),
            or_dash(least(&self.on_time), percent),
            share(&self.late),
            share(&self.given_up),
            share(&self.overdue),
            share(&self.intra),
            share(&self.predicted),
            share(&self.bidirectional),
            share(&self.decodable),
            megabytes(&self.on_time_bytes),
            megabytes(&self.decodable_bytes),
            or_dash(mean(&self.decodable_of_share), |ratio| {
                format!("{ratio:.2}")
            }),
            count(&self.sent_late),
            or_dash(mean(&self.retransmitted), |bytes| digits(bytes / 1e3)),
            count(&self.lost),
            millis(&self.slack_p1),
            millis(&self.slack_median),
            or_dash(mean(&self.target), |target| unit.show(target)),
        ]
    }

    pub(super) fn json(&self) -> Value {
        if self.is_empty() {
            return Value::Null;
        }
        json!({
            "submitted": estimate(&self.submitted),
            "refused": estimate(&self.refused),
            "shed": estimate(&self.shed),
            "on_time_ratio": estimate(&self.on_time),
            "on_time_least_ratio": least(&self.on_time),
            "late_ratio": estimate(&self.late),
            "given_up_ratio": estimate(&self.given_up),
            "overdue_ratio": estimate(&self.overdue),
            "decodable_ratio": estimate(&self.decodable),
            "on_time_bytes": estimate(&self.on_time_bytes),
            "decodable_bytes": estimate(&self.decodable_bytes),
            "equal_share_bytes": estimate(&self.equal_share_bytes),
            "decodable_of_share_ratio": estimate(&self.decodable_of_share),
            "decodable_of_share_least_ratio": least(&self.decodable_of_share),
            "intra_on_time_ratio": estimate(&self.intra),
            "predicted_on_time_ratio": estimate(&self.predicted),
            "bidirectional_on_time_ratio": estimate(&self.bidirectional),
            "sent_late_bytes": estimate(&self.sent_late),
            "retransmitted_bytes": estimate(&self.retransmitted),
            "lost_packets": estimate(&self.lost),
            "target_bitrate_bps": estimate(&self.target),
            "slack_p1_s": estimate(&self.slack_p1),
            "slack_p50_s": estimate(&self.slack_median),
        })
    }
}
