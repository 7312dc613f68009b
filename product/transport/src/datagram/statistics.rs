//! The statistics of a connection.

use comity_congestion::Phase;
use comity_units::{DataSize, Rate, Span};

use crate::counters;
use crate::timeline::{inbox, outbox};

/// A snapshot of one end of a connection. Counters are cumulative since its beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// What this end sent.
    pub sent: SentStatistics,
    /// What this end received.
    pub received: ReceivedStatistics,
    /// The path as this end sees it.
    pub path: PathStatistics,
    /// The outcomes of sections that this end submitted: sections and bytes.
    pub outbox: outbox::Counters,
    /// The outcomes of sections that the peer sent.
    pub inbox: inbox::Counters,
    /// The peer's last report about the sections that it received from this end.
    pub peer: Option<PeerReport>,
}

counters! {
    /// Counters of the sending direction of an end.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SentStatistics {
        /// Packets sent.
        pub packets: u64 = "pktSent", Counter, Count;
        /// Bytes sent on the wire, with all headers.
        pub wire_bytes: u64 = "byteSent", Counter, Bytes;
        /// Bytes of sections sent, retransmitted ones included.
        pub section_bytes: u64 = "byteSentPayload", Counter, Bytes;
        /// Bytes of sections that were retransmitted: lost bytes, bytes that were unacknowledged
        /// for long, and duplicates of bytes that could not be repaired in time. It can be above 0
        /// without a loss.
        pub retransmitted_bytes: u64 = "byteRetrans", Counter, Bytes;
        /// Bytes of sections sent at or after their deadline: zero unless deadlines are disabled.
        pub late_bytes: u64 = "byteSentLate", Counter, Bytes;
        /// Packets declared lost.
        pub lost_packets: u64 = "pktSndLoss", Counter, Count;
        /// Packets declared lost that arrived.
        pub spurious_losses: u64 = "pktSndLossSpurious", Counter, Count;
        /// Packets that the peer reports as marked by the network.
        pub marked_packets: u64 = "pktSndMarked", Counter, Count;
        /// Losses reported to the controller, one for each episode.
        pub loss_events: u64 = "lossEvents", Counter, Count;
        /// Expiries of the probe timer.
        pub probes: u64 = "probes", Counter, Count;
        /// The number of times that the path no longer carried larger packets.
        pub black_holes: u64 = "blackHoles", Counter, Count;
        /// The number of times that persistent congestion was detected.
        pub persistent_congestions: u64;
    }
}

counters! {
    /// Counters of the receiving direction of an end.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ReceivedStatistics {
        /// Packets received, each number once.
        pub packets: u64 = "pktRecvUnique", Counter, Count;
        /// Bytes of these packets on the wire, with all headers.
        pub wire_bytes: u64 = "byteRecvUnique", Counter, Bytes;
        /// Packets that have not arrived: the missing numbers below the largest received number. A
        /// late packet is subtracted again, unless its number is so old that it may be a duplicate.
        /// Numbers that the peer skips on purpose do not count.
        pub missing_packets: u64 = "pktRcvLoss", Gauge, Count;
        /// Packets that had arrived before.
        pub duplicates: u64 = "pktRecvDuplicate", Counter, Count;
        /// Packets that arrived marked by the network.
        pub marked_packets: u64 = "pktRecvMarked", Counter, Count;
    }
}

/// A path as its sender sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathStatistics {
    /// The smoothed round-trip time.
    pub srtt: Option<Span>,
    /// The mean deviation of the round-trip time.
    pub rtt_variation: Span,
    /// The last round-trip time.
    pub latest_rtt: Option<Span>,
    /// The minimum round-trip time.
    pub min_rtt: Option<Span>,
    /// The delay of packets to the peer: half of the minimum round-trip time, and the queueing
    /// delay.
    pub one_way_delay: Option<Span>,
    /// The congestion window.
    pub window: DataSize,
    /// The bytes in flight.
    pub in_flight: DataSize,
    /// The slow-start threshold, if the controller has one.
    pub ssthresh: Option<DataSize>,
    /// The pacing rate, if packets are paced.
    pub pacing_rate: Option<Rate>,
    /// The peak rate of a burst, for controllers with a token bucket ([`Pacing::Bucket`]).
    ///
    /// [`Pacing::Bucket`]: comity_congestion::Pacing::Bucket
    pub peak_rate: Option<Rate>,
    /// The tokens in that bucket when the last packet left, in bytes; negative while it borrows.
    pub tokens: Option<i64>,
    /// The capacity of the bottleneck; `None` while the controller does not know it.
    pub capacity: Option<Rate>,
    /// The phase of the controller.
    pub phase: Phase,
    /// The target bitrate of the application
    /// ([`Connection::target_bitrate`](super::Connection::target_bitrate)).
    pub target_bitrate: Option<Rate>,
    /// The protected payload of a full packet, in bytes.
    pub payload: u32,
}

/// The receiver's last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerReport {
    /// Sections delivered whole.
    pub complete: u64,
    /// Of these, sections that were whole by their deadline.
    pub on_time: u64,
    /// Of these, sections that were whole only after their deadline.
    pub late: u64,
    /// Sections with missing bytes.
    pub gaps: u64,
    /// Bytes of sections received.
    pub bytes: u64,
    /// Packets received.
    pub packets: u64,
    /// Packets received more than once.
    pub duplicates: u64,
    /// The delay of the latest packet to the peer, in microseconds: half of the minimum round-trip
    /// time that the peer measured, and the queueing delay. It may be negative if a peer reports
    /// plain differences of clocks.
    pub one_way_latest_us: i64,
    /// The minimum of this delay in the recent past, in microseconds.
    pub one_way_least_us: i64,
    /// The variation of the delay between consecutive packets (RFC 3550, section 6.4.1).
    pub jitter: Span,
    /// Bytes that wait for the application or for the rest of their section.
    pub buffered: u64,
    /// How much faster the sender's clock runs than the receiver's, in parts per billion.
    pub drift_ppb: i64,
}
