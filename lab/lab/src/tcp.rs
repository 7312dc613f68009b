//! Flows of kernel TCP: a socket at each end, and the kernel's information about it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use comity_sim::host::FlowPlan;
use comity_sim::network::{FlowSpec, Headers, Reader, TcpSpec};
use comity_sim::scenario::linux_parameters;
use comity_tcp::Config;
use comity_units::{DataSize, Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::clock::RunClock;
use crate::error::Error;
use crate::host::KernelSettings;
use crate::requirements::controllers;
use crate::router::Interval;
use crate::tcp_flow::{CHUNK, Ends, Load, PATIENCE, Recorder, SAMPLING, TcpFlow};
use crate::tcp_info;

/// The initial window of the kernel and of Comity's TCP (RFC 6928).
const INITIAL_SEGMENTS: u64 = 10;
/// The kernel's own limit of a sender's buffer, in bytes.
const MIN_SEND_BUFFER: u64 = 4 << 20;

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
            "the flow or its preset sets `{key}`, which the kernel cannot apply; expected preset = \"modern\" without that key"
        )));
    }
    let mtu = mtu(flow, tcp)?;
    let flag = |on: bool| String::from(if on { "1" } else { "0" });
    let mut settings = vec![
        // Nothing learned from an earlier connection may have an effect.
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
    Ok(KernelSettings {
        mtu,
        settings,
        routes_only: false,
    })
}

/// The size of IP packets with full segments.
///
/// # Errors
/// If it is too large for IP.
pub(crate) fn mtu(flow: &FlowSpec, tcp: &TcpSpec) -> Result<u16, Error> {
    u16::try_from(tcp.config.mss + tcp.data_headers()).map_err(|_| Error::Flow {
        flow: flow.name.clone(),
        reason: "its segments are larger than IP packets; choose smaller ones".into(),
    })
}

/// The keys that neither TCP of the lab supports, and whether the flow sets them.
pub(crate) fn beyond_both(flow: &FlowSpec, tcp: &TcpSpec) -> [(&'static str, bool); 4] {
    let window = DataSize::new(u64::from(tcp.config.mss) * INITIAL_SEGMENTS);
    [
        ("reader", flow.reader != Reader::Immediate),
        ("headers", tcp.headers != Headers::Real),
        ("initial_window", tcp.initial_window != window),
        (
            "ssthresh",
            tcp.initial_ssthresh
                .is_some_and(|ssthresh| ssthresh != DataSize::MAX),
        ),
    ]
}

/// The first key of a TCP flow that the kernel does not support.
fn beyond_kernel(flow: &FlowSpec, tcp: &TcpSpec) -> Option<&'static str> {
    let (config, modern) = (&tcp.config, Config::MODERN);
    let keys = [
        (
            "parameters",
            tcp.parameters != linux_parameters(&tcp.controller),
        ),
        ("timeline", tcp.timeline.is_some()),
    ];
    let others = [
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
        .chain(beyond_both(flow, tcp))
        .chain(others)
        .find_map(|(key, is_set)| is_set.then_some(key))
}

/// Starts both ends of a flow on separate threads. The destination listens when this returns.
pub(crate) fn start(
    ends: Ends<'_>,
    controller: &str,
    load: Load,
    plan: &FlowPlan,
    clock: &RunClock,
    interval: Interval,
) -> Result<TcpFlow, Error> {
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
    let recorder = Recorder::new(interval);
    let receiver = {
        let (recorder, clock) = (recorder.clone(), clock.clone());
        std::thread::spawn(move || {
            recorder.ended(receive(&listener, &clock, interval, &recorder));
        })
    };
    let sender = {
        let (recorder, clock, plan) = (recorder.clone(), clock.clone(), plan.clone());
        std::thread::spawn(move || {
            let end = send(socket, address, load, &plan, &clock, interval, &recorder);
            recorder.ended(end);
        })
    };
    Ok(TcpFlow::new(recorder, vec![receiver, sender]))
}

fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn receive(
    listener: &TcpListener,
    clock: &RunClock,
    interval: Interval,
    recorder: &Recorder,
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
        recorder.delivered(now, length);
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
    recorder: &Recorder,
) -> std::io::Result<()> {
    // A flow may begin after its stop or the end of the run.
    if plan.started_at >= plan.stopped_at {
        return Ok(());
    }
    clock.wait_until(plan.started_at);
    if !connect(&socket, address, clock, interval)? {
        return Ok(());
    }
    let mut stream: TcpStream = socket.into();
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let sampler = {
        let (stream, recorder, clock) = (stream.try_clone()?, recorder.clone(), clock.clone());
        std::thread::spawn(move || sample(&stream, &clock, interval, &recorder))
    };
    let end = write(&mut stream, load, plan.stopped_at, clock);
    if let Ok(Some(finished)) = &end {
        recorder.finished(*finished);
    }
    // The sampler keeps the socket open until the end of the run.
    let _ = sampler.join();
    end.map(|_| ())
}

/// Connects. Returns `false` if the run ended before, as on a path that carries nothing.
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
        // `kernel_settings` refuses these flows.
        Load::Sections(_) => {}
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
fn sample(stream: &TcpStream, clock: &RunClock, interval: Interval, recorder: &Recorder) {
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
        recorder.sampled(now, info);
        next = (next + SAMPLING).max(now);
    }
}
