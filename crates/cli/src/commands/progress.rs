//! What people see and do while runs are played.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::say;

/// After how long progress is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// The clock on the wall, for progress and for how long it all took; results do not depend on it.
#[allow(clippy::disallowed_methods, reason = "this is for people only")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Calls `tell` when the interrupt key is pressed; what is returned becomes true then. When the key is pressed
/// again, or `tell` says that nobody listens, the program ends.
pub(crate) fn on_interrupt(tell: impl Fn() -> bool + Send + 'static) -> &'static AtomicBool {
    static CANCEL: AtomicBool = AtomicBool::new(false);
    let pressed = OnceLock::new();
    let handler = ctrlc::set_handler(move || {
        CANCEL.store(true, Ordering::Relaxed);
        // Once all is over nobody listens any more: the second time nothing is waited for.
        if pressed.set(()).is_err() || !tell() {
            std::process::exit(130);
        }
    });
    if let Err(error) = handler {
        say(&format!(
            "warning: the interrupt key ends the program at once: {error}"
        ));
    }
    &CANCEL
}

/// A bar on the terminal, once the runs take long enough for one.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    wanted: bool,
}

impl Progress {
    pub(crate) fn new(runs: usize, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} runs, {eta} to go")
        {
            bar.set_style(style);
        }
        Self {
            bar,
            began: now(),
            wanted: !quiet && std::io::stderr().is_terminal(),
        }
    }

    pub(crate) fn tick(&self) {
        if self.wanted && self.bar.is_hidden() && self.began.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.tick();
    }

    pub(crate) fn set(&self, done: usize) {
        self.bar.set_position(done as u64);
        self.tick();
    }

    /// Says something while the bar is out of the way.
    pub(crate) fn pause(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
