//! Two whole ends with a hostile path between them, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use bytes::Bytes;
use comity::parts::{Seed, Time};
use comity::session::{
    Caller, CallerConfig, CallerCredentials, ConnectionId, Ecn, Event, Listener, ListenerConfig,
    ListenerCredentials, ListenerEvent, PresharedKey, Randomness, Session,
};
use comity::transport::{Delivery, Transport, TransportEvent};
use comity::{CloseReason, Config, Outcome, Span, Statistics};

/// How long the two ends have to connect, before the path is hostile.
pub(super) const CONNECTED_AFTER: Span = Span::from_secs(2);

/// Shares of all datagrams, and times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) drop: f64,
    pub(super) copy: f64,
    pub(super) mangle: f64,
    pub(super) delay: Span,
    /// The largest extra delay: longer than the gaps between packets, it reorders them.
    pub(super) jitter: Span,
    /// From when to when, after the beginning, it drops every datagram.
    pub(super) outage: (Span, Span),
}

/// An end of a hop. Sections go from the caller to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Caller,
    Listener,
}

impl End {
    const fn peer(self) -> Self {
        match self {
            Self::Caller => Self::Listener,
            Self::Listener => Self::Caller,
        }
    }

    fn address(self) -> SocketAddr {
        let text = match self {
            Self::Caller => "198.51.100.7:4000",
            Self::Listener => "192.0.2.1:5000",
        };
        text.parse().unwrap()
    }
}

pub(super) struct Hop {
    path: Path,
    began: Time,
    seed: Seed,
    draws: u64,
    flights: BTreeMap<(Time, u64), (End, Vec<u8>)>,
    caller: Caller<Transport>,
    listener: Listener<Transport>,
    /// How far the clocks of the caller and the listener are ahead of the world's.
    clocks: [Span; 2],
    connection: Option<ConnectionId>,
    /// The deliveries of the receiving end on its clock, until they are taken.
    pub(super) deliveries: VecDeque<Delivery<Bytes>>,
    /// The fates at the sending end, until they are taken.
    pub(super) outcomes: VecDeque<Outcome>,
    /// Why each end closed.
    pub(super) closed: BTreeMap<End, CloseReason>,
    /// The latest statistics of each end.
    statistics: BTreeMap<End, Statistics>,
}

impl Hop {
    /// A hop whose ends have called each other.
    pub(super) fn new(
        now: Time,
        seed: Seed,
        path: Path,
        clocks: [Span; 2],
        configs: [&Config; 2],
    ) -> Self {
        let parameters = configs.map(|config| {
            let mut parameters = Vec::new();
            config.parameters().encode(&mut parameters).unwrap();
            parameters
        });
        let [for_caller, for_listener] = parameters;
        let key = PresharedKey::new([1; 32]);
        let caller = Caller::new(
            now + clocks[0],
            End::Listener.address(),
            CallerConfig::new(CallerCredentials::Shared(key.clone()), for_caller),
            Transport::opener(configs[0].clone(), seed.derive("caller")),
            Randomness::seeded(seed.derive("caller's randomness")),
        );
        let listener = Listener::new(
            now + clocks[1],
            ListenerConfig::new(ListenerCredentials::Shared(key), for_listener),
            Transport::opener(configs[1].clone(), seed.derive("listener")),
            Randomness::seeded(seed.derive("listener's randomness")),
        );
        let mut hop = Self {
            // It is hostile once both ends are connected: how calls fail is not the question here.
            path: Path {
                drop: 0.0,
                mangle: 0.0,
                outage: (Span::ZERO, Span::ZERO),
                ..path
            },
            began: now,
            seed: seed.derive("path"),
            draws: 0,
            flights: BTreeMap::new(),
            caller: caller.unwrap(),
            listener: listener.unwrap(),
            clocks,
            connection: None,
            deliveries: VecDeque::new(),
            outcomes: VecDeque::new(),
            closed: BTreeMap::new(),
            statistics: BTreeMap::new(),
        };
        hop.settle(now);
        hop.run(now + CONNECTED_AFTER);
        assert!(hop.transport(End::Caller).is_some() && hop.transport(End::Listener).is_some());
        hop.path = path;
        hop
    }

    fn clock(&self, end: End, now: Time) -> Time {
        now + self.clocks[end as usize]
    }

    fn draw(&mut self) -> u64 {
        self.draws += 1;
        self.seed.index(self.draws).get()
    }

    fn chance(&mut self, share: f64) -> bool {
        ((self.draw() >> 11) as f64 / (1_u64 << 53) as f64) < share
    }

    /// A datagram leaves.
    fn carry(&mut self, now: Time, from: End, bytes: &[u8]) {
        let path = self.path;
        let age = now.saturating_since(self.began);
        if self.chance(path.drop) || (path.outage.0..path.outage.1).contains(&age) {
            return;
        }
        let copies = 1 + u8::from(self.chance(path.copy));
        for _ in 0..copies {
            let mut bytes = bytes.to_vec();
            if self.chance(path.mangle) {
                let bit = (self.draw() % (8 * bytes.len() as u64)) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let jitter = Span::from_nanos(self.draw() % (path.jitter.as_nanos() + 1));
            let arrival = (now + path.delay + jitter, self.draws);
            self.flights.insert(arrival, (from, bytes));
        }
    }

    fn session(&self, end: End) -> Option<&Session<Transport>> {
        match end {
            End::Caller => self.caller.session(),
            End::Listener => self.listener.session(self.connection?),
        }
    }

    /// The transport of an end, while it has one.
    pub(super) fn transport(&mut self, end: End) -> Option<&mut Transport> {
        match end {
            End::Caller => self.caller.session_mut().map(Session::protocol_mut),
            End::Listener => self.listener.protocol_mut(self.connection?),
        }
    }

    /// The last counters of an end.
    pub(super) fn statistics(&self, end: End) -> &Statistics {
        &self.statistics[&end]
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Time {
        let arrival = self.flights.keys().next().map_or(Time::MAX, |key| key.0);
        let timer = |end: End, timer: Time| match timer {
            Time::MAX => Time::MAX,
            timer => timer.saturating_sub(self.clocks[end as usize]),
        };
        arrival
            .min(timer(End::Caller, self.caller.next_timer()))
            .min(timer(End::Listener, self.listener.next_timer()))
    }

    /// Lets time pass until `until`.
    pub(super) fn run(&mut self, until: Time) {
        while self.next() <= until {
            let next = self.next();
            self.advance(next);
        }
        self.settle(until);
    }

    /// Lets time pass until `now`: nothing happens before.
    pub(super) fn advance(&mut self, now: Time) {
        let later = self.flights.split_off(&(now, u64::MAX));
        let arrived = std::mem::replace(&mut self.flights, later);
        for (from, mut bytes) in arrived.into_values() {
            let address = from.address();
            let (ecn, at) = (Ecn::NotCapable, self.clock(from.peer(), now));
            match from.peer() {
                End::Caller => self.caller.handle_datagram(at, address, ecn, &mut bytes),
                End::Listener => self.listener.handle_datagram(at, address, ecn, &mut bytes),
            }
        }
        let at = End::Caller;
        if self.caller.next_timer() <= self.clock(at, now) {
            self.caller.on_timer(self.clock(at, now));
        }
        let at = End::Listener;
        if self.listener.next_timer() <= self.clock(at, now) {
            self.listener.on_timer(self.clock(at, now));
        }
        self.settle(now);
    }

    /// Lets both ends send what they can, and collects their deliveries and events.
    pub(super) fn settle(&mut self, now: Time) {
        let mut out = Vec::new();
        while self
            .caller
            .poll_transmit(self.clock(End::Caller, now), &mut out)
            .is_some()
        {
            self.carry(now, End::Caller, &out);
            out.clear();
        }
        while self
            .listener
            .poll_transmit(self.clock(End::Listener, now), &mut out)
            .is_some()
        {
            self.carry(now, End::Listener, &out);
            out.clear();
        }
        while self.caller.poll_event().is_some() {}
        while let Some(event) = self.listener.poll_event() {
            // An outage can swallow every goodbye: then the listener forgets a silent connection.
            if let ListenerEvent::Session(_, Event::Closed(closed)) = event {
                let reason = CloseReason::Session(closed);
                self.closed.entry(End::Listener).or_insert(reason);
            }
        }
        self.connection = self.connection.or_else(|| self.listener.ids().next());
        for end in [End::Caller, End::Listener] {
            let now = self.clock(end, now);
            let Some(transport) = self.transport(end) else {
                continue;
            };
            let (mut deliveries, mut outcomes, mut closed) = (Vec::new(), Vec::new(), None);
            while let Some(delivery) = transport.poll_delivery(now) {
                deliveries.push(delivery);
            }
            while let Some(event) = transport.poll_event(now) {
                match event {
                    TransportEvent::Outcome(outcome) => outcomes.push(outcome),
                    TransportEvent::Closed(reason) => closed = Some(reason),
                    _ => {}
                }
            }
            self.deliveries.extend(deliveries);
            self.outcomes.extend(outcomes);
            self.closed.extend(closed.map(|closed| (end, closed)));
            let session = self.session(end).expect("it has a transport");
            let statistics = session.protocol().stats(now, &session.statistics());
            self.statistics.insert(end, statistics);
        }
    }
}
