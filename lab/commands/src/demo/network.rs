//! Runs the demonstration over real sockets, and records it.
//!
//! ```text
//!  video ────────┐                      ┌──────────► receives the video
//!  competitor 1 ─┼─► emulated bottleneck ┤  one endpoint
//!  competitor n ─┘                      └──────────► receives the competitors
//! ```
//!
//! Every flow has its own socket; all share the bottleneck.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use comity::credentials::Cipher;
use comity::{Connection, Item, SectionId, StreamId};
use comity_emulator::{Emulator, Report};
use comity_frames::{Offered, Shedder, ShedderConfig, Step, Submitter};
use comity_stream::MissingReason;
use comity_units::Span;
use tokio::task::JoinHandle;
use tokio::time::{sleep, sleep_until, timeout};

use super::bottleneck::{
    DemoError, Ends, LOOPBACK, PATIENCE, Rivals, VIDEO, emulation, join, link, since, video,
};
use super::clip::Planned;
use super::recording::{Exactness, Fate, Flow, Other, Recording, Sample, SenderCount, Sent, Setup};
use super::{srt, tcp};
use crate::clock::now;

/// The interval between samples of the statistics.
const SAMPLING: Duration = Duration::from_millis(100);
/// How many samples there are between two reports of progress.
const SAMPLES_PER_REPORT: u32 = 2;

/// The progress of the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Progress {
    /// Time since the video began.
    pub(crate) elapsed_s: f64,
    /// Sections of the video that arrived complete and on time.
    pub(crate) on_time: u64,
    /// Sections that arrived late, or will never be complete.
    pub(crate) not_on_time: u64,
    /// The video's target bit rate.
    pub(crate) target_mbps: Option<f64>,
    /// The video's delay beyond that of the empty path.
    pub(crate) queueing_ms: f64,
    /// The rate of arrival of each flow over the last second.
    pub(crate) rates_mbps: Vec<f64>,
}

/// The receiver's report of a section.
struct Reported {
    stream: StreamId,
    id: SectionId,
    /// The time of its completion, or why it was never complete.
    outcome: Result<Instant, &'static str>,
}

/// Observes a [`run`].
pub(crate) trait Spectator {
    /// The settings are valid, and all flows are connected.
    fn begin(&mut self);
    /// Reports the progress of the video.
    fn on_progress(&mut self, progress: &Progress);
}

/// Runs until all sections are sent, or `is_stopped`. With `others`, the same video also goes over
/// SRT at the same time, through a separate bottleneck, and then over simulated TCP.
pub(crate) async fn run(
    setup: Setup,
    plan: &[Planned],
    others: bool,
    is_stopped: &'static AtomicBool,
    spectator: &mut impl Spectator,
) -> Result<Recording, DemoError> {
    let beside = setup.clone();
    let comity = run_comity(setup, plan, is_stopped, spectator);
    let left_out = |why: &str| [srt::NAME, tcp::NAME].map(|name| Other::left_out(name, why));
    if !others {
        let mut recording = comity.await?;
        recording.others = left_out("--only-comity leaves it out").into();
        return Ok(recording);
    }
    let srt = async { Ok(srt::run(&beside, plan, is_stopped).await) };
    let (mut recording, srt) = tokio::try_join!(comity, srt)?;
    recording.others = if is_stopped.load(Ordering::Relaxed) {
        left_out("the demo was interrupted").into()
    } else {
        vec![srt, tcp::simulate(&beside, plan, &link(&beside))]
    };
    Ok(recording)
}

async fn run_comity(
    setup: Setup,
    plan: &[Planned],
    is_stopped: &'static AtomicBool,
    spectator: &mut impl Spectator,
) -> Result<Recording, DemoError> {
    let mut rivals = Rivals::endpoint(&setup)?;
    let emulator = Emulator::bind(emulation(&setup, rivals.target(), LOOPBACK))?;
    let bottleneck = emulator.local_address();
    let emulator = emulator.spawn()?;

    let config = video(&setup, rivals.key.clone())?;
    let main = join(VIDEO.into(), &rivals.endpoint, bottleneck, config).await?;
    rivals.connect(&setup, bottleneck).await?;
    spectator.begin();
    let cipher = match main.sender.cipher() {
        Some(Cipher::Aes128Gcm) => "AES-128-GCM",
        Some(Cipher::ChaCha20Poly1305) => "ChaCha20-Poly1305",
        None => "nothing",
    };

    let receiving = tokio::spawn(receive(main.receiver.clone()));
    rivals.begin();
    // The first sections would otherwise be late from the start.
    let start = now() + Duration::from_millis(50);
    let feeding = tokio::spawn(feed(
        main.sender.clone(),
        plan.to_vec(),
        start,
        setup.sheds,
        is_stopped,
    ));
    let ends = std::iter::once(main.clone()).chain(rivals.flows.iter().cloned());
    let mut watch = Watch::new(start, ends.collect());
    let mut on_progress = |progress: &Progress| spectator.on_progress(progress);
    let ids = watch.until(feeding, &mut on_progress).await;
    let length_s = match &ids {
        Ok(ids) if ids.len() == plan.len() => setup.duration.as_secs_f64(),
        _ => since(start, now()),
    };
    let sender = main.sender.clone();
    let finishing = tokio::spawn(async move {
        let patience = sender.latency() + PATIENCE;
        timeout(patience, sender.finish()).await
    });
    let finished = watch.until(finishing, &mut on_progress).await;
    let last = main.sender.stats();
    let reported = match timeout(PATIENCE, receiving).await {
        Ok(Ok(reported)) => reported,
        _ => Vec::new(),
    };
    rivals.end().await;
    let report = emulator.stop()?;
    let ids = ids?;
    // The receiver may be the first to finish; that is a clean end too.
    if let Ok(Err(end)) = finished
        && !end.is_clean()
    {
        return Err(DemoError::Ended(end));
    }
    Ok(Recording {
        length_s,
        cipher: cipher.into(),
        sections: outcomes(plan, &ids, &reported, start, setup.latency),
        flows: watch.recorded(),
        exactness: exactness(&report),
        sender: SenderCount {
            submitted_bytes: last.sent.bytes.submitted,
            retransmitted_bytes: last.sent.counters.retransmitted_bytes,
            late_bytes: last.sent.counters.late_bytes,
            pacing_p99_us: last.pacing.p99_us,
        },
        others: Vec::new(),
        setup,
    })
}

async fn receive(receiver: Arc<Connection>) -> Vec<Reported> {
    let mut reported = Vec::new();
    while let Some(item) = receiver.recv().await {
        let stream = item.stream();
        match item {
            Item::Section(section) => reported.push(Reported {
                stream,
                id: section.id,
                outcome: Ok(section.completed),
            }),
            Item::Gap(gap) => reported.extend(gap.sections().map(|id| Reported {
                stream,
                id,
                outcome: Err(MissingReason::from(gap.reason).phrase()),
            })),
        }
    }
    reported
}

/// Submits each section at its source time, and skips those that the shedder drops. Returns the
/// numbers of these sections, submitted or skipped, up to the end or `is_stopped`.
async fn feed(
    sender: Arc<Connection>,
    plan: Vec<Planned>,
    start: Instant,
    sheds: bool,
    is_stopped: &'static AtomicBool,
) -> Result<Vec<SectionId>, DemoError> {
    let mut submitted = Vec::with_capacity(plan.len());
    // It keeps everything until a target is known.
    let shedder = Shedder::new(ShedderConfig::default());
    let mut submitter = Submitter::new(sheds.then_some(shedder));
    let target = sender.target_bitrate();
    for planned in plan {
        let due = start + Duration::from(planned.at);
        sleep_until(due.into()).await;
        if is_stopped.load(Ordering::Relaxed) {
            break;
        }
        let unit = planned.unit(due);
        let offered = Offered {
            stream: planned.stream,
            number: planned.number,
            needs: planned.needs,
            frame: unit.frame.as_ref(),
        };
        let sent = match submitter.step(&offered, target.offer()) {
            Step::Submit { needs } => {
                let needs = needs.map(SectionId);
                let section = unit.section(needs, sender.latency(), Duration::ZERO);
                sender.send(section).await
            }
            Step::Skip(reason) => sender.skip(StreamId(planned.stream), reason),
        };
        let id = sent.map_err(DemoError::Refused)?;
        submitter.on_numbered(planned.stream, planned.number, id.0);
        submitted.push(id);
    }
    Ok(submitted)
}

/// Combines the submitted sections with the receiver's reports of them.
fn outcomes(
    plan: &[Planned],
    ids: &[SectionId],
    reported: &[Reported],
    start: Instant,
    latency: Span,
) -> Vec<Sent> {
    let reports: BTreeMap<(StreamId, SectionId), &Reported> = reported
        .iter()
        .map(|report| ((report.stream, report.id), report))
        .collect();
    let plan = plan.get(..ids.len()).unwrap_or(plan);
    let report = |index: usize| {
        let stream = StreamId(plan.get(index)?.stream);
        reports.get(&(stream, *ids.get(index)?)).copied()
    };
    Sent::all(plan, latency, |index, due_s| {
        match report(index).map(|report| report.outcome) {
            None => Fate::Unreported,
            Some(Err(reason)) => Fate::Gap(reason),
            Some(Ok(completed)) => Fate::Complete {
                slack_ms: (due_s - since(start, completed)) * 1e3,
            },
        }
    })
}

/// Samples the statistics of all connections at regular intervals.
struct Watch {
    start: Instant,
    ends: Vec<Ends>,
    flows: Vec<Flow>,
    samples: u32,
}

impl Watch {
    fn new(start: Instant, ends: Vec<Ends>) -> Self {
        let flows = ends.iter().map(|ends| Flow {
            name: ends.name.clone(),
            samples: Vec::new(),
        });
        Self {
            start,
            flows: flows.collect(),
            ends,
            samples: 0,
        }
    }

    /// Samples until the task is done, and returns its result.
    async fn until<T>(
        &mut self,
        task: JoinHandle<T>,
        on_progress: &mut impl FnMut(&Progress),
    ) -> T {
        let mut task = std::pin::pin!(task);
        loop {
            if let Some(done) = finished(task.as_mut(), SAMPLING).await {
                return done;
            }
            self.sample(on_progress).await;
        }
    }

    async fn sample(&mut self, on_progress: &mut impl FnMut(&Progress)) {
        let mut progress = None;
        for (ends, flow) in self.ends.iter().zip(&mut self.flows) {
            let sender = ends.sender.stats();
            let receiver = ends.receiver.stats();
            let path = &sender.path;
            flow.samples.push(Sample {
                at_s: since(self.start, now()),
                arrived_bytes: receiver.received.counters.wire_bytes,
            });
            if progress.is_none() {
                let gaps = &receiver.received.gaps;
                let missing = gaps.closed
                    + gaps.obsolete
                    + gaps.overdue
                    + gaps.cancelled
                    + gaps.dependency
                    + gaps.expired
                    + gaps.infeasible
                    + gaps.shed;
                progress = Some(Progress {
                    elapsed_s: since(self.start, now()),
                    on_time: receiver.received.on_time_sections,
                    not_on_time: receiver.received.late_sections + missing,
                    target_mbps: path.target_mbps,
                    queueing_ms: path
                        .rtt_ms
                        .zip(path.min_rtt_ms)
                        .map_or(0.0, |(rtt, least)| (rtt - least).max(0.0)),
                    rates_mbps: Vec::new(),
                });
            }
        }
        self.samples += 1;
        if let Some(mut progress) = progress
            && self.samples.is_multiple_of(SAMPLES_PER_REPORT)
        {
            progress.rates_mbps = self
                .flows
                .iter()
                .map(|flow| {
                    let to = flow.samples.last().map_or(0.0, |sample| sample.at_s);
                    flow.rate_mbps(to - 1.0, to).unwrap_or(0.0)
                })
                .collect();
            on_progress(&progress);
        }
    }

    fn recorded(self) -> Vec<Flow> {
        self.flows
    }
}

/// The result of the task, if it completes within the time.
async fn finished<T>(task: std::pin::Pin<&mut JoinHandle<T>>, within: Duration) -> Option<T> {
    tokio::select! {
        biased;
        // No task here is aborted or panics.
        done = task => done.ok(),
        () = sleep(within) => None,
    }
}

fn exactness(report: &Report) -> Exactness {
    let statistics = &report.statistics;
    let forward = &statistics.forward;
    let ms = |span: Span| span.as_secs_f64() * 1e3;
    Exactness {
        releases: forward.timing.count + statistics.backward.timing.count,
        p50_ms: ms(forward.timing.p50),
        p99_ms: ms(forward.timing.p99),
        max_ms: ms(forward.timing.max),
        overload: statistics
            .overload()
            .iter()
            .map(ToString::to_string)
            .collect(),
        offered_packets: forward.counts.arrived.packets,
        dropped_packets: forward.counts.dropped_full.packets,
        lost_packets: forward.counts.lost.packets,
    }
}
