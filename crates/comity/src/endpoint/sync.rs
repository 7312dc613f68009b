//! What [`sleep`](super::sleep) shares threads with: `loom/` replaces it by a model of it.

pub(super) use std::sync::atomic::{AtomicBool, Ordering};
pub(super) use std::sync::{Mutex, MutexGuard};
