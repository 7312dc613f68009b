//! Additive increase, multiplicative decrease: the controller that Tahoe, Reno, NewReno and SACK
//! share.

use comity_units::DataSize;

use crate::{Ack, Controller, Decision, Event, Idle, Loss, Phase, Timeout};

/// The configuration of [`Reno`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoConfig {
    /// The payload of a full segment.
    pub mss: DataSize,
    /// The window before the first acknowledgement: 10 segments in RFC 6928, two to four in RFC
    /// 5681, one in the papers' time.
    pub initial_window: DataSize,
    /// The slow-start threshold before the first loss; [`DataSize::MAX`] in RFC 5681, the
    /// receiver's window in ns-2.
    pub initial_ssthresh: DataSize,
    /// The maximum of the window in force; [`DataSize::MAX`] for none. The internal window grows
    /// beyond it, as ns-2's does beyond `window_`.
    pub max_window: DataSize,
    /// The growth for an acknowledgement.
    pub increase: Increase,
    /// The quantity that a loss reduces.
    pub decrease_basis: DecreaseBasis,
    /// Where a reduced window is rounded down to whole segments: for window and threshold (ns-2
    /// without `precisionReduce_`), for the threshold only (ns-2.35), or nowhere.
    pub rounding: Rounding,
    /// Whether the window also grows while the application or the receiver's window limits the
    /// flow. RFC 7661 forbids it; ns-2 and the TCPs of the papers' time do it.
    pub grow_when_limited: bool,
    /// Whether a spurious loss or timeout restores window and threshold (RFC 4015, as Linux does
    /// it).
    pub undo: bool,
    /// N: the number of Reno flows that it emulates, at least 1. More than 1 is not friendly to
    /// TCP.
    pub weight: f64,
}

impl RenoConfig {
    /// RFC 5681 with appropriate byte counting, as deployed today.
    pub const fn rfc5681(mss: DataSize) -> Self {
        Self {
            mss,
            initial_window: DataSize::new(mss.get() * 10),
            initial_ssthresh: DataSize::MAX,
            max_window: DataSize::MAX,
            increase: Increase::PerByte { limit: 2 },
            decrease_basis: DecreaseBasis::Flight,
            rounding: Rounding::Exact,
            grow_when_limited: false,
            undo: false,
            weight: 1.0,
        }
    }
}

/// The growth of the window for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// Each acknowledgement counts as one segment, whatever it covers (RFC 5681 as first deployed,
    /// ns-2).
    PerAck,
    /// Each acknowledgement counts as what it covers, in slow start at most `limit` segments (RFC
    /// 3465).
    PerByte {
        /// `L` of RFC 3465, in segments.
        limit: u8,
    },
    /// Each acknowledgement counts as the segments that it covers, without a limit. The segments
    /// beyond the slow-start threshold count in avoidance (Linux).
    PerSegment,
}

/// The quantity that a loss reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecreaseBasis {
    /// The flight (RFC 5681, equation 4).
    Flight,
    /// The window in force (ns-2, BSD).
    Window,
}

/// Where a reduced window is rounded down to whole segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Nowhere.
    Exact,
    /// The threshold only.
    Threshold,
    /// The window before the reduction, and then window and threshold.
    Both,
}

/// Additive increase by one segment per round trip and multiplicative decrease by half, for the
/// default weight N = 1.
///
/// ```text
/// slow start  (cwnd < ssthresh):  cwnd += 1 per acknowledged segment
/// avoidance:                      cwnd += N / cwnd per acknowledged segment      [segments]
/// loss:      ssthresh = max(basis · (1 − 1 / 2N), 2),  cwnd = ssthresh  (Tahoe: cwnd = 1)
/// timeout:   ssthresh = max(basis · (1 − 1 / 2N), 2),  cwnd = 1
/// restart:   ssthresh = max(ssthresh, 3/4 cwnd),
///            cwnd = max(cwnd / 2 for each timeout of the pause after the first, initial window)
/// ```
///
/// Source: RFC 5681, section 3.1, equations 2 to 4, and section 4.1 in the form of RFC 2861; RFC
/// 3465 for byte counting; RFC 4015 for the undo; Jacobson 1988. The weight is that of MulTCP: J.
/// Crowcroft and P. Oechslin, "Differentiated end-to-end Internet services using a weighted
/// proportional fair sharing TCP", Computer Communication Review 28 (3), 1998.
///
/// Differs from RFC 5681 in: 1. the window is a real number of segments, as in ns-2, so the growth
/// of one segment per round trip is exact; 2. the basis of the decrease and the rounding are
/// settings, because the papers' simulations depend on them. From MulTCP in: slow start is that of
/// one flow.
#[derive(Clone, Debug)]
pub struct Reno {
    config: RenoConfig,
    /// cwnd in segments.
    window: f64,
    /// ssthresh in segments.
    ssthresh: f64,
    /// Whether a timeout began the current slow start.
    after_timeout: bool,
    /// Window and threshold before the last reduction, if it may be undone.
    before: Option<(f64, f64)>,
}

impl Reno {
    /// Creates the controller of a flow that has sent nothing yet.
    pub fn new(config: RenoConfig) -> Self {
        let segments = |amount: DataSize| amount.get() as f64 / config.mss.get().max(1) as f64;
        Self {
            window: segments(config.initial_window).max(1.0),
            ssthresh: segments(config.initial_ssthresh),
            after_timeout: false,
            before: None,
            config,
        }
    }

    /// The congestion window in segments.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// The slow-start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// The threshold and the window after a loss, in segments.
    fn reduced(&self, in_flight: DataSize, window: DataSize) -> (f64, f64) {
        let segments = |amount: u64| amount as f64 / self.config.mss.get().max(1) as f64;
        let basis = match self.config.decrease_basis {
            // Segments sent by limited transmit are in flight beyond the window, and do not count.
            DecreaseBasis::Flight => segments(in_flight.get()).min(self.window),
            DecreaseBasis::Window => {
                // The transport has the window in whole bytes, this controller with fractions. So
                // halving is exact unless the receiver's window was the smaller one.
                let own = self.decision().window.get();
                match window.get().checked_sub(own) {
                    Some(inflation) => self.window + segments(inflation),
                    None => segments(window.get()),
                }
            }
        };
        let left = 1.0 - 0.5 / self.config.weight;
        match self.config.rounding {
            Rounding::Exact => (basis * left, basis * left),
            Rounding::Threshold => (libm::floor(basis * left), basis * left),
            Rounding::Both => {
                let whole = libm::floor(libm::floor(basis) * left);
                (whole, whole)
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || (ack.app_limited && !self.config.grow_when_limited) {
            return;
        }
        let slow_start = self.window < self.ssthresh;
        self.after_timeout &= slow_start;
        let segments = match self.config.increase {
            Increase::PerSegment => {
                let covered = f64::from(ack.packets);
                let window = (self.window + covered).min(self.ssthresh).max(self.window);
                let rest = covered - (window - self.window);
                self.window = window + self.config.weight * rest / window;
                return;
            }
            Increase::PerAck => 1.0,
            Increase::PerByte { limit } => {
                // RFC 3465, section 2.3: after a timeout an acknowledgement may cover spurious
                // retransmissions.
                let limit = if self.after_timeout { 1 } else { limit };
                let covered = ack.acked.get() as f64 / self.config.mss.get().max(1) as f64;
                if slow_start {
                    covered.min(f64::from(limit))
                } else {
                    covered
                }
            }
        };
        self.window += if slow_start {
            segments
        } else {
            self.config.weight * segments / self.window
        };
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.before = self.config.undo.then_some((self.window, self.ssthresh));
        let (threshold, window) = self.reduced(loss.in_flight, loss.window);
        self.ssthresh = threshold.max(2.0);
        self.window = if loss.restart { 1.0 } else { window.max(1.0) };
        if self.config.rounding == Rounding::Exact && !loss.restart {
            self.window = self.ssthresh;
        }
    }

    fn on_timeout(&mut self, timeout: &Timeout) {
        // RFC 5681, equation 4 and its note: a second expiry for the same data does not halve
        // again.
        if timeout.consecutive <= 1 || self.config.decrease_basis == DecreaseBasis::Window {
            self.before = self.config.undo.then_some((self.window, self.ssthresh));
            let (threshold, _) = self.reduced(timeout.in_flight, timeout.window);
            self.ssthresh = threshold.max(2.0);
        }
        self.window = 1.0;
        self.after_timeout = true;
    }

    fn on_spurious_loss(&mut self) {
        if let Some((window, ssthresh)) = self.before.take() {
            self.window = self.window.max(window);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    fn on_idle(&mut self, idle: &Idle) {
        let floor = super::segments(idle.initial_window, self.config.mss).min(self.window);
        self.ssthresh = self.ssthresh.max(0.75 * self.window);
        let halvings = idle.halvings().min(64);
        self.window = libm::ldexp(self.window, -(halvings as i32)).max(floor);
    }

    fn on_deflate(&mut self, amount: DataSize) {
        let segments = amount.get() as f64 / self.config.mss.get().max(1) as f64;
        self.window = (self.window - segments).max(1.0);
    }
}

impl Controller for Reno {
    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Ack(ack) => self.on_ack(ack),
            Event::Loss(loss) => self.on_loss(loss),
            Event::Deflated(amount) => self.on_deflate(amount),
            Event::Timeout(timeout) => self.on_timeout(timeout),
            Event::SpuriousLoss { .. } => self.on_spurious_loss(),
            Event::Idle(idle) => self.on_idle(idle),
            _ => {}
        }
    }

    fn decision(&self) -> Decision {
        let mss = self.config.mss.get() as f64;
        Decision {
            window: DataSize::new((self.window * mss) as u64).min(self.config.max_window),
            ssthresh: Some(DataSize::new((self.ssthresh * mss) as u64)),
            phase: if self.window < self.ssthresh {
                Phase::SlowStart
            } else {
                Phase::CongestionAvoidance
            },
            ..Decision::default()
        }
    }
}
