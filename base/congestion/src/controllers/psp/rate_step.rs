//! Steps of the rate: an extension that the paper does not have.
//!
//! The paper's 2 µs suit its 100 Mb/s. At other rates they are negligible or too large, so
//! [`Step::Rate`](super::Step::Rate) changes the rate itself. With `n` packets per round trip and
//! the period `T` from start to start:
//!
//! ```text
//! after a loss               T = min(2 · T, 64 · RTT)
//!   damped, of an increase   T = min(max(T', T · p_sent / p_rcvd) / (1 − d), 2 · T, 64 · RTT),
//!                            d = min(1/4, RTT' / min RTT · n^(−1/4))
//! otherwise                  n = n + min(√n, n) / 4,  T = RTT / n
//! ```
//!
//! `RTT` is the minimum measured round trip, not the first one (see below). `RTT'` is the smoothed
//! round trip. `T'` is the period before the increase that was the last one when the round began,
//! or the first one during the round, unless a loss was answered since.
//!
//! An increase waits for the effect of the one before it: a round without losses changes nothing
//! until a round that began after the last change is judged. Rounds that began earlier are still
//! judged for losses, because an increase is not a reaction to a loss.
//!
//! # Increase and decrease
//! An increase adds √n/4 packets, which is 1/8 to √n. A decrease by d takes `8√n · (1 − √(1 − d))`
//! increases to regain, about `4d√n`. Meanwhile √n grows evenly, and the flow uses `(1 + s + s²) /
//! 3` of the link, with `s = √(1 − d)` and nearly no queue. The unused rate drains a queue: about
//! d/2 of n packets, three round trips for each increase, or `6d²√n` round trips in all.
//!
//! | d | use of the link | increases between losses | drained queue, in round trips |
//! | --- | --- | --- | --- |
//! | 1/4 for every n | 87 % at any rate | √n | grows with √n |
//! | n^(−1/4) | 93.5 % at n = 3,700, 96.4 % at 37,000 | 4n^(1/4) | six for every n |
//!
//! A higher power would drain less at faster links. Below 256 packets `n^(−1/4)` exceeds a quarter
//! (1/2 at n = 16) and would leave more of the link unused.
//!
//! The queue must become empty for a late flow to measure the minimum round trip. So d grows with
//! the queueing delay, and is a quarter where the round trip exceeds `n^(1/4) / 4` times the
//! minimum. At 100 Mb/s with a queue of 2.7 round trips, a late flow had 0.25 to 3.0 times the rate
//! of the first with `n^(−1/4)` alone, and 0.37 to 1.9 times with this rule, as with a quarter for
//! every n (six seeds).
//!
//! # Speed
//! The report of a round arrives one and an eighth round trips after its end. So without a queue
//! there is an increase every third round trip; a queue delays it. To regain half of the rate takes
//! 2.3 √n increases, 7 √n round trips: 35 s from half of 1 Gb/s with two agents and 84 ms. The
//! larger of two flows grows by the smaller share. For n below one, each increase is a quarter.
//!
//! # Losses
//! Packets beyond the bottleneck's rate are lost from when the queue is full until its report
//! arrives: two to three round trips and the queueing delay. With a short queue this is about two
//! increases of each flow: √n/2 packets in each of three round trips, once in 12d√n round trips.
//! The loss ratio is 1/(8dn), 1/(2n) with d = 1/4. A queue of Q packets takes longer to fill, and
//! the rate grows meanwhile. When the queue is full, m flows of n packets exceed the rate by `√(m ·
//! √n · Q / 6)` packets in a round trip. If increases did not wait for their effect, they would be
//! two to three times as frequent, more with a long queue, and the losses would grow accordingly.
//!
//! # How two agents share
//! With steps of the rate, √n brings the ratio of two rates nearer to one, damped or not, if both
//! have rounds of one length. A loss that takes the same share of both keeps the ratio. A loss of
//! n^(−1/4) takes the smaller share of the larger flow, and undoes half of what the increases since
//! the last loss achieved. So if d is below a quarter, two flows converge half as fast.
//!
//! If rounds differ, the flow with the longer round T gets less. An increase of `√n` once in T adds
//! `√(x · T) / T²` to a rate x in a second. A loss of an equal share of both balances that at rates
//! as `T⁻³`, and one of `(x · T)^(−1/4)` at rates as `T⁻⁵`. In fact the flows do not see the same
//! losses. At 100 Mb/s a flow with 94 ms has 1/2.6 of the rate of one with 84 ms, and 1/2.3 with a
//! quarter for every n. A flow with 126 or 168 ms has 1/8 in either case.
//!
//! A late flow measures its first round trip behind the queue of the other. With rounds of that
//! length its rate would stay up to nine times lower, damped or not. After a loss, which empties
//! the queue, it measures as short a round trip as the other. So rounds of the minimum round trip
//! become equal. `lab/sim/tests/sharing.rs` tests that flows with rounds of one length reach
//! equal rates.

use comity_units::Span;

use super::{Psp, TIMER};

impl Psp {
    /// The spacing after a loss. The share `arrived` of the round arrived. `before` is the spacing
    /// before the increase that caused the loss, if one did.
    pub(super) fn after_loss_by_rate(
        &self,
        round: Span,
        before: Option<Span>,
        arrived: f64,
    ) -> Span {
        let transmission = self.calendar.transmission();
        let period = self.period();
        let doubled = period * 2;
        let next = before.map_or(doubled, |before| {
            // Half or less doubles the period.
            let kept = period.mul_f64(1.0 / arrived.max(0.5));
            let left = 1.0 - self.decrease(round);
            (before + transmission).max(kept).mul_f64(1.0 / left)
        });
        let longest = round * MAX_ROUNDS;
        next.min(doubled).min(longest).saturating_sub(transmission)
    }

    /// The spacing after a round without losses.
    pub(super) fn after_round_by_rate(&self, round: Span) -> Span {
        let packets = self.packets(round);
        let more = packets + libm::sqrt(packets).min(packets) * INCREASE;
        let period = Span::from_secs_f64(round.as_secs_f64() / more);
        period.saturating_sub(self.calendar.transmission())
    }

    /// `n`: the number of packets in a round trip.
    fn packets(&self, round: Span) -> f64 {
        round.as_secs_f64() / self.period().max(MIN_PERIOD).as_secs_f64()
    }

    /// `d`: the reduction of the rate after a damped loss.
    fn decrease(&self, round: Span) -> f64 {
        let longer = match (self.rtt.smoothed(&TIMER), self.rtt.min()) {
            (Some(now), Some(least)) => now.as_secs_f64() / least.max(MIN_PERIOD).as_secs_f64(),
            _ => 1.0,
        };
        let root = libm::sqrt(libm::sqrt(self.packets(round)));
        (longer / root).min(MAX_DECREASE)
    }
}

/// The lower bound of a period as a divisor.
const MIN_PERIOD: Span = Span::from_nanos(1);

/// At least one packet leaves in this many round trips.
const MAX_ROUNDS: u64 = 64;

/// The factor on √n in an increase.
const INCREASE: f64 = 0.25;

/// The maximum of `d`.
const MAX_DECREASE: f64 = 0.25;
