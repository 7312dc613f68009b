//! Makes the report of a flow of sections from the logs of its ends.

use comity_frames::Frame;
use comity_sim::host::{FlowPlan, payload_of};
use comity_sim::ledger::Ledger;
use comity_sim::network::SectionsSpec;
use comity_sim::report::{FlowReport, FlowSeries};
use comity_units::{DataSize, Time};

use crate::child::Ended;
use crate::endpoint::{Fate, GAPS, Log, Outcome, Sample, TYPES};
use crate::router::Interval;

/// The results of a flow of sections.
#[derive(Debug, Default)]
pub(crate) struct SectionsResults {
    pub(crate) series: FlowSeries,
    /// A remark on the flow.
    pub(crate) remark: Option<String>,
    /// The reason not to trust its results.
    pub(crate) doubt: Option<String>,
}

/// Adds the fates of a flow's sections to its report, from the logs of both ends.
pub(crate) fn report(
    report: &mut FlowReport,
    (spec, plan): (&SectionsSpec, &FlowPlan),
    ends: (&Ended, &Ended),
    interval: Interval,
) -> SectionsResults {
    let read = |ended: &Ended| -> Result<Log, String> {
        serde_json::from_slice(&ended.output).map_err(|_| ended.last_words())
    };
    let (source, destination) = match (read(ends.0), read(ends.1)) {
        (Ok(source), Ok(destination)) => (source, destination),
        (Err(error), _) | (_, Err(error)) => {
            return SectionsResults {
                doubt: Some(format!("its endpoint failed with {error}")),
                ..SectionsResults::default()
            };
        }
    };
    let mut ledger = Ledger::new(interval.warmup, spec.latency);
    for (number, given) in (0..).zip(&source.frames) {
        let frame_type = TYPES.get(usize::from(given.frame_type)).copied();
        let frame = Frame {
            stream: 0,
            number,
            frame_type: frame_type.unwrap_or(TYPES[0]),
            position: 0,
            needs: given.needs,
            // The endpoint has already applied this.
            is_bound: false,
            source_time: Time::from_nanos(given.at_ns),
            size: DataSize::new(u64::from(given.bytes)),
        };
        match given.outcome {
            Outcome::Submitted => ledger.on_submitted(&frame),
            Outcome::Refused => ledger.on_refused(&frame),
            Outcome::Shed => ledger.on_shed(&frame),
        }
    }
    let mut bins: Vec<u64> = Vec::new();
    for &(number, fate) in &destination.settled {
        let section = comity::SectionId(number);
        match fate {
            Fate::Whole(at, bytes) => {
                let at = Time::from_nanos(at);
                if at > interval.end {
                    continue;
                }
                ledger.on_section(section, at);
                report.delivered_bytes_total += u64::from(bytes);
                if at >= interval.warmup {
                    report.delivered_bytes += u64::from(bytes);
                }
                if let Some(bin) = interval.bin {
                    let bin = (at.as_nanos() / bin.as_nanos().max(1)) as usize;
                    bins.resize(bins.len().max(bin + 1), 0);
                    if let Some(sum) = bins.get_mut(bin) {
                        *sum += u64::from(bytes);
                    }
                }
            }
            Fate::Gap(reason) => {
                let reason = GAPS.get(usize::from(reason)).copied().unwrap_or(GAPS[0]);
                ledger.on_gap(section, reason);
            }
        }
    }
    let measured = interval.end.saturating_since(interval.warmup).as_secs_f64();
    report.goodput_bps = report.delivered_bytes as f64 * 8.0 / measured;
    let (before, after) = (&source.at_warmup, &source.at_end);
    report.fast_retransmits = after.loss_events;
    report.srtt_s = after.srtt_s;
    report.min_rtt_s = after.min_rtt_s;
    report.cwnd_bytes = after.cwnd_bytes;
    report.ssthresh_bytes = after.ssthresh_bytes;
    let mut sections = ledger.report();
    sections.equal_share_bytes = plan
        .equal_share
        .map(|share| payload_of(share, spec.config.payload, spec.config.overhead));
    sections.late_bytes = after.late_bytes;
    sections.retransmitted_bytes = after.retransmitted_bytes - before.retransmitted_bytes;
    sections.lost_packets = after.lost_packets - before.lost_packets;
    sections.spurious_losses = after.spurious_losses - before.spurious_losses;
    sections.marked_packets = destination.at_end.marked_packets;
    sections.target_bitrate_bps = after.target_bps;
    sections.closed = source.closed.as_ref().map(|(at, _)| Time::from_nanos(*at));
    report.sections = Some(sections);
    let mut series = FlowSeries {
        delivered_bytes: bins,
        ..FlowSeries::default()
    };
    if let Some(bin) = interval.bin {
        for sample in &source.samples {
            let at = (sample.at_ns / bin.as_nanos().max(1)) as usize;
            for (column, value) in [
                (&mut series.cwnd_bytes, sample.cwnd_bytes),
                (&mut series.ssthresh_bytes, sample.ssthresh_bytes),
                (&mut series.srtt_ns, sample.srtt_ns),
            ] {
                let last = column.last().copied().unwrap_or(0);
                column.resize(column.len().max(at + 1), last);
                if let Some(bin) = column.get_mut(at) {
                    *bin = value;
                }
            }
        }
    }
    let is_measured = |sample: &&Sample| sample.at_ns >= interval.warmup.as_nanos();
    let samples = || source.samples.iter().filter(is_measured);
    if after.cwnd_bytes.is_some() {
        report.mean_cwnd_bytes = mean(samples().map(|sample| sample.cwnd_bytes as f64));
    }
    let round_trips = samples().filter(|sample| sample.srtt_ns > 0);
    report.mean_rtt_s = mean(round_trips.map(|sample| sample.srtt_ns as f64 / 1e9));
    let was_late = source.ready_ns.max(destination.ready_ns) > 0;
    let unready = was_late.then(|| "its endpoints were not ready when the run started".to_owned());
    SectionsResults {
        series,
        remark: source
            .closed
            .map(|(_, reason)| format!("its connection ended: {reason}")),
        doubt: source.failure.or(destination.failure).or(unready),
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_nothing_is_none() {
        assert_eq!(mean([].into_iter()), None);
        assert_eq!(mean([1.0, 2.0, 6.0].into_iter()), Some(3.0));
    }

    #[test]
    fn an_endpoint_that_says_nothing_is_doubted_with_its_last_words() {
        let ended = Ended {
            errors: b"cannot bind\n".to_vec(),
            ..Ended::default()
        };
        let spec = SectionsSpec {
            config: comity_transport::datagram::Config::default(),
            controller: "steady".into(),
            parameters: comity_congestion::table::Parameters::new(),
            initial_window: DataSize::new(14_000),
            latency: None,
            section: DataSize::new(1_200),
            acknowledgement: None,
            shed: true,
        };
        let plan = FlowPlan {
            forward: vec![],
            reverse: vec![],
            started_at: Time::ZERO,
            stopped_at: Time::MAX,
            equal_share: None,
        };
        let interval = Interval {
            warmup: Time::ZERO,
            end: Time::MAX,
            bin: None,
        };
        let mut flow = FlowReport::default();
        let results = report(&mut flow, (&spec, &plan), (&ended, &ended), interval);
        let expected = "its endpoint failed with it did not run: cannot bind";
        assert_eq!(results.doubt.as_deref(), Some(expected));
        assert_eq!(flow, FlowReport::default());
    }
}
