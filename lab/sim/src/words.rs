//! Times, spans and seeds as whole numbers in stored runs; for `#[serde(with)]`.

use comity_units::{Seed, Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is one whole number.
pub(crate) trait Word: Copy {
    fn to_word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Word for Seed {
    fn to_word(self) -> u64 {
        self.get()
    }

    fn from_word(word: u64) -> Self {
        Self::new(word)
    }
}

impl Word for Span {
    fn to_word(self) -> u64 {
        self.as_nanos()
    }

    fn from_word(word: u64) -> Self {
        Self::from_nanos(word)
    }
}

impl Word for Time {
    fn to_word(self) -> u64 {
        self.as_nanos()
    }

    fn from_word(word: u64) -> Self {
        Self::from_nanos(word)
    }
}

impl<T: Word> Word for Option<T> {
    /// The largest number stands for `None`; every time or span of a report is shorter.
    fn to_word(self) -> u64 {
        self.map_or(u64::MAX, T::to_word)
    }

    fn from_word(word: u64) -> Self {
        (word < u64::MAX).then(|| T::from_word(word))
    }
}

pub(crate) fn serialize<T: Word, S: Serializer>(value: &T, out: S) -> Result<S::Ok, S::Error> {
    value.to_word().serialize(out)
}

pub(crate) fn deserialize<'de, T: Word, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    u64::deserialize(from).map(T::from_word)
}
