//! The limits up to which an outbox accepts sections.

use super::SubmitError;

/// The limits on accepted sections besides those of [`Config`](super::Config).
#[derive(Debug)]
pub(super) struct Intake {
    stage: Stage,
    /// The longest section that the peer can hold, in bytes.
    pub(super) max_length: u64,
    /// The maximum number of open sections of a stream at the peer.
    pub(super) max_open: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Finishing,
    Closed,
}

impl Default for Intake {
    fn default() -> Self {
        Self {
            stage: Stage::Open,
            max_length: u64::MAX,
            max_open: u64::MAX,
        }
    }
}

impl Intake {
    pub(super) fn finish(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Finishing;
        }
    }

    pub(super) const fn close(&mut self) {
        self.stage = Stage::Closed;
    }

    pub(super) const fn max_open(&self) -> u64 {
        self.max_open
    }

    pub(super) const fn check(&self) -> Result<(), SubmitError> {
        match self.stage {
            Stage::Open => Ok(()),
            Stage::Finishing => Err(SubmitError::Finishing),
            Stage::Closed => Err(SubmitError::Closed),
        }
    }
}
