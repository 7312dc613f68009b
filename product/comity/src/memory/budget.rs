//! The counts of a budget. `loom/` checks every interleaving of their changes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use crate::memory::{Charge, PayloadKey, Payloads};
use crate::session::{Holder, lock};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// The reciprocal of the part of the limit that only fair shares may use.
const RESERVE: u64 = 8;

/// The budget of an endpoint.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    limit: u64,
    held: AtomicU64,
    shares: Mutex<Shares>,
    /// Locked before `shares`.
    payloads: Mutex<Payloads<MemoryShare>>,
    /// The bytes that were held when a section found no memory; 0 if none has since memory became
    /// free.
    short_at: AtomicU64,
    /// Whether a connection must be evicted. Only swapped, so that all changes have one order.
    has_evicted: AtomicBool,
}

/// The shares of all connections.
#[derive(Debug, Default)]
struct Shares {
    all: Vec<Weak<MemoryShare>>,
    /// The number of connections of each peer. Those whose peer is not known yet count as one
    /// peer's.
    peers: BTreeMap<Option<Holder>, u64>,
}

impl Shares {
    fn add(&mut self, peer: Option<Holder>) {
        *self.peers.entry(peer).or_default() += 1;
    }

    fn remove(&mut self, peer: Option<Holder>) {
        if let Some(connections) = self.peers.get_mut(&peer) {
            *connections -= 1;
            if *connections == 0 {
                self.peers.remove(&peer);
            }
        }
    }

    fn connections(&self, peer: Option<Holder>) -> u64 {
        self.peers.get(&peer).copied().unwrap_or(1)
    }

    /// The share of `limit` for one connection of this peer.
    fn fair(&self, limit: u64, peer: Option<Holder>) -> u64 {
        let peers = self.peers.len().max(1) as u64;
        limit / peers / self.connections(peer)
    }
}

/// The share of one connection.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    /// Changes only under the lock of the shares.
    peer: OnceLock<Holder>,
    /// Bytes not yet in the application's queue.
    held: AtomicU64,
    /// Bytes in the application's queue.
    queued: AtomicU64,
    /// Bytes of payloads in the send buffer that are charged to this connection.
    charged: AtomicU64,
    is_evicted: AtomicBool,
    /// Whether it was closed because it is evicted.
    has_left: AtomicBool,
}

impl MemoryBudget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            held: AtomicU64::new(0),
            shares: Mutex::default(),
            payloads: Mutex::default(),
            short_at: AtomicU64::new(0),
            has_evicted: AtomicBool::new(false),
        })
    }

    /// A share for one more connection, whose peer is not known yet.
    pub(crate) fn share(self: &Arc<Self>) -> Arc<MemoryShare> {
        let share = Arc::new(MemoryShare {
            budget: self.clone(),
            peer: OnceLock::new(),
            held: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            charged: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        });
        let mut shares = lock(&self.shares);
        shares.all.retain(|share| share.strong_count() > 0);
        shares.all.push(Arc::downgrade(&share));
        shares.add(None);
        drop(shares);
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

    /// Whether memory has become free since a section found none. Clears the record of that; the
    /// caller wakes the tasks that wait.
    pub(crate) fn take_freed(&self) -> bool {
        let has_freed = self.held() < self.short_at.load(Ordering::Relaxed);
        if has_freed {
            self.short_at.swap(0, Ordering::Relaxed);
        }
        has_freed
    }

    /// Marks the connection that exceeds its share by the largest factor, if any does, and unless
    /// those that are marked already leave `needed` bytes and a sixteenth of the limit free.
    fn evict_largest(&self, needed: u64) {
        // Unlocks before `open` is dropped: dropping the last handle to a share takes the lock.
        let shares = lock(&self.shares);
        let open: Vec<_> = { shares.all.iter().filter_map(Weak::upgrade) }
            .map(|share| {
                let peer = share.peer();
                let (fair, connections) = (shares.fair(self.limit, peer), shares.connections(peer));
                (share, fair, connections)
            })
            .collect();
        drop(shares);
        let leaving: u64 = { open.iter() }
            .filter(|(share, ..)| share.is_evicted() && !share.has_left.load(Ordering::Relaxed))
            .map(|(share, ..)| share.held())
            .sum();
        let staying = self.held().saturating_sub(leaving);
        if self.limit.saturating_sub(staying) >= needed.max(self.limit / RESERVE / 2) {
            return;
        }
        // A share is the same amount for each peer, divided by the connections of the peer.
        let largest = { open.iter() }
            .filter(|(share, fair, _)| !share.is_evicted() && share.held() > *fair)
            .max_by_key(|(share, _, connections)| share.held().saturating_mul(*connections));
        if let Some((largest, ..)) = largest {
            largest.is_evicted.store(true, Ordering::Relaxed);
            self.has_evicted.swap(true, Ordering::Release);
        }
    }
}

impl Charge for MemoryShare {
    fn charge(&self, bytes: u64) {
        self.charged.fetch_add(bytes, Ordering::Relaxed);
        self.count(0, bytes);
    }

    fn discharge(&self, bytes: u64) {
        self.charged.fetch_sub(bytes, Ordering::Relaxed);
        self.count(bytes, 0);
    }

    fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }
}

impl MemoryShare {
    /// Sets whose connection it is. Only the first call has an effect.
    pub(crate) fn set_peer(&self, peer: Holder) {
        let mut shares = lock(&self.budget.shares);
        if self.peer.set(peer).is_ok() {
            shares.remove(None);
            shares.add(Some(peer));
        }
    }

    fn peer(&self) -> Option<Holder> {
        self.peer.get().copied()
    }

    /// The share of the connection.
    fn fair(&self) -> u64 {
        lock(&self.budget.shares).fair(self.budget.limit, self.peer())
    }

    /// The bytes that the connection holds.
    pub(crate) fn held(&self) -> u64 {
        let (held, queued) = (&self.held, &self.queued);
        held.load(Ordering::Relaxed) + queued.load(Ordering::Relaxed) + self.charged()
    }

    /// Whether the connection must be evicted.
    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Relaxed)
    }

    /// The connection was closed because it is evicted. What it still holds is not free soon.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// The maximum that the connection may hold now besides the application's queue and the
    /// payloads in the send buffer.
    pub(crate) fn limit(&self) -> u64 {
        let budget = &self.budget;
        let others = budget.held().saturating_sub(self.held());
        let left = budget.limit.saturating_sub(others);
        let beyond = left.saturating_sub(budget.limit / RESERVE);
        let most = beyond.max(left.min(self.fair()));
        most.saturating_sub(self.queued.load(Ordering::Relaxed) + self.charged())
    }

    /// The bytes by which the connection may grow now.
    fn room(&self) -> u64 {
        self.limit()
            .saturating_sub(self.held.load(Ordering::Relaxed))
    }

    /// Whether the connection may hold so many more bytes now.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let fits = bytes <= self.room();
        if !fits {
            self.on_shortage(bytes);
        }
        fits
    }

    /// Counts a payload that the connection is about to send, until it is
    /// [removed](Self::remove_payload). Its section has a record of `record` bytes.
    ///
    /// # Errors
    ///
    /// The bytes that both would add, if there is no memory for them.
    pub(crate) fn add_payload(self: &Arc<Self>, key: PayloadKey, record: u64) -> Result<(), u64> {
        let mut payloads = lock(&self.budget.payloads);
        let added = payloads.added_bytes(key) + record;
        if added > self.room() {
            return Err(added);
        }
        payloads.add(key, self);
        Ok(())
    }

    /// The connection no longer sends a payload.
    pub(crate) fn remove_payload(self: &Arc<Self>, key: PayloadKey) {
        lock(&self.budget.payloads).remove(key, self);
    }

    /// A section that would add so many bytes found too little memory.
    pub(crate) fn on_shortage(&self, bytes: u64) {
        let budget = &self.budget;
        budget.short_at.fetch_max(budget.held(), Ordering::Relaxed);
        if self.held() + bytes <= self.fair() {
            budget.evict_largest(bytes);
        }
    }

    /// Sets the bytes that the connection holds besides the application's queue and the payloads in
    /// the send buffer. `was_short` says whether it found too little memory.
    pub(crate) fn set_held(&self, bytes: u64, was_short: bool) {
        let before = self.held.swap(bytes, Ordering::Relaxed);
        self.count(before, bytes);
        let budget = &self.budget;
        let is_tight = budget.limit.saturating_sub(budget.held()) < budget.limit / RESERVE / 2;
        if (was_short || is_tight)
            && let Some(rest) = self.fair().checked_sub(self.held())
        {
            budget.evict_largest(if was_short { rest } else { 0 });
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
        let mut shares = lock(&self.budget.shares);
        shares.all.retain(|share| share.strong_count() > 0);
        shares.remove(self.peer());
    }
}
