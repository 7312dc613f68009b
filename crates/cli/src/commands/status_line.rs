//! What people see and do while one thing takes long.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::console::overwrite;
use super::interrupt::{self, Request};
use super::say;
use crate::clock::now;

/// After how long progress is shown.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// The interval between lines where standard error is no terminal.
pub(super) const LINES: Duration = Duration::from_secs(10);

/// How often what is shown on a terminal changes.
pub(super) const TICK: Duration = Duration::from_millis(200);

/// Calls `tell` at the first request to end; what is returned becomes true then. At a later
/// request, after `linger`, or if `tell` says that nobody listens, the program ends.
pub(crate) fn interrupt_key(
    linger: Option<Duration>,
    tell: impl Fn() -> bool + Send + 'static,
) -> &'static AtomicBool {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    interrupt::on_request("at once", linger, move |request| match request {
        Request::First => {
            CANCEL.store(true, Ordering::Relaxed);
            // Once all is over nobody listens any more.
            if !tell() {
                std::process::exit(130);
            }
        }
        Request::Again => interrupt::exit(),
    });
    &CANCEL
}

/// A line that says how far something is, once it takes long: written over on a terminal, and a new
/// line now and then elsewhere.
#[derive(Debug)]
pub(crate) struct StatusLine {
    began: Instant,
    wanted: bool,
    is_terminal: bool,
    /// When the next one is due.
    due: Duration,
    is_shown: bool,
}

impl StatusLine {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            began: now(),
            wanted: !quiet,
            is_terminal: io::stderr().is_terminal(),
            due: PATIENCE,
            is_shown: false,
        }
    }

    /// Shows what `describe` says of the time since the beginning, if a line is due.
    pub(crate) fn show(&mut self, describe: impl FnOnce(Duration) -> String) {
        let elapsed = self.began.elapsed();
        if !self.wanted || elapsed < self.due {
            return;
        }
        let text = describe(elapsed);
        if self.is_terminal {
            self.due = elapsed + TICK;
            self.is_shown = true;
            overwrite(&text);
        } else {
            self.due = elapsed + LINES;
            say(&text);
        }
    }

    /// Removes it.
    pub(crate) fn clear(&mut self) {
        if core::mem::take(&mut self.is_shown) {
            overwrite("");
        }
    }
}
