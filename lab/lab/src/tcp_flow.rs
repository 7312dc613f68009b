//! A running TCP flow, of the kernel or of Comity: its ends, its load, and its records.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_sim::host::Source;
use comity_sim::network::{FlowSpec, Workload};
use comity_sim::report::{FlowReport, FlowSeries, TimelineReport};
use comity_units::{DataSize, Span, Time};

use crate::error::Error;
use crate::namespace::Namespace;
use crate::router::Interval;
use crate::tcp_info::TcpInfo;
use crate::timeline::Timeline;

/// The time that a read or write may block before the thread checks whether the run is over.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// The interval between queries of a sender's state.
pub(crate) const SAMPLING: Span = Span::from_millis(10);
/// The number of bytes to write or read at a time.
pub(crate) const CHUNK: usize = 64 << 10;

/// The records of a flow's ends.
#[derive(Debug, Default)]
struct Records {
    delivered: u64,
    delivered_measured: u64,
    delivered_bins: Vec<u64>,
    window_bins: Vec<u64>,
    ssthresh_bins: Vec<u64>,
    srtt_bins: Vec<u64>,
    last: TcpInfo,
    window_sum: f64,
    rtt_sum: f64,
    samples: u32,
    finished: Option<Time>,
    sections: Option<TimelineReport>,
    failure: Option<String>,
}

/// Records a flow. Both ends share it.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    records: Arc<Mutex<Records>>,
    interval: Interval,
}

impl Recorder {
    pub(crate) fn new(interval: Interval) -> Self {
        Self {
            records: Arc::default(),
            interval,
        }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records bytes that arrived at the receiver.
    pub(crate) fn delivered(&self, now: Time, bytes: u64) {
        let mut records = self.records();
        records.delivered += bytes;
        if now >= self.interval.warmup {
            records.delivered_measured += bytes;
        }
        if let Some(bin) = bin_of(&mut records.delivered_bins, self.interval.bin, now, 0) {
            *bin += bytes;
        }
    }

    /// Records the state of the sender.
    pub(crate) fn sampled(&self, now: Time, info: TcpInfo) {
        let mut records = self.records();
        records.last = info;
        if now >= self.interval.warmup {
            records.samples += 1;
            records.window_sum += info.cwnd_bytes as f64;
            records.rtt_sum += f64::from(info.srtt_us) / 1e6;
        }
        let Records {
            window_bins,
            ssthresh_bins,
            srtt_bins,
            ..
        } = &mut *records;
        for (bins, value) in [
            (window_bins, info.cwnd_bytes),
            (ssthresh_bins, info.ssthresh_bytes.unwrap_or(u64::MAX)),
            (srtt_bins, u64::from(info.srtt_us) * 1_000),
        ] {
            // A bin without a sample has the value of the previous bin.
            let last = bins.last().copied().unwrap_or(0);
            if let Some(bin) = bin_of(bins, self.interval.bin, now, last) {
                *bin = value;
            }
        }
    }

    /// Records that the last byte of a file was acknowledged.
    pub(crate) fn finished(&self, now: Time) {
        self.records().finished = Some(now);
    }

    /// Records the fates of the sections so far.
    pub(crate) fn sections(&self, report: TimelineReport) {
        self.records().sections = Some(report);
    }

    /// Records how an end ended. The first error of a flow counts.
    pub(crate) fn ended(&self, end: std::io::Result<()>) {
        if let Err(error) = end {
            self.records()
                .failure
                .get_or_insert_with(|| error.to_string());
        }
    }
}

/// The bin that contains a moment. New bins begin with `value`.
fn bin_of(bins: &mut Vec<u64>, bin: Option<Span>, at: Time, value: u64) -> Option<&mut u64> {
    let at = (at.as_nanos() / bin?.as_nanos().max(1)) as usize;
    if bins.len() <= at {
        bins.resize(at + 1, value);
    }
    bins.get_mut(at)
}

/// A running flow of TCP.
#[derive(Debug)]
pub(crate) struct TcpFlow {
    recorder: Recorder,
    threads: Vec<JoinHandle<()>>,
}

/// The hosts of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a Namespace,
    pub(crate) destination: &'a Namespace,
    /// The destination's address, and its port.
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    pub(crate) source_address: IpAddr,
}

/// The load of a flow.
#[derive(Debug)]
pub(crate) enum Load {
    Greedy,
    File(u64),
    Scheduled(Box<Source>),
    /// Sections with deadlines.
    Sections(Timeline),
}

impl Load {
    /// The load of a workload.
    ///
    /// # Errors
    /// If the built-in sender does not support the workload.
    pub(crate) fn of(
        flow: &FlowSpec,
        file: Option<DataSize>,
        scheduled: impl FnOnce() -> Result<Source, Error>,
    ) -> Result<Self, Error> {
        if let Some(bytes) = file {
            return Ok(Self::File(bytes.get()));
        }
        match flow.workload {
            Workload::Greedy => Ok(Self::Greedy),
            Workload::TokenBucket { .. } => Err(Error::Flow {
                flow: flow.name.clone(),
                reason: "TCP of the lab has no workload token_bucket; expected greedy, file, cbr, on_off or poisson"
                    .into(),
            }),
            _ => Ok(Self::Scheduled(Box::new(scheduled()?))),
        }
    }
}

impl TcpFlow {
    /// A flow whose ends run on these threads.
    pub(crate) const fn new(recorder: Recorder, threads: Vec<JoinHandle<()>>) -> Self {
        Self { recorder, threads }
    }

    /// Waits for both ends.
    pub(crate) fn join(self) {
        for thread in self.threads {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }

    /// Waits for both ends and returns their results. The router counts the packets.
    pub(crate) fn finish(self, report: &mut FlowReport) -> (FlowSeries, Option<String>) {
        let recorder = self.recorder.clone();
        self.join();
        let Interval { warmup, end, .. } = recorder.interval;
        let records = recorder.records();
        let measured = end.saturating_since(warmup).as_secs_f64();
        report.delivered_bytes = records.delivered_measured;
        report.delivered_bytes_total = records.delivered;
        report.goodput_bps = records.delivered_measured as f64 * 8.0 / measured;
        report.finished = records.finished;
        report.timeline = records.sections;
        report.retransmitted_packets = records.last.retransmitted;
        if let Some((timeouts, fast_retransmits)) = records.last.recoveries {
            report.timeouts = timeouts;
            report.fast_retransmits = fast_retransmits;
        }
        let seconds = |us: u32| (us > 0).then(|| f64::from(us) / 1e6);
        report.srtt_s = seconds(records.last.srtt_us);
        report.min_rtt_s = seconds(records.last.min_rtt_us);
        report.cwnd_bytes = Some(records.last.cwnd_bytes);
        report.ssthresh_bytes = records.last.ssthresh_bytes;
        if records.samples > 0 {
            let samples = f64::from(records.samples);
            report.mean_cwnd_bytes = Some(records.window_sum / samples);
            report.mean_rtt_s = Some(records.rtt_sum / samples);
        }
        let series = FlowSeries {
            delivered_bytes: records.delivered_bins.clone(),
            cwnd_bytes: records.window_bins.clone(),
            ssthresh_bytes: records.ssthresh_bins.clone(),
            srtt_ns: records.srtt_bins.clone(),
            ..FlowSeries::default()
        };
        (series, records.failure.clone())
    }
}
