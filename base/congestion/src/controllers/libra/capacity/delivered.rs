//! The delivery rate of the flow itself.

use comity_units::{Span, Time};

/// How many packets the ACKs of a round trip cover.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// When the last packet before this interval left, and when its ACK arrived; `None` before the
    /// first ACK.
    before: Option<(Time, Time)>,
    packets: u64,
}

impl Delivered {
    /// Takes an ACK of this many packets. The last one left at `sent_at`. Returns the packets and
    /// the time of an interval that ends.
    ///
    /// An interval lasts for a round trip or longer. Its time is the longer one of the time in
    /// which its packets left and the time in which their ACKs arrived: compressed ACKs show no
    /// higher rate than that of the sender.
    pub(super) fn on_ack(&mut self, now: Time, packets: u64, sent_at: Time) -> Option<(u64, Span)> {
        self.packets = self.packets.saturating_add(packets);
        if let Some((_, acked_at)) = self.before {
            let lasted = now.saturating_since(acked_at);
            if lasted.is_zero() || lasted < now.saturating_since(sent_at) {
                return None;
            }
        }
        let packets = core::mem::take(&mut self.packets);
        let (left_at, acked_at) = self.before.replace((sent_at, now))?;
        let lasted = now.saturating_since(acked_at);
        Some((packets, lasted.max(sent_at.saturating_since(left_at))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_round_trip_or_longer() {
        let mut delivered = Delivered::default();
        let mut on_ack = |now, packets, sent_at| {
            let sent_at = Time::from_millis(sent_at);
            let ended = delivered.on_ack(Time::from_millis(now), packets, sent_at);
            ended.map(|(packets, time)| (packets, time.as_nanos() / 1_000_000))
        };
        assert_eq!(on_ack(100, 5, 50), None, "the first begins an interval");
        assert_eq!(on_ack(149, 2, 99), None);
        assert_eq!(on_ack(150, 2, 100), Some((4, 50)));
        assert_eq!(on_ack(199, 1, 159), Some((1, 59)), "compressed by 10 ms");
        assert_eq!(on_ack(199, 1, 199), None, "no time has passed");
        assert_eq!(on_ack(299, 1, 200), Some((2, 100)), "expanded by 59 ms");
    }
}
