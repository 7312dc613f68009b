//! Progress and interruption of runs.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::status_line::{LINES, PATIENCE, TICK, interrupt_key};
use super::{Failure, interrupt, say};
use crate::clock::now;

/// A message from the running thread or the interrupt key.
enum Message<N, E> {
    Finished(usize),
    News(N),
    End(E),
    /// The running thread has ended. If it sent no result, it panicked, and the panic was reported.
    Gone,
    Interrupt,
}

/// The running thread's side of the channel.
pub(crate) struct RunReporter<N, E>(mpsc::Sender<Message<N, E>>);

impl<N, E> RunReporter<N, E> {
    /// Reports that this many runs are done.
    pub(crate) fn finished(&self, done: usize) {
        self.send_message(Message::Finished(done));
    }

    /// Reports a result.
    pub(crate) fn news(&self, news: N) {
        self.send_message(Message::News(news));
    }

    fn send_message(&self, message: Message<N, E>) {
        // The receiver is gone after an interrupt.
        drop(self.0.send(message));
    }
}

impl<N, E> Drop for RunReporter<N, E> {
    fn drop(&mut self) {
        // The interrupt key keeps the channel open, so a closed channel cannot signal the end.
        self.send_message(Message::Gone);
    }
}

/// The effect of the interrupt key on runs in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnInterrupt<'a> {
    /// The runs are abandoned, with this message, if any.
    Leave(Option<&'a str>),
    /// The runs are notified, and end in an orderly way.
    Wait,
}

/// Calls `work` on another thread, so that an interrupt need not wait for runs in progress. Passes
/// each reported result to `take`. The flag that `work` receives becomes true when the interrupt
/// key is pressed. Returns the result of `work`.
pub(crate) fn follow<N: Send + 'static, E: Send + 'static>(
    (runs, quiet): (usize, bool),
    on_interrupt: OnInterrupt<'_>,
    work: impl FnOnce(&'static AtomicBool, &RunReporter<N, E>) -> E + Send + 'static,
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
        let reporter = RunReporter(sender);
        let end = work(cancel, &reporter);
        reporter.send_message(Message::End(end));
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

/// Does work of unknown duration, and shows the elapsed time.
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

/// A progress bar on a terminal, once the runs take long enough; elsewhere an occasional line.
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

    /// Calls `say` while the bar is hidden.
    pub(crate) fn pause(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
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
    fn a_panicking_thread_ends_the_wait() {
        let work = |_: &'static AtomicBool, reporter: &RunReporter<u8, ()>| {
            reporter.news(7);
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
