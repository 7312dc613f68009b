//! IFTP on a transport with cumulative acknowledgements, which the paper does not have.
//!
//! An acknowledgement counts for the oldest outstanding packets. The transport detects losses and
//! timeouts, and the loss phase ends with its recovery.

use super::Iftp;
use crate::{Ack, Event, Loss};

impl Iftp {
    /// Takes losses, recoveries and timeouts from the transport.
    pub(super) fn on_cumulative(&mut self, event: Event<'_>) {
        match event {
            Event::Loss(loss) => self.on_reported_loss(loss),
            Event::Recovered => self.recover = None,
            Event::Timeout(timeout) => self.react_to_timeout(timeout.now),
            _ => {}
        }
    }

    /// Counts the oldest packets as acknowledged.
    pub(super) fn count_oldest(&mut self, ack: &Ack) {
        if ack.in_recovery {
            return;
        }
        for _ in 0..ack.packets {
            let Some(oldest) = self.outstanding.oldest() else {
                break;
            };
            self.count(ack.now, oldest);
        }
    }

    fn on_reported_loss(&mut self, loss: &Loss) {
        if self.recover.is_some() {
            return;
        }
        self.outstanding.clear();
        self.timeout_at = None;
        self.react_to_loss(loss.now);
    }
}
