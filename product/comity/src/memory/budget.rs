//! The counts of a budget. `loom/` checks every interleaving of their changes.

use std::sync::{Arc, Weak};

use crate::session::lock;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// The reciprocal of the part of the limit that only fair shares may use.
const RESERVE: u64 = 8;

/// The budget of an endpoint.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: u64,
    held: AtomicU64,
    shares: Mutex<Vec<Weak<MemoryShare>>>,
    /// Whether a connection must be evicted. Only swapped, so that all changes have one order.
    has_evicted: AtomicBool,
}

/// The share of one connection.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    /// Bytes not yet in the application's queue.
    held: AtomicU64,
    /// Bytes in the application's queue.
    queued: AtomicU64,
    is_evicted: AtomicBool,
}

impl MemoryBudget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            held: AtomicU64::new(0),
            shares: Mutex::default(),
            has_evicted: AtomicBool::new(false),
        })
    }

    /// A share for one more connection.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<MemoryShare> {
        let share = Arc::new(MemoryShare {
            budget: self.clone(),
            held: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
        });
        let mut shares = lock(&self.shares);
        shares.retain(|share| share.strong_count() > 0);
        shares.push(Arc::downgrade(&share));
        share
    }

    /// The bytes that all connections hold.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether a connection must be evicted. Clears the flag; the caller finds the connection.
    pub(crate) fn take_evictions(&self) -> bool {
        self.has_evicted.swap(false, Ordering::Acquire)
    }

    fn fair(&self) -> u64 {
        let connections = lock(&self.shares).len().max(1);
        self.limit / connections as u64
    }

    /// Marks the connection that holds the most, if that is more than its fair share.
    fn evict_largest(&self) {
        let fair = self.fair();
        // Unlocks before `open` is dropped: dropping the last handle to a share takes the lock.
        let shares = lock(&self.shares);
        let open: Vec<_> = shares.iter().filter_map(Weak::upgrade).collect();
        drop(shares);
        let staying = open.iter().filter(|share| !share.is_evicted());
        let largest = staying.max_by_key(|share| share.held());
        if let Some(largest) = largest.filter(|share| share.held() > fair) {
            largest.is_evicted.store(true, Ordering::Relaxed);
            self.has_evicted.swap(true, Ordering::Release);
        }
    }
}

impl MemoryShare {
    /// The bytes that the connection holds.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed) + self.queued.load(Ordering::Relaxed)
    }

    /// Whether the connection must be evicted.
    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// The maximum that the connection may hold now besides the application's queue.
    pub(crate) fn limit(&self) -> u64 {
        let budget = &self.budget;
        let others = budget.held().saturating_sub(self.held());
        let left = budget.limit.saturating_sub(others);
        let beyond = left.saturating_sub(budget.limit / RESERVE);
        let most = beyond.max(left.min(budget.fair()));
        most.saturating_sub(self.queued.load(Ordering::Relaxed))
    }

    /// Sets the bytes that the connection holds. `was_short` says whether it found too little
    /// memory.
    pub(crate) fn set_held(&self, bytes: u64, was_short: bool) {
        let before = self.held.swap(bytes, Ordering::Relaxed);
        self.count(before, bytes);
        let budget = &self.budget;
        let is_tight = budget.limit.saturating_sub(budget.held()) < budget.limit / RESERVE / 2;
        if (was_short || is_tight) && self.held() <= budget.fair() {
            budget.evict_largest();
        }
    }

    /// Sets the bytes in the application's queue.
    pub(crate) fn set_queued(&self, bytes: u64) {
        let before = self.queued.swap(bytes, Ordering::Relaxed);
        self.count(before, bytes);
    }

    fn count(&self, before: u64, after: u64) {
        let held = &self.budget.held;
        match after.checked_sub(before) {
            Some(more) => held.fetch_add(more, Ordering::Relaxed),
            None => held.fetch_sub(before - after, Ordering::Relaxed),
        };
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.count(self.held(), 0);
        lock(&self.budget.shares).retain(|share| share.strong_count() > 0);
    }
}
