//! The closed set of recoveries as one type.

use super::config::{RecoveryConfig, RecoveryKind};
use super::interface::{Advance, Duplicate, PipeRule, Reaction, Recovery, Resend};
use super::{NewReno, Rack, Reno, Sack, Tahoe};
use crate::TimeoutRepair;

/// One of the recoveries. An enumeration without dynamic dispatch, because the calls are frequent.
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
