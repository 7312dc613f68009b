//! Callers that a listener refuses.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use comity::causes::RefusedCaller;
use comity::{EndpointEvent, EndpointEvents};

use crate::clock::now;
use crate::event::{Event, Observer};
use crate::lock::lock;

/// For this time after a report, further refusals with the same reason are only counted, since
/// anybody can cause them. Within this time, a repeated call from the same address is the same
/// caller.
const SILENCE: Duration = Duration::from_secs(10);

/// How many refused callers are remembered.
const REMEMBERED: usize = 256;

/// The words for the reasons of refusals: the keys of [`Side::refused`](crate::Side::refused).
pub const REFUSALS: [&str; 11] = [
    "busy",
    "credentials",
    "downgrade",
    "key",
    "malformed",
    "other",
    "parameters",
    "stream",
    "unproven",
    "untold",
    "waiting",
];

/// Refused calls, by the word for the reason.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// The calls that a listener has refused so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    counts: Counts,
    /// The last report of each reason, and the number of refusals since.
    reported: BTreeMap<&'static str, (Instant, u64)>,
    /// The most recently counted callers and their reasons: a caller repeats its call before it
    /// gives up.
    callers: VecDeque<(Instant, SocketAddr, &'static str)>,
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
        let more = self.counted().refuse(now(), from, word);
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

    /// Whether this caller was counted already.
    fn is_repeated(&mut self, now: Instant, from: SocketAddr, word: &'static str) -> bool {
        let mut callers = self.callers.iter_mut();
        let known = callers.find(|(_, known, why)| (*known, *why) == (from, word));
        if let Some((at, ..)) = known {
            return now.saturating_duration_since(std::mem::replace(at, now)) < SILENCE;
        }
        self.callers.push_back((now, from, word));
        if self.callers.len() > REMEMBERED {
            self.callers.pop_front();
        }
        false
    }

    /// Counts a caller once, however often it repeats its call. If this refusal is to be reported,
    /// returns the number of callers since the last report.
    fn refuse(&mut self, now: Instant, from: SocketAddr, word: &'static str) -> Option<u64> {
        if self.is_repeated(now, from, word) {
            return None;
        }
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
        RefusedCaller::Stream { .. } => "stream",
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
            RefusedCaller::Stream {
                requested: String::new(),
                own: String::new(),
            },
        ] {
            assert!(REFUSALS.contains(&word(&why)), "{why:?}");
        }
    }

    #[test]
    fn a_reason_is_reported_once_in_a_while_and_counted_always() {
        let mut counted = Counted::default();
        let start = now();
        let mut refuse = |seconds, port, word| {
            let at = start + Duration::from_secs(seconds);
            counted.refuse(at, ([192, 0, 2, 1], port).into(), word)
        };
        assert_eq!(refuse(0, 1, "busy"), Some(0));
        assert_eq!(refuse(1, 2, "busy"), None);
        assert_eq!(refuse(2, 2, "unproven"), Some(0), "another one");
        assert_eq!(refuse(9, 3, "busy"), None);
        assert_eq!(refuse(10, 4, "busy"), Some(2));
        assert_eq!(refuse(19, 5, "busy"), None);
        // The same caller calls again from the same port: it is neither counted nor reported.
        assert_eq!(refuse(19, 5, "busy"), None);
        assert_eq!(refuse(20, 6, "busy"), Some(1));
        counted.count("untold", 7);
        let expected = [("busy", 6), ("unproven", 1), ("untold", 7)];
        assert_eq!(counted.counts, Counts::from(expected));
    }

    #[test]
    fn a_caller_that_repeats_its_call_is_counted_once() {
        let mut counted = Counted::default();
        let start = now();
        let mut refuse = |seconds, port| {
            let at = start + Duration::from_secs(seconds);
            counted.refuse(at, ([192, 0, 2, 1], port).into(), "unproven");
            counted.counts["unproven"]
        };
        for seconds in 0..30 {
            assert_eq!(refuse(seconds, 1), 1);
        }
        assert_eq!(refuse(30, 2), 2);
        assert_eq!(refuse(45, 1), 3, "it calls anew");
        for port in 3..3 + 2 * REMEMBERED as u16 {
            refuse(46, port);
        }
        assert_eq!(counted.callers.len(), REMEMBERED);
    }
}
