//! The models of what `product/comity/src/sync.rs` names.

use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError};

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::contain::is_panicking;
pub(crate) use crate::notify::Notify;

/// Loom's mutex with the poison of std's.
#[derive(Debug)]
pub(crate) struct Mutex<T> {
    inner: loom::sync::Mutex<T>,
    poison: Poison,
}

/// Whoever has the lock looks at it in one step with that. Loom keeps only the last access to an
/// atomic, so that these looks would hide the ones without the lock from it.
#[derive(Debug)]
struct Poison {
    locked: std::sync::atomic::AtomicBool,
    unlocked: AtomicBool,
}

impl Poison {
    fn set(&self, is_poisoned: bool) {
        self.unlocked.store(is_poisoned, Ordering::Relaxed);
        self.locked.store(is_poisoned, Ordering::Relaxed);
    }
}

pub(crate) struct MutexGuard<'a, T> {
    inner: loom::sync::MutexGuard<'a, T>,
    poison: &'a Poison,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            inner: loom::sync::Mutex::new(value),
            poison: Poison {
                locked: std::sync::atomic::AtomicBool::new(false),
                unlocked: AtomicBool::new(false),
            },
        }
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let guard = MutexGuard {
            inner: self.inner.lock().expect("no thread unwinds"),
            poison: &self.poison,
        };
        match self.poison.locked.load(Ordering::Relaxed) {
            true => Err(PoisonError::new(guard)),
            false => Ok(guard),
        }
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.poison.unlocked.load(Ordering::Relaxed)
    }

    pub(crate) fn clear_poison(&self) {
        self.poison.set(false);
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// The mutex is poisoned before it is unlocked.
impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if is_panicking() {
            self.poison.set(true);
        }
    }
}
