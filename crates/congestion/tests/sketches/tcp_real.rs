//! TCP-Real's waves: the sender's tags, the receiver's meter, the level that comes back.
//!
//! Left out: what TCP-Real inherits from Reno, and a rule for how a level grows while the bottleneck keeps the
//! receiving rate constant, which the paper does not give.

use comity_congestion::{
    Ack, Arrival, Controller, Decision, Feedback, Loss, Meter, Pacing, Phase, Report, Tag, Timeout,
};
use comity_units::{Bytes, PacketNumber, Span, Time};

const MAX_LEVEL: f64 = 24.0;

/// The receiver's half: section 2.2 and figure 1.
#[derive(Debug)]
struct WaveMeter {
    level: f64,
    threshold: f64,
    /// Segments per second in the last wave that was measured.
    previous: Option<f64>,
    wave: Option<Wave>,
}

#[derive(Clone, Copy, Debug)]
struct Wave {
    number: u16,
    segments: u16,
    first: Time,
    /// When the wave-level-decision timer expires: twice the time that the wave should take.
    decision: Time,
    measured: bool,
}

impl WaveMeter {
    fn new(threshold: f64) -> Self {
        Self {
            level: 1.0,
            threshold,
            previous: None,
            wave: None,
        }
    }

    fn begin(&mut self, number: u16, segments: u16, now: Time) {
        let expected = self
            .previous
            .map(|rate| Span::from_secs_f64(f64::from(segments) / rate));
        self.wave = Some(Wave {
            number,
            segments,
            first: now,
            decision: expected.map_or(Time::MAX, |expected| now + expected * 2),
            measured: segments < 2,
        });
    }

    /// The expected size of the wave, lost segments included, over the time from the first to this one.
    fn measure(&mut self, wave: Wave, now: Time) {
        let current = f64::from(wave.segments) / now.saturating_since(wave.first).as_secs_f64();
        let level = f64::from(wave.segments) / 2.0;
        self.level = match self.previous {
            Some(previous) => {
                let ratio = current / previous;
                let (preserve, adjust) = match (ratio < 1.0, level > self.threshold) {
                    (true, true) => (0.618, 0.382),
                    (true, false) | (false, true) => (0.382, 0.618),
                    (false, false) => (0.5, 0.5),
                };
                (level * (preserve + adjust * ratio)).clamp(1.0, MAX_LEVEL)
            }
            None => level,
        };
        self.previous = Some(current);
    }
}

impl Meter for WaveMeter {
    fn on_arrival(&mut self, arrival: &Arrival) {
        let Tag::Wave {
            wave: number,
            segments,
            position,
        } = arrival.tag
        else {
            return;
        };
        let now = arrival.now;
        if let Some(wave) = self.wave.filter(|wave| !wave.measured) {
            let expired = now > wave.decision;
            if expired {
                self.threshold = f64::from(wave.segments) / 4.0;
            }
            if expired || (number == wave.number && position == segments) {
                self.measure(wave, now);
                self.wave = Some(Wave {
                    measured: true,
                    ..wave
                });
            }
        }
        let newer = self
            .wave
            .is_none_or(|wave| (number.wrapping_sub(wave.number) as i16) > 0);
        if newer {
            self.begin(number, segments, now);
        }
    }

    fn report(&mut self, _now: Time) -> Report {
        Report::Wave {
            level: self.level.round() as u16,
        }
    }
}

/// The sender's half: the window is the receiver's, and every segment says which wave it belongs to.
#[derive(Debug)]
struct WaveSender {
    mss: Bytes,
    level: u16,
    wave: u16,
    segments: u16,
    position: u16,
    phase: Phase,
}

impl WaveSender {
    fn new(mss: Bytes) -> Self {
        Self {
            mss,
            level: 1,
            wave: 0,
            segments: 0,
            position: 0,
            phase: Phase::SlowStart,
        }
    }
}

impl Controller for WaveSender {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn on_timeout(&mut self, timeout: &Timeout) {
        // "only if the bit is not set"
        if !timeout.duplicate_seen {
            self.level = 1;
            self.phase = Phase::SlowStart;
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if let Report::Wave { level } = *feedback.report {
            self.level = level.clamp(1, MAX_LEVEL as u16);
            self.phase = Phase::CongestionAvoidance;
        }
    }

    fn tag(&mut self, _now: Time) -> Tag {
        if self.position == self.segments {
            self.wave = self.wave.wrapping_add(1);
            self.segments = 2 * self.level;
            self.position = 0;
        }
        self.position += 1;
        Tag::Wave {
            wave: self.wave,
            segments: self.segments,
            position: self.position,
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: self.mss * (2 * u64::from(self.level)),
            pacing: Pacing::Unpaced,
            ssthresh: None,
            phase: self.phase,
        }
    }
}

/// Segments `positions` of a wave arrive, the first at `start_ms`, as if none of the wave were lost,
/// `apart_ms` from each other.
fn arrive(
    meter: &mut dyn Meter,
    wave: u16,
    segments: u16,
    positions: impl IntoIterator<Item = u16>,
    start_ms: u64,
    apart_ms: u64,
) -> Report {
    for position in positions {
        meter.on_arrival(&Arrival {
            now: Time::from_millis(start_ms + u64::from(position - 1) * apart_ms),
            number: PacketNumber::ZERO,
            payload: Bytes::new(1_000),
            wire: Bytes::new(1_040),
            marked: false,
            tag: Tag::Wave {
                wave,
                segments,
                position,
            },
        });
    }
    meter.report(Time::from_millis(start_ms))
}

/// Waves of 20 segments, level 10. At 10 ms apart the rate is 20 / 0.19 s; at 20 ms half of that, at 5 ms
/// twice. Falling by half above the threshold: 10 · (0.618 + 0.191) = 8.09; below: 10 · (0.382 + 0.309) = 6.91.
/// Doubling above: 10 · (0.382 + 1.236) = 16.18; below: 10 · (0.5 + 1) = 15.
#[test]
fn figure_1_by_hand() {
    for (threshold, apart_ms, level) in [
        (5.0, 20, 8),
        (12.0, 20, 7),
        (5.0, 5, 16),
        (12.0, 5, 15),
        (5.0, 10, 10),
        (12.0, 10, 10),
    ] {
        let mut meter = WaveMeter::new(threshold);
        assert_eq!(
            arrive(&mut meter, 1, 20, 1..=20, 1_000, 10),
            Report::Wave { level: 10 }
        );
        let found = arrive(&mut meter, 2, 20, 1..=20, 2_000, apart_ms);
        assert_eq!(
            found,
            Report::Wave { level },
            "threshold {threshold}, {apart_ms} ms apart"
        );
    }
    // Level 20 would become 32.36; there are 24.
    let mut meter = WaveMeter::new(5.0);
    arrive(&mut meter, 1, 40, 1..=40, 1_000, 10);
    assert_eq!(
        arrive(&mut meter, 2, 40, 1..=40, 2_000, 5),
        Report::Wave { level: 24 }
    );
}

/// "The wave size used in calculations is actually the expected wave size": random losses inside of a wave
/// change neither the rate nor the level. Counting arrivals would see 15 segments, and a level of 8.
#[test]
fn losses_inside_a_wave_are_no_congestion() {
    let mut meter = WaveMeter::new(5.0);
    arrive(&mut meter, 1, 20, 1..=20, 1_000, 10);
    let kept = (1..=20).filter(|position| position % 4 != 2);
    assert_eq!(
        arrive(&mut meter, 2, 20, kept, 2_000, 10),
        Report::Wave { level: 10 }
    );
}

/// The last segment of a wave is lost. The wave should take 20 / (20 / 0.19) = 190 ms, so the timer expires
/// 380 ms after its first segment; the next segment, at 400 ms, is the measurement: 20 / 0.4 s against
/// 20 / 0.19 s is a ratio of 0.475. The threshold became half of level 10, so 10 is above it:
/// 10 · (0.618 + 0.382 · 0.475) = 7.99.
#[test]
fn a_lost_last_segment_is_decided_by_the_timer() {
    let mut meter = WaveMeter::new(12.0);
    arrive(&mut meter, 1, 20, 1..=20, 1_000, 10);
    assert_eq!(
        arrive(&mut meter, 2, 20, 1..=19, 2_000, 10),
        Report::Wave { level: 10 }
    );
    assert_eq!(meter.threshold, 12.0, "not decided yet");
    let report = arrive(&mut meter, 3, 20, 1..=1, 2_400, 10);
    assert_eq!(report, Report::Wave { level: 8 });
    assert_eq!(meter.threshold, 5.0);
    assert!((meter.level - 7.9945).abs() < 1e-9, "{}", meter.level);
}

/// A wave keeps the length that it began with when the level changes in the middle of it.
#[test]
fn the_sender_counts_its_waves() {
    let mut sender = WaveSender::new(Bytes::new(1_000));
    let now = Time::ZERO;
    let mut tags = Vec::new();
    for sent in 0..9 {
        if sent == 3 {
            sender.on_feedback(&Feedback {
                now,
                report: &Report::Wave { level: 3 },
                rtt: None,
            });
            assert_eq!(sender.decision().window, Bytes::new(6_000));
        }
        match sender.tag(now) {
            Tag::Wave {
                wave,
                segments,
                position,
            } => tags.push((wave, segments, position)),
            other => panic!("{other:?}"),
        }
    }
    let by_hand = [
        (1, 2, 1),
        (1, 2, 2),
        (2, 2, 1),
        (2, 2, 2),
        (3, 6, 1),
        (3, 6, 2),
        (3, 6, 3),
        (3, 6, 4),
        (3, 6, 5),
    ];
    assert_eq!(tags, by_hand);
    let mut timeout = Timeout {
        now,
        in_flight: Bytes::new(6_000),
        window: Bytes::new(6_000),
        consecutive: 1,
        duplicate_seen: true,
    };
    sender.on_timeout(&timeout);
    assert_eq!(
        sender.decision().window,
        Bytes::new(6_000),
        "a duplicate acknowledgement had come"
    );
    timeout.duplicate_seen = false;
    sender.on_timeout(&timeout);
    assert_eq!(sender.decision().window, Bytes::new(2_000));
}
