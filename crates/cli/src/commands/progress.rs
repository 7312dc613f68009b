//! What people see and do while runs are run.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::console::overwrite;
use super::interrupt::{self, Request};
use super::{Failure, say};
use crate::clock::now;

/// After how long progress is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval between lines where standard error is no terminal.
const LINES: Duration = Duration::from_secs(10);

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

/// How often the bar moves while nothing is said.
const TICK: Duration = Duration::from_millis(200);

/// What the thread that runs, or the interrupt key, says.
enum Message<N, E> {
    Finished(usize),
    News(N),
    End(E),
    /// The thread that runs is gone; without an end it panicked, and said so.
    Gone,
    Interrupt,
}

/// What a thread that runs tells those who wait for it.
pub(crate) struct Teller<N, E>(mpsc::Sender<Message<N, E>>);

impl<N, E> Teller<N, E> {
    /// So many runs are done.
    pub(crate) fn finished(&self, done: usize) {
        self.tell(Message::Finished(done));
    }

    /// Something came out.
    pub(crate) fn news(&self, news: N) {
        self.tell(Message::News(news));
    }

    fn tell(&self, message: Message<N, E>) {
        // A message that nobody takes belongs to an execution that was interrupted.
        drop(self.0.send(message));
    }
}

impl<N, E> Drop for Teller<N, E> {
    fn drop(&mut self) {
        // The interrupt key keeps the channel open, so that its end tells nothing.
        self.tell(Message::Gone);
    }
}

/// What the interrupt key does to runs under way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnInterrupt<'a> {
    /// They are left, and this is said, if anything.
    Leave(Option<&'a str>),
    /// They hear of it, and have to end in order.
    Wait,
}

/// Lets `run` run so many runs on another thread, so that an interrupt need not wait for those
/// under way, and hands what comes out to `take`. The argument of `run` becomes true when the
/// interrupt key is pressed. Returns what `run` does.
pub(crate) fn follow<N: Send + 'static, E: Send + 'static>(
    (runs, quiet): (usize, bool),
    on_interrupt: OnInterrupt<'_>,
    work: impl FnOnce(&'static AtomicBool, &Teller<N, E>) -> E + Send + 'static,
    mut take: impl FnMut(N, &Progress),
) -> Result<E, Failure> {
    let (sender, messages) = mpsc::channel();
    let linger = match on_interrupt {
        OnInterrupt::Leave(_) => Some(interrupt::LINGER),
        OnInterrupt::Wait => None,
    };
    let interrupt = sender.clone();
    let cancel = interrupt_key(linger, move || interrupt.send(Message::Interrupt).is_ok());
    let progress = Progress::new(runs, quiet);
    std::thread::spawn(move || {
        let teller = Teller(sender);
        let end = work(cancel, &teller);
        teller.tell(Message::End(end));
    });
    loop {
        match messages.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout) => progress.tick(),
            Ok(Message::Finished(done)) => progress.set(done),
            Ok(Message::News(news)) => take(news, &progress),
            Ok(Message::End(end)) => {
                progress.clear();
                return Ok(end);
            }
            Ok(Message::Interrupt) => {
                progress.clear();
                let OnInterrupt::Leave(said) = on_interrupt else {
                    continue;
                };
                if let Some(said) = said {
                    say(said);
                }
                return Err(Failure::Interrupted);
            }
            Ok(Message::Gone) | Err(RecvTimeoutError::Disconnected) => {
                progress.clear();
                return Err(Failure::Failed);
            }
        }
    }
}

/// Does what cannot say how far it is, and says how long it takes already.
pub(crate) fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (working, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            let began = now();
            let mut patience = PATIENCE;
            while end.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                say(&format!("{what}: {} s", began.elapsed().as_secs()));
                patience = LINES;
            }
        });
        let done = work();
        drop(working);
        done
    })
}

/// A bar on the terminal, once the runs take long enough for one. Elsewhere a line now and then.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    wanted: bool,
    is_terminal: bool,
    /// When the next line is due.
    due: Cell<Duration>,
}

impl Progress {
    fn new(runs: usize, quiet: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} runs, {eta} to go")
        {
            bar.set_style(style);
        }
        Self {
            bar,
            began: now(),
            wanted: !quiet,
            is_terminal: io::stderr().is_terminal(),
            due: Cell::new(PATIENCE),
        }
    }

    fn tick(&self) {
        let elapsed = self.began.elapsed();
        if self.wanted && !self.is_terminal {
            if let Some(line) = self.line(elapsed) {
                say(&line);
            }
        } else if self.wanted && self.bar.is_hidden() && elapsed > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.tick();
    }

    /// The line for a log, if one is due.
    fn line(&self, elapsed: Duration) -> Option<String> {
        if elapsed < self.due.get() {
            return None;
        }
        self.due.set(elapsed + LINES);
        let (done, runs) = (self.bar.position(), self.bar.length().unwrap_or_default());
        Some(format!("{done} of {runs} runs, {} s", elapsed.as_secs()))
    }

    fn set(&self, done: usize) {
        self.bar.set_position(done as u64);
        self.tick();
    }

    /// Says something while the bar is out of the way.
    pub(crate) fn pause(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_a_line_after_two_seconds_and_then_every_ten() {
        let progress = Progress::new(8, true);
        progress.set(3);
        let lines = (0..30).filter_map(|at| progress.line(Duration::from_secs(at)));
        assert_eq!(
            lines.collect::<Vec<_>>(),
            ["3 of 8 runs, 2 s", "3 of 8 runs, 12 s", "3 of 8 runs, 22 s"]
        );
    }

    #[test]
    fn a_thread_that_panics_ends_the_wait() {
        let work = |_: &'static AtomicBool, teller: &Teller<u8, ()>| {
            teller.news(7);
            panic!("this panic is part of the test");
        };
        let mut news = Vec::new();
        let end = follow((1, true), OnInterrupt::Leave(None), work, |number, _| {
            news.push(number);
        });
        assert!(matches!(end, Err(Failure::Failed)));
        assert_eq!(news, [7]);
    }
}
