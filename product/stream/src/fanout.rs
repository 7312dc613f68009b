//! A sink that sends to one peer after another, or to all callers.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use comity::{CloseCode, CloseReason, Connection, Reliability, Statistics};
use tokio::task::JoinSet;

use crate::address::plain;
use crate::clock::now;
use crate::counters::{ConnectionId, Counters, SharedConnections};
use crate::dialer::{Dialer, Lost};
use crate::error::Error;
use crate::event::Event;
use crate::joining::{Admission, Background};
use crate::missing::{Missing, MissingReason};
use crate::peer::Peer;
use crate::relay::{Sink, Written};
use crate::subscriber::{Settled, Subscriber, Unreached, news};
use crate::unit::MediaUnit;

/// How a [`Fanout`] sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanoutOptions {
    /// The maximum number of callers at a time, at least one. A dialer that calls has one peer.
    pub max_subscribers: usize,
    /// Whether frames are shed when the path carries less than the source offers.
    pub sheds: bool,
    /// Which sections are reported as missing.
    pub reports: Reports,
}

impl Default for FanoutOptions {
    fn default() -> Self {
        Self {
            max_subscribers: 1,
            sheds: true,
            reports: Reports::Unsent,
        }
    }
}

/// Which sections a [`Fanout`] reports as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reports {
    /// None.
    Nothing,
    /// The sections that were not sent on a connection.
    Unsent,
    /// These, and the sections that did not arrive. The fate of every section is followed.
    Unarrived,
}

/// A sink that sends to one peer after another, or to all callers.
///
/// If sections have deadlines, a section is dropped for each peer whose send buffer has no room.
///
/// With [`Reliability::Full`], a section waits for room, and the source waits until the fastest
/// peer has accepted everything: the fastest peer sets the pace. Sections for slower peers are kept
/// here, for each peer at most as many bytes as its send buffer holds. A peer that is further
/// behind is disconnected with a reason, and may call again. A stalled peer therefore neither
/// delays the others nor uses more memory.
#[derive(Debug)]
pub struct Fanout {
    dialer: Dialer,
    reliability: Reliability,
    sheds: bool,
    reports: Reports,
    /// The most bytes that may wait here for one peer after the fastest peer has accepted them.
    max_behind: u64,
    max_subscribers: usize,
    subscribers: Vec<Subscriber>,
    /// Peers that were too far behind, until their connections end.
    left: Vec<Subscriber>,
    ends: JoinSet<(ConnectionId, CloseReason)>,
    connections: SharedConnections,
    unreached: Unreached,
    background: Background,
}

impl Fanout {
    /// Sends over the connections of `dialer`, whose configuration sets the reliability.
    pub fn new(dialer: Dialer, options: FanoutOptions) -> Self {
        let settings = dialer.config().settings();
        let reliability = settings.effective_reliability();
        Self {
            max_subscribers: match dialer.listens() {
                true => options.max_subscribers.max(1),
                false => 1,
            },
            reliability,
            sheds: options.sheds && reliability != Reliability::Full,
            reports: options.reports,
            max_behind: settings.send_buffer,
            subscribers: Vec::new(),
            left: Vec::new(),
            ends: JoinSet::new(),
            connections: SharedConnections::new(dialer.refusals().clone(), true),
            background: Background::default(),
            unreached: Unreached {
                lists: options.reports != Reports::Nothing,
                ..Unreached::default()
            },
            dialer,
        }
    }

    fn on_connection(&mut self, connection: Connection) {
        let id = self.connections.open(connection.clone());
        self.dialer
            .observer()
            .on_event(&Event::Connected(&connection));
        let watched = connection.clone();
        self.ends.spawn(async move { (id, watched.closed().await) });
        let follows = self.reports == Reports::Unarrived;
        let peer = Peer::new(id, connection, follows);
        let subscriber = Subscriber::new(now(), peer, &self.background, follows, self.sheds);
        self.subscribers.push(subscriber);
    }

    fn on_end(&mut self, id: ConnectionId, end: &CloseReason) -> Result<(), Error> {
        let both = [&mut self.subscribers, &mut self.left];
        let found = both.into_iter().find_map(|subscribers| {
            let at = subscribers
                .iter()
                .position(|subscriber| subscriber.outlet.id == id)?;
            Some(subscribers.remove(at))
        });
        let Some(mut subscriber) = found else {
            return Ok(());
        };
        subscriber.drop_backlog(&mut self.unreached);
        self.unreached.missing.extend(subscriber.close_fates());
        self.connections.close(id);
        self.count_unsent();
        let disconnected = Event::Disconnected(&subscriber.outlet.connection, end);
        self.dialer.observer().on_event(&disconnected);
        match self.dialer.on_lost(end) {
            // If there may be many callers, one of them may leave.
            Lost::ForGood(error) if self.max_subscribers == 1 => Err(error),
            _ => Ok(()),
        }
    }

    fn count_unsent(&mut self) {
        let unsent = std::mem::take(&mut self.unreached.unsent);
        self.connections.count_unsent(unsent);
    }

    fn flush_backlogs(&mut self) {
        for subscriber in &mut self.subscribers {
            subscriber.flush(&mut self.unreached);
        }
        self.leave_behind();
    }

    /// Disconnects the peers that are too far behind the fastest one.
    fn leave_behind(&mut self) {
        let max_bytes = self.max_behind;
        let is_behind = |subscriber: &Subscriber| subscriber.behind() > max_bytes;
        while self.has_room()
            && let Some(at) = self.subscribers.iter().position(is_behind)
        {
            let mut subscriber = self.subscribers.remove(at);
            let connection = &subscriber.outlet.connection;
            let peer = plain(connection.peer_address());
            let event = Event::LeftBehind { peer, max_bytes };
            self.dialer.observer().on_event(&event);
            connection.close(CloseCode::APPLICATION, "too far behind other receivers");
            subscriber.drop_backlog(&mut self.unreached);
            self.left.push(subscriber);
        }
        self.count_unsent();
    }

    /// How long a peer may take to confirm the end: `linger` after the last deadline, and without
    /// limit if a section has no deadline.
    fn patience(&self, settled: Settled) -> Duration {
        match (self.reliability, settled) {
            (Reliability::Full, _) | (_, Settled::Never) => Duration::MAX,
            (_, Settled::At(moment)) => {
                let linger = self.dialer.config().settings().linger;
                moment.saturating_duration_since(now()) + linger
            }
        }
    }
}

/// Sends the remaining sections to a peer and ends its connection.
///
/// # Errors
///
/// [`Error::Unfinished`] and [`Error::Unconfirmed`].
async fn finish(
    subscriber: &mut Subscriber,
    unreached: &mut Unreached,
    patience: Duration,
) -> Result<(), Error> {
    subscriber.flush_all(unreached).await;
    let connection = subscriber.outlet.connection.clone();
    let peer = plain(connection.peer_address());
    let mut finishing = pin!(tokio::time::timeout(patience, connection.finish()));
    let finished = loop {
        tokio::select! {
            biased;
            finished = &mut finishing => break finished,
            () = subscriber.news() => {}
        }
    };
    match finished {
        Ok(Ok(())) => Ok(()),
        Ok(Err(end)) if end.is_clean() => Ok(()),
        Ok(Err(end)) => Err(Error::Unfinished { peer, end }),
        Err(_) => {
            let in_doubt = in_doubt(&connection.stats());
            // The close code says that nothing follows, so the receiver does not wait for another
            // connection.
            connection.close(CloseCode::DONE, "not confirmed in time");
            connection.closed().await;
            Err(Error::Unconfirmed { peer, in_doubt })
        }
    }
}

/// Waits for all futures concurrently.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, output) in &mut waiting {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        match waiting.iter().all(|(_, output)| output.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    waiting
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}

/// The sections that were sent, or were to be sent, and that the peer has not confirmed.
const fn in_doubt(statistics: &Statistics) -> u64 {
    let sections = &statistics.sent.sections;
    let known = sections.acknowledged
        + sections.expired_unsent
        + sections.infeasible
        + sections.dependency
        + sections.shed
        + sections.cancelled;
    sections.submitted.saturating_sub(known)
}

impl Sink for Fanout {
    fn was_ready(&self) -> bool {
        self.is_ready() || self.dialer.was_connected()
    }

    fn is_ready(&self) -> bool {
        !self.subscribers.is_empty()
    }

    fn is_unanswered(&self) -> bool {
        self.dialer.is_unanswered()
    }

    /// Whether some peer has accepted everything so far, or no peer is connected.
    fn has_room(&self) -> bool {
        let mut subscribers = self.subscribers.iter();
        self.subscribers.is_empty() || subscribers.any(|subscriber| subscriber.behind() == 0)
    }

    async fn tend(&mut self) -> Result<Written, Error> {
        let may_connect = self.subscribers.len() < self.max_subscribers;
        let ended = tokio::select! {
            Some(ended) = self.ends.join_next() => ended,
            connection = self.dialer.connection(), if may_connect => {
                self.on_connection(connection?);
                return Ok(Written::Yes);
            }
            () = news(&mut self.subscribers) => {
                self.flush_backlogs();
                return Ok(Written::Yes);
            }
            else => pending().await,
        };
        let (id, end) = ended?;
        self.on_end(id, &end).map(|()| Written::Yes)
    }

    fn write(&mut self, unit: &MediaUnit) -> Written {
        let mut is_for_nobody = true;
        for subscriber in &mut self.subscribers {
            let Admission::Yes(before) = subscriber.admit(unit, &mut self.background) else {
                continue;
            };
            is_for_nobody = false;
            for unit in before.iter().chain([unit]) {
                match self.reliability {
                    Reliability::Full => subscriber.queue(unit, &mut self.unreached),
                    _ => subscriber.submit(unit, &mut self.unreached),
                }
            }
        }
        if is_for_nobody {
            self.unreached.enter(unit, MissingReason::Unconnected);
        }
        self.background.see(unit);
        self.leave_behind();
        Written::Yes
    }

    fn skip(&mut self, missing: &Missing) {
        for subscriber in &mut self.subscribers {
            subscriber.skip(missing.stream, missing.id, missing.count);
        }
    }

    fn follows(&self) -> bool {
        self.reports == Reports::Unarrived
    }

    fn take_missing(&mut self) -> Vec<Missing> {
        let mut missing = std::mem::take(&mut self.unreached.missing);
        let both = self.subscribers.iter_mut().chain(&mut self.left);
        missing.extend(both.flat_map(Subscriber::take_missing));
        missing
    }

    fn abandon(&mut self) {
        for subscriber in self.subscribers.iter_mut().chain(&mut self.left) {
            subscriber.drop_backlog(&mut self.unreached);
            self.unreached.missing.extend(subscriber.close_fates());
        }
        self.count_unsent();
    }

    async fn finish(&mut self) -> Result<(), Error> {
        self.dialer.stop_accepting();
        self.ends.abort_all();
        for mut subscriber in std::mem::take(&mut self.left) {
            self.unreached.missing.extend(subscriber.close_fates());
            self.connections.close(subscriber.outlet.id);
        }
        if self.subscribers.is_empty() {
            return Err(match self.dialer.was_connected() {
                true => Error::NotRedialled,
                false => Error::NeverConnected,
            });
        }
        let patience: Vec<Duration> = { self.subscribers.iter() }
            .map(|subscriber| self.patience(subscriber.settled))
            .collect();
        let lists = self.unreached.lists;
        let finishing = self.subscribers.iter_mut().zip(patience);
        let finishing = finishing.map(async |(subscriber, patience)| {
            let mut unreached = Unreached {
                lists,
                ..Unreached::default()
            };
            let finished = finish(subscriber, &mut unreached, patience).await;
            (finished, unreached)
        });
        let ended = all(finishing).await;
        let mut done = Ok(());
        for (mut subscriber, (finished, unreached)) in self.subscribers.drain(..).zip(ended) {
            self.connections.count_unsent(unreached.unsent);
            self.unreached.missing.extend(unreached.missing);
            self.unreached.missing.extend(subscriber.close_fates());
            self.connections.close(subscriber.outlet.id);
            // Only the first error is returned. The statistics contain the numbers of every peer.
            done = done.and(finished);
        }
        self.dialer.close().await;
        let totals = self.counters().side().totals.unwrap_or_default();
        done.and(match totals.acknowledged {
            0 if totals.submitted > 0 => Err(Error::NothingArrived {
                submitted: totals.submitted,
            }),
            _ => Ok(()),
        })
    }

    fn counters(&self) -> Counters {
        Counters::of_connections(&self.connections)
    }
}
