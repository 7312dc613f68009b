//! The keys of URIs: their names, and how their values are read.

use std::borrow::Cow;
use std::path::PathBuf;

use comity_congestion::table::{self, Domain, Value};
use comity_units::{DataSize, Rate, Span};

use super::{Local, PassphraseSource, UriError};
use crate::config::{Kind, Mode};
use crate::session::{CredentialError, PublicKey, StaticKey};

/// A key of URIs.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its main name.
    pub name: &'static str,
    /// Other names: SRT's, where they differ.
    pub aliases: &'static [&'static str],
    /// Its possible values. Without a unit, times are in milliseconds, rates in bit/s and amounts
    /// in bytes.
    pub kind: Kind,
    /// Alternative words for values, with their meanings.
    pub words: &'static [(&'static str, &'static str)],
    /// The default value. Empty if there is none, or if it depends on another key.
    pub default: Cow<'static, str>,
    /// Its effect, in one or two sentences.
    pub summary: Cow<'static, str>,
    /// The only mode that has it; `None` for both.
    pub only: Option<Mode>,
}

/// A value from a URI.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    Value(Value),
    Local(Local),
    Path(PathBuf),
    Passphrase(PassphraseSource),
    PublicKey(PublicKey),
}

impl Key {
    /// A key of both modes, without other names.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            kind,
            words: &[],
            default: Cow::Borrowed(default),
            summary: Cow::Borrowed(summary),
            only: None,
        }
    }

    /// Adds other names.
    #[must_use]
    pub const fn or(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Limits the key to one mode.
    #[must_use]
    pub(crate) const fn only(mut self, mode: Mode) -> Self {
        self.only = Some(mode);
        self
    }

    /// Whether this is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The expected value, as in "expected ..".
    pub fn expected(&self) -> String {
        let expected = self.kind.expected();
        match self.kind {
            Kind::Domain(Domain::Span { .. }) => {
                format!("{expected}, such as \"120ms\"; a bare number is in milliseconds")
            }
            Kind::Domain(Domain::Rate { .. }) => {
                format!("{expected}, such as \"20Mbps\"; a bare number is in bit/s")
            }
            Kind::Domain(Domain::Bytes { min, .. }) => {
                let such = if min > DataSize::new(1_400) {
                    "8MiB"
                } else {
                    "1400B"
                };
                format!("{expected}, such as \"{such}\"; a bare number is in bytes")
            }
            _ => expected,
        }
    }

    /// Reads a percent-decoded value.
    pub(crate) fn read(&self, text: &str) -> Result<Given, UriError> {
        let key = self.name;
        if text.is_empty() {
            return Err(UriError::ValueMissing {
                key,
                expected: self.expected(),
            });
        }
        let words = self.words.iter().find(|(word, _)| *word == text);
        let text = words.map_or(text, |&(_, meant)| meant);
        if key == "latency"
            && let Some(span) = in_microseconds(text)
        {
            return Err(UriError::Microseconds {
                key,
                found: text.into(),
                span,
            });
        }
        let credential = |error| UriError::Credential { key, error };
        let given = match self.kind {
            Kind::Controller => Some(Given::Value(Value::Text(table::find(text)?.name.into()))),
            Kind::Domain(domain) => value(&domain, text).map(Given::Value),
            Kind::Local => Local::read(text).map(Given::Local),
            Kind::Path if text.starts_with(StaticKey::MARK) => {
                return Err(credential(CredentialError::KeyNotInFile));
            }
            Kind::Path => Some(Given::Path(text.into())),
            Kind::Passphrase => Some(Given::Passphrase(
                PassphraseSource::new(text).map_err(credential)?,
            )),
            Kind::PublicKey => Some(Given::PublicKey(text.parse().map_err(credential)?)),
            Kind::Text(_) => Some(Given::Value(Value::Text(text.to_owned().into()))),
            Kind::TypeOfService => {
                octet(text).map(|octet| Given::Value(Value::Number(f64::from(octet))))
            }
        };
        let admitted = given.filter(|given| match given {
            Given::Value(value) => self.kind.admits(value),
            _ => true,
        });
        admitted.ok_or_else(|| UriError::Value {
            key,
            found: text.into(),
            expected: self.expected(),
        })
    }
}

/// The largest bare number that counts as milliseconds: nobody uses more. ffmpeg counts in
/// microseconds, and 20 ms already exceed this number.
const MAX_BARE_MILLISECONDS: u64 = 10_000;

/// The time that a bare number means in ffmpeg's microseconds.
fn in_microseconds(text: &str) -> Option<Span> {
    let number: u64 = text.parse().ok()?;
    (number > MAX_BARE_MILLISECONDS).then(|| Span::from_micros(number))
}

fn value(domain: &Domain, text: &str) -> Option<Value> {
    let bare = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'_');
    let with_unit = |unit: &str| match bare {
        true => Cow::Owned(format!("{text}{unit}")),
        false => Cow::Borrowed(text),
    };
    let unlimited = text == "unlimited";
    Some(match *domain {
        Domain::Span { max: Span::MAX, .. } if unlimited => Value::Span(Span::MAX),
        Domain::Rate { max: Rate::MAX, .. } if unlimited => Value::Rate(Rate::MAX),
        Domain::Span { .. } => Value::Span(with_unit("ms").parse().ok()?),
        Domain::Rate { .. } => Value::Rate(with_unit("bps").parse().ok()?),
        Domain::Bytes { .. } => Value::Bytes(with_unit("B").parse().ok()?),
        Domain::Number { .. } | Domain::Whole { .. } => Value::Number(text.parse().ok()?),
        Domain::Flag => Value::Flag(match text {
            "1" | "true" | "yes" | "on" => true,
            "0" | "false" | "no" | "off" => false,
            _ => return None,
        }),
        Domain::Choice(choices) => {
            let choice = choices.iter().find(|choice| **choice == text)?;
            Value::Text(Cow::Borrowed(choice))
        }
    })
}

fn octet(text: &str) -> Option<u8> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let octet = u8::from_str_radix(digits, radix).ok();
    octet.filter(|_| !digits.starts_with('+'))
}
