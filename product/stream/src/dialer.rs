//! Makes connections: calls a peer, repeatedly by a policy, or listens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity::uri::{Host, Local, Role};
use comity::{BindError, CloseReason, Config, ConnectError, Connection, Endpoint};
use tokio::task::JoinHandle;

use crate::address::{plain, resolve};
use crate::clock::now;
use crate::error::Error;
use crate::event::{Event, Observer};
use crate::refusals::Refusals;

/// Whether and how fast a caller calls again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redial {
    /// The failures after which it calls again.
    pub when: Reconnect,
    /// The pause before the second call. Each further pause is twice the one before.
    pub first_pause: Duration,
    /// The maximum pause.
    pub max_pause: Duration,
}

/// The failures after which a caller calls again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reconnect {
    /// When the first call fails, when the connection is lost, and, for a receiver, when a sender
    /// is done: it waits for the next sender.
    Always,
    /// When the connection is lost.
    #[default]
    Lost,
    /// Never. A listener, too, ends when its connection is lost.
    No,
}

impl Default for Redial {
    fn default() -> Self {
        Reconnect::default().into()
    }
}

impl From<Reconnect> for Redial {
    fn from(when: Reconnect) -> Self {
        Self {
            when,
            first_pause: Duration::from_millis(250),
            max_pause: Duration::from_secs(5),
        }
    }
}

impl Redial {
    /// The pause before the next call. It grows while connections end within `max_pause` of being
    /// made. `last` is when the last connection was made, and the pause before its call.
    fn pause(&self, last: Option<(Instant, Duration)>, now: Instant) -> Duration {
        match last {
            Some((made, before)) if now.saturating_duration_since(made) < self.max_pause => {
                (2 * before).clamp(self.first_pause.min(self.max_pause), self.max_pause)
            }
            _ => Duration::ZERO,
        }
    }
}

/// Makes connections, one after another.
#[derive(Debug)]
pub struct Dialer {
    role: Opened,
    config: Config,
    /// The endpoint of the last connection.
    endpoint: Option<Endpoint>,
    pending: Option<JoinHandle<Result<(Connection, Endpoint), Error>>>,
    redial: Redial,
    was_connected: bool,
    /// When the last connection was made, and the pause before its call.
    last: Option<(Instant, Duration)>,
    refusals: Refusals,
    observer: Observer,
}

#[derive(Debug)]
enum Opened {
    Caller(Arc<Target>),
    Listener(Endpoint),
}

/// The address to call, and the configuration.
#[derive(Debug)]
struct Target {
    host: Host,
    port: u16,
    bind: Option<Local>,
    config: Config,
}

/// The next step after the end of a connection.
#[derive(Debug)]
pub(crate) enum Lost {
    /// The dialer will make another connection.
    AnotherWillCome,
    /// The dialer makes no more connections.
    ForGood(Error),
}

impl Dialer {
    /// Opens the socket of a listener. A caller calls in [`connection`](Self::connection).
    ///
    /// Needs a tokio runtime with time enabled.
    ///
    /// `reconnect=no` in `config` overrides `redial`.
    ///
    /// # Errors
    ///
    /// [`Error::Bind`], [`Error::LookUp`] or [`Error::NoAddress`] of a listener.
    pub fn open(
        role: &Role,
        config: Config,
        redial: Redial,
        observer: Observer,
    ) -> Result<Self, Error> {
        let refusals = Refusals::default();
        let opened = match role {
            Role::Caller { host, port, bind } => Opened::Caller(Arc::new(Target {
                host: host.clone(),
                port: *port,
                bind: *bind,
                config: config.clone(),
            })),
            Role::Listener { host, port } => {
                let endpoint = listen(host.as_ref(), *port, config.clone())?;
                let watch = refusals.clone().watch(endpoint.events(), observer.clone());
                tokio::spawn(watch);
                Opened::Listener(endpoint)
            }
        };
        let redial = match config.settings().reconnect {
            true => redial,
            false => Reconnect::No.into(),
        };
        Ok(Self {
            role: opened,
            config,
            endpoint: None,
            pending: None,
            redial,
            was_connected: false,
            last: None,
            refusals,
            observer,
        })
    }

    /// Waits for the next connection. Cancel safe: dropping the call before it completes loses
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Call`], [`Error::LookUp`] or [`Error::NoAddress`] if the policy is not to call
    /// again; [`Error::EndpointClosed`] for a listener.
    pub async fn connection(&mut self) -> Result<Connection, Error> {
        let pending = match &mut self.pending {
            Some(pending) => pending,
            none => {
                let task = match &self.role {
                    Opened::Caller(target) => {
                        let calls = Calls {
                            target: target.clone(),
                            redial: self.redial,
                            was_connected: self.was_connected,
                            observer: self.observer.clone(),
                        };
                        let pause = self.redial.pause(self.last, now());
                        if let Some((_, before)) = &mut self.last {
                            *before = pause;
                        }
                        tokio::spawn(async move {
                            tokio::time::sleep(pause).await;
                            calls.run().await
                        })
                    }
                    Opened::Listener(endpoint) => {
                        let endpoint = endpoint.clone();
                        tokio::spawn(async move {
                            let accepted = endpoint.accept().await;
                            accepted
                                .map(|connection| (connection, endpoint))
                                .ok_or(Error::EndpointClosed)
                        })
                    }
                };
                none.insert(task)
            }
        };
        let made = pending.await;
        self.pending = None;
        let (connection, endpoint) = made??;
        self.endpoint = Some(endpoint);
        self.was_connected = true;
        let pause = self.last.map_or(Duration::ZERO, |(_, pause)| pause);
        self.last = Some((now(), pause));
        self.report_sizes(&connection);
        Ok(connection)
    }

    /// Reports the sizes of datagrams that the path carries.
    fn report_sizes(&self, connection: &Connection) {
        let mut sizes = connection.path_sizes();
        let peer = plain(connection.peer_address());
        let observer = self.observer.clone();
        // The task ends with the connection.
        tokio::spawn(async move {
            while let Some(size) = sizes.next().await {
                observer.on_event(&Event::PathSize(peer, size));
            }
        });
    }

    /// Makes a listener refuse further callers.
    pub(crate) fn stop_accepting(&self) {
        if let Opened::Listener(endpoint) = &self.role {
            endpoint.stop_accepting();
        }
    }

    /// Closes the endpoint, after giving the peers time to learn that their connections are over.
    pub async fn close(&mut self) {
        if let Some(pending) = self.pending.take() {
            pending.abort();
        }
        if let Some(endpoint) = self.endpoint.take() {
            endpoint.close().await;
        }
    }

    /// What follows the end of a connection.
    pub(crate) fn on_lost(&self, end: &CloseReason) -> Lost {
        match self.redial.when {
            Reconnect::No => Lost::ForGood(Error::Lost(end.clone())),
            Reconnect::Always | Reconnect::Lost => Lost::AnotherWillCome,
        }
    }

    /// Whether a receiver waits for another sender after one is done.
    pub(crate) fn outlasts_senders(&self) -> bool {
        self.redial.when == Reconnect::Always
    }

    /// Whether there was ever a connection.
    pub const fn was_connected(&self) -> bool {
        self.was_connected
    }

    /// Whether it calls and no peer has answered.
    pub const fn is_unanswered(&self) -> bool {
        !self.listens() && !self.was_connected
    }

    /// Whether it listens.
    pub const fn listens(&self) -> bool {
        matches!(self.role, Opened::Listener(_))
    }

    /// The address of a listener; `None` for a caller.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.role {
            Opened::Listener(endpoint) => Some(endpoint.local_address()),
            Opened::Caller(_) => None,
        }
    }

    /// The configuration of its connections.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    pub(crate) const fn observer(&self) -> &Observer {
        &self.observer
    }
}

impl Drop for Dialer {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            pending.abort();
        }
    }
}

/// A series of calls.
struct Calls {
    target: Arc<Target>,
    redial: Redial,
    was_connected: bool,
    observer: Observer,
}

impl Calls {
    /// Calls until a listener answers, or until the policy or the failure ends the attempt. While
    /// the called host reports that nothing listens, it keeps calling until the connect timeout.
    async fn run(self) -> Result<(Connection, Endpoint), Error> {
        let keeps_calling = self.was_connected || self.redial.when == Reconnect::Always;
        let began = now();
        let mut pause = self.redial.first_pause;
        let mut is_first = true;
        loop {
            let error = match attempt(&self.target).await {
                Ok(made) => return Ok(made),
                Err(error) => error,
            };
            // The listener may be about to start.
            let next = now().saturating_duration_since(began) + self.redial.first_pause;
            let is_early =
                error.is_refused_port() && next < self.target.config.settings().connect_timeout;
            if !(keeps_calling && error.may_pass() || is_early) {
                return Err(error);
            }
            if std::mem::take(&mut is_first) {
                self.observer.on_event(&Event::Redialling {
                    was_connected: self.was_connected,
                    error: &error,
                });
            }
            tokio::time::sleep(pause).await;
            if keeps_calling {
                pause = (2 * pause).min(self.redial.max_pause);
            }
        }
    }
}

/// Calls each address of the host once. The error is that of the last address.
async fn attempt(target: &Arc<Target>) -> Result<(Connection, Endpoint), Error> {
    let looked_up = {
        let target = target.clone();
        tokio::task::spawn_blocking(move || resolve(&target.host, target.port)).await
    };
    let mut failure = Error::NoAddress {
        host: target.host.clone(),
    };
    let bind = target.bind.unwrap_or_default();
    let bound = match bind.host() {
        Some(host) => resolve(&host, bind.port)?.into_iter().next(),
        None => None,
    };
    for address in looked_up?? {
        let any = match address {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let local = bound.unwrap_or(SocketAddr::new(any, bind.port));
        match call_at(target, local, address).await {
            Ok(made) => return Ok(made),
            Err(error) => {
                let error = Box::new(error);
                failure = Error::Call { address, error };
            }
        }
    }
    Err(failure)
}

async fn call_at(
    target: &Target,
    local: SocketAddr,
    address: SocketAddr,
) -> Result<(Connection, Endpoint), ConnectError> {
    let endpoint = Endpoint::for_calls(local, target.config.clone())?;
    let connection = endpoint.connect(address).await?;
    Ok((connection, endpoint))
}

/// Opens the socket of a listener: at an address of `host`, or at all addresses of this host.
///
/// # Errors
///
/// [`Error::Bind`], [`Error::LookUp`] and [`Error::NoAddress`].
pub fn listen(host: Option<&Host>, port: u16, config: Config) -> Result<Endpoint, Error> {
    let Some(host) = host else {
        // One socket for IPv4 and IPv6, if the host has both.
        let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
        return Ok(match Endpoint::bind(both, config.clone()) {
            Err(BindError::System { .. } | BindError::NotHere { .. }) => {
                Endpoint::bind((Ipv4Addr::UNSPECIFIED, port).into(), config)
            }
            bound => bound,
        }?);
    };
    let address = resolve(host, port)?.into_iter().next();
    let address = address.ok_or_else(|| Error::NoAddress { host: host.clone() })?;
    Ok(Endpoint::bind(address, config)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_spaced_while_connections_do_not_last() {
        let redial = Redial::default();
        let made = now();
        let soon = made + Duration::from_millis(10);
        assert_eq!(redial.pause(None, soon), Duration::ZERO);
        let mut before = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            before = redial.pause(Some((made, before)), soon);
            pauses.push(before.as_millis());
        }
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        let later = made + redial.max_pause;
        assert_eq!(redial.pause(Some((made, before)), later), Duration::ZERO);
    }
}
