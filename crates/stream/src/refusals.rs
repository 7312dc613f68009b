//! Callers that a listener refuses.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use comity::session::RefusedCaller;
use comity::{EndpointEvent, EndpointEvents};

use crate::clock::now;
use crate::event::{Event, Observer};
use crate::lock::lock;

/// The time for which further refusals with the same reason are only counted: anybody can cause
/// them.
const SILENCE: Duration = Duration::from_secs(10);

/// The words for why calls are refused, as [`Side::refused`](crate::Side::refused) has them.
pub const REFUSALS: [&str; 10] = [
    "busy",
    "credentials",
    "downgrade",
    "key",
    "malformed",
    "other",
    "parameters",
    "unproven",
    "untold",
    "waiting",
];

/// Refused calls, by the word for the reason.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// What a listener has refused so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    counts: Counts,
    /// The last report of each reason, and the number of refusals since.
    reported: BTreeMap<&'static str, (Instant, u64)>,
}

impl Refusals {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        lock(&self.0)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counted().counts.clone()
    }

    /// Counts and reports refusals until the endpoint is gone.
    pub(crate) async fn watch(self, mut events: EndpointEvents, observer: Observer) {
        while let Some(event) = events.next().await {
            match event {
                EndpointEvent::Refused { from, why } => self.refuse(from, Some(&why), &observer),
                EndpointEvent::Unaccepted { from } => self.refuse(from, None, &observer),
                EndpointEvent::Missed(events) => self.counted().count("untold", events),
                _ => {}
            }
        }
    }

    fn refuse(&self, from: SocketAddr, why: Option<&RefusedCaller>, observer: &Observer) {
        let word = why.map_or("waiting", word);
        let more = self.counted().refuse(now(), word);
        if let Some(more) = more {
            observer.on_event(&Event::Refused {
                from,
                word,
                why,
                more,
            });
        }
    }
}

impl Counted {
    fn count(&mut self, word: &'static str, callers: u64) {
        *self.counts.entry(word).or_default() += callers;
    }

    /// Counts a refusal. Returns how many came since the last report if this one is to be reported.
    fn refuse(&mut self, now: Instant, word: &'static str) -> Option<u64> {
        self.count(word, 1);
        if let Some((at, unreported)) = self.reported.get_mut(word)
            && now.saturating_duration_since(*at) < SILENCE
        {
            *unreported += 1;
            return None;
        }
        let before = self.reported.insert(word, (now, 0));
        Some(before.map_or(0, |(_, unreported)| unreported))
    }
}

/// The word for a reason.
fn word(why: &RefusedCaller) -> &'static str {
    match why {
        RefusedCaller::Unproven => "unproven",
        RefusedCaller::UnknownKey(_) => "key",
        RefusedCaller::Pattern(_) => "credentials",
        RefusedCaller::Malformed => "malformed",
        RefusedCaller::Downgrade => "downgrade",
        RefusedCaller::Busy => "busy",
        RefusedCaller::Parameters => "parameters",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_in_the_list() {
        for why in [
            RefusedCaller::Unproven,
            RefusedCaller::Malformed,
            RefusedCaller::Downgrade,
            RefusedCaller::Busy,
            RefusedCaller::Parameters,
        ] {
            assert!(REFUSALS.contains(&word(&why)), "{why:?}");
        }
    }

    #[test]
    fn a_reason_is_reported_once_in_a_while_and_counted_always() {
        let mut counted = Counted::default();
        let start = now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(counted.refuse(at(0), "busy"), Some(0));
        assert_eq!(counted.refuse(at(1), "busy"), None);
        assert_eq!(counted.refuse(at(2), "unproven"), Some(0), "another one");
        assert_eq!(counted.refuse(at(9), "busy"), None);
        assert_eq!(counted.refuse(at(10), "busy"), Some(2));
        assert_eq!(counted.refuse(at(19), "busy"), None);
        counted.count("untold", 7);
        let expected = [("busy", 5), ("unproven", 1), ("untold", 7)];
        assert_eq!(counted.counts, Counts::from(expected));
    }
}
