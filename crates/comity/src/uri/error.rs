//! What can be wrong with a URI.

use core::fmt;

use comity_congestion::table::{ParameterError, UnknownController};
use thiserror::Error;

use super::keys::{Mode, Scheme};
use super::percent::PercentError;
use crate::session::CredentialError;

/// Why a text is no URI. No message has a passphrase in it.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum UriError {
    /// A scheme that sends nothing to anybody has something before its path.
    #[error("file: the host is {0:?}; expected none, as in file:///path")]
    FileHost(String),
    /// The host or the port do not read.
    #[error("address: is {found:?}; expected {expected}")]
    Address {
        /// What stands there.
        found: String,
        /// What could stand there.
        expected: &'static str,
    },
    /// A key is there that the other way of connecting has.
    #[error("{key}: belongs to a {belongs}; this URI is a {mode}'s")]
    BelongsToOtherMode {
        /// The key.
        key: &'static str,
        /// Where it belongs.
        belongs: Mode,
        /// What the URI is.
        mode: Mode,
    },
    /// A key is there that only other schemes have.
    #[error("{key}: is not known to {scheme}://; it belongs to {}", List(.belongs))]
    BelongsToOtherScheme {
        /// The key.
        key: &'static str,
        /// The scheme of the URI.
        scheme: Scheme,
        /// The schemes that have the key.
        belongs: &'static [Scheme],
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
    /// There is nothing.
    #[error(
        "the URI is empty; expected one such as \"comity://host:9000\", \"udp://:5000\", a path, or \"-\""
    )]
    Empty,
    /// A `#` begins a part that these URIs do not have.
    #[error("\"#\" ends a URI; expected \"%23\" where the character itself is meant")]
    Fragment,
    /// A key needs another one.
    #[error("{key}: is missing; {because} needs it")]
    Missing {
        /// The key that is not there.
        key: &'static str,
        /// Why it has to be.
        because: &'static str,
    },
    /// A caller has nobody to call.
    #[error("mode: is caller; expected a host to call, as in comity://host:9000")]
    NobodyToCall,
    /// A parameter of the congestion controller.
    #[error("cc: {0}")]
    Parameter(#[from] ParameterError),
    /// A path stands where none can.
    #[error("after the port stands {0:?}; expected nothing but \"?key=value\"")]
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
    #[error("{0}: stands there twice")]
    Repeated(String),
    /// A scheme that is not known.
    #[error("there is no scheme {found:?}; {}", DidYouMean(*.nearest, &Scheme::ALL))]
    Scheme {
        /// What stands there.
        found: String,
        /// The known scheme that comes nearest.
        nearest: Option<&'static str>,
    },
    /// Nothing but a colon behind a scheme.
    #[error("{0}: is followed by \":\"; expected \"{0}://\"")]
    Slashes(Scheme),
    /// A key of another protocol's tools.
    #[error("there is no key {key:?} for comity://: {hint}")]
    ForeignKey {
        /// What stands there.
        key: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// There is no such key.
    #[error("there is no key {key:?} for {scheme}://; {}", DidYouMean(*.nearest, .known))]
    UnknownKey {
        /// What stands there.
        key: String,
        /// The scheme.
        scheme: Scheme,
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
pub(super) struct List<'a, T>(pub(super) &'a [T]);

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
