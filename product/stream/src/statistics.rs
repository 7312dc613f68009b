//! The statistics of a relay, from which JSON, metrics and status lines are made.
//!
//! The JSON keys are those of SRT where the meaning is the same.

use std::collections::BTreeMap;

use comity::Statistics;
use comity::counter::counters;
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

counters! {
    /// An open connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PeerStatistics {
        /// The address of the peer.
        pub peer: String = "peer";
        /// The latency of the connection: the time from a section's source time to its deadline,
        /// unless it has a deadline of its own.
        pub latency_ms: f64 = "msLatency" / "latency", Gauge, Milliseconds;
        /// The connection's statistics.
        pub statistics: Statistics = "statistics";
    }
}

counters! {
    /// Sums over the connections of one end.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Totals add from Statistics {
        /// Connections that were made.
        pub connections: u64 = "connections" / "connections_made", Counter, Count => |_| 1;
        /// Connections that ended because of a panic in this program. Other connections continue,
        /// and standard error has the source line.
        pub internal_errors: u64 = "internalErrors" / "internal_errors", Counter, Count => |_| 0;
        /// Connections that this program ended because the peer acknowledged packets that did not
        /// arrive, or sent impossible reports.
        pub false_feedback: u64 = "falseFeedback" / "false_feedback", Counter, Count => |_| 0;
        /// Bytes sent on the wire, headers included.
        pub sent_bytes: u64 = "byteSent" / "sent", Counter, Bytes
            => |of| of.sent.counters.wire_bytes;
        /// Bytes received on the wire, headers included.
        pub received_bytes: u64 = "byteRecvUnique" / "received", Counter, Bytes
            => |of| of.received.counters.wire_bytes;
        /// Bytes of sections that were retransmitted.
        pub retransmitted_bytes: u64 = "byteRetrans" / "retransmitted", Counter, Bytes
            => |of| of.sent.counters.retransmitted_bytes;
        /// Bytes of sections sent after their deadline.
        pub late_bytes: u64 = "byteSentLate" / "sent_late", Counter, Bytes
            => |of| of.sent.counters.late_bytes;
        /// Packets sent.
        pub sent_packets: u64 = "pktSent" / "packets_sent", Counter, Count
            => |of| of.sent.counters.packets;
        /// Packets sent and lost.
        pub lost_packets: u64 = "pktSndLoss" / "packets_lost", Counter, Count
            => |of| of.sent.counters.lost_packets;
        /// Packets received, each once.
        pub received_packets: u64 = "pktRecvUnique" / "packets_received", Counter, Count
            => |of| of.received.counters.packets;
        /// Packets to this end that have not arrived. A packet that arrives late is subtracted
        /// again. A sender skips at most one number in 128 on purpose, and a receiver counts some
        /// single losses as skipped numbers: the value is too low by less than one in 128 packets.
        /// The sender's `pktSndLoss` has all losses.
        pub missing_packets: u64 = "pktRcvLoss" / "packets_missing", Gauge, Count
            => |of| of.received.counters.missing_packets;
        /// Sections submitted to connections.
        pub submitted: u64 = "sectionsSubmitted" / "sections_submitted", Counter, Count
            => |of| of.sent.sections.submitted;
        /// Sections that arrived, as the sender knows.
        pub acknowledged: u64 = "sectionsAcknowledged", Counter, Count
            => |of| of.sent.sections.acknowledged;
        /// Sections whose deadline passed.
        pub expired: u64 = "sectionsExpired", Counter, Count
            => |of| of.sent.sections.expired_unsent + of.sent.sections.expired_in_network;
        /// Sections that were lost, infeasible, cancelled, or needed one that was.
        pub given_up: u64 = "sectionsGivenUp", Counter, Count => |of| {
            let sections = &of.sent.sections;
            sections.lost + sections.infeasible + sections.dependency + sections.cancelled
        };
        /// Sections that were shed to fit the rate.
        pub shed: u64 = "sectionsShed", Counter, Count => |of| of.sent.sections.shed;
        /// Sections whose fate is not known yet.
        pub open: u64 = "sectionsOpen", Gauge, Count => |of| of.sent.sections.open;
        /// Sections received whole by their deadline.
        pub on_time: u64 = "sectionsOnTime", Counter, Count => |of| of.received.on_time_sections;
        /// Sections received whole after their deadline.
        pub late: u64 = "sectionsLate", Counter, Count => |of| of.received.late_sections;
        /// Sections that became gaps.
        pub gaps: u64 = "sectionsGap", Counter, Count => |of| of.received.gaps.sum();
        /// Sections that the receivers last reported as whole by their deadline.
        pub peer_on_time: u64 = "peerSectionsOnTime", Counter, Count
            => |of| of.peer.map_or(0, |peer| peer.on_time_sections);
        /// Sections that the receivers last reported as whole after their deadline.
        pub peer_late: u64 = "peerSectionsLate", Counter, Count
            => |of| of.peer.map_or(0, |peer| peer.late_sections);
        /// Sections that the receivers last reported as missing.
        pub peer_gaps: u64 = "peerSectionsGap", Counter, Count
            => |of| of.peer.map_or(0, |peer| peer.gap_sections);
    }
}

/// Adds to a sum. It stays at the end of its range, because peers state some of the numbers.
fn add(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

comity::serialize_counters!(PeerStatistics Totals Unsent);

impl Totals {
    /// The share of the packets to this end that have not arrived, in percent.
    pub fn missing_share(&self) -> f64 {
        let sent = self.received_packets.saturating_add(self.missing_packets);
        100.0 * self.missing_packets as f64 / sent.max(1) as f64
    }

    /// Adds a connection.
    pub fn add(&mut self, statistics: &Statistics) {
        self.update(statistics);
    }
}

counters! {
    /// Sections that were not submitted to a connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Unsent {
        /// No peer was connected.
        pub unconnected: u64 = "unconnected", Counter, Count;
        /// The send buffer was full, or the receiver was too far behind the others.
        pub no_room: u64 = "no_room", Counter, Count;
        /// A section that they need was not submitted.
        pub dependent: u64 = "dependent", Counter, Count;
        /// They are empty, or too long for a section.
        pub unfit: u64 = "unfit", Counter, Count;
    }
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
        let peer = statistics.peer.insert(Default::default());
        (peer.on_time_sections, peer.late_sections, peer.gap_sections) = (11, 12, 13);
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
        let peer = statistics.peer.insert(Default::default());
        let largest = (1 << 62) - 1;
        (peer.on_time_sections, peer.late_sections, peer.gap_sections) =
            (largest, largest, largest);
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
