//! The reassembly of one section, and sets of section numbers.

use alloc::collections::BTreeMap;
use core::ops::Range;

use comity_congestion::Ranges;
use comity_units::Time;

use super::{Gap, GapReason, Partial, Received};
use crate::timeline::clock::ClockMap;
use crate::timeline::section::{Meta, Payload, Reason};

/// A section after the arrival of its first byte.
#[derive(Debug)]
pub(super) struct Assembly<P: Payload> {
    pub(super) meta: Meta,
    /// The deadline in its packets, which can be later than that of `meta`.
    stated: Time,
    /// The latest deadline, on the receiver's clock. The sender's clock cannot postpone it.
    pub(super) latest: Time,
    buffer: P::Buffer,
    pub(super) have: Ranges<u32>,
    /// When the last byte arrived, and whether that was after the deadline.
    pub(super) completed: Option<(Time, bool)>,
    /// Why the sender will not send the rest, if it has reported that.
    pub(super) dropped: Option<Reason>,
    /// Whether its deadline passed before it was complete while deadlines are not enforced.
    pub(super) is_overdue: bool,
}

impl<P: Payload> Assembly<P> {
    /// Creates an empty section. Its deadline is that of `meta`, and at most the local time
    /// `latest`.
    pub(super) fn new(
        meta: Meta,
        clock: &ClockMap,
        latest: Time,
        buffer: P::Buffer,
        dropped: Option<Reason>,
    ) -> Self {
        Self {
            meta: limit_deadline(meta, clock, latest),
            stated: meta.deadline,
            latest,
            buffer,
            have: Ranges::default(),
            completed: None,
            dropped,
            is_overdue: false,
        }
    }

    /// Whether a packet describes the section as earlier ones do.
    pub(super) fn agrees(&self, meta: &Meta) -> bool {
        let stated = self.stated;
        let known = Meta {
            deadline: stated,
            ..self.meta
        };
        known == *meta
    }

    /// Accepts a piece. Returns how many of its bytes are new.
    pub(super) fn write_at(&mut self, range: Range<u32>, bytes: &[u8]) -> u32 {
        P::write_at(&mut self.buffer, range.start, bytes);
        self.have.insert(range, ())
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.have.total() == self.meta.length
    }

    /// Returns the section, or a gap with this reason if it is incomplete.
    pub(super) fn finish(self, reason: GapReason) -> Result<Received<P>, Gap<P>> {
        let Self { meta, buffer, .. } = self;
        let payload = P::finish(buffer);
        if let Some((completed, is_late)) = self.completed {
            return Ok(Received {
                meta,
                payload,
                completed,
                is_late,
            });
        }
        Err(Gap {
            stream: meta.stream,
            section: meta.section,
            count: 1,
            reason,
            partial: Some(Partial {
                meta,
                payload,
                missing: self.have.missing(0..meta.length),
            }),
        })
    }
}

/// Limits the deadline, if there is one, to the local time `latest`.
pub(super) fn limit_deadline(meta: Meta, clock: &ClockMap, latest: Time) -> Meta {
    let deadline = match meta.deadline.is_never() {
        true => meta.deadline,
        false => meta.deadline.min(clock.to_sender(latest)),
    };
    Meta { deadline, ..meta }
}

/// Section numbers as runs that neither touch nor overlap.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// End by start.
    runs: BTreeMap<u64, u64>,
}

impl Runs {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.end_of_run(number).is_some()
    }

    /// The end of the run that contains this number.
    pub(super) fn end_of_run(&self, number: u64) -> Option<u64> {
        let (_, &end) = self.runs.range(..=number).next_back()?;
        (number < end).then_some(end)
    }

    /// The start of the first run that begins at or after this number.
    pub(super) fn next_start(&self, number: u64) -> Option<u64> {
        self.runs.range(number..).next().map(|(&start, _)| start)
    }

    /// The end of the last run that begins before this number.
    pub(super) fn last_end(&self, number: u64) -> Option<u64> {
        self.runs.range(..number).next_back().map(|(_, &end)| end)
    }

    /// The count of numbers in the set below this one.
    pub(super) fn below(&self, number: u64) -> u64 {
        let runs = self.runs.range(..number);
        runs.map(|(&start, &end)| end.min(number) - start).sum()
    }

    /// Adds numbers that are not in the set.
    pub(super) fn insert(&mut self, new: Range<u64>) {
        if new.is_empty() {
            return;
        }
        let end = self.runs.remove(&new.end).unwrap_or(new.end);
        if let Some((_, last)) = self.runs.range_mut(..new.start).next_back()
            && *last == new.start
        {
            *last = end;
        } else {
            self.runs.insert(new.start, end);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// Removes the run that begins at this number. Returns its end.
    pub(super) fn take_run(&mut self, start: u64) -> Option<u64> {
        self.runs.remove(&start)
    }

    /// Keeps only the `most` highest runs.
    pub(super) fn keep_latest(&mut self, most: usize) {
        while self.runs.len() > most {
            self.runs.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const NUMBERS: u64 = 9;

    /// The set whose numbers are the bits of a number.
    fn of(bits: u64) -> Runs {
        let mut runs = Runs::default();
        for at in (0..NUMBERS).filter(|at| bits >> at & 1 == 1) {
            runs.insert(at..at + 1);
        }
        runs
    }

    fn mask(range: Range<u64>) -> u64 {
        range.map(|at| 1 << at).sum()
    }

    /// The runs of ones, found bit by bit.
    fn naive(bits: u64) -> Vec<Range<u64>> {
        let is_in = |at: u64| bits >> at & 1 == 1;
        let starts = (0..NUMBERS).filter(|&at| is_in(at) && (at == 0 || !is_in(at - 1)));
        let end = |start| (start..=NUMBERS).find(|&at| !is_in(at));
        starts
            .map(|start| start..end(start).expect("the bits above are zero"))
            .collect()
    }

    fn list(runs: &Runs) -> Vec<Range<u64>> {
        runs.runs.iter().map(|(&start, &end)| start..end).collect()
    }

    /// Every set of nine numbers, with every number, range and operation. A set has only one
    /// representation, so this covers every sequence of operations.
    #[test]
    #[cfg_attr(miri, ignore = "too many cases for an interpreter")]
    fn every_operation_on_every_small_set_is_that_of_sets() {
        for before in 0..1_u64 << NUMBERS {
            let runs = of(before);
            let expected = naive(before);
            assert_eq!(
                (list(&runs), runs.len()),
                (expected.clone(), expected.len())
            );
            for number in 0..=NUMBERS {
                let around = expected.iter().find(|run| run.contains(&number));
                assert_eq!(runs.contains(number), around.is_some());
                assert_eq!(runs.end_of_run(number), around.map(|run| run.end));
                let next = expected.iter().find(|run| run.start >= number);
                assert_eq!(runs.next_start(number), next.map(|run| run.start));
                let last = expected.iter().rfind(|run| run.start < number);
                assert_eq!(runs.last_end(number), last.map(|run| run.end));
                let below = before & mask(0..number);
                assert_eq!(runs.below(number), u64::from(below.count_ones()));
                let mut less = of(before);
                let taken = expected.iter().find(|run| run.start == number).cloned();
                assert_eq!(less.take_run(number), taken.clone().map(|run| run.end));
                assert_eq!(list(&less), naive(before & !taken.map_or(0, mask)));
            }
            for most in 0..=expected.len() + 1 {
                let mut latest = of(before);
                latest.keep_latest(most);
                assert_eq!(
                    list(&latest),
                    expected[expected.len().saturating_sub(most)..]
                );
            }
            // Numbers in the set are not added again.
            let ranges =
                (0..=NUMBERS).flat_map(|start| (start..=NUMBERS).map(move |end| start..end));
            for range in ranges.filter(|range| mask(range.clone()) & before == 0) {
                let mut more = of(before);
                more.insert(range.clone());
                assert_eq!(list(&more), naive(before | mask(range)));
            }
        }
    }
}
