//! Processor time, of this process and of its finished children.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;

/// Seconds on a processor.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProcessorTime {
    /// User and system time of this process.
    pub own_s: f64,
    /// Of its finished children.
    pub children_s: f64,
}

impl ProcessorTime {
    pub fn now() -> Self {
        Self {
            own_s: seconds(UsageWho::RUSAGE_SELF),
            children_s: seconds(UsageWho::RUSAGE_CHILDREN),
        }
    }

    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            own_s: self.own_s - earlier.own_s,
            children_s: self.children_s - earlier.children_s,
        }
    }
}

fn seconds(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("Linux always answers for these two");
    let of = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    of(usage.user_time()) + of(usage.system_time())
}
