//! Locks whose holders do not panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the state. If a holder panicked all the same, the state is still consistent enough to
/// read.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
