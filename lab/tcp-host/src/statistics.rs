//! The counters of a host, and the state of a connection.

use comity_tcp::timeline::{GapStatistics, TimelineStatistics};
use comity_tcp::{Connection, SenderStatistics};
use comity_units::Span;

/// The state of a connection, similar to `TCP_INFO` of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// The congestion window in bytes.
    pub congestion_window: u64,
    /// The slow-start threshold in bytes, if the controller has one.
    pub ssthresh: Option<u64>,
    /// The smoothed round-trip time, after the first sample.
    pub smoothed_rtt: Option<Span>,
    /// The minimum round-trip time so far.
    pub min_rtt: Option<Span>,
    /// The maximum packet size of the path, as far as the host knows.
    pub path_mtu: u32,
    /// The number of outstanding bytes.
    pub in_flight: u64,
    /// The number of bytes that the peer acknowledged.
    pub acknowledged: u64,
    /// The number of bytes that arrived in order.
    pub delivered: u64,
    /// Counters of the sending half.
    pub sender: SenderStatistics,
    /// Counters of a time-lined stream at its sender; `None` if the peers did not agree on one.
    pub timeline: Option<TimelineStatistics>,
    /// Counters of a time-lined stream at its receiver.
    pub gaps: GapStatistics,
}

impl Info {
    pub(crate) fn of(connection: &Connection, path_mtu: u32) -> Self {
        let rtt = connection.rtt();
        let decision = connection
            .controller()
            .map(|controller| controller.decision());
        Self {
            congestion_window: connection.congestion_window(),
            ssthresh: decision
                .and_then(|decision| decision.ssthresh)
                .map(|bytes| bytes.get()),
            smoothed_rtt: rtt.and_then(|rtt| rtt.smoothed(&connection.config().rtt)),
            min_rtt: rtt.and_then(|rtt| rtt.min()),
            path_mtu,
            in_flight: connection.in_flight(),
            acknowledged: connection.acknowledged(),
            delivered: connection.delivered(),
            sender: connection.statistics(),
            timeline: connection.timeline_statistics(),
            gaps: connection.gap_statistics(),
        }
    }
}

/// The counters of a host since its creation. Every packet that arrived is counted in exactly one
/// of `accepted`, `icmp` and the counters that begin with `dropped_`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that arrived.
    pub received: u64,
    /// Segments that a connection or a listener processed.
    pub accepted: u64,
    /// Errors of the network about segments in flight.
    pub icmp: u64,
    /// Packets that are not IP packets, are truncated, or have a wrong header checksum.
    pub dropped_malformed_ip: u64,
    /// Fragments of IP packets, which the host does not reassemble.
    pub dropped_fragments: u64,
    /// Packets to another address, or from an impossible one.
    pub dropped_address: u64,
    /// Packets of other protocols, and ICMP messages that do not concern a packet of the host.
    pub dropped_protocol: u64,
    /// Segments with a wrong checksum.
    pub dropped_checksum: u64,
    /// Segments with an invalid header or invalid options.
    pub dropped_malformed_tcp: u64,
    /// Segments of unknown connections.
    pub dropped_unknown: u64,
    /// Connection requests for which there was no room in the backlog, or at the limit of
    /// connections.
    pub dropped_backlog: u64,
    /// Handshakes that the host ended to make room for others. Their segments count as accepted.
    pub ended_handshakes: u64,
    /// TCP options of unknown kinds, which were skipped.
    pub skipped_options: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// Resets that were sent, including those of connections.
    pub resets: u64,
    /// Acknowledgements that a rate limit suppressed (RFC 5961, section 7).
    pub suppressed_acks: u64,
    /// Packets that were cut because the path does not carry larger ones.
    pub cut: u64,
    /// Paths that seem to drop large packets without a report.
    pub black_holes: u64,
    /// Probes of a larger path MTU that were sent.
    pub path_probes: u64,
    /// Connections that were reset because the peer acknowledged data before it was sent.
    pub false_feedback: u64,
    /// Connections that a peer opened.
    pub opened_by_peer: u64,
    /// Connections that the host opened.
    pub opened: u64,
}

impl Statistics {
    /// The packets that were dropped.
    pub const fn dropped(&self) -> u64 {
        self.dropped_malformed_ip
            + self.dropped_fragments
            + self.dropped_address
            + self.dropped_protocol
            + self.dropped_checksum
            + self.dropped_malformed_tcp
            + self.dropped_unknown
            + self.dropped_backlog
    }
}
