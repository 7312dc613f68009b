//! The task that drives a host, and the state that it shares with applications.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::SystemTime;

use comity_units::{Span, Time};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::alarm::Alarm;
use super::device::Device;
use super::watch;
use crate::config::{Config, ConfigError};
use crate::error::{ConnectError, End, StreamError};
use crate::host::{Event, Host};
use crate::id::{ConnectionId, ListenerId};
use crate::statistics::Statistics;

/// The maximum number of packets to read from the device in a row, before applications run.
const BURST: usize = 64;

/// A TCP host that runs as a task of the current runtime. It stops when the last of its handles,
/// streams and listeners is dropped.
#[derive(Clone, Debug)]
pub struct Stack(Arc<Driven>);

/// Ends the driver when the last handle is dropped.
#[derive(Debug)]
struct Driven {
    shared: Arc<Shared>,
    driver: AbortHandle,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// The state that the driver and the applications share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Readable while the device has packets.
    readiness: AsyncFd<OwnedFd>,
    /// Wakes the driver if it would sleep for too long.
    wake: Notify,
    started_at: Instant,
}

pub(super) struct State {
    device: Box<dyn Device>,
    pub(super) host: Host,
    /// The tasks that wait for a connection.
    pub(super) waiting: BTreeMap<ConnectionId, Waiting>,
    /// Notified when a listener has a connection.
    pub(super) acceptable: BTreeMap<ListenerId, Arc<Notify>>,
    /// When the driver wakes up.
    wakes_at: Time,
    /// The packet being sent.
    packet: Vec<u8>,
    /// Why the driver ended.
    failure: Option<io::ErrorKind>,
}

/// The tasks that wait for a connection.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
}

impl Waiting {
    fn wake(&mut self, reader: bool, writer: bool) {
        let reader = self.reader.take_if(|_| reader);
        let writer = self.writer.take_if(|_| writer);
        reader.into_iter().chain(writer).for_each(Waker::wake);
    }
}

/// Why a host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The system refused something.
    #[error("cannot {purpose}: {reason}")]
    System {
        /// The purpose that failed.
        purpose: &'static str,
        /// The system's reason.
        reason: io::Error,
    },
}

impl Stack {
    /// Starts a host on a device, with `epoch_us` set by the system's clock. It must be called
    /// within a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    /// [`StartError`] if the settings are invalid or the device cannot be watched.
    pub fn start(device: impl Device, mut config: Config) -> Result<Self, StartError> {
        let mut key = [0; 32];
        SystemRandom::new()
            .fill(&mut key)
            .map_err(|_| StartError::System {
                purpose: "draw a random key",
                reason: io::ErrorKind::Other.into(),
            })?;
        config.epoch_us = unix_time_us();
        let started_at = Instant::now();
        let host = Host::new(config, key)?;
        let descriptor = device.as_fd().try_clone_to_owned();
        let readiness = descriptor
            .and_then(watch)
            .map_err(|reason| StartError::System {
                purpose: "wait for the device",
                reason,
            })?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                device: Box::new(device),
                host,
                waiting: BTreeMap::new(),
                acceptable: BTreeMap::new(),
                wakes_at: Time::MAX,
                packet: Vec::with_capacity(2_048),
                failure: None,
            }),
            readiness,
            wake: Notify::new(),
            started_at,
        });
        let alarm = Alarm::new().map_err(|reason| StartError::System {
            purpose: "make a timer",
            reason,
        })?;
        let driver = tokio::spawn(drive(Arc::clone(&shared), alarm)).abort_handle();
        Ok(Self(Arc::new(Driven { shared, driver })))
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.0.shared
    }

    /// The present time on the host's clock, which began with the host. Deadlines refer to it.
    pub fn now(&self) -> Time {
        self.shared().now()
    }

    /// The counters of the host.
    pub fn statistics(&self) -> Statistics {
        *self.shared().state().host.statistics()
    }

    /// The number of connections, including those in TIME-WAIT.
    pub fn connections(&self) -> usize {
        self.shared().state().host.connections()
    }
}

impl State {
    /// Fails if the driver has ended.
    pub(super) fn check(&self) -> io::Result<()> {
        self.failure.map_or(Ok(()), |kind| Err(kind.into()))
    }

    fn fail(&mut self, reason: &io::Error) {
        self.failure = Some(reason.kind());
        for waiting in self.waiting.values_mut() {
            waiting.wake(true, true);
        }
        for acceptable in self.acceptable.values() {
            acceptable.notify_waiters();
        }
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present time on the host's clock.
    pub(super) fn now(&self) -> Time {
        Time::ZERO + Span::from(self.started_at.elapsed())
    }

    /// Sends the packets that are ready, and wakes the tasks that wait for events.
    pub(super) fn flush(&self, state: &mut State) {
        let now = self.now();
        while state.host.poll_transmit(now, &mut state.packet) {
            // After an error, the packet counts as lost in the network.
            let _ = state.device.send(&state.packet);
        }
        let _ = state.device.flush();
        while let Some(event) = state.host.poll_event() {
            let (id, reader, writer) = match event {
                Event::Acceptable(listener) => {
                    if let Some(acceptable) = state.acceptable.get(&listener) {
                        acceptable.notify_waiters();
                    }
                    continue;
                }
                Event::Plain(_) => continue,
                Event::Readable(id) => (id, true, false),
                Event::Connected(id) | Event::Writable(id) => (id, false, true),
                Event::Ended(id) => (id, true, true),
            };
            if let Some(waiting) = state.waiting.get_mut(&id) {
                waiting.wake(reader, writer);
            }
        }
        if state.host.next_timer() < state.wakes_at {
            self.wake.notify_one();
        }
    }

    /// Handles a limited number of packets that have arrived.
    fn receive(&self) -> io::Result<()> {
        let mut state = self.state();
        let State { device, host, .. } = &mut *state;
        let received = (0..BURST).try_for_each(|_| {
            host.handle_packet(self.now(), device.receive()?);
            Ok(())
        });
        // The packets that they permit are sent together.
        self.flush(&mut state);
        received
    }
}

/// Unix time in microseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "the peer of a section knows no other clock"
)]
fn unix_time_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// Passes packets and time to the host, until it is aborted or the device fails.
async fn drive(shared: Arc<Shared>, mut alarm: Alarm) {
    loop {
        {
            let mut state = shared.state();
            let now = shared.now();
            if state.host.next_timer() <= now {
                state.host.on_timer(now);
                shared.flush(&mut state);
            }
            state.wakes_at = state.host.next_timer();
            alarm.set(now, state.wakes_at);
        }
        tokio::select! {
            biased;
            ready = shared.readiness.readable() => {
                let received = ready.and_then(|mut ready| {
                    match shared.receive() {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            ready.clear_ready();
                            Ok(())
                        }
                        received => received,
                    }
                });
                match received {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return shared.state().fail(&error),
                }
                // Applications on the same thread can react to the packets that arrived.
                tokio::task::yield_now().await;
            }
            () = shared.wake.notified() => {}
            () = alarm.rings() => {}
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl From<End> for io::Error {
    fn from(end: End) -> Self {
        let kind = match end {
            End::Aborted | End::FalseFeedback => io::ErrorKind::ConnectionAborted,
            End::Refused => io::ErrorKind::ConnectionRefused,
            End::Reset => io::ErrorKind::ConnectionReset,
            End::TimedOut => io::ErrorKind::TimedOut,
            End::Unreachable => io::ErrorKind::HostUnreachable,
        };
        Self::new(kind, end)
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match error {
            StreamError::Ended(end) => return end.into(),
            StreamError::ShutDown => io::ErrorKind::BrokenPipe,
            StreamError::Unknown => io::ErrorKind::NotConnected,
            StreamError::WouldBlock => io::ErrorKind::WouldBlock,
            StreamError::Gap => io::ErrorKind::InvalidData,
            StreamError::Empty | StreamError::InSections | StreamError::TooLarge { .. } => {
                io::ErrorKind::InvalidInput
            }
        };
        Self::new(kind, error)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match error {
            ConnectError::NotLocal(_) | ConnectError::Exhausted(_) => {
                io::ErrorKind::AddrNotAvailable
            }
            ConnectError::NoAddress(_) => io::ErrorKind::NetworkUnreachable,
            ConnectError::NoPeer(_) => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}
