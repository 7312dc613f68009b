//! A knockout tournament of times.

use comity_units::Time;

/// The earliest of a fixed number of times, each of which can be changed.
///
/// The times are the leaves of a binary tree, and each inner node keeps the earlier time of either side, so
/// that a change is passed on from the leaf to the root with one comparison for each level, without moving
/// anything; the way back to the winner costs another. Of equal times the one with the lower place wins.
///
/// ```text
///          1              node n has the sides 2 n and 2 n + 1;
///      2       3          from `places` on nodes are leaves
/// ```
#[derive(Debug)]
pub(super) struct Tournament {
    /// The time of each node; the root is at 1.
    times: Vec<Time>,
    /// The number of leaves.
    places: u32,
    /// How many of them lie on the deepest level, which comes first from left to right.
    deepest: u32,
}

impl Tournament {
    /// A tournament of `places` times, all of them [`Time::MAX`].
    pub(super) fn new(places: usize) -> Self {
        let places = places.max(2) as u32;
        Self {
            times: vec![Time::MAX; 2 * places as usize],
            places,
            deepest: 2 * (places - (1 << places.ilog2())),
        }
    }

    /// The earliest time.
    #[inline]
    pub(super) fn least(&self) -> Time {
        self.times[1]
    }

    /// The place of the earliest time, the lowest of those.
    #[inline]
    pub(super) fn winner(&self) -> u32 {
        let mut at = 1;
        while let Some(&[left, right]) = self.times.get(2 * at..).and_then(<[Time]>::first_chunk) {
            at = 2 * at + usize::from(right < left);
        }
        let place = at as u32 - self.places + self.deepest;
        if place < self.places {
            place
        } else {
            place - self.places
        }
    }

    #[inline]
    fn leaf(&self, place: u32) -> usize {
        let after_deepest = place.wrapping_sub(self.deepest);
        let leaf = if place < self.deepest {
            after_deepest.wrapping_add(2 * self.places)
        } else {
            after_deepest.wrapping_add(self.places)
        };
        leaf as usize
    }

    /// Changes the time of a place.
    #[inline]
    pub(super) fn set(&mut self, place: u32, time: Time) {
        let mut at = self.leaf(place);
        let mut least = time;
        while let Some(node) = self.times.get_mut(at) {
            *node = least;
            if at == 1 {
                break;
            }
            // The other side's index differs in the last bit and is there: nodes come in pairs.
            least = least.min(self.times.get(at ^ 1).copied().unwrap_or(Time::MAX));
            at /= 2;
        }
    }

    /// Changes the time of a place to an earlier one: the way ends where another is as early.
    #[inline]
    pub(super) fn advance(&mut self, place: u32, time: Time) {
        let mut at = self.leaf(place);
        while at > 0
            && let Some(node) = self.times.get_mut(at)
            && *node > time
        {
            *node = time;
            at /= 2;
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.times.capacity() * size_of::<Time>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_winner_is_the_first_of_the_earliest() {
        use proptest::prelude::*;
        let changes = prop::collection::vec((any::<u32>(), 0_u64..20), 1..60);
        proptest!(|(places in 0_usize..40, changes in changes)| {
            let mut tournament = Tournament::new(places);
            let mut times = vec![Time::MAX; places.max(2)];
            for (place, time) in changes {
                let (place, time) = (place as usize % times.len(), Time::from_nanos(time));
                if time < times[place] && time.as_nanos() % 2 == 0 {
                    tournament.advance(place as u32, time);
                } else {
                    tournament.set(place as u32, time);
                }
                times[place] = time;
                let least = times.iter().min().copied().unwrap_or(Time::MAX);
                let winner = times.iter().position(|&time| time == least);
                prop_assert_eq!(tournament.least(), least);
                prop_assert_eq!(Some(tournament.winner() as usize), winner);
            }
        });
    }
}
