//! The payloads in the send buffers of an endpoint. Each counts once, however many connections send
//! it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

/// The address and the length of a payload. No other payload has them while it is in a send buffer.
pub(crate) type PayloadKey = (usize, usize);

/// What bytes of payloads are charged to.
pub(crate) trait Charge {
    /// Charges these bytes.
    fn charge(&self, bytes: u64);

    /// Charges these bytes no longer.
    fn discharge(&self, bytes: u64);

    /// The bytes that are charged.
    fn charged(&self) -> u64;
}

/// The payloads in all send buffers.
pub(crate) struct Payloads<S>(BTreeMap<PayloadKey, Payload<S>>);

impl<S> Default for Payloads<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

struct Payload<S> {
    /// The connections that send it, in the order of their addresses, and how often each does.
    ///
    /// These are never the last handles to a share: whoever sends a payload has one of its own.
    senders: Vec<(Arc<S>, usize)>,
    /// The sender that its bytes are charged to.
    charged: Arc<S>,
}

impl<S: Charge> Payloads<S> {
    /// The bytes that one more sender of a payload adds to the memory of all.
    pub(crate) fn added_bytes(&self, key: PayloadKey) -> u64 {
        match self.0.contains_key(&key) {
            true => 0,
            false => key.1 as u64,
        }
    }

    /// Adds a sender. The bytes of a payload pass to the new one if its charge then still is the
    /// smaller one.
    pub(crate) fn add(&mut self, key: PayloadKey, sender: &Arc<S>) {
        let bytes = key.1 as u64;
        match self.0.entry(key) {
            Entry::Vacant(vacant) => {
                sender.charge(bytes);
                vacant.insert(Payload {
                    senders: vec![(sender.clone(), 1)],
                    charged: sender.clone(),
                });
            }
            Entry::Occupied(occupied) => {
                let payload = occupied.into_mut();
                match payload.find(sender) {
                    Ok(at) => payload.senders[at].1 += 1,
                    Err(at) => {
                        payload.senders.insert(at, (sender.clone(), 1));
                        if sender.charged() + bytes < payload.charged.charged() {
                            payload.charge_to(sender.clone(), bytes);
                        }
                    }
                }
            }
        }
    }

    /// Removes a sender. Bytes that were charged to it pass to the remaining sender with the
    /// smallest charge.
    pub(crate) fn remove(&mut self, key: PayloadKey, sender: &Arc<S>) {
        let bytes = key.1 as u64;
        let Entry::Occupied(mut occupied) = self.0.entry(key) else {
            return;
        };
        let payload = occupied.get_mut();
        let Ok(at) = payload.find(sender) else {
            return;
        };
        payload.senders[at].1 -= 1;
        if payload.senders[at].1 > 0 {
            return;
        }
        payload.senders.remove(at);
        if !Arc::ptr_eq(&payload.charged, sender) {
            return;
        }
        let others = payload.senders.iter().map(|(other, _)| other);
        let next = others.min_by_key(|other| other.charged()).cloned();
        match next {
            Some(next) => payload.charge_to(next, bytes),
            None => {
                sender.discharge(bytes);
                occupied.remove();
            }
        }
    }
}

impl<S: Charge> Payload<S> {
    /// The index of a sender, or the one at which to insert it.
    fn find(&self, sender: &Arc<S>) -> Result<usize, usize> {
        self.senders
            .binary_search_by_key(&Arc::as_ptr(sender), |(known, _)| Arc::as_ptr(known))
    }

    fn charge_to(&mut self, sender: Arc<S>, bytes: u64) {
        // In this order, the sum is never too small.
        sender.charge(bytes);
        self.charged.discharge(bytes);
        self.charged = sender;
    }
}

/// The number of payloads alone: a share prints its budget, and that these.
impl<S> fmt::Debug for Payloads<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payloads").field(&self.0.len()).finish()
    }
}
