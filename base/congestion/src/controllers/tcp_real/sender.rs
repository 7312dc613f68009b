//! The sender of TCP-Real.

use comity_units::{DataSize, Time};

use super::{NEW_BEGINNING, Opening, TcpRealConfig, TimeoutReduction};
use crate::{
    Ack, Controller, Decision, Event, Feedback, Pacing, Phase, Report, Tag, Timeout, TimeoutRepair,
};

/// Sends waves of two segments per level, and takes the level from the receiver.
///
/// ```text
/// report of level i:                       window = 2 · i segments
/// timeout, no duplicate since arming:      window = 2 segments
/// timeout after a duplicate, fast retransmit, acknowledgement:  nothing
/// ```
///
/// With [`Opening::Sender`] the window grows by the acknowledged data while it limits the flow, up
/// to the window of the first threshold or the first loss. From then on the reports decide. With
/// [`TimeoutReduction::Always`] every timeout sets the window to two segments.
///
/// Every data segment, also a retransmission, has the next position in the wave. A wave is as long
/// as the window at its beginning, and grows with the window. It ends with the last segment before
/// a pause of the source.
///
/// Source: sections 2.1 and 2.2 of the paper; the [module](crate::controllers::tcp_real) has the
/// differences.
#[derive(Clone, Debug)]
pub struct TcpReal {
    config: TcpRealConfig,
    level: u16,
    /// The window while the sender's own Slow Start lasts.
    opening: Option<DataSize>,
    /// Whether a report arrived since the last timeout.
    is_reported: bool,
    wave: u16,
    segments: u16,
    /// The number of segments of the wave that were sent.
    position: u16,
    /// Whether the next segment is the last of its wave, at any position.
    ends: bool,
    /// The repair of the last timeout.
    timeout_repair: TimeoutRepair,
}

impl TcpReal {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: TcpRealConfig) -> Self {
        let level = config.level_of(config.initial_window.min(config.max_window));
        Self {
            level,
            opening: (config.opening == Opening::Sender).then(|| config.window_of(level)),
            is_reported: false,
            wave: 0,
            segments: 0,
            position: 0,
            ends: false,
            timeout_repair: TimeoutRepair::GoBackN,
            config,
        }
    }

    /// The current level.
    pub const fn level(&self) -> u16 {
        self.level
    }

    fn window(&self) -> DataSize {
        self.opening
            .unwrap_or_else(|| self.config.window_of(self.level))
    }

    /// The window at which the sender's own Slow Start ends.
    fn opening_ends_at(&self) -> DataSize {
        let segments = libm::round(2.0 * self.config.first_threshold());
        // A threshold is at most 10,000 levels.
        let window = self.config.mss.get().saturating_mul(segments as u64);
        DataSize::new(window).min(self.config.max_window)
    }

    fn on_ack(&mut self, ack: &Ack) {
        let Some(window) = self.opening.filter(|_| !ack.app_limited) else {
            return;
        };
        self.opening = Some(window + ack.acked);
        if window + ack.acked >= self.opening_ends_at() {
            self.end_opening();
        }
    }

    /// Ends the sender's own Slow Start. This does not raise the window; only a report may.
    fn end_opening(&mut self) {
        if let Some(window) = self.opening.take() {
            self.level = self.level.min(self.config.level_of(window));
        }
    }

    fn is_reduced_by(&self, timeout: &Timeout) -> bool {
        match self.config.timeout_reduction {
            TimeoutReduction::WithoutDuplicates => !timeout.duplicate_seen,
            TimeoutReduction::Always => true,
        }
    }

    /// The window in segments.
    fn length(&self) -> u16 {
        let segments = self.window().get() / self.config.mss.get().max(1);
        u16::try_from(segments).unwrap_or(u16::MAX).max(1)
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        if !self.is_reduced_by(timeout) {
            self.timeout_repair = self.config.timeout_repair;
            return;
        }
        self.timeout_repair = TimeoutRepair::GoBackN;
        self.level = 1;
        self.is_reported = false;
        self.position = self.segments;
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        if let Report::Wave { level } = *feedback.report {
            self.level = level.clamp(1, self.config.highest());
            self.is_reported = true;
        }
    }

    fn on_app_limited(&mut self) {
        self.ends = true;
    }

    fn on_path_change(&mut self, last: Tag) {
        if let Tag::Wave { wave, .. } = last {
            self.wave = wave.wrapping_add(NEW_BEGINNING);
        }
    }
}

impl Controller for TcpReal {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(_) => self.end_opening(),
            Event::Timeout(timeout) => {
                self.end_opening();
                self.on_timeout(timeout);
            }
            Event::Feedback(feedback) => self.on_feedback(feedback),
            Event::AppLimited => self.on_app_limited(),
            Event::PathChange(last) => self.on_path_change(last),
            _ => {}
        }
    }

    fn upcoming_tag(&self) -> Tag {
        Tag::Wave {
            wave: self.wave,
            segments: 1,
            position: 1,
        }
    }

    fn tag(&mut self, _now: Time) -> Tag {
        if self.position >= self.segments {
            self.wave = self.wave.wrapping_add(1);
            self.segments = self.length();
            self.position = 0;
        } else if !self.config.has_fixed_waves {
            self.segments = self.segments.max(self.length());
        }
        self.position += 1;
        if core::mem::take(&mut self.ends) {
            self.segments = self.position;
        }
        Tag::Wave {
            wave: self.wave,
            segments: self.segments,
            position: self.position,
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            window: self.window(),
            // Not `Unpaced`, because a transport may then pace the window over the round trip, and
            // the receiver would measure the window, not the path.
            pacing: Pacing::At(Time::ZERO),
            phase: if self.is_reported && self.opening.is_none() {
                Phase::CongestionAvoidance
            } else {
                Phase::SlowStart
            },
            timeout_repair: self.timeout_repair,
            ..Decision::default()
        }
    }
}
