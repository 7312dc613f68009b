//! The values of parameters, and their domains.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use comity_units::{DataSize, Rate, Span};

use super::nearest::nearest;

/// What a parameter can be set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number, in the unit of its [`Domain`] if that has one.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A time.
    Span(Span),
    /// A rate.
    Rate(Rate),
    /// An amount of data.
    Bytes(DataSize),
    /// One of several words.
    Text(Cow<'static, str>),
}

/// As a person would write it. The largest value of a unit is `unlimited`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Span(Span::MAX) | Self::Rate(Rate::MAX) | Self::Bytes(DataSize::MAX) => {
                f.write_str("unlimited")
            }
            Self::Span(span) => span.fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A setting of a controller.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its value if it is not set.
    pub default: Value,
    /// What it can be.
    pub domain: Domain,
}

/// What a parameter can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A number in this range.
    Number {
        /// The least.
        min: f64,
        /// The largest.
        max: f64,
        /// Its unit, empty when it has none.
        unit: &'static str,
    },
    /// A whole number in this range.
    Whole {
        /// The least.
        min: u32,
        /// The largest.
        max: u32,
        /// Its unit, empty when it has none.
        unit: &'static str,
    },
    /// Yes or no.
    Flag,
    /// A time in this range.
    Span {
        /// The least.
        min: Span,
        /// The largest.
        max: Span,
    },
    /// A rate in this range.
    Rate {
        /// The least.
        min: Rate,
        /// The largest.
        max: Rate,
    },
    /// An amount of data in this range.
    Bytes {
        /// The least.
        min: DataSize,
        /// The largest.
        max: DataSize,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl Domain {
    /// Whether `value` is of the right kind and in range.
    pub fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number { min, max, .. }, Value::Number(number)) => {
                (*min..=*max).contains(number)
            }
            (Self::Whole { min, max, .. }, Value::Number(number)) => {
                (f64::from(*min)..=f64::from(*max)).contains(number)
                    && libm::floor(*number) == *number
            }
            (Self::Flag, Value::Flag(_)) => true,
            (Self::Span { min, max }, Value::Span(span)) => (min..=max).contains(&span),
            (Self::Rate { min, max }, Value::Rate(rate)) => (min..=max).contains(&rate),
            (Self::Bytes { min, max }, Value::Bytes(bytes)) => (min..=max).contains(&bytes),
            (Self::Choice(choices), Value::Text(text)) => choices.contains(&text.as_ref()),
            _ => false,
        }
    }
}

/// The text after "expected" in an error.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |unit: &str| if unit.is_empty() { "" } else { " of " };
        match *self {
            Self::Number { min, max, unit } => {
                write!(f, "a number{}{unit} from {min} to {max}", of(unit))
            }
            Self::Whole { min, max, unit } => {
                write!(f, "a whole number{}{unit} from {min} to {max}", of(unit))
            }
            Self::Flag => f.write_str("true or false"),
            Self::Span {
                min,
                max: Span::MAX,
            } => write!(f, "a time of at least {min}"),
            Self::Span { min, max } => write!(f, "a time from {min} to {max}"),
            Self::Rate {
                min,
                max: Rate::MAX,
            } => write!(f, "a rate of at least {min}"),
            Self::Rate { min, max } => write!(f, "a rate from {min} to {max}"),
            Self::Bytes {
                min,
                max: DataSize::MAX,
            } => write!(f, "at least {min}"),
            Self::Bytes { min, max } => write!(f, "from {min} to {max}"),
            Self::Choice(choices) => match choices.split_last() {
                Some((last, rest)) if !rest.is_empty() => {
                    for (at, choice) in rest.iter().enumerate() {
                        write!(f, "{}{choice:?}", if at == 0 { "" } else { ", " })?;
                    }
                    write!(f, " or {last:?}")
                }
                Some((only, _)) => write!(f, "{only:?}"),
                None => f.write_str("nothing"),
            },
        }
    }
}

impl Parameter {
    /// Reads the text of a value. `unlimited` is a value if the domain has no upper limit.
    ///
    /// # Errors
    /// [`ParameterError::OutOfRange`] if the text is not an admissible value.
    pub fn parse(&self, text: &str) -> Result<Value, ParameterError> {
        let read = match (&self.domain, text) {
            (Domain::Span { max: Span::MAX, .. }, "unlimited") => Some(Value::Span(Span::MAX)),
            (Domain::Rate { max: Rate::MAX, .. }, "unlimited") => Some(Value::Rate(Rate::MAX)),
            (
                Domain::Bytes {
                    max: DataSize::MAX, ..
                },
                "unlimited",
            ) => Some(Value::Bytes(DataSize::MAX)),
            (Domain::Number { .. } | Domain::Whole { .. }, _) => {
                text.parse().ok().map(Value::Number)
            }
            (Domain::Flag, _) => text.parse().ok().map(Value::Flag),
            (Domain::Span { .. }, _) => text.parse().ok().map(Value::Span),
            (Domain::Rate { .. }, _) => text.parse().ok().map(Value::Rate),
            (Domain::Bytes { .. }, _) => text.parse().ok().map(Value::Bytes),
            (Domain::Choice(_), _) => None,
        };
        let value = read.unwrap_or_else(|| Value::Text(Cow::Owned(text.to_owned())));
        self.check(&value)?;
        Ok(value)
    }

    fn check(&self, value: &Value) -> Result<(), ParameterError> {
        if self.domain.admits(value) {
            return Ok(());
        }
        Err(ParameterError::OutOfRange {
            name: self.name,
            value: value.clone(),
            expected: self.domain,
        })
    }
}

/// The parameters that are set, ordered by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    values: BTreeMap<String, Value>,
}

impl Parameters {
    /// Nothing set.
    pub const fn new() -> Self {
        Self {
            values: BTreeMap::new(),
        }
    }

    /// Sets a parameter and returns what it was set to before.
    pub fn insert(&mut self, name: &str, value: Value) -> Option<Value> {
        self.values.insert(name.to_owned(), value)
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.insert(name, value);
        self
    }

    /// What the parameter is set to, if it is set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// All that is set, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// All that is set, as [`Row::parse_list`](super::Row::parse_list) reads it.
    pub fn to_list(&self) -> String {
        let pairs: Vec<String> = self
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("&")
    }

    pub(super) fn check_names(&self, known: &[Parameter]) -> Result<(), ParameterError> {
        match self
            .values
            .keys()
            .find(|name| known.iter().all(|known| known.name != **name))
        {
            Some(name) => Err(ParameterError::unknown(name, known)),
            None => Ok(()),
        }
    }

    /// What `parameter` is set to, or its default, if that is admissible.
    fn value<'a>(&'a self, parameter: &'a Parameter) -> Result<&'a Value, ParameterError> {
        let value = self.get(parameter.name).unwrap_or(&parameter.default);
        parameter.check(value)?;
        Ok(value)
    }

    pub(super) fn number(&self, parameter: &Parameter) -> Result<f64, ParameterError> {
        match self.value(parameter)? {
            Value::Number(number) => Ok(*number),
            other => Err(parameter.mistyped(other)),
        }
    }

    pub(super) fn flag(&self, parameter: &Parameter) -> Result<bool, ParameterError> {
        match self.value(parameter)? {
            Value::Flag(flag) => Ok(*flag),
            other => Err(parameter.mistyped(other)),
        }
    }

    pub(super) fn span(&self, parameter: &Parameter) -> Result<Span, ParameterError> {
        match self.value(parameter)? {
            Value::Span(span) => Ok(*span),
            other => Err(parameter.mistyped(other)),
        }
    }

    pub(super) fn rate(&self, parameter: &Parameter) -> Result<Rate, ParameterError> {
        match self.value(parameter)? {
            Value::Rate(rate) => Ok(*rate),
            other => Err(parameter.mistyped(other)),
        }
    }

    pub(super) fn bytes(&self, parameter: &Parameter) -> Result<DataSize, ParameterError> {
        match self.value(parameter)? {
            Value::Bytes(bytes) => Ok(*bytes),
            other => Err(parameter.mistyped(other)),
        }
    }

    /// The value that belongs to the chosen word.
    pub(super) fn choice<T: Copy>(
        &self,
        parameter: &Parameter,
        values: &[(&str, T)],
    ) -> Result<T, ParameterError> {
        let value = self.value(parameter)?;
        values
            .iter()
            .find(|(word, _)| matches!(value, Value::Text(text) if text == word))
            .map(|(_, chosen)| *chosen)
            .ok_or_else(|| parameter.mistyped(value))
    }
}

impl Parameter {
    fn mistyped(&self, value: &Value) -> ParameterError {
        ParameterError::OutOfRange {
            name: self.name,
            value: value.clone(),
            expected: self.domain,
        }
    }
}

/// Why a controller cannot be built.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// Two parameters cannot be set together.
    Conflict {
        /// The first parameter.
        first: &'static str,
        /// The second parameter.
        second: &'static str,
    },
    /// A value is of another kind, or not in the range.
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: Value,
        /// What it can be.
        expected: Domain,
    },
    /// There is no such parameter.
    Unknown {
        /// The unknown name.
        name: String,
        /// The nearest known name, if one is near.
        nearest: Option<&'static str>,
        /// The known names.
        known: Vec<&'static str>,
    },
}

impl ParameterError {
    pub(super) fn unknown(name: &str, known: &[Parameter]) -> Self {
        Self::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, known.iter().map(|parameter| parameter.name)),
            known: known.iter().map(|parameter| parameter.name).collect(),
        }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { first, second } => {
                write!(
                    f,
                    "{first} and {second} exclude each other; leave one of them out"
                )
            }
            Self::OutOfRange {
                name,
                value: Value::Text(text),
                expected,
            } => {
                write!(f, "{name} is {text:?}; expected {expected}")
            }
            Self::OutOfRange {
                name,
                value,
                expected,
            } => {
                write!(f, "{name} is {value}; expected {expected}")
            }
            Self::Unknown {
                name,
                nearest: Some(nearest),
                ..
            } => {
                write!(
                    f,
                    "there is no parameter {name:?}; did you mean {nearest:?}?"
                )
            }
            Self::Unknown { name, known, .. } if known.is_empty() => {
                write!(f, "there is no parameter {name:?}; there are none")
            }
            Self::Unknown { name, known, .. } => {
                write!(f, "there is no parameter {name:?}; there are ")?;
                write_list(f, known.iter().copied())
            }
        }
    }
}

impl core::error::Error for ParameterError {}

/// Writes `"a", "b" and "c"`.
pub(super) fn write_list<'a>(
    f: &mut fmt::Formatter<'_>,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> fmt::Result {
    let count = names.len();
    for (at, name) in names.enumerate() {
        let before = match at {
            0 => "",
            _ if at + 1 == count => " and ",
            _ => ", ",
        };
        write!(f, "{before}{name:?}")?;
    }
    Ok(())
}
