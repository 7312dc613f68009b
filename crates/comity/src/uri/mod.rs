//! Where media comes from and goes to, in the form that people write: `comity://host:9000?latency=400ms`.
//!
//! ```text
//! uri    = comity://[host]:port[?settings]      a host: caller; none, 0.0.0.0 or [::]: listener
//!        | udp://host:port[?settings]           to host     (rtp:// alike)
//!        | udp://[@[address]]:port[?settings]   from anybody who sends to the port, or to a multicast group
//!        | file:///path | path | -              a file, or standard input and output
//! settings = key=value[&key=value]..            percent-encoded; docs/uri.md lists the keys
//! ```
//!
//! The shape and most names of keys are those of SRT. One table, [`KEYS`], drives parsing, printing, messages
//! and documentation. Text becomes plain validated structs; nothing is looked up, opened or bound here.
//!
//! Differs from SRT's URIs in:
//! 1. every value can have its unit, and a bare number is in milliseconds, bit/s or bytes, whatever the key:
//!    SRT counts `linger` in seconds and `maxbw` in bytes per second;
//! 2. `[::]` without a mode listens, as `0.0.0.0` does;
//! 3. an unknown key is an error, and so is a known one that has no effect.
//!
//! ```
//! use comity::uri::{Role, Uri};
//!
//! let Uri::Comity(uri) = "comity://media.example:9000?latency=400ms&cc=cubic".parse()? else {
//!     unreachable!("it begins with comity://");
//! };
//! assert!(matches!(&uri.role, Role::Caller { port: 9_000, .. }));
//! assert_eq!(uri.latency.as_millis(), 400);
//!
//! let mistake = "comity://:9000?latensy=400".parse::<Uri>().unwrap_err();
//! assert!(mistake.to_string().ends_with("did you mean \"latency\"?"));
//! # Ok::<(), comity::uri::UriError>(())
//! ```

mod address;
mod comity;
mod error;
mod foreign;
mod keys;
mod media;
mod percent;
mod secret;
mod settings;

use core::fmt;
use core::str::FromStr;
use std::path::PathBuf;

use comity_congestion::table::nearest;

pub use address::{Host, Local};
pub use comity::{ComityUri, Controller, Credentials, Role};
pub use error::UriError;
pub use keys::{KEYS, Key, Kind, Mode, Scheme};
pub use media::{Direction, MediaUri};
pub use percent::PercentError;
pub use secret::Secret;

use address::{Written, read_port, split_port};
use percent::Encoded;
use settings::Settings;

/// Where media comes from or goes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Uri {
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

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        match text {
            "" => return Err(UriError::Empty),
            "-" => return Ok(Self::Pipe),
            _ => {}
        }
        let Some((found, rest)) = text.split_once(':').filter(|(found, _)| is_scheme(found)) else {
            return Ok(Self::File(text.into()));
        };
        let known = |name: &str| {
            let mut all = Scheme::ALL.into_iter();
            all.find(|scheme| scheme.name().eq_ignore_ascii_case(name))
        };
        let (scheme, rest) = match (known(found), rest.strip_prefix("//")) {
            (Some(scheme), Some(rest)) => (scheme, rest),
            (Some(scheme), None) => return Err(UriError::Slashes(scheme)),
            (None, Some(_)) => {
                return Err(UriError::Scheme {
                    found: found.into(),
                    nearest: nearest(found, Scheme::ALL.map(Scheme::name)),
                });
            }
            // A file whose name has a colon in it.
            (None, None) => return Ok(Self::File(text.into())),
        };
        if scheme == Scheme::File {
            return read_file(rest);
        }
        if rest.contains('#') {
            return Err(UriError::Fragment);
        }
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let address = match address.split_once('/') {
            None | Some((_, "")) => address.trim_end_matches('/'),
            Some((_, path)) => return Err(UriError::Path(format!("/{path}"))),
        };
        let settings = Settings::read(scheme, query)?;
        Ok(match scheme {
            Scheme::Comity => Self::Comity(Box::new(ComityUri::read(address, &settings)?)),
            Scheme::Rtp => Self::Rtp(MediaUri::read(scheme, address, &settings)?),
            Scheme::Udp | Scheme::File => Self::Udp(MediaUri::read(scheme, address, &settings)?),
        })
    }
}

/// As it would be read again, with whatever differs from its default; `passphrase=***` stands for any
/// passphrase.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comity(uri) => uri.fmt(f),
            Self::File(path) => {
                let path = path.to_string_lossy();
                match path.parse() {
                    Ok(Self::File(_)) => f.write_str(&path),
                    // What a relative path begins with would be taken for a scheme or a pipe.
                    _ if !path.starts_with('/') => write!(f, "./{path}"),
                    _ => write!(f, "file://{}", Encoded(&path)),
                }
            }
            Self::Pipe => f.write_str("-"),
            Self::Rtp(uri) => uri.write(f, Scheme::Rtp),
            Self::Udp(uri) => uri.write(f, Scheme::Udp),
        }
    }
}

/// RFC 3986, section 3.1; of a single letter it would be a drive.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

fn read_file(rest: &str) -> Result<Uri, UriError> {
    if rest == "con" {
        return Ok(Uri::Pipe);
    }
    if rest.contains('#') {
        return Err(UriError::Fragment);
    }
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    Settings::read(Scheme::File, query)?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    if !path.starts_with('/') {
        let host = path.split('/').next().unwrap_or_default();
        return Err(UriError::FileHost(host.into()));
    }
    let path = percent::decode(path).map_err(|error| UriError::Percent {
        place: "path".into(),
        error,
    })?;
    Ok(Uri::File(path.into()))
}

/// The host, if there is one, and the port.
fn read_address(text: &str, scheme: Scheme) -> Result<(Option<Host>, u16), UriError> {
    let wrong = |expected| UriError::Address {
        found: text.into(),
        expected,
    };
    let (host, port) = split_port(text).ok_or_else(|| {
        wrong("host:port, with the brackets of an IPv6 address around it, as in [2001:db8::1]:9000")
    })?;
    let host = match host {
        Written::Absent => None,
        Written::Bare(host) => Some(Host::read(host, false).ok_or_else(|| {
            wrong("a host that is an address or a name of letters, digits, hyphens and dots")
        })?),
        Written::Bracketed(host) => Some(
            Host::read(host, true)
                .ok_or_else(|| wrong("an IPv6 address between the brackets, without a zone"))?,
        ),
    };
    let port = port.ok_or_else(|| match scheme {
        Scheme::Comity => wrong("a port, as in comity://host:9000"),
        _ => wrong("a port, as in udp://host:5000"),
    })?;
    let port = read_port(port).ok_or_else(|| wrong("a port from 0 to 65535"))?;
    Ok((host, port))
}

/// Writes `?key=value&key=value`, leaving out what is as the table has it anyway.
fn write_settings(
    f: &mut fmt::Formatter<'_>,
    scheme: Scheme,
    pairs: &[(&str, Option<String>)],
) -> fmt::Result {
    let mut before = '?';
    for (name, text) in pairs {
        let Some(text) = text else { continue };
        let read = Key::find(scheme, name).and_then(|key| key.read(text).ok());
        if read.is_some() && read == settings::default(scheme, name) {
            continue;
        }
        let stars = *name == "passphrase";
        match stars {
            true => write!(f, "{before}{name}=***")?,
            false => write!(f, "{before}{}={}", Encoded(name), Encoded(text))?,
        }
        before = '&';
    }
    Ok(())
}
