//! Departures of packets: their numbers, skipped numbers, keep-alives, probes and window updates.

use comity_units::{PacketNumber, Seed, Span, Time};

use super::missing::MIN_DISTANCE;

/// The minimum interval between packets that only report abandoned sections.
pub(super) const TELL_INTERVAL: Span = Span::from_millis(2);

/// The record of the last departures.
///
/// Every few hundred packets, one number is skipped. A peer that acknowledges a skipped number
/// guesses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departures {
    seed: Seed,
    /// The next number to skip.
    skip_at: PacketNumber,
    /// Probes due since the probe timer expired.
    probes: u32,
    last_at: Time,
    /// When the last packet left that had only floors and notices.
    news_sent_at: Option<Time>,
}

impl Departures {
    pub(super) fn new(seed: Seed, now: Time) -> Self {
        Self {
            seed,
            skip_at: next_skip(seed, PacketNumber::ZERO),
            probes: 0,
            last_at: now,
            news_sent_at: None,
        }
    }

    /// When the last packet left.
    pub(super) const fn last_at(&self) -> Time {
        self.last_at
    }

    /// A packet leaves, and `next` is the following number. Returns whether to skip `next`.
    pub(super) fn on_sent(&mut self, now: Time, next: PacketNumber) -> bool {
        self.last_at = now;
        let is_skipped = next == self.skip_at;
        if is_skipped {
            self.skip_at = next_skip(self.seed, next.next());
        }
        is_skipped
    }

    // ---------------------------------------------------------------- probes

    /// Whether the next packet is a probe: it ignores window and pacer, and is ACK-eliciting.
    pub(super) const fn owes_probe(&self) -> bool {
        self.probes > 0
    }

    /// The probe timer expired.
    pub(super) const fn on_probe_timeout(&mut self) {
        self.probes = 1;
    }

    /// An ACK-eliciting packet leaves.
    pub(super) const fn on_eliciting(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }

    /// The peer has acknowledged a packet, or the path has changed: no probe is due.
    pub(super) const fn on_answer(&mut self) {
        self.probes = 0;
    }

    // ---------------------------------------------------------------- news of abandoned sections

    /// A packet with only floors and notices leaves.
    pub(super) const fn on_news_sent(&mut self, now: Time) {
        self.news_sent_at = Some(now);
    }

    /// When the next packet with only floors and notices may leave.
    pub(super) fn news_at(&self) -> Time {
        self.news_sent_at
            .map_or(Time::ZERO, |at| at + TELL_INTERVAL)
    }
}

/// The next number to skip: 128 to 383 above `next`, determined by the seed.
fn next_skip(seed: Seed, next: PacketNumber) -> PacketNumber {
    let next = next.get();
    let draw = seed.derive("skip").index(next).get() & 0xff;
    PacketNumber::new(next.saturating_add(MIN_DISTANCE + draw))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const NOW: Time = Time::from_secs(1);

    /// The skipped ones among the first `numbers` numbers.
    fn skipped(seed: u64, numbers: u64) -> Vec<u64> {
        let mut departures = Departures::new(Seed::new(seed), NOW);
        let mut next = PacketNumber::ZERO;
        let mut skipped = Vec::new();
        while next.get() < numbers {
            next = next.next();
            if departures.on_sent(NOW, next) {
                skipped.push(next.get());
                next = next.next();
            }
        }
        skipped
    }

    #[test]
    fn skipped_numbers_are_128_to_383_apart() {
        let skipped = skipped(1, 100_000);
        assert!((128..=383).contains(&skipped[0]));
        for pair in skipped.windows(2) {
            let between = pair[1] - pair[0] - 1;
            assert!((128..=383).contains(&between), "{between}");
        }
        // Every 256.5th of 100,000 numbers on average.
        assert!((370..=410).contains(&skipped.len()), "{}", skipped.len());
    }

    #[test]
    fn another_seed_skips_other_numbers() {
        assert_eq!(skipped(1, 2_000), skipped(1, 2_000));
        assert_ne!(skipped(1, 2_000), skipped(2, 2_000));
    }

    #[test]
    fn a_probe_is_due_until_an_eliciting_packet_or_an_answer() {
        let mut departures = Departures::new(Seed::new(1), NOW);
        departures.on_probe_timeout();
        departures.on_probe_timeout();
        assert!(departures.owes_probe());
        departures.on_eliciting();
        assert!(!departures.owes_probe(), "one, however many expiries");
        departures.on_probe_timeout();
        departures.on_answer();
        assert!(!departures.owes_probe());
    }

    #[test]
    fn packets_with_only_news_are_spaced() {
        let mut departures = Departures::new(Seed::new(1), NOW);
        assert_eq!(departures.news_at(), Time::ZERO);
        departures.on_news_sent(NOW);
        assert_eq!(departures.news_at(), NOW + TELL_INTERVAL);
        assert_eq!(departures.last_at(), NOW);
    }
}
