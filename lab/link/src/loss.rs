//! The loss models of a link and their states.

use alloc::vec::Vec;

use comity_units::{Seed, Span, Time};

use crate::config::{Loss, LossModel, LossPlace};
use crate::random::{LinkSeed, Random};

/// All loss models at one place of one link.
#[derive(Clone, Debug)]
pub(crate) struct Losses(Vec<LossProcess>);

impl Losses {
    /// The models of `losses` at `place`, each with a stream named by its index in the list.
    pub(crate) fn new(losses: &[Loss], place: LossPlace, seed: LinkSeed) -> Self {
        let processes = losses
            .iter()
            .enumerate()
            .filter(|(_, loss)| loss.place == place)
            .map(|(index, loss)| LossProcess::new(&loss.model, index, seed))
            .collect();
        Self(processes)
    }

    /// Whether any model hits the packet with this number, which passes at `now`. Every model
    /// draws, whatever the others decide.
    pub(crate) fn strike(&mut self, now: Time, number: u64) -> bool {
        self.0
            .iter_mut()
            .fold(false, |hit, process| process.strikes(now, number) | hit)
    }
}

/// The seed `loss/0`, `loss/1` and so on below the seed of the link.
fn loss_seed(seed: Seed, index: usize) -> Seed {
    seed.derive(&alloc::format!("loss/{index}"))
}

/// The name below the seed of a loss model from which the states of on/off losses are drawn.
const STATES: &str = "states";

#[derive(Clone, Debug)]
enum LossProcess {
    Bernoulli {
        probability: f64,
        random: Random,
    },
    GilbertElliott {
        step: [f64; 2],
        loss: [f64; 2],
        is_bad: bool,
        random: Random,
    },
    OnOff {
        process: OnOff,
        drop_on: f64,
        drop_off: f64,
        random: Random,
    },
    Outage {
        at: Time,
        lasts: Span,
    },
    /// In increasing order. The numbers of passing packets may be out of order, because FQ-CoDel
    /// sends packets of other flows first.
    Packets(Vec<u64>),
}

impl LossProcess {
    /// The model with this index in the list of a link.
    fn new(model: &LossModel, index: usize, seed: LinkSeed) -> Self {
        let own = loss_seed(seed.own, index);
        let random = Random::new(own);
        match *model {
            LossModel::Bernoulli(probability) => Self::Bernoulli {
                probability,
                random,
            },
            LossModel::GilbertElliott {
                p_good_to_bad,
                p_bad_to_good,
                loss_good,
                loss_bad,
            } => Self::GilbertElliott {
                step: [p_good_to_bad, p_bad_to_good],
                loss: [loss_good, loss_bad],
                is_bad: false,
                random,
            },
            LossModel::OnOff {
                mean_on,
                mean_off,
                drop_on,
                drop_off,
                start_on,
                shared,
            } => {
                let of = shared.map_or(own, |number| loss_seed(seed.pair, number as usize));
                Self::OnOff {
                    process: OnOff::new(mean_on, mean_off, start_on, of.derive(STATES)),
                    drop_on,
                    drop_off,
                    random,
                }
            }
            LossModel::Outage { at, lasts } => Self::Outage { at, lasts },
            LossModel::Packets(ref numbers) => {
                let mut numbers = numbers.clone();
                numbers.sort_unstable();
                Self::Packets(numbers)
            }
        }
    }

    fn strikes(&mut self, now: Time, number: u64) -> bool {
        match self {
            Self::Bernoulli {
                probability,
                random,
            } => random.bernoulli(*probability),
            Self::GilbertElliott {
                step,
                loss,
                is_bad,
                random,
            } => {
                let ([leave_good, leave_bad], [loss_good, loss_bad]) = (*step, *loss);
                let (loss, leave) = if *is_bad {
                    (loss_bad, leave_bad)
                } else {
                    (loss_good, leave_good)
                };
                let hit = random.bernoulli(loss);
                *is_bad ^= random.bernoulli(leave);
                hit
            }
            Self::OnOff {
                process,
                drop_on,
                drop_off,
                random,
            } => {
                let drop = if process.is_on_at(now) {
                    *drop_on
                } else {
                    *drop_off
                };
                random.bernoulli(drop)
            }
            Self::Outage { at, lasts } => now >= *at && now.saturating_since(*at) < *lasts,
            Self::Packets(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

/// Two states that alternate, each for an exponentially distributed time. They are a function of
/// the seed and the time alone.
#[derive(Clone, Debug)]
struct OnOff {
    mean_on: Span,
    mean_off: Span,
    seed: Seed,
    /// When the present stretch ends. The state is then drawn afresh.
    stretch_ends: Time,
    is_on: bool,
    /// When the present state ends.
    ends: Time,
    random: Random,
}

impl OnOff {
    /// The length of a stretch in mean cycles. Each stretch has a random stream of its own, so a
    /// packet after a long silence does not have to follow the states since the last packet.
    const STRETCH: u64 = 4_096;

    fn new(mean_on: Span, mean_off: Span, is_on: bool, seed: Seed) -> Self {
        let mut process = Self {
            mean_on,
            mean_off,
            seed,
            stretch_ends: Time::ZERO + (mean_on + mean_off) * Self::STRETCH,
            is_on,
            ends: Time::ZERO,
            random: Random::new(seed),
        };
        process.stay(Time::ZERO);
        process
    }

    /// `now` does not decrease from call to call.
    fn is_on_at(&mut self, now: Time) -> bool {
        if now >= self.stretch_ends {
            self.enter_stretch_of(now);
        }
        while self.ends <= now {
            self.is_on = !self.is_on;
            self.stay(self.ends);
        }
        self.is_on
    }

    /// Draws the first state of the stretch that contains `now`, each state by its share of time.
    fn enter_stretch_of(&mut self, now: Time) {
        let length = (self.mean_on + self.mean_off) * Self::STRETCH;
        let number = now.as_nanos() / length.as_nanos().max(1);
        let begins = Time::ZERO + length * number;
        self.stretch_ends = begins + length;
        self.random = Random::new(self.seed.derive(&alloc::format!("{number}")));
        let (on, off) = (self.mean_on.as_secs_f64(), self.mean_off.as_secs_f64());
        self.is_on = self.random.bernoulli(on / (on + off));
        self.stay(begins);
    }

    /// Draws how long the present state lasts from `from` on, at least a nanosecond.
    fn stay(&mut self, from: Time) {
        let mean = if self.is_on {
            self.mean_on
        } else {
            self.mean_off
        };
        let nanos = self.random.exponential(mean.as_nanos() as f64);
        self.ends = from + Span::from_nanos((nanos as u64).max(1));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    fn strikes(model: &LossModel, seed: u64, count: u64, apart: Span) -> Vec<bool> {
        let mut process = LossProcess::new(model, 0, Seed::new(seed).into());
        (0..count)
            .map(|number| process.strikes(Time::ZERO + apart * number, number))
            .collect()
    }

    #[test]
    fn a_list_hits_exactly_its_packets_in_any_order_and_past_gaps() {
        let model = LossModel::Packets(vec![5, 1, 5, 0, u64::MAX]);
        let hits = strikes(&model, 0, 10, Span::ZERO);
        let numbers: Vec<usize> = (0..10).filter(|&number| hits[number]).collect();
        assert_eq!(numbers, [0, 1, 5]);
        let mut process = LossProcess::new(&model, 0, Seed::new(0).into());
        assert!(
            !process.strikes(Time::ZERO, 4),
            "numbers that never came do not block the list"
        );
        assert!(process.strikes(Time::ZERO, 5));
    }

    #[test]
    fn gilbert_elliott_starts_good_and_steps_after_the_packet() {
        // With certain steps the states alternate from good: the second, fourth, ... packet is
        // lost.
        let model = LossModel::GilbertElliott {
            p_good_to_bad: 1.0,
            p_bad_to_good: 1.0,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        assert_eq!(
            strikes(&model, 3, 6, Span::ZERO),
            [false, true, false, true, false, true]
        );
    }

    /// On 1 us and off 3 us on average, so that a stretch is 16.384 ms long.
    const fn quick(start_on: bool) -> LossModel {
        LossModel::OnOff {
            mean_on: Span::from_micros(1),
            mean_off: Span::from_micros(3),
            drop_on: 1.0,
            drop_off: 0.0,
            start_on,
            shared: None,
        }
    }

    #[test]
    fn on_and_off_follow_the_seed_and_not_the_traffic() {
        // An interpreter is slow.
        let micros = if cfg!(miri) { 20_000 } else { 200_000 };
        let fine = strikes(&quick(true), 4, micros, Span::from_micros(1));
        // The longest gaps leave out whole stretches.
        for apart in [10, 1_000, 16_384, 40_000] {
            let coarse = strikes(
                &quick(true),
                4,
                micros.div_ceil(apart),
                Span::from_micros(apart),
            );
            for (index, &hit) in coarse.iter().enumerate() {
                let micro = index * apart as usize;
                assert_eq!(hit, fine[micro], "at {micro} us, seen every {apart} us");
            }
        }
        assert!(fine[0], "the first state is on");
    }

    #[test]
    fn a_state_is_forgotten_after_a_long_silence() {
        // Following a million changes a second for so long would take for ever. The on state has a
        // share of 1/4.
        let count = if cfg!(miri) { 16 } else { 1_000 };
        for start_on in [false, true] {
            let hits = strikes(&quick(start_on), 5, count, Span::from_secs(1));
            let share = hits.iter().filter(|&&hit| hit).count() as f64 / count as f64;
            let error = libm::sqrt(3.0 / 16.0 / count as f64);
            assert!((share - 0.25).abs() < 5.0 * error, "{share}");
        }
    }
}
