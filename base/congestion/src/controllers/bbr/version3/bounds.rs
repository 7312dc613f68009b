//! The bounds that losses set on rate and data in flight.

/// The bounds, and the signals of the current round that they come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The most in flight without too many losses.
    pub(super) inflight_longterm: f64,
    /// The bounds from losses since the last bandwidth probe.
    pub(super) inflight_shortterm: f64,
    pub(super) bandwidth_shortterm: f64,
    /// The maxima of this round: the delivery rate, and the bytes delivered in the time of a
    /// sample.
    pub(super) bandwidth_latest: f64,
    pub(super) inflight_latest: f64,
    /// The delivered count after which the acknowledgement of a departing packet begins a round.
    pub(super) round_delivered: u64,
    /// Whether the current acknowledgement began a round.
    pub(super) round_began: bool,
    pub(super) has_loss_in_round: bool,
    /// The number of acknowledgements in this round that showed a loss.
    pub(super) losses_in_round: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            bandwidth_shortterm: f64::INFINITY,
            bandwidth_latest: 0.0,
            inflight_latest: 0.0,
            round_delivered: 0,
            round_began: false,
            has_loss_in_round: false,
            losses_in_round: 0,
        }
    }
}

impl Bounds {
    /// Removes the short-term bounds.
    pub(super) const fn end_shortterm(&mut self) {
        self.inflight_shortterm = f64::INFINITY;
        self.bandwidth_shortterm = f64::INFINITY;
    }

    /// Restarts the signals of the round.
    pub(super) const fn reset_signals(&mut self) {
        self.has_loss_in_round = false;
        self.bandwidth_latest = 0.0;
        self.inflight_latest = 0.0;
    }
}
