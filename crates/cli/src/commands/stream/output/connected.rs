//! Sections to another Comity, or to several.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity::{
    Connection, End, Reliability, SectionId, SendError, Statistics, StreamId, TargetBitrate,
};
use comity_media::{Shedder, ShedderConfig, Verdict};
use serde::Serialize;
use tokio::task::JoinSet;

use super::super::line::{Line, Lost};
use super::super::now;
use super::super::passing::{Missing, Passing};
use super::super::refusals::Counts;
use super::super::status::{Reporter, plain};
use super::super::totals::Totals;
use super::super::trouble::Trouble;
use super::fates::{Fates, never_given};

/// As many callers get a copy.
const MOST_COPIES: usize = 256;
/// How many numbers of each stream are remembered: more than any section lies behind what needs it.
const REMEMBERED: usize = 1_024;

/// Sends to one peer after the other, or to all that call.
#[derive(Debug)]
pub(crate) struct ConnectedOutput {
    line: Line,
    reliability: Reliability,
    sheds: bool,
    most_legs: usize,
    legs: Vec<Leg>,
    next_leg: u64,
    ends: JoinSet<(u64, End, Statistics)>,
    reporter: Reporter,
    /// What the connections that are over counted.
    past: Totals,
    pub(crate) unsent: Unsent,
    /// Whether it is followed what becomes of the sections, and which of them are known to be missing.
    lists: bool,
    missing: Vec<Missing>,
}

/// What the command line says of those who are sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    /// Every caller gets a copy, not one after the other.
    pub(crate) to_all: bool,
    /// Pictures are left out while the path carries less than the source.
    pub(crate) sheds: bool,
    /// It is listed which sections did not arrive.
    pub(crate) lists: bool,
}

/// Sections that no connection was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Unsent {
    /// There was none.
    pub(crate) unconnected: u64,
    /// Its send buffer was full.
    pub(crate) no_room: u64,
    /// What they need had not been given to it.
    pub(crate) dependent: u64,
    /// They are empty, or longer than a section can be.
    pub(crate) unfit: u64,
}

/// One of those who are sent to.
#[derive(Debug)]
struct Leg {
    id: u64,
    connection: Arc<Connection>,
    target: TargetBitrate,
    shedder: Shedder,
    streams: BTreeMap<u16, Numbers>,
    fates: Option<Fates>,
    /// By when all that was given is settled.
    settled: Settled,
}

/// When nothing more can become of sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Settled {
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
    /// What `needs` is in the connection; an error where that was not given to it, though it could have been.
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

impl ConnectedOutput {
    pub(crate) fn new(
        line: Line,
        reliability: Reliability,
        copying: Copying,
        reporter: Reporter,
    ) -> Self {
        Self {
            most_legs: match copying.to_all && line.listens() {
                true => MOST_COPIES,
                false => 1,
            },
            line,
            reliability,
            sheds: copying.sheds && reliability != Reliability::Full,
            legs: Vec::new(),
            next_leg: 0,
            ends: JoinSet::new(),
            reporter,
            past: Totals::default(),
            unsent: Unsent::default(),
            lists: copying.lists,
            missing: Vec::new(),
        }
    }

    /// The sections that are known to be missing since the last call: at none of the peers, or at one of several.
    pub(crate) fn take_missing(&mut self) -> Vec<Missing> {
        for fates in self.legs.iter_mut().filter_map(|leg| leg.fates.as_mut()) {
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

    /// Takes up connections and gives up those that have ended; returns when one of these happened. A call that is
    /// dropped before it is ready loses nothing.
    pub(crate) async fn tend(&mut self) -> Result<(), Trouble> {
        let has_room = self.legs.len() < self.most_legs;
        let ended = tokio::select! {
            Some(ended) = self.ends.join_next() => ended,
            connection = self.line.connection(), if has_room => {
                self.on_connection(connection?);
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
            .spawn(async move { (id, watched.closed().await, watched.statistics().await) });
        self.legs.push(Leg {
            id,
            target: connection.target_bitrate(),
            fates: self.lists.then(|| Fates::new(&connection)),
            connection,
            shedder: Shedder::new(ShedderConfig::default()),
            streams: BTreeMap::new(),
            settled: Settled::At(now()),
        });
    }

    fn on_end(&mut self, id: u64, end: &End, statistics: &Statistics) -> Result<(), Trouble> {
        let Some(at) = self.legs.iter().position(|leg| leg.id == id) else {
            return Ok(());
        };
        let mut leg = self.legs.remove(at);
        if let Some(fates) = leg.fates.take() {
            fates.close(&mut self.missing);
        }
        self.past.add(statistics);
        self.reporter.disconnected(&leg.connection, end);
        match self.line.on_lost(end) {
            // One of many callers may go when it wants.
            Lost::ForGood(trouble) if self.most_legs == 1 => Err(trouble),
            _ => Ok(()),
        }
    }

    /// Gives a section to everybody who is connected.
    pub(crate) async fn write(&mut self, passing: &Passing) {
        if self.legs.is_empty() {
            self.unsent.unconnected += 1;
            if self.lists {
                self.missing.push(never_given(passing, "unconnected"));
            }
        }
        for leg in &mut self.legs {
            let given = leg
                .give(passing, (self.reliability, self.sheds), &mut self.unsent)
                .await;
            if let (Err(reason), true) = (given, self.lists) {
                self.missing.push(never_given(passing, reason));
            }
        }
    }

    /// Tells everybody who is connected that a section is missing: it is so in their lists too, under the next
    /// number, and what needs it is worth nothing to them either.
    pub(crate) fn skip(&mut self, missing: &Missing) {
        for leg in &mut self.legs {
            leg.skip(missing.stream, missing.number);
        }
    }

    /// Waits until everything that was given has arrived or expired, and closes.
    pub(crate) async fn finish(&mut self) -> Result<(), Trouble> {
        if self.legs.is_empty() {
            return Err(Trouble::unconnected(match self.was_connected() {
                true => "the connection was lost, and not made again before the input ended",
                false => "the input ended before there was a connection",
            }));
        }
        self.ends.abort_all();
        let mut finishing = JoinSet::new();
        for leg in self.legs.drain(..) {
            // What has deadlines is settled when they have passed; what has none takes as long as it takes.
            let patience = match (self.reliability, leg.settled) {
                (Reliability::Full, _) | (_, Settled::Never) => Duration::MAX,
                (_, Settled::At(moment)) => {
                    moment.saturating_duration_since(now()) + self.line.linger
                }
            };
            finishing.spawn(async move {
                let finished = tokio::time::timeout(patience, leg.connection.finish()).await;
                let statistics = leg.connection.statistics().await;
                (leg, finished, statistics)
            });
        }
        let mut done = Ok(());
        while let Some(finished) = finishing.join_next().await {
            let Ok((leg, finished, statistics)) = finished else {
                continue;
            };
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
        let open = self.legs.iter().map(|leg| leg.connection.clone());
        (open.collect(), self.past)
    }
}

impl Leg {
    fn skip(&mut self, stream: u16, number: u64) {
        let numbers = self.streams.entry(stream).or_default();
        numbers.see(number);
        // Where there is no room even for that, the receiver's list has a hole; what it needs is left out all the
        // same.
        if let Ok(id) = self.connection.skip(StreamId(stream)) {
            numbers.give(number, id);
        }
    }

    /// Gives it a section; an error says why it was not given.
    async fn give(
        &mut self,
        passing: &Passing,
        (reliability, sheds): (Reliability, bool),
        unsent: &mut Unsent,
    ) -> Result<(), &'static str> {
        let stream = StreamId(passing.stream);
        let numbers = self.streams.entry(passing.stream).or_default();
        numbers.see(passing.number);
        let Ok(needs) = numbers.needed(passing.needs) else {
            unsent.dependent += 1;
            self.skip(passing.stream, passing.number);
            return Err("dependency");
        };
        let is_shed = match &passing.media {
            Some(section) if sheds => {
                if let Some(target) = self.target.current() {
                    self.shedder.retarget(section.source_time, target, None);
                }
                self.shedder.offer(section) != Verdict::Keep
            }
            _ => false,
        };
        let section = passing.section(needs, self.connection.latency());
        let due = section.deadline.unwrap_or(Duration::MAX);
        let settled = match passing.source_time.checked_add(due) {
            Some(moment) => Settled::At(moment),
            None => Settled::Never,
        };
        let given = match reliability {
            Reliability::Full => self.connection.send(section).await,
            _ => self.connection.try_send(section),
        };
        match given {
            Ok(id) => {
                numbers.give(passing.number, id);
                self.settled = self.settled.max(settled);
                if let Some(fates) = &mut self.fates {
                    fates.follow(id, passing);
                }
                if is_shed {
                    // It was given all the same, so that the receiver can name what it does not get.
                    self.connection.shed(stream, id);
                }
            }
            Err(SendError::Full { .. }) => {
                unsent.no_room += 1;
                self.skip(passing.stream, passing.number);
                return Err("no room");
            }
            // Its end is told elsewhere.
            Err(SendError::Ended(_) | SendError::Finishing) => {
                unsent.unconnected += 1;
                return Err("unconnected");
            }
            Err(_) => {
                unsent.unfit += 1;
                return Err("unfit");
            }
        }
        Ok(())
    }
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
