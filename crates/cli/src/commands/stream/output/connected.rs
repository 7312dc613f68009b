//! Sections to another Comity, or to several.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use comity::{CloseCode, CloseReason, Connection, Reliability, Statistics};
use serde::Serialize;
use tokio::task::JoinSet;

use super::super::line::{Line, Lost};
use super::super::media_unit::{MediaUnit, Missing};
use super::super::now;
use super::super::refusals::Counts;
use super::super::status::{Reporter, plain};
use super::super::totals::Totals;
use super::super::trouble::Trouble;
use super::fates::never_given;
use super::leg::{Books, Leg, Settled, room};

/// As many callers get a copy.
const MAX_COPIES: usize = 256;

/// Sends to one peer after the other, or to all that call.
///
/// Where sections have deadlines, one that finds no room with a peer is left out for that peer.
/// Where nothing may be left out (`reliability=full`), it waits for room, and the input waits until
/// the peer that is furthest ahead has everything: the fastest of them sets the pace, never the
/// slowest. For a slower one sections are kept here, as many bytes as its send buffer holds once
/// more. Whoever is further behind than that is left, with a word that says so, and may call again:
/// somebody who stalls holds up nobody else, and takes up no more memory than that.
#[derive(Debug)]
pub(crate) struct ConnectedOutput {
    line: Line,
    reliability: Reliability,
    sheds: bool,
    /// The most bytes that wait for room with one peer while another has had them.
    max_behind: u64,
    max_legs: usize,
    legs: Vec<Leg>,
    /// Those that were left because they were too far behind, until their connections are over.
    left: Vec<Leg>,
    next_leg: u64,
    ends: JoinSet<(u64, CloseReason, Statistics)>,
    reporter: Reporter,
    /// What the connections that are over counted.
    past: Totals,
    pub(crate) unsent: Unsent,
    /// What is listed, and what is to be.
    lists: Listed,
    missing: Vec<Missing>,
}

/// What the command line says of those who are sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    /// Every caller gets a copy, not one after the other.
    pub(crate) to_all: bool,
    /// Pictures are left out while the path carries less than the source.
    pub(crate) sheds: bool,
    /// Which sections are listed.
    pub(crate) lists: Listed,
}

/// Which sections are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    None,
    /// Those that nobody was given.
    NotSent,
    /// Those that did not arrive, too.
    NotArrived,
}

/// Sections that no connection was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Unsent {
    /// There was none.
    pub(crate) unconnected: u64,
    /// Its send buffer was full, or it was so far behind others that it was left.
    pub(crate) no_room: u64,
    /// What they need had not been given to it.
    pub(crate) dependent: u64,
    /// They are empty, or longer than a section can be.
    pub(crate) unfit: u64,
}

impl Unsent {
    fn add(&mut self, other: Self) {
        self.unconnected += other.unconnected;
        self.no_room += other.no_room;
        self.dependent += other.dependent;
        self.unfit += other.unfit;
    }
}

impl ConnectedOutput {
    /// An output with the reliability and the send buffer that the URI names.
    pub(crate) fn new(
        line: Line,
        (reliability, send_buffer): (Reliability, u64),
        copying: Copying,
        reporter: Reporter,
    ) -> Self {
        Self {
            max_legs: match copying.to_all && line.listens() {
                true => MAX_COPIES,
                false => 1,
            },
            line,
            reliability,
            sheds: copying.sheds && reliability != Reliability::Full,
            max_behind: send_buffer,
            legs: Vec::new(),
            left: Vec::new(),
            next_leg: 0,
            ends: JoinSet::new(),
            reporter,
            past: Totals::default(),
            unsent: Unsent::default(),
            lists: copying.lists,
            missing: Vec::new(),
        }
    }

    /// The sections that are known to be missing since the last call: at none of the peers, or at
    /// one of several.
    pub(crate) fn take_missing(&mut self) -> Vec<Missing> {
        let legs = self.legs.iter_mut().chain(&mut self.left);
        for fates in legs.filter_map(|leg| leg.fates.as_mut()) {
            fates.settle(&mut self.missing);
        }
        std::mem::take(&mut self.missing)
    }

    pub(crate) fn is_connected(&self) -> bool {
        !self.legs.is_empty()
    }

    /// Whether there was ever a connection.
    pub(crate) fn was_connected(&self) -> bool {
        self.line.was_connected()
    }

    /// Whether it called, and nobody has answered.
    pub(crate) fn called_in_vain(&self) -> bool {
        self.line.called_in_vain()
    }

    /// Takes up connections, gives up those that have ended, and gives those that were behind what
    /// they have room for; returns when one of these happened. A call that is dropped before it is
    /// ready loses nothing.
    pub(crate) async fn tend(&mut self) -> Result<(), Trouble> {
        let has_room = self.legs.len() < self.max_legs;
        let ended = tokio::select! {
            Some(ended) = self.ends.join_next() => ended,
            connection = self.line.connection(), if has_room => {
                self.on_connection(connection?);
                return Ok(());
            }
            () = room(&self.legs) => {
                self.flush();
                return Ok(());
            }
            else => pending().await,
        };
        match ended {
            Ok((id, end, statistics)) => self.on_end(id, &end, &statistics),
            Err(error) => Err(Trouble::failed(format!(
                "a connection was lost sight of: {error}"
            ))),
        }
    }

    fn on_connection(&mut self, connection: Connection) {
        let connection = Arc::new(connection);
        self.reporter.connected(&connection);
        let id = self.next_leg;
        self.next_leg += 1;
        let watched = connection.clone();
        self.ends
            .spawn(async move { (id, watched.closed().await, watched.stats()) });
        let leg = Leg::new(id, connection, self.lists == Listed::NotArrived, self.sheds);
        self.legs.push(leg);
    }

    fn on_end(
        &mut self,
        id: u64,
        end: &CloseReason,
        statistics: &Statistics,
    ) -> Result<(), Trouble> {
        let legs = [&mut self.legs, &mut self.left];
        let found = legs.into_iter().find_map(|legs| {
            let at = legs.iter().position(|leg| leg.id == id)?;
            Some(legs.remove(at))
        });
        let Some(mut leg) = found else {
            return Ok(());
        };
        leg.forsake(&mut self.books());
        if let Some(fates) = leg.fates.take() {
            fates.close(&mut self.missing);
        }
        self.past.add(statistics);
        self.reporter.disconnected(&leg.connection, end);
        match self.line.on_lost(end) {
            // One of many callers may go when it wants.
            Lost::ForGood(trouble) if self.max_legs == 1 => Err(trouble),
            _ => Ok(()),
        }
    }

    /// Gives a section to everybody who is connected.
    pub(crate) fn write(&mut self, passing: &MediaUnit) {
        if self.legs.is_empty() {
            self.unsent.unconnected += 1;
            if self.lists != Listed::None {
                self.missing.push(never_given(passing, "unconnected"));
            }
        }
        let waits = self.reliability == Reliability::Full;
        let (legs, mut books) = self.legs_and_books();
        for leg in legs {
            match waits {
                true => leg.queue(passing, &mut books),
                false => leg.give(passing, &mut books),
            }
        }
        self.leave_behind();
    }

    /// Whether anybody has been given everything so far, or there is nobody: the input is to wait
    /// otherwise, until [`tend`](Self::tend) has changed that.
    pub(crate) fn has_room(&self) -> bool {
        self.legs.is_empty() || self.legs.iter().any(|leg| leg.behind() == 0)
    }

    fn legs_and_books(&mut self) -> (&mut Vec<Leg>, Books<'_>) {
        let books = Books {
            unsent: &mut self.unsent,
            missing: (self.lists != Listed::None).then_some(&mut self.missing),
        };
        (&mut self.legs, books)
    }

    fn books(&mut self) -> Books<'_> {
        self.legs_and_books().1
    }

    fn flush(&mut self) {
        let (legs, mut books) = self.legs_and_books();
        for leg in legs {
            leg.flush(&mut books);
        }
        self.leave_behind();
    }

    /// Leaves those that are too far behind the first.
    fn leave_behind(&mut self) {
        if !self.has_room() {
            return;
        }
        let most = self.max_behind;
        while let Some(at) = self.legs.iter().position(|leg| leg.behind() > most) {
            let mut leg = self.legs.remove(at);
            self.reporter.warn(&format!(
                "{} is more than {most} bytes behind another receiver and is left, so that it does not hold up the                  others; it may call again. A larger sndbuf would have kept more for it",
                plain(leg.connection.peer_address()),
            ));
            leg.connection
                .close(CloseCode::APPLICATION, "too far behind other receivers");
            leg.forsake(&mut self.books());
            self.left.push(leg);
        }
    }

    /// Tells everybody who is connected that a section is missing: it is so in their lists too,
    /// under the next number, and what needs it is worth nothing to them either.
    pub(crate) fn skip(&mut self, missing: &Missing) {
        for leg in &mut self.legs {
            leg.skip(missing.stream, missing.number);
        }
    }

    /// Waits until everything that was given has arrived or expired, and closes.
    pub(crate) async fn finish(&mut self) -> Result<(), Trouble> {
        self.ends.abort_all();
        for mut leg in self.left.drain(..) {
            if let Some(fates) = leg.fates.take() {
                fates.close(&mut self.missing);
            }
            self.past.add(&leg.connection.stats());
        }
        if self.legs.is_empty() {
            return Err(Trouble::unconnected(match self.was_connected() {
                true => "the connection was lost, and not made again before the input ended",
                false => "the input ended before there was a connection",
            }));
        }
        let mut finishing = JoinSet::new();
        for mut leg in self.legs.drain(..) {
            // What has deadlines is settled when they have passed; what has none takes as long as
            // it takes.
            let patience = match (self.reliability, leg.settled) {
                (Reliability::Full, _) | (_, Settled::Never) => Duration::MAX,
                (_, Settled::At(moment)) => {
                    moment.saturating_duration_since(now()) + self.line.linger
                }
            };
            let lists = self.lists != Listed::None;
            finishing.spawn(async move {
                let (mut unsent, mut missing) = (Unsent::default(), Vec::new());
                leg.flush_all(&mut Books {
                    unsent: &mut unsent,
                    missing: lists.then_some(&mut missing),
                })
                .await;
                let finished = tokio::time::timeout(patience, leg.connection.finish()).await;
                if finished.is_err() {
                    // This was all that there is: a receiver that waited for another connection
                    // would wait for ever.
                    leg.connection
                        .close(CloseCode::DONE, "not confirmed in time");
                    leg.connection.closed().await;
                }
                let statistics = leg.connection.stats();
                (leg, finished, statistics, (unsent, missing))
            });
        }
        let mut done = Ok(());
        while let Some(finished) = finishing.join_next().await {
            let Ok((leg, finished, statistics, (unsent, missing))) = finished else {
                continue;
            };
            self.unsent.add(unsent);
            self.missing.extend(missing);
            let peer = plain(leg.connection.peer_address());
            if let Some(fates) = leg.fates {
                fates.close(&mut self.missing);
            }
            self.past.add(&statistics);
            match finished {
                Ok(Ok(())) => {}
                Ok(Err(end)) if end.is_clean() => {}
                Ok(Err(end)) => {
                    done = Err(Trouble::unconnected(format!(
                        "the connection to {peer} was lost before everything had arrived: {end}"
                    )));
                }
                Err(_) => self.reporter.warn(&format!(
                    "{peer} did not confirm the end in time; what it had not received is lost"
                )),
            }
        }
        self.line.close().await;
        done
    }

    /// How many callers were turned away, by the reason.
    pub(crate) fn refused(&self) -> Counts {
        self.line.refused()
    }

    /// The connections that are open, and what the others counted.
    pub(crate) fn connections(&self) -> (Vec<Arc<Connection>>, Totals) {
        let legs = self.legs.iter().chain(&self.left);
        let open = legs.map(|leg| leg.connection.clone());
        (open.collect(), self.past)
    }
}
