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
//! The thread waits in `ppoll` with a timer slack of 1 ns until the socket has something, a timer
//! is due or a task has a command (an eventfd, written only while the thread sleeps). Connections
//! to which something happened stand in a queue and are served in turn; nothing is ever done for
//! all of them. Serving one means: take its commands, hand over its sections, gather what may leave
//! now and arm its timer. What all of a round gave is handed to the system together, in batches of
//! equal datagrams to one address (GSO). An endpoint that is woken often rests for 250 us in
//! between. Where a controller sets when each packet leaves (`fixed` with a gap, `iftp`, `psp`,
//! `libra`), and the endpoint has few connections, the thread does not sleep for the last 100 us
//! before a timer: gaps of 50 us are kept, at the price of a processor.
//!
//! What the application does not take stays in the connection, where it uses up the credit of the
//! peer; what the network does not take stays in the send buffer, where it makes
//! [`Connection::send`] wait.

mod callers;
mod calls;
mod clock;
mod connection;
mod connection_driver;
mod connection_shared;
mod driver;
mod events;
mod outgoing;
mod shared;
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
use crate::session::{Listener, ListenerConfig, Randomness, lock};
use crate::statistics::EndpointStatistics;
use crate::transport::Transport;

/// One UDP socket and its connections, both those that it accepts and those that it opens.
///
/// Clones are the same endpoint. It lives until all of them and all its connections are dropped.
#[derive(Clone, Debug)]
pub struct Endpoint {
    handle: Arc<Handle>,
    calls: Arc<CallRequests>,
    config: Arc<Config>,
    accepted: Arc<Mutex<mpsc::Receiver<Connection>>>,
}

impl Endpoint {
    /// Opens a socket at `address` that answers callers, as far as `config` says whom; it may call
    /// others too.
    ///
    /// Port 0 takes one that is free, which [`local_address`](Self::local_address) tells.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address is in use or not of this host, or the configuration does not
    /// listen.
    pub fn bind(address: SocketAddr, config: Config) -> Result<Self, BindError> {
        Self::open(address, config, true)
    }

    /// Opens a socket at `address` that answers nobody, for calls alone.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address is taken or not of this host.
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
                    ..ListenerConfig::new(credentials, parameters)
                };
                let seed = Seed::new(u64::from_be_bytes(randomness.bytes()));
                let opener = shared_transports(Transport::opener(config.clone(), seed), true);
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
            listener,
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

    /// Waits for a caller that has proved itself; `None` when the endpoint is closed, or does not
    /// listen.
    ///
    /// What a caller sends before it is accepted is kept, and acknowledged only then: nobody is
    /// told that something arrived which nobody takes. A caller that is not accepted in time counts
    /// its sections as expired.
    ///
    /// A call that is dropped before it is ready loses nothing.
    pub async fn accept(&self) -> Option<Connection> {
        let connection = self.accepted.lock().await.recv().await?;
        connection.take_over();
        Some(connection)
    }

    /// Opens a connection to the endpoint that listens at `address`, with the configuration of this
    /// one.
    ///
    /// When a call is dropped before it is ready, the connection that may come of it is closed at
    /// once.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: nobody answers, or refuses, or wants other credentials.
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
        self.handle.shared.request();
        answer.await.unwrap_or(Err(ConnectError::EndpointClosed))
    }

    /// The address of the socket.
    pub fn local_address(&self) -> SocketAddr {
        self.handle.shared.address
    }

    /// What happens apart from the connections, from now on. At most 256 events are kept for who
    /// asks slowly.
    pub fn events(&self) -> EndpointEvents {
        EndpointEvents(self.handle.shared.events.subscribe())
    }

    /// What was counted, without waiting.
    pub fn stats(&self) -> EndpointStatistics {
        *lock(&self.handle.shared.statistics)
    }

    /// Closes all connections with [`CloseCode::SHUTDOWN`](crate::CloseCode::SHUTDOWN), takes no
    /// more, and waits until their peers have had the chance to hear of it: at most a second. What
    /// they had not received is lost: [`Connection::finish`] comes first where that matters.
    pub async fn close(&self) {
        let mut is_over = self.handle.shared.is_over.subscribe();
        self.handle.shared.shut_down();
        // It fails only when the thread is gone already.
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
