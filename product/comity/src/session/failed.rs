//! Tickets whose proofs have failed.
//!
//! A ticket allows one guess of a passphrase, since its share determines its key. The listener
//! therefore charges and reports a failure of a ticket only once. It checks later proofs with that
//! ticket regardless of the budget.

use super::ConnectionId;

/// The number of remembered tickets. The listener draws their identifiers, so nobody can choose
/// identifiers that evict others. A forgotten ticket is charged again.
const SLOTS: usize = 4_096;

pub(super) struct FailedTickets(Vec<ConnectionId>);

impl FailedTickets {
    pub(super) fn new() -> Self {
        // 0 marks an empty slot. A ticket has this identifier with a probability of 2^-64.
        Self(vec![ConnectionId::new(0); SLOTS])
    }

    const fn slot(ticket: ConnectionId) -> usize {
        ticket.get() as usize % SLOTS
    }

    /// Whether this ticket is remembered as failed.
    pub(super) fn contains(&self, ticket: ConnectionId) -> bool {
        self.0[Self::slot(ticket)] == ticket
    }

    pub(super) fn insert(&mut self, ticket: ConnectionId) {
        self.0[Self::slot(ticket)] = ticket;
    }

    /// A later proof with this ticket succeeded.
    pub(super) fn remove(&mut self, ticket: ConnectionId) {
        if self.contains(ticket) {
            self.0[Self::slot(ticket)] = ConnectionId::new(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_remembered_until_another_one_takes_its_slot() {
        let mut failed = FailedTickets::new();
        let [one, same_slot, other] = [5, 5 + SLOTS as u64, 6].map(ConnectionId::new);
        for ticket in [one, other] {
            assert!(!failed.contains(ticket));
            failed.insert(ticket);
            assert!(failed.contains(ticket));
        }
        failed.insert(same_slot);
        assert!(!failed.contains(one) && failed.contains(same_slot));
        failed.remove(one);
        assert!(failed.contains(same_slot) && failed.contains(other));
        failed.remove(same_slot);
        assert!(!failed.contains(same_slot));
        assert_eq!(failed.0.len(), SLOTS);
    }
}
