//! What can be wrong with a URI.

use core::fmt;

use comity_congestion::table::{ParameterError, UnknownController};
use comity_units::Span;
use thiserror::Error;

use super::address::is_address;
use super::{Mode, PercentError};
use crate::session::CredentialError;

/// Why a text is no `comity://` URI. No message has a passphrase in it.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum UriError {
    /// The host or the port do not read.
    #[error("address: is {found:?}; expected {expected}")]
    Address {
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: String,
    },
    /// A key is there that the other way of connecting has.
    #[error("{key}: is a key of a {belongs}, and this URI is of a {mode}; leave it out")]
    BelongsToOtherMode {
        /// The key.
        key: &'static str,
        /// Where it belongs.
        belongs: Mode,
        /// What the URI is.
        mode: Mode,
    },
    /// Two keys cannot be set together.
    #[error("{first} and {second} exclude each other; leave one of them out")]
    Contradiction {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// There is no such congestion controller.
    #[error("cc: {0}")]
    Controller(#[from] UnknownController),
    /// A passphrase or key is none.
    #[error("{key}: {}", without_place(*.error))]
    Credential {
        /// The key of the URI.
        key: &'static str,
        /// What is wrong with it.
        error: CredentialError,
    },
    /// A `#` begins a part that these URIs do not have.
    #[error("\"#\" ends a URI; expected \"%23\" for the character itself")]
    Fragment,
    /// A key needs another one.
    #[error("{because} also needs {key}=")]
    Missing {
        /// Why it has to be there.
        because: &'static str,
        /// The key that is not there.
        key: &'static str,
    },
    /// A time that is one in the microseconds of ffmpeg.
    #[error(
        "{key}: {found:?} has no unit. Comity reads milliseconds, ffmpeg microseconds; \
         expected {span} for the meaning of ffmpeg, or a number with a unit"
    )]
    Microseconds {
        /// The key.
        key: &'static str,
        /// What stands there.
        found: String,
        /// What it is in microseconds.
        span: Span,
    },
    /// A caller has nobody to call.
    #[error("mode: is caller, but the URI has no host; expected one, as in comity://host:9000")]
    NobodyToCall,
    /// A parameter of the congestion controller.
    #[error("cc: {0}")]
    Parameter(#[from] ParameterError),
    /// A path stands where none can.
    #[error("{0:?} follows the port; expected nothing or \"?key=value\" there")]
    Path(String),
    /// The percent-encoding of a key or of its value does not read.
    #[error("{place}: {error}")]
    Percent {
        /// The key, or what the text is.
        place: String,
        /// What is wrong.
        error: PercentError,
    },
    /// A key stands there twice.
    #[error("{0}: appears twice; leave one of them out")]
    Repeated(String),
    /// The text is no URI of this scheme.
    #[error("is {found:?}; {}", did_you_mean_address(.found))]
    NoUri {
        /// What stands there, without settings.
        found: String,
    },
    /// A key of another protocol's tools.
    #[error("there is no key {key:?} for {scheme}://: {hint}")]
    ForeignKey {
        /// What stands there.
        key: String,
        /// The scheme.
        scheme: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// There is no such key.
    #[error("there is no key {key:?} for {scheme}://; {}", DidYouMean(*.nearest, .known))]
    UnknownKey {
        /// What stands there.
        key: String,
        /// The scheme.
        scheme: &'static str,
        /// The known key that comes nearest.
        nearest: Option<&'static str>,
        /// The keys that there are.
        known: Vec<&'static str>,
    },
    /// A value does not read, or is out of range.
    #[error("{key}: is {found:?}; expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What stands there.
        found: String,
        /// What could.
        expected: String,
    },
    /// A key has no value.
    #[error("{key}: has no value; expected {expected}")]
    ValueMissing {
        /// The key.
        key: &'static str,
        /// What could stand there.
        expected: String,
    },
}

impl UriError {
    /// The text, whose settings may hold a passphrase, is no URI of this scheme.
    pub(super) fn no_uri(text: &str) -> Self {
        Self::NoUri {
            found: text.split('?').next().unwrap_or_default().into(),
        }
    }
}

/// What would be a URI.
fn did_you_mean_address(found: &str) -> String {
    match is_address(found) {
        true => format!("did you mean comity://{found}?"),
        false => "expected comity://host:port or comity://:port".into(),
    }
}

/// What is wrong, without the word before it, which is not the key's name.
fn without_place(error: CredentialError) -> String {
    let text = error.to_string();
    match text.split_once(": ") {
        Some((_, wrong)) => wrong.to_owned(),
        None => text,
    }
}

/// `did you mean "x"?`, or else all that there are.
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
