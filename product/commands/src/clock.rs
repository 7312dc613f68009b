//! The clock of this host, for real-time work and for the duration of commands. Results of
//! simulations do not depend on it.

use std::time::Instant;

/// The present time.
#[allow(clippy::disallowed_methods, reason = "this is a real-time host")]
pub fn now() -> Instant {
    Instant::now()
}
