//! The connections of a listener by their callers.
//!
//! [`Holder`]s share the room of a full listener: the one with the most connections makes room for
//! the others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use super::{ConnectionId, PublicKey};
use crate::session::Holder;

/// The identity of a caller across restarts.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    Key(PublicKey),
    Host(IpAddr, Vec<u8>),
}

impl Identity {
    fn holder(&self) -> Holder {
        match self {
            Self::Key(key) => Holder::Key(*key),
            Self::Host(address, _) => Holder::new(None, *address),
        }
    }
}

#[derive(Default)]
pub(super) struct Callers {
    by_identity: BTreeSet<(Arc<Identity>, ConnectionId)>,
    by_holder: BTreeSet<(Holder, ConnectionId)>,
    counts: BTreeMap<Holder, usize>,
    /// The counts in ascending order.
    ranking: BTreeSet<(usize, Holder)>,
}

impl Callers {
    pub(super) fn insert(&mut self, identity: Arc<Identity>, id: ConnectionId) {
        let holder = identity.holder();
        self.by_identity.insert((identity, id));
        if self.by_holder.insert((holder, id)) {
            let count = self.count(holder);
            self.set_count(holder, count, count + 1);
        }
    }

    pub(super) fn remove(&mut self, identity: Arc<Identity>, id: ConnectionId) {
        let holder = identity.holder();
        self.by_identity.remove(&(identity, id));
        if self.by_holder.remove(&(holder, id)) {
            let count = self.count(holder);
            self.set_count(holder, count, count - 1);
        }
    }

    fn count(&self, holder: Holder) -> usize {
        self.counts.get(&holder).copied().unwrap_or(0)
    }

    fn set_count(&mut self, holder: Holder, before: usize, after: usize) {
        self.ranking.remove(&(before, holder));
        if after == 0 {
            self.counts.remove(&holder);
        } else {
            self.counts.insert(holder, after);
            self.ranking.insert((after, holder));
        }
    }

    /// The connections of this identity, beginning at a random one.
    pub(super) fn connections(
        &self,
        identity: &Arc<Identity>,
        any: ConnectionId,
    ) -> impl Iterator<Item = ConnectionId> {
        of(&self.by_identity, identity, any)
    }

    /// A random connection that makes room for another one of this identity: its holder has more
    /// connections than that of the identity would have.
    pub(super) fn displaceable(
        &self,
        identity: &Identity,
        any: ConnectionId,
    ) -> Option<ConnectionId> {
        let &(most, holder) = self.ranking.last()?;
        let has_more = most > self.count(identity.holder()) + 1;
        let mut connections = has_more.then(|| of(&self.by_holder, &holder, any))?;
        connections.next()
    }
}

/// The connections of one owner, beginning at `any`.
fn of<T: Ord + Clone>(
    set: &BTreeSet<(T, ConnectionId)>,
    owner: &T,
    any: ConnectionId,
) -> impl Iterator<Item = ConnectionId> {
    let from = |id| (owner.clone(), ConnectionId::new(id));
    let (first, middle, last) = (from(0), from(any.get()), from(u64::MAX));
    { set.range(&middle..=&last) }
        .chain(set.range(&first..&middle))
        .map(|&(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str, parameters: &[u8]) -> Arc<Identity> {
        Arc::new(Identity::Host(text.parse().unwrap(), parameters.to_vec()))
    }

    const ANY: ConnectionId = ConnectionId::new(1 << 63);

    #[test]
    fn the_holder_with_the_most_connections_makes_room() {
        let mut callers = Callers::default();
        let many = host("192.0.2.1", b"");
        let newcomer = host("192.0.2.2", b"");
        assert_eq!(callers.displaceable(&newcomer, ANY), None);
        for id in 1..=3 {
            // Other parameters do not make it another holder.
            callers.insert(
                host("::ffff:192.0.2.1", &[id]),
                ConnectionId::new(id.into()),
            );
        }
        callers.insert(many.clone(), ConnectionId::new(9));
        for (own, expected) in [(0, true), (1, true), (2, true), (3, false)] {
            let displaced = callers.displaceable(&newcomer, ANY);
            let is_of_many = displaced.is_some_and(|id| [1, 2, 3, 9].contains(&id.get()));
            assert_eq!(is_of_many, expected, "{own}");
            assert_eq!(displaced.is_some(), expected);
            assert_eq!(callers.displaceable(&many, ANY), None);
            callers.insert(newcomer.clone(), ConnectionId::new(20 + own));
        }
        // It has four now, and so has the other one.
        callers.remove(many.clone(), ConnectionId::new(9));
        assert_eq!(callers.displaceable(&many, ANY), None);
        let third = host("192.0.2.3", b"");
        let displaced = callers.displaceable(&third, ANY).expect("one of four");
        assert!((20..24).contains(&displaced.get()), "{displaced}");
        assert_eq!(callers.connections(&many, ANY).count(), 0);
        let [known, other] = [&b""[..], b"x"].map(|parameters| host("192.0.2.2", parameters));
        assert_eq!(callers.connections(&known, ANY).count(), 4);
        assert_eq!(callers.connections(&other, ANY).count(), 0);
    }

    /// An attacker with a /64 is one holder. Nothing remains of connections that are gone.
    #[test]
    fn a_network_of_ipv6_is_one_holder() {
        let mut callers = Callers::default();
        let own = |id: u16| host(&format!("2001:db8::{id:x}"), b"");
        for id in 1..=100 {
            callers.insert(own(id), ConnectionId::new(id.into()));
        }
        assert!(
            callers
                .displaceable(&host("2001:db8:0:1::1", b""), ANY)
                .is_some()
        );
        assert_eq!(callers.displaceable(&own(101), ANY), None);
        for id in 1..=100 {
            callers.remove(own(id), ConnectionId::new(id.into()));
        }
        assert!(callers.counts.is_empty() && callers.ranking.is_empty());
        assert!(callers.by_holder.is_empty() && callers.by_identity.is_empty());
    }
}
