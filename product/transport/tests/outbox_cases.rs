//! Common parts of the outbox tests with hand-computed results.

use comity_transport::timeline::outbox::{self, Fate};
use comity_transport::timeline::{Elided, Importance, Outbox, Outgoing, StreamId};
use comity_units::Time;

pub(crate) const VIDEO: StreamId = StreamId(0);

pub(crate) const fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

pub(crate) fn section(length: u32, importance: u8, deadline: Time) -> Outgoing<Elided> {
    Outgoing {
        stream: VIDEO,
        importance: Importance(importance),
        source_time: Time::ZERO,
        deadline,
        needs: None,
        payload: Elided(length),
    }
}

pub(crate) fn outbox() -> Outbox<Elided> {
    Outbox::new(outbox::Config::default())
}

/// The sections whose fates have become known.
pub(crate) fn fates(outbox: &mut Outbox<Elided>) -> Vec<(u64, Fate)> {
    std::iter::from_fn(|| outbox.poll_outcome())
        .map(|outcome| (outcome.section.0, outcome.fate))
        .collect()
}
