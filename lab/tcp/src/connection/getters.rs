//! The state of a connection, for its host.

use comity_congestion::{Controller, RttEstimator};
use comity_units::{SeqNo, Span};

use super::super::config::Config;
use super::super::sender::SenderStatistics;
use super::super::state::State;
use super::super::timeline::{GapStatistics, TimelineStatistics};
use super::Connection;

impl Connection {
    /// The state of the connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Whether data can flow in at least one direction.
    pub const fn is_synchronized(&self) -> bool {
        self.state.is_synchronized()
    }

    /// Whether the peer reset the connection.
    pub const fn was_reset(&self) -> bool {
        self.was_reset
    }

    /// Whether the connection ended because the peer was silent ([`Config::give_up_after`]).
    pub const fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether the connection ended because the peer acknowledged a segment before it left
    /// ([`Config::skip_segments`]). The host has to send the reset.
    pub const fn was_deceived(&self) -> bool {
        self.was_deceived
    }

    /// Whether the last segment was acceptable (RFC 9293, section 3.10.7.4, and RFC 5961): it lay
    /// in the window, and acknowledged nothing that was not sent.
    pub const fn was_accepted(&self) -> bool {
        self.was_accepted
    }

    /// The settings in force; after the handshake, those that both ends agreed on.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether all data submitted so far is acknowledged, and the FIN if the stream is closed.
    pub fn is_all_acknowledged(&self) -> bool {
        self.sender.stream.una >= self.sender.stream.stream_end()
    }

    /// Payload bytes that the peer acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender
            .stream
            .una
            .min(self.sender.stream.end)
            .saturating_sub(1)
    }

    /// The offset of the lowest byte that may still be sent: everything below is acknowledged, or
    /// obsolete. Payload begins at 1. On a time-lined stream the offset counts discarded bytes, as
    /// sequence numbers do.
    pub fn lowest_needed(&self) -> u64 {
        let stream = &self.sender.stream;
        stream.wire(stream.lowest_current().min(stream.end))
    }

    /// The offset after the highest byte sent, counted as [`Connection::lowest_needed`] counts.
    pub fn sent_to(&self) -> u64 {
        self.wire_after(self.sender.stream.max)
    }

    /// The offset after the last acknowledged byte, counted in the same way. Data that the peer
    /// passed over counts once data after it is acknowledged.
    pub fn acknowledged_to(&self) -> u64 {
        self.wire_after(self.sender.stream.una)
    }

    /// The wire offset after the byte before `offset`, that is, before a jump at `offset`.
    fn wire_after(&self, offset: u64) -> u64 {
        let stream = &self.sender.stream;
        let last = offset.min(stream.end).saturating_sub(1);
        stream.wire(last) + 1
    }

    /// How much earlier than their deadlines sections expire: nothing, or half of the smoothed
    /// round-trip time with [`DeadlineClock::Receiver`](crate::timeline::DeadlineClock).
    pub fn deadline_margin(&self) -> Span {
        let line = self.sender.stream.line.as_ref();
        line.map_or(Span::ZERO, |line| line.margin())
    }

    /// The sequence number of the oldest byte in flight, or of the next byte to send if none is.
    pub fn oldest_in_flight(&self) -> SeqNo {
        self.sender.stream.una_number(&self.config)
    }

    /// The offset in the peer's stream below which everything arrived or was abandoned. The SYN and
    /// the FIN count.
    pub const fn expected(&self) -> u64 {
        self.receiver.next
    }

    /// Payload bytes submitted but not yet sent for the first time.
    pub fn unsent(&self) -> u64 {
        self.sender
            .stream
            .end
            .saturating_sub(self.sender.stream.max.max(1))
    }

    /// Unread payload that arrived in order. Gaps do not count: see [`Connection::has_piece`].
    pub fn readable(&self) -> u64 {
        self.receiver.unread
    }

    /// Whether [`Connection::read_piece`] would return a piece: payload in order, or a gap. A
    /// segment without payload can announce a gap.
    pub fn has_piece(&self) -> bool {
        self.receiver.has_piece()
    }

    /// Whether [`Connection::read_piece`] would return a gap.
    pub fn is_at_gap(&self) -> bool {
        self.receiver.is_at_gap()
    }

    /// Payload bytes delivered in order since the beginning.
    pub const fn delivered(&self) -> u64 {
        self.receiver.delivered
    }

    /// Outstanding bytes, SYN and FIN included.
    pub fn in_flight(&self) -> u64 {
        self.sender.stream.in_flight()
    }

    /// The congestion window in bytes; zero at an end that only receives.
    pub fn congestion_window(&self) -> u64 {
        self.sender.congestion_window()
    }

    /// The peer's latest window in bytes.
    pub fn peer_window(&self) -> u64 {
        self.sender.stream.peer_window
    }

    /// How often the retransmission or the persist timer expired without a sign of life from the
    /// peer since.
    pub const fn consecutive_timeouts(&self) -> u32 {
        self.sender.stream.expiries
    }

    /// Whether a fast recovery is under way.
    pub fn is_recovering(&self) -> bool {
        self.sender.is_recovering()
    }

    /// The controller; `None` at an end that only receives.
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.sender.controller()
    }

    /// Round-trip times; `None` at an end that only receives.
    pub fn rtt(&self) -> Option<&RttEstimator> {
        self.sender.rtt()
    }

    /// The connection's heap memory in bytes, without its shared settings.
    pub fn heap_memory(&self) -> usize {
        let meter = self.meter().map_or(0, size_of_val);
        self.sender.heap_memory() + self.receiver.heap_memory() + meter
    }

    /// Counters of the time-line of this end's stream; `None` without a time-line.
    pub fn timeline_statistics(&self) -> Option<TimelineStatistics> {
        let line = self.sender.stream.line.as_ref()?;
        Some(line.statistics)
    }

    /// Gaps in the peer's time-lined stream; zeros if it has none.
    pub fn gap_statistics(&self) -> GapStatistics {
        self.receiver.gap_statistics()
    }

    /// Counters of the sending half; zeros at an end that only receives.
    pub fn statistics(&self) -> SenderStatistics {
        self.sender.statistics()
    }
}
