//! The state of a BBRv3 flow, and the values derived from it.

use comity_units::{DataSize, Seed, Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::super::aggregation::Epoch;
use super::super::filter::MaxFilter;
use super::super::output::Output;
use super::super::{MIN_WINDOW, NOMINAL_RTT, ProbeRtt, Rounds, Totals};
use super::bounds::Bounds;
use super::cycle::Cycle;

/// The configuration of [`Bbr3`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bbr3Config {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The window before the first acknowledgement.
    pub initial_window: DataSize,
    /// The window never rises above this.
    pub max_window: DataSize,
    /// The seed of the random times at which the flow probes for bandwidth.
    pub seed: Seed,
    /// The loss ratio in a round trip above which too much is in flight.
    pub loss_threshold: f64,
    /// The minimum factor on bandwidth and data in flight after a round trip with losses.
    pub beta: f64,
    /// The part of the long-term bound that is left to other flows.
    pub headroom: f64,
    /// The age of the minimum round trip at which ProbeRTT begins.
    pub probe_rtt_interval: Span,
}

impl Bbr3Config {
    /// The defaults of the draft.
    pub const fn draft(mss: DataSize) -> Self {
        Self {
            mss,
            initial_window: DataSize::new(mss.get().saturating_mul(10)),
            max_window: DataSize::MAX,
            seed: Seed::new(0),
            loss_threshold: 0.02,
            beta: 0.7,
            headroom: 0.15,
            probe_rtt_interval: Span::from_secs(5),
        }
    }
}

/// Version 1's model of the path, with bounds set by losses, and rarer and shorter probes.
///
/// ```text
/// bw      = min( max( delivery-rate samples of two cycles ), bw_shortterm )
/// pacing  = 0.99 · gain · bw
/// cwnd    = gain · bw · min_rtt + excess of acknowledgements,
///           at most inflight_longterm (less 15 % in Cruise and ProbeRTT) and inflight_shortterm
///
/// Startup         2.77, 2     until bw has grown by less than 25 % in three rounds, or 6 losses and
///                             2 % in a round
/// Drain           0.5,  2     until bw · min_rtt is in flight
/// ProbeBW Down    0.9,  2     until that, and the headroom, are free
/// ProbeBW Cruise  1,    2     for 2 to 3 s, or as many rounds as segments in flight, at most 63
/// ProbeBW Refill  1,    2     for a round
/// ProbeBW Up      1.25, 2.25  until bw stands, or losses exceed 2 % of the flight
/// ProbeRTT        1,    0.5   every 5 s without a lower round trip, for 200 ms and a round
///
/// losses while probing    inflight_longterm = max( flight at the loss, 0.7 · bw · min_rtt )
/// losses elsewhere        bw_shortterm       = max( bw of the round, 0.7 · bw_shortterm ),
///                         inflight_shortterm likewise; both end with Refill
/// ```
///
/// Source: draft-ietf-ccwg-bbr-06.
///
/// Differs from the source in: 1. congestion marks have no effect, because the draft has no
/// reaction to them; 2. every transport reports each loss, as SACK does; 3. discontiguous losses in
/// Startup are counted by the acknowledgements that show them; 4. the flow is window-limited if the
/// window held a packet back in this round or the last one.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    pub(super) config: Bbr3Config,
    pub(super) random: Xoshiro256PlusPlus,
    pub(super) output: Output,
    pub(super) state: State,
    pub(super) rounds: Rounds,
    /// The largest samples of the last cycle and of this one.
    pub(super) max_bandwidth: [f64; 2],
    /// The bandwidth after the bounds, in bytes per second.
    pub(super) bandwidth: f64,
    pub(super) bounds: Bounds,
    pub(super) cycle: Cycle,
    pub(super) epoch: Epoch,
    pub(super) excess: MaxFilter,
    pub(super) full: FullBandwidth,
    pub(super) drain_began: u64,
    pub(super) min_rtt: MinRtt,
    pub(super) probe_rtt: ProbeRtt,
    /// cwnd in bytes, now and before a recovery or ProbeRTT.
    pub(super) window: f64,
    pub(super) prior_window: f64,
    pub(super) is_recovering: bool,
    /// Whether the window held a packet back, in the last round and in this one.
    pub(super) limited: [bool; 2],
    pub(super) undo: Undo,
    pub(super) is_restarting: bool,
    pub(super) has_seen_rtt: bool,
    pub(super) totals: Totals,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Up => 1.25,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
        }
    }

    pub(super) const fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }
}

/// Whether the flow has filled the path: ever, and in the current probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBandwidth {
    pub(super) is_reached: bool,
    pub(super) is_now: bool,
    pub(super) bandwidth: f64,
    pub(super) rounds: u32,
}

impl FullBandwidth {
    /// Restarts the detection at this bandwidth.
    pub(super) fn reset(&mut self, bandwidth: f64) {
        *self = Self {
            is_reached: self.is_reached,
            bandwidth,
            ..Self::default()
        };
    }
}

/// The minimum round trip, and that of the shorter interval that schedules ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    pub(super) least: Option<(Span, Time)>,
    pub(super) recent: Option<(Span, Time)>,
    pub(super) is_expired: bool,
}

/// The state to restore after a spurious recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    pub(super) state: Option<State>,
    pub(super) bounds: Bounds,
}

pub(super) const STARTUP_GAIN: f64 = 2.77;

impl Bbr3 {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: Bbr3Config) -> Self {
        let mut output = Output::new(config.mss);
        let initial = config.initial_window.get() as f64;
        output.begin(initial, NOMINAL_RTT, STARTUP_GAIN);
        Self {
            config,
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed.get()),
            output,
            state: State::Startup,
            rounds: Rounds::default(),
            max_bandwidth: [0.0; 2],
            bandwidth: 0.0,
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            epoch: Epoch::default(),
            excess: MaxFilter::new(1),
            full: FullBandwidth::default(),
            drain_began: 0,
            min_rtt: MinRtt::default(),
            probe_rtt: ProbeRtt::default(),
            window: initial.min(config.max_window.get() as f64),
            prior_window: 0.0,
            is_recovering: false,
            limited: [false; 2],
            undo: Undo::default(),
            is_restarting: false,
            has_seen_rtt: false,
            totals: Totals::default(),
        }
    }

    pub(super) fn max_bandwidth(&self) -> f64 {
        let [before, current] = self.max_bandwidth;
        before.max(current)
    }

    pub(super) fn min_window(&self) -> f64 {
        MIN_WINDOW * self.output.mss
    }

    /// The bandwidth-delay product, in bytes.
    pub(super) fn product(&self, bandwidth: f64) -> f64 {
        match self.min_rtt.least {
            None => self.config.initial_window.get() as f64,
            Some((rtt, _)) => bandwidth * rtt.as_secs_f64(),
        }
    }

    /// Adds room for the hosts at both ends.
    pub(super) fn with_bursts(&self, inflight: f64) -> f64 {
        let bursts = 3.0 * self.output.burst() * self.output.mss;
        let probe = match self.state {
            State::Up => 2.0 * self.output.mss,
            _ => 0.0,
        };
        inflight.max(bursts).max(self.min_window()) + probe
    }

    /// The target of the data in flight: the bandwidth-delay product, at most the window.
    pub(super) fn target_inflight(&self) -> f64 {
        self.product(self.bandwidth).min(self.window)
    }

    pub(super) fn is_window_limited(&self) -> bool {
        self.limited.contains(&true)
    }

    pub(super) fn start_round(&mut self) {
        self.rounds.end = self.totals.delivered;
    }

    pub(super) fn save_window(&mut self) {
        let is_good = !self.is_recovering && self.state != State::ProbeRtt;
        self.prior_window = if is_good {
            self.window
        } else {
            self.prior_window.max(self.window)
        };
    }
}
