//! A controller that does not react: for tests, for bounds, and for flows without congestion
//! control.

use comity_units::DataSize;

use crate::{Controller, Decision, Event, Pacing, Phase};

/// Keeps one window and one pacing, whatever happens.
///
/// With [`DataSize::MAX`] and [`Pacing::Unpaced`], only the application and the receiver's window
/// limit the flow. With a pacing, the flow has a constant bit rate.
///
/// Source: none; the packet-spacing paper's simple agents (section 3) are this controller with a
/// gap.
#[derive(Clone, Debug)]
pub struct Fixed {
    decision: Decision,
}

impl Fixed {
    /// Creates a controller with this window, at least one segment of `mss`, and this pacing.
    pub fn new(mss: DataSize, window: DataSize, pacing: Pacing) -> Self {
        Self {
            decision: Decision {
                window: window.max(mss).max(DataSize::new(1)),
                pacing,
                phase: Phase::Steady,
                ..Decision::default()
            },
        }
    }
}

impl Controller for Fixed {
    fn on_event(&mut self, _event: Event<'_>) {}

    fn decision(&self) -> Decision {
        self.decision
    }
}
