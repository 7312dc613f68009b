//! The thread that carries packets between the hosts of a lab, over the links of the scenario.
//!
//! In each round, the thread waits until a device has packets or a packet is due. It then reads
//! from the devices and writes due packets. A packet enters the next link at the time that the
//! previous link computed, not when the thread handled it, so lateness does not add up along a
//! path.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use comity_emulator::{Lane, Record, Timing, TimingSummary};
use comity_link::Packet;
use comity_sim::histogram::Distribution;
use comity_units::{Span, Time};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use tun_rs::SyncDevice;

use crate::capture::Captures;
use crate::clock::Clock;
use crate::error::Error;
use crate::packet::{destination, flow, is_ecn_capable, mark};

/// How long before a due packet the thread spins, to avoid the delay of waking up.
const SPIN: Span = Span::from_micros(60);
/// The time over which the thread measures its share of the processor.
const WATCH: Span = Span::from_millis(10);
/// The minimum share of that time, in percent, that is left to other threads. Below it, the thread
/// stops spinning.
const REST: u64 = 30;
/// The maximum number of packets to read from a device in a row, and to write before devices are
/// read again.
const BURST: usize = 64;
/// The interval at which the thread checks for the request to stop.
const PATIENCE: Span = Span::from_millis(20);
/// The lateness above which a packet counts as late.
pub(crate) const LATE: Span = Span::from_millis(1);
/// The maximum length of an IP packet.
const LARGEST: usize = 65_535;

/// One end of a flow at the router.
pub(crate) struct Port {
    pub(crate) device: SyncDevice,
    /// The addresses of the other end.
    pub(crate) peer: (Ipv4Addr, Ipv6Addr),
    /// The links to the other end.
    pub(crate) path: Vec<usize>,
}

/// A packet on its path.
#[derive(Clone, Debug)]
struct Transit {
    bytes: Box<[u8]>,
    /// The port of its origin: twice the flow, plus one at the destination.
    port: u32,
    /// The number of links of its path that it has entered.
    hop: u32,
    entered: Time,
    is_copy: bool,
}

/// The packets of one direction of a flow, as the router counts them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    /// The number of packets that the host sent.
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    /// The number of packets delivered to the other host, without duplicates.
    pub(crate) delivered_packets: u64,
    /// The number of duplicates made by links that left the last link.
    pub(crate) copies: u64,
    /// The number of bytes on the wire delivered to the other host, without duplicates.
    pub(crate) delivered_bytes: u64,
    /// The same, during the measurement.
    pub(crate) measured_delivered_bytes: u64,
    /// The one-way delay, during the measurement.
    pub(crate) delay: Distribution,
    /// The time between deliveries, during the measurement.
    pub(crate) spacing: Distribution,
    last_arrival: Option<Time>,
    /// The number of bytes delivered to the other host in each bin.
    pub(crate) bins: Vec<u64>,
    /// The number of packets that the host sent in each bin.
    pub(crate) sent_bins: Vec<u32>,
}

/// A link and the ports of its packets.
#[derive(Debug)]
struct Line {
    lane: Lane<Transit>,
    /// The port of each record of the lane.
    offered_by: Vec<u32>,
}

/// The router's records of a run.
pub(crate) struct Outcome {
    /// Two entries for each flow: from its source, and from its destination.
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) links: Vec<LinkOutcome>,
    pub(crate) timing: TimingSummary,
    /// The number of packets that the kernel did not accept.
    pub(crate) unwritten: u64,
    /// The number of packets for which the router's memory had no room.
    pub(crate) unheld: u64,
}

/// The fates of the packets offered to a link.
#[derive(Debug)]
pub(crate) struct LinkOutcome {
    lane: Lane<Transit>,
    offered_by: Vec<u32>,
}

impl LinkOutcome {
    /// The offered packets, each with its port.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&Record, u32)> {
        let ports = self.offered_by.iter().copied();
        self.lane.record().iter().zip(ports)
    }
}

/// The measured interval of a run, and the length of its bins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interval {
    pub(crate) warmup: Time,
    pub(crate) end: Time,
    pub(crate) bin: Option<Span>,
}

/// A router that does not run yet.
pub(crate) struct Router {
    ports: Vec<Port>,
    lines: Vec<Line>,
    captures: Captures,
    clock: Clock,
    interval: Interval,
    epoll: OwnedFd,
    traffic: Vec<Traffic>,
    timing: Timing,
    unwritten: u64,
    rest: Rest,
}

/// Measures whether the thread leaves enough of its processor to others. The kernel suspends a
/// real-time thread that spins from packet to packet, for 50 ms in every second. Until then, such a
/// thread keeps the ends of the flows from running.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    since: Time,
    slept: Span,
    is_short: bool,
}

impl Rest {
    /// The time before a due packet for which the thread spins.
    const fn spin(self) -> Span {
        if self.is_short { Span::ZERO } else { SPIN }
    }

    /// Records that the thread slept for `slept` until `now`.
    fn sleep(&mut self, slept: Span, now: Time) {
        self.slept += slept;
        let watched = now.saturating_since(self.since);
        if watched >= WATCH {
            let share = u128::from(self.slept.as_nanos()) * 100 / u128::from(watched.as_nanos());
            self.is_short = share < u128::from(REST);
            (self.since, self.slept) = (now, Span::ZERO);
        }
    }
}

impl Router {
    /// Makes a router between ports, over links. The port of a flow's source precedes that of its
    /// destination.
    pub(crate) fn new(
        ports: Vec<Port>,
        lanes: Vec<LaneOf>,
        captures: Captures,
        clock: Clock,
        interval: Interval,
    ) -> Result<Self, Error> {
        let purpose = "cannot wait for the devices of the hosts";
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(Error::system(purpose))?;
        for (number, port) in ports.iter().enumerate() {
            epoll::add(
                &epoll,
                fd(&port.device),
                epoll::EventData::new_u64(number as u64),
                epoll::EventFlags::IN,
            )
            .map_err(Error::system(purpose))?;
        }
        let bins = interval.bin.map_or(0, |bin| {
            let length = interval.end.saturating_since(Time::ZERO).as_nanos();
            length.div_ceil(bin.as_nanos().max(1)) as usize
        });
        let traffic = Traffic {
            bins: vec![0; bins],
            sent_bins: vec![0; bins],
            ..Traffic::default()
        };
        Ok(Self {
            traffic: vec![traffic; ports.len()],
            lines: lanes
                .into_iter()
                .map(|LaneOf(lane)| Line {
                    lane,
                    offered_by: Vec::new(),
                })
                .collect(),
            ports,
            captures,
            clock,
            interval,
            epoll,
            timing: Timing::new(LATE),
            unwritten: 0,
            rest: Rest::default(),
        })
    }

    /// Carries packets from the clock's zero until the end of the run, or until `stop`. Returns the
    /// devices too, since the kernel's counters disappear with them.
    pub(crate) fn run(mut self, stop: &Arc<AtomicBool>) -> Result<(Outcome, Vec<Port>), Error> {
        // This fails only on systems without timer slack, where spinning covers the difference.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        // Without this priority, the router is late on a busy machine, and the report says so.
        let _ = thread_priority::set_thread_priority_and_policy(
            thread_priority::thread_native_id(),
            thread_priority::ThreadPriority::from_posix(thread_priority::ScheduleParams {
                sched_priority: 10,
            }),
            thread_priority::ThreadSchedulePolicy::Realtime(
                thread_priority::RealtimeThreadSchedulePolicy::Fifo,
            ),
        );
        let mut buffer = vec![0_u8; LARGEST];
        let mut events = Vec::with_capacity(64);
        while self.clock.now() < self.interval.end && !stop.load(Ordering::Relaxed) {
            self.wait(&mut events)?;
            // Links require packets in order of time, so packets on their path come first.
            self.hand_on(self.clock.now());
            for event in &events {
                self.read(event.data.u64() as usize, &mut buffer)?;
            }
            self.hand_on(self.clock.now());
        }
        let unheld = self.lines.iter();
        let unheld = unheld.map(|line| line.lane.counts().dropped_memory.packets);
        let outcome = Outcome {
            unheld: unheld.sum(),
            links: self
                .lines
                .into_iter()
                .map(|line| LinkOutcome {
                    lane: line.lane,
                    offered_by: line.offered_by,
                })
                .collect(),
            traffic: self.traffic,
            timing: self.timing.summary(),
            unwritten: self.unwritten,
        };
        Ok((outcome, self.ports))
    }

    /// Waits for devices, or until a packet is due.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), Error> {
        events.clear();
        let now = self.clock.now();
        let latest = now + PATIENCE;
        let until = match self.next_due() {
            Some((due, _)) => latest.min(due.saturating_sub(self.rest.spin())),
            None => latest,
        };
        let left = until.saturating_since(now);
        let timeout = Timespec {
            tv_sec: 0,
            // It is less than `PATIENCE`.
            tv_nsec: left.as_nanos().cast_signed(),
        };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(reason) => {
                let purpose = "cannot wait for the devices of the hosts";
                return Err(Error::system(purpose)(reason));
            }
        }
        let woken = self.clock.now();
        let slept = match left.is_zero() {
            true => Span::ZERO,
            false => woken.saturating_since(now),
        };
        self.rest.sleep(slept, woken);
        Ok(())
    }

    /// When the next packet is due, and at which link.
    fn next_due(&self) -> Option<(Time, usize)> {
        let due = |(number, line): (usize, &Line)| Some((line.lane.next_due()?, number));
        self.lines.iter().enumerate().filter_map(due).min()
    }

    /// Reads the packets of a host.
    fn read(&mut self, number: usize, buffer: &mut [u8]) -> Result<(), Error> {
        use std::io::ErrorKind::{Interrupted, WouldBlock};
        for _ in 0..BURST {
            let Some(port) = self.ports.get(number) else {
                break;
            };
            let length = match port.device.recv(buffer) {
                Ok(length) => length,
                Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => break,
                // A closed device would wake the thread forever.
                Err(error) => return Err(Error::system("cannot read from a host's device")(error)),
            };
            let packet = buffer.get(..length).unwrap_or_default();
            let is_for_peer = match destination(packet) {
                Some(IpAddr::V4(address)) => address == port.peer.0,
                Some(IpAddr::V6(address)) => address == port.peer.1,
                None => false,
            };
            // Other packets, such as neighbour discovery, have no destination in the lab.
            if !is_for_peer {
                continue;
            }
            let now = self.clock.now();
            if let Some(traffic) = self.traffic.get_mut(number) {
                traffic.sent_packets += 1;
                traffic.sent_bytes += length as u64;
                if let Some(bin) =
                    bin_of(self.interval.bin, now).and_then(|at| traffic.sent_bins.get_mut(at))
                {
                    *bin += 1;
                }
            }
            let transit = Transit {
                bytes: packet.into(),
                // There are fewer than 2^17 ports.
                port: number as u32,
                hop: 0,
                entered: now,
                is_copy: false,
            };
            self.forward(now, transit);
        }
        Ok(())
    }

    /// Puts a packet on the next link of its path, or delivers it to its host.
    fn forward(&mut self, now: Time, mut transit: Transit) {
        let port = self.ports.get(transit.port as usize);
        let Some(port) = port else { return };
        let Some(&link) = port.path.get(transit.hop as usize) else {
            self.deliver(now, &transit);
            return;
        };
        let Some(line) = self.lines.get_mut(link) else {
            return;
        };
        transit.hop += 1;
        let packet = Packet {
            // An IP packet has fewer than 2^16 bytes.
            bytes: transit.bytes.len() as u32,
            ecn_capable: is_ecn_capable(&transit.bytes),
            flow: flow(&transit.bytes),
        };
        self.captures.take(link, now, &transit.bytes);
        let (port, before) = (transit.port, line.lane.record().len());
        line.lane.offer(now, packet, transit);
        if line.lane.record().len() > before {
            line.offered_by.push(port);
        }
    }

    /// Forwards every packet that is due by `horizon`, in the order of due times.
    fn hand_on(&mut self, horizon: Time) {
        for _ in 0..BURST {
            let Some((due, number)) = self.next_due() else {
                return;
            };
            if due > horizon {
                return;
            }
            let Some(line) = self.lines.get_mut(number) else {
                return;
            };
            // A link with a real queue may have made only a decision.
            let Some(release) = line.lane.release(due) else {
                continue;
            };
            let mut transit = release.item;
            if release.marked {
                mark(&mut transit.bytes);
            }
            transit.is_copy |= release.is_copy;
            self.forward(release.due, transit);
        }
    }

    /// Delivers a packet to the host at the end of its path.
    fn deliver(&mut self, due: Time, transit: &Transit) {
        let from = transit.port as usize;
        if let Some(host) = self.ports.get(from ^ 1)
            && host.device.send(&transit.bytes).is_err()
        {
            self.unwritten += 1;
        }
        self.timing
            .record(due, self.clock.now().saturating_since(due));
        let Interval { warmup, end, bin } = self.interval;
        let Some(traffic) = self.traffic.get_mut(from) else {
            return;
        };
        if transit.is_copy {
            traffic.copies += 1;
        } else {
            traffic.delivered_packets += 1;
            traffic.delivered_bytes += transit.bytes.len() as u64;
        }
        if due >= warmup && due <= end {
            if !transit.is_copy {
                traffic.measured_delivered_bytes += transit.bytes.len() as u64;
            }
            traffic.delay.record(due.saturating_since(transit.entered));
            if let Some(last) = traffic.last_arrival {
                traffic.spacing.record(due.saturating_since(last));
            }
            traffic.last_arrival = Some(due);
        }
        if let Some(bin) = bin_of(bin, due).and_then(|at| traffic.bins.get_mut(at)) {
            *bin += transit.bytes.len() as u64;
        }
    }
}

/// A lane of the router's packets.
#[derive(Debug)]
pub(crate) struct LaneOf(Lane<Transit>);

impl LaneOf {
    /// The lane of a link, which records the fate of every packet.
    pub(crate) fn new(
        config: &comity_link::LinkConfig,
        seed: comity_link::LinkSeed,
    ) -> Result<Self, comity_link::ConfigError> {
        /// If more memory is needed, the link drops packets, and the results are not to be trusted.
        const MEMORY: comity_units::DataSize = comity_units::DataSize::new(256 << 20);
        Lane::new(config, seed, MEMORY).map(|lane| Self(lane.recording(usize::MAX)))
    }
}

/// The number of the bin that contains a moment.
fn bin_of(bin: Option<Span>, at: Time) -> Option<usize> {
    let length = bin?.as_nanos().max(1);
    Some((at.as_nanos() / length) as usize)
}

/// The device's descriptor, for waiting.
fn fd(device: &SyncDevice) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open for as long as the device, which is borrowed for the same
    // time.
    #[allow(
        unsafe_code,
        reason = "the device shows its descriptor as a number only"
    )]
    unsafe {
        BorrowedFd::borrow_raw(device.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_hardly_sleeps_does_without_spinning() {
        let mut rest = Rest::default();
        let mut now = Time::ZERO;
        let mut pass = |rest: &mut Rest, busy: u64, slept: u64| {
            for _ in 0..200 {
                now += Span::from_micros(busy + slept);
                rest.sleep(Span::from_micros(slept), now);
            }
        };
        pass(&mut rest, 40, 60);
        assert_eq!(rest.spin(), SPIN, "60 % are others'");
        pass(&mut rest, 80, 20);
        assert_eq!(rest.spin(), Span::ZERO, "20 % are too little");
        pass(&mut rest, 40, 60);
        assert_eq!(rest.spin(), SPIN);
    }
}
