//! What a connection counts.

use comity_congestion::Phase;
use comity_units::{Bytes, Rate, Span};

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
    /// What became of the sections that this end submitted: sections and bytes.
    pub outbox: outbox::Counters,
    /// What became of the sections that the peer sent.
    pub inbox: inbox::Counters,
    /// What the peer said last of the sections that it received from this end.
    pub peer: Option<PeerReport>,
}

/// What an end sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentStatistics {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, headers included.
    pub wire_bytes: u64,
    /// Bytes of sections in them, retransmitted ones included.
    pub section_bytes: u64,
    /// Bytes of sections that were retransmitted.
    pub retransmitted_bytes: u64,
    /// Bytes of sections that were sent at or after their deadline: zero unless deadlines are
    /// switched off.
    pub late_bytes: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Of these, packets that turned out to be late only.
    pub spurious_losses: u64,
    /// Expiries of the probe timer.
    pub probes: u64,
    /// Times at which the path was found to swallow larger packets that it had carried.
    pub black_holes: u64,
    /// Losses reported to the controller, one for each episode.
    pub loss_events: u64,
    /// Times at which persistent congestion was found.
    pub persistent_congestions: u64,
    /// Packets that the peer reports as marked by the network.
    pub marked_packets: u64,
}

/// What an end received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedStatistics {
    /// Packets, each number once.
    pub packets: u64,
    /// Their bytes on the wire, headers included.
    pub wire_bytes: u64,
    /// Packets that have not come, by the numbers missing below the largest one that came. What
    /// comes late is taken back, unless its number is so old that it may be a duplicate. Numbers
    /// that the peer leaves out on purpose are not counted.
    pub missing_packets: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Packets that arrived marked by the network.
    pub marked_packets: u64,
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
    /// The least round-trip time.
    pub min_rtt: Option<Span>,
    /// The delay of packets to the peer: half of the least round trip, and the queueing delay on
    /// the way.
    pub one_way_delay: Option<Span>,
    /// The congestion window.
    pub window: Bytes,
    /// What is in flight.
    pub in_flight: Bytes,
    /// The slow-start threshold, where the controller has one.
    pub ssthresh: Option<Bytes>,
    /// The rate at which packets are spread, where they are.
    pub pacing_rate: Option<Rate>,
    /// The peak rate of a burst, for controllers with a token bucket ([`Pacing::Bucket`]).
    ///
    /// [`Pacing::Bucket`]: comity_congestion::Pacing::Bucket
    pub peak_rate: Option<Rate>,
    /// The tokens in that bucket as of the last packet, in bytes; below zero while it is in debt.
    pub tokens: Option<i64>,
    /// The capacity of the bottleneck; `None` if the controller does not know it, or no longer.
    pub capacity: Option<Rate>,
    /// The phase of the controller.
    pub phase: Phase,
    /// What the application may send
    /// ([`Connection::target_bitrate`](super::Connection::target_bitrate)).
    pub target_bitrate: Option<Rate>,
    /// The protected payload of a full packet, in bytes.
    pub payload: u32,
}

/// What the receiving end said last of what it got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerReport {
    /// Sections delivered whole.
    pub complete: u64,
    /// Of these, those that were whole by their deadline.
    pub on_time: u64,
    /// Of these, those that were whole only after it.
    pub late: u64,
    /// Sections with missing bytes.
    pub gaps: u64,
    /// Bytes of sections received.
    pub bytes: u64,
    /// Packets received.
    pub packets: u64,
    /// Packets received more than once.
    pub duplicates: u64,
    /// The delay of the latest packet to the peer, in microseconds: half of the least round trip
    /// that the peer measured, and the queues on the way. A peer that gives plain differences of
    /// the clocks makes it negative at times.
    pub one_way_latest_us: i64,
    /// The least of the recent past, likewise.
    pub one_way_least_us: i64,
    /// How much the delay differs between packets that follow each other (RFC 3550, section 6.4.1).
    pub jitter: Span,
    /// Bytes that wait for the application or for the rest of their section.
    pub buffered: u64,
    /// How much faster the receiver's clock goes than the sender's, in parts per billion.
    pub drift_ppb: i64,
}
