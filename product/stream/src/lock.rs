//! Locks whose holders do not panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state behind the lock. If a holder panicked all the same, what it left is still consistent
/// enough to be read.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
