//! Proportional rate reduction: how much may be sent while a window shrinks.

/// Spreads the reduction of a window over the acknowledgements of one round trip.
///
/// ```text
/// pipe > target:   sent ≤ ⌈delivered · target / before⌉
/// pipe ≤ target:   send max(delivered − sent, newly delivered), up to the target; one segment more
///                  if the acknowledgement advances and reports no further loss
/// ```
///
/// `before` is the window at the beginning of the recovery, and `target` the threshold. So the
/// flight equals the threshold when the recovery ends. At least one segment is sent at the
/// beginning.
///
/// Source: RFC 6937, section 3; RFC 9937, section 6.2, for the choice between its two bounds
/// (conservative, or slow start if that is safe).
///
/// Differs from RFC 9937 in: 1. `before` is the window, not the flight before the recovery; 2. the
/// share is rounded up to whole segments, as in Linux.
#[derive(Clone, Copy, Debug)]
pub struct Prr {
    before: u64,
    target: u64,
    delivered: u64,
    sent: u64,
}

impl Prr {
    /// Begins to reduce from `before` to `target` bytes.
    pub const fn new(before: u64, target: u64) -> Self {
        Self {
            before,
            target,
            delivered: 0,
            sent: 0,
        }
    }

    /// Takes an acknowledgement that delivers `delivered` more bytes and leaves `pipe` bytes in
    /// flight. It `is_safe` if it advances and reports no further loss. Returns how many bytes may
    /// be in flight.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, is_safe: bool, mss: u32) -> u64 {
        self.delivered += delivered;
        let allowed = match self.target.checked_sub(pipe) {
            None => {
                let share = u128::from(self.delivered) * u128::from(self.target);
                let share = share.div_ceil(u128::from(self.before.max(1)));
                // Rounds up to whole segments.
                let share = share.next_multiple_of(u128::from(mss.max(1)));
                u64::try_from(share)
                    .unwrap_or(u64::MAX)
                    .saturating_sub(self.sent)
            }
            Some(room) => {
                let owed = self.delivered.saturating_sub(self.sent).max(delivered);
                let more = if is_safe { u64::from(mss) } else { 0 };
                room.min(owed + more)
            }
        };
        // The first retransmission leaves at once.
        let least = if self.sent == 0 { u64::from(mss) } else { 0 };
        pipe + allowed.max(least)
    }

    /// Takes the size of a sent segment.
    pub const fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Runs a recovery with segments of one byte. Returns how many leave at each acknowledgement,
    /// which delivers one.
    fn sends(prr: &mut Prr, pipe: &mut u64, acks: usize, is_safe: bool) -> Vec<u64> {
        (0..acks)
            .map(|_| {
                *pipe -= 1;
                let now = prr.on_ack(1, *pipe, is_safe, 1) - *pipe;
                prr.on_sent(now);
                *pipe += now;
                now
            })
            .collect()
    }

    #[test]
    fn one_loss_sends_half_of_what_is_delivered() {
        // RFC 6937, section 4, first example: one of 20 segments is lost and the window halves. 19
        // remain in flight. Every second acknowledgement releases a segment until the flight is at
        // the threshold, at the 17th. From then on each acknowledgement releases what it delivers.
        let (mut prr, mut pipe) = (Prr::new(20, 10), 19);
        let sends = sends(&mut prr, &mut pipe, 19, false);
        assert_eq!(
            sends,
            [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]
        );
        assert_eq!(pipe, 10);
    }

    #[test]
    fn many_losses_send_what_is_delivered_or_one_more() {
        // RFC 6937, section 4, second example: 15 of 20 segments are lost, so that five are in
        // flight, below the threshold. The conservative bound sends as much as is delivered, and
        // slow start one segment more for each acknowledgement, until the threshold is reached.
        let (mut prr, mut pipe) = (Prr::new(20, 10), 5);
        assert_eq!(sends(&mut prr, &mut pipe, 4, false), [1, 1, 1, 1]);
        assert_eq!(pipe, 5);
        let (mut prr, mut pipe) = (Prr::new(20, 10), 5);
        assert_eq!(sends(&mut prr, &mut pipe, 7, true), [2, 2, 2, 2, 2, 1, 1]);
        assert_eq!(pipe, 10);
    }

    #[test]
    fn never_beyond_the_target() {
        let mut prr = Prr::new(100, 70);
        assert_eq!(prr.on_ack(10, 69, true, 1), 70);
        prr.on_sent(1);
        assert_eq!(prr.on_ack(1, 70, true, 1), 70);
    }

    #[test]
    fn in_proportion_whatever_the_acknowledgements_cover() {
        // 0.7 of what is delivered is sent, to within a byte, also for stretched acknowledgements.
        for step in [1, 2, 3, 10] {
            let mut prr = Prr::new(1_000, 700);
            let (mut pipe, mut delivered, mut sent) = (1_000_u64, 0, 0);
            while delivered + step <= 900 {
                delivered += step;
                pipe -= step;
                let now = prr.on_ack(step, pipe, false, 1) - pipe;
                prr.on_sent(now);
                pipe += now;
                sent += now;
            }
            assert_eq!(sent, (delivered * 7).div_ceil(10), "by {step}");
        }
    }
}
