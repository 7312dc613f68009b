//! Two ends of the datagram transport and a path made of links between them, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;
use comity_congestion::table::{self, Parameters, Setup, TABLE};
use comity_link::{AnalyticLink, LinkConfig, Outcome, Packet};
use comity_transport::datagram::{Config, Connection, Ecn, Event, Violation};
use comity_transport::timeline::{Delivery, Payload};
use comity_units::{PacketNumber, Seed, Span, Time};

/// The controllers that drive the transport: all of them. What each wants to hear, of its
/// acknowledgements and of its meter, the transport tells it; `fixed` hears nothing, and fills
/// whatever queue it meets.
pub fn laws() -> Vec<&'static str> {
    TABLE.iter().map(|row| row.name).collect()
}

/// Two ends that run this controller with its defaults. Its meter, where it has one, is at end 1.
///
/// # Panics
/// When there is no such controller, or a configuration is not valid: a mistake in a test.
pub fn ends(law: &str, sender: Config, receiver: Config) -> [Connection<Bytes>; 2] {
    ends_opened(law, sender, receiver, [Time::ZERO; 2])
}

/// As [`ends`], opened at these readings of their clocks.
///
/// # Panics
/// As [`ends`].
pub fn ends_opened(
    law: &str,
    sender: Config,
    receiver: Config,
    opened: [Time; 2],
) -> [Connection<Bytes>; 2] {
    let row = table::find(law).expect("a known controller");
    let [sender_opened, receiver_opened] = opened;
    let mut ends = [
        (sender, sender_opened, false),
        (receiver, receiver_opened, true),
    ]
    .map(|(config, opened, measures)| {
        let setup = Setup::new(comity_units::Bytes::new(u64::from(config.payload)));
        let controller = row.build(&setup, &Parameters::new()).expect("defaults");
        let meter = row
            .build_meter(&setup, &Parameters::new())
            .filter(|_| measures)
            .map(|meter| meter.expect("defaults"));
        Connection::new(config, config.ack_delay, controller, meter, opened).expect("valid")
    });
    // As transport parameters would: an end that took its own buffer for its peer's could fill that
    // with what waits for more.
    ends[0].set_initial_credit(receiver.receive_buffer, receiver.receive_sections);
    ends[1].set_initial_credit(sender.receive_buffer, sender.receive_sections);
    ends
}

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

/// A clock that runs evenly, beside the true time in which links and the test live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// What it shows when the true time is zero.
    pub at_zero: Time,
    /// How much faster than the true time it runs, in parts per million; more than -1,000,000.
    pub drift_ppm: i32,
}

impl Clock {
    /// The true time.
    pub const TRUE: Self = Self {
        at_zero: Time::ZERO,
        drift_ppm: 0,
    };

    /// What it shows at this true time: `at_zero + time · (1 + drift)`, rounded down.
    pub fn reading(&self, time: Time) -> Time {
        if time.is_never() {
            return time;
        }
        let passed = u128::from(time.as_nanos()) * self.pace() / MILLION;
        self.at_zero + Span::from_nanos(passed as u64)
    }

    /// The first true time at which it shows this or more.
    pub fn first_showing(&self, reading: Time) -> Time {
        if reading.is_never() {
            return reading;
        }
        let passed = u128::from(reading.saturating_since(self.at_zero).as_nanos()) * MILLION;
        Time::from_nanos(passed.div_ceil(self.pace()) as u64)
    }

    /// By how many millionths of a unit it advances in a millionth of it.
    fn pace(&self) -> u128 {
        MILLION.saturating_add_signed(self.drift_ppm.into()).max(1)
    }
}

const MILLION: u128 = 1_000_000;

/// Two connections, called 0 and 1, and a link in each direction.
///
/// Each end lives by a clock of its own, the true one unless [`with_clocks`](Self::with_clocks)
/// says otherwise: what a test tells an end directly has to be in its [`reading`](Self::reading).
/// All times that this type tells are true.
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
    links: [AnalyticLink; 2],
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
    clocks: [Clock; 2],
    /// What each direction takes beside its link.
    extra_delays: [Span; 2],
}

impl<P: Payload> Pair<P> {
    /// Two ends joined by `links`: the first carries what end 0 sends.
    ///
    /// # Panics
    /// When a link's configuration is not valid: a mistake in a test.
    pub fn new(ends: [Connection<P>; 2], links: [&LinkConfig; 2], seed: Seed) -> Self {
        let [forward, backward] = links;
        let link = |config: &LinkConfig, name| {
            AnalyticLink::new(config, seed.derive(name)).expect("a valid link")
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
            clocks: [Clock::TRUE; 2],
            extra_delays: [Span::ZERO; 2],
        }
    }

    /// Gives the ends these clocks, of which they were opened at a reading no later than at the
    /// true time zero.
    #[must_use]
    pub fn with_clocks(mut self, clocks: [Clock; 2]) -> Self {
        self.clocks = clocks;
        self
    }

    /// The virtual time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// What the clock of this end shows now.
    pub fn reading(&self, end: usize) -> Time {
        self.clocks[end].reading(self.now)
    }

    /// What this end sends from now on takes so much longer than its link alone.
    pub const fn set_extra_delay(&mut self, end: usize, delay: Span) {
        self.extra_delays[end] = delay;
    }

    /// How often something happened so far: a timer, or an arrival. Ends at rest have few.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// From `from` to `to` nothing that is sent gets through in either direction.
    pub const fn set_outage(&mut self, from: Time, to: Time) {
        self.outage = Some((from, to));
    }

    /// From now on packets with more bytes on the wire are swallowed silently, in either
    /// direction.
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
            let timers = self.ends.iter().zip(&self.clocks);
            let timers = timers
                .map(|(end, clock)| clock.first_showing(end.next_timer()))
                .min();
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
            for (end, clock) in self.ends.iter_mut().zip(&self.clocks) {
                let now = clock.reading(self.now);
                if end.next_timer() <= now {
                    end.on_timer(now);
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
        let now = self.reading(packet.to);
        let end = &mut self.ends[packet.to];
        if let Err(violation) = end.on_packet(now, packet.number, ecn, &packet.payload) {
            self.violations.push((packet.to, violation));
        }
    }

    fn drain(&mut self) {
        for index in 0..2 {
            let now = self.reading(index);
            // What is taken away may make room that the peer is to be told of.
            while let Some(delivery) = self.ends[index].poll_delivery(now) {
                self.deliveries[index].push((self.now, delivery));
            }
            let mut payload = Vec::new();
            while let Some(sent) = self.ends[index].poll_transmit(now, &mut payload) {
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
                    flow: 0,
                };
                let Outcome::Carried(way) = self.links[index].offer(self.now, view) else {
                    continue;
                };
                for arrival in [Some(way.arrival), way.duplicate].into_iter().flatten() {
                    let arrival = arrival + self.extra_delays[index];
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
            while let Some(event) = self.ends[index].poll_event() {
                self.events[index].push((self.now, event));
            }
        }
    }

    /// Lets time pass until both ends are settled or closed, or `limit` has passed. Returns whether
    /// they are.
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
