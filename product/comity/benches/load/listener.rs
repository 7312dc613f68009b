//! The process of the listener: it starts the callers', counts and reports.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use comity::{Connection, Endpoint, EndpointStatistics, Item};
use hdrhistogram::Histogram;

use super::Plan;
use super::callers::Sums;
use super::common::{Failure, loopback, processor_seconds};
use super::measure::{idle, of_endpoints, of_process, resident_bytes};

/// From the first section to the beginning of the measurement.
const WARM_UP: Duration = Duration::from_secs(3);
/// Between the last handshake and a look at the memory.
const PAUSE: Duration = Duration::from_secs(2);

/// The longest delay in the histogram; longer ones count as this.
const LONGEST: Duration = Duration::from_secs(60);

/// All received sections and gaps.
#[derive(Debug)]
struct Counts {
    on_time: AtomicU64,
    late: AtomicU64,
    gaps: AtomicU64,
    /// From a section's source time to its delivery to the application, in microseconds.
    delays: Mutex<Histogram<u64>>,
}

/// A moment of the measurement.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    endpoint: f64,
    listener: f64,
    callers: f64,
    idle: f64,
    settled: [u64; 3],
    statistics: EndpointStatistics,
}

/// The process of the callers, which ends with this value.
struct Callers {
    child: Child,
    input: ChildStdin,
}

impl Drop for Callers {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Counts {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            on_time: AtomicU64::new(0),
            late: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            delays: Mutex::new(Histogram::new_with_max(LONGEST.as_micros() as u64, 3)?),
        })
    }

    fn settled(&self) -> [u64; 3] {
        [&self.on_time, &self.late, &self.gaps].map(|count| count.load(Ordering::Relaxed))
    }

    fn delays(&self) -> std::sync::MutexGuard<'_, Histogram<u64>> {
        self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts what a connection receives.
async fn drain(connection: Connection, counts: Arc<Counts>) {
    while let Some(item) = connection.recv().await {
        match item {
            Item::Section(section) => {
                let count = if section.is_late {
                    &counts.late
                } else {
                    &counts.on_time
                };
                count.fetch_add(1, Ordering::Relaxed);
                let delay = Instant::now().saturating_duration_since(section.about.source_time);
                counts.delays().saturating_record(delay.as_micros() as u64);
            }
            Item::Gap(gap) => drop(counts.gaps.fetch_add(gap.count, Ordering::Relaxed)),
        }
    }
}

fn see(endpoint: &Endpoint, callers: &Callers, counts: &Counts) -> Seen {
    Seen {
        at: Instant::now(),
        endpoint: of_endpoints(),
        listener: processor_seconds(),
        callers: of_process(callers.child.id()),
        idle: idle(),
        settled: counts.settled(),
        statistics: endpoint.stats(),
    }
}

/// Runs a listener with so many peers, and reports.
pub(crate) fn run(plan: Plan) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let endpoint = Endpoint::bind(loopback(), Plan::options().build()?)?;
    let counts = Arc::new(Counts::new()?);
    let connections = Arc::new(Mutex::new(Vec::new()));
    {
        let (endpoint, counts, connections) =
            (endpoint.clone(), counts.clone(), connections.clone());
        runtime.spawn(async move {
            while let Some(connection) = endpoint.accept().await {
                let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
                connections.push(connection.clone());
                tokio::spawn(drain(connection, counts.clone()));
            }
        });
    }
    let empty = resident_bytes();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--call", &endpoint.local_address().to_string()])
        .args(plan.arguments())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let input = child.stdin.take().ok_or("no input")?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut callers = Callers { child, input };
    let took: f64 = lines.next().ok_or("the callers ended")??.parse()?;
    std::thread::sleep(PAUSE);
    let connected = resident_bytes();
    let peers = connections
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .len();
    println!(
        "{peers} peers on {} sockets, {:.0} handshakes/s; {} bytes of memory per connected peer",
        plan.sockets,
        peers as f64 / took,
        connected.saturating_sub(empty) / peers.max(1) as u64,
    );
    writeln!(callers.input, "send")?;
    std::thread::sleep(WARM_UP);
    counts.delays().reset();
    let from = see(&endpoint, &callers, &counts);
    std::thread::sleep(Duration::from_secs(plan.seconds));
    let to = see(&endpoint, &callers, &counts);
    let streaming = resident_bytes();
    writeln!(callers.input, "stop")?;
    let sums: Sums = serde_json::from_str(&lines.next().ok_or("the callers ended")??)?;
    report(plan, from, to);
    let delays = counts.delays();
    let delay = |share| delays.value_at_quantile(share) as f64 / 1e3;
    println!(
        "  source to application, ms: {:.1} (50 %), {:.1} (99 %), {:.1} (99.9 %), {:.1} (max)",
        delay(0.5),
        delay(0.99),
        delay(0.999),
        delays.max() as f64 / 1e3,
    );
    println!(
        "  {} bytes of memory per streaming peer",
        streaming.saturating_sub(empty) / peers.max(1) as u64
    );
    let connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
    compare(&sums, counts.settled(), &connections)?;
    Ok(())
}

fn report(plan: Plan, from: Seen, to: Seen) {
    let seconds = (to.at - from.at).as_secs_f64();
    let [on_time, late, gaps] = [0, 1, 2].map(|at| to.settled[at] - from.settled[at]);
    let settled = (on_time + late + gaps).max(1);
    let share = |part: f64| 100.0 * part / seconds;
    let datagrams = to.statistics.datagrams_sent - from.statistics.datagrams_sent;
    let batches = to.statistics.batches_sent - from.statistics.batches_sent;
    let expected = plan.peers as f64 / plan.interval.as_secs_f64();
    println!(
        "  {:.0} sections/s of {expected:.0}: {:.3} % on time, {late} late, {gaps} missing",
        settled as f64 / seconds,
        100.0 * on_time as f64 / settled as f64,
    );
    println!(
        "  processor, % of one: endpoint {:.0}, listener's process {:.0}, callers {:.0}, idle {:.0}; endpoint {:.1} us, \
         listener {:.1} us per section, {:.2} datagrams sent; {:.2} datagrams per call",
        share(to.endpoint - from.endpoint),
        share(to.listener - from.listener),
        share(to.callers - from.callers),
        share(to.idle - from.idle),
        (to.endpoint - from.endpoint) * 1e6 / settled as f64,
        (to.listener - from.listener) * 1e6 / settled as f64,
        datagrams as f64 / settled as f64,
        datagrams as f64 / batches.max(1) as f64,
    );
}

/// Compares what the application, the listener's connections and the callers have counted.
///
/// # Errors
///
/// They differ.
fn compare(sums: &Sums, settled: [u64; 3], connections: &[Connection]) -> Result<(), Failure> {
    let mut counted = [0; 3];
    for connection in connections {
        let received = connection.stats().received;
        counted[0] += received.on_time_sections;
        counted[1] += received.late_sections;
        counted[2] += received.gaps.sum();
    }
    let reported = [sums.peer_on_time, sums.peer_late, sums.peer_gaps];
    println!(
        "  counts: {} submitted, {} acknowledged; on time, late, missing: {settled:?} at the application, {counted:?} at \
         the listener, {reported:?} as the callers know; {} found no room",
        sums.submitted, sums.acknowledged, sums.refused,
    );
    let sum = settled.iter().sum::<u64>();
    match settled == counted && counted == reported && sum == sums.submitted {
        true => Ok(()),
        false => Err("the counts of the ends differ".into()),
    }
}
