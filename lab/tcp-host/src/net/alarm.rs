//! The timer of the driver.

use std::io;
use std::os::fd::OwnedFd;

use comity_units::Time;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use super::watch;

/// A timer of the kernel (`timerfd`). The timers of the runtime have a resolution of a millisecond,
/// so paced packets would leave in bursts.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: AsyncFd<OwnedFd>,
    /// When it expires.
    set_to: Time,
}

impl Alarm {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self {
            timer: watch(timer)?,
            set_to: Time::MAX,
        })
    }

    /// Makes it expire once, at this time, instead of the previous one.
    pub(super) fn set(&mut self, now: Time, at: Time) {
        if at == self.set_to && at > now {
            return;
        }
        self.set_to = at;
        // Zero would disarm the timer.
        let nanoseconds = at.saturating_since(now).as_nanos().max(1);
        let time = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: (nanoseconds / 1_000_000_000).cast_signed(),
                tv_nsec: (nanoseconds % 1_000_000_000).cast_signed(),
            },
        };
        let set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &time);
        debug_assert!(set.is_ok(), "{set:?}");
    }

    /// Returns when the time has passed.
    pub(super) async fn rings(&self) {
        let Ok(mut ready) = self.timer.readable().await else {
            return;
        };
        // If the timer has been set again, this expiry no longer counts.
        if rustix::io::read(&self.timer, &mut [0; 8]) == Err(Errno::AGAIN) {
            ready.clear_ready();
        }
    }
}
