//! HyStart as in Linux: the end of slow start before the first loss.

use comity_units::{DataSize, Span, Time};

use crate::Ack;

/// Measures the acknowledgements of a slow start, and decides when it ends.
///
/// ```text
/// train:  since the round began, each acknowledgement followed within 2 ms of the last, and
///         now − start of the round > (RTT_min + slack) / 2
/// delay:  from the ninth sample of a round on,
///         minimum of the round > RTT_min + clamp(RTT_min / 8, 4 ms, 16 ms)
/// slack = min(1 ms, 4 · 64 KiB / (2 · cwnd / SRTT))
/// ```
///
/// Neither rule applies below a window of 16 segments. A round begins with the first
/// acknowledgement of data that was sent after the last round had begun. `RTT_min` is the minimum
/// of the connection, not of the round.
///
/// Source: Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55 (2011);
/// the constants and the halved threshold of senders without pacing are those of Linux 6.
///
/// Differs from Linux in: 1. a round ends when more is acknowledged than was in flight at its
/// beginning, because events have no sequence numbers. Both rules agree until the first loss.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::controllers) struct LinuxHyStart {
    /// The payload to be acknowledged before the round ends, and how much of it was.
    outstanding: DataSize,
    passed: DataSize,
    began_at: Time,
    /// The last acknowledgement of the train that began with the round.
    train_at: Time,
    round_min: Option<Span>,
    samples: u32,
    is_over: bool,
}

impl LinuxHyStart {
    const LOW_WINDOW: u32 = 16;
    const TRAIN_SPACING: Span = Span::from_millis(2);
    const SAMPLES: u32 = 8;
    const MIN_RISE: Span = Span::from_millis(4);
    const MAX_RISE: Span = Span::from_millis(16);
    const MAX_SLACK: Span = Span::from_millis(1);
    /// Four times the largest burst that a host builds.
    const SLACK_BYTES: u64 = 4 * 65_536;

    /// Takes an acknowledgement of the slow start. Returns whether it ends the slow start.
    ///
    /// `window` is in segments, `rate` the payload sent per second while the slow start lasts.
    pub(in crate::controllers) fn on_ack(
        &mut self,
        ack: &Ack,
        rtt: Span,
        min_rtt: Span,
        window: u32,
        rate: u64,
    ) -> bool {
        self.passed += ack.acked;
        if self.passed > self.outstanding {
            *self = Self {
                outstanding: ack.in_flight,
                began_at: ack.now,
                train_at: ack.now,
                is_over: self.is_over,
                ..Self::default()
            };
        }
        if self.is_over || window < Self::LOW_WINDOW {
            return false;
        }
        if ack.now.saturating_since(self.train_at) <= Self::TRAIN_SPACING {
            self.train_at = ack.now;
            let slack = Self::SLACK_BYTES.saturating_mul(1_000_000_000) / rate.max(1);
            let threshold = (min_rtt + Span::from_nanos(slack).min(Self::MAX_SLACK)) / 2;
            self.is_over |= ack.now.saturating_since(self.began_at) > threshold;
        }
        let least = self.round_min.map_or(rtt, |min| min.min(rtt));
        self.round_min = Some(least);
        if self.samples < Self::SAMPLES {
            self.samples += 1;
        } else {
            let rise = (min_rtt / 8).min(Self::MAX_RISE).max(Self::MIN_RISE);
            self.is_over |= least > min_rtt + rise;
        }
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn ack(at_us: u64, segments: u64, in_flight: u64) -> Ack {
        Ack {
            now: Time::from_micros(at_us),
            acked: DataSize::new(segments * MSS),
            rtt: None,
            in_flight: DataSize::new(in_flight * MSS),
            app_limited: false,
            in_recovery: false,
            marked: 0,
            packets: segments as u32,
            sample: None,
        }
    }

    /// Takes 60 acknowledgements `spacing_us` apart with round trips of `rtt_ms` over a path of 40
    /// ms. Returns after how many the slow start ended.
    fn ends_after(window: u32, spacing_us: u64, rtt_ms: u64) -> Option<u64> {
        let mut hystart = LinuxHyStart::default();
        let min = Span::from_millis(40);
        (0..60).find(|index| {
            let ack = ack(1_000_000 + index * spacing_us, 1, 100);
            hystart.on_ack(&ack, Span::from_millis(rtt_ms), min, window, 2_000_000)
        })
    }

    #[test]
    fn a_train_longer_than_half_a_round_trip_ends_it() {
        // (40 ms + 1 ms) / 2 = 20.5 ms: with 2 ms between acknowledgements, the 11th (22 ms) is
        // later than that, and the 10th (20 ms) is not. Acknowledgements 3 ms apart are no train,
        // and a window of 15 is too small.
        assert_eq!(ends_after(16, 2_000, 40), Some(11));
        assert_eq!(ends_after(16, 500, 40), Some(42));
        assert_eq!(ends_after(16, 3_000, 40), None);
        assert_eq!(ends_after(15, 2_000, 40), None);
    }

    #[test]
    fn a_rise_of_an_eighth_at_the_ninth_sample_ends_it() {
        // 40 ms / 8 = 5 ms: 46 ms is a rise, and 45 ms is not. The first eight samples decide
        // nothing.
        assert_eq!(ends_after(16, 3_000, 45), None);
        assert_eq!(ends_after(16, 3_000, 46), Some(8));
    }

    #[test]
    fn the_rise_is_four_to_sixteen_milliseconds() {
        for (min, no_rise, rise) in [(8, 12, 13), (400, 416, 417)] {
            let ends = |rtt| {
                let mut hystart = LinuxHyStart::default();
                (0..20).any(|index| {
                    let ack = ack(1_000_000 + index * 5_000, 1, 100);
                    let (rtt, min) = (Span::from_millis(rtt), Span::from_millis(min));
                    hystart.on_ack(&ack, rtt, min, 100, 2_000_000)
                })
            };
            assert!(!ends(no_rise) && ends(rise), "{min} ms");
        }
    }

    #[test]
    fn a_round_lasts_until_what_was_in_flight_is_passed() {
        let mut hystart = LinuxHyStart::default();
        let min = Span::from_millis(40);
        let mut feed = |at_us, in_flight, rtt_ms| {
            let ack = ack(at_us, 1, in_flight);
            hystart.on_ack(&ack, Span::from_millis(rtt_ms), min, 20, 2_000_000)
        };
        // A round with ten segments in flight: the first acknowledgement begins it, and ten more
        // belong to it.
        assert!(!feed(0, 10, 40));
        for index in 1..=10 {
            assert!(
                !feed(index * 3_000, 10, 60),
                "the minimum of the round is 40 ms"
            );
        }
        // The twelfth begins another round. The ninth sample of that round is the first to decide.
        for index in 11..19 {
            assert!(!feed(index * 3_000, 10, 60));
        }
        assert!(feed(19 * 3_000, 10, 60));
    }
}
