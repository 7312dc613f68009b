//! Loss recovery for byte-sequence transports: the second plug.
//!
//! A controller says how large the window is; a recovery says when a segment counts as lost, what
//! is retransmitted, and how the window breathes meanwhile. Tahoe, Reno, NewReno, SACK and RACK are
//! five recoveries over one controller, and any controller works under any of them.
//!
//! The transport reports two things, a duplicate acknowledgement and an advance of the cumulative
//! one, and carries out the [`Reaction`]. Positions are byte offsets in the stream, unwrapped to 64
//! bits.
//!
//! ```text
//!              duplicate × threshold                    advance (Reno)
//!   Open ───────────────────────────────▶ Recovering ───────────────────▶ Open
//!    ▲  (Tahoe: back to Open at once)      │   ▲        advance ≥ recover (NewReno, SACK)
//!    │                                     └───┘
//!    └──────────── timeout ───────────── partial advance: resend the next hole
//! ```
//!
//! RACK counts no duplicates: the transport reports one when the clock says that something is lost.

mod new_reno;
mod prr;
mod rack;
mod reno;
mod sack;
mod tahoe;

use core::fmt::Debug;

use crate::TimeoutRepair;

pub use new_reno::NewReno;
pub use prr::Prr;
pub use rack::{Delivered, Rack, RackClock, Verdict};
pub use reno::Reno;
pub use sack::Sack;
pub use tahoe::Tahoe;

/// How a byte-sequence transport finds and repairs losses.
pub trait Recovery: Debug {
    /// An acknowledgement repeated the last one while data was outstanding.
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction;

    /// The cumulative acknowledgement moved.
    fn on_advance(&mut self, event: &Advance) -> Reaction;

    /// The retransmission timer expired, with data up to `max` outstanding, and the controller
    /// wants this repair ([`crate::Decision::timeout_repair`]). Returns what is retransmitted.
    /// Duplicates for data below `max` begin no recovery, if the recovery is
    /// [bugfix](RecoveryConfig::bugfix): a hole that the repair leaves waits for the timer.
    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend;

    /// The losses or the timeout that the last reaction was about turn out to have been none.
    fn on_spurious(&mut self) {}

    /// Whether a fast recovery is under way.
    fn is_recovering(&self) -> bool;

    /// Whether it is known or assumed that nothing is lost: no duplicates counted, no recovery.
    fn is_quiet(&self) -> bool;

    /// By how many bytes the usable window exceeds the congestion window: segments that left the
    /// network as duplicate acknowledgements tell. Negative while a partial acknowledgement
    /// deflates it.
    fn inflation(&self) -> i64;

    /// The most new segments that one event may release while recovering.
    fn burst_limit(&self) -> Option<u32> {
        None
    }

    /// How a transport with selective acknowledgements decides what may be sent while recovering;
    /// `None` when the window alone decides.
    fn pipe_rule(&self) -> Option<PipeRule> {
        None
    }
}

/// A duplicate acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The offset that is being asked for.
    pub una: u64,
    /// The offset after the highest byte ever sent.
    pub max: u64,
    /// The payload of a full segment.
    pub mss: u32,
    /// Whether selective acknowledgements alone already prove the first outstanding segment lost
    /// (`IsLost` of RFC 6675, section 4), or the clock some segment (RFC 8985).
    pub first_is_lost: bool,
}

/// An advance of the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Where it stands.
    pub to: u64,
    /// How many bytes left the window with it: in TCP all that it passed. Where another packet took
    /// the place of a lost one, that of the lost one does not count.
    pub acked: u64,
    /// The payload of a full segment.
    pub mss: u32,
    /// Whether it may answer what this recovery retransmitted: the first byte that it passed had
    /// been. Always so in TCP, where a recovery begins by sending it again; not so where a receiver
    /// passes over bytes that were given up, and what was in flight behind them is acknowledged
    /// packet by packet.
    pub is_repair: bool,
}

/// What the transport has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Reaction {
    /// Tell the controller of a loss.
    pub reduce: Reduce,
    /// Send again.
    pub resend: Resend,
    /// Release one new segment although the window is full (limited transmit, RFC 3042).
    pub release: bool,
    /// Tell the controller of the acknowledged data as clocking new data out.
    pub grow: bool,
    /// Restart the retransmission timer.
    pub restart_timer: bool,
    /// A partial acknowledgement: no round-trip sample is taken from it.
    pub partial: bool,
    /// The recovery is over with this event.
    pub recovered: bool,
    /// Bytes that the congestion window loses for good ([`crate::Event::Deflated`]).
    pub deflate: u64,
}

/// What the controller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reduce {
    /// Nothing.
    #[default]
    No,
    /// A loss: half a window.
    Halve,
    /// A loss after which the flow begins again from one segment.
    Restart,
}

/// What is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Resend {
    /// Nothing.
    #[default]
    Nothing,
    /// The first outstanding segment, at once and whatever the window.
    First,
    /// Everything outstanding, as the window allows (go-back-N).
    Everything,
}

impl From<TimeoutRepair> for Resend {
    fn from(repair: TimeoutRepair) -> Self {
        match repair {
            TimeoutRepair::GoBackN => Self::Everything,
            TimeoutRepair::FirstSegment => Self::First,
        }
    }
}

/// How many bytes count as being in the pipe while a SACK recovery runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PipeRule {
    /// `SetPipe()` of RFC 6675, section 4, from the scoreboard.
    #[default]
    Scoreboard,
    /// Fall and Floyd 1996 and ns-2: a counter that is set on entry to the segments outstanding
    /// less [`RecoveryConfig::duplicate_threshold`], goes down by one for each acknowledgement that
    /// does not advance (for a partial one by two, or by one if it answers
    /// [no repair](Advance::is_repair)) and up by one for each segment sent after the first. The
    /// first, which the entry itself sends again, is not added: the lost segment, whose place it
    /// takes, is still counted. Any hole below the highest selectively acknowledged byte is sent
    /// again.
    Counter,
}

/// Which recovery a flow uses, and its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// The algorithm.
    pub kind: RecoveryKind,
    /// How many duplicate acknowledgements mean a loss (RFC 5681: 3).
    pub duplicate_threshold: u8,
    /// Whether duplicate acknowledgements for data sent before the last reaction are ignored:
    /// `recover` of RFC 6582, section 3.2, ns-2's `bugFix_`. Without it one window with several
    /// losses can be punished several times (Floyd 1994).
    pub bugfix: bool,
}

/// The recovery algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// Fast retransmit, then slow start from one segment and everything again (Jacobson 1988).
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgement (RFC 2001).
    Reno,
    /// Fast recovery that lasts until all data sent before it is acknowledged (RFC 6582).
    NewReno {
        /// Whether only the first partial acknowledgement restarts the retransmission timer
        /// ("impatient") or each one does ("slow but steady"; RFC 6582, section 4).
        impatient: bool,
        /// Whether what a partial acknowledgement covers beyond the inflation is taken from the
        /// congestion window for good (ns-2 without `exit_recovery_fix_`), or given back at the end
        /// (RFC 6582).
        deflate_window: bool,
    },
    /// Selective acknowledgements with an estimate of the pipe (RFC 6675).
    Sack {
        /// How the pipe is estimated.
        pipe: PipeRule,
    },
    /// By the times at which segments were sent (RFC 8985), with selective acknowledgements.
    Rack {
        /// Whether a probe is sent when nothing is acknowledged for two round trips (TLP).
        probe: bool,
        /// Whether the window shrinks in proportion to what is delivered (RFC 9937), or at once.
        proportional: bool,
        /// Whether a reduction is undone when timestamps (RFC 3522) or duplicate SACKs (RFC 3708)
        /// say that nothing was lost.
        undo: bool,
    },
}

impl RecoveryConfig {
    /// Tahoe.
    pub const TAHOE: Self = Self {
        kind: RecoveryKind::Tahoe,
        duplicate_threshold: 3,
        bugfix: true,
    };
    /// Reno.
    pub const RENO: Self = Self {
        kind: RecoveryKind::Reno,
        duplicate_threshold: 3,
        bugfix: true,
    };
    /// NewReno, impatient.
    pub const NEW_RENO: Self = Self {
        kind: RecoveryKind::NewReno {
            impatient: true,
            deflate_window: false,
        },
        duplicate_threshold: 3,
        bugfix: true,
    };
    /// NewReno as in ns-2.
    pub const NEW_RENO_NS2: Self = Self {
        kind: RecoveryKind::NewReno {
            impatient: true,
            deflate_window: true,
        },
        duplicate_threshold: 3,
        bugfix: true,
    };
    /// SACK as in RFC 6675.
    pub const SACK: Self = Self {
        kind: RecoveryKind::Sack {
            pipe: PipeRule::Scoreboard,
        },
        duplicate_threshold: 3,
        bugfix: true,
    };
    /// SACK as in ns-2.
    pub const SACK_NS2: Self = Self {
        kind: RecoveryKind::Sack {
            pipe: PipeRule::Counter,
        },
        duplicate_threshold: 3,
        bugfix: true,
    };

    /// RACK-TLP with proportional rate reduction, as in Linux.
    pub const RACK: Self = Self {
        kind: RecoveryKind::Rack {
            probe: true,
            proportional: true,
            undo: true,
        },
        duplicate_threshold: 3,
        bugfix: true,
    };

    /// The names that [`RecoveryConfig::by_name`] knows, in the order of their history.
    pub const NAMES: [&str; 5] = ["tahoe", "reno", "newreno", "sack", "rack"];

    /// The recovery called `name`, or `None`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "tahoe" => Some(Self::TAHOE),
            "reno" => Some(Self::RENO),
            "newreno" => Some(Self::NEW_RENO),
            "sack" => Some(Self::SACK),
            "rack" => Some(Self::RACK),
            _ => None,
        }
    }

    /// The same algorithm with ns-2's variants of it.
    #[must_use]
    pub const fn as_in_ns2(self) -> Self {
        let kind = match self.kind {
            RecoveryKind::NewReno { .. } => Self::NEW_RENO_NS2.kind,
            RecoveryKind::Sack { .. } => Self::SACK_NS2.kind,
            kind => kind,
        };
        Self { kind, ..self }
    }

    /// What a connection uses whose ends did or did not agree on selective acknowledgements:
    /// without them SACK and RACK know of one hole only, and NewReno takes their place.
    #[must_use]
    pub const fn with_sack(self, agreed: bool) -> Self {
        let kind = match self.kind {
            RecoveryKind::Rack { .. } if !agreed => Self::NEW_RENO.kind,
            RecoveryKind::Sack { pipe } if !agreed => match pipe {
                PipeRule::Scoreboard => Self::NEW_RENO.kind,
                PipeRule::Counter => Self::NEW_RENO_NS2.kind,
            },
            kind => kind,
        };
        Self { kind, ..self }
    }

    /// What a time-lined stream uses, whose sender gives up segments that RACK would wait for: SACK
    /// in its place.
    #[must_use]
    pub const fn for_timeline(self) -> Self {
        match self.kind {
            RecoveryKind::Rack { .. } => Self {
                kind: Self::SACK.kind,
                ..self
            },
            _ => self,
        }
    }

    /// The name under which [`RecoveryConfig::by_name`] finds this algorithm.
    pub const fn name(&self) -> &'static str {
        match self.kind {
            RecoveryKind::Tahoe => "tahoe",
            RecoveryKind::Reno => "reno",
            RecoveryKind::NewReno { .. } => "newreno",
            RecoveryKind::Sack { .. } => "sack",
            RecoveryKind::Rack { .. } => "rack",
        }
    }
}

/// One of the recoveries, without indirection: the set is closed and the calls are frequent.
#[derive(Clone, Debug)]
pub enum AnyRecovery {
    /// Tahoe.
    Tahoe(Tahoe),
    /// Reno.
    Reno(Reno),
    /// NewReno.
    NewReno(NewReno),
    /// SACK.
    Sack(Sack),
    /// RACK.
    Rack(Rack),
}

impl AnyRecovery {
    /// The recovery that a configuration names.
    pub const fn new(config: RecoveryConfig) -> Self {
        let RecoveryConfig {
            kind,
            duplicate_threshold: threshold,
            bugfix,
        } = config;
        match kind {
            RecoveryKind::Tahoe => Self::Tahoe(Tahoe::new(threshold, bugfix)),
            RecoveryKind::Reno => Self::Reno(Reno::new(threshold, bugfix)),
            RecoveryKind::NewReno {
                impatient,
                deflate_window,
            } => Self::NewReno(NewReno::new(threshold, bugfix, impatient, deflate_window)),
            RecoveryKind::Sack { pipe } => Self::Sack(Sack::new(threshold, bugfix, pipe)),
            RecoveryKind::Rack { .. } => Self::Rack(Rack::new()),
        }
    }
}

macro_rules! delegate {
    ($self:ident, $recovery:ident => $call:expr) => {
        match $self {
            Self::Tahoe($recovery) => $call,
            Self::Reno($recovery) => $call,
            Self::NewReno($recovery) => $call,
            Self::Sack($recovery) => $call,
            Self::Rack($recovery) => $call,
        }
    };
}

impl Recovery for AnyRecovery {
    fn on_duplicate(&mut self, event: &Duplicate) -> Reaction {
        delegate!(self, recovery => recovery.on_duplicate(event))
    }

    fn on_advance(&mut self, event: &Advance) -> Reaction {
        delegate!(self, recovery => recovery.on_advance(event))
    }

    fn on_timeout(&mut self, max: u64, repair: TimeoutRepair) -> Resend {
        delegate!(self, recovery => recovery.on_timeout(max, repair))
    }

    fn on_spurious(&mut self) {
        delegate!(self, recovery => recovery.on_spurious());
    }

    fn is_recovering(&self) -> bool {
        delegate!(self, recovery => recovery.is_recovering())
    }

    fn is_quiet(&self) -> bool {
        delegate!(self, recovery => recovery.is_quiet())
    }

    fn inflation(&self) -> i64 {
        delegate!(self, recovery => recovery.inflation())
    }

    fn burst_limit(&self) -> Option<u32> {
        delegate!(self, recovery => recovery.burst_limit())
    }

    fn pipe_rule(&self) -> Option<PipeRule> {
        delegate!(self, recovery => recovery.pipe_rule())
    }
}

/// Counts duplicate acknowledgements and guards against reacting twice to the losses of one window.
#[derive(Clone, Debug)]
struct Guard {
    /// Where the highest byte sent stood at the last reaction; reactions wait until the
    /// acknowledgement has passed it. Zero before the first.
    recover: u64,
    duplicates: u32,
    threshold: u8,
    bugfix: bool,
}

/// What one more duplicate acknowledgement means.
enum Count {
    Below,
    Reached,
    Beyond,
}

impl Guard {
    const fn new(threshold: u8, bugfix: bool) -> Self {
        Self {
            recover: 0,
            duplicates: 0,
            threshold,
            bugfix,
        }
    }

    fn count(&mut self) -> Count {
        self.duplicates = self.duplicates.saturating_add(1);
        let threshold = u32::from(self.threshold);
        if self.duplicates < threshold {
            Count::Below
        } else if self.duplicates == threshold {
            Count::Reached
        } else {
            Count::Beyond
        }
    }

    /// Whether a reaction is due, and if so, remembers `max`.
    fn admit(&mut self, una: u64, max: u64) -> bool {
        if self.bugfix && una <= self.recover {
            return false;
        }
        self.recover = max;
        true
    }
}

/// The reaction to an acknowledgement that clocks new data: grow and restart the timer.
const CLOCKED: Reaction = Reaction {
    reduce: Reduce::No,
    resend: Resend::Nothing,
    release: false,
    grow: true,
    restart_timer: true,
    partial: false,
    recovered: false,
    deflate: 0,
};
