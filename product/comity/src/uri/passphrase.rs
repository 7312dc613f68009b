//! The source of a passphrase.

use core::fmt;
use std::env::{self, VarError};
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::config::files;
use crate::error::ConfigError;
use crate::session::{CredentialError, Secret};

/// The word before the name of an environment variable.
const ENVIRONMENT: &str = "env:";

/// A passphrase, or its source: `@FILE` or `@env:NAME`.
///
/// Other users of a host can read its command lines. They cannot read a private file, or the
/// environment of another user's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassphraseSource {
    /// The passphrase itself.
    Literal(Secret),
    /// The first line of a file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
}

impl PassphraseSource {
    /// Reads the value of `passphrase=`.
    ///
    /// # Errors
    ///
    /// [`CredentialError::PassphraseShort`], [`CredentialError::PassphraseLong`] and
    /// [`CredentialError::PassphraseNowhere`].
    pub fn new(text: &str) -> Result<Self, CredentialError> {
        let Some(source) = text.strip_prefix('@') else {
            return Secret::new(text).map(Self::Literal);
        };
        match source.strip_prefix(ENVIRONMENT) {
            Some("") => Err(CredentialError::PassphraseNowhere),
            None if source.is_empty() => Err(CredentialError::PassphraseNowhere),
            Some(name) => Ok(Self::Environment(name.into())),
            None => Ok(Self::File(source.into())),
        }
    }

    /// The passphrase.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Open`], [`ConfigError::KeyFile`] and [`ConfigError::Environment`]. They do
    /// not show the contents.
    pub fn read(&self) -> Result<Secret, ConfigError> {
        match self {
            Self::Literal(secret) => Ok(secret.clone()),
            Self::File(path) => files::passphrase(path),
            Self::Environment(name) => {
                let wrong = |problem: String| ConfigError::Environment {
                    name: name.clone(),
                    problem,
                };
                // The system's error would show a value that is not UTF-8.
                let text = env::var(name).map_err(|error| match error {
                    VarError::NotPresent => wrong("is not set; expected a passphrase".into()),
                    VarError::NotUnicode(_) => wrong("is no text; expected a passphrase".into()),
                })?;
                let text = Zeroizing::new(text);
                Secret::new(&text).map_err(|error| wrong(format!("has {error}")))
            }
        }
    }
}

/// The source; `***` for a literal passphrase.
impl fmt::Display for PassphraseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(secret) => secret.fmt(f),
            Self::File(path) => write!(f, "@{}", path.display()),
            Self::Environment(name) => write!(f, "@{ENVIRONMENT}{name}"),
        }
    }
}
