//! Which frames a sender submits, by the reports of its receiver.

use crate::frame::FrameType;

/// The frames that a sender submits (TLTCP, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schedule {
    /// Intra frames alone.
    Intra,
    /// Intra and predicted frames.
    IntraAndPredicted,
    /// All frames.
    All,
}

impl Schedule {
    /// Whether it includes frames of this type.
    pub const fn takes(self, kind: FrameType) -> bool {
        match kind {
            FrameType::Bidirectional { .. } => matches!(self, Self::All),
            FrameType::Predicted { .. } => !matches!(self, Self::Intra),
            _ => true,
        }
    }

    const fn less(self) -> Self {
        match self {
            Self::All => Self::IntraAndPredicted,
            _ => Self::Intra,
        }
    }

    const fn more(self) -> Self {
        match self {
            Self::Intra => Self::IntraAndPredicted,
            _ => Self::All,
        }
    }
}

/// Chooses the schedule by reports of the frames that were in time.
///
/// If the share in time is below 95 %, the sender drops one type of frame. After five reports in a
/// row without a missed frame it adds the type again.
///
/// Only frames of the present choice count, and of these only the ones submitted when no frame of
/// an earlier choice was unsent. Earlier frames settle up to a lifetime and a round trip later, and
/// the first frames of a choice wait behind them. If either counted, the sender would drop a second
/// type of frame although dropping the first one was enough.
///
/// # Source
/// Mukherjee and Brecht, "Time-lined TCP for the TCP-friendly Delivery of Streaming Media", ICNP
/// 2000, section 4.
///
/// Differs from the paper in: 1. the rule: the paper names the three schedules, says that feedback
/// of the playback application may lead to them, and leaves the rest to the application. 2. the
/// sender adds a type of frame again when the path has room; the paper only speaks of decreasing
/// bandwidth. 3. a frame in time counts even if frames that it needs are missing.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    schedule: Schedule,
    choice: u32,
    /// The bytes submitted before the last change.
    changed_at: u64,
    /// Consecutive reports without a missed frame.
    calm: u32,
}

/// The share in time below which a type of frame is dropped.
const TOO_FEW: f64 = 0.95;
/// The reports in a row without a missed frame after which a type is added again.
const CALM: u32 = 5;

impl Default for Selection {
    fn default() -> Self {
        Self {
            schedule: Schedule::All,
            choice: 0,
            changed_at: 0,
            calm: 0,
        }
    }
}

impl Selection {
    /// The present schedule.
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The number of the present choice, from 0: how often the schedule was changed.
    pub const fn choice(&self) -> u32 {
        self.choice
    }

    /// The choice for which the next frame counts, while `unsent` of the `submitted` bytes are
    /// unsent: the present choice, or `None` if bytes of an earlier choice are unsent.
    pub const fn judged(&self, submitted: u64, unsent: u64) -> Option<u32> {
        if self.changed_at + unsent > submitted {
            None
        } else {
            Some(self.choice)
        }
    }

    /// Handles a report about frames of the present choice, when `submitted` bytes were submitted.
    pub fn on_report(&mut self, in_time: u64, missed: u64, submitted: u64) {
        let settled = in_time + missed;
        let before = self.schedule;
        if missed > 0 {
            self.calm = 0;
            if (in_time as f64) < TOO_FEW * settled as f64 {
                self.schedule = self.schedule.less();
            }
        } else if settled > 0 {
            self.calm += 1;
            if self.calm >= CALM {
                self.schedule = self.schedule.more();
                self.calm = 0;
            }
        }
        if self.schedule != before {
            self.choice += 1;
            self.changed_at = submitted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const I: FrameType = FrameType::Key;
    const P: FrameType = FrameType::Predicted { referenced: true };
    const B: FrameType = FrameType::Bidirectional { referenced: false };

    #[test]
    fn b_frames_are_left_out_first_then_p_frames_and_never_i_frames() {
        let taken = |schedule: Schedule| [I, P, B].map(|kind| schedule.takes(kind));
        let [all, no_b, only_i] = [
            [true, true, true],
            [true, true, false],
            [true, false, false],
        ];
        let mut schedule = Schedule::All;
        for expected in [all, no_b, only_i, only_i] {
            assert_eq!(taken(schedule), expected);
            schedule = schedule.less();
        }
        for expected in [only_i, no_b, all, all] {
            assert_eq!(taken(schedule), expected);
            schedule = schedule.more();
        }
    }

    #[test]
    fn too_few_in_time_drop_a_type_and_calm_brings_it_back() {
        let mut selection = Selection::default();
        selection.on_report(95, 5, 1_000);
        assert_eq!(selection.schedule(), Schedule::All, "just enough");
        selection.on_report(94, 6, 1_000);
        assert_eq!(selection.schedule(), Schedule::IntraAndPredicted);
        assert_eq!(
            (selection.judged(1_500, 501), selection.judged(1_500, 500)),
            (None, Some(1))
        );
        selection.on_report(0, 9, 2_000);
        selection.on_report(0, 9, 2_000);
        assert_eq!(selection.schedule(), Schedule::Intra, "never less");
        for _ in 0..CALM - 1 {
            selection.on_report(3, 0, 3_000);
        }
        selection.on_report(0, 0, 3_000);
        assert_eq!(
            selection.schedule(),
            Schedule::Intra,
            "nothing settled is no report"
        );
        selection.on_report(3, 0, 3_000);
        assert_eq!(
            (selection.schedule(), selection.choice()),
            (Schedule::IntraAndPredicted, 3)
        );
    }
}
