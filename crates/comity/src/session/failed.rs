//! The tickets with which somebody has failed to prove itself.
//!
//! A ticket is worth one guess of a passphrase: its key follows from a share that was made before.
//! So it is charged and reported once, and later proofs with it are looked at whatever the budget
//! says.

use super::ConnectionId;

/// How many tickets are remembered. The listener draws their identifiers, so nobody can choose ones
/// that push others out; one that is forgotten is charged again.
const PLACES: usize = 4_096;

pub(super) struct FailedTickets(Vec<ConnectionId>);

impl FailedTickets {
    pub(super) fn new() -> Self {
        // Nobody draws this one but once in 2^64 times.
        Self(vec![ConnectionId::new(0); PLACES])
    }

    const fn place(ticket: ConnectionId) -> usize {
        ticket.get() as usize % PLACES
    }

    /// Whether this ticket has failed, as far as that is remembered.
    pub(super) fn contains(&self, ticket: ConnectionId) -> bool {
        self.0[Self::place(ticket)] == ticket
    }

    pub(super) fn insert(&mut self, ticket: ConnectionId) {
        self.0[Self::place(ticket)] = ticket;
    }

    /// The ticket was good after all.
    pub(super) fn remove(&mut self, ticket: ConnectionId) {
        if self.contains(ticket) {
            self.0[Self::place(ticket)] = ConnectionId::new(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_remembered_until_another_one_takes_its_place() {
        let mut failed = FailedTickets::new();
        let [one, same_place, other] = [5, 5 + PLACES as u64, 6].map(ConnectionId::new);
        for ticket in [one, other] {
            assert!(!failed.contains(ticket));
            failed.insert(ticket);
            assert!(failed.contains(ticket));
        }
        failed.insert(same_place);
        assert!(!failed.contains(one) && failed.contains(same_place));
        failed.remove(one);
        assert!(failed.contains(same_place) && failed.contains(other));
        failed.remove(same_place);
        assert!(!failed.contains(same_place));
        assert_eq!(failed.0.len(), PLACES);
    }
}
