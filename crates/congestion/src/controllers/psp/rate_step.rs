//! Steps of the rate: what the paper does not have.
//!
//! For rates far from the paper's 100 Mb/s, where 2 µs are nothing or everything,
//! [`Step::Rate`](super::Step::Rate) moves the rate itself. With `n` packets per round trip, and
//! `T` the period from start to start:
//!
//! ```text
//! after a loss               T = min(2 · T, 64 · RTT)
//!   damped, of an increase   T = min(max(T', T · p_sent / p_rcvd) / (1 − d), 2 · T, 64 · RTT),
//!                            d = min(1/4, RTT' / min RTT · n^(−1/4))
//! otherwise                  n = n + min(√n, n) / 4,  T = RTT / n
//! ```
//!
//! `T'` is the period before the increase that was made last when the round began, or first while
//! it lasted, unless a loss was answered since. One increase waits for the other: until a round
//! that was begun after the last change has been judged, a round without losses changes nothing.
//! Rounds that were begun before it are judged for losses all the same, because an increase answers
//! none. `RTT` is the least round trip that was measured so far, not the first one: see below.
//! `RTT'` is the smoothed one.
//!
//! *How decrease and increase belong together.* An increase is an eighth to √n, whatever n is. A
//! decrease by d is made up for by `8√n · (1 − √(1 − d))` of them, about `4d√n`, and on the way,
//! which √n goes evenly, `(1 + s + s²) / 3` of the link is used, with `s = √(1 − d)` and next to no
//! queue. What is not used, about d/2 of n packets for three round trips an increase, is where a
//! queue drains: `6d²√n` round trips. With one d for all n, a quarter, 87 % of a link are used
//! however fast it is, √n increases are made from a loss to the next, and the room for a queue
//! grows with √n. With `n^(−1/4)` 93.5 % are used at 3,700 packets in a round trip and 96.4 % at
//! 37,000, `4n^(1/4)` increases are made, and the room is six round trips for each n. A greater
//! power would leave less room the faster the link is. Below 256 packets `n^(−1/4)` is more than a
//! quarter, half of the rate at 16, and would leave more of the link unused.
//!
//! Room is needed where there is a queue, which has to become empty for a late flow to measure the
//! least round trip. So d grows with the round trip that the queue makes longer, and is a quarter
//! where that is more than `n^(1/4) / 4` times the least. With `n^(−1/4)` alone a late flow at 100
//! Mb/s and a queue of 2.7 round trips had 0.25 to 3.0 times what the first one had, with this
//! controller, as with a quarter for all, 0.37 to 1.9 times (six seeds).
//!
//! *How fast.* The report of a round comes a round trip and an eighth after its end, so that
//! without a queue an increase is made every third round trip, and later by the wait behind a
//! queue. Half of the rate is made up for by 2.3 √n increases: 7 √n round trips, 35 s from half of
//! 1 Gb/s with two agents and 84 ms. The larger of two flows grows by the smaller share; where n is
//! less than one, each increase is a quarter.
//!
//! *How much is lost.* What is sent beyond the bottleneck's rate is lost from when the queue is
//! full until the report of it is there, two to three round trips and the wait behind the queue.
//! With a queue that holds little of a round trip that is about two increases of each flow, √n/2
//! packets, for three round trips, once in 12d√n of them: as a share of n packets in each of these,
//! 1/(8dn), which is 1/(2n) where d is a quarter. A queue of Q packets takes longer to fill, and
//! the rate goes on growing meanwhile: m flows of n packets are beyond the rate by
//! `√(m · √n · Q / 6)` packets in a round trip when it is full. Increases that did not wait for
//! their effect would be made two to three times as often, or as many times more as the queue holds
//! round trips, and the loss would grow with them.
//!
//! # How two agents share
//! With steps of the rate √n brings the ratio of two rates nearer to one, damped or not, as long as
//! both have rounds of one length. A loss that takes the same share of both keeps the ratio. One
//! that takes n^(−1/4) takes the smaller share of the larger flow and undoes half of what the
//! increases since the loss before it have brought together: where d is less than a quarter, two
//! flows come together half as fast.
//!
//! Of two whose rounds differ the one with the longer rounds T comes to less: an increase that goes
//! with `√n`, once in some T, is `√(x · T) / T²` more of a rate x in a second, which a loss that
//! takes the same share of both balances at rates as `T⁻³`, and one that takes `(x · T)^(−1/4)` of
//! each at rates as `T⁻⁵`. Both take the losses for the same, which they are not: at 100 Mb/s a
//! flow with 94 ms has 1/2.6 of what one with 84 ms has, 1/2.3 with a quarter for all, and one with
//! 126 or 168 ms has 1/8 with either.
//!
//! A late flow measures its first round trip behind the queue that the other keeps. For the rest of
//! its life rounds of that length would leave it up to nine times behind, damped or not; but what
//! it measures after a loss, which empties the queue, is as short as what the other had, so that
//! rounds of the least round trip become equal. `crates/sim/tests/sharing.rs` asks that flows with
//! rounds of one length become equal.

use comity_units::Span;

use super::{Psp, TIMER};

impl Psp {
    /// The spacing after a loss of all but the share `arrived`. `before` is the spacing before the
    /// increase that caused it, if one did.
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
            // Less than half comes to the same as half, which doubles the period.
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

    /// `n`: how many packets a round trip holds.
    fn packets(&self, round: Span) -> f64 {
        round.as_secs_f64() / self.period().max(SHORTEST).as_secs_f64()
    }

    /// `d`: the share of the rate that a damped loss of an increase takes off.
    fn decrease(&self, round: Span) -> f64 {
        let longer = match (self.rtt.smoothed(&TIMER), self.rtt.min()) {
            (Some(now), Some(least)) => now.as_secs_f64() / least.max(SHORTEST).as_secs_f64(),
            _ => 1.0,
        };
        let root = libm::sqrt(libm::sqrt(self.packets(round)));
        (longer / root).min(MAX_DECREASE)
    }
}

/// Periods are taken for no shorter where they divide.
const SHORTEST: Span = Span::from_nanos(1);

/// With a step that goes with the rate, at least one packet leaves in so many round trips.
const MAX_ROUNDS: u64 = 64;

/// With a step that goes with the rate, √n is multiplied by this.
const INCREASE: f64 = 0.25;

/// Damped, a loss that is due to an increase takes no more than this share off the rate.
const MAX_DECREASE: f64 = 0.25;
