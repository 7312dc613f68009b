//! Sections that another Comity sends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use comity::{CloseCode, Connection, GapReason, Item, Reason};

use super::super::line::{Line, Lost};
use super::super::media_unit::{Due, MediaUnit, Missing, Passage, kind_of};
use super::super::now;
use super::super::refusals::Counts;
use super::super::status::Reporter;
use super::super::totals::Totals;
use super::super::trouble::Trouble;

/// What handing over may take beyond the latency.
const MARGIN: Duration = Duration::from_millis(20);

/// How long what had arrived may take to come when the connection is over.
const HANDED_OVER: Duration = Duration::from_secs(1);

/// Receives from one connection after the other.
#[derive(Debug)]
pub(crate) struct ConnectedInput {
    line: Line,
    /// How much later sections are due for those whom they are passed on to.
    add_latency: Duration,
    connection: Option<Arc<Connection>>,
    reporter: Reporter,
    /// What the connections before this one counted.
    past: Totals,
    /// Until when what had arrived at the cut is waited for.
    cut: Option<Instant>,
}

impl ConnectedInput {
    pub(crate) fn new(line: Line, add_latency: Duration, reporter: Reporter) -> Self {
        Self {
            line,
            add_latency,
            connection: None,
            reporter,
            past: Totals::default(),
            cut: None,
        }
    }

    /// What comes next; `None` when the sender is done. A call that is dropped before it is ready
    /// loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Passage>, Trouble> {
        if let Some(until) = self.cut {
            let Some(connection) = &self.connection else {
                return Ok(None);
            };
            let item = match tokio::time::timeout_at(until.into(), connection.recv()).await {
                Ok(item) => item,
                Err(_) => {
                    // Whatever is left comes at once, with the sections that are not whole as gaps.
                    connection.close(CloseCode::DONE, "");
                    connection.recv().await
                }
            };
            return Ok(item.map(|item| passage(item, self.add_latency)));
        }
        loop {
            let connection = match &self.connection {
                Some(connection) => connection.clone(),
                None => {
                    let connection = Arc::new(self.line.connection().await?);
                    self.reporter.connected(&connection);
                    self.connection.insert(connection).clone()
                }
            };
            if let Some(item) = connection.recv().await {
                return Ok(Some(passage(item, self.add_latency)));
            }
            let end = connection.closed().await;
            let statistics = connection.stats();
            self.past.add(&statistics);
            self.connection = None;
            self.reporter.disconnected(&connection, &end);
            if end.is_clean() {
                return Ok(None);
            }
            match self.line.on_lost(&end) {
                Lost::AnotherWillCome => {}
                Lost::ForGood(trouble) => return Err(trouble),
            }
        }
    }

    /// Lets only that come which has arrived already. Its turn comes within the latency at the
    /// latest; nothing else is taken meanwhile, so that the sender does not count it as arrived.
    pub(crate) fn cut(&mut self) {
        if let Some(connection) = &self.connection {
            connection.stop_receiving();
        }
        let latency = self
            .connection
            .as_ref()
            .map_or(Duration::ZERO, |open| open.latency());
        self.cut = now().checked_add(latency + MARGIN);
    }

    /// Ends the connection since nothing more can be taken, and lets only that come which has
    /// arrived already: all of it comes at once.
    pub(crate) fn refuse(&mut self, trouble: &Trouble) {
        if let Some(connection) = &self.connection {
            connection.close(CloseCode::APPLICATION, &trouble.message);
        }
        self.cut = now().checked_add(HANDED_OVER);
    }

    /// Ends the connection, and says why where something went wrong.
    pub(crate) async fn close(&mut self, trouble: Option<&Trouble>) {
        if let Some(connection) = self.connection.take() {
            match trouble {
                Some(trouble) => {
                    connection.close(CloseCode::APPLICATION, &trouble.message);
                }
                None => connection.close(CloseCode::DONE, ""),
            }
            connection.closed().await;
            self.past.add(&connection.stats());
        }
        self.line.close().await;
    }

    /// Whether it called, and nobody has answered.
    pub(crate) fn called_in_vain(&self) -> bool {
        self.line.called_in_vain()
    }

    /// How many callers were turned away, by the reason.
    pub(crate) fn refused(&self) -> Counts {
        self.line.refused()
    }

    /// The connection that is open, and what those before it counted.
    pub(crate) fn connections(&self) -> (Vec<Arc<Connection>>, Totals) {
        (self.connection.iter().cloned().collect(), self.past)
    }
}

fn passage(item: Item, add_latency: Duration) -> Passage {
    match item {
        Item::Section(section) => Passage::Section(MediaUnit {
            stream: section.stream.0,
            number: section.id.0,
            importance: section.about.importance.0,
            source_time: section.about.source_time,
            due: section
                .about
                .deadline
                .and_then(|deadline| deadline.checked_add(add_latency))
                .map_or(Due::Never, Due::At),
            needs: section.about.needs.map(|needs| needs.0),
            payload: section.payload,
            media: None,
        }),
        Item::Gap(gap) => {
            let partial = gap.partial.as_ref();
            Passage::Gap(Missing {
                stream: gap.stream.0,
                number: gap.id.0,
                // The header is in the first bytes: without them there is nothing to read.
                kind: partial
                    .filter(|partial| partial.missing.first().is_none_or(|first| first.start > 32))
                    .and_then(|partial| kind_of(&partial.payload)),
                reason: reason(gap.reason),
                length: partial.map(|partial| partial.about.length.into()),
                missing_bytes: partial.map(|partial| {
                    let missing = partial.missing.iter();
                    missing
                        .map(|range| u64::from(range.end - range.start))
                        .sum()
                }),
                source_time: partial.map(|partial| partial.about.source_time),
            })
        }
    }
}

/// The word for why a section is not whole.
fn reason(reason: GapReason) -> &'static str {
    match reason {
        GapReason::Closed => "closed",
        GapReason::Dropped(Reason::Cancelled) => "cancelled",
        GapReason::Dropped(Reason::Dependency) => "dependency",
        GapReason::Dropped(Reason::Expired) => "expired",
        GapReason::Dropped(Reason::Infeasible) => "infeasible",
        GapReason::Dropped(Reason::Shed) => "shed",
        GapReason::Obsolete => "obsolete",
        GapReason::Overdue => "overdue",
    }
}
