//! The cycle of ProbeBW: down, cruise, refill, up.

use comity_units::{Span, Time};

/// When the flow probes for bandwidth, and what comes of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    pub(super) began: Time,
    /// How long to wait before the next probe, and how many rounds have passed.
    pub(super) wait: Span,
    pub(super) rounds: u32,
    pub(super) feedback: Feedback,
    /// Acknowledgements speak of packets that left while the flow probed.
    pub(super) is_probe_sample: bool,
    /// The last probe lost too much.
    pub(super) was_too_high: bool,
    /// The last probe ended as soon as it reached the bound of the one before.
    pub(super) was_cautious: bool,
    /// How the bound rises: rounds of it, what was acknowledged since it rose, and how much is
    /// needed for a segment.
    pub(super) up_rounds: u32,
    pub(super) up_acked: f64,
    pub(super) acked_per_segment: f64,
}

/// What acknowledgements speak of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Feedback {
    #[default]
    Nothing,
    Refilling,
    Starting,
    Probe,
    Stopping,
}

impl Cycle {
    /// Only the acknowledgements of what is in flight still speak of a probe.
    pub(super) const fn stop_probing(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}
