//! Signals that request the end of the program.

use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use super::say;
use crate::clock::now;

/// Signals within this time after a request are part of it: `timeout`, terminals and service
/// managers signal a program and its process group, and some send two signals.
const SAME: Duration = Duration::from_secs(1);

/// A request to end the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first request, for an orderly end.
    First,
    /// A later request, for an end without waiting.
    Again,
}

/// The signals that count as requests.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    latest: Option<Instant>,
}

impl Requests {
    fn on_signal(&mut self, now: Instant) -> Option<Request> {
        let request = match self.latest {
            None => Request::First,
            Some(latest) if now.saturating_duration_since(latest) < SAME => return None,
            Some(_) => Request::Again,
        };
        self.latest = Some(now);
        Some(request)
    }
}

/// The time limit of an orderly end without a `linger` setting.
pub const LINGER: Duration = Duration::from_secs(1);

/// The additional time after `linger` for the whole end.
const GRACE: Duration = Duration::from_millis(900);

/// Blocks the signals that must not end the program. Threads that start later inherit this setting.
///
/// Without SIGXFSZ, a write beyond the file size limit fails, and the program can still print a
/// summary. A hang-up (SIGHUP) that the caller of the program ignores, as `nohup` and
/// `trap "" HUP` do, stays ignored: the handler of [`on_request`] would replace that.
///
/// SIGINT still requests an end if the caller ignores it, because shells without job control ignore
/// it for each command in the background, and scripts stop such a command with it.
pub fn block_signals() {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores(&status, Signal::SIGHUP) {
        signals.add(Signal::SIGHUP);
    }
    // It fails only for signals that do not exist.
    let _ = signals.thread_block();
}

/// Whether a process with this `/proc/PID/status` ignores a signal: bit n - 1 of `SigIgn`, proc(5).
fn ignores(status: &str, signal: Signal) -> bool {
    let mask = { status.lines() }.find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
}

/// Calls `on_request` when the end of the program is requested, by the interrupt key or by SIGINT,
/// SIGTERM or SIGHUP. If the handler cannot be installed, these signals end the program at once. A
/// warning then says so, and `and_then` completes it, for example with "without a summary".
///
/// With `linger`, the program ends shortly after that time, even if a disk, a reader or a peer
/// still delays it. Without `linger`, it ends when its work is done.
pub fn on_request(
    and_then: &str,
    linger: Option<Duration>,
    mut on_request: impl FnMut(Request) + Send + 'static,
) {
    let mut requests = Requests::default();
    let handler = ctrlc::set_handler(move || {
        if let Some(request) = requests.on_signal(now()) {
            if request == Request::First
                && let Some(linger) = linger
            {
                end_after(linger + GRACE);
            }
            on_request(request);
        }
    });
    if let Err(error) = handler {
        say(&format!(
            "warning: Ctrl-C ends the program {and_then}: {error}"
        ));
    }
}

/// Ends the program after this time, if it still runs.
#[expect(
    clippy::disallowed_methods,
    reason = "it is about real time, and must not depend on anything else"
)]
fn end_after(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        // The cause of the delay may also block printing.
        std::thread::spawn(|| say("\ninterrupted: not done in time, ended"));
        std::thread::sleep(Duration::from_millis(20));
        std::process::exit(130)
    });
}

/// Ends the program at a repeated request.
pub fn exit() -> ! {
    say("\ninterrupted again: ended at once");
    std::process::exit(130)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_process_says_which_signals_it_ignores() {
        // A shell after trap "" HUP, and a program of Rust, which ignores SIGPIPE.
        let status =
            |mask: &str| format!("Name:\tcomity\nSigBlk:\tffff\nSigIgn:\t{mask}\nSigCgt:\tffff\n");
        let hangup = status("0000000000000001");
        assert!(ignores(&hangup, Signal::SIGHUP) && !ignores(&hangup, Signal::SIGINT));
        let pipe = status("0000000000001000");
        assert!(ignores(&pipe, Signal::SIGPIPE) && !ignores(&pipe, Signal::SIGHUP));
        for other in ["", "SigIgn:\tnone\n", "SigCgt:\t0001\n"] {
            assert!(!ignores(other, Signal::SIGHUP), "{other}");
        }
    }

    #[test]
    fn simultaneous_signals_are_one_request_and_a_later_signal_is_another() {
        let began = now();
        let at = |millis| began + Duration::from_millis(millis);
        let mut requests = Requests::default();
        assert_eq!(requests.on_signal(at(0)), Some(Request::First));
        for millis in [0, 0, 3, 400, 999] {
            assert_eq!(requests.on_signal(at(millis)), None, "{millis}");
        }
        for millis in [1_000, 2_000, 60_000] {
            assert_eq!(requests.on_signal(at(millis)), Some(Request::Again));
            assert_eq!(requests.on_signal(at(millis + 999)), None);
        }
    }
}
