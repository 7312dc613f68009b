//! The keys and values of one URI.

use std::collections::BTreeMap;

use comity_congestion::table::{Parameters, Row, Value, nearest};

use super::error::UriError;
use super::key::{Given, Key};
use super::{Local, Mode, percent};

/// The settings of a URI, the part after the `?`, read with a table of keys.
#[derive(Debug)]
pub struct Query {
    keys: &'static [Key],
    scheme: &'static str,
    given: BTreeMap<&'static str, Given>,
    /// The parameters of the controller, unread until the controller is known.
    parameters: BTreeMap<String, String>,
}

impl Query {
    /// Reads `key=value&key=value`. `hint` returns the advice for a key of other tools.
    ///
    /// # Errors
    ///
    /// [`UriError`] for the first invalid key or value.
    pub fn read(
        keys: &'static [Key],
        scheme: &'static str,
        text: &str,
        hint: fn(&str) -> Option<&'static str>,
    ) -> Result<Self, UriError> {
        let mut query = Self {
            keys,
            scheme,
            given: BTreeMap::new(),
            parameters: BTreeMap::new(),
        };
        let mut follows_passphrase = false;
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            query.add(pair, hint).map_err(|error| match error {
                UriError::UnknownKey { nearest: None, .. } if follows_passphrase => {
                    UriError::PassphraseSplit
                }
                // The name may be the rest of a passphrase.
                UriError::UnknownKey {
                    scheme,
                    nearest,
                    known,
                    ..
                } if follows_passphrase => UriError::UnknownKey {
                    key: "***".into(),
                    scheme,
                    nearest,
                    known,
                },
                error => error,
            })?;
            let passphrase = pair.strip_prefix("passphrase=");
            follows_passphrase = passphrase.is_some_and(|text| !text.starts_with('@'));
        }
        Ok(query)
    }

    fn add(&mut self, pair: &str, hint: fn(&str) -> Option<&'static str>) -> Result<(), UriError> {
        let (name, text) = match pair.split_once('=') {
            Some((name, text)) => (name, Some(text)),
            None => (pair, None),
        };
        let decode = |text, part: &str| {
            percent::decode(text).map_err(|error| UriError::Percent {
                part: part.into(),
                error,
            })
        };
        let name = decode(name, "the name of a key")?;
        if let Some(parameter) = name.strip_prefix("cc.")
            && self.keys.iter().any(|key| key.name == "cc")
        {
            let text = decode(text.unwrap_or_default(), &name)?;
            let before = self.parameters.insert(parameter.into(), text);
            return before.map_or(Ok(()), |_| Err(UriError::Repeated(name)));
        }
        let known = self.keys.iter().find(|key| key.is_called(&name));
        let key = known.ok_or_else(|| self.unknown(&name, hint))?;
        // A flag without a value is true.
        let text = match (text, &*key.default) {
            (None, "true" | "false") => "true".into(),
            (text, _) => decode(text.unwrap_or_default(), key.name)?,
        };
        match self.given.insert(key.name, key.read(&text)?) {
            Some(_) => Err(UriError::Repeated(key.name.into())),
            None => Ok(()),
        }
    }

    fn unknown(&self, name: &str, hint: fn(&str) -> Option<&'static str>) -> UriError {
        let scheme = self.scheme;
        if let Some(hint) = hint(name) {
            let key = name.into();
            return UriError::ForeignKey { key, scheme, hint };
        }
        let names = self.keys.iter();
        let names = names.flat_map(|key| core::iter::once(&key.name).chain(key.aliases));
        UriError::UnknownKey {
            key: name.into(),
            scheme,
            nearest: nearest(name, names.copied()),
            known: self.keys.iter().map(|key| key.name).collect(),
        }
    }

    /// Refuses keys of the other mode.
    pub(super) fn check_mode(&self, mode: Mode) -> Result<(), UriError> {
        let misplaced = self.keys.iter().find_map(|key| {
            let belongs = key.only.filter(|only| *only != mode)?;
            self.has(key.name).then_some((key.name, belongs))
        });
        match misplaced {
            Some((key, belongs)) => Err(UriError::BelongsToOtherMode { key, belongs, mode }),
            None => Ok(()),
        }
    }

    /// Refuses the two keys together.
    pub(super) fn exclude(
        &self,
        first: &'static str,
        second: &'static str,
    ) -> Result<(), UriError> {
        match self.has(first) && self.has(second) {
            true => Err(UriError::Contradiction { first, second }),
            false => Ok(()),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    pub(super) fn given(&self, name: &str) -> Option<&Given> {
        self.given.get(name)
    }

    /// The value of the key `name`, if the URI has it.
    pub fn value(&self, name: &str) -> Option<&Value> {
        match self.given(name)? {
            Given::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The local address of the key `name`, if the URI has it.
    pub fn local(&self, name: &str) -> Option<Local> {
        match self.given(name)? {
            Given::Local(local) => Some(*local),
            _ => None,
        }
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        match self.value(name)? {
            Value::Flag(flag) => Some(*flag),
            _ => None,
        }
    }

    /// The parameters of the controller, read with its row of the table.
    pub(super) fn parameters(&self, row: &Row) -> Result<Parameters, UriError> {
        let mut parameters = Parameters::new();
        for (name, text) in &self.parameters {
            parameters.insert(name, row.parse(name, text)?);
        }
        Ok(parameters)
    }
}
