//! A source that receives from one connection after another.

use std::time::{Duration, Instant};

use comity::{CloseCode, Connection, Deliver, Item};

use crate::clock::now;
use crate::counters::{ConnectionId, Counters, SharedConnections};
use crate::dialer::{Dialer, Lost};
use crate::error::Error;
use crate::event::Event;
use crate::missing::Missing;
use crate::relay::Source;
use crate::unit::{Due, MediaUnit, SourceItem, kind_of};

/// The extra time, beyond the latency, for delivering a section.
const MARGIN: Duration = Duration::from_millis(20);

/// The time limit for delivering the remaining sections after the end of a connection.
const HANDED_OVER: Duration = Duration::from_secs(1);

/// The length of the beginning of a section that always contains its media header.
const HEADER: u32 = 32;

/// A source that receives from one connection after another.
#[derive(Debug)]
pub struct Receiver {
    dialer: Dialer,
    add_latency: Duration,
    connection: Option<(ConnectionId, Connection)>,
    connections: SharedConnections,
    /// When the delivery of sections that arrived before the cut ends.
    cut: Option<Instant>,
}

impl Receiver {
    /// Receives from the connections of `dialer`. Adds `add_latency`, the time for the rest of the
    /// path, to the deadlines.
    ///
    /// To pass sections on in time, the configuration needs
    /// [`Deliver::Early`](comity::Deliver::Early). Otherwise the receiver delivers them at their
    /// deadline.
    pub fn new(dialer: Dialer, add_latency: Duration) -> Self {
        let connections = SharedConnections::new(dialer.refusals().clone(), false);
        Self {
            dialer,
            add_latency,
            connection: None,
            connections,
            cut: None,
        }
    }

    fn item(&self, item: Item) -> SourceItem {
        source_item(item, self.add_latency)
    }

    /// The next section that arrived before the cut.
    async fn next_until(&mut self, until: Instant) -> Option<SourceItem> {
        let (_, connection) = self.connection.clone()?;
        let item = match tokio::time::timeout_at(until.into(), connection.recv()).await {
            Ok(item) => item,
            Err(_) => {
                // The rest is delivered at once, incomplete sections as gaps.
                connection.deliver_at_once();
                connection.recv().await
            }
        };
        Some(self.item(item?))
    }
}

impl Source for Receiver {
    async fn next(&mut self) -> Result<Option<SourceItem>, Error> {
        if let Some(until) = self.cut {
            return Ok(self.next_until(until).await);
        }
        loop {
            let (id, connection) = match &self.connection {
                Some(open) => open.clone(),
                None => {
                    let connection = self.dialer.connection().await?;
                    let id = self.connections.open(connection.clone());
                    let connected = Event::Connected(&connection);
                    self.dialer.observer().on_event(&connected);
                    self.connection.insert((id, connection)).clone()
                }
            };
            if let Some(item) = connection.recv().await {
                return Ok(Some(self.item(item)));
            }
            let end = connection.closed().await;
            self.connections.close(id);
            self.connection = None;
            let disconnected = Event::Disconnected(&connection, &end);
            self.dialer.observer().on_event(&disconnected);
            if end.is_clean() && !self.dialer.outlasts_senders() {
                self.dialer.stop_accepting();
                return Ok(None);
            }
            match self.dialer.on_lost(&end) {
                Lost::AnotherWillCome => {}
                Lost::ForGood(error) => return Err(error),
            }
        }
    }

    /// Delivers only sections that have arrived. With paced delivery, they are delivered at their
    /// deadlines for at most `linger`, and the rest at once. The connection acknowledges nothing
    /// more, so the sender does not count later data as arrived.
    fn cut(&mut self) {
        self.dialer.stop_accepting();
        let settings = self.dialer.config().settings();
        let mut wait = Duration::ZERO;
        if let Some((_, connection)) = &self.connection {
            connection.stop_receiving();
            if settings.deliver == Deliver::Paced {
                wait = connection.latency().min(settings.linger);
            }
        }
        self.cut = now().checked_add(wait + MARGIN);
    }

    fn refuse(&mut self, reason: &str) {
        self.dialer.stop_accepting();
        if let Some((_, connection)) = &self.connection {
            connection.close(CloseCode::APPLICATION, reason);
        }
        self.cut = now().checked_add(HANDED_OVER);
    }

    async fn close(&mut self, reason: Option<&str>) {
        self.dialer.stop_accepting();
        if let Some((id, connection)) = self.connection.take() {
            match reason {
                Some(reason) => connection.close(CloseCode::APPLICATION, reason),
                None => connection.close(CloseCode::DONE, ""),
            }
            connection.closed().await;
            self.connections.close(id);
        }
        self.dialer.close().await;
    }

    fn is_unanswered(&self) -> bool {
        self.dialer.is_unanswered()
    }

    fn counters(&self) -> Counters {
        Counters::of_connections(&self.connections)
    }
}

/// Converts a received item for a relay. The deadline is that of the whole path: `add_latency`
/// covers the rest of it.
pub(crate) fn source_item(item: Item, add_latency: Duration) -> SourceItem {
    match item {
        Item::Section(section) => SourceItem::Unit(MediaUnit {
            stream: section.stream,
            id: section.id,
            importance: section.about.importance,
            source_time: section.about.source_time,
            due: section
                .about
                .deadline
                .and_then(|deadline| deadline.checked_add(add_latency))
                .map_or(Due::Never, Due::At),
            needs: section.about.needs,
            payload: section.payload,
            frame: None,
            is_damaged: false,
        }),
        Item::Gap(gap) => {
            let partial = gap.partial.as_ref();
            SourceItem::Missing(Missing {
                stream: gap.stream,
                id: gap.id,
                count: gap.count,
                kind: partial
                    .filter(|partial| {
                        let first = partial.missing.first();
                        first.is_none_or(|first| first.start > HEADER)
                    })
                    .and_then(|partial| kind_of(&partial.payload)),
                reason: gap.reason.into(),
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
