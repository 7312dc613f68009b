//! The costs of the endpoint. Bulk transfer and fifty paced streams over loopback, beside bare
//! sockets in the same run (in bulk with encryption and without); handshakes per second; the
//! lateness of paced packets with one stream and fifty; and the spacing of packets with controllers
//! that set it.
//!
//! ```sh
//! cargo bench -p comity --bench endpoint -- [bulk|bare-bulk|streams|bare-streams|pacing|spacing|handshakes|all] [MB or s]
//! ```
//! Both ends run in this process, so the processor seconds of `getrusage` are the sum of both.
//! together.
#![allow(clippy::print_stdout, reason = "an example that reports")]
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

mod common;
mod spacing;

use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use comity::{Endpoint, Item, Reliability, Section, connect};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use common::{Failure, loopback, options, processor_seconds};

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
        Ok::<_, Failure>((finished, caller.stats()))
    });
    let mut bytes = 0;
    while let Some(item) = listener.recv().await {
        bytes += item.into_section().ok_or("a gap")?.payload.len() as u64;
    }
    meter.report("bulk, encrypted", bytes);
    let (_, statistics) = send.await??;
    println!(
        "  {} packets, {} lost, {} received by the sender, window {:?}, rtt {:?} ms",
        statistics.sent.counters.packets,
        statistics.sent.counters.lost_packets,
        statistics.received.counters.packets,
        statistics.path.window_bytes,
        statistics.path.rtt_ms
    );
    Ok(())
}

/// AES-128-GCM on datagrams as long as those of a connection, each with its number in front.
struct Sealing(LessSafeKey);

impl Sealing {
    const NUMBER: usize = 8;
    const TAG: usize = 16;

    fn new() -> Result<Self, Failure> {
        let key = UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_| "a key of 16 bytes")?;
        Ok(Self(LessSafeKey::new(key)))
    }

    fn nonce(number: [u8; Self::NUMBER]) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - Self::NUMBER..].copy_from_slice(&number);
        Nonce::assume_unique_for_key(nonce)
    }

    fn seal(&self, number: u64, datagram: &mut [u8]) -> Result<(), Failure> {
        let number = number.to_be_bytes();
        let (head, rest) = datagram.split_at_mut(Self::NUMBER);
        let (payload, tag) = rest.split_at_mut(rest.len() - Self::TAG);
        head.copy_from_slice(&number);
        let sealed = self
            .0
            .seal_in_place_separate_tag(Self::nonce(number), Aad::from(&*head), payload)
            .map_err(|_| "not sealed")?;
        tag.copy_from_slice(sealed.as_ref());
        Ok(())
    }

    fn open(&self, datagram: &mut [u8]) -> Result<(), Failure> {
        let (head, rest) = datagram.split_at_mut(Self::NUMBER);
        let number = (&*head).try_into()?;
        self.0
            .open_in_place(Self::nonce(number), Aad::from(&*head), rest)
            .map_err(|_| "not opened")?;
        Ok(())
    }
}

/// With `is_sealed`, each datagram is sealed and opened.
fn bare_bulk(megabytes: u64, is_sealed: bool) -> Result<(), Failure> {
    const PAYLOAD: usize = 1_452;
    let sealing = is_sealed.then(Sealing::new).transpose()?;
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
        let mut contents = vec![7; PAYLOAD * segments];
        let batches = megabytes * 1_000_000 / contents.len() as u64;
        let sealing = is_sealed.then(Sealing::new).transpose()?;
        for batch in 0..batches {
            if let Some(sealing) = &sealing {
                let first = batch * segments as u64;
                for (datagram, number) in contents.chunks_exact_mut(PAYLOAD).zip(first..) {
                    sealing.seal(number, datagram)?;
                }
            }
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
                for (meta, slice) in meta[..count].iter().zip(&mut slices) {
                    bytes += meta.len as u64;
                    if let Some(sealing) = &sealing {
                        for datagram in slice[..meta.len].chunks_mut(meta.stride) {
                            sealing.open(datagram)?;
                        }
                    }
                }
            }
            Err(_) => break,
        }
    }
    // The last wait of 200 ms counts as well, but costs no processor time.
    let what = match is_sealed {
        true => "bulk, bare sockets with GSO and GRO, encrypted",
        false => "bulk, bare sockets with GSO and GRO",
    };
    meter.report(what, bytes);
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
    // One thread paces all streams, as for the bare sockets.
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

/// Fifty streams whose sections are bursts of fifteen packets, spread by a controller with a fixed
/// rate.
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
            called.stats().pacing
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

/// One stream like a video: 25 sections a second, 8 Mb/s, with the controller for media, which
/// collects the rate of a section as tokens and spreads longer sections.
async fn pace_one(seconds: u64) -> Result<(), Failure> {
    const PICTURES: u64 = 25;
    let options = options()
        .max_rate(comity_units::Rate::from_mbps(10))
        .build()?;
    let endpoint = Endpoint::bind(loopback(), options.clone())?;
    let address = endpoint.local_address();
    let accept = tokio::spawn(async move { endpoint.accept().await });
    let caller = connect(address, options).await?;
    let accepted = accept.await?.ok_or("not accepted")?;
    tokio::spawn(async move { while accepted.recv().await.is_some() {} });
    let mut ticks = tokio::time::interval(Duration::from_millis(1_000 / PICTURES));
    for _ in 0..seconds * PICTURES {
        ticks.tick().await;
        let payload = bytes::Bytes::from(vec![7; 40_000]);
        caller.try_send(Section::new(payload).deadline(Duration::from_millis(400)))?;
    }
    let pacing = caller.stats().pacing;
    println!(
        "one stream of 8 Mb/s, steady: {} paced packets; half are at most {:.0} us late, 99 % at most {:.0} us, \
         99.9 % at most {:.0} us, all at most {:.0} us",
        pacing.packets, pacing.p50_us, pacing.p99_us, pacing.p999_us, pacing.max_us
    );
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
    // Cargo passes `--bench` to every benchmark.
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let what = arguments.next().unwrap_or_else(|| "all".to_owned());
    let given: Option<u64> = arguments.next().and_then(|text| text.parse().ok());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let is_on = |name: &str| what == name || what == "all";
    if is_on("bare-bulk") {
        bare_bulk(given.unwrap_or(2_000), false)?;
        bare_bulk(given.unwrap_or(2_000), true)?;
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
        runtime.block_on(spacing::measure(given.unwrap_or(4)))?;
    }
    if is_on("pacing") {
        runtime.block_on(pace_one(given.unwrap_or(10)))?;
        runtime.block_on(pacing(given.unwrap_or(4)))?;
    }
    if is_on("handshakes") {
        runtime.block_on(handshakes(given.unwrap_or(2)))?;
    }
    Ok(())
}
