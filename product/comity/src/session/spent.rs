//! The tickets of closed connections.
//!
//! A ticket opens one connection. While the connection exists, its id proves that the ticket was
//! used. Afterwards this list proves it, until the ticket expires.

use std::collections::BTreeMap;

use comity_units::Time;

use super::{ConnectionId, SLOT};

/// The closed connections whose tickets have not expired. Only callers that have proved themselves
/// add entries, within the budget.
pub(super) struct Spent {
    until: BTreeMap<ConnectionId, Time>,
    /// When the list is next searched for expired tickets.
    forget_at: Time,
}

impl Spent {
    pub(super) const fn new() -> Self {
        Self {
            until: BTreeMap::new(),
            forget_at: Time::MAX,
        }
    }

    /// Adds a closed connection whose ticket expires at `until`.
    pub(super) fn insert(&mut self, connection: ConnectionId, until: Time) {
        self.until.insert(connection, until);
        // Each expires at most a slot later.
        self.forget_at = self.forget_at.min(until + SLOT);
    }

    /// Whether the ticket of this connection was used.
    pub(super) fn contains(&self, connection: ConnectionId) -> bool {
        self.until.contains_key(&connection)
    }

    /// When [`Self::on_timer`] has something to forget; `Time::MAX` for never.
    pub(super) const fn next_timer(&self) -> Time {
        self.forget_at
    }

    /// Forgets expired tickets.
    pub(super) fn on_timer(&mut self, now: Time) {
        if self.forget_at <= now {
            self.until.retain(|_, until| now < *until);
            self.forget_at = match self.until.is_empty() {
                true => Time::MAX,
                false => now + SLOT,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_units::Span;

    use super::*;

    #[test]
    fn a_used_ticket_is_remembered_until_it_expires() {
        let start = Time::from_secs(1);
        let mut spent = Spent::new();
        assert_eq!(spent.next_timer(), Time::MAX);
        let mut most = 0;
        for at in 0..2_000_u64 {
            let now = start + Span::from_millis(at * 100);
            spent.on_timer(now);
            let id = ConnectionId::new(at);
            assert!(!spent.contains(id));
            spent.insert(id, now + SLOT + SLOT);
            // Those of the last two slots, except at the moment when the first of them expires.
            let oldest = at.saturating_sub(159);
            assert!(spent.contains(ConnectionId::new(oldest)), "{oldest}");
            most = most.max(spent.until.len());
        }
        // Ten a second, for two slots, and for a third until the timer.
        assert!((160..=241).contains(&most), "{most}");
        // Without further calls, the timer removes all entries.
        let mut rounds = 0;
        while spent.next_timer() != Time::MAX {
            let due = spent.next_timer();
            assert!(due <= start + Span::from_secs(200 + 24), "{due}");
            spent.on_timer(due);
            rounds += 1;
        }
        assert!(spent.until.is_empty());
        assert!((1..=3).contains(&rounds), "{rounds}");
    }
}
