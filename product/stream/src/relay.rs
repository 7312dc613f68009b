//! Relays from a source to a sink, until one of them ends.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use comity::Connection;
use tokio::time::sleep_until;

use crate::clock::now;
use crate::counters::Counters;
use crate::error::Error;
use crate::event::{Event, Observer};
use crate::lock::lock;
use crate::missing::{Missing, MissingReason};
use crate::named::Named;
use crate::statistics::{Passed, Snapshot};
use crate::unit::{Due, MediaUnit, Notice, SourceItem};

/// Where sections come from: a [`Receiver`](crate::Receiver), or a host's own reader of media.
pub trait Source: Send {
    /// The next item; `None` after the last. Cancel safe: dropping the call before it completes
    /// loses nothing.
    ///
    /// # Errors
    ///
    /// Any error that ends the source early; [`Error::Host`] for an error of the host's own source.
    fn next(&mut self) -> impl Future<Output = Result<Option<SourceItem>, Error>> + Send;

    /// Ends the source in good order: [`next`](Self::next) then returns only items that have
    /// already arrived.
    fn cut(&mut self);

    /// Ends the source because the sink failed, with the reason for the peer: [`next`](Self::next)
    /// then returns, at once, the items that have already arrived.
    fn refuse(&mut self, reason: &str);

    /// Closes the source, with the reason for the peer after a failure.
    fn close(&mut self, reason: Option<&str>) -> impl Future<Output = ()> + Send;

    /// Whether it waits until it is read, so that nothing is lost before a connection exists.
    fn is_patient(&self) -> bool {
        false
    }

    /// Whether it has called and no peer has answered.
    fn is_unanswered(&self) -> bool {
        false
    }

    /// Its counters.
    fn counters(&self) -> Counters;
}

/// Where sections go: a [`Fanout`](crate::Fanout), or a host's own writer of media.
pub trait Sink: Send {
    /// Whether it has a destination now.
    fn is_ready(&self) -> bool {
        true
    }

    /// Whether it has, or once had, a destination.
    fn was_ready(&self) -> bool {
        true
    }

    /// Whether it has called and no peer has answered.
    fn is_unanswered(&self) -> bool {
        false
    }

    /// Whether more may be written. Only [`tend`](Self::tend) changes this.
    fn has_room(&self) -> bool {
        true
    }

    /// Does the sink's own work, and returns when something has changed. Cancel safe: dropping the
    /// call before it completes loses nothing.
    ///
    /// # Errors
    ///
    /// Any error that ends the sink early.
    fn tend(&mut self) -> impl Future<Output = Result<Written, Error>> + Send;

    /// Accepts a section, which [`flush`](Self::flush) writes.
    fn write(&mut self, unit: &MediaUnit) -> Written;

    /// Writes accepted sections, if that waits for a disk or a reader. Cancel safe: dropping the
    /// call before it completes loses nothing.
    ///
    /// # Errors
    ///
    /// Any error that ends the sink early.
    fn flush(&mut self) -> impl Future<Output = Result<Written, Error>> + Send {
        async { Ok(Written::Yes) }
    }

    /// Reports a missing section to the destination, if the destination supports it.
    fn skip(&mut self, _missing: &Missing) {}

    /// The sections that went missing after the sink since the last call. If the sink
    /// [follows](Self::follows) its sections, damaged sections that arrived are included.
    fn take_missing(&mut self) -> Vec<Missing> {
        Vec::new()
    }

    /// Whether the sink follows the fate of each section that it accepts.
    fn follows(&self) -> bool {
        false
    }

    /// The accepted sections that could not be written, since the last call.
    fn take_unwritten(&mut self) -> Vec<Missing> {
        Vec::new()
    }

    /// Whether nothing more can be written.
    fn has_failed(&self) -> bool {
        false
    }

    /// Gives up sections that wait for room or for a reader: they are reported as missing or
    /// unwritten.
    fn abandon(&mut self) {}

    /// Waits until everything has reached its destination, then closes the sink.
    ///
    /// # Errors
    ///
    /// If something did not reach its destination.
    fn finish(&mut self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Its counters.
    fn counters(&self) -> Counters;
}

/// The fate of a section at a [`Sink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The sink accepted it.
    Yes,
    /// Its media header is invalid: nothing of it was written.
    Malformed,
    /// The reader of the output is gone.
    ReaderGone,
}

/// Why a relay ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The source ended.
    Done,
    /// The host stopped it.
    Stopped,
    /// The reader of the output is gone.
    ReaderGone,
    /// The host did not wait for an orderly end.
    Abandoned,
}

/// The time limit of an abandoned relay for reporting the sections that it does not pass on.
const ABANDONING: Duration = Duration::from_millis(500);

/// Passes sections from a source to a sink.
///
/// Its memory is bounded: it holds at most one section. The rest waits in the source, for example
/// in the receive buffer of its connection, and thus exerts back-pressure on the sender.
#[derive(Debug)]
pub struct Relay<I, O> {
    source: I,
    sink: O,
    observer: Observer,
    monitor: Monitor,
    /// A section with its own deadline that waits for a connection. Meanwhile nothing is read from
    /// the source.
    held: Option<MediaUnit>,
    named: Named,
}

/// Takes snapshots of a relay at any moment, from any thread, without waiting.
#[derive(Clone, Debug)]
pub struct Monitor {
    began: Instant,
    source: Counters,
    sink: Counters,
    passed: Arc<Mutex<Passed>>,
}

impl Monitor {
    /// The statistics up to now.
    pub fn snapshot(&self) -> Snapshot {
        let elapsed = now().saturating_duration_since(self.began);
        Snapshot {
            elapsed_s: elapsed.as_millis() as f64 / 1e3,
            input: self.source.side(),
            output: self.sink.side(),
            passed: lock(&self.passed).clone(),
        }
    }

    /// When the relay began. Times of gap entries are relative to it.
    pub const fn began(&self) -> Instant {
        self.began
    }

    /// The open connections of the source.
    pub fn source_connections(&self) -> Vec<Connection> {
        self.source.connections()
    }

    /// The open connections of the sink.
    pub fn sink_connections(&self) -> Vec<Connection> {
        self.sink.connections()
    }
}

enum Step {
    Stop,
    Tended(Result<Written, Error>),
    Item(Result<Option<SourceItem>, Error>),
    /// The section that waits for a connection has expired.
    Overdue,
}

type Stop<'a, F> = Pin<&'a mut F>;

/// Waits until the deadline; forever if there is none.
async fn until(due: Option<Due>) {
    match due {
        Some(Due::At(moment)) => sleep_until(moment.into()).await,
        _ => pending().await,
    }
}

impl<I: Source, O: Sink> Relay<I, O> {
    /// A relay from `source` to `sink` that reports missing sections and notices to `observer`.
    pub fn new(source: I, sink: O, observer: Observer) -> Self {
        let monitor = Monitor {
            began: now(),
            source: source.counters(),
            sink: sink.counters(),
            passed: Arc::default(),
        };
        Self {
            source,
            sink,
            observer,
            monitor,
            held: None,
            named: Named::default(),
        }
    }

    /// A handle that takes snapshots while the relay runs, and after it.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Relays until the source ends, the sink fails or `stop` is ready. Then it passes on the
    /// sections that have arrived, reports the missing ones, and closes both ends.
    ///
    /// # Errors
    ///
    /// [`Error`]: the first failure. After `stop`, a lost connection is not a failure, but a call
    /// that nobody has answered is.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Ending, Error> {
        self.run_until(stop, pending()).await
    }

    /// Like [`run`](Self::run), but once `abandon` is ready too, it waits neither for a reader nor
    /// for a peer. It then reports the sections that arrived and are not passed on.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn run_until(
        mut self,
        stop: impl Future<Output = ()>,
        abandon: impl Future<Output = ()>,
    ) -> Result<Ending, Error> {
        let ending = self.pass(pin!(stop)).await;
        let ended = tokio::select! {
            biased;
            ended = self.end(ending) => Some(ended),
            () = abandon => None,
        };
        match ended {
            Some(ended) => ended,
            None => {
                // The peer may be gone.
                let _ = tokio::time::timeout(ABANDONING, self.abandon()).await;
                Ok(Ending::Abandoned)
            }
        }
    }

    /// Reports the sections that are not passed on, and closes the source.
    async fn abandon(&mut self) {
        const REASON: &str = "interrupted";
        self.sink.abandon();
        self.report_missing();
        self.source.refuse(REASON);
        self.report_unwritten().await;
        self.source.close(Some(REASON)).await;
    }

    /// Passes on the sections that have arrived, reports the missing ones, and closes both ends.
    async fn end(&mut self, mut ending: Result<Ending, Error>) -> Result<Ending, Error> {
        if matches!(ending, Ok(Ending::Stopped)) && self.has_begun() {
            self.source.cut();
            if let Err(error) = self.drain().await {
                ending = Err(error);
            }
        }
        if let Err(error) = &ending
            && !self.sink.has_failed()
            && self.has_begun()
        {
            // Items from before the error are passed on, or reported as unsent.
            self.source.refuse(error.for_peer());
            if let Err(error) = self.drain().await {
                self.observer.on_event(&Event::Undrained(&error));
            }
        }
        let finished = match &ending {
            Ok(Ending::ReaderGone) => Ok(()),
            Ok(Ending::Stopped) if !self.sink.was_ready() => Ok(()),
            _ => self.sink.finish().await,
        };
        self.report_missing();
        let reason = match (&ending, &finished) {
            (Err(error), _) | (_, Err(error)) => Some(error.for_peer()),
            _ => None,
        };
        if self.sink.has_failed() {
            match reason {
                Some(reason) => self.source.refuse(reason),
                None => self.source.cut(),
            }
            self.report_unwritten().await;
        }
        self.source.close(reason).await;
        let is_unanswered = self.source.is_unanswered() || self.sink.is_unanswered();
        match (ending?, finished) {
            (Ending::Stopped, _) if is_unanswered => Err(Error::Unanswered),
            // A host that stops the relay expects that some sections may not arrive.
            (Ending::Stopped, Err(error)) if error.is_unconnected() => Ok(Ending::Stopped),
            (ending, finished) => finished.map(|()| ending),
        }
    }

    /// Whether anything may have been read: a patient source is not read before a peer is
    /// connected.
    fn has_begun(&self) -> bool {
        !self.source.is_patient() || self.sink.was_ready()
    }

    async fn pass<F: Future<Output = ()>>(
        &mut self,
        mut stop: Stop<'_, F>,
    ) -> Result<Ending, Error> {
        loop {
            if self.sink.is_ready()
                && let Some(unit) = self.held.take()
                && let Some(ending) = self
                    .take_or_stop(SourceItem::Unit(unit), stop.as_mut())
                    .await?
            {
                return Ok(ending);
            }
            let is_open = self.held.is_none() && self.has_begun() && self.sink.has_room();
            let overdue = self.held.as_ref().map(|held| held.due);
            let step = tokio::select! {
                biased;
                () = stop.as_mut() => Step::Stop,
                tended = self.sink.tend() => Step::Tended(tended),
                () = until(overdue), if overdue.is_some() => Step::Overdue,
                item = self.source.next(), if is_open => Step::Item(item),
            };
            let item = match step {
                Step::Stop => return Ok(Ending::Stopped),
                Step::Tended(tended) => match tended? {
                    Written::ReaderGone => return Ok(Ending::ReaderGone),
                    _ => {
                        self.report_missing();
                        continue;
                    }
                },
                Step::Item(item) => match item? {
                    None => return Ok(Ending::Done),
                    Some(SourceItem::Unit(unit)) if unit.may_wait() && !self.sink.is_ready() => {
                        self.held = Some(unit);
                        continue;
                    }
                    Some(item) => item,
                },
                Step::Overdue => match self.held.take() {
                    Some(unit) => SourceItem::Unit(unit),
                    None => continue,
                },
            };
            if let Some(ending) = self.take_or_stop(item, stop.as_mut()).await? {
                return Ok(ending);
            }
        }
    }

    /// Passes on an item. Returns the reason if the relay ends meanwhile: sections that wait for
    /// room stay with the sink.
    async fn take_or_stop<F: Future<Output = ()>>(
        &mut self,
        item: SourceItem,
        stop: Stop<'_, F>,
    ) -> Result<Option<Ending>, Error> {
        tokio::select! {
            biased;
            written = self.take(item) => Ok(match written? {
                Written::ReaderGone => Some(Ending::ReaderGone),
                _ => None,
            }),
            () = stop => Ok(Some(Ending::Stopped)),
        }
    }

    /// Passes on the sections received before the end.
    async fn drain(&mut self) -> Result<(), Error> {
        if self.sink.flush().await? == Written::ReaderGone {
            return Ok(());
        }
        if let Some(unit) = self.held.take() {
            self.take(SourceItem::Unit(unit)).await?;
        }
        loop {
            while !self.sink.has_room() {
                self.sink.tend().await?;
            }
            let Some(item) = self.source.next().await? else {
                return Ok(());
            };
            if self.take(item).await? == Written::ReaderGone {
                return Ok(());
            }
        }
    }

    async fn take(&mut self, item: SourceItem) -> Result<Written, Error> {
        match item {
            SourceItem::Notice(notice) => {
                self.notice(&notice);
                Ok(Written::Yes)
            }
            SourceItem::Missing(missing) => {
                self.named.see(missing.stream, missing.id);
                self.sink.skip(&missing);
                self.miss(&missing);
                self.sink.flush().await
            }
            SourceItem::Unit(unit) => {
                self.named.see(unit.stream, unit.id);
                let written = self.sink.write(&unit);
                if written == Written::Malformed {
                    self.miss(&Missing {
                        kind: None,
                        missing_bytes: Some(0),
                        ..unit.missing(MissingReason::Malformed)
                    });
                    return Ok(written);
                }
                // If the section is not written in the end, it is subtracted again.
                self.passed(|passed| passed.add(&unit));
                self.report_missing();
                if unit.is_damaged {
                    let damaged = unit.damaged();
                    self.count(&damaged);
                    // If the sink follows it, its fate is reported later, perhaps with another
                    // reason.
                    if !self.sink.follows() {
                        self.name(&damaged);
                    }
                }
                self.sink.flush().await
            }
        }
    }

    fn passed(&self, change: impl FnOnce(&mut Passed)) {
        change(&mut lock(&self.monitor.passed));
    }

    fn notice(&self, notice: &Notice) {
        let mut count = 0;
        self.passed(|passed| {
            let counted = passed.notices.entry(notice.kind).or_default();
            *counted += 1;
            count = *counted;
        });
        self.observer.on_event(&Event::Notice(notice, count));
    }

    /// Counts and reports a section that is not passed on.
    fn miss(&self, missing: &Missing) {
        self.count(missing);
        self.observer.on_event(&Event::Missing(missing));
    }

    fn count(&self, missing: &Missing) {
        self.passed(|passed| {
            // A peer states the length of a run, so the sum may overflow.
            let counted = passed.gaps.entry(missing.reason).or_default();
            *counted = counted.saturating_add(missing.count);
        });
    }

    /// Reports, once, a section that the sink accepted.
    fn name(&mut self, missing: &Missing) {
        if self.named.is_first(missing) {
            self.observer.on_event(&Event::Missing(missing));
        }
    }

    /// Reports sections that were passed on and, as far as the sink knows, did not arrive.
    fn report_missing(&mut self) {
        for missing in self.sink.take_missing() {
            self.name(&missing);
        }
    }

    /// Reports the unwritten sections of a failed sink, and the sections received since.
    async fn report_unwritten(&mut self) {
        if let Some(unit) = self.held.take() {
            self.miss(&unit.missing(MissingReason::Unwritten));
        }
        for missing in self.sink.take_unwritten() {
            self.passed(|passed| passed.subtract(&missing));
            self.count(&missing);
            self.name(&missing);
        }
        while let Ok(Some(item)) = self.source.next().await {
            match item {
                SourceItem::Unit(unit) => self.miss(&unit.missing(MissingReason::Unwritten)),
                SourceItem::Missing(missing) => self.miss(&missing),
                SourceItem::Notice(_) => {}
            }
        }
    }
}
