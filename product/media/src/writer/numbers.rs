//! The numbers by which another connection is recognised.

/// The numbers of stream 0, which every source has. They show where another connection begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstNumbers {
    /// The first number of the connection so far.
    first: Option<u64>,
    /// Whether the numbers have begun anew with a missing section.
    has_missed_first: bool,
}

impl FirstNumbers {
    pub(super) fn is_anew(&self, number: u64) -> bool {
        self.first.is_none_or(|first| number <= first)
    }

    /// Adds a section that is written.
    pub(super) fn write(&mut self, number: u64) {
        let first = self.first.map_or(number, |first| first.min(number));
        *self = Self {
            first: Some(first),
            has_missed_first: false,
        };
    }

    /// Adds a missing section.
    pub(super) fn miss(&mut self, number: u64) {
        self.has_missed_first |= self.first.is_some() && self.is_anew(number);
    }

    /// Whether this section may be the first one of another connection.
    pub(super) fn may_begin(&self, number: u64) -> bool {
        self.has_missed_first || self.is_anew(number)
    }
}
