//! The flow's reaction to losses: it sets, lowers and restores the bounds.

use comity_units::DataSize;

use super::super::rate;
use super::model::{Bbr3, State};
use crate::{PacketLoss, RateSample};

impl Bbr3 {
    /// Updates the signals of the round, before the other reactions to an acknowledgement.
    pub(super) fn update_latest(&mut self, sample: &RateSample) {
        let bounds = &mut self.bounds;
        bounds.round_began = false;
        if !sample.has_rate() {
            return;
        }
        bounds.bandwidth_latest = bounds.bandwidth_latest.max(rate(sample));
        bounds.inflight_latest = bounds.inflight_latest.max(sample.delivered.get() as f64);
        if sample.prior_delivered.get() >= bounds.round_delivered {
            bounds.round_delivered = sample.total_delivered.get();
            bounds.round_began = true;
        }
    }

    /// Starts the signals of a new round with this sample, after the other reactions.
    pub(super) fn advance_latest(&mut self, sample: &RateSample) {
        if self.bounds.round_began {
            self.bounds.bandwidth_latest = rate(sample);
            self.bounds.inflight_latest = sample.delivered.get() as f64;
        }
    }

    /// Once in a round with losses, lowers the bounds to what the path delivers, except while the
    /// flow probes and expects losses.
    pub(super) fn adapt_lower_bounds(&mut self) {
        if !self.bounds.round_began {
            return;
        }
        let is_probing = matches!(self.state, State::Startup | State::Refill | State::Up);
        let has_loss = core::mem::take(&mut self.bounds.has_loss_in_round);
        if is_probing || !has_loss {
            return;
        }
        let (window, max_bandwidth) = (self.window, self.max_bandwidth());
        let (bounds, beta) = (&mut self.bounds, self.config.beta);
        let lower = |bound: f64, begin: f64, latest: f64| {
            let bound = if bound.is_finite() { bound } else { begin };
            latest.max(beta * bound)
        };
        bounds.bandwidth_shortterm = lower(
            bounds.bandwidth_shortterm,
            max_bandwidth,
            bounds.bandwidth_latest,
        );
        bounds.inflight_shortterm =
            lower(bounds.inflight_shortterm, window, bounds.inflight_latest);
    }

    /// Whether `lost` bytes of `in_flight` exceed the loss threshold.
    pub(super) fn is_too_high(&self, lost: DataSize, in_flight: DataSize) -> bool {
        lost.get() as f64 > in_flight.get() as f64 * self.config.loss_threshold
    }

    /// The first loss of a round begins the round in which the flow reacts.
    pub(super) fn note_loss(&mut self, delivered: DataSize) {
        if !self.bounds.has_loss_in_round {
            self.bounds.round_delivered = delivered.get();
            self.save_window();
            self.save_state();
        }
        self.bounds.has_loss_in_round = true;
    }

    /// The bytes in flight when the losses crossed the threshold, which may be inside a large
    /// packet.
    pub(super) fn inflight_at_loss(&self, loss: &PacketLoss) -> f64 {
        let size = loss.size.get() as f64;
        let in_flight = loss.sent_in_flight.get() as f64 - size;
        let lost = loss.lost.get() as f64 - size;
        let threshold = self.config.loss_threshold;
        in_flight + (threshold * in_flight - lost) / (1.0 - threshold)
    }

    /// The long-term bound without the headroom for other flows.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let bound = self.bounds.inflight_longterm;
        if bound.is_infinite() {
            return bound;
        }
        let headroom = (self.config.headroom * bound).max(self.output.mss);
        (bound - headroom).max(self.min_window())
    }

    pub(super) fn save_state(&mut self) {
        self.undo.state = None;
        self.undo.bounds = self.bounds;
    }

    /// Restores the bounds after a spurious recovery.
    pub(super) fn undo_bounds(&mut self) {
        let (bounds, before) = (&mut self.bounds, &self.undo.bounds);
        bounds.has_loss_in_round = false;
        bounds.bandwidth_shortterm = bounds.bandwidth_shortterm.max(before.bandwidth_shortterm);
        bounds.inflight_shortterm = bounds.inflight_shortterm.max(before.inflight_shortterm);
        bounds.inflight_longterm = bounds.inflight_longterm.max(before.inflight_longterm);
    }
}
