//! The receiver's side of flow control: the room of its buffer that the peer knows.

/// The maximum number of packets with a Credit frame in flight. Beyond it, arriving sections and
/// requests of the peer cause no further report. A peer that never acknowledges thus cannot fill
/// the record of sent packets.
pub(super) const MAX_UNANSWERED: u32 = 4_096;

/// The last report of free room to the peer, and when the next one is due.
///
/// `admitted` counts the bytes that the peer could have counted against its credit so far
/// ([`Inbox::admitted`](crate::timeline::Inbox::admitted)).
#[derive(Clone, Copy, Debug)]
pub(super) struct AdvertisedRoom {
    /// The size of the receive buffer.
    buffer: u64,
    reported: u64,
    admitted_before: u64,
    /// Packets with a report in flight.
    unanswered: u32,
    is_due: bool,
}

impl AdvertisedRoom {
    /// The peer knows the size of the buffer.
    pub(super) const fn new(buffer: u64) -> Self {
        Self {
            buffer,
            reported: buffer,
            admitted_before: 0,
            unanswered: 0,
            is_due: false,
        }
    }

    /// The minimum room that the peer knows if it has received the last report.
    const fn known(&self, admitted: u64) -> u64 {
        self.reported
            .saturating_sub(admitted - self.admitted_before)
    }

    /// Whether a report is due in a packet of its own.
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether to add a report to a packet. A peer that knows of enough room needs no update.
    pub(super) const fn is_worth_reporting(&self, room: u64, admitted: u64) -> bool {
        let known = self.known(admitted);
        known < self.buffer / 4 * 3 && known < room && self.unanswered < MAX_UNANSWERED
    }

    /// Makes a report due, because the room has changed by more than the peer can know.
    pub(super) const fn demand(&mut self) {
        self.is_due = true;
    }

    /// The peer waits for room, or there was no room for its sections. Its knowledge of the room
    /// may be out of date in either direction.
    pub(super) const fn on_shortage(&mut self) {
        self.is_due |= self.unanswered < MAX_UNANSWERED;
    }

    /// The application accepted a section, and `room` is free now. Makes a report due if the peer
    /// knows of much less room: a peer without packets in flight gets no acknowledgement that could
    /// carry the report.
    pub(super) const fn on_freed(&mut self, room: u64, admitted: u64) {
        let known = self.known(admitted);
        let was_little = known < self.buffer / 2 && room >= self.buffer / 2;
        self.is_due |= room > known && (was_little || room - known >= self.buffer / 4);
    }

    /// A packet with a report of `room` leaves.
    pub(super) const fn on_sent(&mut self, room: u64, admitted: u64) {
        self.reported = room;
        self.admitted_before = admitted;
        self.unanswered += 1;
        self.is_due = false;
    }

    /// A packet with a report was acknowledged.
    pub(super) const fn on_acked(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// A packet with a report was lost.
    pub(super) const fn on_lost(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.is_due = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: u64 = 1_000;

    #[test]
    fn much_more_room_is_reported_in_a_packet() {
        // The buffer is full, and the peer knows that.
        for (room, expected) in [(0, false), (249, false), (250, true), (1_000, true)] {
            let mut advertised = AdvertisedRoom::new(BUFFER);
            advertised.on_freed(room, 1_000);
            assert_eq!(advertised.is_due(), expected, "{room}");
        }
        // Half of the buffer is free again: the peer knows slightly less, which is worth a report.
        let mut advertised = AdvertisedRoom::new(BUFFER);
        advertised.on_freed(499, 510);
        assert!(!advertised.is_due());
        advertised.on_freed(500, 510);
        assert!(advertised.is_due());
    }

    #[test]
    fn an_acknowledgement_carries_a_report_if_the_peer_knows_little_room() {
        let advertised = AdvertisedRoom::new(BUFFER);
        assert!(
            !advertised.is_worth_reporting(1_000, 250),
            "it knows of 750"
        );
        assert!(advertised.is_worth_reporting(1_000, 251));
        assert!(
            !advertised.is_worth_reporting(749, 251),
            "no more than that"
        );
    }

    #[test]
    fn a_report_is_due_until_it_leaves_and_again_when_it_is_lost() {
        let mut advertised = AdvertisedRoom::new(BUFFER);
        advertised.demand();
        assert!(advertised.is_due());
        advertised.on_sent(400, 600);
        assert!(!advertised.is_due());
        assert_eq!(advertised.known(700), 300);
        advertised.on_lost();
        assert!(advertised.is_due());
    }

    #[test]
    fn a_silent_peer_gets_a_limited_number_of_reports() {
        let mut advertised = AdvertisedRoom::new(BUFFER);
        for _ in 0..MAX_UNANSWERED {
            advertised.on_shortage();
            assert!(advertised.is_due());
            advertised.on_sent(0, 0);
        }
        advertised.on_shortage();
        assert!(!advertised.is_due() && !advertised.is_worth_reporting(1_000, 1_000));
        advertised.on_acked();
        advertised.on_shortage();
        assert!(advertised.is_due());
    }
}
