//! Makes a dialer from a `comity://` URI and the options of the command line.

use std::env;
use std::path::Path;

use comity::uri::{Credentials, PassphraseSource, Uri};
use comity::{Config, ConfigBuilder, ConfigError, Deliver, KeyLog, Qlog};
use comity_media::LAYOUT_FEATURE;
use comity_stream::{Dialer, Observer, Reconnect, Redial};

use super::error::Error;
use super::status::Reporter;
use crate::args;
use crate::keygen::exposure;

/// The environment variable for a passphrase. Other users of the host cannot read it.
const PASSPHRASE: &str = "COMITY_PASSPHRASE";

/// The environment variables of secrets, which programs that this one starts must not get.
pub(crate) fn secret_variables(credentials: &Credentials) -> Vec<String> {
    let own = match credentials {
        Credentials::Passphrase(PassphraseSource::Environment(name)) => Some(name.clone()),
        _ => None,
    };
    own.into_iter().chain([PASSPHRASE.into()]).collect()
}

/// The options of the command line for connections.
#[derive(Debug)]
pub(crate) struct Connecting<'a> {
    /// Whether connections may be unprotected if the URI has no key.
    pub(crate) insecure: bool,
    pub(crate) reconnect: args::Reconnect,
    /// Whether sections come with their layouts.
    pub(crate) takes_layouts: bool,
    /// The folder for qlog files.
    pub(crate) qlog: Option<Qlog>,
    /// The file for the secrets of connections.
    pub(crate) key_log: Option<KeyLog>,
    pub(crate) reporter: &'a Reporter,
    pub(crate) observer: Observer,
}

/// The purpose of an endpoint's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The connections receive, from one sender at a time; `deliver` overrides the setting.
    Receive {
        /// When sections are delivered.
        deliver: Option<Deliver>,
    },
    /// The connections send, and accept no sections.
    Send {
        /// The number of callers that a listener serves at a time.
        max_served: usize,
    },
}

impl From<args::Reconnect> for Redial {
    fn from(when: args::Reconnect) -> Self {
        match when {
            args::Reconnect::Always => Reconnect::Always,
            args::Reconnect::Lost => Reconnect::Lost,
            args::Reconnect::No => Reconnect::No,
        }
        .into()
    }
}

impl Connecting<'_> {
    /// Opens the endpoint of `uri`.
    pub(crate) fn dialer(&self, uri: &Uri, purpose: Purpose) -> Result<Dialer, Error> {
        let config = self.config(uri, purpose)?;
        let dialer = Dialer::open(
            &uri.role,
            config,
            self.reconnect.into(),
            self.observer.clone(),
        )?;
        if let Some(address) = dialer.local_address() {
            self.reporter.listening(address);
        }
        Ok(dialer)
    }

    fn config(&self, uri: &Uri, purpose: Purpose) -> Result<Config, Error> {
        self.warn_of_exposure(&uri.credentials);
        let mut builder = self.builder(uri)?;
        // The command does not dispatch connections by the name of their stream.
        builder = builder.only_own_stream(true);
        if self.takes_layouts {
            builder = builder.features(LAYOUT_FEATURE);
        }
        let max_served = match purpose {
            Purpose::Receive { deliver } => {
                if let Some(deliver) = deliver {
                    builder = builder.deliver(deliver);
                }
                1
            }
            Purpose::Send { max_served } => {
                builder = builder.only_sends(true);
                max_served
            }
        };
        // Refuses a further caller as busy, so that the caller keeps its data, or closes a
        // connection of the host that has the most.
        builder = builder.max_served(max_served);
        if let Some(qlog) = &self.qlog {
            builder = builder.qlog(qlog.clone());
        }
        if let Some(key_log) = &self.key_log {
            builder = builder.key_log(key_log.clone());
        }
        let config = builder.build().map_err(of_config)?;
        if let Some(warning) = config.warning() {
            let warning = warning.strip_prefix("insecure: ").unwrap_or(warning);
            self.reporter.warn(&format!("INSECURE: {warning}"));
        }
        Ok(config)
    }

    fn warn_of_exposure(&self, credentials: &Credentials) {
        let key: &Path = match credentials {
            Credentials::CallerKey { key, .. } | Credentials::ListenerKey { key, .. } => key,
            Credentials::Passphrase(PassphraseSource::File(file)) => file,
            Credentials::Passphrase(PassphraseSource::Literal(_)) => {
                return self.reporter.warn(
                    "every user of this host can read the passphrase on the command line; write it to a file that \
                     only you can read, and use passphrase=@FILE",
                );
            }
            _ => return,
        };
        if !self.insecure
            && let Some(warning) = exposure(key)
        {
            self.reporter.warn(&warning);
        }
    }

    fn builder(&self, uri: &Uri) -> Result<ConfigBuilder, Error> {
        let builder = || uri.builder().map_err(of_config);
        match (&uri.credentials, self.insecure) {
            (Credentials::Insecure, _) => builder(),
            (Credentials::Missing, true) => builder().map(ConfigBuilder::insecure),
            (_, true) => Err(Error::usage(
                "--insecure and the passphrase or key of the URI exclude each other; leave one of them out",
            )),
            (Credentials::Missing, false) => match env::var_os(PASSPHRASE) {
                Some(_) => {
                    let source = PassphraseSource::Environment(PASSPHRASE.into());
                    let passphrase = source.read().map_err(of_config)?;
                    builder().map(|builder| builder.passphrase(passphrase.expose()))
                }
                None => Err(Error::usage(format!(
                    "{}: has no credentials; give both ends the same passphrase=@FILE (or {PASSPHRASE} in the \
                     environment), or keys from comity keygen as key=.. and peerkey=..; --insecure needs neither",
                    uri.role
                ))),
            },
            (_, false) => builder(),
        }
    }
}

fn of_config(error: ConfigError) -> Error {
    match error {
        ConfigError::Open { path, reason } => Error::open(&path, &reason),
        ConfigError::KeyFile { .. } | ConfigError::Environment { .. } => {
            Error::Usage(error.to_string())
        }
        error => Error::Usage(format!("comity://: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_serves_as_many_callers_as_its_output() {
        let reporter = Reporter::new(true, None);
        let connecting = Connecting {
            insecure: true,
            reconnect: args::Reconnect::Lost,
            takes_layouts: true,
            qlog: None,
            key_log: None,
            reporter: &reporter,
            observer: Observer::default(),
        };
        let uri: Uri = "comity://:0".parse().unwrap();
        let served = |purpose| {
            let config = connecting.config(&uri, purpose).unwrap();
            config.settings().max_served
        };
        assert_eq!(served(Purpose::Receive { deliver: None }), 1);
        for count in [1, 256] {
            let purpose = Purpose::Send { max_served: count };
            assert_eq!(served(purpose), count);
        }
    }
}
