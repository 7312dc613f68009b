//! The waiting and the decided packets of a queued link.

use alloc::collections::VecDeque;

use comity_units::Time;

use crate::codel::Store;
use crate::outcome::{DropCause, Outcome, Packet};

/// A packet that the link returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<T> {
    /// The host's own token.
    pub token: T,
    /// Its fate.
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) token: T,
    pub(crate) packet: Packet,
    /// Its number among all offers.
    pub(crate) number: u64,
    pub(crate) since: Time,
    pub(crate) marked: bool,
}

/// Packets that leave in the order of their arrival.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    waiting: VecDeque<Waiting<T>>,
    bytes: u64,
}

impl<T> Default for Fifo<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<T> Fifo<T> {
    pub(crate) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn push(&mut self, packet: Waiting<T>) {
        self.bytes += u64::from(packet.packet.bytes);
        self.waiting.push_back(packet);
    }

    pub(crate) fn take(&mut self) -> Option<Waiting<T>> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.packet.bytes);
        Some(first)
    }
}

/// Decided packets that were not returned yet, in the order of the decisions.
#[derive(Clone, Debug)]
pub(crate) struct Decisions<T>(VecDeque<(Time, Decision<T>)>);

impl<T> Default for Decisions<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Decisions<T> {
    pub(crate) fn push(&mut self, at: Time, token: T, outcome: Outcome) {
        self.0.push_back((at, Decision { token, outcome }));
    }

    /// When the first one was decided.
    pub(crate) fn first(&self) -> Option<Time> {
        self.0.front().map(|&(at, _)| at)
    }

    pub(crate) fn take(&mut self) -> Option<Decision<T>> {
        self.0.pop_front().map(|(_, decision)| decision)
    }
}

/// A first-in-first-out queue under controlled delay.
pub(crate) struct Controlled<'a, T> {
    pub(crate) fifo: &'a mut Fifo<T>,
    /// Waiting bytes in other queues of the same link.
    pub(crate) elsewhere: u64,
    pub(crate) decided: &'a mut Decisions<T>,
    pub(crate) now: Time,
}

impl<T> Store for Controlled<'_, T> {
    type Entry = Waiting<T>;

    fn take(&mut self) -> Option<Waiting<T>> {
        self.fifo.take()
    }

    fn bytes(&self) -> u64 {
        self.elsewhere + self.fifo.bytes
    }

    fn since(entry: &Waiting<T>) -> Time {
        entry.since
    }

    fn mark(entry: &mut Waiting<T>) -> bool {
        entry.marked |= entry.packet.ecn_capable;
        entry.packet.ecn_capable
    }

    fn discard(&mut self, entry: Waiting<T>) {
        let outcome = Outcome::Dropped(DropCause::EarlyDrop);
        self.decided.push(self.now, entry.token, outcome);
    }
}
