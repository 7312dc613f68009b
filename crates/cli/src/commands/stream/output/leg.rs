//! One of those who are sent to.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use comity::{Connection, Reason, SectionId, SendError, StreamId, TargetBitrate, TrySendError};
use comity_media::{Shedder, ShedderConfig};
use comity_sim::network::skip_reason;

use super::super::media_unit::{MediaUnit, Missing};
use super::super::now;
use super::connected::Unsent;
use super::fates::{Fates, never_given};

/// How many numbers of each stream are remembered: more than any section lies behind what needs it.
const REMEMBERED: usize = 1_024;

/// A connection, and what was given to it.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) id: u64,
    pub(super) connection: Arc<Connection>,
    target: TargetBitrate,
    shedder: Option<Shedder>,
    streams: BTreeMap<u16, Numbers>,
    pub(super) fates: Option<Fates>,
    /// By when all that was given is settled.
    pub(super) settled: Settled,
    backlog: VecDeque<Waiting>,
    /// Of the sections in the backlog.
    backlog_bytes: u64,
}

/// What waits for room in the send buffer.
#[derive(Debug)]
enum Waiting {
    Section(MediaUnit),
    /// Number `number` of `stream`, which is missing.
    Missing {
        stream: u16,
        number: u64,
    },
}

impl Waiting {
    fn bytes(&self) -> usize {
        match self {
            Self::Section(passing) => passing.payload.len(),
            Self::Missing { .. } => 0,
        }
    }
}

/// When nothing more can become of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Settled {
    At(Instant),
    /// They have no deadline.
    Never,
}

/// The numbers that sections of a stream have at the input, and in the connection.
#[derive(Debug, Default)]
struct Numbers {
    /// The first one that was seen at all.
    first: Option<u64>,
    given: BTreeMap<u64, SectionId>,
}

impl Numbers {
    /// What `needs` is in the connection; an error where that was not given to it, though it could
    /// have been.
    fn needed(&self, needs: Option<u64>) -> Result<Option<SectionId>, NotGiven> {
        let Some(needs) = needs else { return Ok(None) };
        match (self.given.get(&needs), self.oldest()) {
            (Some(&id), _) => Ok(Some(id)),
            // It was before this connection, or is too long ago: the receiver may have it.
            (None, oldest) if oldest.is_none_or(|oldest| needs < oldest) => Ok(None),
            (None, _) => Err(NotGiven),
        }
    }

    fn oldest(&self) -> Option<u64> {
        match self.given.len() < REMEMBERED {
            true => self.first,
            false => self.given.first_key_value().map(|(&number, _)| number),
        }
    }

    fn see(&mut self, number: u64) {
        self.first.get_or_insert(number);
    }

    fn give(&mut self, number: u64, id: SectionId) {
        self.given.insert(number, id);
        if self.given.len() > REMEMBERED {
            self.given.pop_first();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NotGiven;

/// Why a section was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Its send buffer has no room now.
    NoRoom,
    Dependent,
    /// The path carries less than the source: it was shed, or what it needs was.
    Shed(Reason),
    Unconnected,
    Unfit,
}

impl Unsent {
    /// Counts it, and has the word for it.
    fn count(&mut self, refusal: Refusal) -> &'static str {
        let (count, word) = match refusal {
            // The connection counts what it skips.
            Refusal::Shed(Reason::Shed) => return "shed",
            Refusal::Shed(_) => return "dependency",
            Refusal::NoRoom => (&mut self.no_room, "no room"),
            Refusal::Dependent => (&mut self.dependent, "dependency"),
            Refusal::Unconnected => (&mut self.unconnected, "unconnected"),
            Refusal::Unfit => (&mut self.unfit, "unfit"),
        };
        *count += 1;
        word
    }
}

/// Where it is counted and listed what was given to nobody.
#[derive(Debug)]
pub(super) struct Books<'a> {
    pub(super) unsent: &'a mut Unsent,
    /// The list, where one is kept.
    pub(super) missing: Option<&'a mut Vec<Missing>>,
}

impl Books<'_> {
    fn enter(&mut self, passing: &MediaUnit, refusal: Refusal) {
        let word = self.unsent.count(refusal);
        if let Some(missing) = &mut self.missing {
            missing.push(never_given(passing, word));
        }
    }
}

impl Leg {
    /// Follows what becomes of sections with `follows`, and leaves out pictures with `sheds`.
    pub(super) fn new(id: u64, connection: Arc<Connection>, follows: bool, sheds: bool) -> Self {
        Self {
            id,
            target: connection.target_bitrate(),
            fates: follows.then(|| Fates::new(&connection)),
            connection,
            shedder: sheds.then(|| Shedder::new(ShedderConfig::default())),
            streams: BTreeMap::new(),
            settled: Settled::At(now()),
            backlog: VecDeque::new(),
            backlog_bytes: 0,
        }
    }

    /// Gives it a section that is left out where there is no room.
    pub(super) fn give(&mut self, passing: &MediaUnit, books: &mut Books<'_>) {
        if let Err(refusal) = self.offer(passing) {
            if refusal == Refusal::NoRoom {
                self.announce(passing.stream, passing.number, Reason::Cancelled);
            }
            books.enter(passing, refusal);
        }
    }

    /// Gives it a section that waits for its turn where there is no room.
    pub(super) fn queue(&mut self, passing: &MediaUnit, books: &mut Books<'_>) {
        self.flush(books);
        let refused = match self.backlog.is_empty() {
            true => self.offer(passing),
            false => Err(Refusal::NoRoom),
        };
        match refused {
            Ok(()) => {}
            Err(Refusal::NoRoom) => self.wait(Waiting::Section(passing.clone())),
            Err(refusal) => books.enter(passing, refusal),
        }
    }

    /// Tells it that a section is missing, in its turn.
    pub(super) fn skip(&mut self, stream: u16, number: u64) {
        match self.backlog.is_empty() {
            true => self.announce(stream, number, Reason::Cancelled),
            false => self.wait(Waiting::Missing { stream, number }),
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        self.backlog_bytes += waiting.bytes() as u64;
        self.backlog.push_back(waiting);
    }

    /// Gives it what waits for room, as far as there is some.
    pub(super) fn flush(&mut self, books: &mut Books<'_>) {
        while let Some(waiting) = self.backlog.pop_front() {
            match &waiting {
                Waiting::Missing { stream, number } => {
                    self.announce(*stream, *number, Reason::Cancelled);
                }
                Waiting::Section(passing) => match self.offer(passing) {
                    Err(Refusal::NoRoom) => {
                        self.backlog.push_front(waiting);
                        return;
                    }
                    Err(refusal) => books.enter(passing, refusal),
                    Ok(()) => {}
                },
            }
            self.backlog_bytes -= waiting.bytes() as u64;
        }
    }

    /// The bytes that wait for room.
    pub(super) const fn behind(&self) -> u64 {
        self.backlog_bytes
    }

    /// Gives up what waits for room: nobody is given it.
    pub(super) fn forsake(&mut self, books: &mut Books<'_>) {
        self.backlog_bytes = 0;
        for waiting in self.backlog.drain(..) {
            if let Waiting::Section(passing) = waiting {
                books.enter(&passing, Refusal::NoRoom);
            }
        }
    }

    /// Gives it all that waits for room, however long that takes.
    pub(super) async fn flush_all(&mut self, books: &mut Books<'_>) {
        self.flush(books);
        while !self.backlog.is_empty() {
            room(std::slice::from_ref(self)).await;
            self.flush(books);
        }
    }

    /// Uses up a number, so that the receiver can name what it does not get.
    fn announce(&mut self, stream: u16, number: u64, reason: Reason) {
        let numbers = self.streams.entry(stream).or_default();
        numbers.see(number);
        // A connection that is over takes no numbers, and its end is reported elsewhere.
        if let Ok(id) = self.connection.skip(StreamId(stream), reason) {
            numbers.give(number, id);
        }
    }

    fn offer(&mut self, passing: &MediaUnit) -> Result<(), Refusal> {
        let numbers = self.streams.entry(passing.stream).or_default();
        numbers.see(passing.number);
        let Ok(needs) = numbers.needed(passing.needs) else {
            self.announce(passing.stream, passing.number, Reason::Dependency);
            return Err(Refusal::Dependent);
        };
        if let (Some(section), Some(shedder)) = (&passing.media, &mut self.shedder) {
            let verdict = shedder.offer_at(self.target.offer(), &section.to_frame());
            if let Some(reason) = skip_reason(verdict) {
                self.announce(passing.stream, passing.number, reason);
                return Err(Refusal::Shed(reason));
            }
        }
        let section = passing.section(needs, self.connection.latency());
        let due = section.deadline.unwrap_or(Duration::MAX);
        let id = self
            .connection
            .try_send(section)
            .map_err(|error| match error {
                TrySendError::Full { .. } => Refusal::NoRoom,
                // Its end is told elsewhere.
                TrySendError::Refused(SendError::Closed(_) | SendError::Finishing) => {
                    Refusal::Unconnected
                }
                _ => Refusal::Unfit,
            })?;
        numbers.give(passing.number, id);
        let settled = match passing.source_time.checked_add(due) {
            Some(moment) => Settled::At(moment),
            None => Settled::Never,
        };
        self.settled = self.settled.max(settled);
        if let Some(fates) = &mut self.fates {
            fates.follow(id, passing);
        }
        Ok(())
    }
}

/// Waits until one of those for whom something waits has room for it, or cannot be given anything
/// any more. A call that is dropped before it is ready loses nothing.
pub(super) async fn room(legs: &[Leg]) {
    let mut rooms: Vec<_> = legs
        .iter()
        .filter_map(|leg| {
            let next = leg.backlog.front()?;
            Some(Box::pin(leg.connection.room(next.bytes())))
        })
        .collect();
    if rooms.is_empty() {
        return pending().await;
    }
    poll_fn(|context| {
        match rooms
            .iter_mut()
            .any(|room| room.as_mut().poll(context).is_ready())
        {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_numbers_of_this_connection() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.needed(None), Ok(None));
        numbers.see(100);
        assert_eq!(numbers.needed(Some(99)), Ok(None), "from before");
        numbers.give(100, SectionId(0));
        numbers.see(101);
        numbers.give(102, SectionId(1));
        assert_eq!(numbers.needed(Some(100)), Ok(Some(SectionId(0))));
        assert_eq!(numbers.needed(Some(102)), Ok(Some(SectionId(1))));
        assert_eq!(numbers.needed(Some(101)), Err(NotGiven));
        for number in 103..103 + REMEMBERED as u64 {
            numbers.give(number, SectionId(number - 101));
        }
        assert_eq!(numbers.given.len(), REMEMBERED);
        assert_eq!(numbers.needed(Some(101)), Ok(None), "forgotten by now");
    }
}
