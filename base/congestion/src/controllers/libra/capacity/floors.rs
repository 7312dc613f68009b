//! The minimum delay at each position of a group, and whether a pair agrees with all of them.

/// The most packets in a group. Longer groups would cause a queue themselves.
pub(super) const MAX_GROUP: u64 = 16;

/// The minimum round trip, in nanoseconds, of the packets at each position of their groups.
///
/// Without other traffic, a packet at position `p` is `p · T` later than the first, where `T` is
/// the dispersion of one packet. So the floors lie on a line with slope T. A pair with another
/// dispersion, or whose packets both queued, lies off the line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Floors {
    least: [Option<i64>; MAX_GROUP as usize],
}

/// The first packet of a pair, and how far the second is behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) delay: i64,
    pub(super) position: i64,
    /// The dispersion of one packet.
    pub(super) packet: i64,
    /// How many positions the second is behind the first.
    pub(super) apart: i64,
}

impl Floors {
    /// Takes the round trip of a packet at this position.
    pub(super) fn lower(&mut self, position: u64, delay: i64) {
        let floor = usize::try_from(position).ok();
        if let Some(floor) = floor.and_then(|position| self.least.get_mut(position)) {
            *floor = Some(floor.map_or(delay, |least| least.min(delay)));
        }
    }

    /// The lower floors of both.
    pub(super) fn and(mut self, other: Self) -> Self {
        for (position, delay) in other.known() {
            self.lower(position.unsigned_abs(), delay);
        }
        self
    }

    fn known(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        (0..)
            .zip(&self.least)
            .filter_map(|(position, least)| Some((position, (*least)?)))
    }

    /// Whether no floor shows that the pair queued or has another dispersion, by more than an
    /// eighth.
    ///
    /// ```text
    /// D − p·T  ≤  floor_q − q·T + T · max(apart, |p − q|) / 8      for each position q
    /// ```
    pub(super) fn confirm(&self, probe: &Probe) -> bool {
        self.known().all(|(position, least)| {
            let between = probe.position.saturating_sub(position);
            let beyond = probe
                .delay
                .saturating_sub(least)
                .saturating_sub(between.saturating_mul(probe.packet));
            let positions = between.abs().max(probe.apart);
            let allowed = probe.packet.saturating_mul(positions) / 8;
            beyond <= allowed
        })
    }

    /// An upper bound on the transmission time of one packet at the bottleneck.
    ///
    /// ```text
    /// T ≤ min over p > q of (floor_p − floor_q) / (p − q)      q: the position with the lowest floor
    /// ```
    ///
    /// The bound holds if the least delayed packet met no queue. Queueing of the others only makes
    /// the differences longer.
    pub(super) fn longest_packet(&self) -> Option<i64> {
        let (front, least) = self.known().min_by_key(|(_, delay)| *delay)?;
        self.known()
            .filter(|(position, _)| *position > front)
            .map(|(position, delay)| delay.saturating_sub(least) / position.saturating_sub(front))
            .min()
            .filter(|packet| *packet > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floors(of: &[(u64, i64)]) -> Floors {
        let mut floors = Floors::default();
        for (position, delay) in of {
            floors.lower(*position, *delay);
        }
        floors
    }

    fn pair(delay: i64, packet: i64) -> Probe {
        Probe {
            delay,
            position: 0,
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
            // The pair queued.
            (10_900, 800, true),
            (10_901, 800, false),
            // Compressed: the first packet queued for the missing time.
            (10_880, 720, true),
            (10_940, 660, false),
            // Expanded: from 914.3 on, the floor of the second position is too early for it.
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
        // The second position queued for 200, the sixth for 500.
        let line = floors(&[(0, 10_800), (1, 11_800), (5, 15_300)]);
        assert_eq!(line.longest_packet(), Some(900));
        let late = floors(&[(0, 12_000), (1, 11_600), (2, 12_500)]);
        assert_eq!(
            late.longest_packet(),
            Some(900),
            "the first position waited"
        );
        let turned = floors(&[(0, 12_000), (1, 11_600)]);
        assert_eq!(turned.longest_packet(), None, "none is behind the least");
    }

    #[test]
    fn the_floors_of_two_windows_are_the_lesser_ones() {
        let both = floors(&[(0, 10_900), (1, 11_600)]).and(floors(&[(0, 10_800), (1, 12_000)]));
        assert_eq!(both.longest_packet(), Some(800));
        let beyond = floors(&[(MAX_GROUP, 1)]);
        assert_eq!(beyond.known().count(), 0);
    }

    /// Packets without a transmission time show nothing about the slowest link.
    #[test]
    fn equal_floors_have_no_longest_packet() {
        assert_eq!(floors(&[(0, 10_000), (1, 10_000)]).longest_packet(), None);
        assert_eq!(
            floors(&[(0, 10_000), (1, 10_001)]).longest_packet(),
            Some(1)
        );
    }
}
