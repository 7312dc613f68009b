//! The output of the programs: lines of `name=value`.

use std::net::IpAddr;

use crate::error::Error;

/// A line of `name=value`, separated by spaces.
pub(crate) struct Line<'a> {
    text: &'a str,
}

impl<'a> Line<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text }
    }

    fn value<T: std::str::FromStr>(&self, name: &str) -> Result<T, Error> {
        self.text
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .find_map(|(key, value)| (key == name).then(|| value.parse().ok())?)
            .ok_or_else(|| Error::Form(format!("it prints no {name:?}: {}", self.text)))
    }

    pub(crate) fn number(&self, name: &str) -> Result<u64, Error> {
        self.value(name)
    }

    pub(crate) fn port(&self, name: &str) -> Result<u16, Error> {
        self.value(name)
    }

    pub(crate) fn address(&self, name: &str) -> Result<IpAddr, Error> {
        self.value::<IpAddr>(name)
            .map(|address| address.to_canonical())
    }
}
