//! Collects the facts about this host.

use std::fs;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

use comity_units::Span;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{Timespec, poll};

use crate::mtu::Mtu;

use super::facts::{Clock, Facts, Loopback, Port, Queueing};

pub(super) fn probe(ports: &[u16], kernel_controllers: Vec<(&'static str, Vec<String>)>) -> Facts {
    Facts {
        receive_buffer: number("/proc/sys/net/core/rmem_max"),
        send_buffer: number("/proc/sys/net/core/wmem_max"),
        loopback: Some(loopback().map_err(|error| error.to_string())),
        clock: clock(),
        lateness: lateness(),
        processors: std::thread::available_parallelism().ok().map(usize::from),
        kernel: word("/proc/sys/kernel/osrelease"),
        congestion_controls: words("/proc/sys/net/ipv4/tcp_available_congestion_control"),
        queueing: word("/proc/sys/net/core/default_qdisc").map(|default| Queueing {
            default,
            interface: fs::read_to_string("/proc/net/route")
                .ok()
                .and_then(|table| default_interface(&table)),
        }),
        mtu: Mtu::of_default_route(),
        kernel_controllers,
        ports: ports.iter().map(|&number| port(number)).collect(),
    }
}

fn word(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn words(path: &str) -> Option<Vec<String>> {
    let text = word(path)?;
    Some(text.split_whitespace().map(str::to_owned).collect())
}

fn number(path: &str) -> Option<u64> {
    word(path)?.parse().ok()
}

/// How long to wait for a datagram on the loopback interface.
const PATIENCE: Duration = Duration::from_millis(500);

fn loopback() -> io::Result<Loopback> {
    const SEGMENT: usize = 1_200;
    const SEGMENTS: usize = 10;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = receiver.local_addr()?;
    let sending = UdpSocketState::new(UdpSockRef::from(&sender))?;
    let receiving = UdpSocketState::new(UdpSockRef::from(&receiver))?;
    for socket in [&sender, &receiver] {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(PATIENCE))?;
    }
    let mut bytes = vec![0; 65_536];
    let mut receive = || -> io::Result<RecvMeta> {
        let mut meta = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        receiving.recv(UdpSockRef::from(&receiver), &mut buffers, &mut meta)?;
        Ok(meta[0])
    };
    let send = |contents: &[u8], segment_size, ecn| {
        let transmit = Transmit {
            destination: to,
            ecn,
            contents,
            segment_size,
            src_ip: None,
        };
        sending.try_send(UdpSockRef::from(&sender), &transmit)
    };

    let mut marks = [false; 3];
    let mut timestamps = true;
    let codepoints = [EcnCodepoint::Ect0, EcnCodepoint::Ect1, EcnCodepoint::Ce];
    for (kept, mark) in marks.iter_mut().zip(codepoints) {
        send(&[0], None, Some(mark))?;
        let meta = receive()?;
        *kept = meta.ecn == Some(mark);
        timestamps &= is_recent(meta.timestamp);
    }

    let segments = sending.max_gso_segments();
    let given = SEGMENTS.min(segments.max(1));
    let size = Some(SEGMENT).filter(|_| given > 1);
    // If the system refuses a send, its datagrams count as lost.
    let was_sent = send(&vec![0; SEGMENT * given], size, None).is_ok();
    let (mut arrived, mut coalesced) = (0, 0);
    while was_sent && arrived < given {
        let Ok(meta) = receive() else { break };
        let together = meta.len.div_ceil(meta.stride.max(1));
        arrived += together;
        coalesced = coalesced.max(together);
    }
    Ok(Loopback {
        segments,
        arrived: (arrived, given),
        coalesced,
        marks,
        timestamps,
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "the kernel stamps datagrams with the time of day"
)]
fn is_recent(stamp: Option<Duration>) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    match (stamp, now) {
        (Some(stamp), Ok(now)) => stamp.abs_diff(now) < Duration::from_secs(1),
        _ => false,
    }
}

#[allow(clippy::disallowed_methods, reason = "this measures the clock itself")]
fn clock() -> Option<Clock> {
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    const READINGS: u32 = 10_000;
    let begin = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    let reading = Span::from(begin.elapsed() / READINGS);
    Some(Clock {
        current: word(&format!("{FOLDER}/current_clocksource"))?,
        available: words(&format!("{FOLDER}/available_clocksource")).unwrap_or_default(),
        reading,
    })
}

/// Waits 300 times for 200 us, as the pacing of an endpoint does.
#[allow(clippy::disallowed_methods, reason = "this measures real waits")]
fn lateness() -> Vec<Span> {
    const WAITS: usize = 300;
    const WAIT: Duration = Duration::from_micros(200);
    // By default, the system may wake a thread 50 us late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let Ok(wait) = Timespec::try_from(WAIT) else {
        return Vec::new();
    };
    let mut lateness: Vec<Span> = (0..WAITS)
        .filter_map(|_| {
            let begin = Instant::now();
            poll(&mut [], Some(&wait)).ok()?;
            Some(Span::from(begin.elapsed().saturating_sub(WAIT)))
        })
        .collect();
    lateness.sort();
    lateness
}

/// The interface of the default route in the kernel's table of IPv4 routes.
fn default_interface(table: &str) -> Option<String> {
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace();
        let (interface, destination) = (columns.next()?, columns.next()?);
        (destination == "00000000").then(|| interface.to_owned())
    })
}

fn port(number: u16) -> Port {
    let loopback = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    let reached = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, number))
        .map_err(|error| error.to_string())
        .map(|listener| {
            let own = own_address(Ipv4Addr::new(192, 0, 2, 1).into());
            let mut tried: Vec<_> = [Some(loopback[0]), own]
                .into_iter()
                .flatten()
                .map(|address| (address, is_reached(&listener, address).unwrap_or(false)))
                .collect();
            // A host without IPv6 has no address to test.
            if let Ok(listener) = UdpSocket::bind((Ipv6Addr::LOCALHOST, number)) {
                tried.push((
                    loopback[1],
                    is_reached(&listener, loopback[1]).unwrap_or(false),
                ));
            }
            tried
        });
    Port { number, reached }
}

/// The source address of datagrams to other hosts. Connecting a UDP socket sends nothing.
fn own_address(elsewhere: IpAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((elsewhere, 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

fn is_reached(listener: &UdpSocket, address: IpAddr) -> io::Result<bool> {
    listener.set_read_timeout(Some(PATIENCE))?;
    let sender = UdpSocket::bind(SocketAddr::new(address, 0))?;
    let from = sender.local_addr()?;
    sender.send_to(b"comity doctor", (address, listener.local_addr()?.port()))?;
    let mut bytes = [0; 64];
    // Other programs may send to this port too, so the number of reads is bounded.
    for _ in 0..16 {
        if listener.recv_from(&mut bytes)?.1 == from {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_is_found() {
        let table = "Iface\tDestination\tGateway\tFlags\n\
                     eth1\t0000FEA9\t00000000\t0001\n\
                     eth0\t00000000\t010000C0\t0003\n";
        assert_eq!(default_interface(table).as_deref(), Some("eth0"));
        assert_eq!(default_interface("Iface\tDestination\n"), None);
    }
}
