//! Whether a loss came from a full queue.

use alloc::collections::VecDeque;

use comity_units::{Span, Time};

/// Tells losses of a full queue from losses that have nothing to do with one.
///
/// A packet that a full queue refuses has neighbours that waited for longer than nearly all others;
/// a packet that is lost at random has neighbours like any other. So each loss event asks for the
/// ranks of the round trips before and after it among those of the last seconds, between 0 and 1:
///
/// ```text
/// rank       = share of round trips that are shorter + half the share of those that are equal
///              (within min rtt / 256)
/// mean rank  = mean rank + ((rank before + rank after) / 2 − mean rank) / 4               from 1/2
/// random     = mean rank < 3/4  and  waiting ≤ 3 ms  and  lost share ≤ 1/10
/// ```
///
/// The round trips are taken one in so many acknowledgements, not one in so much time: packets that
/// are sent in bursts wait for one another, and are lost more often than others only because there
/// are more of them.
///
/// The least round trip does not age: after a change of route to a longer path, every loss counts.
///
/// All three have to hold: a short queue is found by the rank, a queue that stands by the waiting,
/// and a path that loses more than a tenth is overloaded by any measure. A loss between packets of
/// which none was timed is congestion.
///
/// Source: none for the rank; the second condition is the idea of TCP Veno (Fu and Liew, IEEE JSAC
/// 21(2), 2003), whose bound is three packets in the queue.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Round trips of the last seconds.
    samples: VecDeque<Span>,
    sampling: Sampling,
    min: Option<Span>,
    mean_rank: f64,
    share: LostShare,
}

impl Evidence {
    pub(super) const fn new() -> Self {
        Self {
            samples: VecDeque::new(),
            sampling: Sampling::new(),
            min: None,
            mean_rank: 0.5,
            share: LostShare::new(),
        }
    }

    /// The least round trip of all.
    pub(super) const fn min(&self) -> Option<Span> {
        self.min
    }

    /// How patient a flow may be while a queue does not drain: wholly up to a lost share of 0.08,
    /// of late and on the average, and not at all from 0.16 on.
    pub(super) fn patience(&self) -> f64 {
        let left = (IMPATIENT_SHARE - self.share.mean) / (IMPATIENT_SHARE - PATIENT_SHARE);
        left.clamp(0.0, 1.0)
    }

    /// A round trip was measured.
    pub(super) fn on_round_trip(&mut self, now: Time, rtt: Span) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        if !self.sampling.takes(now) {
            return;
        }
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(rtt);
    }

    /// So much was sent in all, so much of it acknowledged, and so much is under way.
    pub(super) fn on_progress(&mut self, sent: u64, acked: u64, in_flight: u64) {
        self.share.on_progress(sent, acked, in_flight);
    }

    /// There was a loss event between these round trips: whether it was no congestion.
    pub(super) fn is_random(&mut self, before: Option<Span>, after: Option<Span>) -> bool {
        let Some((before, after)) = before.or(after).zip(after.or(before)) else {
            return false;
        };
        let Some(min) = self.min else {
            return false;
        };
        let rank = (self.rank(before, min) + self.rank(after, min)) / 2.0;
        self.mean_rank += (rank - self.mean_rank) / 4.0;
        let waiting = before.max(after).saturating_sub(min);
        self.mean_rank < CONGESTED_RANK
            && waiting <= LONGEST_WAITING
            && self.share.last <= LARGEST_SHARE
    }

    fn rank(&self, rtt: Span, min: Span) -> f64 {
        if self.samples.is_empty() {
            return 0.5;
        }
        let (mut below, mut equal) = (0_u32, 0_u32);
        for sample in &self.samples {
            if sample.abs_diff(rtt) <= min / 256 {
                equal += 1;
            } else if *sample < rtt {
                below += 1;
            }
        }
        (f64::from(below) + f64::from(equal) / 2.0) / self.samples.len() as f64
    }
}

/// Takes one measurement in so many that those taken cover [`COVERED`].
#[derive(Clone, Copy, Debug)]
struct Sampling {
    /// One in so many is taken.
    stride: u32,
    /// How many have come since the last that was taken.
    skipped: u32,
    /// How many have come in the current stretch, and when it began.
    count: u32,
    began_at: Time,
}

impl Sampling {
    const fn new() -> Self {
        Self {
            stride: 1,
            skipped: 0,
            count: 0,
            began_at: Time::ZERO,
        }
    }

    /// Whether a measurement at `now` is taken.
    fn takes(&mut self, now: Time) -> bool {
        self.count = self.count.saturating_add(1);
        if now.saturating_since(self.began_at) >= COVERED {
            self.stride = (self.count / SAMPLES as u32).max(1);
            (self.count, self.began_at) = (0, now);
        }
        self.skipped = self.skipped.saturating_add(1);
        let takes = self.skipped >= self.stride;
        if takes {
            self.skipped = 0;
        }
        takes
    }
}

/// The share of what was sent that got lost, over stretches of so many bytes.
#[derive(Clone, Copy, Debug)]
struct LostShare {
    /// Sent and lost when the stretch began.
    began: (u64, u64),
    last: f64,
    /// The mean of the last stretches, exponentially weighted.
    mean: f64,
}

impl LostShare {
    const fn new() -> Self {
        Self {
            began: (0, 0),
            last: 0.0,
            mean: 0.0,
        }
    }

    fn on_progress(&mut self, sent: u64, acked: u64, in_flight: u64) {
        let lost = sent.saturating_sub(acked.saturating_add(in_flight));
        let (sent_before, lost_before) = self.began;
        let stretch = sent.saturating_sub(sent_before);
        if stretch >= STRETCH {
            self.last = lost.saturating_sub(lost_before) as f64 / stretch as f64;
            self.mean += (self.last - self.mean) / 4.0;
            self.began = (sent, lost);
        }
    }
}

/// Round trips that a rank is taken among.
const SAMPLES: usize = 128;

/// Over so much time: a few saw-teeth of TCP.
const COVERED: Span = Span::from_secs(5);

/// Neighbours of drops of a full queue rank near 1, others near 1/2 on average.
const CONGESTED_RANK: f64 = 0.75;

/// What a few packets of other flows in front make a packet wait on a link of some megabits per
/// second. Flows that begin behind a full queue take it for the path: with an eighth of the round
/// trip here, eight of them would not back off any more, and one packet in ten would be lost.
pub(super) const LONGEST_WAITING: Span = Span::from_millis(3);

/// Above this share losses count as congestion whatever else is known.
const LARGEST_SHARE: f64 = 0.1;

/// Up to this lost share a flow waits for others to back off. Beside BBR, which does not, it is
/// some 0.04.
const PATIENT_SHARE: f64 = 0.08;

/// From this lost share on, flows that wait for one another overload the path.
const IMPATIENT_SHARE: f64 = 0.16;

/// The lost share is taken over so many bytes: 150 full packets, in which a share of a twentieth is
/// measured to a third of itself.
const STRETCH: u64 = 200_000;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn evidence(samples: impl Iterator<Item = u64>) -> Evidence {
        let mut evidence = Evidence::new();
        for (at, millis) in samples.enumerate() {
            evidence.on_round_trip(Time::from_millis(at as u64 * 40), Span::from_millis(millis));
        }
        evidence
    }

    #[test]
    fn losses_at_the_top_of_a_short_queue_are_congestion() {
        // A queue of 3 ms over 40: its fullness alone would not tell.
        let mut evidence = evidence((0..100).map(|at| 40 + at % 4));
        let verdicts: Vec<bool> = (0..6)
            .map(|_| evidence.is_random(Some(Span::from_millis(43)), None))
            .collect();
        // Ranks of 0.875: the mean is 0.594, 0.664, 0.717, 0.756, ...
        assert_eq!(verdicts, [true, true, true, false, false, false]);
    }

    #[test]
    fn losses_anywhere_in_a_short_queue_are_random() {
        let mut evidence = evidence((0..100).map(|at| 40 + at % 4));
        for at in 0..100_u64 {
            let neighbour = Span::from_millis(40 + at * 7 % 4);
            assert!(evidence.is_random(Some(neighbour), Some(neighbour)), "{at}");
        }
    }

    #[test]
    fn losses_in_a_standing_queue_are_congestion_wherever_they_rank() {
        let mut evidence = evidence((0..100).map(|at| if at == 0 { 40 } else { 60 + at % 5 }));
        for at in 0..100_u64 {
            assert!(!evidence.is_random(Some(Span::from_millis(60 + at * 7 % 5)), None));
        }
        assert!(
            !evidence.is_random(None, None),
            "nothing is known of the neighbours"
        );
    }

    /// One that began behind a full queue takes most of it for the path.
    #[test]
    fn losses_a_little_above_the_least_round_trip_of_a_full_queue_are_congestion() {
        let mut evidence = evidence((0..100).map(|at| 118 + at % 8));
        for at in 0..100_u64 {
            let neighbour = Span::from_millis(122 + at % 4);
            assert!(
                !evidence.is_random(Some(neighbour), Some(neighbour)),
                "{at}"
            );
        }
    }

    #[test]
    fn patience_ends_with_what_is_lost_of_late() {
        let mut evidence = Evidence::new();
        assert_eq!(evidence.patience(), 1.0);
        let (mut sent, mut lost) = (0, 0);
        let mut stretches = |evidence: &mut Evidence, count: u32, share: u64| {
            for _ in 0..count {
                (sent, lost) = (sent + STRETCH, lost + STRETCH * share / 100);
                evidence.on_progress(sent, sent - lost, 0);
            }
            evidence.patience()
        };
        assert_eq!(stretches(&mut evidence, 50, 8), 1.0);
        assert!((stretches(&mut evidence, 50, 12) - 0.5).abs() < 0.01);
        assert_eq!(stretches(&mut evidence, 50, 17), 0.0);
        // The mean is 0.17 · (3/4)³ = 0.072 after three stretches without a loss.
        assert!(stretches(&mut evidence, 2, 0) < 1.0);
        assert_eq!(stretches(&mut evidence, 1, 0), 1.0);
    }

    #[test]
    fn more_than_a_tenth_is_congestion() {
        for (lost, expected) in [(19_000, true), (21_000, false)] {
            let mut evidence = evidence((0..100).map(|at| 40 + at % 3));
            evidence.on_progress(200_000, 150_000, 50_000 - lost);
            assert_eq!(
                evidence.is_random(Some(Span::from_millis(41)), None),
                expected,
                "{lost} of 200,000"
            );
        }
    }
}
