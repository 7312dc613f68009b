//! The checked properties of a run.

use std::collections::BTreeMap;

use comity_link::{Jitter, LinkConfig, Queue};
use comity_sim::Fate;
use comity_sim::host::file_size;
use comity_sim::network::{FlowSpec, Network, TransportSpec, Workload};
use comity_sim::report::{Cost, FlowReport, RunReport, TimelineReport};
use comity_transport::timeline::{DropPolicy, Reliability};
use comity_units::Time;
use proptest::prelude::*;

use crate::properties::record::Record;

fn keeps_order(config: &LinkConfig) -> bool {
    match config.jitter {
        Jitter::None => true,
        Jitter::Exponential { reorder, .. }
        | Jitter::HalfNormal { reorder, .. }
        | Jitter::Normal { reorder, .. }
        | Jitter::Uniform { reorder, .. } => !reorder,
    }
}

/// The result of a run, without its cost.
pub(crate) fn result(mut report: RunReport) -> RunReport {
    report.cost = Cost {
        packet_hops: report.cost.packet_hops,
        ..Cost::default()
    };
    report
}

pub(crate) fn check_conservation(
    network: &Network,
    report: &RunReport,
    record: &Record,
) -> Result<(), TestCaseError> {
    for link in &report.links {
        let came_in = link.offered_packets + link.duplicated;
        let went = link.delivered_packets + link.dropped_full + link.dropped_early + link.lost;
        prop_assert_eq!(
            came_in,
            went + link.queued_at_end + link.in_flight_at_end,
            "{:?}",
            link
        );
    }
    for (index, (spec, flow)) in network.flows.iter().zip(&report.flows).enumerate() {
        let index = index as u32;
        let returned = record.returned.get(&index).copied().unwrap_or(0);
        let came_in = flow.sent_packets + flow.acks + flow.duplicated_packets;
        let went = flow.received_packets + returned + flow.dropped_packets + flow.in_flight_at_end;
        prop_assert_eq!(came_in, went, "{:?}", flow);

        let end = spec.stop.unwrap_or(Time::MAX);
        if flow.started >= end.min(Time::ZERO + network.duration) {
            prop_assert_eq!(flow.sent_packets, 0, "{:?}", flow);
        }
        let delivered = record.delivered.get(&index).copied().unwrap_or(0);
        prop_assert_eq!(delivered, flow.delivered_bytes_total);
        prop_assert!(flow.delivered_bytes <= flow.delivered_bytes_total);
        if let TransportSpec::Sections(_) = &spec.transport {
            check_sections(spec, flow)?;
        }
        let TransportSpec::Tcp(tcp) = &spec.transport else {
            continue;
        };
        let sent = record.sent_up_to.get(&index).copied().unwrap_or(0);
        prop_assert!(
            delivered <= sent,
            "delivered {} of {} bytes sent",
            delivered,
            sent
        );
        if let Some(report) = &flow.timeline {
            check_timeline(flow, report, delivered, sent)?;
        }
        if let Some(bytes) = file_size(spec, report.seed) {
            prop_assert_eq!(flow.size_bytes, Some(bytes.get()));
            prop_assert!(sent <= bytes.get());
            if flow.completion_time().is_some() {
                prop_assert_eq!(delivered, bytes.get());
            }
            if flow.finished.is_some() && spec.stop.is_none() {
                prop_assert_eq!(delivered, bytes.get());
            }
        }
        let most = record.max_in_flight.get(&index).copied().unwrap_or(0);
        // The FIN takes a sequence number beyond the window's last byte.
        let bound = tcp.config.receive_buffer.get() + 1;
        prop_assert!(
            most <= bound,
            "{} bytes in flight, a receive buffer of {}",
            most,
            bound - 1
        );
    }
    Ok(())
}

/// Arrived data and gaps tile the reader's stream, and no section is counted twice.
fn check_timeline(
    flow: &FlowReport,
    report: &TimelineReport,
    delivered: u64,
    sent: u64,
) -> Result<(), TestCaseError> {
    // Data discarded after the last sent byte is a gap that only a notice reports.
    let reached = sent.max(delivered + report.gap_bytes);
    prop_assert!(
        reached <= sent + report.discarded_bytes,
        "{delivered} bytes delivered of {sent}: {report:?}"
    );
    prop_assert!(report.gap_bytes <= report.discarded_bytes + report.obsolete_bytes);
    prop_assert!(
        (report.gaps == 0) == (report.gap_bytes == 0),
        "{:?}",
        report
    );
    prop_assert!(
        report.in_time + report.late + report.broken <= report.given,
        "{:?}",
        report
    );
    let by_kind = [
        report.intra_in_time,
        report.predicted_in_time,
        report.bidirectional_in_time,
        report.other_in_time,
    ];
    prop_assert_eq!(by_kind.iter().sum::<u64>(), report.in_time);
    prop_assert!(report.expired <= report.given);
    prop_assert!(report.replacements + report.pseudo_retransmissions <= flow.sent_packets);
    Ok(())
}

/// Every section that was submitted has one fate.
fn check_sections(spec: &FlowSpec, flow: &FlowReport) -> Result<(), TestCaseError> {
    let TransportSpec::Sections(settings) = &spec.transport else {
        return Ok(());
    };
    let report = flow.sections.as_ref().expect("a report of the sections");
    let fates = report.on_time + report.late + report.gaps.sum() + report.open;
    prop_assert_eq!(report.submitted, fates, "{:?}", report);
    prop_assert!(report.decodable <= report.on_time);
    let bytes = &report.bytes;
    prop_assert!(bytes.decodable <= bytes.on_time);
    prop_assert!(bytes.on_time + bytes.open <= bytes.submitted);
    prop_assert_eq!(report.decodable == 0, bytes.decodable == 0);
    prop_assert_eq!(report.refused == 0, bytes.refused == 0);
    prop_assert_eq!(report.shed == 0, bytes.shed == 0);
    prop_assert!(report.shed == 0 || settings.shedder().is_some());
    let kinds = [report.intra, report.predicted, report.bidirectional];
    for kind in kinds {
        prop_assert!(kind.decodable <= kind.on_time && kind.on_time <= kind.submitted);
    }
    let of_frames: u64 = kinds.iter().map(|kind| kind.submitted).sum();
    match spec.workload {
        Workload::Video(_) | Workload::Encoder(_) => {
            prop_assert_eq!(of_frames, report.submitted + report.refused + report.shed);
        }
        Workload::Frames(_) => {}
        _ => prop_assert_eq!(of_frames, 0),
    }
    let config = &settings.config;
    let enforces = config.drop != DropPolicy::Never && config.reliability != Reliability::Full;
    if enforces || settings.latency.is_none() {
        prop_assert_eq!(report.late_bytes, 0);
    }
    prop_assert_eq!(report.age.count, report.on_time + report.late);
    Ok(())
}

pub(crate) fn check_order(network: &Network, record: &Record) -> Result<(), TestCaseError> {
    for (link, events) in &record.links {
        let spec = &network.links[*link as usize];
        let mut last_offered = BTreeMap::new();
        let mut carried = Vec::new();
        for &(offered, flow, fate) in events {
            let Fate::Carried {
                departure, arrival, ..
            } = fate
            else {
                continue;
            };
            carried.push((offered, departure, arrival));
            // FQ-CoDel keeps the packets of each flow in order, the other queues all packets.
            let is_apart = matches!(spec.config.queue, Queue::FqCodel(_));
            let last = last_offered
                .entry(is_apart.then_some(flow))
                .or_insert(offered);
            prop_assert!(
                *last <= offered,
                "{}: {:?} offered before {:?}",
                spec.name,
                offered,
                last
            );
            *last = offered;
        }
        for pair in carried.windows(2) {
            let ((_, departure, arrival), next) = (pair[0], pair[1]);
            prop_assert!(
                departure <= next.1,
                "{}: {:?} departs before {:?}",
                spec.name,
                next,
                pair[0]
            );
            if keeps_order(&spec.config) {
                prop_assert!(
                    arrival <= next.2,
                    "{}: {:?} arrives before {:?}",
                    spec.name,
                    next,
                    pair[0]
                );
            }
        }
        for (offered, departure, arrival) in carried {
            prop_assert!(offered <= departure && departure <= arrival);
        }
    }
    for (end, events) in &record.ends {
        for pair in events.windows(2) {
            prop_assert!(
                pair[0].0 <= pair[1].0,
                "{:?}: {:?} before {:?}",
                end,
                pair[1],
                pair[0]
            );
        }
    }
    Ok(())
}
