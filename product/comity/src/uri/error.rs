//! Errors of URIs.

use core::fmt;

use comity_congestion::table::{ParameterError, UnknownController};
use comity_units::Span;
use thiserror::Error;

use super::address::is_address;
use super::percent::PercentError;
use crate::config::kind::Mode;
use crate::session::CredentialError;

/// Why a text is not a `comity://` URI. No message contains a passphrase.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum UriError {
    /// The host or the port is invalid.
    #[error("address: is {found:?}; expected {expected}")]
    Address {
        /// The text found.
        found: String,
        /// The expected form.
        expected: String,
    },
    /// The URI has a key of the other mode.
    #[error("{key}: is a key of a {belongs}, and this URI is of a {mode}; leave it out")]
    BelongsToOtherMode {
        /// The key.
        key: &'static str,
        /// The mode of the key.
        belongs: Mode,
        /// The mode of the URI.
        mode: Mode,
    },
    /// Two keys cannot be set together.
    #[error("{first} and {second} exclude each other; leave one of them out")]
    Contradiction {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// There is no such congestion controller.
    #[error("cc: {0}")]
    Controller(#[from] UnknownController),
    /// A passphrase or key is invalid.
    #[error("{key}: {error}")]
    Credential {
        /// The key of the URI.
        key: &'static str,
        /// The reason.
        error: CredentialError,
    },
    /// A `#` begins a part that these URIs do not have.
    #[error("\"#\" ends a URI; expected \"%23\" for the character itself")]
    Fragment,
    /// A key requires another one.
    #[error("{because} also needs {key}=")]
    Missing {
        /// The key or mode that requires it.
        because: &'static str,
        /// The missing key.
        key: &'static str,
    },
    /// A time without a unit whose number looks like ffmpeg's microseconds.
    #[error(
        "{key}: {found:?} has no unit. Comity reads milliseconds, ffmpeg microseconds; \
         expected {span} for the meaning of ffmpeg, or a number with a unit"
    )]
    Microseconds {
        /// The key.
        key: &'static str,
        /// The text found.
        found: String,
        /// The time in microseconds.
        span: Span,
    },
    /// The URI of a caller has no host.
    #[error("mode: is caller, but the URI has no host; expected one, as in comity://host:9000")]
    NobodyToCall,
    /// A parameter of the congestion controller is invalid.
    #[error("cc: {0}")]
    Parameter(#[from] ParameterError),
    /// The URI has a path.
    #[error("{0:?} follows the port; expected nothing or \"?key=value\" there")]
    Path(String),
    /// `passphrase` occurs where no setting begins. Other messages about that part would show it.
    #[error(
        "passphrase: is not at the start of a setting; expected \"?passphrase=..\" or \"&passphrase=..\""
    )]
    PassphraseMisplaced,
    /// A passphrase contains an `&` that no setting follows.
    #[error("passphrase: no setting follows its \"&\"; expected \"%26\" for the character itself")]
    PassphraseSplit,
    /// The percent-encoding of a key or value is invalid.
    #[error("{part}: {error}")]
    Percent {
        /// The key, or the kind of text.
        part: String,
        /// The reason.
        error: PercentError,
    },
    /// A key occurs twice.
    #[error("{0}: appears twice; leave one of them out")]
    Repeated(String),
    /// The text is not a URI of this scheme.
    #[error("is {found:?}; {}", did_you_mean_address(.found))]
    NoUri {
        /// The text found, without settings.
        found: String,
    },
    /// The key belongs to the tools of another protocol.
    #[error("there is no key {key:?} for {scheme}://: {hint}")]
    ForeignKey {
        /// The text found.
        key: String,
        /// The scheme.
        scheme: &'static str,
        /// The advice.
        hint: &'static str,
    },
    /// There is no such key.
    #[error("there is no key {key:?} for {scheme}://; {}", DidYouMean(*.nearest, .known))]
    UnknownKey {
        /// The text found.
        key: String,
        /// The scheme.
        scheme: &'static str,
        /// The most similar known key.
        nearest: Option<&'static str>,
        /// All known keys.
        known: Vec<&'static str>,
    },
    /// A value is invalid or out of range.
    #[error("{key}: is {found:?}; expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// The text found.
        found: String,
        /// The expected form.
        expected: String,
    },
    /// A key has no value.
    #[error("{key}: has no value; expected {expected}")]
    ValueMissing {
        /// The key.
        key: &'static str,
        /// The expected form.
        expected: String,
    },
}

/// A suggestion of a valid URI.
fn did_you_mean_address(found: &str) -> String {
    match is_address(found) {
        true => format!("did you mean comity://{found}?"),
        false => "expected comity://host:port or comity://:port".into(),
    }
}

/// `did you mean "x"?`, or else all known names.
struct DidYouMean<'a, T>(Option<&'static str>, &'a [T]);

impl<T: fmt::Display> fmt::Display for DidYouMean<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, "did you mean {nearest:?}?"),
            None => write!(f, "there are {}", List(self.1)),
        }
    }
}

/// `a, b and c`.
struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.0.iter().enumerate() {
            let before = match at {
                0 => "",
                _ if at + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{item}")?;
        }
        Ok(())
    }
}
