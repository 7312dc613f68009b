//! Decides what a sender does with each section of its source.

use alloc::collections::BTreeMap;

use comity_units::Rate;

use crate::frame::Frame;
use crate::reason::Reason;
use crate::shedder::Shedder;

/// The remembered numbers of a stream: no section lies further behind one that needs it.
const REMEMBERED: u64 = 1_024;

/// A section of a source, without its content.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    /// Its stream.
    pub stream: u16,
    /// Its number in that stream, at the source.
    pub number: u64,
    /// The number at the source of an earlier section without which it is worthless.
    pub needs: Option<u64>,
    /// The frame in it, for the shedder; sections without one are never shed.
    pub frame: Option<&'a Frame>,
}

impl<'a> From<&'a Frame> for Offered<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self {
            stream: frame.stream,
            number: frame.number,
            needs: frame.bound_to(),
            frame: Some(frame),
        }
    }
}

/// What to do with a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Submit it to the connection.
    Submit {
        /// The number in the connection of the section that it needs.
        needs: Option<u64>,
    },
    /// Skip one number of its stream in the connection: the receiver then reports a gap with this
    /// reason.
    Skip(Reason),
}

/// Sheds frames, and keeps the numbers of a source's sections in a connection.
///
/// A host offers each section, takes the [`Step`], and reports the number that the connection
/// returned for the section or for the skipped number. The host submits in its own way: at once,
/// or when there is room.
///
/// ```
/// use comity_frames::{Offered, Reason, Step, Submitter};
///
/// let section = |number, needs| Offered { stream: 0, number, needs, frame: None };
/// let mut submitter = Submitter::new(None);
/// assert_eq!(submitter.step(&section(7, None), None), Step::Submit { needs: None });
/// submitter.on_numbered(0, 7, 0);
/// assert_eq!(submitter.step(&section(8, Some(7)), None), Step::Submit { needs: Some(0) });
/// // The connection did not accept section 8.
/// assert_eq!(submitter.step(&section(9, Some(8)), None), Step::Skip(Reason::Dependency));
/// ```
#[derive(Debug)]
pub struct Submitter {
    shedder: Option<Shedder>,
    streams: BTreeMap<u16, Numbers>,
}

impl Submitter {
    /// Sheds nothing without a shedder.
    pub fn new(shedder: Option<Shedder>) -> Self {
        Self {
            shedder,
            streams: BTreeMap::new(),
        }
    }

    /// Decides about the next section of the source. `target` is the rate up to which frames are
    /// kept, if it is known.
    pub fn step(&mut self, section: &Offered<'_>, target: Option<Rate>) -> Step {
        let numbers = self.streams.entry(section.stream).or_default();
        numbers.see(section.number);
        let Ok(needs) = numbers.needed(section.needs) else {
            return Step::Skip(Reason::Dependency);
        };
        if let (Some(frame), Some(shedder)) = (section.frame, &mut self.shedder)
            && let Err(reason) = shedder.offer_at(target, frame)
        {
            return Step::Skip(reason);
        }
        Step::Submit { needs }
    }

    /// A section of the source has this number in the connection, or the number was skipped for
    /// it.
    pub fn on_numbered(&mut self, stream: u16, number: u64, in_connection: u64) {
        let numbers = self.streams.entry(stream).or_default();
        numbers.insert(number, in_connection);
    }

    /// The source itself does not have `count` sections from `first` on. They have numbers in the
    /// connection from `in_connection` on; `None` if the connection has ended.
    pub fn on_missing(&mut self, stream: u16, first: u64, count: u64, in_connection: Option<u64>) {
        let numbers = self.streams.entry(stream).or_default();
        numbers.see(first);
        let Some(first_id) = in_connection else {
            return;
        };
        numbers.insert_run(first, first_id, count);
    }
}

/// The numbers of a stream's sections in the connection, by their numbers at the source.
#[derive(Debug, Default)]
struct Numbers {
    /// The first number that was offered.
    first: Option<u64>,
    /// Runs of consecutive numbers at both ends, by their first numbers at the source.
    runs: BTreeMap<u64, Run>,
    /// The numbers in all runs.
    count: u64,
}

/// Consecutive numbers in the connection.
#[derive(Clone, Copy, Debug)]
struct Run {
    id: u64,
    count: u64,
}

/// A section that could have a number in the connection, and has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NotSubmitted;

impl Numbers {
    fn needed(&self, needs: Option<u64>) -> Result<Option<u64>, NotSubmitted> {
        let Some(needs) = needs else { return Ok(None) };
        match (self.id_of(needs), self.oldest()) {
            (Some(id), _) => Ok(Some(id)),
            // It is older than this connection, or forgotten: the receiver may have it.
            (None, oldest) if oldest.is_none_or(|oldest| needs < oldest) => Ok(None),
            (None, _) => Err(NotSubmitted),
        }
    }

    fn id_of(&self, number: u64) -> Option<u64> {
        let (&first, run) = self.runs.range(..=number).next_back()?;
        let offset = number - first;
        (offset < run.count).then_some(run.id.saturating_add(offset))
    }

    fn oldest(&self) -> Option<u64> {
        match self.count < REMEMBERED {
            true => self.first,
            false => self.runs.first_key_value().map(|(&number, _)| number),
        }
    }

    fn see(&mut self, number: u64) {
        self.first.get_or_insert(number);
    }

    fn insert(&mut self, number: u64, id: u64) {
        self.insert_run(number, id, 1);
    }

    /// The sections from `first` on have the numbers from `id` on. Of all, only the latest are
    /// remembered. A run of any length costs as much as a section.
    fn insert_run(&mut self, first: u64, id: u64, count: u64) {
        if count == 0 {
            return;
        }
        let skipped = count.saturating_sub(REMEMBERED);
        let (first, id) = (first.saturating_add(skipped), id.saturating_add(skipped));
        let count = (count - skipped).min(u64::MAX - first);
        self.forget(first, first + count);
        match self.runs.range_mut(..first).next_back() {
            Some((&before, run))
                if before + run.count == first && run.id.saturating_add(run.count) == id =>
            {
                run.count += count;
            }
            _ => drop(self.runs.insert(first, Run { id, count })),
        }
        self.count += count;
        while self.count > REMEMBERED
            && let Some((&oldest, run)) = self.runs.first_key_value()
        {
            let end = oldest + run.count.min(self.count - REMEMBERED);
            self.forget(oldest, end);
        }
    }

    /// Forgets the numbers from `start` up to `end`.
    fn forget(&mut self, start: u64, end: u64) {
        while let Some((&first, &run)) = self.runs.range(..end).next_back()
            && first + run.count > start
        {
            self.runs.remove(&first);
            let after = (first + run.count).saturating_sub(end);
            if after > 0 {
                let id = run.id + (run.count - after);
                self.runs.insert(end, Run { id, count: after });
            }
            let before = start.saturating_sub(first);
            if before > 0 {
                let id = run.id;
                self.runs.insert(first, Run { id, count: before });
            }
            self.count -= run.count - before - after;
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_units::{DataSize, Time};
    use proptest::prelude::*;

    use super::*;
    use crate::frame::FrameType;
    use crate::shedder::ShedderConfig;

    #[test]
    fn needs_are_numbers_of_the_connection() {
        let needed = |numbers: &Numbers, number| numbers.needed(Some(number));
        let mut numbers = Numbers::default();
        assert_eq!(numbers.needed(None), Ok(None));
        numbers.see(100);
        assert_eq!(needed(&numbers, 99), Ok(None), "from before");
        numbers.insert(100, 0);
        numbers.see(101);
        numbers.insert(102, 1);
        assert_eq!(needed(&numbers, 100), Ok(Some(0)));
        assert_eq!(needed(&numbers, 102), Ok(Some(1)));
        assert_eq!(needed(&numbers, 101), Err(NotSubmitted));
        for number in 103..103 + REMEMBERED {
            numbers.insert(number, number - 101);
        }
        assert_eq!((numbers.count, numbers.runs.len()), (REMEMBERED, 1));
        assert_eq!(needed(&numbers, 101), Ok(None), "forgotten by now");
    }

    proptest! {
        /// The runs agree with a map of single numbers.
        #[test]
        fn runs_are_maps_of_numbers(
            inserts in prop::collection::vec((0_u64..4_000, 0_u64..9_000, 1_u64..1_500), 1..30),
        ) {
            let mut numbers = Numbers::default();
            let mut table = BTreeMap::new();
            for (first, id, count) in inserts {
                numbers.insert_run(first, id, count);
                for offset in count.saturating_sub(REMEMBERED)..count {
                    table.insert(first + offset, id + offset);
                }
                while table.len() as u64 > REMEMBERED {
                    table.pop_first();
                }
                prop_assert_eq!(numbers.count, table.len() as u64);
                for number in 0..6_000 {
                    prop_assert_eq!(numbers.id_of(number), table.get(&number).copied());
                }
            }
        }
    }

    #[test]
    fn a_run_of_missing_sections_costs_as_much_as_one() {
        let mut submitter = Submitter::new(None);
        for run in 0..500 {
            submitter.on_missing(3, run * 5_000, 5_000, Some(run * 5_000));
        }
        assert_eq!(submitter.streams[&3].runs.len(), 1);
    }

    #[test]
    fn missing_sections_have_numbers_only_in_an_open_connection() {
        let mut submitter = Submitter::new(None);
        let needing = |needs| Offered {
            stream: 1,
            number: 5_000,
            needs: Some(needs),
            frame: None,
        };
        submitter.on_missing(1, 10, 3_000, Some(0));
        let step = submitter.step(&needing(3_009), None);
        assert_eq!(step, Step::Submit { needs: Some(2_999) });
        let step = submitter.step(&needing(10), None);
        assert_eq!(step, Step::Submit { needs: None }, "forgotten by now");
        submitter.on_missing(1, 3_010, 1, None);
        let step = submitter.step(&needing(3_010), None);
        assert_eq!(step, Step::Skip(Reason::Dependency));
    }

    #[test]
    fn a_shed_frame_is_skipped_and_other_sections_are_not() {
        let mut submitter = Submitter::new(Some(Shedder::new(ShedderConfig::default())));
        let mut steps = [0, 0];
        for number in 0..500 {
            let needs = (number % 10 > 0).then_some(number - number % 10);
            let frame = Frame {
                stream: 0,
                number,
                frame_type: match needs {
                    None => FrameType::Key,
                    Some(_) => FrameType::Bidirectional { referenced: false },
                },
                position: 0,
                needs,
                is_bound: needs.is_some(),
                source_time: Time::from_millis(40 * number),
                size: DataSize::new(1_000),
            };
            let target = Some(Rate::from_kbps(150));
            match submitter.step(&Offered::from(&frame), target) {
                Step::Submit {
                    needs: in_connection,
                } => {
                    assert_eq!(in_connection, needs);
                    steps[0] += 1;
                }
                Step::Skip(reason) => {
                    assert_eq!(reason, Reason::Shed);
                    steps[1] += 1;
                }
            }
            submitter.on_numbered(0, number, number);
            let sound = Offered {
                stream: 1,
                number,
                needs: None,
                frame: None,
            };
            assert_eq!(submitter.step(&sound, target), Step::Submit { needs: None });
        }
        // 200 kb/s over a path of 150 kb/s.
        assert!(steps[0] > 330 && steps[1] > 80, "{steps:?}");
    }
}
