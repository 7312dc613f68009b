//! Decides what a sender does with each section of its source.

use alloc::collections::BTreeMap;

use comity_units::Rate;

use crate::frame::Frame;
use crate::reason::Reason;
use crate::shedder::Shedder;

/// The remembered numbers of a stream: no section lies further behind one that needs it.
const REMEMBERED: usize = 1_024;

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
        // Only the latest are remembered.
        for offset in count.saturating_sub(REMEMBERED as u64)..count {
            numbers.insert(
                first.saturating_add(offset),
                first_id.saturating_add(offset),
            );
        }
    }
}

/// The numbers of a stream's sections in the connection, by their numbers at the source.
#[derive(Debug, Default)]
struct Numbers {
    /// The first number that was offered.
    first: Option<u64>,
    in_connection: BTreeMap<u64, u64>,
}

/// A section that could have a number in the connection, and has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NotSubmitted;

impl Numbers {
    fn needed(&self, needs: Option<u64>) -> Result<Option<u64>, NotSubmitted> {
        let Some(needs) = needs else { return Ok(None) };
        match (self.in_connection.get(&needs), self.oldest()) {
            (Some(&id), _) => Ok(Some(id)),
            // It is older than this connection, or forgotten: the receiver may have it.
            (None, oldest) if oldest.is_none_or(|oldest| needs < oldest) => Ok(None),
            (None, _) => Err(NotSubmitted),
        }
    }

    fn oldest(&self) -> Option<u64> {
        match self.in_connection.len() < REMEMBERED {
            true => self.first,
            false => self
                .in_connection
                .first_key_value()
                .map(|(&number, _)| number),
        }
    }

    fn see(&mut self, number: u64) {
        self.first.get_or_insert(number);
    }

    fn insert(&mut self, number: u64, id: u64) {
        self.in_connection.insert(number, id);
        if self.in_connection.len() > REMEMBERED {
            self.in_connection.pop_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_units::{Bytes, Time};

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
        for number in 103..103 + REMEMBERED as u64 {
            numbers.insert(number, number - 101);
        }
        assert_eq!(numbers.in_connection.len(), REMEMBERED);
        assert_eq!(needed(&numbers, 101), Ok(None), "forgotten by now");
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
                size: Bytes::new(1_000),
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
