//! MediaUnit on what comes, until it ends.

use std::future::pending;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval, sleep_until};

use super::advice::LatencyAdvice;
use super::gaps::GapList;
use super::input::Input;
use super::media_unit::{Due, MediaUnit, Missing, Passage, Remark};
use super::metrics::Metrics;
use super::output::{Output, Written};
use super::snapshot::{Passed, Snapshot};
use super::status::Reporter;
use super::stop::Stop;
use super::trouble::Trouble;

/// How often the status line of a terminal is written, and the numbers for Prometheus are brought
/// up to date.
const GLANCE: Duration = Duration::from_millis(500);
/// How many notices of one kind are told one by one.
const MAX_NOTICES: u64 = 20;

/// What is told of the source in this time is said to be of all of it.
const AT_THE_BEGINNING: Duration = Duration::from_millis(500);

/// An input, an output, and what is told of them.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// Whether the input waits until there is somebody to send to.
    pub(crate) is_patient: bool,
    pub(crate) gaps: Option<GapList>,
    /// Why the list of gaps ends before what is passed on does.
    pub(crate) unlisted: Option<Trouble>,
    pub(crate) advice: LatencyAdvice,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) reporter: Reporter,
    /// How often it is told how it stands, other than on a terminal; `None` for never.
    pub(crate) every: Option<Duration>,
    pub(crate) began: Instant,
    pub(crate) passed: Passed,
    /// What came with a deadline of its own, and waits for a connection to go to. Nothing behind it
    /// is read meanwhile: that waits in the connection that it comes from.
    pub(crate) held: Option<MediaUnit>,
}

/// Why nothing more is passed on.
#[derive(Debug)]
enum Ending {
    /// The input has ended.
    Done,
    /// Somebody wants it to stop.
    Stopped,
    /// Nobody reads the output any more.
    ReaderGone,
    Failed(Trouble),
}

enum Step {
    Stop,
    Tended(Result<Written, Trouble>),
    Glance,
    Tell,
    Passage(Result<Option<Passage>, Trouble>),
    /// What waits for a connection to go to has become worthless.
    Overdue,
}

/// Waits until something is due; for what never is, for ever.
async fn until(due: Option<Due>) {
    match due {
        Some(Due::At(moment)) => sleep_until(moment.into()).await,
        _ => pending().await,
    }
}

impl Session {
    /// Passes on what comes; at the end, whatever the reason, what has come so far is written and
    /// the account is given.
    pub(crate) async fn run(mut self, mut stop: Stop) -> Result<(), Trouble> {
        let mut ending = self.pass(&mut stop).await;
        if matches!(ending, Ending::Stopped) && self.has_begun() {
            self.input.cut();
            if let Err(trouble) = self.drain().await {
                ending = Ending::Failed(trouble);
            }
        }
        if let Ending::Failed(trouble) = &ending
            && !self.output.has_failed()
            && self.has_begun()
        {
            // What came before it still counts: it is passed on, or named as not sent.
            self.input.refuse(trouble);
            if let Err(trouble) = self.drain().await {
                self.reporter.warn(&trouble.message);
            }
        }
        let finished = match &ending {
            Ending::ReaderGone => Ok(()),
            Ending::Stopped if !self.output.was_ready() => Ok(()),
            _ => self.output.finish().await,
        };
        self.list_unarrived();
        let trouble = match (&ending, &finished) {
            (Ending::Failed(trouble), _) | (_, Err(trouble)) => Some(trouble.clone()),
            _ => None,
        };
        if self.output.has_failed() {
            match &trouble {
                Some(trouble) => self.input.refuse(trouble),
                None => self.input.cut(),
            }
            self.list_unwritten().await;
        }
        let finished = finished.and(match self.unlisted.take() {
            Some(trouble) => Err(trouble),
            None => Ok(()),
        });
        self.input.close(trouble.as_ref()).await;
        let snapshot = self.snapshot().await;
        self.reporter.object("end", &snapshot);
        self.reporter.account(&snapshot);
        self.reporter.close();
        match ending {
            Ending::Failed(trouble) => Err(trouble),
            Ending::ReaderGone => finished,
            // Whoever stops it knows that not everything may have arrived.
            Ending::Stopped if self.called_in_vain() => Err(Trouble::unconnected(
                "stopped before anybody had answered the call",
            )),
            Ending::Stopped => finished.or_else(|trouble| match trouble.failure {
                crate::commands::Failure::Unconnected => Ok(()),
                _ => Err(trouble),
            }),
            Ending::Done => finished,
        }
    }

    /// Whether it called at either end, and nobody has answered.
    fn called_in_vain(&self) -> bool {
        self.input.called_in_vain() || self.output.called_in_vain()
    }

    /// Whether anything may have been read: an input that waits until there is somebody to send to
    /// holds on to what it has.
    fn has_begun(&self) -> bool {
        !self.is_patient || self.output.was_ready()
    }

    async fn pass(&mut self, stop: &mut Stop) -> Ending {
        let mut glance = interval(GLANCE);
        let mut tell = interval(self.every.unwrap_or(Duration::MAX / 4));
        for timer in [&mut glance, &mut tell] {
            timer.set_missed_tick_behavior(MissedTickBehavior::Skip);
            // The first one is at once.
            timer.tick().await;
        }
        loop {
            if self.output.is_ready()
                && let Some(passing) = self.held.take()
                && let Some(ending) = self.take_or_stop(Passage::Section(passing), stop).await
            {
                return ending;
            }
            let is_open = self.held.is_none() && self.has_begun() && self.output.has_room();
            let overdue = self.held.as_ref().map(|held| held.due);
            let step = tokio::select! {
                biased;
                () = stop.wanted() => Step::Stop,
                tended = self.output.tend() => Step::Tended(tended),
                _ = glance.tick() => Step::Glance,
                _ = tell.tick(), if self.every.is_some() => Step::Tell,
                () = until(overdue), if overdue.is_some() => Step::Overdue,
                passage = self.input.next(), if is_open => Step::Passage(passage),
            };
            let result = match step {
                Step::Stop => return Ending::Stopped,
                Step::Tended(Ok(Written::ReaderGone)) => return Ending::ReaderGone,
                Step::Tended(tended) => tended.map(drop),
                Step::Glance => {
                    self.glance().await;
                    Ok(())
                }
                Step::Tell => {
                    self.tell().await;
                    Ok(())
                }
                Step::Passage(Err(trouble)) => Err(trouble),
                Step::Passage(Ok(None)) => return Ending::Done,
                Step::Passage(Ok(Some(Passage::Section(passing))))
                    if passing.may_wait() && !self.output.is_ready() =>
                {
                    self.held = Some(passing);
                    Ok(())
                }
                Step::Passage(Ok(Some(passage))) => match self.take_or_stop(passage, stop).await {
                    Some(ending) => return ending,
                    None => Ok(()),
                },
                Step::Overdue => match self.held.take() {
                    Some(passing) => self.take(Passage::Section(passing)).await.map(drop),
                    None => Ok(()),
                },
            };
            if let Err(trouble) = result {
                return Ending::Failed(trouble);
            }
        }
    }

    /// Takes what came; why it ends, if it does. What has to wait for room meanwhile stays with the
    /// output.
    async fn take_or_stop(&mut self, passage: Passage, stop: &mut Stop) -> Option<Ending> {
        tokio::select! {
            biased;
            written = self.take(passage) => match written {
                Ok(Written::ReaderGone) => Some(Ending::ReaderGone),
                Ok(_) => None,
                Err(trouble) => Some(Ending::Failed(trouble)),
            },
            () = stop.wanted() => Some(Ending::Stopped),
        }
    }

    /// Passes on what was received before it was to stop.
    async fn drain(&mut self) -> Result<(), Trouble> {
        if self.output.flush().await? == Written::ReaderGone {
            return Ok(());
        }
        if let Some(passing) = self.held.take() {
            self.take(Passage::Section(passing)).await?;
        }
        loop {
            while !self.output.has_room() {
                self.output.tend().await?;
            }
            let Some(passage) = self.input.next().await? else {
                return Ok(());
            };
            if self.take(passage).await? == Written::ReaderGone {
                return Ok(());
            }
        }
    }

    async fn take(&mut self, passage: Passage) -> Result<Written, Trouble> {
        match passage {
            Passage::Notice(Remark { kind, text }) => {
                let count = self.passed.notices.entry(kind).or_default();
                *count += 1;
                let elapsed = super::now().saturating_duration_since(self.began);
                let text = match elapsed >= AT_THE_BEGINNING {
                    true => format!("at {:.1} s: {text}", elapsed.as_secs_f64()),
                    false => text,
                };
                match *count {
                    ..MAX_NOTICES => self.reporter.warn(&text),
                    MAX_NOTICES => self.reporter.warn(&format!(
                        "{text}; further ones of its kind are counted, and not told"
                    )),
                    _ => {}
                }
                Ok(Written::Yes)
            }
            Passage::Gap(missing) => {
                self.output.skip(&missing);
                self.miss(&missing);
                Ok(Written::Yes)
            }
            Passage::Section(passing) => {
                let written = self.output.write(&passing);
                if written == Written::Malformed {
                    self.miss(&Missing {
                        stream: passing.stream,
                        number: passing.number,
                        kind: None,
                        reason: "malformed",
                        length: Some(passing.payload.len() as u64),
                        missing_bytes: Some(0),
                        source_time: Some(passing.source_time),
                    });
                    return Ok(written);
                }
                // Should it not be written in the end, it is taken back with all else that was not.
                self.count(&passing);
                self.list_unarrived();
                self.output.flush().await
            }
        }
    }

    fn count(&mut self, passing: &MediaUnit) {
        self.passed
            .whole
            .entry(passing.kind().unwrap_or("data"))
            .or_default()
            .add(passing.payload.len());
    }

    fn miss(&mut self, missing: &Missing) {
        *self.passed.gaps.entry(missing.reason).or_default() += 1;
        self.list(missing);
    }

    /// Adds to the list, if one is kept. One that cannot be written is given up, and what is passed
    /// on goes on without it.
    fn list(&mut self, missing: &Missing) {
        let Some(list) = &mut self.gaps else { return };
        if let Err(trouble) = list.add(super::now(), missing) {
            self.reporter.warn(&format!(
                "--gaps: {trouble}; what is missing from here on is counted, and not listed"
            ));
            self.gaps = None;
            self.unlisted = Some(trouble);
        }
    }

    /// Lists what was passed on and did not arrive, as far as the sender knows.
    fn list_unarrived(&mut self) {
        if self.gaps.is_some() {
            for missing in self.output.take_missing() {
                self.list(&missing);
            }
        }
    }

    /// Lists what had been taken for an output to which nothing more can be written, and what has
    /// been received besides.
    async fn list_unwritten(&mut self) {
        for missing in self.output.take_unwritten() {
            self.passed.take_back(&missing);
            self.miss(&missing);
        }
        while let Ok(Some(passage)) = self.input.next().await {
            match passage {
                Passage::Section(passing) => self.miss(&Missing::unwritten(&passing)),
                Passage::Gap(missing) => self.miss(&missing),
                Passage::Notice(_) => {}
            }
        }
    }

    async fn snapshot(&self) -> Snapshot {
        let snapshot = Snapshot::take(self.began, &self.input, &self.output, &self.passed).await;
        if let Some(metrics) = &self.metrics {
            metrics.update(&snapshot);
        }
        snapshot
    }

    /// Says so where the latency leaves the path no time. Between two connections it is that of all
    /// hops.
    async fn advise(&mut self) {
        let connections = match (&self.input, &self.output) {
            (Input::Connected(input), _) => input.connections().0,
            (_, Output::Connected(output)) => output.connections().0,
            (Input::Media(_), Output::Media(_)) => return,
        };
        for connection in connections {
            let peer = connection.peer_address();
            if !self.advice.is_open(peer) {
                continue;
            }
            let Some(round_trip) = connection.stats().path.min_rtt_ms else {
                continue;
            };
            let round_trip = Duration::from_secs_f64(round_trip / 1e3);
            if let Some(text) = self.advice.judge(peer, connection.latency(), round_trip) {
                self.reporter.warn(&text);
            }
        }
    }

    async fn glance(&mut self) {
        self.advise().await;
        if self.reporter.is_terminal() {
            let snapshot = self.snapshot().await;
            self.reporter.status(&snapshot);
        } else if self.metrics.is_some() {
            self.snapshot().await;
        }
    }

    async fn tell(&mut self) {
        let snapshot = self.snapshot().await;
        self.reporter.object("statistics", &snapshot);
        if !self.reporter.is_terminal() {
            self.reporter.status(&snapshot);
        }
    }
}
