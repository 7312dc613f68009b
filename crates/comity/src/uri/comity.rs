//! `comity://`.

use core::fmt;
use std::path::PathBuf;

use comity_congestion::table::{self, Parameters, Row, Setup};
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_units::{Bytes, Rate, Span};

use super::address::{Host, Local};
use super::error::UriError;
use super::keys::{Given, Mode, OVERHEAD, Scheme, default_controller};
use super::secret::Secret;
use super::settings::Settings;
use super::{read_address, write_settings};
use crate::session::PublicKey;

/// One end of a protected connection. What the URI does not say has the default of [`super::KEYS`].
#[derive(Clone, Debug, PartialEq)]
pub struct ComityUri {
    /// Whom it calls, or where it listens.
    pub role: Role,
    /// What both ends prove themselves with.
    pub credentials: Credentials,
    /// From when a section is given to when it is due at the other end.
    pub latency: Span,
    /// The congestion controller.
    pub controller: Controller,
    /// The most that is ever sent; [`Rate::MAX`] for no limit.
    pub max_rate: Rate,
    /// How long lost bytes are sent again; where the URI does not say, [`Reliability::usual`] of the controller.
    pub reliability: Reliability,
    /// When the sender gives a section up; [`DropPolicy::Never`] with [`Reliability::Full`].
    pub drop: DropPolicy,
    /// When the receiver hands a section over.
    pub deliver: Deliver,
    /// What the caller says about the stream, 1 to 512 bytes.
    pub stream_id: Option<String>,
    /// The protected bytes of a full packet, as `Config::payload` of `comity_transport::datagram` has it.
    pub payload: u32,
    /// Whether packets ask the network to mark rather than to drop.
    pub ecn: bool,
    /// How long one attempt to connect may take.
    pub connect_timeout: Span,
    /// The connection is given up when nothing has arrived for so long.
    pub idle_timeout: Span,
    /// After how long without anything to send a packet is sent all the same.
    pub keep_alive: Span,
    /// How long a connection that is being closed waits for what is still under way.
    pub linger: Span,
    /// Whether the caller calls again when the connection is lost.
    pub reconnect: bool,
    /// The type of service in the IP header; the lowest two bits, those of ECN, are zero.
    pub type_of_service: u8,
    /// How many routers packets pass at most; `None` for what the system has.
    pub time_to_live: Option<u8>,
    /// The most bytes of sections that wait to be sent.
    pub send_buffer: Bytes,
    /// The most bytes of sections that are collected or wait to be handed over.
    pub receive_buffer: Bytes,
}

/// Who opens the connection, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// This end calls.
    Caller {
        /// Whom.
        host: Host,
        /// The listener's port, not 0.
        port: u16,
        /// Where from.
        bind: Option<Local>,
    },
    /// This end listens.
    Listener {
        /// On which address; `None` for all of the host.
        host: Option<Host>,
        /// On which port; 0 for any.
        port: u16,
    },
}

impl Role {
    /// Which of the two it is.
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Caller { .. } => Mode::Caller,
            Self::Listener { .. } => Mode::Listener,
        }
    }
}

/// A congestion controller by its name in `comity_congestion::table`, with parameters that it builds with.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// Its name.
    pub name: &'static str,
    /// What was set of it.
    pub parameters: Parameters,
}

/// What an end proves itself with, and whom it believes, before any file is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Credentials {
    /// No protection, explicitly.
    Insecure,
    /// A static key, and the listener's public key.
    CallerKey {
        /// The file of the caller's own key.
        key: PathBuf,
        /// By which the listener is known.
        listener: PublicKey,
    },
    /// A static key, and whom to let in.
    ListenerKey {
        /// The file of the listener's own key.
        key: PathBuf,
        /// The file of the public keys that are let in; `None` lets in everybody.
        allow: Option<PathBuf>,
    },
    /// The URI says nothing about it. That is no permission: they have to come from elsewhere.
    Missing,
    /// A secret that both ends share.
    Passphrase(Secret),
}

const RELIABILITIES: &[(&str, Reliability)] = &[
    ("timeline", Reliability::Timeline),
    ("none", Reliability::None),
    ("full", Reliability::Full),
];
const DROPS: &[(&str, DropPolicy)] = &[
    ("expired", DropPolicy::Expired),
    ("infeasible", DropPolicy::Infeasible),
    ("never", DropPolicy::Never),
];
const DELIVERIES: &[(&str, Deliver)] = &[("early", Deliver::Early), ("paced", Deliver::Paced)];
const MODES: &[(&str, Mode)] = &[("caller", Mode::Caller), ("listener", Mode::Listener)];

impl ComityUri {
    pub(super) fn read(address: &str, settings: &Settings) -> Result<Self, UriError> {
        let role = read_role(address, settings)?;
        settings.check_mode(role.mode())?;
        settings.exclude("payload", "mtu")?;
        // Both are in range, so the difference is positive and below 2^16.
        let payload = match settings.get("mtu") {
            Some(_) => settings.bytes("mtu").get() - OVERHEAD,
            None => settings.bytes("payload").get(),
        } as u32;
        let (row, parameters) = read_controller(settings, payload)?;
        let reliability = settings
            .choice("reliability", RELIABILITIES)
            .unwrap_or_else(|| Reliability::usual(row));
        let drop = settings.choice("drop", DROPS).unwrap_or_default();
        let drop = match (reliability, drop) {
            (Reliability::Full, DropPolicy::Expired | DropPolicy::Infeasible)
                if settings.has("drop") =>
            {
                return Err(UriError::Contradiction {
                    first: "reliability=full",
                    second: "drop",
                });
            }
            (Reliability::Full, _) => DropPolicy::Never,
            (_, drop) => drop,
        };
        Ok(Self {
            credentials: read_credentials(settings, role.mode())?,
            role,
            latency: settings.span("latency"),
            controller: Controller {
                name: row.name,
                parameters,
            },
            max_rate: settings.rate("maxbw"),
            reliability,
            drop,
            deliver: settings.choice("deliver", DELIVERIES).unwrap_or_default(),
            stream_id: match settings.get("streamid") {
                Some(Given::Text(text)) => Some(text),
                _ => None,
            },
            payload,
            ecn: settings.flag("ecn"),
            connect_timeout: settings.span("conntimeo"),
            idle_timeout: settings.span("peeridletimeo"),
            keep_alive: settings.span("keepalive"),
            linger: settings.span("linger"),
            reconnect: settings.flag("reconnect"),
            type_of_service: settings.octet("iptos").unwrap_or(0),
            time_to_live: settings.octet("ttl"),
            send_buffer: settings.bytes("sndbuf"),
            receive_buffer: settings.bytes("rcvbuf"),
        })
    }

    fn pairs(&self) -> Vec<(&str, Option<String>)> {
        let word = |at: Option<&&'static str>| at.map(|word| (*word).to_owned());
        let (mode, bind) = match &self.role {
            Role::Caller { bind, .. } => (None, *bind),
            Role::Listener { host, .. } => (host.as_ref().map(|_| "listener"), None),
        };
        let path = |path: &PathBuf| Some(path.to_string_lossy().into_owned());
        let (mut passphrase, mut key, mut peer, mut allow, mut insecure) =
            (None, None, None, None, None);
        match &self.credentials {
            Credentials::Insecure => insecure = Some("true".into()),
            Credentials::CallerKey { key: own, listener } => {
                (key, peer) = (path(own), Some(listener.to_string()));
            }
            Credentials::ListenerKey {
                key: own,
                allow: list,
            } => {
                (key, allow) = (path(own), list.as_ref().and_then(path));
            }
            Credentials::Missing => {}
            Credentials::Passphrase(secret) => passphrase = Some(secret.to_string()),
        }
        let rate = match self.max_rate {
            Rate::MAX => "unlimited".into(),
            rate => rate.to_string(),
        };
        // The default depends on the controller, so that the table of keys cannot leave it out.
        let usual = table::find(self.controller.name).map(Reliability::usual);
        let reliability = match usual {
            Ok(usual) if usual == self.reliability => None,
            _ => word(spelt(RELIABILITIES, self.reliability)),
        };
        vec![
            ("mode", mode.map(Into::into)),
            ("bind", bind.map(|local| local.to_string())),
            ("latency", Some(self.latency.to_string())),
            ("cc", Some(self.controller.name.into())),
            ("maxbw", Some(rate)),
            ("reliability", reliability),
            ("drop", word(spelt(DROPS, self.drop))),
            ("deliver", word(spelt(DELIVERIES, self.deliver))),
            ("passphrase", passphrase),
            ("key", key),
            ("peerkey", peer),
            ("allow", allow),
            ("insecure", insecure),
            ("streamid", self.stream_id.clone()),
            ("payload", Some(self.payload.to_string())),
            ("ecn", Some(self.ecn.to_string())),
            ("conntimeo", Some(self.connect_timeout.to_string())),
            ("peeridletimeo", Some(self.idle_timeout.to_string())),
            ("keepalive", Some(self.keep_alive.to_string())),
            ("linger", Some(self.linger.to_string())),
            ("reconnect", Some(self.reconnect.to_string())),
            ("iptos", Some(self.type_of_service.to_string())),
            ("ttl", self.time_to_live.map(|hops| hops.to_string())),
            ("sndbuf", Some(self.send_buffer.to_string())),
            ("rcvbuf", Some(self.receive_buffer.to_string())),
        ]
    }
}

/// The word that stands for a value.
fn spelt<T: Copy + PartialEq>(
    words: &'static [(&'static str, T)],
    value: T,
) -> Option<&'static &'static str> {
    words
        .iter()
        .find(|(_, known)| *known == value)
        .map(|(word, _)| word)
}

/// As it would be read again; `passphrase=***` stands for any passphrase.
impl fmt::Display for ComityUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Caller { host, port, .. } => write!(f, "comity://{host}:{port}")?,
            Role::Listener {
                host: Some(host),
                port,
            } => write!(f, "comity://{host}:{port}")?,
            Role::Listener { host: None, port } => write!(f, "comity://:{port}")?,
        }
        let mut pairs = self.pairs();
        let parameters: Vec<_> = self
            .controller
            .parameters
            .iter()
            .map(|(name, value)| (format!("cc.{name}"), value.to_string()))
            .collect();
        let behind_cc = pairs
            .iter()
            .position(|(name, _)| *name == "cc")
            .map_or(0, |at| at + 1);
        for (name, value) in parameters.iter().rev() {
            pairs.insert(behind_cc, (name, Some(value.clone())));
        }
        write_settings(f, Scheme::Comity, &pairs)
    }
}

fn read_role(address: &str, settings: &Settings) -> Result<Role, UriError> {
    if address.contains('@') {
        return Err(UriError::Address {
            found: address.into(),
            expected: "host:port, without a user; who one is says passphrase or key",
        });
    }
    let (host, port) = read_address(address, Scheme::Comity)?;
    let host = host.filter(|host| !host.is_unspecified());
    let bind = match settings.get("bind") {
        Some(Given::Local(local)) => Some(local),
        _ => None,
    };
    let mode = settings.choice("mode", MODES);
    match (mode, host) {
        (Some(Mode::Caller), None) => Err(UriError::NobodyToCall),
        (None | Some(Mode::Caller), Some(host)) => match port {
            0 => Err(UriError::Address {
                found: address.into(),
                expected: "a port from 1 to 65535 to call",
            }),
            port => Ok(Role::Caller { host, port, bind }),
        },
        (None | Some(Mode::Listener), host) => {
            if let Some(local) = bind
                && (host.is_some() || local.port != 0)
            {
                return Err(UriError::Contradiction {
                    first: "bind",
                    second: "the address to listen on",
                });
            }
            let bound = bind
                .and_then(|local| local.address)
                .map(Host::Ip)
                .filter(|host| !host.is_unspecified());
            Ok(Role::Listener {
                host: host.or(bound),
                port,
            })
        }
    }
}

fn read_credentials(settings: &Settings, mode: Mode) -> Result<Credentials, UriError> {
    if settings.flag("insecure") {
        for second in ["passphrase", "key", "peerkey", "allow"] {
            settings.exclude("insecure", second)?;
        }
        return Ok(Credentials::Insecure);
    }
    for second in ["key", "peerkey", "allow"] {
        settings.exclude("passphrase", second)?;
    }
    if let Some(Given::Passphrase(secret)) = settings.get("passphrase") {
        return Ok(Credentials::Passphrase(secret));
    }
    let path = |name| match settings.get(name) {
        Some(Given::Path(path)) => Some(path),
        _ => None,
    };
    let peer = match settings.get("peerkey") {
        Some(Given::PublicKey(peer)) => Some(peer),
        _ => None,
    };
    let missing = |key, because| Err(UriError::Missing { key, because });
    match (mode, path("key"), peer, path("allow")) {
        (_, None, None, None) => Ok(Credentials::Missing),
        (_, None, Some(_), _) => missing("key", "peerkey"),
        (_, None, _, Some(_)) => missing("key", "allow"),
        (Mode::Caller, Some(_), None, _) => missing("peerkey", "a caller with a key"),
        (Mode::Caller, Some(key), Some(listener), _) => {
            Ok(Credentials::CallerKey { key, listener })
        }
        (Mode::Listener, Some(key), _, allow) => Ok(Credentials::ListenerKey { key, allow }),
    }
}

fn read_controller(
    settings: &Settings,
    payload: u32,
) -> Result<(&'static Row, Parameters), UriError> {
    let row = match settings.get("cc") {
        Some(Given::Controller(name)) => table::find(name)?,
        _ => default_controller(),
    };
    let parameters = settings.parameters(row)?;
    // Some values exclude each other; only building both halves tells.
    let setup = Setup::new(Bytes::new(payload.into()));
    row.build(&setup, &parameters)?;
    if let Some(meter) = row.build_meter(&setup, &parameters) {
        meter?;
    }
    Ok((row, parameters))
}
