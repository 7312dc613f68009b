//! One of the receivers that a fan-out sends to.

use std::collections::VecDeque;
use std::future::{Future, pending, poll_fn};
use std::task::Poll;
use std::time::{Duration, Instant};

use comity::{Event, Reason, SectionId, SendError, StreamId};
use comity_frames::{Offered, Shedder, ShedderConfig, Step, Submitter};
use comity_media::{is_announcement, needs_layouts};

use crate::fates::Fates;
use crate::joining::{Admission, Background, Joining};
use crate::missing::{Missing, MissingReason};
use crate::peer::{Outlet, Peer};
use crate::statistics::Unsent;
use crate::unit::MediaUnit;

/// A connection and the state of its submitted sections: how a relay gives each section of its
/// source the same number in the connection, or says why the section has none.
#[derive(Debug)]
pub(crate) struct Subscriber<O = Peer> {
    pub(crate) outlet: O,
    submitter: Submitter,
    joining: Joining,
    /// `None` unless the fates of sections are followed.
    fates: Option<Fates>,
    /// The time at which all submitted sections are settled.
    pub(crate) settled: Settled,
    backlog: VecDeque<Waiting>,
    /// The bytes of the sections in the backlog.
    backlog_bytes: u64,
}

/// What a missing section in the backlog counts: the memory of its entry.
const MISSING: usize = 160;

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
            Self::Missing(..) => MISSING,
        }
    }
}

/// When the fates of all submitted sections are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Settled {
    At(Instant),
    /// Some section has no deadline.
    Never,
}

/// Why a section was not submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The send buffer has no room now.
    NoRoom,
    /// Its number was skipped for this reason. The connection counts it.
    Skipped(Reason),
    /// Its number should have been skipped for this reason; the connection has ended.
    Unskipped(Reason),
    Unconnected,
    Unfit,
}

/// Counts and lists the sections that were not submitted to a connection.
#[derive(Debug, Default)]
pub(crate) struct Unreached {
    pub(crate) unsent: Unsent,
    pub(crate) missing: Vec<Missing>,
    /// Whether the sections are also listed.
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
            Refusal::Skipped(reason) => self.list(unit, reason.into()),
            Refusal::Unskipped(reason) => self.enter(unit, reason.into()),
            Refusal::NoRoom => self.enter(unit, MissingReason::NoRoom),
            Refusal::Unconnected => self.enter(unit, MissingReason::Unconnected),
            Refusal::Unfit => self.enter(unit, MissingReason::Unfit),
        }
    }
}

impl<O: Outlet> Subscriber<O> {
    /// Joins a source with this `background`. With `follows`, the fates of sections are followed;
    /// with `sheds`, frames are shed.
    pub(crate) fn new(
        now: Instant,
        outlet: O,
        background: &Background,
        follows: bool,
        sheds: bool,
    ) -> Self {
        Self {
            outlet,
            joining: Joining::new(background),
            fates: follows.then(Fates::default),
            submitter: Submitter::new(sheds.then(|| Shedder::new(ShedderConfig::default()))),
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
    /// `background` is that of the sections before it.
    pub(crate) fn admit(&mut self, unit: &MediaUnit, background: &mut Background) -> Admission {
        match self.takes_unit(unit) {
            true => self.joining.admit(unit, background),
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
        if self.backlog.is_empty() {
            self.announce(stream, first, count, Reason::Cancelled);
        } else {
            self.wait(Waiting::Missing(stream, first, count));
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

    /// The length of the item that waits for room first.
    pub(crate) fn waiting_length(&self) -> Option<usize> {
        self.backlog.front().map(Waiting::bytes)
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

    /// Like [`take_missing`](Self::take_missing), with the sections whose fate will never be known,
    /// because the connection is over.
    pub(crate) fn close_fates(&mut self) -> Vec<Missing> {
        let mut missing = self.take_missing();
        missing.extend(self.fates.take().into_iter().flat_map(Fates::close));
        missing
    }

    /// Uses up numbers, so that the receiver can report the missing sections. Returns whether the
    /// connection did; a closed one uses none, and its end is reported elsewhere.
    fn announce(&mut self, stream: StreamId, first: SectionId, count: u64, reason: Reason) -> bool {
        let skipped = self.outlet.skip_run(stream, count, reason).ok();
        let in_connection = skipped.map(|id| id.0);
        self.submitter
            .on_missing(stream.0, first.0, count, in_connection);
        skipped.is_some()
    }

    fn offer(&mut self, unit: &MediaUnit) -> Result<(), Refusal> {
        let offered = Offered {
            stream: unit.stream.0,
            number: unit.id.0,
            needs: unit.needs.map(|needs| needs.0),
            frame: unit.frame.as_ref(),
        };
        let needs = match self.submitter.step(&offered, self.outlet.offer()) {
            Step::Submit { needs } => needs.map(SectionId),
            Step::Skip(reason) => {
                return Err(match self.announce(unit.stream, unit.id, 1, reason) {
                    true => Refusal::Skipped(reason),
                    false => Refusal::Unskipped(reason),
                });
            }
        };
        let (latency, round_trip) = (self.outlet.latency(), self.outlet.round_trip());
        let section = unit.section(needs, latency, round_trip);
        let due = section.deadline.unwrap_or(Duration::MAX);
        let id = match self.outlet.try_send(section) {
            Ok(id) => id,
            Err(SendError::Full { .. }) => return Err(Refusal::NoRoom),
            // The end of the connection is reported elsewhere.
            Err(SendError::Closed(_) | SendError::Finishing) => {
                return Err(Refusal::Unconnected);
            }
            Err(_) => {
                self.announce(unit.stream, unit.id, 1, Reason::Cancelled);
                return Err(Refusal::Unfit);
            }
        };
        self.submitter.on_numbered(unit.stream.0, unit.id.0, id.0);
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
    /// Submits all waiting items, without a time limit.
    pub(crate) async fn flush_all(&mut self, unreached: &mut Unreached) {
        self.flush(unreached);
        while !self.backlog.is_empty() {
            self.news().await;
            self.flush(unreached);
        }
    }

    /// Waits until the next waiting item has room or can never get it, or until a section becomes
    /// known to be missing. Cancel safe: dropping the call before it completes loses nothing.
    ///
    /// The connection keeps a bounded number of events, so this call has to drain them while
    /// nothing is submitted.
    pub(crate) async fn news(&mut self) {
        let next = self.waiting_length();
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
