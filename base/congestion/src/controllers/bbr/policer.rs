//! Detection of policers, which drop packets above a rate.

use comity_units::{Span, Time};

/// Detects a token-bucket policer: the bandwidth between losses is the same in two intervals.
///
/// An interval begins and ends with a loss, lasts 4 to 16 rounds, and counts if the lost bytes are
/// at least 50/256 of those delivered. Two bandwidths agree when they differ by an eighth of the
/// older or by 4 kb/s. Their mean is the bandwidth of the flow for 48 rounds.
///
/// Source: Linux, net/ipv4/tcp_bbr.c ("long-term" bandwidth); T. Flach and others, "An
/// Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    /// Bytes per second, of the last interval or of the policer.
    bandwidth: Option<f64>,
    is_found: bool,
    rounds: u32,
    began: Time,
    began_delivered: u64,
    began_lost: u64,
}

/// The state of the flow at an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) now: Time,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Whether this acknowledgement showed a loss.
    pub(super) has_loss: bool,
    pub(super) round_began: bool,
    pub(super) app_limited: bool,
    /// Whether the flow is in its gain cycle.
    pub(super) is_cycling: bool,
}

/// The consequence for the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    /// The bandwidth of the policer has expired, and the gain cycle restarts.
    Over,
}

const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 48;
const LOSS_SHARE: f64 = 50.0 / 256.0;
const AGREEMENT: f64 = 1.0 / 8.0;
/// 4 kb/s, in bytes.
const SAME: f64 = 500.0;

impl Policer {
    /// The bandwidth of the policer; `None` without one.
    pub(super) fn bandwidth(&self) -> Option<f64> {
        self.bandwidth.filter(|_| self.is_found)
    }

    /// Restarts the detection.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    fn begin(&mut self, progress: &Progress) {
        self.began = progress.now;
        self.began_delivered = progress.delivered;
        self.began_lost = progress.lost;
        self.rounds = 0;
    }

    pub(super) fn on_ack(&mut self, progress: &Progress) -> Verdict {
        if self.is_found {
            if progress.is_cycling && progress.round_began {
                self.rounds += 1;
                if self.rounds >= MAX_ROUNDS {
                    self.reset();
                    return Verdict::Over;
                }
            }
            return Verdict::Nothing;
        }
        if !self.is_sampling {
            if !progress.has_loss {
                return Verdict::Nothing;
            }
            self.begin(progress);
            self.is_sampling = true;
        }
        if progress.app_limited {
            self.reset();
            return Verdict::Nothing;
        }
        self.rounds += u32::from(progress.round_began);
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset();
        } else if self.rounds >= MIN_ROUNDS && progress.has_loss {
            self.end(progress);
        }
        Verdict::Nothing
    }

    fn end(&mut self, progress: &Progress) {
        let lost = progress.lost.saturating_sub(self.began_lost) as f64;
        let delivered = progress.delivered.saturating_sub(self.began_delivered) as f64;
        let elapsed = progress.now.saturating_since(self.began);
        if delivered <= 0.0 || lost < LOSS_SHARE * delivered || elapsed < Span::from_millis(1) {
            return;
        }
        let bandwidth = delivered / elapsed.as_secs_f64();
        if let Some(before) = self.bandwidth {
            let difference = (bandwidth - before).abs();
            if difference <= AGREEMENT * before || difference <= SAME {
                self.bandwidth = Some(f64::midpoint(bandwidth, before));
                self.is_found = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = Some(bandwidth);
        self.begin(progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 100 ms with 100,000 bytes delivered each, and `lost` bytes lost in each.
    fn run(policer: &mut Policer, rounds: core::ops::Range<u64>, lost: u64) -> Option<u64> {
        let mut over = None;
        for round in rounds {
            let verdict = policer.on_ack(&Progress {
                now: Time::from_millis(round * 100),
                delivered: round * 100_000,
                lost: round * lost,
                has_loss: lost > 0,
                round_began: true,
                app_limited: false,
                is_cycling: true,
            });
            if verdict == Verdict::Over {
                over = Some(round);
            }
        }
        over
    }

    /// The first loss begins an interval, whose round counts; four rounds end it, four more the
    /// second.
    #[test]
    fn two_lossy_intervals_that_agree_are_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        run(&mut policer, 1..8, 25_000);
        assert_eq!(policer.bandwidth(), None);
        run(&mut policer, 8..9, 25_000);
        assert!((policer.bandwidth().unwrap() - 1e6).abs() < 1.0);
        assert_eq!(run(&mut policer, 9..100, 0), Some(56));
        assert_eq!(policer.bandwidth(), None);
    }

    #[test]
    fn few_losses_and_limited_senders_are_none() {
        let mut policer = Policer::default();
        run(&mut policer, 1..40, 19_000);
        assert_eq!(policer.bandwidth(), None, "19 of 100");
        run(&mut policer, 40..44, 25_000);
        let limited = Progress {
            now: Time::from_millis(4_400),
            delivered: 4_400_000,
            lost: 1_000_000,
            has_loss: true,
            round_began: true,
            app_limited: true,
            is_cycling: true,
        };
        policer.on_ack(&limited);
        run(&mut policer, 45..49, 25_000);
        assert_eq!(policer.bandwidth(), None, "it began anew");
    }
}
