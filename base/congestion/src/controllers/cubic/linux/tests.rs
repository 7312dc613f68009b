use super::*;
use crate::LossCause;

const MSS: DataSize = DataSize::new(1_000);

fn flow(window: u64, ssthresh: u64) -> LinuxCubic {
    LinuxCubic::new(CubicConfig {
        initial_window: MSS * window,
        initial_ssthresh: MSS * ssthresh,
        hystart: false,
        ..CubicConfig::rfc9438(MSS)
    })
}

fn ack(at_ms: u64, segments: u32) -> Ack {
    Ack {
        now: Time::from_millis(at_ms),
        acked: MSS * u64::from(segments),
        rtt: Some(Span::from_millis(100)),
        in_flight: MSS * 10,
        app_limited: false,
        in_recovery: false,
        marked: 0,
        packets: segments,
        sample: None,
    }
}

fn loss(at_ms: u64) -> Loss {
    Loss {
        now: Time::from_millis(at_ms),
        sent_at: Time::from_millis(at_ms),
        lost: MSS,
        in_flight: MSS * 10,
        window: MSS * 10,
        cause: LossCause::Reordering,
        restart: false,
    }
}

fn timeout(consecutive: u32) -> Timeout {
    Timeout {
        now: Time::from_secs(1),
        in_flight: MSS,
        window: MSS,
        consecutive,
        duplicate_seen: false,
    }
}

#[test]
fn slow_start_counts_every_segment_up_to_the_threshold() {
    let mut cubic = flow(10, 25);
    cubic.on_ack(&ack(100, 10));
    assert_eq!(cubic.window(), 20);
    // Five segments reach the threshold. The other 15 count in avoidance, where 20 make the window
    // grow by one.
    cubic.on_ack(&ack(200, 20));
    assert_eq!((cubic.window(), cubic.counted), (25, 15));
    cubic.on_ack(&ack(250, 5));
    assert_eq!(cubic.window(), 26);
}

#[test]
fn reductions_by_hand() {
    // β = 717 / 1024: 100 → 70; a second loss at 70 < 100 has a plateau of 70 · 1741 / 2048 = 59.
    let mut cubic = flow(100, 100);
    cubic.on_loss(&loss(0));
    assert_eq!((cubic.window(), cubic.curve.plateau), (70, 100));
    cubic.on_loss(&loss(1));
    assert_eq!((cubic.window(), cubic.curve.plateau), (49, 59));
    // The threshold is at least two. A timeout sets the window to one and clears the plateau. A
    // second timeout keeps the threshold.
    let mut cubic = flow(2, 2);
    cubic.on_loss(&loss(0));
    assert_eq!(cubic.window(), 2);
    let mut cubic = flow(100, 100);
    cubic.on_timeout(&timeout(1));
    assert_eq!(
        (cubic.window(), cubic.ssthresh, cubic.curve.plateau),
        (1, 70, 0)
    );
    cubic.on_timeout(&timeout(2));
    assert_eq!(cubic.ssthresh, 70);
}

#[test]
fn the_count_follows_the_curve() {
    // After a loss at 1000: window 700, K = ∛(300 / 0.4) = 9.0856 s. The first acknowledgement
    // begins the epoch, so that t is the least round trip, 0.1 s: 1000 − ⌊0.4 · 8.9856³⌋ = 1000 −
    // 290 = 710, and 700 / 10 = 70 acknowledged segments make the window grow by one.
    let mut cubic = flow(1_000, 1_000);
    cubic.on_ack(&ack(0, 1));
    cubic.on_loss(&loss(1));
    cubic.on_ack(&ack(2_000, 1));
    assert_eq!((cubic.window(), cubic.curve.count), (700, 70));
    // Within 1/32 s the count does not change. At 3 s, t is 1.1 s: 1000 − ⌊0.4 · 7.9856³⌋ = 797, so
    // 700 / 97 = 7.
    cubic.on_ack(&ack(2_031, 1));
    assert_eq!(cubic.curve.count, 70);
    cubic.on_ack(&ack(3_000, 1));
    assert_eq!(cubic.curve.count, 7);
    // Far beyond the plateau the count is at least two.
    cubic.on_ack(&ack(40_000, 1));
    assert_eq!(cubic.curve.count, 2);
}

#[test]
fn the_share_of_reno_grows_by_eight_fifteenths_per_window() {
    // 8 · 1741 / 3 / 307 = 15.1, rounded down: (15 / 8) · 14 = 26 acknowledged segments make
    // `W_est` grow by one. After a loss at 20 (window 14, K = ∛(6 / 0.4) = 2.47 s) the curve is at
    // 20 − ⌊0.4 · 2.266³⌋ = 16 at t = 0.2 s, above `W_est`. So the test sets a plateau of 14, where
    // the curve is flat.
    assert_eq!(friendliness(717), 15);
    let mut cubic = flow(14, 14);
    cubic.curve.plateau = 14;
    for index in 0..27_u64 {
        cubic.on_ack(&ack(100 * index, 1));
        let expected = if index < 26 { 0 } else { 1 };
        assert_eq!(
            cubic.curve.reno - 14,
            expected,
            "after {} segments",
            index + 1
        );
        if index == 26 {
            assert_eq!(
                cubic.curve.count, 14,
                "one segment above: a window is worth one"
            );
        }
        cubic.curve.origin = 14;
        cubic.curve.inflection = 1e3;
        cubic.window = 14;
    }
}

#[test]
fn a_pause_moves_the_epoch() {
    let mut cubic = flow(100, 100);
    cubic.on_loss(&loss(0));
    let sent = |at_ms, in_flight| Sent {
        now: Time::from_millis(at_ms),
        payload: MSS,
        wire: MSS,
        number: comity_units::PacketNumber::new(1),
        in_flight: MSS * in_flight,
        app_limited: false,
    };
    cubic.on_ack(&ack(1_000, 1));
    cubic.on_sent(&sent(1_000, 10));
    cubic.on_sent(&sent(1_100, 2));
    assert_eq!(cubic.curve.epoch, Some(Time::from_millis(1_000)));
    cubic.on_sent(&sent(6_100, 1));
    assert_eq!(cubic.curve.epoch, Some(Time::from_millis(6_000)));
}

#[test]
fn a_spurious_loss_and_a_spurious_timeout_are_undone_once() {
    let mut cubic = flow(100, 120);
    cubic.on_loss(&loss(0));
    cubic.on_spurious_loss();
    assert_eq!((cubic.window(), cubic.ssthresh), (100, 120));
    cubic.on_timeout(&timeout(1));
    cubic.on_timeout(&timeout(2));
    cubic.on_spurious_loss();
    assert_eq!((cubic.window(), cubic.ssthresh), (100, 120));
    cubic.on_loss(&loss(9));
    cubic.on_spurious_loss();
    cubic.on_spurious_loss();
    assert_eq!(cubic.window(), 100);
}

#[test]
fn a_restart_halves_for_each_timeout_after_the_first() {
    let restart = |idle_ms| Idle {
        now: Time::from_secs(9),
        pause: Span::from_millis(idle_ms),
        timeout: Span::from_millis(200),
        initial_window: MSS * 10,
    };
    for (idle, window) in [
        (200, 100),
        (201, 50),
        (400, 50),
        (401, 25),
        (601, 12),
        (5_000, 10),
    ] {
        let mut cubic = flow(100, 80);
        cubic.on_event(Event::Idle(&restart(idle)));
        assert_eq!(
            (cubic.window(), cubic.ssthresh),
            (window, 80),
            "after {idle} ms"
        );
    }
    let mut cubic = flow(5, 80);
    cubic.on_event(Event::Idle(&restart(5_000)));
    assert_eq!(cubic.window(), 5, "a window below the first stays");
}
