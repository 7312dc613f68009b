//! The costs of thousands of small streams over one socket: share on time, processor, memory, and
//! handshakes meanwhile.
//!
//! ```sh
//! cargo bench -p comity --bench many -- [connections .. [--seconds S] [--bytes B] [--interval MS] [--bare]]
//! ```
//!
//! Each connection carries a section of 400 bytes every 100 ms (32 kb/s) with a deadline of 400 ms,
//! from one socket of all callers to one that listens. Both ends run in this process, so the
//! processor seconds are the sum of both. Connections stream as soon as they are open, so
//! handshakes compete with streams. At the end, more connections are made for two seconds. `--bare`
//! sends the same datagrams between two bare sockets.
#![allow(clippy::print_stdout, reason = "an example that reports")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

mod common;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use comity::{ConfigBuilder, Connection, Endpoint, Item, Section};
use tokio::task::JoinSet;

use common::{Failure, loopback, processor_seconds};

/// Calls at the same time.
const CALLS_AT_ONCE: usize = 16;
/// The bytes of a packet's header, tag and frames and of a section's header, approximately.
const HEADERS: usize = 60;

#[derive(Clone, Copy, Debug)]
struct Plan {
    connections: usize,
    bytes: usize,
    interval: Duration,
    seconds: u64,
}

impl Plan {
    fn description(&self) -> String {
        let rate = self.bytes as f64 * 8e-3 / self.interval.as_secs_f64();
        format!("{} streams of {rate:.0} kb/s", self.connections)
    }
}

fn options() -> ConfigBuilder {
    common::options()
        .latency(Duration::from_millis(400))
        .max_connections(20_000)
        .max_waiting(1_000)
}

/// The memory in use by this process, in bytes.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    kibibytes
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
        * 1_024
}

/// The fates of all sections.
#[derive(Debug, Default)]
struct Counts {
    given: AtomicU64,
    refused: AtomicU64,
    on_time: AtomicU64,
    late: AtomicU64,
    gaps: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    processor: f64,
    given: u64,
    refused: u64,
    on_time: u64,
    late: u64,
    gaps: u64,
}

impl Counts {
    fn see(&self) -> Seen {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Seen {
            at: Instant::now(),
            processor: processor_seconds(),
            given: read(&self.given),
            refused: read(&self.refused),
            on_time: read(&self.on_time),
            late: read(&self.late),
            gaps: read(&self.gaps),
        }
    }
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Sends a section on each connection in each interval, evenly spread over it, until the end.
fn feed(plan: Plan, connections: &Mutex<Vec<Connection>>, counts: &Counts, is_over: &AtomicBool) {
    let payload = bytes::Bytes::from(vec![7; plan.bytes]);
    let began = Instant::now();
    let mut turn = 0_u32;
    while !is_over.load(Ordering::Relaxed) {
        // A hundred groups of connections take turns.
        let due = began + plan.interval / 100 * turn;
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        let connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in connections.iter().skip(turn as usize % 100).step_by(100) {
            add(&counts.given);
            if connection.try_send(Section::new(payload.clone())).is_err() {
                add(&counts.refused);
            }
        }
        turn += 1;
    }
}

/// Counts the received sections of a connection.
async fn drain(connection: Connection, counts: Arc<Counts>) {
    while let Some(item) = connection.recv().await {
        match item {
            Item::Section(section) if section.is_late => add(&counts.late),
            Item::Section(_) => add(&counts.on_time),
            Item::Gap(_) => add(&counts.gaps),
        }
    }
}

/// Opens connections, several at a time, until there are `most` or the time is `until`. Returns how
/// many.
async fn call(
    callers: &Endpoint,
    address: SocketAddr,
    (most, until): (usize, Option<Instant>),
    mut made: impl FnMut(Connection),
) -> Result<usize, Failure> {
    let (mut calls, mut begun, mut done) = (JoinSet::new(), 0, 0);
    loop {
        let is_on = begun < most && until.is_none_or(|until| Instant::now() < until);
        if is_on && calls.len() < CALLS_AT_ONCE {
            let callers = callers.clone();
            calls.spawn(async move { callers.connect(address).await });
            begun += 1;
            continue;
        }
        match calls.join_next().await {
            Some(connection) => made(connection??),
            None => return Ok(done),
        }
        done += 1;
    }
}

async fn streams(plan: Plan) -> Result<(), Failure> {
    let endpoint = Endpoint::bind(loopback(), options().build()?)?;
    let callers = Endpoint::for_calls(loopback(), options().build()?)?;
    let address = endpoint.local_address();
    let counts = Arc::new(Counts::default());
    let (accepting, counting) = (endpoint.clone(), counts.clone());
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(drain(connection, counting.clone()));
        }
    });
    let connections = Arc::new(Mutex::new(Vec::new()));
    let is_over = Arc::new(AtomicBool::new(false));
    let feeding = {
        let (connections, counts, is_over) = (connections.clone(), counts.clone(), is_over.clone());
        std::thread::spawn(move || feed(plan, &connections, &counts, &is_over))
    };
    let memory = resident_bytes();
    let before = counts.see();
    call(&callers, address, (plan.connections, None), |connection| {
        let mut connections = connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.push(connection);
    })
    .await?;
    let connected = counts.see();
    let took = (connected.at - before.at).as_secs_f64();
    println!(
        "{}: {:.0} handshakes per second while those before stream, {:.2} CPU s in {took:.2} s",
        plan.description(),
        plan.connections as f64 / took,
        connected.processor - before.processor,
    );
    report("  meanwhile", plan, before, connected);
    // Sections in flight are settled, and each connection has its buffers.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = (resident_bytes() - memory) / plan.connections as u64;
    println!("  memory: {each} bytes per connection, both ends together");
    let began = counts.see();
    tokio::time::sleep(Duration::from_secs(plan.seconds)).await;
    let ended = counts.see();
    report("  streams", plan, began, ended);
    let until = Instant::now() + Duration::from_secs(2);
    let made = call(&callers, address, (usize::MAX, Some(until)), drop).await?;
    let last = counts.see();
    let took = (last.at - ended.at).as_secs_f64();
    println!("  {:.0} more handshakes per second", made as f64 / took);
    report("  meanwhile", plan, ended, last);
    is_over.store(true, Ordering::Relaxed);
    tokio::task::spawn_blocking(move || feeding.join())
        .await?
        .map_err(|_| "the feeder panicked")?;
    let statistics = endpoint.stats();
    println!("  listener: {statistics:?}");
    connections
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    callers.close().await;
    endpoint.close().await;
    Ok(())
}

fn report(what: &str, plan: Plan, from: Seen, to: Seen) {
    let given = to.given - from.given;
    let came = [from.on_time, from.late, from.gaps]
        .iter()
        .zip([to.on_time, to.late, to.gaps])
        .map(|(from, to)| to - from)
        .collect::<Vec<_>>();
    let settled = came.iter().sum::<u64>().max(1);
    let seconds = (to.at - from.at).as_secs_f64();
    let processor = to.processor - from.processor;
    let bytes = (came[0] * plan.bytes as u64).max(1);
    println!(
        "{what}: {given} sections given ({} refused), {:.3} % of {settled} on time, {} late, {} gaps; {processor:.2} CPU s \
         in {seconds:.2} s, {:.3} ms per connection and second, {:.1} us per section, {:.0} s/GB",
        to.refused - from.refused,
        100.0 * came[0] as f64 / settled as f64,
        came[1],
        came[2],
        processor * 1e3 / seconds / plan.connections as f64,
        processor * 1e6 / came[0].max(1) as f64,
        processor * 1e9 / bytes as f64,
    );
}

/// The same datagrams between two bare sockets.
fn bare(plan: Plan) -> Result<(), Failure> {
    let receiver = UdpSocket::bind(loopback())?;
    receiver.set_read_timeout(Some(Duration::from_millis(500)))?;
    let address = receiver.local_addr()?;
    let before = processor_seconds();
    let receiving = std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        let mut datagrams = 0_u64;
        while receiver.recv_from(&mut buffer).is_ok() {
            datagrams += 1;
        }
        datagrams
    });
    let sender = UdpSocket::bind(loopback())?;
    let payload = vec![7; plan.bytes + HEADERS];
    let began = Instant::now();
    let (mut turn, mut sent) = (0_u32, 0_u64);
    while began.elapsed() < Duration::from_secs(plan.seconds) {
        let due = began + plan.interval / 100 * turn;
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        for _ in (0..plan.connections).skip(turn as usize % 100).step_by(100) {
            sender.send_to(&payload, address)?;
            sent += 1;
        }
        turn += 1;
    }
    let received = receiving.join().map_err(|_| "the receiver panicked")?;
    let processor = processor_seconds() - before;
    println!(
        "{}, bare sockets: {sent} datagrams, {received} arrived; {processor:.2} CPU s, {:.1} us per datagram, {:.0} s/GB",
        plan.description(),
        processor * 1e6 / received.max(1) as f64,
        processor * 1e9 / (received.max(1) * plan.bytes as u64) as f64,
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut plan = Plan {
        connections: 0,
        bytes: 400,
        interval: Duration::from_millis(100),
        seconds: 10,
    };
    let (mut sizes, mut is_bare) = (Vec::new(), false);
    // Cargo passes `--bench` to every benchmark.
    let mut arguments = std::env::args().skip(1).filter(|given| given != "--bench");
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64, Failure> {
            let text = arguments.next().ok_or("a number is missing")?;
            Ok(text.parse()?)
        };
        match argument.as_str() {
            "--seconds" => plan.seconds = number()?,
            "--bytes" => plan.bytes = number()? as usize,
            "--interval" => plan.interval = Duration::from_millis(number()?),
            "--bare" => is_bare = true,
            size => sizes.push(size.parse()?),
        }
    }
    if sizes.is_empty() {
        sizes = vec![2_000, 4_000];
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    for connections in sizes {
        let plan = Plan {
            connections,
            ..plan
        };
        if is_bare {
            bare(plan)?;
        }
        runtime.block_on(streams(plan))?;
    }
    Ok(())
}
