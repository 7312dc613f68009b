//! The counters of connections and endpoints, as plain structs with a unit in every name.
//!
//! A value that SRT also reports has SRT's JSON key (`msRTT`, `pktSent`, `mbpsBandwidth`, ..). The
//! other keys have the same form.

use comity_transport::datagram;
pub use comity_transport::datagram::{
    ReceivedStatistics as ReceivedCounters, SentStatistics as SentCounters,
};
pub use comity_transport::timeline::inbox::GapCounters;
pub use comity_transport::timeline::outbox::{ByteCounters, SectionCounters};
use comity_units::{Rate, Span};
use serde::{Serialize, Serializer};

use crate::session::{ListenerStatistics, SessionStatistics};

/// The statistics of one connection, in both directions. Counters are cumulative.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// How long the connection has been open.
    #[serde(rename = "msTimeStamp")]
    pub age_ms: f64,
    /// What this end sent, and its fate as far as this end knows.
    pub sent: Sent,
    /// What this end received.
    pub received: Received,
    /// The path to the peer, as this end sees it.
    pub path: Path,
    /// The peer's last report of what it received from this end. While packets arrive at the peer,
    /// it sends a report at least every 125 ms.
    pub peer: Option<Peer>,
    /// How exactly paced packets leave.
    pub pacing: Pacing,
    /// Packet protection.
    pub protection: SessionStatistics,
}

/// What an end sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Packets, their bytes and their losses. `wire_bytes` includes all headers. The UDP and IP
    /// headers of a packet have 28 bytes with IPv4, and 48 bytes with IPv6.
    #[serde(flatten, serialize_with = "SentKeys::serialize")]
    pub counters: SentCounters,
    /// Sections by their fate.
    #[serde(serialize_with = "sections")]
    pub sections: SectionCounters,
    /// The bytes of these sections. `queued` and `in_flight` together are the send buffer
    /// (`byteSndBuf` in SRT).
    #[serde(serialize_with = "bytes")]
    pub bytes: ByteCounters,
}

/// The JSON keys of [`SentCounters`].
#[derive(Serialize)]
#[serde(remote = "SentCounters")]
struct SentKeys {
    #[serde(rename = "pktSent")]
    packets: u64,
    #[serde(rename = "byteSent")]
    wire_bytes: u64,
    #[serde(rename = "byteSentPayload")]
    section_bytes: u64,
    #[serde(rename = "byteRetrans")]
    retransmitted_bytes: u64,
    #[serde(rename = "byteSentLate")]
    late_bytes: u64,
    #[serde(rename = "pktSndLoss")]
    lost_packets: u64,
    #[serde(rename = "pktSndLossSpurious")]
    spurious_losses: u64,
    #[serde(rename = "pktSndMarked")]
    marked_packets: u64,
    #[serde(rename = "lossEvents")]
    loss_events: u64,
    probes: u64,
    #[serde(rename = "blackHoles")]
    black_holes: u64,
}

/// What an end received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Received {
    /// Packets and their bytes. `wire_bytes` includes all headers, as in [`Sent::counters`].
    #[serde(flatten, serialize_with = "ReceivedKeys::serialize")]
    pub counters: ReceivedCounters,
    /// Bytes of sections delivered whole.
    #[serde(rename = "byteRecvDelivered")]
    pub delivered_bytes: u64,
    /// Bytes of sections that became gaps.
    #[serde(rename = "byteRecvPartial")]
    pub partial_bytes: u64,
    /// Bytes that arrived again.
    #[serde(rename = "byteRecvDuplicate")]
    pub duplicate_bytes: u64,
    /// Bytes that arrived after their section had become a gap.
    #[serde(rename = "byteRcvBelated")]
    pub belated_bytes: u64,
    /// Bytes that wait for the rest of their section or for the application.
    #[serde(rename = "byteRcvBuf")]
    pub buffered_bytes: u64,
    /// Sections that were whole by their deadline.
    #[serde(rename = "sectionsOnTime")]
    pub on_time_sections: u64,
    /// Sections that were whole only after their deadline.
    #[serde(rename = "sectionsLate")]
    pub late_sections: u64,
    /// Sections that became gaps, by reason.
    #[serde(serialize_with = "gaps")]
    pub gaps: GapCounters,
    /// How long before their deadlines sections were whole. At least 99, 50 and 1 % of the sections
    /// reach the three values. Each value is rounded down to a power of two.
    #[serde(rename = "msSlackAtLeast")]
    pub slack_at_least_ms: [f64; 3],
}

/// The JSON keys of [`ReceivedCounters`].
#[derive(Serialize)]
#[serde(remote = "ReceivedCounters")]
struct ReceivedKeys {
    #[serde(rename = "pktRecvUnique")]
    packets: u64,
    #[serde(rename = "byteRecvUnique")]
    wire_bytes: u64,
    #[serde(rename = "pktRcvLoss")]
    missing_packets: u64,
    #[serde(rename = "pktRecvDuplicate")]
    duplicates: u64,
    #[serde(rename = "pktRecvMarked")]
    marked_packets: u64,
}

/// A path, as its sender sees it.
///
/// The transport has the same values as spans and rates. Here they are milliseconds and Mb/s.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Path {
    /// The controller.
    pub controller: String,
    /// The phase of the controller.
    pub phase: String,
    /// The smoothed round-trip time.
    #[serde(rename = "msRTT")]
    pub rtt_ms: Option<f64>,
    /// The mean deviation of the round-trip time.
    #[serde(rename = "msRTTVar")]
    pub rtt_variation_ms: f64,
    /// The least round-trip time.
    #[serde(rename = "msRTTMin")]
    pub min_rtt_ms: Option<f64>,
    /// The one-way delay to the peer: half of the least round trip, plus the queueing delay.
    #[serde(rename = "msOneWayDelay")]
    pub one_way_ms: Option<f64>,
    /// The congestion window; `None` while only the pacing limits the flow.
    #[serde(rename = "byteCongestionWindow")]
    pub window_bytes: Option<u64>,
    /// The bytes in flight.
    #[serde(rename = "byteFlightSize")]
    pub in_flight_bytes: u64,
    /// The slow-start threshold.
    #[serde(rename = "byteSlowStartThreshold")]
    pub ssthresh_bytes: Option<u64>,
    /// The pacing rate.
    #[serde(rename = "mbpsPacing")]
    pub pacing_mbps: Option<f64>,
    /// The pacing rate within a burst. `None` for a controller without a token bucket.
    #[serde(rename = "mbpsPacingPeak")]
    pub peak_mbps: Option<f64>,
    /// The tokens in the bucket of such a controller, in bytes. Negative while the bucket is in
    /// debt.
    #[serde(rename = "byteSaved")]
    pub token_bytes: Option<i64>,
    /// The capacity of the bottleneck; `None` if the controller does not know it.
    #[serde(rename = "mbpsBandwidth")]
    pub capacity_mbps: Option<f64>,
    /// The bitrate at which the application should submit, for example that of an encoder.
    #[serde(rename = "mbpsTarget")]
    pub target_mbps: Option<f64>,
    /// The protected payload of a full packet on this path, without headers and tag.
    #[serde(rename = "bytePayload")]
    pub payload_bytes: u32,
    /// How much faster the peer's clock runs than that of this end, in parts per million. Measured
    /// from the peer's packets.
    #[serde(rename = "ppmClockDrift")]
    pub clock_drift_ppm: f64,
}

/// The peer's last report of what it received.
///
/// The transport has the same values as microseconds and spans. Here they are milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Peer {
    /// Sections that arrived whole, delivered or not.
    #[serde(rename = "sectionsComplete")]
    pub complete_sections: u64,
    /// Complete sections that were whole by their deadline.
    #[serde(rename = "sectionsOnTime")]
    pub on_time_sections: u64,
    /// Complete sections that were whole only after their deadline.
    #[serde(rename = "sectionsLate")]
    pub late_sections: u64,
    /// Sections that will not arrive whole, because their deadline came or this end dropped them.
    #[serde(rename = "sectionsGap")]
    pub gap_sections: u64,
    /// Bytes of sections that arrived, each counted once.
    #[serde(rename = "byteRecvUnique")]
    pub section_bytes: u64,
    /// Packets that arrived, each counted once.
    #[serde(rename = "pktRecvUnique")]
    pub packets: u64,
    /// Duplicate packets.
    #[serde(rename = "pktRecvDuplicate")]
    pub duplicates: u64,
    /// The one-way delay of the latest packet to the peer: half of the least round trip that the
    /// peer measured, plus the queueing delay.
    #[serde(rename = "msOneWayDelay")]
    pub one_way_ms: f64,
    /// The least such delay in the recent past.
    #[serde(rename = "msOneWayDelayMin")]
    pub min_one_way_ms: f64,
    /// The interarrival jitter of RTP: the variation of the delay between consecutive packets.
    #[serde(rename = "msJitter")]
    pub jitter_ms: f64,
    /// Bytes of the peer's receive buffer that are not free.
    #[serde(rename = "byteRcvBuf")]
    pub buffered_bytes: u64,
    /// How much faster the clock of this end runs than the peer's, in parts per billion. Measured
    /// by the peer.
    #[serde(rename = "ppbClockDrift")]
    pub clock_drift_ppb: i64,
}

/// How much later than planned the endpoint handed paced packets to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pacing {
    /// The packets that the pacer held back. The other fields describe only these packets.
    #[serde(rename = "pktPaced")]
    pub packets: u64,
    /// The mean delay.
    #[serde(rename = "usErrorMean")]
    pub mean_us: f64,
    /// The median delay.
    #[serde(rename = "usErrorP50")]
    pub p50_us: f64,
    /// The 99th percentile.
    #[serde(rename = "usErrorP99")]
    pub p99_us: f64,
    /// The 99.9th percentile.
    #[serde(rename = "usErrorP999")]
    pub p999_us: f64,
    /// The maximum delay.
    #[serde(rename = "usErrorMax")]
    pub max_us: f64,
}

/// The counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndpointStatistics {
    /// Connections that are open, or being opened or closed.
    pub connections: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams handed to the system.
    pub datagrams_sent: u64,
    /// System calls that sent these datagrams. One call can send several datagrams.
    pub batches_sent: u64,
    /// Datagrams that the system refused to send. Their packets are lost.
    pub datagrams_unsent: u64,
    /// Datagrams that the endpoint dropped, because the deadline of a section in them passed before
    /// the system had room. Their packets are lost.
    pub datagrams_expired: u64,
    /// Datagrams that are not packets, or belong to no connection here.
    pub datagrams_unknown: u64,
    /// Refused callers.
    pub callers_refused: u64,
    /// Initial packets with a valid cookie, and Confirm packets with a valid ticket, beyond the
    /// listener's budget. Their callers retransmit them.
    pub callers_deferred: u64,
    /// Resets sent in reply to packets of unknown connections. A caller can then call again.
    pub resets_sent: u64,
    /// Half-open connections that timed out.
    pub callers_given_up: u64,
    /// Retry packets sent to callers that had to prove their address first.
    pub retries_sent: u64,
    /// Replies to callers that the endpoint dropped because too many replies waited already, as in
    /// a flood of calls.
    pub replies_dropped: u64,
    /// Connections closed because nobody accepted them.
    pub connections_unaccepted: u64,
    /// An upper bound of the memory that peers make the endpoint hold at present, in bytes.
    pub memory: u64,
    /// Connections that the endpoint closed because they held the most memory while another
    /// connection lacked memory within its own share.
    pub connections_evicted: u64,
    /// Panics. Each ended one connection, or one attempt to open one.
    pub internal_errors: u64,
}

impl EndpointStatistics {
    pub(crate) fn with_listener(self, listener: &ListenerStatistics) -> Self {
        Self {
            datagrams_unknown: self.datagrams_unknown + listener.unknown,
            callers_refused: listener.refused,
            callers_deferred: listener.deferred,
            resets_sent: listener.resets,
            callers_given_up: listener.given_up,
            retries_sent: listener.retries,
            replies_dropped: listener.replies_dropped,
            ..self
        }
    }
}

fn sections<S: Serializer>(counts: &SectionCounters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.entries())
}

fn bytes<S: Serializer>(counts: &ByteCounters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.entries())
}

fn gaps<S: Serializer>(counts: &GapCounters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.entries())
}

fn ms(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

fn mbps(rate: Rate) -> f64 {
    rate.as_mbps_f64()
}

impl Statistics {
    pub(crate) fn new(
        age: Span,
        controller: &str,
        connection: &datagram::Statistics,
        session: &SessionStatistics,
        drift_ppm: f64,
    ) -> Self {
        let path = &connection.path;
        let inbox = &connection.inbox;
        Self {
            age_ms: ms(age),
            sent: Sent {
                counters: connection.sent,
                sections: connection.outbox.sections,
                bytes: connection.outbox.bytes,
            },
            received: Received {
                counters: connection.received,
                delivered_bytes: inbox.delivered,
                partial_bytes: inbox.partial,
                duplicate_bytes: inbox.duplicate,
                belated_bytes: inbox.late,
                buffered_bytes: inbox.held,
                on_time_sections: inbox.on_time,
                late_sections: inbox.complete_late,
                gaps: inbox.gaps,
                slack_at_least_ms: [0.99, 0.5, 0.01].map(|share| ms(inbox.slack.at_least(share))),
            },
            path: Path {
                controller: controller.to_owned(),
                phase: format!("{:?}", path.phase),
                rtt_ms: path.srtt.map(ms),
                rtt_variation_ms: ms(path.rtt_variation),
                min_rtt_ms: path.min_rtt.map(ms),
                one_way_ms: path.one_way_delay.map(ms),
                window_bytes: Some(path.window.get()).filter(|window| *window != u64::MAX),
                in_flight_bytes: path.in_flight.get(),
                ssthresh_bytes: path
                    .ssthresh
                    .map(comity_units::Bytes::get)
                    .filter(|threshold| *threshold != u64::MAX),
                pacing_mbps: path.pacing_rate.map(mbps),
                peak_mbps: path.peak_rate.map(mbps),
                token_bytes: path.tokens,
                capacity_mbps: path.capacity.map(mbps),
                target_mbps: path.target_bitrate.map(mbps),
                payload_bytes: path.payload,
                clock_drift_ppm: drift_ppm,
            },
            peer: connection.peer.map(|peer| Peer {
                complete_sections: peer.complete,
                on_time_sections: peer.on_time,
                late_sections: peer.late,
                gap_sections: peer.gaps,
                section_bytes: peer.bytes,
                packets: peer.packets,
                duplicates: peer.duplicates,
                one_way_ms: peer.one_way_latest_us as f64 / 1e3,
                min_one_way_ms: peer.one_way_least_us as f64 / 1e3,
                jitter_ms: ms(peer.jitter),
                buffered_bytes: peer.buffered,
                clock_drift_ppb: peer.drift_ppb,
            }),
            pacing: Pacing::default(),
            protection: *session,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[&str] = &[
        r#"{"msTimeStamp":0.0,"sent":{"pktSent":0,"byteSent":0,"byteSentPayload":0,"#,
        r#""byteRetrans":0,"byteSentLate":0,"pktSndLoss":0,"pktSndLossSpurious":0,"#,
        r#""pktSndMarked":0,"lossEvents":0,"probes":0,"blackHoles":0,"sections":{"#,
        r#""submitted":0,"open":0,"acknowledged":0,"expired_unsent":0,"#,
        r#""expired_in_network":0,"lost":0,"infeasible":0,"dependency":0,"shed":0,"#,
        r#""cancelled":0},"#,
        r#""bytes":{"submitted":0,"queued":0,"in_flight":0,"acknowledged":0,"#,
        r#""expired_unsent":0,"expired_in_network":0,"lost":0,"infeasible":0,"dependency":0"#,
        r#","cancelled":0}},"#,
        r#""received":{"pktRecvUnique":0,"byteRecvUnique":0,"pktRcvLoss":0,"#,
        r#""pktRecvDuplicate":0,"pktRecvMarked":0,"byteRecvDelivered":0,"byteRecvPartial":0"#,
        r#","byteRecvDuplicate":0,"byteRcvBelated":0,"byteRcvBuf":0,"sectionsOnTime":0,"#,
        r#""sectionsLate":0,"gaps":{"closed":0,"obsolete":0,"overdue":0,"cancelled":0,"#,
        r#""dependency":0,"expired":0,"infeasible":0,"shed":0},"#,
        r#""msSlackAtLeast":[0.0,0.0,0.0]},"#,
        r#""path":{"controller":"","phase":"","msRTT":null,"msRTTVar":0.0,"msRTTMin":null,"#,
        r#""msOneWayDelay":null,"byteCongestionWindow":null,"byteFlightSize":0,"#,
        r#""byteSlowStartThreshold":null,"mbpsPacing":null,"mbpsPacingPeak":null,"#,
        r#""byteSaved":null,"mbpsBandwidth":null,"mbpsTarget":null,"bytePayload":0,"ppmClockDrift":0.0},"#,
        r#""peer":{"sectionsComplete":0,"sectionsOnTime":0,"sectionsLate":0,"sectionsGap":0"#,
        r#","byteRecvUnique":0,"pktRecvUnique":0,"pktRecvDuplicate":0,"msOneWayDelay":0.0,"#,
        r#""msOneWayDelayMin":0.0,"msJitter":0.0,"byteRcvBuf":0,"ppbClockDrift":0},"#,
        r#""pacing":{"pktPaced":0,"usErrorMean":0.0,"usErrorP50":0.0,"usErrorP99":0.0,"#,
        r#""usErrorP999":0.0,"usErrorMax":0.0},"#,
        r#""protection":{"pktRecvForged":0,"pktRecvStale":0,"keyUpdates":0}}"#,
    ];

    #[test]
    fn json_keys_and_their_order_are_public() {
        let statistics = Statistics {
            peer: Some(Peer::default()),
            ..Statistics::default()
        };
        assert_eq!(serde_json::to_string(&statistics).unwrap(), KEYS.concat());
    }
}
