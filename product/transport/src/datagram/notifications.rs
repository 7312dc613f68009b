//! The events, path frames and lost packets that the owner of a connection polls.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::events::{Event, LostPacket, PathFrame};

/// The maximum number of path frames of one packet. A peer needs at most one frame of each kind.
const MAX_PATH_FRAMES: usize = 2;

/// Events, the path frames of the last packet, and lost packets for an owner that keeps a trace.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    events: VecDeque<Event>,
    path_frames: VecDeque<PathFrame>,
    /// `None` unless the owner keeps a trace.
    losses: Option<Vec<LostPacket>>,
}

impl Notifications {
    pub(super) fn on_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A packet arrived: discards unpolled path frames of the previous one.
    pub(super) fn on_packet(&mut self) {
        self.path_frames.clear();
    }

    /// The last packet contains this frame.
    pub(super) fn on_path_frame(&mut self, frame: PathFrame) {
        if self.path_frames.len() < MAX_PATH_FRAMES {
            self.path_frames.push_back(frame);
        }
    }

    pub(super) fn poll_path_frame(&mut self) -> Option<PathFrame> {
        self.path_frames.pop_front()
    }

    /// Keeps lost packets from now on.
    pub(super) fn keep_losses(&mut self) {
        self.losses.get_or_insert_default();
    }

    pub(super) fn on_losses(&mut self, losses: impl Iterator<Item = LostPacket>) {
        if let Some(kept) = &mut self.losses {
            kept.extend(losses);
        }
    }

    /// The packets lost since the last call.
    pub(super) fn take_losses(&mut self) -> Vec<LostPacket> {
        self.losses
            .as_mut()
            .map(core::mem::take)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::PacketNumber;

    #[test]
    fn a_packet_has_two_path_frames_and_replaces_those_of_the_last() {
        let mut notifications = Notifications::default();
        for token in 1..=3 {
            notifications.on_path_frame(PathFrame::Challenge([token; 8]));
        }
        let first = PathFrame::Challenge([1; 8]);
        assert_eq!(notifications.poll_path_frame(), Some(first));
        notifications.on_packet();
        assert_eq!(notifications.poll_path_frame(), None);
    }

    #[test]
    fn losses_are_kept_only_on_request() {
        let loss = LostPacket {
            number: PacketNumber::ZERO,
            payload: 1_000,
            by_delay: false,
        };
        let mut notifications = Notifications::default();
        notifications.on_losses([loss].into_iter());
        notifications.keep_losses();
        assert!(notifications.take_losses().is_empty());
        notifications.on_losses([loss].into_iter());
        notifications.keep_losses();
        assert_eq!(notifications.take_losses(), [loss]);
        assert!(notifications.take_losses().is_empty());
    }
}
