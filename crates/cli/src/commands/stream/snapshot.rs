//! How it stands: the one form from which the status line, JSON, Prometheus and the account at the
//! end are made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use comity::{Connection, Statistics};
use serde::Serialize;

use super::input::Input;
use super::media_unit::{KINDS, Missing};
use super::output::{Output, Unsent};
use super::refusals::Counts;
use super::status::plain;
use super::totals::Totals;

/// Sections and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    pub(crate) sections: u64,
    pub(crate) bytes: u64,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.sections += 1;
        self.bytes += bytes as u64;
    }

    fn take(&mut self, bytes: u64) {
        self.sections = self.sections.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// What has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Passed {
    /// Whole sections, by what they hold; "data" where that is not known.
    pub(crate) whole: BTreeMap<&'static str, Count>,
    /// Sections that did not arrive whole, by the reason.
    pub(crate) gaps: BTreeMap<&'static str, u64>,
    /// What was said of the source, by its kind, however much of it was told.
    pub(crate) notices: BTreeMap<&'static str, u64>,
}

impl Passed {
    pub(crate) fn sections(&self) -> u64 {
        self.whole.values().map(|count| count.sections).sum()
    }

    /// What had passed turned out not to be whole where it went to.
    pub(crate) fn take_back(&mut self, missing: &Missing) {
        let kind = missing.kind.unwrap_or("data");
        if let Some(count) = self.whole.get_mut(kind) {
            count.take(missing.length.unwrap_or(0));
            if count.sections == 0 {
                self.whole.remove(kind);
            }
        }
    }

    pub(crate) fn missing(&self) -> u64 {
        self.gaps.values().sum()
    }

    /// `48 key, 100 P, 52 audio`.
    pub(crate) fn kinds(&self) -> String {
        let known = KINDS.iter().copied().chain(["data"]);
        let parts: Vec<String> = known
            .filter_map(|kind| Some(format!("{} {kind}", self.whole.get(kind)?.sections)))
            .collect();
        parts.join(", ")
    }
}

/// One side of what passes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Side {
    /// Bytes of media read or written; `None` for connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<u64>,
    /// Connections that are open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) connections: Vec<Peer>,
    /// All connections together, those that are over too; `None` for media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) totals: Option<Totals>,
    /// Callers that were turned away, by the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) refused: Counts,
    /// What no connection was given; `None` unless it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unsent: Option<Unsent>,
}

/// A connection and its statistics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Peer {
    pub(crate) peer: String,
    pub(crate) statistics: Statistics,
}

/// How it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) elapsed_s: f64,
    pub(crate) input: Side,
    pub(crate) output: Side,
    pub(crate) passed: Passed,
}

impl Snapshot {
    pub(crate) async fn take(
        began: Instant,
        input: &Input,
        output: &Output,
        passed: &Passed,
    ) -> Self {
        Self {
            elapsed_s: (super::now().saturating_duration_since(began)).as_millis() as f64 / 1e3,
            input: match input {
                Input::Media(input) => media(input.bytes),
                Input::Connected(input) => Side {
                    refused: input.refused(),
                    ..connected(input.connections()).await
                },
            },
            output: match output {
                Output::Media(output) => media(output.bytes()),
                Output::Connected(output) => Side {
                    unsent: Some(output.unsent),
                    refused: output.refused(),
                    ..connected(output.connections()).await
                },
            },
            passed: passed.clone(),
        }
    }
}

fn media(bytes: u64) -> Side {
    Side {
        bytes: Some(bytes),
        ..Side::default()
    }
}

async fn connected((open, past): (Vec<Arc<Connection>>, Totals)) -> Side {
    let mut totals = past;
    let mut connections = Vec::new();
    for connection in open {
        let statistics = connection.stats();
        totals.add(&statistics);
        connections.push(Peer {
            peer: plain(connection.peer_address()).to_string(),
            statistics,
        });
    }
    Side {
        connections,
        totals: Some(totals),
        ..Side::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_in_their_order() {
        let mut passed = Passed::default();
        for kind in ["data", "B", "key", "B"] {
            passed.whole.entry(kind).or_default().add(100);
        }
        passed.gaps.insert("expired", 2);
        assert_eq!(passed.kinds(), "1 key, 2 B, 1 data");
        assert_eq!((passed.sections(), passed.missing()), (4, 2));
        assert_eq!(passed.whole["B"].bytes, 200);
    }
}
