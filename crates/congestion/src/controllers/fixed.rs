//! A controller that does not react: for tests, for bounds, and for flows that take no part in
//! congestion control.

use comity_units::Bytes;

use crate::{Ack, Controller, Decision, Loss, Pacing, Phase, Timeout};

/// Keeps one window and one pacing, whatever happens.
///
/// With [`Bytes::MAX`] and [`Pacing::Unpaced`] the flow is limited by its application and by the
/// receiver's window alone; with a pacing it is a sender of constant bit rate.
///
/// Source: none; the packet-spacing paper's simple agents (section 3) are this controller with a
/// gap.
#[derive(Clone, Debug)]
pub struct Fixed {
    decision: Decision,
}

impl Fixed {
    /// A flow with this window, at least one segment of `mss`, and this pacing.
    pub fn new(mss: Bytes, window: Bytes, pacing: Pacing) -> Self {
        Self {
            decision: Decision {
                window: window.max(mss).max(Bytes::new(1)),
                pacing,
                ssthresh: None,
                phase: Phase::Steady,
            },
        }
    }
}

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &Ack) {}

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_timeout(&mut self, _timeout: &Timeout) {}

    fn decision(&self) -> Decision {
        self.decision
    }
}
