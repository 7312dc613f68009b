//! The indicators of TR 101 290, and their counts.

use comity_units::Time;

/// An indicator of ETSI TR 101 290 (V1.4.1), clause 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indicator {
    /// Two consecutive sync bytes are wrong.
    TsSyncLoss,
    /// A sync byte is wrong.
    SyncByteError,
    /// More than 0.5 s without the PAT, or the PAT is scrambled, or its PID carries another table.
    PatError,
    /// Packets of a PID are missing, out of order, or occur more than twice.
    ContinuityCountError,
    /// More than 0.5 s without the PMT of a program, or the PMT is scrambled.
    PmtError,
    /// More than 5 s without a packet of a PID in a PMT.
    PidError,
    /// A packet is marked as damaged.
    TransportError,
    /// The CRC of a table is wrong.
    CrcError,
    /// More than 100 ms without a clock reference.
    PcrRepetitionError,
    /// The clock jumps without a mark.
    PcrDiscontinuityIndicatorError,
    /// A clock reference is more than 500 ns off.
    PcrAccuracyError,
    /// More than 700 ms without a presentation time stamp.
    PtsError,
    /// Scrambled packets without a CAT, or its PID carries another table.
    CatError,
    /// More than 10 s without the NIT, or its PID carries another table.
    NitActualError,
    /// No table names a PID within 0.5 s.
    UnreferencedPid,
    /// More than 2 s without the SDT, or its PID carries another table.
    SdtActualError,
    /// More than 30 s without the TDT, or its PID carries another table.
    TdtError,
}

impl Indicator {
    /// All indicators, in the order of their clauses.
    pub const ALL: [Self; 17] = [
        Self::TsSyncLoss,
        Self::SyncByteError,
        Self::PatError,
        Self::ContinuityCountError,
        Self::PmtError,
        Self::PidError,
        Self::TransportError,
        Self::CrcError,
        Self::PcrRepetitionError,
        Self::PcrDiscontinuityIndicatorError,
        Self::PcrAccuracyError,
        Self::PtsError,
        Self::CatError,
        Self::NitActualError,
        Self::UnreferencedPid,
        Self::SdtActualError,
        Self::TdtError,
    ];

    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// Its number in the standard.
    pub const fn clause(self) -> &'static str {
        self.names().1
    }

    /// Its priority, 1 to 3.
    pub const fn priority(self) -> u8 {
        // The clause begins with the priority.
        self.clause().as_bytes()[0] - b'0'
    }

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::TsSyncLoss => ("TS_sync_loss", "1.1"),
            Self::SyncByteError => ("Sync_byte_error", "1.2"),
            Self::PatError => ("PAT_error_2", "1.3.a"),
            Self::ContinuityCountError => ("Continuity_count_error", "1.4"),
            Self::PmtError => ("PMT_error_2", "1.5.a"),
            Self::PidError => ("PID_error", "1.6"),
            Self::TransportError => ("Transport_error", "2.1"),
            Self::CrcError => ("CRC_error", "2.2"),
            Self::PcrRepetitionError => ("PCR_repetition_error", "2.3a"),
            Self::PcrDiscontinuityIndicatorError => ("PCR_discontinuity_indicator_error", "2.3b"),
            Self::PcrAccuracyError => ("PCR_accuracy_error", "2.4"),
            Self::PtsError => ("PTS_error", "2.5"),
            Self::CatError => ("CAT_error", "2.6"),
            Self::NitActualError => ("NIT_actual_error", "3.1.a"),
            Self::UnreferencedPid => ("Unreferenced_PID", "3.4.a"),
            Self::SdtActualError => ("SDT_actual_error", "3.5.a"),
            Self::TdtError => ("TDT_error", "3.8"),
        }
    }
}

/// The errors of one indicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorCount {
    /// The number of errors.
    pub count: u64,
    /// When the first error was found, if times are known.
    pub first: Option<Time>,
    /// When the last error was found.
    pub last: Option<Time>,
}

/// The errors of all indicators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors([ErrorCount; Indicator::ALL.len()]);

impl Errors {
    /// The errors of one indicator.
    pub fn of(&self, indicator: Indicator) -> ErrorCount {
        let found = self.0.get(indicator as usize);
        found.copied().unwrap_or_default()
    }

    /// The number of errors of a priority.
    pub fn sum(&self, priority: u8) -> u64 {
        let all = Indicator::ALL.into_iter();
        let counted = all.filter(|indicator| indicator.priority() == priority);
        counted.map(|indicator| self.of(indicator).count).sum()
    }

    pub(super) fn add(&mut self, indicator: Indicator, now: Option<Time>) {
        self.add_many(indicator, now, 1);
    }

    pub(super) fn add_many(&mut self, indicator: Indicator, now: Option<Time>, count: u64) {
        if let Some(errors) = self.0.get_mut(indicator as usize).filter(|_| count > 0) {
            errors.count += count;
            errors.first = errors.first.or(now);
            errors.last = now.or(errors.last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_indicator_has_its_index_and_its_priority() {
        for (index, indicator) in Indicator::ALL.into_iter().enumerate() {
            assert_eq!(indicator as usize, index);
            let mut errors = Errors::default();
            errors.add(indicator, Some(Time::from_secs(1)));
            errors.add(indicator, Some(Time::from_secs(2)));
            let counted = errors.of(indicator);
            assert_eq!(
                (counted.count, counted.first),
                (2, Some(Time::from_secs(1)))
            );
            assert_eq!(counted.last, Some(Time::from_secs(2)));
            assert_eq!(errors.sum(indicator.priority()), 2);
            assert_eq!((1..=3).map(|priority| errors.sum(priority)).sum::<u64>(), 2);
        }
        let counts = [1, 2, 3].map(|priority| {
            let all = Indicator::ALL.into_iter();
            all.filter(|indicator| indicator.priority() == priority)
                .count()
        });
        assert_eq!(counts, [6, 7, 4]);
    }
}
