//! Which recovery a flow uses.

use super::interface::PipeRule;

/// Which recovery a flow uses, and its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// The algorithm.
    pub kind: RecoveryKind,
    /// How many duplicate acknowledgements prove a loss (3 in RFC 5681).
    pub duplicate_threshold: u8,
    /// Whether duplicate acknowledgements for data sent before the last reaction are ignored:
    /// `recover` of RFC 6582, section 3.2; `bugFix_` of ns-2. Without it, several losses in one
    /// window can reduce the window several times (Floyd 1994).
    pub bugfix: bool,
}

/// The recovery algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryKind {
    /// Fast retransmit, then slow start from one segment, which retransmits everything outstanding
    /// (Jacobson 1988).
    Tahoe,
    /// Fast recovery that ends with the first new acknowledgement (RFC 2001).
    Reno,
    /// Fast recovery that lasts until all data sent before it is acknowledged (RFC 6582).
    NewReno {
        /// Whether only the first partial acknowledgement restarts the retransmission timer
        /// ("impatient") or each one does ("slow but steady"; RFC 6582, section 4).
        impatient: bool,
        /// Whether the congestion window loses for good what a partial acknowledgement covers
        /// beyond the inflation (ns-2 without `exit_recovery_fix_`). RFC 6582 restores it at the
        /// end.
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
        /// Whether the window shrinks in proportion to the delivered data (RFC 9937), or at once.
        proportional: bool,
        /// Whether a reduction is undone when timestamps (RFC 3522) or duplicate SACKs (RFC 3708)
        /// show that nothing was lost.
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

    /// The names that [`RecoveryConfig::by_name`] accepts, in historical order.
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

    /// The recovery of a connection, depending on whether its ends agreed on selective
    /// acknowledgements. Without them SACK and RACK can find only one hole, so NewReno replaces
    /// them.
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

    /// The recovery of a time-lined stream. SACK replaces RACK, because the sender abandons
    /// segments that RACK would wait for.
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
