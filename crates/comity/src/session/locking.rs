//! Locks of what a panic may have broken.
//!
//! A panic ends only its connection. The lock of the transport is poisoned then, and the next
//! holder fails the transport before it uses it. `loom/` checks every interleaving of these steps.

use std::sync::PoisonError;

use crate::contain::contain;
use crate::sync::{Mutex, MutexGuard};

/// Locks a mutex, also if a holder panicked: for what a panic cannot break, or only reads of it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex. If a holder panicked, `fail` comes first, which may be called several times.
pub(crate) fn lock_or_fail<T>(mutex: &Mutex<T>, fail: impl FnOnce(&mut T)) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| {
        let mut broken = poisoned.into_inner();
        fail(&mut broken);
        broken
    })
}

/// Uses what is locked. If `work` panics, `on_panic` is called, and `work` runs once more with what
/// has failed.
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

/// If a holder panicked: calls `fail`, and forgets the panic.
pub(crate) fn recover<T>(mutex: &Mutex<T>, fail: impl FnOnce()) {
    if mutex.is_poisoned() {
        fail();
        mutex.clear_poison();
    }
}
