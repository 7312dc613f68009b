//! What the endpoint costs: bulk transfer and fifty paced streams over loopback, beside bare sockets in the same
//! run, and handshakes per second; and how late paced packets leave while it serves fifty streams.
//!
//! ```sh
//! cargo bench -p comity --bench endpoint -- [bulk|bare-bulk|streams|bare-streams|pacing|spacing|handshakes|all] [MB or s]
//! ```
//!
//! Both ends run in this process, so that the processor seconds of `getrusage` are those of both together.
#![allow(clippy::print_stdout, reason = "an example that reports")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::io::IoSliceMut;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use comity::session::PresharedKey;
use comity::{Deliver, Endpoint, Item, Options, OptionsBuilder, Reliability, Section, connect};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn options() -> OptionsBuilder {
    Options::builder()
        .preshared_key(PresharedKey::new([7; 32]))
        .deliver(Deliver::Early)
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Processor time of this process, user and system.
fn processor_seconds() -> f64 {
    // utime and stime of all threads, in ticks of 10 ms: fine enough for runs of seconds.
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    let mut fields = after.split_whitespace().skip(11);
    let mut ticks = || -> f64 { fields.next().and_then(|t| t.parse().ok()).unwrap_or(0.0) };
    (ticks() + ticks()) / 100.0
}

struct Meter {
    began: Instant,
    processor: f64,
}

impl Meter {
    fn start() -> Self {
        Self {
            began: Instant::now(),
            processor: processor_seconds(),
        }
    }

    fn report(&self, what: &str, bytes: u64) {
        let seconds = self.began.elapsed().as_secs_f64();
        let processor = processor_seconds() - self.processor;
        println!(
            "{what}: {:.2} Gb/s, {:.2} CPU s/GB ({:.2} s, {:.2} CPU s, {:.3} GB)",
            bytes as f64 * 8.0 / seconds / 1e9,
            processor / (bytes as f64 / 1e9),
            seconds,
            processor,
            bytes as f64 / 1e9,
        );
    }
}

async fn bulk(megabytes: u64) -> Result<(), Failure> {
    let options = options().reliability(Reliability::Full).build()?;
    let endpoint = Endpoint::bind(loopback(), options.clone())?;
    let address = endpoint.local_address();
    let accept = tokio::spawn(async move { endpoint.accept().await });
    let caller = connect(address, options).await?;
    let listener = accept.await?.ok_or("not accepted")?;
    const SECTION: usize = 256 * 1024;
    let payload = bytes::Bytes::from(vec![7; SECTION]);
    let sections = megabytes * 1_000_000 / SECTION as u64;
    let meter = Meter::start();
    let send = tokio::spawn(async move {
        for _ in 0..sections {
            let section = Section::new(payload.clone()).deadline(Duration::MAX);
            caller.send(section).await?;
        }
        let finished = caller.finish().await;
        Ok::<_, Failure>((finished, caller.statistics().await))
    });
    let mut bytes = 0;
    while let Some(item) = listener.recv().await {
        bytes += item.into_section().ok_or("a gap")?.payload.len() as u64;
    }
    meter.report("bulk, encrypted", bytes);
    let (_, statistics) = send.await??;
    println!(
        "  {} packets, {} lost, {} received by the sender, window {:?}, rtt {:?} ms",
        statistics.sent.packets,
        statistics.sent.lost_packets,
        statistics.received.packets,
        statistics.path.window_bytes,
        statistics.path.rtt_ms
    );
    Ok(())
}

fn bare_bulk(megabytes: u64) -> Result<(), Failure> {
    const PAYLOAD: usize = 1_452;
    let receiver = UdpSocket::bind(loopback())?;
    let address = receiver.local_addr()?;
    let state = UdpSocketState::new(UdpSockRef::from(&receiver))?;
    state.set_recv_buffer_size(UdpSockRef::from(&receiver), 4 << 20)?;
    receiver.set_nonblocking(false)?;
    receiver.set_read_timeout(Some(Duration::from_millis(200)))?;
    let meter = Meter::start();
    let send = std::thread::spawn(move || -> Result<(), Failure> {
        let sender = UdpSocket::bind(loopback())?;
        let state = UdpSocketState::new(UdpSockRef::from(&sender))?;
        sender.set_nonblocking(false)?;
        let segments = state.max_gso_segments().min(44);
        let contents = vec![7; PAYLOAD * segments];
        let batches = megabytes * 1_000_000 / contents.len() as u64;
        for _ in 0..batches {
            state.try_send(
                UdpSockRef::from(&sender),
                &Transmit {
                    destination: address,
                    ecn: None,
                    contents: &contents,
                    segment_size: Some(PAYLOAD),
                    src_ip: None,
                },
            )?;
        }
        Ok(())
    });
    let mut buffers = vec![0; BATCH_SIZE * 65_535];
    let mut bytes = 0;
    loop {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let mut chunks = buffers.chunks_exact_mut(65_535);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        match state.recv(UdpSockRef::from(&receiver), &mut slices, &mut meta) {
            Ok(count) => {
                let lengths = meta[..count].iter().map(|meta| meta.len as u64);
                bytes += lengths.sum::<u64>();
            }
            Err(_) => break,
        }
    }
    // The last wait of 200 ms counts as well, but costs no processor time.
    meter.report("bulk, bare sockets with GSO and GRO", bytes);
    send.join().map_err(|_| "the sender panicked")??;
    Ok(())
}

const STREAMS: u64 = 50;
const STREAM_BPS: u64 = 5_000_000;
const SECTION: usize = 1_316;

async fn streams(seconds: u64) -> Result<(), Failure> {
    let options = options().build()?;
    let endpoint = Endpoint::bind(loopback(), options.clone())?;
    let callers = Endpoint::for_calls(loopback(), options)?;
    let address = endpoint.local_address();
    let mut connections = Vec::new();
    let mut receivers = Vec::new();
    for _ in 0..STREAMS {
        let (called, accepted) = tokio::join!(callers.connect(address), endpoint.accept());
        connections.push(called?);
        let accepted = accepted.ok_or("not accepted")?;
        receivers.push(tokio::spawn(async move {
            let (mut bytes, mut gaps) = (0, std::collections::BTreeMap::new());
            while let Some(item) = accepted.recv().await {
                match item {
                    Item::Section(section) => bytes += section.payload.len() as u64,
                    Item::Gap(gap) => *gaps.entry(gap.reason).or_insert(0) += 1,
                }
            }
            (bytes, gaps)
        }));
    }
    let meter = Meter::start();
    let payload = bytes::Bytes::from(vec![7; SECTION]);
    let sections = seconds * STREAM_BPS / 8 / SECTION as u64;
    // One thread paces all streams, as for the bare sockets: each section of each at its time.
    let sender = std::thread::spawn(move || {
        pace(sections, |stream| {
            let _ = connections[stream].try_send(Section::new(payload.clone()));
        });
        connections
    });
    let connections = tokio::task::spawn_blocking(move || sender.join())
        .await?
        .map_err(|_| "the sender panicked")?;
    for connection in &connections {
        connection.finish().await?;
    }
    let (mut bytes, mut gaps) = (0, std::collections::BTreeMap::new());
    for receiver in receivers {
        let (received, missing) = receiver.await?;
        bytes += received;
        for (reason, count) in missing {
            *gaps.entry(reason).or_insert(0) += count;
        }
    }
    meter.report("fifty streams of 5 Mb/s, encrypted", bytes);
    println!("  gaps {gaps:?}; sections of {SECTION} bytes");
    Ok(())
}

/// Calls `send` for each section of each stream at its time.
fn pace(sections: u64, mut send: impl FnMut(usize)) {
    let interval = Duration::from_secs_f64(SECTION as f64 * 8.0 / STREAM_BPS as f64);
    let began = Instant::now();
    for number in 0..sections * STREAMS {
        let due = began + interval.mul_f64(number as f64 / STREAMS as f64);
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        send((number % STREAMS) as usize);
    }
}

fn bare_streams(seconds: u64) -> Result<(), Failure> {
    let mut senders = Vec::new();
    let mut receivers = Vec::new();
    let meter = Meter::start();
    for _ in 0..STREAMS {
        let receiver = UdpSocket::bind(loopback())?;
        receiver.set_read_timeout(Some(Duration::from_millis(500)))?;
        let sender = UdpSocket::bind(loopback())?;
        sender.connect(receiver.local_addr()?)?;
        senders.push(sender);
        receivers.push(std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            let mut bytes = 0;
            while let Ok(length) = receiver.recv(&mut buffer) {
                bytes += length as u64;
            }
            bytes
        }));
    }
    let payload = [7; SECTION];
    pace(seconds * STREAM_BPS / 8 / SECTION as u64, |stream| {
        let _ = senders[stream].send(&payload);
    });
    let mut bytes = 0;
    for receiver in receivers {
        bytes += receiver.join().map_err(|_| "a receiver panicked")?;
    }
    meter.report("fifty streams of 5 Mb/s, bare sockets", bytes);
    Ok(())
}

/// Fifty streams whose sections are bursts of fifteen packets, spread by a controller of a fixed rate.
async fn pacing(seconds: u64) -> Result<(), Failure> {
    const BURST: usize = 15 * SECTION;
    let row = comity_congestion::table::find("fixed")?;
    let parameters =
        comity_congestion::table::Parameters::new().with("rate", row.parse("rate", "8Mbps")?);
    let options = options()
        .controller("fixed")
        .controller_parameters(parameters)
        .build()?;
    let endpoint = Endpoint::bind(loopback(), options.clone())?;
    let callers = Endpoint::for_calls(loopback(), options)?;
    let address = endpoint.local_address();
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let (called, accepted) = tokio::join!(callers.connect(address), endpoint.accept());
        let (called, accepted) = (called?, accepted.ok_or("not accepted")?);
        tokio::spawn(async move { while accepted.recv().await.is_some() {} });
        streams.push(tokio::spawn(async move {
            let payload = bytes::Bytes::from(vec![7; BURST]);
            let interval = Duration::from_secs_f64(BURST as f64 * 8.0 / STREAM_BPS as f64);
            let mut ticks = tokio::time::interval(interval);
            for _ in 0..seconds * STREAM_BPS / 8 / BURST as u64 {
                ticks.tick().await;
                let _ = called.try_send(Section::new(payload.clone()));
            }
            called.statistics().await.pacing
        }));
    }
    let (mut packets, mut p50, mut p99, mut most) = (0, 0.0_f64, 0.0_f64, 0.0_f64);
    for stream in streams {
        let pacing = stream.await?;
        packets += pacing.packets;
        p50 = p50.max(pacing.p50_us);
        p99 = p99.max(pacing.p99_us);
        most = most.max(pacing.max_us);
    }
    println!(
        "fifty streams in bursts: {packets} paced packets; of the worst stream half are at most {p50:.0} us late, \
         99 % at most {p99:.0} us, all at most {most:.0} us"
    );
    Ok(())
}

/// The spacings that real sockets keep: packets of one section each, with a fixed gap, by their arrival at the
/// application of the other end.
/// Stands between two endpoints, and has the system's own times of the full datagrams that pass.
struct Tap {
    address: SocketAddr,
    is_over: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: std::thread::JoinHandle<Result<Vec<i64>, Failure>>,
}

impl Tap {
    fn start(target: SocketAddr) -> Result<Self, Failure> {
        let socket = UdpSocket::bind(loopback())?;
        nix::sys::socket::setsockopt(&socket, ReceiveTimestampns, &true)?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let address = socket.local_addr()?;
        let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let told = is_over.clone();
        let thread = std::thread::spawn(move || {
            let mut times = Vec::new();
            let (mut bytes, mut space) = ([0; 2_048], nix::cmsg_space!(nix::sys::time::TimeSpec));
            let mut caller = target;
            while !told.load(std::sync::atomic::Ordering::Relaxed) {
                let mut slices = [IoSliceMut::new(&mut bytes)];
                let received = recvmsg::<SockaddrStorage>(
                    socket.as_raw_fd(),
                    &mut slices,
                    Some(&mut space),
                    MsgFlags::empty(),
                );
                let received = match received {
                    Err(nix::Error::EAGAIN) => continue,
                    received => received?,
                };
                let from = received
                    .address
                    .as_ref()
                    .and_then(SockaddrStorage::as_sockaddr_in)
                    .map(|&from| SocketAddr::V4(from.into()))
                    .ok_or("a datagram from nowhere")?;
                let length = received.bytes;
                if from != target && length >= SECTION {
                    for message in received.cmsgs()? {
                        if let ControlMessageOwned::ScmTimestampns(time) = message {
                            times.push(time.tv_sec() * 1_000_000_000 + time.tv_nsec());
                        }
                    }
                }
                let to = if from == target { caller } else { target };
                if from != target {
                    caller = from;
                }
                socket.send_to(&bytes[..length], to)?;
            }
            Ok(times)
        });
        Ok(Self {
            address,
            is_over,
            thread,
        })
    }

    fn end(self) -> Result<Vec<i64>, Failure> {
        self.is_over
            .store(true, std::sync::atomic::Ordering::Relaxed);
        self.thread.join().map_err(|_| "the tap has panicked")?
    }
}

/// The gaps between the packets of one stream whose law sets them, by the system's clock where they arrive.
async fn spacing(seconds: u64) -> Result<(), Failure> {
    for gap_us in [50, 100, 200, 500, 1_000] {
        let row = comity_congestion::table::find("fixed")?;
        let gap = row.parse("gap", &format!("{gap_us}us"))?;
        let options = options()
            .controller("fixed")
            .controller_parameters(comity_congestion::table::Parameters::new().with("gap", gap))
            .reliability(Reliability::Full)
            .build()?;
        let endpoint = Endpoint::bind(loopback(), options.clone())?;
        let caller = Endpoint::for_calls(loopback(), options)?;
        let tap = Tap::start(endpoint.local_address())?;
        let (called, accepted) = tokio::join!(caller.connect(tap.address), endpoint.accept());
        let (called, accepted) = (called?, accepted.ok_or("not accepted")?);
        let packets = seconds * 1_000_000 / gap_us;
        tokio::spawn(async move { while accepted.recv().await.is_some() {} });
        let payload = bytes::Bytes::from(vec![7; SECTION]);
        for _ in 0..packets {
            called.send(Section::new(payload.clone())).await?;
        }
        called.finish().await?;
        let arrivals = tap.end()?;
        let mut gaps: Vec<f64> = arrivals
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 / 1e3)
            .collect();
        gaps.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * gaps.len() as f64) as usize;
            gaps.get(rank.min(gaps.len().saturating_sub(1)))
                .copied()
                .unwrap_or(f64::NAN)
        };
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        println!(
            "gap {gap_us} us: {} of {packets} packets, gaps of {mean:.1} us on the average; 1 % {:.0}, 10 % {:.0}, \
             50 % {:.0}, 90 % {:.0}, 99 % {:.0} us",
            arrivals.len(),
            at(0.01),
            at(0.1),
            at(0.5),
            at(0.9),
            at(0.99),
        );
    }
    Ok(())
}

async fn handshakes(seconds: u64) -> Result<(), Failure> {
    let options = options().build()?;
    let endpoint = Endpoint::bind(loopback(), options.clone())?;
    let address = endpoint.local_address();
    tokio::spawn(async move { while endpoint.accept().await.is_some() {} });
    let callers = Endpoint::for_calls(loopback(), options)?;
    let began = Instant::now();
    let processor = processor_seconds();
    let mut done = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        drop(callers.connect(address).await?);
        done += 1;
    }
    println!(
        "handshakes, one after the other: {:.0} per second, {:.3} CPU ms each, both ends",
        f64::from(done) / began.elapsed().as_secs_f64(),
        (processor_seconds() - processor) * 1e3 / f64::from(done),
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    // Cargo passes `--bench` to what it runs as a benchmark.
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let what = arguments.next().unwrap_or_else(|| "all".to_owned());
    let given: Option<u64> = arguments.next().and_then(|text| text.parse().ok());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let is_on = |name: &str| what == name || what == "all";
    if is_on("bare-bulk") {
        bare_bulk(given.unwrap_or(2_000))?;
    }
    if is_on("bulk") {
        runtime.block_on(bulk(given.unwrap_or(1_000)))?;
    }
    if is_on("bare-streams") {
        bare_streams(given.unwrap_or(4))?;
    }
    if is_on("streams") {
        runtime.block_on(streams(given.unwrap_or(4)))?;
    }
    if is_on("spacing") {
        runtime.block_on(spacing(given.unwrap_or(4)))?;
    }
    if is_on("pacing") {
        runtime.block_on(pacing(given.unwrap_or(4)))?;
    }
    if is_on("handshakes") {
        runtime.block_on(handshakes(given.unwrap_or(2)))?;
    }
    Ok(())
}
