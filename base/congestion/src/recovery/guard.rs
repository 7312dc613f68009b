//! The counter of duplicate acknowledgements.

/// Counts duplicate acknowledgements and guards against reacting twice to the losses of one window.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// The offset after the highest byte sent at the last reaction. With `bugfix` the next reaction
    /// waits for an acknowledgement beyond it. Zero before the first.
    pub(super) recover: u64,
    pub(super) duplicates: u32,
    pub(super) threshold: u8,
    pub(super) bugfix: bool,
}

/// What one more duplicate acknowledgement means.
pub(super) enum Count {
    Below,
    Reached,
    Beyond,
}

impl Guard {
    pub(super) const fn new(threshold: u8, bugfix: bool) -> Self {
        Self {
            recover: 0,
            duplicates: 0,
            threshold,
            bugfix,
        }
    }

    pub(super) fn count(&mut self) -> Count {
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
    pub(super) fn admit(&mut self, una: u64, max: u64) -> bool {
        if self.bugfix && una <= self.recover {
            return false;
        }
        self.recover = max;
        true
    }
}
