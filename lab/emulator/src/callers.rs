//! The callers, each with a socket towards the target.

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
    /// The local address that it called. Answers must be sent from it.
    pub(crate) called: Option<IpAddr>,
    pub(crate) socket: Socket,
    pub(crate) last_active: Time,
    /// The number of packets in both directions.
    pub(crate) packets: u64,
}

/// The maximum number of packets, in both directions, of a caller that is removed first.
const FEW: u64 = 2;

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

    /// Makes room for a caller. If there is none, forgets the caller with the fewest packets; of
    /// several, the one that has been idle the longest. A caller is kept if it was active within
    /// `busy`, or, with at most `FEW` packets, within a fifth of that. Returns whether there is
    /// room.
    pub(crate) fn make_room(&mut self, now: Time, busy: Span) -> bool {
        if self.known.len() < self.most {
            return true;
        }
        let silent = self.known.iter().filter(|(_, caller)| {
            let patience = if caller.packets <= FEW {
                busy / 5
            } else {
                busy
            };
            now.saturating_since(caller.last_active) >= patience
        });
        let least = silent.min_by_key(|(_, caller)| (caller.packets, caller.last_active));
        let Some(number) = least.map(|(&number, _)| number) else {
            return false;
        };
        if let Some(caller) = self.known.remove(&number) {
            self.numbers.remove(&caller.address);
        }
        true
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
            packets: 0,
        }
    }

    /// Callers with a single packet do not keep new callers out.
    #[test]
    fn callers_of_a_packet_or_two_make_room() {
        let (mut callers, busy) = (Callers::new(3), Span::from_secs(5));
        let alive = callers.add(caller(1, 9));
        callers.caller(alive).unwrap().packets = 40;
        let flood: Vec<_> = (2..4).map(|port| callers.add(caller(port, 10))).collect();
        assert!(
            !callers.make_room(Time::from_secs(10), busy),
            "they came just now"
        );
        let mut newest = 0;
        for port in 4..600 {
            assert!(callers.make_room(Time::from_secs(12), busy));
            newest = callers.add(caller(port, 10));
        }
        assert!(callers.caller(alive).is_some());
        assert!(flood.iter().all(|&number| callers.caller(number).is_none()));
        assert_eq!(callers.len(), 3);
        // Active callers are kept until they are idle.
        for number in [newest, newest - 1] {
            callers.caller(number).unwrap().packets = 3;
        }
        assert!(!callers.make_room(Time::from_secs(12), busy));
        assert!(callers.make_room(Time::from_secs(16), busy));
        assert!(callers.caller(alive).is_some(), "it sends the most");
    }

    #[test]
    fn numbers_are_never_given_again() {
        let mut callers = Callers::new(2);
        let first = callers.add(caller(1, 0));
        let second = callers.add(caller(2, 5));
        assert_eq!(callers.len(), 2);
        callers.forget_idle(Time::from_secs(10), Span::from_secs(6));
        assert!(callers.caller(first).is_none() && callers.caller(second).is_some());
        assert_eq!(callers.number_of(([127, 0, 0, 1], 1).into()), None);
        let again = callers.next_number();
        assert_eq!(callers.add(caller(1, 10)), again);
        assert!(again != first && again != second);
        assert_eq!((callers.len(), callers.seen()), (2, 3));
    }
}
