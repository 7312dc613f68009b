//! Where connections come from: calls, again and again where that is wanted, or a listener.

use std::collections::BTreeSet;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity::session::{Allow, AllowList, AllowListError, CallError, PublicKey, StaticKey};
use comity::uri::{ComityUri, Credentials, Host, Local, Role};
use comity::{BindError, ConnectError, Connection, End, Endpoint, Options, PathSize, Qlog};
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
/// What header and tag add to the protected bytes of a packet.
const SEALING: u32 = 29;
/// What UDP and IPv6, the longer of the two, add to a datagram: as `mtu=` counts.
const UDP_AND_IP: u32 = 48;

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
    options: Options,
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
    pub(crate) fn open(
        uri: &ComityUri,
        line: &LineOptions,
        reporter: Reporter,
    ) -> Result<Self, Trouble> {
        let options = options(uri, line, &reporter)?;
        let refusals = Refusals::default();
        let role = match &uri.role {
            Role::Caller { host, port, bind } => Opened::Caller(Arc::new(Dial {
                host: host.clone(),
                port: *port,
                bind: *bind,
                options,
            })),
            Role::Listener { host, port } => {
                let endpoint = listen(host.as_ref(), *port, options)?;
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
            reconnect: match uri.reconnect {
                true => line.reconnect,
                false => Reconnect::No,
            },
            was_connected: false,
            last: None,
            linger: uri.linger.into(),
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
            while let Some(PathSize { datagram, most }) = sizes.next().await {
                match datagram < most {
                    true => reporter.warn(&format!(
                        "the path to {peer} carries no datagrams of {most} bytes, but such of {datagram}: packets are no \
                         larger from now on; mtu={} in the URI says so from the beginning",
                        datagram + UDP_AND_IP
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
    pub(crate) fn on_lost(&self, end: &End) -> Lost {
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

/// The pause before the next call: longer each time while connections end soon after they were made.
fn pause(last: Option<(Instant, Duration)>, now: Instant) -> Duration {
    match last {
        Some((made, before)) if now.saturating_duration_since(made) < LONGEST_PAUSE => {
            (2 * before).clamp(FIRST_PAUSE, LONGEST_PAUSE)
        }
        _ => Duration::ZERO,
    }
}

/// Calls until somebody answers, or until calling again is of no use; `awaited` says what for, after the first call.
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

/// Why nothing can come of a call, where the packets that begin a connection do not fit into the way out of this host.
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
    let endpoint = Endpoint::for_calls(local, dial.options.clone())?;
    let connection = endpoint.connect(address).await?;
    Ok((connection, endpoint))
}

fn listen(host: Option<&Host>, port: u16, options: Options) -> Result<Endpoint, Trouble> {
    let Some(host) = host else {
        // One socket for both families, where the host has both.
        let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
        return match Endpoint::bind(both, options.clone()) {
            Err(BindError::System { .. } | BindError::NotHere { .. }) => {
                Endpoint::bind((Ipv4Addr::UNSPECIFIED, port).into(), options)
            }
            bound => bound,
        }
        .map_err(|error| Trouble::bind(&error));
    };
    let address = resolve(host, port)?
        .into_iter()
        .next()
        .ok_or_else(|| Trouble::usage(format!("{host}: has no address to listen on")))?;
    Endpoint::bind(address, options).map_err(|error| Trouble::bind(&error))
}

/// The URI without its settings.
fn place(role: &Role) -> String {
    match role {
        Role::Caller { host, port, .. }
        | Role::Listener {
            host: Some(host),
            port,
        } => format!("comity://{host}:{port}"),
        Role::Listener { host: None, port } => format!("comity://:{port}"),
    }
}

/// What a URI and the command line ask of the library.
fn options(uri: &ComityUri, line: &LineOptions, reporter: &Reporter) -> Result<Options, Trouble> {
    let mut builder = Options::builder()
        .controller(uri.controller.name)
        .controller_parameters(uri.controller.parameters.clone())
        .latency(uri.latency.into())
        .reliability(uri.reliability)
        .drop_policy(uri.drop)
        .deliver(match line.early {
            true => comity::Deliver::Early,
            false => uri.deliver,
        })
        .datagram_size(uri.payload + SEALING)
        .ecn(uri.ecn)
        .connect_timeout(uri.connect_timeout.into())
        .idle_timeout(uri.idle_timeout.into())
        .keep_alive(uri.keep_alive.into())
        .max_rate(uri.max_rate)
        .type_of_service(uri.type_of_service)
        .send_buffer(uri.send_buffer.get())
        .receive_buffer(uri.receive_buffer.get());
    if !line.serves_many {
        // Whoever would only wait is told so, and keeps what it has to send.
        builder = builder.most_served(1);
    }
    if let Some(name) = &uri.stream_id {
        builder = builder.stream_name(name.clone());
    }
    if let Some(qlog) = &line.qlog {
        builder = builder.qlog(qlog.clone());
    }
    if let Some(hops) = uri.time_to_live {
        builder = builder.time_to_live(hops);
    }
    let passphrase = env::var(PASSPHRASE).ok();
    builder = match (&uri.credentials, line.insecure) {
        (Credentials::Insecure, _) | (Credentials::Missing, true) => builder.insecure(),
        (_, true) => {
            return Err(Trouble::usage(
                "--insecure and the passphrase or key of the URI exclude each other; leave one of them out",
            ));
        }
        (Credentials::Missing, false) => match passphrase {
            Some(passphrase) => builder.passphrase(passphrase),
            None => {
                return Err(Trouble::usage(format!(
                    "{}: has no credentials; give both ends the same passphrase=.. (or {PASSPHRASE} in the \
                     environment), or keys from comity keygen as key=.. and peerkey=..; --insecure does without",
                    place(&uri.role)
                )));
            }
        },
        (Credentials::Passphrase(secret), false) => builder.passphrase(secret.expose()),
        (Credentials::CallerKey { key, listener }, false) => {
            warn_of_exposure(key, reporter);
            builder.static_key(own_key(key)?).listener_key(*listener)
        }
        (Credentials::ListenerKey { key, allow }, false) => {
            warn_of_exposure(key, reporter);
            builder.static_key(own_key(key)?).allow(match allow {
                Some(file) => Allow::Only(allowed(file)?),
                None => Allow::Anyone,
            })
        }
    };
    let options = builder
        .build()
        .map_err(|error| Trouble::usage(format!("comity://: {error}")))?;
    if let Some(warning) = options.warning() {
        let warning = warning.strip_prefix("insecure: ").unwrap_or(warning);
        reporter.warn(&format!("INSECURE: {warning}"));
    }
    Ok(options)
}

/// Says so when others can read the file of a secret.
fn warn_of_exposure(file: &Path, reporter: &Reporter) {
    if let Some(warning) = exposure(file) {
        reporter.warn(&warning);
    }
}

fn own_key(file: &Path) -> Result<StaticKey, Trouble> {
    let text = zeroize::Zeroizing::new(read(file)?);
    text.parse().map_err(|error| {
        Trouble::usage(format!(
            "{}: holds no key: {error}; comity keygen makes one",
            file.display()
        ))
    })
}

/// The public keys of a list.
fn allowed(file: &Path) -> Result<BTreeSet<PublicKey>, Trouble> {
    let list: Result<AllowList, _> = read(file)?.parse();
    list.map(|list| list.0).map_err(|error| match error {
        AllowListError::Line { line, error } => {
            Trouble::usage(format!("{}:{line}: {error}", file.display()))
        }
        _ => Trouble::usage(format!("{}: {error}", file.display())),
    })
}

/// Reads a file of keys, which is not read to its end where it is too long to be one.
fn read(file: &Path) -> Result<String, Trouble> {
    /// Ten thousand keys with comments.
    const MOST: u64 = 1 << 20;
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(MOST + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 <= MOST => Ok(text),
        Ok(_) => Err(Trouble::usage(format!(
            "{}: is longer than 1 MiB; expected lines of comity-public- and 64 hexadecimal digits",
            file.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(Trouble::usage(format!(
            "{}: is no text; expected lines of comity-public- and 64 hexadecimal digits",
            file.display()
        ))),
        Err(error) => Err(Trouble::open(file, &error)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    #[test]
    fn lists_of_keys_have_comments_and_name_the_line_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("allow");
        let secret = StaticKey::new([7; 32]);
        let key = secret.public();
        fs::write(&path, format!("# who may come\n\n{key} # me\n")).unwrap();
        assert_eq!(
            allowed(&path).unwrap().into_iter().collect::<Vec<_>>(),
            [key]
        );
        fs::write(&path, format!("{key}\nnobody\n")).unwrap();
        let trouble = allowed(&path).unwrap_err();
        assert!(trouble.message.contains("allow:2: "), "{trouble}");
        fs::write(&path, "# nobody\n").unwrap();
        assert!(allowed(&path).unwrap_err().message.contains("lists no key"));
        for (bytes, wrong) in [
            (vec![b' '; (1 << 20) + 1], "1 MiB"),
            (vec![0xff], "no text"),
        ] {
            fs::write(&path, bytes).unwrap();
            assert!(own_key(&path).unwrap_err().message.contains(wrong));
        }
        let endless = own_key(Path::new("/dev/zero")).unwrap_err();
        assert!(endless.message.contains("1 MiB"), "{endless}");
    }
}
