//! The cycle of ProbeBW: down, cruise, refill, up.

use comity_units::{Span, Time};

/// When the flow probes for bandwidth, and the result of the last probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    pub(super) began: Time,
    /// The time to wait before the next probe, and the rounds since the last one.
    pub(super) wait: Span,
    pub(super) rounds: u32,
    pub(super) feedback: Feedback,
    /// Which packets the current acknowledgements cover.
    pub(super) is_probe_sample: bool,
    /// Whether the last probe lost too much.
    pub(super) was_too_high: bool,
    /// Whether the last probe ended at the bound of the one before.
    pub(super) was_cautious: bool,
    /// The growth of the bound: its rounds, the bytes acknowledged since the last step, and the
    /// bytes for a step of one segment.
    pub(super) up_rounds: u32,
    pub(super) up_acked: f64,
    pub(super) acked_per_segment: f64,
}

/// Which packets the current acknowledgements cover.
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
    /// Ends the probe. Acknowledgements of packets in flight still belong to it.
    pub(super) const fn stop_probing(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}
