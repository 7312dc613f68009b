//! What the connections of one side counted, one after the other or side by side.

use comity::Statistics;
use serde::Serialize;

/// Sums over connections. Of each, what its end knows at last counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    /// Connections.
    pub(crate) connections: u64,
    #[serde(rename = "byteSent")]
    pub(crate) sent_bytes: u64,
    #[serde(rename = "byteRecvUnique")]
    pub(crate) received_bytes: u64,
    #[serde(rename = "byteRetrans")]
    pub(crate) retransmitted_bytes: u64,
    #[serde(rename = "byteSentLate")]
    pub(crate) late_bytes: u64,
    #[serde(rename = "pktSent")]
    pub(crate) sent_packets: u64,
    #[serde(rename = "pktSndLoss")]
    pub(crate) lost_packets: u64,
    #[serde(rename = "pktRecvUnique")]
    pub(crate) received_packets: u64,
    #[serde(rename = "pktRcvLoss")]
    pub(crate) missing_packets: u64,
    #[serde(rename = "sectionsSubmitted")]
    pub(crate) submitted: u64,
    #[serde(rename = "sectionsAcknowledged")]
    pub(crate) acknowledged: u64,
    #[serde(rename = "sectionsExpired")]
    pub(crate) expired: u64,
    #[serde(rename = "sectionsGivenUp")]
    pub(crate) given_up: u64,
    #[serde(rename = "sectionsShed")]
    pub(crate) shed: u64,
    #[serde(rename = "sectionsOpen")]
    pub(crate) open: u64,
    #[serde(rename = "sectionsOnTime")]
    pub(crate) on_time: u64,
    #[serde(rename = "sectionsLate")]
    pub(crate) late: u64,
    #[serde(rename = "sectionsGap")]
    pub(crate) gaps: u64,
    /// What the peers said last of the sections that they received: whole by their deadline,
    #[serde(rename = "peerSectionsOnTime")]
    pub(crate) peer_on_time: u64,
    /// whole only after it,
    #[serde(rename = "peerSectionsLate")]
    pub(crate) peer_late: u64,
    /// or not whole.
    #[serde(rename = "peerSectionsGap")]
    pub(crate) peer_gaps: u64,
}

impl Totals {
    /// The share of the packets to this end that never came, in percent.
    pub(crate) fn missing_share(&self) -> f64 {
        let sent = self.received_packets + self.missing_packets;
        100.0 * self.missing_packets as f64 / sent.max(1) as f64
    }

    /// Adds a connection.
    pub(crate) fn add(&mut self, statistics: &Statistics) {
        let (sent, received) = (&statistics.sent, &statistics.received);
        let (sections, gaps) = (&sent.sections, &received.gaps);
        self.connections += 1;
        self.sent_bytes += sent.wire_bytes;
        self.received_bytes += received.wire_bytes;
        self.retransmitted_bytes += sent.retransmitted_bytes;
        self.late_bytes += sent.late_bytes;
        self.sent_packets += sent.packets;
        self.lost_packets += sent.lost_packets;
        self.received_packets += received.packets;
        self.missing_packets += received.missing_packets;
        self.submitted += sections.submitted;
        self.acknowledged += sections.acknowledged;
        self.expired += sections.expired_unsent + sections.expired_in_network;
        self.given_up +=
            sections.lost + sections.infeasible + sections.dependency + sections.cancelled;
        self.shed += sections.shed;
        self.open += sections.open;
        self.on_time += received.on_time_sections;
        self.late += received.late_sections;
        self.gaps += gaps.sum();
        if let Some(peer) = &statistics.peer {
            self.peer_on_time += peer.on_time_sections;
            self.peer_late += peer.late_sections;
            self.peer_gaps += peer.gap_sections;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_one_place_in_the_sum() {
        let mut statistics = Statistics::default();
        let account = &mut statistics.sent.sections;
        account.submitted = 45;
        account.open = 1;
        account.acknowledged = 2;
        account.expired_unsent = 3;
        account.expired_in_network = 4;
        account.lost = 5;
        account.infeasible = 6;
        account.dependency = 7;
        account.shed = 8;
        account.cancelled = 9;
        statistics.received.missing_packets = 10;
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
}
