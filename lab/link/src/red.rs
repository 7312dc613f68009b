//! Random early detection.
//!
//! RED drops packets before the queue is full. It uses a slow average of the queue length, so that
//! a short burst passes. It drops an arriving packet with a probability that grows with the average
//! and with the number of packets since the last drop, which spaces drops evenly over the flows.
//!
//! ```text
//! avg ← (1 − w)·avg + w·q                                 on every arrival
//! avg ← (1 − w)^(m + 1)·avg                               after the link idled for m typical packets
//! p_b = max_p · (avg − min) / (max − min)                 min ≤ avg < max
//! p_b = max_p + (1 − max_p) · (avg − max) / max           max ≤ avg < 2·max, gentle
//! p   = p_b / (1 − count·p_b), or p_b / (2 − count·p_b) once count·p_b ≥ 1 with `wait`
//! ```
//!
//! Source: S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! 1993, figure 2; gentle: S. Floyd, "Recommendation on using the gentle variant of RED", 2000.
//! Differs from the source in, each to agree with ns-2 2.35: 1. `q` counts waiting packets, not the
//! one in transmission, and the idle time starts when the link is completely empty. 2. the arrival
//! that ends an idle time also averages in its empty queue, hence m + 1. 3. the first packet after
//! the average crosses the minimum is admitted and counts as the first since a drop. 4. no packet
//! is dropped early while at most one packet (or byte) waits. 5. a full queue resets the count, as
//! a drop does. 6. `wait`. 7. in byte mode the count is `⌊bytes / mean⌋`, and the probability is
//! scaled by the size of the packet after the count is applied, not before. Unlike ns-2, m is
//! computed in integers: an idle time of exactly m packets is m, where a double may say m − 1.

use comity_units::{Rate, Seed, Span};

use crate::Random;
use crate::clock::WORK_PER_BYTE;
use crate::outcome::Packet;
use crate::queue::{RedConfig, RedUnit};

/// The decision of random early detection on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Drop,
    Mark,
    Pass,
}

/// The state of the link at the arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Waiting packets, without the one in service.
    pub(crate) packets: usize,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// If the link is idle: for how long, and its rate.
    pub(crate) idle: Option<(Span, Rate)>,
}

/// The state of random early detection.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    minimum: f64,
    maximum: f64,
    max_probability: f64,
    weight: f64,
    gentle: bool,
    ecn: bool,
    wait: bool,
    unit: RedUnit,
    mean_packet: u64,
    average: f64,
    /// Arrivals since the last drop, or since the average crossed the minimum.
    count: u64,
    count_bytes: u64,
    /// Whether the last arrival found the average above the minimum.
    is_above: bool,
    random: Random,
}

impl Red {
    /// Creates the state of an unused queue.
    pub(crate) fn new(config: &RedConfig, seed: Seed) -> Self {
        let mean_packet = config.mean_packet.get().max(1);
        let scale = match config.unit {
            RedUnit::Bytes => mean_packet as f64,
            RedUnit::Packets => 1.0,
        };
        Self {
            minimum: config.min_threshold * scale,
            maximum: config.max_threshold * scale,
            max_probability: config.max_probability,
            weight: config.weight,
            gentle: config.gentle,
            ecn: config.ecn,
            wait: config.wait,
            unit: config.unit,
            mean_packet,
            average: 0.0,
            count: 0,
            count_bytes: 0,
            is_above: false,
            random: Random::new(seed.derive("red")),
        }
    }

    /// The average queue, in packets or bytes.
    pub(crate) const fn average(&self) -> f64 {
        self.average
    }

    /// Records an arrival and decides about it. Uses one random number if chance decides, else
    /// none.
    pub(crate) fn arrive(&mut self, found: &Found, packet: Packet) -> Verdict {
        let (queue, waiting) = match self.unit {
            RedUnit::Bytes => (found.bytes as f64, found.bytes),
            RedUnit::Packets => (found.packets as f64, found.packets as u64),
        };
        let keep = 1.0 - self.weight;
        let typical = found
            .idle
            .map_or(0, |(idle, rate)| self.typical_packets(idle, rate));
        self.average *= if typical == 0 {
            keep
        } else {
            libm::pow(keep, typical as f64 + 1.0)
        };
        self.average += self.weight * queue;
        self.count += 1;
        self.count_bytes += u64::from(packet.bytes);

        if self.average < self.minimum || waiting <= 1 {
            self.is_above = false;
            return Verdict::Pass;
        }
        let certain = if self.gentle {
            2.0 * self.maximum
        } else {
            self.maximum
        };
        if self.average >= certain {
            self.reset_count();
            return Verdict::Drop;
        }
        if !self.is_above {
            self.is_above = true;
            self.count = 1;
            self.count_bytes = u64::from(packet.bytes);
            return Verdict::Pass;
        }
        let probability = self.probability(packet.bytes);
        if !self.random.bernoulli(probability) {
            return Verdict::Pass;
        }
        self.reset_count();
        if self.ecn && packet.ecn_capable {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Records that the queue was full for the packet of the last [`Red::arrive`].
    pub(crate) fn overflow(&mut self) {
        self.reset_count();
    }

    fn reset_count(&mut self) {
        self.count = 0;
        self.count_bytes = 0;
    }

    /// How many packets of mean size the link could have sent during the idle time.
    fn typical_packets(&self, idle: Span, rate: Rate) -> u64 {
        let work = u128::from(rate.as_bps()) * u128::from(idle.as_nanos());
        let packets = work / (u128::from(WORK_PER_BYTE) * u128::from(self.mean_packet));
        u64::try_from(packets).unwrap_or(u64::MAX)
    }

    /// The probability of a drop now, with spacing.
    fn probability(&self, bytes: u32) -> f64 {
        let over = self.average - self.maximum;
        let base = if over >= 0.0 {
            self.max_probability + (1.0 - self.max_probability) * over / self.maximum
        } else {
            let above = self.average - self.minimum;
            self.max_probability * above / (self.maximum - self.minimum)
        };
        let count = match self.unit {
            RedUnit::Bytes => (self.count_bytes / self.mean_packet) as f64,
            RedUnit::Packets => self.count as f64,
        };
        let due = count * base;
        let spaced = match self.wait {
            true if due < 1.0 => 0.0,
            true if due < 2.0 => base / (2.0 - due),
            false if due < 1.0 => base / (1.0 - due),
            _ => 1.0,
        };
        match self.unit {
            RedUnit::Bytes if spaced < 1.0 => {
                (spaced * f64::from(bytes) / self.mean_packet as f64).min(1.0)
            }
            RedUnit::Bytes | RedUnit::Packets => spaced.min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_units::DataSize;

    const PACKET: Packet = Packet {
        bytes: 1_000,
        ecn_capable: false,
        flow: 0,
    };

    fn config() -> RedConfig {
        RedConfig {
            mean_packet: DataSize::new(1_000),
            weight: 0.5,
            wait: false,
            ..RedConfig::default()
        }
    }

    fn busy(packets: usize) -> Found {
        Found {
            packets,
            bytes: packets as u64 * 1_000,
            idle: None,
        }
    }

    #[test]
    fn the_average_follows_the_queue_and_decays_on_an_idle_link() {
        let mut red = Red::new(&config(), Seed::new(0));
        // 0 → 2 → 3 → 3.5: half of the distance to 4 each time.
        for (queue, average) in [(4, 2.0), (4, 3.0), (4, 3.5), (0, 1.75)] {
            red.arrive(&busy(queue), PACKET);
            assert_eq!(red.average(), average);
        }
        // 1 Mb/s sends a typical packet in 8 ms: 23.9 ms are two of them, so 1.75 / 2³.
        let idle = Some((Span::from_micros(23_900), Rate::from_mbps(1)));
        red.arrive(
            &Found {
                packets: 0,
                bytes: 0,
                idle,
            },
            PACKET,
        );
        assert!(
            (red.average() - 1.75 / 8.0).abs() < 1e-15,
            "{}",
            red.average()
        );
        // Less than one typical packet: only the arrival itself counts.
        let idle = Some((Span::from_micros(7_999), Rate::from_mbps(1)));
        red.arrive(
            &Found {
                packets: 0,
                bytes: 0,
                idle,
            },
            PACKET,
        );
        assert!(
            (red.average() - 1.75 / 16.0).abs() < 1e-15,
            "{}",
            red.average()
        );
    }

    #[test]
    fn the_probability_grows_with_the_average_and_the_count() {
        let mut red = Red::new(&config(), Seed::new(0));
        // Half way between 5 and 15, the base probability is 0.05; gentle: half way from 15 to 30,
        // it is 0.1 + 0.9 / 2 = 0.55.
        for (average, count, expected) in [
            (10.0, 0, 0.05),
            (10.0, 10, 0.05 / 0.5),
            (10.0, 19, 0.05 / 0.05),
            (10.0, 20, 1.0),
            (5.0, 100, 0.0),
            (15.0, 0, 0.1),
            (22.5, 0, 0.55),
            (22.5, 1, 1.0),
        ] {
            (red.average, red.count) = (average, count);
            let got = red.probability(1_000);
            assert!((got - expected).abs() < 1e-12, "{average} {count}: {got}");
        }
        red.wait = true;
        for (count, expected) in [(19, 0.0), (20, 0.05), (30, 0.1), (40, 1.0)] {
            (red.average, red.count) = (10.0, count);
            let got = red.probability(1_000);
            assert!((got - expected).abs() < 1e-12, "{count}: {got}");
        }
    }

    #[test]
    fn in_byte_mode_small_packets_are_spared() {
        let mut red = Red::new(
            &RedConfig {
                unit: RedUnit::Bytes,
                ..config()
            },
            Seed::new(0),
        );
        (red.average, red.count_bytes) = (10_000.0, 10_999);
        // ⌊10.999⌋ = 10 packets since the last drop: 0.05 / 0.5 for a typical packet.
        assert!((red.probability(1_000) - 0.1).abs() < 1e-12);
        assert!((red.probability(40) - 0.004).abs() < 1e-12);
    }

    #[test]
    fn certain_drops_are_never_marks() {
        let marking = RedConfig {
            ecn: true,
            ..config()
        };
        let packet = Packet {
            ecn_capable: true,
            ..PACKET
        };
        for (gentle, average, verdict) in [
            (false, 14.9, Verdict::Pass),
            (false, 15.1, Verdict::Drop),
            (true, 30.1, Verdict::Drop),
        ] {
            let mut red = Red::new(
                &RedConfig {
                    gentle,
                    ..marking.clone()
                },
                Seed::new(0),
            );
            red.average = average;
            assert_eq!(
                red.arrive(&busy(libm::round(average) as usize), packet),
                verdict,
                "{average}"
            );
        }
        // Above the minimum for the second time with a count that forces a drop: a mark.
        let mut red = Red::new(&marking, Seed::new(0));
        (red.average, red.is_above, red.count) = (10.0, true, 1_000);
        assert_eq!(red.arrive(&busy(10), packet), Verdict::Mark);
        assert_eq!(red.count, 0);
    }
}
