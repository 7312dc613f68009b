//! Where connections come from: calls, again and again where that is wanted, or a listener.

use std::env;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity::session::CallError;
use comity::sizes::UDP_IPV6;
use comity::uri::{Credentials, Host, Local, Role, Uri};
use comity::{
    BindError, CloseReason, Config, ConfigBuilder, ConfigError, ConnectError, Connection, Deliver,
    Endpoint, PathSize, Qlog,
};
use tokio::task::JoinHandle;

use super::now;
use super::refusals::{Counts, Refusals};
use super::sockets::resolve;
use super::status::{Reporter, plain};
use super::trouble::{Trouble, may_pass};
use crate::args::Reconnect;
use crate::commands::keygen::exposure;
use crate::commands::mtu::Mtu;

/// The first pause between two calls; each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Where a passphrase can be put so that other users of the host do not see it.
const PASSPHRASE: &str = "COMITY_PASSPHRASE";

/// What the command line says of connections.
#[derive(Clone, Debug)]
pub(crate) struct LineOptions {
    /// No protection where the URI names none.
    pub(crate) insecure: bool,
    pub(crate) reconnect: Reconnect,
    /// Sections are to be handed over as soon as they are whole, since they are passed on.
    pub(crate) early: bool,
    /// How much later what is received is due for those whom it is passed on to.
    pub(crate) add_latency: Duration,
    /// Whether a listener serves many callers at a time, or one after the other.
    pub(crate) serves_many: bool,
    /// Where connections write what they see.
    pub(crate) qlog: Option<Qlog>,
}

/// A source of connections.
#[derive(Debug)]
pub(crate) struct Line {
    role: Opened,
    /// What the last connection goes through.
    endpoint: Option<Endpoint>,
    pending: Option<JoinHandle<Result<(Connection, Endpoint), Trouble>>>,
    reconnect: Reconnect,
    was_connected: bool,
    /// When the last connection was made, and the pause before the call that made it.
    last: Option<(Instant, Duration)>,
    /// How long a connection that is being closed waits for what is under way.
    pub(crate) linger: Duration,
    refusals: Refusals,
    reporter: Reporter,
}

#[derive(Debug)]
enum Opened {
    Caller(Arc<Dial>),
    Listener(Endpoint),
}

/// Whom to call, and how.
#[derive(Debug)]
struct Dial {
    host: Host,
    port: u16,
    bind: Option<Local>,
    config: Config,
}

/// What the end of a connection means.
#[derive(Debug)]
pub(crate) enum Lost {
    /// Another one is to be waited for.
    AnotherWillCome,
    /// That was it.
    ForGood(Trouble),
}

impl Line {
    /// Reads what `uri` refers to, and listens where it says so.
    pub(crate) fn open(uri: &Uri, line: &LineOptions, reporter: Reporter) -> Result<Self, Trouble> {
        let config = config(uri, line, &reporter)?;
        let refusals = Refusals::default();
        let role = match &uri.role {
            Role::Caller { host, port, bind } => Opened::Caller(Arc::new(Dial {
                host: host.clone(),
                port: *port,
                bind: *bind,
                config,
            })),
            Role::Listener { host, port } => {
                let endpoint = listen(host.as_ref(), *port, config)?;
                let watch = refusals.clone().watch(endpoint.events(), reporter.clone());
                tokio::spawn(watch);
                reporter.listening(endpoint.local_address());
                Opened::Listener(endpoint)
            }
        };
        Ok(Self {
            role,
            endpoint: None,
            pending: None,
            reconnect: match uri.settings.reconnect {
                true => line.reconnect,
                false => Reconnect::No,
            },
            was_connected: false,
            last: None,
            linger: uri.settings.linger,
            refusals,
            reporter,
        })
    }

    /// The next connection. A call that is dropped before it is ready loses nothing.
    pub(crate) async fn connection(&mut self) -> Result<Connection, Trouble> {
        let pending = match &mut self.pending {
            Some(pending) => pending,
            none => {
                let task = match &self.role {
                    Opened::Caller(dial) => {
                        let keeps_calling =
                            self.was_connected || self.reconnect == Reconnect::Always;
                        let (dial, reporter) = (dial.clone(), self.reporter.clone());
                        let awaited = match self.was_connected {
                            true => "no new connection yet",
                            false => "no connection yet",
                        };
                        let pause = pause(self.last, now());
                        if let Some((_, before)) = &mut self.last {
                            *before = pause;
                        }
                        tokio::spawn(async move {
                            tokio::time::sleep(pause).await;
                            call(&dial, keeps_calling, awaited, &reporter).await
                        })
                    }
                    Opened::Listener(endpoint) => {
                        let endpoint = endpoint.clone();
                        tokio::spawn(async move {
                            let accepted = endpoint.accept().await;
                            accepted
                                .map(|connection| (connection, endpoint))
                                .ok_or_else(|| Trouble::failed("the endpoint was closed"))
                        })
                    }
                };
                none.insert(task)
            }
        };
        let made = pending.await;
        self.pending = None;
        let (connection, endpoint) =
            made.unwrap_or_else(|error| Err(Trouble::failed(format!("the call failed: {error}"))))?;
        self.endpoint = Some(endpoint);
        self.was_connected = true;
        let pause = self.last.map_or(Duration::ZERO, |(_, pause)| pause);
        self.last = Some((now(), pause));
        self.tell_sizes(&connection);
        Ok(connection)
    }

    /// Says so when the path turns out to carry less than both ends take.
    fn tell_sizes(&self, connection: &Connection) {
        let mut sizes = connection.path_sizes();
        let peer = plain(connection.peer_address());
        let reporter = self.reporter.clone();
        // It ends with the connection.
        tokio::spawn(async move {
            while let Some(PathSize {
                datagram,
                max: most,
            }) = sizes.next().await
            {
                match datagram < most {
                    true => reporter.warn(&format!(
                        "the path to {peer} carries no datagrams of {most} bytes, but such of {datagram}: packets are no \
                         larger from now on; mtu={} in the URI says so from the beginning",
                        datagram + UDP_IPV6
                    )),
                    false => reporter.note(&format!(
                        "the path to {peer} carries datagrams of {most} bytes again"
                    )),
                }
            }
        });
    }

    /// Waits until the peers have had the chance to hear that their connections are over.
    pub(crate) async fn close(&mut self) {
        if let Some(pending) = self.pending.take() {
            pending.abort();
        }
        if let Some(endpoint) = self.endpoint.take() {
            endpoint.close().await;
        }
    }

    /// Says what to do after a connection has ended so.
    pub(crate) fn on_lost(&self, end: &CloseReason) -> Lost {
        match self.reconnect {
            Reconnect::No => Lost::ForGood(Trouble::unconnected(format!(
                "the connection was lost: {end}; --reconnect lost, the default, would have made another one"
            ))),
            Reconnect::Always | Reconnect::Lost => Lost::AnotherWillCome,
        }
    }

    /// Whether there was ever a connection.
    pub(crate) const fn was_connected(&self) -> bool {
        self.was_connected
    }

    /// Whether it called, and nobody has answered.
    pub(crate) fn called_in_vain(&self) -> bool {
        !self.listens() && !self.was_connected
    }

    /// How many callers were turned away, by the reason.
    pub(crate) fn refused(&self) -> Counts {
        self.refusals.counts()
    }

    pub(crate) const fn listens(&self) -> bool {
        matches!(self.role, Opened::Listener(_))
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            pending.abort();
        }
    }
}

/// The pause before the next call: longer each time while connections end soon after they were
/// made.
fn pause(last: Option<(Instant, Duration)>, now: Instant) -> Duration {
    match last {
        Some((made, before)) if now.saturating_duration_since(made) < LONGEST_PAUSE => {
            (2 * before).clamp(FIRST_PAUSE, LONGEST_PAUSE)
        }
        _ => Duration::ZERO,
    }
}

/// Calls until somebody answers, or until calling again is of no use; `awaited` says what for,
/// after the first call.
async fn call(
    dial: &Arc<Dial>,
    keeps_calling: bool,
    awaited: &str,
    reporter: &Reporter,
) -> Result<(Connection, Endpoint), Trouble> {
    let mut pause = FIRST_PAUSE;
    loop {
        let (trouble, may_pass) = match attempt(dial).await {
            Ok(made) => return Ok(made),
            Err(refusal) => refusal,
        };
        if !keeps_calling || !may_pass {
            return Err(trouble);
        }
        if pause == FIRST_PAUSE {
            reporter.note(&format!("{awaited}, calling on: {trouble}"));
        }
        tokio::time::sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Calls each address of the host once; with the reason for the last one goes whether it may pass.
async fn attempt(dial: &Arc<Dial>) -> Result<(Connection, Endpoint), (Trouble, bool)> {
    let looked_up = {
        let dial = dial.clone();
        tokio::task::spawn_blocking(move || resolve(&dial.host, dial.port)).await
    };
    let addresses = looked_up
        .unwrap_or_else(|error| Err(Trouble::failed(format!("the look-up failed: {error}"))))
        .map_err(|trouble| (trouble, true))?;
    let mut refusal = (
        Trouble::unconnected(format!("{}: has no address", dial.host)),
        true,
    );
    for address in addresses {
        match call_at(dial, address).await {
            Ok(made) => return Ok(made),
            Err(error) => {
                let mut trouble = Trouble::connect(&error);
                let is_silence = matches!(&error, ConnectError::Call(CallError::NoAnswer { .. }));
                if is_silence && let Some(mtu) = Mtu::towards(address) {
                    trouble.message += &too_narrow(address, mtu).unwrap_or_default();
                }
                refusal = (trouble, may_pass(&error));
            }
        }
    }
    Err(refusal)
}

/// Why nothing can come of a call, where the packets that begin a connection do not fit into the
/// way out of this host.
fn too_narrow(address: SocketAddr, mtu: Mtu) -> Option<String> {
    (mtu.bytes < mtu.first()).then(|| {
        format!(
            ". The way there takes packets of {} bytes from this host, and those that begin a connection have {}: see ip route \
             get {}, then ip link set dev INTERFACE mtu 1500",
            mtu.bytes,
            mtu.first(),
            address.ip(),
        )
    })
}

async fn call_at(dial: &Dial, address: SocketAddr) -> Result<(Connection, Endpoint), ConnectError> {
    let bind = dial.bind.unwrap_or_default();
    let any = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let local = SocketAddr::new(bind.address.unwrap_or(any), bind.port);
    let endpoint = Endpoint::for_calls(local, dial.config.clone())?;
    let connection = endpoint.connect(address).await?;
    Ok((connection, endpoint))
}

fn listen(host: Option<&Host>, port: u16, config: Config) -> Result<Endpoint, Trouble> {
    let Some(host) = host else {
        // One socket for both families, where the host has both.
        let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
        return match Endpoint::bind(both, config.clone()) {
            Err(BindError::System { .. } | BindError::NotHere { .. }) => {
                Endpoint::bind((Ipv4Addr::UNSPECIFIED, port).into(), config)
            }
            bound => bound,
        }
        .map_err(|error| Trouble::bind(&error));
    };
    let address = resolve(host, port)?
        .into_iter()
        .next()
        .ok_or_else(|| Trouble::usage(format!("{host}: has no address to listen on")))?;
    Endpoint::bind(address, config).map_err(|error| Trouble::bind(&error))
}

/// What a URI and the command line ask of the library.
fn config(uri: &Uri, line: &LineOptions, reporter: &Reporter) -> Result<Config, Trouble> {
    let wrong = |error: ConfigError| match error {
        ConfigError::Open { path, reason } => Trouble::open(&path, &reason),
        ConfigError::KeyFile { .. } => Trouble::usage(error.to_string()),
        error => Trouble::usage(format!("comity://: {error}")),
    };
    if let Credentials::CallerKey { key, .. } | Credentials::ListenerKey { key, .. } =
        &uri.credentials
        && !line.insecure
        && let Some(warning) = exposure(key)
    {
        reporter.warn(&warning);
    }
    let mut builder = match (&uri.credentials, line.insecure) {
        (Credentials::Insecure, _) => uri.builder(),
        (Credentials::Missing, true) => uri.builder().map(ConfigBuilder::insecure),
        (_, true) => {
            return Err(Trouble::usage(
                "--insecure and the passphrase or key of the URI exclude each other; leave one of them out",
            ));
        }
        (Credentials::Missing, false) => match env::var(PASSPHRASE) {
            Ok(passphrase) => uri.builder().map(|builder| builder.passphrase(passphrase)),
            Err(_) => {
                return Err(Trouble::usage(format!(
                    "{}: has no credentials; give both ends the same passphrase=.. (or {PASSPHRASE} in the \
                     environment), or keys from comity keygen as key=.. and peerkey=..; --insecure does without",
                    uri.role
                )));
            }
        },
        (_, false) => uri.builder(),
    }
    .map_err(wrong)?;
    if line.early {
        builder = builder.deliver(Deliver::Early);
    }
    if !line.serves_many {
        // Whoever would only wait is told so, and keeps what it has to send.
        builder = builder.max_served(1);
    }
    if let Some(qlog) = &line.qlog {
        builder = builder.qlog(qlog.clone());
    }
    let config = builder.build().map_err(wrong)?;
    if let Some(warning) = config.warning() {
        let warning = warning.strip_prefix("insecure: ").unwrap_or(warning);
        reporter.warn(&format!("INSECURE: {warning}"));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_spaced_while_connections_do_not_last() {
        let made = now();
        let soon = made + Duration::from_millis(10);
        assert_eq!(pause(None, soon), Duration::ZERO);
        let mut before = Duration::ZERO;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            before = pause(Some((made, before)), soon);
            pauses.push(before.as_millis());
        }
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000]);
        assert_eq!(
            pause(Some((made, before)), made + LONGEST_PAUSE),
            Duration::ZERO
        );
    }
}
