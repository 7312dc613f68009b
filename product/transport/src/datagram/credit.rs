//! The sender's side of flow control: the room that the peer has reported.

use comity_units::{PacketNumber, Span};

use super::intervals::MEASURE_INTERVAL;

/// The peer's credit, and this end's requests for more.
///
/// The peer reports the room that it has not reserved yet. Sections that this end had begun before
/// the report may not have arrived by then. Such a section counts against the credit once its first
/// acknowledgement arrives, unless the peer sent that acknowledgement before the report:
///
/// ```text
/// left = reported − ( answered now − answered when the report came )
/// ```
///
/// `answered` is the length of all sections with an acknowledgement so far
/// ([`Outbox::answered`](crate::timeline::Outbox::answered)).
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerCredit {
    reported: u64,
    /// The packet that brought the report.
    reported_by: Option<PacketNumber>,
    /// The newest packet with the first acknowledgement of a section.
    answered_by: Option<PacketNumber>,
    answered_before: u64,
    /// Whether this end has requested credit since the report.
    is_requested: bool,
    /// A request waits for a packet.
    owes_request: bool,
}

impl PeerCredit {
    pub(super) const fn new(bytes: u64) -> Self {
        Self {
            reported: bytes,
            reported_by: None,
            answered_by: None,
            answered_before: 0,
            is_requested: false,
            owes_request: false,
        }
    }

    /// The peer's whole buffer, as announced before the first packet.
    pub(super) const fn set_initial(&mut self, bytes: u64) {
        self.reported = bytes;
    }

    /// The packet `number` acknowledged a part of a section for the first time.
    pub(super) fn on_answer(&mut self, number: PacketNumber) {
        self.answered_by = self.answered_by.max(Some(number));
    }

    /// The packet `number` reports `bytes` of room. Returns whether the report is new.
    pub(super) fn on_report(&mut self, number: PacketNumber, bytes: u64, answered: u64) -> bool {
        if self.reported_by.is_some_and(|before| before >= number) {
            return false;
        }
        self.reported_by = Some(number);
        self.reported = bytes;
        self.is_requested = false;
        // A section with its first acknowledgement in a later packet may have taken its room after
        // this report: it continues to count.
        if self.answered_by <= Some(number) {
            self.answered_before = answered;
        }
        true
    }

    /// Whether the last report was a credit of zero.
    pub(super) const fn is_refused(&self) -> bool {
        self.reported == 0
    }

    /// The credit, less the sections that have used it since the report.
    pub(super) const fn left(&self, answered: u64) -> u64 {
        self.reported
            .saturating_sub(answered - self.answered_before)
    }

    /// How long this end waits before it requests credit. `timeout` is the probe timeout. A second
    /// request waits longer until the peer reports: the peer reports much more room without a
    /// request.
    pub(super) fn patience(&self, timeout: Span) -> Span {
        match self.is_requested {
            true => timeout.max(MEASURE_INTERVAL),
            false => timeout,
        }
    }

    pub(super) const fn request(&mut self) {
        self.is_requested = true;
        self.owes_request = true;
    }

    /// Whether a request waits for a packet.
    pub(super) const fn owes_request(&self) -> bool {
        self.owes_request
    }

    pub(super) const fn on_request_sent(&mut self) {
        self.owes_request = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn packet(number: u64) -> PacketNumber {
        PacketNumber::new(number)
    }

    #[test]
    fn sections_acknowledged_after_the_report_count_against_it() {
        let mut credit = PeerCredit::new(10_000);
        assert_eq!(credit.left(4_000), 6_000);
        assert!(credit.on_report(packet(5), 8_000, 4_000));
        assert_eq!(credit.left(4_000), 8_000);
        assert_eq!(credit.left(15_000), 0);
    }

    #[test]
    fn an_overtaken_report_does_not_free_room_twice() {
        let mut credit = PeerCredit::new(10_000);
        credit.on_answer(packet(6));
        assert!(credit.on_report(packet(5), 8_000, 4_000));
        assert_eq!(credit.left(4_000), 4_000, "it may have come after packet 5");
        assert!(credit.on_report(packet(6), 8_000, 4_000));
        assert_eq!(credit.left(4_000), 8_000);
    }

    #[test]
    fn an_older_report_is_ignored() {
        let mut credit = PeerCredit::new(10_000);
        assert!(credit.on_report(packet(5), 0, 0));
        assert!(!credit.on_report(packet(4), 9_000, 0));
        assert!(credit.is_refused());
    }

    #[test]
    fn a_second_request_waits_longer_until_the_peer_reports() {
        let mut credit = PeerCredit::new(0);
        let timeout = Span::from_millis(100);
        assert_eq!(credit.patience(timeout), timeout);
        credit.request();
        assert!(credit.owes_request());
        credit.on_request_sent();
        assert!(!credit.owes_request());
        assert_eq!(credit.patience(timeout), MEASURE_INTERVAL);
        credit.on_report(packet(1), 0, 0);
        assert_eq!(credit.patience(timeout), timeout);
    }
}
