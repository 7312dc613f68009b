//! How the endpoint's thread waits for work.

use comity_units::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{BUSY_WAKEUPS, Driver, MAX_EXACT, Next};

/// The span in which wake-ups are counted.
const BUSY_WINDOW: Span = Span::from_millis(2);
/// The pause between two batches of datagrams and requests.
const BATCH_PAUSE: Span = Span::from_micros(250);
/// How long before an exact departure the thread wakes up: the system takes some 60 us to wake it,
/// and more on a busy host.
const WAKE_MARGIN: Span = Span::from_micros(100);

impl Driver {
    /// Waits for work, and returns its kind.
    pub(super) fn wait(&mut self) -> Next {
        let is_blocked = !self.scratch.out.is_empty();
        let is_busy = self.callers.is_busy()
            || self
                .listener
                .as_ref()
                .is_some_and(|listener| listener.is_busy());
        if is_busy && !is_blocked {
            return Next::Receive;
        }
        let mut next = self.callers.next_timer();
        if let Some(listener) = &self.listener {
            next = next.min(listener.next_timer());
        }
        if let Some(until) = self.until {
            next = next.min(until);
        }
        let now = self.now();
        if next <= now && !is_blocked {
            return Next::Receive;
        }
        let mut wait = next.saturating_since(now);
        if self.times_departures() {
            if wait <= WAKE_MARGIN && !is_blocked {
                return Next::ReceiveUntil(next);
            }
            wait = wait.saturating_sub(WAKE_MARGIN);
        }
        let is_often = self
            .woken
            .get(self.oldest)
            .is_some_and(|oldest| now < *oldest + BUSY_WINDOW);
        if let Some(woken) = self.woken.get_mut(self.oldest) {
            *woken = now;
        }
        self.oldest = (self.oldest + 1) % BUSY_WAKEUPS;
        if is_often && !is_blocked {
            let rest = if self.connections.len() > MAX_EXACT {
                BATCH_PAUSE
            } else {
                wait.min(BATCH_PAUSE)
            };
            // A signal shortens the rest, which does no harm.
            let _ = rustix::thread::nanosleep(&timespec(rest));
            return Next::Receive;
        }
        let timeout = (!next.is_never()).then(|| timespec(wait));
        if !self.shared.sleep.fall_asleep() {
            return Next::Receive;
        }
        let interest = if is_blocked {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let mut descriptors = [
            PollFd::new(&self.socket, interest),
            PollFd::new(self.shared.sleep.signal(), PollFlags::IN),
        ];
        // An interrupted wait is a short wait.
        let _ = poll(&mut descriptors, timeout.as_ref());
        let [socket, wake] = descriptors;
        let (socket, wake) = (socket.revents(), wake.revents());
        self.shared.sleep.wake_up(!wake.is_empty());
        if socket.contains(PollFlags::ERR) {
            self.handle_complaints();
        }
        if socket.is_empty() {
            Next::Serve
        } else {
            Next::Receive
        }
    }
}

fn timespec(span: Span) -> Timespec {
    const SECOND: u64 = 1_000_000_000;
    Timespec {
        tv_sec: i64::try_from(span.as_nanos() / SECOND).unwrap_or(i64::MAX),
        tv_nsec: (span.as_nanos() % SECOND) as _,
    }
}
