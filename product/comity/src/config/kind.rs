//! The kinds of settings.

use core::fmt;

use comity_congestion::table::{self, Domain, Value};

use crate::session::Passphrase;

/// Who opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// This end, which knows the host and port of the other end.
    Caller,
    /// The other end. This end listens on a port.
    Listener,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Caller => "caller",
            Self::Listener => "listener",
        })
    }
}

/// The possible values of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The name of a congestion controller.
    Controller,
    /// A value with a range.
    Domain(Domain),
    /// A local address, a port, or both.
    Local,
    /// The path of a file.
    Path,
    /// A passphrase.
    Passphrase,
    /// A public key.
    PublicKey,
    /// A text of at most this many bytes.
    Text(usize),
    /// The upper six bits of the IP header's type of service, as the whole byte.
    TypeOfService,
}

impl Kind {
    /// The expected value, as in "expected ..".
    pub fn expected(&self) -> String {
        match self {
            Self::Controller => "the name of a controller, such as \"reno\"".into(),
            Self::Domain(domain) => domain.to_string(),
            Self::Local => {
                "an address, a port or both, as in \"192.0.2.1\", \":5000\" or \"[2001:db8::1]:5000\""
                    .into()
            }
            Self::Path => "the path of a file".into(),
            Self::Passphrase => format!("{} to {} bytes", Passphrase::LEAST, Passphrase::MOST),
            Self::PublicKey => "comity-public- and 64 hexadecimal digits".into(),
            Self::Text(max) => format!("1 to {max} bytes of text"),
            Self::TypeOfService => {
                "a multiple of 4 from 0 to 252, such as 0xb8: the lowest two bits belong to ECN"
                    .into()
            }
        }
    }

    /// Whether a setting may have this value.
    pub(crate) fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Domain(domain), value) => domain.admits(value),
            (Self::Controller, Value::Text(name)) => table::find(name).is_ok(),
            (Self::Text(max), Value::Text(text)) => (1..=*max).contains(&text.len()),
            (Self::TypeOfService, Value::Number(octet)) => {
                (0.0..=252.0).contains(octet) && octet % 4.0 == 0.0
            }
            _ => false,
        }
    }
}

/// A value in the form of the reference pages: whole numbers of MiB in that unit.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) if bytes.get() > 0 && bytes.get().is_multiple_of(1 << 20) => {
            format!("{}MiB", bytes.get() >> 20)
        }
        value => value.to_string(),
    }
}
