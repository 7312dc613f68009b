//! A knockout tournament of events.

use super::event::Event;

/// Finds the earliest of a fixed number of events. Any of them can change.
///
/// The events are the leaves of a binary tree; each inner node holds the earlier event of its two
/// children. A change moves up from the leaf to the root with one comparison a level. It needs no
/// search and moves no other event.
///
/// ```text
///          1              node n has the sides 2 n and 2 n + 1;
///      2       3          from `leaves` on nodes are leaves
/// ```
#[derive(Debug)]
pub(super) struct Tournament {
    nodes: Vec<Event>,
    leaves: usize,
}

impl Tournament {
    /// A tournament of `leaves` events, all of them [`Event::NEVER`].
    pub(super) fn new(leaves: usize) -> Self {
        let leaves = leaves.max(2);
        Self {
            nodes: vec![Event::NEVER; 2 * leaves],
            leaves,
        }
    }

    #[inline]
    pub(super) fn first(&self) -> Event {
        self.nodes[1]
    }

    /// Changes the event of a leaf.
    #[inline]
    pub(super) fn set(&mut self, leaf: usize, event: Event) {
        let mut at = self.leaves + leaf;
        let mut first = event;
        while let Some(node) = self.nodes.get_mut(at) {
            *node = first;
            if at == 1 {
                break;
            }
            // Sides come in pairs that differ in the last bit.
            if let Some(&other) = self.nodes.get(at ^ 1) {
                first = first.min(other);
            }
            at /= 2;
        }
    }

    /// Changes the event of a leaf to an earlier one. Stops at a node with an earlier event.
    #[inline]
    pub(super) fn advance(&mut self, leaf: usize, event: Event) {
        let mut at = self.leaves + leaf;
        while at > 0
            && let Some(node) = self.nodes.get_mut(at)
            && *node > event
        {
            *node = event;
            at /= 2;
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Event>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::Class;
    use comity_units::Time;

    #[test]
    fn the_first_is_the_earliest() {
        use proptest::prelude::*;
        let changes = prop::collection::vec((any::<usize>(), 0_u64..20), 1..60);
        proptest!(|(leaves in 0_usize..40, changes in changes)| {
            let mut tournament = Tournament::new(leaves);
            let mut events = vec![Event::NEVER; leaves.max(2)];
            for (leaf, time) in changes {
                let leaf = leaf % events.len();
                let event = Event::new(Time::from_nanos(time), Class::Arrival, leaf as u32);
                if event < events[leaf] && time % 2 == 0 {
                    tournament.advance(leaf, event);
                } else {
                    tournament.set(leaf, event);
                }
                events[leaf] = event;
                prop_assert_eq!(Some(tournament.first()), events.iter().min().copied());
            }
        });
    }
}
