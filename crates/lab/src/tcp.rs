//! Flows of kernel TCP: a socket at each end, and the kernel's information on it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_sim::host::{FlowPlan, Source};
use comity_sim::network::{FlowSpec, Headers, Reader, TcpSpec, Workload};
use comity_sim::report::{FlowReport, FlowSeries};
use comity_sim::scenario::linux_parameters;
use comity_transport::tcp::Config;
use comity_units::{Bytes, Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::clock::RunClock;
use crate::error::Error;
use crate::namespace::Namespace;
use crate::requirements::controllers;
use crate::router::Interval;
use crate::tcp_info::{self, TcpInfo};

/// The time that a read or write may block before the thread checks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// The interval between queries of a sender's state in the kernel.
const SAMPLING: Span = Span::from_millis(10);
/// The bytes to write or read at a time.
const CHUNK: usize = 64 << 10;
/// Headers of IPv4 and TCP without options.
const HEADERS: u32 = 40;
/// The bytes of time stamps in each segment, with their padding.
const TIMESTAMPS: u32 = 12;

/// The kernel's first window (RFC 6928).
const KERNEL_INITIAL_SEGMENTS: u64 = 10;
/// The kernel's own bound on the buffer of a sender, in bytes.
const MIN_SEND_BUFFER: u64 = 4 << 20;

/// Settings of the kernel for the hosts of a flow, and the MTU of their devices.
#[derive(Clone, Debug)]
pub(crate) struct KernelSettings {
    pub(crate) mtu: u16,
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// The kernel's settings for a TCP flow of the scenario.
///
/// # Errors
/// If the kernel cannot do what the scenario requests.
pub(crate) fn kernel_settings(flow: &FlowSpec, tcp: &TcpSpec) -> Result<KernelSettings, Error> {
    let refuse = |reason: String| Error::Flow {
        flow: flow.name.clone(),
        reason,
    };
    let known = controllers();
    if !known.contains(&tcp.controller) {
        return Err(refuse(format!(
            "the kernel has no congestion controller {:?}; expected one of {}",
            tcp.controller,
            known.join(", ")
        )));
    }
    if let Some(key) = beyond_kernel(flow, tcp) {
        return Err(refuse(format!(
            "the kernel does not let `{key}` be set; expected preset = \"modern\" without that key"
        )));
    }
    let options = if tcp.config.timestamps { TIMESTAMPS } else { 0 };
    let mtu = u16::try_from(tcp.config.mss + HEADERS + options).map_err(|_| {
        refuse("its segments are larger than IP packets; choose smaller ones".into())
    })?;
    let flag = |on: bool| String::from(if on { "1" } else { "0" });
    let mut settings = vec![
        // Nothing learnt from an earlier connection may matter.
        ("ipv4/tcp_no_metrics_save", "1".into()),
        ("ipv4/tcp_timestamps", flag(tcp.config.timestamps)),
        ("ipv4/tcp_sack", flag(tcp.config.sack)),
        ("ipv4/tcp_window_scaling", flag(tcp.config.window_scaling)),
        ("ipv4/tcp_dsack", flag(tcp.config.duplicate_sack)),
        ("ipv4/tcp_ecn", flag(tcp.config.ecn)),
        (
            "ipv4/tcp_slow_start_after_idle",
            flag(tcp.config.restart_after_idle),
        ),
    ];
    // Half of the memory is for the window (tcp_adv_win_scale).
    let most = tcp.config.receive_buffer.get().saturating_mul(2);
    let is_usual = tcp.config.receive_buffer == Config::MODERN.receive_buffer;
    let (least, first) = match is_usual {
        // The kernel's own defaults: the window grows on demand.
        true => (4_096, 131_072),
        false => (most, most),
    };
    settings.push(("ipv4/tcp_rmem", format!("{least} {first} {most}")));
    // The sender's buffer must never limit the window.
    let sent = most.max(MIN_SEND_BUFFER);
    settings.push(("ipv4/tcp_wmem", format!("4096 16384 {sent}")));
    Ok(KernelSettings { mtu, settings })
}

/// The first key of a TCP flow that the kernel does not support.
fn beyond_kernel(flow: &FlowSpec, tcp: &TcpSpec) -> Option<&'static str> {
    let (config, modern) = (&tcp.config, Config::MODERN);
    let keys = [
        (
            "parameters",
            tcp.parameters != linux_parameters(&tcp.controller),
        ),
        ("timeline", config.timeline.is_some()),
        ("reader", flow.reader != Reader::Immediate),
        ("headers", tcp.headers != Headers::Real),
        (
            "initial_window",
            tcp.initial_window != Bytes::new(u64::from(config.mss) * KERNEL_INITIAL_SEGMENTS),
        ),
        (
            "ssthresh",
            tcp.initial_ssthresh
                .is_some_and(|ssthresh| ssthresh != Bytes::MAX),
        ),
        ("recovery", config.recovery != modern.recovery),
        ("delayed_ack", config.delayed_ack != modern.delayed_ack),
        (
            "limited_transmit",
            config.limited_transmit != modern.limited_transmit,
        ),
        ("handshake", config.handshake != modern.handshake),
        (
            "initial_sequence",
            config.initial_sequence != modern.initial_sequence,
        ),
        ("rto", config.rtt != modern.rtt),
        (
            "restart_timer_before_sample",
            config.restart_timer_before_sample != modern.restart_timer_before_sample,
        ),
        ("max_burst", config.max_burst != modern.max_burst),
        (
            "give_up_after",
            config.give_up_after != modern.give_up_after,
        ),
    ];
    keys.into_iter()
        .find_map(|(key, is_set)| is_set.then_some(key))
}

/// The records of the sampler and the receiver.
#[derive(Debug, Default)]
struct Notes {
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
    failure: Option<String>,
}

/// A running flow of kernel TCP.
#[derive(Debug)]
pub(crate) struct TcpFlow {
    notes: Arc<Mutex<Notes>>,
    threads: Vec<JoinHandle<()>>,
}

/// The hosts of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a Namespace,
    pub(crate) destination: &'a Namespace,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
}

/// The load of a flow.
#[derive(Debug)]
pub(crate) enum Load {
    Greedy,
    File(u64),
    Scheduled(Box<Source>),
}

impl Load {
    /// The load of a workload.
    ///
    /// # Errors
    /// If the built-in sender does not support the workload.
    pub(crate) fn of(
        flow: &FlowSpec,
        scheduled: impl FnOnce() -> Result<Source, Error>,
    ) -> Result<Self, Error> {
        match flow.workload {
            Workload::Greedy => Ok(Self::Greedy),
            Workload::File(bytes) => Ok(Self::File(bytes.get())),
            Workload::TokenBucket { .. } => Err(Error::Flow {
                flow: flow.name.clone(),
                reason: "kernel TCP has no workload token_bucket; expected greedy, file, cbr, on_off or poisson"
                    .into(),
            }),
            _ => Ok(Self::Scheduled(Box::new(scheduled()?))),
        }
    }
}

impl TcpFlow {
    /// Starts both ends of a flow on threads of their own. The destination listens when this
    /// returns.
    pub(crate) fn start(
        ends: Ends<'_>,
        controller: &str,
        load: Load,
        plan: &FlowPlan,
        clock: &RunClock,
        interval: Interval,
    ) -> Result<Self, Error> {
        let address = SocketAddr::new(ends.address, ends.port);
        let listener = ends.destination.within(|| {
            TcpListener::bind(address).map_err(Error::system(format!("cannot listen on {address}")))
        })?;
        let socket = ends.source.within(|| {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)
                .map_err(Error::system("cannot open a TCP socket"))?;
            socket
                .set_tcp_congestion(controller.as_bytes())
                .map_err(Error::system(format!(
                    "cannot use the controller {controller:?}"
                )))?;
            Ok(socket)
        })?;
        let notes = Arc::new(Mutex::new(Notes::default()));
        let receiver = {
            let (notes, clock) = (notes.clone(), clock.clone());
            std::thread::spawn(move || {
                let end = receive(&listener, &clock, interval, &notes);
                fail(&notes, end);
            })
        };
        let sender = {
            let (notes, clock, plan) = (notes.clone(), clock.clone(), plan.clone());
            std::thread::spawn(move || {
                let end = send(socket, address, load, &plan, &clock, interval, &notes);
                fail(&notes, end);
            })
        };
        Ok(Self {
            notes,
            threads: vec![receiver, sender],
        })
    }

    /// Waits for both ends.
    pub(crate) fn join(self) {
        for thread in self.threads {
            // The thread reported its panic already.
            let _ = thread.join();
        }
    }

    /// Waits for both ends and returns their results. The router counts the packets.
    pub(crate) fn finish(
        self,
        report: &mut FlowReport,
        interval: Interval,
    ) -> (FlowSeries, Option<String>) {
        let shared = self.notes.clone();
        self.join();
        let notes = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = interval.end.saturating_since(interval.warmup).as_secs_f64();
        report.delivered_bytes = notes.delivered_measured;
        report.delivered_bytes_total = notes.delivered;
        report.goodput_bps = notes.delivered_measured as f64 * 8.0 / measured;
        report.finished = notes.finished;
        report.retransmitted_packets = notes.last.retransmitted.into();
        let seconds = |us: u32| (us > 0).then(|| f64::from(us) / 1e6);
        report.srtt_s = seconds(notes.last.srtt_us);
        report.min_rtt_s = seconds(notes.last.min_rtt_us);
        report.cwnd_bytes = Some(notes.last.cwnd_bytes);
        report.ssthresh_bytes = notes.last.ssthresh_bytes;
        if notes.samples > 0 {
            let samples = f64::from(notes.samples);
            report.mean_cwnd_bytes = Some(notes.window_sum / samples);
            report.mean_rtt_s = Some(notes.rtt_sum / samples);
        }
        let series = FlowSeries {
            delivered_bytes: notes.delivered_bins.clone(),
            cwnd_bytes: notes.window_bins.clone(),
            ssthresh_bytes: notes.ssthresh_bins.clone(),
            srtt_ns: notes.srtt_bins.clone(),
            ..FlowSeries::default()
        };
        (series, notes.failure.clone())
    }
}

fn fail(notes: &Mutex<Notes>, end: std::io::Result<()>) {
    if let Err(error) = end {
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.failure.get_or_insert_with(|| error.to_string());
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Adds to the bin that a moment lies in.
fn add(bins: &mut Vec<u64>, bin: Option<Span>, at: Time, amount: u64) {
    let Some(bin) = bin else { return };
    let at = (at.as_nanos() / bin.as_nanos().max(1)) as usize;
    if bins.len() <= at {
        bins.resize(at + 1, 0);
    }
    if let Some(bin) = bins.get_mut(at) {
        *bin += amount;
    }
}

fn receive(
    listener: &TcpListener,
    clock: &RunClock,
    interval: Interval,
    notes: &Mutex<Notes>,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        if clock.now() >= interval.end {
            return Ok(());
        }
        clock.wait_until(clock.now() + Span::from_millis(1));
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; CHUNK];
    while clock.now() < interval.end {
        let length = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length as u64,
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(error),
        };
        let now = clock.now();
        if now > interval.end {
            break;
        }
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.delivered += length;
        if now >= interval.warmup {
            notes.delivered_measured += length;
        }
        add(&mut notes.delivered_bins, interval.bin, now, length);
    }
    Ok(())
}

/// Connects at the start, sends, and queries the kernel for the sender's state in between.
fn send(
    socket: Socket,
    address: SocketAddr,
    load: Load,
    plan: &FlowPlan,
    clock: &RunClock,
    interval: Interval,
    notes: &Arc<Mutex<Notes>>,
) -> std::io::Result<()> {
    clock.wait_until(plan.started_at);
    if !connect(&socket, address, clock, interval)? {
        return Ok(());
    }
    let mut stream: TcpStream = socket.into();
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let sampler = {
        let (stream, notes, clock) = (stream.try_clone()?, notes.clone(), clock.clone());
        std::thread::spawn(move || sample(&stream, &clock, interval, &notes))
    };
    let end = write(&mut stream, load, plan.stopped_at, clock);
    if let Ok(Some(finished)) = &end {
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.finished = Some(*finished);
    }
    // The sampler holds the socket open until the end of the run.
    let _ = sampler.join();
    end.map(|_| ())
}

/// Connects; `false` if the run ended before, as on a path that carries nothing.
fn connect(
    socket: &Socket,
    address: SocketAddr,
    clock: &RunClock,
    interval: Interval,
) -> std::io::Result<bool> {
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
        _ => {}
    }
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(PATIENCE.subsec_nanos()),
    };
    while clock.now() < interval.end {
        let mut waiting = [PollFd::new(socket, PollFlags::OUT)];
        match poll(&mut waiting, Some(&patience)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                return match socket.take_error()? {
                    Some(error) => Err(error),
                    None => socket.set_nonblocking(false).map(|()| true),
                };
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Writes the load until the flow stops. Returns the time at which the last byte of a file was
/// acknowledged.
fn write(
    stream: &mut TcpStream,
    load: Load,
    until: Time,
    clock: &RunClock,
) -> std::io::Result<Option<Time>> {
    let zeros = vec![0; CHUNK];
    let mut put = |bytes: u64| -> std::io::Result<bool> {
        let mut left = bytes as usize;
        while left > 0 {
            if clock.now() >= until {
                return Ok(false);
            }
            match stream.write(&zeros[..left.min(CHUNK)]) {
                Ok(written) => left -= written,
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    };
    match load {
        Load::Greedy => while put(CHUNK as u64)? {},
        Load::File(bytes) => {
            let mut left = bytes;
            while left > 0 && put(left.min(CHUNK as u64))? {
                left -= left.min(CHUNK as u64);
            }
            if left == 0 {
                stream.shutdown(std::net::Shutdown::Write)?;
                // The peer closes when it has read everything.
                stream.set_read_timeout(Some(PATIENCE))?;
                while clock.now() < until {
                    match stream.read(&mut [0; 1]) {
                        Ok(_) => return Ok(Some(clock.now())),
                        Err(error) if is_passing(&error) => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Load::Scheduled(mut source) => loop {
            let next = source.peek();
            if next >= until {
                break;
            }
            clock.wait_until(next);
            let Some(bytes) = source.next_size() else {
                break;
            };
            if !put(bytes.into())? {
                break;
            }
        },
    }
    Ok(None)
}

/// Samples the sender's state in the kernel until the end of the run.
fn sample(stream: &TcpStream, clock: &RunClock, interval: Interval, notes: &Mutex<Notes>) {
    let mut next = clock.now();
    while next < interval.end {
        clock.wait_until(next);
        let now = clock.now();
        if now > interval.end {
            return;
        }
        let Some(info) = tcp_info::read(stream) else {
            return;
        };
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.last = info;
        if now >= interval.warmup {
            notes.samples += 1;
            notes.window_sum += info.cwnd_bytes as f64;
            notes.rtt_sum += f64::from(info.srtt_us) / 1e6;
        }
        if let Some(bin) = interval.bin {
            let at = (now.as_nanos() / bin.as_nanos().max(1)) as usize;
            let mut put = |pick: fn(&mut Notes) -> &mut Vec<u64>, value: u64| {
                let bins = pick(&mut notes);
                // A bin without a sample has the value of the one before it.
                let last = bins.last().copied().unwrap_or(0);
                bins.resize(bins.len().max(at + 1), last);
                if let Some(bin) = bins.get_mut(at) {
                    *bin = value;
                }
            };
            put(|notes| &mut notes.window_bins, info.cwnd_bytes);
            put(
                |notes| &mut notes.ssthresh_bins,
                info.ssthresh_bytes.unwrap_or(u64::MAX),
            );
            put(
                |notes| &mut notes.srtt_bins,
                u64::from(info.srtt_us) * 1_000,
            );
        }
        drop(notes);
        next = (next + SAMPLING).max(now);
    }
}
