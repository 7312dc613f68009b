//! `comity://` URIs: which end opens a connection and how, as text.
//!
//! ```text
//! uri      = comity://[host]:port[?settings]    a host: caller; none, 0.0.0.0 or [::]: listener
//! settings = key=value[&key=value]..            percent-encoded; docs/reference/settings.md lists the keys
//! ```
//!
//! The shape and most names of keys are SRT's. The keys are those of the table of settings, and
//! the keys for addresses and credentials. Parsing looks up, opens and binds nothing.
//!
//! Differs from SRT's URIs in:
//! 1. times, rates and sizes can have a unit, and without one they are in milliseconds, bit/s and
//!    bytes for every key: SRT counts `linger` in seconds and `maxbw` in bytes per second;
//! 2. `[::]` without a mode listens, as `0.0.0.0` does;
//! 3. an unknown key is an error, and so is a known key that has no effect.
//!
//! ```
//! use comity::uri::{Role, Uri};
//!
//! let uri: Uri = "comity://media.example:9000?latency=400ms&cc=cubic".parse()?;
//! assert!(matches!(&uri.role, Role::Caller { port: 9_000, .. }));
//! assert_eq!(uri.settings.latency.as_millis(), 400);
//!
//! let mistake = "comity://:9000?latensy=400".parse::<Uri>().unwrap_err();
//! assert!(mistake.to_string().ends_with("did you mean \"latency\"?"));
//! # Ok::<(), comity::uri::UriError>(())
//! ```

mod address;
mod advice;
pub(crate) mod error;
mod key;
#[doc(hidden)]
pub mod parts;
mod passphrase;
mod percent;
mod query;
mod secrets;

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::LazyLock;

use comity_congestion::table::{self, Domain, Setup, Value};
use comity_transport::timeline::{DropPolicy, Reliability};
use comity_transport::wire::limits::{SEALING, UDP_IPV6};
use comity_units::DataSize;

use crate::config::{Config, ConfigBuilder, SETTINGS, Setting, Settings, files};
use crate::error::ConfigError;
use crate::session::{Allow, PublicKey};

#[doc(hidden)]
pub use crate::config::Kind;
pub use crate::config::Mode;
pub use crate::session::Secret;
pub use address::{Host, Local, Zone};
pub use error::UriError;
#[doc(hidden)]
pub use key::Key;
pub use passphrase::PassphraseSource;
pub use percent::PercentError;

use key::Given;
use parts::{Encoded, Query, read_address, split, write_settings};

const SCHEME: &str = "comity";

/// The bytes of an IPv6 packet besides its protected payload.
const OVERHEAD: u32 = SEALING + UDP_IPV6;

/// One end of a protected connection, before anything is opened. Settings without a key in the URI
/// have their defaults.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Uri {
    /// The address to call, or to listen at.
    pub role: Role,
    /// The credentials of both ends.
    pub credentials: Credentials,
    /// All other settings.
    pub settings: Settings,
}

/// The end that opens the connection, and the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// This end calls.
    Caller {
        /// The host to call.
        host: Host,
        /// The listener's port, at least 1.
        port: u16,
        /// The source address of packets.
        bind: Option<Local>,
    },
    /// This end listens.
    Listener {
        /// The address to listen at; `None` for all addresses of the host.
        host: Option<Host>,
        /// The port to listen at; 0 for any.
        port: u16,
    },
}

impl Role {
    /// The mode.
    pub const fn mode(&self) -> Mode {
        match self {
            Self::Caller { .. } => Mode::Caller,
            Self::Listener { .. } => Mode::Listener,
        }
    }
}

/// The URI without its settings.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caller { host, port, .. }
            | Self::Listener {
                host: Some(host),
                port,
            } => write!(f, "comity://{host}:{port}"),
            Self::Listener { host: None, port } => write!(f, "comity://:{port}"),
        }
    }
}

/// The credentials of an end, before any file is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Credentials {
    /// No protection, explicitly.
    Insecure,
    /// A static key, and the listener's public key.
    CallerKey {
        /// The file of the caller's own key.
        key: PathBuf,
        /// The listener's public key.
        listener: PublicKey,
    },
    /// A static key, and the accepted callers.
    ListenerKey {
        /// The file of the listener's own key.
        key: PathBuf,
        /// The file of the accepted public keys; `None` accepts everybody.
        allow: Option<PathBuf>,
    },
    /// The URI has no credentials. This does not permit an insecure connection: the credentials
    /// must come from elsewhere.
    Missing,
    /// A secret that both ends share.
    Passphrase(PassphraseSource),
}

const FLAG: Kind = Kind::Domain(Domain::Flag);

/// The keys for addresses.
const ADDRESS_KEYS: [Key; 2] = [
    Key::new(
        "mode",
        Kind::Domain(Domain::Choice(&["caller", "listener"])),
        "",
        "Whether this endpoint calls or listens. Without it, a URI with a host calls that host, and \
         a URI without a host (or with `0.0.0.0` or `[::]`) listens.",
    ),
    parts::BIND,
];

/// The keys for credentials.
const CREDENTIAL_KEYS: [Key; 5] = [
    Key::new(
        "passphrase",
        Kind::Passphrase,
        "",
        "The secret that both endpoints share. `@FILE` reads it from the first line of a file, and \
         `@env:NAME` from an environment variable. Other users of the host can read a secret in \
         the URI itself. Comity never prints it.",
    ),
    Key::new(
        "key",
        Kind::Path,
        "",
        "The file with the static key of this endpoint, from `comity keygen`.",
    ),
    Key::new("peerkey", Kind::PublicKey, "", "The listener's public key.").only(Mode::Caller),
    Key::new(
        "allow",
        Kind::Path,
        "",
        "The file of the accepted public keys, one on a line. Without it, the listener accepts \
         every caller that knows the listener's public key.",
    )
    .only(Mode::Listener),
    Key::new(
        "insecure",
        FLAG,
        "false",
        "No protection: anybody on the path can read, change and forge packets.",
    ),
];

/// All keys, in the order of the documentation and of a printed URI.
#[doc(hidden)]
pub fn keys() -> &'static [Key] {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
        let mut keys: Vec<Key> = ADDRESS_KEYS.into_iter().chain(CREDENTIAL_KEYS).collect();
        for setting in SETTINGS {
            let Some(spelling) = setting.spelling else {
                continue;
            };
            keys.push(Key {
                name: spelling.key,
                aliases: spelling.aliases,
                kind: setting.kind,
                words: spelling.words,
                default: Cow::Owned(setting.default_text()),
                summary: Cow::Borrowed(setting.summary()),
                only: spelling.only,
            });
            if let ("payload", Kind::Domain(Domain::Bytes { max, .. })) =
                (setting.name, setting.kind)
            {
                let kind = Kind::Domain(Domain::Bytes {
                    min: DataSize::new(1_280),
                    max: DataSize::new(max.get() + u64::from(OVERHEAD)),
                });
                let mut mtu = Key::new("mtu", kind, "", "").or(&["mss"]);
                mtu.summary = Cow::Owned(format!(
                    "The largest IP packet, if the path carries it. Sets `payload` to {OVERHEAD} \
                     bytes less."
                ));
                keys.push(mtu);
            }
        }
        keys
    });
    &KEYS
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let rest = text
            .split_once("://")
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME));
        let Some((_, rest)) = rest else {
            return Err(UriError::NoUri {
                found: secrets::without_secrets(text),
            });
        };
        secrets::check_secrets(rest)?;
        let (address, query) = split(rest)?;
        let query = Query::read(keys(), SCHEME, query, advice::hint)?;
        let role = read_role(address, &query)?;
        query.check_mode(role.mode())?;
        let credentials = read_credentials(&query, role.mode())?;
        let settings = read_settings(&query)?;
        Ok(Self {
            role,
            credentials,
            settings,
        })
    }
}

fn read_settings(query: &Query) -> Result<Settings, UriError> {
    query.exclude("payload", "mtu")?;
    let mut settings = Settings::default();
    for setting in SETTINGS {
        let Some(spelling) = setting.spelling else {
            continue;
        };
        if let Some(Given::Value(value)) = query.given(spelling.key) {
            settings.set(setting.name, value.clone());
        }
    }
    if let Some(Given::Value(Value::Bytes(mtu))) = query.given("mtu") {
        // The table limits the value, so the difference is positive and below 2^16.
        settings.payload = mtu.get() as u32 - OVERHEAD;
    }
    let is_full = settings.reliability == Some(Reliability::Full);
    if is_full && query.has("drop") && settings.drop_policy != DropPolicy::Never {
        return Err(UriError::Contradiction {
            first: "reliability=full",
            second: "drop",
        });
    }
    let row = table::find(&settings.controller)?;
    settings.controller_parameters = query.parameters(row)?;
    // Some values exclude each other: building the controller and the meter detects this.
    let setup = Setup::new(DataSize::new(settings.payload.into()));
    row.build(&setup, &settings.controller_parameters)?;
    if let Some(meter) = row.build_meter(&setup, &settings.controller_parameters) {
        meter?;
    }
    Ok(settings)
}

impl Config {
    /// Reads a `comity://` URI and its files: which end opens the connection, and how.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: the text is not such a URI, has no credentials, or has an unusable file.
    pub fn from_uri(text: &str) -> Result<(Role, Self), ConfigError> {
        let uri: Uri = text.parse()?;
        let config = uri.builder()?.build()?;
        Ok((uri.role, config))
    }
}

impl Uri {
    /// Reads a URI with further settings, each with its key and its value, neither percent-encoded.
    ///
    /// A key is one that the URI itself may have. A [setting](Settings) without such a key has its
    /// own name as its key, for example `max_memory`.
    ///
    /// ```
    /// use comity::uri::Uri;
    ///
    /// let settings = [("latency", "400ms"), ("passphrase", "@secret"), ("max_waiting", "4")];
    /// let uri = Uri::with_settings("comity://media.example:9000?cc=cubic", settings)?;
    /// assert_eq!(uri.settings.latency.as_millis(), 400);
    /// assert_eq!(uri.settings.max_waiting, 4);
    /// # Ok::<(), comity::uri::UriError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UriError`] for the first invalid part, and for a key that occurs twice.
    pub fn with_settings<'a>(
        text: &str,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, UriError> {
        let mut text = text.to_owned();
        let mut unspelled = Vec::new();
        for (name, value) in settings {
            let is_own = |setting: &&Setting| setting.spelling.is_none() && setting.name == name;
            match SETTINGS.iter().find(is_own) {
                Some(setting) => {
                    let key = Key::new(setting.name, setting.kind, "", "");
                    unspelled.push((key.name, key.read(value)?));
                }
                None => {
                    let mark = if text.contains('?') { '&' } else { '?' };
                    text.push_str(&format!("{mark}{}={}", Encoded(name), Encoded(value)));
                }
            }
        }
        let mut uri: Self = text.parse()?;
        for (name, value) in unspelled {
            if let Given::Value(value) = value {
                uri.settings.set(name, value);
            }
        }
        Ok(uri)
    }

    /// A builder with the settings of the URI and the keys from its files. If the URI has no
    /// credentials, the caller must set them.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Open`], [`ConfigError::KeyFile`] and [`ConfigError::Environment`].
    pub fn builder(&self) -> Result<ConfigBuilder, ConfigError> {
        let builder = Config::builder().settings(self.settings.clone());
        Ok(match &self.credentials {
            Credentials::Insecure => builder.insecure(),
            Credentials::Missing => builder,
            Credentials::Passphrase(secret) => builder.passphrase(secret.read()?.expose()),
            Credentials::CallerKey { key, listener } => builder
                .static_key(files::static_key(key)?)
                .listener_key(*listener),
            Credentials::ListenerKey { key, allow } => builder
                .static_key(files::static_key(key)?)
                .allow(match allow {
                    Some(file) => Allow::Only(files::allowed(file)?),
                    None => Allow::Anyone,
                }),
        })
    }

    fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, text: String| pairs.push((name.into(), text));
        let path = |path: &PathBuf| path.to_string_lossy().into_owned();
        match &self.role {
            Role::Listener { host: Some(_), .. } => add("mode", "listener".into()),
            Role::Caller {
                bind: Some(local), ..
            } => add("bind", local.to_string()),
            _ => {}
        }
        match &self.credentials {
            Credentials::Insecure => add("insecure", "true".into()),
            Credentials::CallerKey { key, listener } => {
                add("key", path(key));
                add("peerkey", listener.to_string());
            }
            Credentials::ListenerKey { key, allow } => {
                add("key", path(key));
                if let Some(list) = allow {
                    add("allow", path(list));
                }
            }
            Credentials::Missing => {}
            Credentials::Passphrase(secret) => add("passphrase", secret.to_string()),
        }
        let usual = Settings::default();
        for setting in SETTINGS {
            let Some(spelling) = setting.spelling else {
                continue;
            };
            let value = self.settings.get(setting.name);
            if let Some(value) =
                value.filter(|value| usual.get(setting.name).as_ref() != Some(value))
            {
                add(spelling.key, value.to_string());
            }
            if spelling.key == "cc" {
                for (name, value) in self.settings.controller_parameters.iter() {
                    add(&format!("cc.{name}"), value.to_string());
                }
            }
        }
        pairs
    }
}

/// The URI that parses to the same value, with all settings that differ from their defaults.
/// `passphrase=***` replaces a literal passphrase.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.role.fmt(f)?;
        write_settings(f, &self.pairs())
    }
}

fn read_role(address: &str, query: &Query) -> Result<Role, UriError> {
    if address.contains('@') {
        return Err(UriError::Address {
            found: secrets::without_user(address),
            expected:
                "host:port without a user name; `passphrase` or `key` authenticates the caller"
                    .into(),
        });
    }
    let (host, port) = read_address(address, "comity://host:9000")?;
    let host = host.filter(|host| !host.is_unspecified());
    let bind = query.local("bind");
    let mode = match query.given("mode") {
        Some(Given::Value(Value::Text(word))) if word == "caller" => Some(Mode::Caller),
        Some(_) => Some(Mode::Listener),
        None => None,
    };
    match (mode, host) {
        (Some(Mode::Caller), None) => Err(UriError::NobodyToCall),
        (None | Some(Mode::Caller), Some(host)) => match port {
            0 => Err(UriError::Address {
                found: address.into(),
                expected: "a port from 1 to 65535 to call".into(),
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
                .and_then(|local| local.host())
                .filter(|host| !host.is_unspecified());
            Ok(Role::Listener {
                host: host.or(bound),
                port,
            })
        }
    }
}

fn read_credentials(query: &Query, mode: Mode) -> Result<Credentials, UriError> {
    if query.flag("insecure") == Some(true) {
        for second in ["passphrase", "key", "peerkey", "allow"] {
            query.exclude("insecure", second)?;
        }
        return Ok(Credentials::Insecure);
    }
    for second in ["key", "peerkey", "allow"] {
        query.exclude("passphrase", second)?;
    }
    if let Some(Given::Passphrase(secret)) = query.given("passphrase") {
        return Ok(Credentials::Passphrase(secret.clone()));
    }
    let path = |name| match query.given(name) {
        Some(Given::Path(path)) => Some(path.clone()),
        _ => None,
    };
    let peer = match query.given("peerkey") {
        Some(Given::PublicKey(peer)) => Some(*peer),
        _ => None,
    };
    let missing = |because, key| Err(UriError::Missing { because, key });
    match (mode, path("key"), peer, path("allow")) {
        (_, None, None, None) => Ok(Credentials::Missing),
        (_, None, Some(_), _) => missing("peerkey=", "key"),
        (_, None, _, Some(_)) => missing("allow=", "key"),
        (Mode::Caller, Some(_), None, _) => missing("key= of a caller", "peerkey"),
        (Mode::Caller, Some(key), Some(listener), _) => {
            Ok(Credentials::CallerKey { key, listener })
        }
        (Mode::Listener, Some(key), _, allow) => Ok(Credentials::ListenerKey { key, allow }),
    }
}
