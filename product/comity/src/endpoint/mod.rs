//! Connections over one UDP socket, driven by a thread of their own.
//!
//! ```text
//!  tasks of the application          the endpoint's thread                       the system
//!  ───────────────────────           ──────────────────────────────              ──────────
//!  send ──► outbound queue ───┐      ┌─► Listener: routes, timers ──┐
//!  recv ◄── inbound queue ◄───┼──────┤   Callers:  routes, timers   ├─ batches ─► one UDP socket
//!  statistics, close ─────────┘      └── Session ── Transport ──────┘      ◄──── GRO
//! ```
//!
//! The thread waits in `ppoll` with a timer slack of 1 ns: for the socket, a timer, or a command of
//! a task (an eventfd, written only while the thread sleeps). Connections with work wait in a queue
//! and are served in turn; no regular step visits all connections. To serve a connection, the
//! thread takes its commands, delivers its sections, gathers the packets that may leave now and
//! arms its timer. It then hands the datagrams of the whole round to the system, in batches of
//! equal datagrams to one address (GSO). An endpoint that wakes often pauses for up to 250 us
//! between rounds. Some controllers set when each packet leaves (`fixed` with a gap, `iftp`, `psp`,
//! `libra`). With these and at most eight connections, the thread does not sleep for the last 100
//! us before a timer: it keeps gaps of 50 us between packets, but occupies a processor.
//!
//! Sections that the application does not accept stay in the connection and use up the peer's
//! credit. Sections that cannot leave yet stay in the send buffer and make [`Connection::send`]
//! wait.

mod callers;
mod calls;
mod clock;
mod connection;
mod connection_driver;
mod connection_shared;
mod driver;
mod events;
mod inbound;
mod instance;
mod outgoing;
#[cfg(test)]
mod panics;
mod requests;
mod room;
mod routes;
mod shared;
mod sleep;
mod socket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use comity_units::Seed;
use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::{Mutex, mpsc, oneshot};

pub use connection::Connection;
pub use events::{EndpointEvent, EndpointEvents, Event, Events, PathSizes, TargetBitrate};
pub use socket::SYSTEM_BUFFER;

use self::calls::{CallRequest, CallRequests, Waiting};
use self::driver::{Driver, shared as shared_transports};
use self::shared::{EndpointShared, Handle};
use self::socket::Socket;
use crate::config::Config;
use crate::error::{BindError, ConnectError};
use crate::memory::MemoryBudget;
use crate::session::{Listener, ListenerConfig, Randomness, lock};
use crate::statistics::EndpointStatistics;
use crate::transport::Transport;

/// One UDP socket and its connections, both accepted and opened.
///
/// Clones are handles to the same endpoint. It lives until all clones and all its connections are
/// dropped.
#[derive(Clone, Debug)]
pub struct Endpoint {
    handle: Arc<Handle>,
    calls: Arc<CallRequests>,
    config: Arc<Config>,
    accepted: Arc<Mutex<mpsc::Receiver<Connection>>>,
}

impl Endpoint {
    /// Opens a socket at `address` that answers the callers that `config` accepts. It can also call
    /// others.
    ///
    /// Port 0 selects a free port, which [`local_address`](Self::local_address) returns.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address is in use or does not belong to this host, or the configuration
    /// does not suit a listener.
    pub fn bind(address: SocketAddr, config: Config) -> Result<Self, BindError> {
        Self::open(address, config, true)
    }

    /// Opens a socket at `address` for calls only: it answers nobody.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address is in use or does not belong to this host.
    pub fn for_calls(address: SocketAddr, config: Config) -> Result<Self, BindError> {
        Self::open(address, config, false)
    }

    fn open(address: SocketAddr, config: Config, listens: bool) -> Result<Self, BindError> {
        let credentials = match listens {
            true => Some(config.listener_credentials()?),
            false => None,
        };
        let system = |purpose| {
            move |reason: io::Error| BindError::System {
                address,
                purpose,
                reason,
            }
        };
        let socket = Socket::bind(address, !listens, config.settings()).map_err(|reason| {
            match reason.kind() {
                io::ErrorKind::AddrInUse => BindError::InUse { address },
                io::ErrorKind::AddrNotAvailable => BindError::NotHere { address },
                io::ErrorKind::PermissionDenied => BindError::NotPermitted { address },
                _ => system("cannot open a socket")(reason),
            }
        })?;
        let local = socket
            .local_address()
            .map_err(system("cannot read its address"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|reason| system("cannot open an eventfd")(reason.into()))?;
        let shared = Arc::new(EndpointShared::new(local, wake));
        let mut randomness = Randomness::system();
        let memory = MemoryBudget::new(config.settings().memory_budget());
        let listener = match credentials {
            None => None,
            Some(credentials) => {
                let mut parameters = Vec::new();
                config
                    .parameters()
                    .encode(&mut parameters)
                    .expect("a valid configuration gives valid parameters");
                let answering = ListenerConfig {
                    max_connections: config.settings().max_connections,
                    max_served: config.settings().max_served,
                    instance: instance::of(local),
                    key_log: config.key_log().cloned(),
                    ..ListenerConfig::new(credentials, parameters)
                };
                let seed = Seed::new(u64::from_be_bytes(randomness.bytes()));
                let opener = Transport::opener_within(config.clone(), seed, memory.clone());
                let opener = shared_transports(opener, true);
                let now = shared.clock.now();
                let listener = Listener::new(now, answering, opener, randomness.split())
                    .expect("a valid configuration gives a valid one");
                Some(listener)
            }
        };
        let handle = Arc::new(Handle {
            shared: shared.clone(),
        });
        let (accepting, accepted) = mpsc::channel(config.settings().max_waiting);
        let calls = Arc::new(CallRequests::default());
        let driver = Driver::new(
            shared,
            calls.clone(),
            socket,
            (listener, memory),
            accepting,
            Arc::downgrade(&handle),
            randomness,
        );
        std::thread::Builder::new()
            .name("comity".into())
            .spawn(move || driver.run())
            .map_err(system("cannot start a thread"))?;
        Ok(Self {
            handle,
            calls,
            config: Arc::new(config),
            accepted: Arc::new(Mutex::new(accepted)),
        })
    }

    /// Waits for a caller that has proved itself. Returns `None` if the endpoint is closed or does
    /// not listen.
    ///
    /// The endpoint keeps the sections that a caller sends before it is accepted, and acknowledges
    /// them only afterwards. If nobody accepts the caller in time, its sections count as expired.
    ///
    /// A call that is dropped before it is ready loses nothing.
    pub async fn accept(&self) -> Option<Connection> {
        let connection = self.accepted.lock().await.recv().await?;
        connection.take_over();
        Some(connection)
    }

    /// Opens a connection to the endpoint that listens at `address`, with this endpoint's
    /// configuration.
    ///
    /// If a call is dropped before it is ready, the endpoint closes the resulting connection at
    /// once.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: nobody answers, or the listener refuses the call or requires other
    /// credentials.
    pub async fn connect(&self, address: SocketAddr) -> Result<Connection, ConnectError> {
        self.connect_with(address, (*self.config).clone()).await
    }

    /// Opens a connection with another configuration.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        &self,
        address: SocketAddr,
        config: Config,
    ) -> Result<Connection, ConnectError> {
        config.caller_credentials()?;
        let (reply, answer) = oneshot::channel();
        let handle = self.handle.clone();
        self.calls.push(CallRequest {
            address,
            config: Box::new(config),
            waiting: Waiting { reply, handle },
        });
        self.handle.shared.sleep.request();
        answer.await.unwrap_or(Err(ConnectError::EndpointClosed))
    }

    /// The address of the socket.
    pub fn local_address(&self) -> SocketAddr {
        self.handle.shared.address
    }

    /// The events of the endpoint from now on. At most 256 wait for a slow receiver.
    pub fn events(&self) -> EndpointEvents {
        EndpointEvents(self.handle.shared.events.subscribe())
    }

    /// The endpoint's counters, without waiting.
    pub fn stats(&self) -> EndpointStatistics {
        *lock(&self.handle.shared.statistics)
    }

    /// Answers no more callers; open connections remain. Call it before closing the connections of
    /// a listener that ends. A peer that reconnects at once then reaches the listener's successor
    /// or nobody, and not the ending listener.
    pub fn stop_accepting(&self) {
        self.handle.shared.stop_accepting();
    }

    /// Closes all connections with [`CloseCode::SHUTDOWN`](crate::CloseCode::SHUTDOWN), accepts no
    /// more, and waits up to a second until the peers know it. Sections that have not arrived are
    /// lost: call [`Connection::finish`] first to deliver them.
    pub async fn close(&self) {
        let mut is_over = self.handle.shared.is_over.subscribe();
        self.handle.shared.shut_down();
        // It fails only if the thread has ended.
        let _ = is_over.wait_for(|is_over| *is_over).await;
    }
}

/// Opens a connection to the endpoint that listens at `address`, from a socket of its own.
///
/// # Errors
///
/// [`ConnectError`].
pub async fn connect(address: SocketAddr, config: Config) -> Result<Connection, ConnectError> {
    let any: SocketAddr = if address.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0_u16; 8], 0).into()
    };
    Endpoint::for_calls(any, config)?.connect(address).await
}
