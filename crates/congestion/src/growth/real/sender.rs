//! The sender's half of TCP-Real.

use comity_units::{Bytes, Rate, Time};

use super::RealConfig;
use crate::{
    Ack, Controller, Decision, Feedback, Loss, Pacing, Phase, Report, Tag, Timeout,
};

/// Sends waves of two segments per level, and takes the level from the receiver.
///
/// ```text
/// report of level i:                       window = 2 · i segments
/// timeout, no duplicate since arming:      window = 2 segments
/// timeout after a duplicate, fast retransmit, acknowledgement:  nothing
/// ```
///
/// Every data segment, repeated ones included, has the next place in the wave. A wave keeps the length that it
/// began with, which is the window at that moment.
///
/// Source: sections 2.1 and 2.2 of the paper; see the [module](crate::growth::real) for what it leaves out.
#[derive(Clone, Debug)]
pub struct Real {
    config: RealConfig,
    level: u16,
    /// Set by the receiver's reports, cleared by a timeout.
    is_reported: bool,
    wave: u16,
    segments: u16,
    /// How many segments of the wave were sent.
    position: u16,
}

impl Real {
    /// A flow that has not sent yet.
    pub fn new(config: RealConfig) -> Self {
        Self {
            level: config.level_of(config.initial_window.min(config.max_window)),
            is_reported: false,
            wave: 0,
            segments: 0,
            position: 0,
            config,
        }
    }

    /// The level in force.
    pub const fn level(&self) -> u16 {
        self.level
    }

    fn window(&self) -> Bytes {
        self.config.window_of(self.level)
    }

    fn begin_wave(&mut self) {
        let segments = self.window().get() / self.config.mss.get().max(1);
        self.wave = self.wave.wrapping_add(1);
        self.segments = u16::try_from(segments).unwrap_or(u16::MAX).max(1);
        self.position = 0;
    }
}

impl Controller for Real {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn on_timeout(&mut self, timeout: &Timeout) {
        if timeout.duplicate_seen {
            return;
        }
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

    fn tag(&mut self, _now: Time) -> Tag {
        if self.position >= self.segments {
            self.begin_wave();
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
            window: self.window(),
            // Not "unpaced": a transport that spreads windows over the round trip would have the receiver
            // measure the window instead of the path.
            pacing: Pacing::Rate(Rate::MAX),
            ssthresh: None,
            phase: if self.is_reported {
                Phase::CongestionAvoidance
            } else {
                Phase::SlowStart
            },
        }
    }
}
