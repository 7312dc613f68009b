//! The keys and values of one URI.

use std::collections::BTreeMap;

use comity_congestion::table::{Parameters, Row, Value, nearest};
use comity_units::{Bytes, Rate, Span};

use super::error::UriError;
use super::foreign;
use super::keys::{Given, KEYS, Key, Mode, Scheme};
use super::percent;

/// What stands behind the `?`, read by the table.
pub(super) struct Settings {
    scheme: Scheme,
    given: BTreeMap<&'static str, Given>,
    /// The parameters of the controller, which can only be read once it is known.
    parameters: BTreeMap<String, String>,
}

impl Settings {
    pub(super) fn read(scheme: Scheme, query: &str) -> Result<Self, UriError> {
        let mut settings = Self {
            scheme,
            given: BTreeMap::new(),
            parameters: BTreeMap::new(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            settings.add(pair)?;
        }
        Ok(settings)
    }

    fn add(&mut self, pair: &str) -> Result<(), UriError> {
        let (name, text) = match pair.split_once('=') {
            Some((name, text)) => (name, Some(text)),
            None => (pair, None),
        };
        let decode = |text, place: &str| {
            percent::decode(text).map_err(|error| UriError::Percent {
                place: place.into(),
                error,
            })
        };
        let name = decode(name, "the name of a key")?;
        if let Some(parameter) = name.strip_prefix("cc.")
            && self.scheme == Scheme::Comity
        {
            let text = decode(text.unwrap_or_default(), &name)?;
            let before = self.parameters.insert(parameter.into(), text);
            return before.map_or(Ok(()), |_| Err(UriError::Repeated(name)));
        }
        let key = Key::find(self.scheme, &name).ok_or_else(|| self.unknown(&name))?;
        // A flag that is named is raised.
        let text = match (text, key.default) {
            (None, "true" | "false") => "true".into(),
            (text, _) => decode(text.unwrap_or_default(), key.name)?,
        };
        match self.given.insert(key.name, key.read(&text)?) {
            Some(_) => Err(UriError::Repeated(key.name.into())),
            None => Ok(()),
        }
    }

    fn unknown(&self, name: &str) -> UriError {
        if let Some(key) = KEYS.iter().find(|key| key.is_called(name)) {
            return UriError::BelongsToOtherScheme {
                key: key.name,
                scheme: self.scheme,
                belongs: key.schemes,
            };
        }
        if let Some(hint) = foreign::hint(name).filter(|_| self.scheme == Scheme::Comity) {
            let key = name.into();
            return UriError::ForeignKey { key, hint };
        }
        let known = || KEYS.iter().filter(|key| key.schemes.contains(&self.scheme));
        let names = || known().flat_map(|key| core::iter::once(&key.name).chain(key.aliases));
        UriError::UnknownKey {
            key: name.into(),
            scheme: self.scheme,
            nearest: nearest(name, names().copied()),
            known: known().map(|key| key.name).collect(),
        }
    }

    /// Refuses what belongs to the other mode.
    pub(super) fn check_mode(&self, mode: Mode) -> Result<(), UriError> {
        let misplaced = KEYS.iter().find_map(|key| {
            let belongs = key.only.filter(|only| *only != mode)?;
            (key.schemes.contains(&self.scheme) && self.has(key.name))
                .then_some((key.name, belongs))
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

    pub(super) fn has(&self, name: &'static str) -> bool {
        self.given.contains_key(name)
    }

    /// What was given, or the default.
    pub(super) fn get(&self, name: &'static str) -> Option<Given> {
        if let Some(given) = self.given.get(name) {
            return Some(given.clone());
        }
        default(self.scheme, name)
    }

    fn value(&self, name: &'static str) -> Value {
        match self.get(name) {
            Some(Given::Value(value)) => value,
            other => unreachable!("the table gives {name} a value with a default, not {other:?}"),
        }
    }

    pub(super) fn span(&self, name: &'static str) -> Span {
        match self.value(name) {
            Value::Span(span) => span,
            other => unreachable!("the table gives {name} a time, not {other:?}"),
        }
    }

    pub(super) fn rate(&self, name: &'static str) -> Rate {
        match self.value(name) {
            Value::Rate(rate) => rate,
            other => unreachable!("the table gives {name} a rate, not {other:?}"),
        }
    }

    pub(super) fn bytes(&self, name: &'static str) -> Bytes {
        match self.value(name) {
            Value::Bytes(bytes) => bytes,
            other => unreachable!("the table gives {name} an amount, not {other:?}"),
        }
    }

    pub(super) fn flag(&self, name: &'static str) -> bool {
        match self.value(name) {
            Value::Flag(flag) => flag,
            other => unreachable!("the table makes {name} a flag, not {other:?}"),
        }
    }

    /// A number of one byte.
    pub(super) fn octet(&self, name: &'static str) -> Option<u8> {
        match self.get(name) {
            // The table keeps it in range, so nothing is cut.
            Some(Given::Value(Value::Number(number))) => Some(number as u8),
            None => None,
            other => unreachable!("the table makes {name} a number, not {other:?}"),
        }
    }

    /// What the chosen word stands for.
    pub(super) fn choice<T: Copy>(&self, name: &'static str, values: &[(&str, T)]) -> Option<T> {
        let Some(Given::Value(Value::Text(text))) = self.get(name) else {
            return None;
        };
        let found = values.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value)
    }

    /// The parameters of the controller, read by its row.
    pub(super) fn parameters(&self, row: &Row) -> Result<Parameters, UriError> {
        let mut parameters = Parameters::new();
        for (name, text) in &self.parameters {
            parameters.insert(name, row.parse(name, text)?);
        }
        Ok(parameters)
    }
}

/// The default of a key, read.
pub(super) fn default(scheme: Scheme, name: &str) -> Option<Given> {
    let key = Key::find(scheme, name).filter(|key| !key.default.is_empty())?;
    Some(
        key.read(key.default)
            .expect("the defaults of the table read"),
    )
}
