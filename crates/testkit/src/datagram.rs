//! Two ends of the datagram transport and a path made of links between them, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use comity_link::{ClockedLink, LinkConfig, Outcome, Packet};
use comity_transport::datagram::{Connection, Ecn, Event, Violation};
use comity_transport::timeline::{Delivery, Payload};
use comity_units::{PacketNumber, Seed, Span, Time};

/// A packet on its way.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    arrival: Time,
    order: u64,
    to: usize,
    number: PacketNumber,
    marked: bool,
    ecn_capable: bool,
    payload: Vec<u8>,
}

/// Two connections, called 0 and 1, and a link in each direction.
#[derive(Debug)]
pub struct Pair<P: Payload> {
    /// The ends.
    pub ends: [Connection<P>; 2],
    /// What each end delivered, and when.
    pub deliveries: [Vec<(Time, Delivery<P>)>; 2],
    /// What each end told its owner, and when.
    pub events: [Vec<(Time, Event)>; 2],
    /// What each end held against the other.
    pub violations: Vec<(usize, Violation)>,
    /// `links[0]` carries what end 0 sends.
    links: [ClockedLink; 2],
    in_flight: BinaryHeap<Reverse<InFlight>>,
    now: Time,
    order: u64,
    overhead: u32,
    /// Between these times nothing gets through.
    outage: Option<(Time, Time)>,
    /// How often time has stood still for something to happen.
    steps: u64,
    /// What is larger on the wire gets lost, in either direction.
    largest: u32,
}

impl<P: Payload> Pair<P> {
    /// Two ends joined by `links`: the first carries what end 0 sends.
    ///
    /// # Panics
    /// When a link's configuration is not valid: a mistake in a test.
    pub fn new(ends: [Connection<P>; 2], links: [&LinkConfig; 2], seed: Seed) -> Self {
        let [forward, backward] = links;
        let link = |config: &LinkConfig, name| {
            ClockedLink::new(config, seed.derive(name)).expect("a valid link")
        };
        let overhead = ends[0].config().overhead;
        Self {
            ends,
            deliveries: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
            violations: Vec::new(),
            links: [link(forward, "forward"), link(backward, "backward")],
            in_flight: BinaryHeap::new(),
            now: Time::ZERO,
            order: 0,
            overhead,
            outage: None,
            steps: 0,
            largest: u32::MAX,
        }
    }

    /// The virtual time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// How often something happened so far: a timer, or an arrival. Ends at rest have few.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// From `from` to `to` nothing that is sent gets through in either direction.
    pub const fn set_outage(&mut self, from: Time, to: Time) {
        self.outage = Some((from, to));
    }

    /// From now on packets with more bytes on the wire are swallowed without a word, in either direction.
    pub const fn set_largest(&mut self, bytes: u32) {
        self.largest = bytes;
    }

    /// Lets time pass until `until`.
    ///
    /// # Panics
    /// When an end asks to be called again and again without anything happening.
    pub fn run_until(&mut self, until: Time) {
        let mut at_this_instant = 0;
        loop {
            self.drain();
            let timers = self.ends.iter().map(Connection::next_timer).min();
            let arrival = self
                .in_flight
                .peek()
                .map_or(Time::MAX, |Reverse(packet)| packet.arrival);
            let next = timers.unwrap_or(Time::MAX).min(arrival).max(self.now);
            if next > until {
                self.now = until;
                return;
            }
            at_this_instant = if next == self.now {
                at_this_instant + 1
            } else {
                0
            };
            assert!(
                at_this_instant < 100_000,
                "no progress at {}: next timers {:?}",
                self.now,
                self.ends.each_ref().map(Connection::next_timer)
            );
            self.now = next;
            self.steps += 1;
            while let Some(Reverse(packet)) = self.in_flight.peek()
                && packet.arrival <= self.now
            {
                let Some(Reverse(packet)) = self.in_flight.pop() else {
                    break;
                };
                self.deliver(&packet);
            }
            for end in &mut self.ends {
                if end.next_timer() <= self.now {
                    end.on_timer(self.now);
                }
            }
        }
    }

    fn deliver(&mut self, packet: &InFlight) {
        let ecn = match (packet.marked, packet.ecn_capable) {
            (true, true) => Ecn::CongestionExperienced,
            (false, true) => Ecn::Capable0,
            _ => Ecn::NotCapable,
        };
        let end = &mut self.ends[packet.to];
        if let Err(violation) = end.on_packet(self.now, packet.number, ecn, &packet.payload) {
            self.violations.push((packet.to, violation));
        }
    }

    fn drain(&mut self) {
        for index in 0..2 {
            let mut payload = Vec::new();
            while let Some(sent) = self.ends[index].poll_transmit(self.now, &mut payload) {
                let payload = std::mem::take(&mut payload);
                let is_out = self
                    .outage
                    .is_some_and(|(from, to)| from <= self.now && self.now < to);
                if is_out || sent.payload + self.overhead > self.largest {
                    continue;
                }
                let ecn_capable = sent.ecn == Ecn::Capable0;
                let view = Packet {
                    bytes: sent.payload + self.overhead,
                    ecn_capable,
                };
                let Outcome::Carried(way) = self.links[index].offer(self.now, view) else {
                    continue;
                };
                for arrival in [Some(way.arrival), way.duplicate].into_iter().flatten() {
                    self.order += 1;
                    self.in_flight.push(Reverse(InFlight {
                        arrival,
                        order: self.order,
                        to: 1 - index,
                        number: sent.number,
                        marked: way.marked,
                        ecn_capable,
                        payload: payload.clone(),
                    }));
                }
            }
            while let Some(delivery) = self.ends[index].poll_delivery(self.now) {
                self.deliveries[index].push((self.now, delivery));
            }
            while let Some(event) = self.ends[index].poll_event() {
                self.events[index].push((self.now, event));
            }
        }
    }

    /// Lets time pass until both ends are settled or closed, or `limit` has passed. Returns whether they are.
    pub fn run_until_settled(&mut self, limit: Span) -> bool {
        let until = self.now + limit;
        while self.now < until {
            self.run_until((self.now + Span::from_millis(10)).min(until));
            let is_done = |end: &Connection<P>| end.is_settled() || !end.is_open();
            if self.ends.iter().all(is_done) && self.in_flight.is_empty() {
                return true;
            }
        }
        false
    }
}
