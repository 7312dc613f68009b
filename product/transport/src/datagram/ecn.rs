//! Whether the path carries ECN marks.

use crate::wire::frame::EcnCounts;

/// Compares the number of sent marks with the peer's counts, and stops marking if they contradict
/// each other.
///
/// Source: RFC 9000, section 13.4.2.
#[derive(Clone, Copy, Debug)]
pub(super) struct EcnValidation {
    sent: u64,
    counted: EcnCounts,
    is_valid: bool,
}

impl EcnValidation {
    /// Marks from the first packet on, if `marks`.
    pub(super) fn new(marks: bool) -> Self {
        Self {
            sent: 0,
            counted: EcnCounts::default(),
            is_valid: marks,
        }
    }

    /// The path has changed: marks are tried again. The counts continue.
    pub(super) const fn on_path_changed(&mut self, marks: bool) {
        self.is_valid = marks;
    }

    /// Whether to mark the next ACK-eliciting packet. Counts it.
    pub(super) const fn mark(&mut self) -> bool {
        self.sent += self.is_valid as u64;
        self.is_valid
    }

    /// Handles the counts in an ACK of `packets` newly acknowledged packets. Returns the number of
    /// new CE marks.
    pub(super) fn on_counts(&mut self, counts: EcnCounts, packets: u32) -> u64 {
        let before = self.counted;
        let total = |counts: EcnCounts| counts.ect0.saturating_add(counts.ce);
        // A reordered ACK has older counts.
        let Some(grew) = total(counts).checked_sub(total(before)) else {
            return 0;
        };
        // More marks than were sent, or none on the packets that arrived.
        if total(counts) > self.sent || (self.is_valid && grew == 0 && packets > 0) {
            self.is_valid = false;
        }
        self.counted = counts;
        counts.ce.saturating_sub(before.ce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ect0: u64, ce: u64) -> EcnCounts {
        EcnCounts { ect0, ect1: 0, ce }
    }

    #[test]
    fn marking_ends_when_the_path_clears_marks_or_the_peer_invents_them() {
        let sent = |packets: u32| {
            let mut ecn = EcnValidation::new(true);
            assert!((0..packets).all(|_| ecn.mark()));
            ecn
        };
        let mut ecn = sent(4);
        assert_eq!(ecn.on_counts(counts(2, 1), 3), 1);
        assert_eq!(ecn.on_counts(counts(3, 1), 1), 0);
        assert!(ecn.mark());
        // An older ACK has no effect.
        assert_eq!(ecn.on_counts(counts(1, 0), 0), 0);
        assert!(ecn.mark());

        let mut erased = sent(4);
        erased.on_counts(counts(0, 0), 2);
        assert!(!erased.mark());
        let mut made_up = sent(4);
        made_up.on_counts(counts(5, 0), 4);
        assert!(!made_up.mark());
        made_up.on_path_changed(true);
        assert!(made_up.mark());
        assert!(!EcnValidation::new(false).mark());
    }
}
