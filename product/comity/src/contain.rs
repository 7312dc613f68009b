//! Keeps a panic within one connection.
//!
//! The state machines panic when an invariant is violated. One thread drives many connections of an
//! endpoint, so a panic ends only the connection that it was serving. A program built with `panic =
//! "abort"` ends instead. The command contains panics within one run of a sweep in the same way.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work`; returns `None` if it panics. The panic hook has already reported the location.
///
/// The caller must not use the state that `work` was changing.
pub fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    // One look-up of the thread's variable: this runs several times for each packet.
    let done = DEPTH.with(|depth| {
        depth.set(depth.get() + 1);
        let done = catch_unwind(AssertUnwindSafe(work));
        depth.set(depth.get() - 1);
        done
    });
    match done {
        Ok(done) => Some(done),
        Err(payload) => {
            // The payload is an arbitrary value, and dropping it may panic.
            std::mem::forget(payload);
            None
        }
    }
}

/// Whether [`contain`] would catch a panic of this thread now.
///
/// A panic hook calls it to end the program at every other panic. Otherwise the end of one thread
/// might go unnoticed.
///
/// ```
/// let report = std::panic::take_hook();
/// std::panic::set_hook(Box::new(move |panic| {
///     report(panic);
///     if !comity::parts::contains_panic() {
///         std::process::abort();
///     }
/// }));
/// ```
pub fn contains_panic() -> bool {
    DEPTH.get() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_panics_inside_contain_are_contained() {
        assert!(!contains_panic());
        assert_eq!(contain(contains_panic), Some(true));
        let nested = || {
            let inner: Option<()> = contain(|| panic!("this panic is part of the test"));
            (inner, contains_panic())
        };
        assert_eq!(contain(nested), Some((None, true)));
        assert!(!contains_panic());
    }
}
