//! The receiver of TCP-Real.

use comity_units::{Span, Time};

use super::{LevelRounding, NEW_BEGINNING, Opening, TcpRealConfig, Weights};
use crate::{Arrival, Meter, Report, Tag};

/// Measures the rate of every wave and decides the level of the next.
///
/// ```text
/// rate  = segments of the wave, lost ones included / (arrival of its last − arrival of its first)
/// ratio = rate / rate of the wave before                                          (section 2.2)
/// level = level · (preserve + adjust · ratio), from 1 to the highest              (figure 1)
///
///   preserve, adjust       level > threshold    level ≤ threshold
///   ratio < 1              0.618, 0.382         0.382, 0.618
///   ratio ≥ 1              0.382, 0.618         0.5,   0.5
/// ```
///
/// Levels are in units of two segments, rates in segments per second. With [`Weights::Text`] the
/// two columns are exchanged.
///
/// The first arrival of a wave sets the wave-decision timer to twice the expected duration of the
/// wave: its segments over the last rate. After expiry, the next arrival of any kind ends the wave,
/// and the threshold is half of the level. This needs no clock, because nothing happens before an
/// arrival.
///
/// Source: section 2.2 and figure 1 of the paper; the [module](crate::controllers::tcp_real) has
/// the differences.
#[derive(Clone, Debug)]
pub struct WaveMeter {
    config: TcpRealConfig,
    /// The last decision; `None` before the first measured wave.
    level: Option<f64>,
    threshold: f64,
    is_opening: bool,
    /// Segments per second in the last measured wave.
    rate: Option<f64>,
    /// The wave that is being collected, or the last one.
    wave: Option<Wave>,
    /// The newest wave with an arrival.
    newest: u16,
}

#[derive(Clone, Copy, Debug)]
struct Wave {
    number: u16,
    segments: u16,
    first: Time,
    is_measured: bool,
}

impl WaveMeter {
    /// Creates the meter of a flow from which nothing has arrived.
    pub fn new(config: TcpRealConfig) -> Self {
        Self {
            level: None,
            threshold: config.first_threshold(),
            is_opening: matches!(config.opening, Opening::SlowStart | Opening::Sender),
            rate: None,
            wave: None,
            newest: 0,
            config,
        }
    }

    /// The last decided level, with its fraction; `None` before the first measured wave.
    pub const fn level(&self) -> Option<f64> {
        self.level
    }

    /// The level above which figure 1 has its other weights.
    pub const fn threshold(&self) -> f64 {
        self.threshold
    }

    /// When the wave-decision timer of a wave expires: never without a rate before it.
    fn decision_at(&self, wave: Wave) -> Time {
        self.rate.map_or(Time::MAX, |rate| {
            wave.first + Span::from_secs_f64(2.0 * f64::from(wave.segments) / rate)
        })
    }

    /// Ends the wave with the arrival at `now`.
    fn measure(&mut self, wave: Wave, now: Time, is_expired: bool) {
        self.wave = Some(Wave {
            is_measured: true,
            ..wave
        });
        let of_wave = f64::from(wave.segments) / 2.0;
        let level = self
            .level
            .filter(|_| !self.config.has_level_of_wave)
            .unwrap_or(of_wave);
        if is_expired {
            self.threshold = level / 2.0;
            self.is_opening = false;
        }
        let took = now.saturating_since(wave.first).as_secs_f64();
        let rate = (took > 0.0).then(|| f64::from(wave.segments) / took);
        if self.config.opening == Opening::Sender {
            // The sender's window grows with every wave while its Slow Start lasts.
            self.is_opening &= self.level.is_none_or(|level| of_wave > level);
        }
        let next = match self.config.opening {
            Opening::Sender if self.is_opening => of_wave,
            Opening::SlowStart if self.is_opening => self.doubled(level, of_wave),
            _ => self.by_figure_1(level, rate),
        };
        self.level = Some(self.rounded(next));
        if !is_expired || self.config.compares_with_timeouts {
            self.rate = rate.or(self.rate);
        }
    }

    /// Slow Start: twice the level of the wave, up to the threshold. Waves that left before the
    /// last decision reached the sender change nothing.
    fn doubled(&mut self, level: f64, of_wave: f64) -> f64 {
        let next = (2.0 * of_wave).min(self.threshold).max(level);
        self.is_opening = next < self.threshold;
        next
    }

    fn by_figure_1(&self, level: f64, rate: Option<f64>) -> f64 {
        match (rate, self.rate) {
            (Some(current), Some(previous)) => {
                let is_above = level > self.threshold;
                let is_figure = self.config.weights == Weights::Figure;
                level * factor(current / previous, is_above == is_figure)
            }
            (_, None) if self.config.opening == Opening::Jump => f64::from(self.config.highest()),
            _ => level,
        }
    }

    fn rounded(&self, level: f64) -> f64 {
        let level = match self.config.rounding {
            LevelRounding::Kept => level,
            LevelRounding::Nearest => libm::round(level),
            LevelRounding::Up => libm::ceil(level),
            LevelRounding::Down => libm::floor(level),
        };
        level.clamp(1.0, f64::from(self.config.highest()))
    }
}

/// Figure 1: the factor on the level when the rate has changed by the factor `ratio`, with the
/// weights of its first case or of its second one.
fn factor(ratio: f64, is_first: bool) -> f64 {
    let (preserve, adjust) = match (ratio < 1.0, is_first) {
        (true, true) => (0.618, 0.382),
        (true, false) | (false, true) => (0.382, 0.618),
        (false, false) => (0.5, 0.5),
    };
    preserve + adjust * ratio
}

/// The most waves that losses can skip. A larger step means a new path.
const MAX_SKIPPED: i16 = (NEW_BEGINNING / 2).cast_signed();

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
        let ahead_of = |other: u16| number.wrapping_sub(other) as i16;
        let is_beginning = ahead_of(self.newest) > MAX_SKIPPED;
        if is_beginning && self.wave.is_some() {
            // A new path: all measurements are void.
            *self = Self::new(self.config);
        }
        let ahead = self.wave.map_or(1, |wave| ahead_of(wave.number));
        let is_first = self.wave.is_none() || ahead_of(self.newest) > 0;
        if is_first {
            self.newest = number;
        }
        if let Some(mut wave) = self.wave.filter(|wave| !wave.is_measured) {
            let is_expired = now > self.decision_at(wave);
            let is_last = ahead == 0 && position == segments;
            if is_last {
                wave.segments = segments;
            } else if ahead == 0 {
                wave.segments = wave.segments.max(segments);
            }
            self.wave = Some(wave);
            let is_overtaken = ahead > 1 && self.rate.is_some();
            if is_expired || is_last || is_overtaken {
                self.measure(wave, now, is_expired);
            }
        }
        let is_collecting = self.wave.is_some_and(|wave| !wave.is_measured);
        // Without a rate the timer never expires, so a wave whose last segment is lost would block
        // the meter.
        if is_first && (!is_collecting || self.rate.is_none()) {
            self.wave = Some(Wave {
                number,
                segments,
                first: now,
                // A single segment has no duration.
                is_measured: position >= segments,
            });
        }
    }

    fn report(&mut self, _now: Time) -> Report {
        self.level.map_or(Report::None, |level| Report::Wave {
            // Levels begin at 1 and end where the setting does, a u16.
            level: libm::round(level) as u16,
        })
    }
}
