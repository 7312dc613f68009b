//! The callers, and the socket towards the target of each.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use comity_units::{Span, Time};

use crate::socket::Socket;

/// The present callers, each with a number that is never reused.
#[derive(Debug)]
pub(crate) struct Callers {
    known: BTreeMap<u64, Caller>,
    numbers: BTreeMap<SocketAddr, u64>,
    most: usize,
    seen: u64,
}

#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) address: SocketAddr,
    pub(crate) target: SocketAddr,
    /// The local address that it called; answers must leave from it.
    pub(crate) called: Option<IpAddr>,
    pub(crate) socket: Socket,
    pub(crate) last_active: Time,
}

impl Callers {
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            numbers: BTreeMap::new(),
            most,
            seen: 0,
        }
    }

    pub(crate) fn number_of(&self, address: SocketAddr) -> Option<u64> {
        self.numbers.get(&address).copied()
    }

    pub(crate) fn caller(&mut self, number: u64) -> Option<&mut Caller> {
        self.known.get_mut(&number)
    }

    pub(crate) fn has_room(&self) -> bool {
        self.known.len() < self.most
    }

    /// The number of the next caller.
    pub(crate) const fn next_number(&self) -> u64 {
        self.seen
    }

    pub(crate) fn add(&mut self, caller: Caller) -> u64 {
        let number = self.seen;
        self.seen += 1;
        self.numbers.insert(caller.address, number);
        self.known.insert(number, caller);
        number
    }

    /// Forgets callers that have been idle for this long, and closes their sockets.
    pub(crate) fn forget_idle(&mut self, now: Time, idle: Span) {
        let numbers = &mut self.numbers;
        self.known.retain(|_, caller| {
            let is_active = now.saturating_since(caller.last_active) < idle;
            if !is_active {
                numbers.remove(&caller.address);
            }
            is_active
        });
    }

    /// The callers that would be forgotten now.
    pub(crate) fn idle(&self, now: Time, idle: Span) -> impl Iterator<Item = &Caller> {
        self.known
            .values()
            .filter(move |caller| now.saturating_since(caller.last_active) >= idle)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Caller> {
        self.known.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) const fn seen(&self) -> u64 {
        self.seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(port: u16, at: u64) -> Caller {
        let target = ([127, 0, 0, 1], 9).into();
        Caller {
            target,
            address: ([127, 0, 0, 1], port).into(),
            called: None,
            socket: Socket::towards(target).unwrap(),
            last_active: Time::from_secs(at),
        }
    }

    #[test]
    fn numbers_are_never_given_again() {
        let mut callers = Callers::new(2);
        let first = callers.add(caller(1, 0));
        let second = callers.add(caller(2, 5));
        assert!(!callers.has_room());
        callers.forget_idle(Time::from_secs(10), Span::from_secs(6));
        assert!(callers.caller(first).is_none() && callers.caller(second).is_some());
        assert!(callers.has_room());
        assert_eq!(callers.number_of(([127, 0, 0, 1], 1).into()), None);
        let again = callers.next_number();
        assert_eq!(callers.add(caller(1, 10)), again);
        assert!(again != first && again != second);
        assert_eq!((callers.len(), callers.seen()), (2, 3));
    }
}
