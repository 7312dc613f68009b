//! Makes the report of a run from the router's records.

use comity_emulator::Record;
use comity_link::{DropCause, Outcome};
use comity_sim::histogram::Distribution;
use comity_sim::host::LinkUse;
use comity_sim::network::Network;
use comity_sim::report::{FlowReport, LinkReport, LinkSeries};
use comity_units::{Span, Time};

use crate::router::{Interval, LinkOutcome, Traffic};

/// The report of a link.
pub(crate) fn link_report(
    network: &Network,
    number: usize,
    outcome: &LinkOutcome,
    interval: Interval,
) -> (LinkReport, LinkSeries) {
    let Interval { warmup, end, bin } = interval;
    let link = network.links.get(number);
    let mut used = link.map(|link| LinkUse::new(network, &link.config.rate));
    let mut report = LinkReport::default();
    let mut wait = Distribution::new();
    let mut series = LinkSeries::default();
    let mut queue_ns = 0_u64;
    let mut queue = QueueBins::new(interval);
    if let Some(bin) = bin {
        let length = (end.as_nanos().div_ceil(bin.as_nanos().max(1))) as usize;
        series.carried_bytes.resize(length, 0);
        series.dropped_packets.resize(length, 0);
    }
    let bin_of = |at: Time| bin.map(|bin| (at.as_nanos() / bin.as_nanos().max(1)) as usize);
    for (record, port) in outcome.records() {
        let Record {
            at,
            packet,
            outcome,
        } = record;
        report.offered_packets += 1;
        let mut dropped = |report: &mut LinkReport| {
            report.dropped_measured += u64::from(*at >= warmup);
            report.dropped_acks += u64::from(port % 2 == 1);
            if let Some(count) = bin_of(*at).and_then(|bin| series.dropped_packets.get_mut(bin)) {
                *count += 1;
            }
        };
        let (start, departure, arrival) = match outcome {
            Some(Outcome::Carried(passage)) => {
                report.marked += u64::from(passage.marked);
                if let Some(copy) = passage.duplicate {
                    report.duplicated += 1;
                    report.delivered_packets += u64::from(copy <= end);
                    report.in_flight_at_end += u64::from(copy > end);
                }
                (passage.start, passage.departure, Some(passage.arrival))
            }
            Some(Outcome::Lost {
                start, departure, ..
            }) => {
                report.lost += 1;
                dropped(&mut report);
                (*start, *departure, None)
            }
            Some(Outcome::Dropped(cause)) => {
                match cause {
                    DropCause::QueueFull => report.dropped_full += 1,
                    DropCause::EarlyDrop => report.dropped_early += 1,
                    DropCause::Loss | DropCause::TooLarge => report.lost += 1,
                }
                dropped(&mut report);
                continue;
            }
            None => {
                report.queued_at_end += 1;
                queue.add(*at, end);
                queue_ns += end.saturating_since((*at).max(warmup)).as_nanos();
                continue;
            }
        };
        queue.add(*at, departure);
        let from = (*at).max(warmup);
        queue_ns += departure.min(end).saturating_since(from).as_nanos();
        if *at >= warmup {
            wait.record(start.saturating_since(*at));
        }
        if let Some(used) = &mut used {
            used.add(start, departure, packet.bytes);
        }
        if let Some(carried) = bin_of(departure).and_then(|bin| series.carried_bytes.get_mut(bin)) {
            *carried += u64::from(packet.bytes);
        }
        match arrival {
            _ if departure > end => report.queued_at_end += 1,
            Some(arrival) if arrival > end => report.in_flight_at_end += 1,
            Some(_) => report.delivered_packets += 1,
            None => {}
        }
    }
    series.max_queue_packets = queue.longest();
    let watched = end.saturating_since(warmup);
    report.name = link.map(|link| link.name.clone()).unwrap_or_default();
    report.mean_queue_packets = queue_ns as f64 / watched.as_nanos().max(1) as f64;
    report.queueing_delay = wait.summary();
    report.queueing_delay_distribution = wait;
    if let Some(used) = used {
        report.carried_bytes = used.carried_bytes();
        report.utilisation = used.utilisation();
    }
    (report, series)
}

/// The maximum queue length in packets, for each bin.
#[derive(Debug)]
struct QueueBins {
    bin: Option<Span>,
    /// Arrivals and departures: the time, and plus or minus one. At equal times, departures come
    /// first.
    changes: Vec<(Time, i32)>,
}

impl QueueBins {
    const fn new(interval: Interval) -> Self {
        Self {
            bin: interval.bin,
            changes: Vec::new(),
        }
    }

    fn add(&mut self, arrival: Time, departure: Time) {
        if self.bin.is_some() {
            self.changes.push((arrival, 1));
            self.changes.push((departure, -1));
        }
    }

    fn longest(mut self) -> Vec<u32> {
        let Some(bin) = self.bin else {
            return Vec::new();
        };
        self.changes.sort_unstable();
        let mut bins: Vec<u32> = Vec::new();
        let mut held = 0_i32;
        for (time, change) in self.changes {
            let at = (time.as_nanos() / bin.as_nanos().max(1)) as usize;
            // A bin begins with the last value of the previous bin.
            let now = held.max(0).cast_unsigned();
            if bins.len() <= at {
                bins.resize(at + 1, now);
            }
            held += change;
            if let Some(longest) = bins.get_mut(at) {
                *longest = (*longest).max(held.max(0).cast_unsigned());
            }
        }
        bins
    }
}

/// The number of packets of each port that links dropped or lost.
pub(crate) fn drops(links: &[LinkOutcome], ports: usize) -> Vec<u64> {
    let mut drops = vec![0; ports];
    for (record, port) in links.iter().flat_map(LinkOutcome::records) {
        let is_lost = matches!(
            record.outcome,
            Some(Outcome::Lost { .. } | Outcome::Dropped(_))
        );
        if let Some(drops) = drops.get_mut(port as usize) {
            *drops += u64::from(is_lost);
        }
    }
    drops
}

/// Adds the traffic of a flow to its report.
pub(crate) fn flow_traffic(
    report: &mut FlowReport,
    [forward, reverse]: [&Traffic; 2],
    drops: [u64; 2],
    measured: Span,
) {
    report.sent_packets = forward.sent_packets;
    report.sent_wire_bytes = forward.sent_bytes;
    report.acks = reverse.sent_packets;
    report.received_packets = forward.delivered_packets;
    report.delivered_wire_bytes = forward.measured_delivered_bytes;
    report.throughput_bps = forward.measured_delivered_bytes as f64 * 8.0
        / measured.as_secs_f64().max(f64::MIN_POSITIVE);
    report.dropped_packets = drops[0] + drops[1];
    report.dropped_acks = drops[1];
    report.duplicated_packets = forward.copies + reverse.copies;
    let gone = |traffic: &Traffic, drops: u64| {
        let gone = traffic.delivered_packets + drops;
        traffic.sent_packets.saturating_sub(gone)
    };
    report.in_flight_at_end = gone(forward, drops[0]) + gone(reverse, drops[1]);
    report.delay = forward.delay.summary();
    report.delay_distribution = forward.delay.clone();
}
