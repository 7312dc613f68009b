//! The least delay of each place in a group, and whether a pair agrees with all of them.

/// Longer groups would queue behind themselves.
pub(super) const LONGEST_GROUP: u64 = 16;

/// The least round trip, in nanoseconds, of the packets at each place of their groups.
///
/// A packet behind `p` of its own group is later by `p · T` without any other traffic, so the
/// floors lie on a line with a slope of T, the dispersion of one packet. A pair with another
/// dispersion, or whose packets both waited, is off it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floors {
    least: [Option<i64>; LONGEST_GROUP as usize],
}

/// One packet of a pair, and how far apart the two are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) delay: i64,
    pub(super) place: i64,
    /// The dispersion of one packet.
    pub(super) packet: i64,
    /// How many places the second is behind the first.
    pub(super) apart: i64,
}

impl Floors {
    pub(super) fn lower(&mut self, place: u64, delay: i64) {
        let floor = usize::try_from(place).ok();
        if let Some(floor) = floor.and_then(|place| self.least.get_mut(place)) {
            *floor = Some(floor.map_or(delay, |least| least.min(delay)));
        }
    }

    /// The floors of both.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (place, delay) in other.known() {
            self.lower(place.unsigned_abs(), delay);
        }
        self
    }

    fn known(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        (0..)
            .zip(&self.least)
            .filter_map(|(place, least)| Some((place, (*least)?)))
    }

    /// Whether no floor shows that the pair waited, or that its dispersion is another one, by more
    /// than an eighth:
    ///
    /// ```text
    /// D − p·T  ≤  floor_q − q·T + T · max(apart, |p − q|) / 8      for each place q
    /// ```
    pub(super) fn confirm(&self, probe: &Probe) -> bool {
        self.known().all(|(place, least)| {
            let between = probe.place.saturating_sub(place);
            let beyond = probe
                .delay
                .saturating_sub(least)
                .saturating_sub(between.saturating_mul(probe.packet));
            let places = between.abs().max(probe.apart);
            let allowed = probe.packet.saturating_mul(places) / 8;
            beyond <= allowed
        })
    }

    /// The most that one packet can take at the bottleneck:
    ///
    /// ```text
    /// T ≤ min over p > q of (floor_p − floor_q) / (p − q)      q: the place with the least floor
    /// ```
    ///
    /// That holds if the least delayed packet of all met no queue, whatever the others met: what
    /// they waited makes the differences longer.
    pub(super) fn longest_packet(&self) -> Option<i64> {
        let (front, least) = self.known().min_by_key(|(_, delay)| *delay)?;
        self.known()
            .filter(|(place, _)| *place > front)
            .map(|(place, delay)| delay.saturating_sub(least) / place.saturating_sub(front))
            .min()
            .filter(|packet| *packet > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floors(of: &[(u64, i64)]) -> Floors {
        let mut floors = Floors::default();
        for (place, delay) in of {
            floors.lower(*place, *delay);
        }
        floors
    }

    fn pair(delay: i64, packet: i64) -> Probe {
        Probe {
            delay,
            place: 0,
            packet,
            apart: 1,
        }
    }

    /// A packet takes 800, and the path 10,000 beside it.
    #[test]
    fn an_eighth_of_a_packet_is_the_limit_either_way() {
        let line = floors(&[(0, 10_800), (1, 11_600), (5, 14_800)]);
        for (delay, packet, is_confirmed) in [
            (10_800, 800, true),
            // It waited.
            (10_900, 800, true),
            (10_901, 800, false),
            // Compressed: the first waited for what is missing.
            (10_880, 720, true),
            (10_940, 660, false),
            // Expanded: from 914.3 on, the second place is too early for it.
            (10_800, 914, true),
            (10_800, 915, false),
        ] {
            let found = line.confirm(&pair(delay, packet));
            assert_eq!(found, is_confirmed, "{delay}, {packet}");
        }
    }

    #[test]
    fn the_longest_packet_needs_one_that_met_no_queue_in_front() {
        assert_eq!(Floors::default().longest_packet(), None);
        assert_eq!(floors(&[(3, 10)]).longest_packet(), None);
        // The second place waited 200, the sixth 500.
        let line = floors(&[(0, 10_800), (1, 11_800), (5, 15_300)]);
        assert_eq!(line.longest_packet(), Some(900));
        let late = floors(&[(0, 12_000), (1, 11_600), (2, 12_500)]);
        assert_eq!(late.longest_packet(), Some(900), "the first place waited");
        let turned = floors(&[(0, 12_000), (1, 11_600)]);
        assert_eq!(turned.longest_packet(), None, "none is behind the least");
    }

    #[test]
    fn the_floors_of_two_windows_are_the_lesser_ones() {
        let both = floors(&[(0, 10_900), (1, 11_600)]).and(floors(&[(0, 10_800), (1, 12_000)]));
        assert_eq!(both.longest_packet(), Some(800));
        let beyond = floors(&[(LONGEST_GROUP, 1)]);
        assert_eq!(beyond.known().count(), 0);
    }

    /// Packets that need no time say nothing about the slowest link.
    #[test]
    fn equal_floors_have_no_longest_packet() {
        assert_eq!(floors(&[(0, 10_000), (1, 10_000)]).longest_packet(), None);
        assert_eq!(
            floors(&[(0, 10_000), (1, 10_001)]).longest_packet(),
            Some(1)
        );
    }
}
