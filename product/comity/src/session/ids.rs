//! The connection identifiers of one end, which change when the caller moves.
//!
//! ```text
//! secret = HKDF-Expand(secret(0) of the packets to this end, "comity 2 ids", 32)
//! id(0)  = the identifier of the handshake
//! id(n)  = HKDF-Expand(secret, "comity 2 id " and n in decimal digits, 8), n = 1, 2, ..
//! ```
//!
//! Both ends derive them, so no packet carries one before it is used. To an observer of packets,
//! the identifiers of one connection are unrelated. `secret` is not secret(0): an end keeps it as
//! long as the connection, and it must not open packets of the first phase.
//!
//! ```text
//! receiver, with the highest generation g so far    accepts 0, g - 1, g and g + 1
//! a genuine packet of generation g + 1              g becomes g + 1
//! ```
//!
//! Source: RFC 9000, sections 5.1.1 and 9.5. Differs from the source in:
//! 1. Identifiers are derived and not sent.
//! 2. Generation 0 is not retired: a live listener must not answer a replayed packet of it by a
//!    Reset.

use std::collections::{BTreeMap, VecDeque};

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use ring::hkdf;
use zeroize::Zeroizing;

use super::ConnectionId;
use super::protection::fill;

/// Values by the first identifiers of the connections of this end. Packets come in any order, so
/// each look-up in an ordered map would miss the cache a dozen times. This end draws the
/// identifiers, so nobody can choose ones that collide.
pub(crate) type IdMap<V> = IndexMap<ConnectionId, V, FixedState>;

/// The number of remembered identifiers.
const REMEMBERED: usize = 4;

/// The identifiers of one end.
pub(super) struct Ids {
    first: ConnectionId,
    /// `None` without protection: then generation 0 is the only one.
    secret: Option<Zeroizing<[u8; 32]>>,
    /// The later generations that were derived last.
    known: VecDeque<(u64, ConnectionId)>,
}

impl Ids {
    pub(super) fn new(first: ConnectionId, secret: Option<Zeroizing<[u8; 32]>>) -> Self {
        Self {
            first,
            secret,
            known: VecDeque::with_capacity(REMEMBERED),
        }
    }

    /// The identifier of the handshake.
    pub(super) fn first(&self) -> ConnectionId {
        self.first
    }

    /// Whether later generations exist.
    pub(super) fn rotate(&self) -> bool {
        self.secret.is_some()
    }

    /// The identifier of a generation.
    pub(super) fn get(&mut self, generation: u64) -> ConnectionId {
        let Some(secret) = self.secret.as_ref().filter(|_| generation > 0) else {
            return self.first;
        };
        if let Some((_, id)) = self.known.iter().find(|(known, _)| *known == generation) {
            return *id;
        }
        let id = derive(secret, generation);
        if self.known.len() == REMEMBERED {
            self.known.pop_front();
        }
        self.known.push_back((generation, id));
        id
    }
}

fn derive(secret: &[u8; 32], generation: u64) -> ConnectionId {
    let mut id = [0; 8];
    let key = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
    fill(&key, &format!("comity 2 id {generation}"), &mut id);
    ConnectionId::new(u64::from_be_bytes(id))
}

/// A change of the identifiers that an end accepts, for the host that routes packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdChange {
    /// Packets with this identifier belong to the connection from now on.
    Add(ConnectionId),
    /// Packets with this identifier no longer belong to it.
    Remove(ConnectionId),
}

/// The connections of a host by their later identifiers. The values are first identifiers.
pub(crate) type LaterIds = BTreeMap<ConnectionId, ConnectionId>;

/// Changes the identifiers of the connection `first`. An identifier of another connection remains
/// with that one.
pub(crate) fn change_id(ids: &mut LaterIds, first: ConnectionId, change: IdChange) {
    match change {
        IdChange::Add(id) => {
            ids.entry(id).or_insert(first);
        }
        IdChange::Remove(id) => {
            if ids.get(&id) == Some(&first) {
                ids.remove(&id);
            }
        }
    }
}

/// The identifiers that an end accepts.
pub(super) struct Receiving {
    ids: Ids,
    /// The highest generation of a genuine packet.
    highest: u64,
    changes: VecDeque<IdChange>,
}

impl Receiving {
    pub(super) fn new(mut ids: Ids) -> Self {
        let mut changes = VecDeque::new();
        if ids.rotate() {
            changes.push_back(IdChange::Add(ids.get(1)));
        }
        Self {
            ids,
            highest: 0,
            changes,
        }
    }

    pub(super) fn first(&self) -> ConnectionId {
        self.ids.first()
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The accepted generations, 0 among them.
    fn generations(&self) -> impl Iterator<Item = u64> + use<> {
        let last = match self.ids.rotate() {
            true => self.highest + 1,
            false => 0,
        };
        std::iter::once(0).chain(self.highest.saturating_sub(1).max(1)..=last)
    }

    /// The generation of an identifier; `None` if packets with it do not belong to this connection.
    pub(super) fn generation(&mut self, id: ConnectionId) -> Option<u64> {
        if id == self.ids.first() {
            return Some(0);
        }
        self.generations()
            .find(|&generation| self.ids.get(generation) == id)
    }

    /// All accepted identifiers except the first one.
    pub(super) fn later(&mut self) -> Vec<ConnectionId> {
        self.generations()
            .skip(1)
            .map(|generation| self.ids.get(generation))
            .collect()
    }

    /// An authentic packet of this generation arrived.
    pub(super) fn on_genuine(&mut self, generation: u64) {
        if generation <= self.highest {
            return;
        }
        if self.highest > 1 {
            let retired = self.ids.get(self.highest - 1);
            self.changes.push_back(IdChange::Remove(retired));
        }
        self.highest = generation;
        let next = self.ids.get(generation + 1);
        self.changes.push_back(IdChange::Add(next));
    }

    pub(super) fn poll_change(&mut self) -> Option<IdChange> {
        self.changes.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn receiving() -> Receiving {
        let secret = Some(Zeroizing::new([7; 32]));
        Receiving::new(Ids::new(ConnectionId::new(1), secret))
    }

    #[test]
    fn an_end_accepts_the_previous_the_present_and_the_next_generation() {
        let mut receiving = receiving();
        let mut taken = BTreeSet::new();
        let mut ids = Ids::new(ConnectionId::new(1), Some(Zeroizing::new([7; 32])));
        for highest in 0..20 {
            receiving.on_genuine(highest);
            while let Some(change) = receiving.poll_change() {
                match change {
                    IdChange::Add(id) => assert!(taken.insert(id)),
                    IdChange::Remove(id) => assert!(taken.remove(&id)),
                }
            }
            let later: BTreeSet<_> = receiving.later().into_iter().collect();
            assert_eq!(taken, later, "{highest}");
            assert!(taken.len() <= 3);
            for generation in 0..25_u64 {
                let is_near = generation.abs_diff(highest) <= 1 || generation == 0;
                let expected = is_near.then_some(generation);
                assert_eq!(receiving.generation(ids.get(generation)), expected);
            }
        }
        assert_eq!(receiving.generation(ConnectionId::new(2)), None);
    }

    #[test]
    fn a_colliding_identifier_stays_with_the_first_connection() {
        let (early, late) = (ConnectionId::new(1), ConnectionId::new(2));
        let shared = ConnectionId::new(9);
        let mut ids = LaterIds::new();
        change_id(&mut ids, early, IdChange::Add(shared));
        change_id(&mut ids, late, IdChange::Add(shared));
        assert_eq!(ids.get(&shared), Some(&early));
        change_id(&mut ids, late, IdChange::Remove(shared));
        assert_eq!(ids.get(&shared), Some(&early));
        change_id(&mut ids, early, IdChange::Remove(shared));
        assert!(ids.is_empty());
    }

    #[test]
    fn without_protection_the_identifier_does_not_change() {
        let mut receiving = Receiving::new(Ids::new(ConnectionId::new(1), None));
        assert_eq!(receiving.poll_change(), None);
        assert_eq!(receiving.later(), []);
        assert_eq!(receiving.generation(ConnectionId::new(1)), Some(0));
        assert_eq!(receiving.generation(ConnectionId::new(2)), None);
    }
}
