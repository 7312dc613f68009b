//! Locks of state that a panic may have broken.
//!
//! A panic ends only its connection. It poisons the lock of the transport, and the next holder
//! fails the transport before using it. `loom/` checks every interleaving of these steps.

use std::sync::PoisonError;

use crate::contain::contain;
use crate::sync::{Mutex, MutexGuard};

/// Locks a mutex even if a holder panicked: for state that a panic cannot break.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex. If a holder panicked, calls `fail` first, possibly several times.
pub(crate) fn lock_or_fail<T>(mutex: &Mutex<T>, fail: impl FnOnce(&mut T)) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| {
        let mut broken = poisoned.into_inner();
        fail(&mut broken);
        broken
    })
}

/// Calls `work` with the locked state. If `work` panics, calls `on_panic`, and then `work` once
/// more with the failed state.
pub(crate) fn use_locked<T, R>(
    mutex: &Mutex<T>,
    fail: impl Fn(&mut T),
    on_panic: impl FnOnce(),
    mut work: impl FnMut(&mut T) -> R,
) -> R {
    let mut locked = || work(&mut lock_or_fail(mutex, &fail));
    contain(&mut locked).unwrap_or_else(|| {
        on_panic();
        locked()
    })
}

/// If a holder panicked: calls `fail`, and clears the poisoning.
pub(crate) fn recover<T>(mutex: &Mutex<T>, fail: impl FnOnce()) {
    if mutex.is_poisoned() {
        fail();
        mutex.clear_poison();
    }
}
