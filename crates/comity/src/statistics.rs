//! What connections and endpoints have counted, as plain structs with a unit in every name.
//!
//! Names are SRT's where the meaning is the same (`msRTT`, `pktSent`, `mbpsBandwidth`, ..), in what
//! is serialised; the others follow the same form.

use comity_transport::datagram;
pub use comity_transport::timeline::inbox::GapAccounts;
pub use comity_transport::timeline::outbox::{ByteAccounts, SectionAccounts};
use comity_units::{Rate, Span};
use serde::{Serialize, Serializer};

use crate::session::{ListenerStatistics, SessionStatistics};

/// One connection, both ends' halves of it. Counters are cumulative since its beginning.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Statistics {
    /// How long the connection has been open.
    #[serde(rename = "msTimeStamp")]
    pub age_ms: f64,
    /// What this end sent, and what became of it as far as it knows.
    pub sent: Sent,
    /// What this end received.
    pub received: Received,
    /// The path to the peer, as this end sees it.
    pub path: Path,
    /// What the peer said last of what it received from this end; at most some 100 ms old while
    /// sections flow.
    pub peer: Option<Peer>,
    /// How exactly paced packets leave.
    pub pacing: Pacing,
    /// Packet protection.
    pub protection: Protection,
}

/// What an end sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Packets.
    #[serde(rename = "pktSent")]
    pub packets: u64,
    /// Their bytes on the wire, headers of all layers included.
    #[serde(rename = "byteSent")]
    pub wire_bytes: u64,
    /// Bytes of sections in them, each time that they were sent.
    #[serde(rename = "byteSentPayload")]
    pub section_bytes: u64,
    /// Bytes of sections that were retransmitted.
    #[serde(rename = "byteRetrans")]
    pub retransmitted_bytes: u64,
    /// Bytes of sections that were sent after their deadline: 0 unless that was asked for.
    #[serde(rename = "byteSentLate")]
    pub late_bytes: u64,
    /// Packets that were lost.
    #[serde(rename = "pktSndLoss")]
    pub lost_packets: u64,
    /// Of these, those that turned out to be late only.
    #[serde(rename = "pktSndLossSpurious")]
    pub spurious_losses: u64,
    /// Packets that the network marked instead of dropping them, as the peer says.
    #[serde(rename = "pktSndMarked")]
    pub marked_packets: u64,
    /// Loss episodes that the controller was told of.
    #[serde(rename = "lossEvents")]
    pub loss_events: u64,
    /// Expiries of the probe timer.
    pub probes: u64,
    /// Times at which the path swallowed full packets that it had carried, and smaller ones took
    /// their place.
    #[serde(rename = "blackHoles")]
    pub black_holes: u64,
    /// The sections, by what became of them.
    #[serde(serialize_with = "sections")]
    pub sections: SectionAccounts,
    /// Their bytes; `queued` and `in_flight` together are the send buffer (`byteSndBuf` in SRT).
    #[serde(serialize_with = "bytes")]
    pub bytes: ByteAccounts,
}

/// What an end received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Received {
    /// Packets, each once.
    #[serde(rename = "pktRecvUnique")]
    pub packets: u64,
    /// Their bytes on the wire, headers of all layers included.
    #[serde(rename = "byteRecvUnique")]
    pub wire_bytes: u64,
    /// Packets that never came, by the numbers missing among those that did: what comes late is
    /// taken back.
    #[serde(rename = "pktRcvLoss")]
    pub missing_packets: u64,
    /// Packets that arrived again.
    #[serde(rename = "pktRecvDuplicate")]
    pub duplicates: u64,
    /// Packets that arrived marked by the network.
    #[serde(rename = "pktRecvMarked")]
    pub marked_packets: u64,
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
    /// Sections that were whole only after it.
    #[serde(rename = "sectionsLate")]
    pub late_sections: u64,
    /// Sections that became gaps, by reason.
    #[serde(serialize_with = "gaps")]
    pub gaps: GapAccounts,
    /// The slack before their deadline that 99, 50 and 1 % of the sections had at least, as powers
    /// of two.
    #[serde(rename = "msSlackAtLeast")]
    pub slack_at_least_ms: [f64; 3],
}

/// A path, as its sender sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Path {
    /// The controller.
    pub controller: String,
    /// Its phase.
    pub phase: String,
    /// The smoothed round-trip time.
    #[serde(rename = "msRTT")]
    pub rtt_ms: Option<f64>,
    /// Its mean deviation.
    #[serde(rename = "msRTTVar")]
    pub rtt_variation_ms: f64,
    /// The least round-trip time.
    #[serde(rename = "msRTTMin")]
    pub min_rtt_ms: Option<f64>,
    /// The delay to the peer: half the least round trip, and the queues on the way.
    #[serde(rename = "msOneWayDelay")]
    pub one_way_ms: Option<f64>,
    /// The congestion window; `None` for a controller without one.
    #[serde(rename = "byteCongestionWindow")]
    pub window_bytes: Option<u64>,
    /// What is in flight.
    #[serde(rename = "byteFlightSize")]
    pub in_flight_bytes: u64,
    /// The slow-start threshold.
    #[serde(rename = "byteSlowStartThreshold")]
    pub ssthresh_bytes: Option<u64>,
    /// The rate at which packets are spread.
    #[serde(rename = "mbpsPacing")]
    pub pacing_mbps: Option<f64>,
    /// How fast a burst may go, for a controller whose rate is an average.
    #[serde(rename = "mbpsPacingPeak")]
    pub peak_mbps: Option<f64>,
    /// What such a controller has saved up of its rate; below zero when it is overdrawn.
    #[serde(rename = "byteSaved")]
    pub saved_bytes: Option<i64>,
    /// What the application may send: what an encoder is to be set to.
    #[serde(rename = "mbpsTarget")]
    pub target_mbps: Option<f64>,
    /// The bytes of a full packet, without headers and tag: what the path was found to carry.
    #[serde(rename = "bytePayload")]
    pub payload_bytes: u32,
    /// The clock difference: how much faster the peer's goes, in parts per million, as the peer's
    /// packets show.
    #[serde(rename = "ppmClockDrift")]
    pub clock_drift_ppm: f64,
}

/// What the peer said last of what it received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Peer {
    /// Sections delivered whole.
    #[serde(rename = "sectionsComplete")]
    pub complete_sections: u64,
    /// Of these, those that were whole by their deadline.
    #[serde(rename = "sectionsOnTime")]
    pub on_time_sections: u64,
    /// Of these, those that were whole only after it.
    #[serde(rename = "sectionsLate")]
    pub late_sections: u64,
    /// Sections of which something is missing.
    #[serde(rename = "sectionsGap")]
    pub gap_sections: u64,
    /// Bytes of sections.
    #[serde(rename = "byteRecvUnique")]
    pub section_bytes: u64,
    /// Packets.
    #[serde(rename = "pktRecvUnique")]
    pub packets: u64,
    /// Packets that came again.
    #[serde(rename = "pktRecvDuplicate")]
    pub duplicates: u64,
    /// The delay to the peer that the latest packet had: half the least round trip that the peer
    /// measured, and the queues on the way.
    #[serde(rename = "msOneWayDelay")]
    pub one_way_ms: f64,
    /// The least such delay of the recent past.
    #[serde(rename = "msOneWayDelayMin")]
    pub min_one_way_ms: f64,
    /// How much the delay differs between packets that follow each other: the interarrival jitter
    /// of RTP.
    #[serde(rename = "msJitter")]
    pub jitter_ms: f64,
    /// Bytes that wait at the peer.
    #[serde(rename = "byteRcvBuf")]
    pub buffered_bytes: u64,
    /// How much faster this end's clock goes, as the peer sees it, in parts per billion.
    #[serde(rename = "ppbClockDrift")]
    pub clock_drift_ppb: i64,
}

/// How much later than planned paced packets were handed to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Pacing {
    /// Packets that the pacer held back, and which are the ones counted here.
    #[serde(rename = "pktPaced")]
    pub packets: u64,
    /// The mean.
    #[serde(rename = "usErrorMean")]
    pub mean_us: f64,
    /// The median.
    #[serde(rename = "usErrorP50")]
    pub p50_us: f64,
    /// What 99 % did not exceed.
    #[serde(rename = "usErrorP99")]
    pub p99_us: f64,
    /// What 99.9 % did not exceed.
    #[serde(rename = "usErrorP999")]
    pub p999_us: f64,
    /// The most.
    #[serde(rename = "usErrorMax")]
    pub max_us: f64,
}

/// What packet protection counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Protection {
    /// Packets that were refused because they are not from the peer, or were changed.
    #[serde(rename = "pktRecvForged")]
    pub forged_packets: u64,
    /// Packets that were refused because they had been seen, or were too old to tell.
    #[serde(rename = "pktRecvStale")]
    pub stale_packets: u64,
    /// Key updates.
    #[serde(rename = "keyUpdates")]
    pub key_updates: u64,
}

/// What an endpoint has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndpointStatistics {
    /// Connections that are open, or being opened or closed.
    pub connections: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams handed to the system.
    pub datagrams_sent: u64,
    /// Batches that they were handed over in: calls of the system.
    pub batches_sent: u64,
    /// Datagrams that the system did not take; for the network they are lost.
    pub datagrams_unsent: u64,
    /// Datagrams that the system had no room for until a deadline in them had passed, so that they
    /// were thrown away; for the network they are lost, too.
    pub datagrams_expired: u64,
    /// Datagrams that are no packet, or of no connection known here.
    pub datagrams_unknown: u64,
    /// Callers that were turned away.
    pub callers_refused: u64,
    /// Half-open connections that were given up.
    pub callers_given_up: u64,
    /// Callers that had to prove their address first.
    pub retries_sent: u64,
    /// Replies to callers that were left out since so many waited to leave already, as in a flood
    /// of calls.
    pub replies_dropped: u64,
    /// Connections closed because nobody accepted them.
    pub connections_unaccepted: u64,
}

impl EndpointStatistics {
    pub(crate) fn with_listener(self, listener: &ListenerStatistics) -> Self {
        Self {
            datagrams_unknown: self.datagrams_unknown + listener.unknown,
            callers_refused: listener.refused,
            callers_given_up: listener.given_up,
            retries_sent: listener.retries,
            replies_dropped: listener.replies_dropped,
            ..self
        }
    }
}

fn sections<S: Serializer>(account: &SectionAccounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(account.entries())
}

fn bytes<S: Serializer>(account: &ByteAccounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(account.entries())
}

fn gaps<S: Serializer>(account: &GapAccounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(account.entries())
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
        let sent = &connection.sent;
        let received = &connection.received;
        let path = &connection.path;
        let inbox = &connection.inbox;
        Self {
            age_ms: ms(age),
            sent: Sent {
                packets: sent.packets,
                wire_bytes: sent.wire_bytes,
                section_bytes: sent.section_bytes,
                retransmitted_bytes: sent.retransmitted_bytes,
                late_bytes: sent.late_bytes,
                lost_packets: sent.lost_packets,
                spurious_losses: sent.spurious_losses,
                marked_packets: sent.marked_packets,
                loss_events: sent.loss_events,
                probes: sent.probes,
                black_holes: sent.black_holes,
                sections: connection.outbox.sections,
                bytes: connection.outbox.bytes,
            },
            received: Received {
                packets: received.packets,
                wire_bytes: received.wire_bytes,
                missing_packets: received.missing_packets,
                duplicates: received.duplicates,
                marked_packets: received.marked_packets,
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
                saved_bytes: path.tokens,
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
            protection: Protection {
                forged_packets: session.forged,
                stale_packets: session.stale,
                key_updates: session.key_updates,
            },
        }
    }
}
