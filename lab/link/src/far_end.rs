//! The part of a link between the departure of a packet's last bit and its arrival.

use alloc::vec::Vec;

use comity_units::{Span, Time};

use crate::config::{DelayProfile, Jitter, LinkConfig, LossPlace};
use crate::loss::Losses;
use crate::outcome::{DropCause, Outcome, Passage};
use crate::random::{LinkSeed, Random};

/// Losses on the wire, propagation delay, jitter and duplication.
#[derive(Clone, Debug)]
pub(crate) struct FarEnd {
    losses: Losses,
    delay: Delay,
    jitter: Jitter,
    jitter_random: Random,
    duplication: f64,
    duplication_random: Random,
    /// The last arrival so far, which later ones must not precede.
    last_arrival: Time,
}

impl FarEnd {
    pub(crate) fn new(config: &LinkConfig, seed: LinkSeed) -> Self {
        Self {
            losses: Losses::new(&config.losses, LossPlace::AfterTransmission, seed),
            delay: Delay::new(&config.delay),
            jitter: config.jitter,
            jitter_random: Random::new(seed.own.derive("jitter")),
            duplication: config.duplication,
            duplication_random: Random::new(seed.own.derive("duplication")),
            last_arrival: Time::ZERO,
        }
    }

    pub(crate) const fn keeps_order(&self) -> bool {
        keeps_order(&self.jitter)
    }

    pub(crate) fn set_delay(&mut self, delay: Span) {
        self.delay = Delay::Constant(delay);
    }

    /// The fate of the packet with this number, which leaves at `departure`; calls are in departure
    /// order.
    pub(crate) fn deliver(
        &mut self,
        start: Time,
        departure: Time,
        marked: bool,
        number: u64,
    ) -> Outcome {
        if departure.is_never() {
            let passage = Passage {
                start,
                departure,
                arrival: Time::MAX,
                marked,
                duplicate: None,
            };
            return Outcome::Carried(passage);
        }
        if self.losses.strike(departure, number) {
            return Outcome::Lost {
                start,
                departure,
                cause: DropCause::Loss,
            };
        }
        let propagated = departure + self.delay.at(departure);
        let copies = self.duplication > 0.0 && self.duplication_random.bernoulli(self.duplication);
        let mut arrival = propagated + self.extra();
        let mut copy = if copies {
            propagated + self.extra()
        } else {
            arrival
        };
        if self.keeps_order() {
            arrival = arrival.max(self.last_arrival);
            copy = copy.max(arrival);
            self.last_arrival = copy;
        }
        Outcome::Carried(Passage {
            start,
            departure,
            arrival: arrival.min(copy),
            marked,
            duplicate: copies.then(|| copy.max(arrival)),
        })
    }

    fn extra(&mut self) -> Span {
        let random = &mut self.jitter_random;
        match self.jitter {
            Jitter::None => Span::ZERO,
            Jitter::Exponential { mean, .. } => nanos(random.exponential(mean.as_nanos() as f64)),
            Jitter::HalfNormal { stddev, max, .. } => {
                nanos(random.normal().abs() * stddev.as_nanos() as f64).min(max)
            }
            Jitter::Normal { mean, stddev, .. } => {
                let spread = random.normal() * stddev.as_nanos() as f64;
                nanos(mean.as_nanos() as f64 + spread)
            }
            Jitter::Uniform { max, .. } => {
                Span::from_nanos(random.below(max.as_nanos().saturating_add(1)))
            }
        }
    }
}

/// Whether packets arrive in the order of their departure.
pub(crate) const fn keeps_order(jitter: &Jitter) -> bool {
    match *jitter {
        Jitter::None => true,
        Jitter::Exponential { reorder, .. }
        | Jitter::HalfNormal { reorder, .. }
        | Jitter::Normal { reorder, .. }
        | Jitter::Uniform { reorder, .. } => !reorder,
    }
}

/// The nearest span; zero for negative numbers.
fn nanos(value: f64) -> Span {
    Span::from_nanos((value + 0.5) as u64)
}

/// The propagation delay over time.
#[derive(Clone, Debug)]
enum Delay {
    Constant(Span),
    /// `current` is the step in force at the last departure, or an earlier one.
    Steps {
        steps: Vec<(Time, Span)>,
        current: usize,
    },
}

impl Delay {
    fn new(profile: &DelayProfile) -> Self {
        match profile {
            DelayProfile::Constant(delay) => Self::Constant(*delay),
            DelayProfile::Steps(steps) => Self::Steps {
                steps: steps.clone(),
                current: 0,
            },
        }
    }

    /// The delay of a packet that leaves at `departure`, which does not decrease from call to call.
    fn at(&mut self, departure: Time) -> Span {
        match self {
            Self::Constant(delay) => *delay,
            Self::Steps { steps, current } => {
                while steps
                    .get(*current + 1)
                    .is_some_and(|&(from, _)| from <= departure)
                {
                    *current += 1;
                }
                steps.get(*current).map_or(Span::ZERO, |&(_, delay)| delay)
            }
        }
    }
}
