//! Loss recovery for byte-sequence transports.

/// Which recovery a flow uses, and its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// The algorithm.
    pub kind: RecoveryKind,
    /// How many duplicate acknowledgements mean a loss (RFC 5681: 3).
    pub duplicate_threshold: u8,
    /// Whether duplicate acknowledgements for data sent before the last reaction are ignored: `recover` of
    /// RFC 6582, section 3.2, ns-2's `bugFix_`. Without it one window with several losses can be punished
    /// several times (Floyd 1994).
    pub careful: bool,
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
    },
    /// Selective acknowledgements with an estimate of the pipe (RFC 6675).
    Sack,
}

impl RecoveryConfig {
    /// Tahoe.
    pub const TAHOE: Self = Self {
        kind: RecoveryKind::Tahoe,
        duplicate_threshold: 3,
        careful: true,
    };
    /// Reno.
    pub const RENO: Self = Self {
        kind: RecoveryKind::Reno,
        duplicate_threshold: 3,
        careful: true,
    };
    /// NewReno, impatient.
    pub const NEW_RENO: Self = Self {
        kind: RecoveryKind::NewReno { impatient: true },
        duplicate_threshold: 3,
        careful: true,
    };
    /// SACK.
    pub const SACK: Self = Self {
        kind: RecoveryKind::Sack,
        duplicate_threshold: 3,
        careful: true,
    };
}

/// Placeholder of the trait.
pub trait Recovery {}
