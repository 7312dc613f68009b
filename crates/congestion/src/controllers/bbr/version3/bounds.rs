//! The bounds that losses set.

/// How much may be in flight, and at which rate, and what the bounds are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The most that the path takes without too many losses.
    pub(super) inflight_longterm: f64,
    /// What losses since the last probe for bandwidth have left.
    pub(super) inflight_shortterm: f64,
    pub(super) bandwidth_shortterm: f64,
    /// The most of this round: samples, and what was delivered in the time of one.
    pub(super) bandwidth_latest: f64,
    pub(super) inflight_latest: f64,
    /// A round begins when a packet is acknowledged that left after so much was delivered.
    pub(super) round_delivered: u64,
    /// The acknowledgement that is being dealt with began one.
    pub(super) round_began: bool,
    pub(super) has_loss_in_round: bool,
    /// Acknowledgements that showed a loss in this round.
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
    /// Losses since the last probe bound nothing any more.
    pub(super) const fn end_shortterm(&mut self) {
        self.inflight_shortterm = f64::INFINITY;
        self.bandwidth_shortterm = f64::INFINITY;
    }

    /// Begins to measure anew.
    pub(super) const fn reset_signals(&mut self) {
        self.has_loss_in_round = false;
        self.bandwidth_latest = 0.0;
        self.inflight_latest = 0.0;
    }
}
