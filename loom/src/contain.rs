//! A panic without unwinding, which loom's locks do not survive.

use std::cell::Cell;

loom::thread_local! {
    static IS_PANICKING: Cell<bool> = Cell::new(false);
}

/// The work that is contained panics now. It must return at once, whatever it returns.
pub(crate) fn panic() {
    IS_PANICKING.with(|is_panicking| is_panicking.set(true));
}

pub(crate) fn is_panicking() -> bool {
    IS_PANICKING.with(Cell::get)
}

/// Runs `work`; returns `None` if it panics.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    let done = work();
    let has_panicked = IS_PANICKING.with(|is_panicking| is_panicking.replace(false));
    (!has_panicked).then_some(done)
}
