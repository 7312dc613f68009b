//! The emulator itself: sockets, links and the one thread that serves them.
//!
//! ```text
//! callers ──► listening socket ──► forward link ──► socket of each caller ──► target
//!         ◄──                  ◄── backward link ◄──                       ◄──
//! ```
//!
//! In each round, the thread waits until a socket has datagrams or a release is near. It receives a
//! batch from every such socket, offers it to the links with the kernel's time stamps, and releases
//! due packets. Within [`Config::spin`] of a release it does not sleep, so that the processor is
//! awake in time.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use comity_link::{LinkSeed, Packet};
use comity_units::{Span, Time};
use quinn_udp::{EcnCodepoint, Transmit};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use crate::callers::{Caller, Callers};
use crate::config::{Config, Direction, Error};
use crate::plan::Lane;
use crate::report::{Report, Statistics, Way};
use crate::socket::{Buffers, Clock, Incoming, Socket, drops};
use crate::timing::Timing;

/// The key of the listening socket among events; the other keys are callers' numbers.
const LISTENER: u64 = u64::MAX;
/// The key of the event that requests a stop.
const WAKE: u64 = u64::MAX - 1;
/// The maximum number of sockets to serve in one round.
const EVENTS: usize = 64;
/// The maximum number of packets of each direction to release before sockets are served again.
const BURST: usize = 64;
/// The interval of updates of the live statistics.
const PUBLISH: Span = Span::from_millis(100);
/// The interval for forgetting idle callers and reading drops.
const TIDY: Span = Span::from_secs(1);
/// A gap between releases that is long enough for this work.
const QUIET: Span = Span::from_micros(500);
/// A caller that was active within this time is not removed for another one.
const BUSY: Span = Span::from_secs(5);
/// The maximum wait for such a gap.
const PATIENCE: Span = Span::from_secs(5);

/// A UDP proxy whose two directions are links.
///
/// All callers share the two links and compete for them. Each caller has its own socket towards the
/// target, which identifies its answers. ECN marks pass through, and the queues of the links may
/// add marks.
///
/// ```
/// use comity_emulator::{Config, Emulator};
/// use comity_link::LinkConfig;
/// use comity_units::{Rate, Span};
/// use std::net::UdpSocket;
///
/// let target = UdpSocket::bind("127.0.0.1:0")?;
/// let config = Config {
///     forward: LinkConfig::new(Rate::from_mbps(8), Span::from_millis(5)),
///     ..Config::new("127.0.0.1:0".parse()?, target.local_addr()?)
/// };
/// let emulator = Emulator::bind(config)?.spawn()?;
///
/// let caller = UdpSocket::bind("127.0.0.1:0")?;
/// caller.send_to(b"hello", emulator.local_address())?;
/// let mut buffer = [0; 100];
/// let (length, _) = target.recv_from(&mut buffer)?;
/// assert_eq!(&buffer[..length], b"hello");
///
/// let report = emulator.stop()?;
/// assert_eq!(report.statistics.forward.counts.released.packets, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Emulator {
    core: Core,
    listener: Socket,
    address: SocketAddr,
    buffers: Buffers,
    shared: Arc<Shared>,
}

/// Ends an emulator from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    shared: Arc<Shared>,
}

/// An emulator on its own thread. Dropping it ends it.
#[derive(Debug)]
pub struct Handle {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<Report, Error>>>,
}

/// The state shared with other threads.
#[derive(Debug)]
struct Shared {
    stop: AtomicBool,
    wake: OwnedFd,
    latest: Mutex<Statistics>,
}

impl Shared {
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // This fails only if the counter is full, and then the emulator is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn publish(&self, statistics: Statistics) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = statistics;
    }
}

/// The item on a link.
#[derive(Clone, Debug)]
struct Datagram {
    caller: u64,
    ecn: Option<EcnCodepoint>,
    payload: Box<[u8]>,
}

/// All state except the listening socket and the buffers, which are borrowed during reception.
#[derive(Debug)]
struct Core {
    config: Config,
    overhead: u32,
    clock: Clock,
    epoll: OwnedFd,
    callers: Callers,
    forward: Lane<Datagram>,
    backward: Lane<Datagram>,
    forward_timing: Timing,
    backward_timing: Timing,
    forward_unsent: crate::Tally,
    backward_unsent: crate::Tally,
    /// The answers to all callers in one round.
    answers: Vec<(Time, Packet, Datagram)>,
    turned_away: u64,
    refused: u64,
    /// The drops at the sockets of forgotten callers.
    past_drops: u64,
    drops: Option<u64>,
}

fn system(purpose: &'static str) -> impl FnOnce(rustix::io::Errno) -> Error {
    move |reason| Error::System {
        purpose,
        reason: reason.into(),
    }
}

impl Emulator {
    /// Opens the listening socket, and checks that the target is reachable.
    ///
    /// # Errors
    /// If the configuration is invalid, the address is in use or the target is unreachable.
    pub fn bind(config: Config) -> Result<Self, Error> {
        config.validate()?;
        let lane = |direction, link, name| {
            let seed = LinkSeed {
                own: config.seed.derive(name),
                pair: config.seed.derive("forward"),
            };
            Lane::new(link, seed, config.limits.memory)
                .map(|lane| lane.recording(config.record))
                .map_err(|reason| Error::Link { direction, reason })
        };
        let forward = lane(Direction::Forward, &config.forward, "forward")?;
        let backward = lane(Direction::Backward, &config.backward, "backward")?;
        let listen = |reason| Error::Listen {
            address: config.listen,
            reason,
        };
        let listener = Socket::bind(config.listen).map_err(listen)?;
        let address = listener.local_address().map_err(listen)?;
        if is_same(address, config.target) {
            return Err(Error::TargetIsSelf { address });
        }
        let unreachable = |reason| Error::Unreachable {
            target: config.target,
            reason,
        };
        if config.target.port() == 0 {
            let reason = std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                "a target needs a port above 0",
            );
            return Err(unreachable(reason));
        }
        drop(Socket::towards(config.target).map_err(unreachable)?);
        let watch = system("cannot wait for sockets");
        let prepare = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let is_readable = epoll::EventFlags::IN;
            epoll::add(
                &epoll,
                &listener,
                epoll::EventData::new_u64(LISTENER),
                is_readable,
            )?;
            epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), is_readable)?;
            Ok((epoll, wake))
        };
        let (epoll, wake) = prepare().map_err(watch)?;
        let late = config.limits.late;
        // `validate` has checked that it fits.
        let overhead = u32::try_from(config.wire_overhead().get()).unwrap_or(u32::MAX);
        Ok(Self {
            core: Core {
                overhead,
                clock: Clock::start(),
                epoll,
                callers: Callers::new(config.limits.callers),
                forward,
                backward,
                forward_timing: Timing::new(late),
                backward_timing: Timing::new(late),
                forward_unsent: crate::Tally::default(),
                backward_unsent: crate::Tally::default(),
                answers: Vec::new(),
                turned_away: 0,
                refused: 0,
                past_drops: 0,
                drops: None,
                config,
            },
            listener,
            address,
            buffers: Buffers::new(),
            shared: Arc::new(Shared {
                stop: AtomicBool::new(false),
                wake,
                latest: Mutex::default(),
            }),
        })
    }

    /// The address for callers.
    pub const fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// A handle that ends [`run`](Self::run) from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            shared: self.shared.clone(),
        }
    }

    /// Runs on a new thread.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub fn spawn(self) -> Result<Handle, Error> {
        let (address, shared) = (self.address, self.shared.clone());
        let thread = std::thread::Builder::new()
            .name("emulator".into())
            .spawn(move || self.run())
            .map_err(|reason| Error::System {
                purpose: "cannot start a thread",
                reason,
            })?;
        Ok(Handle {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Runs on this thread, with wake-ups as exact as possible, until a [`Stopper`] ends it. The
    /// time of changing rates and delays begins now.
    ///
    /// # Errors
    /// If the system refuses to continue.
    pub fn run(mut self) -> Result<Report, Error> {
        // This fails only on systems without timer slack, where spinning covers the difference.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.core.clock = Clock::start();
        let mut events = Vec::with_capacity(EVENTS);
        let mut publish_at = Time::ZERO + PUBLISH;
        let mut tidy_at = Time::ZERO + TIDY;
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.core.wait(publish_at, &mut events)?;
            let horizon = self.core.clock.now();
            self.receive(&events)?;
            self.core.release(horizon, &self.listener);
            if horizon >= publish_at {
                publish_at = horizon + PUBLISH;
                self.shared.publish(self.core.statistics());
            }
            if horizon >= tidy_at && (self.core.is_quiet() || horizon >= tidy_at + PATIENCE) {
                tidy_at = horizon + TIDY;
                self.core.tidy(horizon, &self.listener);
            }
        }
        self.core.read_drops(&self.listener);
        let statistics = self.core.statistics();
        self.shared.publish(statistics.clone());
        Ok(Report {
            statistics,
            forward_timing: self.core.forward_timing,
            backward_timing: self.core.backward_timing,
            forward_record: self.core.forward.record().to_vec(),
            backward_record: self.core.backward.record().to_vec(),
        })
    }

    /// Receives one batch from every socket that has datagrams.
    fn receive(&mut self, events: &[epoll::Event]) -> Result<(), Error> {
        for event in events {
            match event.data.u64() {
                WAKE => {}
                LISTENER => {
                    let core = &mut self.core;
                    let clock = core.clock;
                    let received = self.listener.receive(clock, &mut self.buffers, |incoming| {
                        core.call(&incoming);
                    });
                    if let Err(reason) = received
                        && !is_passing(&reason)
                    {
                        return Err(Error::System {
                            purpose: "cannot receive",
                            reason,
                        });
                    }
                }
                number => self.core.answer(number, &mut self.buffers),
            }
        }
        self.core.offer_answers();
        Ok(())
    }
}

/// Whether an error of the listening socket is temporary.
fn is_passing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused)
}

/// Whether an error means that the target's host, or a router before it, did not accept a packet.
const fn is_of_the_target(error: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, HostUnreachable};
    matches!(error, ConnectionRefused | HostUnreachable)
}

/// Whether a socket bound to `address` would receive packets for `target`.
fn is_same(address: SocketAddr, target: SocketAddr) -> bool {
    let is_here = address.ip() == target.ip()
        || (address.ip().is_unspecified()
            && (target.ip().is_loopback() || target.ip().is_unspecified()));
    address.port() == target.port() && is_here
}

impl Core {
    /// Waits for sockets, the next release or `latest`, whichever is first.
    fn wait(&self, latest: Time, events: &mut Vec<epoll::Event>) -> Result<(), Error> {
        events.clear();
        let until = self.next_due().map_or(latest, |due| {
            latest.min(due.saturating_sub(self.config.spin))
        });
        let left = until.saturating_since(self.clock.now());
        let timeout = Timespec {
            tv_sec: (left.as_nanos() / 1_000_000_000).cast_signed(),
            tv_nsec: (left.as_nanos() % 1_000_000_000).cast_signed(),
        };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(system("cannot wait for sockets")(errno)),
        }
    }

    fn next_due(&self) -> Option<Time> {
        match (self.forward.next_due(), self.backward.next_due()) {
            (Some(forward), Some(backward)) => Some(forward.min(backward)),
            (one, other) => one.or(other),
        }
    }

    /// Whether nothing is due for a while.
    fn is_quiet(&self) -> bool {
        self.next_due()
            .is_none_or(|due| due.saturating_since(self.clock.now()) > QUIET)
    }

    /// Offers a caller's packet to the link to the target.
    fn call(&mut self, incoming: &Incoming<'_>) {
        let number = match self.callers.number_of(incoming.from) {
            Some(number) => number,
            None => match self.admit(incoming) {
                Some(number) => number,
                None => {
                    self.turned_away += 1;
                    return;
                }
            },
        };
        if let Some(caller) = self.callers.caller(number) {
            caller.last_active = caller.last_active.max(incoming.arrival);
            caller.called = incoming.to;
            caller.packets += 1;
        }
        let (packet, datagram) = carry(number, incoming, self.overhead);
        self.forward.offer(incoming.arrival, packet, datagram);
    }

    /// Opens a socket for a new caller, if there is room and the system has one.
    fn admit(&mut self, incoming: &Incoming<'_>) -> Option<u64> {
        if !self.callers.make_room(incoming.arrival, BUSY) {
            return None;
        }
        let target = self.config.target_of(incoming.from);
        let socket = Socket::towards(target).ok()?;
        let data = epoll::EventData::new_u64(self.callers.next_number());
        epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).ok()?;
        Some(self.callers.add(Caller {
            address: incoming.from,
            target,
            called: incoming.to,
            socket,
            last_active: incoming.arrival,
            packets: 0,
        }))
    }

    /// Collects answers to a caller.
    fn answer(&mut self, number: u64, buffers: &mut Buffers) {
        let Some(caller) = self.callers.caller(number) else {
            return;
        };
        let (answers, overhead) = (&mut self.answers, self.overhead);
        let mut last = caller.last_active;
        let packets = &mut caller.packets;
        let received = caller.socket.receive(self.clock, buffers, |incoming| {
            *packets += 1;
            last = last.max(incoming.arrival);
            let (packet, datagram) = carry(number, &incoming, overhead);
            answers.push((incoming.arrival, packet, datagram));
        });
        caller.last_active = last;
        if let Err(reason) = received
            && reason.kind() != std::io::ErrorKind::WouldBlock
        {
            // Reading the error has cleared it, and the socket continues to work.
            self.refused += 1;
        }
    }

    /// Offers the collected answers to the reverse link, in the order of their arrival.
    fn offer_answers(&mut self) {
        self.answers.sort_by_key(|(arrival, ..)| *arrival);
        for (arrival, packet, datagram) in self.answers.drain(..) {
            self.backward.offer(arrival, packet, datagram);
        }
    }

    /// Sends the packets due by `horizon`.
    fn release(&mut self, horizon: Time, listener: &Socket) {
        for _ in 0..BURST {
            let Some(release) = self.forward.release(horizon) else {
                break;
            };
            let sent = self.callers.caller(release.item.caller).map(|caller| {
                caller.last_active = caller.last_active.max(horizon);
                send(&caller.socket, &release, caller.target, None)
            });
            let error = self.clock.now().saturating_since(release.due);
            self.forward_timing.record(release.due, error);
            self.refused += sent.as_ref().map_or(0, |sent| sent.refused);
            if !sent.is_some_and(|sent| sent.is_sent) {
                self.forward_unsent.add(release.wire_bytes);
            }
        }
        for _ in 0..BURST {
            let Some(release) = self.backward.release(horizon) else {
                break;
            };
            let sent = self.callers.caller(release.item.caller).map(|caller| {
                caller.last_active = caller.last_active.max(horizon);
                send(listener, &release, caller.address, caller.called)
            });
            let error = self.clock.now().saturating_since(release.due);
            self.backward_timing.record(release.due, error);
            if !sent.is_some_and(|sent| sent.is_sent) {
                self.backward_unsent.add(release.wire_bytes);
            }
        }
    }

    /// Reads the system's drops and forgets idle callers.
    fn tidy(&mut self, now: Time, listener: &Socket) {
        let idle = self.config.limits.idle;
        let leaving: Vec<u64> = self
            .callers
            .idle(now, idle)
            .filter_map(|caller| caller.socket.inode())
            .collect();
        if !leaving.is_empty() {
            self.past_drops += drops(&leaving).unwrap_or(0);
        }
        self.callers.forget_idle(now, idle);
        self.read_drops(listener);
    }

    fn read_drops(&mut self, listener: &Socket) {
        let inodes: Vec<u64> = self
            .callers
            .iter()
            .filter_map(|caller| caller.socket.inode())
            .chain(listener.inode())
            .collect();
        self.drops = drops(&inodes).map(|drops| drops + self.past_drops);
    }

    fn statistics(&self) -> Statistics {
        let way = |lane: &Lane<Datagram>, timing: &Timing, unsent| Way {
            counts: crate::PacketCounts {
                unsent,
                ..*lane.counts()
            },
            timing: timing.summary(),
            memory: lane.held(),
        };
        Statistics {
            elapsed: self.clock.now().saturating_since(Time::ZERO),
            forward: way(&self.forward, &self.forward_timing, self.forward_unsent),
            backward: way(&self.backward, &self.backward_timing, self.backward_unsent),
            callers: self.callers.len(),
            callers_seen: self.callers.seen(),
            turned_away: self.turned_away,
            refused: self.refused,
            socket_drops: self.drops,
        }
    }
}

/// Converts a datagram to an item and a packet of the link.
fn carry(caller: u64, incoming: &Incoming<'_>, overhead: u32) -> (Packet, Datagram) {
    // Both a datagram and the overhead have fewer than 2^16 bytes.
    let length = u32::try_from(incoming.payload.len()).unwrap_or(u32::MAX);
    let packet = Packet {
        bytes: length.saturating_add(overhead),
        ecn_capable: incoming.ecn.is_some(),
        flow: caller,
    };
    let datagram = Datagram {
        caller,
        ecn: incoming.ecn,
        payload: incoming.payload.into(),
    };
    (packet, datagram)
}

struct Sending {
    is_sent: bool,
    refused: u64,
}

/// Sends a due packet.
fn send(
    socket: &Socket,
    release: &crate::Release<Datagram>,
    destination: SocketAddr,
    src_ip: Option<std::net::IpAddr>,
) -> Sending {
    let transmit = Transmit {
        destination,
        ecn: if release.marked {
            Some(EcnCodepoint::Ce)
        } else {
            release.item.ecn
        },
        contents: &release.item.payload,
        segment_size: None,
        src_ip,
    };
    match socket.send(&transmit) {
        Ok(()) => Sending {
            is_sent: true,
            refused: 0,
        },
        // The error belongs to an earlier packet. This one has not been sent yet.
        Err(error) if is_of_the_target(error.kind()) => Sending {
            is_sent: socket.send(&transmit).is_ok(),
            refused: 1,
        },
        Err(_) => Sending {
            is_sent: false,
            refused: 0,
        },
    }
}

impl Stopper {
    /// Ends the emulator, now or as soon as it runs.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

impl Handle {
    /// The address for callers.
    pub const fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// Recent statistics of the running emulator.
    pub fn statistics(&self) -> Statistics {
        self.shared
            .latest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether it ended without a request, which only a system error causes.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the emulator. Packets on the links are not delivered.
    ///
    /// # Errors
    /// The reason if it had ended before.
    ///
    /// # Panics
    /// If its thread panicked.
    pub fn stop(mut self) -> Result<Report, Error> {
        self.shared.stop();
        let thread = self
            .thread
            .take()
            .expect("only stopping takes the thread, and it takes the handle too");
        match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.stop();
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}
