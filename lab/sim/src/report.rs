//! The results of a run: counters, summaries and, if configured, series over time.

use comity_units::{Seed, Span, Time};
use serde::{Deserialize, Serialize};

use crate::histogram::Distribution;
pub use crate::histogram::Summary;
use crate::metrics::{Convergence, convergence_time};
use crate::packets::PacketLog;
use crate::words;

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The world of the run.
    pub world: World,
    /// The seed of the run.
    #[serde(with = "words")]
    pub seed: Seed,
    /// A hash over every packet's fate at every link and every ACK at every sender. It is equal for
    /// the same network and seed on every machine and thread count. It is 0 in the lab, where no
    /// two runs are equal.
    pub fingerprint: u64,
    /// The length of the run.
    #[serde(with = "words")]
    pub duration: Span,
    /// When measuring began.
    #[serde(with = "words")]
    pub warmup: Span,
    /// The flows, in the order of the network.
    pub flows: Vec<FlowReport>,
    /// The links, in the order of the network.
    pub links: Vec<LinkReport>,
    /// The cost of the run.
    pub cost: Cost,
    /// Values over time, if the scenario has `bins`.
    pub series: Option<Series>,
    /// Every packet at every link, if requested.
    #[serde(skip)]
    pub packets: Option<PacketLog>,
}

impl RunReport {
    /// The groups in the order of their first flows, then the combined groups. Groups whose names
    /// have the same part before a `+` also count as one group with that name: `net+long` and
    /// `net+short` make `net`.
    pub fn groups(&self) -> Vec<&str> {
        groups_of(self.flows.iter().map(|flow| flow.group.as_str()))
    }

    /// Whether the flow has an end and started in measured time, so that its completion time
    /// counts. A flow that arrives after its stop or after the end of the run does not start.
    pub fn is_measured_transfer(&self, flow: &FlowReport) -> bool {
        let is_measured = flow.started >= Time::ZERO + self.warmup;
        flow.size_bytes.is_some() && is_measured && flow.sent_packets > 0
    }

    /// The time from the start of a group's last flow until its flows share equally, by the
    /// criterion of the [`Series`]. `None` if they never do, if the group has fewer than two flows,
    /// or without a criterion.
    pub fn convergence(&self, group: &str) -> Option<Span> {
        let series = self.series.as_ref()?;
        let criterion = series.convergence?;
        let (flows, reports): (Vec<Vec<f64>>, Vec<&FlowReport>) = series
            .flows
            .iter()
            .zip(&self.flows)
            .filter(|(_, report)| report.is_in(group))
            .map(|(flow, report)| {
                let delivered = flow.delivered_bytes.iter();
                (delivered.map(|&bytes| bytes as f64).collect(), report)
            })
            .unzip();
        let last_start = reports.iter().map(|report| report.started).max()?;
        convergence_time(&flows, series.bin, last_start, criterion)
            .ok()??
            .since(last_start)
    }
}

/// As [`RunReport::groups`], from the group of each flow.
pub(crate) fn groups_of<'a>(of_flows: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut groups: Vec<&str> = Vec::new();
    for group in of_flows {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut together: Vec<&str> = Vec::new();
    for group in &groups {
        together.extend(group.match_indices('+').map(|(at, _)| &group[..at]));
    }
    together.retain(|name| {
        let inside = groups.iter().filter(|group| is_within(group, name));
        !groups.contains(name) && inside.count() > 1
    });
    for name in together {
        if !groups.contains(&name) {
            groups.push(name);
        }
    }
    groups
}

/// Whether a group is `name`, or a part of the combined group `name`.
pub(crate) fn is_within(group: &str, name: &str) -> bool {
    group
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

/// The world of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum World {
    /// In virtual time.
    #[default]
    Simulator,
    /// Real packets between network namespaces, some of them late.
    Lab(Lateness),
}

/// The lateness of the lab's router: when it forwarded packets, minus the times of its links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Forwarded packets.
    pub packets: u64,
    /// How many of them were later than the bound.
    pub late_packets: u64,
    /// The 99th percentile, in seconds.
    pub p99_s: f64,
    /// The largest, in seconds.
    pub max_s: f64,
    /// Whether the results can be trusted.
    pub is_trusted: bool,
}

impl World {
    /// The name in results: `sim` or `lab`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulator => "sim",
            Self::Lab(_) => "lab",
        }
    }

    /// The lateness of the lab; `None` in virtual time.
    pub const fn lateness(self) -> Option<Lateness> {
        match self {
            Self::Simulator => None,
            Self::Lab(lateness) => Some(lateness),
        }
    }
}

/// The cost of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Events taken from the queue.
    pub events: u64,
    /// Packets carried, counted once for each link.
    pub packet_hops: u64,
    /// The maximum number of packets in flight at once.
    pub peak_packets: u64,
    /// The memory held by flows, links and packets at the end, in bytes.
    pub memory_bytes: u64,
}

/// The report of one flow. Numbers marked "measured" count from the end of the warm-up to the end
/// of the run.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowReport {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Its controller and recovery, `datagram`, or its controller and `sections`.
    pub kind: String,
    /// Its [base round-trip time](crate::network::Network::base_rtts).
    #[serde(with = "words")]
    pub base_rtt: Option<Span>,
    /// When it started.
    #[serde(with = "words")]
    pub started: Time,
    /// Its payload, for flows that have an end.
    pub size_bytes: Option<u64>,
    /// When its last byte was acknowledged, for flows that have one.
    #[serde(with = "words")]
    pub finished: Option<Time>,
    /// Payload delivered to the receiving application in order, measured.
    pub delivered_bytes: u64,
    /// The same, since the start.
    pub delivered_bytes_total: u64,
    /// In-order segments or datagrams that arrived for the first time, measured, in bytes on the
    /// wire.
    pub delivered_wire_bytes: u64,
    /// Measured payload per second.
    pub goodput_bps: f64,
    /// Measured wire bytes of in-order segments per second: the throughput of the papers and of
    /// ns-2.
    pub throughput_bps: f64,
    /// Packets sent by the source, retransmissions included.
    pub sent_packets: u64,
    /// Their bytes on the wire.
    pub sent_wire_bytes: u64,
    /// Packets that retransmitted payload; not counted for sections, which retransmit bytes and not
    /// packets.
    pub retransmitted_packets: u64,
    /// Retransmission timeouts; for sections, resets of the window after a time without ACKs. The
    /// endpoints of the lab do not report these.
    pub timeouts: u64,
    /// Entries into fast retransmit.
    pub fast_retransmits: u64,
    /// Data packets that reached the destination.
    pub received_packets: u64,
    /// Packets of the flow, in either direction, that a link dropped or lost.
    pub dropped_packets: u64,
    /// The dropped packets that came from the destination (ACKs); the others are data packets.
    pub dropped_acks: u64,
    /// Packets of the flow, in either direction, still in the network at the end.
    pub in_flight_at_end: u64,
    /// Duplicates of its packets that links made.
    pub duplicated_packets: u64,
    /// Packets sent by the destination (acknowledgements).
    pub acks: u64,
    /// One-way delay of data packets, measured; its standard deviation is the jitter of the papers.
    pub delay: Summary,
    /// The distribution behind `delay`.
    pub delay_distribution: Distribution,
    /// The time between arrivals at the destination, measured, for datagrams and flows of sections.
    pub arrival_spacing: Summary,
    /// The smoothed round-trip time at the end, in seconds.
    pub srtt_s: Option<f64>,
    /// The mean of the round-trip samples, measured, in seconds.
    pub mean_rtt_s: Option<f64>,
    /// The minimum round-trip time, in seconds.
    pub min_rtt_s: Option<f64>,
    /// The congestion window at the end, in bytes.
    pub cwnd_bytes: Option<u64>,
    /// The mean congestion window over measured time, in bytes.
    pub mean_cwnd_bytes: Option<f64>,
    /// The slow-start threshold at the end, in bytes.
    pub ssthresh_bytes: Option<u64>,
    /// The capacity of the bottleneck at the end, in bits per second: the controller's parameter or
    /// its estimate; `None` if the controller has none.
    pub capacity_bps: Option<u64>,
    /// The results of a playback reader.
    pub playback: Option<PlaybackReport>,
    /// Bytes that the source's token bucket let through, measured.
    pub tokens_used_bytes: u64,
    /// The mean of these bytes in a round trip, for a TCP flow with such a bucket. An interval has
    /// the length of the last round trip measured before it begins.
    pub tokens_per_rtt_bytes: Option<f64>,
    /// The standard deviation of these bytes from round trip to round trip.
    pub tokens_per_rtt_stddev_bytes: Option<f64>,
    /// The fates of its sections, for flows of sections.
    pub sections: Option<SectionsReport>,
    /// The fates of its sections, for time-lined TCP.
    pub timeline: Option<TimelineReport>,
}

/// The results of a playback reader, measured.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct PlaybackReport {
    /// Reads that it tried.
    pub reads: u64,
    /// Reads that found all their bytes.
    pub satisfied: u64,
    /// The time from the start of the flow to the first read that found its bytes, in seconds.
    pub startup_delay_s: Option<f64>,
    /// Interruptions: from a failed read after a satisfied one to the next satisfied one.
    pub stalls: u64,
    /// Their total time, in seconds; one that lasts at the end counts until the end.
    pub stalled_s: f64,
    /// The time of the longest one, in seconds.
    pub longest_stall_s: f64,
}

/// The fates of the sections of time-lined TCP, since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimelineReport {
    /// Sections that the transport accepted.
    pub given: u64,
    /// Sections that it refused, because the stream was too far ahead of the acknowledged data.
    pub refused: u64,
    /// Frames that the source left out because too few arrived in time, and sections of a greedy
    /// source that expired before there was room for them.
    pub left_out: u64,
    /// Sections complete at the reader by their deadline.
    pub in_time: u64,
    /// Intra frames among them.
    pub intra_in_time: u64,
    /// Predicted frames among them.
    pub predicted_in_time: u64,
    /// Bidirectional frames among them.
    pub bidirectional_in_time: u64,
    /// Sections among them that are not frames.
    pub other_in_time: u64,
    /// Sections complete after their deadline.
    pub late: u64,
    /// Sections with bytes that never arrive.
    pub broken: u64,
    /// Runs of successive sections of the source that were not in time.
    pub interruptions: u64,
    /// The sections in the longest of these runs.
    pub longest_interruption: u64,
    /// Sections not completely acknowledged at their deadline.
    pub expired: u64,
    /// How often the sender jumped over bytes never sent.
    pub jumps: u64,
    /// Gaps at the reader.
    pub gaps: u64,
    /// The bytes in them.
    pub gap_bytes: u64,
    /// Bytes discarded before they were sent.
    pub discarded_bytes: u64,
    /// Bytes sent and not acknowledged when they became obsolete.
    pub obsolete_bytes: u64,
    /// Losses of obsolete data after which current data was retransmitted.
    pub pseudo_retransmissions: u64,
    /// Losses of obsolete data after which a packet was sent for the first time.
    pub replacements: u64,
    /// Segments with only a `seq_update`.
    pub notices: u64,
}

impl FlowReport {
    /// The minimum and maximum base round-trip time of flows, in seconds.
    pub fn base_rtt_range<'f>(flows: impl Iterator<Item = &'f Self>) -> Option<[f64; 2]> {
        let rtts = flows.filter_map(|flow| flow.base_rtt);
        rtts.map(|rtt| [rtt, rtt])
            .reduce(|[least, most], [rtt, _]| [least.min(rtt), most.max(rtt)])
            .map(|range| range.map(Span::as_secs_f64))
    }

    /// The flow completion time: from the start of the flow, handshake included, until all
    /// [`size_bytes`](Self::size_bytes) are acknowledged. `None` for flows without an end, and for
    /// flows that did not end or were stopped before.
    pub fn completion_time(&self) -> Option<Span> {
        let is_whole = self.size_bytes == Some(self.delivered_bytes_total);
        self.finished.filter(|_| is_whole)?.since(self.started)
    }

    /// Whether the flow counts in the group, by its own group or by a combined one
    /// ([`RunReport::groups`]).
    pub fn is_in(&self, group: &str) -> bool {
        is_within(&self.group, group)
    }
}

/// The fates of the sections of a flow. Counts cover sections with a source time in measured time:
///
/// ```text
/// frames of the source = submitted + refused + shed
/// submitted = on_time + late + gaps + open
/// ```
///
/// Both ends of a simulated flow have the same clock. By that clock, a section is on time if it is
/// complete by its deadline. The receiver's own deadline may differ a little, because it estimates
/// the sender's clock.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct SectionsReport {
    /// Sections that the transport accepted.
    pub submitted: u64,
    /// Sections that it refused for lack of room.
    pub refused: u64,
    /// Frames that the source shed because the path carried less than it produced.
    pub shed: u64,
    /// Sections that were complete by their deadline.
    pub on_time: u64,
    /// Sections that were complete after it.
    pub late: u64,
    /// Sections that the receiver reported to its application as gaps, by reason.
    pub gaps: GapCounts,
    /// Sections not settled at the end of the run.
    pub open: u64,
    /// Sections on time whose dependencies were on time too.
    pub decodable: u64,
    /// Their bytes.
    pub bytes: SectionBytes,
    /// The section bytes that an equal share of the path's narrowest link carries in measured time:
    ///
    /// ```text
    /// bytes = min( rate / flows whose data crosses the link ) · time · payload / wire bytes of a full packet
    /// ```
    ///
    /// over the links to the destination. `None` if none of them has a rate.
    pub equal_share_bytes: Option<u64>,
    /// Intra frames.
    pub intra: FrameCounts,
    /// Predicted frames.
    pub predicted: FrameCounts,
    /// Bidirectional frames.
    pub bidirectional: FrameCounts,
    /// Bytes of sections sent at or after their deadline, since the start.
    pub late_bytes: u64,
    /// Retransmitted bytes of sections, measured.
    pub retransmitted_bytes: u64,
    /// Packets that the source declared lost, measured.
    pub lost_packets: u64,
    /// Packets declared lost that arrived later, measured.
    pub spurious_losses: u64,
    /// Packets that arrived marked by the network, measured.
    pub marked_packets: u64,
    /// The source's target bitrate at the end, in bit/s.
    pub target_bitrate_bps: Option<f64>,
    /// From a section's source time until it was complete, for complete ones.
    pub age: Summary,
    /// The first percentile of the time left until the deadline when a section was complete, in
    /// seconds; negative if it was late.
    pub slack_p1_s: Option<f64>,
    /// The median of the time left.
    pub slack_median_s: Option<f64>,
    /// When the connection ended, if it did.
    #[serde(with = "words")]
    pub closed: Option<Time>,
}

impl SectionsReport {
    /// The part of the source's bytes that an equal share could have carried: the share, or all
    /// bytes settled, refused or shed if these are fewer.
    pub fn carriable_bytes(&self) -> Option<u64> {
        let bytes = &self.bytes;
        let offered = bytes.submitted + bytes.refused + bytes.shed - bytes.open;
        Some(self.equal_share_bytes?.min(offered))
    }
}

/// Bytes of sections, counted as their sections are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SectionBytes {
    /// Of sections that the transport accepted.
    pub submitted: u64,
    /// Of sections that it refused.
    pub refused: u64,
    /// Of frames that the source shed.
    pub shed: u64,
    /// Of sections complete by their deadline.
    pub on_time: u64,
    /// Of sections on time whose dependencies were on time too.
    pub decodable: u64,
    /// Of sections not settled at the end of the run.
    pub open: u64,
}

/// Gaps by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GapCounts {
    /// The connection ended.
    pub closed: u64,
    /// The sender skipped them without a reason.
    pub obsolete: u64,
    /// The deadline passed at the receiver.
    pub overdue: u64,
    /// A section that they depend on was dropped.
    pub dependency: u64,
    /// They expired at the sender.
    pub expired: u64,
    /// They could not have arrived in time.
    pub infeasible: u64,
    /// The sender's application left them out or withdrew them.
    pub withdrawn: u64,
}

impl GapCounts {
    /// All gaps.
    pub const fn sum(&self) -> u64 {
        self.closed
            + self.obsolete
            + self.overdue
            + self.dependency
            + self.expired
            + self.infeasible
            + self.withdrawn
    }
}

/// Frames of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FrameCounts {
    /// Frames of the source, refused and shed ones included.
    pub submitted: u64,
    /// Complete by their deadline.
    pub on_time: u64,
    /// On time, with all dependencies on time too.
    pub decodable: u64,
    /// Not settled at the end of the run.
    pub open: u64,
}

/// The report of one link.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Packets offered to it.
    pub offered_packets: u64,
    /// Packets that arrived at the far end by the end of the run.
    pub delivered_packets: u64,
    /// Packets dropped because the queue was full, or by FQ-CoDel at its limit.
    pub dropped_full: u64,
    /// Packets dropped early by the queue's management (RED, CoDel, FQ-CoDel, PIE).
    pub dropped_early: u64,
    /// Packets lost by a loss model, or larger than the link's MTU.
    pub lost: u64,
    /// All drops and losses, measured.
    pub dropped_measured: u64,
    /// All drops and losses of packets to a source (ACKs), since the start.
    pub dropped_acks: u64,
    /// Packets marked instead of dropped.
    pub marked: u64,
    /// Duplicates that the link made.
    pub duplicated: u64,
    /// Packets waiting or in service at the end.
    pub queued_at_end: u64,
    /// Packets on the wire at the end.
    pub in_flight_at_end: u64,
    /// Bytes that left the queue, measured.
    pub carried_bytes: u64,
    /// The bytes transmitted as a share of what the rate allowed, measured; `None` without a rate,
    /// or if the rate was always zero.
    pub utilisation: Option<f64>,
    /// The mean number of packets waiting or in service, measured.
    pub mean_queue_packets: f64,
    /// The queueing delay before transmission, measured.
    pub queueing_delay: Summary,
    /// The distribution behind `queueing_delay`.
    pub queueing_delay_distribution: Distribution,
}

/// Values over time in bins of equal length from the start of the run.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// The length of a bin.
    #[serde(with = "words")]
    pub bin: Span,
    /// A column set for each flow, in the order of the network.
    pub flows: Vec<FlowSeries>,
    /// A column set for each link, in the order of the network.
    pub links: Vec<LinkSeries>,
    /// When a group of flows counts as converged, if configured.
    pub convergence: Option<Convergence>,
}

/// One flow over time: each column has one entry per bin.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowSeries {
    /// Payload delivered in order in the bin, in bytes.
    pub delivered_bytes: Vec<u64>,
    /// Packets sent in the bin.
    pub sent_packets: Vec<u32>,
    /// Bytes of these packets on the wire.
    pub sent_wire_bytes: Vec<u64>,
    /// Retransmissions sent in the bin.
    pub retransmitted_packets: Vec<u32>,
    /// The congestion window at the end of the bin, in bytes.
    pub cwnd_bytes: Vec<u64>,
    /// The slow-start threshold at the end of the bin, in bytes.
    pub ssthresh_bytes: Vec<u64>,
    /// The smoothed round-trip time at the end of the bin, in nanoseconds.
    pub srtt_ns: Vec<u64>,
}

/// One link over time: each column has one entry per bin.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct LinkSeries {
    /// Bytes that left the queue in the bin.
    pub carried_bytes: Vec<u64>,
    /// Packets dropped or lost in the bin.
    pub dropped_packets: Vec<u32>,
    /// The maximum number of packets waiting or in service in the bin.
    pub max_queue_packets: Vec<u32>,
    /// The longest time, in nanoseconds, from offer to transmission of a packet offered in the bin.
    /// The lab has none.
    pub max_queueing_delay_ns: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(groups: &[&str]) -> RunReport {
        let flow = |group: &&str| FlowReport {
            group: (*group).into(),
            ..FlowReport::default()
        };
        RunReport {
            world: World::Simulator,
            seed: Seed::new(1),
            fingerprint: 0,
            duration: Span::from_secs(1),
            warmup: Span::ZERO,
            flows: groups.iter().map(flow).collect(),
            links: Vec::new(),
            cost: Cost::default(),
            series: None,
            packets: None,
        }
    }

    #[test]
    fn groups_that_begin_alike_are_counted_together_too() {
        let names = ["net+along+long", "net+along+medium", "net+short", "netting"];
        let report = report(&[names[0], names[1], names[0], names[2], names[3]]);
        let groups = report.groups();
        assert_eq!(groups[..4], names);
        assert_eq!(groups[4..], ["net", "net+along"]);
        let count = |name: &str| report.flows.iter().filter(|flow| flow.is_in(name)).count();
        assert_eq!(count("net"), 4);
        assert_eq!(count("net+along"), 3);
        assert_eq!(count("net+along+long"), 2);
        assert_eq!(count("netting"), 1);
    }

    #[test]
    fn one_group_alone_is_not_counted_twice() {
        assert_eq!(report(&["a+b", "a+b"]).groups(), ["a+b"]);
        assert_eq!(report(&["a+b", "a"]).groups(), ["a+b", "a"]);
        assert_eq!(report(&["a", "b"]).groups(), ["a", "b"]);
    }
}
