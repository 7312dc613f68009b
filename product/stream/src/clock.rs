//! The clock of this host.

use std::time::Instant;

#[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
