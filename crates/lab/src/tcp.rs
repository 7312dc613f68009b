//! Flows of kernel TCP: a socket at each end, and what the kernel says of it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_sim::host::{FlowPlan, Source};
use comity_sim::network::{FlowSpec, TcpSpec, Workload};
use comity_sim::report::{FlowReport, FlowSeries};
use comity_transport::tcp::Config;
use comity_units::{Span, Time};
use socket2::{Domain, Socket, Type};

use crate::clock::Clock;
use crate::error::Error;
use crate::namespace::Door;
use crate::requirements::controllers;
use crate::router::Interval;
use crate::tcp_info::{self, TcpInfo};

/// How long a read or write may block before the thread looks whether the run is over.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often the kernel is asked for the state of a sender.
const SAMPLING: Span = Span::from_millis(10);
/// How much is written or read at a time.
const CHUNK: usize = 64 << 10;
/// Headers of IPv4 and TCP without options.
const HEADERS: u32 = 40;
/// What time stamps take of each segment, with their padding.
const TIMESTAMPS: u32 = 12;

/// Settings of the kernel for the hosts of a flow, and the MTU of their devices.
#[derive(Clone, Debug)]
pub(crate) struct KernelSettings {
    pub(crate) mtu: u16,
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// What a TCP flow of the scenario is in the kernel.
///
/// # Errors
/// When the kernel cannot be what the scenario asks for.
pub(crate) fn kernel_settings(flow: &FlowSpec, tcp: &TcpSpec) -> Result<KernelSettings, Error> {
    let refuse = |reason: String| Error::Flow {
        flow: flow.name.clone(),
        reason,
    };
    let known = controllers();
    if !known.contains(&tcp.controller) {
        return Err(refuse(format!(
            "the kernel has no controller {:?}; it offers {}",
            tcp.controller,
            known.join(", ")
        )));
    }
    if tcp.parameters.iter().next().is_some() {
        return Err(refuse(
            "the kernel takes no `parameters` for its controllers; leave them out".into(),
        ));
    }
    if tcp.config.timeline.is_some() {
        return Err(refuse(
            "the kernel has no time-lined TCP; leave out `timeline`".into(),
        ));
    }
    let modern = Config::MODERN;
    if tcp.config.recovery != modern.recovery {
        return Err(refuse(
            "the kernel chooses its own recovery; expected preset = \"modern\" without `recovery`"
                .into(),
        ));
    }
    let options = if tcp.config.timestamps { TIMESTAMPS } else { 0 };
    let mtu = u16::try_from(tcp.config.mss + HEADERS + options)
        .map_err(|_| refuse("its segments are larger than IP packets".into()))?;
    let flag = |on: bool| String::from(if on { "1" } else { "0" });
    let mut settings = vec![
        // Nothing that an earlier connection learnt shall matter.
        ("ipv4/tcp_no_metrics_save", "1".into()),
        ("ipv4/tcp_timestamps", flag(tcp.config.timestamps)),
        ("ipv4/tcp_sack", flag(tcp.config.sack)),
        ("ipv4/tcp_window_scaling", flag(tcp.config.window_scaling)),
    ];
    if tcp.config.receive_buffer != modern.receive_buffer {
        // Half of the memory is for the window (tcp_adv_win_scale).
        let bytes = tcp.config.receive_buffer.get().saturating_mul(2);
        settings.push(("ipv4/tcp_rmem", format!("{bytes} {bytes} {bytes}")));
    }
    Ok(KernelSettings { mtu, settings })
}

/// What the sampler and the receiver wrote down.
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

/// A flow of kernel TCP that runs.
#[derive(Debug)]
pub(crate) struct TcpFlow {
    notes: Arc<Mutex<Notes>>,
    threads: Vec<JoinHandle<()>>,
}

/// Where a flow runs.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) source: Door,
    pub(crate) destination: Door,
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
}

/// What is sent.
#[derive(Debug)]
pub(crate) enum Load {
    Greedy,
    File(u64),
    Scheduled(Box<Source>),
}

impl Load {
    /// What a flow sends.
    ///
    /// # Errors
    /// For a workload that the built-in sender does not have.
    pub(crate) fn of(
        flow: &FlowSpec,
        scheduled: impl FnOnce() -> Result<Source, Error>,
    ) -> Result<Self, Error> {
        match flow.workload {
            Workload::Greedy => Ok(Self::Greedy),
            Workload::File(bytes) => Ok(Self::File(bytes.get())),
            Workload::TokenBucket { .. } => Err(Error::Flow {
                flow: flow.name.clone(),
                reason: "kernel TCP has no token bucket; expected the workload greedy, file, cbr, on_off or poisson"
                    .into(),
            }),
            _ => Ok(Self::Scheduled(Box::new(scheduled()?))),
        }
    }
}

impl TcpFlow {
    /// Starts both ends of a flow on threads of their own.
    pub(crate) fn start(
        ends: Ends,
        controller: &str,
        load: Load,
        plan: &FlowPlan,
        clock: Clock,
        interval: Interval,
    ) -> Result<Self, Error> {
        let Ends {
            source,
            destination,
            address,
            port,
        } = ends;
        let notes = Arc::new(Mutex::new(Notes::default()));
        let address = SocketAddr::new(address, port);
        let (listening, listens) = channel();
        let receiver = {
            let notes = notes.clone();
            std::thread::spawn(move || {
                let bound = destination.enter().and_then(|()| {
                    TcpListener::bind(address)
                        .map_err(Error::system(format!("cannot listen on {address}")))
                });
                match bound {
                    Ok(listener) => {
                        let _ = listening.send(Ok(()));
                        let end = receive(&listener, clock, interval, &notes);
                        fail(&notes, end);
                    }
                    Err(error) => {
                        let _ = listening.send(Err(error));
                    }
                }
            })
        };
        match listens.recv() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let gone = std::io::Error::other("its thread ended");
                return Err(Error::system("cannot start a receiver")(gone));
            }
        }
        let sender = {
            let (notes, controller) = (notes.clone(), controller.to_owned());
            let (from, until) = (plan.started_at, plan.stopped_at);
            std::thread::spawn(move || {
                let end = source
                    .enter()
                    .map_err(std::io::Error::other)
                    .and_then(|()| {
                        send(
                            address,
                            &controller,
                            load,
                            (from, until),
                            clock,
                            interval,
                            &notes,
                        )
                    });
                fail(&notes, end);
            })
        };
        Ok(Self {
            notes,
            threads: vec![receiver, sender],
        })
    }

    /// Waits for both ends and says what they did. The router knows the packets.
    pub(crate) fn finish(
        self,
        report: &mut FlowReport,
        interval: Interval,
    ) -> (FlowSeries, Option<String>) {
        for thread in self.threads {
            // A panic has been reported by the time the thread ended.
            let _ = thread.join();
        }
        let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let measured = interval.end.saturating_since(interval.warmup).as_secs_f64();
        report.delivered_bytes = notes.delivered_measured;
        report.delivered_bytes_total = notes.delivered;
        report.goodput_bps = notes.delivered_measured as f64 * 8.0 / measured;
        report.finished = notes.finished;
        report.retransmitted_packets = notes.last.retransmitted.into();
        let seconds = |us: u32| (us > 0).then(|| f64::from(us) / 1e6);
        report.srtt_s = seconds(notes.last.srtt_us);
        report.min_rtt_s = seconds(notes.last.min_rtt_us);
        report.window_bytes = Some(notes.last.window_bytes);
        report.ssthresh_bytes = notes.last.ssthresh_bytes;
        if notes.samples > 0 {
            let samples = f64::from(notes.samples);
            report.mean_window_bytes = Some(notes.window_sum / samples);
            report.mean_rtt_s = Some(notes.rtt_sum / samples);
        }
        let series = FlowSeries {
            delivered_bytes: notes.delivered_bins.clone(),
            window_bytes: notes.window_bins.clone(),
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

/// Waits until `time`.
pub(crate) fn wait_until(clock: Clock, time: Time) {
    let (_never, silence) = channel::<()>();
    let silence: Receiver<()> = silence;
    loop {
        let left = clock.until(time);
        if left.is_zero() || silence.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            return;
        }
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
    clock: Clock,
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
        wait_until(clock, clock.now() + Span::from_millis(1));
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

/// Connects at the start and sends, with the kernel asked for the sender's state in between.
fn send(
    address: SocketAddr,
    controller: &str,
    load: Load,
    (from, until): (Time, Time),
    clock: Clock,
    interval: Interval,
    notes: &Arc<Mutex<Notes>>,
) -> std::io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_tcp_congestion(controller.as_bytes())?;
    wait_until(clock, from);
    socket.connect_timeout(&address.into(), clock.until(interval.end).max(PATIENCE))?;
    let mut stream: TcpStream = socket.into();
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let sampler = {
        let (stream, notes) = (stream.try_clone()?, notes.clone());
        std::thread::spawn(move || sample(&stream, clock, interval, &notes))
    };
    let end = write(&mut stream, load, until, clock);
    if let Ok(Some(finished)) = &end {
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.finished = Some(*finished);
    }
    // The sampler holds the socket open until the end of the run.
    let _ = sampler.join();
    end.map(|_| ())
}

/// Writes the load until the flow stops. Returns when the last byte of a file was acknowledged.
fn write(
    stream: &mut TcpStream,
    load: Load,
    until: Time,
    clock: Clock,
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
            wait_until(clock, next);
            let Some((bytes, _)) = source.next_section() else {
                break;
            };
            if !put(bytes.into())? {
                break;
            }
        },
    }
    Ok(None)
}

/// Asks the kernel for the sender's state until the end of the run.
fn sample(stream: &TcpStream, clock: Clock, interval: Interval, notes: &Mutex<Notes>) {
    let mut next = clock.now();
    while next < interval.end {
        wait_until(clock, next);
        let Some(info) = tcp_info::read(stream) else {
            return;
        };
        let now = clock.now();
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.last = info;
        if now >= interval.warmup {
            notes.samples += 1;
            notes.window_sum += info.window_bytes as f64;
            notes.rtt_sum += f64::from(info.srtt_us) / 1e6;
        }
        if let Some(bin) = interval.bin {
            let at = (now.as_nanos() / bin.as_nanos().max(1)) as usize;
            let mut put = |pick: fn(&mut Notes) -> &mut Vec<u64>, value: u64| {
                let bins = pick(&mut notes);
                // A bin that no sample fell into has the value of the one before it.
                let last = bins.last().copied().unwrap_or(0);
                bins.resize(bins.len().max(at + 1), last);
                if let Some(bin) = bins.get_mut(at) {
                    *bin = value;
                }
            };
            put(|notes| &mut notes.window_bins, info.window_bytes);
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
