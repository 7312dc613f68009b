//! The ends of a relay as URIs.
//!
//! ```text
//! uri = comity://..                       a connection: `comity::uri`
//!     | udp://host:port[?settings]        to host; as an input, on that address (rtp:// alike)
//!     | udp://[@[address]]:port[?..]      from anybody who sends to the port, or to a group
//!     | file:///path | path | -           a file, or standard input and output
//! ```
//!
//! Text becomes plain, validated structs. This module looks up, opens and binds nothing.

mod foreign;
mod media;
#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;

use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;

use comity::uri::parts::{Encoded, Query, decode};
use comity::uri::{Uri as ComityUri, UriError};
use comity_congestion::table::nearest;
use thiserror::Error;

pub(crate) use comity::uri::parts::without_secrets;
pub(crate) use foreign::bridge_to_check;
pub(crate) use media::{Direction, MediaUri, PAYLOAD};

/// An input or an output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Uri {
    /// `comity://`
    Comity(Box<ComityUri>),
    /// `file:///path`, or a path
    File(PathBuf),
    /// `-` or `file://con`: standard input or output.
    Pipe,
    /// `rtp://`
    Rtp(MediaUri),
    /// `udp://`
    Udp(MediaUri),
}

/// The schemes, in the order of messages.
const SCHEMES: [&str; 4] = ["comity", "file", "rtp", "udp"];

/// Why a text is not a URI. No message contains a passphrase.
#[derive(Clone, Debug, PartialEq, Error)]
pub(crate) enum PlaceError {
    #[error(transparent)]
    Uri(#[from] UriError),
    /// The text is empty.
    #[error(
        "the URI is empty; expected one such as \"comity://host:9000\", \"udp://:5000\", a path, or \"-\""
    )]
    Empty,
    /// A `file` URI names a host.
    #[error("file: the host is {0:?}; expected none, as in file:///path")]
    FileHost(String),
    /// An unknown scheme.
    #[error("there is no scheme {found:?}; {hint}")]
    Scheme { found: String, hint: String },
    /// A scheme with a colon and without slashes.
    #[error("{0}: is followed by \":\"; expected \"{0}://\"")]
    Slashes(&'static str),
}

impl FromStr for Uri {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        match text {
            "" => return Err(PlaceError::Empty),
            "-" => return Ok(Self::Pipe),
            _ => {}
        }
        let Some((found, rest)) = text.split_once(':').filter(|(found, _)| is_scheme(found)) else {
            return Ok(Self::File(text.into()));
        };
        let mut schemes = SCHEMES.into_iter();
        let known = schemes.find(|scheme| scheme.eq_ignore_ascii_case(found));
        let (scheme, rest) = match (known, rest.strip_prefix("//")) {
            (Some(scheme), Some(rest)) => (scheme, rest),
            (Some(scheme), None) => return Err(PlaceError::Slashes(scheme)),
            (None, Some(_)) => return Err(unknown(found)),
            // A file whose name contains a colon.
            (None, None) => return Ok(Self::File(text.into())),
        };
        Ok(match scheme {
            "comity" => Self::Comity(Box::new(text.parse()?)),
            "file" => read_file(rest)?,
            "rtp" => Self::Rtp(MediaUri::read(scheme, rest)?),
            _ => Self::Udp(MediaUri::read(scheme, rest)?),
        })
    }
}

fn unknown(found: &str) -> PlaceError {
    let hint = foreign::bridge(found).unwrap_or_else(|| match nearest(found, SCHEMES) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => "there are comity, file, rtp and udp".into(),
    });
    PlaceError::Scheme {
        found: found.into(),
        hint,
    }
}

/// Prints a URI that parses to the same value, with all settings that differ from their defaults.
/// `passphrase=***` replaces any passphrase.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comity(uri) => uri.fmt(f),
            Self::File(path) => {
                let path = path.to_string_lossy();
                match path.parse() {
                    Ok(Self::File(_)) => f.write_str(&path),
                    // The beginning of a relative path could be mistaken for a scheme or a pipe.
                    _ if !path.starts_with('/') => write!(f, "./{path}"),
                    _ => write!(f, "file://{}", Encoded(&path)),
                }
            }
            Self::Pipe => f.write_str("-"),
            Self::Rtp(uri) => uri.write(f, "rtp"),
            Self::Udp(uri) => uri.write(f, "udp"),
        }
    }
}

/// RFC 3986, section 3.1; a single letter would be a drive.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn read_file(rest: &str) -> Result<Uri, PlaceError> {
    if rest == "con" {
        return Ok(Uri::Pipe);
    }
    if rest.contains('#') {
        return Err(UriError::Fragment.into());
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Query::read(&[], "file", query, |_| Some("a file has no settings"))?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    if !path.starts_with('/') {
        let host = path.split('/').next().unwrap_or_default();
        return Err(PlaceError::FileHost(host.into()));
    }
    let path = decode(path).map_err(|error| UriError::Percent {
        part: "path".into(),
        error,
    })?;
    Ok(Uri::File(path.into()))
}
