//! What a host can ask a connection.

use comity_congestion::{Controller, RttEstimator};

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

    /// The settings in force; after the handshake, what both ends agreed on.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether everything given so far, and the FIN if one was asked for, is acknowledged.
    pub fn is_all_acknowledged(&self) -> bool {
        self.sender.stream.una >= self.sender.stream.stream_end()
    }

    /// Payload of ours that the peer acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender
            .stream
            .una
            .min(self.sender.stream.end)
            .saturating_sub(1)
    }

    /// Payload given by the application and not sent for the first time yet.
    pub fn unsent(&self) -> u64 {
        self.sender
            .stream
            .end
            .saturating_sub(self.sender.stream.max.max(1))
    }

    /// Payload handed over in order since the beginning.
    pub const fn delivered(&self) -> u64 {
        self.receiver.delivered
    }

    /// What is outstanding, SYN and FIN included.
    pub fn in_flight(&self) -> u64 {
        self.sender.stream.in_flight()
    }

    /// The congestion window in bytes; zero at an end that only receives.
    pub fn congestion_window(&self) -> u64 {
        self.sender.congestion_window()
    }

    /// The window of the peer in bytes, as last heard.
    pub fn peer_window(&self) -> u64 {
        self.sender.stream.peer_window
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

    /// The memory that the connection holds on the heap, in bytes, without its shared settings.
    pub fn heap_memory(&self) -> usize {
        let meter = self.meter().map_or(0, size_of_val);
        self.sender.heap_memory() + self.receiver.heap_memory() + meter
    }

    /// Counters of the time-line of our stream; `None` where it has none.
    pub fn timeline_statistics(&self) -> Option<TimelineStatistics> {
        let line = self.sender.stream.line.as_ref()?;
        Some(line.statistics)
    }

    /// What is missing in the peer's time-lined stream; zeros where nothing is.
    pub fn gap_statistics(&self) -> GapStatistics {
        self.receiver.gap_statistics()
    }

    /// Counters of the sending half; zeros at an end that only receives.
    pub fn statistics(&self) -> SenderStatistics {
        self.sender.statistics()
    }
}
