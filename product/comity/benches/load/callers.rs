//! The process of the callers. It speaks in lines with the listener's.

use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use comity::{Connection, Endpoint, Section};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use super::Plan;
use super::common::{Failure, loopback};

/// Calls at the same time.
const CALLS_AT_ONCE: usize = 64;
/// The groups of connections that take turns in an interval.
const GROUPS: u32 = 100;
/// How long the deadlines and the last reports of the receivers may take, and between two looks.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);

/// What the callers know of their sections, summed over all connections.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sums {
    pub(crate) submitted: u64,
    pub(crate) acknowledged: u64,
    pub(crate) peer_on_time: u64,
    pub(crate) peer_late: u64,
    pub(crate) peer_gaps: u64,
    /// Sections for which a send buffer had no room: they have no number.
    pub(crate) refused: u64,
}

impl Sums {
    /// The sections whose fate the receivers have reported.
    fn reported(&self) -> u64 {
        self.peer_on_time + self.peer_late + self.peer_gaps
    }
}

fn sum(connections: &[Connection]) -> Sums {
    let mut sums = Sums::default();
    for connection in connections {
        let statistics = connection.stats();
        let peer = statistics.peer.unwrap_or_default();
        sums.submitted += statistics.sent.sections.submitted;
        sums.acknowledged += statistics.sent.sections.acknowledged;
        sums.peer_on_time += peer.on_time_sections;
        sums.peer_late += peer.late_sections;
        sums.peer_gaps += peer.gap_sections;
    }
    sums
}

async fn call(plan: Plan, address: SocketAddr) -> Result<Vec<Connection>, Failure> {
    let endpoints = (0..plan.sockets)
        .map(|_| Endpoint::for_calls(loopback(), Plan::options().build()?).map_err(Failure::from))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut calls, mut connections) = (JoinSet::new(), Vec::new());
    for endpoint in endpoints.iter().cycle().take(plan.peers) {
        if calls.len() == CALLS_AT_ONCE {
            connections.push(calls.join_next().await.ok_or("no call")???);
        }
        let endpoint = endpoint.clone();
        calls.spawn(async move { endpoint.connect(address).await });
    }
    while let Some(connection) = calls.join_next().await {
        connections.push(connection??);
    }
    Ok(connections)
}

/// Sends a section on each connection in each interval, evenly spread over it, until the end.
fn feed(plan: Plan, connections: &[Connection], refused: &AtomicU64, is_over: &AtomicBool) {
    let payload = bytes::Bytes::from(vec![7; plan.bytes]);
    let began = Instant::now();
    for turn in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let due = began + plan.interval / GROUPS * turn;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let group = connections.iter().skip((turn % GROUPS) as usize);
        for connection in group.step_by(GROUPS as usize) {
            if connection.try_send(Section::new(payload.clone())).is_err() {
                refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Calls, sends from one line of the input to the next, and prints the sums.
pub(crate) fn run(plan: Plan, address: SocketAddr) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let mut lines = std::io::stdin().lock().lines();
    let began = Instant::now();
    let connections = Arc::new(runtime.block_on(call(plan, address))?);
    println!("{}", began.elapsed().as_secs_f64());
    let mut wait = || -> Result<String, Failure> { Ok(lines.next().ok_or("the listener ended")??) };
    wait()?;
    let (refused, is_over) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let feeding = {
        let (connections, refused) = (connections.clone(), refused.clone());
        let is_over = is_over.clone();
        std::thread::spawn(move || feed(plan, &connections, &refused, &is_over))
    };
    wait()?;
    is_over.store(true, Ordering::Relaxed);
    feeding.join().map_err(|_| "the feeder panicked")?;
    let until = Instant::now() + PATIENCE;
    let mut sums = sum(&connections);
    while sums.submitted != sums.reported() && Instant::now() < until {
        std::thread::sleep(PAUSE);
        sums = sum(&connections);
    }
    sums.refused = refused.load(Ordering::Relaxed);
    println!("{}", serde_json::to_string(&sums)?);
    wait()?;
    Ok(())
}
