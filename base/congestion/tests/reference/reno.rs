//! Reno against RFC 5681 and RFC 3465 in whole bytes, and against ns-2's numbers.

use comity_congestion::controllers::{DecreaseBasis, Increase, Reno, RenoConfig, Rounding};
use comity_congestion::{Controller, Event};
use comity_units::{DataSize, Span, Time};
use proptest::prelude::*;

use crate::reference::{ack, loss, timeout};

const SMSS: u64 = 1_460;

/// RFC 5681, section 3.1, with the byte counter of RFC 3465, sections 2.1 and 2.2.
#[derive(Debug)]
struct Rfc5681 {
    cwnd: u64,
    ssthresh: u64,
    bytes_acked: u64,
    /// The slow start that runs was begun by a timeout: L is one segment (RFC 3465, section 2.3).
    after_timeout: bool,
}

impl Rfc5681 {
    fn on_ack(&mut self, bytes: u64) {
        if self.cwnd < self.ssthresh {
            let limit = if self.after_timeout { SMSS } else { 2 * SMSS };
            self.cwnd += bytes.min(limit);
            self.bytes_acked = 0;
            return;
        }
        self.after_timeout = false;
        self.bytes_acked += bytes;
        if self.bytes_acked >= self.cwnd {
            self.bytes_acked -= self.cwnd;
            self.cwnd += SMSS;
        }
    }

    fn on_loss(&mut self, flight_size: u64) {
        self.ssthresh = (flight_size / 2).max(2 * SMSS);
        self.cwnd = self.ssthresh;
        self.bytes_acked = 0;
    }

    fn on_timeout(&mut self, flight_size: u64, first: bool) {
        if first {
            self.ssthresh = (flight_size / 2).max(2 * SMSS);
        }
        self.cwnd = SMSS;
        self.bytes_acked = 0;
        self.after_timeout = true;
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Acks { count: u16, segments: u8 },
    Loss,
    Timeouts { count: u8 },
}

fn event() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u16..600, 1u8..=2).prop_map(|(count, segments)| Step::Acks { count, segments }),
        2 => Just(Step::Loss),
        1 => (1u8..4).prop_map(|count| Step::Timeouts { count }),
    ]
}

proptest! {
    /// In avoidance the controller adds `1/cwnd` per segment where the RFC's counter adds one per
    /// window. Over n windows from w the first gives √((w + n)² − n), less than half a segment
    /// below w + n, and the counter is up to one segment behind: they stay within a segment and a
    /// half, from loss to loss.
    #[test]
    fn follows_the_byte_counter(events in prop::collection::vec(event(), 1..40)) {
        let mss = DataSize::new(SMSS);
        let mut controller = Reno::new(RenoConfig::rfc5681(mss));
        let mut reading = Rfc5681 { cwnd: 10 * SMSS, ssthresh: u64::MAX, bytes_acked: 0, after_timeout: false };
        for event in events {
            // A full window is in flight. The controller does not let a flight beyond its own
            // window count.
            let flight = DataSize::new(reading.cwnd).min(controller.decision().window);
            match event {
                Step::Acks { count, segments } => {
                    let acked = mss * u64::from(segments);
                    for _ in 0..count {
                        // More than 10⁵ segments are in no network; slow start would not end here.
                        if reading.cwnd < 100_000 * SMSS {
                            controller.on_event(Event::Ack(&ack(Time::ZERO, acked, Span::from_millis(100), flight)));
                            reading.on_ack(acked.get());
                        }
                    }
                }
                Step::Loss => {
                    controller.on_event(Event::Loss(&loss(Time::ZERO, flight, flight)));
                    reading.on_loss(flight.get());
                }
                Step::Timeouts { count } => {
                    for consecutive in 1..=u32::from(count) {
                        let flight = DataSize::new(reading.cwnd).min(controller.decision().window);
                        controller.on_event(Event::Timeout(&timeout(Time::ZERO, flight, flight, consecutive)));
                        reading.on_timeout(flight.get(), consecutive == 1);
                    }
                }
            }
            let (found, expected) = (controller.decision().window.get(), reading.cwnd);
            prop_assert!(
                found.abs_diff(expected) <= SMSS * 3 / 2,
                "{event:?}: {found} instead of {expected} ({reading:?})"
            );
            if reading.ssthresh != u64::MAX {
                let threshold = controller.decision().ssthresh.map(DataSize::get);
                prop_assert!(threshold.is_some_and(|found| found.abs_diff(reading.ssthresh) <= 1));
            }
        }
    }

    /// (w + N/w)² = w² + 2N + N²/w²: after A segments w² lies between w₀² + 2NA and that plus
    /// AN² / w₀². A loss takes 1/2N of the window.
    #[test]
    fn avoidance_has_a_closed_form(
        start in 2u32..400,
        segments in 1u32..20_000,
        weight in prop_oneof![Just(1.0), 1.0..10.0],
    ) {
        let mss = DataSize::new(SMSS);
        let start = f64::from(start);
        let mut controller = Reno::new(RenoConfig {
            initial_window: DataSize::new(start as u64 * SMSS),
            initial_ssthresh: mss,
            weight,
            ..RenoConfig::rfc5681(mss)
        });
        for _ in 0..segments {
            controller.on_event(Event::Ack(&ack(Time::ZERO, mss, Span::from_millis(100), mss)));
        }
        let before = controller.window();
        let gained = before * before - start * start - 2.0 * weight * f64::from(segments);
        prop_assert!(gained >= -1e-6 * f64::from(segments) * weight, "{gained}");
        let most = f64::from(segments) * weight * weight / (start * start);
        prop_assert!(gained <= most + 1e-6, "{gained}");
        let flight = controller.decision().window;
        controller.on_event(Event::Loss(&loss(Time::from_secs(1), flight, flight)));
        let left = controller.window() / (flight.get() as f64 / SMSS as f64);
        let expected = (1.0 - 0.5 / weight).max(2.0 * SMSS as f64 / flight.get() as f64);
        prop_assert!((left - expected).abs() < 1e-9, "{left} instead of {expected}");
    }
}

fn ns2(rounding: Rounding) -> Reno {
    Reno::new(RenoConfig {
        mss: DataSize::new(1_000),
        initial_window: DataSize::new(1_000),
        initial_ssthresh: DataSize::new(8_000),
        max_window: DataSize::MAX,
        increase: Increase::PerAck,
        decrease_basis: DecreaseBasis::Window,
        rounding,
        grow_when_limited: true,
        undo: false,
        weight: 1.0,
    })
}

/// ns-2 halves `windowd()` and truncates only `ssthresh_` with `precisionReduce_`, and halves
/// `window()`, a whole number, without. A window of 9.7: 4.85 and 4 with it, 4 and 4 without.
#[test]
fn ns2_halves_as_precision_reduce_says() {
    let now = Time::from_secs(1);
    let window = DataSize::new(9_700);
    for (rounding, cwnd, ssthresh) in [
        (Rounding::Threshold, 4.85, 4.0),
        (Rounding::Both, 4.0, 4.0),
        (Rounding::Exact, 4.85, 4.85),
    ] {
        let mut controller = ns2(rounding);
        controller.on_event(Event::Loss(&loss(now, DataSize::new(90_000), window)));
        assert!(
            (controller.window() - cwnd).abs() < 1e-12,
            "{rounding:?}: {}",
            controller.window()
        );
        assert!(
            (controller.ssthresh() - ssthresh).abs() < 1e-12,
            "{rounding:?}: {}",
            controller.ssthresh()
        );
    }
    // Tahoe: one segment, the same threshold.
    let mut controller = ns2(Rounding::Threshold);
    controller.on_event(Event::Loss(&comity_congestion::Loss {
        restart: true,
        ..loss(now, window, window)
    }));
    assert_eq!((controller.window(), controller.ssthresh()), (1.0, 4.0));
    // Windows of 3 and of 1: ns-2 lets cwnd fall to 1.5, and to 1, under a threshold of 2.
    for (window, cwnd) in [(3_000, 1.5), (1_000, 1.0)] {
        let mut controller = ns2(Rounding::Threshold);
        controller.on_event(Event::Loss(&loss(
            now,
            DataSize::new(window),
            DataSize::new(window),
        )));
        assert_eq!((controller.window(), controller.ssthresh()), (cwnd, 2.0));
    }
    // Every timeout halves again, also a second one for the same segment: 9.7, then 1.
    let mut controller = ns2(Rounding::Threshold);
    controller.on_event(Event::Timeout(&timeout(now, window, window, 1)));
    assert_eq!((controller.window(), controller.ssthresh()), (1.0, 4.0));
    controller.on_event(Event::Timeout(&timeout(
        now,
        window,
        DataSize::new(1_000),
        2,
    )));
    assert_eq!((controller.window(), controller.ssthresh()), (1.0, 2.0));
}

/// From 1 with a threshold of 8: seven acknowledgements reach it, whatever each of them covers; the
/// eight after them add 1/8, 1/8.125, ..: by hand 8.125, 8.248077, 8.369317, 8.488801.
#[test]
fn ns2_opens_once_per_acknowledgement() {
    let mut controller = ns2(Rounding::Threshold);
    for expected in 2..=8 {
        controller.on_event(Event::Ack(&ack(
            Time::ZERO,
            DataSize::new(3_000),
            Span::ZERO,
            DataSize::ZERO,
        )));
        assert_eq!(controller.window(), f64::from(expected));
    }
    for expected in [8.125, 8.248_077, 8.369_317, 8.488_801] {
        controller.on_event(Event::Ack(&ack(
            Time::ZERO,
            DataSize::new(3_000),
            Span::ZERO,
            DataSize::ZERO,
        )));
        assert!(
            (controller.window() - expected).abs() < 2e-6,
            "{} is not {expected}",
            controller.window()
        );
    }
}
