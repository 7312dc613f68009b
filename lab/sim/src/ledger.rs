//! Follows the sections of a flow from submission to delivery or gap, for all hosts.

use std::collections::VecDeque;

use comity_frames::{Decodability, Frame, FrameType};
use comity_transport::timeline::inbox::GapReason;
use comity_transport::timeline::{Reason, SectionId};
use comity_units::{Span, Time};

use crate::histogram::Distribution;
use crate::report::{FrameCounts, SectionBytes, SectionsReport};

/// Follows each section from its submission to its delivery or gap.
#[derive(Debug, Default)]
pub struct Ledger {
    warmup: Time,
    /// From a section's source time to its deadline.
    latency: Option<Span>,
    /// The sections from the first one with an open fate on.
    entries: VecDeque<Entry>,
    first: u64,
    decodability: Decodability,
    counts: SectionsReport,
    age: Distribution,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    source_time: Time,
    frame_type: FrameType,
    bytes: u64,
    needs: Option<u64>,
    is_measured: bool,
    fate: Option<Fate>,
}

impl Entry {
    fn deadline(&self, latency: Option<Span>) -> Time {
        latency.map_or(Time::MAX, |latency| self.source_time + latency)
    }
}

/// A section whose fate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The type of its frame.
    pub frame_type: FrameType,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its deadline; [`Time::MAX`] without one.
    pub deadline: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    OnTime,
    Late,
    Gap,
}

impl Ledger {
    /// Creates a ledger that counts sections submitted from `warmup` on, with deadlines `latency`
    /// after submission.
    pub fn new(warmup: Time, latency: Option<Span>) -> Self {
        Self {
            warmup,
            latency,
            ..Self::default()
        }
    }

    /// Records that the transport accepted the next frame as a section.
    pub fn on_submitted(&mut self, frame: &Frame) {
        self.enter(
            frame,
            None,
            |counts| &mut counts.submitted,
            |bytes| &mut bytes.submitted,
        );
    }

    /// Records that the transport refused the next frame and skipped its number.
    pub fn on_refused(&mut self, frame: &Frame) {
        self.enter(
            frame,
            Some(Fate::Gap),
            |counts| &mut counts.refused,
            |bytes| &mut bytes.refused,
        );
    }

    /// Records that the source shed the next frame and skipped its number.
    pub fn on_shed(&mut self, frame: &Frame) {
        self.enter(
            frame,
            Some(Fate::Gap),
            |counts| &mut counts.shed,
            |bytes| &mut bytes.shed,
        );
    }

    fn enter(
        &mut self,
        frame: &Frame,
        fate: Option<Fate>,
        count: impl FnOnce(&mut SectionsReport) -> &mut u64,
        bytes: impl FnOnce(&mut SectionBytes) -> &mut u64,
    ) {
        let is_measured = frame.source_time >= self.warmup;
        if is_measured {
            *count(&mut self.counts) += 1;
            *bytes(&mut self.counts.bytes) += frame.size.get();
            if let Some(frames) = frames(&mut self.counts, frame.frame_type) {
                frames.submitted += 1;
            }
        }
        self.entries.push_back(Entry {
            source_time: frame.source_time,
            frame_type: frame.frame_type,
            bytes: frame.size.get(),
            needs: frame.needs,
            is_measured,
            fate,
        });
        self.judge();
    }

    /// Records that a section was complete at `completed`. Returns it, the first time.
    pub fn on_section(&mut self, section: SectionId, completed: Time) -> Option<Settled> {
        let latency = self.latency;
        let fate = |entry: &Entry| {
            if completed <= entry.deadline(latency) {
                Fate::OnTime
            } else {
                Fate::Late
            }
        };
        let (entry, fate) = self.settle(section, fate)?;
        if entry.is_measured {
            self.age
                .record(completed.saturating_since(entry.source_time));
            if fate == Fate::OnTime {
                self.counts.on_time += 1;
                self.counts.bytes.on_time += entry.bytes;
                if let Some(frames) = frames(&mut self.counts, entry.frame_type) {
                    frames.on_time += 1;
                }
            } else {
                self.counts.late += 1;
            }
        }
        self.judge();
        Some(self.settled(&entry))
    }

    /// Records a gap: bytes of the section never arrive. Returns the section, the first time.
    pub fn on_gap(&mut self, section: SectionId, reason: GapReason) -> Option<Settled> {
        let (entry, _) = self.settle(section, |_| Fate::Gap)?;
        if entry.is_measured {
            let gaps = &mut self.counts.gaps;
            *match reason {
                GapReason::Closed => &mut gaps.closed,
                GapReason::Obsolete => &mut gaps.obsolete,
                GapReason::Overdue => &mut gaps.overdue,
                GapReason::Dropped(Reason::Dependency) => &mut gaps.dependency,
                GapReason::Dropped(Reason::Expired) => &mut gaps.expired,
                GapReason::Dropped(Reason::Infeasible) => &mut gaps.infeasible,
                GapReason::Dropped(Reason::Cancelled | Reason::Shed) => &mut gaps.withdrawn,
            } += 1;
        }
        self.judge();
        Some(self.settled(&entry))
    }

    fn settled(&self, entry: &Entry) -> Settled {
        Settled {
            frame_type: entry.frame_type,
            bytes: entry.bytes,
            deadline: entry.deadline(self.latency),
        }
    }

    /// Sets the fate of a section that has none yet.
    fn settle(
        &mut self,
        section: SectionId,
        fate: impl FnOnce(&Entry) -> Fate,
    ) -> Option<(Entry, Fate)> {
        let index = usize::try_from(section.0.checked_sub(self.first)?).ok()?;
        let entry = self.entries.get_mut(index)?;
        if entry.fate.is_some() {
            return None;
        }
        let fate = fate(entry);
        entry.fate = Some(fate);
        Some((*entry, fate))
    }

    /// Judges in order which sections can be decoded, up to the first open one.
    fn judge(&mut self) {
        while let Some(&entry) = self.entries.front()
            && let Some(fate) = entry.fate
        {
            self.entries.pop_front();
            let number = self.first;
            self.first += 1;
            let is_decodable = self
                .decodability
                .judge(number, entry.needs, fate == Fate::OnTime);
            if entry.is_measured && is_decodable {
                self.counts.decodable += 1;
                self.counts.bytes.decodable += entry.bytes;
                if let Some(frames) = frames(&mut self.counts, entry.frame_type) {
                    frames.decodable += 1;
                }
            }
        }
    }

    /// The report at the end.
    pub fn report(&self) -> SectionsReport {
        let mut counts = self.counts.clone();
        for entry in &self.entries {
            if entry.is_measured && entry.fate.is_none() {
                counts.open += 1;
                counts.bytes.open += entry.bytes;
                if let Some(frames) = frames(&mut counts, entry.frame_type) {
                    frames.open += 1;
                }
            }
        }
        // Slack is latency minus age, so its low quantiles come from the high ones of the age.
        let slack = |share| Some(self.latency?.as_secs_f64() - self.age.quantile(share)?);
        SectionsReport {
            age: self.age.summary(),
            slack_p1_s: slack(0.99),
            slack_median_s: slack(0.5),
            ..counts
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.age.memory()
    }
}

fn frames(counts: &mut SectionsReport, frame_type: FrameType) -> Option<&mut FrameCounts> {
    match frame_type {
        FrameType::Key | FrameType::Intra => Some(&mut counts.intra),
        FrameType::Predicted { .. } => Some(&mut counts.predicted),
        FrameType::Bidirectional { .. } => Some(&mut counts.bidirectional),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use comity_units::DataSize;

    use super::*;

    const LATENCY: Span = Span::from_millis(100);
    const I: FrameType = FrameType::Key;
    const P: FrameType = FrameType::Predicted { referenced: true };
    const B: FrameType = FrameType::Bidirectional { referenced: false };
    const OTHER: FrameType = FrameType::Slice;

    fn frame(number: u64, frame_type: FrameType, needs: Option<u64>) -> Frame {
        Frame {
            stream: 0,
            number,
            frame_type,
            position: 0,
            needs,
            is_bound: needs.is_some(),
            source_time: Time::from_millis(10 * number),
            // 100, 200, 400, .. bytes: each subset has a different sum.
            size: DataSize::new(100 << number),
        }
    }

    /// Submits frames of these types, 10 ms apart. Each needs the reference before it.
    fn submit(ledger: &mut Ledger, types: &[FrameType]) {
        let mut last = None;
        for (number, &frame_type) in (0..).zip(types) {
            let needs = if frame_type == I { None } else { last };
            ledger.on_submitted(&frame(number, frame_type, needs));
            if frame_type.is_reference() {
                last = Some(number);
            }
        }
    }

    fn arrive(ledger: &mut Ledger, number: u64, age: u64) {
        let completed = Time::from_millis(10 * number + age);
        ledger.on_section(SectionId(number), completed);
    }

    #[test]
    fn what_needs_a_lost_frame_is_not_decodable() {
        let mut ledger = Ledger::new(Time::ZERO, Some(LATENCY));
        submit(&mut ledger, &[I, P, B, P, B, I, P]);
        for number in [0, 2, 3, 4, 6] {
            arrive(&mut ledger, number, 40);
        }
        arrive(&mut ledger, 5, 101);
        ledger.on_gap(SectionId(1), GapReason::Overdue);
        let report = ledger.report();
        assert_eq!((report.submitted, report.on_time, report.late), (7, 5, 1));
        assert_eq!(
            (report.gaps.overdue, report.gaps.sum(), report.open),
            (1, 1, 0)
        );
        // Only the first frame: the second is missing, and the second group began late.
        assert_eq!(report.decodable, 1);
        assert_eq!(
            report.bytes,
            SectionBytes {
                submitted: 12_700,
                refused: 0,
                shed: 0,
                on_time: 100 + 400 + 800 + 1_600 + 6_400,
                decodable: 100,
                open: 0
            }
        );
        assert_eq!(report.predicted.on_time, 2);
        assert_eq!(report.predicted.decodable, 0);
        assert_eq!(
            report.intra,
            FrameCounts {
                submitted: 2,
                on_time: 1,
                decodable: 1,
                open: 0
            }
        );
    }

    #[test]
    fn what_is_refused_or_shed_counts_as_offered_from_the_warm_up_on() {
        let mut ledger = Ledger::new(Time::from_millis(10), Some(LATENCY));
        ledger.on_refused(&frame(0, I, None));
        ledger.on_refused(&frame(1, I, None));
        ledger.on_shed(&frame(2, B, Some(1)));
        ledger.on_submitted(&frame(3, P, Some(1)));
        ledger.on_submitted(&frame(4, I, None));
        ledger.on_submitted(&frame(5, P, Some(4)));
        // The transport reports skipped numbers as gaps; the ledger has counted them already.
        ledger.on_gap(SectionId(2), GapReason::Dropped(Reason::Shed));
        arrive(&mut ledger, 3, 40);
        arrive(&mut ledger, 4, 40);
        let mut report = ledger.report();
        assert_eq!((report.refused, report.bytes.refused), (1, 200));
        assert_eq!((report.shed, report.bytes.shed), (1, 400));
        assert_eq!((report.submitted, report.gaps.sum()), (3, 0));
        // The fourth needs a refused frame, the sixth is open.
        assert_eq!((report.on_time, report.decodable, report.open), (2, 1, 1));
        let of = |counts: FrameCounts| (counts.submitted, counts.on_time);
        assert_eq!(
            (of(report.intra), of(report.bidirectional)),
            ((2, 1), (1, 0))
        );
        assert_eq!(report.carriable_bytes(), None, "there is no share");
        // All but the first and the last: 200 + 400 + 800 + 1,600.
        report.equal_share_bytes = Some(3_001);
        assert_eq!(report.carriable_bytes(), Some(3_000));
        report.equal_share_bytes = Some(2_999);
        assert_eq!(report.carriable_bytes(), Some(2_999));
    }

    #[test]
    fn fates_count_once_from_the_warm_up_on_and_in_any_order() {
        let mut ledger = Ledger::new(Time::from_millis(10), Some(LATENCY));
        submit(&mut ledger, &[OTHER; 4]);
        arrive(&mut ledger, 2, 30);
        arrive(&mut ledger, 2, 30);
        ledger.on_gap(SectionId(2), GapReason::Closed);
        arrive(&mut ledger, 0, 200);
        let report = ledger.report();
        assert_eq!((report.submitted, report.on_time, report.late), (3, 1, 0));
        assert_eq!(
            (report.open, report.decodable),
            (2, 0),
            "number 1 is open still"
        );
        assert!((report.slack_p1_s.unwrap() - 0.07).abs() < 0.001);
        let bytes = report.bytes;
        assert_eq!((bytes.submitted, bytes.on_time), (1_400, 400));
        assert_eq!((bytes.open, bytes.decodable), (1_000, 0));
        arrive(&mut ledger, 1, 100);
        assert_eq!(
            ledger.report().decodable,
            2,
            "the deadline itself is in time"
        );
    }
}
