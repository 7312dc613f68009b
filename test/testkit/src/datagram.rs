//! Two ends of the datagram transport, joined by links, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bytes::Bytes;
use comity_congestion::Ecn;
use comity_congestion::table::{self, Parameters, Setup, TABLE};
use comity_link::{AnalyticLink, LinkConfig, Outcome, Packet};
use comity_transport::datagram::{Config, Connection, Event, Violation};
use comity_transport::timeline::{Delivery, Payload};
use comity_units::{PacketNumber, Seed, Span, Time};

use crate::liar::Liar;

/// The names of all controllers. Each can drive the transport, which reports the events that it
/// needs. `fixed` needs none, and fills any queue.
pub fn controllers() -> Vec<&'static str> {
    TABLE.iter().map(|row| row.name).collect()
}

/// Creates two ends that run this controller with its defaults. End 1 runs its meter, if it has
/// one.
///
/// # Panics
/// If no such controller exists, or a configuration is invalid: an error in the test.
pub fn ends(controller: &str, sender: Config, receiver: Config) -> [Connection<Bytes>; 2] {
    ends_opened(controller, sender, receiver, [Time::ZERO; 2])
}

/// As [`ends`], opened at these clock readings.
///
/// # Panics
/// As [`ends`].
pub fn ends_opened(
    controller: &str,
    sender: Config,
    receiver: Config,
    opened: [Time; 2],
) -> [Connection<Bytes>; 2] {
    let row = table::find(controller).expect("a known controller");
    let [sender_opened, receiver_opened] = opened;
    let mut ends = [
        (sender, sender_opened, false),
        (receiver, receiver_opened, true),
    ]
    .map(|(config, opened, measures)| {
        let setup = Setup::new(comity_units::DataSize::new(u64::from(config.payload)));
        let controller = row.build(&setup, &Parameters::new()).expect("defaults");
        let meter = row
            .build_meter(&setup, &Parameters::new())
            .filter(|_| measures)
            .map(|meter| meter.expect("defaults"));
        Connection::new(config, config.ack_delay, controller, meter, opened).expect("valid")
    });
    // As transport parameters do. An end that assumed its own buffer size for its peer could exceed
    // the peer's buffer.
    ends[0].set_initial_credit(receiver.receive_buffer, receiver.receive_sections);
    ends[1].set_initial_credit(sender.receive_buffer, sender.receive_sections);
    ends
}

/// A packet in flight.
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

/// A clock with a constant rate. Links and tests use the true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Its reading at the true time zero.
    pub at_zero: Time,
    /// How much faster than the true time it runs, in parts per million; above -1,000,000.
    pub drift_ppm: i32,
}

impl Clock {
    /// The true time.
    pub const TRUE: Self = Self {
        at_zero: Time::ZERO,
        drift_ppm: 0,
    };

    /// Its reading at this true time: `at_zero + time · (1 + drift)`, rounded down.
    pub fn reading(&self, time: Time) -> Time {
        if time.is_never() {
            return time;
        }
        let passed = u128::from(time.as_nanos()) * self.pace() / MILLION;
        self.at_zero + Span::from_nanos(passed as u64)
    }

    /// The first true time with at least this reading.
    pub fn first_showing(&self, reading: Time) -> Time {
        if reading.is_never() {
            return reading;
        }
        let passed = u128::from(reading.saturating_since(self.at_zero).as_nanos()) * MILLION;
        Time::from_nanos(passed.div_ceil(self.pace()) as u64)
    }

    /// How many millionths it advances in a unit of true time.
    fn pace(&self) -> u128 {
        MILLION.saturating_add_signed(self.drift_ppm.into()).max(1)
    }
}

const MILLION: u128 = 1_000_000;

/// Two connections, called 0 and 1, and a link in each direction.
///
/// Each end has its own clock, the true one unless [`with_clocks`](Self::with_clocks) changes it.
/// Calls of a test to an end need times in its [`reading`](Self::reading). All times of this type
/// are true times.
#[derive(Debug)]
pub struct Pair<P: Payload> {
    /// The ends.
    pub ends: [Connection<P>; 2],
    /// The deliveries of each end, with their times.
    pub deliveries: [Vec<(Time, Delivery<P>)>; 2],
    /// The events of each end, with their times.
    pub events: [Vec<(Time, Event)>; 2],
    /// The violations that each end detected.
    pub violations: Vec<(usize, Violation)>,
    /// `links[0]` carries the packets of end 0.
    links: [AnalyticLink; 2],
    in_flight: BinaryHeap<Reverse<InFlight>>,
    now: Time,
    order: u64,
    overhead: u32,
    /// Between these times all packets are lost.
    outage: Option<(Time, Time)>,
    /// The number of processed events.
    steps: u64,
    /// Larger packets on the wire are lost, in either direction.
    largest: u32,
    clocks: [Clock; 2],
    /// The extra delay of each direction beside its link.
    extra_delays: [Span; 2],
    /// Changes the packets of end 1.
    pub liar: Option<Liar>,
}

impl<P: Payload> Pair<P> {
    /// Joins two ends by `links`: the first carries the packets of end 0.
    ///
    /// # Panics
    /// If a link's configuration is invalid: an error in the test.
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
            liar: None,
        }
    }

    /// Sets the clocks of the ends, which were opened at a reading no later than at the true time
    /// zero.
    #[must_use]
    pub fn with_clocks(mut self, clocks: [Clock; 2]) -> Self {
        self.clocks = clocks;
        self
    }

    /// The virtual time.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The current reading of this end's clock.
    pub fn reading(&self, end: usize) -> Time {
        self.clocks[end].reading(self.now)
    }

    /// Adds a delay to later packets of this end, beside the link's.
    pub const fn set_extra_delay(&mut self, end: usize, delay: Span) {
        self.extra_delays[end] = delay;
    }

    /// The number of events so far: timers and arrivals. Idle ends have few.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// Loses all packets between `from` and `to` in both directions.
    pub const fn set_outage(&mut self, from: Time, to: Time) {
        self.outage = Some((from, to));
    }

    /// Silently drops packets with more bytes on the wire from now on, in either direction.
    pub const fn set_largest(&mut self, bytes: u32) {
        self.largest = bytes;
    }

    /// Lets time pass until `until`.
    ///
    /// # Panics
    /// If an end repeatedly requests calls without an effect.
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
        if let Some(liar) = &mut self.liar
            && packet.to == 0
            && end.is_open()
        {
            liar.on_received(packet.number);
        }
        if let Err(violation) = end.on_packet(now, packet.number, ecn, &packet.payload) {
            self.violations.push((packet.to, violation));
        }
    }

    fn drain(&mut self) {
        for index in 0..2 {
            let now = self.reading(index);
            // A delivery may make room that must be reported to the peer.
            while let Some(delivery) = self.ends[index].poll_delivery(now) {
                let now = self.now;
                self.deliveries[index].extend(delivery.each().map(|each| (now, each)));
            }
            let mut payload = Vec::new();
            while let Some(sent) = self.ends[index].poll_transmit(now, &mut payload) {
                let mut payload = std::mem::take(&mut payload);
                match &mut self.liar {
                    Some(liar) if index == 0 => liar.on_sent(sent.number, &payload),
                    Some(liar) => payload = liar.change(sent.number, &payload),
                    None => {}
                }
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

    /// Runs until both ends are settled or closed, or `limit` has passed. Returns whether they are.
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
