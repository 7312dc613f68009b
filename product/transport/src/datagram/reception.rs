//! Received packets: duplicates, acknowledgements, and missing numbers.

use alloc::collections::BTreeMap;

use comity_congestion::Ecn;
use comity_units::{PacketNumber, Span, Time};

use super::missing::MissingPackets;
use super::received::ReceivedPackets;
use super::taking::Taking;
use crate::wire::Stamp;
use crate::wire::frame::{Ack, AckRanges, EcnCounts};

/// The received packets of a connection.
#[derive(Debug)]
pub(super) struct Reception {
    /// The packets that are acknowledged.
    received: ReceivedPackets,
    /// Whether packets with sections are acknowledged.
    taking: Taking,
    missing: MissingPackets,
    last_at: Time,
}

impl Reception {
    /// Accepts sections. `frequency` and `delay` determine when acknowledgements leave.
    pub(super) fn new(frequency: u32, delay: Span, now: Time) -> Self {
        Self {
            received: ReceivedPackets::new(frequency, delay),
            taking: Taking::Now,
            missing: MissingPackets::default(),
            last_at: now,
        }
    }

    /// Whether a packet with this number arrived already.
    pub(super) fn is_duplicate(&self, number: PacketNumber) -> bool {
        self.received.is_known(number) || self.taking.withholds(number)
    }

    /// Whether this number is so old that its arrival is unknown.
    pub(super) fn is_forgotten(&self, number: PacketNumber) -> bool {
        self.received.is_forgotten(number)
    }

    /// A packet arrived that is neither a duplicate nor forgotten.
    pub(super) fn on_packet(&mut self, now: Time, number: PacketNumber) {
        self.last_at = now;
        self.missing.on_packet(number);
    }

    /// When the last packet arrived.
    pub(super) const fn last_at(&self) -> Time {
        self.last_at
    }

    /// The number of missing packets below the largest that arrived.
    pub(super) const fn missing(&self) -> u64 {
        self.missing.count()
    }

    // ---------------------------------------------------------------- acceptance of sections

    /// Withholds the acknowledgement of sections from now on, until an application accepts them.
    pub(super) fn await_taker(&mut self) {
        self.taking = Taking::NotYet(BTreeMap::new());
    }

    /// Whether sections wait for an application to accept them.
    pub(super) const fn awaits_taker(&self) -> bool {
        matches!(self.taking, Taking::NotYet(_))
    }

    /// The application accepts sections from now on. Returns whether packets had waited for this.
    /// They are acknowledged now.
    pub(super) fn take_sections(&mut self, now: Time) -> bool {
        let Some(withheld) = self.taking.take() else {
            return false;
        };
        for (number, packet) in &withheld {
            self.received
                .on_packet(packet.arrived_at, *number, packet.token, packet.ecn, true);
        }
        if !withheld.is_empty() {
            self.received.demand(now);
        }
        !withheld.is_empty()
    }

    /// The application accepts no more sections. Returns whether it did before.
    pub(super) fn refuse_sections(&mut self) -> bool {
        let is_new = !self.taking.is_over();
        if is_new {
            self.taking = Taking::NoMore;
        }
        is_new
    }

    /// Whether the application accepts no more sections.
    pub(super) const fn refuses_sections(&self) -> bool {
        self.taking.is_over()
    }

    // ---------------------------------------------------------------- acknowledgements

    /// Records a packet for acknowledgement, now or when an application accepts its sections.
    /// Returns whether there was room to remember it.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        number: PacketNumber,
        token: u8,
        ecn: Ecn,
        (has_sections, wants_answer): (bool, bool),
    ) -> bool {
        if has_sections && let Some(has_room) = self.taking.withhold(now, number, token, ecn) {
            return has_room;
        }
        self.received
            .on_packet(now, number, token, ecn, wants_answer);
        true
    }

    /// When the next acknowledgement is due; [`Time::MAX`] if none is.
    pub(super) const fn ack_due_at(&self) -> Time {
        self.received.due_at()
    }

    /// Whether a packet arrived since the last acknowledgement.
    pub(super) const fn has_news(&self) -> bool {
        self.received.has_news()
    }

    /// Makes an acknowledgement due now.
    pub(super) fn demand_ack(&mut self, now: Time) {
        self.received.demand(now);
    }

    /// The acknowledgement to send now, with as many ranges as fit into `room` bytes; `None` while
    /// no packet has arrived. `stamp` converts times to those in packets.
    pub(super) fn ack(
        &self,
        now: Time,
        room: usize,
        proves: bool,
        stamp: impl FnOnce(Time) -> Stamp,
    ) -> Option<Ack<'_>> {
        let ranges = AckRanges::new(self.received.ranges()).ok()?;
        let arrived_at = self.received.largest_arrived_at();
        let ecn = self.received.ecn();
        let ack = Ack {
            ranges,
            delay: now.saturating_since(arrived_at),
            arrival: stamp(arrived_at),
            ecn: (ecn != EcnCounts::default()).then_some(ecn),
            proof: None,
        };
        let ack = ack.fitting(room)?;
        // The size does not depend on the proof.
        let proof = proves.then(|| self.received.proof(ack.ranges.len()));
        Some(Ack { proof, ..ack })
    }

    /// The acknowledgement is in a packet that leaves.
    pub(super) fn on_ack_sent(&mut self) {
        self.received.on_acknowledged();
    }

    /// The peer has received an acknowledgement with this largest number.
    pub(super) fn on_ack_seen(&mut self, largest: PacketNumber) {
        self.received.on_seen(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_secs(1);
    const SECTIONS: (bool, bool) = (true, true);

    fn reception() -> Reception {
        Reception::new(2, Span::from_millis(10), Time::ZERO)
    }

    fn arrive(reception: &mut Reception, now: Time, number: u64) -> bool {
        let number = PacketNumber::new(number);
        reception.on_packet(now, number);
        reception.acknowledge(now, number, 0, Ecn::NotCapable, SECTIONS)
    }

    /// The largest number of an acknowledgement, and its delay.
    fn ack(reception: &Reception, now: Time) -> Option<(u64, Span)> {
        let ack = reception.ack(now, 1_000, false, Stamp::of)?;
        Some((ack.ranges.largest().get(), ack.delay))
    }

    #[test]
    fn a_packet_is_acknowledged_with_its_delay() {
        let mut reception = reception();
        assert_eq!(ack(&reception, NOW), None);
        assert!(arrive(&mut reception, NOW, 0));
        assert!(reception.is_duplicate(PacketNumber::ZERO));
        assert_eq!(reception.last_at(), NOW);
        let later = NOW + Span::from_millis(3);
        assert_eq!(ack(&reception, later), Some((0, Span::from_millis(3))));
        assert_eq!(reception.ack_due_at(), NOW + Span::from_millis(10));
        reception.on_ack_sent();
        assert!(!reception.has_news());
    }

    #[test]
    fn sections_are_acknowledged_once_the_application_accepts_them() {
        let mut reception = reception();
        reception.await_taker();
        assert!(arrive(&mut reception, NOW, 0));
        assert!(reception.awaits_taker() && reception.is_duplicate(PacketNumber::ZERO));
        assert_eq!(ack(&reception, NOW), None);
        let later = NOW + Span::from_secs(1);
        assert!(reception.take_sections(later));
        assert_eq!(ack(&reception, later), Some((0, Span::from_secs(1))));
        assert_eq!(reception.ack_due_at(), later);
        assert!(!reception.take_sections(later), "it takes them already");
    }

    #[test]
    fn packets_without_sections_are_acknowledged_at_once() {
        let mut reception = reception();
        reception.await_taker();
        let without = (false, true);
        assert!(reception.acknowledge(NOW, PacketNumber::ZERO, 0, Ecn::NotCapable, without));
        assert_eq!(ack(&reception, NOW), Some((0, Span::ZERO)));
    }

    #[test]
    fn refused_sections_stay_refused() {
        let mut reception = reception();
        assert!(!reception.refuses_sections());
        assert!(reception.refuse_sections());
        assert!(!reception.refuse_sections());
        assert!(reception.refuses_sections());
        assert!(!reception.take_sections(NOW));
        assert!(reception.refuses_sections());
    }

    #[test]
    fn missing_numbers_are_those_below_the_largest() {
        let mut reception = reception();
        for number in [0, 3, 1] {
            arrive(&mut reception, NOW, number);
        }
        assert_eq!(reception.missing(), 1);
    }
}
