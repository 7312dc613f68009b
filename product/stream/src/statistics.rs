//! The statistics of a relay, from which JSON, metrics and status lines are made.
//!
//! The JSON keys are those of SRT where the meaning is the same.

use std::collections::BTreeMap;

use comity::Statistics;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::missing::{Missing, MissingReason};
use crate::transport::TransportStatistics;
use crate::unit::{KINDS, MediaUnit};

/// A relay at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// The time since the relay began, in seconds.
    pub elapsed_s: f64,
    /// The counters of its source.
    pub input: Side,
    /// The counters of its sink.
    pub output: Side,
    /// The sections that it passed on.
    pub passed: Passed,
}

/// One end of a relay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    /// Bytes of media read or written; `None` for connections.
    pub bytes: Option<u64>,
    /// The transport stream that was read or written; `None` for other media and connections.
    pub transport: Option<TransportStatistics>,
    /// The open connections.
    pub connections: Vec<PeerStatistics>,
    /// The sums over all connections, open and closed; `None` for media.
    pub totals: Option<Totals>,
    /// Refused calls, by the word for the reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Sections that were not submitted to any connection; `None` unless this end sends.
    pub unsent: Option<Unsent>,
}

/// The keys of an end with connections are present before its first connection.
impl Serialize for Side {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(bytes) = self.bytes {
            map.serialize_entry("bytes", &bytes)?;
        }
        if let Some(transport) = &self.transport {
            map.serialize_entry("transport", transport)?;
        }
        if let Some(totals) = &self.totals {
            map.serialize_entry("connections", &self.connections)?;
            map.serialize_entry("totals", totals)?;
            map.serialize_entry("refused", &self.refused)?;
        }
        if let Some(unsent) = &self.unsent {
            map.serialize_entry("unsent", unsent)?;
        }
        map.end()
    }
}

/// An open connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerStatistics {
    /// The address of the peer.
    pub peer: String,
    /// The latency of the connection, in milliseconds.
    #[serde(rename = "msLatency")]
    pub latency_ms: f64,
    /// The connection's statistics.
    pub statistics: Statistics,
}

/// Sums over the connections of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The number of connections.
    pub connections: u64,
    /// Connections that ended with an internal error of this program.
    #[serde(rename = "internalErrors")]
    pub internal_errors: u64,
    /// Connections that this program closed because the peer's feedback was false.
    #[serde(rename = "falseFeedback")]
    pub false_feedback: u64,
    /// Bytes sent on the wire, headers included.
    #[serde(rename = "byteSent")]
    pub sent_bytes: u64,
    /// Bytes received on the wire, headers included.
    #[serde(rename = "byteRecvUnique")]
    pub received_bytes: u64,
    /// Bytes of sections that were retransmitted.
    #[serde(rename = "byteRetrans")]
    pub retransmitted_bytes: u64,
    /// Bytes of sections sent after their deadline.
    #[serde(rename = "byteSentLate")]
    pub late_bytes: u64,
    /// Packets sent.
    #[serde(rename = "pktSent")]
    pub sent_packets: u64,
    /// Packets sent and lost.
    #[serde(rename = "pktSndLoss")]
    pub lost_packets: u64,
    /// Packets received, each once.
    #[serde(rename = "pktRecvUnique")]
    pub received_packets: u64,
    /// Packets to this end that have not arrived. A packet that arrives late is subtracted again.
    #[serde(rename = "pktRcvLoss")]
    pub missing_packets: u64,
    /// Sections submitted.
    #[serde(rename = "sectionsSubmitted")]
    pub submitted: u64,
    /// Sections that arrived.
    #[serde(rename = "sectionsAcknowledged")]
    pub acknowledged: u64,
    /// Sections whose deadline passed.
    #[serde(rename = "sectionsExpired")]
    pub expired: u64,
    /// Sections that were lost, infeasible, cancelled, or needed one that was.
    #[serde(rename = "sectionsGivenUp")]
    pub given_up: u64,
    /// Sections that were shed to fit the rate.
    #[serde(rename = "sectionsShed")]
    pub shed: u64,
    /// Sections whose fate is not known yet.
    #[serde(rename = "sectionsOpen")]
    pub open: u64,
    /// Sections received whole by their deadline.
    #[serde(rename = "sectionsOnTime")]
    pub on_time: u64,
    /// Sections received whole after their deadline.
    #[serde(rename = "sectionsLate")]
    pub late: u64,
    /// Sections that became gaps.
    #[serde(rename = "sectionsGap")]
    pub gaps: u64,
    /// Sections that the receivers reported as whole by their deadline.
    #[serde(rename = "peerSectionsOnTime")]
    pub peer_on_time: u64,
    /// Sections that the receivers reported as whole after their deadline.
    #[serde(rename = "peerSectionsLate")]
    pub peer_late: u64,
    /// Sections that the receivers reported as missing.
    #[serde(rename = "peerSectionsGap")]
    pub peer_gaps: u64,
}

impl Totals {
    /// The share of the packets to this end that have not arrived, in percent.
    pub fn missing_share(&self) -> f64 {
        let sent = self.received_packets.saturating_add(self.missing_packets);
        100.0 * self.missing_packets as f64 / sent.max(1) as f64
    }

    /// Adds a connection.
    pub fn add(&mut self, statistics: &Statistics) {
        let (sent, received) = (&statistics.sent.counters, &statistics.received.counters);
        let (sections, arrived) = (&statistics.sent.sections, &statistics.received);
        self.connections += 1;
        self.sent_bytes += sent.wire_bytes;
        self.received_bytes += received.wire_bytes;
        self.retransmitted_bytes += sent.retransmitted_bytes;
        self.late_bytes += sent.late_bytes;
        self.sent_packets += sent.packets;
        self.lost_packets += sent.lost_packets;
        self.received_packets += received.packets;
        self.submitted += sections.submitted;
        self.acknowledged += sections.acknowledged;
        self.expired += sections.expired_unsent + sections.expired_in_network;
        self.given_up +=
            sections.lost + sections.infeasible + sections.dependency + sections.cancelled;
        self.shed += sections.shed;
        self.open += sections.open;
        self.on_time += arrived.on_time_sections;
        self.late += arrived.late_sections;
        // Peers state these numbers, so their sum may overflow.
        self.missing_packets = self
            .missing_packets
            .saturating_add(received.missing_packets);
        self.gaps = self.gaps.saturating_add(arrived.gaps.sum());
        if let Some(peer) = &statistics.peer {
            self.peer_on_time = self.peer_on_time.saturating_add(peer.on_time_sections);
            self.peer_late = self.peer_late.saturating_add(peer.late_sections);
            self.peer_gaps = self.peer_gaps.saturating_add(peer.gap_sections);
        }
    }
}

/// Sections that were not submitted to a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unsent {
    /// No peer was connected.
    pub unconnected: u64,
    /// The send buffer was full, or the receiver was too far behind the others.
    pub no_room: u64,
    /// A section that they need was not submitted.
    pub dependent: u64,
    /// They are empty, or too long for a section.
    pub unfit: u64,
}

impl Unsent {
    pub(crate) fn add(&mut self, other: Self) {
        self.unconnected += other.unconnected;
        self.no_room += other.no_room;
        self.dependent += other.dependent;
        self.unfit += other.unfit;
    }

    /// Counts a section, unless the connection counts sections with this reason.
    pub(crate) fn count(&mut self, reason: MissingReason) {
        match reason {
            MissingReason::Unconnected => self.unconnected += 1,
            MissingReason::NoRoom => self.no_room += 1,
            MissingReason::Dependency => self.dependent += 1,
            MissingReason::Unfit => self.unfit += 1,
            _ => {}
        }
    }
}

/// A number of sections and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many sections.
    pub sections: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The word for sections whose kind is unknown.
const UNKNOWN: &str = "data";

/// The sections that a relay passed on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// Whole sections, by the word for their content; "data" if it is unknown.
    pub whole: BTreeMap<&'static str, Count>,
    /// Missing sections, by reason.
    pub gaps: BTreeMap<MissingReason, u64>,
    /// Notices of the source about itself, by kind.
    pub notices: BTreeMap<&'static str, u64>,
}

impl Passed {
    pub(crate) fn add(&mut self, unit: &MediaUnit) {
        let count = self
            .whole
            .entry(unit.kind().unwrap_or(UNKNOWN))
            .or_default();
        count.sections += 1;
        count.bytes += unit.payload.len() as u64;
    }

    /// Subtracts a section that could not be written.
    pub(crate) fn subtract(&mut self, missing: &Missing) {
        let kind = missing.kind.unwrap_or(UNKNOWN);
        if let Some(count) = self.whole.get_mut(kind) {
            count.sections = count.sections.saturating_sub(1);
            count.bytes = count.bytes.saturating_sub(missing.length.unwrap_or(0));
            if count.sections == 0 {
                self.whole.remove(kind);
            }
        }
    }

    /// The number of whole sections.
    pub fn sections(&self) -> u64 {
        self.whole.values().map(|count| count.sections).sum()
    }

    /// The number of missing sections, without damaged sections that were passed on.
    pub fn missing(&self) -> u64 {
        let missing = { self.gaps.iter() }.filter(|(reason, _)| **reason != MissingReason::Damaged);
        missing.fold(0, |sum, (_, &count)| sum.saturating_add(count))
    }

    /// The numbers of whole sections by kind, such as `48 key, 100 P, 52 audio`.
    pub fn kinds(&self) -> String {
        let known = KINDS.iter().copied().chain([UNKNOWN]);
        let parts: Vec<String> = known
            .filter_map(|kind| Some(format!("{} {kind}", self.whole.get(kind)?.sections)))
            .collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_counts_once_in_the_sum() {
        let mut statistics = Statistics::default();
        let sections = &mut statistics.sent.sections;
        sections.submitted = 45;
        sections.open = 1;
        sections.acknowledged = 2;
        sections.expired_unsent = 3;
        sections.expired_in_network = 4;
        sections.lost = 5;
        sections.infeasible = 6;
        sections.dependency = 7;
        sections.shed = 8;
        sections.cancelled = 9;
        statistics.received.counters.missing_packets = 10;
        statistics.peer = Some(comity::Peer {
            on_time_sections: 11,
            late_sections: 12,
            gap_sections: 13,
            ..Default::default()
        });
        let mut totals = Totals::default();
        totals.add(&statistics);
        totals.add(&statistics);
        assert_eq!(totals.connections, 2);
        assert_eq!(totals.submitted, 90);
        assert_eq!(
            totals.submitted,
            totals.open + totals.acknowledged + totals.expired + totals.given_up + totals.shed
        );
        assert_eq!((totals.expired, totals.given_up, totals.shed), (14, 54, 16));
        assert_eq!(totals.missing_packets, 20);
        let peers = (totals.peer_on_time, totals.peer_late, totals.peer_gaps);
        assert_eq!(peers, (22, 24, 26));
    }

    /// A hostile receiver reports the largest numbers of the format, on one connection after
    /// another.
    #[test]
    fn sums_of_what_peers_state_stay_at_the_end_of_their_range() {
        let mut statistics = Statistics::default();
        statistics.received.gaps.obsolete = u64::MAX / 3;
        statistics.peer = Some(comity::Peer {
            on_time_sections: (1 << 62) - 1,
            late_sections: (1 << 62) - 1,
            gap_sections: (1 << 62) - 1,
            ..Default::default()
        });
        let mut totals = Totals::default();
        for _ in 0..5 {
            totals.add(&statistics);
        }
        assert_eq!(totals.connections, 5);
        assert_eq!(totals.gaps, u64::MAX);
        let peers = (totals.peer_on_time, totals.peer_late, totals.peer_gaps);
        assert_eq!(peers, (u64::MAX, u64::MAX, u64::MAX));
    }

    #[test]
    fn an_end_with_connections_has_its_keys_before_the_first_one() {
        let connected = Side {
            totals: Some(Totals::default()),
            ..Side::default()
        };
        let json = serde_json::to_value(&connected).unwrap();
        assert_eq!(json["connections"], serde_json::json!([]));
        assert_eq!(json["refused"], serde_json::json!({}));
        assert_eq!(json["totals"]["connections"], 0);
        let media = Side {
            bytes: Some(188),
            ..Side::default()
        };
        let json = serde_json::to_value(&media).unwrap();
        assert_eq!(json, serde_json::json!({ "bytes": 188 }));
    }

    #[test]
    fn kinds_are_listed_in_their_order() {
        let mut passed = Passed::default();
        for (kind, sections) in [("data", 1), ("B", 2), ("key", 1)] {
            let bytes = 100 * sections;
            passed.whole.insert(kind, Count { sections, bytes });
        }
        passed.gaps.insert(MissingReason::Expired, 2);
        assert_eq!(passed.kinds(), "1 key, 2 B, 1 data");
        assert_eq!((passed.sections(), passed.missing()), (4, 2));
        let json = serde_json::to_value(&passed).unwrap();
        assert_eq!(json["gaps"]["expired"], 2);
        assert_eq!(json["whole"]["B"]["bytes"], 200);
    }
}
