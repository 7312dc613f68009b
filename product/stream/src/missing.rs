//! Sections that did not arrive whole, and why.

use std::fmt;
use std::time::Instant;

use comity::{Fate, GapReason, Reason, SectionId, StreamId};
use serde::{Serialize, Serializer};

/// A section that did not arrive completely, or a run of sections that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its stream.
    pub stream: StreamId,
    /// Its number in the stream, at the source; the first number of a run.
    pub id: SectionId,
    /// The number of sections, at least 1.
    pub count: u64,
    /// The word for its content, one of [`KINDS`](crate::KINDS); `None` if nothing of it arrived.
    pub kind: Option<&'static str>,
    /// Why it is missing.
    pub reason: MissingReason,
    /// Its length in bytes; `None` if nothing of it arrived.
    pub length: Option<u64>,
    /// The number of missing bytes; `None` if nothing of it arrived.
    pub missing_bytes: Option<u64>,
    /// When it was captured, if that is known.
    pub source_time: Option<Instant>,
}

impl Missing {
    /// The entry for a list of gaps, with times since `began`. `now` is when the gap became known.
    pub fn entry(&self, began: Instant, now: Instant) -> GapEntry {
        GapEntry {
            stream: self.stream.0,
            section: self.id.0,
            count: self.count,
            kind: self.kind,
            reason: self.reason,
            bytes: self.length,
            missing_bytes: self.missing_bytes,
            source_time_s: self.source_time.map(|time| seconds(began, time)),
            time_s: seconds(began, now),
        }
    }
}

/// A line of a list of gaps, in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GapEntry {
    /// The stream of the section.
    pub stream: u16,
    /// Its number in the stream; the first number of a run.
    pub section: u64,
    /// The number of sections. Consecutive sections share a line if nothing of them arrived.
    pub count: u64,
    /// Its content: key, I, P, B, audio, parameters, table, layout, opaque or slice; null if
    /// nothing of it arrived.
    #[serde(rename = "type")]
    pub kind: Option<&'static str>,
    /// Why it is not whole.
    pub reason: MissingReason,
    /// Its length; null if nothing of it arrived.
    pub bytes: Option<u64>,
    /// How many of these bytes are missing.
    pub missing_bytes: Option<u64>,
    /// When it was captured, in seconds since the beginning, on this host's clock.
    pub source_time_s: Option<f64>,
    /// When it became known to be missing, in seconds since the beginning.
    pub time_s: f64,
}

/// Seconds from one moment to another, to the microsecond; negative if `to` comes first.
fn seconds(from: Instant, to: Instant) -> f64 {
    let micros = |from: Instant, to: Instant| to.duration_since(from).as_micros() as f64 / 1e6;
    match to >= from {
        true => micros(from, to),
        false => -micros(to, from),
    }
}

/// Why a section is missing, at a receiver, a sender, or between the two.
///
/// [`Reason`], [`GapReason`] and [`Fate`] say it for one connection, and become one of these. The
/// others happen outside of a connection: in a source, a relay or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MissingReason {
    /// The sender withdrew it.
    Cancelled,
    /// The connection ended before it was complete.
    Closed,
    /// The source has only a part of it, which was passed on.
    Damaged,
    /// A section that it needs is missing.
    Dependency,
    /// Its deadline passed at the sender.
    Expired,
    /// The sender dropped it: it could not have arrived in time.
    Infeasible,
    /// Some of it was lost and not retransmitted.
    Lost,
    /// Its media header is invalid, and nothing of it was written.
    Malformed,
    /// The send buffer had no room.
    NoRoom,
    /// The sender gave it up without stating a reason.
    Obsolete,
    /// It was incomplete at its deadline.
    Overdue,
    /// The sender dropped it to fit the rate of the path.
    Shed,
    /// The source has only a part of it, which was not passed on.
    Source,
    /// There was no connection.
    Unconnected,
    /// It is empty, or longer than a section can be.
    Unfit,
    /// The output failed before it was written.
    Unwritten,
}

impl MissingReason {
    /// All reasons, in alphabetical order of their words.
    pub const ALL: [Self; 16] = [
        Self::Cancelled,
        Self::Closed,
        Self::Damaged,
        Self::Dependency,
        Self::Expired,
        Self::Infeasible,
        Self::Lost,
        Self::Malformed,
        Self::NoRoom,
        Self::Obsolete,
        Self::Overdue,
        Self::Shed,
        Self::Source,
        Self::Unconnected,
        Self::Unfit,
        Self::Unwritten,
    ];

    /// Its word in lists, metrics and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::Damaged => "damaged",
            Self::Dependency => "dependency",
            Self::Expired => "expired",
            Self::Infeasible => "infeasible",
            Self::Lost => "lost",
            Self::Malformed => "malformed",
            Self::NoRoom => "no room",
            Self::Obsolete => "obsolete",
            Self::Overdue => "overdue",
            Self::Shed => "shed",
            Self::Source => "source",
            Self::Unconnected => "unconnected",
            Self::Unfit => "unfit",
            Self::Unwritten => "unwritten",
        }
    }

    /// A phrase for people.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Cancelled => "withdrawn by the sender",
            Self::Closed => "the connection ended",
            Self::Damaged => "incomplete at the source, and passed on",
            Self::Dependency => "a section that it needs is missing",
            Self::Expired => "its deadline passed at the sender",
            Self::Infeasible => "it could not have arrived in time",
            Self::Lost => "lost and not retransmitted",
            Self::Malformed => "its media header is invalid",
            Self::NoRoom => "the send buffer was full",
            Self::Obsolete => "the sender went on without it",
            Self::Overdue => "incomplete at its deadline",
            Self::Shed => "shed to fit the rate",
            Self::Source => "incomplete at the source",
            Self::Unconnected => "no connection",
            Self::Unfit => "empty or too long",
            Self::Unwritten => "the output failed",
        }
    }

    /// Why a section did not arrive, as far as its sender knows; `None` if it arrived.
    pub fn of_fate(fate: Fate) -> Option<Self> {
        Some(match fate {
            Fate::Acknowledged => return None,
            Fate::Dropped(reason) => reason.into(),
            Fate::ExpiredInNetwork => Self::Expired,
            Fate::Lost => Self::Lost,
        })
    }
}

impl From<GapReason> for MissingReason {
    fn from(reason: GapReason) -> Self {
        match reason {
            GapReason::Closed => Self::Closed,
            GapReason::Obsolete => Self::Obsolete,
            GapReason::Overdue => Self::Overdue,
            GapReason::Dropped(reason) => reason.into(),
        }
    }
}

impl From<Reason> for MissingReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Cancelled => Self::Cancelled,
            Reason::Dependency => Self::Dependency,
            Reason::Expired => Self::Expired,
            Reason::Infeasible => Self::Infeasible,
            Reason::Shed => Self::Shed,
        }
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phrase())
    }
}

impl Serialize for MissingReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_entry_names_the_section_and_what_is_missing() {
        let began = crate::clock::now();
        let mut missing = Missing {
            stream: StreamId(1),
            id: SectionId(12),
            count: 1,
            kind: Some("P"),
            reason: MissingReason::Expired,
            length: Some(4_000),
            missing_bytes: Some(1_200),
            source_time: began.checked_sub(Duration::from_millis(250)),
        };
        let now = began + Duration::from_millis(150);
        let json = |missing: &Missing| serde_json::to_value(missing.entry(began, now)).unwrap();
        assert_eq!(
            json(&missing),
            serde_json::json!({
                "stream": 1, "section": 12, "count": 1, "type": "P", "reason": "expired", "bytes": 4_000,
                "missing_bytes": 1_200, "source_time_s": -0.25, "time_s": 0.15,
            })
        );
        missing.kind = None;
        missing.source_time = None;
        missing.reason = MissingReason::NoRoom;
        let json = json(&missing);
        assert!(json["type"].is_null() && json["source_time_s"].is_null());
        assert_eq!(json["reason"], "no room");
    }

    #[test]
    fn receivers_and_senders_have_one_word_for_one_reason() {
        for reason in Reason::ALL {
            let received = MissingReason::from(GapReason::Dropped(reason));
            assert_eq!(
                MissingReason::of_fate(Fate::Dropped(reason)),
                Some(received)
            );
            assert_eq!(received.word(), reason.word());
        }
        assert_eq!(MissingReason::of_fate(Fate::Acknowledged), None);
        assert!(
            MissingReason::ALL.is_sorted_by(|one, next| one < next && one.word() < next.word())
        );
        assert_eq!(MissingReason::from(GapReason::Overdue).word(), "overdue");
    }
}
