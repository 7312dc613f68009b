//! Varying rates, integrated exactly.

use alloc::vec::Vec;

use comity_units::{Rate, Time};

use crate::clock::{Clock, WORK_PER_BYTE, quotient, work_of};
use crate::config::RateProfile;
use crate::trace::DeliveryTrace;

/// The source of work for a [`Clock`] with a varying rate.
#[derive(Clone, Debug)]
pub(crate) enum Profile {
    Deliveries(Deliveries),
    Steps(RateSteps),
}

/// A link that serves one packet after another: its clock, and its profile unless the rate is
/// constant.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) clock: Clock,
    pub(crate) profile: Option<Profile>,
}

impl Server {
    /// The server of a validated rate profile.
    pub(crate) fn new(rate: &RateProfile) -> Self {
        let (clock, profile) = match rate {
            RateProfile::Unlimited => (Rate::MAX, None),
            RateProfile::Constant(rate) => (*rate, None),
            RateProfile::Steps(steps) => (
                Rate::ZERO,
                Some(Profile::Steps(RateSteps {
                    steps: steps.clone(),
                    current: 0,
                })),
            ),
            RateProfile::Deliveries(trace) => (
                trace.mean_rate(),
                Some(Profile::Deliveries(Deliveries {
                    trace: trace.clone(),
                    next: 0,
                    left: 0,
                })),
            ),
        };
        Self {
            clock: Clock::new(clock),
            profile,
        }
    }

    /// See [`Clock::begin`].
    pub(crate) fn begin(&mut self, now: Time) -> Time {
        match &mut self.profile {
            None => self.clock.begin(now),
            Some(profile) => profile.begin(&mut self.clock, now),
        }
    }

    /// See [`Clock::transmit`].
    pub(crate) fn transmit(&mut self, bytes: u32) -> Time {
        match &mut self.profile {
            None => self.clock.transmit(bytes),
            Some(profile) => profile.transmit(&mut self.clock, bytes),
        }
    }

    /// The work that the next packet gets without using any time; see [`Clock::slack`].
    pub(crate) fn credit(&self) -> u128 {
        match &self.profile {
            None => u128::from(self.clock.slack()),
            Some(profile) => profile.credit(&self.clock),
        }
    }

    /// See [`Clock::capacity`].
    pub(crate) fn capacity(&self, from: Time, to: Time) -> u128 {
        match &self.profile {
            None => self.clock.capacity(from, to),
            Some(profile) => profile.capacity(from, to),
        }
    }

    /// The rate at `time`; for a trace, its average.
    pub(crate) fn rate_at(&self, time: Time) -> Rate {
        match &self.profile {
            None => self.clock.rate(),
            Some(profile) => profile.rate_at(&self.clock, time),
        }
    }
}

impl RateProfile {
    /// The bytes that the rate can carry after `from` and up to `to`; `None` without a rate.
    pub fn bytes_between(&self, from: Time, to: Time) -> Option<f64> {
        if matches!(self, Self::Unlimited) {
            return None;
        }
        Some(Server::new(self).capacity(from, to) as f64 / WORK_PER_BYTE as f64)
    }
}

impl Profile {
    pub(crate) fn begin(&mut self, clock: &mut Clock, now: Time) -> Time {
        if now >= clock.free_at()
            && let Self::Deliveries(deliveries) = self
        {
            deliveries.next = deliveries.trace.passed_by(now);
            deliveries.left = 0;
        }
        clock.begin(now)
    }

    pub(crate) fn transmit(&mut self, clock: &mut Clock, bytes: u32) -> Time {
        match self {
            Self::Deliveries(deliveries) => deliveries.transmit(clock, bytes),
            Self::Steps(steps) => steps.transmit(clock, work_of(bytes)),
        }
        clock.free_at()
    }

    pub(crate) fn capacity(&self, from: Time, to: Time) -> u128 {
        match self {
            Self::Deliveries(deliveries) => deliveries.capacity(from, to),
            Self::Steps(steps) => steps.capacity(from, to),
        }
    }

    pub(crate) fn rate_at(&self, clock: &Clock, time: Time) -> Rate {
        match self {
            Self::Deliveries(_) => clock.rate(),
            Self::Steps(steps) => steps.rate_at(time),
        }
    }

    /// The counterpart of [`Clock::slack`] for this profile.
    pub(crate) fn credit(&self, clock: &Clock) -> u128 {
        match self {
            Self::Deliveries(deliveries) => deliveries.credit(clock.free_at()),
            Self::Steps(_) => u128::from(clock.slack()),
        }
    }
}

/// A rate that changes at configured times.
///
/// Changes fall on whole nanoseconds, so the work done before one is a whole number and the clock
/// stays exact. The slack in the nanosecond before `free_at` belongs to the rate in force there.
#[derive(Clone, Debug)]
pub(crate) struct RateSteps {
    /// Not empty, times strictly increasing.
    steps: Vec<(Time, Rate)>,
    /// The step in force at the end of the last transmission, or an earlier one.
    current: usize,
}

impl RateSteps {
    fn transmit(&mut self, clock: &mut Clock, work: u128) {
        let (mut at, slack) = (clock.free_at(), clock.slack());
        let Some(mut work) = work.checked_sub(u128::from(slack)).filter(|&work| work > 0) else {
            // The work is at most a `u64` of slack here.
            clock.set(at, slack - work as u64);
            return;
        };
        loop {
            let until = loop {
                match self.steps.get(self.current + 1) {
                    Some(&(from, _)) if from <= at => self.current += 1,
                    Some(&(from, _)) => break Some(from),
                    None => break None,
                }
            };
            let rate = self
                .steps
                .get(self.current)
                .map_or(0, |(_, rate)| rate.as_bps());
            if rate == u64::MAX {
                clock.set(at, 0);
                return;
            }
            let fits = until.map(|until| u128::from(rate) * nanos_between(at, until));
            if let (Some(until), Some(fits)) = (until, fits)
                && work > fits
            {
                work -= fits;
                at = until;
                continue;
            }
            let (whole, rest) = quotient(work, rate);
            let spill = rest > 0;
            let end = at
                .as_nanos()
                .saturating_add(whole)
                .saturating_add(u64::from(spill));
            clock.set(Time::from_nanos(end), if spill { rate - rest } else { 0 });
            return;
        }
    }

    fn capacity(&self, from: Time, to: Time) -> u128 {
        let mut index = self.index_at(from);
        let (mut at, mut work) = (from, 0);
        while at < to {
            let until = self
                .steps
                .get(index + 1)
                .map_or(to, |&(next, _)| next.min(to));
            let rate = self.steps.get(index).map_or(0, |(_, rate)| rate.as_bps());
            work += u128::from(rate) * nanos_between(at, until);
            at = until;
            index += 1;
        }
        work
    }

    fn rate_at(&self, time: Time) -> Rate {
        self.steps
            .get(self.index_at(time))
            .map_or(Rate::ZERO, |&(_, rate)| rate)
    }

    /// The step in force at `time`: the last one at or before it, else the first.
    fn index_at(&self, time: Time) -> usize {
        self.steps
            .partition_point(|&(from, _)| from <= time)
            .saturating_sub(1)
    }
}

/// The opportunities of a trace, and their use.
#[derive(Clone, Debug)]
pub(crate) struct Deliveries {
    trace: DeliveryTrace,
    /// The number of the first unused opportunity, counted over all repetitions.
    next: u64,
    /// Unused bytes of the opportunity at `free_at` of the clock.
    left: u32,
}

impl Deliveries {
    fn transmit(&mut self, clock: &mut Clock, bytes: u32) {
        if bytes <= self.left && self.left > 0 {
            self.left -= bytes;
            return;
        }
        let needed = bytes - self.left;
        // Even an empty packet must wait for an opportunity.
        let used = needed.div_ceil(DeliveryTrace::OPPORTUNITY).max(1);
        let last = self.next + u64::from(used - 1);
        self.next = last + 1;
        // At most one opportunity more than the packet: the sum may exceed a `u32`, but the
        // difference does not.
        let offered = u64::from(used) * u64::from(DeliveryTrace::OPPORTUNITY);
        self.left = (offered - u64::from(needed)) as u32;
        clock.set(self.trace.time_of(last), 0);
    }

    fn capacity(&self, from: Time, to: Time) -> u128 {
        work_of_opportunities(
            self.trace
                .passed_by(to)
                .saturating_sub(self.trace.passed_by(from)),
        )
    }

    /// The bytes still available at the instant `free_at`: the rest of one opportunity, and further
    /// ones in the same millisecond.
    fn credit(&self, free_at: Time) -> u128 {
        let unused = self.trace.passed_by(free_at).saturating_sub(self.next);
        work_of(self.left) + work_of_opportunities(unused)
    }
}

fn work_of_opportunities(count: u64) -> u128 {
    u128::from(count) * u128::from(DeliveryTrace::OPPORTUNITY) * u128::from(WORK_PER_BYTE)
}

fn nanos_between(from: Time, to: Time) -> u128 {
    u128::from(to.saturating_since(from).as_nanos())
}
