//! The clock of this host, for what runs in real time and for how long a command took. Results of
//! simulations do not depend on it.

use std::time::Instant;

/// The time now.
#[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
