//! The tickets that opened a connection that is over.
//!
//! A ticket is good for one connection. While the connection exists, its id says that the ticket
//! was used; afterwards this list does, for as long as the ticket could be opened.

use std::collections::BTreeMap;

use comity_units::Time;

use super::{ConnectionId, SLOT};

/// The connections that are over while their tickets are still good. Only callers that have proved
/// themselves add to them, within the budget.
pub(super) struct Spent {
    until: BTreeMap<ConnectionId, Time>,
    /// When those are looked through whose tickets are no longer good.
    forget_at: Time,
}

impl Spent {
    pub(super) fn new(now: Time) -> Self {
        Self {
            until: BTreeMap::new(),
            forget_at: now + SLOT,
        }
    }

    /// The connection is over, and its ticket good until then.
    pub(super) fn insert(&mut self, connection: ConnectionId, until: Time) {
        self.until.insert(connection, until);
    }

    /// Whether the ticket of this connection was used. Forgets those that nobody can use any more.
    pub(super) fn contains(&mut self, now: Time, connection: ConnectionId) -> bool {
        if self.forget_at <= now {
            self.until.retain(|_, until| now < *until);
            self.forget_at = now + SLOT;
        }
        self.until.contains_key(&connection)
    }
}

#[cfg(test)]
mod tests {
    use comity_units::Span;

    use super::*;

    #[test]
    fn a_ticket_counts_as_used_while_it_is_good_and_takes_no_memory_afterwards() {
        let start = Time::from_secs(1);
        let mut spent = Spent::new(start);
        let mut most = 0;
        for at in 0..2_000_u64 {
            let now = start + Span::from_millis(at * 100);
            let id = ConnectionId::new(at);
            assert!(!spent.contains(now, id));
            spent.insert(id, now + SLOT + SLOT);
            // Those of the last two slots, but for the moment at which the first of them ends.
            let oldest = at.saturating_sub(159);
            assert!(spent.contains(now, ConnectionId::new(oldest)), "{oldest}");
            most = most.max(spent.until.len());
        }
        // Ten a second, for two slots, and for a third until somebody looks.
        assert!((160..=240).contains(&most), "{most}");
        // Whoever looks after a long time finds none.
        assert!(!spent.contains(start + Span::from_secs(1_000), ConnectionId::new(1_999)));
        assert!(spent.until.is_empty());
    }
}
