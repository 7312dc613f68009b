//! Progress and interruption of one long operation.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::console::overwrite;
use super::interrupt::{self, Request};
use super::say;
use crate::clock::now;

/// The time before progress is shown.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The interval between lines if standard error is not a terminal.
pub const LINES: Duration = Duration::from_secs(10);

/// The interval between updates on a terminal.
pub const TICK: Duration = Duration::from_millis(200);

/// Calls `notify` at the first request to end; the returned flag becomes true then. The program
/// ends at a later request, after `linger`, or if `notify` returns that its receiver is gone.
pub fn interrupt_key(
    linger: Option<Duration>,
    notify: impl Fn() -> bool + Send + 'static,
) -> &'static AtomicBool {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    interrupt::on_request("at once", linger, move |request| match request {
        Request::First => {
            CANCEL.store(true, Ordering::Relaxed);
            // After the end of the work, the receiver is gone.
            if !notify() {
                std::process::exit(130);
            }
        }
        Request::Again => interrupt::exit(),
    });
    &CANCEL
}

/// A line about the progress of a long operation: overwritten on a terminal, and occasionally a new
/// line elsewhere.
#[derive(Debug)]
pub struct StatusLine {
    began: Instant,
    wanted: bool,
    is_terminal: bool,
    /// When the next line is due.
    due: Duration,
    is_shown: bool,
}

impl StatusLine {
    /// A line that never shows if `quiet`.
    pub fn new(quiet: bool) -> Self {
        Self {
            began: now(),
            wanted: !quiet,
            is_terminal: io::stderr().is_terminal(),
            due: PATIENCE,
            is_shown: false,
        }
    }

    /// Shows the text that `describe` returns for the elapsed time, if a line is due.
    pub fn show(&mut self, describe: impl FnOnce(Duration) -> String) {
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

    /// Removes the line.
    pub fn clear(&mut self) {
        if core::mem::take(&mut self.is_shown) {
            overwrite("");
        }
    }
}
