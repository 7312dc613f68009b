//! Callers that a listener turns away.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use comity::session::RefusedCaller;
use comity::{EndpointEvent, EndpointEvents};

use super::now;
use super::status::{Reporter, plain};

/// How long it is not told again that somebody was turned away for the same reason: anybody can
/// cause it.
const SILENCE: Duration = Duration::from_secs(10);

/// How many were turned away, by the reason.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// What a listener has turned away so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    counts: Counts,
    /// When a reason was told last, and how many came since.
    told: BTreeMap<&'static str, (Instant, u64)>,
}

impl Refusals {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counted().counts.clone()
    }

    /// Counts and tells what `events` bring, until the endpoint is gone.
    pub(crate) async fn watch(self, mut events: EndpointEvents, reporter: Reporter) {
        while let Some(event) = events.next().await {
            match event {
                EndpointEvent::Refused { from, why } => {
                    self.refuse(now(), from, word(&why), &hint(&why), &reporter);
                }
                EndpointEvent::Unaccepted { from } => {
                    let text = "too many callers wait";
                    self.refuse(now(), from, "waiting", text, &reporter);
                }
                EndpointEvent::Missed(events) => self.counted().count("untold", events),
                _ => {}
            }
        }
    }

    fn refuse(
        &self,
        now: Instant,
        from: SocketAddr,
        word: &'static str,
        text: &str,
        reporter: &Reporter,
    ) {
        let more = self.counted().refuse(now, word);
        if let Some(more) = more {
            reporter.refused(plain(from), word, text, more);
        }
    }
}

impl Counted {
    fn count(&mut self, word: &'static str, callers: u64) {
        *self.counts.entry(word).or_default() += callers;
    }

    /// Counts one; how many more there were since it was told last, if it is to be told now.
    fn refuse(&mut self, now: Instant, word: &'static str) -> Option<u64> {
        self.count(word, 1);
        if let Some((at, untold)) = self.told.get_mut(word)
            && now.saturating_duration_since(*at) < SILENCE
        {
            *untold += 1;
            return None;
        }
        let before = self.told.insert(word, (now, 0));
        Some(before.map_or(0, |(_, untold)| untold))
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

/// Why, and what to do about it.
fn hint(why: &RefusedCaller) -> String {
    match why {
        RefusedCaller::Unproven => {
            "it has another passphrase or key; both ends need the same passphrase=.., or keys that know each other".into()
        }
        RefusedCaller::UnknownKey(key) => {
            format!("its key {key} is not on the allow=.. list; add it there to let it in")
        }
        RefusedCaller::Pattern(_) => {
            format!("{why}; both ends need the same kind: a passphrase, keys, or --insecure")
        }
        RefusedCaller::Busy => "another caller is served; it may call again when that one is done".into(),
        why => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_once_in_a_while_and_counted_always() {
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
