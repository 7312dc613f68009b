//! The configuration of endpoints and connections.
//!
//! [`SETTINGS`] is the table of all settings. The fields of [`Settings`], the setters of
//! [`ConfigBuilder`], the keys of URIs, the checks and `docs/reference/settings.md` come from it. A
//! [`Config`] determines the transport's configuration and its parameters on the wire.

#[cfg(test)]
mod effects;
pub(crate) mod files;
pub(crate) mod kind;
mod settings;

use std::time::Duration;

use comity_congestion::table::{self, Parameters as ControllerParameters, Row, Setup};
use comity_transport::datagram;
use comity_transport::timeline::{Deliver, DropPolicy, Reliability};
use comity_transport::wire::limits::{MAX_METER_PARAMETERS, MIN_INITIAL, SEALING, UDP_IPV6};
use comity_transport::wire::parameters::Parameters;
use comity_units::{DataSize, Rate, Span};
use zeroize::Zeroizing;

use crate::error::ConfigError;
use crate::key_log::KeyLog;
use crate::session::{
    Allow, CallerCredentials, CredentialError, ListenerCredentials, Passphrase, PassphraseKey,
    PresharedKey, PublicKey, Secret, StaticKey,
};
use crate::trace::Qlog;

pub use kind::{Kind, Mode};
pub use settings::{SETTINGS, Setting, Settings};

use settings::{builder_setters, setter};

/// The maximum length of the stream name and the controller's parameters together, in bytes.
const MAX_TEXT: usize = 576;

/// A valid configuration of an endpoint and its connections.
///
/// ```
/// use comity::Config;
/// use std::time::Duration;
///
/// let config = Config::builder()
///     .passphrase("correct horse battery")
///     .latency(Duration::from_millis(400))
///     .controller("cubic")
///     .build()?;
/// assert_eq!(config.settings().latency, Duration::from_millis(400));
///
/// let mistake = Config::builder().insecure().controller("cubik").build().unwrap_err();
/// assert_eq!(
///     mistake.to_string(),
///     r#"cc: there is no controller "cubik"; did you mean "cubic"? `comity list` describes each"#
/// );
///
/// // The same from a URI, with the address to call.
/// let text = "comity://192.0.2.1:9000?latency=400ms&cc=cubic&insecure";
/// let (role, config) = Config::from_uri(text)?;
/// assert!(matches!(role, comity::uri::Role::Caller { port: 9_000, .. }));
/// assert_eq!(config.settings().latency, Duration::from_millis(400));
/// # Ok::<(), comity::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    settings: Settings,
    credentials: Credentials,
    controller: &'static Row,
    qlog: Option<Qlog>,
    key_log: Option<KeyLog>,
    features: u64,
    transport: datagram::Config,
}

#[derive(Clone, Debug)]
enum Credentials {
    Insecure,
    Passphrase(PassphraseKey),
    Shared(PresharedKey),
    Static {
        own: StaticKey,
        listener: Option<PublicKey>,
        allow: Option<Allow>,
    },
}

impl Config {
    /// A builder with the defaults.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// All settings, defaults included.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A warning for the user, to be shown before anything is sent.
    pub fn warning(&self) -> Option<&'static str> {
        self.listener_credentials().ok()?.warning()
    }

    /// The name of the controller.
    pub fn controller(&self) -> &'static str {
        self.controller.name
    }

    pub(crate) fn row(&self) -> &'static Row {
        self.controller
    }

    pub(crate) fn transport(&self) -> &datagram::Config {
        &self.transport
    }

    pub(crate) fn qlog(&self) -> Option<&Qlog> {
        self.qlog.as_ref()
    }

    pub(crate) fn key_log(&self) -> Option<&KeyLog> {
        self.key_log.as_ref()
    }

    pub(crate) fn caller_credentials(&self) -> Result<CallerCredentials, ConfigError> {
        Ok(match &self.credentials {
            Credentials::Insecure => CallerCredentials::Insecure,
            Credentials::Passphrase(key) => CallerCredentials::Passphrase(key.clone()),
            Credentials::Shared(key) => CallerCredentials::Shared(key.clone()),
            Credentials::Static {
                own,
                listener: Some(listener),
                ..
            } => CallerCredentials::Static {
                own: own.clone(),
                listener: *listener,
            },
            Credentials::Static { listener: None, .. } => {
                return Err(ConfigError::StaticKeyIncomplete {
                    missing: "the listener's public key",
                    purpose: "call",
                });
            }
        })
    }

    pub(crate) fn listener_credentials(&self) -> Result<ListenerCredentials, ConfigError> {
        Ok(match &self.credentials {
            Credentials::Insecure => ListenerCredentials::Insecure,
            Credentials::Passphrase(key) => ListenerCredentials::Passphrase(key.clone()),
            Credentials::Shared(key) => ListenerCredentials::Shared(key.clone()),
            Credentials::Static {
                own,
                allow: Some(allow),
                ..
            } => ListenerCredentials::Static {
                own: own.clone(),
                allow: allow.clone(),
            },
            Credentials::Static { allow: None, .. } => {
                return Err(ConfigError::StaticKeyIncomplete {
                    missing: "the list of accepted keys",
                    purpose: "listen",
                });
            }
        })
    }

    /// The transport parameters that this end sends to the peer.
    #[doc(hidden)]
    pub fn parameters(&self) -> Parameters {
        let (settings, transport) = (&self.settings, &self.transport);
        Parameters {
            latency: settings.latency.into(),
            // The peer only needs to know whether the sender may drop sections at their deadlines.
            reliability: match transport.reliability {
                _ if !transport.enforces_deadlines() => Reliability::Full,
                Reliability::None => Reliability::None,
                _ => Reliability::Timeline,
            },
            deliver: transport.deliver,
            max_datagram: u16::try_from(transport.payload + SEALING)
                .unwrap_or(u16::MAX)
                .max(MIN_INITIAL as u16),
            idle_timeout: Span::from_millis(transport.idle_timeout.as_millis()),
            initial_credit: transport.receive_buffer,
            max_open_sections: transport.receive_sections,
            max_ack_delay: transport.ack_delay,
            stream_name: Some(settings.stream_name.clone()).filter(|name| !name.is_empty()),
            meter: self
                .controller
                .has_meter()
                .then(|| self.controller.name.to_owned()),
            ecn: transport.ecn,
            controller: Some(self.controller.name.to_owned()),
            meter_parameters: Some(settings.controller_parameters.to_list())
                .filter(|list| self.controller.has_meter() && !list.is_empty()),
            features: self.features,
            proofs: true,
        }
    }
}

/// A builder of a configuration. It begins with the defaults of all settings.
#[derive(Clone, Debug, Default)]
pub struct ConfigBuilder {
    settings: Settings,
    passphrase: Option<Result<Secret, CredentialError>>,
    preshared_key: Option<PresharedKey>,
    static_key: Option<StaticKey>,
    listener_key: Option<PublicKey>,
    allow: Option<Allow>,
    is_insecure: bool,
    qlog: Option<Qlog>,
    key_log: Option<KeyLog>,
    features: u64,
}

builder_setters!();

impl ConfigBuilder {
    /// Sets a passphrase that both ends know, of 10 to 256 bytes. [`build`](Self::build) then takes
    /// some 0.2 s and 64 MiB, which slows down guesses: build once and share the configuration.
    #[must_use]
    pub fn passphrase(mut self, passphrase: impl Into<String>) -> Self {
        self.passphrase = Some(Secret::new(&Zeroizing::new(passphrase.into())));
        self
    }

    /// Sets 32 random bytes that both ends know.
    #[must_use]
    pub fn preshared_key(mut self, key: PresharedKey) -> Self {
        self.preshared_key = Some(key);
        self
    }

    /// Sets the key that this end proves to have. A caller also sets
    /// [`listener_key`](Self::listener_key), and a listener [`allow`](Self::allow).
    #[must_use]
    pub fn static_key(mut self, own: StaticKey) -> Self {
        self.static_key = Some(own);
        self
    }

    /// Sets the public key of the listener, which must prove that it has the secret key.
    #[must_use]
    pub fn listener_key(mut self, key: PublicKey) -> Self {
        self.listener_key = Some(key);
        self
    }

    /// Sets the callers that a listener accepts, by their static keys.
    #[must_use]
    pub fn allow(mut self, allow: Allow) -> Self {
        self.allow = Some(allow);
        self
    }

    /// Switches protection off: anybody on the path can read, change and forge packets.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.is_insecure = true;
        self
    }

    /// Sets the qlog files for the events and decisions of connections. The default is none.
    #[must_use]
    pub fn qlog(mut self, qlog: Qlog) -> Self {
        self.qlog = Some(qlog);
        self
    }

    /// Sets the file for the secrets of connections. Whoever reads it can decrypt their packets.
    /// The default is none.
    #[must_use]
    pub fn key_log(mut self, key_log: KeyLog) -> Self {
        self.key_log = Some(key_log);
        self
    }

    /// Sets what the application can receive, as bits below 2^62 that the application defines. The
    /// peer reads them with [`Connection::peer_features`](crate::Connection::peer_features).
    #[must_use]
    pub fn features(mut self, features: u64) -> Self {
        self.features = features & (u64::MAX >> 2);
        self
    }

    /// Sets the parameters of the controller.
    #[must_use]
    pub fn controller_parameters(mut self, parameters: ControllerParameters) -> Self {
        self.settings.controller_parameters = parameters;
        self
    }

    /// Sets all settings at once.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Checks all settings and returns the configuration.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] with the setting, its value and what was expected.
    pub fn build(self) -> Result<Config, ConfigError> {
        let settings = &self.settings;
        let controller = table::find(&settings.controller)?;
        for setting in SETTINGS {
            let value = settings.get(setting.name);
            if let Some(value) = value.filter(|value| !setting.kind.admits(value)) {
                return Err(ConfigError::Value {
                    setting: setting.name,
                    found: value.to_string(),
                    expected: setting.kind.expected(),
                });
            }
        }
        let setup = Setup::new(DataSize::new(settings.payload.into()));
        controller
            .build(&setup, &settings.controller_parameters)
            .map_err(|reason| ConfigError::Controller {
                controller: controller.name,
                reason,
            })?;
        let config = Config {
            credentials: self.credentials()?,
            controller,
            transport: settings.transport(),
            settings: self.settings,
            qlog: self.qlog,
            key_log: self.key_log,
            features: self.features,
        };
        let list = config.parameters().meter_parameters.unwrap_or_default();
        // One packet carries both to the peer, together with other parameters.
        for (what, length, max) in [
            ("controller parameters", list.len(), MAX_METER_PARAMETERS),
            (
                "stream name and controller parameters",
                list.len() + config.settings.stream_name.len(),
                MAX_TEXT,
            ),
        ] {
            if length > max {
                return Err(ConfigError::Length { what, length, max });
            }
        }
        Ok(config)
    }

    fn credentials(&self) -> Result<Credentials, ConfigError> {
        let given = [
            ("a passphrase", self.passphrase.is_some()),
            ("a pre-shared key", self.preshared_key.is_some()),
            ("a static key", self.static_key.is_some()),
            ("insecure", self.is_insecure),
        ];
        let mut given = given.iter().filter(|(_, is_given)| *is_given);
        if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
            return Err(ConfigError::TwoCredentials { first, second });
        }
        if let Some(passphrase) = &self.passphrase {
            let passphrase = passphrase.as_ref().map_err(|error| *error)?;
            let key = Passphrase::stretch(passphrase.expose())?;
            return Ok(Credentials::Passphrase(key));
        }
        if let Some(key) = &self.preshared_key {
            return Ok(Credentials::Shared(key.clone()));
        }
        if let Some(own) = &self.static_key {
            return Ok(Credentials::Static {
                own: own.clone(),
                listener: self.listener_key,
                allow: self.allow.clone(),
            });
        }
        if self.is_insecure {
            return Ok(Credentials::Insecure);
        }
        Err(ConfigError::NoCredentials)
    }
}

impl Settings {
    /// How long the sender retransmits lost bytes: the setting, or the controller's default.
    pub fn effective_reliability(&self) -> Reliability {
        let usual = || table::find(&self.controller).map(Reliability::usual);
        self.reliability
            .unwrap_or_else(|| usual().unwrap_or_default())
    }

    /// The memory that peers can make an endpoint hold.
    pub(crate) fn memory_budget(&self) -> u64 {
        let buffer = self.receive_buffer.max(self.send_buffer);
        self.max_memory.max(buffer.saturating_mul(2))
    }

    /// The transport's configuration.
    fn transport(&self) -> datagram::Config {
        datagram::Config {
            reliability: self.effective_reliability(),
            drop: self.drop_policy,
            deliver: self.deliver,
            payload: self.payload,
            overhead: SEALING + UDP_IPV6,
            ack_frequency: self.ack_frequency,
            keep_alive: self.keep_alive.into(),
            max_rate: self.max_rate,
            idle_timeout: self.idle_timeout.into(),
            ecn: self.ecn,
            send_buffer: self.send_buffer,
            receive_buffer: match self.only_sends {
                true => 0,
                false => self.receive_buffer,
            },
            max_latency: self.max_latency.max(self.latency).into(),
            play_out: self.linger.saturating_add(self.latency).into(),
            ..datagram::Config::DEFAULT
        }
    }
}
