//! The search for the largest packet that a path carries, by the fate of probes.

use comity_units::Span;

/// `MAX_PROBES` of RFC 8899, section 5.1.2.
const MAX_PROBES: u32 = 3;

/// The remaining uncertainty of the size, in bytes: 1 % is not worth more probes.
const CLOSE_ENOUGH: u32 = 16;

/// After how long a larger size is tried again: `PMTU_RAISE_TIMER` of RFC 8899, section 5.1.1, and
/// RFC 1191, section 6.3.
pub const SEARCH_INTERVAL: Span = Span::from_secs(600);

/// A search for the largest packet that a path carries. Sizes are in bytes, with the headers that
/// the owner counts.
///
/// ```text
/// probe = max                        at first: most paths carry it
///       = (current + limit) / 2      once a size has failed
/// current = probe                    when a probe arrives
/// limit = probe                      when three probes of a size are lost, or one is refused
/// over: current = max, or limit − current ≤ 16
/// ```
///
/// Source: RFC 8899, section 5.3, and RFC 4821, section 7.3. Differs from them in: the largest size
/// is tried first, because an outage looks like a path that drops large packets.
#[derive(Clone, Copy, Debug)]
pub struct SizeSearch {
    /// The maximum size of both ends.
    max: u32,
    current: u32,
    /// The smallest size that failed; above `max` while none has.
    limit: u32,
    /// How many probes of the present size were lost.
    failures: u32,
}

impl SizeSearch {
    /// A search from `current`, which the path carries, up to `max`.
    pub const fn new(current: u32, max: u32) -> Self {
        Self {
            max,
            current,
            limit: max.saturating_add(1),
            failures: 0,
        }
    }

    /// The largest size that is known to arrive.
    pub const fn current(&self) -> u32 {
        self.current
    }

    /// The largest size that can be found.
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// The size of the next probe.
    pub const fn probe(&self) -> u32 {
        if self.limit > self.max {
            self.max
        } else {
            self.current.midpoint(self.limit)
        }
    }

    /// Whether the search is over.
    pub const fn is_over(&self) -> bool {
        let is_close =
            self.limit <= self.max && self.limit.saturating_sub(self.current) <= CLOSE_ENOUGH;
        self.is_at_max() || is_close
    }

    /// Whether the path carries the largest size.
    pub const fn is_at_max(&self) -> bool {
        self.current >= self.max
    }

    /// Whether this size has failed.
    pub const fn has_failed(&self, size: u32) -> bool {
        size >= self.limit
    }

    /// Records that a probe of this size arrived.
    pub fn on_success(&mut self, size: u32) {
        self.failures = 0;
        self.current = self.current.max(size);
    }

    /// Records that a probe of this size was lost, because of its size or by chance.
    pub const fn on_failure(&mut self, size: u32) {
        self.failures += 1;
        if self.failures >= MAX_PROBES {
            self.refuse(size);
        }
    }

    /// Records that this size is certainly too large.
    pub const fn refuse(&mut self, size: u32) {
        self.failures = 0;
        self.limit = size;
    }

    /// Restarts the search, from a size of `current`.
    pub const fn restart_at(&mut self, current: u32) {
        *self = Self::new(current, self.max);
    }

    /// Restarts the search, from the size that was found.
    pub const fn restart(&mut self) {
        self.restart_at(self.current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the path carries, the search ends within 16 bytes of it, and never above.
    #[test]
    fn a_search_ends_close_below_what_the_path_carries() {
        for (first, max) in [(552, 1_500), (1_024, 9_000), (1_171, 1_423), (1, 65_535)] {
            for carried in (first..=max).step_by(41).chain([max]) {
                let mut search = SizeSearch::new(first, max);
                let mut probes = 0;
                while !search.is_over() {
                    let size = search.probe();
                    assert!(search.current() < size && !search.has_failed(size));
                    match size <= carried {
                        true => search.on_success(size),
                        false => search.on_failure(size),
                    }
                    probes += 1;
                }
                let found = search.current();
                assert!(
                    found <= carried && carried - found < CLOSE_ENOUGH,
                    "{carried}: {found}"
                );
                // Each halving costs three probes at most, and the largest size three.
                let halvings = (max - first).ilog2() + 1;
                assert!(probes <= MAX_PROBES * (1 + halvings), "{carried}: {probes}");
                assert!(
                    (probes == 1) == (carried == max),
                    "the largest size is first"
                );
            }
        }
    }

    #[test]
    fn two_lost_probes_do_not_refuse_a_size() {
        let mut search = SizeSearch::new(1_200, 1_500);
        search.on_failure(1_500);
        search.on_failure(1_500);
        assert_eq!(search.probe(), 1_500);
        search.on_failure(1_500);
        assert_eq!((search.probe(), search.has_failed(1_500)), (1_350, true));
        search.restart();
        assert_eq!((search.probe(), search.has_failed(1_500)), (1_500, false));
        search.refuse(1_210);
        assert!(search.is_over() && !search.is_at_max());
    }
}
