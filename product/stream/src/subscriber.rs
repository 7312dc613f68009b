//! One of the receivers that a fan-out sends to.

use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, pending, poll_fn};
use std::task::Poll;
use std::time::{Duration, Instant};

use comity::{Event, Reason, SectionId, SendError, StreamError, StreamId, TrySendError};
use comity_frames::{Shedder, ShedderConfig};
use comity_media::{is_announcement, needs_layouts};

use crate::fates::Fates;
use crate::joining::{Admission, Background, Joining};
use crate::missing::{Missing, MissingReason};
use crate::peer::{Outlet, Peer};
use crate::statistics::Unsent;
use crate::unit::MediaUnit;

/// The remembered numbers of a stream: no section lies further behind one that needs it.
const REMEMBERED: usize = 1_024;

/// A connection and the state of its submitted sections: how a relay gives each section of its
/// source the same number in the connection, or says why the section has none.
#[derive(Debug)]
pub(crate) struct Subscriber<O = Peer> {
    pub(crate) outlet: O,
    shedder: Option<Shedder>,
    streams: BTreeMap<StreamId, Numbers>,
    joining: Joining,
    /// `None` unless the fates of sections are followed.
    fates: Option<Fates>,
    /// The time at which all submitted sections are settled.
    pub(crate) settled: Settled,
    backlog: VecDeque<Waiting>,
    /// The bytes of the sections in the backlog.
    backlog_bytes: u64,
}

/// An item that waits for room in the send buffer.
#[derive(Debug)]
enum Waiting {
    Section(MediaUnit),
    Missing(StreamId, SectionId, u64),
}

impl Waiting {
    fn bytes(&self) -> usize {
        match self {
            Self::Section(unit) => unit.payload.len(),
            Self::Missing(..) => 0,
        }
    }
}

/// The latest time at which the fates of sections are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Settled {
    At(Instant),
    /// They have no deadline.
    Never,
}

/// The numbers of a stream's sections in the connection, by their numbers at the source.
#[derive(Debug, Default)]
struct Numbers {
    /// The first number that was offered.
    first: Option<SectionId>,
    submitted: BTreeMap<SectionId, SectionId>,
}

impl Numbers {
    /// The number of `needs` in the connection. Fails if it could have been submitted and was not.
    fn needed(&self, needs: Option<SectionId>) -> Result<Option<SectionId>, NotSubmitted> {
        let Some(needs) = needs else { return Ok(None) };
        match (self.submitted.get(&needs), self.oldest()) {
            (Some(&id), _) => Ok(Some(id)),
            // It is older than this connection, or forgotten: the receiver may have it.
            (None, oldest) if oldest.is_none_or(|oldest| needs < oldest) => Ok(None),
            (None, _) => Err(NotSubmitted),
        }
    }

    fn oldest(&self) -> Option<SectionId> {
        match self.submitted.len() < REMEMBERED {
            true => self.first,
            false => self.submitted.first_key_value().map(|(&number, _)| number),
        }
    }

    fn see(&mut self, number: SectionId) {
        self.first.get_or_insert(number);
    }

    fn submit(&mut self, number: SectionId, id: SectionId) {
        self.submitted.insert(number, id);
        if self.submitted.len() > REMEMBERED {
            self.submitted.pop_first();
        }
    }

    /// A run of numbers; only the latest are remembered.
    fn submit_run(&mut self, first: SectionId, first_id: SectionId, count: u64) {
        for offset in count.saturating_sub(REMEMBERED as u64)..count {
            self.submit(SectionId(first.0 + offset), SectionId(first_id.0 + offset));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NotSubmitted;

/// Why a section was not submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The send buffer has no room now.
    NoRoom,
    Dependent,
    /// It was shed, or its dependency was. The connection counts it, as all skipped numbers.
    Shed(Reason),
    Unconnected,
    Unfit,
}

/// Counts and lists the sections that a connection did not get.
#[derive(Debug, Default)]
pub(crate) struct Unreached {
    pub(crate) unsent: Unsent,
    pub(crate) missing: Vec<Missing>,
    /// Whether the sections are listed, too.
    pub(crate) lists: bool,
}

impl Unreached {
    pub(crate) fn enter(&mut self, unit: &MediaUnit, reason: MissingReason) {
        self.unsent.count(reason);
        self.list(unit, reason);
    }

    fn list(&mut self, unit: &MediaUnit, reason: MissingReason) {
        if self.lists {
            self.missing.push(unit.missing(reason));
        }
    }

    fn refuse(&mut self, unit: &MediaUnit, refusal: Refusal) {
        match refusal {
            Refusal::Shed(reason) => self.list(unit, reason.into()),
            Refusal::NoRoom => self.enter(unit, MissingReason::NoRoom),
            Refusal::Dependent => self.enter(unit, MissingReason::Dependency),
            Refusal::Unconnected => self.enter(unit, MissingReason::Unconnected),
            Refusal::Unfit => self.enter(unit, MissingReason::Unfit),
        }
    }
}

impl<O: Outlet> Subscriber<O> {
    /// Joins a source with this `background`. Follows the fates of sections with `follows`, and
    /// sheds frames with `sheds`.
    pub(crate) fn new(
        now: Instant,
        outlet: O,
        background: Background,
        follows: bool,
        sheds: bool,
    ) -> Self {
        Self {
            outlet,
            joining: Joining::new(background),
            fates: follows.then(Fates::default),
            shedder: sheds.then(|| Shedder::new(ShedderConfig::default())),
            streams: BTreeMap::new(),
            settled: Settled::At(now),
            backlog: VecDeque::new(),
            backlog_bytes: 0,
        }
    }

    /// Whether the receiver knows what the sections of this stream are for.
    fn takes(&self, stream: StreamId) -> bool {
        self.outlet.takes_layouts() || !needs_layouts(stream.0)
    }

    fn takes_unit(&self, unit: &MediaUnit) -> bool {
        self.takes(unit.stream)
            && (self.outlet.takes_layouts() || !is_announcement(unit.stream.0, &unit.payload))
    }

    /// Whether the receiver has joined the source by this section, and what it gets before it.
    pub(crate) fn admit(&mut self, unit: &MediaUnit) -> Admission {
        match self.takes_unit(unit) {
            true => self.joining.admit(unit),
            false => Admission::Yes(Vec::new()),
        }
    }

    /// Submits a section, or drops it if there is no room.
    pub(crate) fn submit(&mut self, unit: &MediaUnit, unreached: &mut Unreached) {
        if !self.takes_unit(unit) {
            return;
        }
        if let Err(refusal) = self.offer(unit) {
            if refusal == Refusal::NoRoom {
                self.announce(unit.stream, unit.id, 1, Reason::Cancelled);
            }
            unreached.refuse(unit, refusal);
        }
    }

    /// Submits a section, or keeps it until there is room.
    pub(crate) fn queue(&mut self, unit: &MediaUnit, unreached: &mut Unreached) {
        if !self.takes_unit(unit) {
            return;
        }
        self.flush(unreached);
        let offered = match self.backlog.is_empty() {
            true => self.offer(unit),
            false => Err(Refusal::NoRoom),
        };
        match offered {
            Ok(()) => {}
            Err(Refusal::NoRoom) => self.wait(Waiting::Section(unit.clone())),
            Err(refusal) => unreached.refuse(unit, refusal),
        }
    }

    /// Reports missing sections to the receiver, in the order of the stream.
    pub(crate) fn skip(&mut self, stream: StreamId, first: SectionId, count: u64) {
        if !self.takes(stream) || !self.joining.has_joined(stream) {
            return;
        }
        match self.backlog.is_empty() {
            true => self.announce(stream, first, count, Reason::Cancelled),
            false => self.wait(Waiting::Missing(stream, first, count)),
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        self.backlog_bytes += waiting.bytes() as u64;
        self.backlog.push_back(waiting);
    }

    /// Submits waiting items while there is room.
    pub(crate) fn flush(&mut self, unreached: &mut Unreached) {
        while let Some(waiting) = self.backlog.pop_front() {
            match &waiting {
                Waiting::Missing(stream, first, count) => {
                    self.announce(*stream, *first, *count, Reason::Cancelled);
                }
                Waiting::Section(unit) => match self.offer(unit) {
                    Err(Refusal::NoRoom) => {
                        self.backlog.push_front(waiting);
                        return;
                    }
                    Err(refusal) => unreached.refuse(unit, refusal),
                    Ok(()) => {}
                },
            }
            self.backlog_bytes -= waiting.bytes() as u64;
        }
    }

    /// The bytes that wait for room.
    pub(crate) const fn behind(&self) -> u64 {
        self.backlog_bytes
    }

    /// Drops all waiting items.
    pub(crate) fn drop_backlog(&mut self, unreached: &mut Unreached) {
        self.backlog_bytes = 0;
        for waiting in self.backlog.drain(..) {
            if let Waiting::Section(unit) = waiting {
                unreached.enter(&unit, MissingReason::NoRoom);
            }
        }
    }

    /// The sections that were submitted and are now known to be missing, since the last call.
    pub(crate) fn take_missing(&mut self) -> Vec<Missing> {
        let Some(fates) = &mut self.fates else {
            return Vec::new();
        };
        while let Some(outcome) = self.outlet.try_outcome() {
            fates.on_outcome(&outcome);
        }
        fates.take()
    }

    /// As [`take_missing`](Self::take_missing), with the sections whose fate will never be known:
    /// the connection is over.
    pub(crate) fn close_fates(&mut self) -> Vec<Missing> {
        let mut missing = self.take_missing();
        missing.extend(self.fates.take().into_iter().flat_map(Fates::close));
        missing
    }

    /// Uses up numbers, so that the receiver can report the missing sections.
    fn announce(&mut self, stream: StreamId, first: SectionId, count: u64, reason: Reason) {
        let numbers = self.streams.entry(stream).or_default();
        numbers.see(first);
        // A closed connection uses no numbers, and its end is reported elsewhere.
        if let Ok(first_id) = self.outlet.skip_run(stream, count, reason) {
            numbers.submit_run(first, first_id, count);
        }
    }

    fn offer(&mut self, unit: &MediaUnit) -> Result<(), Refusal> {
        let numbers = self.streams.entry(unit.stream).or_default();
        numbers.see(unit.id);
        let Ok(needs) = numbers.needed(unit.needs) else {
            self.announce(unit.stream, unit.id, 1, Reason::Dependency);
            return Err(Refusal::Dependent);
        };
        if let (Some(frame), Some(shedder)) = (&unit.frame, &mut self.shedder)
            && let Err(reason) = shedder.offer_at(self.outlet.offer(), frame)
        {
            self.announce(unit.stream, unit.id, 1, reason);
            return Err(Refusal::Shed(reason));
        }
        let (latency, round_trip) = (self.outlet.latency(), self.outlet.round_trip());
        let section = unit.section(needs, latency, round_trip);
        let due = section.deadline.unwrap_or(Duration::MAX);
        let id = match self.outlet.try_send(section) {
            Ok(id) => id,
            Err(TrySendError::Full { .. }) => return Err(Refusal::NoRoom),
            // Its end is reported elsewhere.
            Err(TrySendError::Refused(SendError::Stream(
                StreamError::Closed(_) | StreamError::Finishing,
            ))) => {
                return Err(Refusal::Unconnected);
            }
            Err(_) => {
                self.announce(unit.stream, unit.id, 1, Reason::Cancelled);
                return Err(Refusal::Unfit);
            }
        };
        numbers.submit(unit.id, id);
        let settled = match unit.source_time.checked_add(due) {
            Some(moment) => Settled::At(moment),
            None => Settled::Never,
        };
        self.settled = self.settled.max(settled);
        if let Some(fates) = &mut self.fates {
            fates.follow(id, unit);
        }
        Ok(())
    }
}

impl Subscriber {
    /// Submits all waiting items, however long that takes.
    pub(crate) async fn flush_all(&mut self, unreached: &mut Unreached) {
        self.flush(unreached);
        while !self.backlog.is_empty() {
            self.news().await;
            self.flush(unreached);
        }
    }

    /// Waits until the next waiting item has room or can never get it, or until a section is known
    /// to be missing. A call that is dropped before it is ready loses nothing.
    ///
    /// The connection keeps a bounded number of events, so somebody must wait for them here while
    /// nothing is submitted.
    pub(crate) async fn news(&mut self) {
        let next = self.backlog.front().map(Waiting::bytes);
        let Peer {
            connection, events, ..
        } = &mut self.outlet;
        let fates = &mut self.fates;
        let room = async {
            match next {
                Some(length) => connection.room(length).await,
                None => pending().await,
            }
        };
        let lost = async {
            let (Some(events), Some(fates)) = (events, fates) else {
                return pending().await;
            };
            while let Some(event) = events.next().await {
                if let Event::Outcome(outcome) = event
                    && fates.on_outcome(&outcome)
                {
                    return;
                }
            }
            pending::<()>().await;
        };
        tokio::select! {
            () = room => {}
            () = lost => {}
        }
    }
}

/// Waits for [`news`](Subscriber::news) of any subscriber.
pub(crate) async fn news(subscribers: &mut [Subscriber]) {
    let all = subscribers.iter_mut();
    let mut all: Vec<_> = all.map(|subscriber| Box::pin(subscriber.news())).collect();
    poll_fn(|context| {
        match all
            .iter_mut()
            .any(|news| news.as_mut().poll(context).is_ready())
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
        let needed = |numbers: &Numbers, number| numbers.needed(Some(SectionId(number)));
        let mut numbers = Numbers::default();
        assert_eq!(numbers.needed(None), Ok(None));
        numbers.see(SectionId(100));
        assert_eq!(needed(&numbers, 99), Ok(None), "from before");
        numbers.submit(SectionId(100), SectionId(0));
        numbers.see(SectionId(101));
        numbers.submit(SectionId(102), SectionId(1));
        assert_eq!(needed(&numbers, 100), Ok(Some(SectionId(0))));
        assert_eq!(needed(&numbers, 102), Ok(Some(SectionId(1))));
        assert_eq!(needed(&numbers, 101), Err(NotSubmitted));
        for number in 103..103 + REMEMBERED as u64 {
            numbers.submit(SectionId(number), SectionId(number - 101));
        }
        assert_eq!(numbers.submitted.len(), REMEMBERED);
        assert_eq!(needed(&numbers, 101), Ok(None), "forgotten by now");
    }
}
