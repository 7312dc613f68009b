//! IFTP's gap: equations 2, 4 and 6, once per round.
//!
//! Left out: the choice of the first threshold from the bandwidth-delay product (the paper names it and
//! cites Hoe for it), and rounds that end without all of their acknowledgements.

use comity_congestion::{
    Ack, Controller, Decision, Loss, LossCause, Pacing, Phase, RttConfig, RttEstimator, Timeout,
};
use comity_units::{Bytes, Rate, Span, Time};

/// The sender's only half. `τ` is the time of a packet on the sender's own link.
#[derive(Debug)]
struct GapLaw {
    mss: Bytes,
    tau: Span,
    rtt: RttEstimator,
    /// n: how many packets a round has.
    packets: f64,
    ssthresh: f64,
    gap: Span,
    /// `ack_count`: how many of them are acknowledged.
    acknowledged: f64,
    /// Whether a loss was answered and what was sent before it is still coming in.
    in_loss: bool,
}

impl GapLaw {
    fn new(mss: Bytes, wire: Bytes, link: Rate, ssthresh: f64) -> Self {
        Self {
            mss,
            tau: link.transmission_time(wire),
            rtt: RttEstimator::new(&RttConfig::RFC6298),
            packets: 1.0,
            ssthresh,
            gap: Span::ZERO,
            acknowledged: 0.0,
            in_loss: false,
        }
    }

    /// R.
    fn round(&self) -> Span {
        self.rtt.smoothed(&RttConfig::RFC6298).unwrap_or(Span::ZERO)
    }

    /// `G = R / n − τ`, which is equations 2, 4 and 6 with the new n.
    fn begin_round(&mut self, packets: f64) {
        self.packets = packets.max(1.0);
        self.acknowledged = 0.0;
        self.gap = self
            .round()
            .mul_f64(1.0 / self.packets)
            .saturating_sub(self.tau);
    }
}

impl Controller for GapLaw {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt
                .on_sample(&RttConfig::RFC6298, Time::ZERO, Time::ZERO + rtt);
        }
        self.acknowledged += f64::from(ack.packets);
        if self.in_loss || self.acknowledged < self.packets {
            return;
        }
        if self.packets < self.ssthresh {
            self.begin_round((2.0 * self.packets).min(self.ssthresh));
        } else {
            self.begin_round(self.packets + 1.0);
        }
    }

    fn on_loss(&mut self, _: &Loss) {
        self.ssthresh = (self.ssthresh / 2.0).max(2.0);
        self.in_loss = true;
        self.begin_round(self.packets / 2.0);
    }

    fn on_recovered(&mut self, _now: Time) {
        self.in_loss = false;
        self.acknowledged = 0.0;
    }

    fn on_timeout(&mut self, _: &Timeout) {
        self.ssthresh = (self.packets / 2.0).max(2.0);
        self.in_loss = false;
        self.begin_round(1.0);
    }

    fn decision(&self) -> Decision {
        Decision {
            // The sweep of a round ends after n packets, also when their acknowledgements are late.
            window: self.mss * (self.packets as u64),
            pacing: Pacing::Gap(self.gap),
            ssthresh: Some(self.mss * (self.ssthresh as u64)),
            phase: match (self.in_loss, self.packets < self.ssthresh) {
                (true, _) => Phase::Steady,
                (false, true) => Phase::SlowStart,
                (false, false) => Phase::CongestionAvoidance,
            },
        }
    }
}

/// A law with τ = 1 ms (1000 B at 8 Mb/s) and a threshold of 8.
fn law() -> GapLaw {
    GapLaw::new(Bytes::new(960), Bytes::new(1_000), Rate::from_mbps(8), 8.0)
}

fn acknowledge(law: &mut dyn Controller, packets: u32) {
    for _ in 0..packets {
        law.on_ack(&Ack {
            now: Time::from_secs(1),
            acked: Bytes::new(960),
            rtt: Some(Span::from_millis(100)),
            in_flight: Bytes::ZERO,
            app_limited: false,
            in_recovery: false,
            marked: 0,
            packets: 1,
            sample: None,
        });
    }
}

fn lose(law: &mut dyn Controller) {
    law.on_loss(&Loss {
        now: Time::from_secs(1),
        sent_at: Time::from_secs(1),
        lost: Bytes::new(960),
        in_flight: Bytes::new(960),
        window: law.decision().window,
        cause: LossCause::Reordering,
        restart: false,
    });
}

fn gap_ns(law: &dyn Controller) -> u64 {
    match law.decision().pacing {
        Pacing::Gap(gap) => gap.as_nanos(),
        other => panic!("{other:?}"),
    }
}

/// R = 100 ms, τ = 1 ms. By the left forms of the equations, from G₀ = R − τ = 99 ms:
///
/// ```text
/// n   1 → 2   G = (99 − 1) / 2            = 49 ms         (2)
///     2 → 4   G = (49 − 1) / 2            = 24 ms
///     4 → 8   G = (24 − 1) / 2            = 11.5 ms
///     8 → 9   G = (8 · 11.5 − 1) / 9      = 10.111.. ms   (4)
///     9 → 10  G = (9 · 10.111.. − 1) / 10 = 9 ms
///    10 → 5   G = 2 · 9 + 1               = 19 ms         (6)
///     5 → 6   G = (5 · 19 − 1) / 6        = 15.666.. ms   (4)
/// ```
#[test]
fn equations_2_4_and_6_by_hand() {
    let mut law = law();
    assert_eq!(
        law.decision().window,
        Bytes::new(960),
        "one packet, to measure R"
    );
    for (n, next, gap) in [
        (1, 2, 49_000_000),
        (2, 4, 24_000_000),
        (4, 8, 11_500_000),
        (8, 9, 10_111_111),
        (9, 10, 9_000_000),
    ] {
        acknowledge(&mut law, n - 1);
        let before = gap_ns(&law);
        acknowledge(&mut law, 1);
        assert!(
            n == 1 || gap_ns(&law) < before,
            "the round ends with its last acknowledgement"
        );
        assert!(
            gap_ns(&law).abs_diff(gap) <= 1,
            "n = {next}: {} ns",
            gap_ns(&law)
        );
        assert_eq!(law.decision().window, Bytes::new(960 * next));
    }
    lose(&mut law);
    assert_eq!(gap_ns(&law), 19_000_000);
    assert_eq!(law.decision().ssthresh, Some(Bytes::new(960 * 4)));
    // "Subsequent ACKs received in the same round trip .. are ignored."
    acknowledge(&mut law, 9);
    assert_eq!(gap_ns(&law), 19_000_000);
    law.on_recovered(Time::from_secs(1));
    acknowledge(&mut law, 5);
    assert!(gap_ns(&law).abs_diff(15_666_666) <= 1, "{}", gap_ns(&law));
}

/// "It drops ssthresh to half the current transmission rate. It then resets n to 1 and G to R − τ."
#[test]
fn a_timeout_sends_one_packet_per_round() {
    let mut law = law();
    acknowledge(&mut law, 1 + 2 + 4 + 8);
    law.on_timeout(&Timeout {
        now: Time::from_secs(2),
        in_flight: Bytes::new(9 * 960),
        window: Bytes::new(9 * 960),
        consecutive: 1,
        duplicate_seen: false,
    });
    assert_eq!(gap_ns(&law), 99_000_000);
    assert_eq!(law.decision().window, Bytes::new(960));
    assert_eq!(
        law.decision().ssthresh,
        Some(Bytes::new(4 * 960)),
        "half of 9 packets, whole ones"
    );
}
