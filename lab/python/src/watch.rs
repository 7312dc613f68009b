//! Work outside Python, while it hears the interrupt key.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use pyo3::prelude::*;

/// How often the interrupt key is looked at and progress is reported.
const TICK: Duration = Duration::from_millis(100);

/// Does `work` on another thread. Meanwhile and at its end, the interrupt key is looked at and
/// `tick` is called. If either raises an exception, `stop` becomes true, and the exception follows
/// when `work` has ended.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
    tick: impl Fn(Python<'_>) -> PyResult<()> + Sync,
) -> PyResult<T> {
    let watch = || {
        Python::attach(|py| {
            py.check_signals()?;
            tick(py)
        })
    };
    let (done, interrupt) = py.detach(|| {
        std::thread::scope(|scope| {
            let (ended, end) = mpsc::channel::<()>();
            let worker = scope.spawn(|| {
                // Dropped at the end, or when this thread panics.
                let _ended = ended;
                work()
            });
            let mut interrupt = None;
            while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if interrupt.is_none()
                    && let Err(error) = watch()
                {
                    stop.store(true, Ordering::Relaxed);
                    interrupt = Some(error);
                }
            }
            match worker.join() {
                Ok(done) => (done, interrupt),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    });
    match interrupt {
        Some(interrupt) => Err(interrupt),
        // A key pressed during the last tick is still Python's to report.
        None => watch().map(|()| done),
    }
}
