//! The configuration of a link, validated when a link is created.

use alloc::vec::Vec;

use comity_units::{DataSize, Rate, Span, Time};

use crate::error::{ConfigError, more_than_zero, probability};
use crate::queue::{Limit, Queue};
use crate::trace::DeliveryTrace;

/// The configuration of a link. The default is an ideal link: unlimited rate and queue, no delay,
/// no losses.
///
/// ```
/// use comity_link::{Limit, Link, LinkConfig, Outcome, Packet, Queue};
/// use comity_units::{Rate, Seed, Span, Time};
///
/// let config = LinkConfig {
///     queue: Queue::DropTail(Limit::Packets(20)),
///     ..LinkConfig::new(Rate::from_kbps(800), Span::from_millis(100))
/// };
/// let mut link = Link::new(&config, Seed::new(1).derive("bottleneck"))?;
/// let packet = Packet { bytes: 1_000, ecn_capable: false, flow: 0 };
/// let Some(Outcome::Carried(passage)) = link.offer(Time::ZERO, packet, ())
/// else { unreachable!("the queue is empty and nothing is lost") };
/// assert_eq!(passage.departure, Time::from_millis(10));
/// assert_eq!(passage.arrival, Time::from_millis(110));
/// # Ok::<(), comity_link::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast packets are sent.
    pub rate: RateProfile,
    /// The propagation delay after a packet's last bit has left.
    pub delay: DelayProfile,
    /// The largest accepted packet, headers included; `None` for any size. A larger packet is
    /// dropped before the loss models and the queue, as by a router that must not fragment it.
    pub mtu: Option<DataSize>,
    /// The queue, which may refuse packets.
    pub queue: Queue,
    /// The loss models. Each packet that reaches a place on the link passes all models at that
    /// place, so adding a model does not change the random numbers of the others.
    pub losses: Vec<Loss>,
    /// Extra delay of single packets.
    pub jitter: Jitter,
    /// Probability that a packet arrives twice. The duplicate is created after the link: it needs
    /// no transmission time, and has its own jitter.
    pub duplication: f64,
}

impl LinkConfig {
    /// Creates a link of constant rate and delay with an unlimited queue and no losses.
    pub const fn new(rate: Rate, delay: Span) -> Self {
        Self {
            rate: RateProfile::Constant(rate),
            delay: DelayProfile::Constant(delay),
            mtu: None,
            queue: Queue::DropTail(Limit::Unlimited),
            losses: Vec::new(),
            jitter: Jitter::None,
            duplication: 0.0,
        }
    }

    pub(crate) fn largest_packet(&self) -> u32 {
        self.mtu
            .map_or(u32::MAX, |mtu| u32::try_from(mtu.get()).unwrap_or(u32::MAX))
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: RateProfile::Unlimited,
            ..Self::new(Rate::MAX, Span::ZERO)
        }
    }
}

/// The rate of a link over time.
#[derive(Clone, Debug, PartialEq)]
pub enum RateProfile {
    /// No transmission time.
    Unlimited,
    /// One constant rate. [`Rate::ZERO`] holds every packet for ever.
    Constant(Rate),
    /// Each rate from its time on, in strictly increasing order; the first also applies earlier. A
    /// packet in service continues at the new rate; rate zero holds it.
    Steps(Vec<(Time, Rate)>),
    /// Recorded delivery opportunities.
    Deliveries(DeliveryTrace),
}

/// The propagation delay, by the departure of a packet's last bit.
#[derive(Clone, Debug, PartialEq)]
pub enum DelayProfile {
    /// One constant delay.
    Constant(Span),
    /// Each delay from its time on, in strictly increasing order; the first also applies earlier.
    /// Unless [`Jitter`] allows reordering, packets sent after a step down do not overtake earlier
    /// ones.
    Steps(Vec<(Time, Span)>),
}

impl DelayProfile {
    /// The initial delay.
    pub fn at_start(&self) -> Span {
        match self {
            Self::Constant(delay) => *delay,
            Self::Steps(steps) => steps.first().map_or(Span::ZERO, |&(_, delay)| delay),
        }
    }
}

/// One cause of loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Which packets are lost.
    pub model: LossModel,
    /// Where the packets are lost.
    pub place: LossPlace,
}

/// Where packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPlace {
    /// On the wire: the packet has used the queue and the link, and never arrives. Models with a
    /// clock use the departure time.
    AfterTransmission,
    /// Before the queue: the packet uses nothing. Models with a clock use the time of the offer.
    BeforeQueue,
}

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet with this probability, independently.
    Bernoulli(f64),
    /// A Markov chain of two states with a step for every packet (Gilbert 1960, Elliott 1963). It
    /// starts in the good state. A packet is lost with the probability of the present state, then
    /// the chain steps.
    ///
    /// ```text
    /// share of bad state = p_good_to_bad / (p_good_to_bad + p_bad_to_good)
    /// mean stay in it    = 1 / p_bad_to_good                                 [packets]
    /// ```
    GilbertElliott {
        /// Probability of a step from good to bad.
        p_good_to_bad: f64,
        /// Probability of a step from bad to good.
        p_bad_to_good: f64,
        /// Probability of a loss in the good state.
        loss_good: f64,
        /// Probability of a loss in the bad state.
        loss_bad: f64,
    },
    /// Two states that alternate in time, each for an exponentially distributed time (TCP-Real,
    /// section 3: both means one second, `drop_off` zero).
    ///
    /// The states depend on the seed alone, not on the traffic: two protocols compared with one
    /// seed meet the same errors at the same times. Every 4,096 mean cycles the state is drawn
    /// afresh, which bounds the cost of a packet that follows a long silence.
    OnOff {
        /// Mean length of a stay in the on state.
        mean_on: Span,
        /// Mean length of a stay in the off state.
        mean_off: Span,
        /// Probability of a loss in the on state.
        drop_on: f64,
        /// Probability of a loss in the off state.
        drop_off: f64,
        /// Whether the first state is on.
        start_on: bool,
        /// The number of the process that the link shares with the link of the other direction;
        /// `None` for a process of its own. Links with the same
        /// [`LinkSeed::pair`](crate::LinkSeed::pair) and the same number are in the same state at
        /// all times: an error phase hits the packets of both. Each link still draws the losses of
        /// its own packets.
        shared: Option<u32>,
    },
    /// Every packet from `at` on, for `lasts`: a cable that is unplugged and plugged in again.
    Outage {
        /// When it begins.
        at: Time,
        /// How long it lasts.
        lasts: Span,
    },
    /// Exactly these packets, by their number among all offered packets, from 0, in any order.
    Packets(Vec<u64>),
}

/// Extra delay of single packets.
///
/// Without `reorder`, packets stay in order: a packet that would overtake arrives together with the
/// packet before it. With `reorder`, only its own draw decides when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Exponentially distributed.
    Exponential {
        /// The mean extra delay.
        mean: Span,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
    /// The absolute value of a normal draw around zero, at most `max`: min( |N(0, stddev²)|, max ).
    /// RFC 8868, section 4.5.3, recommends 5 ms and 15 ms.
    HalfNormal {
        /// The standard deviation of the draw.
        stddev: Span,
        /// The largest extra delay.
        max: Span,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
    /// No extra delay.
    None,
    /// Normally distributed, or zero if the draw is negative.
    Normal {
        /// The mean of the distribution before truncation.
        mean: Span,
        /// Its standard deviation.
        stddev: Span,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
    /// Uniform from zero to `max`, both included.
    Uniform {
        /// The largest extra delay.
        max: Span,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
}

impl LinkConfig {
    /// Checks that a [`Link`](crate::Link) can be created from the configuration.
    ///
    /// # Errors
    /// The first invalid field, in the order of the struct.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if let RateProfile::Steps(steps) = &self.rate {
            in_order("rate", steps)?;
        }
        if let DelayProfile::Steps(steps) = &self.delay {
            in_order("delay", steps)?;
        }
        if self.mtu == Some(DataSize::ZERO) {
            return Err(ConfigError::Zero { field: "mtu" });
        }
        let has_rate = match &self.rate {
            RateProfile::Unlimited => false,
            RateProfile::Constant(rate) => *rate != Rate::MAX,
            RateProfile::Steps(_) | RateProfile::Deliveries(_) => true,
        };
        if matches!(self.queue, Queue::Red(_)) && !has_rate {
            return Err(ConfigError::RedWithoutRate);
        }
        self.queue.validate()?;
        for loss in &self.losses {
            loss.model.validate()?;
        }
        probability("duplication", self.duplication)
    }
}

impl LossModel {
    fn validate(&self) -> Result<(), ConfigError> {
        match *self {
            Self::Bernoulli(p) => probability("losses bernoulli", p),
            Self::GilbertElliott {
                p_good_to_bad,
                p_bad_to_good,
                loss_good,
                loss_bad,
            } => {
                probability("losses p_good_to_bad", p_good_to_bad)?;
                probability("losses p_bad_to_good", p_bad_to_good)?;
                probability("losses loss_good", loss_good)?;
                probability("losses loss_bad", loss_bad)
            }
            Self::OnOff {
                mean_on,
                mean_off,
                drop_on,
                drop_off,
                start_on: _,
                shared: _,
            } => {
                more_than_zero("losses mean_on", mean_on)?;
                more_than_zero("losses mean_off", mean_off)?;
                probability("losses drop_on", drop_on)?;
                probability("losses drop_off", drop_off)
            }
            Self::Outage { at: _, lasts } => more_than_zero("losses lasts", lasts),
            Self::Packets(_) => Ok(()),
        }
    }
}

fn in_order<V>(field: &'static str, steps: &[(Time, V)]) -> Result<(), ConfigError> {
    if steps.is_empty() {
        return Err(ConfigError::NoSteps { field });
    }
    let times = steps.iter().map(|&(time, _)| time);
    for (index, (previous, time)) in times.clone().zip(times.skip(1)).enumerate() {
        if time <= previous {
            return Err(ConfigError::StepsOutOfOrder {
                field,
                index: index + 1,
                time,
                previous,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::queue::{CodelConfig, FqCodelConfig, PieConfig, RedConfig};
    use std::string::ToString;
    use std::vec;

    fn refused(config: &LinkConfig) -> ConfigError {
        config
            .validate()
            .expect_err("the configuration was accepted")
    }

    #[test]
    fn the_ideal_link_and_the_defaults_are_valid() {
        let rate = Rate::from_mbps(1);
        assert_eq!(LinkConfig::default().validate(), Ok(()));
        for queue in [
            Queue::Red(RedConfig::default()),
            Queue::CoDel(CodelConfig::default()),
            Queue::FqCodel(FqCodelConfig::default()),
            Queue::Pie(PieConfig::default()),
        ] {
            let config = LinkConfig {
                queue,
                ..LinkConfig::new(rate, Span::ZERO)
            };
            assert_eq!(config.validate(), Ok(()));
        }
    }

    #[test]
    fn errors_state_the_field_the_value_and_the_expectation() {
        let base = LinkConfig::new(Rate::from_mbps(1), Span::ZERO);
        let loss = |model| LinkConfig {
            losses: vec![Loss {
                model,
                place: LossPlace::BeforeQueue,
            }],
            ..base.clone()
        };
        let red = |red| LinkConfig {
            queue: Queue::Red(red),
            ..base.clone()
        };
        let fq_codel = |fq_codel| LinkConfig {
            queue: Queue::FqCodel(fq_codel),
            ..base.clone()
        };
        let pie = |pie| LinkConfig {
            queue: Queue::Pie(pie),
            ..base.clone()
        };
        let at = Time::from_secs;
        for (config, expected) in [
            (
                LinkConfig {
                    mtu: Some(DataSize::ZERO),
                    ..base.clone()
                },
                "mtu: zero, expected more than that",
            ),
            (
                LinkConfig {
                    duplication: 1.5,
                    ..base.clone()
                },
                "duplication: 1.5 is no probability, expected a number from 0 to 1",
            ),
            (
                loss(LossModel::Bernoulli(f64::NAN)),
                "losses bernoulli: NaN is no probability, expected a number from 0 to 1",
            ),
            (
                loss(LossModel::OnOff {
                    mean_on: Span::from_secs(1),
                    mean_off: Span::ZERO,
                    drop_on: 0.5,
                    drop_off: 0.0,
                    start_on: true,
                    shared: None,
                }),
                "losses mean_off: zero, expected more than that",
            ),
            (
                loss(LossModel::Outage {
                    at: at(1),
                    lasts: Span::ZERO,
                }),
                "losses lasts: zero, expected more than that",
            ),
            (
                LinkConfig {
                    rate: RateProfile::Steps(vec![(at(2), Rate::ZERO), (at(2), Rate::MAX)]),
                    ..base.clone()
                },
                "rate: step 1 is at 2.000000000s, expected a time after 2.000000000s, that of the step \
                 before it",
            ),
            (
                LinkConfig {
                    delay: DelayProfile::Steps(vec![]),
                    ..base.clone()
                },
                "delay: no steps, expected at least one",
            ),
            (
                LinkConfig {
                    queue: Queue::DropTail(Limit::Packets(0)),
                    ..base.clone()
                },
                "queue limit: the limit is zero, expected room for at least one packet or byte",
            ),
            (
                red(RedConfig {
                    min_threshold: 20.0,
                    ..RedConfig::default()
                }),
                "queue thresholds: 20 and 15, expected 0 < min_threshold < max_threshold",
            ),
            (
                red(RedConfig {
                    weight: 0.0,
                    ..RedConfig::default()
                }),
                "queue weight: 0, expected a number above 0 and at most 1",
            ),
            (
                fq_codel(FqCodelConfig {
                    queues: 0,
                    ..FqCodelConfig::default()
                }),
                "queue queues: zero, expected more than that",
            ),
            (
                fq_codel(FqCodelConfig {
                    quantum: DataSize::ZERO,
                    ..FqCodelConfig::default()
                }),
                "queue quantum: zero, expected more than that",
            ),
            (
                fq_codel(FqCodelConfig {
                    drop_batch: 0,
                    ..FqCodelConfig::default()
                }),
                "queue drop_batch: zero, expected more than that",
            ),
            (
                pie(PieConfig {
                    update_interval: Span::from_micros(99),
                    ..PieConfig::default()
                }),
                "queue update_interval: 99us, expected at least 100us",
            ),
            (
                pie(PieConfig {
                    alpha: f64::NAN,
                    ..PieConfig::default()
                }),
                "queue alpha: NaN, expected a number from 0 on",
            ),
            (
                pie(PieConfig {
                    beta: -1.0,
                    ..PieConfig::default()
                }),
                "queue beta: -1, expected a number from 0 on",
            ),
        ] {
            assert_eq!(refused(&config).to_string(), expected);
        }
        let unlimited = LinkConfig {
            rate: RateProfile::Unlimited,
            ..red(RedConfig::default())
        };
        assert_eq!(refused(&unlimited), ConfigError::RedWithoutRate);
    }
}
